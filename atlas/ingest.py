"""Collection -> Index: reads what changed, embeds what is new, swaps the result in.

The composer of the building side. One ingest works at a time on a state folder; a second one
waits for it and then finds nothing left to do. Readers go on with the generation they opened.
"""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from atlas.blocks import SPLIT_VERSION, split
from atlas.collection import Collection
from atlas.errors import AtlasError, DocumentError, IndexDamagedError
from atlas.index import SCHEMA, Index, Source, write_index
from atlas.metadata import READER_VERSION, relative
from atlas.models import Encoder, load_encoder
from atlas.records import Block, Document, Skipped
from atlas.settings import Settings
from atlas.words import TOKENIZER_VERSION, terms


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


def open_index(collection: Collection) -> Index | None:
    """The index in use, or None where there is none. Raises IndexDamagedError."""
    return Index.open(index_folder(collection), collection.state)


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
    now = {path: stamp for path, _, stamp in _stamps(collection)}
    changed = sum(before.get(path) != stamp for path, stamp in now.items())
    gone = sum(path not in now for path in before)
    if changed or gone:
        return f"{changed + gone} of {len(now) + gone} files changed"
    return ""


# ---- the build ------------------------------------------------------------------------------


def _build(collection: Collection, progress: Progress, started: float) -> IngestReport:
    settings = collection.settings
    old, damage = _old_index(collection)
    if old and not why_stale(collection, old) and _same_encoder(collection, old):
        return _unchanged(old, started)
    files = collection.files()
    progress.stage("reading", len(files))
    stamps = {path: stamp for path, _, stamp in _stamps(collection)}
    documents, skipped = collection.read(files, _known(collection, old), progress.step)
    skipped += tuple(collection.dangling(documents)) if not collection.sample else ()
    groups = [
        split(document, settings.block_size, settings.block_overlap) for document in documents
    ]
    flat = [block for group in groups for block in group]
    encoder = load_encoder(settings.encoder, collection.state)
    vectors, recomputed, warnings = _vectors(collection, encoder, flat, progress)
    numbers = {document.metadata.path: place for place, document in enumerate(documents)}
    reasons: dict[str, str] = {}
    for item in skipped:
        known = reasons.get(item.path)
        reasons[item.path] = f"{known}; {item.reason}" if known else item.reason
    sources = [
        Source(
            path=path,
            size=size,
            modified_ns=modified,
            document=numbers.get(path),
            reason=reasons.get(path, ""),
            content_hash=documents[numbers[path]].content_hash if path in numbers else "",
        )
        for path, (size, modified) in stamps.items()
    ]
    about = _about(collection)
    about["encoder"] = {"name": encoder.name, "fingerprint": encoder.fingerprint}
    if old:
        old.close()
    write_index(
        index_folder(collection),
        documents=documents,
        blocks=groups,
        keyword_terms=[terms(keyword_text(block, settings)) for block in flat],
        vectors=vectors,
        sources=sources,
        about=about,
    )
    notes = (
        damage
        + warnings
        + tuple(
            f"{document.metadata.path}: {warning}"
            for document in documents
            for warning in document.warnings
        )
    )
    return IngestReport(
        documents=len(documents),
        blocks=len(flat),
        skipped=skipped,
        warnings=notes,
        recomputed=recomputed,
        built=True,
        seconds=time.perf_counter() - started,
    )


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
    try:
        return open_index(collection), ()
    except IndexDamagedError as error:
        return None, (str(error),)


def _known(collection: Collection, old: Index | None) -> Callable[[Path], Document | None]:
    """Looks a file up in the old index by its content, so that it need not be parsed again."""
    from atlas.documents import file_hash

    if old is None and collection.variant:  # what was parsed for the index in use
        old, _ = _old_index(replace(collection, variant=""))
    before = {source.path: source for source in old.sources} if old else {}

    def lookup(path: Path) -> Document | None:
        source = before.get(relative(path, collection.root))
        if old is None or source is None or source.document is None:
            return None
        try:
            same = file_hash(path) == source.content_hash
        except DocumentError:
            return None
        return old.document(source.document) if same else None

    return lookup


def _vectors(
    collection: Collection, encoder: Encoder, blocks: list[Block], progress: Progress
) -> tuple[Any, int, tuple[str, ...]]:
    from atlas.embeddings import EmbeddingCache

    texts = [vector_text(block, collection.settings) for block in blocks]
    progress.stage("embedding", len(texts))
    cache = EmbeddingCache(collection.state, encoder.fingerprint, encoder.dimension)
    vectors, recomputed = cache.fill(texts, lambda: encoder, progress.step)
    long = [
        block.ref
        for block, text in zip(blocks, texts, strict=True)
        if len(text) > encoder.max_tokens and encoder.count_tokens(text) > encoder.max_tokens
    ]
    warnings: tuple[str, ...] = ()
    if long:
        warnings = (
            f"{len(long)} of {len(blocks)} blocks are longer than the {encoder.max_tokens} tokens "
            f"that {encoder.name} reads (first: {long[0]}); lower block_size",
        )
    return vectors, recomputed, warnings


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
        warnings=(),
        recomputed=0,
        built=False,
        seconds=time.perf_counter() - started,
    )


def _stamps(collection: Collection) -> Iterator[tuple[str, Path, tuple[int, int]]]:
    """Every file with a stamp of it and of the metadata beside it."""
    for path in collection.files():
        size = modified = 0
        for part in (path, path.with_name(path.name + ".yaml")):
            with contextlib.suppress(OSError):
                stat = part.stat()
                size += stat.st_size
                modified += stat.st_mtime_ns
        yield relative(path, collection.root), path, (size, modified)


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
