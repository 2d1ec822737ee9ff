"""The records that flow inside the judge `grounded`: what is read, and what a claim came to."""

from __future__ import annotations

from dataclasses import dataclass

from atlas.measure.judges.claims import Statement
from atlas.measure.judges.meaning import Support
from atlas.measure.judges.passages import Counted, Passage


@dataclass(frozen=True, slots=True)
class Reading:
    """A question with its sources, read once for all claims of an answer."""

    question: str
    said: str
    """The question and the talk before it."""
    every: tuple[Passage, ...]
    tables: tuple[Counted, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """One claim with what speaks for and against it."""

    statement: Statement
    score: float
    """0 to 1, higher is better supported."""
    support: Support
    faults: tuple[str, ...] = ()
    hard: bool = False
    """Whether a fault alone makes the answer wrong."""
