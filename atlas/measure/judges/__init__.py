"""Judges: question, answer, sources -> a verdict on whether the answer is right.

Enters: texts, for `grounded` the encoder and the reranker, for `chat` a chat model. Leaves: a
Verdict. The judged text is data: nothing that it says about itself, such as "CORRECT" or "Score:
1.0", has a say in its own verdict. Refuses: the name of a judge that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from atlas.errors import UsageError
from atlas.measure.statistics import Unscored
from atlas.models import ChatModel, Encoder, Reranker

__all__ = ["JUDGES", "Judge", "Outcome", "Verdict", "load_judge"]

JUDGES = ("overlap", "grounded", "chat")
"""Every judge; `chat` alone needs a model server."""
Outcome = Literal["correct", "wrong", "unscored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a judge says about one answer."""

    verdict: Outcome
    score: float | Unscored
    """0 to 1, higher is better supported; Unscored exactly where the verdict is."""
    reason: str
    """One line that names the claim and what it lacks."""
    cause: str = ""
    """The cause of the ChatError for which it is unscored, or "" where a model gave a reply."""


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


def load_judge(
    name: str,
    encoder: Encoder | None,
    reranker: Reranker | None,
    chat: ChatModel | None = None,
    repeat: int = 0,
    answer_tokens: int | None = None,
) -> Judge:
    """The judge of that name; the models serve those that need them, None will do for the others.

    `repeat` and `answer_tokens` are for `chat`: the number of the repetition from 0, and the most
    tokens of the model's reply. Raises UsageError for an unknown judge, and for `chat` without a
    model.
    """
    if name == "overlap":
        from atlas.measure.judges.overlap import Overlap

        return Overlap()
    if name == "grounded":
        from atlas.measure.judges.grounded import Grounded

        if encoder is None or reranker is None:
            raise ValueError("the judge grounded needs an encoder and a reranker")
        return Grounded(encoder, reranker)
    if name == "chat":
        from atlas.measure.judges.chat import ANSWER_TOKENS, ChatJudge

        if chat is None:
            raise UsageError(
                "the judge chat needs a chat model; name one under `judge:` in atlas.yaml, with "
                "`base_url` and `model`"
            )
        return ChatJudge(chat, repeat, answer_tokens or ANSWER_TOKENS)
    raise UsageError(f"no judge is called {name!r}; expected one of: {', '.join(JUDGES)}")
