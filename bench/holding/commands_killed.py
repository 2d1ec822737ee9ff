"""Other commands, killed before each change they make to a file: every file is whole or absent.

Each command is begun again and again on the same collection as it was before, and killed one change
later each time. Then what it writes is read, and the command is given once more.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from holding.editions import listing
from holding.processes import Done, Launcher, Order
from holding.report import Part

Check = Callable[[Launcher, Path, Done], str]
"""Looks after a kill and a second call; returns what is broken, or an empty text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command with the check of what it writes."""

    name: str
    arguments: tuple[str, ...]
    check: Check
    indexed: bool = True
    """Whether the index stands before; the first build is killed without."""
    codes: tuple[int, ...] = (0,)
    """Exit codes that the second call may have."""
    makes: str = ""
    """Name of the new folder that the command is given instead of the collection."""

    def words(self, root: Path) -> tuple[str, ...]:
        """The whole call."""
        where = (str(root / self.makes),) if self.makes else ("-C", str(root))
        return (*self.arguments, *where)


def run_saved(launcher: Launcher, root: Path, done: Done) -> str:
    """A saved run that is there can be compared, with itself."""
    path = root / ".atlas" / "runs" / "again.json"
    compared = launcher.command("compare", "again", "again", "-C", str(root), "--json")
    return "" if compared.code == 0 and json.loads(path.read_bytes()) else compared.err


def look_written(launcher: Launcher, root: Path, done: Done) -> str:
    """Every line of the ledger is whole."""
    for line in (root / "heldout" / "ledger.jsonl").read_text("utf-8").splitlines():
        if line.strip():
            json.loads(line)
    return ""


def promoted(launcher: Launcher, root: Path, done: Done) -> str:
    """The question is in one place, and measuring goes on."""
    files = [*(root / "cases").glob("*.yaml"), *(root / "heldout").glob("*.yaml")]
    found = sum(path.read_text("utf-8").count("id: H1") for path in files)
    if found != 1:
        return f"H1 is there {found} times"
    measured = launcher.command("measure", "--json", "-C", str(root))
    return "" if measured.code in (0, 1) else measured.err


def answers(launcher: Launcher, root: Path, done: Done) -> str:
    """A question is answered."""
    asked = launcher.command("ask", "how long is the battery under warranty", "-C", str(root))
    return "" if asked.code == 0 and "3 years" in asked.out else asked.err or asked.out


def begun(launcher: Launcher, root: Path, done: Done) -> str:
    """Each file of the new collection is whole, or not there."""
    source = resources.files("atlas.starter") / "collection"
    for path in (root / "new").rglob("*"):
        name = path.relative_to(root / "new").as_posix()
        if path.is_file() and not name.startswith(".atlas-init-"):
            whole = source.joinpath(*name.split("/")).read_bytes()
            if path.read_bytes() != whole:
                return f"{name} is not whole"
    return ""


COMMANDS = (
    Command(name="ingest, the first", arguments=("ingest",), check=answers, indexed=False),
    Command(
        name="measure --save",
        arguments=("measure", "--save", "again", "--json"),
        check=run_saved,
        codes=(0, 1),
    ),
    Command(
        name="measure --held-out",
        arguments=("measure", "--held-out", "--json"),
        check=look_written,
        codes=(0, 1),
    ),
    Command(
        name="promote",
        arguments=("promote", "H1", "--reason", "seen"),
        check=promoted,
        codes=(0, 2),  # 2 where it was promoted before the kill
    ),
    Command(
        name="init",
        arguments=("init",),
        check=begun,
        codes=(0, 2),  # 2 where something was there already
        makes="new",
    ),
)


def run(launcher: Launcher, root: Path, part: Part, command: Command, most: int | None) -> None:
    """Kill a command before each change, at most `most` times, evenly spread.

    `root` is a collection with an index, which is copied.
    """
    place = root.with_name(f"{root.name}-{command.name.replace(' ', '-')}")

    def afresh() -> Path:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(root, place)
        if not command.indexed:
            shutil.rmtree(place / ".atlas")
        return place

    order = Order(arguments=command.words(afresh()), operation=0)
    whole = launcher.run(order)
    counted = whole.operations
    part.expect(not command.check(launcher, place, whole), f"{command.name}: undisturbed")
    files = Counter(listing(place))
    part.expect(counted > 0, f"{command.name}: no change to a file was counted")
    changes = list(range(1, counted + 1))
    if most is not None and len(changes) > most:
        changes = changes[:: -(-len(changes) // most)] + changes[-1:]
    killed = 0
    for number in changes:
        afresh()
        order = Order(arguments=order.arguments, operation=number)
        killed += launcher.run(order).killed
        what = f"{command.name} killed before change {number} of {counted}"
        done = launcher.command(*order.arguments)
        part.expect(
            done.code in command.codes and "Traceback" not in done.err,
            f"{what}: given again: code {done.code}, {done.err[-300:]}",
        )
        broken = command.check(launcher, place, done)
        part.expect(not broken, f"{what}: {broken}")
        left = set(Counter(listing(place)) - files) | _unfinished(place)
        part.expect(not left - {"traces.jsonl"}, f"{what}: left behind {sorted(left)}")
    part.rows.append((command.name, counted, len(changes), killed))


def _unfinished(root: Path) -> set[str]:
    """Files of cases and held-out questions that nobody finished."""
    places = (path for name in ("cases", "heldout") for path in (root / name).iterdir())
    return {path.name for path in places if path.name.startswith(".") or path.suffix == ".tmp"}
