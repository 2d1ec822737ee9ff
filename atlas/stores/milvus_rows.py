"""An index -> the rows of its collection in Milvus, in batches that a server takes.

Terms go in as ASCII letters and digits, so that no analyzer takes them apart or changes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from atlas.errors import StoreError
from atlas.index import Index
from atlas.keyword import Postings

ROWS = 500
"""Most blocks sent at once."""
BATCH_BYTES = 8_000_000
"""Most bytes of terms sent at once, far below the 64 MB that a server takes."""
MOST_BYTES = 65_535
"""Most bytes of the terms of one block: the longest text that Milvus keeps."""
HEXED = "u8x"
"""Marks a term that is written as the bytes of its UTF-8 form; alone it stands for no term."""


def encoded(term: str) -> str:
    """A term in ASCII letters and digits; two terms never give the same."""
    if re.fullmatch(r"[a-z0-9]+", term) and not term.startswith(HEXED):
        return term
    return HEXED + term.encode("utf-8", "surrogatepass").hex()


def batches(index: Index) -> Iterator[list[dict[str, Any]]]:
    """Rows in the order of the blocks. Raises StoreError for a block that is too long."""
    rows: list[dict[str, Any]] = []
    size = 0
    for number, text in enumerate(_texts(index.postings)):
        if len(text) > MOST_BYTES:
            raise StoreError(
                f"block {index.block(number).ref} has {len(text)} bytes of terms, and Milvus keeps "
                f"{MOST_BYTES}; lower block_size, or set `store: local`"
            )
        if rows and (len(rows) >= ROWS or size + len(text) > BATCH_BYTES):
            yield _with_vectors(index, rows)
            rows, size = [], 0
        rows.append(
            {
                "number": number,
                "document": int(index.block_document[number]),
                "profile": int(index.block_profile[number]),
                "terms": text,
            }
        )
        size += len(text)
    if rows:
        yield _with_vectors(index, rows)


def _with_vectors(index: Index, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first = rows[0]["number"]
    vectors = index.vectors.rows[first : first + len(rows)]
    return [{**row, "vector": vector} for row, vector in zip(rows, vectors, strict=True)]


def _texts(postings: Postings) -> Iterator[str]:
    """The terms of every block in order, each as often as it stands there; `HEXED` for none."""
    words = [encoded(postings.term(number)) for number in range(len(postings))]
    order = np.argsort(postings.blocks, kind="stable")
    terms = np.repeat(np.arange(len(words)), np.diff(postings.ends, prepend=0))[order]
    counts = np.asarray(postings.counts)[order]
    ends = np.searchsorted(
        np.asarray(postings.blocks)[order], np.arange(len(postings.lengths)), side="right"
    )
    start = 0
    for end in ends.tolist():
        pairs = zip(terms[start:end].tolist(), counts[start:end].tolist(), strict=True)
        yield " ".join([words[term] for term, repeats in pairs for _ in range(repeats)]) or HEXED
        start = end
