"""Sums of prices, and differences of prices or of a table's figures.

In:  the question, and the quotes that were found for it.
Out: a computed claim that shows its operands, or None where they are not all there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from atlas.answer.arithmetic import AMOUNT, Money, evaluate, money_in, shown
from atlas.answer.clarification import Products
from atlas.answer.extractive import Candidate, claim_of
from atlas.answer.question import Question
from atlas.answer.quotes import cells_of
from atlas.records import Claim, Draft
from atlas.words import NUMBER_WORDS, content_terms, terms

_COUNT = rf"(?P<count>\d{{1,4}}|an?|the|one|another|{'|'.join(NUMBER_WORDS)})"
_LEAD = re.compile(
    r"^(?:what (?:do|does|would|will|is|are)|what's|whats|how much (?:is|are|do|does|would|will|for|more|less)?"
    r"|by how much|(?:is|are) |(?:the )?(?:total|sum|price|cost)(?: (?:of|for))?|(?:price )?dif+er\w*(?: in price)?"
    r"|between|(?:i|we) (?:need|want)|give me|(?:dearer|cheaper|(?:more )?expensive|heavier)(?: is| are)?)\s*",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"\b(?:together|in total|altogether|in all|cost|come to|all in all|in sum|please|pls|"
    r"for (?:the |an? )?[\w-]+(?: bike)?|of (?:the |an? )?[\w-]+(?: bike)?)\s*\??$",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"\band\b|\bplus\b|\+|&|,|\bwith\b|\bthan\b", re.IGNORECASE)
_DIFFERENCE = re.compile(
    r"\b(?:dif+er\w*|(?:how much|what is the) (?:more|less|cheaper|dearer)|more expensive|dearer|cheaper|how much more"
    r"|how (?:many|much) (?:\w+ )?(?:more|less|fewer|longer|shorter|heavier|lighter|faster|slower))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One item of a sum: so many of it."""

    count: int
    item: str


def wanted_items(question: str) -> list[Wanted]:
    """`two batteries and a charger` -> 2 of `batteries`, 1 of `charger`.

    Empty where the question names no count above one and no second item: then it asks for a
    figure, not for a sum.
    """
    text = re.sub(r"\s+", " ", question.strip().rstrip("?!. "))
    counted = re.search(
        rf"(?<![\w-])(?:\d{{1,4}}|{'|'.join(w for w in NUMBER_WORDS if w not in ('one', 'zero'))})\s+[a-z]",
        text,
        re.IGNORECASE,
    )
    if not counted and not _SEVERAL.search(text):
        return []
    text = re.sub(r"(?<=\w),?\s+(?:what|how much)\b.*$", "", text, flags=re.IGNORECASE)
    for _ in range(4):
        text = _LEAD.sub("", text).strip()
    for _ in range(3):
        shorter = _TAIL.sub("", text).strip()
        if shorter == text or not shorter:
            break
        text = shorter
    items = []
    for part in _SEVERAL.split(text):
        match = re.match(rf"\s*(?:{_COUNT}\s+)?(?P<item>.+)", part.strip(), re.IGNORECASE)
        if match is None:
            return []
        word = (match["count"] or "a").casefold()
        count = int(word) if word.isdigit() else NUMBER_WORDS.get(word, 1)
        items.append(Wanted(count=count, item=match["item"].strip()))
    if len(items) == 1 and items[0].count <= 1:
        return []
    return items


def asks_difference(question: str) -> bool:
    """Whether a question asks by how much two figures differ."""
    return bool(_DIFFERENCE.search(question))


# ---- the figures ---------------------------------------------------------------------------

_ADDED = frozenset("extra more addit anoth new spare pls".split())
"""Stems in an item that say nothing of what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A quote with exactly one amount of money."""

    candidate: Candidate
    money: Money
    products: tuple[str, ...]


def total(
    question: Question, found: Sequence[Candidate], products: Products, named: Sequence[str]
) -> Draft | None:
    """The sum or the difference of prices that a question asks for; None where it asks for none."""
    items, difference = wanted_items(question.text), asks_difference(question.text)
    if not items and not difference:
        return None
    wants_sum = any(item.count > 1 for item in items)
    priced_kind = question.asked in ("price", "number", "count") or difference
    if not priced_kind and not (question.asked == "other" and wants_sum):
        return None
    priced = []
    for candidate in found:
        amounts = money_in(candidate.quote.readable)
        if len(amounts) == 1:
            priced.append(
                Priced(candidate=candidate, money=amounts[0], products=products.of(candidate))
            )
    return _sum(items, priced, named, difference, products) if priced else None


