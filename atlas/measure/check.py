"""Cases, assistant -> pass or fail: the smoke test of a collection.

A case passes when the status is the expected one, a relevant block was supplied and cited, every
fact stands in the answer, and nothing rejected does. Also listed: accepted cases to review, because
a source changed or another block in scope now holds all of their facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atlas.errors import AtlasError, NothingToMeasure
from atlas.measure.acceptance import (
    Acceptance,
    acceptance_of,
    load_accepted,
    reasons,
    save_accepted,
)
from atlas.measure.cases import DEVELOPMENT, Case, Labels, load_cases
from atlas.measure.doors import Asks, Opened
from atlas.measure.facts import missing_facts, rejected
from atlas.measure.questions import load_questions
from atlas.records import Block, Scope

STATUS = {"answer": "answered", "abstain": "abstained", "clarify": "needs_clarification"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The outcome of one case."""

    case: Case
    passed: bool
    why: str
    """Why it failed, or "" where it passed."""
    error: bool = False
    """Whether the question could not be asked at all."""
    trace: dict[str, Any] | None = None


def check(
    cases: Sequence[Case],
    assistant: Asks,
    labels: Labels,
    blocks: Mapping[str, Block],
    scope_of: Callable[[Case], Scope],
) -> Iterator[Checked]:
    """Ask every case and judge it. `blocks` are those of the index by their reference."""
    for case in cases:
        try:
            trace = assistant.ask(case.question, scope_of(case)).values
        except AtlasError as error:
            yield Checked(case=case, passed=False, why=str(error), error=True)
            continue
        why = "; ".join(problems(case, trace, labels, blocks))
        yield Checked(case=case, passed=not why, why=why, trace=trace)


def problems(
    case: Case, trace: Mapping[str, Any], labels: Labels, blocks: Mapping[str, Block]
) -> Iterator[str]:
    """Everything that keeps a trace from passing its case."""
    expected = STATUS[case.expect]
    if trace["status"] != expected:
        yield f"status is {trace['status']}, expected {expected} ({trace['reason'] or 'no reason'})"
    if case.expect == "answer":

        def relevant(rows: Iterable[Mapping[str, Any]]) -> bool:
            named = [blocks[row["ref"]] for row in rows if row["ref"] in blocks]
            return any(labels.covers(label, block) for label in case.relevant for block in named)

        if not relevant(trace["context"]):
            yield f"none of {', '.join(case.relevant)} was supplied"
        elif trace["status"] == "answered" and not relevant(trace["citations"]):
            yield f"none of {', '.join(case.relevant)} was cited"
    text = "\n".join((trace["answer"], *trace["choices"]))
    if case.expect != "abstain" and trace["status"] == expected:
        for missing in missing_facts(text, case):
            yield f"the answer lacks {missing!r}"
    for bad in rejected(text, case):
        yield f"the answer holds {bad!r}, which it must not"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcomes of a run of `check`."""

    checked: tuple[Checked, ...]
    outside: int
    """Cases left out because their sources lie outside the sample."""
    review: tuple[str, ...]
    """Accepted cases to look at again, one line each."""
    never_accepted: int
    """Cases among the checked ones that nobody has accepted yet."""
    accepted: Path | None = None
    """The file of acceptances, where this run wrote it."""

    @property
    def core_failed(self) -> bool:
        return any(item.case.core and not item.passed for item in self.checked)

    def as_json(self) -> dict[str, Any]:
        """The JSON of `check --json`."""
        return {
            "passed": sum(item.passed for item in self.checked),
            "failed": sum(not item.passed and not item.error for item in self.checked),
            "errors": sum(item.error for item in self.checked),
            "outside_sample": self.outside,
            "cases": [
                {"id": item.case.id, "passed": item.passed, "why": item.why}
                for item in self.checked
            ],
            "review": list(self.review),
            "never_accepted": self.never_accepted,
        }

    def lines(self) -> Iterator[str]:
        """The report for a person."""
        for item in self.checked:
            word = "pass" if item.passed else "error" if item.error else "FAIL"
            yield f"{word:<6}{item.case.id:<6}{item.case.question}"
            if item.why:
                yield f"            {item.why}"
        passed = sum(item.passed for item in self.checked)
        outside = f"; {self.outside} outside the sample" if self.outside else ""
        yield f"{passed} of {len(self.checked)} cases pass{outside}"
        for line in self.review:
            yield f"review {line}"
        if self.accepted is not None:
            yield f"{len(self.checked) - self.never_accepted} cases accepted in {self.accepted}"
        elif self.never_accepted:
            yield f"{self.never_accepted} never accepted; look at them and run with --accept"


def cases_of(root: Path, every: bool = False) -> tuple[Case, ...]:
    """A collection's core cases, or every development case; reads files and nothing else.

    Raises CollectionError for a bad file, NothingToMeasure without any case.
    """
    chosen = tuple(case for case in load_cases(root) if every or case.core)
    if not chosen:
        raise NothingToMeasure(
            f"{root / DEVELOPMENT}: no {'' if every else 'core '}case; write one with "
            "`core: true` into cases/*.yaml"
        )
    return chosen


def run(assistant: Opened, cases: Sequence[Case], accept: bool = False) -> Outcome:
    """Ask cases; with `accept` they count as reviewed from now on.

    Of a sample only the cases are asked whose sources lie in it. Raises CollectionError for a case
    that contradicts the documents, NothingToMeasure where no case is left.
    """
    collection = assistant.collection
    questions = load_questions(assistant, cases=cases)
    labels, blocks, scope_of = questions.labels, questions.blocks, questions.scope_of
    checked = tuple(check(questions.cases, assistant, labels, blocks, scope_of))
    now: dict[str, Acceptance] = {}
    for item in checked:
        if not item.error:
            seen = assistant.understand(item.case.question, scope_of(item.case)).seen.blocks
            in_scope = [block for block, ok in zip(blocks.values(), seen, strict=True) if ok]
            now[item.case.id] = acceptance_of(item.case, labels, in_scope)
    then = load_accepted(collection.root)
    path = None
    if accept:
        known = {case.id for case in load_cases(collection.root)}
        then = {name: value for name, value in then.items() if name in known} | now
        path = save_accepted(collection.root, then)
    review = tuple(
        f"{name}: {reason}"
        for name, value in now.items()
        if name in then
        for reason in reasons(then[name], value)
    )
    return Outcome(
        checked=checked,
        outside=questions.outside,
        review=review,
        never_accepted=sum(item.case.id not in then for item in checked),
        accepted=path,
    )
