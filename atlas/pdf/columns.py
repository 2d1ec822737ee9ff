"""Segments and tables of a page -> its lines and tables in reading order.

In:  what stands on a page, in any order.
Out: lines and tables as a person reads them: down each column, with what spans the columns in its
     place. Where the page leaves room for doubt, text is read line by line from the top.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from atlas.pdf.lines import Line, Segment, Table, logical

_COLUMN_LINES = 3
"""A column of running text has at least this many lines."""
_MOST_TRIED = 12
"""Places that are tried as the left edge of a column."""
_COLUMN_WIDTH = 8.0
"""A column of running text is at least this wide, in units of the font size."""
_STRETCHED = 4.0
"""Words of a justified line in a narrow column may be this far apart."""
_SURE_WIDTH = 12.0
"""In a column narrower than this most lines must be full, or they may as well be cells."""

Item = Segment | Table


@dataclass(frozen=True, slots=True)
class _Column:
    items: list[Item]
    left: float
    right: float


def gutter_of(items: Sequence[Item]) -> float | None:
    """Where the page's own text shows white space between two columns of running text."""
    return _gutter([line for item in items for line in _as_lines(item)])


def in_reading_order(
    items: Sequence[Item], page: int, known: Sequence[float] = ()
) -> list[Line | Table]:
    """The lines and tables of a page as they are read.

    `known` are the gutters of the document's other pages: a page with too little text to show
    its columns is read by them.
    """
    if not items:
        return []
    left, right = min(item.x0 for item in items), max(item.x1 for item in items)
    ordered: list[Line | Table] = []
    for column in _columns(list(items), left, right, known):
        ordered.extend(_lines(column, page))
    return ordered


def _columns(
    items: list[Item], left: float, right: float, known: Sequence[float], depth: int = 0
) -> list[_Column]:
    """Cut a region into columns, again and again, until none has a gutter."""
    gutter = gutter_of(items)
    if gutter is None:
        gutter = next((x for x in known if _leaves_free(items, x)), None)
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
            columns.extend(_columns(lefts, left, left_end, known, depth + 1) if lefts else [])
            columns.extend(_columns(rights, right_start, right, known, depth + 1) if rights else [])
        if late or spanning:
            columns.append(_Column(late + spanning, left, right))
    return _merged(columns)


def _leaves_free(items: list[Item], gutter: float) -> bool:
    """Whether nothing crosses a gutter, and the right column begins at it."""
    lefts = [item for item in items if item.x1 <= gutter]
    rights = [item for item in items if item.x0 >= gutter]
    if not lefts or not rights or len(lefts) + len(rights) < len(items):
        return False
    return min(item.x0 for item in rights) - gutter < rights[0].size


def _as_lines(item: Item) -> list[Segment]:
    """What an item contributes to the look of a column: a table fills as many lines as it takes."""
    if isinstance(item, Segment):
        return [item]
    count = max(1, int((item.y1 - item.y0) / (1.2 * item.size)))
    return [
        Segment(text="", x0=item.x0, x1=item.x1, y=item.y1 - at * 1.2 * item.size, size=item.size)
        for at in range(1, count + 1)
    ]


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
    for start in _clusters(inner, 2.0, _COLUMN_LINES)[:_MOST_TRIED]:
        gutter = start - 0.3 * em
        lefts = [s for s in segments if s.x1 <= gutter]
        rights = [s for s in segments if s.x0 >= gutter]
        across = len(segments) - len(lefts) - len(rights)
        score = len(lefts) + len(rights) - 2 * across
        if score <= (best[0] if best else 0):
            continue
        if _are_columns(lefts, rights, em) and _side_by_side(segments, gutter):
            best = (score, gutter)
    return best[1] if best else None


def _are_columns(lefts: list[Segment], rights: list[Segment], em: float) -> bool:
    """Whether both sides are running text, and not the cells of a table.

    Lines of text mostly fill their column. Where fewer do, the sides must ignore each other:
    beside the cells of a table stand other cells, on the same base line.
    """
    full = min(_full_share(lefts, em), _full_share(rights, em))
    alone = min(_alone(lefts, rights), _alone(rights, lefts)) if full else 0.0
    return full >= 0.6 or (full >= 0.35 and alone >= 0.1) or (full >= 0.15 and alone >= 0.25)


def _alone(segments: list[Segment], others: list[Segment]) -> float:
    """The share of segments that stand on no base line of the others."""
    heights = sorted(other.y for other in others)
    alone = 0
    for segment in segments:
        at = bisect_left(heights, segment.y - 1.5)
        alone += at == len(heights) or heights[at] > segment.y + 1.5
    return alone / len(segments)


def _clusters(values: list[float], width: float, least: int) -> list[float]:
    """Where `least` or more sorted values lie within `width`: their first, most frequent first."""
    found: list[tuple[int, float]] = []
    index = 0
    while index < len(values):
        end = bisect_right(values, values[index] + width, index)
        if end - index >= least:
            found.append((end - index, values[index]))
        index = end
    return [start for _, start in sorted(found, reverse=True)]


def _full_share(segments: list[Segment], em: float) -> float:
    """The share of lines that nearly fill their column; 0 where it is too narrow for text.

    Segments count as they are, which is right where a side holds several columns, or put together
    on their base line, which is right where wide spaces have torn the lines of one.
    """
    lines: list[tuple[float, float, float]] = []
    for segment in sorted(segments, key=lambda segment: (-segment.y, segment.x0)):
        left, right, y = lines[-1] if lines else (0.0, 0.0, math.inf)
        if y - segment.y < 0.3 * em and segment.x0 - right < _STRETCHED * em:
            lines[-1] = (left, max(right, segment.x1), y)
        else:
            lines.append((segment.x0, segment.x1, segment.y))
    whole = [right - left for left, right, _ in lines]
    return max(_full(whole, em), _full([s.x1 - s.x0 for s in segments], em))


def _full(widths: list[float], em: float) -> float:
    if len(widths) < _COLUMN_LINES:
        return 0.0
    wide = sorted(widths)[int(0.9 * (len(widths) - 1))]
    share = sum(width >= 0.75 * wide for width in widths) / len(widths)
    if wide < _COLUMN_WIDTH * em or (wide < _SURE_WIDTH * em and share < 0.6):
        return 0.0
    return share


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
    sides = segments[: len(lefts)], segments[len(lefts) :]
    if max(_full_share(side, em) for side in sides) >= 0.35:
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
