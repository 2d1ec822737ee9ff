"""Reader, date, products and the question's words -> the blocks that exist for this question.

Out of scope means absent: what this module leaves out is not searched, not counted, not named.
Everything it decides depends on the settings and on documents that are in scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from atlas.errors import UsageError
from atlas.index import Index, Profile
from atlas.records import Scope
from atlas.settings import Settings
from atlas.words import UNITS, Token, is_code, stem, tokens

_COUNTED = (
    "charges?|cycles?|hours?|hrs?|kilomet(?:er|re)s?|lumens?|lux|met(?:er|re)s?|miles?|minutes?|"
    "newtons?|people|pieces?|rpm|seconds?|steps?|times|turns?"
)
_UNIT = "|".join(sorted((re.escape(unit) for unit in UNITS if unit != "a"), key=len, reverse=True))
_YEAR = re.compile(
    r"(?<![\w.,/€$£-])(?<![€$£]\s)(?<!every\s)((?:1[89]|20)\d\d)"
    rf"(?!\w|[.,/-]\d|[\s-]?(?:{_UNIT}|(?:charging\s)?(?:{_COUNTED}))(?!\w)|\s?[€$£])",
    re.IGNORECASE,
)
"""A year, and not an amount of something: `in 2025`, but not `2025 km` nor `2,025`."""
_DAY = re.compile(r"(?<!\d)((?:1[89]|20)\d\d-\d\d-\d\d)(?!\d)")
_REVISION = re.compile(r"\brev(?:ision|\.)?\s*(\d+)\b|(?<![\w-])r(\d{1,2})(?![\w-])", re.IGNORECASE)
"""`revision 1` or a lone `R1`; the R1 of `WARR-R1` names that document and no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeView:
    """What one question may see."""

    reader: str | None
    day: date
    """The day the answer must hold on."""
    days: tuple[date, ...]
    """All days that the question asks about: `day`, or the years that it names."""
    products: tuple[str, ...]
    """Products that the caller or the question names, in that order."""
    mentions: tuple[Mention, ...]
    """Where the question names products; one without a product is of no product in sight."""
    known_products: tuple[str, ...]
    """Products of the settings, and of the documents that this reader sees on this day."""
    blocks: NDArray[np.bool_]
    """One truth value per block of the index."""
    key: tuple[object, ...]
    """Equal keys mean equal `blocks`, and the other way round: it is made of nothing else, so that
    what is kept under it can never be what another reader sees."""


def check_reader(reader: str | None, settings: Settings, index: Index) -> None:
    """Raises UsageError for a reader group that the collection does not have."""
    readers = _readers(settings, index.profiles)
    if reader is not None and reader not in readers:
        known = ", ".join(readers) if readers else "it has none; leave --reader out"
        raise UsageError(f"unknown reader group {reader!r}; this collection has: {known}")


def unreadable(documents: Iterable[str], reader: str | None, index: Index) -> list[str]:
    """Those of some document ids that a reader may not read as the index is now, or that it lacks.

    What a trace names is checked with this before the trace is shown again.
    """
    numbers = {name: number for number, name in enumerate(index.ids)}
    refused = []
    for name in dict.fromkeys(documents):
        own = index.blocks_of(numbers[name]) if name in numbers else range(0)
        if not own or not _may_read(index.profiles[int(index.block_profile[own[0]])], reader):
            refused.append(name)
    return refused


def view(question: str, scope: Scope, settings: Settings, index: Index, today: date) -> ScopeView:
    """Apply a scope, narrowed by what the question names, to an index.

    Raises UsageError for a reader group that the collection does not have, and for a product of
    the caller that it does not have, as far as this reader can see on that day.
    """
    check_reader(scope.reader, settings, index)
    day = scope.date or today
    days = _days(question, day)
    named_ids = _named_documents(question, index.ids)

    def of_blocks(profiles: Sequence[bool]) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = np.array(profiles, bool)[index.block_profile]
        return mask

    def within(profiles: Sequence[bool], allowed: Sequence[bool]) -> NDArray[np.bool_]:
        """Blocks of allowed profiles, less what was replaced, and what the question names."""
        blocks = of_blocks(profiles)
        named = np.zeros(len(index), bool)
        for number in named_ids:
            own = index.blocks_of(number)
            if len(own):
                named[own] = allowed[int(index.block_profile[own[0]])]
        for number in _replaced(index, blocks, named):
            blocks[index.blocks_of(number)] = False
        return blocks | named

    readable = [_may_read(profile, scope.reader) for profile in index.profiles]
    current = [
        can and any(_in_force(profile, moment) for moment in days)
        for can, profile in zip(readable, index.profiles, strict=True)
    ]
    present = np.bincount(index.block_profile[within(current, readable)], minlength=len(current))
    known = _all_products(
        settings, [profile for n, profile in zip(present, index.profiles, strict=True) if n]
    )
    names = product_names(settings, known)
    given = [names.products.get(_key(product), product) for product in scope.products]
    _check_products(given, known)
    mentions = find_products(question, names)
    found = [mention.product for mention in mentions if mention.product]
    if not found:  # a document that the question names speaks of its own products
        found = _products_of(index, named_ids, readable)
    products = tuple(dict.fromkeys((*given, *found)))
    fitting = [
        not products or not profile.products or bool(set(products) & set(profile.products))
        for profile in index.profiles
    ]
    blocks = within(
        [a and b for a, b in zip(current, fitting, strict=True)],
        [a and b for a, b in zip(readable, fitting, strict=True)],
    )
    return ScopeView(
        reader=scope.reader,
        day=day,
        days=days,
        products=products,
        mentions=tuple(mentions),
        known_products=known,
        blocks=blocks,
        key=(np.packbits(blocks).tobytes(),),
    )


