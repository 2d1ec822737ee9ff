"""Traces are whole JSON lines that survive a kill, and are found again by their id."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.errors import AtlasError, UsageError
from atlas.records import Answer, Trace
from atlas.trace import FILE_NAME, SCHEMA, escaped, line, load, make_trace, past, save


def trace(name: str = "", **more: Any) -> Trace:
    answer = Answer(status="abstained", text="", citations=(), choices=(), reason="why", removed=())
    made = make_trace(question="q", scope={"reader": None}, answer=answer, **more)
    return Trace(values={**made.values, "id": name}) if name else made


def test_a_trace_is_one_line_that_reads_back_as_it_was() -> None:
    made = trace(note="line\nbreak\r\u2028\u2029 “quotes” 電池 \U0001f6b2")
    text = line(made)
    assert "\n" not in text
    assert "\r" not in text
    assert json.loads(text) == made.values


def test_a_trace_has_the_keys_that_programs_rely_on() -> None:
    values = trace().values
    assert values["schema"] == SCHEMA
    assert {
        "id", "question", "scope", "status", "answer", "citations", "context", "dropped", "nearest",
    } <= set(values)  # fmt: skip


def test_ids_differ() -> None:
    assert len({trace().id for _ in range(50)}) == 50


def test_a_score_that_is_no_number_is_a_bug_and_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        line(trace(score=float("nan")))


@given(st.text())
def test_escaped_json_keeps_its_value_and_steers_no_terminal(text: str) -> None:
    dumped = json.dumps({"key": text}, ensure_ascii=False)
    safe = escaped(dumped)
    assert json.loads(safe) == {"key": text}
    assert not [c for c in safe if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]


@pytest.mark.parametrize(
    "character",
    [
        "\x1b",
        "\x9b",
        "\x7f",
        "\u202e",
        "\u2066",
        "\u200b",
        "\u200f",
        "\ufeff",
        "\xad",
        "\U000e0041",
    ],
)
def test_steering_characters_are_written_as_escapes(character: str) -> None:
    made = trace(note=f"a{character}b")
    assert character not in line(made)
    assert json.loads(line(made))["note"] == f"a{character}b"


# ---- the file -------------------------------------------------------------------------------


def test_traces_are_appended_and_read_back_in_order(tmp_path: Path) -> None:
    made = [trace() for _ in range(3)]
    for item in made:
        save(item, tmp_path)
    assert [item.values for item in past(tmp_path)] == [item.values for item in made]


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    save(trace(), tmp_path)
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o077 == 0


def test_a_line_cut_short_costs_nothing_but_itself(tmp_path: Path) -> None:
    first, second, third = trace(), trace(), trace()
    save(first, tmp_path)
    save(second, tmp_path)
    path = tmp_path / FILE_NAME
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    assert [item.id for item in past(tmp_path)] == [first.id]
    save(third, tmp_path)
    assert [item.id for item in past(tmp_path)] == [first.id, third.id]


def test_lines_of_other_things_are_passed_over(tmp_path: Path) -> None:
    good = trace()
    rubbish = [b"", b"null", b"[]", b'{"schema": "other"}', b"\xff\xfe", b'"text"', b'{"id": 1}']
    rubbish.append(json.dumps({"schema": SCHEMA, "id": 7}).encode())
    (tmp_path / FILE_NAME).write_bytes(b"\n".join([*rubbish, line(good).encode(), b""]))
    assert [item.id for item in past(tmp_path)] == [good.id]


def test_a_killed_writer_leaves_whole_lines(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from atlas.records import Trace\n"
        "from atlas.trace import SCHEMA, save\n"
        "number = 0\n"
        "while True:\n"
        "    values = {'schema': SCHEMA, 'id': f'{number:012x}', 'text': 'x' * 20_000}\n"
        "    save(Trace(values=values), Path(sys.argv[1]))\n"
        "    number += 1\n"
        "    if number == 20: print('running', flush=True)\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE
    )
    assert writer.stdout
    with writer.stdout:
        assert writer.stdout.readline() == b"running\n"
        writer.kill()
        writer.wait()
    ids = [item.id for item in past(tmp_path)]
    assert len(ids) >= 20
    assert ids == [f"{number:012x}" for number in range(len(ids))]
    save(trace("abc"), tmp_path)
    assert load("abc", tmp_path).id == "abc"


def test_a_disk_that_refuses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(AtlasError, match=r"traces\.jsonl: .*No space left on device"):
        save(trace(), tmp_path)


# ---- by id ----------------------------------------------------------------------------------


@pytest.fixture
def three(tmp_path: Path) -> Path:
    for name in ("ab12", "ab34", "cd56"):
        save(trace(name), tmp_path)
    return tmp_path


@pytest.mark.parametrize(("wanted", "found"), [("c", "cd56"), ("ab1", "ab12"), ("ab34", "ab34")])
def test_a_trace_is_found_by_the_beginning_of_its_id(three: Path, wanted: str, found: str) -> None:
    assert load(wanted, three).id == found


def test_last_is_the_newest(three: Path) -> None:
    assert load("last", three).id == "cd56"


def test_a_beginning_that_several_share_is_refused(three: Path) -> None:
    with pytest.raises(UsageError, match="several traces begin with ab; give more digits"):
        load("ab", three)


def test_a_whole_id_is_found_even_where_another_begins_with_it(three: Path) -> None:
    save(trace("ab12ff"), three)
    assert load("ab12", three).id == "ab12"
    save(trace("cd"), three)
    assert load("cd", three).id == "cd"


@pytest.mark.parametrize("wanted", ["", "xyz", "ab-1", "../x", "g1", "LAST", "a" * 33, "a\x1b"])
def test_what_is_no_id_is_refused_without_reading(tmp_path: Path, wanted: str) -> None:
    with pytest.raises(UsageError, match="is no trace id; expected its first hex digits"):
        load(wanted, tmp_path)


@pytest.mark.parametrize("wanted", ["last", "ff"])
def test_without_any_trace_none_is_found(tmp_path: Path, wanted: str) -> None:
    with pytest.raises(UsageError, match=f"no trace {wanted}; "):
        load(wanted, tmp_path)
