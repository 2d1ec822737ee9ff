# ruff: noqa: E501  tables of patterns read best with one pattern a line
"""Claim, passage -> whether one says what the other denies, as far as words alone can tell.

Looked at: negations over shared words, opposites (`hot` and `cold`), and which side of a figure is
meant (`more than`, `up to`). Only plain contradictions count; what is not sure is left alone.
"""

from __future__ import annotations

import re

from atlas.measure.judges.figures import Figure, figures, same
from atlas.words import STOP_WORDS, number_of, stem, terms

REACH = 4
"""Content terms after a negation that it governs."""
SHORT_REACH = 2
"""The same after `no` and `without`."""
MOST = 0.4
"""Share of the shared terms that one side must negate and the other not."""
NEAR = 0.6
"""Share of the claim's terms that a passage must hold before negations are compared."""

_NEGATION = re.compile(
    r"\b(?:not|no|never|without|cannot|neither|nor|none|nobody|nothing|nowhere|unable|forbidden|prohibited|excluded|excludes?"
    r"|instead of|rather than|except|avoid|refrain|lost|void|voids?|free of)\b|\b\w+n['’]t\b",
    re.IGNORECASE,
)
_SHORT = frozenset(("no", "without", "of", "than", "except"))
_AFTERWARDS = re.compile(
    r"\b(?:away|forbidden|prohibited|excluded|out of the question|impossible|ruled out)\b|\bfar from\b",
    re.IGNORECASE,
)
"""What denies the words before it."""
_BARRED = re.compile(
    r"\bnot only\b|\bno (?:later|more|less|fewer|longer) than\b|\bwhether or not\b|\bnot (?:more|less) than\b|\bno matter\b|\bno\. \d|\bnot until\b|\bfree of charge\b",
    re.IGNORECASE,
)
_BUT = re.compile(r",?\s+but\s+", re.IGNORECASE)
_STOP = re.compile(r"[.;:!?]|,|\bbut\b|\bunless\b|\bif\b|\bwhile\b|\bthen\b", re.IGNORECASE)
_OPPOSITES = (
    ("hot", "cold"), ("warm", "cold"), ("indoors", "outdoors"), ("above", "below"), ("before", "after"),
    ("front", "rear"), ("left", "right"), ("clockwise", "counterclockwise"), ("open", "closed"),
    ("loosen", "tighten"), ("highest", "lowest"), ("maximum", "minimum"), ("first", "last"),
    ("increase", "decrease"), ("upper", "lower"), ("enable", "disable"), ("full", "empty"),
    ("allowed", "forbidden"), ("covered", "excluded"), ("includes", "excludes"), ("faster", "slower"),
    ("shorter", "longer"), ("heavier", "lighter"), ("wet", "dry"), ("more", "less"), ("inside", "outside"),
    ("locked", "unlocked"), ("larger", "smaller"), ("higher", "lower"), ("mandatory", "optional"),
    ("switches on", "switches off"), ("on", "off"), ("with", "without"), ("always", "never"),
)  # fmt: skip
_AT_LEAST = re.compile(
    r"(?:\b(?:at least|more than|above|over|exceed(?:s|ing)?|no(?:t)? (?:less|fewer) than|minimum(?: of)?|longer than|deeper than|beyond|"
    r"greater than|higher than|hotter than|warmer than|upwards? of|after)\s*)$",
    re.IGNORECASE,
)
_AT_MOST = re.compile(
    r"(?:\b(?:at most|less than|below|under|up to|no(?:t)? (?:more|later|longer) than|maximum(?: of)?|within|fewer than|shorter than|"
    r"lower than|colder than|cooler than|smaller than|before)\s*)$",
    re.IGNORECASE,
)


def contradiction(claim: str, passage: str, *, denied: bool = False) -> str:
    """What the passage says against the claim, "" where nothing is found.

    With `denied` the claim is a question that was answered with `No`.
    """
    return (
        _sides(claim, passage)
        or ("" if denied else _opposite(claim, passage))
        or next(filter(None, (_negation(part, passage, denied) for part in _BUT.split(claim))), "")
    )


def negated(text: str) -> tuple[set[str], set[str]]:
    """The content terms of a text that a negation governs, and the others."""
    inside: set[str] = set()
    outside: set[str] = set()
    blank = _BARRED.sub(lambda match: " " * len(match[0]), text)
    reach: list[tuple[int, int]] = []
    for match in _NEGATION.finditer(blank):
        stop = _STOP.search(blank, match.end())
        reach.append((match.end(), stop.start() if stop else len(blank)))
    for start, end in reach:
        word = blank[:start].split()[-1].casefold()
        inside |= set(_content(blank[start:end])[: SHORT_REACH if word in _SHORT else REACH])
    for term in _content(blank):
        if term not in inside:
            outside.add(term)
    return inside, outside


def _content(text: str) -> list[str]:
    return [t for t in terms(text) if t not in STOP_WORDS and number_of(t) is None]


def _negation(claim: str, passage: str, denied: bool) -> str:
    claim_in, claim_out = negated(claim)
    passage_in, passage_out = negated(passage)
    mine, theirs = claim_in | claim_out, passage_in | passage_out
    shared = mine & theirs
    if len(shared) < 2 or len(shared) < NEAR * len(mine):
        return ""
    if denied:
        return "" if passage_in else "the source says it without a negation"
    most = MOST * len(shared)
    flipped = claim_in & passage_out
    if len(flipped) >= most and not passage_in & claim_in:
        return f"it denies what the source says ({', '.join(sorted(flipped)[:3])})"
    flipped = passage_in & claim_out
    if len(flipped) >= most and not claim_in & passage_in and not _AFTERWARDS.search(claim):
        return f"the source denies it ({', '.join(sorted(flipped)[:3])})"
    return ""


def _opposite(claim: str, passage: str) -> str:
    mine, theirs = _words(claim), _words(passage)
    claim_not, passage_not = bool(_NEGATION.search(claim)), bool(_NEGATION.search(passage))
    if claim_not != passage_not:
        return ""
    for pair in _OPPOSITES:
        for one, other in (pair, pair[::-1]):
            has, lacks = _has(mine, one), _has(mine, other)
            if has and not lacks and _has(theirs, other) and not _has(theirs, one):
                share = len(mine & theirs) / max(1, len(mine))
                if share >= NEAR:
                    return f"it says {one!r} where the source says {other!r}"
    return ""


def _words(text: str) -> set[str]:
    return {stem(word) for word in re.findall(r"[^\W\d_]+", text.casefold())}


def _has(words: set[str], phrase: str) -> bool:
    return all(stem(word) in words for word in phrase.split())


def _sides(claim: str, passage: str) -> str:
    """A figure that is a lower bound in one and an upper bound in the other."""
    for figure in figures(claim):
        side = _side(claim, figure)
        if side:
            stated = [_side(passage, item) for item in figures(passage) if same(figure, item)]
            if stated and all(item and item != side for item in stated):
                return f"{figure.written} is {side} in it and {stated[0]} in the source"
    return ""


def _side(text: str, figure: Figure) -> str:
    before = text[: figure.start]
    if _AT_LEAST.search(before):
        return "a lower bound"
    if _AT_MOST.search(before):
        return "an upper bound"
    return ""
