"""A PDF file -> Reading, read with pypdf in a process of its own.

In:  the path of a PDF file that may have been made by anybody.
Out: its title, its text in units, its sections (one for each bookmark, or each page where it has
     none), its page labels, and a warning for whatever is missing or looks wrong.
Refused, each with a `DocumentError`: no file, an empty file, no PDF, a PDF that needs a password,
damaged beyond reading, without text on any page (scanned), over the limit of time or memory.

The child process (`python -m atlas.pdf PATH`) prints one JSON document. It is killed at the limit
of time, and its limits of memory and processor time are set before the file is opened. A page that
is damaged or costs too much is left out with a warning; the other pages are read.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from atlas.errors import DocumentError
from atlas.records import Reading, Section, Unit

_HEADER_BYTES = 1_024
"""A PDF says that it is one within this many bytes."""
_MOST_WARNINGS = 50
_SCAN_SHARE = 0.5
"""A picture over this share of a page is a scan, and hidden text on it the words of the scan."""
_NO_TITLE = re.compile(
    r"untitled.*|unbenannt.*|unknown|title|document\d*|dokument\d*|\(?anonymous\)?|slide \d+"
    r"|powerpoint presentation|microsoft (word|powerpoint|excel) - .*|[\W\d_]*"
    r"|.*\.(pdf|docx?|dot|rtf|odt|tex|dvi|indd|qxd|fm|pptx?|xlsx?|txt|html?|ps|eps|cdr|pub|wpd)",
    re.IGNORECASE,
)


def read_pdf(path: Path, *, seconds: float = 20.0, memory_bytes: int = 1_500_000_000) -> Reading:
    """Read a PDF within limits of wall time (`seconds`) and address space (`memory_bytes`)."""
    _refuse_other_files(path)
    limits = [str(seconds), str(memory_bytes)]
    command = [sys.executable, "-P", "-m", "atlas.pdf", str(path.absolute()), *limits]
    # The child finds this very atlas, and nothing that lies in the folder it was started from.
    paths = [str(Path(__file__).absolute().parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as child:
        try:
            output, complaint = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise DocumentError(path, _over_time(seconds)) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    if child.returncode != 0:
        raise DocumentError(path, _ended(child.returncode, complaint, seconds))
    values = json.loads(output)
    if "refused" in values:
        raise DocumentError(path, values["refused"])
    return _reading(values)


def _refuse_other_files(path: Path) -> None:
    if not path.is_file():
        raise DocumentError(path, "there is no such file; expected a PDF file")
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES)
    except OSError as error:
        raise DocumentError(path, f"cannot be opened ({error.strerror})") from error
    if not head:
        raise DocumentError(path, "the file is empty (0 bytes); put the whole PDF in its place")
    if b"%PDF-" not in head:
        start = head[:20].decode("latin-1").encode("ascii", "backslashreplace").decode()
        raise DocumentError(
            path, f"not a PDF: it begins with {start!r} instead of '%PDF-'; convert it or remove it"
        )


def _over_time(seconds: float) -> str:
    return f"took longer than {seconds:g} s to read; split it or print it to a new PDF"


def _over_memory(memory_bytes: int) -> str:
    return f"needs more than {memory_bytes / 1e9:.1f} GB to read; split it or print it to a new PDF"


def _ended(code: int, complaint: bytes, seconds: float) -> str:
    """Why a child that printed no result has ended."""
    if -code in (signal.SIGXCPU, signal.SIGKILL):
        return _over_time(seconds)
    lines = complaint.decode("utf-8", "replace").strip().splitlines() or [f"exit code {code}"]
    return f"the PDF reader stopped ({lines[-1][:200]}); print it to a new PDF and report this"


def _reading(values: dict[str, Any]) -> Reading:
    sections = []
    for number, titles, units in values["sections"]:
        made = [
            Unit(kind=kind, start=start, end=end, page=page, header=header and tuple(header))
            for kind, start, end, page, header in units
        ]
        sections.append(Section(number=number, titles=tuple(titles), units=tuple(made)))
    return Reading(
        title=values["title"],
        text=values["text"],
        sections=tuple(sections),
        page_labels=tuple(values["page_labels"]),
        warnings=tuple(values["warnings"]),
    )


# ---- the child ------------------------------------------------------------------------------


class _RefusedError(Exception):
    """The file as a whole cannot be read; the message is the reason."""


def main(arguments: Sequence[str]) -> None:
    """Read one PDF within limits and print it, or the reason why not, as JSON."""
    path, seconds, memory_bytes = arguments[0], float(arguments[1]), int(arguments[2])
    cpu = math.ceil(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)
    output, sys.stdout = sys.stdout, sys.stderr
    try:
        values = _read(path)
        printed = json.dumps(values)
    except _RefusedError as error:
        printed = json.dumps({"refused": str(error)})
    except MemoryError:
        printed = json.dumps({"refused": _over_memory(memory_bytes)})
    output.write(printed)
    output.flush()


def _read(path: str) -> dict[str, Any]:
    # Imported here: whoever calls read_pdf needs none of it.
    from pypdf import apply_configuration

    from atlas.pdf_page import STEPS_PER_PAGE

    with apply_configuration(
        stream_parsing_work_maximum_count=STEPS_PER_PAGE,
        array_maximum_element_count=STEPS_PER_PAGE,
        disable_legacy_handling=True,
    ):
        return _Document(_opened(path)).values()


def _opened(path: str) -> Any:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError

    try:
        reader = PdfReader(path)
        if len(reader.pages) == 0:
            raise _RefusedError("damaged: it has no pages; print it to a new PDF")
        reader.pages[0]
    except (_RefusedError, MemoryError):
        raise
    except FileNotDecryptedError as error:
        raise _RefusedError("encrypted: it needs a password; save a copy without one") from error
    except DependencyError as error:
        reason = "encrypted with AES; install the package cryptography, or save a copy without"
        raise _RefusedError(reason) from error
    except LimitReachedError as error:
        raise _RefusedError(f"over a limit ({error}); print it to a new PDF") from error
    except Exception as error:
        what = type(error).__name__
        raise _RefusedError(f"damaged beyond reading ({what}); print it to a new PDF") from error
    return reader


@dataclass(slots=True)
class _Document:
    """One PDF on its way from pages to sections."""

    reader: Any
    warnings: list[str] = field(default_factory=list)

    def values(self) -> dict[str, Any]:
        """The Reading as plain values."""
        from atlas.pdf_layout import Line, in_reading_order
        from atlas.pdf_sections import parts_by_bookmark, parts_by_page, running_parts
        from atlas.pdf_tables import aligned_tables
        from atlas.pdf_text import Words, units_of, usual_leading

        count = len(self.reader.pages)
        labels = self._labels(count)
        pages = self._pages(count)
        title = self._title()
        bookmarks = self._bookmarks(pages)
        sheets = self._sheets(pages, labels)
        headings = [title, *(title for bookmark in bookmarks for title in bookmark.titles)]
        running = running_parts(list(sheets.values()), headings)
        blocks: list[Any] = []
        for number, sheet in sheets.items():
            items = [i for i in (*sheet.segments, *sheet.tables) if id(i) not in running]
            ordered = in_reading_order(items, number)
            blocks.extend(aligned_tables(ordered, pages[number].areas))
            blocks.extend(self._aside(pages, number))
        if bookmarks:
            parts = parts_by_bookmark(blocks, bookmarks, title)
        else:
            parts = parts_by_page(blocks, labels, title)
        lines = [block.text for block in blocks if isinstance(block, Line)]
        cells = [
            text
            for block in blocks if not isinstance(block, Line)
            for row in block.rows for cell in row for text in cell
        ]  # fmt: skip
        words, leading = Words.of([*lines, *cells]), usual_leading(blocks)
        drafts = [(part, units_of(part.blocks, words, leading)) for part in parts]
        text, sections = _text(drafts)
        return {
            "title": title,
            "text": text,
            "sections": sections,
            "page_labels": labels,
            "warnings": self.warnings[:_MOST_WARNINGS],
        }

    def _pages(self, count: int) -> dict[int, Any]:
        """The pages that can be read, by number. Refused where none has text."""
        from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError

        from atlas.pdf_page import FontCache, OverLimit, read_page

        fonts = FontCache()
        pages: dict[int, Any] = {}
        missing: dict[str, list[int]] = {}
        for number in range(1, count + 1):
            try:
                page = read_page(self.reader.pages[number - 1], fonts)
            except FileNotDecryptedError as error:
                reason = "encrypted: it needs a password; save a copy without one"
                raise _RefusedError(reason) from error
            except DependencyError as error:
                reason = "encrypted with AES; install the package cryptography"
                raise _RefusedError(f"{reason}, or save a copy without encryption") from error
            except (OverLimit, LimitReachedError):
                missing.setdefault("over the limit of work for a page", []).append(number)
            except MemoryError:
                raise
            except Exception as error:
                missing.setdefault(f"damaged ({type(error).__name__})", []).append(number)
            else:
                pages[number] = page
                if page.damage:
                    missing.setdefault(f"read in part: {page.damage}", []).append(number)
                if not page.pieces:
                    missing.setdefault(_no_text(page), []).append(number)
                self._tell_hidden(number, page)
        for reason, numbers in missing.items():
            self.warnings.append(f"{_numbered(numbers)}: {reason}")
        if not any(page.pieces for page in pages.values()):
            raise _RefusedError(_nothing(count, pages, missing))
        return pages

    def _tell_hidden(self, number: int, page: Any) -> None:
        """Warn of text that a reader of the page does not see."""
        hidden = [p for p in page.pieces if p.hidden] + [
            piece for group in page.aside for piece in group if piece.hidden
        ]
        unseen = sum(len(piece.text) for piece in hidden if piece.hidden == "invisible")
        if unseen > 0.5 * sum(len(piece.text) for piece in page.pieces) and (
            page.picture_share >= _SCAN_SHARE
        ):
            # The words that a text recognition has put under its scan are meant to be found.
            hidden = [piece for piece in hidden if piece.hidden != "invisible"]
        if hidden:
            from atlas.pdf_text import clean

            reasons = ", ".join(dict.fromkeys(piece.hidden for piece in hidden))
            words = clean(" ".join(piece.text for piece in hidden))[:60]
            self.warnings.append(f"hidden text on page {number} ({reasons}): «{words}»")

    def _sheets(self, pages: dict[int, Any], labels: list[str]) -> dict[int, Any]:
        from atlas.pdf_layout import segments_of
        from atlas.pdf_sections import Sheet
        from atlas.pdf_tables import ruled_tables
        from atlas.pdf_text import clean

        sheets = {}
        for number, page in pages.items():
            found = (replace(s, text=clean(s.text)) for s in segments_of(page.pieces, page.rules))
            tables, free = ruled_tables(page, [segment for segment in found if segment.text])
            sheets[number] = Sheet(
                number=number,
                label=labels[number - 1],
                height=page.height,
                segments=tuple(free),
                tables=tuple(tables),
            )
        return sheets

    def _aside(self, pages: dict[int, Any], number: int) -> Iterator[Any]:
        """Text in another direction, after the page's own; a stamp across all pages is dropped."""
        from atlas.pdf_layout import in_reading_order, segments_of
        from atlas.pdf_text import clean

        for group in pages[number].aside:
            text = "".join(piece.text for piece in group)
            stamped = sum(
                text == "".join(piece.text for piece in other)
                for page in pages.values() for other in page.aside
            )  # fmt: skip
            if stamped >= 2:
                continue
            found = (replace(s, text=clean(s.text)) for s in segments_of(group))
            yield from in_reading_order([segment for segment in found if segment.text], number)

    def _labels(self, count: int) -> list[str]:
        from atlas.pdf_text import clean

        try:
            labels = [clean(str(label)) for label in self.reader.page_labels]
        except MemoryError:
            raise
        except Exception:
            labels = []
        if len(labels) != count or not all(labels):
            labels = [str(number) for number in range(1, count + 1)]
        return labels

    def _title(self) -> str:
        """The title in the file's properties, or "" where it says nothing."""
        from atlas.pdf_text import clean

        try:
            title = clean(str(self.reader.metadata.title or ""))
        except MemoryError:
            raise
        except Exception:
            return ""
        return "" if _NO_TITLE.fullmatch(title) else title[:300]

    def _bookmarks(self, pages: dict[int, Any]) -> list[Any]:
        try:
            outline = self.reader.outline
        except MemoryError:
            raise
        except Exception as error:
            self.warnings.append(f"the bookmarks cannot be read ({type(error).__name__})")
            return []
        return list(self._entries(outline, (), pages))

    def _entries(
        self, entries: Iterable[Any], above: tuple[str, ...], pages: dict[int, Any]
    ) -> Iterator[Any]:
        """Bookmarks with their path; pypdf nests the entries below one in a list after it."""
        path = above
        for entry in entries:
            if isinstance(entry, list):
                yield from self._entries(entry, path, pages)
                continue
            from atlas.pdf_text import clean

            title = clean(str(entry.title or ""))[:300]
            path = (*above, title) if title else above
            bookmark = self._bookmark(entry, path, pages) if title else None
            if bookmark:
                yield bookmark
            else:
                self.warnings.append(f"bookmark «{title[:60]}» points nowhere and was left out")

    def _bookmark(self, entry: Any, path: tuple[str, ...], pages: dict[int, Any]) -> Any:
        from atlas.pdf_sections import Bookmark

        try:
            index = self.reader.get_destination_page_number(entry)
            left, top = entry.get("/Left"), entry.get("/Top")
            x = float(left) if isinstance(left, (int, float)) else None
            y = float(top) if isinstance(top, (int, float)) else None
        except MemoryError:
            raise
        except Exception:
            return None
        if index is None or not 0 <= index < len(self.reader.pages):
            return None
        if index + 1 not in pages or y is None:
            return Bookmark(titles=path, page=index + 1)
        place = pages[index + 1].place(x or 0.0, y)
        return Bookmark(titles=path, page=index + 1, x=place[0] if x else None, y=place[1])


