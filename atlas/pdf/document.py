"""A PDF file -> title, text, sections, page labels and warnings, as plain values.

In:  a path. This runs in the child process, under its limits.
Out: what `Reading` holds, as lists and numbers that JSON can carry.
Refused (`Refused`): a file that needs a password, that is damaged beyond reading, or that has no
text on any page. One bad page costs one page and a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pypdf import PdfReader

from atlas.pdf.aligned import aligned_tables
from atlas.pdf.columns import gutter_of, in_reading_order
from atlas.pdf.drafts import Draft
from atlas.pdf.fonts import FontCache
from atlas.pdf.lines import Line, Segment, Table, segments_of
from atlas.pdf.margins import Sheet, running_parts
from atlas.pdf.opening import Refused, claimed_pages, opened, refuse_whole
from atlas.pdf.outline import bookmarks_of, labels_of, title_of
from atlas.pdf.page import Page, read_page
from atlas.pdf.paragraphs import Style
from atlas.pdf.sections import Part, contents_lines, parts_by_bookmark, parts_by_page
from atlas.pdf.tables import banded_tables, grid_tables
from atlas.pdf.units import units_of
from atlas.pdf.verdicts import Verdict, verdict_of, verdict_of_error, warnings_of, why_refused
from atlas.pdf.words import Words, clean

_MOST_WARNINGS = 50

__all__ = ["Refused", "read_document"]

_Drafts = tuple[Part, list[Draft]]
"""A section and its units, before their places in the text are known."""


def read_document(path: str) -> dict[str, Any]:
    """Everything that a `Reading` of the file holds. Raises `Refused`."""
    reader, mended = opened(path)
    document = _Document(reader, mended)
    document.read_pages()
    title = title_of(reader)
    bookmarks = bookmarks_of(reader, document.pages, document.warnings)
    blocks = document.blocks([title, *(name for mark in bookmarks for name in mark.titles)])
    if bookmarks:
        parts = parts_by_bookmark(blocks, bookmarks, title)
    else:
        parts = parts_by_page(blocks, document.labels, title)
    drafts = _drafts(parts, blocks)
    if not any(units for _, units in drafts):
        # Headings, running headers and page numbers are all there is: it may be a short text.
        blocks = document.blocks([], whole=True)
        drafts = _drafts(parts_by_page(blocks, document.labels, ""), blocks)
        if document.mostly_scanned or not _has_words(drafts):
            raise Refused("no text besides headings and page numbers; remove it or run OCR")
    text, sections = _placed(drafts)
    return {
        "title": title,
        "text": text,
        "sections": sections,
        "page_labels": document.labels,
        "warnings": document.told(),
        "page_verdicts": [[verdict.state, verdict.reason] for verdict in document.verdicts],
    }


def _drafts(parts: Sequence[Part], blocks: Sequence[Line | Table]) -> list[_Drafts]:
    seen = [block for block in blocks if isinstance(block, Table) or not block.hidden] or blocks
    words, style = Words.of(_printed(seen)), Style.of(seen)
    return [(part, units_of(part.blocks, words, style)) for part in parts]


def _has_words(drafts: Sequence[_Drafts]) -> bool:
    return any(letter.isalpha() for _, units in drafts for unit in units for letter in unit.text)


@dataclass(slots=True)
class _Document:
    """A file on its way from pages to lines."""

    reader: PdfReader
    mended: str
    """What is wrong with the file as a whole, or ""."""
    pages: dict[int, Page] = field(default_factory=dict)
    """The pages that can be read, by their number."""
    labels: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    """One for each page, in order."""
    warnings: list[str] = field(default_factory=list)

    # ---- pages --------------------------------------------------------------------------

    def read_pages(self) -> None:
        """Read all pages, and tell what is wrong with them. Refused where none has text."""
        fonts = FontCache()
        count = len(self.reader.pages)
        if self.mended:
            self.warnings.append(self.mended)
        claimed = claimed_pages(self.reader)
        if claimed > count:
            self.warnings.append(f"says that it has {claimed:,} pages; {count:,} were found")
        self.verdicts = [self._read_page(number, fonts) for number in range(1, count + 1)]
        for number, page in self.pages.items():
            self._tell_hidden(number, page)
        self.warnings.extend(warnings_of(self.verdicts))
        if not any(page.pieces or page.aside or page.unseen for page in self.pages.values()):
            if self.mended:
                reason = "damaged beyond reading (no text in what could be found)"
                raise Refused(f"{reason}; print it to a new PDF")
            raise Refused(why_refused(self.verdicts, self.pages))
        self.labels = labels_of(self.reader)

    def _read_page(self, number: int, fonts: FontCache) -> Verdict:
        """Read one page, and say what is wrong with it."""
        try:
            page = self.pages[number] = read_page(self.reader.pages[number - 1], fonts)
        except Exception as error:
            refuse_whole(error)
            return verdict_of_error(error)  # it must cost no more than the page
        return verdict_of(page)

    def _tell_hidden(self, number: int, page: Page) -> None:
        if page.unseen:
            reasons = ", ".join(dict.fromkeys(group[0].hidden for group in page.unseen))
            words = clean(" ".join(piece.text for group in page.unseen for piece in group))[:60]
            self.warnings.append(f"hidden text on page {number} ({reasons}): «{words}»")

    @property
    def mostly_scanned(self) -> bool:
        return 2 * sum(page.scanned for page in self.pages.values()) >= len(self.pages)

    def told(self) -> list[str]:
        """The warnings, or the first of very many and how many more there are."""
        more = len(self.warnings) - _MOST_WARNINGS
        if more <= 0:
            return self.warnings
        return [*self.warnings[:_MOST_WARNINGS], f"{more} more warnings about this file"]

    # ---- lines --------------------------------------------------------------------------

    def blocks(self, titles: Sequence[str], whole: bool = False) -> list[Line | Table]:
        """The lines and tables of all pages in reading order.

        Margins and contents are left out, unless `whole` is set.
        """
        sheets = [self._sheet(number, page) for number, page in self.pages.items()]
        running = set() if whole else running_parts(sheets, titles)
        stamps = self._stamps()
        left_over = {sheet.number: self._without(sheet, running) for sheet in sheets}
        gutters = [x for items in left_over.values() if (x := gutter_of(items)) is not None]
        blocks: list[Line | Table] = []
        for number, items in left_over.items():
            page = self.pages[number]
            ordered = in_reading_order(items, number, gutters)
            contents = contents_lines(ordered, titles, self.labels)
            ordered = [line for line in ordered if id(line) not in contents]
            blocks.extend(aligned_tables(ordered, page.areas))
            for group in page.aside:
                if "".join(piece.text for piece in group) not in stamps:
                    blocks.extend(in_reading_order(segments_of(group), number))
            blocks.extend(_unseen_lines(page, number))
        return blocks

    def _without(self, sheet: Sheet, running: set[int]) -> list[Segment | Table]:
        """What is left of a page without its margins, with all tables that have lines."""
        grids = [table for table in sheet.tables if id(table) not in running]
        free = [segment for segment in sheet.segments if id(segment) not in running]
        banded, free = banded_tables(sheet.rules, self.pages[sheet.number].areas, free)
        return [*free, *grids, *banded]

    def _sheet(self, number: int, page: Page) -> Sheet:
        tables, free, rules = grid_tables(page, segments_of(page.pieces, page.rules))
        return Sheet(
            number=number,
            label=self.labels[number - 1],
            height=page.height,
            segments=tuple(free),
            tables=tuple(tables),
            rules=tuple(rules),
        )

    def _stamps(self) -> set[str]:
        """Text beside the direction of the page that is the same on several pages."""
        seen: set[str] = set()
        stamps: set[str] = set()
        for page in self.pages.values():
            texts = {"".join(piece.text for piece in group) for group in page.aside}
            stamps |= texts & seen
            seen |= texts
        return stamps


def _unseen_lines(page: Page, number: int) -> Iterator[Line]:
    """The lines of hidden text, apart from those that a person sees between and beside them."""
    for group in page.unseen:
        for line in in_reading_order(segments_of(group), number):
            if isinstance(line, Line):
                yield replace(line, hidden=group[0].hidden)


def _printed(blocks: Iterable[Line | Table]) -> Iterator[str]:
    """Every line of text, those in cells too."""
    for block in blocks:
        if isinstance(block, Line):
            yield block.text
        else:
            yield from (text for row in block.rows for cell in row for text in cell)


def _placed(drafts: Sequence[_Drafts]) -> tuple[str, list[Any]]:
    """Put the units of all sections one after another; each learns where it stands."""
    text = ""
    sections: list[Any] = []
    for part, units in drafts:
        places: dict[int, tuple[int, int]] = {}
        rows: list[Any] = []
        before: Draft | None = None
        for unit in units:
            close = before is not None and unit.follows(before)
            if text:
                text += "\n" if close else "\n\n"
            places[id(unit)] = (len(text), len(text) + len(unit.text))
            text += unit.text
            header = places[id(unit.header)] if unit.header else None
            rows.append([unit.kind, *places[id(unit)], unit.page, header, unit.hidden])
            before = unit
        sections.append([part.number, part.titles, rows])
    return text, sections
