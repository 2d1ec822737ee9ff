"""Lines and tables of a section -> units of text.

In:  lines and tables in reading order, and the words of the document.
Out: paragraphs, list items, captions, code and table rows, each as clean text. A line that fits
     no rule starts a paragraph of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from atlas.pdf.drafts import Draft
from atlas.pdf.lines import Line, Table
from atlas.pdf.paragraphs import Paragraph, Style
from atlas.pdf.table_rows import joined_tables, rows_of
from atlas.pdf.words import Words


def units_of(blocks: Sequence[Line | Table], words: Words, style: Style) -> list[Draft]:
    """The units of one section, hidden ones last. `style` tells how paragraphs are set.

    No unit holds both hidden words and words that are seen.
    """
    by_reason: dict[str, list[Line | Table]] = {"": []}
    for block in blocks:
        by_reason.setdefault(block.hidden if isinstance(block, Line) else "", []).append(block)
    return [
        replace(draft, hidden=reason) if reason else draft
        for reason, alike in by_reason.items()
        for draft in _units_alike(alike, words, style)
    ]


def _units_alike(blocks: Sequence[Line | Table], words: Words, style: Style) -> list[Draft]:
    drafts: list[Draft] = []
    current: Paragraph | None = None
    blocks = joined_tables(blocks)
    for number, block in enumerate(blocks):
        if isinstance(block, Table):
            drafts.extend(current.drafts(words) if current else ())
            current = None
            drafts.extend(rows_of(block, words, number))
        elif current and current.goes_on_with(block, style):
            current.lines.append(block)
        else:
            drafts.extend(current.drafts(words) if current else ())
            current = Paragraph.begun_by(block, current)
    drafts.extend(current.drafts(words) if current else ())
    return drafts
