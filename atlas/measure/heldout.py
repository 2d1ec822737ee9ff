"""The ledger of held-out looks: who looked, with which settings, at what result.

A held-out question tells the truth as long as nothing was chosen by it. Every look is one line of
JSON in `heldout/ledger.jsonl`, or in the state folder where the collection is read-only, written
before its result is shown. A look that follows another one with other settings and does better is
flagged: then the set may have been used to choose them.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from atlas.errors import AtlasError, CollectionError
from atlas.measure.cases import HELD_OUT, folded
from atlas.measure.runs import Run
from atlas.measure.statistics import Unscored
from atlas.whole_files import add_line, is_json, sealed, unsealed

FILE_NAME = "ledger.jsonl"
WATCHED = ("hit", "recall", "ndcg@10", "declined", "wrongly_declined")
"""Measures that a look keeps, and by which an improvement is told."""
LOWER_IS_BETTER = frozenset({"wrongly_declined"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One entry of the ledger."""

    kind: str
    """`measure`, `sweep`, `experiment` or `promote`."""
    time: str
    questions: str
    """Fingerprint of the questions that were asked."""
    asked: int
    settings: Mapping[str, Any]
    models: Mapping[str, Any]
    result: Mapping[str, float | None]
    """Means of the watched measures; None where nothing was scored."""
    scores: Mapping[str, list[float | None]] = field(default_factory=dict)
    """The same for every question, under a digest of its words: what looks are compared by, since
    questions come and go."""
    flag: str = ""
    """What makes this look suspicious, or ""."""
    note: str = ""


class Ledger:
    """The looks at a collection's held-out questions."""

    def __init__(self, root: Path, state: Path) -> None:
        self._places = (root / HELD_OUT / FILE_NAME, state / f"heldout-{FILE_NAME}")

    @property
    def elsewhere(self) -> bool:
        """Whether looks cannot be kept with the collection."""
        return self.path != self._places[0]

    @property
    def path(self) -> Path:
        """Where the next look is written."""
        own, other = self._places
        return own if _writable(own) else other

    def looks(self) -> tuple[Look, ...]:
        """Every look, oldest first. Raises CollectionError for a line that is none."""
        found = [look for path in self._places for look in _read(path)]
        return tuple(sorted(found, key=lambda look: look.time))

    def record(self, kind: str, run: Run, note: str = "") -> Look:
        """Write a look down and return it, flagged if need be. Raises AtlasError."""
        look = Look(
            kind=kind,
            time=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            questions=run.questions,
            asked=len(run.rows),
            settings=run.settings,
            models=run.fingerprints,
            result=_means(run),
            scores=_scores(run),
            note=note,
        )
        flagged = _flag(look, self.looks())
        look = Look(**{**asdict(look), "flag": flagged})
        self.append(look)
        return look

    def append(self, look: Look) -> None:
        """Add a line. Raises AtlasError where the disk refuses: then no result may be shown."""
        path = self.path
        try:
            add_line(path, sealed(asdict(look)))
        except OSError as error:
            raise AtlasError(
                f"{path}: the held-out look could not be written down ({error.strerror}); "
                "nothing is shown without it"
            ) from None


def _flag(look: Look, before: tuple[Look, ...]) -> str:
    """Whether settings changed after a look at these questions, and the numbers rose.

    Compared is the last look with other settings that shares at least half of this look's
    questions, over the questions they share.
    """
    for last in reversed(before):
        shared = look.scores.keys() & last.scores.keys()
        if last.settings != look.settings and shared and 2 * len(shared) >= len(look.scores):
            break
    else:
        return ""
    better = []
    for place, name in enumerate(WATCHED):
        pairs = [(last.scores[key][place], look.scores[key][place]) for key in shared]
        both = [(x, y) for x, y in pairs if x is not None and y is not None]
        old, new = (sum(side) for side in zip(*both, strict=True)) if both else (0.0, 0.0)
        if (new < old) if name in LOWER_IS_BETTER else (new > old):
            better.append(f"{name} {old / len(both):.3f} to {new / len(both):.3f}")
    if not better:
        return ""
    changed = sorted(
        name
        for name in {*look.settings, *last.settings}
        if look.settings.get(name) != last.settings.get(name)
    )
    return (
        f"{', '.join(changed)} changed since the look of {last.time[:16]} and the held-out numbers "
        f"rose ({', '.join(better)}); unless development questions chose the change, these "
        "questions are no longer held out"
    )


def _scores(run: Run) -> dict[str, list[float | None]]:
    return {
        hashlib.sha256(folded(row.case.question).encode()).hexdigest()[:10]: [
            None if isinstance(score := row.scores[name], Unscored) else round(score, 6)
            for name in WATCHED
        ]
        for row in run.rows
    }


def _means(run: Run) -> dict[str, float | None]:
    means: dict[str, float | None] = {}
    for name in WATCHED:
        mean = run.summary[name].mean
        means[name] = None if isinstance(mean, Unscored) else round(mean.value, 6)
    return means


def _read(path: Path) -> Iterator[Look]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return
    if lines and not is_json(lines[-1]):
        lines.pop()  # cut short by a kill or a full disk, so its result was never shown
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                look = Look(**unsealed(line))
                if not _is_look(look):
                    raise TypeError
                yield look
            except (ValueError, TypeError, RecursionError):
                raise CollectionError(
                    f"{path}:{number}: no entry of the held-out ledger; restore the file, "
                    "it is only ever added to"
                ) from None


def _is_look(look: Look) -> bool:
    """Whether the values have the types that they are read with."""
    texts = (look.kind, look.time, look.questions, look.flag, look.note)
    means = look.result.values() if isinstance(look.result, dict) else ("",)
    return (
        all(isinstance(text, str) for text in texts)
        and isinstance(look.settings, dict)
        and isinstance(look.models, dict)
        and all(mean is None or isinstance(mean, int | float) for mean in means)
        and isinstance(look.scores, dict)
        and all(_is_row(row) for row in look.scores.values())
    )


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, list)
        and len(row) == len(WATCHED)
        and all(score is None or isinstance(score, int | float) for score in row)
    )


def _writable(path: Path) -> bool:
    """Whether the ledger may be kept with the collection; write bits count for everyone."""
    folder = path.parent
    try:
        mode = (path if path.exists() else folder).stat().st_mode
    except OSError:
        return False
    return bool(mode & 0o222) and os.access(path if path.exists() else folder, os.W_OK)
