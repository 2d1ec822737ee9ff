"""Question, claims -> what the answer leaves out, as far as it can be told from words.

Three things are looked for: the other half of a joint limit, a value that a part of the question
asks for, and in a brief answer a circumstance of the question that the sources speak of and the
answer does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from atlas.measure.judges import exact
from atlas.measure.judges.claims import shortened
from atlas.measure.judges.figures import figures
from atlas.measure.judges.judged import Judged, Reading
from atlas.measure.judges.meaning import Meaning
from atlas.measure.judges.passages import Passage
from atlas.measure.judges.question import asked_values, parts, ranked
from atlas.words import content_terms, is_code, number_of, stem

BRIEF = 2
"""Claims up to which an answer is looked through for circumstances that it passes over."""
NEAR = 3
"""Passages that count as near to a question."""
TOUCHED = 0.7
"""Cosine of a claim and a passage from which the claim counts as speaking of it."""
_COMMON = """after before day time since sit stand go get put take want need buy long must done make
made give given use used happen far fast often early late old new right good bad"""
COMMON = frozenset(stem(word) for word in _COMMON.split())
"""Terms of questions that name no circumstance."""


def left_out(meaning: Meaning, reading: Reading, judged: Sequence[Judged], answer: str) -> str:
    """What an answer leaves out, in words, "" where nothing is found."""
    may = exact.allowed(exact.codes_of(reading.question, answer), reading.every)
    cut = exact.cut_short(answer, [item.support.nearest[:1] for item in judged])
    if cut:
        return cut
    own = {item.dimension or item.kind for item in figures(answer)}
    for part in parts(reading.question):
        asked = set(asked_values(part))
        best = ranked(meaning, part, may).order[:1]
        given = {item.dimension or item.kind for passage in best for item in passage.figures}
        if asked & given and not (asked | {"number"}) & own:
            return f"it leaves open {part!r}: {shortened(best[0].text)!r}"
    if len(judged) > BRIEF:
        return ""
    passage, term = _passed_over(meaning, reading, judged, may, answer)
    if passage is None:
        return ""
    claims = [item.statement.text for item in judged]
    if float(meaning.cosines(passage.text, claims).max()) >= TOUCHED:
        return ""
    return f"it passes over {term!r}: {shortened(passage.text)!r}"


def _passed_over(
    meaning: Meaning,
    reading: Reading,
    judged: Sequence[Judged],
    may: Sequence[Passage],
    answer: str,
) -> tuple[Passage | None, str]:
    """A passage on a circumstance that the answer does not mention, and its word.

    The word stands in no other passage and in none that the answer rests on. One word is enough
    where the passage is near to the question, else it takes two.
    """
    used = [passage for item in judged for passage in item.support.nearest[:1]]
    near = ranked(meaning, reading.question, may).order[:NEAR]
    known = {term for item in used for term in content_terms(item.titled)}
    known |= set(content_terms(answer)) | COMMON
    unsaid = [
        term
        for term in content_terms(reading.question)
        if term not in known and not is_code(term) and number_of(term) is None
    ]
    texts = [set(content_terms(item.text)) for item in may]
    alone = [term for term in unsaid if sum(term in text for text in texts) == 1]
    for passage, text in zip(may, texts, strict=True):
        own = [term for term in alone if term in text]
        if len(own) > 1 or (own and any(passage is item for item in near)):
            return passage, own[0]
    return None, ""
