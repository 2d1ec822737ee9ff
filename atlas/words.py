"""Text -> terms: the one tokenizer behind keyword search, scope and the checks of an answer.

Words are case-folded, stripped of accents and stemmed (Snowball English). Codes stay whole and
lose their separators: `E-417`, `e417` and `E417` are one term `e417`, `A-12/B` is `a12b`. A number
with a unit is one term: `36 V`, `36V` and `36-volt` are `36v`. Number words are numbers: `three` is
`3`. A compound such as `Wi-Fi` gives its parts and the joined word.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import snowballstemmer

TOKENIZER_VERSION = 2
"""Raise it when the terms of a text change, so that indexes are rebuilt."""

NUMBER_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
    "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20,
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip

UNITS = {
    "v": "v", "volt": "v", "volts": "v", "a": "a", "amp": "a", "amps": "a", "ampere": "a",
    "ah": "ah", "wh": "wh", "w": "w", "watt": "w", "watts": "w", "kw": "kw", "kwh": "kwh",
    "nm": "nm", "kg": "kg", "kilo": "kg", "kilos": "kg", "kilogram": "kg", "kilograms": "kg",
    "g": "g", "km": "km", "kilometre": "km", "kilometres": "km", "kilometer": "km",
    "kilometers": "km", "m": "m", "cm": "cm", "mm": "mm", "bar": "bar", "psi": "psi",
    "km/h": "kmh", "kmh": "kmh", "mah": "mah", "mb": "mb", "gb": "gb", "hz": "hz", "khz": "khz",
    "mhz": "mhz", "ghz": "ghz", "l": "l", "ml": "ml", "°c": "°c", "°f": "°f", "%": "%",
    "percent": "%", "eur": "eur", "euro": "eur", "euros": "eur", "€": "eur", "usd": "usd",
    "ohm": "ohm", "kohm": "kohm", "mohm": "mohm", "mv": "mv", "ma": "ma", "db": "db",
}  # fmt: skip
"""Written unit -> its one form. Time units are ordinary words: `3 years` is `3` and `year`."""

STOP_WORDS = frozenset(
    """a an and any are as at be been but by can could did do does for from get had has have he her
    here him his how i if in into is it its just me my need no not of off on or our out please
    shall she should so some than that the their them then there these they this those to too up
    us was we were what when where which who whom whose why will with would you your about
    also am being because both during each few more most much many only other over same
    such tell know want let really im ive thats whats dont doesnt isnt cant""".split()
)
"""Words that carry no subject. They are searched like others but never asked for in a quote."""

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w,])|\d+(?:\.\d+)?"
_UNIT = "|".join(sorted((re.escape(unit) for unit in UNITS), key=len, reverse=True))
_TOKEN = re.compile(
    rf"""(?P<money>€)\s?(?P<amount>{_NUMBER})(?!\w)
    | (?<![\w.])(?<![A-Za-z]-)(?P<number>{_NUMBER})[ \-]?(?P<unit>{_UNIT})(?![\w-]|/[^\W\d])
    | (?<![\w])(?P<plain>{_NUMBER})(?!\w|[-/][A-Za-z]|\.\w)
    | (?P<word>\w+(?:[-/.'’&]\w+)*)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HYPHEN = re.compile(r"[\u2010\u2011]|(?<=[A-Za-z])\u2013(?=\d)")
"""Signs that stand for a plain hyphen: typeset, unbreakable, or a dash within a code."""
_stem = snowballstemmer.stemmer("english").stemWord


@dataclass(frozen=True, slots=True)
class Token:
    """One term and the place of the words it stands for."""

    term: str
    start: int
    end: int


def terms(text: str) -> list[str]:
    """The terms of a text in reading order, repeats kept."""
    return [token.term for token in tokens(text)]


def fresh_terms(text: str) -> list[str]:
    """The same, without keeping what was found: for the many texts of an ingest."""
    return [term for match in _TOKEN.finditer(_HYPHEN.sub("-", text)) for term in _terms_of(match)]


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[Token, ...]:
    """The terms of a text with their places; a compound gives several at one place."""
    return tuple(
        Token(term, match.start(), match.end())
        for match in _TOKEN.finditer(_HYPHEN.sub("-", text))
        for term in _terms_of(match)
    )


def content_terms(text: str) -> list[str]:
    """The terms that carry a subject, each once, in reading order."""
    found: dict[str, None] = {}
    for token in tokens(text):
        words = text[token.start : token.end].casefold().replace("’", "").replace("'", "")
        if words not in STOP_WORDS and token.term not in STOP_WORDS:
            found[token.term] = None
    return list(found)


def is_code(term: str) -> bool:
    """Whether a term is a code such as `e417`: letters and digits mixed, and no unit."""
    if not (any(c.isdigit() for c in term) and any(c.isalpha() for c in term)):
        return False
    unit = re.fullmatch(r"[\d.]+(\D+)", term)
    ordinal = re.fullmatch(r"\d+(st|nd|rd|th|x)", term)
    return ordinal is None and (unit is None or unit.group(1) not in UNITS.values())


def number_of(term: str) -> str | None:
    """The number of a term that is a number or a number with a unit, else None."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(\D*)", term)
    if match is None or (match.group(2) and match.group(2) not in UNITS.values()):
        return None
    return match.group(1)


def stem(word: str) -> str:
    """The stem of one case-folded word without separators."""
    return _word(word)


def _terms_of(match: re.Match[str]) -> list[str]:
    if match["money"]:
        return [_number(match["amount"]) + "eur"]
    if match["number"]:
        return [_number(match["number"]) + UNITS[match["unit"].casefold()]]
    if match["plain"]:
        return [_number(match["plain"])]
    return _of_word(match["word"])


@lru_cache(maxsize=100_000)
def _of_word(written: str) -> list[str]:
    """The terms of a word or compound; the list is kept, so nobody may change it."""
    word = written.casefold().replace("’", "'")
    word = word.removesuffix("'s").removesuffix("'")
    codes = word.split("/")
    if len(codes) > 1 and all(_mixed(code) for code in codes):  # `E-417/E-471` is both
        return [re.sub(r"\W|_", "", code) for code in (*codes, word)]
    parts = [part for part in re.split(r"[-/.'&_]", word) if part]
    if len(parts) < 2:
        return [_word(part) for part in parts]
    values = [NUMBER_WORDS.get(part, 0) for part in parts]
    if len(values) == 2 and values[0] >= 20 and 0 < values[1] < 10:  # `thirty-six`
        return [str(sum(values))]
    if any(part.isdigit() for part in parts) and any(c.isalpha() for c in word):
        return _compound_code(parts)
    if all(part.isdigit() for part in parts):
        return parts
    whole = "".join(parts)
    if any(c.isdigit() for c in whole):
        return [whole]
    return [*(_word(part) for part in parts), _word(whole)]


def _mixed(word: str) -> bool:
    return any(c.isdigit() for c in word) and any(c.isalpha() for c in word)


def _compound_code(parts: list[str]) -> list[str]:
    """`e-417` is one code; `3-year` is a number and a word; `120-250-mm` two numbers and a unit."""
    wordy = [part for part in parts if part.isalpha() and len(part) > 3]
    if wordy:
        return [_word(part) for part in parts]
    return ["".join(parts)]


def _number(text: str) -> str:
    text = text.replace(",", "")
    return text.rstrip("0").rstrip(".") if "." in text else text


@lru_cache(maxsize=200_000)
def _word(word: str) -> str:
    if word in NUMBER_WORDS and word != "one":
        return str(NUMBER_WORDS[word])
    if not word.isascii():
        folded = unicodedata.normalize("NFKD", word)
        word = "".join(c for c in folded if not unicodedata.combining(c)) or word
    return str(_stem(word))
