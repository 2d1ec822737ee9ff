"""The local store: postings and a FAISS index, memory-mapped from the index folder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from atlas.index import Index
from atlas.keyword import ScopedBM25
from atlas.stores import Candidates
from atlas.vectors import best


class LocalStore:
    """The searches over the files of one index."""

    name = "local"
    keyword_statistics = "scope"

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
        words = words[best(keyword[words], count)]
        near, _ = self.index.vectors.nearest(vector, statistics.in_scope, count)
        numbers = np.union1d(near, words)
        return Candidates(
            numbers=numbers,
            keyword=keyword[numbers],
            matched=matched[numbers],
            cosine=self.index.vectors.cosines(vector, numbers).astype(np.float64),
        )

    def close(self) -> None:
        """See `Store`. The files are those of the index, which closes them."""
