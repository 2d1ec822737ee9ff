"""Counting and arithmetic on cited figures.

An expression is built from figures that stand in the documents and from counts in the question,
is shown with its operands, and is evaluated here. Nothing is ever computed by a language model.
"""

from __future__ import annotations

from collections.abc import Sequence

from atlas.answer import counting, sums
from atlas.answer.clarification import Products
from atlas.answer.extractive import Candidate
from atlas.answer.question import Question
from atlas.records import Block, Draft


def compute(
    question: Question,
    blocks: Sequence[Block],
    found: Sequence[Candidate],
    products: Products,
    named: Sequence[str],
) -> Draft | None:
    """A draft by counting or by arithmetic, or None where the question asks for neither.

    An item that matches no priced quote makes the whole sum None: half a sum is no answer.
    """
    if question.asked == "count" and not counting.states_count(question, found):
        counted = counting.count(question, blocks, products, named)
        if counted is not None:
            return counted
    return sums.total(question, found, products, named)
