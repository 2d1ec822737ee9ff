"""A run is put together, saved whole and read back; what is no run is refused in one line."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small import CASES, SETTINGS, collection, opened, use_fakes

from atlas.assistant import Assistant
from atlas.collection import Collection
from atlas.errors import AtlasError, UsageError
from atlas.ingest import Silent
from atlas.measure.asking import ask_all
from atlas.measure.misses import misses
from atlas.measure.questions import load_questions
from atlas.measure.rows import NAMES
from atlas.measure.runs import (
    SCHEMA,
    Run,
    load_run,
    read_whole,
    run_json,
    run_of,
    run_path,
    save_run,
    settings_of,
    write_whole,
)
from atlas.settings import with_value

MORE = "- {id: S3, question: what is new, kind: table, reader: boss, relevant: [MANUAL]}\n"


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)


@pytest.fixture
def assistant(tmp_path: Path) -> Assistant:
    return opened(collection(tmp_path / "c", cases=CASES + MORE))


def made(assistant: Assistant) -> Run:
    questions = load_questions(assistant)
    return run_of(ask_all(questions, assistant, Silent()), questions, assistant)


def printed(assistant: Assistant) -> dict[str, Any]:
    questions = load_questions(assistant)
    run = run_of(ask_all(questions, assistant, Silent()), questions, assistant)
    return run_json(run, misses(run.rows, questions, assistant))


# ---- what a run says ------------------------------------------------------------------------


def test_a_run_says_what_was_measured_and_on_what(assistant: Assistant) -> None:
    run = made(assistant)
    questions = load_questions(assistant)
    head = run.head()
    assert (head["schema"], head["set"], head["sample"], head["k"]) == (
        SCHEMA, "development", False, 5,
    )  # fmt: skip
    assert head["fingerprints"]["questions"] == questions.fingerprint()
    assert head["fingerprints"]["collection"] == questions.collection_fingerprint()
    assert head["fingerprints"]["encoder"] == "fake-encoder fake-encoder-1"
    assert (run.failed, run.looks, len(run.rows)) == (1, 2 * 3, 3)


def test_the_summary_holds_every_measure_and_the_leak_rate(assistant: Assistant) -> None:
    summary = made(assistant).summary
    assert tuple(summary) == (*NAMES, "leak_rate")
    assert summary["hit"].counted == "scored 1 of 3, failed 1"
    assert summary["leak_rate"].scored == 6


def test_the_settings_of_a_run_are_those_that_can_change_a_result(assistant: Assistant) -> None:
    values = settings_of(assistant)
    assert {"k", "min_score", "depth", "block_size", "encoder", "reranker"} <= set(values)
    assert not {"title", "sample"} & set(values)
    assistant.settings = with_value(assistant.settings, "test", "k", 3)
    assert settings_of(assistant) == values | {"k": 3}


@pytest.mark.parametrize(
    "line", ["glossary: {guarantee: warranty}", "products: {C-3: [town bike], T-7: []}"]
)
def test_words_that_settings_add_to_questions_can_change_a_result(
    tmp_path: Path, line: str
) -> None:
    plain = SETTINGS.replace("products:\n  C-3: [city bike]\n  T-7: [trekking bike]\n", "")
    before = settings_of(opened(collection(tmp_path / "a", settings=plain)))
    after = settings_of(opened(collection(tmp_path / "b", settings=f"{plain}{line}\n")))
    assert before != after


def test_json_has_the_keys_that_programs_rely_on(assistant: Assistant) -> None:
    values = json.loads(json.dumps(printed(assistant), allow_nan=False))
    keys = ("set", "settings", "k", "questions", "summary", "by_kind", "misses")
    assert set(keys) <= set(values)
    assert [row["id"] for row in values["questions"]] == ["S1", "S2", "S3"]
    fields = {"mean", "low", "high", "scored", "total", "failed"}
    assert all(fields <= set(value) for value in values["summary"].values())
    assert set(values["by_kind"]) == {"no kind", "table"}
    assert values["by_kind"]["table"]["hit"]["failed"] == 1
    assert values["summary"]["evidence"]["mean"] == 1
    assert [miss["id"] for miss in values["misses"]] == ["S3"]
    assert values["misses"][0]["stage"] == "failed"
    assert (values["looks"], values["leaks"], values["failed"]) == (6, [], 1)


def test_a_sample_says_that_it_is_one(tmp_path: Path) -> None:
    root = collection(tmp_path / "c")
    assert made(Assistant.of(Collection.open(root, sample=True))).head()["sample"] is True


# ---- saving and loading ---------------------------------------------------------------------


def test_a_saved_run_comes_back_as_it_was(assistant: Assistant, tmp_path: Path) -> None:
    run = made(assistant)
    path = run_path("before", tmp_path)
    save_run(run, path)
    assert path == tmp_path / "runs" / "before.json"
    saved = load_run("before", tmp_path)
    assert saved.name == "before"
    assert dict(saved.head) == json.loads(json.dumps(run.head()))
    assert list(saved.questions) == [row.as_json() for row in run.rows]
    assert saved.questions[1]["recall"] is None
    assert saved.questions[1]["unscored"]["recall"] == "the question has no relevant block"


def test_a_name_that_ends_in_json_is_a_path_of_its_own(
    assistant: Assistant, tmp_path: Path
) -> None:
    path = tmp_path / "elsewhere" / "my run.json"
    save_run(made(assistant), run_path(str(path), tmp_path / "state"))
    assert path.exists()
    assert len(load_run(str(path), tmp_path / "state").questions) == 3


def test_saving_again_replaces_the_run_and_leaves_nothing_beside_it(
    assistant: Assistant, tmp_path: Path
) -> None:
    run = made(assistant)
    path = run_path("x", tmp_path)
    save_run(run, path)
    save_run(replace(run, set="held-out"), path)
    assert load_run("x", tmp_path).head["set"] == "held-out"
    assert [item.name for item in path.parent.iterdir()] == ["x.json"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a b", ".hidden", "-x", "é/"])
def test_a_name_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no name for a run; use letters, digits"):
        run_path(name, tmp_path)


def test_a_run_that_is_not_there_is_answered_with_those_that_are(
    assistant: Assistant, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"x\.json: no such run; save one with `measure --save "):
        load_run("x", tmp_path)
    run = made(assistant)
    for name in ("second", "first"):
        save_run(run, run_path(name, tmp_path))
    with pytest.raises(UsageError, match=r"no such run; .*; saved are: first, second$"):
        load_run("x", tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"\xff\xfe",
        b'{"schema": "atlas-run-0", "questions": []}',
        b'{"questions": []}',
        b'{"schema": "atlas-run-1"}',
        b'{"schema": "atlas-run-1", "questions": 7}',
        b'{"schema": "atlas-run-1", "questions": [7], "fingerprints": {}, "settings": {}}',
        b'{"schema": "atlas-run-1", "questions": []}',
    ],
)
def test_a_damaged_file_is_named_and_is_no_bug(content: bytes, tmp_path: Path) -> None:
    path = run_path("x", tmp_path)
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"x\.json: ") as refused:
        load_run("x", tmp_path)
    assert "\n" not in str(refused.value)


def test_a_file_cut_short_is_named(assistant: Assistant, tmp_path: Path) -> None:
    path = run_path("x", tmp_path)
    save_run(made(assistant), path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UsageError, match=r"x\.json: cannot be read as a run"):
        load_run("x", tmp_path)


def test_a_folder_that_refuses_gives_one_line_and_keeps_the_old_run(
    assistant: Assistant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(assistant)
    path = run_path("x", tmp_path)
    save_run(run, path)
    before = path.read_bytes()

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(AtlasError, match=r"x\.json: could not be written \(Read-only") as refused:
        save_run(replace(run, set="held-out"), path)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == ["x.json"]


@pytest.mark.parametrize("place", ["file/x.json", "folder.json"])
def test_a_place_where_nothing_can_be_written_gives_one_line(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    (tmp_path / "folder.json" / "inside").mkdir(parents=True)
    with pytest.raises(AtlasError, match=r"\.json: could not be written \("):
        write_whole(tmp_path / place, {})
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.json"]


def test_text_of_any_script_survives(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    values = {"id": "größe \u2028 自転車"}
    write_whole(path, values)
    assert path.read_bytes().isascii()
    assert read_whole(path) == values


@pytest.mark.parametrize("old", [b'"k": 5', b'"q": [', b'"checksum": "'])
def test_a_changed_letter_of_a_saved_run_is_named(old: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_whole(path, {"k": 5, "q": [0.1, None, "x"]})
    data = path.read_bytes()
    place = data.index(old) + len(old) - 1
    for bit in range(8):
        damaged = bytearray(data)
        damaged[place + (old == b'"checksum": "')] ^= 1 << bit
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"checksum|column|codec"):
            read_whole(path)


def test_a_run_that_was_saved_without_a_checksum_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"k": 5}', encoding="utf-8")
    assert read_whole(tmp_path / "x.json") == {"k": 5}
