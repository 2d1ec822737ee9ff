"""The judge `grounded`: question, answer, sources -> verdict, without a model server.

The answer is cut into claims. Each is compared by meaning with the passages that may speak for it,
by the encoder and the reranker, and what can be checked exactly is: figures, units, codes, dates,
counts, negations, opposites. The score of the answer is the mean of its claims, halfway drawn to
that of its weakest third, and lowered for what it leaves out. An answer that declines is judged by
whether the sources answer the question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from atlas.measure.judges import Verdict, exact
from atlas.measure.judges.claims import Statement, shortened, statements
from atlas.measure.judges.figures import figures, supported
from atlas.measure.judges.fitted import supported_by_meaning, threshold, unanswered
from atlas.measure.judges.judged import Judged, Reading
from atlas.measure.judges.meaning import Meaning, Support, share
from atlas.measure.judges.omission import left_out
from atlas.measure.judges.passages import Passage, counted, passages
from atlas.measure.judges.placement import DIRECT, misplaced, placed
from atlas.measure.judges.polarity import contradiction
from atlas.measure.judges.question import answerable
from atlas.models import Encoder, Reranker
from atlas.words import content_terms

FAULT = 0.1
"""What is left of a claim's score by an exact fault."""
DENIED = 0.3
"""What is left of it where the sources seem to say the contrary, which words alone can mistake."""
OVERALL = 0.7
"""What is left of the whole answer's score by one exact fault."""
LEFT_OUT = 0.5
"""What is left of an answer's score where it leaves something out."""
DECLINED = 2.0
"""Odds that declining is right before the sources are looked at: who declines has looked."""
DECLINES_BY = 2
"""Claims within which an answer must say that it declines, to be judged as one that does."""
ELLIPSIS = 8
"""Content terms below which the first claim is also read as the end of its question."""


class Grounded:
    """Judges by meaning and by exact checks, with the models on board."""

    name = "grounded"

    def __init__(self, encoder: Encoder, reranker: Reranker) -> None:
        self.meaning = Meaning(encoder, reranker)

    def judge(
        self,
        question: str,
        answer: str,
        sources: Sequence[str],
        *,
        reference: str = "",
        history: Sequence[str] = (),
    ) -> Verdict:
        """Correct where the score reaches the fitted threshold. The reference is not read."""
        score, reason = self.score(question, answer, sources, history)
        correct = score >= threshold()
        return Verdict(verdict="correct" if correct else "wrong", score=score, reason=reason)

    def score(
        self, question: str, answer: str, sources: Sequence[str], history: Sequence[str] = ()
    ) -> tuple[float, str]:
        """The score from 0 to 1, higher is better supported, and the reason in one line."""
        found = statements(question, answer)
        if not found:
            return 0.0, "the answer states nothing"
        every = passages(question, sources)
        reading = Reading(question, "\n".join((*history, question)), every, counted(every))
        judged = self._claims(reading, [item for item in found if item.kind == "statement"])
        value = combined(judged)
        if not judged or any(item.kind == "abstention" for item in found[:DECLINES_BY]):
            chance = self._rightly_declined(reading)
            if not judged or chance < value:
                text = next(item.text for item in found if item.kind == "abstention")
                right = chance >= threshold()
                doubt = "nor do the sources answer" if right else "the sources seem to answer"
                return chance, f"it declines ({shortened(text)!r}); {doubt}"
            return value, _reason(judged)
        omitted = left_out(self.meaning, reading, judged, answer)
        return value * (LEFT_OUT if omitted else 1.0), _reason(judged, omitted)

    def _rightly_declined(self, reading: Reading) -> float:
        """The probability that declining is right, on the scale of scores."""
        chance = unanswered(answerable(self.meaning, reading.question, reading.every))
        chance = DECLINED * chance / (DECLINED * chance + 1 - chance)
        limit = threshold()
        if chance < 0.5:
            return 2 * chance * limit
        return limit + (2 * chance - 1) * (1 - limit)

    def _claims(self, reading: Reading, found: Sequence[Statement]) -> list[Judged]:
        """Judge every statement; the codes of those before it still hold for a later one."""
        judged = []
        codes = exact.codes_of(reading.question)
        for place, statement in enumerate(found):
            codes |= exact.codes_of(statement.text)
            may = exact.allowed(codes, reading.every)
            judged.append(self._claim(reading, statement, may, first=place == 0))
        return judged

    def _claim(
        self, reading: Reading, statement: Statement, may: Sequence[Passage], first: bool
    ) -> Judged:
        text, question = statement.text, reading.question
        support = self.meaning.support(statement.read, may)
        value = supported_by_meaning(support)
        if first and len(content_terms(text)) < ELLIPSIS:
            whole = self.meaning.support(f"{question} {text}", may)
            value = max(value, supported_by_meaning(whole))
        counts = exact.counted_right(text, question, reading.tables)
        faults = [
            *exact.unsupported(text, question, may, reading.every, reading.said, counts),
            *exact.miscounted(text, question, reading.tables, may),
        ]
        if faults:
            return Judged(statement, FAULT * value, support, tuple(faults), hard=True)
        denial = _denial(statement, question, may, support)
        if denial:
            return Judged(statement, DENIED * value, support, (denial,))
        said = figures(reading.said)
        own = [item for item in figures(text) if not supported(item, said)]
        if not own:
            return Judged(statement, value, support)
        left, doubt = misplaced(self.meaning, reading, text, own, may, first)
        if doubt:
            return Judged(statement, left * value, support, (doubt,))
        if first and any(item.number in counts for item in own):
            value = max(value, DIRECT)
        value = max(value, placed(self.meaning, reading, text, own, may, support, first))
        return Judged(statement, value, support)


def combined(judged: Sequence[Judged]) -> float:
    """The score of an answer: between the mean of its claims and that of its weakest third.

    A third is rounded up, so that with up to three claims the weakest alone counts there. The two
    weigh the same up to three claims; with n claims the weakest third weighs 1.5 / n, since the
    lowest of many scores is low by chance. 0 without claims. One exact fault lowers the whole.
    """
    if not judged:
        return 0.0
    scores = sorted(item.score for item in judged)
    third = scores[: math.ceil(len(scores) / 3)]
    weight = min(0.5, 1.5 / len(scores))
    value = (1 - weight) * sum(scores) / len(scores) + weight * sum(third) / len(third)
    return value * (OVERALL if any(item.hard for item in judged) else 1.0)


def _denial(statement: Statement, question: str, may: Sequence[Passage], support: Support) -> str:
    """What the part of a passage that shares most words with a claim says against it."""
    bare = statement.polar != "" and statement.text.casefold() in ("yes", "no")
    text = question if bare else statement.text
    texts = [part for item in (*support.nearest, *may) for part in item.parts]
    if not texts:
        return ""
    nearest = max(texts, key=lambda part: share(text, part))
    return contradiction(text, nearest, denied=bare and statement.polar == "no")


def _reason(judged: Sequence[Judged], omitted: str = "") -> str:
    worst = min(judged, key=lambda item: item.score)
    text = shortened(worst.statement.text)
    if worst.faults:
        return f"{text!r}: {'; '.join(worst.faults)}"
    if omitted:
        return omitted
    if not worst.support.nearest:
        return f"weakest claim {text!r} ({worst.score:.2f}); no source speaks of it"
    nearest = shortened(worst.support.nearest[0].text)
    return f"weakest claim {text!r} ({worst.score:.2f}); nearest in the sources: {nearest!r}"
