"""A question's words -> the products that it names.

In:  names and aliases of products, and a question.
Out: `Mention`s in reading order; one without a product looks like a name that nobody has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from atlas.settings import Settings
from atlas.words import Token, is_code, stem, tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """All ways to write some products, as terms."""

    products: Mapping[tuple[str, ...], str]
    """Words of a name or alias -> the product."""
    longest: int
    """Words of the longest name."""
    shapes: frozenset[tuple[str, ...]]
    parts: frozenset[tuple[str, ...]]
    """First letter and shape of every word."""
    mistakable: Mapping[tuple[int, tuple[str, ...]], Sequence[tuple[int, str, str]]]
    """Place of a long word and the other words of a name -> rank of the name, word, product."""


def product_names(settings: Settings, products: Iterable[str]) -> Names:
    """All ways to write the products: names, aliases, and the distinctive end of a long name.

    `Galaxy S10` can be called `S10` as long as no other product ends so.
    """
    return _names(tuple((product, settings.products.get(product, ())) for product in products))


@lru_cache(maxsize=64)
def _names(products: tuple[tuple[str, tuple[str, ...]], ...]) -> Names:
    """The same for products with their aliases; kept, since every question asks it again."""
    names: dict[tuple[str, ...], str] = {}
    ends: dict[tuple[str, ...], set[str]] = {}
    for product, aliases in products:
        for name in (product, *aliases):
            names[name_key(name)] = product
            for lost in (r"['’-]", r"[\s'’-]"):
                names.setdefault(name_key(re.sub(lost, "", name)), product)
        words = name_key(product)
        for first in range(1, len(words)):
            ends.setdefault(words[first:], set()).add(product)
    names.pop((), None)  # a name without a letter or digit can be called by nobody
    for words, owners in ends.items():
        if len(owners) == 1 and words not in names and any(c.isdigit() for c in "".join(words)):
            names[words] = next(iter(owners))
            names.setdefault(name_key("".join(words)), names[words])
    mistakable: dict[tuple[int, tuple[str, ...]], list[tuple[int, str, str]]] = {}
    for rank, (words, product) in enumerate(names.items()):
        for place, word in enumerate(words):
            if len(word) >= 5 and word.isalpha():
                others = words[:place] + words[place + 1 :]
                mistakable.setdefault((place, others), []).append((rank, word, product))
    return Names(
        products=names,
        longest=max((len(key) for key in names), default=0),
        shapes=frozenset(_shape(key) for key in names),
        parts=frozenset((part[0], *_shape((part,))) for key in names for part in key),
        mistakable=mistakable,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A place in the question that names a product, or looks as if it did."""

    start: int
    end: int
    words: str
    product: str | None
    """None where no product in sight has the name."""


def find_products(question: str, names: Names) -> list[Mention]:
    """The products that a question names, in reading order.

    Longest names first; plurals, possessives, lost hyphens and one typing error in a word of five
    letters or more are forgiven.
    """
    words = _joined(question, names)
    found: list[Mention] = []
    place = 0
    while place < len(words):
        step, product = 1, None
        lengths = range(min(names.longest, len(words) - place), 0, -1)
        keys = {n: tuple(_singular(w.term) for w in words[place : place + n]) for n in lengths}
        for length, key in keys.items():
            product = names.products.get(key) or _near(key, names)
            if product:
                step = length
                break
        else:
            for length, key in keys.items():
                numbered = is_code(key[-1]) or (length > 1 and any(c.isdigit() for c in key[-1]))
                if numbered and _shape(key) in names.shapes:
                    step = length
                    break
            else:
                place += 1
                continue
        start, end = words[place].start, words[place + step - 1].end
        named = re.sub(r"['’]s?$", "", question[start:end])
        found.append(Mention(start=start, end=start + len(named), words=named, product=product))
        place += step
    return found


def with_names(question: str, mentions: Iterable[Mention]) -> str:
    """The question with every alias replaced by the product's name, as the documents write it."""
    for mention in sorted(mentions, key=lambda m: -m.start):
        if mention.product:
            question = question[: mention.start] + mention.product + question[mention.end :]
    return question


def name_key(name: str) -> tuple[str, ...]:
    return tuple(_singular(term) for term in _compact(name))


def _compact(name: str) -> list[str]:
    """Terms of a name; of a compound only its parts, so that a lost hyphen makes no difference."""
    return [token.term for token in _parts(name)]


def _parts(text: str) -> list[Token]:
    """The tokens of a text without the joined forms that compounds give besides their parts."""
    found: list[Token] = []
    for token in tokens(text):
        group = [other for other in found if (other.start, other.end) == (token.start, token.end)]
        if len(group) > 1 and stem("".join(text[token.start : token.end].split("-"))) == token.term:
            continue
        found.append(token)
    return found


def _joined(question: str, names: Names) -> list[Token]:
    """The question's tokens; `c 3` becomes `c3` where that is a product's word, and `c 4` too."""
    result: list[Token] = []
    for token in _parts(question):
        before = result[-1] if result else None
        if before is not None and len(before.term) == 1 and before.term.isalpha():
            joined = before.term + token.term
            if is_code(joined) and (joined[0], *_shape((joined,))) in names.parts:
                result[-1] = Token(joined, before.start, token.end)
                continue
        result.append(token)
    return result


def _singular(term: str) -> str:
    """`c3s` is `c3`; stems have lost their plural already."""
    return term[:-1] if re.fullmatch(r"[a-z]+\d+s", term) else term


def _near(key: tuple[str, ...], names: Names) -> str | None:
    """The product whose name differs by one typing error in its long words, if there is one."""
    from rapidfuzz.distance import OSA

    found: list[tuple[int, str]] = []
    for place, given in enumerate(key):
        for rank, right, product in names.mistakable.get(
            (place, key[:place] + key[place + 1 :]), ()
        ):
            if given != right and OSA.distance(given, right, score_cutoff=1) <= 1:
                found.append((rank, product))
    return min(found)[1] if found else None


def _shape(key: tuple[str, ...]) -> tuple[str, ...]:
    """A name with its last word's letters and digits folded, so that C-4 looks like C-3."""
    last = re.sub(r"\d", "0", re.sub(r"[a-z]", "a", key[-1]))
    return (*key[:-1], re.sub(r"0+", "0", last) if len(key) > 1 else last)
