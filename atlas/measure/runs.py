"""A run: the rows of a set of questions under one state of settings, models and documents.

Runs are saved as JSON below `runs/` in the state folder and compared later. A saved run keeps the
scores of every question, not the traces.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from atlas.errors import AtlasError, UsageError
from atlas.measure.asking import Asked
from atlas.measure.doors import Opened
from atlas.measure.leaks import Leak
from atlas.measure.misses import Miss
from atlas.measure.questions import Questions
from atlas.measure.rows import Row
from atlas.measure.statistics import Estimate
from atlas.measure.summary import (
    LEAK_RATE,
    by_kind,
    leak_rate,
    leaking_looks,
    risk_coverage,
    summarise,
)
from atlas.whole_files import sealed, unsealed
from atlas.whole_files import write_whole as write_file

SCHEMA = "atlas-run-1"


@dataclass(frozen=True, kw_only=True)
class Run:
    """What was measured, and on what."""

    set: str
    sample: bool
    questions: str
    """Fingerprint of the questions and labels."""
    collection: str
    """Fingerprint of the documents, however they are split."""
    settings: Mapping[str, Any]
    fingerprints: Mapping[str, Any]
    time: str
    rows: tuple[Row, ...]
    looks: int
    leaks: tuple[Leak, ...]
    seconds: float

    @cached_property
    def summary(self) -> dict[str, Estimate]:
        """Every measure by name, the leak rate last."""
        rate = leak_rate(self.looks, leaking_looks(self.leaks))
        return {**summarise(self.rows), LEAK_RATE: rate}

    @property
    def failed(self) -> int:
        return sum(row.failed for row in self.rows)

    def head(self) -> dict[str, Any]:
        """What the run was made of, as JSON."""
        return {
            "schema": SCHEMA,
            "set": self.set,
            "sample": self.sample,
            "time": self.time,
            "settings": dict(self.settings),
            "k": self.settings["k"],
            "fingerprints": {
                **self.fingerprints,
                "questions": self.questions,
                "collection": self.collection,
            },
        }


def run_of(asked: Asked, questions: Questions, opened: Opened) -> Run:
    """Put a run together from what was asked."""
    return Run(
        set=questions.set,
        sample=opened.collection.sample,
        questions=questions.fingerprint(),
        collection=questions.collection_fingerprint(),
        settings={**settings_of(opened), **asked.settings},
        fingerprints={**opened.fingerprints(), **asked.fingerprints},
        time=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        rows=asked.rows,
        looks=asked.looks,
        leaks=asked.leaks,
        seconds=asked.seconds,
    )


def settings_of(opened: Opened) -> dict[str, Any]:
    """The settings that can change a result, as plain JSON."""
    values = asdict(opened.settings)
    for name in ("title", "as_of", "readers", "sample"):
        values.pop(name)
    plain: dict[str, Any] = json.loads(json.dumps(values, default=str))
    return plain


def run_json(run: Run, misses: Sequence[Miss]) -> dict[str, Any]:
    """What `measure --json` prints."""
    return {
        **run.head(),
        "questions": [row.as_json() for row in run.rows],
        "summary": {name: value.as_json() for name, value in run.summary.items()},
        "by_kind": {
            kind: {name: value.as_json() for name, value in summary.items()}
            for kind, summary in by_kind(run.rows).items()
        },
        "misses": [miss.as_json() for miss in misses],
        "leaks": [leak.text() for leak in run.leaks],
        "looks": run.looks,
        "risk_coverage": risk_coverage(run.rows),
        "failed": run.failed,
        "seconds": {"questions": round(run.seconds, 3)},
    }


# ---- saved runs -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRun:
    """A run as it was saved: the scores of every question."""

    name: str
    head: Mapping[str, Any]
    questions: tuple[Mapping[str, Any], ...]


def run_path(name: str, state: Path) -> Path:
    """Where a run of that name lies; a name that ends in `.json` is a path of its own.

    Raises UsageError for a name that is neither.
    """
    if name.endswith(".json"):
        return Path(name)
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise UsageError(f"{name!r} is no name for a run; use letters, digits, - and _, or a .json")
    return state / "runs" / f"{name}.json"


def save_run(run: Run, path: Path) -> None:
    """Write a run whole or not at all. Raises AtlasError where the disk refuses."""
    write_whole(path, {**run.head(), "questions": [row.as_json() for row in run.rows]})


def load_run(name: str, state: Path) -> SavedRun:
    """A saved run. Raises UsageError where there is none, or the file is no run."""
    path = run_path(name, state)
    try:
        values = read_whole(path)
    except FileNotFoundError:
        known = sorted(item.stem for item in (state / "runs").glob("*.json"))
        there = f"; saved are: {', '.join(known)}" if known else ""
        raise UsageError(
            f"{path}: no such run; save one with `measure --save NAME`{there}"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: cannot be read as a run ({error})") from None
    if not _is_run(values):
        raise UsageError(f"{path}: not a run of this version ({SCHEMA}); save it again")
    questions: Sequence[Mapping[str, Any]] = values.pop("questions")
    return SavedRun(name=name, head=values, questions=tuple(questions))


def _is_run(values: Any) -> bool:
    """Whether a value has the form of a saved run, as far as it is read again."""
    if not isinstance(values, dict) or values.get("schema") != SCHEMA:
        return False
    kinds = {"questions": list, "settings": dict, "fingerprints": dict, "time": str, "set": str}
    return (
        all(isinstance(values.get(key), kind) for key, kind in kinds.items())
        and {"questions", "collection"} <= values["fingerprints"].keys()
        and all(
            isinstance(item, dict) and {"id", "kind", "expect"} <= item.keys()
            for item in values["questions"]
        )
    )


def write_whole(path: Path, values: dict[str, Any]) -> None:
    """Write JSON whole or not at all, with a checksum of its values. Raises AtlasError."""
    plain = json.loads(json.dumps(values, allow_nan=False, default=str))
    try:
        write_file(path, sealed(plain, indent=1))
    except OSError as error:
        raise AtlasError(f"{path}: could not be written ({error.strerror})") from None


def read_whole(path: Path) -> Any:
    """What `write_whole` wrote, or other JSON. Raises OSError, ValueError where it is damaged."""
    return unsealed(path.read_bytes())
