"""Sources -> their title lines, and which of them are in force for a question.

Where two sources are revisions of one document, told by a number in the title line, the newest
holds unless the question names another by its number, its year, or as the older one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

ITEM = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)])\s+")
HEADING = re.compile(r"^#{1,6}\s+")
TITLE_LIMIT = 160
"""Most characters of a line that may be a title."""
_REVISION = re.compile(
    r",?\s*\b(?:revision|version|issue|edition|rev\.?)\s*(\d+(?:\.\d+)*)", re.IGNORECASE
)
_EARLIER = re.compile(
    r"\b(?:old|older|earlier|previous|former|first|original)\b[^.?]{0,20}"
    r"\b(?:terms?|revision|version|policy|warranty|rules?)\b|\bused to\b|\blast year\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def title_and_body(source: str) -> tuple[str, str]:
    """The title line of a source, "" where it has none, and the rest."""
    first, _, rest = source.strip().partition("\n")
    title = HEADING.sub("", first).strip()
    plain = " > " in title or (not re.search(r"[.!?:;]$", title) and "|" not in title)
    if rest.strip() and plain and len(title) <= TITLE_LIMIT and not ITEM.match(first):
        return title, rest
    return "", source


def in_force(question: str, sources: Sequence[str]) -> list[int]:
    """The places of the sources that hold for the question, superseded revisions left out.

    Revisions are told by a number in the title line. A question that names the year or the
    number of an earlier revision gets that one; one that asks for older terms gets all but the
    newest.
    """
    revisions: dict[str, dict[str, list[int]]] = {}
    for place, source in enumerate(sources):
        title = title_and_body(source)[0] or source.split("\n", 1)[0]
        match = _REVISION.search(title)
        if match:
            name = title[: match.start()].casefold().strip()
            revisions.setdefault(name, {}).setdefault(match[1], []).append(place)
    out: set[int] = set()
    for family in revisions.values():
        if len(family) < 2:
            continue
        order = sorted(family, key=lambda text: [int(part) for part in text.split(".")])
        named = [
            n
            for n in order
            if re.search(
                rf"\b(?:revision|version|rev\.?)\s*{re.escape(n)}(?![\d.])", question, re.IGNORECASE
            )
        ]
        years = set(_YEAR.findall(question))
        dated = [
            n for n in order
            if years & set(_YEAR.findall(" ".join(sources[place] for place in family[n])))
        ]  # fmt: skip
        if named:
            wanted = named
        elif len(dated) == 1:
            wanted = dated
        elif _EARLIER.search(question):
            wanted = order[:-1]
        else:
            wanted = order[-1:]
        out |= {place for n in order if n not in wanted for place in family[n]}
    return [place for place in range(len(sources)) if place not in out]
