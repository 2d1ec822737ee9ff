"""Ruled lines and segments of a page -> its tables, cell by cell.

In:  a `Page` and its segments.
Out: tables with whole rows (a wrapped cell is one cell), and the segments that belong to none.
Refused: grids that hold no table: frames around text, charts, pages laid out in boxes.

Cells in a grid of lines are the surest; rows between horizontal lines or colored bands are less
sure; what stands below each other without any line is left to aligned.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from atlas.pdf.cells import (
    Channel,
    cells_in,
    channels,
    columns_of,
    goes_on,
    is_bold,
    many_rows,
    rows_by_text,
)
from atlas.pdf.grids import Grid, Row
from atlas.pdf.heads import table_of
from atlas.pdf.lines import Segment, Table, base_lines
from atlas.pdf.page import Page
from atlas.pdf.rules import TOUCH, band_edges, stacked, straightened, touching
from atlas.pdf.shapes import Area, Rule

_MOST_BAND_LINES = 12
"""A band between two lines with more lines of text than this is no row."""


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
        if many_rows(held, surely=len(found) > 2):
            rows.extend(rows_by_text(held, list(pairwise(grid.xs))))
        else:
            rows.append((cells, held))
    if len(rows) < 2 or max(sum(map(bool, cells)) for cells, _ in rows) < 2:
        return None, segments
    if grid.frames_a_picture or grid.mostly_empty(segments):
        return None, segments
    box = (grid.xs[0], grid.ys[-1], grid.xs[-1], grid.ys[0])
    return table_of(box, rows, len(grid.xs) - 1, areas, head_rows=grid.head_rows), outside


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
    return _may_be_row(band) and goes_on(rows, band)


def _holds_heading(band: list[Segment]) -> bool:
    """Whether a line of its own stands above the cells: then the band is no first row."""
    lines = base_lines(band)
    return len(lines) > 1 and len(lines[0]) == 1 and len(lines[-1]) > 1 and lines[0][0].bold


def _may_be_row(band: list[Segment]) -> bool:
    """Whether the text between two lines can be one row or several: compact, not too long."""
    lines = base_lines(band)
    steps = [above[0].y - below[0].y for above, below in pairwise(lines)]
    compact = all(step <= 1.9 * band[0].size for step in steps)
    return len(lines) <= _MOST_BAND_LINES and (compact or many_rows(band, surely=False))


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
    columns = channels(inside)
    if len(columns) < 2:
        return None, segments
    above = _closest_row(above)
    headed = _fits(above, columns)
    if headed:
        bands.insert(0, above)
    if len(rules) == 2 and not (headed and is_bold(above)):
        return None, segments  # two lines may be anything, but not below a bold header
    if _fits(below, columns) and not is_bold(below):
        bands.append(below)
    filled = [band for band in bands if band]
    across = sum(len(columns_of(band, columns)) >= 2 for band in filled)
    if len(filled) < 2 or across < 0.6 * len(filled):
        return None, segments
    rows: list[Row] = []
    for band in filled:
        if many_rows(band, surely=len(filled) > 3):
            rows.extend(rows_by_text(band, columns))
        else:
            rows.append((cells_in(band, columns), band))
    used = {id(segment) for _, found in rows for segment in found}
    cells = [segment for _, part in rows for segment in part]
    bottom, top = min(s.bottom for s in cells), max(s.top for s in cells)
    box = (rules[0].x0, bottom, rules[0].x1, top)
    free = [segment for segment in segments if id(segment) not in used]
    return table_of(box, rows, len(columns), areas), free


def _closest_row(above: list[Segment]) -> list[Segment]:
    """Of the text above a line the row that stands on it, with its wrapped cells."""
    kept: list[Segment] = []
    for line in reversed(base_lines(above)):
        if kept and line[0].y - kept[-1].y > 1.35 * line[0].size:
            break
        kept.extend(line)
    return kept


def _fits(segments: list[Segment], columns: list[Channel]) -> bool:
    """Whether these cells continue a table: two or more, each inside one column's reach."""
    if len(columns_of(segments, columns)) < 2:
        return False
    return len(channels(segments)) == len(columns_of(segments, columns))
