"""Counting and arithmetic on cited figures, in exact decimal arithmetic.

An expression is built from figures that stand in the documents and from counts in the question,
is shown with its operands, and is evaluated here. Nothing is ever computed by a language model.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext

from atlas.answer.clarification import Products
from atlas.answer.extractive import Candidate, claim_of
from atlas.answer.question import Question
from atlas.answer.quotes import Quote, cells_of, quotes_of
from atlas.records import Block, Claim, Draft
from atlas.words import NUMBER_WORDS, content_terms, number_of, terms

_OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
MAX_EXPRESSION = 400


def evaluate(expression: str) -> Decimal:
    """The exact value of an expression of numbers, + - * / and brackets.

    Raises ValueError for anything else, for a division by zero and for more than 400 characters.
    """
    if len(expression) > MAX_EXPRESSION:
        raise ValueError(f"expression longer than {MAX_EXPRESSION} characters")
    try:
        tree = ast.parse(expression.replace("×", "*").replace("−", "-"), mode="eval")
        with localcontext() as context:
            context.prec = 50
            return _value(tree.body, expression)
    except (SyntaxError, ArithmeticError, RecursionError, MemoryError):
        raise ValueError(f"not an expression of numbers: {expression!r}") from None


def _value(node: ast.AST, source: str) -> Decimal:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        text = ast.get_source_segment(source.replace("×", "*").replace("−", "-"), node)
        return Decimal(text or str(node.value))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, source), _value(node.right, source))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, source)
    raise ValueError("only numbers, + - * / and brackets are evaluated")


# ---- amounts with a currency ----------------------------------------------------------------

_AMOUNT = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_MONEY = re.compile(
    rf"(?P<sign>EUR|€|USD|\$|GBP|£|CHF)\s?(?P<a>{_AMOUNT})(?!\d|[.,]\d)"
    rf"|(?<![\d.,])(?P<b>{_AMOUNT})\s?(?P<unit>EUR|euros?|€|USD|\$|GBP|£|CHF)(?!\w)",
    re.IGNORECASE,
)
_CURRENCY = {"€": "EUR", "EURO": "EUR", "EUROS": "EUR", "$": "USD", "£": "GBP"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """An amount as it stands in a text."""

    amount: Decimal
    currency: str
    words: str


def money_in(text: str) -> list[Money]:
    """Every amount of money in a text, in reading order."""
    found = []
    for match in _MONEY.finditer(text):
        sign = (match["sign"] or match["unit"]).upper()
        amount = Decimal((match["a"] or match["b"]).replace(",", ""))
        found.append(
            Money(amount=amount, currency=_CURRENCY.get(sign, sign), words=match.group().strip())
        )
    return found


def shown(amount: Decimal, currency: str = "") -> str:
    """A result for people: thousands separated, and two decimals where it is money."""
    if currency:
        return f"{currency} {amount:,.2f}"
    return f"{amount.normalize():,f}"


# ---- what a question wants added up ---------------------------------------------------------

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


# ---- counting -------------------------------------------------------------------------------

_HOW_MANY = re.compile(
    r"\b(?:how many|number of|count of)\s+(?P<noun>(?:[\w'’-]+\s+){0,3}?[\w'’-]+?)"
    r"(?=\s+(?:are|is|do|does|did|have|has|can|must|should|in|for|of|on|there|to|will|need|i|you|we|does)\b|\s*\??$)",
    re.IGNORECASE,
)
_CODE_CELL = re.compile(r"([A-Z]+)-?\d+[\w/-]*")


def counted_noun(question: str) -> list[str]:
    """The terms of what is counted: `how many battery checks` -> battery and check, as stems."""
    match = _HOW_MANY.search(question)
    return [] if match is None else terms(match["noun"])


def counted_blocks(block: Block, document: Sequence[Block]) -> list[Block]:
    """Blocks of the same document that a count needs beside `block`.

    These are the other pieces of its section, and the sections headed by a code like those in the
    first column of its table.
    """
    if not any(unit.kind in ("row", "item") for unit in block.units):
        return []
    letters = _code_letters([first_cell(row) for row in quotes_of(block) if row.kind == "row"])
    return [
        other
        for other in document
        if other.ref != block.ref
        and (
            other.section == block.section
            or (letters and other.titles and _code_letters([other.titles[-1]]) == letters)
        )
    ]


def first_cell(row: Quote) -> str:
    """The words of a row's first cell."""
    return cells_of(row.text)[0]


def _code_letters(cells: Sequence[str]) -> str | None:
    """The letters that all cells' codes begin with: `R` for R01 to R11; None where they differ."""
    letters = {match.group(1) if (match := _CODE_CELL.fullmatch(cell)) else None for cell in cells}
    return next(iter(letters)) if len(letters) == 1 else None


