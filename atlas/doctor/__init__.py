"""A folder -> what works here, what does not, and what to do: one finding a line.

Enters: the folder of a collection, or any other one. Leaves: findings, as they are made. Refuses:
nothing; what breaks off is a finding, and stops no other check. Nothing is built, repaired or
asked. No model is loaded: what takes time are the checksums (about a second for a gigabyte) and
servers that do not answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from atlas.doctor import installed
from atlas.doctor.finding import Finding, guarded

if TYPE_CHECKING:
    from atlas.collection import Collection
    from atlas.index import Index
    from atlas.settings import Settings

__all__ = ["Finding", "examine"]


def examine(root: Path, *, sample: bool = False) -> Iterator[Finding]:
    """Look at the installation, and at the collection in `root` where there is one."""
    yield from guarded("python", installed.python)
    yield from guarded("packages", installed.packages)
    yield from guarded("collection", lambda: _collection(root, sample))


def _collection(root: Path, sample: bool) -> Iterator[Finding]:
    # These need packages that may be what is missing.
    from atlas.doctor import chat_servers, contents, weights
    from atlas.settings import Settings

    problem = contents.folder_problem(root)
    settings, told = contents.settings(root) if root.is_dir() else (Settings(), [])
    failed: list[str] = []
    extras = guarded("extra", lambda: installed.extras(_extras(settings)))
    yield from _noted(extras, failed)
    opened: list[Collection] = []
    if problem is None:
        told += guarded("state", lambda: contents.opened(root, settings, sample, opened.append))
    state = opened[0].state if opened else None
    yield from _noted(guarded("models", lambda: weights.models(settings, state)), failed)
    yield from _noted(told, failed)
    if problem is not None:
        yield problem
    for collection in opened:
        yield from _opened(collection, failed)
    yield from guarded("chat", lambda: chat_servers.servers(settings))


def _noted(findings: Iterable[Finding], failed: list[str]) -> Iterator[Finding]:
    """The same findings; the names of those that fail are put into `failed`."""
    for finding in findings:
        if finding.level == "fail":
            failed.append(finding.name)
        yield finding


def _opened(collection: Collection, failed: list[str]) -> Iterator[Finding]:
    """`failed`: the names of what failed already."""
    from atlas.doctor import contents, holdings

    kept = "state" not in failed
    found: list[Index] = []
    current: list[Index] = []
    yield from _noted(guarded("documents", lambda: contents.documents(collection)), failed)
    if kept:
        yield from guarded("index", lambda: holdings.index(collection, failed, found, current))
    today = current[0] if current else None
    for index in found:
        yield from guarded("document", partial(contents.read, collection, index, bool(today)))
    yield from guarded("cases", lambda: contents.cases(collection, today))
    yield from guarded("labels", lambda: contents.labels(collection))
    if kept:
        yield from guarded("state", lambda: holdings.state(collection))
        yield from guarded("store", lambda: holdings.store(collection, found[0] if found else None))
    for index in found:
        index.close()


def _extras(settings: Settings) -> dict[str, bool]:
    """The extras that a collection uses, and whether nothing is answered without them."""
    used = {}
    if settings.chat is not None or settings.judge is not None:
        used["chat"] = settings.answerer == "chat"
    if settings.store == "milvus":
        used["milvus"] = True
    return used
