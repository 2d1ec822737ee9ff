"""What atlas made of the collection: index, state folder, store.

Enters: a Collection. Leaves: findings, and the Index where one can be opened. The files of the
index are hashed anew, however well their stamps are known, since a disk can change bytes under the
same stamp. Nothing is built, repaired or removed here.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from atlas.collection import Collection
from atlas.doctor.finding import Finding, counted, of_error, ok, warn
from atlas.errors import IndexDamagedError, ModelError
from atlas.index import Index
from atlas.ingest import index_folder, open_index, why_stale
from atlas.measure.answers.journal import FOLDER as JOURNALS
from atlas.models import carriers
from atlas.stores import describe_store

INGEST = "run `atlas ingest`"
SOON = f"the next question brings it up to date, or {INGEST}"
STOPPING = ("encoder", "settings", "documents")
"""Lines whose fault stops every ingest, as do those of extras that are needed."""
SPARE_BYTES = 100_000_000
"""Free space below which the state folder is warned of, beside twice the index."""


def index(
    collection: Collection, failed: Sequence[str], found: list[Index], current: list[Index]
) -> Iterator[Finding]:
    """The index in use; it is put into `found`, and where it is of today into `current`.

    `failed` names what failed already: without settings that can be read nothing is compared, and
    an ingest that cannot be made is not advised.
    """
    folder = index_folder(collection)
    obstacle = _obstacle(collection, failed)
    try:
        opened = open_index(collection, afresh=True)
    except IndexDamagedError as error:
        broken = of_error("index", error, INGEST)
        yield replace(broken, todo=f"{obstacle}; then {broken.todo}") if obstacle else broken
        return
    if opened is None:
        yield warn("index", "none yet", obstacle or f"the first question builds it, or {INGEST}")
        yield from _leftovers(collection, folder, obstacle)
        return
    found.append(opened)
    size = _size(_bytes(opened.folder))
    what = f"{counted(len(opened.ids), 'document')}, {counted(len(opened), 'block')}, {size}"
    stale = why_stale(collection, opened) or _other_model(collection, opened)
    if "settings" in failed:
        text = f"{what}, every checksum right; not compared, since the settings cannot be read"
        yield warn("index", text, "mend the settings first")
    elif stale:
        yield warn("index", f"out of date: {stale} ({what})", obstacle or SOON)
    else:
        current.append(opened)
        yield ok("index", f"current: {what}, every checksum right")
    yield from _leftovers(collection, folder, obstacle)


def _obstacle(collection: Collection, failed: Sequence[str]) -> str:
    """What has to be done before the index can be built, or ""."""
    for name in failed:
        if name in STOPPING or name.startswith("extra "):
            return f"mend what the line `{name}` says first, since every question is refused so"
    for path in (collection.state / "ingest.lock", index_folder(collection)):
        if path.exists() and not os.access(path, os.W_OK):
            return f"let the user that runs atlas write to {path} first"
    free, wanted = _space(collection)
    if free < wanted:
        few = f"only {_size(free)} are free for {collection.state}"
        return f"free some space first, since {few} and building it may be refused"
    return ""


def _other_model(collection: Collection, index: Index) -> str:
    """How the encoder differs from the one that made the index; told of shipped ones only."""
    with contextlib.suppress(ModelError):  # which is said among the models
        carrier = carriers.find("encoder", collection.settings.encoder)
        made = index.manifest["encoder"]["fingerprint"]
        if carrier is not None and carrier.fingerprint != made:
            return f"the files of {carrier.name} are others than when it was made"
    return ""


def _leftovers(collection: Collection, folder: Path, obstacle: str) -> Iterator[Finding]:
    """Generations that are not in use, unless an ingest is at work on one."""
    if _locked(collection.state / "ingest.lock"):
        yield ok("index", "an ingest is running now; look again when it is done")
        return
    try:
        current = (folder / "CURRENT").read_text(encoding="ascii").split()[0]
    except (OSError, UnicodeError, IndexError):
        current = ""
    others = [path for path in sorted(folder.glob("g-*")) if path.name != current]
    read = [path for path in others if _locked(path)]
    left = [path for path in others if path not in read]
    if read:
        kept = counted(len(read), "older generation")
        yield ok("index", f"{kept} kept while somebody reads in it")
    if left and current:
        size = _size(sum(map(_bytes, left)))
        yield warn(
            "index",
            f"{counted(len(left), 'unused generation')} of {size} left in {folder}, by an ingest "
            "that was cut off or by readers that have gone",
            "the next `atlas ingest` removes them",
        )
    elif left:
        text = "an ingest was cut off before it had finished"
        yield warn("index", text, obstacle or INGEST)


def state(collection: Collection) -> Iterator[Finding]:
    """The state folder: where it is, its size, the space left, runs that were not finished."""
    folder = collection.state
    place = str(folder)
    if collection.notes:
        place += ", since the collection cannot be written to"
    elif os.environ.get("ATLAS_STATE"):
        place += ", by ATLAS_STATE"
    free, wanted = _space(collection)
    if free < wanted:
        yield warn(
            "state",
            f"{place}: {_size(free)} free, and an ingest may take {_size(wanted)}",
            "free some space, or set ATLAS_STATE to another folder",
        )
    else:
        size = _size(_bytes(folder))
        yield ok("state", f"{place}: {size} used, {_size(free)} free")
    journals = sorted((folder / JOURNALS).glob("*.jsonl"))
    unfinished = [path for path in journals if not _locked(path)]
    if len(journals) > len(unfinished):
        yield ok("state", "a run of measure-answers is going on now")
    if unfinished:
        answers = sum(_lines(path) for path in unfinished)
        yield warn(
            "state",
            f"{counted(len(unfinished), 'run')} of measure-answers cut off, with "
            f"{counted(answers, 'answer')} kept in {folder / JOURNALS}",
            "give the same command again to go on, or remove the files",
        )


def _space(collection: Collection) -> tuple[int, int]:
    """Bytes that are free where the state folder is, and those that an ingest may take."""
    folder = collection.state
    free = shutil.disk_usage(folder if folder.exists() else folder.parent).free
    return free, SPARE_BYTES + 2 * _bytes(index_folder(collection))


def store(collection: Collection, index: Index | None) -> Iterator[Finding]:
    """Where the two searches run."""
    name = collection.settings.store
    if name == "local":
        yield ok("store", "local: the files of the index")
    elif index is None:
        yield warn("store", f"{_reached(collection.state)}, and there is no index yet", INGEST)
    else:
        yield ok("store", describe_store(name, index))


def _reached(state: Path) -> str:
    """Whether a server that has nothing to hold yet is there. Raises StoreError."""
    from atlas.stores.milvus_server import address, connected

    where = address(state)
    if where.lite:  # it has no server, and to open its folder would make it
        return f"milvus: Milvus Lite in {where.uri}"
    with connected(state) as server:
        return f"milvus: {server.version()} at {where.uri} answers"


# ---- files ----------------------------------------------------------------------------------


def _locked(path: Path) -> bool:
    """Whether another process holds a lock on a file or folder."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    finally:
        os.close(handle)
    return False


def _bytes(folder: Path) -> int:
    """The size of every file below a folder."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def _lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0


def _size(count: int) -> str:
    """Bytes for a person: 2.1 MB."""
    if count < 1000:
        return f"{count} bytes"
    for power, unit in enumerate(("kB", "MB", "GB"), 1):
        number = count / 1000**power
        if number < 999.5:
            return f"{number:.0f} {unit}" if number >= 9.95 else f"{number:.1f} {unit}"
    return f"{count / 1000**4:.1f} TB"
