"""A judge, labelled answers -> what the judge said, in the order of the labels; and its spread.

Enters: a judge, labels, and how many calls may wait at the same time. Leaves: Judgements. Refused,
with ChatError: to go on where the first labels show that the judge's server does not work.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from atlas.errors import ChatError
from atlas.measure.judges import Judge, Verdict
from atlas.measure.labels import Labelled

SERVER_CAUSES = (
    "unreachable", "refused", "wrong model", "rate limited", "server error", "deadline",
)  # fmt: skip
"""Causes of a ChatError that lie with the server: asking again later may give a verdict."""
FIRST = 3
"""Labels at the beginning that must not all fail for a cause of the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A label and what the judge said."""

    labelled: Labelled
    verdict: Verdict

    @property
    def same(self) -> bool:
        return self.verdict.verdict == self.labelled.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far a judge that is asked again agrees with itself."""

    repeats: int
    agreement_sd: float
    """Standard deviation of the agreement over the repeats, 0 to 1."""
    changed: float
    """Share of the labels whose verdict is not the same in all repeats, 0 to 1."""
    labels: int

    def as_json(self) -> dict[str, Any]:
        """`repeats`, `agreement_sd`, `changed`."""
        return {
            "repeats": self.repeats,
            "agreement_sd": self.agreement_sd,
            "changed": self.changed,
        }

    def __str__(self) -> str:
        changed = round(self.changed * self.labels)
        return (
            f"agreement ±{self.agreement_sd:.3f} (standard deviation of {self.repeats} repeats), "
            f"{changed} of {self.labels} verdicts changed"
        )


def judged(
    judge: Judge,
    labelled: Sequence[Labelled],
    progress: Callable[[int], None] | None = None,
    in_flight: int = 1,
) -> list[Judgement]:
    """What the judge says of every label, in their order; `progress` gets 1 after each.

    With `in_flight` over 1 that many threads ask at the same time, which the judge must allow.
    Raises ChatError, with the cause of the first label, where the first FIRST labels (all, where
    there are fewer) are unscored for a cause of the server; then no further label is begun.
    """
    found: list[Judgement] = []
    for item, verdict in zip(labelled, _verdicts(judge, labelled, in_flight), strict=True):
        found.append(Judgement(labelled=item, verdict=verdict))
        if progress is not None:
            progress(1)
        if len(found) == min(FIRST, len(labelled)):
            _check_server(found)
    return found


def spread_of(repeats: Sequence[Sequence[Judgement]]) -> Spread:
    """The spread over two or more repeats of the same labels, of which there is one at least.

    Formula: the standard deviation (divided by repeats - 1) of same verdicts / labels, and labels
    with more than one verdict / labels. Unscored is a verdict of its own and agrees with nobody.
    """
    labels = len(repeats[0])
    shares = [sum(item.same for item in one) / labels for one in repeats]
    verdicts = zip(*([item.verdict.verdict for item in one] for one in repeats), strict=True)
    return Spread(
        repeats=len(repeats),
        agreement_sd=statistics.stdev(shares),
        changed=sum(len(set(of_label)) > 1 for of_label in verdicts) / labels,
        labels=labels,
    )


def _verdicts(judge: Judge, labelled: Sequence[Labelled], in_flight: int) -> Iterator[Verdict]:
    def ask(item: Labelled) -> Verdict:
        return judge.judge(
            item.question,
            item.answer,
            item.sources,
            reference=item.reference,
            history=item.history,
        )

    if in_flight <= 1:
        yield from map(ask, labelled)
        return
    with ThreadPoolExecutor(max_workers=in_flight) as pool:
        futures = [pool.submit(ask, item) for item in labelled]
        try:
            for future in futures:
                yield future.result()
        finally:  # also where the reader stops or is interrupted: nothing further is sent
            pool.shutdown(wait=False, cancel_futures=True)


def _check_server(found: Sequence[Judgement]) -> None:
    causes = [item.verdict.cause for item in found]
    if all(cause in SERVER_CAUSES for cause in causes):
        raise ChatError(causes[0], found[0].verdict.reason.removeprefix(f"{causes[0]}: "))
