"""Pages as lines and tables -> sections: what belongs under which bookmark.

In:  the segments of each page, then its lines and tables in reading order, and the bookmarks.
Out: segments without running headers, footers and page numbers; sections of lines and tables.
Refused: nothing. A bookmark that points nowhere is left out, and a warning says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from atlas.pdf_layout import Line, Segment, Table
from atlas.pdf_text import folded

_EDGE_ZONE = 0.12
"""Running headers and footers stand in this share of the page's height, at top and bottom."""
_MARKED_ZONE = 0.2
_LEVEL = 3.0
_PAGE_NUMBER = re.compile(
    r"[-–—|\s\[(]*(?P<word>page|seite|pg\.?|p\.|s\.)?\s*(?P<label>\d{1,4}|[ivxlcdm]{1,8})"
    r"(?P<total>\s*(?:of|/|von)\s*\d{1,4})?[-–—|\s\])]*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+")
_NUMBERING = re.compile(
    r"(?:(?:chapter|section|part|appendix|kapitel|abschnitt|teil)\s+)?"
    r"(?:\d+(?:\.\d+)*|[IVXLC]+|[A-Z])(?:[.):]|(?=\s))\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One page while its margins are looked for. `tables` are those drawn with lines."""

    number: int
    label: str
    height: float
    segments: tuple[Segment, ...]
    tables: tuple[Table, ...]


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


# ---- running headers, footers, page numbers -------------------------------------------------


def running_parts(sheets: Sequence[Sheet], titles: Iterable[str]) -> set[int]:
    """The ids of the segments and tables that stand at the edges of pages without being text."""
    sizes = [segment.size for sheet in sheets for segment in sheet.segments]
    body = median(sizes) if sizes else 10.0
    known = {folded(title) for title in titles} - {""}
    repeated = _repeated(sheets, body)
    running = {
        id(table) for table in _repeated_tables(sheets)
    }  # fmt: skip
    for sheet in sheets:
        for zone in _zones(sheet):
            running |= _running_in(zone, sheet, repeated, known)
        for segment in sheet.segments:
            if segment.margin and _edge(segment.middle, sheet.height, _MARKED_ZONE):
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
        inside = [s for s in sheet.segments if _edge(s.middle, sheet.height, _EDGE_ZONE) == edge]
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
    """Go inwards from the edge while rows hold something that repeats or numbers the page."""
    running: set[int] = set()
    for row in rows:
        found = {id(s) for s in row if id(s) in repeated or _numbers_page(s.text, sheet)}
        if not found:
            break
        # Beside a running header a chapter's name may stand, which repeats on few pages.
        found |= {id(s) for s in row if folded(s.text) in known}
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
        offsets = {
            value - sheet.number for value, (sheet, _) in zip(values, level, strict=True)
        }  # fmt: skip
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
            at_top = table.y0 > (1 - _MARKED_ZONE) * sheet.height
            if at_top or table.y1 < _EDGE_ZONE * sheet.height:
                words = " ".join(" ".join(cell) for row in table.rows for cell in row)
                key = (_NUMBER.sub("#", words.casefold()), round(table.y1 / 4))
                groups.setdefault(key, []).append((sheet.number, table))
    return [
        table
        for group in groups.values()
        if len({number for number, _ in group}) >= 2
        for _, table in group
    ]


# ---- sections -------------------------------------------------------------------------------


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


def _title_lines(blocks: Sequence[Line | Table], title: str) -> set[int]:
    """The lines on the first page that are the document's title."""
    wanted = folded(title)
    for at, block in enumerate(blocks[:12]):
        if wanted and isinstance(block, Line) and block.page == blocks[0].page:
            count = _lines_matching(blocks, at, {wanted})
            if count:
                return set(range(at, at + count))
    return set()


def _start(blocks: Sequence[Line | Table], bookmark: Bookmark, used: set[int]) -> tuple[int, int]:
    """Where a bookmark's section begins, and how many lines its heading takes."""
    title = bookmark.titles[-1]
    exact, loose = {folded(title)} - {""}, _without_numbering(title)
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
        if folded(text) in wanted or _without_numbering(text) & wanted:
            return count
        if len(folded(text)) > 4 + max(map(len, wanted), default=0):
            return 0
    return 0


def _without_numbering(text: str) -> set[str]:
    stripped = _NUMBERING.sub("", text.strip(), count=1)
    return {folded(stripped)} - {""}