def _text(drafts: Sequence[tuple[Any, list[Any]]]) -> tuple[str, list[Any]]:
    """Put units one after another; each knows where it stands."""
    text: list[str] = []
    length = 0
    before: Any = None
    sections = []
    for part, units in drafts:
        placed: dict[int, tuple[int, int]] = {}
        rows = []
        for unit in units:
            if before is not None:
                close = unit.kind == before.kind and unit.kind in ("item", "row")
                close = close and unit.table == before.table and before in units
                text.append("\n" if close else "\n\n")
                length += len(text[-1])
            placed[id(unit)] = (length, length + len(unit.text))
            text.append(unit.text)
            length += len(unit.text)
            header = placed[id(unit.header)] if unit.header else None
            rows.append([unit.kind, *placed[id(unit)], unit.page, header])
            before = unit
        sections.append([part.number, part.titles, rows])
    return "".join(text), sections


def _no_text(page: Any) -> str:
    if page.unreadable:
        return "no text: its fonts do not say which letters they show; run OCR"
    if page.picture_share >= _SCAN_SHARE:
        return "no text, only a picture; run OCR"
    return "no text"


def _nothing(count: int, pages: dict[int, Any], missing: dict[str, list[int]]) -> str:
    """Why a document without any text is refused."""
    without = f"{count} page{'s' if count > 1 else ''} without text"
    pictures = sum(page.picture_share >= _SCAN_SHARE for page in pages.values())
    if pictures and pictures >= len(pages) / 2:
        return f"scanned, {without}; run OCR first"
    reasons = "; ".join(f"{_numbered(numbers)}: {reason}" for reason, numbers in missing.items())
    return f"{without} ({reasons[:200]}); run OCR or print it to a new PDF"


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


if __name__ == "__main__":
    main(sys.argv[1:])
