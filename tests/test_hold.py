"""Short versions of the long runs of bench/hold.py, and that these notice what they look for.

Nothing here is timed: a kill before a change to a file comes at the same place on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

from holding import commands_killed, crowds, damage, full_disk, kills, read_only
from holding.editions import listing, look, set_edition, small_collection
from holding.kept import chat_server
from holding.processes import Launcher, launcher
from holding.report import Part

SEED = 5
TORN = """
import os, signal
whole = os.replace
def torn(source, target, **options):
    if os.path.basename(target) != "CURRENT":
        return whole(source, target, **options)
    with open(source, "rb") as old, open(target, "wb", 0) as new:
        new.write(old.read()[:30])
        os.kill(os.getpid(), signal.SIGKILL)
os.replace = torn
"""
"""The pointer is written bit by bit instead of put into its place, and a kill comes in between."""
CREDULOUS = """
import os
from atlas.models.verified import Verified
Verified.checksum = lambda self, path: self._entries[os.path.abspath(path)][-2]
"""
"""A file once checked is taken for whole ever after."""


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    with launcher("stand-in", tmp_path_factory.mktemp("processes")) as made:
        yield made


def part() -> Part:
    return Part(title="test", header=())


def begun(processes: Launcher, root: Path, **more: str) -> kills.Bench:
    """A small collection with an index, ready to be disturbed."""
    bench = kills.Bench(
        launcher=processes, root=small_collection(root), kind="small", part=part(), **more
    )
    bench.begin()
    return bench


# ---- kills ------------------------------------------------------------------------------------


def test_a_kill_at_any_moment_leaves_the_old_index_or_the_new_one(
    processes: Launcher, tmp_path: Path
) -> None:
    bench = begun(processes, tmp_path / "c")
    kills.random_kills(bench, 4, SEED, asked_every=2)
    kills.every_change(bench, 8, SEED)
    kills.like_a_clean_build(bench, tmp_path / "clean")
    assert bench.part.broken == []
    assert [row[1] for row in bench.part.rows] == [3, 1, 8]


def test_a_pointer_that_is_written_bit_by_bit_is_noticed(
    processes: Launcher, tmp_path: Path
) -> None:
    bench = begun(processes, tmp_path / "c")
    bench.edition += 1
    set_edition(bench.root, bench.edition)
    done = processes.command("ingest", "-C", str(bench.root), before=TORN)
    assert done.killed
    bench.after(done, "torn", by_asking=False)
    [broken] = [promise for promise in bench.part.broken if "as it lies" in promise]
    assert "CURRENT: does not name a generation" in broken


def test_what_is_left_behind_is_noticed(processes: Launcher, tmp_path: Path) -> None:
    bench = begun(processes, tmp_path / "c")
    (bench.root / ".atlas" / "full" / "CURRENT.1.tmp.kept").touch()
    bench.after(processes.command("ingest", "-C", str(bench.root)), "litter", by_asking=False)
    assert bench.part.broken == ["litter: left behind ['full/CURRENT.1.tmp.kept']"]


def test_an_index_of_two_editions_is_noticed(processes: Launcher, tmp_path: Path) -> None:
    bench = begun(processes, tmp_path / "c")
    set_edition(bench.root, bench.edition + 1)
    (bench.root / "documents" / "list-0.md").write_text("# Parts list 0\n\n## Edition\n\nED-1\n")
    processes.command("ingest", "-C", str(bench.root))
    seen = look(processes, bench.root, "small")
    assert seen.editions == {"ED-1", "ED-2"}
    assert not bench.names(seen, 1, 2)


# ---- damage -----------------------------------------------------------------------------------


def test_a_damaged_file_is_named_or_harmless_and_ingest_mends_it(
    processes: Launcher, tmp_path: Path
) -> None:
    root = small_collection(tmp_path / "c")
    with chat_server(root):
        damaging = damage.Damaging(launcher=processes, root=root, kind="small", part=part())
        damage.run(damaging, SEED, 1, most=12)
    assert damaging.part.broken == []
    assert damaging.part.notes == ["12 damages"]


def test_an_answer_from_damaged_text_is_noticed(processes: Launcher, tmp_path: Path) -> None:
    root = small_collection(tmp_path / "c")
    processes.command("ingest", "-C", str(root))
    damaging = damage.Damaging(launcher=processes, root=root, kind="small", part=part())
    damaging.truth = damaging.seen()
    [path] = (root / ".atlas" / "full").glob("g-*/blocks.jsonl")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"under warranty for 3 years", b"under warranty for 9 years"))
    damaging.before = CREDULOUS
    assert damaging._looked("digits", path, "bit") == "OTHER ANSWERS"
    assert len(damaging.part.broken) == 1
    damaging.before = ""
    assert damaging._looked("digits", path, "bit") == "named"


# ---- a full disk ------------------------------------------------------------------------------


def test_where_files_cannot_grow_the_old_index_stays(processes: Launcher, tmp_path: Path) -> None:
    bench = begun(processes, tmp_path / "c")
    full_disk.limited(bench, (4096, 30_000))
    assert bench.part.broken == []
    assert bench.part.rows[0][2] == 2


def test_where_the_disk_fills_up_nothing_is_lost(processes: Launcher, tmp_path: Path) -> None:
    with full_disk.small_disk(tmp_path / "disk", 24) as disk:
        if disk is None:
            pytest.skip("no disk can be mounted by this user; the test above limits files instead")
        root = small_collection(disk / "c")
        with chat_server(root):
            bench = kills.Bench(launcher=processes, root=root, kind="small", part=part())
            bench.begin()
            full_disk.ingests(bench, disk, 3)
            full_disk.others(bench, disk, 1)
    assert bench.part.broken == []
    assert bench.part.rows[0][2] >= 1
    assert sum(bench.part.rows[0][2:]) == 3


# ---- several at once --------------------------------------------------------------------------


def test_two_ingests_and_readers_do_not_disturb_each_other(
    processes: Launcher, tmp_path: Path
) -> None:
    bench = begun(processes, tmp_path / "c")
    crowds.two_ingests(bench, 1)
    crowds.first_questions(bench, tmp_path / "first")
    assert bench.part.broken == []
    assert listing(bench.root) == tuple(sorted({*bench.files, "traces.jsonl"}))


# ---- read-only, and other commands ------------------------------------------------------------


def test_a_folder_that_may_only_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    found = part()
    with launcher("stand-in", tmp_path / "processes", unprivileged=True) as unprivileged:
        read_only.run(unprivileged, small_collection(tmp_path / "c"), found)
    assert found.broken == []
    assert len(found.rows) == 9


@pytest.mark.parametrize("command", commands_killed.COMMANDS, ids=lambda command: command.name)
def test_a_killed_command_leaves_files_whole_or_absent(
    processes: Launcher, tmp_path: Path, command: commands_killed.Command
) -> None:
    root = small_collection(tmp_path / "c")
    processes.command("ingest", "-C", str(root))
    found = part()
    commands_killed.run(processes, root, found, command, 2)
    assert found.broken == []
    [row] = found.rows
    assert row[3] >= 2
