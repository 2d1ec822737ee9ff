"""Hits -> hits with the cross-encoder's score, ordered anew.

The model's logit x becomes a relevance of 0 to 1 by a logistic curve, 1 / (1 + exp(-(a x + b))).
Its two numbers are fitted on development questions so that 0.5 means: as many blocks with this
score were relevant as were not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from atlas.models import Reranker
from atlas.records import Hit

SLOPE = 0.27
OFFSET = -1.6


def rerank(
    question: str, hits: Sequence[Hit], reranker: Reranker | None, rerank_weight: float
) -> list[Hit]:
    """Score every hit and order by `rerank_weight` of that score and the rest of the fused one.

    Without a reranker the order of the search stays. Ties keep the order of the search.
    """
    if reranker is None:
        return [replace(hit, order_score=hit.fused_score) for hit in hits]
    if not hits:
        return []
    logits = reranker.score(question, [hit.block.searched for hit in hits])
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
