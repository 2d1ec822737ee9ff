"""The local store: postings and a FAISS index, memory-mapped from the index folder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from atlas.index import Index
from atlas.keyword import ScopedBM25
from atlas.stores import Candidates


class LocalStore:
    """The searches over the files of one index."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def candidates(
        self,
        terms: Sequence[str],
        vector: NDArray[np.float32],
        statistics: ScopedBM25,
        count: int,
    ) -> Candidates:
        """See `Store`. Keyword scores are those of BM25 over the blocks in scope alone."""
        keyword, matched = statistics.scores(terms)
        words = np.flatnonzero(matched)
        if len(words) > count:
            words = words[np.argsort(-keyword[words], kind="stable")[:count]]
        near, cosines = nearest(self.index, vector, np.flatnonzero(statistics.in_scope), count)
        missing = np.setdiff1d(words, near)
        others = [float(self.index.vectors.reconstruct(int(n)) @ vector) for n in missing]
        numbers = np.concatenate((near, missing))
        return Candidates(
            numbers=numbers,
            keyword=keyword[numbers],
            matched=matched[numbers],
            cosine=np.concatenate((cosines.astype(np.float64), np.array(others, np.float64))),
        )


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
