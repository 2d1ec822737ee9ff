"""Question, supplied blocks -> Draft: computes, asks back, quotes or declines.

In this order: a count or a sum, if the question wants one; the answers per product, if it names
several; the question which product is meant, if it names none and they differ; the best quote, if
it is probably right; otherwise it declines and says what it missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from atlas.answer import calculation
from atlas.answer.clarification import Products, across_products, best_by_product, joint_claim
from atlas.answer.decision import threshold
from atlas.answer.extractive import (
    Candidate,
    Rarity,
    Score,
    candidates,
    claim_of,
    claims,
)
from atlas.answer.question import Question
from atlas.records import Claim, Draft, Hit
from atlas.words import terms, tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What an answerer may use besides the supplied blocks."""

    score: Score
    rarity: Rarity
    known: Callable[[str], bool]
    products: Products
    named: tuple[str, ...]
    """Products that the question or the caller names."""


def draft(question: Question, kept: Sequence[Hit], material: Material) -> Draft:
    """Propose an answer from the kept hits, in rank order; `kept[i]` has marker i + 1."""
    found = candidates(question, kept, material.score, material.rarity, material.known)
    found = [item for item in found if not _foreign(item, material)]
    blocks = [hit.block for hit in kept]
    computed = calculation.compute(question, blocks, found, material.products, material.named)
    if computed is not None:
        return computed
    limit = threshold()
    if not found or found[0].probability < limit:
        return _declined(question, found, material)
    best = found[0]
    evidence = (*best.features.items(), ("probability", best.probability))
    chosen: list[Claim]
    by_product = best_by_product(found, material.products, limit)
    if len(material.named) > 1:
        chosen = [
            claim_of(by_product[name]) for name in material.named if name in by_product
        ] or claims(best, found, question)
    elif len(by_product) > 1 and not material.named:
        question_back = across_products(by_product, material.products)
        if question_back is not None:
            return question_back
        chosen = [joint_claim(by_product)]
    else:
        chosen = claims(best, found, question)
        chosen += _completing(question, chosen, found, best, material)
    return Draft(status="answered", claims=tuple(chosen), evidence=evidence)


def _foreign(candidate: Candidate, material: Material) -> bool:
    """Whether a quote speaks of other products only, while the question names one."""
    if not material.named:
        return False
    owners = material.products.of(candidate)
    return bool(owners) and not set(owners) & set(material.named)


def _completing(
    question: Question,
    chosen: Sequence[Claim],
    found: Sequence[Candidate],
    best: Candidate,
    material: Material,
) -> list[Claim]:
    """Quotes of other blocks for what the question asks and the chosen quotes lack."""
    have = set(terms(" ".join((best.quote.block.prefix, *(claim.text for claim in chosen)))))
    missing = {term for term in question.terms if term not in have and material.known(term)}
    added: list[Claim] = []
    for other in found:
        if other.probability < threshold() or not missing or len(added) == 2:
            break
        if other.quote.block.ref == best.quote.block.ref:
            continue
        gained = missing & set(terms(f"{other.quote.block.prefix} {other.quote.text}"))
        if gained:
            missing -= gained
            added.append(claim_of(other))
    return added


def _declined(question: Question, found: Sequence[Candidate], material: Material) -> Draft:
    lacking = [term for term in question.terms if not material.known(term)]
    words = _surfaces(question.text, lacking)
    reason = "the documents do not say"
    if words:
        reason += f"; nothing in them mentions {', '.join(words)}"
    evidence: tuple[tuple[str, float], ...] = ()
    if found:
        evidence = (*found[0].features.items(), ("probability", found[0].probability))
    return Draft(status="abstained", reason=reason, evidence=evidence)


def _surfaces(text: str, wanted: Sequence[str]) -> list[str]:
    """The words of a text behind some of its terms."""
    found = {text[t.start : t.end]: None for t in tokens(text) if t.term in wanted}
    return list(found)
