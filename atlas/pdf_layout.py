"""A PDF page -> its lines and tables in reading order.

In:  a `Page` with its pieces of text, lines and areas.
Out: segments (words of one line without a wide gap), then lines and tables in the order in which
     a person reads them: down each column, with what spans the columns in its place.
Refused: nothing. Where the page leaves room for doubt, text is read line by line from the top.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from atlas.pdf_page import Piece, Rule

_WIDE_GAP = 1.0
"""Two pieces further apart than this, in units of the font size, are two segments."""
_WORD_GAP = 0.12
_COLUMN_LINES = 3
"""A column of running text has at least this many lines."""
_COLUMN_WIDTH = 10.0
"""A column of running text is at least this wide, in units of the font size."""
_STRONG_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LEFT_TO_RIGHT = re.compile(r"[A-Za-z0-9\u00c0-\u024f](?:[^\u0590-\u08ff\ufb1d-\ufefc]*"
                            r"[A-Za-z0-9%\u00c0-\u024f])?")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Words of one line without a wide gap between them."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    bold: bool = False
    fixed: bool = False
    margin: bool = False

    @property
    def top(self) -> float:
        return self.y + 0.8 * self.size

    @property
    def bottom(self) -> float:
        return self.y - 0.2 * self.size

    @property
    def middle(self) -> float:
        return self.y + 0.3 * self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a column. `left` and `right` are the edges of its column."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    bold: bool
    fixed: bool
    left: float
    right: float
    page: int = 0
    """1-based page of the file."""
    segments: tuple[Segment, ...] = ()

    @property
    def top(self) -> float:
        return self.y + 0.8 * self.size


Cell = tuple[str, ...]
"""The lines of a table cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table as rows of cells; its first `heads` rows name the columns."""

    x0: float
    y0: float
    x1: float
    y1: float
    rows: tuple[tuple[Cell, ...], ...]
    heads: int
    columns: int
    size: float
    page: int = 0

    @property
    def top(self) -> float:
        return self.y1

    @property
    def bottom(self) -> float:
        return self.y0


# ---- pieces -> segments ---------------------------------------------------------------------


def segments_of(pieces: Sequence[Piece], rules: Sequence[Rule] = ()) -> list[Segment]:
    """Join pieces that stand on one line, from top to bottom; a vertical rule keeps them apart."""
    verticals = [rule for rule in rules if not rule.horizontal]
    segments = []
    for row in _rows(_settled([piece for piece in pieces if piece.text.strip()])):
        current: list[Piece] = []
        for piece in _without_doubles(row):
            if current and not _joined(current[-1], piece, verticals):
                segments.append(_segment(current))
                current = []
            current.append(piece)
        if current:
            segments.append(_segment(current))
    return segments


def _settled(pieces: list[Piece]) -> list[Piece]:
    """Put superscripts and subscripts on the base line of the word that they stand at."""
    if not pieces:
        return []
    typical = median(piece.size for piece in pieces for _ in piece.text)
    hosts: dict[int, list[Piece]] = {}
    for piece in pieces:
        if piece.size > 0.8 * typical:
            hosts.setdefault(int(piece.y // 10), []).append(piece)
    return [
        _beside_host(piece, hosts)
        if piece.size <= 0.8 * typical and len(piece.text) <= 6
        else piece
        for piece in pieces
    ]


def _beside_host(piece: Piece, hosts: dict[int, list[Piece]]) -> Piece:
    band = int(piece.y // 10)
    for host in (host for near in (band, band - 1, band + 1) for host in hosts.get(near, ())):
        apart = min(abs(piece.x0 - host.x1), abs(host.x0 - piece.x1))
        if apart < 0.3 * host.size and 0.05 < abs(piece.y - host.y) / host.size < 0.6:
            return replace(piece, y=host.y)
    return piece


def _rows(pieces: list[Piece]) -> list[list[Piece]]:
    """Pieces on one base line, rows from top to bottom, each from left to right."""
    rows: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda piece: (-piece.y, piece.x0)):
        if rows and rows[-1][0].y - piece.y <= 0.25 * min(rows[-1][0].size, piece.size):
            rows[-1].append(piece)
        else:
            rows.append([piece])
    return [sorted(row, key=lambda piece: piece.x0) for row in rows]


def _without_doubles(row: list[Piece]) -> list[Piece]:
    """Drop text that was drawn twice, a little beside itself, to look bold."""
    kept: list[Piece] = []
    for piece in row:
        near = min(0.1 * piece.size, 0.5 * (piece.x1 - piece.x0))
        if not any(
            piece.text == other.text and abs(piece.x0 - other.x0) <= near for other in kept[-4:]
        ):
            kept.append(piece)
    return kept


def _joined(left: Piece, right: Piece, verticals: list[Rule]) -> bool:
    gap, em = right.x0 - left.x1, min(left.size, right.size)
    if gap > _WIDE_GAP * em or gap < -0.6 * em:
        return False
    middle = left.y + 0.3 * left.size
    return not any(
        left.x1 - 1 <= rule.x0 <= right.x0 + 1 and rule.y0 <= middle <= rule.y1
        for rule in verticals
    )


def _segment(pieces: list[Piece]) -> Segment:
    text = pieces[0].text
    for left, right in pairwise(pieces):
        space = right.x0 - left.x1 > _WORD_GAP * min(left.size, right.size)
        text += (" " if space else "") + right.text
    letters = sum(len(piece.text) for piece in pieces)
    main = max(pieces, key=lambda piece: len(piece.text))
    return Segment(
        text=text,
        x0=pieces[0].x0,
        x1=max(piece.x1 for piece in pieces),
        y=main.y,
        size=main.size,
        bold=sum(len(piece.text) for piece in pieces if piece.bold) > 0.8 * letters,
        fixed=all(piece.fixed for piece in pieces),
        margin=all(piece.margin for piece in pieces),
    )


# ---- segments and tables -> reading order ---------------------------------------------------

Item = Segment | Table


@dataclass(frozen=True, slots=True)
class _Column:
    items: list[Item]
    left: float
    right: float


def in_reading_order(items: Sequence[Item], page: int) -> list[Line | Table]:
    """The lines and tables of a page as they are read."""
    if not items:
        return []
    left, right = min(item.x0 for item in items), max(item.x1 for item in items)
    ordered: list[Line | Table] = []
    for column in _columns(list(items), left, right, depth=0):
        ordered.extend(_lines(column, page))
    return ordered


def _columns(items: list[Item], left: float, right: float, depth: int) -> list[_Column]:
    """Cut a region into columns, again and again, until none has a gutter."""
    gutter = _gutter([item for item in items if isinstance(item, Segment)])
    if gutter is None or depth > 3:
        return [_Column(items, left, right)]
    columns: list[_Column] = []
    left_end = max((i.x1 for i in items if i.x1 <= gutter), default=left)
    right_start = min((i.x0 for i in items if i.x0 >= gutter), default=gutter)
    for band, spanning in _bands(items, gutter):
        lefts = [item for item in band if item.x1 <= gutter]
        rights = [item for item in band if item.x1 > gutter]
        late = _after_columns(lefts, rights) if spanning else []
        lefts = lefts[: len(lefts) - len(late)]
        if _reads_across(lefts, rights):
            columns.append(_Column(lefts + rights, left, right))
        else:
            columns.extend(_columns(lefts, left, left_end, depth + 1) if lefts else [])
            columns.extend(_columns(rights, right_start, right, depth + 1) if rights else [])
        if late or spanning:
            columns.append(_Column(late + spanning, left, right))
    return _merged(columns)


def _merged(columns: list[_Column]) -> list[_Column]:
    """Full-width lines that follow each other belong to one column."""
    merged: list[_Column] = []
    for column in columns:
        last = merged[-1] if merged else None
        if last and (last.left, last.right) == (column.left, column.right):
            merged[-1] = _Column(last.items + column.items, last.left, last.right)
        else:
            merged.append(column)
    return merged


def _bands(items: list[Item], gutter: float) -> list[tuple[list[Item], list[Item]]]:
    """From the top: items beside the gutter, then the items across it that end them."""
    bands: list[tuple[list[Item], list[Item]]] = []
    beside: list[Item] = []
    across: list[Item] = []
    for item in sorted(items, key=lambda item: -item.top):
        if item.x0 < gutter < item.x1:
            across.append(item)
            continue
        if across:
            bands.append((beside, across))
            beside, across = [], []
        beside.append(item)
    bands.append((beside, across))
    return bands


def _gutter(segments: list[Segment]) -> float | None:
    """The x of the white space between two columns of running text, or None."""
    if len(segments) < 2 * _COLUMN_LINES:
        return None
    em = median(segment.size for segment in segments)
    left, right = min(s.x0 for s in segments), max(s.x1 for s in segments)
    inner = sorted(
        s.x0 for s in segments if left + 0.15 * (right - left) < s.x0 < right - 0.1 * (right - left)
    )
    best: tuple[int, float] | None = None
    for start in _clusters(inner, 2.0, _COLUMN_LINES):
        gutter = start - 0.3 * em
        lefts = [s for s in segments if s.x1 <= gutter]
        rights = [s for s in segments if s.x0 >= gutter]
        across = len(segments) - len(lefts) - len(rights)
        if not (_is_running(lefts, em) and _is_running(rights, em)):
            continue
        if not _side_by_side(segments, gutter):
            continue
        score = len(lefts) + len(rights) - 2 * across
        if score > 0 and (best is None or score > best[0]):
            best = (score, gutter)
    return best[1] if best else None


def _clusters(values: list[float], width: float, least: int) -> list[float]:
    """The first value of each group of `least` or more sorted values within `width`."""
    starts, index = [], 0
    while index < len(values):
        end = index
        while end < len(values) and values[end] - values[index] <= width:
            end += 1
        if end - index >= least:
            starts.append(values[index])
        index = end
    return starts


def _is_running(segments: list[Segment], em: float) -> bool:
    """Whether these are lines of text that mostly fill their column, and no table cells."""
    if len(segments) < _COLUMN_LINES:
        return False
    widths = sorted(segment.x1 - segment.x0 for segment in segments)
    wide = widths[int(0.9 * (len(widths) - 1))]
    full = sum(width >= 0.75 * wide for width in widths)
    return wide >= _COLUMN_WIDTH * em and full >= 0.35 * len(widths)


def _side_by_side(segments: list[Segment], gutter: float) -> bool:
    """Whether some band has a few lines on both sides of the gutter."""
    for band, _ in _bands(list(segments), gutter):
        lefts = [item for item in band if item.x1 <= gutter]
        rights = [item for item in band if item.x0 >= gutter]
        if len(lefts) >= _COLUMN_LINES and len(rights) >= _COLUMN_LINES:
            bottom = max(min(i.bottom for i in lefts), min(i.bottom for i in rights))
            top = min(max(i.top for i in lefts), max(i.top for i in rights))
            if top - bottom > 2 * segments[0].size:
                return True
    return False


def _reads_across(lefts: list[Item], rights: list[Item]) -> bool:
    """Whether a band between the columns' bands is an unruled table: short cells on equal lines."""
    if len(lefts) < 3 or len(rights) < 3:
        return False
    if any(isinstance(item, Table) for item in lefts + rights):
        return False
    segments = [item for item in lefts + rights if isinstance(item, Segment)]
    em = median(segment.size for segment in segments)
    if _is_running(segments[: len(lefts)], em) or _is_running(segments[len(lefts) :], em):
        return False
    heights = [item.top for item in lefts]
    level = sum(any(abs(item.top - height) < 2 for height in heights) for item in rights)
    return level >= 0.8 * len(rights)


