"""A Ragas test set -> cases: of a collection that exists, or of one made of its contexts.

A row's sources are its `reference_context_ids` where they are labels of the collection, and the
blocks that hold its `reference_contexts`. A context that no block holds as a whole, because it was
cut in other places, is looked for by paragraph and by sentence: it counts as found where at least
half of its words are, and its blocks are those of the document with most of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from atlas.errors import CollectionError
from atlas.measure.imports import markdown
from atlas.measure.imports.lines import FEW_SHARE, Column, more_than_a_few
from atlas.measure.imports.names import file_name
from atlas.measure.imports.new_cases import NewCases
from atlas.measure.imports.sources import Sources
from atlas.measure.imports.target import (
    DOCUMENTS,
    Imported,
    case_folder,
    check_target,
    filled,
    write_cases,
    write_settings,
)
from atlas.measure.ragas_rows import RagasRow, read_ragas

QUOTE_CHARACTERS = 1000
"""A longer context is no quote that a block of the default size could hold."""
_HOP = re.compile(r"\A\s*<\d+-hop>\s*")
"""What ragas writes before the contexts of a question that needs several."""
_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def import_ragas(
    source: Path, target: Path, sources: Sources | None = None, *, held_out: bool = False
) -> Imported:
    """Write the rows of a `.jsonl` or `.csv` test set into the case folder of `target`.

    With `sources`, those of the collection at `target`, rows whose sources are not found there are
    left out and counted; without, `target` becomes a collection whose documents are the distinct
    contexts. Rows without a context or id have no source and are left out. Raises UsageError for a
    file that cannot be opened or a target whose files would be overwritten, CollectionError for a
    bad row or for more than a few rows whose sources match nothing or contradict each other,
    NothingToMeasure where no question is left.
    """
    folder, name = case_folder(held_out), f"ragas-{file_name(source)}"
    check_target(target, folder, name, with_documents=sources is None)
    rows = list(read_ragas(source))
    new = NewCases(target)
    if sources is None:
        documents, notes = _made(rows, new)
    else:
        documents, notes = {}, _found(source, rows, new, sources)
    cases = new.rows(notes)
    notes += new.notes()
    with filled(target) as place:
        if sources is None:
            (place / DOCUMENTS).mkdir()
            for context, document in documents.items():
                content = markdown.document(document, "", context)
                path = place / DOCUMENTS / f"{document}.md"
                path.write_text(content, encoding="utf-8", newline="\n")
            write_settings(place, file_name(source))
        files = write_cases(place, folder, name, cases)
    return Imported(
        target=target,
        documents=len(documents),
        cases=len(cases),
        files=tuple(target / file for file in files),
        notes=tuple(notes),
    )


def _context(text: str) -> str:
    return _HOP.sub("", markdown.clean(text)).strip()


def _ask(new: NewCases, row: RagasRow, relevant: Iterator[str], evidence: Iterator[str]) -> None:
    new.add(
        f"R{row.line}",
        row.user_input,
        list(relevant),
        kind=row.synthesizer_name or "imported",
        reference=row.reference,
        evidence=list(evidence),
    )


# ---- a collection of the contexts ---------------------------------------------------------------


def _made(rows: list[RagasRow], new: NewCases) -> tuple[dict[str, str], list[str]]:
    """The id of every distinct context, its paragraphs apart, and notes."""
    documents: dict[str, str] = {}
    without = 0
    for row in rows:
        contexts = ["\n\n".join(markdown.paragraphs(_context(c))) for c in row.reference_contexts]
        contexts = list(filter(None, contexts))
        if not contexts:
            without += 1
            continue
        for context in contexts:
            documents.setdefault(context, f"C{len(documents) + 1:04}")
        quotes = (context.rstrip("- ") for context in contexts if len(context) <= QUOTE_CHARACTERS)
        _ask(new, row, (documents[context] for context in contexts), quotes)
    return documents, list(_sourceless(without))


def _sourceless(count: int) -> Iterator[str]:
    if count:
        yield f"{count:,} rows have no reference context and were left out"


# ---- a collection that exists -------------------------------------------------------------------


@dataclass(slots=True)
class _Tally:
    """Lines of rows that did not go as they should."""

    unfound: list[int] = field(default_factory=list)
    contradicting: list[int] = field(default_factory=list)
    unneeded: dict[str, int] = field(default_factory=dict)
    """Unknown ids of rows whose contexts were found -> the line where each stands first."""
    partly: list[int] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)
    without: int = 0


def _found(source: Path, rows: list[RagasRow], new: NewCases, sources: Sources) -> list[str]:
    tally = _Tally()
    ids = Column(source, "`reference_context_ids`", "the collection")
    for row in rows:
        if not row.reference_contexts and not row.reference_context_ids:
            tally.without += 1
            continue
        labels = [name for name in row.reference_context_ids if sources.exists(name)]
        places = [_places(_context(text), sources) for text in row.reference_contexts]
        refs = [ref for place in places for ref in place]
        for name in row.reference_context_ids:
            if name in labels or not refs:
                ids.matches(row.line, name, name in labels)
            else:
                tally.unneeded.setdefault(name, row.line)
        agree = any(sources.covers(label, ref) for label in labels for ref in refs)
        if labels and refs and not agree:
            tally.contradicting.append(row.line)
            continue
        known = bool(labels) and len(labels) == len(row.reference_context_ids)
        relevant = dict.fromkeys(labels if known else (*labels, *refs))
        if not relevant:
            tally.unfound.append(row.line)
            continue
        if not all(places):
            tally.partly.append(row.line)
        if any(len({sources.document(ref) for ref in place}) > 1 for place in places):
            tally.repeated.append(row.line)
        quotes = (_context(text) for text in row.reference_contexts)
        held = (
            quote
            for quote in quotes
            if len(quote) <= QUOTE_CHARACTERS
            and any(sources.quotable(quote, label) for label in relevant)
            and sources.holding(quote)
        )
        _ask(new, row, iter(relevant), held)
    return [*ids.notes(), *_notes(source, len(rows) - tally.without, tally)]


def _places(context: str, sources: Sources) -> list[str]:
    """Blocks that a context stands in; none where less than half of its words were found."""
    whole = sources.holding(context)
    if whole:
        return whole
    found = Counter[str]()
    refs: dict[str, None] = {}
    words = 0
    for part in _parts(context, sources):
        blocks = sources.holding(part)
        refs |= dict.fromkeys(blocks)
        length = len(part.split())
        words += length if blocks else 0
        found.update(dict.fromkeys({sources.document(ref) for ref in blocks}, length))
    if not found or 2 * words < len(context.split()):
        return []
    most = max(found.values())
    return [ref for ref in refs if found[sources.document(ref)] == most]


def _parts(context: str, sources: Sources) -> Iterator[str]:
    """Paragraphs that a block holds, and the sentences of the others."""
    for paragraph in _PARAGRAPH.split(context):
        if sources.holding(paragraph):
            yield paragraph
        else:
            yield from _SENTENCE.split(markdown.folded(paragraph))


def _notes(source: Path, total: int, tally: _Tally) -> Iterator[str]:
    yield from _sourceless(tally.without)
    for lines, what, hint in (
        (
            tally.unfound,
            "have sources that match nothing in the collection",
            "is it the collection they were made from, and are the columns shifted?",
        ),
        (
            tally.contradicting,
            "name ids of other places than their contexts are from",
            "is the column of ids shifted?",
        ),
    ):
        if not lines:
            continue
        found = f"{len(lines):,} of {total:,} rows {what}"
        if more_than_a_few(len(lines), total):
            raise CollectionError(
                f"{source}:{lines[0]}: {found}; up to {FEW_SHARE:.0%} would be left out; {hint}"
            )
        yield f"{source}:{lines[0]}: {found}; left out"
    if tally.unneeded:
        first, line = next(iter(tally.unneeded.items()))
        yield (
            f"{source}:{line}: {len(tally.unneeded):,} ids match nothing in the collection "
            f"(first: {first!r}); the contexts of their rows were used instead"
        )
    if tally.partly:
        yield (
            f"{source}:{tally.partly[0]}: {len(tally.partly):,} rows have sources of which a part "
            "was not found; the rest was imported"
        )
    if tally.repeated:
        yield (
            f"{source}:{tally.repeated[0]}: {len(tally.repeated):,} rows have contexts that stand "
            "in several documents; where ids do not decide, all of them count as relevant"
        )
