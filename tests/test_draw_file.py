"""A draw is written for a person to label, and read back or refused with file and line."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atlas.errors import AtlasError, CollectionError, UsageError
from atlas.measure.draws import Given, export_draw, load_draw, matched, run_digest

RUN = [
    Given(
        id=f"Q{number}",
        question=f"How long is battery {number} under warranty?",
        sources=(
            f"Terms > Battery {number}\nIt is covered for {number} years.",
            "The lock is not.",
        ),
        answer=f"For {number} years.",
        writer="extractive 1f2e",
    )
    for number in range(20)
]


def drawn(folder: Path, count: int = 6, seed: int = 3) -> Path:
    path = folder / "draw.yaml"
    export_draw(RUN, count, path, seed)
    return path


def edit(path: Path, old: str, new: str, times: int = 1) -> Path:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, times), encoding="utf-8")
    return path


def label(path: Path, *labels: str) -> Path:
    """Fill in labels from the top; an empty one leaves the row as it is."""
    parts = path.read_text(encoding="utf-8").split("  label:")
    assert len(parts) > len(labels)
    for number, word in enumerate(labels, start=1):
        parts[number] = f" {word}{parts[number]}" if word else parts[number]
    path.write_text("  label:".join(parts), encoding="utf-8")
    return path


# ---- the file -------------------------------------------------------------------------------


def test_a_draw_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    written = export_draw(RUN, 6, tmp_path / "below" / "draw.yaml", 3)
    read = load_draw(written.path)
    assert replace(read, rows=tuple(replace(row, where="") for row in read.rows)) == written
    assert (read.digest, read.seed, read.of, read.writer) == (
        run_digest(RUN), 3, 20, "extractive 1f2e",
    )  # fmt: skip
    by_id = {row.id: row for row in RUN}
    for row in read.rows:
        whole = by_id[row.id]
        assert (row.question, row.sources, row.answer) == (
            whole.question, whole.sources, whole.answer,
        )  # fmt: skip
        assert row.label is None
    assert os.listdir(written.path.parent) == ["draw.yaml"]


def test_the_file_tells_how_to_label_and_leaves_the_labels_empty(tmp_path: Path) -> None:
    text = drawn(tmp_path).read_text(encoding="utf-8")
    head, _, rows = text.partition("draw:")
    assert "judge_labels/RUBRIC.md" in head
    assert "`correct` or `wrong`" in head
    assert all(line.startswith("#") for line in head.split("\n") if line)
    assert rows.count("\n  label:\n  note:\n") == 6
    assert set(yaml.safe_load(text)["answers"][0]) == {
        "id", "question", "sources", "answer", "label", "note",
    }  # fmt: skip


texts = st.text(st.characters(codec="utf-8"), max_size=120)
"""Replies and blocks hold no half of a character: those are taken out where they come in."""


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(question=texts, answer=texts, source=texts, id=texts)
def test_any_text_survives_word_for_word(
    tmp_path: Path, question: str, answer: str, source: str, id: str
) -> None:
    path = tmp_path / "draw.yaml"
    path.unlink(missing_ok=True)
    run = [Given(id=id, question=question, sources=(source,), answer=answer, writer="w")]
    export_draw(run, 1, path)
    row = load_draw(path).rows[0]
    assert (row.id, row.question, row.sources, row.answer) == (id, question, (source,), answer)
    assert matched(load_draw(path), run) == {}


@pytest.mark.parametrize(
    "text",
    [
        "0417",
        "1e5",
        "true",
        "~",
        "",
        "- a: b # c",
        "a\r\nb\n\n",
        "  a\n b \n",
        "a\x85b",
        "a\u2028b" * 30,
        "x" * 9000,
    ],
)
def test_texts_that_look_like_something_else_stay_texts(tmp_path: Path, text: str) -> None:
    run = [Given(id=text, question=text, sources=(text,), answer=text, writer=text)]
    export_draw(run, 1, tmp_path / "draw.yaml")
    assert load_draw(tmp_path / "draw.yaml").rows[0].answer == text


def test_a_file_that_stands_already_is_never_written_over(tmp_path: Path) -> None:
    path = label(drawn(tmp_path), "correct")
    before = path.read_bytes()
    with pytest.raises(UsageError, match="stands already"):
        export_draw(RUN, 6, path)
    assert path.read_bytes() == before


def test_nor_is_it_on_a_file_system_without_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = drawn(tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "link", _no_links)
    with pytest.raises(UsageError, match="stands already"):
        export_draw(RUN, 5, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["draw.yaml"]


def _no_links(*names: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_a_file_system_without_links_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", _no_links)
    assert len(load_draw(drawn(tmp_path)).rows) == 6
    assert os.listdir(tmp_path) == ["draw.yaml"]


def test_a_disk_that_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(AtlasError, match="could not be written"):
        export_draw(RUN, 6, tmp_path / "file" / "draw.yaml")
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_could_not_be_read_back_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atlas.measure.draw_file.MAX_CHARACTERS", 550_000)
    long = [replace(row, sources=("x" * 3_000,)) for row in RUN]
    with pytest.raises(UsageError, match=r"20 answers take .* of 50,000; draw fewer"):
        export_draw(long, 20, tmp_path / "draw.yaml")
    assert os.listdir(tmp_path) == []
    export_draw(long, 15, tmp_path / "draw.yaml")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  note:", "  notes:", r"yaml:\d+: notes: unknown key 'notes'"),
        ("  label:", "  label: right", r"yaml:\d+: label: 'right'; expected correct, wrong"),
        ("  label:", "  label: 1", r"label: 1; expected correct, wrong"),
        ("  label:", "  label: correct\n  label:", "the key 'label' stands twice"),
        ("  seed: 3", "  seed: '3'", r"yaml:\d+: seed: '3'; expected a whole number"),
        ("  seed: 3", "  sead: 3", "unknown key 'sead'"),
        ("  writer: extractive 1f2e", "  writer: 7", "writer: 7; expected text"),
        ("  count: 6", "  count: 7", r"yaml:\d+: count: 6 rows where 7 of 20 answers were drawn"),
        ("  of: 20", "  of: 5", "6 rows where 6 of 5 answers"),
        ("draw:", "drawn:", "unknown key 'drawn'; known: draw, answers"),
        ("answers:", "answers: none\nx:", "unknown key 'x'"),
        ("  sources:", "  sources: none\n  kind:", "sources: expected a list of texts"),
        ("  answer: ", "  answer: 3 #", "answer: 3; expected text"),
        ("- id: Q", "- id: 1 # Q", "id: 1; expected text"),
    ],
)
def test_a_file_whose_layout_was_changed_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = edit(drawn(tmp_path), old, new)
    with pytest.raises(CollectionError, match=said) as caught:
        load_draw(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "- id: Q1\n", "draw: x\nanswers: []", "a: [", "draw: {}"])
def test_a_file_that_is_no_draw_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "draw.yaml"
    path.write_text(text)
    with pytest.raises(CollectionError, match=r"draw.yaml:\d"):
        load_draw(path)


def test_an_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = drawn(tmp_path)
    first, second = (row.id for row in load_draw(path).rows[:2])
    edit(path, f"- id: {second}\n", f"- id: {first}\n")
    with pytest.raises(CollectionError, match=f"the id '{first}' also stands at"):
        load_draw(path)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such draw"):
        load_draw(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"draw: \xe9")
    with pytest.raises(CollectionError, match="cannot be read as UTF-8 text"):
        load_draw(tmp_path / "latin.yaml")
    with pytest.raises(UsageError, match="cannot be read"):
        load_draw(tmp_path)
