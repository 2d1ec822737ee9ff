"""A question and the words in scope -> the question as the documents would write it.

Codes get the form that they have in the documents (`e417` becomes `E-417`), and typing errors are
mended.

A word is mended only if no block in scope has it, the encoder's vocabulary does not hold it as one
word (then it is a real word that the documents lack, which must not be bent into one they have),
and one typing error (two from seven letters on) leads to a word of a block in scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rapidfuzz import process
from rapidfuzz.distance import OSA

from atlas.index import Index
from atlas.keyword import ScopedBM25
from atlas.words import STOP_WORDS, UNITS, is_code, stem, terms, tokens

_WORD = re.compile(r"(?<![\w-])[A-Za-z]{3,}(?![\w-])")


def mend(
    question: str, index: Index, statistics: ScopedBM25, is_word: Callable[[str], bool]
) -> tuple[str, dict[str, str]]:
    """The mended question, and what was replaced by what."""
    replaced: dict[str, str] = {}
    for token in tokens(question):
        written = question[token.start : token.end]
        if is_code(token.term) and statistics.frequency(token.term):
            form = _written(token.term, index, statistics)
            if form and form != written and written not in form:
                replaced[written] = form
    for match in _WORD.finditer(question):
        word = match.group()
        folded = word.casefold()
        if folded in STOP_WORDS or folded in UNITS or statistics.frequency(stem(folded)):
            continue
        better = _swapped(folded) or _nearest(folded, index, statistics, is_word(folded))
        if better:
            replaced[word] = better
    for word, better in replaced.items():
        question = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", better, question)
    return question, replaced


def _swapped(word: str) -> str | None:
    """The stop word of which two neighbouring letters were swapped: `teh` is `the`."""
    if len(word) > 5:
        return None
    return next((w for w in sorted(STOP_WORDS) if _same_letters(word, w)), None)


def _same_letters(word: str, other: str) -> bool:
    return sorted(word) == sorted(other) and OSA.distance(word, other) == 1


def _nearest(word: str, index: Index, statistics: ScopedBM25, real: bool) -> str | None:
    """The word of the scope that `word` was meant to be: fewest errors, then most blocks.

    A real word is only ever mended by swapping neighbouring letters (`axel`, `axle`).
    """
    if len(word) < 4:
        return None
    allowed = 2 if len(word) >= 7 else 1
    root = stem(word)
    near = statistics.vocabulary(word[0])  # typing errors spare the first letter
    matches = process.extract(root, near, scorer=OSA.distance, score_cutoff=allowed + 1, limit=30)
    found: list[tuple[int, int, str]] = []
    for candidate, _, _ in matches:
        if not candidate.isalpha() or len(candidate) < 3:
            continue
        surface = _surface(candidate, index, statistics)
        distance = min(OSA.distance(word, surface), OSA.distance(root, candidate))
        if distance <= allowed and (not real or _same_letters(word, surface)):
            found.append((distance, -statistics.frequency(candidate), surface))
    return min(found)[2] if found else None


def _surface(term: str, index: Index, statistics: ScopedBM25) -> str:
    """The word behind a stem where it first stands in scope, in lower case."""
    return (_written(term, index, statistics) or term).casefold()


def _written(term: str, index: Index, statistics: ScopedBM25) -> str | None:
    """How a term is written where it first stands in scope."""
    text = index.block(int(statistics.blocks_with(term)[0])).searched
    for token in tokens(text):
        word = text[token.start : token.end]
        if token.term == term and terms(word) == [term]:
            return re.sub(r"['’]s?$", "", word)
    return None
