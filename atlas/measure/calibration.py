"""Judge, labelled answers -> how far the judge agrees with people, and for which kinds to trust it.

Enters: a judge and labels. Leaves: a Calibration, as JSON and as lines of at most 100 columns.
Refused: an empty set of labels (NothingToMeasure). An unscored verdict agrees with nobody; kappa is
given both over the scored labels and with every unscored one as a disagreement.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from atlas.errors import NothingToMeasure
from atlas.measure.agreement import (
    TRUSTED,
    Agreement,
    Raters,
    agreement_of,
    interval_json,
    raters_of,
)
from atlas.measure.judges import Judge, load_judge
from atlas.measure.judging import SERVER_CAUSES, Judgement, Spread, judged, spread_of
from atlas.measure.labels import Labelled, in_first_half, load_labels
from atlas.measure.statistics import Interval, Unscored, kappa
from atlas.models import Encoder, Reranker

WIDTH = 100
_VERDICTS = ("correct", "wrong", "unscored")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A judge measured against people."""

    judge: str
    judgements: tuple[Judgement, ...]
    agreement: Agreement
    kappa: Interval | Unscored
    """Cohen's kappa over the scored labels."""
    kappa_of_all: Interval | Unscored
    """The same with every unscored verdict taken for the opposite of the person's label."""
    base_rate: float
    """Share of labels that are `correct`, 0 to 1."""
    by_kind: dict[str, Agreement]
    halves: tuple[Agreement | None, Agreement | None]
    """The labels whose id has an even sha256, on which thresholds may be chosen, and the others."""
    raters: Raters | None
    """The judge beside several raters, where every label has at least two."""
    model: str = ""
    """What the judge runs on, where that is a chat model: server, model, parameters, rubric."""
    spread: Spread | None = None
    """Where the judge was asked more than once; all else is of the first time."""
    failed: tuple[tuple[str, int], ...] = ()
    """Causes that lie with the server, and the verdicts each of them cost, repeats included."""

    @property
    def scored(self) -> int:
        return sum(item.verdict.verdict != "unscored" for item in self.judgements)

    @property
    def constant(self) -> int:
        """Labels on which a judge agrees that always says the commoner verdict."""
        labels = Counter(item.labelled.label for item in self.judgements)
        return max(labels.values())

    @property
    def confusion(self) -> dict[str, dict[str, int]]:
        """Person's label -> judge's verdict -> labels."""
        counts = Counter((i.labelled.label, i.verdict.verdict) for i in self.judgements)
        return {
            person: {verdict: counts[person, verdict] for verdict in _VERDICTS}  # type: ignore[index]
            for person in ("correct", "wrong")
        }

    def as_json(self) -> dict[str, Any]:
        """The JSON of `judge-calibration --json`."""
        size = len(self.judgements)
        return {
            "judge": self.judge,
            "model": self.model or None,
            "labels": [_row(item) for item in self.judgements],
            "agreement": {"same": self.agreement.same, "of": self.agreement.of},
            "kappa": interval_json(self.kappa),
            "kappa_with_unscored": interval_json(self.kappa_of_all),
            "coverage": {"scored": self.scored, "of": size},
            "base_rate": self.base_rate,
            "constant_judge": {"same": self.constant, "of": size},
            "confusion": self.confusion,
            "by_kind": {kind: item.as_json() for kind, item in self.by_kind.items()},
            "halves": [None if half is None else half.as_json() for half in self.halves],
            "raters": None if self.raters is None else self.raters.as_json(),
            "spread": None if self.spread is None else self.spread.as_json(),
        }

    def lines(self) -> Iterator[str]:
        """The report for a person."""
        width = min(32, max(len(item.labelled.id) for item in self.judgements) + 2)
        kinds = min(26, max(len(item.labelled.kind) for item in self.judgements) + 2)
        yield f"{'id':<{width}}{'kind':<{kinds}}{'person':<9}{'judge':<10}score"
        for item in self.judgements:
            score = item.verdict.score
            number = "-" if isinstance(score, Unscored) else f"{score:.2f}"
            yield (
                f"{_cut(item.labelled.id, width - 2):<{width}}"
                f"{_cut(item.labelled.kind, kinds - 2):<{kinds}}{item.labelled.label:<9}"
                f"{item.verdict.verdict:<10}{number:<6}{'' if item.same else 'differs'}"
            ).rstrip()
        yield ""
        yield f"judge {self.judge}: agreement {self.agreement.same} of {self.agreement.of}"
        if self.model:
            yield from textwrap.wrap(
                self.model, WIDTH, initial_indent="  ", subsequent_indent="    "
            )
        yield from self._summary()
        yield from self._kinds()
        if self.raters is not None:
            yield from self.raters.lines()
        yield from self._disagreements()

    def _summary(self) -> Iterator[str]:
        size = len(self.judgements)
        yield f"  rate              {self.agreement.share}"
        yield f"  kappa             {self.kappa}"
        yield f"  coverage          {self.scored} of {size} scored"
        if self.scored < size:
            yield f"  kappa, all        {self.kappa_of_all}  (unscored counted as disagreement)"
        yield f"  base rate         {self.base_rate:.2f} of the labels are correct"
        yield f"  constant judge    {self.constant} of {size} by always saying the commoner verdict"
        if self.spread is not None:
            yield f"  spread            {self.spread}"
        if all(half is not None for half in self.halves):
            first, other = (f"{h.same} of {h.of}" for h in self.halves if h is not None)
            yield f"  halves            {first} where thresholds may be chosen, {other} elsewhere"
        yield ""
        yield f"{'':<18}{'judge: correct':>15}{'wrong':>8}{'unscored':>11}"
        for person, row in self.confusion.items():
            yield (
                f"{'person: ' + person:<18}{row['correct']:>15}{row['wrong']:>8}"
                f"{row['unscored']:>11}"
            )
        yield ""

    def _kinds(self) -> Iterator[str]:
        named = {kind or "(no kind)": item for kind, item in self.by_kind.items()}
        width = min(26, max(len(kind) for kind in named) + 2)
        yield f"{'kind':<{width}}{'agreement':>10}  {'95% interval':<16}this judge"
        for kind, item in named.items():
            verdict = item.verdict
            if verdict == "open":
                verdict = f"open: at least {item.missing} more labels to trust it"
            interval = f"[{item.share.low:.2f}, {item.share.high:.2f}]"
            rate = f"{item.same} of {item.of}"
            yield f"{_cut(kind, width - 2):<{width}}{rate:>10}  {interval:<16}{verdict}"
        yield f"A kind is trusted where its whole interval is at {TRUSTED:.2f} or above and, where"
        yield "it has both labels, above what always saying the commoner one would get. A kind with"
        yield "one label shows one side only: who always says that would pass it."

    def _disagreements(self) -> Iterator[str]:
        differing = [item for item in self.judgements if not item.same]
        yield ""
        yield f"{len(differing)} disagreements" if differing else "no disagreement"
        for item in differing:
            labelled = item.labelled
            head = f"{labelled.id}: person {labelled.label}, judge {item.verdict.verdict}"
            yield _cut(head, WIDTH)
            for name, text in (
                ("question", labelled.question), ("answer", labelled.answer),
                ("reason", item.verdict.reason),
            ):  # fmt: skip
                shown = _cut(" ".join(text.split()), 240)
                yield from textwrap.wrap(
                    f"{name}: {shown}", WIDTH, initial_indent="    ", subsequent_indent="      "
                )


