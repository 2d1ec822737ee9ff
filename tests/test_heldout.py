"""The ledger of held-out looks: what is written, where, and what is flagged."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from small import collection, opened, use_fakes

from atlas.cli import cli
from atlas.errors import AtlasError, CollectionError
from atlas.measure.asking import ask_once
from atlas.measure.cases import HELD_OUT
from atlas.measure.heldout import FILE_NAME, WATCHED, Ledger, Look
from atlas.measure.questions import load_questions
from atlas.measure.runs import Run, run_of
from atlas.records import Draft

HELD = """\
- id: H1
  question: how long is the lock under warranty
  relevant: [WARR-1]
- id: H2
  question: within how many days are claims made
  relevant: [WARR-2]
- id: H3
  question: who painted the sistine chapel
  expect: abstain
"""


class Quiet:
    """Progress that nobody looks at."""

    def stage(self, name: str, total: int) -> None: ...

    def step(self, count: int = 1) -> None: ...


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)
    declined = Draft(status="abstained", reason="the documents do not say")
    monkeypatch.setattr("atlas.assistant.draft", lambda *_: declined)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A collection with held-out questions that has never been looked at."""
    folder = collection(tmp_path / "c")
    (folder / HELD_OUT).mkdir()
    (folder / HELD_OUT / "core.yaml").write_text(HELD, encoding="utf-8")
    return folder


@pytest.fixture
def run(root: Path) -> Run:
    """The held-out questions, measured without a look being written down."""
    assistant = opened(root)
    questions = load_questions(assistant, HELD_OUT)
    return run_of(ask_once(questions, assistant, Quiet(), lambda line: None), questions, assistant)


def atlas(root: Path, *arguments: str) -> Result:
    name, *rest = arguments
    return CliRunner().invoke(cli, [name, "-C", str(root), *rest])


def ledger_of(root: Path) -> Ledger:
    return Ledger(root, root / ".atlas")


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def own_ledger(root: Path) -> Path:
    return root / HELD_OUT / FILE_NAME


def use_settings(root: Path, **values: object) -> None:
    """Change settings in atlas.yaml, as a person would."""
    path = root / "atlas.yaml"
    lines = [line for line in path.read_text().splitlines() if line.split(":")[0] not in values]
    lines += [f"{key}: {value}" for key, value in values.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def look(number: int = 1, **changes: Any) -> Look:
    values: dict[str, Any] = {
        "kind": "measure",
        "time": f"2026-03-{number:02}T10:00:00+0000",
        "questions": "abc",
        "asked": 3,
        "settings": {"k": 5},
        "models": {},
        "result": {"hit": 0.5},
    }
    return Look(**{**values, **changes})


# ---- a look ---------------------------------------------------------------------------------


def test_every_look_is_a_line_with_date_settings_models_and_result(root: Path) -> None:
    for _ in range(2):
        assert atlas(root, "measure", "--held-out").exit_code == 0
    first, second = entries(own_ledger(root))
    assert first["kind"] == "measure"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}", first["time"])
    assert first["asked"] == 3
    assert first["settings"]["k"] == 5
    assert first["settings"]["min_score"] == 0.02
    assert first["models"]["encoder"] == "fake-encoder fake-encoder-1"
    assert first["models"]["reranker"] == "fake-reranker fake-reranker-1"
    assert first["models"]["index"]
    assert set(first["result"]) == set(WATCHED)
    assert first["result"]["hit"] == 1.0
    assert first["result"]["declined"] == 1.0
    assert first["questions"] == second["questions"]


def test_development_questions_leave_no_look(root: Path) -> None:
    assert atlas(root, "measure").exit_code == 0
    assert atlas(root, "measure", "--sweep", "k=1,5").exit_code == 0
    assert not own_ledger(root).exists()
    assert ledger_of(root).looks() == ()


def test_one_held_out_question_is_a_look_as_well(root: Path) -> None:
    assert atlas(root, "measure", "--held-out", "--question", "H2").exit_code == 0
    (entry,) = entries(own_ledger(root))
    assert entry["asked"] == 1


def test_a_measure_without_scored_questions_is_null_in_the_ledger(root: Path) -> None:
    assert atlas(root, "measure", "--held-out", "--question", "H3").exit_code == 0
    (entry,) = entries(own_ledger(root))
    assert entry["result"]["recall"] is None
    assert entry["result"]["declined"] == 1.0


