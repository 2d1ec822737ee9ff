"""A BEIR folder -> a collection: `corpus.jsonl`, `queries.jsonl`, `qrels/SPLIT.tsv`.

Each record of the corpus becomes a Markdown file, each judged query a case. The format is that of
Thakur et al. 2021, "BEIR". Grades above 0 are relevant, all alike, since a case knows no grades.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from atlas.errors import CollectionError, UsageError
from atlas.measure.doors import Progress, Silent
from atlas.measure.imports import markdown
from atlas.measure.imports.lines import (
    Column,
    grade_of,
    identifier,
    json_lines,
    text_lines,
    words_of,
)
from atlas.measure.imports.names import file_name, safe_ids
from atlas.measure.imports.new_cases import NewCases, changed
from atlas.measure.imports.target import (
    DOCUMENTS,
    Imported,
    case_folder,
    check_target,
    filled,
    write_cases,
    write_settings,
)


def import_beir(
    source: Path,
    target: Path,
    *,
    split: str = "test",
    held_out: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Make `target` a collection of the documents and the judged queries of one split.

    Queries without a relevant document are left out and counted. Raises UsageError for a missing
    file or a target that holds documents, CollectionError for a bad line or for ids of which more
    than a few match nothing, NothingToMeasure where no question is left.
    """
    progress = progress or Silent()
    corpus, asked, judged = _files(source, split)
    folder, name = case_folder(held_out), f"beir-{file_name(judged)}"
    check_target(target, folder, name, with_documents=True)
    queries = _queries(asked)
    ids, empty = _corpus_ids(corpus)
    relevant, notes = _relevant(judged, queries, ids, corpus, asked)
    new = NewCases(target)
    unjudged = lost = 0
    for query, text in queries.items():
        found = [ids[name] for name in relevant.get(query, ()) if name not in empty]
        if found:
            new.add(query, text, found)
        elif query in relevant:
            lost += 1
        else:
            unjudged += 1
    rows = new.rows(notes)
    if empty:
        first = next(iter(empty))
        notes.append(f"{len(empty):,} documents hold no text and were left out (first: {first!r})")
    if lost:
        notes.append(f"{lost:,} queries with no relevant document that holds text were left out")
    if unjudged:
        notes.append(
            f"{unjudged:,} of {len(queries):,} queries have no relevant document in {judged.name} "
            "and were left out"
        )
    notes += [*new.notes(), *changed(ids, "document")]
    if (target / "atlas.yaml").exists():
        notes.append(f"{target / 'atlas.yaml'} was kept as it is")
    with filled(target) as place:
        (place / DOCUMENTS).mkdir()
        progress.stage("documents", len(ids) - len(empty))
        for line, row in json_lines(corpus):
            document = identifier(f"{corpus}:{line}", row, "_id")
            if document in empty:
                continue
            title, text = _texts(f"{corpus}:{line}", row)
            content = markdown.document(ids[document], title, text or title)
            path = place / DOCUMENTS / f"{ids[document]}.md"
            path.write_text(content, encoding="utf-8", newline="\n")
            progress.step()
        write_settings(place, markdown.folded(source.resolve().name))
        files = write_cases(place, folder, name, rows)
    return Imported(
        target=target,
        documents=len(ids) - len(empty),
        cases=len(rows),
        files=tuple(target / file for file in files),
        notes=tuple(notes),
    )


def _files(source: Path, split: str) -> tuple[Path, Path, Path]:
    if not source.is_dir():
        raise UsageError(f"{source}: no such folder; expected corpus.jsonl, queries.jsonl, qrels/")
    judged = source / "qrels" / f"{split}.tsv"
    files = (source / "corpus.jsonl", source / "queries.jsonl", judged)
    for path in files:
        if not path.is_file():
            splits = ", ".join(sorted(item.stem for item in (source / "qrels").glob("*.tsv")))
            hint = f"; splits there: {splits}" if path == judged and splits else ""
            raise UsageError(
                f"{path}: no such file; a BEIR folder holds corpus.jsonl, queries.jsonl and "
                f"qrels/{split}.tsv{hint}"
            )
    return files


def _queries(path: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    for line, row in json_lines(path):
        name = identifier(f"{path}:{line}", row, "_id")
        if name in queries:
            raise CollectionError(f"{path}:{line}: the id {name!r} stands twice; keep one of them")
        queries[name] = words_of(f"{path}:{line}", row, "text")
    return queries


def _corpus_ids(path: Path) -> tuple[dict[str, str], dict[str, None]]:
    """Safe id of every record by its own, and the own ids of those without any text."""
    first: dict[str, int] = {}
    empty: dict[str, None] = {}
    for line, row in json_lines(path):
        where = f"{path}:{line}"
        name = identifier(where, row, "_id")
        if name in first:
            raise CollectionError(
                f"{where}: the id {name!r} stands in line {first[name]} too; keep one of them"
            )
        first[name] = line
        if not any(_texts(where, row)):
            empty[name] = None
    if len(empty) == len(first):
        raise CollectionError(f"{path}:1: no record with a `text`; expected `_id`, `title`, `text`")
    return safe_ids(first), empty


def _texts(where: str, row: dict[str, object]) -> tuple[str, str]:
    """Title and text, clean."""
    title = markdown.folded(words_of(where, row, "title"))
    return title, markdown.clean(words_of(where, row, "text")).strip()


def _relevant(
    path: Path, queries: dict[str, str], ids: dict[str, str], corpus: Path, asked: Path
) -> tuple[dict[str, dict[str, None]], list[str]]:
    """Relevant record ids of every query, and notes."""
    query_column = Column(path, "column 1", asked.name)
    corpus_column = Column(path, "column 2", corpus.name)
    relevant: dict[str, dict[str, None]] = {}
    graded = below = 0
    for line, query, document, grade in _judgements(path):
        if grade <= 0:
            below += 1
            continue
        known_query = query_column.matches(line, query, query in queries)
        known_document = corpus_column.matches(line, document, document in ids)
        if known_query and known_document:
            relevant.setdefault(query, {})[document] = None
            graded += grade > 1
    notes = [*query_column.notes(), *corpus_column.notes()]
    if graded:
        notes.append(f"{graded:,} grades above 1 count as relevant, no more and no less")
    if below:
        notes.append(f"{below:,} judgements of grade 0 or below are not relevant and left out")
    return relevant, notes


def _judgements(path: Path) -> Iterator[tuple[int, str, str, int]]:
    """Line, query id, corpus id and grade of every row; the first may be a header."""
    begun = False
    for line, text in text_lines(path):
        parts = [part.strip() for part in text.split("\t")]
        if len(parts) != 3:
            four = "; four columns are TREC qrels: use `import trec`" if len(parts) == 4 else ""
            raise CollectionError(
                f"{path}:{line}: expected query-id, corpus-id and score with tabs between them, "
                f"found {len(parts)} columns{four}"
            )
        if not begun and parts[2].casefold() in ("score", "grade", "relevance", "label"):
            begun = True
            continue
        begun = True
        yield line, parts[0], parts[1], grade_of(f"{path}:{line}", parts[2])
