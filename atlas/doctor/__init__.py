"""A folder -> what works here, what does not, and what to do: one finding a line.

Enters: the folder of a collection, or any other one. Leaves: findings, as they are made. Refuses:
nothing; what breaks off is a finding, and stops no other check. Nothing is built, repaired or
asked. No model is loaded: what takes time are the checksums (about a second for a gigabyte) and
servers that do not answer.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    trusted = not any(finding.level == "fail" for finding in told)
    yield from guarded("extra", lambda: installed.extras(_extras(settings)))
    opened: list[Collection] = []
    if problem is None:
        told += guarded("state", lambda: contents.opened(root, settings, sample, opened.append))
    kept = not any(finding.level == "fail" and finding.name == "state" for finding in told)
    state = opened[0].state if opened else None
    yield from guarded("models", lambda: weights.models(settings, state))
    yield from told
    if problem is not None:
        yield problem
    for collection in opened:
        yield from _opened(collection, trusted, kept)
    yield from guarded("chat", lambda: chat_servers.servers(settings))


def _opened(collection: Collection, trusted: bool, kept: bool) -> Iterator[Finding]:
    """`trusted`: its settings could be read; `kept`: it has a state folder."""
    from atlas.doctor import contents, holdings

    found: list[Index] = []
    current: list[Index] = []
    yield from guarded("documents", lambda: contents.documents(collection))
    if kept:
        yield from guarded("index", lambda: holdings.index(collection, trusted, found, current))
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
