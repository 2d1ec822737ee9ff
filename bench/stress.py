"""How does reading hold on PDFs that broke somebody's reader, and how much of their text is found?

    python bench/stress.py FOLDER... [--processes 2] [--files] [--beside PYTHON]

Every PDF below the folders is read as `ingest` reads it, each from a process of its own, so that
its time and the memory of the reader are its own. Printed: a table with a row for each source
folder, then how much of the expected texts was found (`expected_texts.py` says how it is counted).
An expected text lies beside its file; with `--beside` it is what PDFium reads, from another
environment whose Python has pypdfium2. `--files` prints a line for each file too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from expected_texts import (
    compare,
    comparison_lines,
    texts_beside,
    texts_of_pdfium,
    words_of,
)
from surroundings import machine

from atlas.documents import read_document
from atlas.errors import DocumentError
from atlas.records import Document, PageVerdict

SECONDS, BYTES = 20.0, 1.5 * 2**30
"""What reading one file may take."""
KINDS = ("read", "in part", "without text", "encrypted", "damaged", "over a limit", "no PDF")
_BEGINNINGS = (
    ("scanned", "without text"), ("no text besides", "without text"),
    ("encrypted", "encrypted"), ("damaged", "damaged"), ("over a limit", "over a limit"),
    ("took longer", "over a limit"), ("needs more", "over a limit"),
    ("larger than", "over a limit"), ("not a PDF", "no PDF"), ("the file is empty", "no PDF"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one file."""

    path: Path
    kind: str
    """One of KINDS; or "crashed", which must not be."""
    reason: str
    """Why it was refused, or what its warnings say."""
    text: str
    pages: tuple[PageVerdict, ...]
    seconds: float
    peak_bytes: int
    """Largest memory of the process that read it."""

    @property
    def held(self) -> bool:
        """Whether it ended with a verdict, in time and in memory."""
        in_time = self.seconds <= SECONDS + 1.0  # the reader is started and stopped from outside
        return self.kind in KINDS and in_time and self.peak_bytes <= BYTES


def kind_of(reason: str) -> str:
    """The column of the table that a refusal belongs to."""
    for beginning, kind in _BEGINNINGS:
        if reason.startswith(beginning):
            return kind
    without = re.match(r"\d+ pages? without text \((.*)", reason)
    if not without:
        return "crashed"
    if "over the limit" in without[1]:
        return "over a limit"
    return "damaged" if re.search(r"damaged|read in part", without[1]) else "without text"


def outcome_of(path: Path) -> Outcome:
    """Read one file. Runs in a process that reads nothing else: its children are this reader."""
    begun = time.perf_counter()
    text = ""
    verdicts: tuple[PageVerdict, ...] = ()
    try:
        document = read_document(path, path.parent)
        text, verdicts = "\n".join(_as_printed(document)), document.page_verdicts
        kind = "read" if all(verdict.state == "text" for verdict in verdicts) else "in part"
        reason = "; ".join(document.warnings)
    except DocumentError as error:
        kind, reason = kind_of(error.reason), error.reason
    except Exception as error:
        kind, reason = "crashed", f"{type(error).__name__}: {error}"
    return Outcome(
        path=path,
        kind=kind,
        reason=reason,
        text=text,
        pages=verdicts,
        seconds=time.perf_counter() - begun,
        peak_bytes=1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,
    )


def _as_printed(document: Document) -> Iterator[str]:
    """The document with the headings that became its titles, each where it stood."""
    yield document.title
    for section in document.sections:
        yield from section.titles[-1:]
        for unit in section.units:
            yield document.text[unit.start : unit.end]


def run(files: Sequence[Path], processes: int = 2) -> list[Outcome]:
    """The outcome of every file, in order."""
    context = multiprocessing.get_context("fork")
    with context.Pool(processes, maxtasksperchild=1) as pool:
        return pool.map(outcome_of, files, chunksize=1)


def pdfs_below(folders: Iterable[Path]) -> list[Path]:
    return sorted({path for folder in folders for path in folder.rglob("*.pdf")})


# ---- tables ---------------------------------------------------------------------------------


def table(outcomes: Sequence[Outcome], roots: Sequence[Path]) -> str:
    """A Markdown table with a row for each source folder."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(_source(outcome.path, roots), []).append(outcome)
    kinds = [*KINDS, *(["crashed"] if any(o.kind == "crashed" for o in outcomes) else [])]
    rows = [
        f"| source | files | {' | '.join(kinds)} | slowest, s | largest, MB |",
        f"|---|{'--:|' * (len(kinds) + 3)}",
    ]
    for name, group in [*groups.items(), ("all", list(outcomes))]:
        counts = Counter(outcome.kind for outcome in group)
        cells = [str(counts[kind] or "") for kind in kinds]
        slowest = max(outcome.seconds for outcome in group)
        largest = max(outcome.peak_bytes for outcome in group) / 1e6
        rows.append(
            f"| {name} | {len(group)} | {' | '.join(cells)} | {slowest:.1f} | {largest:.0f} |"
        )
    return "\n".join(rows)


def _source(path: Path, roots: Sequence[Path]) -> str:
    """The root and the folder below it; two folders for the attacks, which are sorted by format."""
    root = next(root for root in roots if path.is_relative_to(root))
    below = path.relative_to(root).parts[:-1]
    return "/".join((root.name, *below[: 2 if below[:1] in (("pdf",), ("handmade",)) else 1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--files", action="store_true", help="a line for each file")
    parser.add_argument("--beside", metavar="PYTHON", help="a Python that has pypdfium2")
    arguments = parser.parse_args()
    files = pdfs_below(arguments.folders)
    if not files:
        sys.exit(f"{', '.join(map(str, arguments.folders))}: no .pdf below; name another folder")
    print(machine())
    outcomes = run(files, arguments.processes)
    if arguments.files:
        for outcome in outcomes:
            size = f"{outcome.seconds:5.2f} s {outcome.peak_bytes / 1e6:5.0f} MB"
            print(f"{size} {outcome.kind:13}{outcome.path}: {outcome.reason[:300]}")
    print(table(outcomes, arguments.folders))
    expected = texts_beside(files)
    if arguments.beside:
        expected = texts_of_pdfium(files, arguments.beside) | expected
    by_path = {outcome.path: outcome for outcome in outcomes}
    compared = [
        found
        for path, text in expected.items()
        if by_path[path].text and (found := compare(path, by_path[path].text, text))
    ]
    print(*comparison_lines(compared), sep="\n")
    missed = [p for p, text in expected.items() if not by_path[p].text and words_of(text)]
    if missed:
        print(f"refused though a text is expected: {', '.join(path.name for path in missed)}")
    late = [outcome.path.name for outcome in outcomes if not outcome.held]
    if late:
        sys.exit(f"{len(late)} files did not end with a verdict in bounds: {', '.join(late)}")


if __name__ == "__main__":
    main()
