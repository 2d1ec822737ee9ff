"""Trace -> text for a person: the answer, each source with its place, or what was looked at.

A past trace is checked against the collection as it is now before it is shown again.

Documents and questions are untrusted: control characters are stripped, and nothing that looks
like a link is made into one.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from atlas.errors import UsageError
from atlas.plain import without_links

if TYPE_CHECKING:
    from atlas.collection import Collection
    from atlas.ingest import Progress
    from atlas.records import Trace

WIDTH = 96
FINGERPRINT_WIDTH = 20
"""Room for the name of a fingerprint: `keyword_statistics` and a space."""


def printable(text: str) -> str:
    """A text without characters that could steer a terminal or hide or turn around words."""
    return "".join(
        c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co")
    )


def answer_text(values: Mapping[str, Any]) -> str:
    """What `ask` prints: the answer with its sources, a question back, or an honest no."""
    return without_links(printable("\n".join(_answer_lines(values))))


def trace_text(values: Mapping[str, Any]) -> str:
    """What `show` prints: the answer, then how it came about."""
    lines = (*_answer_lines(values), "", *_detail_lines(values))
    return without_links(printable("\n".join(lines)))


def past_trace(
    wanted: str, collection: Collection, reader: str | None, progress: Progress | None = None
) -> Trace:
    """A past trace that a reader may still see, by its id, the beginning of it, or `last`.

    The scope is checked again. Raises UsageError for an unknown trace or reader group, for a trace
    that was made for another group, and for one that names a document which this reader may not
    read now or which is gone: documents change after an answer was given.
    """
    from atlas.ingest import open_index
    from atlas.opening import current_index
    from atlas.scope import check_reader, unreadable
    from atlas.trace import load

    trace = load(wanted, collection.state)
    index = current_index(collection, progress)
    check_reader(reader, collection.settings, index)
    owner = trace.values["scope"]["reader"]
    if owner is not None and owner != reader:
        raise UsageError(
            f"trace {trace.id} was made for another reader group; give it with --reader"
        )
    refused = unreadable(_documents(trace.values), reader, index)
    if refused:  # the trace may come from the sample, or from the whole collection
        other = replace(collection, sample=not collection.sample)
        if open_index(other) is not None:
            refused = unreadable(refused, reader, current_index(other, progress))
    if refused:
        raise UsageError(
            f"trace {trace.id} rests on documents that this reader may not read now or that are "
            "gone; ask the question again"
        )
    return trace


def _documents(values: Mapping[str, Any]) -> list[str]:
    """The ids of all documents that a trace names."""
    rows = (*values["citations"], *values["context"], *values["dropped"], *values["nearest"])
    refs = (*(row["ref"] for row in rows), *values["ranked"])
    return list(dict.fromkeys(ref.rsplit("-", 2)[0] for ref in refs))


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
    if citation.get("hidden"):
        yield from _wrapped(
            f"    Quoted words are hidden on the page ({citation['hidden']}).", "    "
        )


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
            hidden = f"  holds hidden text ({row['hidden']})" if row.get("hidden") else ""
            yield f"  {row['ref']:<20}{_scores(row)}{hidden}"
    if values["dropped"]:
        yield "Dropped"
        for row in values["dropped"]:
            yield f"  {row['ref']:<20}{_scores(row)}  {row['reason']}"
    chat = values.get("chat")
    if chat:
        tokens = f"{chat['prompt_tokens']} + {chat['completion_tokens']} tokens"
        yield f"chat       {chat['model']}, {tokens}, {chat['seconds']:.2f} s"
    for line in values["removed"]:
        yield f"removed    {line}"
    if values.get("decision"):
        yield "Decision"
        for name, value in values["decision"].items():
            yield f"  {name:<20}{value:8.3f}"
    timings = values["timings_seconds"]
    yield "seconds    " + ", ".join(f"{name} {value:.3f}" for name, value in timings.items())
    for name, value in values["fingerprints"].items():
        yield f"{name:<{FINGERPRINT_WIDTH}}{value}"


def _scores(row: Mapping[str, Any]) -> str:
    cells = []
    for name in ("keyword_score", "vector_score", "fused_score", "rerank_score"):
        value = row.get(name)
        cells.append("       -" if value is None else f"{value:8.3f}")
    return "".join(cells)


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent) or [""]
