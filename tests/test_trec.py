"""Runs and qrels are written so that every reader finds the order that was meant."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import pytest

from atlas.errors import CollectionError, UsageError
from atlas.measure.trec import field, judgements, qrels_lines, read_qrels, read_run, run_lines

NIST = Path(__file__).resolve().parents[2] / "shared" / "data" / "trec-format" / "trec_eval"


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture(scope="module")
def ir_measures() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ir_measures
    return ir_measures


def test_a_run_counts_its_scores_down_to_one() -> None:
    assert list(run_lines("Q1", ["B-0-p0", "A-1-p3"])) == [
        "Q1 Q0 B-0-p0 1 2 atlas\n",
        "Q1 Q0 A-1-p3 2 1 atlas\n",
    ]
    assert list(run_lines("Q1", [])) == []


def test_qrels_are_sorted_by_document() -> None:
    assert list(qrels_lines("Q1", {"B": 1, "A": 2})) == ["Q1 0 A 2\n", "Q1 0 B 1\n"]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("S1", "S1"),
        ("two words", "two%20words"),
        ("50%", "50%25"),
        ("ä\t\u2028", "%C3%A4%09%E2%80%A8"),
    ],
)
def test_an_id_is_one_field_and_stays_unlike_others(name: str, safe: str) -> None:
    assert field(name) == safe


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    lines = [*run_lines("Q 1", ["B", "A"]), *run_lines("Q2", ["A"])]
    assert read_run(written(tmp_path / "run", "".join(lines))) == {
        "Q%201": {"B": 2.0, "A": 1.0},
        "Q2": {"A": 1.0},
    }
    text = "".join(qrels_lines("Q1", {"A": 1, "B": 0}))
    assert read_qrels(written(tmp_path / "qrels", text)) == {"Q1": {"A": 1, "B": 0}}


def test_trec_eval_finds_the_order_that_was_meant(tmp_path: Path, ir_measures: Any) -> None:
    draw = random.Random(7)
    names = [f"DOC-{number}-p{piece}" for number in range(40) for piece in range(30)]
    for _ in range(5):
        draw.shuffle(names)
        run = written(tmp_path / "run", "".join(run_lines("Q1", names)))
        for rank in (1, 2, 9, 10, 600, 1200):
            text = "".join(qrels_lines("Q1", {names[rank - 1]: 1}))
            [value] = ir_measures.iter_calc(
                [ir_measures.RR],
                list(ir_measures.read_trec_qrels(str(written(tmp_path / "qrels", text)))),
                list(ir_measures.read_trec_run(str(run))),
            )
            assert value.value == pytest.approx(1 / rank, abs=1e-6)


def test_files_of_nist_are_read_as_ir_measures_reads_them(ir_measures: Any) -> None:
    if not NIST.is_dir():
        pytest.skip(f"{NIST} is not there")
    run = read_run(NIST / "results.test")
    qrels = read_qrels(NIST / "qrels.test")
    theirs = list(ir_measures.read_trec_run(str(NIST / "results.test")))
    assert sum(map(len, run.values())) == len(theirs) == 1500
    assert all(run[row.query_id][row.doc_id] == row.score for row in theirs)
    judged = list(ir_measures.read_trec_qrels(str(NIST / "qrels.test")))
    assert sum(map(len, qrels.values())) == len(judged)
    assert all(qrels[row.query_id][row.doc_id] == row.relevance for row in judged)


def test_marks_line_ends_and_blank_lines_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path / "qrels", b"\xef\xbb\xbfQ1\t0  A 1\r\n\r\n  \nQ1 0 B 1.0")
    assert read_qrels(path) == {"Q1": {"A": 1, "B": 1}}
    assert [item.line for item in judgements(path)] == [1, 4]


def test_a_line_ends_at_its_line_feed_only(tmp_path: Path) -> None:
    path = written(tmp_path / "qrels", "Q1 0 A\u20281 1\nQ1 0 B 1\n")
    with pytest.raises(CollectionError, match=r"qrels:1: 5 fields; expected 4"):
        read_qrels(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Q1 Q0 A 1 2 x\nQ1 Q0 A 1 2\n", "run:2: 5 fields; expected 6"),
        ("Q1 Q0 A 1 nan x\n", "run:1: the score is 'nan'"),
        ("Q1 Q0 A 1 1e999 x\n", "run:1: the score is '1e999'"),
        ("Q1 Q0 A 1 high x\n", "run:1: the score is 'high'"),
        ("Q1 Q0 A 1 2 x\nQ1 Q0 A 2 1 x\n", "run:2: query Q1 has document A twice"),
        (b"Q1 Q0 A\xff 1 2 x\n", "run:1: byte 7 is no UTF-8"),
    ],
)
def test_a_bad_line_of_a_run_is_named(tmp_path: Path, text: str | bytes, problem: str) -> None:
    with pytest.raises(CollectionError) as caught:
        read_run(written(tmp_path / "run", text))
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Q1 0 1 A\n", "qrels:1: the grade is 'A'; expected a whole number. Are the columns"),
        ("Q1 0 A 0.5\n", "qrels:1: the grade is '0.5'"),
        ("Q1 0 A nan\n", "qrels:1: the grade is 'nan'"),
        ("Q1 0 A 1\nQ1 0 A 0\n", "qrels:2: query Q1 judges A 0 here and 1 above"),
    ],
)
def test_a_bad_line_of_qrels_is_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(CollectionError) as caught:
        read_qrels(written(tmp_path / "qrels", text))
    assert problem in str(caught.value)


def test_a_judgement_that_stands_twice_counts_once(tmp_path: Path) -> None:
    assert read_qrels(written(tmp_path / "q", "Q1 0 A 1\nQ1 0 A 1\n")) == {"Q1": {"A": 1}}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run: cannot be read"):
        read_run(tmp_path / "run")
