"""Unit vectors of blocks on disk: written row by row, mapped into memory, searched in a scope.

    vectors.faiss   a FAISS flat index with one vector per block, in the order of the blocks
    graph.faiss     with `vector_index: graph` also FAISS's HNSW graph over the same vectors,
                    which holds no copy of them

Cosines are inner products computed by one FAISS kernel, vector by vector: a block's cosine is the
same whatever else is in scope and whichever index found it. The flat search is exact. The graph
only proposes blocks; where the scope is narrow, or too few are proposed, the search is exact.

Refused with a ValueError: a file that is no such index, or of another number of vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

VECTORS, GRAPH = "vectors.faiss", "graph.faiss"

NEIGHBOURS = 24
BUILD_BREADTH = 80
"""HNSW's M and efConstruction. What recall they give is measured by bench/size.py."""
SEARCH_BREADTH = 8
"""Blocks in scope that a search of the graph looks at, for every one that is wanted."""
STEP_COSINES = 40
"""Cosines that an exact search computes in the time in which the graph looks at one block (4 µs):
the graph is asked where it is the faster of both, which is for wide scopes of many blocks."""
ROWS = 1000
"""Vectors added to the graph at a time; another number gives another graph."""


class VectorFile:
    """Writes `vectors.faiss` for a known number of vectors, which need not be in memory at once."""

    def __init__(self, folder: Path, dimension: int, count: int) -> None:
        empty = _faiss().IndexFlatIP(dimension)
        empty.ntotal = count
        header = _faiss().serialize_index(empty).tobytes()
        # FAISS wrote how many floats follow, which for it were none: that number comes last.
        self._header = header[:-8] + (count * dimension).to_bytes(8, "little")
        self._shape = (count, dimension)
        self._written = 0
        self._file = (folder / VECTORS).open("wb")

    def __enter__(self) -> VectorFile:
        self._file.write(self._header)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._file.close()
        if kind is None and self._written != self._shape[0]:
            raise ValueError(f"{self._written} of {self._shape[0]} vectors were written")

    def add(self, rows: NDArray[np.float32]) -> None:
        """Append unit vectors, shape (n, dimension). Raises OSError where the disk refuses."""
        self._file.write(np.ascontiguousarray(rows, np.float32).data)
        self._written += len(rows)


