# ruff: noqa: E501  tables of patterns read best with one pattern a line
"""Text -> its figures: numbers, quantities with their unit, sums of money, dates and codes.

Number words are numbers (`twenty-one`, `two hundred`, `a dozen`, `half an hour`), and quantities
are brought to one unit where that is exact: `36 months` equals `3 years`, `0.5 m` equals `50 cm`.
A month is no number of days, so `30 days` does not equal `one month`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from atlas.measure.judges.units import MONTHS, MULTIPLES, ORDINALS, SIGNS, UNITS
from atlas.words import NUMBER_WORDS, is_code, terms

Kind = Literal["number", "quantity", "date", "code"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One exact thing that a text states."""

    kind: Kind
    value: str
    """Its one form; for a quantity in the base unit of its dimension."""
    dimension: str
    """`time`, `length`, `euro` and so on; "" for a bare number and a code."""
    written: str
    """As the text has it."""
    number: str
    """The number as it is written, without unit; "" for codes and dates."""
    start: int
    end: int
    word: bool = False
    """Whether the number is written as a word."""
    loose: bool = False
    """Said in passing (`a year`, `yearly`): it may support a figure but need not be supported."""

    @property
    def key(self) -> tuple[str, str]:
        return self.dimension or self.kind, self.value


_ONE = "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
_SCALE = "|".join(MULTIPLES)
_WORDS = rf"(?:half a dozen|a dozen|two dozen|(?:an? )?(?:{_SCALE})\b|(?:{_ONE})\b)(?:(?: and |[ -])(?:{_ONE}|{_SCALE})\b)*"
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+)?"
_SIGN = r"(?:(?<![\w.,)\]])[-−–](?=\d)|\bminus )"
_UNIT = "|".join(f"(?P<u{n}>{pattern})" for n, (_, _, pattern) in enumerate(UNITS.values()))
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if name != "may" else "may" for name in MONTHS)
_DATE = re.compile(
    rf"\b(?P<y1>\d{{4}})-(?P<m1>\d\d)-(?P<d1>\d\d)\b"
    rf"|\b(?:the )?(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\.? (?:of )?(?P<m2>{_MONTH})\b\.?(?:,? (?P<y2>\d{{4}})\b)?"
    rf"|\b(?P<m3>{_MONTH})\b\.? (?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\s?(?:%|km))(?:,? (?P<y3>\d{{4}})\b)?"
    rf"|\b(?P<m4>{_MONTH})\b\.?,? (?:of )?(?P<y4>\d{{4}})\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    rf"(?P<money>[€$£]|\b(?:EUR|USD|GBP))?\s?(?P<sign>{_SIGN})?"
    rf"(?:(?<![\w.])(?<![A-Za-z]-)(?<!\d,)(?P<digits>{_DIGITS})(?:st|nd|rd|th|s)?(?![\d]|\.\d)"
    rf"|\b(?P<words>{_WORDS})|(?P<half>\bhalf (?:an?|of an?)\b)|\b(?P<article>an?)(?= (?:second|minute|hour|day|week|month|year)\b))"
    rf"(?P<plus> and a half\b)?(?: (?P<scale>{_SCALE})\b)?"
    rf"(?:[\s-]?(?:full |whole |more )?(?:{_UNIT})(?![\w]|/[^\W\d])(?P<after> and a half\b)?)?(?P<glued>[^\W\d_][\w]*)?",
    re.IGNORECASE,
)
_CODE = re.compile(r"\w+(?:[-/]\w+)*")
_EVERY = {
    ("months", "6"): "twice (?:a|per|each|every) year|half[- ]yearly|every half[- ]year",
    ("months", "12"): "once a year|every year|each year|per year|yearly|annual(?:ly)?",
    ("months", "24"): "every other year|every second year",
    ("months", "3"): "quarterly|(?:every|each) quarter",
    ("months", "1"): "monthly|every month|once a month",
    ("time", "604800"): "weekly|every week|once a week",
    ("time", "86400"): "daily|every day|once a day|overnight",
}
_ORDINAL = re.compile(rf"\b(?:{'|'.join(ORDINALS)})\b", re.IGNORECASE)
_RANGE = re.compile(r"\s*(?:to|or|and|-|–|—|and up to|up to)\s*", re.IGNORECASE)
_PIECE = re.compile(r"\(?\d{1,2}[.)]\s|step \d+\b", re.IGNORECASE)


