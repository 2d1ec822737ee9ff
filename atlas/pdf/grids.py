"""Lines that meet -> a grid of cells with the text in them.

In:  the horizontal and vertical lines of one group, and segments.
Out: rows of cells; cells without a line between them are one cell. A cell over several rows is
     repeated in each of them, so that every row can be read alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from atlas.pdf.lines import Cell, Segment, joined_lines
from atlas.pdf.rules import TOUCH, distinct
from atlas.pdf.shapes import Rule

_MOST_CELLS = 10_000
_MOST_CELL_LINES = 25
"""A cell with more lines than this is a part of the page's layout, not of a table."""
_REPEATED_LETTERS = 100
"""A cell over several rows is repeated in each of them up to this length."""

Row = tuple[tuple[Cell, ...], list[Segment]]
"""The cells of a row, and the segments that they hold."""


@dataclass(slots=True)
class Grid:
    """Edges of columns from the left and of rows from the top, and the lines on them."""

    xs: list[float]
    ys: list[float]
    upright: dict[int, list[Rule]] = field(default_factory=dict)
    level: dict[int, list[Rule]] = field(default_factory=dict)
    regions: list[list[int]] = field(default_factory=list)
    """A number for each cell, by row and column; cells that are one share theirs."""

    @classmethod
    def of(cls, horizontals: Sequence[Rule], verticals: Sequence[Rule]) -> Grid | None:
        """None where the lines frame fewer than two rows or two columns."""
        if len(horizontals) < 2:
            return None
        # A table may leave out its outer lines: then the others tell how far it reaches.
        ends = [min(h.x0 for h in horizontals), max(h.x1 for h in horizontals)]
        tips = [min(v.y0 for v in verticals), max(v.y1 for v in verticals)]
        xs = distinct([*(v.x0 for v in verticals), *ends])
        ys = distinct([*(h.y0 for h in horizontals), *tips])[::-1]
        if len(xs) < 3 or len(ys) < 3 or len(xs) * len(ys) > _MOST_CELLS:
            return None
        grid = cls(xs, ys)
        for rule in verticals:
            grid.upright.setdefault(_place(rule.x0, xs), []).append(rule)
        for rule in horizontals:
            grid.level.setdefault(_place(rule.y0, ys), []).append(rule)
        grid._unite()
        return grid

    def _unite(self) -> None:
        rows, columns = len(self.ys) - 1, len(self.xs) - 1
        numbers = list(range(rows * columns))

        def root(cell: int) -> int:
            while numbers[cell] != cell:
                numbers[cell] = numbers[numbers[cell]]
                cell = numbers[cell]
            return cell

        for row in range(rows):
            for column in range(columns):
                cell = row * columns + column
                if column + 1 < columns and not self._divided_right(row, column):
                    numbers[root(cell + 1)] = root(cell)
                if row + 1 < rows and not self._divided_below(row, column):
                    numbers[root(cell + columns)] = root(cell)
        self.regions = [
            [root(row * columns + column) for column in range(columns)] for row in range(rows)
        ]

    def _divided_right(self, row: int, column: int) -> bool:
        middle = (self.ys[row] + self.ys[row + 1]) / 2
        lines = self.upright.get(column + 1, ())
        return any(line.y0 - 1 <= middle <= line.y1 + 1 for line in lines)

    def _divided_below(self, row: int, column: int) -> bool:
        middle = (self.xs[column] + self.xs[column + 1]) / 2
        lines = self.level.get(row + 1, ())
        return any(line.x0 - 1 <= middle <= line.x1 + 1 for line in lines)

    def region_at(self, x: float, y: float) -> int | None:
        column = bisect_right(self.xs, x) - 1
        row = bisect_right([-edge for edge in self.ys], -y) - 1
        inside = 0 <= column < len(self.xs) - 1 and 0 <= row < len(self.ys) - 1
        return self.regions[row][column] if inside else None

    @property
    def frames_a_picture(self) -> bool:
        """Whether one cell over rows and columns fills most of the grid: a drawing, a layout."""
        whole = (self.xs[-1] - self.xs[0]) * (self.ys[0] - self.ys[-1])
        places: dict[int, list[tuple[int, int]]] = {}
        for row, line in enumerate(self.regions):
            for column, region in enumerate(line):
                places.setdefault(region, []).append((row, column))
        for cells in places.values():
            area = sum(
                (self.xs[column + 1] - self.xs[column]) * (self.ys[row] - self.ys[row + 1])
                for row, column in cells
            )
            wide = len({column for _, column in cells}) > 1
            tall = len({row for row, _ in cells}) > 1
            if wide and tall and area > 0.4 * whole:
                return True
        return False

    def mostly_empty(self, segments: Sequence[Segment]) -> bool:
        """Whether many columns hold nothing: frames around words beside each other."""
        filled = {self.region_at((s.x0 + s.x1) / 2, s.middle) for s in segments}
        columns = list(zip(*self.regions, strict=True))
        return sum(any(r in filled for r in column) for column in columns) < 0.6 * len(columns)

    @property
    def head_rows(self) -> int:
        """Rows of a header on two levels: beside cells over columns stand cells over rows."""
        top = self.regions[0]
        over_columns = any(top.count(region) > 1 for region in top)
        depths = [sum(region in line for line in self.regions) for region in dict.fromkeys(top)]
        return max(depths) if over_columns and 1 < max(depths) <= 3 else 0

    def filled(self, segments: Sequence[Segment]) -> tuple[list[Row], list[Segment]]:
        """The rows with text, and the segments outside the grid."""
        inside: dict[int, list[Segment]] = {}
        outside: list[Segment] = []
        for segment in segments:
            region = self.region_at((segment.x0 + segment.x1) / 2, segment.middle)
            if region is None:
                outside.append(segment)
            else:
                inside.setdefault(region, []).append(segment)
        texts = {region: joined_lines(found) for region, found in inside.items()}
        if max((len(text) for text in texts.values()), default=0) > _MOST_CELL_LINES:
            return [], list(segments)
        rows: list[Row] = []
        seen: set[int] = set()
        for line in self.regions:
            wanted = list(dict.fromkeys(line))
            cells = tuple(
                () if region in seen and _is_long(texts.get(region, ())) else texts.get(region, ())
                for region in wanted
            )
            held = [segment for region in wanted for segment in inside.get(region, ())]
            new = any(region in inside and region not in seen for region in wanted)
            seen.update(wanted)
            if held and new:
                rows.append((cells, held))
        return rows, outside


def _is_long(cell: Cell) -> bool:
    return sum(map(len, cell)) > _REPEATED_LETTERS


def _place(value: float, edges: Sequence[float]) -> int:
    """Which of the edges a line lies on."""
    apart = [abs(value - edge) for edge in edges]
    nearest = min(apart)
    return apart.index(nearest) if nearest <= 2 * TOUCH else -1
