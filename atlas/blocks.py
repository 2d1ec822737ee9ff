"""Document -> Blocks: whole units, filled into pieces of at most `size` characters.

A piece never crosses a section. A unit longer than a piece is cut at sentence ends, or at white
space where a sentence is still too long. A table that goes on in another piece repeats its header
row there. The result depends on text and settings alone, never on a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from atlas.records import Block, Document, Section, Unit

SPLIT_VERSION = 2
"""Raise it when a text is cut in other places, so that indexes are rebuilt."""

UNLIMITED = 2**31
"""Room for any section."""
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*(?=\s)|[。！？｡][”’」』）)\]]*|(?=\n)")


def split(document: Document, size: int | str = 1000, overlap: int = 0) -> tuple[Block, ...]:
    """Cut a document into blocks of at most `size` characters (titles not counted).

    The size `section` keeps sections whole, `page` cuts them only where a page of the file ends.
    `overlap` repeats up to that many characters of whole units from the piece before; table rows
    are never repeated, since counting them would count them twice.
    """
    room, by_page = (size, False) if isinstance(size, int) else (UNLIMITED, size == "page")
    return tuple(
        block
        for section in document.sections
        for block in _section_blocks(document, section, room, overlap, by_page)
    )


def _section_blocks(
    document: Document, section: Section, size: int, overlap: int, by_page: bool
) -> Iterator[Block]:
    units = [part for unit in section.units for part in _fitting(document.text, unit, size)]
    pieces: list[list[Unit]] = []
    current: list[Unit] = []
    for unit in units:
        turned = by_page and bool(current) and current[-1].page != unit.page
        if turned or (current and _length(document.text, [*current, unit]) > size):
            pieces.append(current)
            current = [] if by_page else _repeated(current, overlap)
            if _length(document.text, [*current, unit]) > size:
                current = []
        current.append(unit)
    if current:
        pieces.append(current)
    for number, piece in enumerate(pieces):
        yield _block(document, section, number, piece)


def _repeated(units: list[Unit], overlap: int) -> list[Unit]:
    kept: list[Unit] = []
    for unit in reversed(units):
        overlap -= unit.end - unit.start
        if overlap < 0 or unit.kind == "row":
            break
        kept.insert(0, unit)
    return kept


def _repeats_header(units: list[Unit]) -> tuple[int, int] | None:
    """The header row to repeat before a piece: that of its first unit, where it is a row."""
    return units[0].header


def _length(text: str, units: list[Unit]) -> int:
    header = _repeats_header(units)
    extra = header[1] - header[0] + 1 if header else 0
    return units[-1].end - units[0].start + extra


def _fitting(text: str, unit: Unit, size: int) -> Iterator[Unit]:
    """The unit itself, or its parts where it is longer than a piece may be."""
    room = size - (unit.header[1] - unit.header[0] + 1 if unit.header else 0)
    if room < size // 4:  # a header that fills the piece is not worth repeating
        unit, room = replace(unit, header=None), size
    start = unit.start
    while unit.end - start > room:
        end = _cut(text, start, start + room)
        yield replace(unit, start=start, end=end)
        start = end
        while start < unit.end and text[start].isspace():
            start += 1
    if start < unit.end:
        yield replace(unit, start=start)


def _cut(text: str, start: int, limit: int) -> int:
    """Where to end a part that may reach `limit`: a sentence end, white space, or the limit."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text, start, limit)]
    if ends and ends[-1] > start + (limit - start) // 4:
        return ends[-1]
    space = max(text.rfind(" ", start + 1, limit), text.rfind("\n", start + 1, limit))
    return space if space > start else limit


def _block(document: Document, section: Section, number: int, units: list[Unit]) -> Block:
    start, end = units[0].start, units[-1].end
    text = document.text[start:end]
    shift = -start
    header = _repeats_header(units)
    own: list[Unit] = []
    if header:
        head = document.text[header[0] : header[1]]
        own.append(Unit(kind="row", start=0, end=len(head), page=units[0].page))
        text = f"{head}\n{text}"
        shift += len(head) + 1
    for unit in units:
        place = unit.header
        if place is not None:
            place = (0, own[0].end) if place == header else (place[0] + shift, place[1] + shift)
        own.append(replace(unit, start=unit.start + shift, end=unit.end + shift, header=place))
    page = units[0].page
    labels = document.page_labels
    return Block(
        document=document.id,
        section=section.number,
        piece=number,
        title=document.title,
        titles=section.titles,
        text=text,
        start=start,
        end=end,
        units=tuple(own),
        page=page,
        page_label=labels[page - 1] if page and page <= len(labels) else None,
        products=document.metadata.products,
    )
