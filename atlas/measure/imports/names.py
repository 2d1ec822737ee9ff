"""Ids of others -> ids that a file name, a case and a label can carry."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection
from pathlib import Path

MAX_LENGTH = 100
_LABEL = re.compile(r"(.+)-\d+(?:-p\d+)?")


def safe_ids(ids: Collection[str], taken: Collection[str] = ()) -> dict[str, str]:
    """A safe id for every distinct one of `ids`, unchanged wherever it is safe already.

    Safe are letters, digits, `.`, `_` and `-` between them, up to 100, unlike all others whatever
    the case of the letters, and not to be read as the section or block of another: beside `4983`,
    `4983-2` is section 2 of it. What is unsafe is cleaned, and gets eight hex digits of its sha256
    where cleaning alone does not tell it apart. The result does not depend on the order of ids.
    """
    cleaned = {name: _cleaned(name) for name in ids}
    used = Counter(base.casefold() for base in cleaned.values())
    safe = Counter(name.casefold() for name, base in cleaned.items() if name == base)
    reserved = {name.casefold() for name in taken}

    def stays(name: str, base: str) -> bool:
        key = base.casefold()
        alone = used[key] == 1 or (name == base and safe[key] == 1)
        return bool(base) and alone and key not in reserved and not _like_a_label(key, used)

    return {
        name: base if stays(name, base) else f"{base or 'id'}_{_digest(name)}"
        for name, base in cleaned.items()
    }


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _cleaned(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:MAX_LENGTH].strip("-._")


def _like_a_label(base: str, used: Counter[str]) -> bool:
    match = _LABEL.fullmatch(base)
    return match is not None and match[1] in used


def file_name(path: Path) -> str:
    """What a case file made from `path` can be called after it."""
    return _cleaned(path.resolve().name.removesuffix(path.suffix)) or "set"
