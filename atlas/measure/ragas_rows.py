"""Rows of a Ragas test set, written as JSON Lines and read from JSON Lines or CSV.

The keys are those of `SingleTurnSample` of ragas 0.4.3. What is written is ASCII with every key on
every row, texts "" and lists [] where there is nothing: ragas opens the file in the encoding of the
machine, and decides by the first row which columns there are. What is read may lack keys, and in
CSV holds its lists as JSON or as Python writes them.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from atlas.errors import CollectionError
from atlas.measure.imports.lines import MAX_LINE_BYTES, json_lines, text_lines

LISTS = (
    "retrieved_contexts", "retrieved_context_ids", "reference_contexts", "reference_context_ids",
)  # fmt: skip
TEXTS = ("user_input", "response", "reference")


@dataclass(frozen=True, slots=True, kw_only=True)
class RagasRow:
    """One single-turn sample. The ids of contexts stand in the order of the contexts."""

    user_input: str
    retrieved_contexts: tuple[str, ...] = ()
    retrieved_context_ids: tuple[str, ...] = ()
    reference_contexts: tuple[str, ...] = ()
    reference_context_ids: tuple[str, ...] = ()
    response: str = ""
    reference: str = ""
    synthesizer_name: str = ""
    """How a generated question came about; read, never written."""
    line: int = 0
    """Where the row begins in its file; 0 for a row that was not read."""


def ragas_line(row: RagasRow) -> str:
    """The row as one line of JSON with its line end, in ASCII."""
    values = {
        "user_input": row.user_input,
        "retrieved_contexts": row.retrieved_contexts,
        "retrieved_context_ids": row.retrieved_context_ids,
        "reference_contexts": row.reference_contexts,
        "reference_context_ids": row.reference_context_ids,
        "response": row.response,
        "reference": row.reference,
    }
    return json.dumps(values, ensure_ascii=True, allow_nan=False) + "\n"


def read_ragas(path: Path) -> Iterator[RagasRow]:
    """Every row of a `.jsonl` or `.csv` file; other keys are passed over.

    Raises UsageError for a file that cannot be opened, CollectionError with file and line for a
    broken row, a conversation of several turns, and a file without `user_input`.
    """
    rows = _csv_rows(path) if path.suffix.lower() == ".csv" else json_lines(path)
    for line, row in rows:
        where = f"{path}:{line}"
        if "user_input" not in row:
            raise CollectionError(
                f"{where}: no `user_input` (found: {', '.join(map(str, row))}); expected a test "
                "set as ragas 0.2 and later write it"
            )
        if isinstance(row["user_input"], list):
            raise CollectionError(
                f"{where}: a conversation of several turns; expected `user_input` as one text"
            )
        texts = {key: _text(where, key, row.get(key)) for key in (*TEXTS, "synthesizer_name")}
        lists = {key: _list(where, key, row.get(key)) for key in LISTS}
        yield RagasRow(
            user_input=texts["user_input"],
            retrieved_contexts=lists["retrieved_contexts"],
            retrieved_context_ids=lists["retrieved_context_ids"],
            reference_contexts=lists["reference_contexts"],
            reference_context_ids=lists["reference_context_ids"],
            response=texts["response"],
            reference=texts["reference"],
            synthesizer_name=texts["synthesizer_name"],
            line=line,
        )


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of a CSV file with a header, each with the line where it begins."""
    for _ in text_lines(path):  # encoding and lengths are checked with their lines
        pass
    before = csv.field_size_limit(MAX_LINE_BYTES)
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            for row in reader:
                if None in row or None in row.values():
                    raise CollectionError(
                        f"{path}:{line + 1}: more or fewer fields than the header has; quote "
                        "fields that hold a comma"
                    )
                yield line + 1, row
                line = reader.line_num
    except csv.Error as error:
        raise CollectionError(f"{path}:{line + 1}: not valid CSV ({error})") from None
    finally:
        csv.field_size_limit(before)


def _text(where: str, key: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise CollectionError(f"{where}: {key} is {str(value)[:40]!r}; expected text")
    return value


def _list(where: str, key: str, value: Any) -> tuple[str, ...]:
    """A list of texts or whole numbers, given as one or written out as one."""
    items = _read_list(value) if isinstance(value, str) else value
    if value is None or items is None:
        return ()
    if not isinstance(items, list) or not all(
        isinstance(item, str | int) and not isinstance(item, bool) for item in items
    ):
        raise CollectionError(
            f"{where}: {key} is {str(value)[:40]!r}; expected a list of texts, in CSV written as "
            "JSON or as Python does, with commas"
        )
    return tuple(map(str, items))


def _read_list(text: str) -> Any:
    """A list that is written out; None for an empty field; the text itself for anything else."""
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        value = ast.literal_eval(text)
        tokens = [token.type for token in tokenize.generate_tokens(io.StringIO(text).readline)]
        tokens = [kind for kind in tokens if kind != tokenize.NL]
    except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
        return text
    # texts side by side are an array of numpy: Python would read them as one
    joined = any(pair == (tokenize.STRING, tokenize.STRING) for pair in pairwise(tokens))
    return text if joined else value
