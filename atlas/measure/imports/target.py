"""The folder that an import fills: all of its new files appear at the end, or none.

Refused: a target that holds documents or case files of the same name. Nothing is overwritten.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from atlas.errors import AtlasError, UsageError
from atlas.measure.cases import DEVELOPMENT, HELD_OUT

CASE_FILE_CHARACTERS = 2_000_000
"""A longer case file is continued in another: a YAML file has a size limit."""
DOCUMENTS, SETTINGS = "documents", "atlas.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import wrote, and what became of the rest."""

    target: Path
    documents: int
    """Documents written; 0 where the collection had its own."""
    cases: int
    files: tuple[Path, ...]
    """The case files."""
    notes: tuple[str, ...]
    """What was left out, changed or merged, one line each."""

    def as_json(self) -> dict[str, Any]:
        """The values of this record as JSON has them."""
        return {
            "target": str(self.target),
            "documents": self.documents,
            "cases": self.cases,
            "files": [str(path) for path in self.files],
            "notes": list(self.notes),
        }

    def lines(self) -> Iterator[str]:
        """The report for a person."""
        written = f"{self.documents:,} documents and " if self.documents else ""
        files = ", ".join(map(str, self.files))
        yield f"{self.target}: {written}{self.cases:,} cases imported ({files})"
        yield from (f"note: {note}" for note in self.notes)


def has_documents(target: Path) -> bool:
    """Whether a folder holds documents already; hidden files do not count."""
    folder = target / DOCUMENTS
    return any(
        not part.startswith(".")
        for _, folders, files in os.walk(folder)
        for part in (*folders, *files)
    )


def case_folder(held_out: bool) -> str:
    """The name of the folder that cases go to."""
    return HELD_OUT if held_out else DEVELOPMENT


def check_target(target: Path, folder: str, name: str, with_documents: bool) -> None:
    """Raises UsageError where an import would overwrite documents or case files."""
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target}: is a file; give a folder for the collection")
    if with_documents and has_documents(target):
        raise UsageError(
            f"{target / DOCUMENTS}: holds documents already; import into a new folder, or remove "
            "them first"
        )
    for path in sorted((target / folder).glob(f"{name}*.y*ml")):
        rest = path.stem.removeprefix(name)
        if not rest or rest.removeprefix("-").isdigit():
            raise UsageError(f"{path}: exists already; rename or remove it, then import again")


@contextmanager
def filled(target: Path) -> Iterator[Path]:
    """A temporary folder whose `documents`, `atlas.yaml` and case files move into `target`.

    To be used after `check_target`. Raises AtlasError where the disk refuses.
    """
    try:
        place = target if target.is_dir() else target.parent
        place.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".import-", dir=place))
        try:
            yield temporary
            _move(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise AtlasError(
            f"{target}: the import could not be written ({error.strerror or error}); nothing was "
            "imported, free the disk or give another folder"
        ) from None


def _move(temporary: Path, target: Path) -> None:
    os.chmod(temporary, 0o755)
    if not target.exists():
        os.rename(temporary, target)
        return
    for folder in (DEVELOPMENT, HELD_OUT):
        for path in sorted((temporary / folder).glob("*")):
            (target / folder).mkdir(exist_ok=True)
            os.rename(path, target / folder / path.name)
    if (temporary / SETTINGS).exists() and not (target / SETTINGS).exists():
        os.rename(temporary / SETTINGS, target / SETTINGS)
    if (temporary / DOCUMENTS).is_dir():  # last: cases without documents are an error, not a score
        if (target / DOCUMENTS).is_dir():
            for path in (target / DOCUMENTS).iterdir():  # hidden files at most
                os.rename(path, temporary / DOCUMENTS / path.name)
        os.rename(temporary / DOCUMENTS, target / DOCUMENTS)


def write_cases(root: Path, folder: str, name: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Write case files `name.yaml`, `name-2.yaml` and so on; returns their places in `root`."""
    (root / folder).mkdir()
    files = []
    for number, texts in enumerate(_portions(map(_yaml, rows)), 1):
        file = f"{folder}/{name if number == 1 else f'{name}-{number}'}.yaml"
        (root / file).write_text("".join(texts), encoding="utf-8", newline="\n")
        files.append(file)
    return files


def write_settings(root: Path, title: str) -> None:
    """Write an `atlas.yaml` that names the collection and keeps each record whole.

    What is judged are whole records, so a record is one block: then measures over blocks are those
    that others report of the same set. Everything else is as shipped.
    """
    text = yaml.safe_dump({"title": title, "block_size": "section"}, allow_unicode=True)
    (root / SETTINGS).write_text(text, encoding="utf-8", newline="\n")


def _yaml(row: dict[str, Any]) -> str:
    return str(yaml.safe_dump([row], allow_unicode=True, sort_keys=False, width=100))


def _portions(texts: Iterable[str]) -> Iterator[list[str]]:
    portion: list[str] = []
    size = 0
    for text in texts:
        if portion and size + len(text) > CASE_FILE_CHARACTERS:
            yield portion
            portion, size = [], 0
        portion.append(text)
        size += len(text)
    if portion:
        yield portion
