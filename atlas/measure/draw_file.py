"""The file of a draw: answers for a person to label <-> YAML with a head.

Enters: drawn answers with a head that says what they were drawn from; later the same file with
labels filled in. Leaves: the file, and what it holds. Refused: to write over a file that exists, or
one too long to be read back; with file and line unknown and duplicate keys, wrong types, ids that
stand twice, labels other than correct, wrong and nothing, rows that are missing or too many.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from atlas.errors import AtlasError, CollectionError, UsageError
from atlas.measure.labels import Label
from atlas.yaml_files import MAX_CHARACTERS, Located, YamlError, parse, utf8

HEAD_KEYS = ("digest", "seed", "of", "count", "ids", "writer")
ROW_KEYS = ("id", "kind", "question", "sources", "answer", "label", "note")
_ROOM = 500_000
"""Characters of a file that are left for notes, below what may be read back."""
_HOW = """\
# A random draw of a run's answers, to be labelled by a person. The rules: judge_labels/RUBRIC.md.
#
# Write `correct` or `wrong` after `label:`, by the sources of the row alone. Begin at the top and
# leave out no row. You need not label all, but decide how many before you begin. A `note:` is up to
# you. Change nothing else and move no row: the answers are compared with the run word for word.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A row of a draw."""

    id: str
    question: str
    sources: tuple[str, ...]
    answer: str
    label: Label | None = None
    """None while it is left empty."""
    kind: str = ""
    note: str = ""
    where: str = ""
    """File and line, for messages; "" while it was not read from a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """A file of drawn answers; `rows` in the order of the draw."""

    path: Path
    digest: str
    seed: int
    of: int
    """Answers of the run that was drawn from."""
    writer: str
    ids: tuple[str, ...]
    """The cases of these answers, drawn or not."""
    rows: tuple[Drawn, ...]


def load_draw(path: Path) -> Draw:
    """Read a draw, labelled or not. Raises UsageError without a file, CollectionError for a bad."""
    try:
        text = utf8(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"{path}: no such draw; write one with --export-labels") from None
    except YamlError as error:
        raise CollectionError(f"{path}:{error.line}: {error.problem}") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    return _draw(path, text)


def write_draw(draw: Draw) -> None:
    """Write a draw whole or not at all, in a file that does not exist yet.

    Raises UsageError where the file exists or would be too long; AtlasError where the disk refuses.
    """
    count = len(draw.rows)
    head = (draw.digest, draw.seed, draw.of, count, list(draw.ids), draw.writer)
    parts = [
        _HOW,
        _yaml({"draw": dict(zip(HEAD_KEYS, head, strict=True))}) + "\nanswers:",
        *(_yaml([_row(row)]) for row in draw.rows),
    ]
    text = "\n".join(parts)
    if len(text) > MAX_CHARACTERS - _ROOM:
        raise UsageError(
            f"{draw.path}: {len(draw.rows)} answers take {len(text):,} characters of "
            f"{MAX_CHARACTERS - _ROOM:,}; draw fewer"
        )
    _write_new(draw.path, text)


# ---- writing --------------------------------------------------------------------------------


class _Dumper(yaml.SafeDumper):
    """Long texts stand as blocks where YAML can keep them so letter by letter; None is nothing."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    breaks = set(text) & set("\r\x85\u2028\u2029")  # YAML makes line feeds of them unless escaped
    style = '"' if breaks else "|" if len(text) > 80 or "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(
    type(None), lambda dumper, _: dumper.represent_scalar("tag:yaml.org,2002:null", "")
)


def _row(row: Drawn) -> dict[str, Any]:
    texts = {"id": row.id, "question": row.question, "sources": list(row.sources)}
    return {**texts, "answer": row.answer, "label": None, "note": None}


def _yaml(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9)


def _write_new(path: Path, text: str) -> None:
    """Write a file that does not exist yet, whole or not at all."""
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "wb", dir=path.parent, prefix=f".{path.name}-", delete=False
        ) as file:
            temporary = file.name
            file.write(text.encode())
        os.chmod(temporary, 0o644)
        _place(Path(temporary), path)
    except OSError as error:
        raise AtlasError(f"{path}: could not be written ({error.strerror})") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _place(temporary: Path, path: Path) -> None:
    """Give a file its name, unless another has it."""
    try:
        try:
            os.link(temporary, path)  # unlike a rename it never takes the place of a file
        except FileExistsError:
            raise
        except OSError:  # a file system without links: take the name, then fill it
            path.open("x").close()
            os.replace(temporary, path)
    except FileExistsError:
        raise _in_the_way(path) from None


