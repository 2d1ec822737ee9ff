"""Cases, assistant -> pass or fail: the smoke test of a collection.

A case passes when the status is the expected one, a relevant block was supplied and cited, every
fact stands in the answer, and nothing rejected does. Also listed: cases to review, because another
block in scope holds all of their facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from atlas.errors import AtlasError, NothingToMeasure
from atlas.measure.cases import Case, Labels, check_cases, load_cases
from atlas.measure.facts import missing_facts, rejected
from atlas.records import Document, Scope, Trace

if TYPE_CHECKING:
    from atlas.assistant import Assistant

STATUS = {"answer": "answered", "abstain": "abstained", "clarify": "needs_clarification"}


class Asks(Protocol):
    """What a check needs of an assistant."""

    def ask(self, question: str, scope: Scope | None = None) -> Trace: ...


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


def in_sample(case: Case, sample: Sequence[str], labels: Labels) -> bool:
    """Whether a case can be asked of a sample: none of its sources, or one, lies inside."""
    found = [labels.parse(label) for label in case.relevant]
    return not case.relevant or all(item is not None and item[0].id in sample for item in found)


def check(
    cases: Sequence[Case],
    assistant: Asks,
    documents: Sequence[Document],
    scope_of: Callable[[Case], Scope],
) -> Iterator[Checked]:
    """Ask every case and judge it."""
    labels = Labels(documents)
    for case in cases:
        try:
            trace = assistant.ask(case.question, scope_of(case)).values
        except AtlasError as error:
            yield Checked(case=case, passed=False, why=str(error), error=True)
            continue
        why = "; ".join(problems(case, trace, labels))
        yield Checked(case=case, passed=not why, why=why, trace=trace)


def problems(case: Case, trace: dict[str, Any], labels: Labels) -> Iterator[str]:
    """Everything that keeps a trace from passing its case."""
    expected = STATUS[case.expect]
    if trace["status"] != expected:
        yield f"status is {trace['status']}, expected {expected} ({trace['reason'] or 'no reason'})"
    if case.expect == "answer":
        supplied = [row["ref"] for row in trace["context"]]
        if not any(_covers(label, ref, labels) for label in case.relevant for ref in supplied):
            yield f"none of {', '.join(case.relevant)} was supplied"
    text = "\n".join((trace["answer"], *trace["choices"]))
    if case.expect != "abstain" and trace["status"] == expected:
        for missing in missing_facts(text, case):
            yield f"the answer lacks {missing!r}"
    for bad in rejected(text, case):
        yield f"the answer holds {bad!r}, which it must not"


def _covers(label: str, ref: str, labels: Labels) -> bool:
    found = labels.parse(label)
    if found is None:
        return False
    document, _, _, page = found
    if page is None:
        return ref == label or ref.startswith(f"{label}-")
    parsed = labels.parse(ref)
    if parsed is None or parsed[0].id != document.id:
        return False
    units = next(s.units for s in document.sections if s.number == parsed[1])
    return any(unit.page == page for unit in units)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcomes of a run of `check`."""

    checked: tuple[Checked, ...]
    outside: int
    """Cases left out because their sources lie outside the sample."""
    review: tuple[str, ...]
    """Cases to look at again, one line each."""

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


def run(assistant: Assistant, every: bool = False) -> Outcome:
    """Check a collection's core cases, or every development case.

    Raises CollectionError for a case that contradicts the documents, NothingToMeasure without any.
    """
    collection = assistant.collection
    documents = tuple(assistant.index.documents())
    cases = load_cases(collection.root)
    labels = Labels(documents)
    outside = 0
    if collection.sample:
        inside = [case for case in cases if in_sample(case, collection.settings.sample, labels)]
        outside = len(cases) - len(inside)
        cases = tuple(inside)
    check_cases(cases, documents)
    chosen = [case for case in cases if every or case.core]
    if not chosen:
        raise NothingToMeasure(
            f"{collection.root / 'cases'}: no {'' if every else 'core '}case; write one with "
            "`core: true` into cases/*.yaml"
        )
    day = collection.settings.as_of

    def scope_of(case: Case) -> Scope:
        return Scope(reader=case.reader, date=case.date or day)

    checked = tuple(check(chosen, assistant, documents, scope_of))
    return Outcome(checked=checked, outside=outside, review=tuple(_review(chosen, assistant)))


def _review(cases: Sequence[Case], assistant: Assistant) -> Iterator[str]:
    """Cases of which a block outside their sources holds every fact."""
    blocks = [assistant.index.block(number) for number in range(len(assistant.index))]
    labels = Labels(tuple(assistant.index.documents()))
    for case in cases:
        if case.expect != "answer" or not case.facts:
            continue
        for block in blocks:
            if any(labels.covers(label, block) for label in (*case.relevant, *case.near_misses)):
                continue
            if not missing_facts(block.searched, case):
                yield f"{case.id}: {block.ref} holds all of its facts as well"
