"""The stand-in judge `overlap`: question, answer, sources -> verdict by shared words alone.

A sentence passes when more than half of its words stand somewhere in the sources, and an answer is
correct when all of its sentences pass. It takes a wrong figure for right where the words around it
are right, and a right answer in other words for wrong: it is here to show what a judge must beat.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from atlas.measure.judges import Verdict
from atlas.measure.judges.claims import sentences, shortened

MOST = 0.5
"""Share of a sentence's words above which it passes."""


class Overlap:
    """Judges by the words that an answer shares with its sources."""

    name = "overlap"

    def judge(
        self,
        question: str,
        answer: str,
        sources: Sequence[str],
        *,
        reference: str = "",
        history: Sequence[str] = (),
    ) -> Verdict:
        """Correct when every sentence passes; the score is the lowest share of any sentence.

        Question, reference and history are not read. An answer without a word is wrong with
        score 0.
        """
        known = {word for source in sources for word in _words(source)}
        worst, share = "", 1.0
        for sentence in sentences(answer):
            words = _words(sentence)
            if words:
                found = sum(word in known for word in words) / len(words)
                if not worst or found < share:
                    worst, share = sentence, found
        if not worst:
            return Verdict(verdict="wrong", score=0.0, reason="the answer holds no word")
        absent = list(dict.fromkeys(word for word in _words(worst) if word not in known))
        reason = f"{share:.0%} of the words of {shortened(worst)!r} stand in the sources"
        if absent:
            reason += f"; not {', '.join(absent[:5])}"
        return Verdict(verdict="correct" if share > MOST else "wrong", score=share, reason=reason)


def _words(text: str) -> list[str]:
    """Runs of letters and digits, case folded."""
    return re.findall(r"[^\W_]+", text.casefold())
