"""Metadata <-> plain JSON values, as the index keeps it; a file's name in it. Loads no parser."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from atlas.records import Metadata

READER_VERSION = 5
"""Raise it when reading a file gives another text, so that indexes are rebuilt."""


def relative(path: Path, root: Path) -> str:
    """A file's place in the collection, with forward slashes, as it can be stored and printed."""
    return printable(path.relative_to(root).as_posix())


def printable(name: str) -> str:
    """A file name with bytes that are no UTF-8 written as `\\udcfc`."""
    return name.encode("utf-8", "backslashreplace").decode()


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
