"""Questions, assistant -> an Outcome for every question in every arm.

Several questions are answered at once where a chat model is waited for. Each answer is kept in the
journal when it is finished, and an answer that stands there is not asked for again.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from atlas.errors import AtlasError, ChatError
from atlas.measure.answers.arms import ARMS, AS_REAL, REAL, blocks_for
from atlas.measure.answers.causes import cause_of
from atlas.measure.answers.journal import Journal
from atlas.measure.answers.outcome import Outcome, broken, outcome_of
from atlas.measure.cases import Case
from atlas.measure.doors import Answers, Progress
from atlas.measure.flight import in_flight
from atlas.measure.judging import FIRST, SERVER_CAUSES
from atlas.measure.memory import remembering
from atlas.measure.questions import Questions
from atlas.measure.statistics import SEED, Unscored
from atlas.records import Trace

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked of every question."""

    ks: tuple[int, ...]
    """Values of k that the real arm is answered with, besides that of the settings."""
    arms: tuple[str, ...] = ARMS
    """Arms that are asked; `real` always is."""
    repeats: int = 1
    """How often the real arm is answered in all."""
    at_once: int = 1
    """Questions that are worked on at the same time."""


def digest(plan: Plan, questions: Questions, opened: Answers) -> str:
    """Twelve hex digits over everything that a finished answer depends on."""
    parts = {
        "fingerprints": opened.fingerprints(),
        "questions": questions.fingerprint(),
        "collection": questions.collection_fingerprint(),
        "ks": plan.ks,
        "arms": plan.arms,
        "repeats": plan.repeats,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def drawn(cases: Sequence[Case], count: int) -> tuple[Case, ...]:
    """A simple random draw of cases with a fixed seed, in their own order."""
    if count >= len(cases):
        return tuple(cases)
    chosen = set(random.Random(SEED).sample(range(len(cases)), count))
    return tuple(case for place, case in enumerate(cases) if place in chosen)


def answer_all(
    questions: Questions,
    opened: Answers,
    plan: Plan,
    kept: Journal,
    progress: Progress,
    told: Told = lambda line: None,
) -> tuple[Outcome, ...]:
    """Every outcome of a run, those of the journal among them, in the order of the questions."""
    progress.stage("answering", len(questions.cases))
    outcomes: list[Outcome] = []

    def work(case: Case) -> list[Outcome]:
        return list(_Question(case, questions, opened, plan, kept, told).outcomes())

    lost = 0
    with remembering(opened):
        for found in in_flight(work, questions.cases, plan.at_once):
            outcomes += found
            progress.step()
            waited = [item for item in found if item.error or item.completion_tokens]
            if waited:
                lost = lost + 1 if all(item.cause in SERVER_CAUSES for item in waited) else 0
            if lost == FIRST:
                raise ChatError(
                    waited[-1].cause,
                    f"no answer to {FIRST} questions in a row, so the run stops; what is finished "
                    f"is kept. The last one: {waited[-1].error}",
                )
    return tuple(outcomes)


class _Question:
    """One question on its way through the arms."""

    def __init__(
        self, case: Case, questions: Questions, opened: Answers, plan: Plan, kept: Journal,
        told: Told,
    ) -> None:  # fmt: skip
        self.case = case
        self.questions = questions
        self.opened = opened
        self.plan = plan
        self.kept = kept
        self.told = told
        self.scope = questions.scope_of(case)
        self.k = opened.settings.k

    def outcomes(self) -> Iterator[Outcome]:
        for repeat in range(self.plan.repeats):
            yield self._asked(self.k, repeat)
        real = self.kept.done[self.case.id, REAL, self.k, 0]
        for arm in self.plan.arms:
            if arm == REAL:
                continue
            blocks = blocks_for(arm, self.case, real.supplied, self.questions)
            if not isinstance(blocks, Unscored):
                make = partial(self._answer_from, blocks)
                yield self._once(arm, self.k, 0, make, cause=False)
            elif blocks is AS_REAL:
                yield replace(real, arm=arm)
        for k in self.plan.ks:
            if k != self.k:
                yield self._asked(k, 0)

    def _asked(self, k: int, repeat: int) -> Outcome:
        def ask() -> Trace:
            settings = replace(self.opened.settings, k=k)
            return self.opened.under(settings, repeat).ask(self.case.question, self.scope)

        return self._once(REAL, k, repeat, ask, cause=k == self.k)

    def _answer_from(self, blocks: Sequence[Any]) -> Trace:
        return self.opened.answer_from(self.case.question, blocks, self.scope)

    def _once(
        self, arm: str, k: int, repeat: int, make: Callable[[], Trace], cause: bool
    ) -> Outcome:
        """The outcome of the journal, or a new one."""
        done = self.kept.done.get((self.case.id, arm, k, repeat))
        if done is not None and not done.error:
            return done
        try:
            made = self._judged(make().values, arm, k, repeat, cause)
        except AtlasError as error:
            named = error.cause if isinstance(error, ChatError) else type(error).__name__
            made = broken(self.case, str(error), named, arm=arm, k=k, repeat=repeat)
        except Exception as error:  # a bug in one question must not hide the other results
            self.told(f"{self.case.id} broke:\n{traceback.format_exc()}")
            text = f"{type(error).__name__}: {error}"
            made = broken(self.case, text, "bug", arm=arm, k=k, repeat=repeat)
        self.kept.add(made)
        return made

    def _judged(
        self, trace: Mapping[str, Any], arm: str, k: int, repeat: int, cause: bool
    ) -> Outcome:
        relevant = set(self.questions.relevant(self.case))
        made = outcome_of(
            self.case, trace, relevant, self._relevance(trace), arm=arm, k=k, repeat=repeat
        )
        if cause and made.wrong and made.scored and not made.error:
            why = cause_of(self.case, made, trace, self.questions, self.opened)
            made = replace(made, cause=why)
        return made

    def _relevance(self, trace: Mapping[str, Any]) -> float | None:
        """The reranker's score of question and answer, its logit as 1 / (1 + exp(-x))."""
        if self.opened.reranker is None or trace["status"] != "answered" or not trace["answer"]:
            return None
        logit = float(self.opened.reranker.score(self.case.question, [trace["answer"]])[0])
        return 1 / (1 + math.exp(-max(-50.0, logit)))
