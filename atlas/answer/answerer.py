"""Question, supplied blocks -> Draft: computes, asks back, quotes or declines.

In this order: a count or a sum, if the question wants one; the answers per product, if it names
several; the question which product is meant, if it names none and they differ; the best quote, if
it is probably right; otherwise it declines and says what it missed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from atlas.answer.calculation import compute
from atlas.answer.clarification import Products, across_products, joint_claim, leaders
from atlas.answer.decision import Evidence, features_of, lacks_value, probability, threshold
from atlas.answer.extractive import Candidate, candidates, claim_of, claims
from atlas.answer.question import STRICT, Question, analyse, parts
from atlas.answer.sums import difference_in
from atlas.records import Claim, Draft, Hit
from atlas.words import is_code, terms, tokens

CONSIDERED = 2
"""Candidates whose probability is looked at; the best by the reranker first."""
UNKNOWN = 0.5
"""Share of a question's terms in no block in scope from which no value is given,"""
ANCHORS = 2
"""unless this many of its terms do stand there: people tell stories in words of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What an answerer may use besides the supplied blocks."""

    evidence: Evidence
    products: Products
    named: tuple[str, ...]
    """Products that the question or the caller names."""
    product_terms: frozenset[str]
    """The terms of their names."""
    held: tuple[date, ...] = ()
    """The days that the question asks about, where they are others than the day of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A candidate with the evidence for it and the probability that follows."""

    candidate: Candidate
    features: dict[str, float]
    probability: float

    @property
    def evidence(self) -> tuple[tuple[str, float], ...]:
        return (*self.features.items(), ("probability", self.probability))


def draft(question: Question, kept: Sequence[Hit], material: Material) -> Draft:
    """Propose an answer from the kept hits, in rank order; `kept[i]` has marker i + 1."""
    if _unknown_codes(question, material):
        return _declined(question, None, material)
    asked = parts(question.text)
    if len(asked) > 1:
        several = _several(asked, kept, material)
        if several is not None:
            return several
    found = _found(question, kept, material)
    blocks = [hit.block for hit in kept]
    computed = compute(question, blocks, found, material.products, material.named)
    if computed is not None:
        return computed
    best = _best(question, found, material)
    if best is None or best.probability < threshold():
        return _declined(question, best, material)
    by_product = _probable(leaders(found, material.products), found, question, material)
    joint = set(material.named) <= set(material.products.of(best.candidate))
    if len(material.named) > 1 and joint:
        difference = difference_in(best.candidate, question, material.named)
        chosen = difference or claims(best.candidate, found, question)
    elif len(material.named) > 1 and by_product:
        named = [by_product[name] for name in material.named if name in by_product]
        chosen = [claim_of(item) for item in named] or claims(best.candidate, found, question)
    elif len(by_product) > 1 and not material.named:
        question_back = across_products(by_product, material.products)
        if question_back is not None:
            return question_back
        chosen = [joint_claim(by_product)]
    else:
        chosen = claims(best.candidate, found, question)
    return Draft(status="answered", claims=tuple(chosen), evidence=best.evidence)


def _several(asked: Sequence[str], kept: Sequence[Hit], material: Material) -> Draft | None:
    """The answers to the parts of a question, or None where no part has one.

    A part may point back at the part before it: a quote that shares a code with what was answered
    so far goes first.
    """
    chosen: list[Claim] = []
    open_parts: list[str] = []
    evidence: tuple[tuple[str, float], ...] = ()
    codes: set[str] = set()
    for text in asked:
        part = analyse(text, material.product_terms)
        used = {quote for claim in chosen for quote in claim.quotes}
        found = [item for item in _found(part, kept, material) if item.quote.text not in used]
        shared = [item for item in found if codes & _codes(item)]
        best, bar = _best(part, shared, material), threshold() / 2
        if best is None or best.probability < bar:
            best, bar = _best(part, found, material), threshold()
        if best is None or best.probability < bar:
            open_parts.append(text)
            continue
        chosen.append(claim_of(best.candidate))
        codes |= _codes(best.candidate) - material.product_terms
        evidence = evidence or best.evidence
    if not chosen:
        return None
    reason = f"the documents do not say: {'; '.join(open_parts)}" if open_parts else ""
    unique = tuple(dict.fromkeys(chosen))
    return Draft(status="answered", claims=unique, reason=reason, evidence=evidence)


