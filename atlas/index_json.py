"""Documents, blocks and sources <-> plain JSON values, as the index keeps them. Loads no parser."""

from __future__ import annotations

import json
from typing import Any

from atlas.metadata import metadata_from_json, metadata_json
from atlas.records import Block, Document, PageVerdict, Section, Unit


def to_bytes(value: Any) -> bytes:
    """JSON without spaces; no line end in it, so that one value can be one line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    # A PDF may hold half a surrogate pair, which json.loads reads back from bytes.
    return text.encode("utf-8", "surrogatepass")


def document_json(document: Document) -> dict[str, Any]:
    """A document as plain JSON values; `document_from_json` is its inverse."""
    return {
        "metadata": metadata_json(document.metadata),
        "text": document.text,
        "sections": [
            [section.number, section.titles, [unit_json(unit) for unit in section.units]]
            for section in document.sections
        ],
        "page_labels": document.page_labels,
        "warnings": document.warnings,
        "content_hash": document.content_hash,
        "page_verdicts": [[v.page, v.state, v.reason] for v in document.page_verdicts],
    }


def document_from_json(values: dict[str, Any]) -> Document:
    """Inverse of `document_json`."""
    return Document(
        metadata=metadata_from_json(values["metadata"]),
        text=values["text"],
        sections=tuple(
            Section(
                number=section,
                titles=tuple(titles),
                units=tuple(unit_from_json(row) for row in units),
            )
            for section, titles, units in values["sections"]
        ),
        page_labels=tuple(values["page_labels"]),
        warnings=tuple(values["warnings"]),
        content_hash=values["content_hash"],
        page_verdicts=tuple(
            PageVerdict(page=page, state=state, reason=reason)
            for page, state, reason in values["page_verdicts"]
        ),
    )


def unit_json(unit: Unit) -> list[Any]:
    """A unit as a row; `unit_from_json` is its inverse."""
    row = [unit.kind, unit.start, unit.end, unit.page, unit.header]
    return [*row, unit.hidden] if unit.hidden else row


def unit_from_json(row: list[Any]) -> Unit:
    """Inverse of `unit_json`."""
    kind, start, end, page, header, *hidden = row
    return Unit(
        kind=kind,
        start=start,
        end=end,
        page=page,
        header=tuple(header) if header else None,
        hidden=hidden[0] if hidden else "",
    )


def block_json(block: Block) -> dict[str, Any]:
    """A block as plain JSON values; `block_from_json` is its inverse."""
    return {
        "document": block.document,
        "section": block.section,
        "piece": block.piece,
        "title": block.title,
        "titles": block.titles,
        "text": block.text,
        "start": block.start,
        "end": block.end,
        "units": [unit_json(unit) for unit in block.units],
        "page": block.page,
        "page_label": block.page_label,
        "products": block.products,
    }


def block_from_json(values: dict[str, Any]) -> Block:
    """Inverse of `block_json`."""
    return Block(
        **values
        | {
            "units": tuple(unit_from_json(row) for row in values["units"]),
            "titles": tuple(values["titles"]),
            "products": tuple(values["products"]),
        }
    )
