"""Tables of a section -> units, one a row.

In:  tables among lines, in reading order. A table that goes on over pages is put together first.
Out: the row drafts of a table, each with its header row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from atlas.pdf.drafts import Draft
from atlas.pdf.lines import Cell, Line, Table
from atlas.pdf.words import CAPTION, Words, clean, folded


def rows_of(table: _PagedTable | Table, words: Words, number: int) -> list[Draft]:
    """One draft a row, the header row first; `number` tells the table from its neighbours."""
    pages = table.pages if isinstance(table, _PagedTable) else (table.page,) * len(table.rows)
    texts = [[clean(words.join(cell)) for cell in cells] for cells in table.rows]
    header: Draft | None = None
    drafts: list[Draft] = []
    if table.heads:
        # Several header rows become one: what stands above a column comes first.
        columns = max(len(row) for row in texts)
        stacked = [
            " ".join(dict.fromkeys(row[at] for row in texts[: table.heads] if row[at : at + 1]))
            for at in range(columns)
        ]
        text = _row_text(texts[0] if table.heads == 1 else stacked)
        header = Draft("row", text, pages[0], table=number)
        drafts.append(header)
    for row, page in list(zip(texts, pages, strict=True))[table.heads :]:
        if any(row):
            drafts.append(Draft("row", _row_text(row), page, header, number))
    return drafts


def _row_text(cells: list[str]) -> str:
    return " ".join(" | ".join(cells).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class _PagedTable(Table):
    """A table that may go on over pages: the page of each row."""

    pages: tuple[int, ...]


def joined_tables(blocks: Sequence[Line | Table]) -> list[Line | Table]:
    """Put the parts of a table that goes on over a page or column back together."""
    joined: list[Line | Table] = []
    for block in blocks:
        if not isinstance(block, Table):
            joined.append(block)
            continue
        last = joined[-1] if joined else None
        if isinstance(last, Line) and len(joined) > 1 and _is_continued(last, joined[:-1]):
            joined.pop()
            last = joined[-1]
        merged = _continued(last, block) if isinstance(last, _PagedTable) else None
        if merged:
            joined[-1] = merged
        else:
            joined.append(_paged(block))
    return joined


def _paged(table: Table) -> _PagedTable:
    values = {name: getattr(table, name) for name in Table.__slots__}
    return _PagedTable(**values, pages=(table.page,) * len(table.rows))


def _is_continued(line: Line, before: Sequence[Line | Table]) -> bool:
    """Whether a line is the caption of a table's part on the next page."""
    if not isinstance(before[-1], Table):
        return False
    captions = {folded(block.text) for block in before if isinstance(block, Line)}
    said = re.search(r"\b(continued|cont\.|fortsetzung)", line.text, re.IGNORECASE)
    return bool(CAPTION.match(line.text)) and (bool(said) or folded(line.text) in captions)


def _continued(first: _PagedTable, second: Table) -> _PagedTable | None:
    below = first.page == second.page and second.y1 <= first.y0
    if first.columns != second.columns or abs(first.x1 - first.x0 - second.x1 + second.x0) > 4:
        return None
    heads = first.rows[: first.heads]
    repeated = bool(heads) and _same_cells(second.rows[: len(heads)], heads)
    if (below or second.heads) and not repeated:
        return None
    rows = second.rows[len(heads) :] if repeated else second.rows
    kept, pages = first.rows, first.pages
    if rows and not below and _is_rest(rows[0], kept):
        # A row that was cut by the page's end: its first cell stands on the page before.
        whole = tuple(a + b for a, b in zip(kept[-1], rows[0], strict=True))
        kept, rows = (*kept[:-1], whole), rows[1:]
    return replace(
        first, rows=kept + rows, pages=pages + (second.page,) * len(rows), page=second.page,
        y0=second.y0, y1=second.y1,
    )  # fmt: skip


def _is_rest(row: tuple[Cell, ...], before: Sequence[tuple[Cell, ...]]) -> bool:
    """Whether a row lacks the first cell that all rows before it have."""
    return not any(row[0]) and len(row) == len(before[-1]) and all(any(r[0]) for r in before)


def _same_cells(first: Sequence[Sequence[Cell]], second: Sequence[Sequence[Cell]]) -> bool:
    def key(rows: Sequence[Sequence[Cell]]) -> list[list[str]]:
        return [[folded("".join(cell)) for cell in row] for row in rows]

    return key(first) == key(second)