_MEASURED = re.compile(rf"(?P<number>{AMOUNT})\s*(?P<unit>[^\W\d_][\w/]*|%|°C)?")


def difference_in(
    candidate: Candidate, question: Question, named: Sequence[str]
) -> list[Claim] | None:
    """The difference between two products' cells of one table row, and the row.

    None where no difference is asked for, where the row has no column for each of the two products,
    or where a cell is no single figure, or figures of different units.
    """
    if len(named) != 2 or not asks_difference(question.text) or candidate.quote.kind != "row":
        return None
    columns = dict(
        zip(cells_of(candidate.quote.header), cells_of(candidate.quote.text), strict=False)
    )
    found = [_MEASURED.fullmatch(columns.get(name, "")) for name in named]
    figures = [match for match in found if match is not None]
    if len(figures) != 2 or figures[0]["unit"] != figures[1]["unit"]:
        return None
    numbers = sorted((match["number"].replace(",", "") for match in figures), key=Decimal)
    expression = f"{numbers[1]} − {numbers[0]}"
    unit = f" {figures[0]['unit']}" if figures[0]["unit"] else ""
    row = claim_of(candidate)
    result = Claim(
        text=f"{expression} = {shown(evaluate(expression))}{unit}",
        markers=row.markers,
        quotes=row.quotes,
        computed=True,
    )
    return [result, row]


def _sum(
    items: Sequence[Wanted],
    priced: Sequence[Priced],
    named: Sequence[str],
    difference: bool,
    products: Products,
) -> Draft | None:
    options = [_matching(item, priced, named, products) for item in items]
    if not options or any(not group for group in options):
        return None
    owners = [{row.products for row in group} for group in options]
    common = set.intersection(*owners) if owners else set()
    if any(len(group) > 1 for group in options):
        choices = sorted({name for group in common for name in group})
        if len(choices) > 1 and not named:
            return Draft(
                status="needs_clarification",
                reason=f"the answer depends on the product: {', '.join(choices)}",
                choices=tuple(choices),
            )
    rows = [group[0] for group in options]
    if len({row.money.currency for row in rows}) != 1:
        return None
    if difference and len(rows) == 2:
        rows.sort(key=lambda row: -row.money.amount)
        expression = f"{rows[0].money.amount} − {rows[1].money.amount}"
    else:
        expression = " + ".join(
            f"{item.count} × {row.money.amount}" if item.count > 1 else f"{row.money.amount}"
            for item, row in zip(items, rows, strict=True)
        )
    currency = rows[0].money.currency
    total = evaluate(expression)
    claim = Claim(
        text=f"{expression} = {shown(total, currency)}",
        markers=tuple(row.candidate.marker for row in rows),
        quotes=tuple(row.candidate.quote.text for row in rows),
        computed=True,
    )
    operands = [
        Claim(
            text=row.candidate.quote.readable,
            markers=(row.candidate.marker,),
            quotes=(row.candidate.quote.text,),
        )
        for row in {row.candidate.quote.text: row for row in rows}.values()
    ]
    return Draft(status="answered", claims=(claim, *operands))


def _matching(
    item: Wanted, priced: Sequence[Priced], named: Sequence[str], products: Products
) -> list[Priced]:
    """The priced quotes that hold every word of an item; those with the fewest other words.

    One per product, so that a question without a product can be asked back.
    """
    wanted = set(content_terms(item.item)) - _ADDED
    if not wanted:
        return []
    if wanted <= products.terms:  # `two K-1` means the bikes, not everything for them
        wanted |= {"bike"}
    best: dict[tuple[str, ...], tuple[int, Priced]] = {}
    for row in priced:
        quote = row.candidate.quote
        have = terms(f"{' '.join(quote.block.titles)} {quote.text}")
        if not wanted <= set(have):
            continue
        extra = len(set(terms(quote.text)) - wanted)
        owner = row.products
        if owner not in best or extra < best[owner][0]:
            best[owner] = (extra, row)
    rows = [row for _, row in sorted(best.values(), key=lambda pair: pair[0])]
    named_rows = [row for row in rows if set(row.products) & set(named)]
    return named_rows or rows