def _codes(candidate: Candidate) -> set[str]:
    return {term for term in terms(candidate.quote.text) if is_code(term)}


def _found(question: Question, kept: Sequence[Hit], material: Material) -> list[Candidate]:
    """The candidates that do not speak of other products only."""
    return [
        item
        for item in candidates(question, kept, material.evidence.score)
        if not _foreign(item, material)
    ]


def _best(question: Question, found: Sequence[Candidate], material: Material) -> Judged | None:
    """The most probable of the first candidates."""
    return max(
        (judge(question, item, found, material) for item in found[:CONSIDERED]),
        key=lambda item: item.probability,
        default=None,
    )


def judge(
    question: Question, candidate: Candidate, found: Sequence[Candidate], material: Material
) -> Judged:
    """The evidence for one of the candidates that were found.

    A quote without the kind of value that was asked for, such as a price, answers nothing. Nor does
    any value where half of what it is asked of stands in no document: a weight is not the weight of
    a rider.
    """
    rivals = rivals_of(candidate, found, material.products)
    features = features_of(question, candidate, material.evidence, rivals)
    chance = 0.0 if refused(question, candidate, features) else probability(features)
    return Judged(candidate=candidate, features=features, probability=chance)


def refused(question: Question, candidate: Candidate, features: Mapping[str, float]) -> bool:
    """Whether a rule keeps a candidate from answering, whatever its probability."""
    share = features["unknown_share"]
    nameless = share >= UNKNOWN and (1 - share) * len(question.terms) < ANCHORS
    return question.asked in STRICT and (lacks_value(question, candidate.quote) or nameless)


def rivals_of(
    candidate: Candidate, found: Sequence[Candidate], products: Products
) -> list[Candidate]:
    """The other candidates, but for those of other products: they answer another question."""
    owners = set(products.of(candidate))
    return [
        item
        for item in found
        if item is not candidate
        and (not owners or not products.of(item) or owners & set(products.of(item)))
    ]


def _foreign(candidate: Candidate, material: Material) -> bool:
    """Whether a quote speaks of other products only, while the question names one."""
    if not material.named:
        return False
    owners = material.products.of(candidate)
    return bool(owners) and not set(owners) & set(material.named)


def _probable(
    best: dict[str, Candidate],
    found: Sequence[Candidate],
    question: Question,
    material: Material,
) -> dict[str, Candidate]:
    """The products' best candidates that may be right.

    The bar is half the usual one: an overlooked difference between products costs more than a
    question back.
    """
    if len(best) < 2:
        return best
    return {
        product: candidate
        for product, candidate in best.items()
        if judge(question, candidate, found, material).probability >= threshold() / 2
    }


_VERSION = re.compile(
    r"\b(?:version|firmware|release|update|revision)\s+v?(\d+(?:\.\d+)+)", re.IGNORECASE
)


def _unknown_codes(question: Question, material: Material) -> list[str]:
    """Codes and version numbers of a question that stand in no block in scope.

    Another code's entry never answers for them, however near it looks.
    """
    asked = [term for term in question.terms if is_code(term)]
    asked += [term for version in _VERSION.findall(question.text) for term in terms(version)]
    return [term for term in asked if not material.evidence.known(term)]


def _declined(question: Question, best: Judged | None, material: Material) -> Draft:
    lacking = [term for term in question.terms if not material.evidence.known(term)]
    lacking += _unknown_codes(question, material)
    words = _surfaces(question.text, lacking)
    reason = "the documents do not say"
    if words:
        days = " or ".join(day.isoformat() for day in material.held)
        seen = f"nothing that held on {days}" if days else "nothing in them"
        reason += f"; {seen} mentions {', '.join(words)}"
    return Draft(status="abstained", reason=reason, evidence=best.evidence if best else ())


def _surfaces(text: str, wanted: Sequence[str]) -> list[str]:
    """The words of a text behind some of its terms."""
    found = {text[t.start : t.end]: None for t in tokens(text) if t.term in wanted}
    return list(found)
