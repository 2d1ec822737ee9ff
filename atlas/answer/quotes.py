"""Block -> the pieces that can be quoted: sentences, list items, table rows, captions.

A quote is verbatim: `block.text[quote.start:quote.end]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from atlas.records import Block, Unit, UnitKind

_ABBREVIATIONS = r"(?<!\b(?:e\.g|i\.e)\.)(?<!\b(?:ca|vs)\.)(?<!\bincl\.)(?<!\bapprox\.)(?!(?<=\bno\.)\s+\d)(?!(?<=\b(?:fig|max|min)\.)\s+\d)"
_END = re.compile(rf"{_ABBREVIATIONS}(?<=[.!?。！？])[\"')\]»”]*\s+(?=[^\s])", re.IGNORECASE)


_FRAGMENT = re.compile(r"(?:,|;|,? (?:or|and))$")

MAX_WHOLE = 700
"""Characters of a block that is quoted whole as instructions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Words of a block that can stand as a source."""

    block: Block
    kind: UnitKind
    start: int
    end: int
    header: str
    """For a table row: the words of its header row."""

    @property
    def text(self) -> str:
        return self.block.text[self.start : self.end]

    @property
    def readable(self) -> str:
        """The quote as a person reads it; a row names the column of each cell."""
        if self.kind != "row" or not self.header:
            return " ".join(self.text.split())
        names = cells_of(self.header)
        cells = cells_of(self.text)
        if len(names) != len(cells):
            return self.text
        pairs = [
            f"{name}: {cell}" if name else cell
            for name, cell in zip(names, cells, strict=True)
            if cell
        ]
        return "; ".join(pairs)


def cells_of(row: str) -> list[str]:
    """The words of a row's cells; empty cells stay."""
    return [cell.strip() for cell in row.split("|")]


def quotes_of(block: Block) -> list[Quote]:
    """Everything quotable of a block in reading order; header rows are no quotes of their own."""
    headers = {unit.header for unit in block.units if unit.header}
    quotes = []
    for unit in block.units:
        if (unit.start, unit.end) in headers or _is_fragment(
            block.text[unit.start : unit.end], unit
        ):
            continue
        header = block.text[slice(*unit.header)] if unit.header else ""
        for start, end in _sentences(block.text, unit.start, unit.end, unit.kind):
            quotes.append(Quote(block=block, kind=unit.kind, start=start, end=end, header=header))
    return quotes


def _is_fragment(text: str, unit: Unit) -> bool:
    """Whether a list item is a part of a sentence that begins before the list."""
    return unit.kind == "item" and bool(_FRAGMENT.search(text))


def instructions_of(block: Block) -> list[Quote]:
    """What a question for steps can quote: a short block whole, since half a procedure is none.

    A long block, and one with a table, gives its single quotes.
    """
    if len(block.text) > MAX_WHOLE or any(unit.kind == "row" for unit in block.units):
        return quotes_of(block)
    return [Quote(block=block, kind="paragraph", start=0, end=len(block.text), header="")]


def _sentences(text: str, start: int, end: int, kind: UnitKind) -> list[tuple[int, int]]:
    if kind in ("row", "code"):
        return [(start, end)]
    spans = []
    first = start
    for match in _END.finditer(text, start, end):
        spans.append((first, match.end() - len(match.group()) + len(match.group().rstrip())))
        first = match.end()
    spans.append((first, end))
    return [(a, b) for a, b in spans if text[a:b].strip()]
