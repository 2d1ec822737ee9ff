"""TREC run and qrels files: lines of fields with white space between them.

A run line is `query Q0 document rank score tag`, a qrels line `query 0 document grade`. Readers of
runs order by score and pass the rank over; trec_eval compares scores in single precision and breaks
ties by document id, descending. So what is written here has scores that are whole numbers falling
by one: every reader finds the order that was meant. Refused, with file and line: another number of
fields, a score or grade that is no number, a document that a query has twice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from atlas.errors import CollectionError
from atlas.measure.imports.lines import grade_of, text_lines

TAG = "atlas"
_UNSAFE = re.compile(r"[^!-$&-~]")
"""Anything but visible ASCII, and the percent sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One line of a qrels file."""

    line: int
    query: str
    document: str
    grade: int
    """Above 0 is relevant."""


def field(text: str) -> str:
    """An id as one field: white space, `%` and what is not ASCII become `%XX` of their UTF-8."""
    return _UNSAFE.sub(
        lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")), text
    )


def run_lines(query: str, documents: Sequence[str]) -> Iterator[str]:
    """The lines of one query; `documents` best first. Scores count down to 1."""
    for rank, document in enumerate(documents, 1):
        score = len(documents) + 1 - rank
        yield f"{field(query)} Q0 {field(document)} {rank} {score} {TAG}\n"


def qrels_lines(query: str, grades: Mapping[str, int]) -> Iterator[str]:
    """The lines of one query, sorted by document."""
    for document in sorted(grades):
        yield f"{field(query)} 0 {field(document)} {grades[document]}\n"


def read_run(path: Path) -> dict[str, dict[str, float]]:
    """Score of every document by query, in file order; higher is better, the rank is passed over.

    Raises UsageError for a file that cannot be opened, CollectionError for a bad line.
    """
    run: dict[str, dict[str, float]] = {}
    for line, text in text_lines(path):
        query, _, document, _, written, _ = _fields(path, line, text, 6)
        try:
            score = float(written)
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise CollectionError(
                f"{path}:{line}: the score is {written!r}; expected a finite number"
            )
        if document in run.setdefault(query, {}):
            raise CollectionError(
                f"{path}:{line}: query {query} has document {document} twice; keep the better line"
            )
        run[query][document] = score
    return run


def judgements(path: Path) -> Iterator[Judgement]:
    """Every line of a qrels file. Raises UsageError or CollectionError as `read_run` does."""
    for line, text in text_lines(path):
        query, _, document, grade = _fields(path, line, text, 4)
        yield Judgement(
            line=line, query=query, document=document, grade=grade_of(f"{path}:{line}", grade)
        )


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Grade of every judged document by query, in file order.

    A line that stands twice counts once; two grades for one document are refused. Raises
    UsageError or CollectionError as `read_run` does.
    """
    qrels: dict[str, dict[str, int]] = {}
    for item in judgements(path):
        grade = qrels.setdefault(item.query, {}).setdefault(item.document, item.grade)
        if grade != item.grade:
            raise CollectionError(
                f"{path}:{item.line}: query {item.query} judges {item.document} {item.grade} here "
                f"and {grade} above; keep one grade"
            )
    return qrels


def _fields(path: Path, line: int, text: str, count: int) -> list[str]:
    fields = text.split()
    if len(fields) != count:
        expected = "query Q0 document rank score tag" if count == 6 else "query 0 document grade"
        raise CollectionError(
            f"{path}:{line}: {len(fields)} fields; expected {count}, `{expected}`"
        )
    return fields
