"""Outcomes -> what a run of whole answers says, as estimates that name how many they speak for.

Every rate is over the questions that have it: errors are counted apart and stay in the totals, a
question whose case names no fact is unscored. What is said of arms is said of the first run; the
repetitions only show how far equal runs differ.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from atlas.measure.answers.arms import ARMS, NONE, ORACLE, REAL
from atlas.measure.answers.outcome import Outcome
from atlas.measure.cases import Case
from atlas.measure.check import STATUS
from atlas.measure.paired import Difference, difference
from atlas.measure.statistics import Estimate, Interval, Unscored, estimate
from atlas.settings import Chat

ONE_RUN = Unscored("one run shows no spread; give --repeat 3")


@dataclass(frozen=True, kw_only=True)
class Gap:
    """The difference of two accuracies on the questions that both have."""

    first: float
    second: float
    difference: Difference | Unscored
    noise: bool
    """Whether it lies within twice the spread of equal runs or within its own interval."""

    def as_json(self) -> dict[str, Any]:
        if isinstance(self.difference, Unscored):
            return {"value": None, "unscored": self.difference.reason}
        values = self.difference.as_json()
        return {
            "value": values.pop("difference"),
            **values,
            "from": self.first,
            "to": self.second,
            "noise": self.noise,
        }


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A finished run; everything else is computed from it."""

    cases: tuple[Case, ...]
    outcomes: tuple[Outcome, ...]
    k: int
    ks: tuple[int, ...]
    repeats: int
    chat: Chat | None
    """The chat model's settings, for prices; None for the extractive answerer."""

    # ---- choosing outcomes --------------------------------------------------------------

    def of_arm(self, arm: str, k: int | None = None, repeat: int = 0) -> dict[str, Outcome]:
        """Case id -> outcome."""
        k = self.k if k is None else k
        return {
            item.case: item
            for item in self.outcomes
            if (item.arm, item.k, item.repeat) == (arm, k, repeat)
        }

    @cached_property
    def real(self) -> dict[str, Outcome]:
        return self.of_arm(REAL)

    # ---- rates --------------------------------------------------------------------------

    @cached_property
    def arms(self) -> dict[str, dict[str, Estimate]]:
        """Arm -> measures, for the arms that were asked."""
        asked = {item.arm for item in self.outcomes}
        return {arm: self.rates(self.of_arm(arm)) for arm in ARMS if arm in asked}

    def rates(self, found: Mapping[str, Outcome]) -> dict[str, Estimate]:
        """The measures of one arm.

        `accuracy`: right over all that can be judged. `abstained`: declined over all.
        `wrongly_abstained`: declined over those with an answer. `invented`: answered over those
        without one. `wrong_if_answered`: wrong over the answers given. `errors`: failed over all.
        `relevance`: mean of the reranker's score of question and answer, over the answers given.
        """
        whole = [case for case in self.cases if case.id in found]
        given = [found[case.id] for case in whole if found[case.id].status == "answered"]
        with_answer = [case for case in self.cases if case.expect == "answer"]
        without = [case for case in self.cases if case.expect == "abstain"]
        return {
            "accuracy": _rate(self.cases, found, lambda item: item.correct),
            "abstained": _rate(self.cases, found, lambda item: _is(item, "abstained")),
            "wrongly_abstained": _rate(with_answer, found, lambda item: _is(item, "abstained")),
            "invented": _rate(without, found, lambda item: _is(item, "answered")),
            "wrong_if_answered": estimate([_flipped(item.correct) for item in given]),
            "errors": estimate(
                [float(bool(found[case.id].error)) for case in whole], total=len(self.cases)
            ),
            "relevance": estimate(
                [item.relevance for item in given if item.relevance is not None], total=len(given)
            ),
        }

    def by_kind(self) -> dict[str, dict[str, Estimate]]:
        """Kind -> arm -> accuracy."""
        kinds = sorted({case.kind or "no kind" for case in self.cases})
        return {
            kind: {
                arm: _rate(
                    [case for case in self.cases if (case.kind or "no kind") == kind],
                    self.of_arm(arm),
                    lambda item: item.correct,
                )
                for arm in self.arms
            }
            for kind in kinds
        }

    def split(self) -> dict[str, dict[str, Any]]:
        """Answerable questions: easy (right without documents), hard, and those not sorted."""
        none = self.of_arm(NONE)
        sorted_out: dict[str, list[Case]] = {"easy": [], "hard": [], "unsorted": []}
        for case in self.cases:
            if case.expect == "answer":
                right = none[case.id].correct if case.id in none else Unscored("not asked")
                name = "unsorted" if isinstance(right, Unscored) else "easy" if right else "hard"
                sorted_out[name].append(case)
        return {
            name: {
                "questions": len(cases),
                REAL: _rate(cases, self.real, lambda item: item.correct),
                ORACLE: _rate(cases, self.of_arm(ORACLE), lambda item: item.correct),
            }
            for name, cases in sorted_out.items()
        }

    # ---- gaps ---------------------------------------------------------------------------

    @cached_property
    def spread(self) -> float | Unscored:
        """Standard deviation of the real arm's accuracy over equal runs."""
        if self.repeats < 2:
            return ONE_RUN
        means = [
            self.rates(self.of_arm(REAL, repeat=number))["accuracy"].mean
            for number in range(self.repeats)
        ]
        values = [mean.value for mean in means if isinstance(mean, Interval)]
        return statistics.stdev(values) if len(values) > 1 else ONE_RUN

    def changed(self) -> Estimate:
        """Questions that are right in one equal run and wrong in another, over all."""
        runs = [self.of_arm(REAL, repeat=number) for number in range(self.repeats)]
        values = []
        for case in self.cases:
            scores = [run[case.id].correct for run in runs if case.id in run]
            known = {score for score in scores if not isinstance(score, Unscored)}
            values.append(float(len(known) > 1) if known else Unscored("never scored"))
        return estimate(values)

    def gap(self, first: Mapping[str, Outcome], second: Mapping[str, Outcome]) -> Gap:
        """Accuracy of `second` minus that of `first`, question by question."""
        pairs = [
            (one, other)
            for case in self.cases
            if case.id in first and case.id in second
            and not isinstance(one := first[case.id].correct, Unscored)
            and not isinstance(other := second[case.id].correct, Unscored)
        ]  # fmt: skip
        apart = difference([one for one, _ in pairs], [other for _, other in pairs])
        if isinstance(apart, Unscored):
            return Gap(first=0.0, second=0.0, difference=apart, noise=True)
        spread = 0.0 if isinstance(self.spread, Unscored) else self.spread
        noise = apart.low <= 0 <= apart.high or abs(apart.value) <= 2 * spread
        return Gap(
            first=sum(one for one, _ in pairs) / len(pairs),
            second=sum(other for _, other in pairs) / len(pairs),
            difference=apart,
            noise=noise,
        )

    @cached_property
    def headroom(self) -> Gap:
        """Oracle minus real: what perfect retrieval would add."""
        return self.gap(self.real, self.of_arm(ORACLE))

    @cached_property
    def ceiling(self) -> Interval | Unscored:
        """One minus the oracle's accuracy: what stays wrong with all evidence at hand."""
        if ORACLE not in self.arms:
            return Unscored("the arm oracle was not asked")
        mean = self.arms[ORACLE]["accuracy"].mean
        if isinstance(mean, Unscored):
            return mean
        return Interval(value=1 - mean.value, low=1 - mean.high, high=1 - mean.low)

    # ---- k ------------------------------------------------------------------------------

    @cached_property
    def sweep(self) -> list[tuple[int, Estimate, Gap | None]]:
        """k, accuracy, and the gap to the k before it."""
        steps: list[tuple[int, Estimate, Gap | None]] = []
        before: dict[str, Outcome] | None = None
        for k in sorted({*self.ks, self.k}):
            found = self.of_arm(REAL, k)
            rate = _rate(self.cases, found, lambda item: item.correct)
            steps.append((k, rate, None if before is None else self.gap(before, found)))
            before = found
        return steps

    @property
    def enough(self) -> int | None:
        """The smallest k from which on a larger one has no higher accuracy."""
        means = [
            (k, rate.mean.value) for k, rate, _ in self.sweep if isinstance(rate.mean, Interval)
        ]
        for place, (k, value) in enumerate(means):
            if all(later <= value for _, later in means[place + 1 :]):
                return k
        return None

    # ---- what went wrong, and what the checks caught --------------------------------------

    def causes(self) -> dict[str, int]:
        """Cause -> wrong answers of the real arm, most frequent first."""
        return dict(Counter(item.cause for item in self.wrong()).most_common())

    def wrong(self) -> list[Outcome]:
        """The wrong answers of the real arm; errors are not among them."""
        return [item for item in self.real.values() if item.correct == 0.0]

    def abstention(self, arm: str) -> dict[str, dict[str, int]]:
        """Expected status -> status -> questions of an arm."""
        found = self.of_arm(arm)
        counts = Counter(
            (STATUS[case.expect], found[case.id].status) for case in self.cases if case.id in found
        )
        columns = (*STATUS.values(), "failed")
        return {row: {column: counts[row, column] for column in columns} for row in STATUS.values()}

    def by_place(self) -> dict[int, Estimate]:
        """Accuracy of questions with an answer by where the first relevant block stood."""
        asked = [case for case in self.cases if case.expect == "answer" and case.id in self.real]
        places = sorted({self.real[case.id].place for case in asked} - {0})
        return {
            place: _rate(
                [case for case in asked if self.real[case.id].place == place],
                self.real,
                lambda item: item.correct,
            )
            for place in places
        }

    def citations(self) -> dict[str, Any]:
        """What the checks of citations and figures did in the real arm.

        `supported`: drafted sentences that were presented, over all drafted, mean of the drafts.
        `invalid`: drafted citations that point at no supplied block, over all drafted.
        """
        drafts = [item for item in self.real.values() if item.drafted == "answered"]
        judged = [item for item in drafts if not isinstance(item.drafted_correct, Unscored)]
        bad = [item for item in judged if item.drafted_correct == 0.0]
        good = [item for item in judged if item.drafted_correct == 1.0]
        return {
            "supported": estimate(
                [
                    item.presented / item.sentences if item.sentences else Unscored("no sentence")
                    for item in drafts
                ]
            ),
            "invalid": estimate(
                [
                    item.invalid / item.markers if item.markers else Unscored("no citation")
                    for item in drafts
                ]
            ),
            "wrong_drafts": len(bad),
            "caught": sum(item.status != "answered" for item in bad),
            "right_drafts": len(good),
            "lost": sum(item.status != "answered" for item in good),
        }

    # ---- cost ---------------------------------------------------------------------------

    def cost(self, found: Iterable[Outcome]) -> dict[str, Any]:
        """Means per answer: tokens, seconds and money; `price` is null without prices."""
        items = [item for item in found if not item.error]
        price = self.price(items)
        why = "no prices below `chat` in atlas.yaml" if items else "no answer was given"
        return {
            "answers": len(items),
            "prompt_tokens": _mean([item.prompt_tokens for item in items]),
            "completion_tokens": _mean([item.completion_tokens for item in items]),
            "seconds": _mean([item.seconds for item in items]),
            "price": price,
            **({} if price is not None else {"unscored": why}),
        }

    def price(self, items: Sequence[Outcome]) -> float | None:
        """Mean price of an answer, or None where no price is set."""
        chat = self.chat
        if chat is None or (chat.input_price is None and chat.output_price is None):
            return None
        paid = [
            item.prompt_tokens * (chat.input_price or 0.0) / 1e6
            + item.completion_tokens * (chat.output_price or 0.0) / 1e6
            for item in items
        ]
        return _mean(paid)


def _rate(cases: Sequence[Case], found: Mapping[str, Outcome], score: Any) -> Estimate:
    """The mean of a score over cases; errors and cases that were not asked stay in the total."""
    items = [found[case.id] for case in cases if case.id in found]
    values = [score(item) for item in items if not item.error]
    return estimate(values, total=len(cases), failed=sum(bool(item.error) for item in items))


def _is(item: Outcome, status: str) -> float:
    return float(item.status == status)


def _flipped(score: float | Unscored) -> float | Unscored:
    return score if isinstance(score, Unscored) else 1 - score


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
