# ruff: noqa: E501  tables of patterns read best with one pattern a line
"""Question, passages -> what would answer it: its parts, the kind of value, the passages that do.

Used for three things that a claim alone does not show: whether a passage that answers the question
says something else, whether a part of the question was left open, and whether a judge may accept
that the sources do not say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from atlas.measure.judges import exact
from atlas.measure.judges.meaning import Meaning
from atlas.measure.judges.passages import Passage
from atlas.words import content_terms

LOOKED_AT = 8
"""Passages nearest by cosine that the reranker sees for a question."""
COSINE_WEIGHT = 20.0
"""Logits that a cosine of 1 is worth where both order passages."""

_WORD = r"(?:how|what|which|when|where|who|why|can|may|must|should|is|are|does|do|will)\b"
_JOINT = re.compile(rf"(?:[,;?]\s*(?:and\s+)?|\s+and\s+)(?={_WORD})", re.IGNORECASE)
_ASKED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"how (?:many|much) (?:months?|years?)|how long|how old|until when|since when|warranty period", ("time", "months", "date", "working days", "length")),
    (r"how (?:many|much) (?:seconds?|minutes?|hours?|days?|weeks?)|how fast|how soon|how early|how late|how quickly|how often", ("time", "months", "working days", "length", "km/h", "mph", "date")),
    (r"how far|how many (?:km|kilomet(?:er|re)s|miles|m|met(?:er|re)s)\b|what distance|range", ("length",)),
    (r"how (?:high|wide|deep|thick|tall|close|near)|how many (?:mm|cm)|diameter", ("length",)),
    (r"what (?:does|do|will|would|is|are) .*\bcosts?\b|how expensive|what price|price of|how much (?:is|are|does|do|for)\b.*\b(?:cost|costs|price|pay|for|a|an|the)\b(?!.*\bweigh)", ("euro", "dollar", "sterling", "%")),
    (r"how heavy|\bweigh\b|\bweight\b|how many (?:kg|kilos?)\b|maximum load", ("mass", "pounds")),
    (r"how hot|how cold|how warm|what temperature", ("°C",)),
    (r"what pressure|which pressure|\bpressure\b|how many (?:bar|psi)\b", ("bar", "psi")),
    (r"what torque|which torque|how tight|how many nm\b", ("torque",)),
    (r"what voltage|which voltage|how many volts?\b", ("voltage",)),
    (r"^when\b|what (?:day|date)|from what (?:day|date)|by when|which (?:day|date)", ("date", "time", "months", "number", "working days")),
    (r"how many\b", ("number", "time", "months", "length", "working days", "mass", "energy", "charge")),
)  # fmt: skip
_KINDS = tuple((re.compile(rf"(?:{cue})", re.IGNORECASE), kinds) for cue, kinds in _ASKED)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Passages in the order in which they answer a question."""

    scores: dict[int, float]
    """The sum of logit and weighted cosine, by `id` of the passage; higher is better."""
    order: tuple[Passage, ...]
    logit: float
    """The highest logit of the reranker."""
    cosine: float
    """The highest cosine."""

    def score(self, passage: Passage) -> float | None:
        return self.scores.get(id(passage))


@dataclass(frozen=True, slots=True)
class Answerable:
    """What speaks for a question having its answer in the sources."""

    logit: float
    cosine: float
    lacks_value: float
    """1 where it asks for a kind of value that none of the three best passages has, else 0."""
    unknown: float
    """Share of its content terms that no passage holds, 0 to 1."""
    unknown_code: float
    """1 where it names a code that no source names, else 0."""


def parts(question: str) -> list[str]:
    """The questions that are asked in one; the second keeps no words of the first."""
    found = [part.strip(" ?.") for part in _JOINT.split(question)]
    return [part for part in found if len(content_terms(part)) >= 1] or [question]


def asked_values(question: str) -> tuple[str, ...]:
    """The dimensions that a value which answers the question may have; empty for any answer."""
    for cue, kinds in _KINDS:
        if cue.search(question):
            return kinds
    return ()


def ranked(meaning: Meaning, question: str, may: Sequence[Passage]) -> Ranked:
    """Order passages by how well they answer; only the nearest by cosine get a score."""
    if not may:
        return Ranked({}, (), -12.0, -1.0)
    cosines = meaning.cosines(question, [passage.titled for passage in may])
    best = sorted(range(len(may)), key=lambda place: -float(cosines[place]))[:LOOKED_AT]
    logits = meaning.logits([(question, may[place].titled) for place in best])
    scores = {
        id(may[place]): logit + COSINE_WEIGHT * float(cosines[place])
        for place, logit in zip(best, logits, strict=True)
    }
    order = sorted((may[place] for place in best), key=lambda passage: -scores[id(passage)])
    return Ranked(scores, tuple(order), max(logits), float(cosines[best[0]]))


def answerable(meaning: Meaning, question: str, every: Sequence[Passage]) -> Answerable:
    """The features from which it is told whether sources answer a question."""
    codes = exact.codes_of(question)
    found = ranked(meaning, question, exact.allowed(codes, every))
    near = found.order[:3]
    asked = asked_values(question)
    given = {item.dimension or item.kind for passage in near for item in passage.figures}
    wanted = content_terms(question)
    anywhere = {term for passage in every for term in content_terms(passage.titled)}
    known = {code for passage in every for code in passage.codes}
    return Answerable(
        found.logit,
        found.cosine,
        float(bool(asked) and not given & set(asked)),
        sum(term not in anywhere for term in wanted) / max(1, len(wanted)),
        float(bool(codes - known)),
    )