def write_graph(folder: Path, done: Callable[[int], None] = lambda count: None) -> None:
    """Build `graph.faiss` beside the `vectors.faiss` of a folder; `done(n)` after n more vectors.

    The same vectors give the same bytes: one thread, fixed seeds, fixed steps. Needs the vectors
    in memory while it builds. Raises OSError where the disk refuses.
    """
    flat = _read(folder / VECTORS)
    vectors = _mapped(flat)
    graph = _faiss().IndexHNSWFlat(flat.d, NEIGHBOURS, _faiss().METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = BUILD_BREADTH
    for first in range(0, len(vectors), ROWS):
        graph.add(vectors[first : first + ROWS])
        done(len(vectors[first : first + ROWS]))
    with (folder / GRAPH).open("wb") as file:
        # FAISS's own writer only prints that the disk is full where it fails on closing the file.
        _faiss().write_index(
            graph, _faiss().PyCallbackIOWriter(file.write), _faiss().IO_FLAG_SKIP_STORAGE
        )


class Vectors:
    """The vectors of an index folder, mapped into memory and never written to."""

    def __init__(self, folder: Path, count: int, dimension: int, *, graph: bool) -> None:
        """Raises ValueError, which begins with the file's name, for files of something else."""
        self._flat = _read(folder / VECTORS)
        if (self._flat.ntotal, self._flat.d) != (count, dimension):
            raise ValueError(f"{VECTORS}: holds {self._flat.ntotal} vectors for {count} blocks")
        self.rows = _mapped(self._flat)
        """Float32 of shape (blocks, dimension)."""
        self._graph: Any = None
        if graph:
            self._graph = _read(folder / GRAPH)
            if self._graph.ntotal != count or not hasattr(self._graph, "hnsw"):
                raise ValueError(f"{GRAPH}: is no graph over {count} blocks")
            self._graph.storage = self._flat
            self._graph.own_fields = False

    def cosines(
        self, query: NDArray[np.float32], numbers: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """The cosines of a unit vector, shape (d,), and some blocks, in their order."""
        found = np.empty(len(numbers), np.float32)
        if len(numbers):
            asked = np.ascontiguousarray(query, np.float32)
            chosen = np.ascontiguousarray(numbers, np.int64)
            _faiss().fvec_inner_products_by_idx(
                *map(_faiss().swig_ptr, (found, asked, self.rows, chosen)),
                self.rows.shape[1],
                1,
                len(numbers),
            )
        return found

    def nearest(
        self, query: NDArray[np.float32], in_scope: NDArray[np.bool_], count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The `count` blocks of a scope nearest to a unit vector: numbers and cosines, best first.

        `in_scope` has one value per block. Ties go by number. Fewer only where the scope has fewer.
        """
        size = int(np.count_nonzero(in_scope))
        numbers = None
        breadth = SEARCH_BREADTH * count * len(in_scope) // max(size, 1)
        if self._graph is not None and size > max(count, STEP_COSINES * breadth):
            numbers = self._proposed(query, in_scope, count, breadth)
        if numbers is None:
            numbers = np.flatnonzero(in_scope)
        if 2 * len(numbers) > len(self.rows):  # one way through the file is faster than leaps
            cosines = self._all_cosines(query)[numbers]
        else:
            cosines = self.cosines(query, numbers)
        kept = best(cosines, count)
        return numbers[kept], cosines[kept]

    def _all_cosines(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        found = np.empty(len(self.rows), np.float32)
        if len(found):
            asked = np.ascontiguousarray(query, np.float32)
            pointers = map(_faiss().swig_ptr, (found, asked, self.rows))
            _faiss().fvec_inner_products_ny(*pointers, self.rows.shape[1], len(found))
        return found

    def _proposed(
        self, query: NDArray[np.float32], in_scope: NDArray[np.bool_], count: int, breadth: int
    ) -> NDArray[np.int64] | None:
        """Blocks in scope that the graph proposes, ascending; None where they are fewer than
        `count`. `breadth` is how many blocks it looks at, those out of scope among them."""
        options: dict[str, Any] = {"efSearch": breadth}
        if not in_scope.all():
            bits = np.packbits(in_scope, bitorder="little")
            options["sel"] = _faiss().IDSelectorBitmap(bits)
        parameters = _faiss().SearchParametersHNSW(**options)
        asked = np.ascontiguousarray(query[None, :], np.float32)
        _, found = self._graph.search(asked, count, params=parameters)
        numbers: NDArray[np.int64] = np.unique(found[0][found[0] >= 0])
        numbers = numbers[in_scope[numbers]]
        return numbers if len(numbers) == count else None


def best(scores: NDArray[Any], count: int) -> NDArray[np.int64]:
    """The places of the `count` highest scores, highest first, ties by place."""
    if count < len(scores):
        bar = np.partition(scores, len(scores) - count)[len(scores) - count]
        above = np.flatnonzero(scores > bar)
        equal = np.flatnonzero(scores == bar)[: count - len(above)]
        places = np.concatenate((above, equal))
    else:
        places = np.arange(len(scores))
    return places[np.lexsort((places, -scores[places]))]


def _faiss() -> Any:
    """The library, imported where it is first used, for this thread to use alone: one query gains
    nothing from threads, which wait for each other, and a graph of several is another each time."""
    import faiss

    faiss.omp_set_num_threads(1)
    return faiss


def _read(path: Path) -> Any:
    """A FAISS index, mapped into memory. Raises ValueError for a file that is none."""
    try:
        return _faiss().read_index(str(path), _faiss().IO_FLAG_MMAP_IFC)
    except RuntimeError:
        raise ValueError(f"{path.name}: is no FAISS index") from None


class _Mapping:
    """The memory of a flat index as numpy is told of it; arrays over it hold the index."""

    def __init__(self, flat: Any) -> None:
        self.flat = flat
        seen = _faiss().rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d)
        self.__array_interface__ = seen.__array_interface__ | {
            "shape": (flat.ntotal, flat.d),
            "data": (seen.__array_interface__["data"][0], True),
        }


def _mapped(flat: Any) -> NDArray[np.float32]:
    """The vectors of a flat index, shape (n, d), read-only and without a copy."""
    return np.asarray(_Mapping(flat)) if flat.ntotal else np.empty((0, flat.d), np.float32)
