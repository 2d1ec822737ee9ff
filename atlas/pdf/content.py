"""A content stream and what it names -> operators and plain values.

In:  objects of a file as pypdf gives them; nothing of them is trusted.
Out: operators with their operands, dictionaries, colors.
Refused: content that pypdf's own limits end (`OverLimit`).
"""

from __future__ import annotations

from typing import Any

from pypdf.errors import LimitReachedError
from pypdf.generic import ContentStream, DictionaryObject, IndirectObject, is_null_or_none

from atlas.pdf.shapes import WHITE, Color


class OverLimit(Exception):
    """The page costs more work than a page may."""


def operations_of(contents: Any, reader: Any) -> tuple[list[tuple[Any, bytes]], str]:
    """Parse content. What stands before a damaged place is kept, and the damage told."""
    try:
        stream = ContentStream(contents, reader, "bytes")
        return stream.operations, ""
    except LimitReachedError as error:
        raise OverLimit from error
    except MemoryError:
        raise
    except Exception as error:
        damage = f"its content breaks off ({type(error).__name__})"
    try:
        # pypdf keeps what it has parsed, and parses again only where that is nothing.
        return stream.operations, damage
    except Exception:
        return [], damage


def dictionary(value: Any) -> DictionaryObject:
    """The dictionary that a value is or refers to; an empty one where it is something else."""
    if isinstance(value, IndirectObject):
        value = value.get_object()
    return value if isinstance(value, DictionaryObject) else DictionaryObject()


def opaque(image: DictionaryObject) -> bool:
    """Whether a picture has no mask of any kind, so that nothing below shows through it."""
    masks = (image.get(key) for key in ("/SMask", "/Mask", "/ImageMask", "/IM", "/SMaskInData"))
    return all(
        mask is None or is_null_or_none(mask) or mask.get_object() in (False, 0) for mask in masks
    )


def color_of(operands: Any, inks: bool) -> Color | None:
    try:
        values = [min(1.0, max(0.0, float(value))) for value in operands]
    except (TypeError, ValueError):
        return None  # a pattern
    if inks:
        return None if any(values) else WHITE
    if len(values) == 1:
        return values[0], values[0], values[0]
    if len(values) == 3:
        return values[0], values[1], values[2]
    if len(values) == 4:
        red, green, blue = ((1 - value) * (1 - values[3]) for value in values[:3])
        return red, green, blue
    return None
