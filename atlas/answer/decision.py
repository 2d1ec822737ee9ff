"""A quote, the question, the scope -> the probability that answering with the quote is right.

Declining is a decision of its own, not a threshold on one score: the reranker is nearly certain of
a sentence about the battery's warranty when the question is about engine oil. So the evidence is
taken apart. Does what is asked about stand in the quote? The kind of value that was asked for? And
what does the reranker say when one word is left out of the question: if the score rises without
`oil`, the quote is not about oil; if it falls without `battery`, it is about the battery.

The probability is logistic in the features below. Its weights were fitted on development questions
by `tools/fit_decision.py`, which writes `decision.json` with a note on how it was made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from atlas.answer.extractive import Candidate, Score, in_context
from atlas.answer.question import Question, gives
from atlas.words import terms, tokens

FEATURES = (
    "quote_logit",
    "block_logit",
    "vector_score",
    "quote_cosine",
    "order_score",
    "covered_quote",
    "covered_block",
    "unknown_share",
    "term_count",
    "value_given",
    "value_missing",
    "left_out_rarest",
    "left_out_missing",
)
"""In the order of the weights:

- `quote_logit`: the reranker on question and quote, clipped to -12..12, divided by 12;
- `block_logit`: the same on the whole block;
- `vector_score`: cosine of question and block;
- `quote_cosine`: cosine of question and quote, the quote under all its titles;
- `order_score`: what the block was ranked by;
- `covered_quote`: share of the question's terms, weighted by rarity in scope, that stand in the
  quote's own words;
- `covered_block`: the same for the block with its titles;
- `unknown_share`: share of the question's terms that stand in no block in scope;
- `term_count`: how many terms the question has, divided by 5;
- `value_given`, `value_missing`: a kind of value was asked for, and the quote has or lacks it;
- `left_out_rarest`: how far `quote_logit` rises when the term that is rarest in scope is left out
  of the question, clipped to -5..5, divided by 5; above 0 speaks against the quote;
- `left_out_missing`: the same for the worst of the terms that stand in some block in scope, but
  neither in the quote nor in its titles; 0 without any.
"""
MAX_LEFT_OUT = 8
"""Terms that are left out in turn; the rarest first."""


@lru_cache(maxsize=1)
def weights() -> Mapping[str, Any]:
    """The fitted weights: `bias`, `weights` by feature, `threshold`, how they were made, with which
    `encoder`, and for others the `expected` cosines: intercept and slope over `quote_logit`."""
    text = (Path(__file__).parent / "decision.json").read_text(encoding="utf-8")
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


def threshold() -> float:
    """The probability below which atlas declines."""
    return float(weights()["threshold"])


def probability(features: Mapping[str, float]) -> float:
    """Probability, 0 to 1, that an answer made of the quote is right."""
    fitted = weights()
    value = fitted["bias"] + sum(fitted["weights"][name] * features[name] for name in FEATURES)
    return float(1 / (1 + math.exp(-max(-60.0, min(60.0, value)))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What can be asked about a question in its scope."""

    encoder: str
    """Name of the encoder; cosines of another than the fitted one lie in another range."""
    score: Score
    cosine: Callable[[str, str], float]
    """Question and text -> cosine of their vectors, -1 to 1."""
    rarity: Callable[[str], float]
    """A term -> how much it tells blocks of the scope apart, 0 to 1; 1 where none has it."""
    known: Callable[[str], bool]
    """Whether any block in scope has a term."""


def features_of(question: Question, candidate: Candidate, evidence: Evidence) -> dict[str, float]:
    """The features of one candidate."""
    block = candidate.quote.block
    rare = {term: evidence.rarity(term) for term in question.terms}
    in_block = set(terms(block.searched))
    in_quote = set(terms(in_context(candidate.quote)))
    unknown = [term for term in question.terms if not evidence.known(term)]
    rises = _rises(question, candidate, evidence.score, rare)
    missing = [rise for t, rise in rises.items() if t not in in_quote and t not in unknown]
    given = gives(question.asked, candidate.quote.readable)
    logit = candidate.hit.rerank_logit
    text = in_context(candidate.quote)
    cosines = _cosines(candidate, text, question, evidence)
    return {
        "quote_logit": _clipped(candidate.logit, 12),
        "block_logit": _clipped(logit if logit is not None else candidate.logit, 12),
        **cosines,
        "order_score": candidate.hit.order_score or 0.0,
        "covered_quote": _covered(rare, set(terms(candidate.quote.readable))),
        "covered_block": _covered(rare, in_block),
        "unknown_share": len(unknown) / len(question.terms) if question.terms else 0.0,
        "term_count": len(question.terms) / 5,
        "value_given": float(given is True),
        "value_missing": float(given is False),
        "left_out_rarest": rises[max(rises, key=lambda t: rare[t])] if rises else 0.0,
        "left_out_missing": max(missing, default=0.0),
    }


def _cosines(
    candidate: Candidate, text: str, question: Question, evidence: Evidence
) -> dict[str, float]:
    """`vector_score` and `quote_cosine`; for an encoder that the weights were not fitted with, what
    the fitted one would most likely give, so that its scale does not decide."""
    fitted = weights()
    if evidence.encoder == fitted.get("encoder", evidence.encoder):
        return {
            "vector_score": candidate.hit.vector_score,
            "quote_cosine": evidence.cosine(question.text, text),
        }
    logit = _clipped(candidate.logit, 12)
    return {name: low + slope * logit for name, (low, slope) in fitted["expected"].items()}


def _rises(
    question: Question, candidate: Candidate, score: Score, rare: Mapping[str, float]
) -> dict[str, float]:
    """For each of the question's terms: how far the score rises without it, scaled to -1..1."""
    chosen = sorted(question.terms, key=lambda term: -rare[term])[:MAX_LEFT_OUT]
    shorter = {term: _without(question.text, term) for term in chosen}
    shorter = {term: words for term, words in shorter.items() if words}
    text = in_context(candidate.quote)
    logits = score([(words, text) for words in shorter.values()])
    return {
        term: _clipped(float(logit) - candidate.logit, 5)
        for term, logit in zip(shorter, logits, strict=True)
    }


def _without(text: str, term: str) -> str:
    """The question without the words behind a term."""
    kept, last = [], 0
    for token in tokens(text):
        if token.term == term and token.start >= last:
            kept.append(text[last : token.start])
            last = token.end
    return " ".join(("".join(kept) + text[last:]).split())


def _covered(rare: Mapping[str, float], present: set[str]) -> float:
    """Share of the terms, weighted by rarity, that are present; 1 without terms."""
    total = sum(rare.values())
    return sum(weight for term, weight in rare.items() if term in present) / total if total else 1.0


def _clipped(value: float, limit: float) -> float:
    return max(-limit, min(limit, value)) / limit