def test_a_sweep_with_held_out_columns_is_one_look(root: Path) -> None:
    assert atlas(root, "measure", "--held-out", "--sweep", "k=1,3,5").exit_code == 0
    (entry,) = entries(own_ledger(root))
    assert entry["kind"] == "sweep"
    assert "k" in entry["note"]


def test_an_experiment_writes_one_look_per_setup(root: Path, tmp_path: Path) -> None:
    grid = tmp_path / "grid.yaml"
    grid.write_text("retriever: [keyword, vector]\nk: [1, 2]\n")
    assert atlas(root, "experiment", str(grid), "--held-out").exit_code == 0
    found = entries(own_ledger(root))
    assert [entry["kind"] for entry in found] == ["experiment"] * 5
    tried = [(entry["settings"]["vector_weight"], entry["settings"]["k"]) for entry in found]
    assert tried == [(0.8, 5), (0.0, 1), (0.0, 2), (1.0, 1), (1.0, 2)]


@pytest.mark.parametrize(
    "arguments",
    [
        ["measure", "--held-out"],
        ["measure", "--held-out", "--json"],
        ["measure", "--held-out", "--question", "H1"],
        ["measure", "--held-out", "--sweep", "k=1,5"],
        ["experiment", "grid.yaml", "--held-out"],
    ],
)
def test_nothing_is_shown_where_the_look_cannot_be_written_down(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    (tmp_path / "grid.yaml").write_text("k: [1]\n")
    monkeypatch.chdir(tmp_path)
    own_ledger(root).mkdir()  # a folder stands where the file should
    result = atlas(root, *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"atlas: {own_ledger(root)}: the held-out look could not be written")


def test_nothing_is_exported_or_saved_without_the_look(root: Path, tmp_path: Path) -> None:
    own_ledger(root).mkdir()
    rows, trec, saved = tmp_path / "rows.jsonl", tmp_path / "trec", tmp_path / "run.json"
    exports = ["--export-ragas", str(rows), "--export-trec", str(trec), "--save", str(saved)]
    assert atlas(root, "measure", "--held-out", *exports).exit_code == 2
    assert not rows.exists()
    assert not trec.exists()
    assert not saved.exists()


def test_the_look_is_written_before_the_result_is_printed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        assert len(entries(own_ledger(root))) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr("atlas.cli.measuring.print_lines", broken)
    assert atlas(root, "measure", "--held-out").exit_code == 130
    assert len(entries(own_ledger(root))) == 1


# ---- where it is kept -----------------------------------------------------------------------


def test_a_read_only_collection_keeps_its_ledger_in_the_state_folder(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    monkeypatch.setenv("ATLAS_STATE", str(state))
    (root / HELD_OUT).chmod(0o555)
    try:
        assert atlas(root, "measure", "--held-out").exit_code == 0
    finally:
        (root / HELD_OUT).chmod(0o755)
    assert not own_ledger(root).exists()
    assert len(entries(state / f"heldout-{FILE_NAME}")) == 1


def test_a_read_only_ledger_file_is_left_alone(root: Path) -> None:
    ledger = ledger_of(root)
    ledger.append(look(1))
    own_ledger(root).chmod(0o444)
    assert ledger.path == root / ".atlas" / f"heldout-{FILE_NAME}"
    ledger.append(look(2))
    assert len(entries(own_ledger(root))) == 1
    assert [item.time[8:10] for item in ledger.looks()] == ["01", "02"]


def test_looks_of_both_places_are_put_in_the_order_of_time(root: Path) -> None:
    ledger = ledger_of(root)
    (root / HELD_OUT).chmod(0o555)
    ledger.append(look(2))
    (root / HELD_OUT).chmod(0o755)
    ledger.append(look(1))
    ledger.append(look(3))
    assert [item.time[8:10] for item in ledger.looks()] == ["01", "02", "03"]


# ---- a ledger that was tampered with --------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "measure", "time"',
        "[]",
        "5",
        '"measure"',
        '{"kind": "measure"}',
        '{"who": "me"}',
        b"\xff\xfe".decode("latin-1"),
    ],
)
def test_a_damaged_line_is_named_and_nothing_is_shown(root: Path, line: str) -> None:
    ledger_of(root).append(look())
    with own_ledger(root).open("a", encoding="latin-1") as file:
        file.write(f"\n{line}\n")
    result = atlas(root, "measure", "--held-out")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"{own_ledger(root)}:3: no entry of the held-out ledger" in result.stderr


