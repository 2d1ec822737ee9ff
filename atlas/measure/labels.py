"""Label files -> Labelled answers: what people said about answers, to measure judges by.

Enters: a YAML file (a list of mappings), a JSON Lines file, or a folder of them. Leaves: the rows
in file and line order. Refused with file and line: unknown and duplicate keys, wrong types, an
empty question or answer, a label that is neither `correct` nor `wrong`, ids that stand twice, NaN,
text that is not UTF-8.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from atlas.errors import CollectionError, NothingToMeasure, UsageError
from atlas.yaml_files import Located, YamlError, meant, parse

KEYS = (
    "id", "kind", "question", "sources", "answer", "label", "reference", "history", "raters",
    "note",
)  # fmt: skip
FOLDER = "judge_labels"
YAML, JSON_LINES = (".yaml", ".yml"), (".jsonl", ".ndjson")
Label = Literal["correct", "wrong"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One answer with its sources and what people say of it."""

    id: str
    question: str
    sources: tuple[str, ...]
    answer: str
    label: Label
    where: str
    """File and line, for messages."""
    kind: str = ""
    reference: str = ""
    history: tuple[str, ...] = ()
    """The talk before the question, oldest first."""
    raters: tuple[float, ...] = ()
    """What each person gave, on any scale where more is better."""
    note: str = ""


def load_labels(path: Path) -> tuple[Labelled, ...]:
    """Every label of a file or folder.

    Raises UsageError where the path does not exist or is of another kind, CollectionError for a bad
    row, NothingToMeasure where no row is left.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder of labels")
    suffixes = (*YAML, *JSON_LINES)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.casefold() in suffixes)
    elif path.suffix.casefold() in suffixes:
        files = [path]
    else:
        raise UsageError(f"{path}: a label file is named *.yaml or *.jsonl")
    rows = tuple(row for file in files for row in _read(file))
    first: dict[str, Labelled] = {}
    judged: dict[tuple[object, ...], Labelled] = {}
    for row in rows:
        twin = judged.setdefault((row.question, row.answer, row.sources, row.history), row)
        if twin.label != row.label:
            raise CollectionError(
                f"{row.where}: the same answer is labelled {twin.label} at {twin.where} and "
                f"{row.label} here; keep one"
            )
        if row.id in first:
            raise CollectionError(
                f"{row.where}: the id {row.id!r} also stands at {first[row.id].where}; "
                "give one of them another id"
            )
        first[row.id] = row
    if not rows:
        raise NothingToMeasure(
            f"{path}: no label; write rows with question, sources, answer and label"
        )
    return rows


def in_first_half(id: str) -> bool:
    """Whether a label is of the half that thresholds may be chosen on: its sha256 is even."""
    return hashlib.sha256(id.encode()).digest()[-1] % 2 == 0


def _read(file: Path) -> Iterator[Labelled]:
    try:
        data = file.read_bytes()
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CollectionError(f"{file}:{line}: not UTF-8; save the file as UTF-8") from None
    except OSError as error:
        raise CollectionError(f"{file}: cannot be read: {error.strerror}") from None
    rows = _yaml_rows if file.suffix.casefold() in YAML else _json_rows
    for number, (row, line_of) in enumerate(rows(file, text), start=1):
        yield _labelled(row, file, number, line_of)


LineOf = Callable[[str], int]


def _yaml_rows(file: Path, text: str) -> Iterator[tuple[Any, LineOf]]:
    try:
        located = parse(text)
    except YamlError as error:
        raise CollectionError(f"{file}:{error.line}: {error.problem}") from None
    if located.value is None:
        return
    if not isinstance(located.value, list):
        raise CollectionError(f"{file}:1: expected a list of labels, each beginning with `- id:`")
    for place, row in enumerate(located.value):
        yield row, partial(_yaml_line, located, place)


def _yaml_line(located: Located, place: int, key: str) -> int:
    return located.line(place, key) if key else located.line(place)


def _same_line(line: int, key: str) -> int:
    return line


def _json_rows(file: Path, text: str) -> Iterator[tuple[Any, LineOf]]:
    for line, raw in enumerate(text.split("\n"), start=1):
        if raw.strip():
            try:
                row = json.loads(raw, parse_constant=_refuse, object_pairs_hook=_once)
            except json.JSONDecodeError as error:
                problem = f"not valid JSON at column {error.colno}: {error.msg}"
                raise CollectionError(f"{file}:{line}: {problem}") from None
            except (ValueError, RecursionError) as error:
                problem = str(error) if isinstance(error, ValueError) else "nested too deeply"
                raise CollectionError(f"{file}:{line}: {problem}") from None
            yield row, partial(_same_line, line)


def _refuse(name: str) -> float:
    raise ValueError(f"the value {name}; expected a finite number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands twice: keep one")
        found[key] = value
    return found


def _labelled(row: Any, file: Path, number: int, line_of: LineOf) -> Labelled:
    def refuse(key: str, problem: str) -> CollectionError:
        return CollectionError(f"{file}:{line_of(key)}: {problem}")

    if not isinstance(row, Mapping):
        raise refuse("", f"label {number} is no mapping; expected question, sources, answer, label")
    for key in row:
        if key not in KEYS:
            hint = meant(key, KEYS)
            raise refuse(str(key), f"unknown key {key!r}; {hint}")
    name = f"label {row.get('id', number)}"

    def text(key: str, needed: bool = False) -> str:
        value = row.get(key)
        if value is None and not needed:
            return ""
        if not isinstance(value, str) or (needed and not value.strip()):
            found = "missing" if value is None else "empty" if isinstance(value, str) else value
            raise refuse(key, f"{key} of {name} is {found!r}; expected text (quote numbers)")
        return _encodable(value, key).strip()

    def texts(key: str, needed: bool = False) -> tuple[str, ...]:
        value = row.get(key)
        if value is None and not needed:
            return ()
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise refuse(key, f"{key} of {name}: expected a list of texts")
        return tuple(_encodable(item, key) for item in value)

    def _encodable(value: str, key: str) -> str:
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise refuse(key, f"{key} of {name} holds half a character (a lone surrogate)")
        return value

    label = row.get("label")
    if label not in ("correct", "wrong"):
        raise refuse("label", f"label of {name} is {label!r}; expected correct or wrong")
    raters = row.get("raters") or []
    if not isinstance(raters, list) or not all(
        isinstance(item, int | float) and not isinstance(item, bool) and math.isfinite(item)
        for item in raters
    ):
        raise refuse("raters", f"raters of {name}: expected a list of finite numbers")
    return Labelled(
        id=text("id") or f"{file.stem}-{number}",
        question=text("question", needed=True),
        sources=texts("sources", needed=True),
        answer=text("answer", needed=True),
        label=label,
        where=f"{file}:{line_of('')}",
        kind=text("kind"),
        reference=text("reference"),
        history=texts("history"),
        raters=tuple(float(item) for item in raters),
        note=text("note"),
    )
