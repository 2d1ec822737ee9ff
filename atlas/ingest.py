"""Collection -> Index: reads what changed, embeds what is new, swaps the result in.

The composer of the building side. One ingest works at a time on a state folder; a second one
waits for it and then finds nothing left to do. Readers go on with the generation they opened.
"""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from atlas.blocks import SPLIT_VERSION, split
from atlas.collection import Collection
from atlas.errors import AtlasError, IndexDamagedError, StoreError
from atlas.gathering import Gathered
from atlas.index import SCHEMA, Index, Source
from atlas.index_writing import IndexWriter, remove_unused
from atlas.metadata import READER_VERSION
from atlas.models import Encoder, load_encoder
from atlas.parsed import FILE_NAME as PARSED_FILE
from atlas.parsed import ParsedDocuments
from atlas.records import Block, Skipped
from atlas.settings import Settings
from atlas.stores import about_store, discard_store, fill_store, open_store, tidy_store
from atlas.words import TOKENIZER_VERSION, fresh_terms

BLOCKS_AT_ONCE = 512
"""Blocks whose texts and vectors are in memory at a time while vectors are written."""


class Progress(Protocol):
    """What a progress bar has to offer: a new stage with its size, and steps done."""

    def stage(self, name: str, total: int) -> None: ...

    def step(self, count: int = 1) -> None: ...


class Silent:
    """Progress that nobody looks at."""

    def stage(self, name: str, total: int) -> None: ...

    def step(self, count: int = 1) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """What an ingest did."""

    documents: int
    blocks: int
    skipped: tuple[Skipped, ...]
    warnings: tuple[str, ...]
    recomputed: int
    """Blocks whose vector was computed now; the others were known."""
    built: bool
    """False where the index was already current."""
    seconds: float


def ingest(
    collection: Collection,
    progress: Progress | None = None,
    waiting: Callable[[], None] = lambda: None,
) -> IngestReport:
    """Bring the index up to date with the collection. `waiting()` is called where another ingest
    holds the lock.

    Raises CollectionError where there is nothing to search, ModelError, and AtlasError where the
    disk refuses; the index in use is then the one from before.
    """
    started = time.perf_counter()
    progress = progress or Silent()
    try:
        with _lock(collection.state, waiting):
            return _build(collection, progress, started)
    except OSError as error:
        raise AtlasError(
            f"{collection.state}: the index could not be written ({error.strerror or error}); "
            "free some space or set ATLAS_STATE to another folder; the old index is unchanged"
        ) from None


def index_folder(collection: Collection) -> Path:
    """Where the generations of this collection's index stand."""
    name = "sample" if collection.sample else "full"
    return collection.state / (f"{name}-{collection.variant}" if collection.variant else name)


def open_index(collection: Collection, *, afresh: bool = False) -> Index | None:
    """The index in use, or None where there is none. Raises IndexDamagedError.

    `afresh` hashes every file, which finds what a failing disk changed without a trace.
    """
    return Index.open(index_folder(collection), collection.state, afresh=afresh)


def why_stale(collection: Collection, index: Index) -> str:
    """Why the index is not that of the collection as it is now, or "" where it is."""
    manifest = index.manifest
    wanted = _about(collection)
    if any(manifest.get(name) != wanted[name] for name in ("tokenizer", "reader", "splitter")):
        return "it was made by another version of atlas"
    for name, value in wanted["settings"].items():
        if manifest["settings"].get(name) != value:
            return f"{name} is {value}, the index was made with {manifest['settings'].get(name)}"
    if collection.sample and manifest.get("sample") != wanted["sample"]:
        return "another sample is named in atlas.yaml"
    if manifest.get("rules") != wanted["rules"]:
        return "products or readers changed in atlas.yaml"
    before = {source.path: (source.size, source.modified_ns) for source in index.sources}
    now = {file.place: file.stamp for file in collection.found()}
    return _differing(before, now)


def _differing(before: dict[str, tuple[int, int]], now: dict[str, tuple[int, int]]) -> str:
    """How many files have another stamp, are new or gone. A copy or `touch` changes times alone,
    and only reading a file tells whether its words changed too."""
    other = sum(now.get(path, stamp) != stamp for path, stamp in before.items())
    counts = (
        (other, "has another size or time", "have another size or time"),
        (len(now.keys() - before.keys()), "is new", "are new"),
        (len(before.keys() - now.keys()), "is gone", "are gone"),
    )
    of_all = f" of {len(before.keys() | now.keys())} files"
    parts: list[str] = []
    for count, one, many in counts:
        if count:
            parts.append(f"{count}{'' if parts else of_all} {one if count == 1 else many}")
    return ", ".join(parts)


# ---- the build ------------------------------------------------------------------------------


