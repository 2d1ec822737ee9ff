"""Folders that may only be read: what happens is told in one line, and nothing is changed.

Root may write anywhere; so the processes here have given up that right.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holding.processes import Done, Launcher
from holding.report import Part

QUESTION = "how long is the battery under warranty"


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nothing below the folder may be written for as long as the block runs."""
    paths = [folder, *folder.rglob("*")]
    before = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    for path in reversed(paths):
        path.chmod(before[path] & ~0o222)
    try:
        yield
    finally:
        for path in paths:
            path.chmod(before[path])


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run(launcher: Launcher, root: Path, part: Part) -> None:
    """`launcher` makes processes without privileges; `root` is a collection without an index."""
    cache = root.with_name("cache")
    elsewhere = {"XDG_CACHE_HOME": str(cache)}

    def tell(what: str, done: Done, codes: tuple[int, ...], words: str) -> None:
        lines = [line for line in done.err.splitlines() if words in line]
        fine = done.code in codes and len(lines) == 1 and "Traceback" not in done.err
        part.expect(fine, f"{what}: code {done.code}, {done.err[-400:]}")
        told = (lines or [done.err.strip() or "nothing"])[0]
        for path in (root, cache):
            told = told.replace(str(path), "…/" + path.name)
        part.rows.append((what, done.code, f"`{told[:160]}`"))

    def command(*arguments: str, environment: dict[str, str] = elsewhere) -> Done:
        return launcher.command(*arguments, "-C", str(root), environment=environment)

    with read_only(root):
        before = contents(root)
        kept = "the index is kept in"
        tell("ingest, collection read-only", command("ingest"), (0,), kept)
        asked = command("ask", QUESTION)
        tell("ask, collection read-only", asked, (0,), kept)
        part.expect("3 years" in asked.out, f"read-only collection: {asked.out} {asked.err}")
        looked = command("measure", "--held-out", "--json")
        tell("measure --held-out, collection read-only", looked, (0, 1), kept)
        ledgers = list(cache.rglob("heldout-ledger.jsonl"))
        part.expect(len(ledgers) == 1, "read-only collection: the look is not in the state folder")
        refused = command("promote", "H1", "--reason", "seen")
        tell("promote, collection read-only", refused, (2,), "could not be written")
        place = str(root / "run.json")
        saved = command("measure", "--save", place, "--json")
        tell("measure --save into it", saved, (2,), "could not be written")
        part.expect(contents(root) == before, "a read-only collection was changed")
    state = root.with_name("state")
    launcher.command("ingest", "-C", str(root), environment={"ATLAS_STATE": str(state)})
    with read_only(state):
        before = contents(state)
        named = {"ATLAS_STATE": str(state)}
        for words in (("ask", QUESTION), ("ingest",)):
            done = command(*words, environment=named)
            tell(f"{words[0]}, state folder read-only", done, (2,), "cannot keep an index there")
        part.expect(contents(state) == before, "a read-only state folder was changed")
    launcher.command("ingest", "-C", str(root))
    with read_only(root):
        shutil.rmtree(cache, ignore_errors=True)
        asked = command("ask", QUESTION)
        tell("ask, collection and the index in it read-only", asked, (0,), "the index is kept in")
        part.expect("3 years" in asked.out, f"read-only index: {asked.out} {asked.err}")
    nowhere = root.with_name("nowhere")
    nowhere.mkdir()
    with read_only(root), read_only(nowhere):
        done = command("ask", QUESTION, environment={"XDG_CACHE_HOME": str(nowhere)})
        tell("ask, nowhere to write", done, (2,), "cannot keep an index there")
    assert os.access(root, os.W_OK)
