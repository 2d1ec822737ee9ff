"""Exports hold every case, and other tools read the same numbers from them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small import collection, opened, use_fakes

from atlas.errors import AtlasError
from atlas.measure.cases import Case, load_cases
from atlas.measure.exports import Exportable, export_ragas, export_trec
from atlas.measure.ragas_rows import RagasRow, ragas_line, read_ragas
from atlas.measure.trec import read_qrels, read_run

KEYS = {
    "user_input", "retrieved_contexts", "retrieved_context_ids", "reference_contexts",
    "reference_context_ids", "response", "reference",
}  # fmt: skip


def trace(supplied: list[str], ranked: list[str], **more: Any) -> dict[str, Any]:
    values = {
        "status": "answered",
        "answer": "It is 3 years. [1]",
        "reason": "",
        "choices": [],
        "context": [{"ref": ref, "text": f"text of {ref} — „ü“\u2028"} for ref in supplied],
        "ranked": ranked,
    }
    return values | more


def row(name: str, relevant: list[str], values: dict[str, Any] | None) -> Exportable:
    return Exportable(
        case=Case(id=name, question=f"question {name} ü?", where="", reference="3 years"),
        trace=values,
        relevant=dict.fromkeys(relevant, 1),
        block_text="text of {} — „ü“\u2028".format,
    )


ROWS = (
    row("S1", ["A-1-p0", "B-1-p0"], trace(["A-1-p0", "C-0-p0"], ["A-1-p0", "C-0-p0", "B-1-p0"])),
    row("S 2", ["D-0-p0"], trace(["C-0-p0"], ["C-0-p0", "A-1-p0"])),
    row("S3", [], trace([], ["C-0-p0"], status="abstained", answer="", reason="It is not said.")),
    row("S4", ["A-1-p0"], None),
    row("S5", ["A-1-p0"], trace([], [])),
)


def jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


# ---- TREC ---------------------------------------------------------------------------------------


def test_the_run_is_the_ranked_list_and_the_qrels_are_the_relevant_blocks(tmp_path: Path) -> None:
    written = export_trec(ROWS, tmp_path / "new" / "trec")
    folder = tmp_path / "new" / "trec"
    assert written.files == (folder / "run.txt", folder / "qrels.txt", folder / "unscored.txt")
    assert (folder / "run.txt").read_text(encoding="ascii").splitlines() == [
        "S1 Q0 A-1-p0 1 3 atlas",
        "S1 Q0 C-0-p0 2 2 atlas",
        "S1 Q0 B-1-p0 3 1 atlas",
        "S%202 Q0 C-0-p0 1 2 atlas",
        "S%202 Q0 A-1-p0 2 1 atlas",
        "S3 Q0 C-0-p0 1 1 atlas",
    ]
    assert read_qrels(folder / "qrels.txt") == {
        "S1": {"A-1-p0": 1, "B-1-p0": 1},
        "S%202": {"D-0-p0": 1},
        "S4": {"A-1-p0": 1},
        "S5": {"A-1-p0": 1},
    }
    assert (folder / "unscored.txt").read_text(encoding="ascii") == "S3\n"
    assert (written.scored, written.unscored, written.failed) == (4, 1, 1)
    assert list(written.lines())[1] == (
        "4 questions with a relevant block, 1 without one apart; "
        "1 failed and are in them with nothing found"
    )


def test_a_failed_question_counts_as_zero_in_ir_measures(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ir_measures
    export_trec(ROWS, tmp_path)
    run = list(ir_measures.read_trec_run(str(tmp_path / "run.txt")))
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "qrels.txt")))
    values = {
        item.query_id: item.value for item in ir_measures.iter_calc([ir_measures.RR], qrels, run)
    }
    assert values == {"S1": 1.0, "S%202": 0.0, "S4": 0.0, "S5": 0.0}


# ---- Ragas --------------------------------------------------------------------------------------


def test_every_row_has_every_key_and_unanswerable_rows_stand_apart(tmp_path: Path) -> None:
    written = export_ragas(ROWS, tmp_path / "out.jsonl")
    answerable, unanswerable = (jsonl(path) for path in written.files)
    assert written.files[1] == tmp_path / "out-unanswerable.jsonl"
    assert [item["user_input"] for item in answerable] == [
        f"question {name} ü?" for name in ("S1", "S 2", "S4", "S5")
    ]
    assert [item["response"] for item in unanswerable] == ["It is not said."]
    assert all(set(item) == KEYS for item in (*answerable, *unanswerable))
    assert answerable[0] == {
        "user_input": "question S1 ü?",
        "retrieved_contexts": ["text of A-1-p0 — „ü“\u2028", "text of C-0-p0 — „ü“\u2028"],
        "retrieved_context_ids": ["A-1-p0", "C-0-p0"],
        "reference_contexts": ["text of A-1-p0 — „ü“\u2028", "text of B-1-p0 — „ü“\u2028"],
        "reference_context_ids": ["A-1-p0", "B-1-p0"],
        "response": "It is 3 years. [1]",
        "reference": "3 years",
    }
    assert answerable[2]["retrieved_contexts"] == []
    assert answerable[2]["response"] == ""


@pytest.mark.parametrize(
    ("more", "response"),
    [
        ({"answer": "Which one?", "choices": ["C-3", "T-7"]}, "Which one?\nC-3\nT-7"),
        ({"status": "abstained", "answer": "", "reason": "Not said."}, "Not said."),
        ({"status": "failed", "answer": "", "reason": "no server"}, ""),
    ],
)
def test_a_response_is_what_the_person_was_shown(
    tmp_path: Path, more: dict[str, Any], response: str
) -> None:
    export_ragas([row("S1", ["A-1-p0"], trace([], [], **more))], tmp_path / "out.jsonl")
    assert jsonl(tmp_path / "out.jsonl")[0]["response"] == response


def test_an_old_file_of_unanswerable_rows_does_not_stay(tmp_path: Path) -> None:
    export_ragas(ROWS, tmp_path / "out.jsonl")
    export_ragas(ROWS[:1], tmp_path / "out.jsonl")
    assert (tmp_path / "out-unanswerable.jsonl").read_text() == ""


def test_a_row_is_read_as_it_was_written(tmp_path: Path) -> None:
    one = RagasRow(
        user_input="a\nb\ud800?",
        retrieved_contexts=("x\r\ny",),
        retrieved_context_ids=("A-0-p0",),
        reference_contexts=("ü", ""),
        reference_context_ids=("B", "C"),
        response="r",
        reference="s",
        line=1,
    )
    (tmp_path / "out.jsonl").write_text(ragas_line(one), encoding="ascii")
    assert list(read_ragas(tmp_path / "out.jsonl")) == [one]


def test_traces_of_an_assistant_are_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch)
    monkeypatch.setenv("ATLAS_STATE", str(tmp_path / "state"))
    root = collection(tmp_path / "own")
    assistant = opened(root)
    rows = [
        Exportable(
            case=case,
            trace=assistant.ask(case.question).values,
            relevant={"WARR-1-p0": 1} if case.relevant else {},
            block_text={"WARR-1-p0": "The battery"}.__getitem__,
        )
        for case in load_cases(root)
    ]
    export_trec(rows, tmp_path / "trec")
    [best, *_] = read_run(tmp_path / "trec" / "run.txt")["S1"]
    assert best == "WARR-1-p0"
    answerable, unanswerable = map(jsonl, export_ragas(rows, tmp_path / "out.jsonl").files)
    assert "3 years" in answerable[0]["response"]
    assert "3 years" in answerable[0]["retrieved_contexts"][0]
    assert unanswerable[0]["response"] == rows[1].trace["reason"] != ""  # type: ignore[index]


# ---- the real ragas -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ragas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module and its two measures by ids; it reports to nobody and leaves nothing at home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGAS_DO_NOT_TRACK", "true")
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("home")))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Importing IDBased", DeprecationWarning)
            import ragas
            from ragas.metrics import IDBasedContextPrecision, IDBasedContextRecall
        yield ragas, IDBasedContextPrecision(), IDBasedContextRecall()


def random_rows() -> list[Exportable]:
    draw = random.Random(5)
    refs = [f"DOC-{number}-p0" for number in range(12)]
    return [
        row(
            f"S{number}",
            draw.sample(refs, draw.randint(1, 6)),
            trace(draw.sample(refs, draw.randint(1, 5)), draw.sample(refs, 10)),
        )
        for number in range(40)
    ]


def test_ragas_computes_our_precision_and_recall_row_by_row(tmp_path: Path, ragas: Any) -> None:
    module, precision, recall = ragas
    rows = random_rows()
    export_ragas(rows, tmp_path / "out.jsonl")
    samples = module.EvaluationDataset.from_jsonl(tmp_path / "out.jsonl").samples
    assert len(samples) == len(rows)
    for one, sample in zip(rows, samples, strict=True):
        assert one.trace is not None
        supplied = [item["ref"] for item in one.trace["context"]]
        hits = len(set(supplied) & set(one.relevant))
        assert precision.single_turn_score(sample) == pytest.approx(hits / len(supplied))
        assert recall.single_turn_score(sample) == pytest.approx(hits / len(one.relevant))


def test_ragas_sees_every_column_whatever_the_first_row_lacks(tmp_path: Path, ragas: Any) -> None:
    export_ragas([*ROWS[3:], *ROWS[:3]], tmp_path / "out.jsonl")
    for name in ("out.jsonl", "out-unanswerable.jsonl"):
        dataset = ragas[0].EvaluationDataset.from_jsonl(tmp_path / name)
        assert set(dataset.features()) == KEYS


def test_ragas_scores_a_failed_question_zero_in_recall(tmp_path: Path, ragas: Any) -> None:
    _, precision, recall = ragas
    export_ragas([ROWS[3]], tmp_path / "out.jsonl")
    [sample] = ragas[0].EvaluationDataset.from_jsonl(tmp_path / "out.jsonl").samples
    assert recall.single_turn_score(sample) == 0
    assert str(precision.single_turn_score(sample)) == "nan"


def test_ragas_loads_the_file_on_a_machine_with_another_locale(tmp_path: Path) -> None:
    export_ragas(ROWS, tmp_path / "out.jsonl")
    program = (
        "import locale, sys; assert locale.getencoding().lower() != 'utf-8', locale.getencoding()\n"
        "from ragas import EvaluationDataset\n"
        f"print(ascii(EvaluationDataset.from_jsonl({str(tmp_path / 'out.jsonl')!r})[0].user_input))"
    )
    environment = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "RAGAS_DO_NOT_TRACK": "true",
        "XDG_DATA_HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "'question S1 \\xfc?'", done.stderr[-500:]


def test_a_test_set_that_ragas_wrote_is_read(tmp_path: Path, ragas: Any) -> None:
    sample = {
        "user_input": 'How long, "really"?',
        "reference_contexts": ["one, with 'quotes'", "two\nlines"],
        "reference": "3 years",
        "reference_context_ids": ["A-1", 7],
    }
    dataset = ragas[0].EvaluationDataset.from_list([sample, sample])
    dataset.to_csv(tmp_path / "set.csv")
    dataset.to_jsonl(tmp_path / "set.jsonl")
    for name, lines in (("set.jsonl", (1, 2)), ("set.csv", (2, 3))):
        assert list(read_ragas(tmp_path / name)) == [
            RagasRow(
                user_input='How long, "really"?',
                reference_contexts=("one, with 'quotes'", "two\nlines"),
                reference_context_ids=("A-1", "7"),
                reference="3 years",
                line=line,
            )
            for line in lines
        ]


# ---- disks --------------------------------------------------------------------------------------


def test_a_write_that_fails_leaves_the_old_files_and_one_line(tmp_path: Path) -> None:
    export_ragas(ROWS[:1], tmp_path / "out.jsonl")
    old = (tmp_path / "out.jsonl").read_bytes()

    def full(ref: str) -> str:
        raise OSError(28, "No space left on device")

    broken = Exportable(case=ROWS[0].case, trace=None, relevant={"A": 1}, block_text=full)
    with pytest.raises(AtlasError, match=r"could not be written.*No space left") as caught:
        export_ragas([*ROWS, broken], tmp_path / "out.jsonl")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    assert (tmp_path / "out.jsonl").read_bytes() == old
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out-unanswerable.jsonl",
        "out.jsonl",
    ]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(AtlasError, match=r"gone/out\.jsonl: the export could not be written"):
        export_ragas(ROWS, tmp_path / "gone" / "out.jsonl")
    with pytest.raises(AtlasError, match="a folder stands there"):
        export_ragas(ROWS, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(AtlasError, match="file: the export could not be written"):
        export_trec(ROWS, tmp_path / "file")
    with pytest.raises(AtlasError, match="No such file"):
        export_trec(ROWS, Path("/proc/none"))


def test_the_run_can_be_read_by_this_project_too(tmp_path: Path) -> None:
    export_trec(ROWS, tmp_path)
    assert list(read_run(tmp_path / "run.txt")["S1"]) == ["A-1-p0", "C-0-p0", "B-1-p0"]
