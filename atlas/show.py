"""Trace -> text for a person: the answer, each source with its place, or what was looked at.

Documents and questions are untrusted: control characters are stripped, and nothing that looks
like a link is made into one.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

WIDTH = 96


def printable(text: str) -> str:
    """A text without characters that could steer a terminal or hide or turn around words."""
    return "".join(
        c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co")
    )


def answer_text(values: Mapping[str, Any]) -> str:
    """What `ask` prints: the answer with its sources, a question back, or an honest no."""
    return printable("\n".join(_answer_lines(values)))


def trace_text(values: Mapping[str, Any]) -> str:
    """What `show` prints: the answer, then how it came about."""
    return printable("\n".join((*_answer_lines(values), "", *_detail_lines(values))))


def _answer_lines(values: Mapping[str, Any]) -> Iterator[str]:
    status = values["status"]
    if status == "answered":
        for line in values["answer"].split("\n"):
            yield from _wrapped(line)
        yield ""
        yield "Sources"
        for citation in values["citations"]:
            yield from _source(citation)
    elif status == "needs_clarification":
        yield "Which one do you mean?"
        for choice in values["choices"]:
            yield f"  - {choice}"
        yield from _wrapped(f"({values['reason']}; ask again and name it)")
    elif status == "abstained":
        reason = values["reason"]
        yield from _wrapped(f"No answer: {reason}.")
        if values["nearest"]:
            yield ""
            yield "Nearest places in the documents"
            for near in values["nearest"]:
                place = f" > {near['section']}" if near["section"] else ""
                yield from _wrapped(f"  - {near['title']}{place} ({near['ref']})", "    ")
    else:
        yield from _wrapped(f"Failed: {values['reason']}")
    if values.get("mended"):
        yield ""
        read = ", ".join(f"{old} as {new}" for old, new in values["mended"].items())
        yield from _wrapped(f"(read {read})")


def _source(citation: Mapping[str, Any]) -> Iterator[str]:
    place = f" > {citation['section']}" if citation["section"] else ""
    page = f", page {citation['page']}" if citation["page"] else ""
    head = f"[{citation['marker']}] {citation['title']}{place}{page} ({citation['ref']})"
    yield from _wrapped(head, "    ")
    yield from _wrapped(f"    “{citation['quote']}”", "     ")


def _detail_lines(values: Mapping[str, Any]) -> Iterator[str]:
    scope = values["scope"]
    yield f"question   {values['question']}"
    if values.get("read_as") and values["read_as"] != values["question"]:
        yield f"read as    {values['read_as']}"
    products = ", ".join(scope["products"]) or "none named"
    yield f"scope      reader {scope['reader'] or 'anyone'}, {scope['date']}, products: {products}"
    yield f"trace      {values['id']}, {values.get('time', '')}"
    if values["context"]:
        yield ""
        yield "Supplied              keyword  vector   fused  rerank"
        for row in values["context"]:
            yield f"  {row['ref']:<20}{_scores(row)}"
    if values["dropped"]:
        yield "Dropped"
        for row in values["dropped"]:
            yield f"  {row['ref']:<20}{_scores(row)}  {row['reason']}"
    for line in values["removed"]:
        yield f"removed    {line}"
    if values.get("decision"):
        yield "Decision"
        for name, value in values["decision"].items():
            yield f"  {name:<20}{value:8.3f}"
    timings = values["timings_seconds"]
    yield "seconds    " + ", ".join(f"{name} {value:.3f}" for name, value in timings.items())
    for name, value in values["fingerprints"].items():
        yield f"{name:<11}{value}"


def _scores(row: Mapping[str, Any]) -> str:
    cells = []
    for name in ("keyword_score", "vector_score", "fused_score", "rerank_score"):
        value = row.get(name)
        cells.append("       -" if value is None else f"{value:8.3f}")
    return "".join(cells)


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent) or [""]
