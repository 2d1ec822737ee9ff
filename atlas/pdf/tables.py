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
_MARKER = re.compile(r"(?:[•‣◦▪■●○–—*·\-]|\(?(?:\d{1,2}|[a-zA-Z]|[ivx]{1,4})[.)])$")

Channel = tuple[float, float]
"""Left and right edge of a column, white space on both sides."""


def grid_tables(
    page: Page, segments: list[Segment]
) -> tuple[list[Table], list[Segment], list[Rule]]:
    """Tables in a grid of lines; the segments outside them and the horizontal lines left over."""
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
    return tables, free, loose


def banded_tables(
    rules: Sequence[Rule], areas: Sequence[Area], segments: list[Segment]
) -> tuple[list[Table], list[Segment]]:
    """Tables with horizontal lines or colored bands alone, and the segments outside them."""
    tables: list[Table] = []
    for stack in stacked([*rules, *band_edges(areas)]):
        for lines in _tabular_parts(stack, segments):
            table, segments = _banded_table(lines, segments, areas)
            tables.extend([table] if table else [])
    return tables, segments


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


def _tabular_parts(rules: list[Rule], segments: list[Segment]) -> list[list[Rule]]:
    """Parts of a stack between whose lines stand cells: a page's header line is in none."""
    bands, _, _ = _banded(rules, segments)
    parts: list[list[Rule]] = []
    start = 0
    while start < len(bands):
        end = start
        while end < len(bands) and _may_follow(bands[start:end], bands[end]):
            end += 1
        if end > start:
            parts.append(rules[start : end + 1])
        start = max(end, start + 1)
    return parts


def _may_follow(rows: list[list[Segment]], band: list[Segment]) -> bool:
    if not rows and _holds_heading(band):
        return False
    return _may_be_row(band) and _goes_on(rows, band)


def _holds_heading(band: list[Segment]) -> bool:
    """Whether a line of its own stands above the cells: then the band is no first row."""
    lines = _base_lines(band)
    return len(lines) > 1 and len(lines[0]) == 1 and len(lines[-1]) > 1 and lines[0][0].bold


def _goes_on(rows: list[list[Segment]], row: list[Segment]) -> bool:
    """Whether a row has the columns of the rows above it, and is no header of another table."""
    before = _channels([segment for other in rows for segment in other])
    columns = _channels([segment for other in (*rows, row) for segment in other])
    if len(columns) < 2:
        return False
    if not rows or not row:
        return True
    held = _columns_of(row, columns)
    if len(held) > 1 and _is_bold(row) and not _is_bold(rows[-1]):
        return False
    same = len(columns) >= len(before) and len(held) == len(_channels(row))
    return len(rows) < 2 or same


def _is_bold(row: list[Segment]) -> bool:
    return bool(row) and all(segment.bold for segment in row)


def _may_be_row(band: list[Segment]) -> bool:
    """Whether the text between two lines can be one row or several: compact, not too long."""
    lines = _base_lines(band)
    steps = [above[0].y - below[0].y for above, below in pairwise(lines)]
    compact = all(step <= 1.9 * band[0].size for step in steps)
    return len(lines) <= _MOST_BAND_LINES and (compact or _many_rows(band, surely=False))


def _banded(
    rules: list[Rule], segments: list[Segment]
) -> tuple[list[list[Segment]], list[Segment], list[Segment]]:
    """The segments between each two lines, and those just above and just below all of them."""
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
    return bands, above, below


def _banded_table(
    rules: list[Rule], segments: list[Segment], areas: Sequence[Area]
) -> tuple[Table | None, list[Segment]]:
    bands, above, below = _banded(rules, segments)
    inside = [segment for band in bands for segment in band]
    columns = _channels(inside)
    if len(columns) < 2:
        return None, segments
    above = _closest_row(above)
    headed = _fits(above, columns)
    if headed:
        bands.insert(0, above)
    if len(rules) == 2 and not (headed and _is_bold(above)):
        return None, segments  # two lines may be anything, but not below a bold header
    if _fits(below, columns) and not _is_bold(below):
        bands.append(below)
    filled = [band for band in bands if band]
    across = sum(len(_columns_of(band, columns)) >= 2 for band in filled)
    if len(filled) < 2 or across < 0.6 * len(filled):
        return None, segments
    rows: list[Row] = []
    for band in filled:
        if _many_rows(band, surely=len(filled) > 3):
            rows.extend(_rows_by_text(band, columns))
        else:
            rows.append((_cells(band, columns), band))
    used = {id(segment) for _, found in rows for segment in found}
    cells = [segment for _, part in rows for segment in part]
    bottom, top = min(s.bottom for s in cells), max(s.top for s in cells)
    box = (rules[0].x0, bottom, rules[0].x1, top)
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


def _closest_row(above: list[Segment]) -> list[Segment]:
    """Of the text above a line the row that stands on it, with its wrapped cells."""
    kept: list[Segment] = []
    for line in reversed(_base_lines(above)):
        if kept and line[0].y - kept[-1].y > 1.35 * line[0].size:
            break
        kept.extend(line)
    return kept


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
    """Whether parts of the line may be cells: not an item and its marker, nor words and a page."""
    listed = len(line.segments) == 2 and _MARKER.match(line.segments[0].text)
    return len(line.segments) >= 2 and not listed and not _LEADER.search(line.text)


def _aligned_run(lines: Sequence[Line | Table]) -> list[Line]:
    """The lines from the first on that may be one table: parts beside parts, and their wraps."""
    run: list[Line] = []
    for line in lines:
        if isinstance(line, Table):
            break
        if run and (run[-1].y - line.y > 2.6 * line.size or line.y > run[-1].y):
            break
        if _is_multiple(line):
            if not _goes_on([list(part.segments) for part in run], list(line.segments)):
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
    if not all(
        _stand_below_each_other(segments, column, columns) for column in range(1, len(columns))
    ):
        return None  # wide spaces of justified text
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


def _stand_below_each_other(
    segments: Sequence[Segment], column: int, columns: list[Channel]
) -> bool:
    """Whether most cells of a column begin or are centered at one place, or numbers end at one.

    Where words end says nothing: all lines of justified text end at one place.
    """
    cells = [segment for segment in segments if _column_of(segment, columns) == column]
    kinds = [[cell.x0 for cell in cells], [(cell.x0 + cell.x1) / 2 for cell in cells]]
    if sum(bool(re.search(r"\d", cell.text)) for cell in cells) >= 0.6 * len(cells):
        kinds.append([cell.x1 for cell in cells])
    for places in kinds:
        together = max(sum(abs(one - other) <= 3 for other in places) for one in places)
        if together >= max(0.6 * len(places), min(3, len(places))):
            return True
    return False


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
    bold = [_is_bold(held) for _, held in rows]
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
