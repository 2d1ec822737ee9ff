"""A grid file -> its setups: every combination of the values, as settings.

    retriever: [keyword, vector, hybrid]
    block_size: [500, 1000, section]
    prefix: [both, none]
    rerank: [true, false]
    k: [3, 5]

A file may also hold a list of such grids, where not every value goes with every other:

    - rerank: false
    - depth: [5, 10]

Refused, with file and line: keys that are no settings, values out of their range, and more setups
than anybody would read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from atlas.errors import SettingsError, UsageError
from atlas.settings import Settings, check_overlap, with_value
from atlas.yaml_files import Located, Place, YamlError, parse

RETRIEVERS = {"keyword": 0.0, "vector": 1.0, "hybrid": None}
"""Retriever -> its vector weight; the hybrid one has that of the settings."""
MAX_SETUPS = 200

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """One combination of a grid."""

    values: Values
    """The grid's keys with this setup's values."""
    settings: Settings

    def name(self) -> str:
        return ", ".join(f"{key} {_shown(value)}" for key, value in self.values.items()) or "today"


def read_grid(path: Path, today: Settings) -> tuple[Setup, ...]:
    """Every combination of a file of one grid or of several, in its order.

    Raises SettingsError with file and line.
    """
    try:
        located = parse(path.read_text(encoding="utf-8-sig"))
    except YamlError as error:
        raise SettingsError(f"{path}:{error.line}: {error.problem}") from None
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{path}: cannot be read as a grid ({error})") from None
    listed = isinstance(located.value, list)
    grids = located.value if listed else [located.value]
    setups: list[Setup] = []
    count = 0
    for place, grid in enumerate(grids or [None]):
        at: Place = (place,) if listed else ()
        if not isinstance(grid, dict) or not grid:
            raise SettingsError(
                f"{path}:{located.line(*at)}: expected lines such as `retriever: [keyword, hybrid]`"
            )
        lists = {key: value if isinstance(value, list) else [value] for key, value in grid.items()}
        for key, values in lists.items():
            if not values:
                raise SettingsError(
                    f"{path}:{located.line(*at, key)}: {key}: expected a list of values"
                )
        count += math.prod(map(len, lists.values()))
        if count > MAX_SETUPS:
            raise SettingsError(f"{path}:1: {count} combinations; expected at most {MAX_SETUPS}")
        setups += _combinations(path, located, at, lists, today)
    return tuple(setups)


def _combinations(
    path: Path, located: Located, at: Place, lists: Mapping[str, list[Any]], today: Settings
) -> Iterator[Setup]:
    """The setups of one grid, which stands at a place of the file."""
    for combination in itertools.product(*lists.values()):
        chosen = dict(zip(lists, combination, strict=True))
        settings = today
        for key, value in chosen.items():
            settings = _with(settings, f"{path}:{located.line(*at, key)}", key, value, today)
        check_overlap(f"{path}:{located.line(*at, 'block_overlap')}", settings)
        yield Setup(values=chosen, settings=settings)


def _with(settings: Settings, where: str, key: str, value: Any, today: Settings) -> Settings:
    """Settings with one key of a grid set. Raises SettingsError."""
    if key == "retriever":
        if not isinstance(value, str) or value not in RETRIEVERS:
            raise SettingsError(f"{where}: retriever {value!r}; expected {', '.join(RETRIEVERS)}")
        weight = RETRIEVERS[value]
        return replace(settings, vector_weight=today.vector_weight if weight is None else weight)
    if key == "rerank":
        if not isinstance(value, bool):
            raise SettingsError(f"{where}: rerank {value!r}; expected true or false")
        return settings if value else replace(settings, reranker="none")
    if key not in ("block_size", "block_overlap") and isinstance(value, list | dict):
        raise SettingsError(f"{where}: {key}: {value!r} is no single value")
    return with_value(settings, where, key, value, ("retriever", "rerank"))


def _shown(value: Any) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else str(value)
