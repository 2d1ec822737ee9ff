"""Candidates of several products -> one answer for all, or the question which one is meant.

A question that names no product may fit several. Their best quotes are compared in what makes a
difference to a person: numbers, codes, units and negation. Where each product's block holds the
figures of the other's quote, they agree and all are cited; otherwise the reader is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from atlas.answer.extractive import Candidate
from atlas.answer.quotes import quotes_of
from atlas.records import Claim, Draft
from atlas.words import is_code, number_of, terms

_NEGATION = re.compile(
    r"\b(?:not|never|no|none|without|nor|neither|cannot|except|unless)\b|n't\b", re.IGNORECASE
)


SAME = 0.5
"""Share of a quote's terms that another product's sentence must hold to be cited beside it."""


SAME_STEPS = 0.8
"""Shared terms over all terms from which two whole instructions count as the same."""


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
            self.named(candidate.quote.readable)
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
    """Whether two products' answers are the same in figures and in negation; instructions quoted
    whole must share nearly all of their words, since another menu is another answer."""
    for one, other in ((first, second), (second, first)):
        have = products.figures(other.quote.block.searched)
        if not products.figures(one.quote.text) <= have:
            return False
    if _is_whole(first) or _is_whole(second):
        ours, theirs = set(terms(first.quote.text)), set(terms(second.quote.text))
        if len(ours & theirs) < SAME_STEPS * len(ours | theirs):
            return False
    closest = _closest(first, second)
    return bool(_NEGATION.search(first.quote.text)) == bool(_NEGATION.search(closest))


def _is_whole(candidate: Candidate) -> bool:
    """Whether a quote is a whole block of several sentences: instructions."""
    quote = candidate.quote
    return quote.text == quote.block.text and len(quotes_of(quote.block)) > 1


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
    """One claim in the words of the best candidate, citing every block that says the same."""
    lead, *others = sorted(best.values(), key=lambda item: -item.logit)
    markers, quotes = [lead.marker], [lead.quote.text]
    wanted = set(terms(lead.quote.text))
    for other in others:
        closest = _closest(lead, other)
        if len(wanted & set(terms(closest))) >= SAME * len(wanted):
            markers.append(other.marker)
            quotes.append(closest)
    return Claim(text=lead.quote.readable, markers=tuple(markers), quotes=tuple(quotes))


def _closest(first: Candidate, second: Candidate) -> str:
    """What the second block says to the first one's quote: its quote, if that is the whole block,
    else the sentence that shares most words."""
    block = second.quote.block
    if second.quote.text == block.text:
        return block.text
    wanted = set(terms(first.quote.text))
    sentences = [part.strip() for part in re.split(r"(?<=[.!?])\s+|\n", block.text)]
    return max(sentences, key=lambda s: (len(wanted & set(terms(s))), -len(s)), default="")
