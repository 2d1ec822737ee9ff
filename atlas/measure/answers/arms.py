"""Case, what was retrieved for it -> the blocks that each arm answers it from.

- `none`: no document at all. What is right here was right without any help.
- `real`: what search and selection supplied.
- `oracle`: all labelled evidence and nothing else; what perfect retrieval would supply.
- `oracle+noise`: the same, and the other blocks that were retrieved.
- `oracle+near-misses`: the same, and the blocks that the case names as near misses.

A question without evidence has no better blocks than the real ones, so its `oracle` and its
`oracle+noise` are the real arm; its `oracle+near-misses` are the near misses alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from atlas.measure.cases import Case, comparable
from atlas.measure.questions import Questions
from atlas.measure.statistics import Unscored
from atlas.records import Block

ARMS = ("none", "real", "oracle", "oracle+noise", "oracle+near-misses")
REAL, NONE, ORACLE = "real", "none", "oracle"
AS_REAL = Unscored("the question has no evidence")
MOST = 12
"""Blocks that a label of a whole document or section may bring in, best evidence first."""


def blocks_for(
    arm: str, case: Case, supplied: Sequence[str], questions: Questions
) -> tuple[Block, ...] | Unscored:
    """The blocks of an arm but `real`, in the order in which they are given.

    `supplied` are the references of the real arm. AS_REAL where they are those of the real arm,
    another Unscored where the case has no such arm.
    """
    if arm == NONE:
        return ()
    evidence = evidence_of(case, questions)
    if not evidence and arm != "oracle+near-misses":
        return AS_REAL
    extra: list[Block] = []
    if arm == "oracle+noise":
        relevant = set(questions.relevant(case))
        extra = [questions.blocks[ref] for ref in supplied if ref not in relevant]
    elif arm == "oracle+near-misses":
        extra = near_misses(case, questions)
        if not extra:
            return Unscored("the case names no near miss")
    return tuple(dict.fromkeys((*evidence, *extra)))


def evidence_of(case: Case, questions: Questions) -> list[Block]:
    """The blocks with the labelled evidence.

    Those that hold an evidence quote where the case has quotes that fit into a block, otherwise
    every block that the labels cover, up to twelve.
    """
    relevant = [questions.blocks[ref] for ref in questions.relevant(case)]
    quotes = [comparable(quote) for quote in case.evidence]
    texts = [comparable(block.text) for block in relevant]
    if quotes and all(any(quote in text for text in texts) for quote in quotes):
        return [
            block
            for block, text in zip(relevant, texts, strict=True)
            if any(quote in text for quote in quotes)
        ][:MOST]
    return relevant[:MOST]


def near_misses(case: Case, questions: Questions) -> list[Block]:
    """The blocks that the case's near misses cover and its labels do not."""
    relevant = set(questions.relevant(case))
    return [
        block
        for ref, block in questions.blocks.items()
        if ref not in relevant
        and any(questions.labels.covers(label, block) for label in case.near_misses)
    ][:MOST]
