"""A PDF file -> Reading, read with pypdf in a process of its own.

In:  the path of a PDF file that may have been made by anybody.
Out: its title, its text in units, its sections (one for each bookmark, or each page where it has
     none), its page labels, a verdict for every page, and a warning for whatever is missing or
     looks wrong. Text that a person does not see on its page stands in units of its own.
Refused, each with a `DocumentError`: no file, an empty file, no PDF, a PDF that needs a password,
damaged beyond reading, without text on any page (scanned), over the limit of time or memory.

`read_pdf` starts `python -m atlas.pdf`, which prints one JSON document, and kills it at the limit
of time. Inside, the stages follow each other:

    drawing   operators           -> pieces of text, ruled lines, filled areas (fonts, paths)
    page      a page              -> the same, upright, with hidden text marked (layers)
    lines     pieces              -> segments: words without a wide gap
    tables    lines and segments  -> tables (rules, grids)
    margins   all pages           -> running headers, footers and page numbers, to leave out
    columns   a page              -> lines and tables in reading order
    sections  all lines           -> sections below bookmarks
    units     a section           -> paragraphs, items, captions, rows (words)
    document  a file              -> all of it, as plain values
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from atlas.errors import DocumentError
from atlas.records import PageVerdict, Reading, Section, Unit

__all__ = ["read_pdf", "reading_of"]

_HEADER_BYTES = 1_024
"""A PDF says that it is one within this many bytes."""


def read_pdf(path: Path, *, seconds: float = 20.0, memory_bytes: int = 1_500_000_000) -> Reading:
    """Read a PDF within limits of wall time (`seconds`) and address space (`memory_bytes`)."""
    _refuse_other_files(path)
    limits = [str(seconds), str(memory_bytes)]
    command = [sys.executable, "-P", "-m", "atlas.pdf", str(path.absolute()), *limits]
    # The child finds this very atlas, and nothing that lies in the folder it was started from.
    paths = [str(Path(__file__).absolute().parents[2]), os.environ.get("PYTHONPATH", "")]
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
        except BaseException as error:
            # Also on Ctrl-C: the child is gone before this function is left.
            os.killpg(child.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise DocumentError(path, _over_time(seconds)) from None
            raise
    if child.returncode != 0:
        raise DocumentError(path, _ended(child.returncode, complaint, seconds))
    values = json.loads(output)
    if "refused" in values:
        raise DocumentError(path, values["refused"])
    return reading_of(values)


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
        reason = f"not a PDF: it begins with {start!r} and not with '%PDF-'"
        raise DocumentError(path, f"{reason}; put a PDF in its place or remove it")


def _over_time(seconds: float) -> str:
    return f"took longer than {seconds:g} s to read; split it or print it to a new PDF"


def _ended(code: int, complaint: bytes, seconds: float) -> str:
    """Why a child that printed no result has ended."""
    if -code in (signal.SIGXCPU, signal.SIGKILL):
        return _over_time(seconds)
    lines = complaint.decode("utf-8", "replace").strip().splitlines() or [f"exit code {code}"]
    return f"the PDF reader stopped ({lines[-1][:200]}); print it to a new PDF and report this"


def reading_of(values: dict[str, Any]) -> Reading:
    """The plain values that `document.read_document` returns, as records."""
    sections = []
    for number, titles, units in values["sections"]:
        made = [
            Unit(
                kind=kind,
                start=start,
                end=end,
                page=page,
                header=header and tuple(header),
                hidden=hidden,
            )
            for kind, start, end, page, header, hidden in units
        ]
        sections.append(Section(number=number, titles=tuple(titles), units=tuple(made)))
    return Reading(
        title=values["title"],
        text=values["text"],
        sections=tuple(sections),
        page_labels=tuple(values["page_labels"]),
        warnings=tuple(values["warnings"]),
        page_verdicts=tuple(
            PageVerdict(page=number, state=state, reason=reason)
            for number, (state, reason) in enumerate(values["page_verdicts"], start=1)
        ),
    )
