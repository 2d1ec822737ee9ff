"""Running headers, footers and page numbers: what stands at the edges of pages without being text.

In:  the segments and ruled tables of every page.
Out: the ids of those that are no text. They are told by what repeats at one place over pages,
     with numbers that stay or that count the pages; from the edge inwards, never below text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from atlas.pdf.lines import Segment, Table
from atlas.pdf.shapes import Rule
from atlas.pdf.words import folded

_EDGE_ZONE = 0.12
"""Running headers and footers stand in this share of the page's height, at top and bottom."""
_WIDE_ZONE = 0.18
"""Lone page numbers, and margins that the file itself marks, may stand as far in as this."""
_LEVEL = 3.0
"""Places on two pages that differ by no more than this, in points, are one place."""
_PAGE_NUMBER = re.compile(
    r"[-–—|\s\[(]*(?P<word>page|seite|pg\.?|p\.|s\.)?\s*(?P<label>\d{1,4}|[ivxlcdm]{1,8})"
    r"(?P<total>\s*(?:of|/|von)\s*\d{1,4})?[-–—|\s\])]*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One page while its margins are looked for. `tables` are those in a grid of lines."""

    number: int
    label: str
    height: float
    segments: tuple[Segment, ...]
    tables: tuple[Table, ...] = ()
    rules: tuple[Rule, ...] = ()
    """The horizontal lines that belong to none of the tables."""


def running_parts(sheets: Sequence[Sheet], titles: Iterable[str]) -> set[int]:
    """The ids of the segments and tables that are no text. `titles` may stand beside them."""
    sizes = [segment.size for sheet in sheets for segment in sheet.segments]
    repeated = _repeated(sheets, median(sizes) if sizes else 10.0)
    repeated |= {id(table) for table in _repeated_tables(sheets)}
    known = {folded(title) for title in titles} - {""}
    # Slides and forms may say the same on every page: what leaves most pages empty is text.
    for candidates in (repeated, set[int]()):
        running = {id(table) for s in sheets for table in s.tables if id(table) in candidates}
        for sheet in sheets:
            running |= _running_on(sheet, candidates, known)
        if 2 * sum(_is_emptied(sheet, running) for sheet in sheets) <= len(sheets):
            return running
    return set()


def _is_emptied(sheet: Sheet, running: set[int]) -> bool:
    items = [*sheet.segments, *sheet.tables]
    return bool(items) and all(id(item) in running for item in items)


def _running_on(sheet: Sheet, repeated: set[int], known: set[str]) -> set[int]:
    running: set[int] = set()
    for rows in _zones(sheet):
        running |= _running_in(rows, sheet, repeated, known)
    for segment in sheet.segments:
        if segment.margin and _edge(segment.middle, sheet.height, _WIDE_ZONE):
            running.add(id(segment))
    return running


def _edge(y: float, height: float, zone: float) -> str:
    if y > (1 - zone) * height:
        return "top"
    return "bottom" if y < zone * height else ""


def _zones(sheet: Sheet) -> list[list[list[Segment]]]:
    """The rows at the top and at the bottom, each from the edge of the page inwards."""
    zones = []
    for edge, outward in (("top", 1), ("bottom", -1)):
        rows: list[list[Segment]] = []
        inside = [s for s in sheet.segments if _edge(s.middle, sheet.height, _WIDE_ZONE) == edge]
        for segment in sorted(inside, key=lambda s: -outward * s.y):
            if rows and abs(rows[-1][0].y - segment.y) <= _LEVEL:
                rows[-1].append(segment)
            else:
                rows.append([segment])
        zones.append(rows)
    return zones


def _running_in(
    rows: list[list[Segment]], sheet: Sheet, repeated: set[int], known: set[str]
) -> set[int]:
    """Go inwards from the edge while rows hold something that repeats or numbers the page.

    Below the first row everything must repeat, close to it: a table on every page may begin with
    one header, and stand right below the running one.
    """
    running: set[int] = set()
    for outer, row in zip([None, *rows], rows, strict=False):
        near = bool(_edge(row[0].middle, sheet.height, _EDGE_ZONE))
        lone = len(row) == 1 and row[0].text.casefold() == sheet.label.casefold()
        found = {id(s) for s in row if id(s) in repeated or _numbers_page(s.text, sheet)}
        if not found or not (near or lone):
            break
        # Beside a running header a chapter's name may stand, which repeats on few pages.
        found |= {id(s) for s in row if folded(s.text) in known}
        if outer and (len(found) < len(row) or abs(outer[0].y - row[0].y) > 2 * row[0].size):
            break
        running |= found
    return running


def _numbers_page(text: str, sheet: Sheet) -> bool:
    match = _PAGE_NUMBER.fullmatch(text.strip())
    if not match:
        return False
    label = match["label"]
    if label.isdigit() and (match["word"] or match["total"]):
        return True
    return label.casefold() in (sheet.label.casefold(), str(sheet.number))


def _repeated(sheets: Sequence[Sheet], body: float) -> set[int]:
    """Segments with equal words at one height on two pages; numbers may count the pages."""
    groups: dict[tuple[str, str], list[tuple[Sheet, Segment]]] = {}
    for sheet in sheets:
        for segment in sheet.segments:
            edge = _edge(segment.middle, sheet.height, _EDGE_ZONE)
            if edge:
                words = _NUMBER.sub("#", segment.text.casefold())
                groups.setdefault((edge, words), []).append((sheet, segment))
    repeated: set[int] = set()
    for group in groups.values():
        for level in _levels(group):
            alike = level if _counts_pages(level) else []
            if level[0][1].size > 1.2 * body or not alike:
                alike = _word_for_word(level)
            if len({sheet.number for sheet, _ in alike}) >= 2:
                repeated.update(id(segment) for _, segment in alike)
    return repeated


def _levels(group: list[tuple[Sheet, Segment]]) -> list[list[tuple[Sheet, Segment]]]:
    """Those of a group that stand at one height."""
    levels: list[list[tuple[Sheet, Segment]]] = []
    for entry in sorted(group, key=lambda entry: entry[1].y):
        if levels and entry[1].y - levels[-1][-1][1].y <= _LEVEL:
            levels[-1].append(entry)
        else:
            levels.append([entry])
    return levels


def _counts_pages(level: list[tuple[Sheet, Segment]]) -> bool:
    """Whether each number in the text is the same on every page or counts the pages."""
    numbers = [[int(n) for n in _NUMBER.findall(segment.text)] for _, segment in level]
    for place in range(len(numbers[0])):
        values = [found[place] for found in numbers]
        pages = [sheet.number for sheet, _ in level]
        offsets = {value - page for value, page in zip(values, pages, strict=True)}
        if len(set(values)) > 1 and len(offsets) > 1:
            return False
    return True


def _word_for_word(level: list[tuple[Sheet, Segment]]) -> list[tuple[Sheet, Segment]]:
    pages: dict[str, set[int]] = {}
    for sheet, segment in level:
        pages.setdefault(segment.text, set()).add(sheet.number)
    return [entry for entry in level if len(pages[entry[1].text]) >= 2]


def _repeated_tables(sheets: Sequence[Sheet]) -> list[Table]:
    """Letterheads and footers drawn as tables, the same on several pages."""
    groups: dict[tuple[str, int], list[tuple[int, Table]]] = {}
    for sheet in sheets:
        for table in sheet.tables:
            at_top = table.y0 > (1 - _WIDE_ZONE) * sheet.height
            if at_top or table.y1 < _WIDE_ZONE * sheet.height:
                words = " ".join(" ".join(cell) for row in table.rows for cell in row)
                key = (_NUMBER.sub("#", words.casefold()), round(table.y1 / 4))
                groups.setdefault(key, []).append((sheet.number, table))
    return [
        table
        for group in groups.values()
        if len({number for number, _ in group}) >= 2
        for _, table in group
    ]