def _count(
    question: Question, blocks: Sequence[Block], products: Products, named: Sequence[str]
) -> Draft | None:
    noun = [term for term in counted_noun(question.text) if term not in products.terms]
    counted: dict[tuple[str, ...], Draft] = {}
    for block in blocks:
        if noun and _is_counted(noun, question, block):
            counted.setdefault(block.products, _counted(block, blocks))
    drafts = list(counted.values())
    if len({draft.evidence for draft in drafts}) > 1 and not named:
        choices = tuple(sorted({name for group in counted for name in group}))
        if len(choices) > 1:
            return Draft(
                status="needs_clarification",
                reason=f"the count depends on the product: {', '.join(choices)}",
                choices=choices,
            )
    return drafts[0] if drafts else None


def _is_counted(noun: Sequence[str], question: Question, block: Block) -> bool:
    """Whether the entries of a block are what the question counts.

    A word of the question that stands in single entries only asks for one of them, not for all.
    """
    entries = _entries(block)
    if len(entries) < 3:
        return False
    heads = set(terms(f"{block.prefix} {entries[0].header}"))
    inside = {term for entry in entries for term in terms(entry.text)} - heads
    if (set(question.terms) - set(noun)) & inside:
        return False
    subject = set(question.terms) - _GENERIC
    if noun[-1] in _GENERIC and len(noun) == 1:
        return bool(subject) and len(subject & heads) * 2 >= len(subject)
    return set(noun) <= heads and _own(noun, block, entries)


_GENERIC = frozenset("thing entri item point set row line step posit check option part".split())
"""Stems of words for whatever stands in a table or list."""


def _entries(block: Block) -> list[Quote]:
    """The rows of a block's table, or the items of its list."""
    quotes = quotes_of(block)
    rows = [quote for quote in quotes if quote.kind == "row"]
    return rows or [quote for quote in quotes if quote.kind == "item"]


def _own(noun: Sequence[str], block: Block, rows: Sequence[Quote]) -> bool:
    """Whether the counted noun's last word names the rows: in the first column's head, or in the
    nearest heading."""
    heading = block.titles[-1] if block.titles else block.title
    return noun[-1] in set(terms(f"{cells_of(rows[0].header)[0]} {heading}"))


def _counted(block: Block, blocks: Sequence[Block]) -> Draft:
    """Count the rows of a table over all its pieces, each row once."""
    table = [other for other in blocks if other.document == block.document]
    entries: dict[str, tuple[int, str]] = {}
    for marker, other in enumerate(blocks, 1):
        if other not in table:
            continue
        if other.section == block.section:
            for quote in _entries(other):
                entries.setdefault(first_cell(quote), (marker, quote.text))
        elif other.piece == 0 and other.titles:
            letters = _code_letters([first_cell(q) for q in quotes_of(block) if q.kind == "row"])
            if letters and _code_letters([other.titles[-1]]) == letters:
                entries.setdefault(other.titles[-1], (marker, quotes_of(other)[0].text))
    names = list(entries)
    if all(_CODE_CELL.fullmatch(name) for name in names):
        names.sort()
    markers = tuple(dict.fromkeys(marker for marker, _ in entries.values()))
    quotes = tuple(
        next(text for marker, text in entries.values() if marker == wanted) for wanted in markers
    )
    title = block.titles[-1] if block.titles else block.title
    claim = Claim(
        text=f"{len(names)}, counted in “{title}” of {block.title}: {_listed(names)}.",
        markers=markers,
        quotes=quotes,
        computed=True,
    )
    return Draft(
        status="answered",
        claims=(claim,),
        evidence=(("counted", float(len(names))),),
    )


def _listed(names: Sequence[str]) -> str:
    short = [name if len(name) <= 40 else f"{name[:37]}…" for name in names]
    return "; ".join(name.rstrip(".;,") for name in short)


# ---- sums -----------------------------------------------------------------------------------


_ADDED = frozenset("extra more addit anoth new spare pls".split())
"""Stems in an item that say nothing of what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A quote with exactly one amount of money."""

    candidate: Candidate
    money: Money
    products: tuple[str, ...]


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
    if question.asked == "count" and not _states_count(question, found):
        counted = _count(question, blocks, products, named)
        if counted is not None:
            return counted
    wants_sum = any(item.count > 1 for item in wanted_items(question.text))
    priced_kind = question.asked in ("price", "number", "count") or asks_difference(question.text)
    if not priced_kind and not (question.asked == "other" and wants_sum):
        return None
    priced = []
    for candidate in found:
        amounts = money_in(candidate.quote.readable)
        if len(amounts) == 1:
            priced.append(
                Priced(candidate=candidate, money=amounts[0], products=products.of(candidate))
            )
    if not priced:
        return None
    items = wanted_items(question.text)
    difference = asks_difference(question.text)
    if not items and not difference:
        return None
    return _sum(items, priced, named, difference, products)


_MEASURED = re.compile(rf"(?P<number>{_AMOUNT})\s*(?P<unit>[^\W\d_][\w/]*|%|°C)?")


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


def _states_count(question: Question, found: Sequence[Candidate]) -> bool:
    """Whether a probable quote says a number of the counted things in words or digits."""
    noun = counted_noun(question.text)
    if not noun:
        return False
    for candidate in found[:5]:
        words = terms(candidate.quote.text)
        for place, word in enumerate(words):
            if word == noun[-1] and any(
                number_of(near) is not None for near in words[max(0, place - 3) : place]
            ):
                return candidate.logit > 0
    return False


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
