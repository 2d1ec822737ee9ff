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

CANDIDATES = 100
"""Blocks that either search may bring in; a fused ranking is never asked for more."""


def search(
    query_terms: Sequence[str],
    query_vector: NDArray[np.float32],
    index: Index,
    statistics: ScopedBM25,
    settings: Settings,
    limit: int,
) -> list[Hit]:
    """The best `limit` blocks in scope by fused score, ties by position in the collection.

    `query_vector` has shape (d,) and unit length; `statistics` are those of the scope.
    """
    scope = np.flatnonzero(statistics.in_scope)
    if not len(scope):
        return []
    count = max(limit, CANDIDATES)
    keyword, matched = statistics.scores(query_terms)
    near, cosines = nearest(index, query_vector, scope, count)
    words = np.flatnonzero(matched)
    if len(words) > count:
        words = words[np.argsort(-keyword[words], kind="stable")[:count]]
    cosine = dict(zip(near.tolist(), cosines.tolist(), strict=True))
    missing = [int(number) for number in words if int(number) not in cosine]
    if missing:
        cosine.update(zip(missing, _cosines(index, query_vector, missing), strict=True))
    best = float(keyword[words].max()) if len(words) else 0.0
    share = settings.vector_weight
    scored = []
    for number, value in cosine.items():
        word_part = float(keyword[number]) / best if best > 0 else float(matched[number])
        fused = share * max(value, 0.0) + (1 - share) * max(word_part, 0.0)
        scored.append((-fused, number, value))
    scored.sort()
    hits = [
        Hit(
            block=index.block(number),
            keyword_score=float(keyword[number]),
            vector_score=float(value),
            fused_score=-negative,
        )
        for negative, number, value in scored[:limit]
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


def nearest(
    index: Index, query: NDArray[np.float32], scope: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The `count` blocks of a scope nearest to a vector: numbers and cosines, best first."""
    import faiss

    count = min(count, len(scope))
    if len(scope) == len(index):
        cosines, numbers = index.vectors.search(query[None, :], count)
    else:
        mask = np.zeros(len(index), bool)
        mask[scope] = True
        selector = faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))  # type: ignore[call-arg, arg-type]
        parameters = faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]
        cosines, numbers = index.vectors.search(query[None, :], count, params=parameters)
    kept = numbers[0] >= 0
    return numbers[0][kept], cosines[0][kept]


def _cosines(index: Index, query: NDArray[np.float32], numbers: list[int]) -> list[float]:
    return [float(index.vectors.reconstruct(number) @ query) for number in numbers]
