"""How many: the rows of a table or the items of a list that a question counts.

In:  the question and the supplied blocks.
Out: a draft that names every counted entry, or None where nothing is what the question counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from atlas.answer.clarification import Products
from atlas.answer.extractive import Candidate
from atlas.answer.question import Question
from atlas.answer.quotes import Quote, cells_of, quotes_of
from atlas.records import Block, Claim, Draft
from atlas.words import number_of, terms

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
        if other.ref != block.ref and (_same_section(block, other) or _headed_by(letters, other))
    ]


def _same_section(block: Block, other: Block) -> bool:
    return (other.document, other.section) == (block.document, block.section)


def _headed_by(letters: str | None, block: Block) -> bool:
    """Whether a block's nearest heading is a code with these letters."""
    return bool(letters and block.titles) and _code_letters([block.titles[-1]]) == letters


def first_cell(row: Quote) -> str:
    """The words of a row's first cell."""
    return cells_of(row.text)[0]


def _code_letters(cells: Sequence[str]) -> str | None:
    """The letters that all cells' codes begin with: `R` for R01 to R11; None where they differ."""
    letters = {match.group(1) if (match := _CODE_CELL.fullmatch(cell)) else None for cell in cells}
    return next(iter(letters)) if len(letters) == 1 else None


def count(
    question: Question, blocks: Sequence[Block], products: Products, named: Sequence[str]
) -> Draft | None:
    """The number of what the question counts, or a question back where it depends on the product;
    None where no supplied block lists it."""
    noun = [term for term in counted_noun(question.text) if term not in products.terms]
    counted: dict[tuple[str, ...], Draft] = {}
    for block in blocks:
        if noun and _is_counted(noun, question, block, blocks):
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


def _is_counted(
    noun: Sequence[str], question: Question, block: Block, blocks: Sequence[Block]
) -> bool:
    """Whether the entries of a block are what the question counts.

    A word of the question that stands in single entries only, of this piece of a table or of
    another one, asks for one of them, not for all.
    """
    entries = _entries(block)
    if len(entries) < 3:
        return False
    heads = set(terms(f"{block.prefix} {entries[0].header}"))
    pieces = [other for other in blocks if _same_section(block, other)]
    inside = {t for piece in pieces for entry in _entries(piece) for t in terms(entry.text)} - heads
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
    letters = _code_letters([first_cell(q) for q in quotes_of(block) if q.kind == "row"])
    entries: dict[str, tuple[int, str]] = {}
    for marker, other in enumerate(blocks, 1):
        if other.document != block.document:
            continue
        if _same_section(block, other):
            for quote in _entries(other):
                entries.setdefault(first_cell(quote), (marker, quote.text))
        elif other.piece == 0 and _headed_by(letters, other):
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


def states_count(question: Question, found: Sequence[Candidate]) -> bool:
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
