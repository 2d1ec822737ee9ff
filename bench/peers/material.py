"""Collections -> what all peers get: blocks, questions with their gold blocks, known vectors.

Runs in atlas's environment. The data is only read; everything is written into the working folder.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from models import digest

from atlas import Assistant
from atlas.embeddings import EmbeddingCache
from atlas.measure.cases import DEVELOPMENT, HELD_OUT
from atlas.measure.imports.beir import import_beir
from atlas.measure.questions import load_questions
from atlas.models.carriers import describe, find
from atlas.models.description import Role
from atlas.models.verified import Verified

SETS = {"galaxy-s10": HELD_OUT, "scifact": DEVELOPMENT}
"""Name of each set, and the folder of its questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and the blocks that answer it, with their grades."""

    id: str
    question: str
    relevant: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """One set, ready for every peer."""

    name: str
    collection: Path
    """For atlas: documents and settings."""
    part: Path
    """For atlas: the documents that ingest is timed with."""
    blocks: Path
    """For the others: a file of JSON lines, `id` and `text`."""
    part_blocks: Path
    vectors: Path
    """What bge-small makes of every block, computed by atlas once."""
    questions: tuple[Question, ...]
    texts: dict[str, str]
    """Block id -> text."""


def prepare(name: str, data: Path, folder: Path, documents: int | None, part: int) -> Material:
    """Make a set below `folder`, or take what is there already.

    `documents` cuts the collection short, to try things out: questions whose documents are gone go
    too. `part` is how many documents ingest is timed with.
    """
    folder.mkdir(parents=True, exist_ok=True)
    collection, smaller = folder / "collection", folder / "part"
    if not (collection / "atlas.yaml").is_file():
        shutil.rmtree(collection, ignore_errors=True)
        _collection(name, data, collection, documents)
    if not smaller.is_dir():
        _part(collection, smaller, part)
    blocks, part_blocks = folder / "blocks.jsonl", folder / "part-blocks.jsonl"
    vectors = folder / "vectors.npz"
    with Assistant.open(collection) as assistant:
        index = assistant.index
        every = [index.block(number) for number in range(len(index))]
        texts = {block.ref: block.searched for block in every}
        found = load_questions(assistant, SETS[name])
        questions = tuple(
            Question(id=case.id, question=case.question, relevant=dict.fromkeys(gold, 1))
            for case in found.cases
            if (gold := found.relevant(case))
        )
        with EmbeddingCache(assistant.collection.state, assistant.encoder) as kept:
            made = kept.fill(list(texts.values())).vectors
    write_lines(blocks, ({"id": ref, "text": text} for ref, text in texts.items()))
    inside = {path.stem for path in (smaller / "documents").iterdir()}
    chosen = [block for block in every if name != "scifact" or block.document in inside]
    write_lines(part_blocks, ({"id": block.ref, "text": block.searched} for block in chosen))
    np.savez(vectors, keys=np.array([digest(text) for text in texts.values()]), vectors=made)
    return Material(
        name=name,
        collection=collection,
        part=smaller,
        blocks=blocks,
        part_blocks=part_blocks,
        vectors=vectors,
        questions=questions,
        texts=texts,
    )


def _collection(name: str, data: Path, target: Path, documents: int | None) -> None:
    if name == "galaxy-s10":
        shutil.copytree(data / name, target, copy_function=shutil.copyfile)
        _writable(target)
        (target / "atlas.yaml").write_text("block_size: section\n", encoding="utf-8")
        return
    source = data / name / "beir"
    if documents is None:
        import_beir(source, target)
        return
    cut = target.parent / "cut"
    (cut / "qrels").mkdir(parents=True, exist_ok=True)
    rows = (source / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    judged = (source / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()
    wanted = list(dict.fromkeys(row.split("\t")[1] for row in judged[1:]))[: documents // 4]
    by_id = {str(json.loads(row)["_id"]): row for row in rows}
    first = dict.fromkeys([*wanted, *by_id])
    chosen = list(first)[:documents]
    kept = [row for row in judged[1:] if row.split("\t")[1] in set(chosen)]
    _lines(cut / "corpus.jsonl", (by_id[name] for name in chosen))
    _lines(cut / "qrels" / "test.tsv", [judged[0], *kept])
    shutil.copyfile(source / "queries.jsonl", cut / "queries.jsonl")
    import_beir(cut, target)


def _part(collection: Path, smaller: Path, count: int) -> None:
    """The first documents of a collection, as one of their own."""
    (smaller / "documents").mkdir(parents=True)
    shutil.copyfile(collection / "atlas.yaml", smaller / "atlas.yaml")
    for path in sorted((collection / "documents").iterdir())[:count]:
        shutil.copyfile(path, smaller / "documents" / path.name)


def _writable(folder: Path) -> None:
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def model_folder(role: Role, name: str, store: Path) -> Path:
    """Where the files of a model that comes with atlas lie, checked."""
    carrier = find(role, name)
    assert carrier is not None
    return describe(carrier, Verified(store)).model.parent


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines."""
    _lines(path, (json.dumps(row) for row in rows))


def _lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
