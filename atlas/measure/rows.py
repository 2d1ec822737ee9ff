"""Case, trace -> one row of values per question. Nothing is averaged here.

Two lists are measured. The *supplied* blocks are those the answerer was given, after selection:
`hit`, `recall` (of labels), `precision`, `first_rank`, `evidence`, `prompt_tokens`. The *ranked*
list is that before selection: `hit@k`, `precision@k`, `recall@k` (of blocks), `reciprocal_rank@10`,
`ndcg@10`. A question without a relevant block has no score in either, and is counted apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from atlas.measure.cases import Case, comparable
from atlas.measure.check import problems
from atlas.measure.questions import Questions
from atlas.measure.ranking import RANKED
from atlas.measure.statistics import Unscored

Values = Mapping[str, Any]
NO_RELEVANT = Unscored("the question has no relevant block")
NOTHING_SUPPLIED = Unscored("no block was supplied")
NO_QUOTE = Unscored("the case has no evidence quote")
NO_CITATION = Unscored("the answer has no citation")
NOT_TOLD = Unscored("the trace does not tell how many pairs were read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one question gave. `scores` holds a number or Unscored for every measure."""

    case: Case
    relevant: tuple[str, ...]
    """Blocks that the labels cover."""
    trace: Values | None
    """None where the question could not be asked."""
    error: str
    """Why it failed, or ""."""
    scores: Mapping[str, float | Unscored]
    first_rank: int | None
    """Rank of the first relevant block among those supplied, from 1."""
    wrong: tuple[str, ...]
    """What keeps the answer from passing its case."""

    @property
    def failed(self) -> bool:
        return bool(self.error)

    @property
    def status(self) -> str:
        return "failed" if self.trace is None else str(self.trace["status"])

    @property
    def supplied(self) -> tuple[str, ...]:
        return () if self.trace is None else tuple(row["ref"] for row in self.trace["context"])

    def as_json(self) -> dict[str, Any]:
        """The question's entry in `measure --json`; unscored measures are null."""
        names = ("hit", "recall", "precision")
        values: dict[str, Any] = {
            "id": self.case.id,
            "kind": self.case.kind,
            "expect": self.case.expect,
            "status": self.status,
            "relevant": list(self.relevant),
            "supplied": list(self.supplied),
            **{name: _plain(self.scores[name]) for name in names},
            "first_rank": self.first_rank,
        }
        rest = {name: _plain(score) for name, score in self.scores.items() if name not in names}
        reasons = {
            name: score.reason for name, score in self.scores.items() if isinstance(score, Unscored)
        }
        declined = None if self.trace is None else self.status == "abstained"
        return {
            **values,
            **rest,
            "declined": declined,
            "passed": not self.wrong and not self.error,
            "unscored": reasons or None,
            "failed": self.error or None,
        }


def row_of(case: Case, trace: Values | None, error: str, questions: Questions) -> Row:
    """Score one question. `error` says why there is no trace, or why the trace is a failure."""
    relevant = questions.relevant(case)
    if trace is None or error:
        lost = Unscored("the question failed")
        return Row(
            case=case,
            relevant=relevant,
            trace=trace,
            error=error,
            scores=dict.fromkeys(NAMES, lost),
            first_rank=None,
            wrong=(error,),
        )
    supplied = [row["ref"] for row in trace["context"]]
    found = [ref in relevant for ref in supplied]
    texts = [row["text"] for row in trace["context"]]
    scores = of_the_supplied(case, relevant, supplied, texts, questions)
    scores["prompt_tokens"] = float(trace["tokens"]["supplied"])
    grades = dict.fromkeys(relevant, 1)
    ranked = trace["ranked"]
    scores |= {m.name: m(ranked, grades) if relevant else NO_RELEVANT for m in RANKED}
    scores["pairs"] = _pairs(trace)
    scores["milliseconds"] = 1000 * float(trace["timings_seconds"]["total"])
    scores |= _of_the_answer(case, trace, supplied)
    return Row(
        case=case,
        relevant=relevant,
        trace=trace,
        error="",
        scores=scores,
        first_rank=found.index(True) + 1 if any(found) else None,
        wrong=tuple(problems(case, trace, questions.labels, questions.blocks)),
    )


