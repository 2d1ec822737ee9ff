"""Lines whose parts stand below each other -> tables without any ruled line.

In:  lines in reading order.
Out: the same with tables in their place. Refused: lists, contents, wide spaces of justified text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from atlas.pdf.cells import Channel, channels, column_of, columns_of, goes_on, rows_by_text
from atlas.pdf.heads import table_of
from atlas.pdf.lines import Line, Segment, Table
from atlas.pdf.shapes import Area

_LEADER = re.compile(r"(?:[.·_…]\s?){4,}")
_MARKER = re.compile(r"(?:[•‣◦▪■●○–—*·\-]|\(?(?:\d{1,2}|[a-zA-Z]|[ivx]{1,4})[.)])$")


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
            if not goes_on([list(part.segments) for part in run], list(line.segments)):
                break
            run.append(line)
        elif run and len(line.segments) == 1:
            columns = channels([s for part in run for s in part.segments])
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
    columns = channels(segments)
    multiple = [line for line in run if len(columns_of(line.segments, columns)) >= 2]
    if len(multiple) < 3 or len(columns) < 2:
        return None
    if not all(
        _stand_below_each_other(segments, column, columns) for column in range(1, len(columns))
    ):
        return None  # wide spaces of justified text
    rows = rows_by_text(segments, columns)
    firsts = {"".join(cells[0]) for cells, _ in rows}
    listed = len(columns) == 2 and len(firsts) == 1 and len(firsts.pop()) <= 2
    if len(rows) < 3 or listed:
        return None  # too few rows, or a list with a sign of its own
    box = (
        min(s.x0 for s in segments), min(s.bottom for s in segments),
        max(s.x1 for s in segments), max(s.top for s in segments),
    )  # fmt: skip
    return table_of(box, rows, len(columns), areas, page=run[0].page)


def _stand_below_each_other(
    segments: Sequence[Segment], column: int, columns: list[Channel]
) -> bool:
    """Whether most cells of a column begin or are centered at one place, or numbers end at one.

    Where words end says nothing: all lines of justified text end at one place.
    """
    cells = [segment for segment in segments if column_of(segment, columns) == column]
    kinds = [[cell.x0 for cell in cells], [(cell.x0 + cell.x1) / 2 for cell in cells]]
    if sum(bool(re.search(r"\d", cell.text)) for cell in cells) >= 0.6 * len(cells):
        kinds.append([cell.x1 for cell in cells])
    for places in kinds:
        together = max(sum(abs(one - other) <= 3 for other in places) for one in places)
        if together >= max(0.6 * len(places), min(3, len(places))):
            return True
    return False
