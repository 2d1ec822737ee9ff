"""Files and lines are there whole or not at all; what was checked once is not blindly believed."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from atlas.models.verified import FILE_NAME, Verified
from atlas.whole_files import add_line, remove_left, sealed, unsealed, write_whole

# ---- files --------------------------------------------------------------------------------------


def test_a_file_is_replaced_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "made" / "x.json"
    write_whole(path, b"old")
    write_whole(path, b"new", flush=True)
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("refused", ["os.replace", "os.fsync"])
def test_a_disk_that_refuses_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    path = tmp_path / "x[1]*.json"
    write_whole(path, b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(refused, full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new", flush=True)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_writer_left_goes_and_a_living_one_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x[1].json"
    dead, living = (tmp_path / f"{path.name}.{number}.1.tmp" for number in (7, 8))
    other = tmp_path / "x1.json.7.1.tmp"
    for file in (dead, living, other):
        file.write_bytes(b"half")
    with living.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        write_whole(path, b"new")
        assert sorted(tmp_path.iterdir()) == sorted([path, living, other])
    remove_left(path)
    assert sorted(tmp_path.iterdir()) == sorted([path, other])


def test_many_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "x"
    failed: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for _ in range(40):
                write_whole(path, bytes([number]) * 9000)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        data = path.read_bytes() if path.exists() else b""
        assert len(set(data)) <= 1
        assert len(data) in (0, 9000)
    assert failed == []
    assert list(tmp_path.iterdir()) == [path]


# ---- lines --------------------------------------------------------------------------------------


def test_a_line_that_the_disk_cut_is_taken_back_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.jsonl"
    add_line(path, b'{"a": 1}')
    whole = os.write
    with monkeypatch.context() as patch:
        patch.setattr("os.write", lambda handle, data: whole(handle, data[:5]))
        with pytest.raises(OSError, match="No space left"):
            add_line(path, b'{"b": 2}')
    assert path.read_bytes() == b'{"a": 1}\n'


@pytest.mark.parametrize("size", [10, 70_000])
def test_a_line_that_a_kill_cut_goes_with_the_next_one(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b": "' + b"x" * size)
    add_line(path, b'{"c": 3}')
    assert path.read_bytes() == b'{"a": 1}\n{"c": 3}\n'


def test_a_line_that_only_lacks_its_end_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}')
    add_line(path, b'{"c": 3}')
    assert path.read_bytes() == b'{"a": 1}\n{"c": 3}\n'


def test_lines_of_many_writers_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"

    def write(number: int) -> None:
        for _ in range(30):
            add_line(path, json.dumps({"n": str(number) * 9000}).encode())

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = [json.loads(line)["n"] for line in path.read_bytes().splitlines()]
    assert len(rows) == 120
    assert all(len(row) == 9000 and len(set(row)) == 1 for row in rows)


# ---- checksums ----------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 1])
def test_sealed_json_comes_back_and_no_flipped_bit_changes_its_value(indent: int | None) -> None:
    values: dict[str, Any] = {"a": 0.1, "ö": ["x", None, True], "n": {"k": -3}}
    data = sealed(values, indent)
    assert data.isascii()
    assert unsealed(data) == values
    survived = 0
    for place in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            try:
                found = unsealed(bytes(damaged))
            except ValueError:
                continue
            found = {k: v for k, v in found.items() if k in values}  # the name of the seal may go
            assert found == values
            survived += 1
    assert survived < 0.1 * 8 * len(data)


@pytest.mark.parametrize("text", [b"[1]", b"5", b'{"k": 1}'])
def test_json_that_was_never_sealed_is_read(text: bytes) -> None:
    assert unsealed(text) == json.loads(text)


# ---- checked files ------------------------------------------------------------------------------


def test_no_flipped_bit_of_the_memory_makes_it_tell_another_checksum(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"good")
    digest = Verified(tmp_path / "m").checksum(file)
    memory = tmp_path / "m" / FILE_NAME
    whole = memory.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        memory.write_bytes(damaged)
        assert Verified(tmp_path / "m").checksum(file) == digest


def test_afresh_finds_what_changed_below_an_unchanged_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"good")
    monkeypatch.setattr("atlas.models.verified._stamp", lambda path: [4, 1, 1, 1])
    good = Verified(tmp_path / "m").checksum(file)
    file.write_bytes(b"evil")
    assert Verified(tmp_path / "m").checksum(file) == good
    evil = Verified(tmp_path / "m", afresh=True).checksum(file)
    assert evil != good
    assert Verified(tmp_path / "m").checksum(file) == evil  # and the memory is mended


def test_opening_the_memory_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    left = tmp_path / f"{FILE_NAME}.77.1.tmp"
    left.write_bytes(b"{")
    Verified(tmp_path)
    assert not left.exists()