# ---- readers and dates ----------------------------------------------------------------------


def _readers(settings: Settings, profiles: Iterable[Profile]) -> tuple[str, ...]:
    own = sorted({reader for profile in profiles for reader in profile.readers})
    return tuple(dict.fromkeys((*settings.readers, *own)))


def _may_read(profile: Profile, reader: str | None) -> bool:
    return not profile.readers or reader in profile.readers


def _in_force(profile: Profile, day: date) -> bool:
    started = profile.valid_from is None or profile.valid_from <= day
    return started and (profile.valid_to is None or day <= profile.valid_to)


def _days(question: str, day: date) -> tuple[date, ...]:
    """The days a question asks about: dates and years that it names, else the scope's day.

    A year other than the day's own stands for the day of that year nearest to it: policies of 2025
    asked in 2026 are those in force on 2025-12-31.
    """
    days: list[date] = []
    for text in _DAY.findall(question):
        try:
            days.append(date.fromisoformat(text))
        except ValueError:
            continue
    for text in _YEAR.findall(question):
        year = int(text)
        if year == day.year:
            days.append(day)
        elif year < day.year:
            days.append(date(year, 12, 31))
        else:
            days.append(date(year, 1, 1))
    return tuple(dict.fromkeys(days)) or (day,)


def _named_documents(question: str, ids: Sequence[str]) -> list[int]:
    """Documents whose id the question writes out (`WARR-R1`), or whose revision it names."""
    folded = question.casefold()
    words = set(re.findall(r"[\w.-]*\w", folded))
    endings = tuple(f"-r{a or b}" for a, b in _REVISION.findall(folded))
    if not endings and not any("-" in word for word in words):
        return []
    return [
        number
        for number, name in enumerate(ids)
        if (name.casefold() in words and "-" in name) or name.casefold().endswith(endings)
    ]


def _replaced(index: Index, blocks: NDArray[np.bool_], named: NDArray[np.bool_]) -> list[int]:
    """Documents that give way to another one in scope.

    The older of two gives way to the newer, unless the question names the older and not the
    newer: then it is the newer one that is not asked about.
    """

    def within(number: int, mask: NDArray[np.bool_]) -> bool:
        own = index.blocks_of(number)
        return len(own) > 0 and bool(mask[own[0]])

    removed = set()
    for newer, older in index.supersedes:
        if within(older, named):
            if not within(newer, named):
                removed.add(newer)
        elif within(newer, blocks) or within(newer, named):
            removed.add(older)
    return sorted(removed)


# ---- products -------------------------------------------------------------------------------


def _products_of(index: Index, documents: Sequence[int], allowed: Sequence[bool]) -> list[str]:
    """The products of documents whose profile is allowed."""
    found: list[str] = []
    for number in documents:
        own = index.blocks_of(number)
        if len(own) and allowed[int(index.block_profile[own[0]])]:
            found += index.profiles[int(index.block_profile[own[0]])].products
    return found


def _check_products(products: Iterable[str], known: Sequence[str]) -> None:
    for product in products:
        if product not in known:
            names = ", ".join(known) if known else "it has none; leave --product out"
            raise UsageError(f"unknown product {product!r}; this collection has: {names}")


def _all_products(settings: Settings, profiles: Iterable[Profile]) -> tuple[str, ...]:
    own = sorted({product for profile in profiles for product in profile.products})
    return tuple(dict.fromkeys((*settings.products, *own)))


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
            names[_key(name)] = product
            for lost in (r"['’-]", r"[\s'’-]"):
                names.setdefault(_key(re.sub(lost, "", name)), product)
        words = _key(product)
        for first in range(1, len(words)):
            ends.setdefault(words[first:], set()).add(product)
    names.pop((), None)  # a name without a letter or digit can be called by nobody
    for words, owners in ends.items():
        if len(owners) == 1 and words not in names and any(c.isdigit() for c in "".join(words)):
            names[words] = next(iter(owners))
            names.setdefault(_key("".join(words)), names[words])
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


def without_years(question: str) -> str:
    """The question without the years that chose its policies: the policies rarely repeat them."""
    kept, last = "", 0
    for match in _YEAR.finditer(question):
        before = question[last : match.start()]
        kept += re.sub(r"\b(?:in|from|of|for|since|during)\s+$", "", before, flags=re.IGNORECASE)
        last = match.end()
    shorter = " ".join((kept + question[last:]).split())
    return shorter if re.search(r"\w", shorter) else question


def _key(name: str) -> tuple[str, ...]:
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