def figures(text: str) -> tuple[Figure, ...]:
    """The figures of a text in reading order. Numbers that only count list items are left out."""
    found: list[Figure] = []
    taken: list[tuple[int, int]] = []

    def free(start: int, end: int) -> bool:
        return all(end <= left or start >= right for left, right in taken)

    for match in _DATE.finditer(text):
        found.append(_date(match))
        taken.append(match.span())
    for match in _CODE.finditer(text):
        names = _codes(match[0])
        if names and free(*match.span()):
            found += [_code(name, match) for name in names]
            taken.append(match.span())
    for match in _PIECE.finditer(text):
        if match.start() == 0 or text[match.start() - 1] == "\n":
            taken.append(match.span())
    for (dimension, value), pattern in _EVERY.items():
        for match in re.finditer(rf"\b(?:{pattern})\b", text, re.IGNORECASE):
            found.append(
                Figure(
                    kind="quantity",
                    value=value,
                    dimension=dimension,
                    written=match[0],
                    number="",
                    start=match.start(),
                    end=match.end(),
                    loose=True,
                )
            )
    for match in _ORDINAL.finditer(text):
        number = str(ORDINALS.index(match[0].casefold()) + 1)
        found.append(
            Figure(
                kind="number",
                value=number,
                dimension="",
                written=match[0],
                number=number,
                start=match.start(),
                end=match.end(),
                word=True,
                loose=True,
            )
        )
    for match in _NUMBER.finditer(text):
        figure = _number(match)
        if figure is not None and free(figure.start, figure.end):
            found.append(figure)
    ordered = sorted(found, key=lambda item: item.start)
    return tuple(_shared_units(text, _added_up(text, ordered)))


def same(claimed: Figure, stated: Figure) -> bool:
    """Whether a figure of a source supports one of a claim.

    A bare number is supported with any unit, and one with a unit by a bare number, since tables
    keep units in their headers; a date by any date that has its parts.
    """
    if claimed.key == stated.key:
        return True
    if claimed.kind == "date" and stated.kind == "date":
        pairs = zip(claimed.value.split("-"), stated.value.split("-"), strict=True)
        return all(mine in ("0", theirs) for mine, theirs in pairs)
    if claimed.kind == "number" and stated.kind == "date":
        return claimed.value in stated.value.split("-")
    if "number" in (claimed.kind, stated.kind) and claimed.number and stated.number:
        return claimed.number == stated.number
    return False


def supported(claimed: Figure, stated: Iterable[Figure]) -> bool:
    """Whether any figure of the sources supports it."""
    return any(same(claimed, item) for item in stated)


def _date(match: re.Match[str]) -> Figure:
    parts = {name[0]: value for name, value in match.groupdict().items() if value}
    month = parts["m"]
    number = int(month) if month.isdigit() else _month(month)
    value = f"{int(parts.get('y', 0))}-{number}-{int(parts.get('d', 0))}"
    return Figure(
        kind="date", value=value, dimension="date", written=match[0].strip(), number="",
        start=match.start(), end=match.end(),
    )  # fmt: skip


def _month(name: str) -> int:
    return next(n for n, full in enumerate(MONTHS, 1) if full.startswith(name.casefold()[:3]))


