"""Blocks' terms -> postings on disk; postings and a scope -> BM25 scores.

The model is `rank_bm25.BM25Okapi`: its k1, b, epsilon and its idf rule come from the library. Only
its scoring loop is replaced by numpy over postings, because that loop visits every block once per
question word. The statistics (number of blocks, average length, document frequencies) are those
of the blocks in scope and of no others, so that a score tells nothing about the rest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

FILES = (
    "terms.bin", "term_ends.npy", "posting_ends.npy", "posting_blocks.npy", "posting_counts.npy",
    "block_lengths.npy",
)  # fmt: skip


def build_postings(corpus: Iterable[Sequence[str]], folder: Path) -> None:
    """Write the postings of a corpus (one list of terms per block) into `folder`.

    Terms are sorted; term i's postings are [posting_ends[i-1], posting_ends[i]).
    """
    numbers: dict[str, int] = {}
    term_ids: list[int] = []
    blocks: list[int] = []
    counts: list[int] = []
    lengths: list[int] = []
    for block, words in enumerate(corpus):
        lengths.append(len(words))
        for word, count in Counter(words).items():
            term_ids.append(numbers.setdefault(word, len(numbers)))
            blocks.append(block)
            counts.append(count)
    ordered = sorted(numbers)
    rank = np.empty(len(ordered), np.int64)
    for place, word in enumerate(ordered):
        rank[numbers[word]] = place
    ids = rank[np.array(term_ids, np.int64)] if term_ids else np.empty(0, np.int64)
    order = np.argsort(ids, kind="stable")
    encoded = [_bytes(word) for word in ordered]
    (folder / "terms.bin").write_bytes(b"".join(encoded))
    np.save(folder / "term_ends.npy", np.cumsum([len(word) for word in encoded], dtype=np.int64))
    ends = np.cumsum(np.bincount(ids, minlength=len(ordered)), dtype=np.int64)
    np.save(folder / "posting_ends.npy", ends)
    np.save(folder / "posting_blocks.npy", np.array(blocks, np.int32)[order])
    np.save(folder / "posting_counts.npy", np.array(counts, np.int32)[order])
    np.save(folder / "block_lengths.npy", np.array(lengths, np.int32))


def _bytes(term: str) -> bytes:
    return term.encode("utf-8", "surrogatepass")


class Postings:
    """Memory-mapped postings of an index folder; opening reads nothing but array headers."""

    def __init__(self, folder: Path) -> None:
        def array(name: str) -> NDArray[np.int64]:
            loaded: NDArray[np.int64] = np.load(folder / name, mmap_mode="r", allow_pickle=False)
            return np.asarray(loaded)  # still mapped; a plain array's items cost far less

        self._terms = folder / "terms.bin"
        self._term_bytes: bytes | None = None
        self.term_ends = array("term_ends.npy")
        self.ends = array("posting_ends.npy")
        self.blocks = array("posting_blocks.npy")
        self.counts = array("posting_counts.npy")
        self.lengths = array("block_lengths.npy")

    def __len__(self) -> int:
        return len(self.term_ends)

    def term(self, number: int) -> str:
        """The term with this number; terms are numbered in sorted order."""
        if self._term_bytes is None:
            self._term_bytes = self._terms.read_bytes()
        start = int(self.term_ends[number - 1]) if number else 0
        return self._term_bytes[start : int(self.term_ends[number])].decode(errors="surrogatepass")

    def find(self, term: str) -> int | None:
        """The number of a term, or None where no block has it."""
        # Python orders texts by code point, and the terms were sorted by it.
        place = bisect_left(range(len(self)), term, key=self.term)
        return place if place < len(self) and self.term(place) == term else None

    def span(self, number: int) -> tuple[int, int]:
        """Where a term's postings begin and end."""
        return (int(self.ends[number - 1]) if number else 0), int(self.ends[number])


class ScopedBM25(BM25Okapi):  # type: ignore[misc]  # rank_bm25 has no types
    """BM25Okapi over the blocks of one scope, made from postings instead of texts.

    Its scores equal those of `BM25Okapi([terms of each block in scope])` to 1e-9.
    """

    def __init__(self, postings: Postings, in_scope: NDArray[np.bool_]) -> None:
        self.postings = postings
        self.in_scope = in_scope
        super().__init__(np.flatnonzero(in_scope))

    def _initialize(self, corpus: NDArray[np.int64]) -> Mapping[int, int]:
        """Statistics of the scope; called by the library, which then computes the idf."""
        self.corpus_size = len(corpus)
        self.doc_len = self.postings.lengths
        total = int(self.postings.lengths[corpus].sum()) if len(corpus) else 0
        self.avgdl = total / self.corpus_size if self.corpus_size else 0.0
        seen = self.in_scope[self.postings.blocks].astype(np.int64)
        running = np.concatenate(([0], np.cumsum(seen)))[np.concatenate(([0], self.postings.ends))]
        frequency = np.diff(running)
        present = np.flatnonzero(frequency)
        return dict(zip(present.tolist(), frequency[present].tolist(), strict=True))

    def _calc_idf(self, nd: Mapping[int, int]) -> None:
        self.document_frequency = nd
        if nd:
            super()._calc_idf(nd)

    def frequency(self, term: str) -> int:
        """In how many blocks of the scope a term stands."""
        number = self.postings.find(term)
        return 0 if number is None else self.document_frequency.get(number, 0)

    def rarity(self, term: str) -> float:
        """How much a term tells blocks of the scope apart: 1 for one block, near 0 for all.

        ln((N + 1) / (n + 0.5)) over its value for n = 0; a term of no block gives 1.
        """
        top = float(np.log((self.corpus_size + 1) / 0.5))
        return float(np.log((self.corpus_size + 1) / (self.frequency(term) + 0.5))) / top

    def blocks_with(self, term: str) -> NDArray[np.int64]:
        """The blocks of the scope that hold a term, ascending."""
        number = self.postings.find(term)
        if number is None:
            return np.empty(0, np.int64)
        start, end = self.postings.span(number)
        blocks = np.asarray(self.postings.blocks[start:end], np.int64)
        return blocks[self.in_scope[blocks]]

    @cached_property
    def vocabulary(self) -> list[str]:
        """Every term that stands in a block of the scope, sorted."""
        return [self.postings.term(number) for number in self.document_frequency]

    def scores(self, query: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """BM25 of every block of the index, shape (blocks,), and whether any query term matched.

        A match counts whatever the sign of its score: rank_bm25 gives a word of exactly half of
        all blocks the idf 0. Blocks out of scope score 0 and match nothing.
        """
        total = np.zeros(len(self.postings.lengths))
        matched = np.zeros(len(total), bool)
        for term, repeats in Counter(query).items():
            number = self.postings.find(term)
            if number is None or number not in self.document_frequency:
                continue
            start, end = self.postings.span(number)
            blocks = np.asarray(self.postings.blocks[start:end])
            kept = self.in_scope[blocks]
            blocks = blocks[kept]
            counts = np.asarray(self.postings.counts[start:end], np.float64)[kept]
            lengths = np.asarray(self.doc_len[blocks], np.float64)
            norm = self.k1 * (1 - self.b + self.b * lengths / self.avgdl)
            total[blocks] += repeats * self.idf[number] * (counts * (self.k1 + 1) / (counts + norm))
            matched[blocks] = True
        return total, matched
