"""A disk that fills up: the index in use stays, the error is one line, and no half file is left.

A disk of some megabytes (a tmpfs) is filled until a given number of bytes is free. Where nobody may
mount one, files are kept from growing over a limit instead, which is the same error to a program.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holding.editions import listing, look, set_edition
from holding.kept import CHAT_RUN
from holding.kills import Bench
from holding.processes import Done

RESUMED = ("traces.jsonl", "parsed.jsonl", "embeddings.sqlite-journal")
"""What may stay until there is space again; the next ingest takes it up and removes it."""


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path | None]:
    """A disk of its own at `folder`, or None where this user may not mount one."""
    folder.mkdir(parents=True)
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "atlas-hold", str(folder)]
    try:
        done = subprocess.run(["mount", *options], capture_output=True, check=False)
        mounted = done.returncode == 0
    except FileNotFoundError:
        mounted = False
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def filled(disk: Path, free: int) -> Iterator[None]:
    """All but `free` bytes of the disk are taken for as long as the block runs."""
    ballast = disk / "ballast"
    status = os.statvfs(disk)
    taken = status.f_bavail * status.f_frsize - free
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, taken))
    try:
        yield
    finally:
        ballast.unlink()


def sizes(bench: Bench, count: int) -> list[int]:
    """Free bytes from none to a little more than an ingest needs."""
    state = bench.root / ".atlas"
    need = sum(path.stat().st_size for path in state.glob("full/g-*/*"))
    need += (state / "embeddings.sqlite").stat().st_size // 2
    return [round(1.3 * need * number / (count - 1)) // 4096 * 4096 for number in range(count)]


def ingests(bench: Bench, disk: Path, count: int) -> None:
    """An ingest at many sizes of free space."""
    tally: Counter[str] = Counter()
    for free in sizes(bench, count):
        bench.edition += 1
        _changed(bench)
        with filled(disk, free):
            done = bench.launcher.command("ingest", "-C", str(bench.root), before=bench.before)
            tally[_judge(bench, done, f"ingest with {free} bytes free")] += 1
        _finish(bench, f"after {free} bytes free")
    bench.part.rows.append(("ingest, disk fills", sum(tally.values()), *_counts(tally)))


def limited(bench: Bench, largest: tuple[int, ...]) -> None:
    """The same with files that cannot grow over a limit."""
    tally: Counter[str] = Counter()
    for size in largest:
        bench.edition += 1
        _changed(bench)
        arguments = ("ingest", "-C", str(bench.root))
        done = bench.launcher.command(*arguments, largest_file=size, before=bench.before)
        tally[_judge(bench, done, f"ingest with files of at most {size} bytes")] += 1
        _finish(bench, f"after files of at most {size} bytes")
    bench.part.rows.append(("ingest, files cannot grow", sum(tally.values()), *_counts(tally)))


def _changed(bench: Bench) -> None:
    set_edition(bench.root, bench.edition)


def _counts(tally: Counter[str]) -> tuple[int, int]:
    return tally["old"], tally["new"]


def _judge(bench: Bench, done: Done, what: str) -> str:
    """Look at the index while the disk is still full."""
    new = bench.edition if done.code == 0 else bench.edition - 1
    told = done.code == 0 or (done.code == 2 and done.told_in_one_line)
    bench.part.expect(told, f"{what}: code {done.code}, {done.err[-400:]}")
    seen = look(bench.launcher, bench.root, bench.kind)
    bench.part.expect(
        bench.names(seen, new), f"{what}: names {sorted(seen.editions)} {seen.done.err[-300:]}"
    )
    left = Counter(listing(bench.root)) - Counter(bench.files)
    half = sorted(name for name in left if name not in RESUMED)
    bench.part.expect(not half, f"{what}: left behind {half}")
    return "new" if done.code == 0 else "old"


def _finish(bench: Bench, what: str) -> None:
    done = bench.ingest()
    seen = look(bench.launcher, bench.root, bench.kind)
    kept = done.code == 0 and bench.names(seen, bench.edition)
    # SQLite takes its journal away when it next writes, which an ingest without news does not.
    allowed = Counter(["traces.jsonl", "embeddings.sqlite-journal"])
    left = sorted(Counter(listing(bench.root)) - Counter(bench.files) - allowed)
    bench.part.expect(not left, f"{what}: left behind with space again {left}")
    bench.part.expect(kept, f"{what}: with space again {done.err[-300:]} {sorted(seen.editions)}")


def others(bench: Bench, disk: Path, pages: int = 3) -> None:
    """Traces, runs, the ledger and measured answers on a disk with hardly a page left."""
    folder = ("-C", str(bench.root))
    bench.launcher.command("measure", "--save", "before", "--json", *folder)
    whole = (bench.root / ".atlas" / "runs" / "before.json").read_bytes()
    ledger = bench.root / "heldout" / "ledger.jsonl"
    tally: Counter[str] = Counter()
    for free in range(0, 4096 * pages, 4096):
        for name, arguments in {
            "ask": ("ask", "--json", "how long is the battery under warranty"),
            "measure --save": ("measure", "--save", "before", "--json"),
            "measure --held-out": ("measure", "--held-out", "--json"),
            "measure-answers": CHAT_RUN,
        }.items():
            looks = ledger.read_bytes() if ledger.exists() else b""
            with filled(disk, free):
                done = bench.launcher.command(*arguments, *folder)
                # The pages of the last file may have room that counts as taken.
            what = f"{name} with {free} bytes free"
            told = done.code in (0, 1) or (done.code == 2 and done.told_in_one_line)
            bench.part.expect(told, f"{what}: code {done.code}, {done.err[-400:]}")
            tally[f"{name} {'done' if done.code in (0, 1) else 'told'}"] += 1
            if name == "ask":
                bench.part.expect(done.code == 0, f"{what}: {done.err}")
                _trace_whole_or_told(bench, done, what)
            elif name == "measure --save":
                saved = (bench.root / ".atlas" / "runs" / "before.json").read_bytes()
                fine = saved == whole if done.code else bool(json.loads(saved))
                bench.part.expect(fine, f"{what}: the saved run is neither the old nor whole")
                whole = saved
            elif name == "measure --held-out":
                now = ledger.read_bytes() if ledger.exists() else b""
                shown = done.code in (0, 1)
                grown = now.count(b"\n") - looks.count(b"\n")
                bench.part.expect(not shown or grown >= 1, f"{what}: shown and not written down")
                then = bench.launcher.command(*arguments, *folder)
                bench.part.expect(then.code in (0, 1), f"{what}: with space again: {then.err}")
    for name, count in sorted(tally.items()):
        bench.part.rows.append((name, count, "", ""))


def _trace_whole_or_told(bench: Bench, done: Done, what: str) -> None:
    wanted = json.loads(done.out)["id"]
    path = bench.root / ".atlas" / "traces.jsonl"
    kept = False
    for line in path.read_bytes().splitlines():
        try:
            kept |= json.loads(line).get("id") == wanted
        except ValueError:
            continue
    bench.part.expect(
        kept or "trace could not be written" in done.err,
        f"{what}: the trace is cut and nobody says so",
    )
