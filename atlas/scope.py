"""Reader, date, products and the question's words -> the blocks that exist for this question.

Out of scope means absent: what this module leaves out is not searched, not counted, not named.
Everything it decides depends on the settings and on documents that are in scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from atlas.errors import UsageError
from atlas.index import Index, Profile
from atlas.products import Mention, find_products, name_key, product_names
from atlas.records import Scope
from atlas.settings import Settings
from atlas.words import UNITS

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
    given = [names.products.get(name_key(product), product) for product in scope.products]
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


def without_years(question: str) -> str:
    """The question without the years that chose its policies: the policies rarely repeat them."""
    kept, last = "", 0
    for match in _YEAR.finditer(question):
        before = question[last : match.start()]
        kept += re.sub(r"\b(?:in|from|of|for|since|during)\s+$", "", before, flags=re.IGNORECASE)
        last = match.end()
    shorter = " ".join((kept + question[last:]).split())
    return shorter if re.search(r"\w", shorter) else question


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
