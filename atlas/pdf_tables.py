"""Ruled lines and segments of a page -> its tables, cell by cell.

In:  the lines and filled areas of a `Page`, its segments; or lines of text in reading order.
Out: tables with whole rows (a wrapped cell is one cell), and the segments that belong to none.
Refused: grids that hold no table: frames around text, charts, pages laid out in boxes.

Three kinds, from the surest to the least sure: cells in a grid of lines; rows between horizontal
lines or colored bands; cells that stand below each other without any line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from atlas.pdf_layout import Cell, Line, Segment, Table, joined_lines
from atlas.pdf_page import Area, Page, Rule

_TOUCH = 2.5
"""Lines this close, in points, touch; edges this close are one."""
_MOST_RULES = 1_500
_MOST_CELL_LINES = 25
"""A cell with more lines than this is a part of the page's layout, not of a table."""
_LEADER = re.compile(r"(?:[.·_…]\s?){4,}")
_MARKER = re.compile(r"(?:[•‣◦▪■●○–—*·\-\uf0b7\uf0a7]|\(?\w{1,3}[.)])$")


def ruled_tables(page: Page, segments: list[Segment]) -> tuple[list[Table], list[Segment]]:
    """Tables drawn with lines or bands, and the segments outside them."""
    horizontals, verticals = _straightened(page.rules)
    tables: list[Table] = []
    free = segments
    loose = list(horizontals)
    for group in _touching(horizontals, verticals):
        grid = _grid(*group)
        found = _grid_table(grid, free, page.areas) if grid else None
        if found:
            tables.append(found[0])
            free = found[1]
            loose = [rule for rule in loose if rule not in group[0]]
    edges = loose + _band_edges(page.areas)
    for stack in _stacked(edges):
        banded = _banded_table(stack, free, page.areas)
        if banded:
            tables.append(banded[0])
            free = banded[1]
    return tables, free


# ---- lines ----------------------------------------------------------------------------------


def _straightened(rules: Iterable[Rule]) -> tuple[list[Rule], list[Rule]]:
    """Lines drawn in parts put together: the horizontal ones, then the vertical ones."""
    horizontals = _united([(r.y0, r.x0, r.x1) for r in rules if r.horizontal])
    verticals = _united([(r.x0, r.y0, r.y1) for r in rules if not r.horizontal])
    if len(horizontals) + len(verticals) > _MOST_RULES:
        return [], []  # a drawing
    return (
        [Rule(x0=start, y0=at, x1=end, y1=at) for at, start, end in horizontals],
        [Rule(x0=at, y0=start, x1=at, y1=end) for at, start, end in verticals],
    )


