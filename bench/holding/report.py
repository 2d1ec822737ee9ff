"""What a part of the run found: a table for people, and every promise that was broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class Part:
    """One table. It grows while the part runs."""

    title: str
    header: Sequence[str]
    rows: list[Sequence[Any]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """One line for each broken promise, with what is needed to see it again."""
    notes: list[str] = field(default_factory=list)

    def expect(self, kept: bool, promise: str) -> bool:
        """Write down a promise that was not kept; returns whether it was."""
        if not kept:
            self.broken.append(" ".join(promise.split())[:400])
        return kept

    def text(self) -> str:
        """The table as Markdown, with what was broken below it."""
        lines = [f"### {self.title}", ""]
        lines += [_row(self.header), _row(["---"] * len(self.header))]
        lines += [_row(row) for row in self.rows]
        lines += ["", *(f"- {note}" for note in self.notes)]
        lines += [f"- BROKEN: {promise}" for promise in self.broken]
        return "\n".join(lines).rstrip() + "\n"


def _row(cells: Sequence[Any]) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"
