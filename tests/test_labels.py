"""Label files are read whole or refused with file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from atlas.errors import CollectionError, NothingToMeasure, UsageError
from atlas.measure.labels import in_first_half, load_labels

YAML = """\
- id: A1
  kind: right verbatim
  question: How long is the battery under warranty?
  sources:
    - The battery is under warranty for 3 years.
  answer: 3 years
  label: correct
- question: And the lock?
  sources: [The lock is under warranty for 5 years.]
  answer: Two years.
  label: wrong
  raters: [1, 2.5]
"""
ROW: dict[str, Any] = {"question": "q", "sources": ["s"], "answer": "a", "label": "wrong"}


def written(folder: Path, text: str, name: str = "labels.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


def test_yaml_rows_are_read_with_their_lines(tmp_path: Path) -> None:
    first, second = load_labels(written(tmp_path, YAML))
    assert (first.id, first.kind, first.label) == ("A1", "right verbatim", "correct")
    assert first.sources == ("The battery is under warranty for 3 years.",)
    assert first.where.endswith("labels.yaml:1")
    assert second.where.endswith("labels.yaml:8")
    assert second.raters == (1.0, 2.5)


def test_a_missing_id_is_the_files_name_and_the_rows_number(tmp_path: Path) -> None:
    assert [row.id for row in load_labels(written(tmp_path, YAML))] == ["A1", "labels-2"]


def test_json_lines_are_split_at_line_feeds_alone(tmp_path: Path) -> None:
    odd = {**ROW, "answer": "one\u2028two\x85three", "history": ["hello"]}
    text = "\ufeff" + json.dumps(odd, ensure_ascii=False) + "\r\n\n" + json.dumps(ROW) + "\n"
    first, second = load_labels(written(tmp_path, text, "x.jsonl"))
    assert first.answer == "one\u2028two\x85three"
    assert first.history == ("hello",)
    assert second.where.endswith("x.jsonl:3")


def test_a_folder_is_read_in_order_of_its_names_and_other_files_are_left_alone(
    tmp_path: Path,
) -> None:
    written(tmp_path, json.dumps({**ROW, "id": "B"}), "b.jsonl")
    written(tmp_path, YAML, "a.yaml")
    written(tmp_path, "# how it was done", "RUBRIC.md")
    assert [row.id for row in load_labels(tmp_path)] == ["A1", "a-2", "B"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labell": "x"}, "did you mean 'label'"),
        ({"label": "right"}, "expected correct or wrong"),
        ({"label": None}, "expected correct or wrong"),
        ({"label": ["wrong"]}, "expected correct or wrong"),
        ({"answer": " "}, "answer of label 1 is 'empty'"),
        ({"question": None}, "question of label 1 is 'missing'"),
        ({"answer": 3}, "quote numbers"),
        ({"sources": [1]}, "expected a list of texts"),
        ({"sources": None}, "expected a list of texts"),
        ({"raters": ["good"]}, "finite numbers"),
        ({"raters": [True]}, "finite numbers"),
        ({"answer": "\ud800"}, "lone surrogate"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    text = json.dumps({**ROW, "id": "first"}) + "\n" + json.dumps({**ROW, **change})
    with pytest.raises(CollectionError) as caught:
        load_labels(written(tmp_path, text, "x.jsonl"))
    assert "x.jsonl:2: " in str(caught.value)
    assert said.replace("label 1", "label 2") in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"label": NaN}', "the value NaN"),
        ('{"label": 1, "label": 2}', "'label' stands twice"),
        ("{", "not valid JSON"),
        ("[1]", "no mapping"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_broken_json_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CollectionError) as caught:
        load_labels(written(tmp_path, "\n" + text, "x.jsonl"))
    assert "x.jsonl:2: " in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- id: A\n  id: B\n", ":2: the key 'id' stands twice"),
        ("question: what\n", ":1: expected a list"),
        (YAML.replace("label: wrong", "label: maybe"), ":11: label of label 2 is 'maybe'"),
    ],
)
def test_broken_yaml_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CollectionError, match=said):
        load_labels(written(tmp_path, text))


def test_an_id_that_stands_twice_is_refused_naming_both_places(tmp_path: Path) -> None:
    written(tmp_path, YAML, "a.yaml")
    written(tmp_path, json.dumps({**ROW, "id": "A1"}), "b.jsonl")
    with pytest.raises(
        CollectionError, match=r"b\.jsonl:1: the id 'A1' also stands at .*a\.yaml:1"
    ):
        load_labels(tmp_path)


def test_a_file_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(json.dumps(ROW).encode() + b"\n\xff\n")
    with pytest.raises(CollectionError, match=r"x\.jsonl:2: not UTF-8"):
        load_labels(path)


def test_what_is_no_label_file_is_a_wrong_call(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        load_labels(tmp_path / "nothing.yaml")
    with pytest.raises(UsageError, match=r"\*\.yaml or \*\.jsonl"):
        load_labels(written(tmp_path, YAML, "labels.txt"))


def test_a_file_without_rows_is_nothing_to_measure(tmp_path: Path) -> None:
    with pytest.raises(NothingToMeasure):
        load_labels(written(tmp_path, ""))


def test_the_halves_are_fixed_by_the_id_alone_and_about_equal() -> None:
    halves = [in_first_half(f"L{number:03}") for number in range(400)]
    assert 160 < sum(halves) < 240
    assert in_first_half("J01") is True
    assert in_first_half("L003") is False


def test_the_projects_own_labels_load_and_hold_the_core() -> None:
    rows = {row.id: row for row in load_labels(Path(__file__).parents[1] / "judge_labels")}
    core = {name: row.label for name, row in rows.items() if name.startswith("J0")}
    assert core == {
        "J01": "correct", "J02": "wrong", "J03": "correct", "J04": "wrong", "J05": "correct",
        "J06": "wrong",
    }  # fmt: skip
    assert len(rows) >= 66


def test_one_answer_with_two_labels_is_refused(tmp_path: Path) -> None:
    row = {"question": "q", "sources": ["s"], "answer": "a"}
    file = tmp_path / "l.jsonl"
    file.write_text("".join(json.dumps({**row, "label": x}) + "\n" for x in ("correct", "wrong")))
    with pytest.raises(CollectionError, match=r"l\.jsonl:2: the same answer is labelled"):
        load_labels(file)
