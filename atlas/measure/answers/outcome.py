"""Case, trace -> Outcome: was the answer right, and what did it take.

Right means: the status that the case expects, every fact in the answer, nothing rejected in it. A
question that should be answered but whose case names no fact cannot be judged so and is unscored.
The same is asked of what the answerer had drafted before its citations were checked, so that one
sees what the checks caught.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from atlas.measure.cases import Case
from atlas.measure.check import STATUS
from atlas.measure.facts import missing_facts, rejected
from atlas.measure.statistics import Unscored

Values = Mapping[str, Any]
NO_FACTS = Unscored("the case names no fact")
DECLINED = "The documents do not say."


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one question in one arm. Small: a run keeps one per answer."""

    case: str
    arm: str
    k: int
    repeat: int
    status: str
    answer: str
    choices: tuple[str, ...]
    """Of a question back: what it offers."""
    supplied: tuple[str, ...]
    """References of the supplied blocks, in rank order."""
    prompt: tuple[str, ...]
    """The same in the order in which the answerer saw them."""
    wrong: tuple[str, ...]
    """What keeps the answer from being right."""
    scored: bool
    """Whether the case says what is right."""
    drafted: str
    """Status before the citations were checked."""
    drafted_wrong: tuple[str, ...]
    sentences: int
    """Sentences that were drafted,"""
    presented: int
    """and those that were left after the checks."""
    markers: int
    """Citations that were drafted,"""
    invalid: int
    """and those that point at no supplied block."""
    place: int
    """Where in the prompt the first relevant block stands, from 1; 0 where there is none."""
    relevance: float | None
    """The reranker's score of question and answer, 0 to 1; None without an answer."""
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    """Of the answerer alone: what a chat model took, or the quoting."""
    cached: bool
    error: str = ""
    """Why the question could not be answered, or ""."""
    cause: str = ""
    """Of an error: its fixed name. Of a wrong answer in the real arm: see `causes`."""

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What tells it apart within a run."""
        return self.case, self.arm, self.k, self.repeat

    @property
    def said(self) -> str:
        """What a person reads: the answer, a question back, or that there is none."""
        if self.status == "needs_clarification":
            return f"Which one do you mean: {', '.join(self.choices)}?"
        return self.answer if self.status == "answered" else DECLINED

    @property
    def correct(self) -> float | Unscored:
        if self.error:
            return Unscored(f"failed: {self.error}")
        return float(not self.wrong) if self.scored else NO_FACTS

    @property
    def drafted_correct(self) -> float | Unscored:
        """The same for the draft."""
        if self.error:
            return Unscored(f"failed: {self.error}")
        return float(not self.drafted_wrong) if self.scored else NO_FACTS

    def as_json(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


def outcome_of(
    case: Case,
    trace: Values,
    relevant: Collection[str],
    relevance: float | None,
    *,
    arm: str,
    k: int,
    repeat: int,
) -> Outcome:
    """Judge one trace by its case; `relevant` are the references of the relevant blocks."""
    failed = trace["status"] == "failed"
    chat = trace.get("chat") or {}
    answer = "\n".join((trace["answer"], *trace["choices"]))
    draft = "\n".join((*(claim["text"] for claim in trace["proposed"]), *trace["choices"]))
    markers = [marker for claim in trace["proposed"] for marker in claim["markers"]]
    supplied = tuple(row["ref"] for row in trace["context"])
    prompt = tuple(chat.get("prompt") or supplied)
    return Outcome(
        case=case.id,
        arm=arm,
        k=k,
        repeat=repeat,
        status=trace["status"],
        answer=trace["answer"],
        choices=tuple(trace["choices"]),
        supplied=supplied,
        prompt=prompt,
        wrong=() if failed else tuple(faults(case, trace["status"], answer)),
        scored=can_be_judged(case),
        drafted=trace["drafted"],
        drafted_wrong=() if failed else tuple(faults(case, trace["drafted"], draft)),
        sentences=len(trace["proposed"]),
        presented=sum(claim["kept"] for claim in trace["proposed"]),
        markers=len(markers),
        invalid=sum(not 1 <= marker <= len(supplied) for marker in markers),
        place=next((n for n, ref in enumerate(prompt, 1) if ref in relevant), 0),
        relevance=relevance,
        prompt_tokens=trace["tokens"].get("prompt", trace["tokens"]["supplied"]),
        completion_tokens=trace["tokens"].get("completion", 0),
        seconds=chat.get("seconds", trace["timings_seconds"].get("answer", 0.0)),
        cached=bool(chat.get("cached", False)),
        error=(trace["reason"] or "no cause named") if failed else "",
        cause=(trace["cause"] or "failed") if failed else "",
    )


def broken(case: Case, error: str, cause: str, *, arm: str, k: int, repeat: int) -> Outcome:
    """The outcome of a question that raised an error instead of giving a trace."""
    return Outcome(
        case=case.id, arm=arm, k=k, repeat=repeat, status="failed", answer="", choices=(),
        supplied=(), prompt=(), wrong=(), scored=can_be_judged(case), drafted="failed",
        drafted_wrong=(), sentences=0, presented=0, markers=0, invalid=0, place=0, relevance=None,
        prompt_tokens=0, completion_tokens=0, seconds=0.0, cached=False, error=error, cause=cause,
    )  # fmt: skip


def can_be_judged(case: Case) -> bool:
    """Whether a case says what a right answer is."""
    return case.expect != "answer" or bool(case.facts)


def faults(case: Case, status: str, text: str) -> list[str]:
    """What keeps an answer of this status and text from being right."""
    expected = STATUS[case.expect]
    if status != expected:
        return [f"{status}, expected {expected}"]
    if case.expect == "abstain":
        return []
    found = [f"lacks {fact!r}" for fact in missing_facts(text, case)]
    return found + [f"holds {bad!r}" for bad in rejected(text, case)]


def from_json(values: Any) -> Outcome | None:
    """An outcome as it was written; None for anything else."""
    names = [item.name for item in fields(Outcome)]
    if not isinstance(values, dict) or set(values) != set(names):
        return None
    lists: Sequence[str] = ("choices", "supplied", "prompt", "wrong", "drafted_wrong")
    if not all(
        isinstance(values[name], list) and all(isinstance(item, str) for item in values[name])
        for name in lists
    ):
        return None
    texts = ("case", "arm", "status", "answer", "drafted", "error", "cause")
    counts = ("k", "repeat", "sentences", "presented", "markers", "invalid", "place",
              "prompt_tokens", "completion_tokens")  # fmt: skip
    kinds = (
        all(isinstance(values[name], str) for name in texts)
        and all(type(values[name]) is int for name in counts)
        and all(type(values[name]) is bool for name in ("scored", "cached"))
        and isinstance(values["seconds"], int | float)
        and isinstance(values["relevance"], int | float | None)
    )
    if not kinds:
        return None
    return Outcome(**{**values, **{name: tuple(values[name]) for name in lists}})