def _united(lines: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Join (place, start, end) that lie on one place and overlap or touch."""
    united: list[tuple[float, float, float]] = []
    level: list[tuple[float, float, float]] = []
    for line in [*sorted(lines), None]:
        if line is not None and level and line[0] - level[0][0] <= 1.2:
            level.append(line)
            continue
        place = level[0][0] if level else 0.0
        reach: tuple[float, float] | None = None
        for _, start, end in sorted(level, key=lambda part: part[1]):
            if reach and start <= reach[1] + _TOUCH:
                reach = (reach[0], max(reach[1], end))
            else:
                united.extend([(place, *reach)] if reach else [])
                reach = (start, end)
        united.extend([(place, *reach)] if reach else [])
        level = [line] if line is not None else []
    return united


def _touching(
    horizontals: list[Rule], verticals: list[Rule]
) -> list[tuple[list[Rule], list[Rule]]]:
    """Groups of lines that cross or meet."""
    groups: list[tuple[list[Rule], list[Rule]]] = []
    waiting = list(verticals)
    rest = list(horizontals)
    while waiting:
        across: list[Rule] = []
        down = [waiting.pop()]
        grown = True
        while grown:
            new_across = [h for h in rest if any(_meet(h, v) for v in down)]
            rest = [h for h in rest if h not in new_across] if new_across else rest
            across.extend(new_across)
            new_down = [v for v in waiting if any(_meet(h, v) for h in new_across)]
            waiting = [v for v in waiting if v not in new_down] if new_down else waiting
            down.extend(new_down)
            grown = bool(new_down)
        groups.append((across, down))
    return groups


def _meet(horizontal: Rule, vertical: Rule) -> bool:
    return (
        horizontal.x0 - _TOUCH <= vertical.x0 <= horizontal.x1 + _TOUCH
        and vertical.y0 - _TOUCH <= horizontal.y0 <= vertical.y1 + _TOUCH
    )


def _distinct(values: Iterable[float]) -> list[float]:
    """Sorted values, those closer than a touch being one."""
    distinct: list[float] = []
    for value in sorted(values):
        if not distinct or value - distinct[-1] > _TOUCH:
            distinct.append(value)
    return distinct


# ---- cells in a grid ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Grid:
    """Edges of columns from the left and of rows from the top, and the lines between them."""

    xs: list[float]
    ys: list[float]
    horizontals: list[Rule]
    verticals: list[Rule]

    def divided_right(self, row: int, column: int) -> bool:
        """Whether a line parts this cell from the next one in its row."""
        middle = (self.ys[row] + self.ys[row + 1]) / 2
        edge = self.xs[column + 1]
        return any(
            abs(v.x0 - edge) <= _TOUCH and v.y0 - 1 <= middle <= v.y1 + 1 for v in self.verticals
        )

    def divided_below(self, row: int, column: int) -> bool:
        middle = (self.xs[column] + self.xs[column + 1]) / 2
        edge = self.ys[row + 1]
        return any(
            abs(h.y0 - edge) <= _TOUCH and h.x0 - 1 <= middle <= h.x1 + 1 for h in self.horizontals
        )


def _grid(horizontals: list[Rule], verticals: list[Rule]) -> _Grid | None:
    if len(horizontals) < 2:
        return None
    # A table may leave out its outer lines: then its other lines tell how far it reaches.
    xs = _distinct(
        [v.x0 for v in verticals] + [min(h.x0 for h in horizontals), max(h.x1 for h in horizontals)]
    )
    ys = _distinct(
        [h.y0 for h in horizontals] + [min(v.y0 for v in verticals), max(v.y1 for v in verticals)]
    )
    if len(xs) < 3 or len(ys) < 3 or (len(xs) - 1) * (len(ys) - 1) > 20_000:
        return None
    return _Grid(xs, ys[::-1], horizontals, verticals)


def _grid_table(
    grid: _Grid, segments: list[Segment], areas: Sequence[Area]
) -> tuple[Table, list[Segment]] | None:
    regions = _regions(grid)
    inside: dict[int, list[Segment]] = {}
    outside: list[Segment] = []
    for segment in segments:
        column = bisect_right(grid.xs, (segment.x0 + segment.x1) / 2) - 1
        row = bisect_right([-y for y in grid.ys], -segment.middle) - 1
        if 0 <= column < len(grid.xs) - 1 and 0 <= row < len(grid.ys) - 1:
            inside.setdefault(regions[row][column], []).append(segment)
        else:
            outside.append(segment)
    if not inside:
        return None
    texts = {region: joined_lines(found) for region, found in inside.items()}
    if max(len(text) for text in texts.values()) > _MOST_CELL_LINES:
        return None
    rows: list[tuple[tuple[Cell, ...], list[Segment]]] = []
    for line in regions:
        wanted = list(dict.fromkeys(line))
        cells = tuple(texts.get(region, ()) for region in wanted)
        held = [segment for region in wanted for segment in inside.get(region, ())]
        if len(regions) <= 2 and _many_rows(held):
            rows.extend(_rows_by_text(held, list(pairwise(grid.xs))))
        elif held:
            rows.append((cells, held))
    if len(rows) < 2 or max(sum(map(bool, cells)) for cells, _ in rows) < 2:
        return None
    box = (grid.xs[0], grid.ys[-1], grid.xs[-1], grid.ys[0])
    return _table(box, rows, len(grid.xs) - 1, areas), outside


def _regions(grid: _Grid) -> list[list[int]]:
    """A number for each cell; cells without a line between them share theirs."""
    rows, columns = len(grid.ys) - 1, len(grid.xs) - 1
    numbers = list(range(rows * columns))

    def root(cell: int) -> int:
        while numbers[cell] != cell:
            numbers[cell] = numbers[numbers[cell]]
            cell = numbers[cell]
        return cell

    for row in range(rows):
        for column in range(columns):
            cell = row * columns + column
            if column + 1 < columns and not grid.divided_right(row, column):
                numbers[root(cell + 1)] = root(cell)
            if row + 1 < rows and not grid.divided_below(row, column):
                numbers[root(cell + columns)] = root(cell)
    return [[root(row * columns + column) for column in range(columns)] for row in range(rows)]


# ---- rows between horizontal lines or bands -------------------------------------------------


def _band_edges(areas: Iterable[Area]) -> list[Rule]:
    """The upper and lower edges of colored bands that rows may stand on."""
    edges = []
    for area in areas:
        if not area.picture and area.x1 - area.x0 > 40 and 6 <= area.y1 - area.y0 <= 200:
            edges.append(Rule(x0=area.x0, y0=area.y0, x1=area.x1, y1=area.y0))
            edges.append(Rule(x0=area.x0, y0=area.y1, x1=area.x1, y1=area.y1))
    return _straightened(edges)[0]


def _stacked(rules: list[Rule]) -> list[list[Rule]]:
    """Horizontal lines of one width that stand above each other, three or more, from the top."""
    stacks: list[list[Rule]] = []
    for rule in sorted(rules, key=lambda rule: -rule.y0):
        for stack in stacks:
            if abs(stack[0].x0 - rule.x0) <= 3 and abs(stack[0].x1 - rule.x1) <= 3:
                if stack[-1].y0 - rule.y0 > _TOUCH:
                    stack.append(rule)
                break
        else:
            stacks.append([rule])
    return [stack for stack in stacks if len(stack) >= 3 and stack[0].x1 - stack[0].x0 > 60]


def _banded_table(
    rules: list[Rule], segments: list[Segment], areas: Sequence[Area]
) -> tuple[Table, list[Segment]] | None:
    left, right = rules[0].x0 - _TOUCH, rules[0].x1 + _TOUCH
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
        return None
    if _fits(above, columns):
        bands.insert(0, above)
    if _fits(below, columns):
        bands.append(below)
    filled = [band for band in bands if band]
    across = sum(len(_columns_of(band, columns)) >= 2 for band in filled)
    tallest = max(len(joined_lines(band)) for band in filled)
    if len(filled) < 2 or across < 0.6 * len(filled) or tallest > _MOST_CELL_LINES // 2:
        return None
    rows: list[tuple[tuple[Cell, ...], list[Segment]]] = []
    for band in filled:
        if len(filled) <= 3 and _many_rows(band):
            rows.extend(_rows_by_text(band, columns))
        else:
            rows.append((_cells(band, columns), band))
    used = {id(segment) for _, found in rows for segment in found}
    cells = [segment for _, part in rows for segment in part]
    box = (left, min(s.bottom for s in cells), right, max(s.top for s in cells))
    free = [segment for segment in segments if id(segment) not in used]
    return _table(box, rows, len(columns), areas), free


def _channels(segments: list[Segment]) -> list[tuple[float, float]]:
    """The columns that the segments stand in: (left, right) with white space between them."""
    if not segments:
        return []
    gap = max(4.0, 0.5 * median(segment.size for segment in segments))
    columns: list[tuple[float, float]] = []
    for segment in sorted(segments, key=lambda segment: segment.x0):
        if columns and segment.x0 - columns[-1][1] < gap:
            columns[-1] = (columns[-1][0], max(columns[-1][1], segment.x1))
        else:
            columns.append((segment.x0, segment.x1))
    return columns


def _columns_of(segments: Iterable[Segment], columns: list[tuple[float, float]]) -> set[int]:
    return {_column_of(segment, columns) for segment in segments}


def _column_of(segment: Segment, columns: list[tuple[float, float]]) -> int:
    shared = [min(segment.x1, right) - max(segment.x0, left) for left, right in columns]
    return shared.index(max(shared))


def _fits(segments: list[Segment], columns: list[tuple[float, float]]) -> bool:
    """Whether these cells continue a table: two or more, each inside one column's reach."""
    if len(_columns_of(segments, columns)) < 2:
        return False
    return len(_channels(segments)) == len(_columns_of(segments, columns))


def _cells(band: Iterable[Segment], columns: list[tuple[float, float]]) -> tuple[Cell, ...]:
    parts: list[list[Segment]] = [[] for _ in columns]
    for segment in band:
        parts[_column_of(segment, columns)].append(segment)
    return tuple(joined_lines(part) for part in parts)


def _many_rows(band: list[Segment]) -> bool:
    """Whether several rows stand here without lines between them: equal base lines across."""
    heights: Counter[int] = Counter()
    for segment in band:
        heights[round(segment.y / 2)] += 1
    level = sum(count >= 2 for count in heights.values())
    return level >= 3 and level >= 0.5 * len(heights)


def _rows_by_text(
    band: Iterable[Segment], columns: list[tuple[float, float]]
) -> list[tuple[tuple[Cell, ...], list[Segment]]]:
    """Rows without lines between them. A new row begins where its first cell does."""
    lines: list[list[Segment]] = []
    for segment in sorted(band, key=lambda segment: (-segment.y, segment.x0)):
        if lines and lines[-1][0].y - segment.y <= 0.3 * segment.size:
            lines[-1].append(segment)
        else:
            lines.append([segment])
    rows: list[list[Segment]] = []
    for line in lines:
        if rows and 0 not in _columns_of(line, columns):
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
        if run and (run[-1].y - line.y > 2.2 * line.size or line.y > run[-1].y):
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
    if len(rows) < 3:
        return None
    box = (
        min(s.x0 for s in segments), min(s.bottom for s in segments),
        max(s.x1 for s in segments), max(s.top for s in segments),
    )  # fmt: skip
    return _table(box, rows, len(columns), areas, page=run[0].page)


# ---- header rows ----------------------------------------------------------------------------


def _table(
    box: tuple[float, float, float, float],
    rows: list[tuple[tuple[Cell, ...], list[Segment]]],
    columns: int,
    areas: Sequence[Area],
    page: int = 0,
) -> Table:
    x0, y0, x1, y1 = box
    return Table(
        x0=x0,
        y0=y0,
        x1=x1,
        y1=y1,
        rows=tuple(cells for cells, _ in rows),
        heads=_heads(rows, areas),
        columns=columns,
        size=median(segment.size for _, found in rows for segment in found),
        page=page,
    )


def _heads(rows: list[tuple[tuple[Cell, ...], list[Segment]]], areas: Sequence[Area]) -> int:
    """How many rows at the top name the columns: told by bold letters, ground, or content."""
    bold = [bool(found) and all(segment.bold for segment in found) for _, found in rows]
    grounds = [_ground(found, areas) for _, found in rows]
    if bold[0] and not all(bold):
        return min(3, bold.index(False))
    if len(rows) > 1 and grounds[0] not in grounds[1:]:
        return 1
    if len(rows) > 2 and grounds[0] == grounds[1] and grounds[0] not in grounds[2:]:
        return 2
    texts = [tuple(" ".join(cell) for cell in cells) for cells, _ in rows]
    if len(rows) < 2 or len(texts[0]) < 3 or not all(texts[0]):
        return 0
    for below in texts[1:]:
        for first, other in zip(texts[0], below, strict=False):
            if re.search(r"\d", first) and _shape(first) == _shape(other):
                return 0
    numbers = sum(bool(re.search(r"\d", cell)) for cell in texts[0])
    return 0 if numbers > len(texts[0]) / 2 else 1


def _ground(found: list[Segment], areas: Sequence[Area]) -> tuple[float, ...] | None:
    if not found:
        return None
    segment = found[0]
    under = [a for a in areas if a.covers((segment.x0 + segment.x1) / 2, segment.middle)]
    return under[-1].color if under else (1.0, 1.0, 1.0)


def _shape(text: str) -> str:
    return re.sub(r"[A-Za-z]+", "a", re.sub(r"\d+", "0", text))
