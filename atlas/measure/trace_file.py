"""A file of traces that `ask` wrote -> rows, for those whose question is a case.

Lines end at `\\n` only. Refused with file and line: what is no JSON, and what has not the form of a
trace as far as measuring reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from atlas.errors import CollectionError
from atlas.measure.asking import Asked, failure, own_seconds
from atlas.measure.cases import folded
from atlas.measure.leaks import Leak, leaks
from atlas.measure.questions import Questions
from atlas.measure.rows import Row, row_of


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
        rows.append(row_of(case, by_day[day], failure(by_day[day]), questions))
        found += leaks(case.id, by_day[day], questions.documents)
    total = sum(map(len, traces.values()))
    made = [(row.trace["settings"], row.trace["fingerprints"]) for row in rows if row.trace]
    if any(other != made[0] for other in made):
        raise CollectionError(
            f"{path}: its traces were made with different settings, models or indexes; measure "
            "each state in a file of its own"
        )
    return Asked(
        rows=tuple(rows),
        looks=len(rows),
        leaks=tuple(found),
        seconds=own_seconds(rows),
        unmatched=total - len(matched),
        other_day=other_day,
        missing=len(questions.cases) - len(rows),
        settings=made[0][0] if made else {},
        fingerprints=made[0][1] if made else {},
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
    "settings": (dict,), "fingerprints": (dict,), "tokens": (dict,), "timings_seconds": (dict,),
}  # fmt: skip
"""What is read of a trace, and what it must be."""
STATUSES = ("answered", "abstained", "needs_clarification", "failed")
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
        trace["status"] in STATUSES
        and isinstance(scope.get("reader"), str | None)
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