def _codes(word: str) -> list[str]:
    """The codes that a word is; none where it is a plain word or a number with its unit."""
    if not any(c.isdigit() for c in word) or not any(c.isalpha() for c in word):
        return []
    number = _NUMBER.fullmatch(word)
    if number is not None and not number["glued"]:
        return []
    names = [term for term in terms(word) if is_code(term)]
    return names[:-1] if len(names) > 1 else names  # `E-417/E-471` is both, not the two joined


def _code(name: str, match: re.Match[str]) -> Figure:
    return Figure(
        kind="code", value=name, dimension="", written=match[0], number="",
        start=match.start(), end=match.end(),
    )  # fmt: skip


def _number(match: re.Match[str]) -> Figure | None:
    if match["glued"]:
        return None
    words = match["words"]
    dimension, factor = _unit(match)
    if match["digits"]:
        value = Decimal(match["digits"].replace(",", ""))
    elif words:
        value = Decimal(_worth(words.casefold()))
    elif match["half"]:
        value = Decimal("0.5")
    else:
        value = Decimal(1)
    if match["plus"] or match["after"]:
        value += Decimal("0.5")
    if match["scale"]:
        value *= MULTIPLES[match["scale"].casefold()]
    if match["sign"]:
        value = -value
    if match["money"]:
        dimension, factor = SIGNS[match["money"].casefold()], Decimal(1)
    if not dimension and (match["half"] or match["article"] or words in ("one", "One")):
        return None
    start = match.start() + len(match[0]) - len(match[0].lstrip())
    if dimension == "°F":
        base, dimension = (value - 32) * 5 / 9, "°C"
    else:
        base = value * factor
    return Figure(
        kind="quantity" if dimension else "number",
        value=_plain(base),
        dimension=dimension,
        written=match[0].strip(),
        number=_plain(value),
        start=start,
        end=match.end(),
        word=not match["digits"],
        loose=bool(match["article"]) and not match["after"],
    )


def _unit(match: re.Match[str]) -> tuple[str, Decimal]:
    for number, (dimension, factor, _) in enumerate(UNITS.values()):
        written = match[f"u{number}"]
        if written:
            return dimension, Decimal(factor)
    return "", Decimal(1)


def _worth(words: str) -> int:
    """`two hundred and fifty` is 250, `a dozen` 12."""
    if words.endswith("dozen"):
        return {"two": 24, "hal": 6}.get(words[:3], 12)
    total, current = 0, 0
    for word in re.split(r"[ -]", words):
        if word in MULTIPLES:
            current = max(1, current) * MULTIPLES[word]
            if MULTIPLES[word] > 100:
                total, current = total + current, 0
        elif word in NUMBER_WORDS:
            current += NUMBER_WORDS[word]
    return total + current


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _added_up(text: str, found: list[Figure]) -> list[Figure]:
    """`5 h 30 min` is one duration."""
    joined: list[Figure] = []
    for figure in found:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.dimension == figure.dimension
            and figure.dimension in ("time", "months")
            and not (last.loose and figure.loose)
            and re.fullmatch(r"\s*(?:and\s+)?", text[last.end : figure.start])
            and Decimal(figure.value) < Decimal(last.value)
        ):
            total = Decimal(last.value) + Decimal(figure.value)
            joined[-1] = replace(
                last, value=_plain(total), number="", end=figure.end, loose=False,
                written=text[last.start : figure.end],
            )  # fmt: skip
        else:
            joined.append(figure)
    return joined


def _shared_units(text: str, found: list[Figure]) -> list[Figure]:
    """`15 to 35 km`: the first number has the unit of the second."""
    for place in range(len(found) - 2, -1, -1):
        first, second = found[place], found[place + 1]
        between = text[first.end : second.start]
        if (
            first.kind == "number"
            and second.kind == "quantity"
            and second.number not in ("", "0")
            and _RANGE.fullmatch(between)
        ):
            factor = Decimal(second.value) / Decimal(second.number)
            found[place] = replace(
                first,
                kind="quantity",
                dimension=second.dimension,
                value=_plain((Decimal(first.number) * factor).normalize()),
            )
    return found
