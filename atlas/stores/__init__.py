"""Where the two searches of the first stage run: one Protocol, and one file for each store.

    local    FAISS and postings in the index folder of this machine
    milvus   a Milvus server, a cluster of them, or Milvus Lite in this process

The index folder is the same for both: documents, blocks, and which are in scope. A store knows
vectors, terms and which blocks are in scope. How the two scores are fused, and what follows, is
the same for every store (search.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

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

    @property
    def name(self) -> str:
        """The setting's word, and the version of a server."""
        ...

    @property
    def keyword_statistics(self) -> str:
        """Whose statistics keyword scores are made with, and candidates chosen with if others."""
        ...

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

    def close(self) -> None:
        """Say that nothing more will be asked."""
        ...


def open_store(name: str, index: Index) -> Store:
    """The store that the setting `store` names, over the blocks of an index.

    Raises StoreError where a server does not answer, and IndexDamagedError where it lacks blocks
    of this index.
    """
    if name == "milvus":
        from atlas.stores.milvus import MilvusStore

        return MilvusStore(index)
    from atlas.stores.local import LocalStore

    return LocalStore(index)


def about_store(name: str, state: Path) -> dict[str, Any]:
    """What the manifest of a new index says of the store that it is made for."""
    if name == "milvus":
        from atlas.stores.milvus_filling import owner

        return {"name": name, "owner": owner(state)}
    return {"name": name}


def fill_store(name: str, generation: Path, step: Callable[[int], None]) -> None:
    """Give a store the blocks of a generation that is written and not yet in use.

    `step(n)` is called as n more blocks are stored. Raises StoreError, and then the generation is
    not to be used.
    """
    if name == "milvus":
        from atlas.stores.milvus_filling import fill
        from atlas.stores.milvus_server import connected

        index = Index(generation, json.loads((generation / "manifest.json").read_bytes()))
        with connected(generation.parent.parent) as server:
            fill(server, index, step)


def tidy_store(name: str, state: Path) -> None:
    """Remove from a store what no generation in the state folder needs. Raises StoreError."""
    if name == "milvus":
        from atlas.stores.milvus_filling import drop_unused
        from atlas.stores.milvus_server import connected

        with connected(state) as server:
            drop_unused(server, state)


def discard_store(name: str, index: Index) -> None:
    """Drop what a store lacks parts of; only Milvus Lite, which otherwise does nothing more.

    Raises StoreError.
    """
    if name == "milvus":
        from atlas.stores.milvus_filling import discard
        from atlas.stores.milvus_server import connected

        with connected(index.folder.parent.parent) as server:
            discard(server, index)


def describe_store(name: str, index: Index) -> str:
    """One line for a person about the store of an index: where it is, and that it is whole.

    Raises StoreError and IndexDamagedError as `open_store` does.
    """
    if name == "milvus":
        from atlas.stores.milvus import describe

        return describe(index)
    return f"local: {len(index)} blocks in {index.folder}"
