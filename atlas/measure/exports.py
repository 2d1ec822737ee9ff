"""Cases with their traces -> files of other tools: TREC run and qrels, Ragas JSON Lines.

Every case is in the files. What measures of retrieval cannot score, a case without a relevant
block in scope, has no qrels and is named in `unscored.txt`; in Ragas files it stands in a file of
its own. A question that failed keeps its qrels and its row, with nothing retrieved, so that it
counts as 0 and is not lost. Files appear whole or not at all.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from atlas.errors import AtlasError
from atlas.measure.cases import Case
from atlas.measure.ragas_rows import RagasRow, ragas_line
from atlas.measure.trec import field, qrels_lines, run_lines

RUN, QRELS, UNSCORED = "run.txt", "qrels.txt", "unscored.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exportable:
    """One case as it was asked."""

    case: Case
    trace: Mapping[str, Any] | None
    """The values of its trace; None where the question failed."""
    relevant: Mapping[str, int]
    """Grade of every relevant block in scope by its reference; labels are expanded already."""
    block_text: Callable[[str], str]
    """The text of a relevant block by its reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export wrote."""

    files: tuple[Path, ...]
    scored: int
    """Questions with a relevant block in scope."""
    unscored: int
    failed: int
    """Questions without a trace, among the scored and unscored ones."""

    def lines(self) -> Iterator[str]:
        """The report for a person."""
        yield f"written: {', '.join(map(str, self.files))}"
        failed = f"; {self.failed} failed and are in them with nothing found" if self.failed else ""
        yield (
            f"{self.scored} questions with a relevant block, {self.unscored} without one apart"
            f"{failed}"
        )


def export_trec(rows: Sequence[Exportable], folder: Path) -> Exported:
    """Write `run.txt`, `qrels.txt` and `unscored.txt` into `folder`, which is made if need be.

    The run holds the ranked list before selection; its scores count down to 1 and tell the order
    alone. `unscored.txt` has the ids, one a line, of questions without a relevant block in scope:
    they have no qrels. A question that failed has qrels and no run lines: ir_measures scores it 0,
    trec_eval does so with `-c` and leaves it out of its means without. Raises AtlasError where the
    disk refuses.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _refused(folder, error) from None
    paths = (folder / RUN, folder / QRELS, folder / UNSCORED)
    with _whole(*paths) as (run, qrels, unscored):
        for row in rows:
            ranked = row.trace["ranked"] if row.trace else ()
            run.writelines(run_lines(row.case.id, ranked))
            qrels.writelines(qrels_lines(row.case.id, row.relevant))
            if not row.relevant:
                unscored.write(f"{field(row.case.id)}\n")
    return _exported(paths, rows)


def export_ragas(rows: Sequence[Exportable], path: Path) -> Exported:
    """Write `path`, and cases without a relevant block to `STEM-unanswerable.jsonl` beside it.

    Rows stand in the order of the cases. The retrieved contexts are the supplied blocks, best
    first. A response is the answer with its choices, or the reason of an abstention;
    "" where the question failed. A reference is the case's model answer, "" where it has none.
    ragas 0.4.3 gives NaN, not 0, for the precision of a row with nothing retrieved. Raises
    AtlasError where the disk refuses.
    """
    paths = (path, path.with_name(f"{path.stem}-unanswerable.jsonl"))
    with _whole(*paths) as (scored, unscored):
        for row in rows:
            (scored if row.relevant else unscored).write(ragas_line(_ragas(row)))
    return _exported(paths, rows)


def _ragas(row: Exportable) -> RagasRow:
    context = row.trace["context"] if row.trace else ()
    refs = sorted(row.relevant)
    return RagasRow(
        user_input=row.case.question,
        retrieved_contexts=tuple(item["text"] for item in context),
        retrieved_context_ids=tuple(item["ref"] for item in context),
        reference_contexts=tuple(row.block_text(ref) for ref in refs),
        reference_context_ids=tuple(refs),
        response=_response(row.trace) if row.trace else "",
        reference=row.case.reference,
    )


def _response(trace: Mapping[str, Any]) -> str:
    """What the person who asked was shown."""
    if trace["status"] == "failed":
        return ""
    shown = (trace["answer"], *trace["choices"])
    return "\n".join(filter(None, shown)) or str(trace["reason"])


def _exported(paths: tuple[Path, ...], rows: Sequence[Exportable]) -> Exported:
    scored = sum(bool(row.relevant) for row in rows)
    return Exported(
        files=paths,
        scored=scored,
        unscored=len(rows) - scored,
        failed=sum(row.trace is None for row in rows),
    )


@contextmanager
def _whole(*paths: Path) -> Iterator[list[TextIO]]:
    """Files in ASCII that take their place together at the end, or not at all."""
    temporary: list[str] = []
    try:
        try:
            with ExitStack() as stack:
                files: list[TextIO] = []
                for path in paths:
                    if path.is_dir():
                        raise IsADirectoryError(0, "a folder stands there")
                    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
                    temporary.append(name)
                    file = os.fdopen(handle, "w", encoding="ascii", newline="\n")
                    files.append(stack.enter_context(file))
                yield files
            for name, path in zip(temporary, paths, strict=True):
                os.chmod(name, 0o644)
                os.replace(name, path)
        finally:
            for name in temporary:
                with contextlib.suppress(OSError):
                    os.unlink(name)
    except OSError as error:
        raise _refused(paths[0], error) from None


def _refused(path: Path, error: OSError) -> AtlasError:
    return AtlasError(
        f"{path}: the export could not be written ({error.strerror or error}); nothing was "
        "changed, free the disk or give another place"
    )
