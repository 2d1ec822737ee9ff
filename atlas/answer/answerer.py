"""Question, supplied blocks -> Draft: computes, asks back, quotes or declines.

In this order: a count or a sum, if the question wants one; the answers per product, if it names
several; the question which product is meant, if it names none and they differ; the best quote, if
it is probably right; otherwise it declines and says what it missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atlas.answer import calculation
from atlas.answer.clarification import Products, across_products, joint_claim, leaders
from atlas.answer.decision import Evidence, features_of, probability, threshold
from atlas.answer.extractive import Candidate, candidates, claim_of, claims, in_context
from atlas.answer.question import Question
from atlas.records import Claim, Draft, Hit
from atlas.words import terms, tokens

CONSIDERED = 3
"""Candidates whose probability is looked at; the best by the reranker first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What an answerer may use besides the supplied blocks."""

    evidence: Evidence
    products: Products
    named: tuple[str, ...]
    """Products that the question or the caller names."""


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
    found = [
        item
        for item in candidates(question, kept, material.evidence.score)
        if not _foreign(item, material)
    ]
    blocks = [hit.block for hit in kept]
    computed = calculation.compute(question, blocks, found, material.products, material.named)
    if computed is not None:
        return computed
    best = max(
        (judge(question, item, material) for item in found[:CONSIDERED]),
        key=lambda item: item.probability,
        default=None,
    )
    if best is None or best.probability < threshold():
        return _declined(question, best, material)
    by_product = _probable(leaders(found, material.products), question, material)
    if len(material.named) > 1 and by_product:
        named = [by_product[name] for name in material.named if name in by_product]
        chosen = [claim_of(item) for item in named] or claims(best.candidate, found, question)
    elif len(by_product) > 1 and not material.named:
        question_back = across_products(by_product, material.products)
        if question_back is not None:
            return question_back
        chosen = [joint_claim(by_product)]
    else:
        chosen = claims(best.candidate, found, question)
        chosen += _completing(question, chosen, found, best.candidate, material)
    return Draft(status="answered", claims=tuple(chosen), evidence=best.evidence)


def judge(question: Question, candidate: Candidate, material: Material) -> Judged:
    """The evidence for one candidate."""
    features = features_of(question, candidate, material.evidence)
    return Judged(candidate=candidate, features=features, probability=probability(features))


def _foreign(candidate: Candidate, material: Material) -> bool:
    """Whether a quote speaks of other products only, while the question names one."""
    if not material.named:
        return False
    owners = material.products.of(candidate)
    return bool(owners) and not set(owners) & set(material.named)


def _probable(
    best: dict[str, Candidate], question: Question, material: Material
) -> dict[str, Candidate]:
    """The products' best candidates that are probably right."""
    if len(best) < 2:
        return best
    return {
        product: candidate
        for product, candidate in best.items()
        if judge(question, candidate, material).probability >= threshold()
    }


def _completing(
    question: Question,
    chosen: Sequence[Claim],
    found: Sequence[Candidate],
    best: Candidate,
    material: Material,
) -> list[Claim]:
    """Quotes of other blocks for what the question asks and the chosen quotes lack."""
    have = set(terms(" ".join((best.quote.block.prefix, *(claim.text for claim in chosen)))))
    missing = {
        term for term in question.terms if term not in have and material.evidence.known(term)
    }
    added: list[Claim] = []
    for other in found:
        if other.logit < 0 or not missing or len(added) == 2:
            break
        if other.quote.block.ref == best.quote.block.ref:
            continue
        gained = missing & set(terms(in_context(other.quote)))
        if gained:
            missing -= gained
            added.append(claim_of(other))
    return added


def _declined(question: Question, best: Judged | None, material: Material) -> Draft:
    lacking = [term for term in question.terms if not material.evidence.known(term)]
    words = _surfaces(question.text, lacking)
    reason = "the documents do not say"
    if words:
        reason += f"; nothing in them mentions {', '.join(words)}"
    return Draft(status="abstained", reason=reason, evidence=best.evidence if best else ())


def _surfaces(text: str, wanted: Sequence[str]) -> list[str]:
    """The words of a text behind some of its terms."""
    found = {text[t.start : t.end]: None for t in tokens(text) if t.term in wanted}
    return list(found)
