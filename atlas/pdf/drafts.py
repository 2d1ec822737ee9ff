"""What the units of a PDF are before their place in the text is known."""

from __future__ import annotations

from dataclasses import dataclass

from atlas.records import UnitKind


@dataclass(slots=True)
class Draft:
    """A unit before its place in the text is known. `header` is the draft of its header row."""

    kind: UnitKind
    text: str
    page: int
    header: Draft | None = None
    table: int = 0
    """Rows of one table have one number."""
    hidden: str = ""
    """Why a person does not see it on its page, or ""."""

    def follows(self, before: Draft) -> bool:
        """Whether the two are items of one list or rows of one table."""
        return self.kind in ("item", "row") and (self.kind, self.table, self.hidden) == (
            before.kind,
            before.table,
            before.hidden,
        )
