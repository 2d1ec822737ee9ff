"""What a PDF says about itself -> its title, page labels and bookmarks.

In:  pypdf's reader, and the pages that could be read.
Out: plain values; "" or plain numbers where the file says nothing that can be used, and a warning
     for bookmarks that are lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pypdf import PdfReader

from atlas.pdf.page import Page
from atlas.pdf.sections import Bookmark
from atlas.pdf.words import clean

_LONGEST_TITLE = 300
_NO_TITLE = re.compile(
    r"untitled.*|unbenannt.*|unknown|title|document\d*|dokument\d*|\(?anonymous\)?|slide \d+"
    r"|powerpoint presentation|microsoft (word|powerpoint|excel) - .*|[\W\d_]*"
    r"|.*\.(pdf|docx?|dot|rtf|odt|tex|dvi|indd|qxd|fm|pptx?|xlsx?|txt|html?|ps|eps|cdr|pub|wpd)",
    re.IGNORECASE,
)
"""Titles that programs put in by themselves: placeholders and file names."""


def title_of(reader: PdfReader) -> str:
    """The title in the file's properties, or "" where it says nothing."""
    try:
        metadata = reader.metadata
        title = clean(str(metadata.title or "")) if metadata else ""
    except MemoryError:
        raise
    except Exception:
        return ""
    return "" if _NO_TITLE.fullmatch(title) else title[:_LONGEST_TITLE]


def labels_of(reader: PdfReader) -> list[str]:
    """The printed page labels, or plain numbers where the file's own cannot be used."""
    count = len(reader.pages)
    try:
        labels = [clean(str(label)) for label in reader.page_labels]
    except MemoryError:
        raise
    except Exception:
        labels = []
    if len(labels) != count or not all(labels):
        return [str(number) for number in range(1, count + 1)]
    return labels


def bookmarks_of(
    reader: PdfReader, pages: Mapping[int, Page], warnings: list[str]
) -> list[Bookmark]:
    """The outline in the order of the file. Entries that point nowhere are told in `warnings`."""
    try:
        outline = reader.outline
    except MemoryError:
        raise
    except Exception as error:
        warnings.append(f"the bookmarks cannot be read ({type(error).__name__})")
        return []
    lost: list[str] = []
    found = list(_entries(outline, (), reader, pages, lost))
    if len(lost) == 1:
        warnings.append(f"the bookmark «{lost[0]}» points nowhere and was left out")
    elif lost:
        first = f"the first: «{lost[0]}»"
        warnings.append(f"{len(lost)} bookmarks point nowhere and were left out ({first})")
    return found


def _entries(
    entries: Iterable[Any],
    above: tuple[str, ...],
    reader: PdfReader,
    pages: Mapping[int, Page],
    lost: list[str],
) -> Iterator[Bookmark]:
    """pypdf puts the entries below an entry into a list after it."""
    path = above
    for entry in entries:
        if isinstance(entry, list):
            yield from _entries(entry, path, reader, pages, lost)
            continue
        title = clean(str(entry.title or ""))[:_LONGEST_TITLE]
        path = (*above, title) if title else above
        bookmark = _bookmark(entry, path, reader, pages) if title else None
        if bookmark:
            yield bookmark
        else:
            lost.append(title[:60])


def _bookmark(
    entry: Any, path: tuple[str, ...], reader: PdfReader, pages: Mapping[int, Page]
) -> Bookmark | None:
    try:
        index = reader.get_destination_page_number(entry)
        left, top = entry.get("/Left"), entry.get("/Top")
    except MemoryError:
        raise
    except Exception:
        return None
    if index is None or not 0 <= index < len(reader.pages):
        return None
    page = pages.get(index + 1)
    if page is None or not isinstance(top, (int, float)):
        return Bookmark(titles=path, page=index + 1)
    # 0 for the left edge is what programs write that mean the line and not a column.
    left = float(left) if isinstance(left, (int, float)) else 0.0
    x, y = page.place(left, float(top))
    return Bookmark(titles=path, page=index + 1, x=x if left else None, y=y)
