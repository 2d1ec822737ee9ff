"""A PDF file -> title, text, sections, page labels and warnings, as plain values.

In:  a path. This runs in the child process, under its limits.
Out: what `Reading` holds, as lists and numbers that JSON can carry.
Refused (`Refused`): a file that needs a password, that is damaged beyond reading, or that has no
text on any page. One bad page costs one page and a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError

from atlas.pdf.columns import gutter_of, in_reading_order
from atlas.pdf.drawing import OverLimit
from atlas.pdf.fonts import FontCache
from atlas.pdf.lines import Line, Segment, Table, segments_of
from atlas.pdf.margins import Sheet, running_parts
from atlas.pdf.page import Page, read_page
from atlas.pdf.sections import Bookmark, Part, contents_lines, parts_by_bookmark, parts_by_page
from atlas.pdf.tables import aligned_tables, banded_tables, grid_tables
from atlas.pdf.units import Draft, Style, units_of
from atlas.pdf.words import Words, clean

_MOST_WARNINGS = 50
_LONGEST_TITLE = 300
_SCAN_SHARE = 0.5
"""A picture over this share of a page is a scan, and hidden text on it the words of the scan."""
_NO_TITLE = re.compile(
    r"untitled.*|unbenannt.*|unknown|title|document\d*|dokument\d*|\(?anonymous\)?|slide \d+"
    r"|powerpoint presentation|microsoft (word|powerpoint|excel) - .*|[\W\d_]*"
    r"|.*\.(pdf|docx?|dot|rtf|odt|tex|dvi|indd|qxd|fm|pptx?|xlsx?|txt|html?|ps|eps|cdr|pub|wpd)",
    re.IGNORECASE,
)
"""Titles that programs put in by themselves: placeholders and file names."""
_PASSWORD = "encrypted: it needs a password; save a copy without one"
_CRYPTOGRAPHY = "encrypted with AES; install the package cryptography, or save a copy without"


class Refused(Exception):
    """The file as a whole cannot be read; the message is the reason."""


def read_document(path: str) -> dict[str, Any]:
    """Everything that a `Reading` of the file holds. Raises `Refused`."""
    document = _Document(_opened(path))
    document.read_pages()
    title = document.title()
    bookmarks = document.bookmarks()
    blocks = document.blocks([title, *(name for mark in bookmarks for name in mark.titles)])
    if bookmarks:
        parts = parts_by_bookmark(blocks, bookmarks, title)
    else:
        parts = parts_by_page(blocks, document.labels, title)
    words, style = Words.of(_printed(blocks)), Style.of(blocks)
    drafts = [(part, units_of(part.blocks, words, style)) for part in parts]
    if not any(units for _, units in drafts):
        raise Refused("no text besides headings and page numbers; remove it or run OCR")
    text, sections = _placed(drafts)
    return {
        "title": title,
        "text": text,
        "sections": sections,
        "page_labels": document.labels,
        "warnings": document.warnings[:_MOST_WARNINGS],
    }


def _opened(path: str) -> PdfReader:
    try:
        reader = PdfReader(path)
        pages = len(reader.pages)
    except MemoryError:
        raise
    except FileNotDecryptedError as error:
        raise Refused(_PASSWORD) from error
    except DependencyError as error:
        raise Refused(_CRYPTOGRAPHY) from error
    except LimitReachedError as error:
        raise Refused(f"over a limit of the reader ({error}); print it to a new PDF") from error
    except Exception as error:
        # A damaged file makes pypdf raise anything.
        what = type(error).__name__
        raise Refused(f"damaged beyond reading ({what}); print it to a new PDF") from error
    if pages == 0:
        raise Refused("damaged beyond reading (no pages); print it to a new PDF")
    return reader


@dataclass(slots=True)
class _Document:
    """A file on its way from pages to lines."""

    reader: PdfReader
    pages: dict[int, Page] = field(default_factory=dict)
    """The pages that can be read, by their number."""
    labels: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    # ---- pages --------------------------------------------------------------------------

    def read_pages(self) -> None:
        """Read all pages, and tell those that are missing. Refused where none has text."""
        fonts = FontCache()
        count = len(self.reader.pages)
        trouble: dict[str, list[int]] = {}
        for number in range(1, count + 1):
            reason = self._read_page(number, fonts)
            if reason:
                trouble.setdefault(reason, []).append(number)
            if number in self.pages:
                self._tell_hidden(number, self.pages[number])
        self.warnings.extend(f"{_numbered(found)}: {why}" for why, found in trouble.items())
        if not any(page.pieces for page in self.pages.values()):
            raise Refused(self._nothing(count, trouble))
        self.labels = self._labels(count)

    def _read_page(self, number: int, fonts: FontCache) -> str:
        """Read one page, and say what is wrong with it."""
        try:
            page = self.pages[number] = read_page(self.reader.pages[number - 1], fonts)
        except MemoryError:
            raise
        except FileNotDecryptedError as error:
            raise Refused(_PASSWORD) from error
        except DependencyError as error:
            raise Refused(_CRYPTOGRAPHY) from error
        except (OverLimit, LimitReachedError):
            return "over the limit of work for one page"
        except Exception as error:
            # Damage shows itself as any error; it must cost no more than the page.
            return f"damaged ({type(error).__name__})"
        if page.damage:
            return f"read in part: {page.damage}"
        if page.pieces:
            return ""
        if page.unreadable:
            return "no text: its fonts do not tell which letters they show; run OCR"
        scanned = page.picture_share >= _SCAN_SHARE
        return "no text, only a picture; run OCR" if scanned else "no text"

    def _nothing(self, count: int, trouble: dict[str, list[int]]) -> str:
        """Why a document without any text is refused."""
        without = f"{count} page{'s' if count > 1 else ''} without text"
        scanned = sum(page.picture_share >= _SCAN_SHARE for page in self.pages.values())
        if scanned and 2 * scanned >= len(self.pages):
            return f"scanned, {without}; run OCR first"
        reasons = "; ".join(f"{_numbered(found)}: {why}" for why, found in trouble.items())
        return f"{without} ({reasons[:200]}); print it to a new PDF or run OCR first"

    def _tell_hidden(self, number: int, page: Page) -> None:
        hidden = page.hidden
        unseen = sum(len(piece.text) for piece in hidden if piece.hidden == "invisible")
        shown = sum(len(piece.text) for piece in page.pieces)
        if page.picture_share >= _SCAN_SHARE and 2 * unseen > shown:
            # The words that a text recognition put under its scan are meant to be found.
            hidden = tuple(piece for piece in hidden if piece.hidden != "invisible")
        if hidden:
            reasons = ", ".join(dict.fromkeys(piece.hidden for piece in hidden))
            words = clean(" ".join(piece.text for piece in hidden))[:60]
            self.warnings.append(f"hidden text on page {number} ({reasons}): «{words}»")

    # ---- lines --------------------------------------------------------------------------

    def blocks(self, titles: Sequence[str]) -> list[Line | Table]:
        """The lines and tables of all pages in reading order, without margins and contents."""
        sheets = [self._sheet(number, page) for number, page in self.pages.items()]
        running = running_parts(sheets, titles)
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

    # ---- what the file says about itself ------------------------------------------------

    def _labels(self, count: int) -> list[str]:
        """The printed page labels, or plain numbers where the file's own cannot be used."""
        try:
            labels = [clean(str(label)) for label in self.reader.page_labels]
        except MemoryError:
            raise
        except Exception:
            labels = []
        if len(labels) != count or not all(labels):
            return [str(number) for number in range(1, count + 1)]
        return labels

    def title(self) -> str:
        """The title in the file's properties, or "" where it says nothing."""
        try:
            metadata = self.reader.metadata
            title = clean(str(metadata.title or "")) if metadata else ""
        except MemoryError:
            raise
        except Exception:
            return ""
        return "" if _NO_TITLE.fullmatch(title) else title[:_LONGEST_TITLE]

    def bookmarks(self) -> list[Bookmark]:
        """The outline in the order of the file, without entries that point nowhere."""
        try:
            outline = self.reader.outline
        except MemoryError:
            raise
        except Exception as error:
            self.warnings.append(f"the bookmarks cannot be read ({type(error).__name__})")
            return []
        return list(self._entries(outline, ()))

    def _entries(self, entries: Iterable[Any], above: tuple[str, ...]) -> Iterator[Bookmark]:
        """pypdf puts the entries below an entry into a list after it."""
        path = above
        for entry in entries:
            if isinstance(entry, list):
                yield from self._entries(entry, path)
                continue
            title = clean(str(entry.title or ""))[:_LONGEST_TITLE]
            path = (*above, title) if title else above
            bookmark = self._bookmark(entry, path) if title else None
            if bookmark:
                yield bookmark
            else:
                self.warnings.append(f"bookmark «{title[:60]}» points nowhere and was left out")

    def _bookmark(self, entry: Any, path: tuple[str, ...]) -> Bookmark | None:
        try:
            index = self.reader.get_destination_page_number(entry)
            left, top = entry.get("/Left"), entry.get("/Top")
        except MemoryError:
            raise
        except Exception:
            return None
        if index is None or not 0 <= index < len(self.reader.pages):
            return None
        page = self.pages.get(index + 1)
        if page is None or not isinstance(top, (int, float)):
            return Bookmark(titles=path, page=index + 1)
        # 0 for the left edge is what programs write that mean the line and not a column.
        left = float(left) if isinstance(left, (int, float)) else 0.0
        x, y = page.place(left, float(top))
        return Bookmark(titles=path, page=index + 1, x=x if left else None, y=y)


def _printed(blocks: Iterable[Line | Table]) -> Iterator[str]:
    """Every line of text, those in cells too."""
    for block in blocks:
        if isinstance(block, Line):
            yield block.text
        else:
            yield from (text for row in block.rows for cell in row for text in cell)


def _placed(drafts: Sequence[tuple[Part, list[Draft]]]) -> tuple[str, list[Any]]:
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
            rows.append([unit.kind, *places[id(unit)], unit.page, header])
            before = unit
        sections.append([part.number, part.titles, rows])
    return text, sections


def _numbered(numbers: Sequence[int]) -> str:
    """Page numbers for a person: "pages 3, 5-9"."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    words = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
    return f"page{'s' if len(numbers) > 1 else ''} {words}"
