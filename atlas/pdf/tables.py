"""Ruled lines and segments of a page -> its tables, cell by cell.

In:  a `Page` and its segments; or lines of text in reading order.
Out: tables with whole rows (a wrapped cell is one cell), and the segments that belong to none.
Refused: grids that hold no table: frames around text, charts, pages laid out in boxes.

Three kinds, from the surest to the least sure: cells in a grid of lines; rows between horizontal
lines or colored bands; cells that stand below each other without any line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from atlas.pdf.grids import Grid, Row
from atlas.pdf.lines import Cell, Line, Segment, Table, joined_lines
from atlas.pdf.page import Page
from atlas.pdf.rules import TOUCH, band_edges, stacked, straightened, touching
from atlas.pdf.shapes import WHITE, Area, Box, Color, Rule

_MOST_BAND_LINES = 12
"""A band between two lines with more lines of text than this is no row."""
_MOST_HEADS = 3
_LEADER = re.compile(r"(?:[.·_…]\s?){4,}")
_MARKER = re.compile(r"(?:[•‣◦▪■●○–—*·\-]|\(?\w{1,3}[.)])$")

Channel = tuple[float, float]
"""Left and right edge of a column, white space on both sides."""


def ruled_tables(page: Page, segments: list[Segment]) -> tuple[list[Table], list[Segment]]:
    """Tables drawn with lines or bands, and the segments outside them."""
    horizontals, verticals = straightened(page.rules)
    tables: list[Table] = []
    free, loose = segments, horizontals
    for across, down in touching(horizontals, verticals):
        grid = Grid.of(across, down)
        table, rest = _grid_table(grid, free, page.areas) if grid else (None, free)
        if table:
            tables.append(table)
            free = rest
            loose = [rule for rule in loose if rule not in across]
    for stack in stacked(loose + band_edges(page.areas)):
        table, free = _banded_table(stack, free, page.areas)
        tables.extend([table] if table else [])
    return tables, free


def _grid_table(
    grid: Grid, segments: list[Segment], areas: Sequence[Area]
) -> tuple[Table | None, list[Segment]]:
    found, outside = grid.filled(segments)
    rows: list[Row] = []
    for cells, held in found:
        if _many_rows(held, surely=len(found) > 2):
            rows.extend(_rows_by_text(held, list(pairwise(grid.xs))))
        else:
            rows.append((cells, held))
    if len(rows) < 2 or max(sum(map(bool, cells)) for cells, _ in rows) < 2:
        return None, segments
    if grid.frames_a_picture or grid.mostly_empty(segments):
        return None, segments
    box = (grid.xs[0], grid.ys[-1], grid.xs[-1], grid.ys[0])
    return _table(box, rows, len(grid.xs) - 1, areas, head_rows=grid.head_rows), outside


# ---- rows between horizontal lines or bands -------------------------------------------------


# ---- rows between horizontal lines or bands -------------------------------------------------


def _banded_table(
    rules: list[Rule], segments: list[Segment], areas: Sequence[Area]
) -> tuple[Table | None, list[Segment]]:
    left, right = rules[0].x0 - TOUCH, rules[0].x1 + TOUCH
    bands: list[list[Segment]] = [[] for _ in rules[1:]]
    above: list[Segment] = []
    below: list[Segment] = []
    heights = [-rule.y0 for rule in rules]
    for segment in segments:
        if not (left <= segment.x0 and segment.x1 <= right):
            continue
        place = bisect_right(heights, -segment.middle) - 1
        if 0 <= place < len(bands):
            bands[place].append(segment)
        elif place < 0 and segment.middle - rules[0].y0 < 2 * segment.size:
            above.append(segment)
        elif place >= len(bands) and rules[-1].y0 - segment.middle < 2 * segment.size:
            below.append(segment)
    inside = [segment for band in bands for segment in band]
    columns = _channels(inside)
    if len(columns) < 2:
        return None, segments
    if _fits(above, columns):
        bands.insert(0, above)
    if _fits(below, columns):
        bands.append(below)
    filled = [band for band in bands if band]
    across = sum(len(_columns_of(band, columns)) >= 2 for band in filled)
    tallest = max(len(joined_lines(band)) for band in filled)
    if len(filled) < 2 or across < 0.6 * len(filled) or tallest > _MOST_BAND_LINES:
        return None, segments
    rows: list[Row] = []
    for band in filled:
        if _many_rows(band, surely=len(filled) > 3):
            rows.extend(_rows_by_text(band, columns))
        else:
            rows.append((_cells(band, columns), band))
    used = {id(segment) for _, found in rows for segment in found}
    cells = [segment for _, part in rows for segment in part]
    box = (left, min(s.bottom for s in cells), right, max(s.top for s in cells))
    free = [segment for segment in segments if id(segment) not in used]
    return _table(box, rows, len(columns), areas), free


def _channels(segments: list[Segment]) -> list[Channel]:
    """The columns that the segments stand in: (left, right) with white space between them."""
    if not segments:
        return []
    gap = max(4.0, 0.5 * median(segment.size for segment in segments))
    columns: list[Channel] = []
    for segment in sorted(segments, key=lambda segment: segment.x0):
        if columns and segment.x0 - columns[-1][1] < gap:
            columns[-1] = (columns[-1][0], max(columns[-1][1], segment.x1))
        else:
            columns.append((segment.x0, segment.x1))
    return columns


def _columns_of(segments: Iterable[Segment], columns: list[Channel]) -> set[int]:
    return {_column_of(segment, columns) for segment in segments}


def _column_of(segment: Segment, columns: list[Channel]) -> int:
    shared = [min(segment.x1, right) - max(segment.x0, left) for left, right in columns]
    return shared.index(max(shared))


def _fits(segments: list[Segment], columns: list[Channel]) -> bool:
    """Whether these cells continue a table: two or more, each inside one column's reach."""
    if len(_columns_of(segments, columns)) < 2:
        return False
    return len(_channels(segments)) == len(_columns_of(segments, columns))


