"""Texts that are expected of PDFs, and how much of them was read.

An expected text is `NAME.txt` or `NAME.md` beside `NAME.pdf`, or what PDFium reads, from another
environment whose Python has pypdfium2 installed.

Words: letters and digits without case, each sign of Chinese, Japanese and Korean one word.
Found: the share of the expected words that were read, each as often as it was expected.
Order: of the words found, the share that stands in the expected order (longest common sequence).
"""

from __future__ import annotations

import json
import re
import subprocess
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from rapidfuzz.distance import LCSseq
from surroundings import spread

_WORD = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_BROKEN = re.compile("[-\u00ad\u2010]\\s*\n\\s*|[\ufffe\x02]\\s*")
"""A hyphen at a line's end, and the sign that PDFium puts in its place."""
_ENOUGH_WORDS = 20
"""A file with fewer expected words is not named among the worst: one word is a large share."""
_EDGE_LINES = 2
"""Lines at the top and bottom of a page that may be a running header or footer."""
_PDFIUM = """
import json, sys
import pypdfium2
for line in sys.stdin:
    try:
        pages = pypdfium2.PdfDocument(line.rstrip("\\n"))
        texts = [page.get_textpage().get_text_bounded() for page in pages]
    except Exception:
        texts = []
    print(json.dumps(texts), flush=True)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How much of an expected text was read; shares from 0 to 1."""

    path: Path
    words: int
    found: float
    order: float


def words_of(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", _BROKEN.sub("", text.replace("\r\n", "\n")))
    return _WORD.findall(text.casefold())


def compare(path: Path, text: str, expected: str) -> Comparison | None:
    """None where nothing is expected. Words that nobody expects cost nothing."""
    wanted, read = words_of(expected), words_of(text)
    if not wanted:
        return None
    common = (Counter(wanted) & Counter(read)).total()
    ordered = LCSseq.similarity(wanted, read)
    return Comparison(
        path=path,
        words=len(wanted),
        found=common / len(wanted),
        order=ordered / common if common else 0.0,
    )


def texts_beside(files: Sequence[Path]) -> dict[Path, str]:
    """The expected texts that lie beside files, in the order of the files."""
    found = {}
    for path in files:
        for other in (path.with_suffix(".txt"), path.with_suffix(".md")):
            if other.is_file():
                found[path] = other.read_text(encoding="utf-8", errors="replace")
                break
    return found


def texts_of_pdfium(files: Sequence[Path], python: str) -> dict[Path, str]:
    """What PDFium reads, from the environment of another Python, without running headers.

    A file that ends PDFium, or keeps it for a minute, has no text.
    """
    found: dict[Path, str] = {}
    for path in files:
        command = [python, "-c", _PDFIUM]
        try:
            done = subprocess.run(
                command, input=f"{path.absolute()}\n", capture_output=True, text=True, timeout=60
            )
        except subprocess.TimeoutExpired:
            continue
        found[path] = without_running(json.loads(done.stdout or "[]"))
    return found


def without_running(pages: Sequence[str]) -> str:
    """Pages as one text, without the lines at their edges that are alike on two pages or more."""
    split = [[line for line in page.splitlines() if line.strip()] for page in pages]
    edges = [{_masked(line) for line in _edges(lines)} for lines in split]
    seen = Counter(line for lines in edges for line in lines)
    kept = []
    for lines in split:
        top, bottom = lines[:_EDGE_LINES], lines[_EDGE_LINES:][-_EDGE_LINES:]
        middle = lines[_EDGE_LINES : len(lines) - len(bottom)]
        kept += [line for line in top if seen[_masked(line)] < 2] + middle
        kept += [line for line in bottom if seen[_masked(line)] < 2]
    return "\n".join(kept)


def _edges(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:_EDGE_LINES]
    yield from lines[_EDGE_LINES:][-_EDGE_LINES:]


def _masked(line: str) -> str:
    return re.sub(r"\d+", "#", line.strip())


def comparison_lines(found: Sequence[Comparison], worst: int = 8) -> Iterator[str]:
    if not found:
        yield "no expected text beside any file"
        return
    words = sum(item.words for item in found)
    share = sum(item.words * item.found for item in found) / words
    yield f"{len(found)} files with an expected text, {words} words, {share:.1%} of them found"
    yield f"by file, median (lowest, highest): found {spread([item.found for item in found], 3)}, "
    yield f"in order {spread([item.order for item in found if item.found], 3)}"
    longer = [item for item in found if item.words >= _ENOUGH_WORDS and item.found]
    for name, key in (("found", attrgetter("found")), ("in order", attrgetter("order"))):
        least = ", ".join(f"{i.path.name} {key(i):.2f}" for i in sorted(longer, key=key)[:worst])
        yield f"least {name}, of the {len(longer)} with {_ENOUGH_WORDS} words or more: {least}"
