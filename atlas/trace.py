"""What the stages found -> one JSON line, and past traces by their id.

Traces are appended to `traces.jsonl` in the state folder with one write each, so that a killed
process leaves whole lines; what a full disk cuts short is taken back and told. Nothing in a trace
tells that something was out of scope.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from atlas.errors import AtlasError, UsageError
from atlas.records import Answer, Dropped, Hit, Trace
from atlas.whole_files import add_line

SCHEMA = "atlas-trace-1"
FILE_NAME = "traces.jsonl"
NEAREST = 3
"""Documents that are named where there is no answer."""
_STEERING = re.compile(
    "[\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ue000-\uf8ff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Control and format characters that `json.dumps` leaves as they are."""


def make_trace(
    *,
    question: str,
    scope: dict[str, Any],
    answer: Answer,
    kept: Sequence[Hit] = (),
    dropped: Sequence[Dropped] = (),
    ranked: Sequence[Hit] = (),
    nearest: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> Trace:
    """Put a trace together; `more` holds further JSON values such as timings."""
    return Trace(
        values={
            "schema": SCHEMA,
            "id": uuid.uuid4().hex[:12],
            "question": question,
            "scope": scope,
            "status": answer.status,
            "answer": answer.text,
            "reason": answer.reason,
            "choices": list(answer.choices),
            "citations": [
                {
                    "marker": citation.marker,
                    "ref": citation.ref,
                    "document": citation.document,
                    "title": citation.title,
                    "section": citation.section,
                    "page": citation.page,
                    "quote": citation.quote,
                    "hidden": citation.hidden,
                }
                for citation in answer.citations
            ],
            "removed": list(answer.removed),
            "context": [hit_values(hit) for hit in kept],
            "dropped": [
                {"ref": item.hit.block.ref, "reason": item.reason, **_scores(item.hit)}
                for item in dropped
            ],
            "ranked": [hit.block.ref for hit in ranked],
            "nearest": list(nearest),
            **more,
        }
    )


def hit_values(hit: Hit) -> dict[str, Any]:
    """A supplied block as the trace shows it."""
    block = hit.block
    return {
        "ref": block.ref,
        "document": block.document,
        "title": block.title,
        "section": " > ".join(block.titles),
        "page": block.page_label,
        "text": block.text,
        "hidden": block.hidden,
        **_scores(hit),
    }


def _scores(hit: Hit) -> dict[str, Any]:
    return {
        "keyword_score": _rounded(hit.keyword_score),
        "vector_score": _rounded(hit.vector_score),
        "fused_score": _rounded(hit.fused_score),
        "rerank_score": _rounded(hit.rerank_score),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def nearest_documents(hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """The documents that came closest, best first; all of them in scope."""
    found: dict[str, dict[str, Any]] = {}
    for hit in hits:
        block = hit.block
        found.setdefault(
            block.document,
            {
                "document": block.document,
                "title": block.title,
                "section": " > ".join(block.titles),
                "ref": block.ref,
            },
        )
    return list(found.values())[:NEAREST]


class Clock:
    """Seconds per stage."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._stages: dict[str, float] = {}

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._stages[stage] = time.perf_counter() - begun

    def seconds(self) -> dict[str, float]:
        total = time.perf_counter() - self._started
        return {name: round(value, 6) for name, value in (*self._stages.items(), ("total", total))}


def line(trace: Trace) -> str:
    """The trace as one line of JSON without its line end."""
    return escaped(
        json.dumps(trace.values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    )


def escaped(text: str) -> str:
    """JSON with characters that could steer a terminal or turn words around written as \\u….

    The JSON's value stays the same: such characters stand in its strings only.
    """
    return _STEERING.sub(lambda match: "".join(map(_escape, match.group())), text)


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def save(trace: Trace, state: Path) -> None:
    """Append a trace to the state folder. Raises AtlasError where the disk refuses."""
    data = line(trace).encode("utf-8", "replace")
    path = state / FILE_NAME
    try:
        add_line(path, data, 0o600)
    except OSError as error:
        raise AtlasError(f"{path}: the trace could not be written ({error.strerror})") from None


def load(wanted: str, state: Path) -> Trace:
    """A past trace by its id or the beginning of it; `last` is the newest.

    Raises UsageError where none or several begin so.
    """
    if wanted != "last" and not re.fullmatch(r"[0-9a-f]{1,32}", wanted):
        raise UsageError(f"{wanted!r} is no trace id; expected its first hex digits, or `last`")
    found: dict[str, Trace] = {}
    for trace in past(state):
        if wanted == "last":
            found = {wanted: trace}
        elif trace.id.startswith(wanted):
            found[trace.id] = trace
    if not found:
        raise UsageError(f"no trace {wanted}; `atlas ask --json` prints the id of each answer")
    if wanted not in found and len(found) > 1:
        raise UsageError(f"several traces begin with {wanted}; give more digits")
    return found.get(wanted) or next(iter(found.values()))


def past(state: Path) -> Iterator[Trace]:
    """Every whole trace of a state folder, oldest first."""
    try:
        file = (state / FILE_NAME).open("rb")
    except OSError:
        return
    with file:
        for data in file:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                values = json.loads(data)
                if values["schema"] == SCHEMA and isinstance(values["id"], str):
                    yield Trace(values=values)
