"""One line of the examination, and how a check that breaks off becomes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from atlas.errors import AtlasError, apart

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was looked at, what was found, and what to do about it."""

    level: Level
    """`ok`; `warn`: works, but a person should know; `fail`: something does not work."""
    name: str
    """What was looked at, in a word: `index`, `chat`."""
    found: str
    todo: str = ""
    """What to do; "" only where nothing is to be done."""


def ok(name: str, found: str, todo: str = "") -> Finding:
    return Finding(level="ok", name=name, found=found, todo=todo)


def warn(name: str, found: str, todo: str) -> Finding:
    return Finding(level="warn", name=name, found=found, todo=todo)


def fail(name: str, found: str, todo: str) -> Finding:
    return Finding(level="fail", name=name, found=found, todo=todo)


def of_error(name: str, error: AtlasError, todo: str, level: Level = "fail") -> Finding:
    """The finding of an error, whose message mostly ends in what to do; else `todo` is said."""
    found, advice = apart(str(error), todo)
    return Finding(level=level, name=name, found=found, todo=advice)


def guarded(name: str, check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """The findings of a check; whatever breaks in it becomes one and stops no other check."""
    try:
        yield from check()
    except AtlasError as error:
        yield of_error(name, error, "correct it and look again")
    except ImportError as error:
        yield fail(name, f"could not be looked at ({error})", "mend what `packages` names first")
    except Exception as error:  # a doctor must not fall ill of what it looks at
        reason = " ".join(str(error).split())
        yield fail(
            name,
            f"could not be looked at ({type(error).__name__}: {reason})",
            "if the other lines do not explain it, report it as a bug of atlas with this line",
        )


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 file`, `2,000 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
