"""YAML text -> plain values with the line of every key. Refuses what a settings file never needs.

Refused: duplicate keys, aliases and anchors (a few lines of them can unfold to gigabytes), tags of
any language, more than one document, files above 5 MB, nesting above 50 levels.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

MAX_CHARACTERS = 5_000_000
MAX_DEPTH = 50

Place = tuple[str | int, ...]
"""The way to a value: mapping keys and list positions from the root."""


class YamlError(Exception):
    """`line` is 1-based in the text that was given; `problem` says what was found and expected."""

    def __init__(self, line: int, problem: str) -> None:
        self.line = line
        self.problem = " ".join(problem.split())
        super().__init__(f"line {line}: {self.problem}")


@dataclass(frozen=True, slots=True)
class Located:
    """A parsed value and, for every place in it, the 1-based line where it begins."""

    value: Any
    lines: dict[Place, int]
    written: dict[Place, str]
    """Scalars as they are written: YAML makes 271 of `0417` and 1.1 of `1.10`."""

    def line(self, *place: str | int) -> int:
        """The line of `place`, or of the nearest place above it that has one."""
        for length in range(len(place), -1, -1):
            if place[:length] in self.lines:
                return self.lines[place[:length]]
        return 1


def meant(name: object, known: Sequence[str]) -> str:
    """What to say of a name that is not known: the nearest one, or all of them."""
    near = difflib.get_close_matches(str(name), known, 1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"


def utf8(data: bytes) -> str:
    """The text of a file in UTF-8, with a byte order mark or without. Raises YamlError."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + data.count(b"\n", 0, error.start)
        problem = f"cannot be read as UTF-8 text (byte 0x{data[error.start]:02x})"
        raise YamlError(line, f"{problem}; save the file as UTF-8") from None


def parse(text: str, first_line: int = 1) -> Located:
    """Parse one YAML document. `first_line` is the line of the file at which `text` begins.

    Raises YamlError.
    """
    if len(text) > MAX_CHARACTERS:
        raise YamlError(first_line, f"more than {MAX_CHARACTERS:,} characters of YAML")
    lines: dict[Place, int] = {}
    written: dict[Place, str] = {}
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:  # found before the whole is read: scanning deep nests is slow
                line = first_line + getattr(event.start_mark, "line", 0)
                raise YamlError(line, f"nested deeper than {MAX_DEPTH} levels")
            anchor = getattr(event, "anchor", None)
            if isinstance(event, yaml.AliasEvent) or anchor:
                raise YamlError(
                    first_line + getattr(event.start_mark, "line", 0),
                    f"an anchor or alias ({anchor}): write the value out instead",
                )
        node = loader.get_single_node()
        value = None if node is None else _build(loader, node, (), lines, written, first_line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        last = max(len(text.rstrip().splitlines()), 1) - 1  # an open bracket is missed after it
        line = first_line + (min(mark.line, last) if mark else 0)
        raise YamlError(line, f"not valid YAML: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        line = first_line + text.count("\n", 0, error.position)
        raise YamlError(
            line, f"not valid YAML: the character U+{ord(text[error.position]):04X}"
        ) from None
    except yaml.YAMLError as error:
        raise YamlError(first_line, f"not valid YAML: {str(error).splitlines()[0]}") from None
    finally:
        if loader is not None:
            loader.dispose()
    return Located(value, lines, written)


def _build(
    loader: yaml.SafeLoader,
    node: yaml.Node,
    place: Place,
    lines: dict[Place, int],
    written: dict[Place, str],
    first_line: int,
) -> Any:
    def below(step: str | int, child: yaml.Node) -> Any:
        return _build(loader, child, (*place, step), lines, written, first_line)

    line = first_line + node.start_mark.line
    lines.setdefault(place, line)
    if isinstance(node, yaml.MappingNode):
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key_line = first_line + key_node.start_mark.line
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlError(key_line, "a key that is not a word")
            key = _whole(str(key_node.value), key_line)
            if key in values:
                raise YamlError(key_line, f"the key {key!r} stands twice: keep one")
            lines[(*place, key)] = key_line
            values[key] = below(key, value_node)
        return values
    if isinstance(node, yaml.SequenceNode):
        return [below(number, item) for number, item in enumerate(node.value)]
    if node.tag not in _PLAIN_TAGS:
        raise YamlError(line, f"a value of type {node.tag}: use plain text, numbers and dates")
    written[place] = _whole(str(node.value), line)
    try:
        return loader.construct_object(node)
    except (ValueError, OverflowError) as error:
        raise YamlError(line, f"{node.value!r} cannot be read: {error}") from None


def _whole(text: str, line: int) -> str:
    """The text, refused where an escape made half a character of it, which no file can hold."""
    if _HALF.search(text):
        raise YamlError(line, f"half of a character in {text[:40]!r}: write the character itself")
    return text


_HALF = re.compile("[\ud800-\udfff]")
_PLAIN_TAGS = {
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp")
}
