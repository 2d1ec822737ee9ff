"""Metadata <-> plain JSON values, as the index keeps it."""

from __future__ import annotations

from datetime import date
from typing import Any

from atlas.records import Metadata


def metadata_json(metadata: Metadata) -> dict[str, Any]:
    """Metadata as plain JSON values; `metadata_from_json` is its inverse."""
    return {
        "id": metadata.id,
        "title": metadata.title,
        "path": metadata.path,
        "kind": metadata.kind,
        "products": list(metadata.products),
        "readers": list(metadata.readers),
        "valid_from": metadata.valid_from.isoformat() if metadata.valid_from else None,
        "valid_to": metadata.valid_to.isoformat() if metadata.valid_to else None,
        "supersedes": list(metadata.supersedes),
    }


def metadata_from_json(values: dict[str, Any]) -> Metadata:
    """Inverse of `metadata_json`."""

    def day(key: str) -> date | None:
        return date.fromisoformat(values[key]) if values[key] else None

    return Metadata(
        id=values["id"],
        title=values["title"],
        path=values["path"],
        kind=values["kind"],
        products=tuple(values["products"]),
        readers=tuple(values["readers"]),
        valid_from=day("valid_from"),
        valid_to=day("valid_to"),
        supersedes=tuple(values["supersedes"]),
    )
