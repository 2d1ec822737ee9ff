"""A quote, the question, the scope -> the probability that answering with the quote is right.

Declining is a decision of its own, not a threshold on one score: the reranker is nearly certain of
a sentence about the battery's warranty when the question is about engine oil. So the evidence is
taken apart. Does what is asked about stand in the quote, or in the first cell of its row? The kind
of value that was asked for? And does the quote stand out: where the next best one is as good, no
sentence was written for this question.

The probability is logistic in the features below. Its weights were fitted on development questions
by `tools/fit_decision.py`, which writes `decision.json` with a note on how it was made.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from atlas.answer.counting import counted_noun
from atlas.answer.extractive import Candidate, Score, in_context
from atlas.answer.question import MONTH, STRICT, Question, gives
from atlas.answer.quotes import Quote, cells_of
from atlas.words import is_code, number_of, terms

FEATURES = (
    "quote_logit",
    "quote_cosine",
    "bare_cosine",
    "quote_ahead",
    "sure_ahead",
    "block_ahead",
    "covered_quote",
    "covered_block",
    "covered_head",
    "missing_terms",
    "unknown_share",
    "nameless_value",
    "word_count",
    "code_held",
)
"""In the order of the weights:

- `quote_logit`: the reranker on question and quote, clipped to -12..12, divided by 12;
- `quote_cosine`: cosine of question and quote, the quote under all its titles;
- `bare_cosine`: the same with the products' names in the question replaced by `it`, since every
  title of a product's document holds its name;
- `quote_ahead`: how far `quote_logit` is above the best rival's, clipped to -6..6, divided by 6; 1
  without a rival. Rivals are the other candidates, but for those of another product;
- `sure_ahead`: the product of `quote_logit` and `quote_ahead`;
- `block_ahead`: the same as `quote_ahead` for the reranker on question and block, rivals being the other blocks;
- `covered_quote`: share of the question's terms, weighted by rarity in scope, that stand in the
  quote's own words;
- `covered_block`: the same for the block with its titles;
- `covered_head`: the same for the first cell of a table row, which says what the row is about; 0
  for what is no row;
- `missing_terms`: rarity of the terms that stand in some block in scope, but neither in the quote
  nor in the section's titles, added up and divided by 3;
- `unknown_share`: share of the question's terms that stand in no block in scope;
- `nameless_value`: 1 where a kind of value is asked for in a question of at most three terms, one
  of which stands in no block in scope: a price of a thing that the documents do not name;
- `word_count`: words of the question, at most 40, divided by 10: a long question shares less with
  its answer;
- `code_held`: 1 where the question names codes and the quote holds them all.
"""
MOST_WORDS = 40
FEW_TERMS = 3
COUNT_REACH = 3
"""Words before the counted noun among which its number is looked for: `two spare keys`."""


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


def features_of(
    question: Question, candidate: Candidate, evidence: Evidence, rivals: Sequence[Candidate] = ()
) -> dict[str, float]:
    """The features of one candidate. `rivals` are those it has to stand out from."""
    quote = candidate.quote
    own = set(terms(quote.readable))
    rare = {term: evidence.rarity(term) for term in question.terms}
    unknown = [term for term in question.terms if not evidence.known(term)]
    near = own | set(terms(" ".join(quote.block.titles)))
    missing = [rare[term] for term in question.terms if term not in near and term not in unknown]
    head = set(terms(cells_of(quote.text)[0])) if quote.kind == "row" else set()
    codes = {term for term in question.terms if is_code(term)}
    logit = _clipped(candidate.logit, 12)
    ahead = _clipped(candidate.logit - max((item.logit for item in rivals), default=-99.0), 6)
    return {
        "quote_logit": logit,
        **_cosines(candidate, question, evidence),
        "quote_ahead": ahead,
        "sure_ahead": logit * ahead,
        "block_ahead": _clipped(
            _block_logit(candidate)
            - max(
                (_block_logit(r) for r in rivals if r.quote.block.ref != quote.block.ref),
                default=-99.0,
            ),
            6,
        ),
        "covered_quote": _covered(rare, own),
        "covered_block": _covered(rare, set(terms(quote.block.searched))),
        "covered_head": _covered(rare, head) if head else 0.0,
        "missing_terms": sum(missing) / 3,
        "unknown_share": len(unknown) / len(question.terms) if question.terms else 0.0,
        "nameless_value": float(
            bool(unknown) and len(question.terms) <= FEW_TERMS and question.asked in STRICT
        ),
        "word_count": min(MOST_WORDS, len(question.text.split())) / 10,
        "code_held": float(bool(codes) and codes <= own),
    }


def lacks_value(question: Question, quote: Quote) -> bool:
    """Whether a kind of value was asked for that the quote does not hold.

    A count must be one of what is counted: `0.5 mm` and `1 January` count no spokes.
    """
    if gives(question.asked, quote.readable) is False:
        return True
    return question.asked == "count" and not _counts(question, quote)


def _counts(question: Question, quote: Quote) -> bool:
    """Whether a quote counts something, and where it names the counted noun, counts that."""
    words = terms(_DATED.sub(" ", quote.readable))
    plain = [number_of(word) == word for word in words]
    if not any(plain):
        return bool(_UNCOUNTED.search(quote.readable))
    noun = counted_noun(question.text)
    if not noun or noun[-1] not in words:
        return True
    if quote.kind == "row" and noun[-1] in terms(f"{cells_of(quote.text)[0]} {quote.header}"):
        return True
    return any(
        word == noun[-1] and any(plain[max(0, place - COUNT_REACH) : place])
        for place, word in enumerate(words)
    )


_DATED = re.compile(
    rf"\b\d{{1,2}}\.? (?:{MONTH})\b|\b(?:{MONTH})\.? \d{{1,2}}\b|\b(?:19|20)\d\d\b", re.IGNORECASE
)
_UNCOUNTED = re.compile(r"\b(?:none|both|once|twice|one)\b", re.IGNORECASE)


def _cosines(candidate: Candidate, question: Question, evidence: Evidence) -> dict[str, float]:
    """`quote_cosine` and `bare_cosine`; for an encoder that the weights were not fitted with, what
    the fitted one would most likely give, so that its scale does not decide."""
    fitted = weights()
    if evidence.encoder == fitted.get("encoder", evidence.encoder):
        text = in_context(candidate.quote)
        whole = evidence.cosine(question.text, text)
        same = question.bare == question.text
        bare = whole if same else evidence.cosine(question.bare, text)
        return {"quote_cosine": whole, "bare_cosine": bare}
    logit = _clipped(candidate.logit, 12)
    return {name: low + slope * logit for name, (low, slope) in fitted["expected"].items()}


def _block_logit(candidate: Candidate) -> float:
    """The reranker on the whole block; where it did not see the block, on the quote."""
    logit = candidate.hit.rerank_logit
    return candidate.logit if logit is None else logit


def _covered(rare: Mapping[str, float], present: set[str]) -> float:
    """Share of the terms, weighted by rarity, that are present; 1 without terms."""
    total = sum(rare.values())
    return sum(weight for term, weight in rare.items() if term in present) / total if total else 1.0


def _clipped(value: float, limit: float) -> float:
    return max(-limit, min(limit, value)) / limit