def of_the_supplied(
    case: Case,
    relevant: Sequence[str],
    supplied: Sequence[str],
    texts: Sequence[str],
    questions: Questions,
) -> dict[str, float | Unscored]:
    """Measures of a list of supplied blocks, given by reference and text."""
    found = [ref in relevant for ref in supplied]
    return {
        "hit": float(any(found)) if relevant else NO_RELEVANT,
        "recall": _label_recall(case, supplied, questions) if relevant else NO_RELEVANT,
        "precision": _precision(found) if relevant else NO_RELEVANT,
        "evidence": _evidence(case, texts),
    }


def _label_recall(case: Case, supplied: Sequence[str], questions: Questions) -> float:
    """Labels with a supplied block over all labels of the case."""
    blocks = [questions.blocks[ref] for ref in supplied if ref in questions.blocks]
    found = [any(questions.labels.covers(x, block) for block in blocks) for x in case.relevant]
    return sum(found) / len(found)


def _pairs(trace: Values) -> float | Unscored:
    """Pairs of question and block that the reranker read for the order; fewer are cheaper."""
    count = trace.get("pairs")
    return float(count) if isinstance(count, int) else NOT_TOLD


def _precision(found: Sequence[bool]) -> float | Unscored:
    """Relevant supplied blocks over supplied blocks; unscored where none was supplied."""
    return sum(found) / len(found) if found else NOTHING_SUPPLIED


def _evidence(case: Case, texts: Sequence[str]) -> float | Unscored:
    """Evidence quotes that stand whole in one supplied block, over all quotes of the case."""
    if not case.evidence:
        return NO_QUOTE
    folded = [comparable(text) for text in texts]
    found = [any(comparable(quote) in text for text in folded) for quote in case.evidence]
    return sum(found) / len(found)


def _of_the_answer(case: Case, trace: Values, supplied: Sequence[str]) -> dict[str, Any]:
    """Measures of declining and citing; each has its own questions, the rest are unscored.

    `declined`: of questions without an answer, those that were declined. `wrongly_declined`: of
    those with an answer, those declined. `asked_back` and `wrongly_asked_back`: the same for a
    question back. `unused_sources`: supplied blocks that an answer does not cite, over all.
    `invalid_citations`: what validation took out, over that and the citations that stayed.
    """
    status = trace["status"]
    declined, back = float(status == "abstained"), float(status == "needs_clarification")
    none, some = case.expect == "abstain", case.expect == "answer"
    cited = {citation["ref"] for citation in trace["citations"]}
    removed, kept = len(trace["removed"]), len(trace["citations"])
    answered = status == "answered" and bool(supplied)
    return {
        "declined": declined if none else Unscored("the documents answer it"),
        "wrongly_declined": declined if some else Unscored("not a question to answer"),
        "asked_back": back if case.expect == "clarify" else Unscored("not a question to ask back"),
        "wrongly_asked_back": back if some else Unscored("not a question to answer"),
        "unused_sources": sum(ref not in cited for ref in supplied) / len(supplied)
        if answered
        else Unscored("not answered"),
        "invalid_citations": removed / (removed + kept) if removed + kept else NO_CITATION,
    }


def _plain(score: float | Unscored) -> float | None:
    return None if isinstance(score, Unscored) else round(score, 6)


NAMES = (
    "hit",
    "recall",
    "precision",
    "evidence",
    "prompt_tokens",
    *(m.name for m in RANKED),
    "pairs",
    "milliseconds",
    "declined",
    "wrongly_declined",
    "asked_back",
    "wrongly_asked_back",
    "unused_sources",
    "invalid_citations",
)
"""Every measure of a question, in the order in which it is printed."""