def _after_columns(lefts: list[Item], rights: list[Item]) -> list[Item]:
    """A heading at the foot of the left column that belongs to the full-width text below it."""
    if not rights or not lefts:
        return []
    floor = min(item.bottom for item in rights)
    for index, (above, item) in enumerate(pairwise(lefts), start=1):
        if item.top < floor and above.bottom - item.top > 0.5 * item.size:
            return lefts[index:]
    return []


def _lines(column: _Column, page: int) -> list[Line | Table]:
    """Put the segments of each base line together."""
    lines: list[Line | Table] = []
    row: list[Segment] = []
    for item in sorted(column.items, key=lambda item: -item.top):
        if isinstance(item, Table):
            lines.extend(_line(row, column, page) if row else [])
            lines.append(replace(item, page=page))
            row = []
        elif row and abs(row[0].y - item.y) > 0.3 * min(row[0].size, item.size):
            lines.extend(_line(row, column, page))
            row = [item]
        else:
            row.append(item)
    lines.extend(_line(row, column, page) if row else [])
    return lines


def _line(row: list[Segment], column: _Column, page: int) -> list[Line]:
    row = sorted(row, key=lambda segment: segment.x0)
    main = max(row, key=lambda segment: len(segment.text))
    return [
        Line(
            text=logical(" ".join(segment.text for segment in row)),
            x0=row[0].x0,
            x1=max(segment.x1 for segment in row),
            y=main.y,
            size=main.size,
            bold=all(segment.bold for segment in row),
            fixed=all(segment.fixed for segment in row),
            left=column.left,
            right=column.right,
            page=page,
            segments=tuple(row),
        )
    ]


def logical(text: str) -> str:
    """Text as it is read: a line of right-to-left script stands in the file from left to right."""
    if len(_STRONG_RTL.findall(text)) <= len(text) / 3:
        return text
    return _LEFT_TO_RIGHT.sub(lambda match: match[0][::-1], text[::-1])


def joined_lines(segments: Iterable[Segment]) -> Cell:
    """The lines of a cell from its segments."""
    lines: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda segment: (-segment.y, segment.x0)):
        if lines and lines[-1][0].y - segment.y <= 0.3 * segment.size:
            lines[-1].append(segment)
        else:
            lines.append([segment])
    return tuple(
        logical(" ".join(s.text for s in sorted(line, key=lambda s: s.x0))) for line in lines
    )
