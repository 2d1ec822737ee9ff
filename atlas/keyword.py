"""Blocks' terms -> postings on disk; postings and a scope -> BM25 scores.

The model is `rank_bm25.BM25Okapi`: its k1, b and epsilon come from the library. Its loops are
replaced by numpy over postings, because they visit every block once per question word, and every
word once per scope. The statistics (number of blocks, average length, document frequencies) are
those of the blocks in scope and of no others, so that a score tells nothing about the rest.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from atlas.arrays import mapped, save

POSTINGS_AT_ONCE = 1_000_000
"""Postings that are looked at in one step to count the words of a scope."""


class PostingsWriter:
    """The postings of a corpus while it is read block by block.

    Held in memory are the distinct terms and eight bytes per posting, and as much again while
    `write` brings them into order: about 130 MB for 100,000 blocks of 80 distinct terms.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._term_ids = array("i")
        self._counts = array("i")
        self._ends = array("q", [0])
        self._lengths = array("i")

    def add(self, words: Sequence[str]) -> None:
        """Append a block with these terms."""
        self._lengths.append(len(words))
        for word, count in Counter(words).items():
            self._term_ids.append(self._numbers.setdefault(word, len(self._numbers)))
            self._counts.append(count)
        self._ends.append(len(self._term_ids))

    def write(self, folder: Path) -> None:
        """Write the postings into `folder`; terms are sorted, blocks ascend within a term.

        Term i's postings are [posting_ends[i-1], posting_ends[i]). Raises OSError.
        """
        from scipy.sparse import csr_array

        ordered = sorted(self._numbers)
        rank = np.empty(len(ordered), np.int32)
        rank[[self._numbers[word] for word in ordered]] = np.arange(len(ordered), dtype=np.int32)
        encoded = [_bytes(word) for word in ordered]
        (folder / "terms.bin").write_bytes(b"".join(encoded))
        ends = np.cumsum([len(word) for word in encoded], dtype=np.int64)
        save(folder / "term_ends.npy", ends)
        ids = np.frombuffer(self._term_ids, np.int32) if self._term_ids else np.empty(0, np.int32)
        counts = np.frombuffer(self._counts, np.int32) if self._counts else np.empty(0, np.int32)
        rows = np.frombuffer(self._ends, np.int64)
        if len(ids) < 2**31:  # scipy takes both arrays in one width, and wide ones cost twice
            rows = rows.astype(np.int32)
        by_block = csr_array((counts, rank[ids], rows), shape=(len(self._lengths), len(ordered)))
        by_term = by_block.tocsc()
        save(folder / "posting_ends.npy", by_term.indptr[1:].astype(np.int64))
        save(folder / "posting_blocks.npy", by_term.indices.astype(np.int32, copy=False))
        narrow = np.min_scalar_type(by_term.data.max(initial=0))  # a byte for nearly all corpora
        save(folder / "posting_counts.npy", by_term.data.astype(narrow))
        save(folder / "block_lengths.npy", np.array(self._lengths, np.int32))


def _bytes(term: str) -> bytes:
    return term.encode("utf-8", "surrogatepass")


class Postings:
    """Memory-mapped postings of an index folder; opening reads nothing but array headers."""

    def __init__(self, folder: Path) -> None:
        self._terms = folder / "terms.bin"
        self._term_bytes: bytes | None = None
        self.term_ends = mapped(folder / "term_ends.npy")
        self.ends = mapped(folder / "posting_ends.npy")
        self.blocks = mapped(folder / "posting_blocks.npy")
        self.counts = mapped(folder / "posting_counts.npy")
        self.lengths = mapped(folder / "block_lengths.npy")

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
        place = self._place(term)
        return place if place < len(self) and self.term(place) == term else None

    def beginning_with(self, prefix: str) -> tuple[int, int]:
        """The numbers of the terms that begin with `prefix`: the first, and one past the last."""
        if not prefix:
            return 0, len(self)
        first = self._place(prefix)
        return first, self._place(prefix + "\U0010ffff")

    def _place(self, term: str) -> int:
        # Python orders texts by code point, and the terms were sorted by it.
        return bisect_left(range(len(self)), term, key=self.term)

    def frequencies(self, in_scope: NDArray[np.bool_]) -> NDArray[np.int32]:
        """In how many blocks of a scope each term stands."""
        found = np.zeros(len(self), np.int32)
        first = begin = 0
        while first < len(self):  # some terms at a time, so that memory does not grow with them
            last = int(np.searchsorted(self.ends, begin + POSTINGS_AT_ONCE, "right"))
            last = max(last, first + 1)
            end = int(self.ends[last - 1])
            inside = in_scope[self.blocks[begin:end]].view(np.int8)
            starts = np.concatenate(([0], self.ends[first : last - 1] - begin))
            found[first:last] = np.add.reduceat(inside, starts, dtype=np.int32)
            first, begin = last, end
        return found

    def span(self, number: int) -> tuple[int, int]:
        """Where a term's postings begin and end."""
        return (int(self.ends[number - 1]) if number else 0), int(self.ends[number])


