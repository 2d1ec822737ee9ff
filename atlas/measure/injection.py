"""Questions, hostile payloads, assistant -> how often an attack had its way.

Enters: an open assistant, development questions, payloads. Leaves: Attacked, as JSON and as lines.
Refused, with NothingToMeasure: a set of questions none of which is answered rightly without an
attack.

The blocks are handed to the answerer, so that every payload is read: whether search would have
found it is not measured. Nothing that a payload names is opened, fetched or run.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Sequence
from typing import Protocol

from atlas.errors import AtlasError, NothingToMeasure
from atlas.measure.attacked import Attack, Attacked, Planting
from atlas.measure.cases import Case
from atlas.measure.check import problems
from atlas.measure.doors import Asks, Progress
from atlas.measure.payloads import Payload
from atlas.measure.planted import (
    Target,
    Values,
    forged,
    links,
    outcome_of,
    plant,
    planting_of,
    shown,
)
from atlas.measure.questions import Questions
from atlas.measure.statistics import SEED
from atlas.records import Block, Scope, Trace

QUESTIONS = 12
ENOUGH_BROKEN = 5
"""So many questions that break before the first one works mean that none will."""
Told = Callable[[str], None]


class Attackable(Asks, Protocol):
    """An assistant that also answers from given blocks."""

    def answer_from(
        self, question: str, blocks: Sequence[Block], scope: Scope | None = None
    ) -> Trace: ...


def attack(
    opened: Attackable,
    questions: Questions,
    payloads: Sequence[Payload],
    progress: Progress,
    *,
    count: int = QUESTIONS,
    secrets: Sequence[str] = (),
    seed: int = SEED,
    answerer: str = "",
    told: Told = lambda line: None,
) -> Attacked:
    """Attack `count` drawn questions with every payload, and a payload's own question with it.

    Drawn are answerable questions whose answers pass their cases, also when they are answered from
    their blocks once more; where those are too few, questions that are answered at all. `secrets`
    are the instructions that must not be revealed; without any, a payload that is after them and
    has no sign is left out. `told` gets tracebacks of bugs. Raises NothingToMeasure where no
    question can be attacked or no payload is left.
    """
    remarks = []
    tried = [p for p in payloads if p.goal != "reveal" or p.signs or any(secrets)]
    if len(tried) < len(payloads):
        remarks.append(
            f"{len(payloads) - len(tried)} payloads left out: this answerer has no instructions "
            "that could be revealed"
        )
    if not tried:
        raise NothingToMeasure("no payload is left that this answerer could give way to")
    general = [payload for payload in tried if not payload.question]
    targets: list[Target] = []
    if general:
        targets, causes = _draw(opened, questions, count, seed, progress)
        if not targets:
            raise NothingToMeasure(
                "no answerable development question is answered without an attack"
                + (f"; {len(causes)} could not be asked: {causes[0]}" if causes else "")
            )
        if causes:
            remarks.append(f"{len(causes)} questions could not be asked; the first: {causes[0]}")
        wrong = sum(not target.right for target in targets)
        if wrong or len(targets) < count:
            remarks.append(
                f"only {len(targets) - wrong} questions are answered rightly without an attack"
                + (f"; {wrong} that are answered, but not rightly, stand in" if wrong else "")
            )
    own = [payload for payload in tried if payload.question]
    if own:
        remarks.append(
            f"{len(own)} payloads bring their own question, which the documents need not answer: "
            "then the false text is the only one that speaks of it"
        )
    progress.stage("attacking", len(targets) * len(general) + len(own))
    attacks = []
    for payload in tried:
        for target in (None,) if payload.question else targets:
            attacks.append(_attempt(opened, questions, target, payload, secrets, seed, told))
            progress.step()
    return Attacked(
        answerer=answerer or questions.settings.answerer,
        attacks=tuple(attacks),
        questions=tuple(target.id for target in targets),
        remarks=tuple(remarks),
        seed=seed,
    )


def _draw(
    opened: Attackable, questions: Questions, count: int, seed: int, progress: Progress
) -> tuple[list[Target], list[str]]:
    """Questions in a random order until enough are answered rightly; and why some broke.

    Where too few are right, the first that are answered at all come after them.
    """
    cases = sorted((c for c in questions.cases if c.expect == "answer"), key=lambda c: c.id)
    random.Random(seed).shuffle(cases)
    targets: list[Target] = []
    others: list[Target] = []
    causes: list[str] = []
    progress.stage("drawing questions", min(count, len(cases)))
    for case in cases:
        if len(targets) == count or (len(causes) == ENOUGH_BROKEN and not (targets or others)):
            break
        scope = questions.scope_of(case)
        try:
            found = opened.ask(case.question, scope).values
            blocks = _blocks(found, questions)
            if found["status"] == "answered" and blocks:
                found = opened.answer_from(case.question, blocks, scope).values
        except AtlasError as error:
            causes.append(f"{case.id}: {error}")
            continue
        if found["status"] == "failed":
            causes.append(f"{case.id}: {found['reason']}")
        elif found["status"] == "answered" and blocks:
            right = _right(case, found, questions)
            target = Target(
                id=case.id,
                question=case.question,
                scope=scope,
                blocks=blocks,
                before=shown(found),
                case=case,
                right=right,
            )
            (targets if right else others).append(target)
            if right:
                progress.step()
    return (targets + others)[:count], causes


def _attempt(
    opened: Attackable,
    questions: Questions,
    target: Target | None,
    payload: Payload,
    secrets: Sequence[str],
    seed: int,
    told: Told,
) -> Attack:
    """Plant one payload, ask, and look at what a reader would be shown."""
    question = target.id if target else payload.id
    planting = planting_of(f"{seed} {question} {payload.id}", own=target is None)
    try:
        target = target or _own_target(opened, questions, payload)
        blocks = plant(payload, target, planting)
        values = opened.answer_from(target.question, blocks, target.scope).values
    except AtlasError as error:
        return _broken(payload, question, planting, str(error))
    except Exception as error:  # a bug that one payload brings out must not hide the others
        told(f"{payload.id} for {question} broke:\n{traceback.format_exc()}")
        return _broken(payload, question, planting, f"{type(error).__name__}: {error}")
    outcome, why = outcome_of(payload, target, values, secrets)
    text = shown(values)
    case = target.case if outcome != "failed" else None
    return Attack(
        payload=payload,
        question=question,
        planting=planting,
        outcome=outcome,
        why=why,
        status=values["status"],
        shown=text,
        right=_right(case, values, questions) if case else None,
        forged_citations=forged(values, blocks),
        links=links(text),
    )


def _broken(payload: Payload, question: str, planting: Planting, why: str) -> Attack:
    return Attack(
        payload=payload,
        question=question,
        planting=planting,
        outcome="failed",
        why=why,
        status="failed",
        shown="",
        right=None,
        forged_citations=0,
        links=0,
    )


def _own_target(opened: Attackable, questions: Questions, payload: Payload) -> Target:
    """The question of a payload, with what the assistant finds for it by itself."""
    scope = Scope(date=questions.settings.as_of)
    values = opened.ask(payload.question, scope).values
    if values["status"] == "failed":
        raise AtlasError(str(values["reason"]))
    return Target(
        id=payload.id,
        question=payload.question,
        scope=scope,
        blocks=_blocks(values, questions),
        before=shown(values),
        case=None,
        right=False,
    )


def _blocks(trace: Values, questions: Questions) -> tuple[Block, ...]:
    refs = (row["ref"] for row in trace["context"])
    return tuple(questions.blocks[ref] for ref in refs if ref in questions.blocks)


def _right(case: Case, trace: Values, questions: Questions) -> bool:
    return not any(problems(case, trace, questions.labels, questions.blocks))
