"""Claim, passages -> what is wrong with it exactly: figures, codes, counts, contradictions.

A figure of a claim must stand in a passage that may speak for the claim: not under another code,
not in a text about another product. Counts must equal the rows of the table that they count, or be
stated. The result of an expression that the claim shows is checked by evaluating it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from decimal import Decimal, DivisionByZero, InvalidOperation

from atlas.measure.judges.figures import Figure, figures, same, supported
from atlas.measure.judges.passages import Counted, Passage, about, holds
from atlas.words import content_terms

_SET_ASIDE = re.compile(
    r"\b(?:instead of|rather than|no longer|formerly|previously|used to be|up from|down from)\b"
    r"((?: [^\s.,;]+){0,5})",
    re.IGNORECASE,
)
_ASKS_COUNT = re.compile(r"\b(?:how many|number of|count of)\b", re.IGNORECASE)
SMALL = 12
"""Bare numbers up to this, written as words, need no support unless a count was asked for."""
_OPERANDS = r"[\d.,\s×x*+\-−–/()€]*"
_EXPRESSION = re.compile(rf"({_OPERANDS}[×x*+\-−–/]{_OPERANDS})=\s*€?\s*([\d][\d.,]*)")
_PLAIN = str.maketrans(
    {"×": "*", "x": "*", "−": "-", "–": "-", ",": None, "€": None, "(": None, ")": None}
)


def codes_of(*texts: str) -> frozenset[str]:
    """The codes that texts name."""
    return frozenset(item.value for text in texts for item in figures(text) if item.kind == "code")


def allowed(codes: frozenset[str], found: Sequence[Passage]) -> list[Passage]:
    """The passages that may speak for a claim with these codes."""
    return [passage for passage in found if about(codes, passage)]


def unsupported(
    claim: str,
    question: str,
    may: Sequence[Passage],
    every: Sequence[Passage],
    said: str,
    counts: Collection[str] = (),
) -> list[str]:
    """The figures and codes of a claim that no passage which may speak for it holds.

    `said` is the question with the talk before it: a figure that it brings in needs no source,
    unless the question asks for a count; nor does one of `counts`, which the tables prove.
    """
    known = [figure for passage in may for figure in passage.figures]
    brought = figures(said)
    elsewhere = [figure for passage in every for figure in passage.figures]
    codes = codes_of(claim, question)
    results = computed(claim, [*known, *brought]) | set(counts)
    found: list[str] = []
    for figure in figures(claim):
        if figure.loose or figure.number in results:
            continue
        if any(holds(passage, figure, codes, stated(passage)) for passage in may):
            continue
        if supported(figure, brought) or _idle(figure, question):
            continue
        other = next((p for p in every if p not in may and holds(p, figure)), None)
        if any(holds(passage, figure, codes) for passage in may):
            reason = f"{figure.written} is what the source says no longer holds"
        elif any(holds(passage, figure) for passage in may):
            reason = f"{figure.written} is said of something else in the same sentence"
        elif other is not None:
            where = other.titles or other.text[:40]
            reason = f"{figure.written} stands only in a text about something else ({where})"
        elif figure.number and any(figure.number == item.number for item in elsewhere):
            reason = f"{figure.written} stands in the sources with another unit only"
        else:
            reason = f"{figure.written} does not stand in the sources"
        found.append(reason)
    return found


def stated(passage: Passage) -> list[Figure]:
    """The figures of a passage without those that it sets aside: `15 km instead of the last 5`."""
    spans = [match.span(1) for match in _SET_ASIDE.finditer(passage.text)]
    return [
        figure
        for figure in passage.figures
        if not any(start <= figure.start < end for start, end in spans)
    ]


def miscounted(
    claim: str, question: str, tables: Sequence[Counted], may: Sequence[Passage]
) -> list[str]:
    """The counts of a claim that contradict the tables and lists of the sources."""
    asked = bool(_ASKS_COUNT.search(question))
    found: list[str] = []
    for figure in figures(claim):
        if figure.kind != "number" or "." in figure.number or figure.number.startswith("-"):
            continue
        nouns = set(content_terms(" ".join(claim[figure.end :].split()[:4])))
        if not nouns and asked:
            nouns = set(content_terms(question))
        if not nouns:
            continue
        value = int(figure.number)
        if any(_stated(figure, nouns, passage) for passage in may):
            continue
        about_it = [table for table in tables if nouns & table.words]
        if not about_it or any(value in _counts(table, question, claim) for table in about_it):
            continue
        if asked or re.search(r"\bthere (?:are|is|were)\b|\bin (?:all|total)\b", claim):
            rows = max(table.rows for table in about_it)
            found.append(f"{figure.written} where the sources list {rows}")
    return found


def counted_right(claim: str, question: str, tables: Sequence[Counted]) -> set[str]:
    """The numbers of a claim that equal a count of rows or items of the sources."""
    counts = {count for table in tables for count in _counts(table, question, claim)}
    return {
        item.number
        for item in figures(claim)
        if item.kind == "number" and item.number.isdigit() and int(item.number) in counts
    }


def rival(claimed: Figure, other: Figure) -> bool:
    """Whether two figures are of one kind and differ: durations, prices, codes of one letter."""
    if same(claimed, other) or claimed.kind != other.kind:
        return False
    if claimed.kind == "code":
        return claimed.value[:1] == other.value[:1] and claimed.value[:1].isalpha()
    return claimed.dimension == other.dimension


def masked(claim: str, figure: Figure) -> str:
    """A claim without its values, and without this figure where it is a code."""
    for item in sorted(figures(claim), key=lambda item: -item.start):
        if item.kind != "code" or item.value == figure.value:
            claim = f"{claim[: item.start]}…{claim[item.end :]}"
    return claim


def cut_short(answer: str, nearest: Sequence[Sequence[Passage]]) -> str:
    """The other half of `4 years or 800 charge cycles` where an answer gives one half only."""
    own = figures(answer)
    for passage in (item for some in nearest for item in some):
        pairs = zip(passage.figures, passage.figures[1:], strict=False)
        for one, other in pairs:
            between = passage.text[one.end : other.start]
            joined = re.fullmatch(r"\s+or\s+(?:after |every |up to |at )?", between)
            if joined and one.key[0] != other.key[0] and "code" not in (one.kind, other.kind):
                for has, lacks in ((one, other), (other, one)):
                    if supported(has, own) and not supported(lacks, own):
                        return f"it leaves out {lacks.written!r}, which goes with {has.written!r}"
    return ""


def computed(claim: str, known: Sequence[Figure]) -> set[str]:
    """The results of expressions in a claim that are right and use known numbers only."""
    numbers = {item.number for item in known}
    results: set[str] = set()
    bare = re.sub(r"\b(?:EUR|USD|GBP|V|kg|km|Wh)\b", " ", claim)
    for match in _EXPRESSION.finditer(bare):
        text = match[1].translate(_PLAIN)
        operands = re.findall(r"\d+(?:\.\d+)?", text)
        plain = {f"{Decimal(one).normalize():f}" for one in operands}
        result = Decimal(match[2].replace(",", "").rstrip("."))
        if all(one in numbers or len(one) == 1 for one in plain) and _value(text) == result:
            results.add(f"{result.normalize():f}")
    return results | _sums(claim, known)


def _sums(claim: str, known: Sequence[Figure]) -> set[str]:
    """The numbers of a claim that are the sum or difference of two known ones it also names."""
    found = [item for item in figures(claim) if item.kind == "quantity" and item.number]
    parts = [item for item in found if supported(item, known)]
    results: set[str] = set()
    for one, other in itertools.combinations(parts, 2):
        if one.dimension == other.dimension:
            values = Decimal(one.value), Decimal(other.value)
            worth = {sum(values, Decimal(0)), abs(values[0] - values[1])}
            results |= {
                item.number
                for item in found
                if item.dimension == one.dimension and Decimal(item.value) in worth
            }
    return results


def _value(text: str) -> Decimal | None:
    """A sum of products, None where it is none."""
    total = Decimal(0)
    try:
        for sign, product in re.findall(r"([+-]?)\s*([^+-]+)", text):
            worth = Decimal(1)
            for operator, factor in re.findall(r"([*/]?)\s*([\d.]+)", product):
                worth = worth / Decimal(factor) if operator == "/" else worth * Decimal(factor)
            total += -worth if sign == "-" else worth
    except (InvalidOperation, DivisionByZero):
        return None
    return total


def _idle(figure: Figure, question: str) -> bool:
    """Whether a number is a manner of speaking: `two ways to do it`."""
    small = figure.kind == "number" and figure.word and Decimal(figure.number) <= SMALL
    return small and not _ASKS_COUNT.search(question)


def _stated(figure: Figure, nouns: set[str], passage: Passage) -> bool:
    """Whether a passage states this number of such things."""
    for item in passage.figures:
        if item.kind == "number" and item.number == figure.number and not item.loose:
            after = content_terms(" ".join(passage.text[item.end :].split()[:5]))
            if nouns & set(after):
                return True
    return False


def _counts(table: Counted, question: str, claim: str) -> set[int]:
    """The counts that a table gives: all its rows, and those with a term of the question."""
    counts = {table.rows}
    for term in content_terms(question):
        holding = {member.text for member in table.members if term in content_terms(member.text)}
        if holding:
            counts.add(len(holding))
    return counts
