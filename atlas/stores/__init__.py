"""Where the two searches of the first stage run: one Protocol, and one file for each store.

    local    FAISS and postings in the index folder of this machine

A store knows vectors, terms and which blocks are in scope. How the two scores are fused, and what
follows, is the same for every store (search.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from atlas.index import Index
from atlas.keyword import ScopedBM25


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Blocks of a scope that a search may bring in, each scored by both searches; arrays (n,)."""

    numbers: NDArray[np.int64]
    """Numbers in the index, in no order and without repetition."""
    keyword: NDArray[np.float64]
    """BM25; 0 where no word matched, and 0 or below also for words of half of all blocks."""
    matched: NDArray[np.bool_]
    """Whether any word of the question stands in the block."""
    cosine: NDArray[np.float64]
    """Cosine of question and block, -1 to 1."""


class Store(Protocol):
    """The two searches over the blocks of one scope."""

    def candidates(
        self,
        terms: Sequence[str],
        vector: NDArray[np.float32],
        statistics: ScopedBM25,
        count: int,
    ) -> Candidates:
        """The best `count` blocks in scope by words and the best `count` by `vector`.

        `terms` are those of the question, `vector` has shape (d,) and unit length, and
        `statistics` knows the scope (`in_scope`). Never holds a block out of scope.
        """
        ...


def open_store(name: str, index: Index) -> Store:
    """The store that the setting `store` names, over the blocks of an index."""
    from atlas.stores.local import LocalStore

    return LocalStore(index)
