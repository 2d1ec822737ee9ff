"""A question in its scope: what exists for it, and how the documents would write it.

Enters: the words as they were typed, a scope, the index. Leaves: `Understood`. Refused: a question
that is empty, has no word, or is too long; a reader or product that the collection does not have.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from atlas.answer.question import Question, analyse
from atlas.errors import UsageError
from atlas.index import Index
from atlas.keyword import ScopedBM25
from atlas.products import Mention, with_names
from atlas.records import Scope
from atlas.scope import ScopeView, view, without_years
from atlas.settings import Settings
from atlas.spelling import mend
from atlas.words import terms

MAX_QUESTION = 2000
"""Characters of a question; a longer one is refused, since no model would read its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """A question as it was read in its scope."""

    words: str
    """As it was asked, cleaned."""
    text: str
    """As the documents would write it: product names for aliases, errors mended."""
    replaced: dict[str, str]
    question: Question
    seen: ScopeView
    statistics: ScopedBM25
    unknown: str
    """A product-like name that no document in sight knows, or ""."""


def read(
    question: str,
    scope: Scope,
    settings: Settings,
    index: Index,
    statistics_of: Callable[[ScopeView], ScopedBM25],
    is_word: Callable[[str], bool],
) -> Understood:
    """Apply the scope, then read the question: products, codes and typing errors.

    `statistics_of` gives the keyword statistics of a scope, `is_word` tells whether a word is one
    that the encoder knows. Raises UsageError for a question or scope that makes no sense.
    """
    words = clean_question(question)
    seen = view(words, scope, settings, index, date.today())
    statistics = statistics_of(seen)
    named = in_their_words(without_years(with_names(words, seen.mentions)), settings.glossary)
    text, replaced = mend(_without_ids(named, seen, index), index, statistics, is_word)
    mentioned = [mention.words for mention in seen.mentions if mention.product]
    products = frozenset(t for name in (*seen.products, *mentioned) for t in terms(name))
    return Understood(
        words=words,
        text=text,
        replaced=replaced,
        question=analyse(text, products),
        seen=seen,
        statistics=statistics,
        unknown=_unknown_product(seen.mentions, seen.known_products, statistics),
    )


def clean_question(question: str) -> str:
    """The question without control characters, white space folded.

    Raises UsageError where it is empty, has no letter or digit, or is too long.
    """
    if len(question) > MAX_QUESTION:
        raise UsageError(
            f"the question has {len(question):,} characters; ask in at most {MAX_QUESTION:,}"
        )
    text = unicodedata.normalize("NFC", question.encode("utf-8", "replace").decode())
    text = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", " ", text)  # whole terminal sequences
    text = "".join(" " if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") else c for c in text)
    text = " ".join(text.split())
    if not text:
        raise UsageError("the question is empty; write it after `ask`, in quotation marks")
    if not re.search(r"\w", text):
        raise UsageError(f"the question {text[:40]!r} has no word in it; ask in words")
    return text


def in_their_words(question: str, glossary: Mapping[str, str]) -> str:
    """The question with the words of the documents in place of those that people use."""
    for word, better in glossary.items():
        question = re.sub(
            rf"(?<![\w-]){re.escape(word)}(?![\w-])", better, question, flags=re.IGNORECASE
        )
    return question


def _without_ids(question: str, seen: ScopeView, index: Index) -> str:
    """The question without ids of documents in scope: they chose the policy, as years do."""
    words = {word.casefold() for word in re.findall(r"[\w.]+(?:-[\w.]+)+", question)}
    for number in sorted(index.numbers[word] for word in words if word in index.numbers):
        name = index.ids[number]
        if seen.blocks[index.blocks_of(number)].any():
            pattern = rf"(?:\b(?:under|in|of|from|by)\s+)?(?<![\w-]){re.escape(name)}(?![\w-])"
            shorter = " ".join(re.sub(pattern, " ", question, flags=re.IGNORECASE).split())
            question = shorter if re.search(r"\w", shorter) else question
    return question


def _unknown_product(
    mentions: Sequence[Mention], known_products: Sequence[str], statistics: ScopedBM25
) -> str:
    """A product-like name that is neither a product in sight nor a word of a block in scope.

    Where the documents have codes of the same letters, it is one of those: F-8 beside F-2.
    """
    own = {term for product in known_products for term in terms(product)}
    for mention in mentions:
        words = terms(mention.words)
        alone = len(words) == 1
        in_documents = alone and statistics.frequency(words[0]) > 0
        if mention.product is not None or in_documents:
            continue
        letters = words[0].rstrip("0123456789")
        like = re.compile(rf"{re.escape(letters)}\d+")
        known = statistics.vocabulary(letters)
        if not (alone and any(like.fullmatch(term) and term not in own for term in known)):
            return mention.words
    return ""
