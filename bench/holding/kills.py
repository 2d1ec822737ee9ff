"""SIGKILL at moments of an ingest over an existing index: old or new, never a mixture.

Moments are spread evenly over the time that an undisturbed run takes, and a share is aimed at its
last tenth, where the new index comes into use. Besides, one run is killed before each single change
that an ingest makes to a file or folder. After every kill the index is looked at as it lies, then
the work is finished, by an ingest or by a question.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from holding.editions import (
    EDITION_QUESTIONS,
    Look,
    listing,
    look,
    look_of,
    set_edition,
)
from holding.processes import Done, Launcher, Order, own_environment, plain
from holding.report import Part

AIMED = 0.25
"""Share of the kills that fall into the last tenth."""


@dataclass(slots=True, kw_only=True)
class Bench:
    """A collection with an index, between two kills."""

    launcher: Launcher
    root: Path
    kind: str
    part: Part
    edition: int = 0
    truth: Look | None = None
    files: tuple[str, ...] = ()
    before: str = ""
    """Python that breaks something on purpose, to see that it is noticed."""

    def ingest(self) -> Done:
        return self.launcher.command("ingest", "-C", str(self.root))

    def begin(self) -> None:
        """Build the first index, and learn what answers and files there are."""
        set_edition(self.root, self.edition)
        self.ingest()
        self.turn()
        self.truth = look(self.launcher, self.root, self.kind)
        self.part.expect(self.truth.done.code == 0, f"first question: {self.truth.done.err}")
        self.files = listing(self.root)

    def turn(self) -> Done:
        """The next edition, ingested by nobody disturbed."""
        self.edition += 1
        set_edition(self.root, self.edition)
        done = self.ingest()
        self.part.expect(done.code == 0, f"undisturbed ingest: {done.err}")
        return done

    def names(self, seen: Look, *editions: int) -> bool:
        """Whether a look saw one of these editions, alone, and the right answers."""
        alone = any(seen.editions == {f"ED-{number}"} for number in editions)
        assert self.truth is not None
        return seen.done.code == 0 and alone and seen.answers == self.truth.answers

    def after(self, done: Done, what: str, *, by_asking: bool) -> str:
        """Look at what a kill left, finish the work, look again. Returns what was found."""
        part, new = self.part, self.edition
        seen = look(self.launcher, self.root, self.kind)
        part.expect(
            self.names(seen, new - 1, new),
            f"{what}: as it lies it names {sorted(seen.editions)}, code {seen.done.code}, "
            f"{seen.done.err[-300:]}",
        )
        found = "new" if seen.editions == {f"ED-{new}"} else "old"
        if by_asking:
            asked = look(self.launcher, self.root, self.kind, frozen=False)
            part.expect(self.names(asked, new), f"{what}: a question then: {asked.done.err[-300:]}")
        finished = self.ingest()
        part.expect(finished.code == 0, f"{what}: the ingest then: {finished.err[-300:]}")
        seen = look(self.launcher, self.root, self.kind)
        part.expect(self.names(seen, new), f"{what}: finished, it names {sorted(seen.editions)}")
        left = Counter(listing(self.root)) - Counter(self.files)
        left = Counter({name: n for name, n in left.items() if name != "traces.jsonl"})
        part.expect(not left, f"{what}: left behind {sorted(left)}")
        return "finished before" if not done.killed else found


def random_kills(bench: Bench, count: int, seed: int, asked_every: int = 10) -> None:
    """Kill an ingest `count` times."""
    draw = random.Random(seed)
    whole = statistics.median(bench.turn().seconds for _ in range(3))
    tally: Counter[tuple[str, str]] = Counter()
    for number in range(count):
        aimed = number < AIMED * count
        moment = draw.uniform(0.9 * whole, whole) if aimed else draw.uniform(0, whole)
        bench.edition += 1
        set_edition(bench.root, bench.edition)
        order = Order(arguments=("ingest", "-C", str(bench.root)), before=bench.before)
        process = bench.launcher.begin(order)
        time.sleep(moment)
        process.kill()
        done = process.wait()
        what = f"kill {number} of seed {seed} after {moment:.3f} of {whole:.3f} s"
        found = bench.after(done, what, by_asking=number % asked_every == 0)
        tally["last tenth" if aimed else "any moment", found] += 1
        if number % 50 == 49 and done.killed:  # the time grows or shrinks with the machine's load
            whole = statistics.median(bench.turn().seconds for _ in range(3))
    for kind in ("any moment", "last tenth"):
        found = {name: tally[kind, name] for name in ("old", "new", "finished before")}
        bench.part.rows.append((f"{kind} ({whole:.2f} s)", sum(found.values()), *found.values()))


def every_change(bench: Bench, most: int | None, seed: int) -> None:
    """Kill an ingest before each change to a file; at most `most` of them, drawn at random."""
    bench.edition += 1
    set_edition(bench.root, bench.edition)
    order = Order(arguments=("ingest", "-C", str(bench.root)), operation=0, before=bench.before)
    counted = bench.launcher.run(order).operations
    changes = list(range(1, counted + 1))
    bench.part.expect(len(changes) > 20, f"only {len(changes)} changes to files were counted")
    if most is not None and len(changes) > most:
        changes = sorted(random.Random(seed).sample(changes, most))
    tally: Counter[str] = Counter()
    for number in changes:
        bench.edition += 1
        set_edition(bench.root, bench.edition)
        done = bench.launcher.run(replace(order, operation=number))
        what = f"kill before change {number} of {counted}"
        tally[bench.after(done, what, by_asking=number % 10 == 0)] += 1
    found = {name: tally[name] for name in ("old", "new", "finished before")}
    title = f"before each of {counted} changes to files"
    bench.part.rows.append((title, len(changes), *found.values()))


def like_a_clean_build(bench: Bench, folder: Path) -> None:
    """After all kills the index is the one that a build from nothing makes, score by score."""
    shutil.copytree(bench.root, folder, ignore=shutil.ignore_patterns(".atlas"))
    bench.launcher.command("ingest", "-C", str(folder))
    fresh = look(bench.launcher, folder, bench.kind)
    killed = look(bench.launcher, bench.root, bench.kind)
    bench.part.expect(
        fresh.traces == killed.traces, "after all kills, scores differ from those of a clean build"
    )
    bench.part.notes.append(
        "after all kills: answers, scores and drops as after a build from nothing"
        if fresh.traces == killed.traces
        else "after all kills: not as after a build from nothing"
    )


def command_line(root: Path, kind: str, part: Part, count: int, seed: int) -> None:
    """The same with `python -m atlas`, real models and nothing prepared."""
    draw = random.Random(seed)

    folder = ("-C", str(root))
    set_edition(root, 0)
    plain("ingest", *folder)
    times = []
    for edition in (1, 2):
        set_edition(root, edition)
        times.append(plain("ingest", *folder).seconds)
    whole = statistics.median(times)
    edition, killed = 2, 0
    for number in range(count):
        edition += 1
        set_edition(root, edition)
        moment = draw.uniform(0, whole)
        process = subprocess.Popen(
            [sys.executable, "-m", "atlas", "ingest", *folder],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env=own_environment(),
        )  # fmt: skip
        time.sleep(moment)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        killed += process.wait() != 0
        seen = look_of(plain("ask", "--json", *folder, stdin="\n".join(EDITION_QUESTIONS) + "\n"))
        part.expect(
            seen.done.code == 0 and seen.editions == {f"ED-{edition}"},
            f"command line, kill {number} after {moment:.2f} of {whole:.2f} s: {seen.done.err}",
        )
    title = f"`python -m atlas`, real models ({whole:.2f} s)"
    part.rows.append((title, count, "", f"{killed} asked, all new", count - killed))