@pytest.mark.parametrize("changes", [{"time": 5}, {"settings": "k"}, {"result": [1]}])
def test_an_entry_of_other_types_is_a_damaged_line(root: Path, changes: dict[str, Any]) -> None:
    ledger_of(root).append(look(1, **changes))
    ledger_of(root).append(look(2))
    with pytest.raises(CollectionError, match=r"ledger\.jsonl:1: no entry"):
        ledger_of(root).looks()


def test_a_line_that_was_cut_off_does_not_swallow_the_next_one(root: Path) -> None:
    ledger = ledger_of(root)
    ledger.append(look(1))
    own_ledger(root).write_bytes(own_ledger(root).read_bytes().rstrip(b"\n"))
    ledger.append(look(2))
    assert [item.time[8:10] for item in ledger.looks()] == ["01", "02"]


def test_a_look_keeps_every_field_on_its_way_through_the_file(root: Path) -> None:
    whole = look(1, flag="rose", note="H1: seen\nby “all”", models={"encoder": "é"})
    ledger_of(root).append(whole)
    assert ledger_of(root).looks() == (whole,)
    assert own_ledger(root).read_bytes().isascii()
    assert own_ledger(root).read_bytes().count(b"\n") == 1


def test_a_disk_that_refuses_is_said_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atlas.measure.heldout.os.write", lambda *_: 3)
    with pytest.raises(AtlasError, match=r"ledger\.jsonl: the held-out look could not be written"):
        ledger_of(root).append(look())


# ---- flags ----------------------------------------------------------------------------------


def worse(run: Run) -> Run:
    """The same run with everything lost."""
    rows = tuple(
        replace(row, scores={**row.scores, "hit": 0.0, "recall": 0.0}) if row.case.relevant else row
        for row in run.rows
    )
    return replace(run, rows=rows)


def with_k(run: Run, k: int) -> Run:
    return replace(run, settings={**run.settings, "k": k})


def test_a_change_of_settings_that_improves_is_flagged(root: Path, run: Run) -> None:
    ledger = ledger_of(root)
    assert ledger.record("measure", worse(with_k(run, 1))).flag == ""
    flagged = ledger.record("measure", run).flag
    assert flagged.startswith("k changed since the look of ")
    assert "hit 0.000 to 1.000" in flagged
    assert "recall 0.000 to 1.000" in flagged
    assert [item.flag for item in ledger.looks()] == ["", flagged]


def test_a_change_that_worsens_is_not_flagged(root: Path, run: Run) -> None:
    ledger = ledger_of(root)
    ledger.record("measure", run)
    assert ledger.record("measure", worse(with_k(run, 1))).flag == ""


def test_a_change_that_leaves_the_numbers_is_not_flagged(root: Path, run: Run) -> None:
    ledger = ledger_of(root)
    ledger.record("measure", run)
    assert ledger.record("measure", with_k(run, 7)).flag == ""


def test_better_numbers_under_the_same_settings_are_not_flagged(root: Path, run: Run) -> None:
    ledger = ledger_of(root)
    ledger.record("measure", worse(run))
    assert ledger.record("measure", run).flag == ""


def test_fewer_wrong_abstentions_are_an_improvement_and_more_are_not(root: Path, run: Run) -> None:
    def declining(each: float, k: int) -> Run:
        rows = tuple(
            replace(row, scores={**row.scores, "wrongly_declined": each})
            if row.case.expect == "answer"
            else row
            for row in run.rows
        )
        return with_k(replace(run, rows=rows), k)

    ledger = ledger_of(root)
    ledger.record("measure", declining(0.0, 1))
    assert ledger.record("measure", declining(1.0, 2)).flag == ""
    assert "wrongly_declined 1.000 to 0.000" in ledger.record("measure", declining(0.0, 3)).flag


def test_looks_at_other_questions_raise_no_flag(root: Path, run: Run) -> None:
    ledger = ledger_of(root)
    rows = [replace(row, case=replace(row.case, question=f"and {row.case.id}")) for row in run.rows]
    ledger.record("measure", worse(replace(with_k(run, 1), rows=tuple(rows))))
    assert ledger.record("measure", run).flag == ""


def test_a_question_added_between_two_looks_hides_no_change(root: Path, run: Run) -> None:
    ledger = ledger_of(root)
    last = run.rows[-1]
    ledger.record("measure", worse(replace(with_k(run, 1), rows=run.rows[:-1], questions="older")))
    lone = replace(with_k(run, 2), rows=(last,), questions="one")
    assert ledger.record("measure", lone).flag == ""
    assert "k changed" in ledger.record("measure", run).flag


