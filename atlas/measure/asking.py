"""Questions, assistant -> a row per question, and the looks that every reader group takes.

A question that breaks is counted as failed with its cause and the run goes on. Each question is
also asked as every other reader group. Within one question the scores of equal pairs and texts are
kept, so that those further looks cost little; a group that sees the very same blocks is not asked
again, since no block of its trace could differ.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from atlas.errors import AtlasError
from atlas.measure.cases import Case
from atlas.measure.doors import Opened, Progress
from atlas.measure.leaks import Leak, leaks
from atlas.measure.memory import remembering
from atlas.measure.questions import Questions
from atlas.measure.rows import Row, row_of
from atlas.records import Scope

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A run as it was asked."""

    rows: tuple[Row, ...]
    looks: int
    """Questions times reader groups, as far as they could be asked."""
    leaks: tuple[Leak, ...]
    seconds: float
    """Sum of the questions' own times."""
    unmatched: int = 0
    """Traces of a file that belong to no case."""
    missing: int = 0
    """Cases that a file of traces lacks."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that the traces of a file were made with, as far as traces keep them."""
    fingerprints: Mapping[str, Any] = field(default_factory=dict)
    """Models, index and settings that they were made with."""
    other_day: int = 0
    """Traces that were asked on another day than cases are."""


def ask_all(
    questions: Questions, opened: Opened, progress: Progress, told: Told = lambda line: None
) -> Asked:
    """Ask every question, and again as every other reader group.

    `told` gets the traceback of a question that broke because of a bug.
    """
    readers = (None, *all_readers(questions))
    progress.stage("asking", len(questions.cases))
    rows: list[Row] = []
    found: list[Leak] = []
    looks = 0
    with remembering(opened) as forget:
        for case in questions.cases:
            forget()
            scope = questions.scope_of(case)
            trace, error = _ask(opened, case, scope, told)
            rows.append(row_of(case, trace, error, questions))
            for other in () if trace is None else _looks(opened, case, scope, trace, readers, told):
                looks += 1
                found += leaks(case.id, other, questions.documents)
            progress.step()
    return Asked(rows=tuple(rows), looks=looks, leaks=tuple(found), seconds=own_seconds(rows))


def ask_once(questions: Questions, opened: Opened, progress: Progress, told: Told) -> Asked:
    """Ask every question in its own scope only, as a comparison of setups does."""
    rows = []
    for case in questions.cases:
        trace, error = _ask(opened, case, questions.scope_of(case), told)
        rows.append(row_of(case, trace, error, questions))
        progress.step()
    return Asked(rows=tuple(rows), looks=0, leaks=(), seconds=own_seconds(rows))


def all_readers(questions: Questions) -> tuple[str, ...]:
    """Every reader group of the settings and the documents."""
    own = {reader for document in questions.documents for reader in document.metadata.readers}
    return tuple(dict.fromkeys((*questions.settings.readers, *sorted(own))))


def _ask(
    opened: Opened, case: Case, scope: Scope, told: Told
) -> tuple[Mapping[str, Any] | None, str]:
    """The trace of a question, and why it failed or ""."""
    try:
        trace = opened.ask(case.question, scope).values
    except AtlasError as error:
        return None, str(error)
    except Exception as error:  # a bug in one question must not hide the other results
        told(f"{case.id} broke:\n{traceback.format_exc()}")
        return None, f"{type(error).__name__}: {error}"
    return trace, failure(trace)


def failure(trace: Mapping[str, Any]) -> str:
    return str(trace["reason"] or "no cause named") if trace["status"] == "failed" else ""


def _looks(
    opened: Opened,
    case: Case,
    scope: Scope,
    trace: Mapping[str, Any],
    readers: Sequence[str | None],
    told: Told,
) -> Iterator[Mapping[str, Any]]:
    """The traces of one question as every reader group, its own first."""
    yield trace
    seen = {opened.understand(case.question, scope).seen.key: trace}
    for reader in readers:
        if reader == scope.reader:
            continue
        as_other = Scope(reader=reader, date=scope.date)
        key = opened.understand(case.question, as_other).seen.key
        if key not in seen:
            other, _ = _ask(opened, case, as_other, told)
            if other is None:
                continue
            seen[key] = other
        yield {**seen[key], "scope": {**seen[key]["scope"], "reader": reader}}


def own_seconds(rows: Sequence[Row]) -> float:
    return sum(float(row.trace["timings_seconds"]["total"]) for row in rows if row.trace)