def _build(collection: Collection, progress: Progress, started: float) -> IngestReport:
    settings, folder = collection.settings, index_folder(collection)
    old, damage = _old_index(collection)
    if old and not why_stale(collection, old) and _same_encoder(collection, old):
        damage = _store_damage(settings.store, old)
        if not damage:  # what killed ingests left is of no use
            remove_unused(folder, old.folder.name)
            (collection.state / PARSED_FILE).unlink(missing_ok=True)
            return _unchanged(old, started)
    with ParsedDocuments(collection.state) as parsed:
        tidy_store(settings.store, collection.state)  # a server that is away is found out now
        files = collection.found()
        progress.stage("reading", len(files))
        before = old
        if before is None and collection.variant:  # what was parsed for the index in use
            before, _ = _old_index(replace(collection, variant=""))
        gathered = Gathered(collection.root, before, parsed)
        paths = [file.path for file in files]
        good, skipped = collection.survey(paths, gathered.keep, gathered.known, progress.step)
        skipped += tuple(collection.dangling(good)) if not collection.sample else ()
        encoder = load_encoder(settings.encoder, collection.state)
        with IndexWriter(folder) as writer:
            progress.stage("splitting", len(good))
            for document in gathered.documents(good):
                blocks = split(document, settings.block_size, settings.block_overlap)
                words = [fresh_terms(keyword_text(block, settings)) for block in blocks]
                writer.add(document, blocks, words)
                progress.step()
            recomputed, warnings = _embed(collection, encoder, writer, progress)
            if settings.vector_index == "graph":
                progress.stage("linking", len(writer))
                writer.graph(progress.step)
            sources = gathered.sources(files, good, skipped)
            about = _about(collection)
            about["encoder"] = {"name": encoder.name, "fingerprint": encoder.fingerprint}
            about["store"] = about_store(settings.store, collection.state)
            about["warnings"] = list(warnings)

            def before_use(place: Path) -> None:
                if settings.store != "local":
                    progress.stage("storing", len(writer))
                fill_store(settings.store, place, progress.step)

            for index in (old, before):
                if index is not None:
                    index.close()
            writer.finish(sources=sources, about=about, before_use=before_use)
        damage += _tidied(settings.store, collection.state)
    return IngestReport(
        documents=len(good),
        blocks=len(writer),
        skipped=skipped,
        warnings=damage + warnings + _of_documents(sources),
        recomputed=recomputed,
        built=True,
        seconds=time.perf_counter() - started,
    )


def _of_documents(sources: Sequence[Source]) -> tuple[str, ...]:
    return tuple(f"{source.path}: {warning}" for source in sources for warning in source.warnings)


def _same_encoder(collection: Collection, index: Index) -> bool:
    """The files of a model can change under its name, which no stamp of a document tells."""
    encoder = load_encoder(collection.settings.encoder, collection.state)
    return bool(index.manifest["encoder"]["fingerprint"] == encoder.fingerprint)


def keyword_text(block: Block, settings: Settings) -> str:
    """The text of a block as keyword search sees it."""
    return block.searched if settings.prefix in ("both", "keyword") else block.text


def vector_text(block: Block, settings: Settings) -> str:
    """The text of a block as the encoder sees it."""
    return block.searched if settings.prefix in ("both", "vector") else block.text


def _old_index(collection: Collection) -> tuple[Index | None, tuple[str, ...]]:
    """The index in use, every file of it hashed, since an ingest can mend it. Or none, and why."""
    try:
        return open_index(collection, afresh=True), ()
    except IndexDamagedError as error:
        return None, (_mended(error),)


def _store_damage(name: str, index: Index) -> tuple[str, ...]:
    """What a server lacks of an index that is current otherwise; raises StoreError without one."""
    try:
        open_store(name, index).close()
    except IndexDamagedError as error:
        discard_store(name, index)
        return (_mended(error),)
    return ()


def _mended(error: IndexDamagedError) -> str:
    """The damage, told when it is mended: the advice that an error ends in is done by then."""
    return f"{error.found}; this ingest has mended it"


def _tidied(name: str, state: Path) -> tuple[str, ...]:
    """Clear a server of what was replaced; the new index is in use, whatever comes of it."""
    try:
        tidy_store(name, state)
    except StoreError as error:
        return (f"collections that were replaced stay until the next ingest: {error}",)
    return ()


def _embed(
    collection: Collection, encoder: Encoder, writer: IndexWriter, progress: Progress
) -> tuple[int, tuple[str, ...]]:
    """Write the vectors of all blocks; how many were computed, and what a person should know."""
    from atlas.embeddings import EmbeddingCache

    progress.stage("embedding", len(writer))
    computed, long, first = 0, 0, ""
    with (
        EmbeddingCache(collection.state, encoder) as cache,
        writer.vectors(encoder.dimension) as file,
    ):
        blocks = writer.blocks()
        while batch := list(islice(blocks, BLOCKS_AT_ONCE)):
            texts = [vector_text(block, collection.settings) for block in batch]
            filled = cache.fill(texts, progress.step)
            file.add(filled.vectors)
            computed += filled.computed
            cut = np.flatnonzero(filled.tokens > encoder.max_tokens)
            first = first or (batch[cut[0]].ref if len(cut) else "")
            long += len(cut)
    if not long:
        return computed, ()
    return computed, (
        f"{long} of {len(writer)} blocks are longer than the {encoder.max_tokens} tokens "
        f"that {encoder.name} reads (first: {first}); lower block_size",
    )


def _about(collection: Collection) -> dict[str, Any]:
    settings = collection.settings
    return {
        "schema": SCHEMA,
        "tokenizer": TOKENIZER_VERSION,
        "reader": READER_VERSION,
        "splitter": SPLIT_VERSION,
        "settings": settings.index_key(),
        "sample": list(settings.sample) if collection.sample else None,
        "rules": {"products": sorted(settings.products), "readers": sorted(settings.readers)},
    }


def _unchanged(index: Index, started: float) -> IngestReport:
    skipped = tuple(
        Skipped(path=source.path, reason=source.reason) for source in index.sources if source.reason
    )
    return IngestReport(
        documents=len(index.ids),
        blocks=len(index),
        skipped=skipped,
        warnings=(*index.manifest["warnings"], *_of_documents(index.sources)),
        recomputed=0,
        built=False,
        seconds=time.perf_counter() - started,
    )


@contextlib.contextmanager
def _lock(state: Path, waiting: Callable[[], None]) -> Iterator[None]:
    state.mkdir(parents=True, exist_ok=True)
    with (state / "ingest.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