def calibrate(
    judge: Judge,
    labelled: Sequence[Labelled],
    progress: Callable[[int], None] | None = None,
    *,
    again: Sequence[Judge] = (),
    in_flight: int = 1,
    model: str = "",
) -> Calibration:
    """Let a judge judge every answer and compare; `progress` is called with 1 after each.

    The judge sees question, answer, sources, reference and history, never the label. `again` is the
    same judge with further repeat numbers, for the spread; `in_flight` threads ask at a time.
    Raises NothingToMeasure without a label, ChatError where the judge's server does not work.
    """
    if not labelled:
        raise NothingToMeasure("no labelled answer to judge; write some into judge_labels/*.yaml")
    repeats = [judged(one, labelled, progress, in_flight) for one in (judge, *again)]
    causes = Counter(item.verdict.cause for one in repeats for item in one)
    return replace(
        compared(judge.name, repeats[0]),
        model=model,
        spread=spread_of(repeats) if again else None,
        failed=tuple((cause, causes[cause]) for cause in SERVER_CAUSES if causes[cause]),
    )


def compared(judge: str, judgements: Sequence[Judgement]) -> Calibration:
    """The Calibration of verdicts that are already there."""
    scored = [item for item in judgements if item.verdict.verdict != "unscored"]
    kinds = Counter(item.labelled.kind for item in judgements)
    halves = [
        [item for item in judgements if in_first_half(item.labelled.id) is first]
        for first in (True, False)
    ]
    return Calibration(
        judge=judge,
        judgements=tuple(judgements),
        agreement=_over(judgements),
        kappa=kappa([(item.labelled.label, item.verdict.verdict) for item in scored])
        if scored
        else Unscored("the judge scored nothing"),
        kappa_of_all=kappa([(item.labelled.label, _counted(item)) for item in judgements]),
        base_rate=sum(item.labelled.label == "correct" for item in judgements) / len(judgements),
        by_kind={
            kind: _over([item for item in judgements if item.labelled.kind == kind])
            for kind in sorted(kinds)
        },
        halves=(
            _over(halves[0]) if halves[0] else None,
            _over(halves[1]) if halves[1] else None,
        ),
        raters=raters_of(
            [
                (item.labelled.raters, item.verdict.score)
                for item in scored
                if not isinstance(item.verdict.score, Unscored)
            ]
        )
        if all(len(item.labelled.raters) > 1 for item in judgements)
        else None,
    )


def run(
    judge_name: str,
    labels_path: Path,
    encoder: Encoder,
    reranker: Reranker,
    progress: Callable[[int], None] | None = None,
) -> Calibration:
    """Calibrate the judge of that name on a file or folder of labels.

    Raises UsageError for an unknown judge or path, CollectionError for a bad label.
    """
    return calibrate(load_judge(judge_name, encoder, reranker), load_labels(labels_path), progress)


def _counted(item: Judgement) -> str:
    if item.verdict.verdict == "unscored":
        return "wrong" if item.labelled.label == "correct" else "correct"
    return item.verdict.verdict


def _over(judgements: Sequence[Judgement]) -> Agreement:
    correct = sum(item.labelled.label == "correct" for item in judgements)
    constant = max(correct, len(judgements) - correct) / len(judgements)
    bar = max(TRUSTED, constant) if constant < 1 else TRUSTED
    return agreement_of(sum(item.same for item in judgements), len(judgements), bar)


def _row(item: Judgement) -> dict[str, Any]:
    score = item.verdict.score
    row: dict[str, Any] = {
        "id": item.labelled.id,
        "kind": item.labelled.kind,
        "person": item.labelled.label,
        "judge": item.verdict.verdict,
        "score": None if isinstance(score, Unscored) else score,
        "reason": item.verdict.reason,
    }
    if isinstance(score, Unscored):
        row["unscored"] = score.reason
    return row


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
