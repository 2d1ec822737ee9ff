"""Hits -> hits with the cross-encoder's score, ordered anew; and which hits are worth a score.

The model's logit x becomes a relevance of 0 to 1 by a logistic curve, 1 / (1 + exp(-(a x + b))).
Its two numbers are fitted on development questions so that 0.5 means: as many blocks with this
score were relevant as were not.

Reading a pair is the dearest step of a question, so hits far behind in the first stage are left
out. Far is measured from the hit that the reranker likes best so far: where that is the first one,
both stages agree and little below it can matter; where it lies deep, the first stage was wrong and
the hits around it are read too; where it likes none, twice as far is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from atlas.records import Hit

SLOPE = 0.27
OFFSET = -1.6
LEAST = 4
"""Hits that are read however far they are behind: the first stage is rarely surer than that."""
DOUBT = 0.15
"""Relevance below which nothing that was read so far convinces."""
STEP = 2
"""Hits that are read at a time while in doubt; a fixed number, or machines would differ."""

Score = Callable[[Sequence[tuple[str, str]]], Sequence[float]]
"""Pairs of question and text -> one logit per pair, higher is better."""


def within_reach(question: str, found: Sequence[Hit], score: Score, reach: float) -> list[Hit]:
    """The first of some hits, as many as are worth reading.

    `found` are hits by falling fused score, at most as many as may be read. A hit is within reach
    whose fused score is at most `reach` times the span of all of them (from the first to the last)
    below that of the hit with the best logit so far; while that best is below DOUBT, twice as far.
    1 reaches all, 0 those level with the best. Reading goes on until nothing new is within reach,
    and takes LEAST in any case.
    """
    if reach >= 1 or len(found) <= LEAST:
        return list(found)
    span = found[0].fused_score - found[-1].fused_score
    logits: list[float] = []
    best, far = 0, reach
    while True:
        bar = found[best].fused_score - far * span
        near = max(LEAST, sum(hit.fused_score >= bar for hit in found))
        # in doubt the next hit may settle it, so that few are read at a time; else all that are
        # within reach are read in the end, since a better one farther down only lowers the bar
        near = min(near, len(logits) + STEP) if far > reach else near
        wanted = found[len(logits) : near]
        if not wanted:
            return list(found[: len(logits)])
        logits += score([(question, hit.block.searched) for hit in wanted])
        best = max(range(len(logits)), key=logits.__getitem__)
        far = 2 * reach if calibrated(logits[best]) < DOUBT else reach


def rerank(
    question: str, hits: Sequence[Hit], score: Score | None, rerank_weight: float
) -> list[Hit]:
    """Score every hit and order by `rerank_weight` of that score and the rest of the fused one.

    Without a reranker the order of the search stays. Ties keep the order of the search.
    """
    if score is None:
        return [replace(hit, order_score=hit.fused_score) for hit in hits]
    if not hits:
        return []
    logits = score([(question, hit.block.searched) for hit in hits])
    scored = []
    for hit, logit in zip(hits, logits, strict=True):
        relevance = calibrated(float(logit))
        order = rerank_weight * relevance + (1 - rerank_weight) * hit.fused_score
        scored.append(
            replace(hit, rerank_score=relevance, rerank_logit=float(logit), order_score=order)
        )
    return sorted(scored, key=lambda hit: -(hit.order_score or 0.0))


def calibrated(logit: float) -> float:
    """A relevance of 0 to 1 for the reranker's logit."""
    value = SLOPE * logit + OFFSET
    return 1 / (1 + math.exp(-value)) if value > -700 else 0.0


def pairs_read(hits: Sequence[Hit]) -> int:
    """How many pairs the order of some hits rests on; equal texts are one pair."""
    return len({hit.block.searched for hit in hits if hit.rerank_logit is not None})
