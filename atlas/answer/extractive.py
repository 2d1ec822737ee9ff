"""Question, supplied blocks -> candidates for quoting, and the claims they make.

Enters: hits in rank order. Leaves: their quotes scored by the reranker, best first, and the claims
of an answer that rests on one of them. Writes no word of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from atlas.answer.question import EXTREME, Question
from atlas.answer.quotes import Quote, instructions_of, quotes_of
from atlas.records import Claim, Hit
from atlas.words import NUMBER_WORDS, number_of, terms

MAX_QUOTES = 40
"""Quotes that are scored per question; those with most question words go first."""
MAX_ANSWER = 600
"""Characters after which nothing is added to an answer."""

Score = Callable[[Sequence[tuple[str, str]]], Sequence[float]]
"""Pairs of question and text -> one logit per pair, higher is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A quote that could answer."""

    quote: Quote
    hit: Hit
    marker: int
    logit: float
    """The reranker on question and quote, the quote under all its titles."""


def candidates(question: Question, kept: Sequence[Hit], score: Score) -> list[Candidate]:
    """Every quote of the kept blocks, best first."""
    quoting = instructions_of if question.asked == "steps" else quotes_of
    pairs = [
        (marker, hit, quote) for marker, hit in enumerate(kept, 1) for quote in quoting(hit.block)
    ]
    if len(pairs) > MAX_QUOTES:
        wanted = set(question.terms)
        pairs.sort(key=lambda item: -len(wanted & set(terms(item[2].text))))
        pairs = pairs[:MAX_QUOTES]
    texts = [in_context(quote) for _, _, quote in pairs]
    scored = score([(words, text) for text in texts for words in question.wordings])
    wordings = len(question.wordings)
    logits = [max(scored[i : i + wordings]) for i in range(0, len(scored), wordings)]
    found = [
        Candidate(
            quote=quote,
            hit=hit,
            marker=marker,
            logit=float(logit) + _range_bonus(question, quote) - _hedge(question, quote),
        )
        for (marker, hit, quote), logit in zip(pairs, logits, strict=True)
    ]
    return sorted(found, key=lambda item: (-item.logit, item.marker, item.quote.start))


_RANGE = re.compile(
    r"(?P<low>\d+(?:\.\d+)?)\s*(?P<unit>[^\W\d_]+)?\s*(?:to|–|-|up to)\s*"
    r"(?P<high>\d+(?:\.\d+)?)\s*(?P<unit2>[^\W\d_]+)"
)
RANGE_BONUS = 4.0
"""Logits that a row gains when its range holds the number in the question, or loses if not."""
LEAST_BARE, MOST_BARE = 20, 1900
"""A number without a unit from 20 is read in the unit of a range that holds it, since people type
`for 80` or `170 tall`; a smaller one may count anything, and one from 1900 is a year."""


def _range_bonus(question: Question, quote: Quote) -> float:
    """Rows such as `76 kg to 90 kg` answer a question about 80 kg, and others do not."""
    if quote.kind != "row":
        return 0.0
    numbers = {term: number for term in terms(question.text) if (number := number_of(term))}
    for match in _RANGE.finditer(quote.text):
        unit = terms(f"1 {match['unit2']}")[0][1:]
        for term, number in numbers.items():
            inside = float(match["low"]) <= float(number) <= float(match["high"])
            if term == number + unit:
                return RANGE_BONUS if inside else -RANGE_BONUS
            if term == number and inside and LEAST_BARE <= float(number) < MOST_BARE:
                return RANGE_BONUS
    return 0.0


_BOUND = re.compile(
    rf"\b(?:up to|at most|at least|no more than)\s+(?:\d|(?:{'|'.join(NUMBER_WORDS)})\b)",
    re.IGNORECASE,
)
HEDGE = 2.0
"""Logits that a bound costs where a value was asked for: `up to 3 years` promises nothing, and a
`permitted total weight` is not what a thing weighs."""


_LIMIT = re.compile(
    r"\b(?:permitted|permissible|(?:gross|total) weight|may (?:not )?(?:weigh|exceed))\b",
    re.IGNORECASE,
)
_ASKS_LIMIT = re.compile(
    r"\b(?:may|can|could|allow(?:ed)?|permit(?:ted)?|carry|carries|hold|load|payload|take|total"
    r"|most|ok|on|with)\b",
    re.IGNORECASE,
)


def _hedge(question: Question, quote: Quote) -> float:
    """What a limit costs where the thing itself was asked for."""
    if EXTREME.search(question.text.casefold()):
        return 0.0
    if question.asked == "weight":
        limit = _LIMIT.search(quote.readable) and not _ASKS_LIMIT.search(question.text)
        return HEDGE if limit else 0.0
    return HEDGE if question.asked == "duration" and _BOUND.search(quote.text) else 0.0


def claims(best: Candidate, others: Sequence[Candidate], question: Question) -> list[Claim]:
    """The claims of an answer that rests on `best`: it, and what belongs to it in its block.

    A question for one value gets one quote, and a table gives one row. A question for steps, a
    meaning or anything open also gets the quotes of the same block that the reranker holds nearly
    as good, in reading order.
    """
    if best.quote.kind == "row":
        return [claim_of(best)]
    margin = 2.5 if question.asked in ("steps", "meaning", "other", "place", "person") else 0.75
    chosen = [best]
    length = len(best.quote.text)
    for other in sorted(others, key=lambda item: -item.logit):
        same = other.quote.block.ref == best.quote.block.ref and other.quote != best.quote
        if not same or other.logit < best.logit - margin or other.logit < 0:
            continue
        if length + len(other.quote.text) > MAX_ANSWER:
            continue
        chosen.append(other)
        length += len(other.quote.text)
    if len(chosen) == 1 and question.asked == "yes_no":
        chosen += _completing(best, others, question)
    chosen.sort(key=lambda item: item.quote.start)
    return [claim_of(item) for item in chosen]


def _completing(
    best: Candidate, others: Sequence[Candidate], question: Question
) -> list[Candidate]:
    """The quote of the same block that holds most of the question's terms that `best` and its
    titles lack, if any does: `is a whistling charger dangerous` wants the sentence on danger."""
    block = best.quote.block
    have = set(terms(in_context(best.quote)))
    wanted = set(question.terms) - have
    found = [
        (len(wanted & set(terms(item.quote.text))), item)
        for item in others
        if item.quote.block.ref == block.ref
        and item.quote != best.quote
        and item.quote.kind != "row"
        and len(best.quote.text) + len(item.quote.text) <= MAX_ANSWER
    ]
    most = max((count for count, _ in found), default=0)
    return [next(item for count, item in found if count == most)] if most else []


def claim_of(candidate: Candidate) -> Claim:
    """One quote as a claim that cites its block."""
    return Claim(
        text=candidate.quote.readable,
        markers=(candidate.marker,),
        quotes=(candidate.quote.text,),
    )


def in_context(quote: Quote) -> str:
    """The quote under all its titles, as the reranker reads it."""
    block = quote.block
    return ". ".join((block.title, *block.titles, quote.readable))
