"""Segments between lines, or without any -> columns, rows and cells.

In:  segments that may stand in a table.
Out: the columns that white space leaves between them, their base lines, and their rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from atlas.pdf.grids import Row
from atlas.pdf.lines import Cell, Segment, base_lines, joined_lines

Channel = tuple[float, float]
"""Left and right edge of a column, white space on both sides."""


def channels(segments: list[Segment]) -> list[Channel]:
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


def columns_of(segments: Iterable[Segment], columns: list[Channel]) -> set[int]:
    """The places in `columns` at which the segments stand."""
    return {column_of(segment, columns) for segment in segments}


def column_of(segment: Segment, columns: list[Channel]) -> int:
    """The place in `columns` of the one that a segment shares most with."""
    shared = [min(segment.x1, right) - max(segment.x0, left) for left, right in columns]
    return shared.index(max(shared))


def cells_in(band: Iterable[Segment], columns: list[Channel]) -> tuple[Cell, ...]:
    """One row: for each column the text of the segments in it."""
    parts: list[list[Segment]] = [[] for _ in columns]
    for segment in band:
        parts[column_of(segment, columns)].append(segment)
    return tuple(joined_lines(part) for part in parts)


def many_rows(band: list[Segment], surely: bool) -> bool:
    """Whether several rows stand here without lines between them: equal base lines across.

    Wrapped cells make equal base lines as well, but seldom three of them in most columns.
    """
    lines = base_lines(band)
    columns = len(channels(band))
    least = max(2.0, 0.6 * columns) if surely else 2.0
    level = sum(len(line) >= least for line in lines)
    if surely:
        return columns >= 3 and len(lines) >= 3 and level == len(lines)
    return level >= 3 and level >= 0.5 * len(lines)


def rows_by_text(band: Iterable[Segment], columns: list[Channel]) -> list[Row]:
    """Rows without lines between them. A row begins with a first cell, or with most cells."""
    rows: list[list[Segment]] = []
    for line in base_lines(band):
        held = columns_of(line, columns)
        wraps = 0 not in held and (len(held) < 3 or len(held) < 0.7 * len(columns))
        if rows and wraps:
            rows[-1].extend(line)
        else:
            rows.append(line)
    return [(cells_in(row, columns), row) for row in rows]


def goes_on(rows: list[list[Segment]], row: list[Segment]) -> bool:
    """Whether a row has the columns of the rows above it, and is no header of another table."""
    before = channels([segment for other in rows for segment in other])
    columns = channels([segment for other in (*rows, row) for segment in other])
    if len(columns) < 2:
        return False
    if not rows or not row:
        return True
    held = columns_of(row, columns)
    if len(held) > 1 and is_bold(row) and not is_bold(rows[-1]):
        return False
    same = len(columns) >= len(before) and len(held) == len(channels(row))
    return len(rows) < 2 or same


def is_bold(row: list[Segment]) -> bool:
    """Whether all of a row is set in bold letters."""
    return bool(row) and all(segment.bold for segment in row)
