"""Lines and tables of a document -> sections: what stands under which bookmark.

In:  the lines and tables of all pages in reading order, and the bookmarks or the page labels.
Out: sections, their headings and the document's title taken out. A heading is found on its page
     by its words; where they are not there, the place that the bookmark points at decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from atlas.pdf.lines import Line, Table
from atlas.pdf.words import folded

_NUMBERING = re.compile(
    r"(?:(?:chapter|section|part|appendix|kapitel|abschnitt|teil)\s+)?"
    r"(?:\d+(?:\.\d+)*|[IVXLC]+|[A-Z])(?:[.):]|(?=\s))\s*",
    re.IGNORECASE,
)
_CONTENTS = {"contents", "tableofcontents", "inhalt", "inhaltsverzeichnis", "sommaire"}
_LEAST_CONTENTS = 3
"""Fewer lines than this make no table of contents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookmark:
    """An outline entry: its path of titles and where it points, None where it does not say."""

    titles: tuple[str, ...]
    page: int
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One section as it stands on the pages."""

    number: int
    titles: tuple[str, ...]
    blocks: tuple[Line | Table, ...]


def parts_by_bookmark(
    blocks: Sequence[Line | Table], bookmarks: Sequence[Bookmark], title: str
) -> list[Part]:
    """Cut the document at its bookmarks; headings and the document's title are taken out."""
    taken = _title_lines(blocks, title)
    starts: list[tuple[int, Bookmark]] = []
    used: set[int] = set()
    for bookmark in bookmarks:
        at, lines = _start(blocks, bookmark, used)
        used.update(range(at, at + lines))
        starts.append((at, bookmark))
    taken |= used
    starts.sort(key=lambda start: start[0])
    cuts = [at for at, _ in starts] + [len(blocks)]
    parts = [_part(0, (), blocks[: cuts[0]], taken, 0)]
    for number, (at, bookmark) in enumerate(starts, start=1):
        parts.append(_part(number, bookmark.titles, blocks[at : cuts[number]], taken, at))
    return parts if parts[0].blocks else parts[1:]


def parts_by_page(blocks: Sequence[Line | Table], labels: Sequence[str], title: str) -> list[Part]:
    """One section for each page with text, numbered and titled as the page is."""
    taken = _title_lines(blocks, title)
    parts = []
    for number, label in enumerate(labels, start=1):
        places = [at for at, block in enumerate(blocks) if block.page == number]
        on_page = tuple(blocks[at] for at in places if at not in taken)
        if on_page:
            parts.append(Part(number=number, titles=(f"Page {label}",), blocks=on_page))
    return parts


def _part(
    number: int,
    titles: tuple[str, ...],
    blocks: Sequence[Line | Table],
    taken: set[int],
    offset: int,
) -> Part:
    kept = tuple(b for at, b in enumerate(blocks, start=offset) if at not in taken)
    return Part(number=number, titles=titles, blocks=kept)


def contents_lines(
    lines: Sequence[Line | Table], titles: Iterable[str], labels: Iterable[str]
) -> set[int]:
    """The ids of the lines of a page's table of contents, which only repeat the bookmarks."""
    known = {folded(title) for title in titles} - {""}
    pages = {label.casefold() for label in labels}
    found = []
    for at, line in enumerate(lines):
        if isinstance(line, Line):
            words, _, page = line.text.rpartition(" ")
            heading = words.rstrip(" .·_…")
            if page.casefold() in pages and ({folded(heading)} | _unnumbered(heading)) & known:
                found.append(at)
    if len(found) < _LEAST_CONTENTS:
        return set()
    above = lines[found[0] - 1] if found[0] else None
    if isinstance(above, Line) and folded(above.text) in _CONTENTS:
        found.append(found[0] - 1)
    return {id(lines[at]) for at in found}


def _title_lines(blocks: Sequence[Line | Table], title: str) -> set[int]:
    """The lines on the first page that are the document's title."""
    wanted = {folded(title)} - {""}
    for at, block in enumerate(blocks[:12]):
        if block.page == blocks[0].page and wanted:
            count = _lines_matching(blocks, at, wanted)
            if 0 < count < len(blocks):
                return set(range(at, at + count))
    return set()


def _start(blocks: Sequence[Line | Table], bookmark: Bookmark, used: set[int]) -> tuple[int, int]:
    """Where a bookmark's section begins, and how many lines its heading takes."""
    title = bookmark.titles[-1]
    exact, loose = {folded(title)} - {""}, _unnumbered(title)
    places = [at for at, block in enumerate(blocks) if block.page == bookmark.page]
    for wanted in (exact, exact | loose):
        found = [
            (at, count)
            for at in places
            if at not in used and (count := _lines_matching(blocks, at, wanted))
        ]
        if found:
            return min(found, key=lambda entry: _distance(blocks[entry[0]], bookmark))
    if not places:
        later = [at for at, block in enumerate(blocks) if block.page > bookmark.page]
        return (later[0] if later else len(blocks)), 0
    if bookmark.y is None:
        return places[0], 0
    below = [at for at in places if blocks[at].top <= bookmark.y + blocks[at].size]
    if not below:
        return places[-1] + 1, 0
    return min(below, key=lambda at: (_distance(blocks[at], bookmark), at)), 0


def _distance(block: Line | Table, bookmark: Bookmark) -> float:
    """How far a block stands from where the bookmark points; bigger letters break a tie."""
    if bookmark.y is None:
        return -block.size
    aside = 0.0
    if bookmark.x is not None and block.x1 < bookmark.x:
        aside = 1_000.0  # in a column to the left
    return abs(bookmark.y - block.top) + aside


def _lines_matching(blocks: Sequence[Line | Table], at: int, wanted: set[str]) -> int:
    """How many lines from here on, up to four, make up a heading; 0 where they do not."""
    text = ""
    for count in range(1, 5):
        if at + count > len(blocks):
            return 0
        block = blocks[at + count - 1]
        if not isinstance(block, Line) or block.page != blocks[at].page:
            return 0
        text += " " + block.text
        if folded(text) in wanted or _unnumbered(text) & wanted:
            return count
        if len(folded(text)) > 4 + max(map(len, wanted), default=0):
            return 0
    return 0


def _unnumbered(text: str) -> set[str]:
    stripped = _NUMBERING.sub("", text.strip(), count=1)
    return {folded(stripped)} - {""}
