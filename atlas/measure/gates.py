"""`recall>=0.95` -> whether a run may pass.

A gate looks at the mean of a measure. A gate on a measure that no question scored is missed: what
was not measured is not good.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from atlas.errors import UsageError
from atlas.measure.statistics import Estimate, Unscored
from atlas.yaml_files import meant

_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A bar for the mean of one measure."""

    measure: str
    sign: str
    bar: float

    def text(self) -> str:
        return f"{self.measure} {self.sign} {self.bar:g}"


def parse_gate(text: str, measures: Iterable[str]) -> Gate:
    """Read one gate. Raises UsageError for another form or an unknown measure."""
    match = re.fullmatch(r"\s*([\w@]+)\s*(>=|<=|>|<)\s*(-?\d+(?:\.\d+)?|-?\.\d+)\s*", text)
    if match is None:
        raise UsageError(f"--gate {text!r}: expected a measure, >=, <=, > or <, and a number")
    known = tuple(measures)
    if match[1] not in known:
        hint = meant(match[1], known)
        raise UsageError(f"--gate {text!r}: unknown measure {match[1]!r}; {hint}")
    return Gate(measure=match[1], sign=match[2], bar=float(match[3]))


def missed(gates: Iterable[Gate], summary: Mapping[str, Estimate]) -> Iterator[str]:
    """One line for every gate that a run misses."""
    for gate in gates:
        mean = summary[gate.measure].mean
        if isinstance(mean, Unscored):
            yield f"gate {gate.text()}: no question was scored"
        elif not _SIGNS[gate.sign](mean.value, gate.bar):
            n = summary[gate.measure].scored
            yield f"gate {gate.text()}: it is {mean.value:.6g} over n {n}"
