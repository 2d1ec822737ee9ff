"""TREC topics and qrels -> cases of a collection that exists.

The document column of the qrels holds labels of the collection: documents, sections, pages or
blocks. Grades above 0 are relevant, all alike. Topics are lines `id<TAB>text`, or JSON Lines with
`_id` and `text`; the SGML topics of early TREC tracks are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from atlas.errors import CollectionError, UsageError
from atlas.measure.imports.lines import Column, identifier, json_lines, text_lines, words_of
from atlas.measure.imports.names import file_name
from atlas.measure.imports.new_cases import NewCases
from atlas.measure.imports.sources import Sources
from atlas.measure.imports.target import Imported, case_folder, check_target, filled, write_cases
from atlas.measure.trec import judgements

TOPICS = ("topics.tsv", "queries.tsv", "topics.jsonl", "queries.jsonl")


def import_trec(
    source: Path, target: Path, sources: Sources, *, held_out: bool = False
) -> Imported:
    """Write the judged topics of a folder into the case folder of `target`.

    `source` holds one qrels file, `qrels*` or `*.qrels`, and one of TOPICS. Topics without a
    relevant document are left out and counted. Raises UsageError for a missing file or a case file
    that exists, CollectionError for a bad line or for ids of which more than a few match nothing,
    NothingToMeasure where no question is left.
    """
    judged, asked = _files(source)
    folder, name = case_folder(held_out), f"trec-{file_name(source)}"
    check_target(target, folder, name, with_documents=False)
    topics = dict(_topics(asked))
    query_column = Column(judged, "column 1", asked.name)
    document_column = Column(judged, "column 3", "the collection")
    relevant: dict[str, dict[str, None]] = {}
    graded = below = 0
    for item in judgements(judged):
        if item.grade <= 0:
            below += 1
            continue
        known_topic = query_column.matches(item.line, item.query, item.query in topics)
        known = sources.exists(item.document)
        if document_column.matches(item.line, item.document, known) and known_topic:
            relevant.setdefault(item.query, {})[item.document] = None
            graded += item.grade > 1
    if below and not relevant and not graded:
        raise CollectionError(
            f"{judged}: all {below:,} judgements have grade 0 or below; expected lines of topic, "
            "0, document, grade; are the columns shifted?"
        )
    notes = [*query_column.notes(), *document_column.notes()]
    if graded:
        notes.append(f"{graded:,} grades above 1 count as relevant, no more and no less")
    if below:
        notes.append(f"{below:,} judgements of grade 0 or below are not relevant and left out")
    new = NewCases(target)
    for topic, labels in relevant.items():
        new.add(topic, topics[topic], list(labels))
    rows = new.rows(notes)
    unjudged = len(topics) - len(relevant)
    if unjudged:
        notes.append(
            f"{unjudged:,} of {len(topics):,} topics have no relevant document in {judged.name} "
            "and were left out"
        )
    with filled(target) as place:
        files = write_cases(place, folder, name, rows)
    return Imported(
        target=target,
        documents=0,
        cases=len(rows),
        files=tuple(target / file for file in files),
        notes=(*notes, *new.notes()),
    )


def _files(source: Path) -> tuple[Path, Path]:
    """The qrels file and the topics file."""
    expected = f"expected a folder with one `qrels*` file and one of {', '.join(TOPICS)}"
    if not source.is_dir():
        raise UsageError(f"{source}: no such folder; {expected}")
    judged = sorted(
        path for path in {*source.glob("qrels*"), *source.glob("*.qrels")} if path.is_file()
    )
    asked = [source / name for name in TOPICS if (source / name).is_file()]
    for found, what in ((judged, "qrels files"), (asked, "topics files")):
        if len(found) != 1:
            names = ", ".join(path.name for path in found) or "none"
            raise UsageError(f"{source}: {len(found)} {what} ({names}); {expected}")
    return judged[0], asked[0]


def _topics(path: Path) -> Iterator[tuple[str, str]]:
    seen: dict[str, int] = {}
    rows = _json_topics(path) if path.suffix == ".jsonl" else _tab_topics(path)
    for line, name, text in rows:
        if name in seen:
            raise CollectionError(
                f"{path}:{line}: the topic {name!r} stands in line {seen[name]} too; keep one"
            )
        seen[name] = line
        yield name, text


def _json_topics(path: Path) -> Iterator[tuple[int, str, str]]:
    for line, row in json_lines(path):
        where = f"{path}:{line}"
        yield line, identifier(where, row, "_id"), words_of(where, row, "text")


def _tab_topics(path: Path) -> Iterator[tuple[int, str, str]]:
    for line, text in text_lines(path):
        name, tab, words = text.partition("\t")
        if not tab or not name.strip():
            raise CollectionError(
                f"{path}:{line}: expected an id, a tab and the question; found {text[:40]!r}"
            )
        yield line, name.strip(), words
