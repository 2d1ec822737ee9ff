"""Draft, supplied blocks -> Answer: every citation and every figure checked in code.

- A marker that points at no supplied block is removed.
- A citation whose quoted words do not stand in its block is removed.
- A sentence left without a citation is not presented.
- A sentence with a number, code or unit that none of its cited blocks contains is not presented,
  except the result of an expression that atlas evaluated itself. A sign belongs to its number.
- With nothing left, the answer is an abstention.
- What is presented holds no link, no image and no bracketed number but the markers given here.

What was taken out is reported line by line. Nothing is ever replaced by something near.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from atlas.plain import without_links, without_markers
from atlas.records import Answer, Block, Citation, Claim, Draft
from atlas.words import is_code, number_of, terms

NO_SUPPORT = "nothing in the documents supported the drafted answer"


def validate(draft: Draft, supplied: Sequence[Block]) -> Answer:
    """Check a draft against the blocks it was made from; `supplied[i]` has marker i + 1."""
    removed: list[str] = []
    kept: list[tuple[Claim, list[tuple[int, str]]]] = []
    places: list[int] = []
    for place, claim in enumerate(draft.claims):
        sources = _valid_sources(claim, supplied, removed)
        if not sources:
            removed.append(f"no valid citation: {_short(claim.text)}")
            continue
        if not claim.computed:
            cited = [supplied[m - 1] for m, _ in sources]
            missing = unsupported_figures(claim.text, cited)
            missing = [term for term in missing if not _is_result(term, claim, cited)]
            if missing:
                names = ", ".join(missing)
                removed.append(f"{names} not in the cited block: {_short(claim.text)}")
                continue
        kept.append((claim, sources))
        places.append(place)
    if draft.status not in ("answered", "needs_clarification"):
        return _answer(draft, "", (), removed)
    if not kept:
        if draft.status == "needs_clarification" and draft.choices and not draft.claims:
            return _answer(draft, "", (), removed)
        failed = Draft(status="abstained", reason=NO_SUPPORT)
        return _answer(failed, "", (), removed)
    text, citations = _numbered(kept, supplied)
    return _answer(draft, text, citations, removed, tuple(places))


def uncited(draft: Draft) -> Answer:
    """A draft made from no block at all, as it stands but for links: nothing can be checked."""
    text = "\n".join(without_markers(without_links(claim.text)) for claim in draft.claims)
    return _answer(draft, text, (), [], tuple(range(len(draft.claims))))


def unsupported_figures(text: str, blocks: Sequence[Block]) -> list[str]:
    """Numbers, codes and numbers with units of a sentence that stand in none of the blocks.

    A number with a unit must stand with that unit; a bare number may stand with any.
    """
    known = {term for block in blocks for term in terms(block.searched)}
    bare = {number for term in known if (number := number_of(term))}
    missing = []
    for term in terms(text):
        number = number_of(term)
        figure = number is not None or is_code(term)
        if figure and term not in known and not (number == term and term in bare):
            missing.append(term)
    signs = {pair for block in blocks for pair in _signed(block.searched)}
    for sign, number in _signed(text):
        other = "" if sign else "-"
        if (other, number) in signs and (sign, number) not in signs:
            missing.append(f"{sign or '+'}{number}")
    return list(dict.fromkeys(missing))


_SIGNED = re.compile(r"(?<![\w.,)\]%°])([-−])?(\d+(?:[.,]\d+)*)")


def _signed(text: str) -> list[tuple[str, str]]:
    """Sign and digits of every number that stands free; a dash after a number is a range."""
    return [
        ("-" if match[1] else "", match[2].replace(",", "")) for match in _SIGNED.finditer(text)
    ]


def _is_result(term: str, claim: Claim, cited: Sequence[Block]) -> bool:
    """Whether a figure was computed; its unit must stand with some figure of a cited block."""
    number = number_of(term)
    if number is None or number not in claim.results:
        return False
    unit = term.removeprefix(number)
    known = {other for block in cited for other in terms(block.searched)}
    return not unit or any(f"{number_of(other)}{unit}" == other for other in known)


def _valid_sources(
    claim: Claim, supplied: Sequence[Block], removed: list[str]
) -> list[tuple[int, str]]:
    sources = []
    quotes = claim.quotes or ("",) * len(claim.markers)
    for marker, quote in zip(claim.markers, quotes, strict=True):
        if not 1 <= marker <= len(supplied):
            removed.append(f"marker [{marker}] points at no supplied block")
        elif quote and quote not in supplied[marker - 1].text:
            removed.append(f"marker [{marker}] quotes words that are not in its block")
        else:
            sources.append((marker, quote))
    return sources


def _numbered(
    kept: Sequence[tuple[Claim, list[tuple[int, str]]]], supplied: Sequence[Block]
) -> tuple[str, tuple[Citation, ...]]:
    """The answer's text with markers numbered in order of appearance, and its citations.

    One block quoted twice is one source; its quotes are joined by an ellipsis.
    """
    order: dict[int, int] = {}
    quotes: dict[int, dict[str, None]] = {}
    sentences = []
    for claim, sources in kept:
        for marker, quote in sources:
            order.setdefault(marker, len(order) + 1)
            quotes.setdefault(marker, {})[quote or supplied[marker - 1].text] = None
        numbers = "".join(
            f"[{number}]" for number in sorted({order[marker] for marker, _ in sources})
        )
        sentences.append(f"{without_markers(without_links(claim.text))} {numbers}")
    citations = tuple(
        _citation(number, supplied[marker - 1], quotes[marker]) for marker, number in order.items()
    )
    return "\n".join(sentences), citations


def _citation(number: int, block: Block, quotes: dict[str, None]) -> Citation:
    page, in_file = block.page_label, block.page
    hidden = dict.fromkeys(reason for quote in quotes if (reason := block.hidden_in(quote)))
    if in_file is not None and page != str(in_file):
        page = f"{page} (page {in_file} of the file)" if page else str(in_file)
    return Citation(
        marker=number,
        ref=block.ref,
        document=block.document,
        title=block.title,
        section=" > ".join(block.titles),
        page=page,
        quote=" … ".join(quotes),
        hidden=", ".join(hidden),
    )


def _answer(
    draft: Draft,
    text: str,
    citations: tuple[Citation, ...],
    removed: list[str],
    kept: tuple[int, ...] = (),
) -> Answer:
    return Answer(
        status=draft.status,
        text=text,
        citations=citations,
        choices=draft.choices,
        reason=draft.reason,
        removed=tuple(removed),
        kept=kept,
    )


def _short(text: str) -> str:
    text = re.sub(r"\s+", " ", text)
    return text if len(text) <= 80 else text[:77] + "…"
