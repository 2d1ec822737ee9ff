"""Candidates of several products -> one answer for all, or the question which one is meant.

A question that names no product may fit several. Their best quotes are compared in what makes a
difference to a person: numbers, codes, units and negation. Where each product's block holds the
figures of the other's quote, they agree and all are cited; otherwise the reader is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from atlas.answer.extractive import Candidate
from atlas.records import Claim, Draft
from atlas.words import is_code, number_of, terms

_NEGATION = re.compile(
    r"\b(?:not|never|no|none|without|nor|neither|cannot|except|unless)\b|n't\b", re.IGNORECASE
)


class Products:
    """Knows the product names of the collection in a text of the documents."""

    def __init__(self, names: Sequence[str]) -> None:
        longest = sorted(names, key=len, reverse=True)
        self._names = {name.casefold(): name for name in names}
        self.terms = frozenset(term for name in names for term in terms(name))
        joined = "|".join(re.escape(name) for name in longest)
        self._pattern = re.compile(rf"(?<![\w-])(?:{joined})(?![\w-])", re.IGNORECASE)

    def named(self, text: str) -> tuple[str, ...]:
        """The products whose names stand in a text, in order."""
        if not self._names:
            return ()
        found = (self._names[m.group().casefold()] for m in self._pattern.finditer(text))
        return tuple(dict.fromkeys(found))

    def of(self, candidate: Candidate) -> tuple[str, ...]:
        """The products that a quote speaks of: named in it, in its headings, or its document's."""
        block = candidate.quote.block
        return (
            self.named(candidate.quote.text)
            or self.named(" ".join(block.titles))
            or (block.products if len(block.products) == 1 else ())
        )

    def figures(self, text: str) -> set[str]:
        """Numbers, codes and numbers with units of a text, product names left out."""
        return {
            term
            for term in terms(text)
            if (number_of(term) is not None or is_code(term)) and term not in self.terms
        }


def leaders(found: Sequence[Candidate], products: Products) -> dict[str, Candidate]:
    """The best candidate of every product that a quote speaks of alone."""
    best: dict[str, Candidate] = {}
    for candidate in found:
        owners = products.of(candidate)
        if len(owners) == 1:
            best.setdefault(owners[0], candidate)
    return best


def agree(first: Candidate, second: Candidate, products: Products) -> bool:
    """Whether two products' answers are the same in figures and in negation."""
    for one, other in ((first, second), (second, first)):
        have = products.figures(other.quote.block.searched)
        if not products.figures(one.quote.text) <= have:
            return False
    closest = _closest(first.quote.text, second.quote.block.text)
    return bool(_NEGATION.search(first.quote.text)) == bool(_NEGATION.search(closest))


def across_products(best: dict[str, Candidate], products: Products) -> Draft | None:
    """A clarification where the products' answers differ, None where they all agree."""
    first, *others = best.values()
    if all(agree(first, other, products) for other in others):
        return None
    names = sorted(best)
    return Draft(
        status="needs_clarification",
        reason=f"the answer depends on the product: {', '.join(names)}",
        choices=tuple(names),
    )


def joint_claim(best: dict[str, Candidate]) -> Claim:
    """One claim in the words of the best candidate, citing every product's block."""
    ordered = sorted(best.values(), key=lambda item: -item.logit)
    return Claim(
        text=ordered[0].quote.readable,
        markers=tuple(item.marker for item in ordered),
        quotes=tuple(item.quote.text for item in ordered),
    )


def _closest(quote: str, text: str) -> str:
    """The sentence of a text that shares most words with a quote."""
    wanted = set(terms(quote))
    sentences = re.split(r"(?<=[.!?])\s+|\n", text)
    return max(sentences, key=lambda s: (len(wanted & set(terms(s))), -len(s)), default="")
