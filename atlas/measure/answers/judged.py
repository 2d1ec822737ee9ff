"""Answers of the real arm, a judge -> its verdicts and the share that it calls right.

An answer is what a person would read: sentences, a question back, or that the documents do not say.
A judge goes by the supplied sources, not by the case: declining is right where retrieval brought
nothing. What a judge says is never printed alone: beside it stands the share corrected by people's
labels on a random draw of these very answers, or how many labels are missing for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from atlas.measure.answers.outcome import Outcome
from atlas.measure.answers.summary import Summary
from atlas.measure.corrected import Corrected, corrected
from atlas.measure.doors import Progress
from atlas.measure.draws import Given
from atlas.measure.flight import in_flight
from atlas.measure.judges import Judge, Verdict
from atlas.measure.judging import SERVER_CAUSES
from atlas.measure.questions import Questions
from atlas.measure.statistics import Estimate, Unscored, estimate


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A judge's look at the answers."""

    judge: str
    verdicts: Mapping[str, Verdict]
    """Case id -> verdict."""
    rate: Estimate
    """Answers called correct, over those the judge scored."""
    corrected: Corrected
    with_facts: Estimate
    """Verdicts that agree with the facts of the case, over the answers that both judged."""
    changed: Estimate | Unscored
    """Verdicts that differ when the judge looks at the same answers again."""

    @property
    def failed(self) -> list[Verdict]:
        """Verdicts that the judge's server did not give."""
        return [item for item in self.verdicts.values() if item.cause in SERVER_CAUSES]

    def as_json(self) -> dict[str, Any]:
        changed = self.changed
        return {
            "judge": self.judge,
            "correct": self.rate.as_json(),
            "corrected": self.corrected.as_json(),
            "agrees_with_facts": self.with_facts.as_json(),
            "changed": {"unscored": changed.reason}
            if isinstance(changed, Unscored)
            else changed.as_json(),
            "verdicts": {
                case: {"verdict": item.verdict, "reason": item.reason}
                for case, item in self.verdicts.items()
            },
        }


def given_answers(summary: Summary, questions: Questions, writer: str) -> list[Given]:
    """The answers of the real arm, with the sources that they were made from; errors have none."""
    return [
        Given(
            id=case.id,
            question=case.question,
            sources=tuple(_source(ref, questions) for ref in summary.real[case.id].supplied),
            answer=summary.real[case.id].said,
            writer=writer,
        )
        for case in summary.cases
        if case.id in summary.real and not summary.real[case.id].error
    ]


def judge_answers(
    judges: Sequence[Judge],
    summary: Summary,
    answers: Sequence[Given],
    labels: Mapping[str, float],
    progress: Progress,
    at_once: int,
) -> Judged:
    """Let a judge look at every answer, once per entry of `judges` (equal ones, to see a spread).

    `labels` are people's: case id -> 1 or 0, for a random draw of the answers.
    """
    progress.stage(f"judge {judges[0].name}", len(answers) * len(judges))
    looks: list[dict[str, Verdict]] = []
    for judge in judges:

        def look(item: Given, judge: Judge = judge) -> Verdict:
            return judge.judge(item.question, item.answer, item.sources)

        found = {}
        for item, verdict in zip(answers, in_flight(look, answers, at_once), strict=True):
            found[item.id] = verdict
            progress.step()
        looks.append(found)
    first = looks[0]
    return Judged(
        judge=judges[0].name,
        verdicts=first,
        rate=estimate([_right(first[item.id]) for item in answers]),
        corrected=corrected(
            [_right(first[item.id]) for item in answers],
            [(_right(first[case]), label) for case, label in labels.items()],
        ),
        with_facts=estimate(
            [_same(first[item.id], summary.real[item.id]) for item in answers], total=len(answers)
        ),
        changed=_changed(looks),
    )


def _source(ref: str, questions: Questions) -> str:
    block = questions.blocks[ref]
    return f"{' > '.join((block.title, *block.titles))}\n{block.text}"


def _right(verdict: Verdict) -> float | Unscored:
    if verdict.verdict == "unscored":
        return Unscored(verdict.reason)
    return float(verdict.verdict == "correct")


def _same(verdict: Verdict, outcome: Outcome) -> float | Unscored:
    said, facts = _right(verdict), outcome.correct
    if isinstance(said, Unscored):
        return said
    return facts if isinstance(facts, Unscored) else float(said == facts)


def _changed(looks: Sequence[Mapping[str, Verdict]]) -> Estimate | Unscored:
    if len(looks) < 2:
        return Unscored("one look shows no spread; give --repeat 3")
    return estimate([float(len({look[case].verdict for look in looks}) > 1) for case in looks[0]])
