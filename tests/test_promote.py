"""Promoting: a held-out question becomes a development case, and nothing else changes."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from small import collection, use_fakes

from atlas.cli import cli
from atlas.errors import AtlasError, CollectionError, UsageError
from atlas.measure.cases import DEVELOPMENT, HELD_OUT, Case, load_cases
from atlas.measure.heldout import FILE_NAME as LEDGER
from atlas.measure.heldout import Ledger, Look
from atlas.measure.promote import FILE_NAME, Promoted, promote
from atlas.whole_files import write_whole

DAY = date(2026, 4, 1)
REASON = "a customer asked it in public"
HELD = """\
# Held-out questions about warranties.

# About claims.
- id: H1
  question: within how many days are claims made   # asked often
  relevant: [WARR-2]

# About locks,
# which are parts as well.
- id: H2
  question: how long is the lock under warranty
  kind: buried detail
  date: 2026-03-01
  relevant:
    - WARR-1   # the term
  evidence:
    - The lock is under warranty for 5 years.
  facts: [["5 years", "five years"]]
  reject: ['3']
  reference: |
    Five years.

    # This is no comment but a line of the answer.
  note: >-
    seen
    once

# The last one.
- id: H3
  question: who painted the sistine chapel
  expect: abstain
# Here ends the file.
"""
MORE = "- {id: M1, question: what does E-417 mean, relevant: [MANUAL-2]}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = collection(tmp_path / "c")
    (folder / HELD_OUT).mkdir()
    (folder / HELD_OUT / "core.yaml").write_text(HELD, encoding="utf-8")
    (folder / HELD_OUT / "more.yaml").write_text(MORE, encoding="utf-8")
    return folder


def moved(root: Path, name: str, reason: str = REASON) -> Promoted:
    return promote(name, reason, root, root / ".atlas", DAY)


def held(root: Path, name: str = "core.yaml") -> str:
    return (root / HELD_OUT / name).read_text(encoding="utf-8")


def ids(root: Path, folder: str) -> list[str]:
    return [case.id for case in load_cases(root, folder)]


def case_of(root: Path, folder: str, name: str) -> Case:
    return next(case for case in load_cases(root, folder) if case.id == name)


def files(root: Path) -> dict[str, str]:
    """Every case file by its path."""
    paths = (*(root / HELD_OUT).glob("*"), *(root / DEVELOPMENT).glob("*"))
    return {str(path): path.read_text(encoding="utf-8") for path in paths}


def atlas(root: Path, *arguments: str) -> Result:
    name, *rest = arguments
    return CliRunner().invoke(cli, [name, "-C", str(root), *rest])


# ---- what is moved --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["H1", "H2", "H3"])
def test_the_case_moves_whole_and_its_neighbours_stay(root: Path, name: str) -> None:
    before = {case.id: case for case in load_cases(root, HELD_OUT)}
    moved(root, name)
    assert ids(root, HELD_OUT) == [other for other in before if other != name]
    assert ids(root, DEVELOPMENT) == ["S1", "S2", name]
    for case in load_cases(root, HELD_OUT):
        assert replace(case, where="") == replace(before[case.id], where="")
    arrived = case_of(root, DEVELOPMENT, name)
    assert replace(arrived, where="", note="") == replace(before[name], where="", note="")


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("H1", ("- id: H1", "\n# About locks")),
        ("H2", ("- id: H2", "\n# The last one.")),
        ("H3", ("- id: H3", "# Here ends the file.")),
    ],
)
def test_not_a_letter_of_the_rest_changes(root: Path, name: str, gone: tuple[str, str]) -> None:
    moved(root, name)
    first, last = HELD.index(gone[0]), HELD.index(gone[1])
    assert held(root) == HELD[:first] + HELD[last:]
    assert held(root, "more.yaml") == MORE


def test_several_questions_move_one_after_the_other(root: Path) -> None:
    for name in ("H2", "M1", "H1", "H3"):
        moved(root, name)
    assert ids(root, HELD_OUT) == []
    assert ids(root, DEVELOPMENT) == ["S1", "S2", "H2", "M1", "H1", "H3"]
    comments = [line for line in HELD.splitlines() if line.startswith("#")]
    assert [line for line in held(root).splitlines() if line] == comments
    assert held(root, "more.yaml") == ""


def test_the_right_file_of_several_is_changed(root: Path) -> None:
    done = moved(root, "M1")
    assert done.source == root / HELD_OUT / "more.yaml"
    assert done.target == root / DEVELOPMENT / FILE_NAME
    assert held(root) == HELD


def test_values_over_several_lines_arrive_as_they_were(root: Path) -> None:
    moved(root, "H2")
    arrived = case_of(root, DEVELOPMENT, "H2")
    assert arrived.reference == "Five years.\n\n# This is no comment but a line of the answer."
    assert arrived.facts == (("5 years", "five years"),)
    assert arrived.reject == ("3",)
    assert arrived.date == date(2026, 3, 1)


@pytest.mark.parametrize(
    "text",
    [
        "- {id: H9, question: what is it, expect: abstain}\n",
        "- {id: H9, question: what is it, expect: abstain}",
        "  - id: H9\n    question: what is it\n    expect: abstain\n",
        "- question: what is it\n  expect: abstain\n  id: H9\n",
        "-\n  id: H9\n  question: what is it\n  expect: abstain\n",
        "- # a remark\n  id: H9\n  question: what is it\n  expect: abstain\n",
        "[{id: H9, question: what is it, expect: abstain}]\n",
        "\ufeff- id: H9\n  question: what is it\n  expect: abstain\n",
        "- id: H9\r\n  question: what is it\r\n  expect: abstain\r\n",
        '- id: H9\n  question: "was kostet’s – für 日本 🚲"\n  expect: abstain\n',
    ],
)
def test_however_it_is_written_it_moves_or_nothing_does(root: Path, text: str) -> None:
    """A case that cannot be cut out cleanly is refused, and then every file is as it was."""
    other = "- id: H10\n  question: who sells it\n  expect: abstain\n"
    (root / HELD_OUT / "more.yaml").write_text(text, encoding="utf-8")
    (root / HELD_OUT / "other.yaml").write_text(other, encoding="utf-8")
    before = files(root)
    question = case_of(root, HELD_OUT, "H9").question
    try:
        moved(root, "H9")
    except UsageError:
        assert files(root) == before
    else:
        assert case_of(root, DEVELOPMENT, "H9").question == question
        assert ids(root, HELD_OUT) == ["H1", "H2", "H3", "H10"]


def test_two_cases_on_one_line_are_not_torn_apart(root: Path) -> None:
    line = "[{id: A1, question: one, expect: abstain}, {id: A2, question: two, expect: abstain}]\n"
    (root / HELD_OUT / "more.yaml").write_text(line, encoding="utf-8")
    before = files(root)
    try:
        moved(root, "A1")
    except UsageError:
        assert files(root) == before
    else:
        assert ids(root, HELD_OUT) == ["H1", "H2", "H3", "A2"]


def test_a_collection_without_development_cases_gets_its_first(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", cases=None)
    (root / HELD_OUT).mkdir()
    (root / HELD_OUT / "core.yaml").write_text(HELD, encoding="utf-8")
    moved(root, "H1")
    assert ids(root, DEVELOPMENT) == ["H1"]
    assert ids(root, HELD_OUT) == ["H2", "H3"]


# ---- the reason -----------------------------------------------------------------------------


def test_the_reason_stands_in_the_note_with_the_day(root: Path) -> None:
    moved(root, "H1", "  shown in\na talk ")
    expected = "Promoted from the held-out set on 2026-04-01: shown in a talk"
    assert case_of(root, DEVELOPMENT, "H1").note == expected


def test_the_reason_is_appended_to_a_note(root: Path) -> None:
    moved(root, "H2")
    note = case_of(root, DEVELOPMENT, "H2").note
    assert note == f"seen once Promoted from the held-out set on 2026-04-01: {REASON}"


def test_the_ledger_says_what_was_promoted_and_why(root: Path) -> None:
    moved(root, "H1")
    (line,) = (root / HELD_OUT / LEDGER).read_text().splitlines()
    entry = json.loads(line)
    assert entry["kind"] == "promote"
    assert entry["note"] == f"H1: {REASON}"


def test_fresh_questions_owed_are_counted(root: Path) -> None:
    Ledger(root, root / ".atlas").append(
        Look(
            kind="measure", time="2026-01-01", questions="", asked=3, settings={}, models={},
            result={},
        )
    )  # fmt: skip
    assert [moved(root, name).owed for name in ("H3", "M1")] == [1, 2]


# ---- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["H4", "h1", "H", "S1", ""])
def test_an_id_that_is_not_held_out_is_refused(root: Path, name: str) -> None:
    before = files(root)
    with pytest.raises(UsageError, match="no held-out question") as caught:
        moved(root, name)
    assert "H1, H2, H3, M1" in str(caught.value)
    assert files(root) == before


@pytest.mark.parametrize("reason", ["", " ", "\n\t"])
def test_an_empty_reason_is_refused(root: Path, reason: str) -> None:
    before = files(root)
    with pytest.raises(UsageError, match="--reason: say why"):
        moved(root, "H1", reason)
    assert files(root) == before


def test_nothing_moves_where_it_cannot_be_recorded(root: Path) -> None:
    before = files(root)
    (root / HELD_OUT / LEDGER).mkdir()
    with pytest.raises(AtlasError, match="could not be written down"):
        moved(root, "H1")
    (root / HELD_OUT / LEDGER).rmdir()
    assert files(root) == before


def test_nothing_moves_while_the_ledger_is_damaged(root: Path) -> None:
    (root / HELD_OUT / LEDGER).write_text("{\n")
    before = files(root)
    with pytest.raises(AtlasError, match=r"ledger\.jsonl:1: no entry"):
        moved(root, "H1")
    assert files(root) == before


def test_a_question_is_never_lost_where_the_disk_refuses(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: object, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(AtlasError, match="could not be written"):
        moved(root, "H1")
    monkeypatch.undo()
    assert ids(root, HELD_OUT) == ["H1", "H2", "H3", "M1"]
    assert ids(root, DEVELOPMENT) == ["S1", "S2"]


def test_a_promotion_that_was_killed_is_finished_by_the_same_command(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path, data: bytes) -> None:
        if path.name == "core.yaml":
            raise KeyboardInterrupt
        write_whole(path, data)

    with monkeypatch.context() as patch:
        patch.setattr("atlas.measure.promote.write_whole", killed)
        with pytest.raises(KeyboardInterrupt):
            moved(root, "H1")
    with pytest.raises(CollectionError, match=r"H1 also stands at .*: its promotion was interr"):
        load_cases(root)
    assert moved(root, "H1").owed == 1
    assert ids(root, HELD_OUT) == ["H2", "H3", "M1"]
    assert ids(root, DEVELOPMENT) == ["S1", "S2", "H1"]
    assert (root / HELD_OUT / LEDGER).read_bytes().count(b"\n") == 1


# ---- the command ----------------------------------------------------------------------------


def test_the_command_says_what_moved_and_what_is_owed(root: Path) -> None:
    result = atlas(root, "promote", "H2", "--reason", REASON)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"H2 moved from {root / HELD_OUT / 'core.yaml'} to {root / DEVELOPMENT / FILE_NAME}",
        "fresh held-out questions owed: 1",
    ]
    note = yaml.safe_load((root / DEVELOPMENT / FILE_NAME).read_text())[0]["note"]
    assert note.endswith(f"on {date.today().isoformat()}: {REASON}")


def test_the_command_refuses_without_a_reason_or_a_known_id(root: Path) -> None:
    assert "Missing option '--reason'" in atlas(root, "promote", "H2").stderr
    for arguments in (["H2", "--reason", " "], ["H22", "--reason", REASON]):
        result = atlas(root, "promote", *arguments)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert result.stderr.startswith("atlas: ")


def test_a_promoted_question_is_measured_with_the_development_ones(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch)
    assert atlas(root, "promote", "H1", "--reason", REASON).exit_code == 0
    for arguments, expected in (
        (["measure", "--json"], ["S1", "S2", "H1"]),
        (["measure", "--json", "--held-out"], ["H2", "H3", "M1"]),
    ):
        questions = json.loads(atlas(root, *arguments).stdout)["questions"]
        assert [question["id"] for question in questions] == expected