def _in_the_way(path: Path) -> UsageError:
    return UsageError(f"{path}: stands already and may hold labels; give another name or move it")


# ---- reading --------------------------------------------------------------------------------


def _draw(path: Path, text: str) -> Draw:
    try:
        located = parse(text)
    except YamlError as error:
        raise CollectionError(f"{path}:{error.line}: {error.problem}") from None
    whole = _mapping(path, located, ("draw", "answers"))
    head = _mapping(path, located, HEAD_KEYS, "draw")
    for key, kind in zip(HEAD_KEYS, (str, int, int, int, list, str), strict=True):
        if type(head.get(key)) is not kind:
            expected = "text" if kind is str else "a list" if kind is list else "a whole number"
            raise _refused(path, located, f"{head.get(key)!r}; expected {expected}", "draw", key)
    rows = whole.get("answers")
    if not isinstance(rows, list):
        raise _refused(path, located, "expected a list of drawn answers", "answers")
    if not 1 <= len(rows) == head["count"] <= head["of"]:
        found = f"{len(rows)} rows where {head['count']} of {head['of']} answers were drawn"
        raise _refused(path, located, f"{found}; put back what is missing", "draw", "count")
    ids = head["ids"]
    if len(set(map(str, ids))) != head["of"] or not all(isinstance(name, str) for name in ids):
        found = f"{len(ids)} ids where {head['of']} answers were drawn from; put them back"
        raise _refused(path, located, found, "draw", "ids")
    drawn: dict[str, Drawn] = {}
    for number in range(len(rows)):
        row = _drawn(path, located, number)
        first = drawn.setdefault(row.id, row)
        if first is not row:
            raise CollectionError(
                f"{row.where}: the id {row.id!r} also stands at {first.where}; keep one of the rows"
            )
    kept = {key: value for key, value in head.items() if key not in ("count", "ids")}
    return Draw(path=path, rows=tuple(drawn.values()), ids=tuple(ids), **kept)


def _drawn(path: Path, located: Located, number: int) -> Drawn:
    row = _mapping(path, located, ROW_KEYS, "answers", number)

    def text(key: str, needed: bool = True) -> str:
        value = row.get(key)
        if value is None and not needed:
            return ""
        if not isinstance(value, str):
            found = f"{value!r}; expected text (quote numbers)"
            raise _refused(path, located, found, "answers", number, key)
        return value

    sources = row.get("sources")
    if not isinstance(sources, list) or not all(isinstance(item, str) for item in sources):
        raise _refused(path, located, "expected a list of texts", "answers", number, "sources")
    label = row.get("label")
    if label not in ("correct", "wrong", "", None):
        found = f"{label!r}; expected correct, wrong or nothing yet"
        raise _refused(path, located, found, "answers", number, "label")
    return Drawn(
        id=text("id"),
        question=text("question"),
        sources=tuple(sources),
        answer=text("answer"),
        label=label or None,
        kind=text("kind", needed=False),
        note=text("note", needed=False),
        where=f"{path}:{located.line('answers', number)}",
    )


def _mapping(
    path: Path, located: Located, known: tuple[str, ...], *place: str | int
) -> Mapping[str, Any]:
    """The mapping at a place, of known keys alone."""
    value = located.value
    for step in place:
        value = value.get(step) if isinstance(value, dict) else value[int(step)]
    if not isinstance(value, dict):
        raise _refused(path, located, f"expected {', '.join(known)}", *place)
    for key in value:
        if key not in known:
            found = f"unknown key {key!r}; known: {', '.join(known)}"
            raise _refused(path, located, found, *place, key)
    return value


def _refused(path: Path, located: Located, problem: str, *place: str | int) -> CollectionError:
    name = f"{place[-1]}: " if place and isinstance(place[-1], str) else ""
    return CollectionError(f"{path}:{located.line(*place)}: {name}{problem}")
