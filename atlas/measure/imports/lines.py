"""Files of others, line by line: text, JSON objects, and columns of ids that must match.

Lines end at `\\n` only, since other line separators may stand inside a text. A byte order mark,
`\\r` before the end and blank lines are passed over. Refused, with file and line: text that is no
UTF-8, lines above 50 MB, broken JSON, NaN and infinities.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atlas.errors import CollectionError, UsageError

MAX_LINE_BYTES = 50_000_000
FEW = 2
FEW_SHARE = 0.05
"""Up to this share of ids, and always up to FEW, may match nothing."""


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line number, counted from 1, and text of every line that is not blank.

    Raises UsageError where the file cannot be opened, CollectionError for a line that is no text.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read ({error.strerror}); give another SOURCE"
        ) from None
    with file:
        number = 0
        while True:
            try:
                data = file.readline(MAX_LINE_BYTES + 1)
            except OSError as error:
                raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
            if not data:
                return
            number += 1
            if len(data) > MAX_LINE_BYTES:
                raise CollectionError(
                    f"{path}:{number}: longer than {MAX_LINE_BYTES // 1_000_000} MB; expected one "
                    "record a line"
                )
            if number == 1:
                data = data.removeprefix(b"\xef\xbb\xbf")
            try:
                text = data.decode("utf-8").removesuffix("\n").removesuffix("\r")
            except UnicodeDecodeError as error:
                raise CollectionError(
                    f"{path}:{number}: byte {error.start} is no UTF-8; save the file as UTF-8"
                ) from None
            if text.strip():
                yield number, text


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every line. Raises UsageError or CollectionError."""
    for number, text in text_lines(path):
        try:
            value = json.loads(text, parse_constant=_no_number)
        except json.JSONDecodeError as error:
            raise CollectionError(
                f"{path}:{number}: not valid JSON ({error.msg}, column {error.colno}); "
                "expected one object a line"
            ) from None
        except (ValueError, RecursionError) as error:
            raise CollectionError(f"{path}:{number}: JSON that cannot be read ({error})") from None
        if not isinstance(value, dict):
            raise CollectionError(f"{path}:{number}: expected a JSON object, found {text[:40]!r}")
        yield number, value


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def identifier(where: str, row: dict[str, Any], key: str) -> str:
    """An id that is a text or a whole number. Raises CollectionError."""
    value = row.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.strip():
        return value.strip()
    found = f"{key} is {value!r}" if key in row else f"no key {key!r} (found: {', '.join(row)})"
    raise CollectionError(f"{where}: {found}; expected an id, a text or a whole number")


def words_of(where: str, row: dict[str, Any], key: str) -> str:
    """A text, "" where it is null or missing. Raises CollectionError for anything else."""
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise CollectionError(f"{where}: {key} is {value!r}; expected text")
    return value


def grade_of(where: str, text: str) -> int:
    """A relevance grade: a whole number, also written `1.0`. Raises CollectionError."""
    try:
        value = float(text)
        if len(text) <= 20 and value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise CollectionError(
        f"{where}: the grade is {text[:40]!r}; expected a whole number. Are the columns shifted?"
    )


def more_than_a_few(wrong: int, of: int) -> bool:
    """Whether so many of so many cannot be left out with a note: above 2 and above 5 %."""
    return wrong > max(FEW, FEW_SHARE * of)


class Column:
    """A column of ids in one file, checked against where they should be found."""

    def __init__(self, path: Path, column: str, against: str) -> None:
        self._path = path
        self._column = column
        """Such as `column 2`."""
        self._against = against
        """Such as `corpus.jsonl`."""
        self._matched = 0
        self._unknown: dict[str, int] = {}
        """Unknown id -> the line where it stands first."""
        self._rows = 0

    def matches(self, line: int, name: str, known: bool) -> bool:
        """Count one id; returns `known`."""
        if known:
            self._matched += 1
        else:
            self._rows += 1
            self._unknown.setdefault(name, line)
        return known

    def notes(self) -> Iterator[str]:
        """A line about ids that match nothing, if any. Raises CollectionError for too many."""
        if not self._unknown:
            return
        first, line = next(iter(self._unknown.items()))
        total = self._matched + self._rows
        if not self._matched and more_than_a_few(self._rows, total):
            examples = ", ".join(map(repr, list(self._unknown)[:3]))
            raise CollectionError(
                f"{self._path}:{line}: none of the {total:,} ids in {self._column} is in "
                f"{self._against}; the first are {examples}; are the columns shifted?"
            )
        found = (
            f"{self._rows:,} of {total:,} ids in {self._column} are not in {self._against} "
            f"(first: {first!r})"
        )
        if more_than_a_few(self._rows, total):
            raise CollectionError(
                f"{self._path}:{line}: {found}; up to {FEW_SHARE:.0%} would be left out, more "
                "points at shifted columns or another version of the documents"
            )
        yield f"{self._path}:{line}: {found}; left out"