def test_a_promotion_between_two_looks_hides_no_change(root: Path, run: Run) -> None:
    ledger = ledger_of(root)
    ledger.record("measure", worse(with_k(run, 1)))
    ledger.append(look(30, kind="promote", questions="", settings={}, result={}, time="2999"))
    assert "k changed" in ledger.record("measure", run).flag


def test_the_command_flags_on_stderr_and_in_the_ledger(root: Path) -> None:
    use_settings(root, min_score=0.9)
    assert atlas(root, "measure", "--held-out").exit_code == 0
    use_settings(root, min_score=0.02)
    result = atlas(root, "measure", "--held-out")
    assert result.exit_code == 0
    (note,) = result.stderr.splitlines()
    assert note.startswith("note: min_score changed since the look of ")
    assert "no longer held out" in note
    assert "changed since" not in result.stdout
    assert entries(own_ledger(root))[1]["flag"] in note


def test_the_command_is_silent_where_a_change_made_it_worse(root: Path) -> None:
    assert atlas(root, "measure", "--held-out").exit_code == 0
    use_settings(root, min_score=0.9)
    assert atlas(root, "measure", "--held-out").stderr == ""
    before, after = entries(own_ledger(root))
    assert (before["flag"], after["flag"]) == ("", "")
    assert after["result"]["hit"] < before["result"]["hit"]


def test_a_word_that_is_added_to_the_glossary_after_a_look_is_a_change(root: Path) -> None:
    """The glossary changes how questions are read, so it can be tuned like any other setting."""
    held = HELD.replace("how long is the lock under warranty", "padlock covered")
    (root / HELD_OUT / "core.yaml").write_text(held, encoding="utf-8")
    use_settings(root, min_score=0.1)
    assert atlas(root, "measure", "--held-out").exit_code == 0
    use_settings(root, glossary="{padlock: lock, covered: under warranty}")
    result = atlas(root, "measure", "--held-out")
    before, after = entries(own_ledger(root))
    assert after["result"]["hit"] > before["result"]["hit"]
    assert "note: glossary changed since the look of " in result.stderr


@pytest.mark.parametrize("name", ["sweep", "experiment"])
def test_a_flag_is_shown_whatever_shows_the_numbers(root: Path, tmp_path: Path, name: str) -> None:
    grid = tmp_path / "grid.yaml"
    grid.write_text("k: [2]\n")
    commands = {"sweep": ["measure", "--sweep", "k=1,5"], "experiment": ["experiment", str(grid)]}
    use_settings(root, min_score=0.9)
    assert atlas(root, "measure", "--held-out").exit_code == 0
    use_settings(root, min_score=0.02)
    result = atlas(root, *commands[name], "--held-out")
    assert result.exit_code == 0
    assert entries(own_ledger(root))[1]["flag"].startswith("min_score changed")
    assert "note: min_score changed since the look of " in result.stderr


# ---- no setting is chosen on held-out numbers -----------------------------------------------


@pytest.mark.parametrize("value", ["0", "0.02", "0.5"])
def test_min_score_is_never_tried_on_held_out_questions(root: Path, value: str) -> None:
    result = atlas(root, "measure", "--held-out", "--min-score", value)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "would choose a setting on held-out questions" in result.stderr
    result = atlas(root, "measure", "--held-out", "--min-score", value, "--sweep", "k=1,5")
    assert result.exit_code == 2
    assert not own_ledger(root).exists()


def test_the_mark_of_a_sweep_is_set_by_development_questions_alone(root: Path) -> None:
    held = "- {id: H1, question: where do people file claims, relevant: [WARR-2]}\n"
    (root / HELD_OUT / "core.yaml").write_text(held, encoding="utf-8")
    arguments = ["measure", "--sweep", "min_score=0:0.4:0.02", "--json"]
    alone = json.loads(atlas(root, *arguments).stdout)
    both = json.loads(atlas(root, *arguments, "--held-out").stdout)
    assert "held-out" not in alone
    assert alone["falls_at"] == both["falls_at"]
    assert alone["development"] == both["development"]
    recalls = [step["summary"]["recall"]["mean"] for step in both["held-out"]]
    values = [step["value"] for step in both["held-out"]]
    assert recalls[0] == 1.0
    assert values[recalls.index(0.0)] < both["falls_at"]
