"""Every file that atlas keeps, damaged in every way: named or harmless, never answered from.

After each damage the index is asked as it lies: it must answer as before or name the file. Then
`ingest` must mend it, and after the same damage once more `ask` must answer as before. Files that
other commands read are tried with those commands.
"""

from __future__ import annotations

import os
import random
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from holding.editions import NOTHING, Look, look, look_of, set_edition
from holding.kept import CHAT_RUN, comparable, keep_all
from holding.processes import Done, Launcher, plain
from holding.report import Part

READERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"traces\.jsonl$", ("show", "last", "--json")),
    (r"/runs/", ("compare", "first", "second", "--json")),
    (r"ledger\.jsonl$", ("measure", "--held-out", "--json")),
    (r"/(answers|replies)/", CHAT_RUN),
)
"""Who reads the files that no question needs."""
REPLIES = 2
"""Kept replies that are damaged; all are alike."""
BELOW = "bit, below the stamp"
"""A flipped bit of which the file system knows nothing, as a failing disk makes it."""


def _bit(path: Path, draw: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    with path.open("r+b") as file:
        file.write(data)


def _bit_and_time(path: Path, draw: random.Random) -> None:
    before = path.stat()
    _bit(path, draw)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _bit_below(path: Path, draw: random.Random) -> None:
    """Flip a bit, then have the memory of checked files hold the new stamp with the old sum."""
    from atlas.models.verified import Verified

    state = next(folder for folder in path.parents if folder.name == ".atlas")
    memory = Verified(state / "indexes")
    checksum = memory.checksum(path)
    _bit(path, draw)
    status = path.stat()
    stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
    memory._remember(path, stamp, checksum)


DAMAGES: dict[str, Callable[[Path, random.Random], object]] = {
    "deleted": lambda path, draw: path.unlink(),
    "emptied": lambda path, draw: os.truncate(path, 0),
    "halved": lambda path, draw: os.truncate(path, path.stat().st_size // 2),
    "bit": _bit,
    "bit, time put back": _bit_and_time,
    BELOW: _bit_below,
}


@dataclass(slots=True, kw_only=True)
class Damaging:
    """A collection with everything that commands keep, and what they say of it when whole."""

    launcher: Launcher
    root: Path
    kind: str
    part: Part
    before: str = ""
    """Python that breaks something on purpose, to see that it is noticed."""
    truth: Look = NOTHING
    said: dict[tuple[str, ...], str] = field(default_factory=dict)

    def begin(self) -> None:
        set_edition(self.root, 0)
        keep_all(self.launcher, self.root)
        self.truth = self.seen()
        self.part.expect(self.truth.done.code == 0, f"whole: {self.truth.done.err}")
        self.said = {arguments: comparable(self.command(*arguments)) for _, arguments in READERS}

    def command(self, *arguments: str) -> Done:
        return self.launcher.command(*arguments, "-C", str(self.root))

    def seen(self, *, frozen: bool = True) -> Look:
        return look(self.launcher, self.root, self.kind, frozen=frozen, before=self.before)

    def files(self) -> dict[str, Path]:
        """Every file that is kept, under a name that outlives its generation."""
        places = [*(self.root / ".atlas").rglob("*"), *(self.root / "heldout").glob("*.jsonl")]
        return {
            re.sub(r"\bg-\w+", "g", path.relative_to(self.root).as_posix()): path
            for path in places
            if path.is_file()
        }

    def try_one(self, name: str, damage: str, draw: random.Random) -> str:
        """Damage a file twice, look, mend. Returns what was found, in a few words."""
        what = f"{name} {damage}"
        path = self.files()[name]
        whole = path.read_bytes()
        DAMAGES[damage](path, draw)
        words = [self._looked(what, path, damage)]
        words += [self._read(what, name, path)]
        mended = self.command("ingest")
        self.part.expect(mended.code == 0, f"{what}: ingest then: {mended.err[-300:]}")
        if words[0] == "named":
            self.part.expect(_names(path, mended), f"{what}: ingest does not name it")
        again = self.seen()
        self.part.expect(again.traces == self.truth.traces, f"{what}: ingest mends nothing")
        found = self.files().get(name)
        if found is not None and damage != BELOW:
            DAMAGES[damage](found, draw)
            asked = self.seen(frozen=False)
            self.part.expect(
                asked.traces == self.truth.traces,
                f"{what}: ask then: {asked.done.code} {asked.done.err[-300:]}",
            )
            if words[0] == "named":
                told = _names(path, asked.done)
                self.part.expect(told, f"{what}: ask mends it and does not name it")
        if not re.search(r"/(full|sample)/", name):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(whole)
        return ", ".join(dict.fromkeys(word for word in words if word))

    def _looked(self, what: str, path: Path, damage: str) -> str:
        seen = self.seen()
        if seen.done.code == 0 and seen.traces == self.truth.traces:
            return "same answers"
        if seen.done.told_in_one_line and _names(path, seen.done):
            return "named"
        if path.name == "CURRENT" and "no index" in seen.done.err:
            return "as if there were none"
        if damage == BELOW:
            return "not noticed by ask"
        self.part.expect(False, f"{what}: {seen.done.code} {seen.done.err[-300:]} other answers")
        return "OTHER ANSWERS"

    def _read(self, what: str, name: str, path: Path) -> str:
        """What the command says that reads the file, where it is none that a question needs."""
        for pattern, arguments in READERS:
            if re.search(pattern, f"/{name}"):
                done = self.command(*arguments)
                if comparable(done) == self.said[arguments]:
                    return f"{arguments[0]}: same"
                if done.told_in_one_line and _names(path, done):
                    return f"{arguments[0]}: named"
                if done.told_in_one_line and path.name == "traces.jsonl":
                    return f"{arguments[0]}: not there"
                self.part.expect(False, f"{what}: {arguments[0]} {done.code} {done.err[-300:]}")
                return f"{arguments[0]}: OTHER"
        return ""


def _names(path: Path, done: Done) -> bool:
    """Whether the file is named; of a pointer and what it points at, either may be the bad one."""
    either = ("CURRENT", "manifest.json")
    names = either if path.name in either else (path.name, path.stem)
    return any(name in done.err for name in names)


def run(damaging: Damaging, seed: int, bits: int, most: int | None = None) -> None:
    """Damage every file in every way, with `bits` flipped bits each; at most `most`, spread over
    the files."""
    draw = random.Random(seed)
    damaging.begin()
    files = sorted(damaging.files())
    replies = [name for name in files if "/replies/" in name]
    files = [name for name in files if name not in replies[REPLIES:]]
    tried = [
        (name, damage)
        for name in files
        for damage in DAMAGES
        if damage != BELOW or re.search(r"/(full|sample)/g/", name)
        for _ in range(bits if damage.startswith("bit") else 1)
    ]
    if most is not None:
        draw.shuffle(tried)
        first = {name: (name, damage) for name, damage in tried}
        tried = sorted([*first.values(), *tried][:most])
    cells: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for name, damage in tried:
        if name in damaging.files():
            short = re.sub(r"replies/.*", "replies/…", name)
            cells[short][damage][damaging.try_one(name, damage, draw)] = None
    for name, found in cells.items():
        damaging.part.rows.append(
            (f"`{name}`", *("; ".join(found[damage]) or "-" for damage in DAMAGES))
        )
    damaging.part.notes.append(f"{len(tried)} damages")


def models(root: Path, part: Part, seed: int) -> None:
    """The same for what is kept of the real models: questions are answered as before."""
    draw = random.Random(seed)
    question = ("ask", "--json", "-C", str(root), "how long is the battery under warranty")
    truth = look_of(plain(*question))
    part.expect(truth.done.code == 0, f"real models: {truth.done.err[-300:]}")
    folder = root / ".atlas" / "models"
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found = []
        for name, damage in DAMAGES.items():
            if name == BELOW:
                found.append("-")
                continue
            damage(path, draw)
            seen = look_of(plain(*question))
            same = seen.done.code == 0 and seen.traces == truth.traces
            part.expect(same, f"models/{path.name} {name}: {seen.done.code} {seen.done.err[-300:]}")
            found.append("same answers" if same else "OTHER ANSWERS")
        part.rows.append((f"`.atlas/models/…/{path.name}`", *found))
