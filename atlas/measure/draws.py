"""A run's answers -> a random draw of them for a person to label -> labels of this run.

Enters: the answers of a run, and later the draw with labels filled in. Leaves: a file that shows
nothing of what a judge says; and the labels by case id, where they may correct this run's score.
Refused: labels of another run, of rows that were moved or picked, and of some rows below others
that have none, since what is left is then no random draw. For the file see `draw_file`.

The order of a draw is that of sha256 over seed, digest of the run and case id. So the first rows of
a draw are a smaller draw, and a file can be checked against the run that it says it was drawn from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from atlas.errors import UsageError
from atlas.measure.draw_file import Draw, Drawn, load_draw, write_draw
from atlas.measure.statistics import SEED

__all__ = ["Draw", "Given", "export_draw", "load_draw", "matched", "run_digest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An answer that a run gave."""

    id: str
    """The case it answers; unique in a run."""
    question: str
    sources: tuple[str, ...]
    answer: str
    writer: str
    """Fingerprint of what wrote the answer, the same in a whole run."""


def run_digest(answers: Sequence[Given]) -> str:
    """12 hex digits over ids, questions, answers and writers, in any order."""
    rows = sorted((row.id, row.question, row.answer, row.writer) for row in answers)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:12]


def export_draw(answers: Sequence[Given], count: int, path: Path, seed: int = SEED) -> Draw:
    """Draw `count` answers without replacement and write them for labelling, whole or not at all.

    Raises UsageError where the file exists, for a count below 1 or above the number of answers, and
    for a file too long to be read back; AtlasError where the disk refuses; ValueError for answers
    that are no run: an id that stands twice or several writers.
    """
    writer = _writer(answers)
    if not 1 <= count <= len(answers):
        there = f"draw 1 to {len(answers)}" if answers else "there is none to draw from"
        raise UsageError(f"{count} labels of {len(answers)} answers: {there}")
    draw = Draw(
        path=path,
        digest=run_digest(answers),
        seed=seed,
        of=len(answers),
        writer=writer,
        ids=tuple(sorted(row.id for row in answers)),
        rows=tuple(
            Drawn(id=row.id, question=row.question, sources=row.sources, answer=row.answer)
            for row in _order(answers, seed)[:count]
        ),
    )
    write_draw(draw)
    return draw


def population(draw: Draw, answers: Sequence[Given]) -> list[Given]:
    """The answers that a draw was drawn from; a run that was resumed may have got more since."""
    known = set(draw.ids)
    return [row for row in answers if row.id in known]


def matched(draw: Draw, answers: Sequence[Given]) -> Mapping[str, float]:
    """The labels of a draw by case id, 1 correct and 0 wrong, for the run it was drawn from.

    `answers` are all of the run; those that it had not when it was drawn from count for nothing
    here, because they had no chance to be drawn (see `population`). Rows from some place on may be
    without label. Raises UsageError where the draw says nothing of this run: rows that are no
    answer of it word for word, another writer, a run that has changed elsewhere, rows that are not
    those that the seed draws; and for a label below a row without one. Raises ValueError for
    answers that are no run.
    """
    writer = _writer(answers)
    answers = population(draw, answers)
    given = {row.id: (row.question, row.answer) for row in answers}
    changed = sum(given.get(row.id) != (row.question, row.answer) for row in draw.rows)
    again = "the labels say nothing of this run; draw again with --export-labels"
    if changed:
        raise UsageError(
            f"{draw.path}: {changed} of {len(draw.rows)} rows are not in the run word for word "
            f"(id, question, answer): {again}"
        )
    if draw.writer != writer:
        raise UsageError(f"{draw.path}: drawn from {draw.writer}, the run is by {writer}: {again}")
    if draw.digest != run_digest(answers):
        raise UsageError(
            f"{draw.path}: drawn from {draw.of} answers, {len(answers)} of which are in this run, "
            f"and some that were not drawn have changed: {again}"
        )
    order = _order(answers, draw.seed)
    for row, expected in zip(draw.rows, order, strict=False):
        if row.id != expected.id:
            raise UsageError(
                f"{row.where}: {row.id} stands where seed {draw.seed} draws {expected.id}; put the "
                "rows back as they were drawn, or draw again with --export-labels"
            )
    labels: dict[str, float] = {}
    empty: Drawn | None = None
    for row in draw.rows:
        if row.label is None:
            empty = empty or row
        elif empty is not None:
            raise UsageError(
                f"{row.where}: label from the top: {row.id} is labelled while {empty.id} above, at "
                f"{empty.where}, is not"
            )
        else:
            labels[row.id] = 1.0 if row.label == "correct" else 0.0
    return labels


def _writer(answers: Sequence[Given]) -> str:
    """The one writer of a run, "" without answers."""
    writers = {row.writer for row in answers}
    if len(writers) > 1 or len({row.id for row in answers}) < len(answers):
        raise ValueError("answers of several writers, or an id that stands twice, are no run")
    return writers.pop() if writers else ""


def _order(answers: Sequence[Given], seed: int) -> list[Given]:
    before = f"{seed} {run_digest(answers)} "
    return sorted(
        answers, key=lambda row: hashlib.sha256(json.dumps(before + row.id).encode()).digest()
    )
