"""Cases, index -> the questions of a run, with the blocks that their labels stand for.

A label in a case is a document, a section, a page or a block. Measures that others define
(recall@k, nDCG@k, everything exported) are over blocks, so each label is expanded to the blocks it
covers. A label of a block stands for a stretch of text, that of the block as the collection's own
settings cut it: with another block size, a block is covered that shares more than half of the
shorter one's text.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from atlas.errors import CollectionError, NothingToMeasure
from atlas.measure.cases import DEVELOPMENT, HELD_OUT, Case, Labels, check_cases, load_cases
from atlas.measure.doors import Indexed, Opened
from atlas.records import Block, Document, Scope
from atlas.settings import Settings
from atlas.words import content_terms

SETS = {DEVELOPMENT: "development", HELD_OUT: "held-out"}
TOO_EASY = 0.6
"""Mean word overlap from which on a set of questions is easy for a keyword search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The questions that a run asks, with everything that their labels point at."""

    set: str
    """`development` or `held-out`."""
    cases: tuple[Case, ...]
    outside: int
    """Cases left out because their sources lie outside the sample."""
    labels: Labels
    documents: tuple[Document, ...]
    blocks: Mapping[str, Block]
    """Every block of the index by its reference, in the order of the collection."""
    settings: Settings

    def scope_of(self, case: Case, reader: str | None = None) -> Scope:
        """The scope a case is asked in: its own reader, or another one, and its day."""
        return Scope(reader=reader or case.reader, date=case.date or self.settings.as_of)

    def relevant(self, case: Case) -> tuple[str, ...]:
        """The blocks that the labels of a case cover, in the order of the collection."""
        owners: dict[str, list[str]] = {}
        for label in case.relevant:
            found = self.labels.parse(label)
            if found is not None:
                owners.setdefault(found[0].id, []).append(label)
        return tuple(
            ref
            for ref, block in self.blocks.items()
            if any(self.labels.covers(label, block) for label in owners.get(block.document, ()))
        )

    def unanswerable(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.expect == "abstain")

    def fingerprint(self) -> str:
        """Twelve hex digits over the questions and labels; notes and line numbers do not count."""
        rows = [
            {**asdict(case), "where": "", "note": "", "date": self.scope_of(case).date}
            for case in self.cases
        ]
        rows.sort(key=lambda row: row["id"])
        return hashlib.sha256(repr(rows).encode()).hexdigest()[:12]

    def collection_fingerprint(self) -> str:
        """Twelve hex digits over the documents, however they are split."""
        hashes = sorted(f"{document.id} {document.content_hash}" for document in self.documents)
        return hashlib.sha256("\n".join(hashes).encode()).hexdigest()[:12]

    def overlap(self) -> float | None:
        """Mean word overlap of questions and their evidence, 0 to 1; None without evidence.

        For one question: the share of its content terms (stems, without stop words) that stand in
        its evidence quotes. What a keyword search can live on.
        """
        shares = []
        for case in self.cases:
            asked = set(content_terms(case.question))
            if asked and case.evidence:
                told = {term for quote in case.evidence for term in content_terms(quote)}
                shares.append(len(asked & told) / len(asked))
        return statistics.fmean(shares) if shares else None

    def remarks(self) -> Iterator[str]:
        """What to know about the set before its numbers are read."""
        asked = len(self.cases)
        none = len(self.unanswerable())
        yield f"{asked} {self.set} questions, {none} of them without an answer in the documents" + (
            f"; {self.outside} more lie outside the sample" if self.outside else ""
        )
        overlap = self.overlap()
        if overlap is not None:
            yield f"word overlap of questions and evidence: {overlap:.2f} on average" + (
                "; a keyword search finds these easily, ask in other words" * (overlap > TOO_EASY)
            )


def load_questions(
    opened: Opened,
    folder: str = DEVELOPMENT,
    *,
    cases: Sequence[Case] | None = None,
    spans: Mapping[str, Block] | None = None,
) -> Questions:
    """Load and check the questions of a set (or take `cases` of it) against an open collection.

    `spans` are the blocks that block labels mean, where the index has been split otherwise.
    Raises CollectionError for a bad case file, NothingToMeasure where no question is left.
    """
    root = opened.collection.root
    settings = opened.collection.settings
    if cases is None:
        cases = cases_of(root, folder)
    documents = tuple(opened.index.documents())
    blocks = blocks_of(opened.index)
    labels = Labels(documents, spans if spans is not None else blocks)
    outside = 0
    if opened.collection.sample:
        inside = [case for case in cases if in_sample(case, settings.sample, labels)]
        outside = len(cases) - len(inside)
        cases = [
            replace(case, near_misses=tuple(filter(labels.exists, case.near_misses)))
            for case in inside
        ]
        if not cases:
            raise NothingToMeasure(f"all {outside} cases lie outside the sample")
    check_cases(cases, labels)
    return Questions(
        set=SETS[folder],
        cases=tuple(cases),
        outside=outside,
        labels=labels,
        documents=documents,
        blocks=blocks,
        settings=settings,
    )


def cases_of(root: Path, folder: str = DEVELOPMENT) -> tuple[Case, ...]:
    """Every case of a set; reads files and nothing else. Raises NothingToMeasure without any."""
    cases = load_cases(root, folder)
    if cases:
        return cases
    other = HELD_OUT if folder == DEVELOPMENT else DEVELOPMENT
    hint = ""
    try:
        there = len(load_cases(root, other))
    except CollectionError:
        there = 0
    if there:
        option = "with --held-out" if other == HELD_OUT else "without --held-out"
        hint = f"; {other}/ has {there}, measure them {option}"
    hint = hint or "; write cases with `id`, `question`, `relevant` or `expect: abstain`"
    raise NothingToMeasure(f"{root / folder}: no question in *.yaml{hint}")


def blocks_of(index: Indexed) -> dict[str, Block]:
    """Every block of an index by its reference."""
    numbered = (index.block(number) for number in range(len(index)))
    return {block.ref: block for block in numbered}


def in_sample(case: Case, sample: Sequence[str], labels: Labels) -> bool:
    """Whether a case can be asked of a sample: it has no source, or all of them lie inside."""
    found = [labels.parse(label) for label in case.relevant]
    return not case.relevant or all(item is not None and item[0].id in sample for item in found)
