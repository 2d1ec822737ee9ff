"""Question, supplied blocks -> candidates for quoting, each with the evidence for and against it.

Enters: hits in rank order. Leaves: for every block its quotes scored by the reranker, best first,
with the features that the decision to answer is made on. Writes no word of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from atlas.answer.decision import probability
from atlas.answer.question import Question, gives
from atlas.answer.quotes import Quote, quotes_of
from atlas.records import Claim, Hit
from atlas.words import terms

MAX_QUOTES = 40
"""Quotes that are scored per question; those with most question words go first."""
MAX_ANSWER = 600
"""Characters after which nothing is added to an answer."""

Score = Callable[[str, Sequence[str]], Sequence[float]]
"""Question and texts -> one logit per text, higher is better."""
Rarity = Callable[[str], float]
"""A term -> how much it tells blocks of the scope apart, 0 to 1; 1 where none has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A quote that could answer, with what speaks for it."""

    quote: Quote
    hit: Hit
    marker: int
    logit: float
    features: dict[str, float]
    probability: float


def candidates(
    question: Question,
    kept: Sequence[Hit],
    score: Score,
    rarity: Rarity,
    known: Callable[[str], bool],
) -> list[Candidate]:
    """Every quote of the kept blocks, most probable first.

    `known(term)` says whether a term stands in any block in scope.
    """
    weights = {term: rarity(term) for term in question.terms}
    unknown = [term for term in question.terms if not known(term)]
    unknown_share = len(unknown) / len(question.terms) if question.terms else 0.0
    pairs = [
        (marker, hit, quote) for marker, hit in enumerate(kept, 1) for quote in quotes_of(hit.block)
    ]
    if len(pairs) > MAX_QUOTES:
        pairs.sort(key=lambda item: -_covered(weights, item[2].text))
        pairs = pairs[:MAX_QUOTES]
    logits = score(question.text, [_in_context(quote) for _, _, quote in pairs]) if pairs else []
    found = []
    for (marker, hit, quote), logit in zip(pairs, logits, strict=True):
        features = _features(question, weights, unknown_share, hit, quote, float(logit))
        found.append(
            Candidate(
                quote=quote,
                hit=hit,
                marker=marker,
                logit=float(logit),
                features=features,
                probability=probability(features),
            )
        )
    return sorted(found, key=lambda item: (-item.probability, item.marker, item.quote.start))


def claims(best: Candidate, others: Sequence[Candidate], question: Question) -> list[Claim]:
    """The claims of an answer that rests on `best`: it, and what belongs to it in its block.

    A question for one value gets one quote. One for steps, a meaning or anything open also gets
    the quotes of the same block that the reranker holds nearly as good, in reading order.
    """
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
    chosen.sort(key=lambda item: item.quote.start)
    return [claim_of(item) for item in chosen]


def claim_of(candidate: Candidate) -> Claim:
    """One quote as a claim that cites its block."""
    return Claim(
        text=candidate.quote.readable,
        markers=(candidate.marker,),
        quotes=(candidate.quote.text,),
    )


def _in_context(quote: Quote) -> str:
    """The quote under its nearest heading, as the reranker reads it."""
    titles = quote.block.titles
    return f"{titles[-1] if titles else quote.block.title}. {quote.readable}"


def _features(
    question: Question,
    weights: dict[str, float],
    unknown_share: float,
    hit: Hit,
    quote: Quote,
    logit: float,
) -> dict[str, float]:
    titles = hit.block.prefix
    in_block = set(terms(hit.block.searched))
    missing = [weights[term] for term in question.terms if term not in in_block]
    given = gives(question.asked, f"{quote.readable}")
    return {
        "quote_logit": _clipped(logit),
        "block_logit": _clipped(hit.rerank_logit if hit.rerank_logit is not None else 0.0),
        "vector_score": hit.vector_score,
        "covered_quote": _covered(weights, f"{titles}\n{quote.readable}"),
        "covered_block": _covered(weights, hit.block.searched),
        "worst_missing": max(missing, default=0.0),
        "unknown_share": unknown_share,
        "value_given": float(given is True),
        "value_missing": float(given is False),
    }


def _clipped(logit: float) -> float:
    return max(-12.0, min(12.0, logit)) / 10


def _covered(weights: dict[str, float], text: str) -> float:
    """Share of the question's terms, weighted by rarity, that stand in a text; 1 without terms."""
    total = sum(weights.values())
    if not total:
        return 1.0
    present = set(terms(text))
    return sum(weight for term, weight in weights.items() if term in present) / total