def _cells(band: Iterable[Segment], columns: list[Channel]) -> tuple[Cell, ...]:
    parts: list[list[Segment]] = [[] for _ in columns]
    for segment in band:
        parts[_column_of(segment, columns)].append(segment)
    return tuple(joined_lines(part) for part in parts)


def _many_rows(band: list[Segment], surely: bool) -> bool:
    """Whether several rows stand here without lines between them: equal base lines across.

    Wrapped cells make equal base lines as well, but seldom three of them in most columns.
    """
    lines = _base_lines(band)
    columns = len(_channels(band))
    least = max(2.0, 0.6 * columns) if surely else 2.0
    level = sum(len(line) >= least for line in lines)
    if surely:
        return columns >= 3 and len(lines) >= 3 and level == len(lines)
    return level >= 3 and level >= 0.5 * len(lines)


def _base_lines(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Segments on one base line, from the top."""
    lines: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda segment: (-segment.y, segment.x0)):
        if lines and lines[-1][0].y - segment.y <= 0.3 * segment.size:
            lines[-1].append(segment)
        else:
            lines.append([segment])
    return lines


def _rows_by_text(band: Iterable[Segment], columns: list[Channel]) -> list[Row]:
    """Rows without lines between them. A row begins with a first cell, or with most cells."""
    rows: list[list[Segment]] = []
    for line in _base_lines(band):
        held = _columns_of(line, columns)
        wraps = 0 not in held and (len(held) < 3 or len(held) < 0.7 * len(columns))
        if rows and wraps:
            rows[-1].extend(line)
        else:
            rows.append(line)
    return [(_cells(row, columns), row) for row in rows]


# ---- cells without lines --------------------------------------------------------------------


def aligned_tables(lines: list[Line | Table], areas: Sequence[Area]) -> list[Line | Table]:
    """Put lines whose parts stand below each other, three or more in a row, into tables."""
    result: list[Line | Table] = []
    index = 0
    while index < len(lines):
        run = _aligned_run(lines[index:])
        table = _aligned_table(run, areas) if run else None
        if table:
            result.append(table)
            index += len(run)
        else:
            result.append(lines[index])
            index += 1
    return result


def _is_multiple(line: Line) -> bool:
    return (
        len(line.segments) >= 2
        and not _MARKER.match(line.segments[0].text)
        and not _LEADER.search(line.text)
    )


def _aligned_run(lines: Sequence[Line | Table]) -> list[Line]:
    """The lines from the first on that may be one table: parts beside parts, and their wraps."""
    run: list[Line] = []
    for line in lines:
        if isinstance(line, Table):
            break
        if run and (run[-1].y - line.y > 2.6 * line.size or line.y > run[-1].y):
            break
        if _is_multiple(line):
            columns = _channels([s for part in [*run, line] for s in part.segments])
            if len(columns) < 2:
                break
            run.append(line)
        elif run and len(line.segments) == 1:
            columns = _channels([s for part in run for s in part.segments])
            starts = [left for left, _ in columns[1:]]
            wrapped = any(abs(line.x0 - start) < 2 for start in starts)
            if not wrapped or run[-1].y - line.y > 1.5 * line.size:
                break
            run.append(line)
        else:
            break
    return run


def _aligned_table(run: list[Line], areas: Sequence[Area]) -> Table | None:
    segments = [segment for line in run for segment in line.segments]
    columns = _channels(segments)
    multiple = [line for line in run if len(_columns_of(line.segments, columns)) >= 2]
    if len(multiple) < 3 or len(columns) < 2:
        return None
    rows = _rows_by_text(segments, columns)
    firsts = {"".join(cells[0]) for cells, _ in rows}
    listed = len(columns) == 2 and len(firsts) == 1 and len(firsts.pop()) <= 2
    if len(rows) < 3 or listed:
        return None  # too few rows, or a list with a sign of its own
    box = (
        min(s.x0 for s in segments), min(s.bottom for s in segments),
        max(s.x1 for s in segments), max(s.top for s in segments),
    )  # fmt: skip
    return _table(box, rows, len(columns), areas, page=run[0].page)


# ---- header rows ----------------------------------------------------------------------------


def _table(
    box: Box,
    rows: list[Row],
    columns: int,
    areas: Sequence[Area],
    page: int = 0,
    head_rows: int = 0,
) -> Table:
    heads = max(_heads(rows, areas), head_rows if head_rows < len(rows) else 0)
    return Table(
        x0=box[0],
        y0=box[1],
        x1=box[2],
        y1=box[3],
        rows=tuple(cells for cells, _ in rows),
        heads=heads,
        columns=columns,
        size=median(segment.size for _, held in rows for segment in held),
        page=page,
    )


def _heads(rows: list[Row], areas: Sequence[Area]) -> int:
    """How many rows at the top name the columns: told by bold letters, ground, or content."""
    if len(rows) < 2:
        return 0
    bold = [all(segment.bold for segment in held) for _, held in rows]
    if bold[0] and not all(bold):
        return min(_MOST_HEADS, bold.index(False))
    grounds = [_ground(held, areas) for _, held in rows]
    if grounds[0] not in grounds[1:]:
        return 1
    if len(rows) > 2 and grounds[0] == grounds[1] and grounds[0] not in grounds[2:]:
        return 2
    texts = [tuple(" ".join(cell) for cell in cells) for cells, _ in rows]
    return 1 if _names_columns(texts[0], texts[1:]) else 0


def _names_columns(first: tuple[str, ...], others: Iterable[tuple[str, ...]]) -> bool:
    """Whether a row that looks like the others holds names: no value such as theirs."""
    if len(first) < 3 or not all(first):
        return False  # two columns are names and values as often as not
    for other in others:
        for cell, value in zip(first, other, strict=False):
            if re.search(r"\d", cell) and _shape(cell) == _shape(value):
                return False
    return sum(bool(re.search(r"\d", cell)) for cell in first) <= len(first) / 2


def _ground(held: list[Segment], areas: Sequence[Area]) -> Color | None:
    """The color that a row stands on."""
    segment = held[0]
    under = [a for a in areas if a.covers((segment.x0 + segment.x1) / 2, segment.middle)]
    return under[-1].color if under else WHITE


def _shape(text: str) -> str:
    return re.sub(r"[A-Za-z]+", "a", re.sub(r"\d+", "0", text))
