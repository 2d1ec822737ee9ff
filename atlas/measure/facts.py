"""Answer, case -> whether the facts are there: strings matched at token boundaries.

Number words are read as numbers, so `three years` holds `3 years`; and `13 years` does not, nor
do `twenty-three years` or `-3 °C` hold `3`.
"""

from __future__ import annotations

import re

from atlas.measure.cases import Case
from atlas.words import NUMBER_WORDS

_TOKEN = re.compile(r"(?<![\w.,])[-−]\d[\d,]*(?:\.\d+)?|\d[\d,]*(?:\.\d+)?|[^\W\d_]+|[^\w\s]")
_TENS = [word for word, value in NUMBER_WORDS.items() if value >= 20]
_ONES = [word for word, value in NUMBER_WORDS.items() if 1 <= value <= 9]
_COMPOUND = re.compile(rf"\b({'|'.join(_TENS)})[- ]({'|'.join(_ONES)})\b")
_IGNORED = frozenset("|;:,.!?\"'()[]“”‘’")


def contains(text: str, wanted: str) -> bool:
    """Whether `wanted` stands in `text` as whole tokens; case and punctuation are folded."""
    have, want = _folded(text), _folded(wanted)
    if not want:
        return False
    width = len(want)
    return any(have[place : place + width] == want for place in range(len(have) - width + 1))


def missing_facts(answer: str, case: Case) -> list[str]:
    """The facts of a case of which no alternative stands in the answer."""
    return [
        " or ".join(options)
        for options in case.facts
        if not any(contains(answer, option) for option in options)
    ]


def rejected(answer: str, case: Case) -> list[str]:
    """The strings that must not stand in the answer and do."""
    return [text for text in case.reject if contains(answer, text)]


def _folded(text: str) -> list[str]:
    tokens = []
    for token in _TOKEN.findall(_COMPOUND.sub(_sum, text.casefold())):
        if token in _IGNORED:
            continue
        if token in NUMBER_WORDS:
            token = str(NUMBER_WORDS[token])
        elif token[-1].isdigit() or token[-1] == ",":
            token = token.replace(",", "").replace("−", "-")
        tokens.append(token)
    return tokens


def _sum(compound: re.Match[str]) -> str:
    """`twenty-one` is one number."""
    return str(NUMBER_WORDS[compound[1]] + NUMBER_WORDS[compound[2]])
