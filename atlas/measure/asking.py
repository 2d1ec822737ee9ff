"""Questions, assistant -> a row per question, and the looks that every reader group takes.

A question that breaks is counted as failed with its cause and the run goes on. Each question is
also asked as every other reader group. Within one question the scores of equal pairs and texts are
kept, so that those further looks cost little; a group that sees the very same blocks is not asked
again, since no block of its trace could differ.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from atlas.errors import AtlasError, CollectionError
from atlas.measure.cases import Case, folded
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
    return Asked(rows=tuple(rows), looks=looks, leaks=tuple(found), seconds=_seconds(rows))


def ask_once(questions: Questions, opened: Opened, progress: Progress, told: Told) -> Asked:
    """Ask every question in its own scope only, as a comparison of setups does."""
    rows = []
    for case in questions.cases:
        trace, error = _ask(opened, case, questions.scope_of(case), told)
        rows.append(row_of(case, trace, error, questions))
        progress.step()
    return Asked(rows=tuple(rows), looks=0, leaks=(), seconds=_seconds(rows))


def read_all(questions: Questions, path: Path) -> Asked:
    """Rows from a file of traces that `ask` wrote; cases without a trace in it are left out.

    A trace belongs to the case with the same question and reader group, and the same day where the
    case names one. Otherwise one that was asked on the collection's `as_of` is preferred, and one
    of another day counted in `other_day`. Of several the last counts. Raises CollectionError for a
    file that is no JSON Lines of traces.
    """
    traces: dict[tuple[str, str | None], dict[str, Mapping[str, Any]]] = {}
    dated: dict[tuple[str, str | None], set[str]] = {}
    for trace in read_traces(path):
        scope = trace["scope"]
        by_day = traces.setdefault((folded(trace["question"]), scope["reader"]), {})
        by_day.pop(scope["date"], None)  # the last one comes last
        by_day[scope["date"]] = trace
    for case in questions.cases:
        if case.date is not None:
            dated.setdefault((folded(case.question), case.reader), set()).add(case.date.isoformat())
    matched: set[tuple[str, str | None, str]] = set()
    rows: list[Row] = []
    found: list[Leak] = []
    other_day = 0
    for case in questions.cases:
        scope = questions.scope_of(case)
        asked = (folded(case.question), scope.reader)
        wanted = scope.date.isoformat() if scope.date else None
        others = dated.get(asked, set()) - {wanted}
        by_day = {day: t for day, t in traces.get(asked, {}).items() if day not in others}
        day = wanted if wanted in by_day else next(reversed(by_day), None)
        if day is None or (case.date is not None and day != wanted):
            continue
        other_day += wanted is not None and day != wanted
        matched.add((*asked, day))
        rows.append(row_of(case, by_day[day], _failure(by_day[day]), questions))
        found += leaks(case.id, by_day[day], questions.documents)
    total = sum(map(len, traces.values()))
    return Asked(
        rows=tuple(rows),
        looks=len(rows),
        leaks=tuple(found),
        seconds=_seconds(rows),
        unmatched=total - len(matched),
        other_day=other_day,
    )


def read_traces(path: Path) -> Iterator[Mapping[str, Any]]:
    """The traces of a JSON Lines file; lines end at `\\n` only. Raises CollectionError."""
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise CollectionError(f"{path}: cannot be read ({error.strerror})") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise CollectionError(f"{path}:{number}: not JSON ({error})") from None
        if not _whole(values):
            raise CollectionError(
                f"{path}:{number}: not a trace; expected lines that `atlas ask --json` prints"
            )
        yield values


_FORM: Mapping[str, tuple[type, ...]] = {
    "question": (str,), "scope": (dict,), "status": (str,), "answer": (str,), "reason": (str,),
    "choices": (list,), "citations": (list,), "removed": (list,), "context": (list,),
    "dropped": (list,), "ranked": (list,), "nearest": (list,), "decision": (dict,),
    "settings": (dict,), "tokens": (dict,), "timings_seconds": (dict,),
}  # fmt: skip
"""What is read of a trace, and what it must be."""
_SCORES = ("keyword_score", "vector_score", "fused_score", "rerank_score")


def _whole(trace: Any) -> bool:
    """Whether a value has the form of a trace, as far as measuring reads it."""
    if not isinstance(trace, dict) or any(
        not isinstance(trace.get(key), kinds) for key, kinds in _FORM.items()
    ):
        return False
    scope, blocks = trace["scope"], [*trace["context"], *trace["dropped"]]
    named = [*blocks, *trace["citations"], *trace["nearest"]]
    return (
        isinstance(scope.get("reader"), str | None)
        and all(_is_day(day) for day in (scope.get("date"), *_list(scope.get("days"))))
        and all(isinstance(name, str) for name in _list(scope.get("products")))
        and all(isinstance(x, str) for x in (*trace["ranked"], *trace["choices"]))
        and len(set(trace["ranked"])) == len(trace["ranked"])
        and all(isinstance(x, dict) and isinstance(x.get("ref"), str) for x in named)
        and all(isinstance(x.get("text"), str) for x in trace["context"])
        and all(isinstance(x.get("reason"), str) for x in trace["dropped"])
        and all(isinstance(x.get(name, ""), float | int | None) for x in blocks for name in _SCORES)
        and isinstance(trace["tokens"].get("supplied"), int)
        and isinstance(trace["timings_seconds"].get("total"), float | int)
        and isinstance(trace["settings"].get("k"), int)
    )


def _list(value: Any) -> Sequence[Any]:
    """A list, or something that is no list of anything asked for."""
    return value if isinstance(value, list) else (None,)


def _is_day(value: Any) -> bool:
    try:
        date.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


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
    return trace, _failure(trace)


def _failure(trace: Mapping[str, Any]) -> str:
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


def _seconds(rows: Sequence[Row]) -> float:
    return sum(float(row.trace["timings_seconds"]["total"]) for row in rows if row.trace)
