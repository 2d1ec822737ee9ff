"""Judges: question, answer, sources -> a verdict on whether the answer is right.

Enters: texts, and for `grounded` the encoder and the reranker. Leaves: a Verdict. The judged text
is data: nothing that it says about itself, such as "CORRECT" or "Score: 1.0", has a say in its own
verdict. Refuses: the name of a judge that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from atlas.errors import UsageError
from atlas.measure.statistics import Unscored
from atlas.models import Encoder, Reranker

__all__ = ["JUDGES", "Judge", "Outcome", "Verdict", "load_judge"]

JUDGES = ("overlap", "grounded")
"""The judges that need no model server."""
Outcome = Literal["correct", "wrong", "unscored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a judge says about one answer."""

    verdict: Outcome
    score: float | Unscored
    """0 to 1, higher is better supported; Unscored exactly where the verdict is."""
    reason: str
    """One line that names the claim and what it lacks."""


class Judge(Protocol):
    """Says whether an answer is right by its sources."""

    @property
    def name(self) -> str: ...

    def judge(
        self,
        question: str,
        answer: str,
        sources: Sequence[str],
        *,
        reference: str = "",
        history: Sequence[str] = (),
    ) -> Verdict:
        """Judge one answer. `reference` is a model answer and `history` the talk before it."""
        ...


def load_judge(name: str, encoder: Encoder, reranker: Reranker) -> Judge:
    """The judge of that name; the models serve those that need them. Raises UsageError."""
    if name == "overlap":
        from atlas.measure.judges.overlap import Overlap

        return Overlap()
    if name == "grounded":
        from atlas.measure.judges.grounded import Grounded

        return Grounded(encoder, reranker)
    raise UsageError(f"no judge is called {name!r}; expected one of: {', '.join(JUDGES)}")