class ScopedBM25(BM25Okapi):  # type: ignore[misc]  # rank_bm25 has no types
    """BM25Okapi over the blocks of one scope, made from postings instead of texts.

    Its scores equal those of `BM25Okapi([terms of each block in scope])` to 1e-9. k1, b and epsilon
    are the library's; its loops over blocks and over the vocabulary are replaced.
    """

    def __init__(self, postings: Postings, in_scope: NDArray[np.bool_]) -> None:
        self.postings = postings
        self.in_scope = in_scope
        super().__init__(np.flatnonzero(in_scope))

    def _initialize(self, corpus: NDArray[np.int64]) -> NDArray[np.int32]:
        """Statistics of the scope; called by the library, which hands them to `_calc_idf`."""
        lengths = self.postings.lengths
        self.corpus_size = len(corpus)
        self.doc_len = lengths
        total = int(lengths[corpus].sum()) if len(corpus) else 0
        self.avgdl = total / self.corpus_size if self.corpus_size else 0.0
        if len(corpus) == len(lengths):
            return np.diff(self.postings.ends, prepend=0).astype(np.int32)
        return self.postings.frequencies(self.in_scope)

    def _calc_idf(self, nd: NDArray[np.int32]) -> None:
        """The library's rule: ln((N - n + 0.5) / (n + 0.5)), and where that is below 0, which is
        for words of more than half of all blocks, epsilon times the mean over all words."""
        self._frequencies = nd
        words_with = np.bincount(nd)[1:]  # place n - 1: words that stand in n blocks
        values = self._raw_idf(np.arange(1, len(words_with) + 1))
        words = int(words_with.sum())
        self.average_idf = float(words_with @ values) / words if words else 0.0

    def _raw_idf(self, frequency: NDArray[np.int64]) -> NDArray[np.float64]:
        values: NDArray[np.float64] = np.log(
            (self.corpus_size - frequency + 0.5) / (frequency + 0.5)
        )
        return values

    def _idf_of(self, frequency: int) -> float:
        value = float(self._raw_idf(np.array(frequency)))
        return value if value >= 0 else self.epsilon * self.average_idf

    def frequency(self, term: str) -> int:
        """In how many blocks of the scope a term stands."""
        number = self.postings.find(term)
        return 0 if number is None else int(self._frequencies[number])

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

    def vocabulary(self, prefix: str = "") -> list[str]:
        """Every term that begins with `prefix` and stands in a block of the scope, sorted."""
        first, end = self.postings.beginning_with(prefix)
        present = first + np.flatnonzero(self._frequencies[first:end])
        return [self.postings.term(number) for number in present.tolist()]

    def scores(self, query: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """BM25 of every block of the index, shape (blocks,), and whether any query term matched.

        A match counts whatever the sign of its score: rank_bm25 gives a word of exactly half of
        all blocks the idf 0. Blocks out of scope score 0 and match nothing.
        """
        total = np.zeros(len(self.postings.lengths))
        matched = np.zeros(len(total), bool)
        whole = self.corpus_size == len(total)
        for term, repeats in Counter(query).items():
            number = self.postings.find(term)
            if number is None or not self._frequencies[number]:
                continue
            start, end = self.postings.span(number)
            blocks = self.postings.blocks[start:end]
            counts = self.postings.counts[start:end]
            if not whole:
                kept = self.in_scope[blocks]
                blocks, counts = blocks[kept], counts[kept]
            lengths = self.doc_len[blocks] / self.avgdl
            norm = self.k1 * (1 - self.b + self.b * lengths)
            idf = self._idf_of(int(self._frequencies[number]))
            total[blocks] += repeats * idf * (counts * (self.k1 + 1) / (counts + norm))
            matched[blocks] = True
        return total, matched

    def scores_of(
        self, query: Sequence[str], numbers: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """What `scores` gives for some blocks of the scope, in their order; looks at no others."""
        total = np.zeros(len(numbers))
        matched = np.zeros(len(numbers), bool)
        for term, repeats in Counter(query).items():
            number = self.postings.find(term)
            if number is None or not self._frequencies[number]:
                continue
            start, end = self.postings.span(number)
            blocks = self.postings.blocks[start:end]  # ascending
            places = np.minimum(np.searchsorted(blocks, numbers), len(blocks) - 1)
            held = blocks[places] == numbers
            counts = self.postings.counts[start:end][places[held]]
            norm = self.k1 * (1 - self.b + self.b * (self.doc_len[numbers[held]] / self.avgdl))
            idf = self._idf_of(int(self._frequencies[number]))
            total[held] += repeats * idf * (counts * (self.k1 + 1) / (counts + norm))
            matched[held] = True
        return total, matched
