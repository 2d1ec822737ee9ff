"""A held-out question -> a development case, with the reason written down.

The question leaves its file in `heldout/` and is added to `cases/promoted.yaml`. From then on it
may be looked at and tuned on, and a fresh held-out question is owed in its place. A promotion that
was killed is finished by the same command.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from atlas.errors import AtlasError, UsageError
from atlas.measure.cases import DEVELOPMENT, HELD_OUT, PROMOTED, Case, load_cases
from atlas.measure.heldout import Ledger, Look
from atlas.whole_files import write_whole
from atlas.yaml_files import YamlError, parse

FILE_NAME = "promoted.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """What was moved."""

    id: str
    source: Path
    target: Path
    owed: int
    """Held-out questions that were promoted so far: as many fresh ones are owed."""


def promote(name: str, reason: str, root: Path, state: Path, day: date) -> Promoted:
    """Move a held-out question. Raises UsageError for an unknown id or an empty reason."""
    if not reason.strip():
        raise UsageError("--reason: say why this question may be looked at from now on")
    ledger = Ledger(root, state)
    held_out = load_cases(root, HELD_OUT, alone=True)
    found = next((case for case in held_out if case.id == name), None)
    if found is None:
        known = ", ".join(case.id for case in held_out[:8]) or "it has none"
        raise UsageError(f"no held-out question {name}; {root / HELD_OUT} has {known}")
    path, _, line = found.where.rpartition(":")
    source, target = Path(path), root / DEVELOPMENT / FILE_NAME
    moved_before = _moved_before(target, found)
    if not moved_before:
        load_cases(root, HELD_OUT)  # nothing may stand in both sets
    text = source.read_text(encoding="utf-8-sig")
    values, rest = _cut(source, text, name, int(line))
    note = f"{PROMOTED} on {day.isoformat()}: {' '.join(reason.split())}"
    values["note"] = f"{values['note'].rstrip()} {note}" if values.get("note") else note
    before = target.read_text(encoding="utf-8") if target.exists() else _HEAD
    owed = 1 + sum(look.kind == "promote" for look in ledger.looks())
    if moved_before:
        _replace(source, rest)
        return Promoted(id=name, source=source, target=target, owed=owed - 1)
    ledger.append(
        Look(
            kind="promote",
            time=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            questions="",
            asked=0,
            settings={},
            models={},
            result={},
            note=f"{name}: {' '.join(reason.split())}",
        )
    )
    _replace(target, f"{before.rstrip()}\n\n{_dumped(values)}")
    _replace(source, rest)
    return Promoted(id=name, source=source, target=target, owed=owed)


_HEAD = "# Development questions that were held out once; each note says why no longer.\n"


def _cut(path: Path, text: str, name: str, line: int) -> tuple[dict[str, Any], str]:
    """The values of the case that begins at a line, and the text of the file without it.

    Comments between two cases stay. Raises UsageError where the file is not written so that a case
    can be cut out by its lines.
    """
    located = parse(text)
    rows = located.value
    place = next(n for n, row in enumerate(rows) if str(row.get("id")) == name)
    lines = text.splitlines(keepends=True)
    first = line - 1
    last = located.line(place + 1) - 1 if place + 1 < len(rows) else len(lines)
    while last > first + 1 and re.fullmatch(r"\s*(#.*)?\n?", lines[last - 1]):
        last -= 1
    rest = "".join(lines[:first] + lines[last:])
    try:
        left = parse(rest).value or []
    except YamlError:
        left = None
    if left != [row for number, row in enumerate(rows) if number != place]:
        raise UsageError(
            f"{path}:{line}: {name} cannot be cut out of this file; begin every case with `- id:` "
            "on a line of its own, then promote it"
        )
    return dict(rows[place]), rest


def _dumped(values: dict[str, Any]) -> str:
    dumped: str = yaml.safe_dump([values], sort_keys=False, allow_unicode=True, width=96)
    return dumped


def _replace(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise AtlasError(f"{path}: could not be written ({error.strerror})") from None


def _moved_before(target: Path, case: Case) -> bool:
    """Whether a promotion was killed when the question stood in both files."""
    if not target.exists():
        return False
    try:
        rows = parse(target.read_text(encoding="utf-8-sig")).value or []
    except YamlError:
        return False  # loading the cases will name what is wrong
    return any(
        isinstance(row, dict)
        and str(row.get("id")) == case.id
        and row.get("question") == case.question
        and PROMOTED in str(row.get("note"))
        for row in rows
    )
