"""What was found on each page -> a verdict for every page, and the words that tell of them.

In:  a page as it was read, or the error that reading it raised.
Out: state and reason of each page; the warnings of a file, or the reason why it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pypdf.errors import LimitReachedError

from atlas.pdf.content import OverLimit
from atlas.pdf.page import Page
from atlas.records import PageState

_LONGEST_LIST = 200
"""Characters of a list of page numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """State and reason of one page; the reason is "" where all of its text was read."""

    state: PageState
    reason: str = ""


READ = Verdict(state="text")


def verdict_of(page: Page) -> Verdict:
    """The verdict on a page that could be followed to some end."""
    if page.damage:
        return Verdict(state="damaged", reason=f"read in part: {page.damage}")
    if page.pieces or page.unseen or page.aside:
        return READ
    reason = "no text"
    if page.unreadable:
        reason = "no text: its fonts do not tell which letters they show; run OCR"
    elif page.scanned:
        reason = "no text, only a picture; run OCR"
    return Verdict(state="no text", reason=reason)


def verdict_of_error(error: Exception) -> Verdict:
    """The verdict on a page that raised an error: damage shows itself as any error."""
    if isinstance(error, OverLimit | LimitReachedError):
        return Verdict(state="over the limit", reason="over the limit of work for one page")
    return Verdict(state="damaged", reason=f"damaged ({type(error).__name__})")


def warnings_of(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """One line for each thing that is wrong: "2 of 9 pages: no text (pages 3, 4)"."""
    count = _pages(len(verdicts))
    for reason, numbers in _by_reason(verdicts).items():
        yield f"{len(numbers)} of {count}: {reason} ({numbered(numbers)})"


def why_refused(verdicts: Sequence[Verdict], pages: Mapping[int, Page]) -> str:
    """Why a document is refused that has no text on any page."""
    without = f"{_pages(len(verdicts))} without text"
    scanned = sum(page.scanned for page in pages.values())
    if scanned and 2 * scanned >= len(pages):
        return f"scanned, {without}; run OCR first"
    reasons = "; ".join(
        f"{numbered(found)}: {reason}" for reason, found in _by_reason(verdicts).items()
    )
    return f"{without} ({reasons[:_LONGEST_LIST]}); print it to a new PDF or run OCR first"


def numbered(numbers: Sequence[int]) -> str:
    """Page numbers for a person: "pages 3, 5-9"."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    words = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
    if len(words) > _LONGEST_LIST:
        words = f"{words[:_LONGEST_LIST].rpartition(', ')[0]}, …"
    return f"page{'s' if len(numbers) > 1 else ''} {words}"


def _pages(count: int) -> str:
    return f"{count} page{'s' if count > 1 else ''}"


def _by_reason(verdicts: Sequence[Verdict]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, verdict in enumerate(verdicts, start=1):
        if verdict.reason:
            found.setdefault(verdict.reason, []).append(number)
    return found
