"""Does atlas hold where machines die? Kills, damage, full disks, crowds, read-only folders.

    python bench/hold.py [--quick] [--only PART ...] [--seed N] [--kills N]

Prints a table for each part and every promise that was broken; ends with 1 where there is one.
Works on copies in a temporary folder. `--quick` takes a minute, on a small collection; without it
the kills and the crowds work on the repository's own collection. Models that cost nothing stand in
for the real ones, so that a kill falls into the work on files; a tenth of the kills is given to
`python -m atlas` with the real models.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holding import commands_killed, crowds, damage, full_disk, kills, read_only
from holding.editions import COLLECTIONS
from holding.kept import chat_server
from holding.processes import Launcher, launcher
from holding.report import Part
from surroundings import machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What every part gets."""

    launcher: Launcher
    folder: Path
    quick: bool
    seed: int
    kills: int

    @property
    def kind(self) -> str:
        return "small" if self.quick else "own"


def killed(run: Run) -> Part:
    """Kills of an ingest."""
    header = ("killed", "kills", "then the old index", "the new one", "finished before")
    part = Part(title="An ingest over an existing index is killed", header=header)
    root = COLLECTIONS[run.kind](run.folder / "killed")
    bench = kills.Bench(launcher=run.launcher, root=root, kind=run.kind, part=part)
    bench.begin()
    kills.random_kills(bench, run.kills, run.seed)
    kills.every_change(bench, 20 if run.quick else None, run.seed)
    kills.like_a_clean_build(bench, run.folder / "clean")
    if not run.quick:
        own = COLLECTIONS["own"](run.folder / "command-line")
        kills.command_line(own, "own", part, run.kills // 10, run.seed)
    return part


def damaged(run: Run) -> Part:
    """Every file, damaged."""
    header = ("file", *damage.DAMAGES)
    part = Part(title="A file is damaged: what the index, asked as it lies, says", header=header)
    root = COLLECTIONS["small"](run.folder / "damaged")
    with chat_server(root):
        damaging = damage.Damaging(launcher=run.launcher, root=root, kind="small", part=part)
        damage.run(damaging, run.seed, 1 if run.quick else 4, 30 if run.quick else None)
    if not run.quick:
        damage.models(COLLECTIONS["small"](run.folder / "models"), part, run.seed)
    return part


def filled_up(run: Run) -> Part:
    """A full disk."""
    header = ("what", "runs", "told in one line, old index in use", "done, new index in use")
    part = Part(title="The disk is full", header=header)
    with full_disk.small_disk(run.folder / "disk", 24) as disk:
        folder = disk or run.folder
        root = COLLECTIONS["small"](folder / "filled")
        with chat_server(root):
            bench = kills.Bench(launcher=run.launcher, root=root, kind="small", part=part)
            bench.begin()
            full_disk.limited(bench, (4096, 100_000) if run.quick else LIMITS)
            if disk is None:
                part.notes.append("no disk could be mounted: only files that cannot grow")
            else:
                full_disk.ingests(bench, disk, 4 if run.quick else 24)
                full_disk.others(bench, disk, 1 if run.quick else 4)
    return part


LIMITS = (1024, 4096, 16_384, 40_000, 65_536, 100_000, 150_000, 250_000)


def crowded(run: Run) -> Part:
    """Several processes at once."""
    header = ("at once", "", "", "")
    part = Part(title="Several processes at once", header=header)
    root = COLLECTIONS[run.kind](run.folder / "crowded")
    bench = kills.Bench(launcher=run.launcher, root=root, kind=run.kind, part=part)
    bench.begin()
    crowds.two_ingests(bench, 2 if run.quick else 20)
    crowds.first_questions(bench, run.folder / "first")
    return part


def only_read(run: Run) -> Part:
    """Folders that cannot be written."""
    part = Part(
        title="Folders are read-only", header=("what", "exit code", "the line that tells it")
    )
    root = COLLECTIONS["small"](run.folder / "read-only")
    processes = run.folder / "without-privileges"
    with launcher("stand-in", processes, unprivileged=True) as unprivileged:
        read_only.run(unprivileged, root, part)
    return part


def commands(run: Run) -> Part:
    """Kills of other commands."""
    header = ("command", "changes to files", "killed before", "kills")
    part = Part(title="Another command is killed before a change to a file", header=header)
    root = COLLECTIONS["small"](run.folder / "commands")
    run.launcher.command("ingest", "-C", str(root))
    for command in commands_killed.COMMANDS:
        commands_killed.run(run.launcher, root, part, command, 3 if run.quick else None)
    return part


PARTS: dict[str, Callable[[Run], Part]] = {
    "kills": killed,
    "damage": damaged,
    "disk": filled_up,
    "crowds": crowded,
    "read-only": only_read,
    "commands": commands,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a minute instead of half an hour")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help="these parts")
    parser.add_argument("--seed", type=int, default=1, help="of every random moment (1)")
    parser.add_argument("--kills", type=int, help="random kills (200; 20 with --quick)")
    parser.add_argument("--models", default="stand-in", help="stand-in or real ones")
    arguments = parser.parse_args()
    print(machine())
    models = arguments.models
    count = arguments.kills or (20 if arguments.quick else 200)
    broken = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with launcher(models, folder / "processes") as processes:
            for name in arguments.only or PARTS:
                begun = time.monotonic()
                run = Run(
                    launcher=processes,
                    folder=folder,
                    quick=arguments.quick,
                    seed=arguments.seed,
                    kills=count,
                )
                part = PARTS[name](run)
                part.notes.append(f"{time.monotonic() - begun:.0f} s, {models} models")
                print(f"\n{part.text()}", flush=True)
                broken += len(part.broken)
    if broken:
        sys.exit(f"{broken} promises were broken")


if __name__ == "__main__":
    main()
