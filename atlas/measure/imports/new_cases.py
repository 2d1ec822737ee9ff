"""NewCases with their sources -> rows of a case file that stand beside the cases there are.

A question whose words stand in an imported one is merged with it, one whose words stand in an
existing case is left out, and one without a word is no question. Each is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atlas.errors import NothingToMeasure
from atlas.measure.cases import DEVELOPMENT, HELD_OUT, folded, load_cases
from atlas.measure.imports import markdown
from atlas.measure.imports.names import safe_ids


@dataclass(slots=True, kw_only=True)
class _Question:
    id: str
    text: str
    kind: str
    reference: str
    relevant: dict[str, None] = field(default_factory=dict)
    evidence: dict[str, None] = field(default_factory=dict)


class NewCases:
    """Collects questions; `rows` are the cases, `notes` what became of the others."""

    def __init__(self, target: Path) -> None:
        """Reads the existing cases of `target`. Raises CollectionError for a bad case file."""
        folders = [name for name in (DEVELOPMENT, HELD_OUT) if (target / name).is_dir()]
        existing = [case for name in folders for case in load_cases(target, name)]
        self._taken = {case.id for case in existing}
        self._asked = {folded(case.question): case.where for case in existing}
        self._questions: dict[str, _Question] = {}
        self._empty: list[str] = []
        self._merged: list[str] = []
        self._known: list[str] = []

    def add(
        self,
        name: str,
        text: str,
        relevant: Sequence[str],
        *,
        kind: str = "imported",
        reference: str = "",
        evidence: Sequence[str] = (),
    ) -> None:
        """Take a question; `relevant` holds at least one label."""
        words = folded(markdown.folded(text))
        if not words:
            self._empty.append(name)
            return
        if words in self._asked:
            self._known.append(f"{name!r}, which stands at {self._asked[words]}")
            return
        question = self._questions.get(words)
        if question is None:
            question = self._questions[words] = _Question(
                id=name,
                text=markdown.folded(text),
                kind=markdown.folded(kind),
                reference=markdown.clean(reference).strip(),
            )
        else:
            self._merged.append(f"{name!r} into {question.id!r}")
        question.relevant |= dict.fromkeys(relevant)
        question.evidence |= dict.fromkeys(evidence)

    def rows(self, notes: Sequence[str]) -> list[dict[str, Any]]:
        """The cases, in the order they came.

        Raises NothingToMeasure where there is none; `notes` may have said why.
        """
        if not self._questions:
            reasons = (
                "; ".join((*notes, *self.notes())) or "the source holds no question with a source"
            )
            raise NothingToMeasure(f"no question is left to import: {reasons}")
        ids = self._ids()
        return [
            {
                "id": ids[question.id],
                "question": question.text,
                "kind": question.kind,
                "relevant": list(question.relevant),
                **({"evidence": list(question.evidence)} if question.evidence else {}),
                "expect": "answer",
                **({"reference": question.reference} if question.reference else {}),
            }
            for question in self._questions.values()
        ]

    def notes(self) -> Iterator[str]:
        """One line for each thing that was not taken as it came."""
        for names, what in (
            (self._merged, "questions repeat another word for word and were merged with it"),
            (self._known, "questions stand in the collection already and were left out"),
            ([repr(name) for name in self._empty], "questions hold no word and were left out"),
        ):
            if names:
                yield f"{len(names):,} {what} (first: {names[0]})"
        yield from changed(self._ids(), "question")

    def _ids(self) -> dict[str, str]:
        return safe_ids([question.id for question in self._questions.values()], self._taken)


def changed(ids: dict[str, str], what: str) -> Iterator[str]:
    """A line about ids that could not stay as they are, if any."""
    pairs = [f"{old!r} is {new!r}" for old, new in ids.items() if old != new]
    if pairs:
        yield f"{len(pairs):,} {what} ids had to be changed (first: {pairs[0]})"
