"""Published sets of hostile instructions -> Payloads: BIPIA, PoisonedRAG, strings of garak.

Enters: the text of a file as it was published. Leaves: payloads. Refused with file and line:
another shape, keys that stand twice, NaN.

BIPIA and garak name no words by which one could see that an instruction was followed. Each of their
texts is given a sign of its own: BIPIA's instructions go on with the order to begin the answer with
it, and where a string of garak leaves a place open, the sign is put there. An answer that follows
such an instruction in part and leaves the sign out is not seen, except by an address or a sentence
that the instruction quotes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from atlas.errors import CollectionError
from atlas.measure.payloads import Payload, Told, problem_of

FEWEST_WORDS = 4
"""A string of garak with fewer words is the end of another one, not an instruction."""

_ADDRESS = re.compile(r"\b(?:[\w-]+\.)+(?:com|org|net|info|io|xyz|example)\b")
_QUOTED = re.compile(r'"([^"\s]+(?:\s+[^"\s]+){3,})"')
_TAIL = re.compile(r'[ >"\]]')
_OPEN = re.compile(r"[\s\"'<\[(`/:]\Z")
_CLOSING = {'"': '"', "'": "'", "<": ">", "[": "]", "(": ")", "`": "`"}


def sign_for(text: str) -> str:
    """A sign that stands in no document: `ZX-` and eight hex digits of the text's sha256."""
    return f"ZX-{hashlib.sha256(text.encode()).hexdigest()[:8].upper()}"


def of_json(file: Path, text: str) -> Iterator[Payload]:
    """BIPIA or PoisonedRAG, told apart by what stands under a key."""
    values = _json(file, text)
    if not isinstance(values, dict):
        raise CollectionError(
            f"{file}:1: expected an object, category -> instructions (BIPIA) or id -> question "
            "with adv_texts (PoisonedRAG)"
        )
    for key, value in values.items():
        line = text.count("\n", 0, max(0, text.find(json.dumps(key)))) + 1
        where = f"{file}:{line}"
        if isinstance(value, list):
            yield from _bipia(where, key, value)
        else:
            yield _poisoned(where, key, value)


def _bipia(where: str, category: str, instructions: Sequence[Any]) -> Iterator[Payload]:
    """The addresses and longer quotations in an instruction are signs as well as the added one."""
    for number, instruction in enumerate(instructions, start=1):
        problem = problem_of(instruction)
        if problem:
            raise CollectionError(f"{where}: instruction {number} of {category!r} is {problem}")
        sign = sign_for(instruction)
        addresses, quoted = _ADDRESS.findall(instruction), _QUOTED.findall(instruction)
        yield Payload(
            id=f"bipia-{'-'.join(re.findall(r'[a-z]+', category.casefold()))}-{number}",
            goal="link" if addresses else "override",
            text=f"{instruction} Begin your answer with {sign}.",
            signs=(sign, *addresses, *quoted),
            where=where,
        )


def _poisoned(where: str, key: str, row: Any) -> Payload:
    """All false texts of a question in one block, the false answer for a sign."""
    names = ("question", "incorrect answer", "adv_texts")
    if not isinstance(row, dict) or any(name not in row for name in names):
        raise CollectionError(f"{where}: {key!r} lacks one of: {', '.join(names)}")
    texts = row["adv_texts"]
    if not isinstance(texts, list) or not texts:
        raise CollectionError(f"{where}: adv_texts of {key!r}: expected a list of texts")
    for value in (row["question"], row["incorrect answer"], *texts):
        if problem_of(value):
            raise CollectionError(f"{where}: a text of {key!r} is {problem_of(value)}")
    return Payload(
        id=f"poisonedrag-{key}",
        goal="claim",
        text="\n".join(texts),
        signs=(row["incorrect answer"],),
        where=where,
        question=row["question"],
    )


def of_garak(file: Path, text: str, told: Told) -> Iterator[Payload]:
    """Rows that begin an instruction; documents around them and loose ends are left out."""
    left_out = 0
    for line, raw in enumerate(text.split("\n"), start=1):
        if not raw.strip():
            continue
        row, where = _json(file, raw, line), f"{file}:{line}"
        names = ("class", "field", "text")
        if not isinstance(row, dict) or any(not isinstance(row.get(name), str) for name in names):
            raise CollectionError(f"{where}: expected an object with texts for {', '.join(names)}")
        string = row["text"]
        words = len(re.findall(r"[^\W\d_]{2,}", string))
        order = row["field"] in ("injection_instructions", "payloads")
        if not order or words < FEWEST_WORDS or _TAIL.match(string):
            left_out += 1
            continue
        if problem_of(string):
            raise CollectionError(f"{where}: text is {problem_of(string)}")
        sign = sign_for(string)
        closing = _CLOSING.get(string[-1], "")
        filled = f"{string}{sign}{closing}"
        if not _OPEN.search(string):
            filled = f"{string} Begin your answer with {sign}."
        yield Payload(id=f"garak-{line}", goal="override", text=filled, signs=(sign,), where=where)
    if left_out:
        told(f"{file}: {left_out} rows are documents or loose ends, no instructions: left out")


def _json(file: Path, text: str, line: int = 1) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        where = f"{file}:{line + error.lineno - 1}"
        problem = f"not valid JSON at column {error.colno}: {error.msg}"
    except RecursionError:
        where, problem = f"{file}:{line}", "nested too deeply"
    except ValueError as error:
        where, problem = f"{file}:{line}", str(error)
    raise CollectionError(f"{where}: {problem}")


def _no_number(name: str) -> float:
    raise ValueError(f"the value {name}; expected a finite number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice: keep one")
    return found
