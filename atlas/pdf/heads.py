"""Rows of a table -> the table, and which of its rows name the columns.

In:  rows of cells with their segments, and the colored areas of the page.
Out: a `Table` whose first `heads` rows are header rows: told by bold letters, ground, or content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import median

from atlas.pdf.cells import is_bold
from atlas.pdf.grids import Row
from atlas.pdf.lines import Segment, Table
from atlas.pdf.shapes import WHITE, Area, Box, Color

_MOST_HEADS = 3


def table_of(
    box: Box,
    rows: list[Row],
    columns: int,
    areas: Sequence[Area],
    page: int = 0,
    head_rows: int = 0,
) -> Table:
    """The table in a box, points from the lower left: its header rows are counted here.

    `head_rows` are rows at the top that the lines of a grid set apart.
    """
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
    bold = [is_bold(held) for _, held in rows]
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
