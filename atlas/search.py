"""Index, question, scope -> hits: keyword and vector scores fused into one order.

    fused = w * cosine + (1 - w) * BM25 / best BM25 in scope

with w the setting `vector_weight`. Cosines below 0 count as 0, so that the fused score stays in
0 to 1. What only one of the two searches found is scored by the other as well. Then, with s the
setting `section_weight`, each block moves towards the best of its section:

    fused = (1 - s) * fused + s * best fused of the section

since a section is about one thing, and what answers a question often goes on in its next piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from atlas.index import Index
from atlas.keyword import ScopedBM25
from atlas.records import Hit
from atlas.settings import Settings
from atlas.stores import Store

CANDIDATES = 100
"""Blocks that either search may bring in; a fused ranking is never asked for more."""


def search(
    query_terms: Sequence[str],
    query_vector: NDArray[np.float32],
    index: Index,
    store: Store,
    statistics: ScopedBM25,
    settings: Settings,
    limit: int,
) -> list[Hit]:
    """The best `limit` blocks in scope by fused score, ties by position in the collection.

    `query_vector` has shape (d,) and unit length; `statistics` are those of the scope; `store`
    searches, and `index` holds the blocks.
    """
    if not statistics.corpus_size:
        return []
    found = store.candidates(query_terms, query_vector, statistics, max(limit, CANDIDATES))
    best = float(found.keyword[found.matched].max()) if found.matched.any() else 0.0
    words = found.keyword / best if best > 0 else found.matched.astype(np.float64)
    share = settings.vector_weight
    fused = share * np.maximum(found.cosine, 0.0) + (1 - share) * np.maximum(words, 0.0)
    order = np.lexsort((found.numbers, -fused))[:limit]
    hits = [
        Hit(
            block=index.block(int(found.numbers[place])),
            keyword_score=float(found.keyword[place]),
            vector_score=float(found.cosine[place]),
            fused_score=float(fused[place]),
        )
        for place in order
    ]
    return _towards_sections(hits, settings.section_weight)


def _towards_sections(hits: Sequence[Hit], share: float) -> list[Hit]:
    """The hits with their scores moved towards the best of their sections, in the new order."""
    best: dict[tuple[str, int], float] = {}
    for hit in hits:  # best first
        best.setdefault((hit.block.document, hit.block.section), hit.fused_score)
    moved = [
        replace(
            hit,
            fused_score=(1 - share) * hit.fused_score
            + share * best[hit.block.document, hit.block.section],
        )
        for hit in hits
    ]
    return sorted(moved, key=lambda hit: -hit.fused_score)
