"""`measure` and `compare`: what they print where, and the code that they end with."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import termios
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from small import FILES, SETTINGS, collection, command, run, use_fakes

from atlas.assistant import Assistant
from atlas.cli import cli
from atlas.errors import AtlasError
from atlas.measure.rows import NAMES
from atlas.measure.summary import LEAK_RATE
from atlas.records import Claim, Draft, Hit, Scope, Trace

CASES = """\
- id: S1
  core: true
  kind: paraphrase
  question: how long is the battery under warranty
  relevant: [WARR-1]
  evidence: [The battery is under warranty for 3 years.]
  facts: [[3 years]]
- id: S2
  kind: unanswerable
  question: what is the airspeed of a swallow
  expect: abstain
- id: S3
  kind: named product
  question: how tight are the crank bolts of the T-7
  relevant: [MANUAL-1-p0]
  facts: [[40 Nm]]
- id: S4
  kind: permission
  reader: sales
  question: what does the battery of the C-3 cost
  relevant: [PRICES]
- id: S5
  question: what does the battery cost
  relevant: [PRICES-1]
"""
HELD = """\
- id: H1
  question: how long is the lock under warranty
  relevant: [WARR-1]
- id: H2
  question: within how many days are claims made
  relevant: [WARR-2]
"""
MEASURES = (
    "hit", "recall", "precision", "evidence", "hit@1", "hit@3", "hit@5", "hit@10", "recall@10",
    "reciprocal_rank@10", "ndcg@10", "declined", "prompt_tokens", "milliseconds",
)  # fmt: skip
QUESTION_KEYS = {"id", "kind", "relevant", "supplied", "first_rank", "unscored", *MEASURES}
ESTIMATE_KEYS = {"mean", "low", "high", "scored", "total", "failed"}


def plain_answerer(question: object, supplied: Sequence[Hit], *_: object) -> Draft:
    """Answers with the best block, or declines where that is not near."""
    if not supplied or (supplied[0].rerank_score or 0.0) < 0.2:
        return Draft(status="abstained", reason="the documents do not say")
    text = supplied[0].block.text
    claim = Claim(text=text, markers=(1,), quotes=(text,))
    return Draft(status="answered", claims=(claim,), evidence=(("probability", 0.9),))


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)
    monkeypatch.setattr("atlas.assistant.draft", plain_answerer)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = collection(tmp_path / "c", cases=CASES)
    (folder / "heldout").mkdir()
    (folder / "heldout" / "core.yaml").write_text(HELD, encoding="utf-8")
    return folder


def atlas(root: Path, *arguments: str, stdin: str = "") -> Result:
    name, *rest = arguments
    return CliRunner().invoke(cli, [name, "-C", str(root), *rest], input=stdin)


def values(result: Result, code: int = 0) -> dict[str, Any]:
    """The JSON on stdout of a command that ended with `code`."""
    assert result.exit_code == code, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


def refusal(result: Result, code: int = 2) -> str:
    """The one line on stderr of a command that refused."""
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("atlas: ")
    return line


def by_id(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {question["id"]: question for question in values["questions"]}


def breaking(
    monkeypatch: pytest.MonkeyPatch, words: str, error: Exception | None = None
) -> list[str]:
    """Let every question with these words fail; returns the list of what is asked."""
    real = Assistant.ask
    asked: list[str] = []

    def ask(self: Assistant, question: str, scope: Scope | None = None) -> Trace:
        asked.append(question)
        if words and words in question:
            raise error or AtlasError("the server is gone")
        return real(self, question, scope)

    monkeypatch.setattr(Assistant, "ask", ask)
    return asked


def nulls(question: dict[str, Any]) -> set[str]:
    return {name for name in MEASURES if question[name] is None}


# ---- JSON -----------------------------------------------------------------------------------


def test_json_has_the_shape_that_programs_rely_on(root: Path) -> None:
    found = values(atlas(root, "measure", "--json"))
    assert found["set"] == "development"
    assert found["k"] == found["settings"]["k"] == 5
    assert found["settings"]["min_score"] == 0.02
    assert [question["id"] for question in found["questions"]] == ["S1", "S2", "S3", "S4", "S5"]
    for question in found["questions"]:
        assert question.keys() >= QUESTION_KEYS
    for summary in (found["summary"], *found["by_kind"].values()):
        assert summary.keys() >= set(MEASURES)
        for value in summary.values():
            assert value.keys() >= ESTIMATE_KEYS
    kinds = {"paraphrase", "unanswerable", "named product", "permission", "no kind"}
    assert found["by_kind"].keys() == kinds
    assert found["summary"].keys() == {*NAMES, LEAK_RATE}


def test_a_missing_measurement_is_null_beside_a_reason(root: Path) -> None:
    found = values(atlas(root, "measure", "--json"))
    for question in found["questions"]:
        reasons = question["unscored"] or {}
        assert nulls(question) <= reasons.keys()
        assert all(reasons.values())
    unanswerable = by_id(found)["S2"]
    assert unanswerable["recall"] is None
    assert unanswerable["unscored"]["recall"] == "the question has no relevant block"
    assert unanswerable["declined"] is True
    back = found["summary"]["asked_back"]
    assert (back["mean"], back["low"], back["high"], back["scored"]) == (None, None, None, 0)
    assert back["unscored"] == "no question was scored"


def test_scores_are_those_of_the_supplied_and_the_ranked_list(root: Path) -> None:
    question = by_id(values(atlas(root, "measure", "--json")))["S1"]
    assert question["relevant"] == ["WARR-1-p0"]
    assert question["supplied"][0] == "WARR-1-p0"
    assert question["hit"] == question["recall"] == question["evidence"] == 1.0
    assert question["first_rank"] == 1
    assert question["precision"] == pytest.approx(1 / len(question["supplied"]), abs=1e-6)
    assert question["ndcg@10"] == question["reciprocal_rank@10"] == question["recall@10"] == 1.0
    assert question["prompt_tokens"] > 0
    assert question["milliseconds"] >= 0
    assert question["passed"] is True


def test_unscored_questions_are_counted_and_not_averaged_in(root: Path) -> None:
    found = values(atlas(root, "measure", "--json"))
    recall = found["summary"]["recall"]
    assert (recall["scored"], recall["total"], recall["failed"]) == (4, 5, 0)
    assert recall["mean"] == 0.75  # S5 may not see the price list
    assert recall["low"] < 0.75 < recall["high"]
    declined = found["summary"]["declined"]
    assert (declined["mean"], declined["scored"], declined["total"]) == (1.0, 1, 5)


def test_misses_name_the_stage(root: Path) -> None:
    (miss,) = values(atlas(root, "measure", "--json"))["misses"]
    assert (miss["id"], miss["label"], miss["stage"]) == ("S5", "PRICES-1", "scope")
    assert miss["beaten_by"] == "WARR-1-p0"


def test_every_question_is_looked_at_as_every_reader_group(root: Path) -> None:
    found = values(atlas(root, "measure", "--json"))
    assert found["looks"] == 5 * 3
    assert found["leaks"] == []
    assert found["summary"]["leak_rate"]["mean"] == 0.0
    assert found["summary"]["leak_rate"]["total"] == 15


def test_a_broken_scope_shows_as_leaks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule of readers is taken out of the scope; the measure must notice."""
    monkeypatch.setattr("atlas.scope._may_read", lambda *_: True)
    found = values(atlas(root, "measure", "--json"))
    assert found["summary"]["leak_rate"]["mean"] > 0
    assert any(text.startswith("S5 as anyone: PRICES-1-p0 in ranked") for text in found["leaks"])
    result = atlas(root, "measure", "--gate", "leak_rate<=0")
    assert result.exit_code == 1
    assert "  LEAK S5 as anyone: PRICES-1-p0 in " in result.stdout


def test_two_runs_give_the_same_numbers(root: Path) -> None:
    def numbers() -> dict[str, Any]:
        found = values(atlas(root, "measure", "--json"))
        summary: dict[str, Any] = found["summary"]
        summary.pop("milliseconds")
        return summary

    assert numbers() == numbers()


# ---- the table ------------------------------------------------------------------------------


def test_the_table_goes_to_stdout_and_nothing_to_stderr(root: Path) -> None:
    result = atlas(root, "measure")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.startswith("5 development questions, 1 of them without an answer")
    for name in NAMES:
        assert re.search(rf"^  {re.escape(name)} +\S.* \d+ of 5 ", result.stdout, re.M), name
    assert "leaks: 0 of 15 looks" in result.stdout


@pytest.mark.parametrize("name", ["measure", "question", "sweep", "held-out sweep", "compare"])
def test_no_line_is_wider_than_a_screen(root: Path, name: str) -> None:
    for run_name, score in (("before", "0.02"), ("after", "1")):
        atlas(root, "measure", "--save", run_name, "--min-score", score)
    swept = ["measure", "--sweep", "min_score=0:0.9:0.1"]
    commands = {
        "measure": ["measure"],
        "question": ["measure", "--question", "S1"],
        "sweep": swept,
        "held-out sweep": [*swept, "--held-out"],
        "compare": ["compare", "before", "after"],
    }
    lines = atlas(root, *commands[name]).stdout.splitlines()
    widest = max(lines, key=len)
    assert 50 < len(widest) <= 100, widest


def test_names_that_could_steer_a_terminal_do_not(tmp_path: Path) -> None:
    case = '- {id: S1, kind: "a\\e[31mb", question: "who \\e]0;x\\a is it", expect: abstain}\n'
    case += "- {id: S2, kind: c, question: what is it, expect: abstain}\n"
    root = collection(tmp_path / "c", cases=case)
    for arguments in ([], ["--question", "S1"]):
        result = atlas(root, "measure", *arguments)
        assert result.exit_code == 0
        assert not {"\x1b", "\x07"} & set(result.output)


def test_one_question_in_full(root: Path) -> None:
    result = atlas(root, "measure", "--question", "S3")
    assert result.exit_code == 0
    assert result.stdout.startswith("S3  how tight are the crank bolts of the T-7\n")
    assert re.search(r"^MANUAL-1-p0 +relevant( +[\d.]+){4}$", result.stdout, re.M)
    assert re.search(r"^MANUAL-2-p0 +noise( +[\d.]+){4}$", result.stdout, re.M)
    found = values(atlas(root, "measure", "--question", "S3", "--json"))
    assert [question["id"] for question in found["questions"]] == ["S3"]


def test_only_that_question_is_asked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = breaking(monkeypatch, "")
    assert atlas(root, "measure", "--question", "S3").exit_code == 0
    assert set(asked) == {"how tight are the crank bolts of the T-7"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--question", "S9"], "question S9; look into"),
        (["--question", "s1"], "question s1; look into"),
        (["--question", "H1"], "question H1; look into"),
        (["--question", "S1", "--held-out"], "question S1; look into"),
        (["--min-score", "1.5"], "min_score is 1.5; expected a number 0 to 1"),
        (["--min-score", "-0.1"], "min_score is -0.1"),
        (["--min-score", "nan"], "min_score is nan"),
        (["--gate", "recal>=0.9"], "did you mean 'recall'?"),
        (["--gate", "speed>=0.9"], "unknown measure 'speed'; known: hit, recall,"),
        (["--gate", "recall=0.9"], "expected a measure, >=, <=, > or <, and a number"),
        (["--gate", "recall>=high"], "expected a measure"),
        (["--save", "a/b"], "'a/b' is no name for a run"),
        (["--save", ""], "is no name for a run"),
        (["--sweep", "min_score"], "expected `min_score=0:0.9:0.1` or `k=3,5,10`"),
        (["--sweep", "block_size=500,1000"], "sweep one of min_score, k,"),
        (["--sweep", "k=5,3"], "rising"),
        (["--sweep", "k=0,3"], "k is 0"),
        (["--sweep", "k=1:5:0"], "a step above 0"),
        (["--sweep", "min_score=0:2:0.5"], "min_score is 1.5"),
        (["--sweep", "min_score=0:1:0.0001"], "expected 2 to 101"),
        (["--sweep", "k=1,5", "--gate", "recall>=0"], "leave --traces, --gate, --save"),
        (["--sweep", "k=1,5", "--save", "x"], "leave --traces, --gate, --save"),
        (["--sweep", "k=1,5", "--question", "S1"], "leave --traces, --gate, --save"),
        (["--sweep", "k=1,5", "--traces", "t.jsonl"], "leave --traces, --gate, --save"),
        (["--sweep", "k=1,5", "--export-ragas", "r"], "leave --traces, --gate, --save"),
        (["--sweep", "k=1,5", "--export-trec", "r"], "leave --traces, --gate, --save"),
    ],
)  # fmt: skip
def test_a_call_that_makes_no_sense_is_refused_before_models_are_opened(
    root: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], problem: str
) -> None:
    monkeypatch.setattr("atlas.assistant.Assistant.of", None)
    assert problem in refusal(atlas(root, "measure", *arguments))


# ---- another min_score ----------------------------------------------------------------------


def test_another_min_score_changes_what_is_supplied(root: Path) -> None:
    whole = values(atlas(root, "measure", "--json"))
    strict = values(atlas(root, "measure", "--json", "--min-score", "0.2"))
    assert strict["settings"]["min_score"] == 0.2
    before, after = (by_id(found)["S1"]["supplied"] for found in (whole, strict))
    assert set(after) < set(before)
    assert after[0] == before[0] == "WARR-1-p0"
    assert strict["summary"]["precision"]["mean"] > whole["summary"]["precision"]["mean"]
    again = values(atlas(root, "measure", "--json"))
    assert again["settings"]["min_score"] == 0.02


def test_a_bar_that_nothing_passes_supplies_nothing(root: Path) -> None:
    found = values(atlas(root, "measure", "--json", "--min-score", "1"))
    assert all(question["supplied"] == [] for question in found["questions"])
    assert found["summary"]["recall"]["mean"] == 0.0
    assert found["summary"]["precision"]["mean"] is None
    assert found["summary"]["ndcg@10"]["mean"] > 0  # ranks are those before selection
    assert {miss["stage"] for miss in found["misses"]} == {"scope", "select"}


# ---- sweeps ---------------------------------------------------------------------------------


def test_a_sweep_is_a_table_with_a_mark_where_recall_falls(root: Path) -> None:
    result = atlas(root, "measure", "--sweep", "min_score=0:0.9:0.1")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "min_score, development questions (scored 4 of 5)"
    assert [line.split()[0] for line in lines[2:12]] == [
        "0", *(f"0.{n}" for n in range(1, 10)),
    ]  # fmt: skip
    assert sum(line.split()[1] == "<" for line in lines) == 1
    assert "held-out" not in result.stdout


def test_a_sweep_asks_every_question_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = breaking(monkeypatch, "")
    assert atlas(root, "measure", "--sweep", "min_score=0:0.9:0.1").exit_code == 0
    assert asked == questions_of(CASES)


def test_a_step_of_a_sweep_is_what_the_setting_itself_would_give(root: Path) -> None:
    swept = values(atlas(root, "measure", "--sweep", "min_score=0,0.02,0.2,0.3", "--json"))
    assert swept["setting"] == "min_score"
    for step in swept["development"]:
        alone = values(atlas(root, "measure", "--json", "--min-score", str(step["value"])))
        for name in ("hit", "recall", "precision", "evidence", "prompt_tokens"):
            assert step["summary"][name] == alone["summary"][name], (step["value"], name)


def test_held_out_columns_stand_beside_on_request(root: Path) -> None:
    result = atlas(root, "measure", "--sweep", "min_score=0,0.3,0.9", "--held-out")
    assert result.exit_code == 0
    head, *rows = result.stdout.splitlines()[1:5]
    assert head.endswith("held-out recall")
    assert all(line.count("[") >= 3 for line in rows)
    found = values(atlas(root, "measure", "--sweep", "k=1,5", "--held-out", "--json"))
    assert found.keys() >= {"setting", "falls_at", "development", "held-out"}
    assert [step["value"] for step in found["held-out"]] == [1, 5]


def test_a_sweep_with_a_failed_question_ends_with_3(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, "battery under warranty")
    found = values(atlas(root, "measure", "--sweep", "k=1,5", "--json"), code=3)
    assert found["development"][0]["summary"]["recall"]["failed"] == 1


def test_a_sweep_in_which_every_question_fails_measured_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, " ")
    assert atlas(root, "measure", "--sweep", "k=1,5").exit_code == 4


# ---- traces ---------------------------------------------------------------------------------


def traces(root: Path, path: Path, questions: Iterable[str], *options: str) -> Path:
    """A file of traces that `ask --json` wrote for questions on stdin."""
    stdin = "\n".join(questions) + "\n"
    result = atlas(root, "ask", "--json", "--date", "2026-03-02", *options, stdin=stdin)
    assert result.exit_code == 0
    with path.open("a", encoding="utf-8") as file:
        file.write(result.stdout)
    return path


def questions_of(text: str) -> list[str]:
    return re.findall(r"question: (.+)", text)


def test_traces_that_ask_wrote_are_scored_like_questions_that_are_asked(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_now = values(atlas(root, "measure", "--json"))
    one, two, three, four, five = questions_of(CASES)
    file = traces(root, tmp_path / "t.jsonl", [one, two, three, five])
    traces(root, file, [four], "--reader", "sales")
    asked = breaking(monkeypatch, "")
    found = values(atlas(root, "measure", "--json", "--traces", str(file)))
    assert asked == []
    for name, question in by_id(found).items():
        before = by_id(asked_now)[name]
        assert {**question, "milliseconds": 0} == {**before, "milliseconds": 0}
    assert found["looks"] == 5


def test_traces_of_other_questions_readers_and_days_are_named_and_left_out(
    root: Path, tmp_path: Path
) -> None:
    one, _, _, four, _ = questions_of(CASES)
    file = traces(root, tmp_path / "t.jsonl", [one, four, "something else entirely"])
    traces(root, file, [one], "--date", "2025-01-01")
    result = atlas(root, "measure", "--json", "--traces", str(file))
    assert list(by_id(values(result))) == ["S1"]
    notes = result.stderr.splitlines()
    assert notes[0] == f"note: 3 traces of {file} belong to no development question"
    assert notes[1] == f"note: 4 development questions have no trace in {file}"


def test_the_last_of_several_traces_of_a_question_counts(root: Path, tmp_path: Path) -> None:
    question = questions_of(CASES)[0]
    file = traces(root, tmp_path / "t.jsonl", [question, question.upper() + "?"])
    first, last = (json.loads(line) for line in file.read_text().splitlines())
    last["context"] = []
    file.write_text(f"{json.dumps(first)}\n{json.dumps(last)}\n")
    found = values(atlas(root, "measure", "--json", "--traces", str(file)))
    assert by_id(found)["S1"]["supplied"] == []


def test_a_trace_of_blocks_that_are_no_longer_there_is_scored(root: Path, tmp_path: Path) -> None:
    file = traces(root, tmp_path / "t.jsonl", questions_of(CASES)[:1])
    file.write_text(file.read_text().replace("WARR-1-p0", "WARR-1-p7"))
    found = by_id(values(atlas(root, "measure", "--json", "--traces", str(file))))
    assert "WARR-1-p7" in found["S1"]["supplied"]
    assert (found["S1"]["hit"], found["S1"]["recall"]) == (0.0, 0.0)


def test_traces_that_belong_to_no_case_are_nothing_to_measure(root: Path, tmp_path: Path) -> None:
    file = traces(root, tmp_path / "t.jsonl", ["something else entirely"])
    result = atlas(root, "measure", "--traces", str(file))
    assert result.exit_code == 4
    assert "none of the traces belongs to a case" in result.stderr


def test_held_out_traces_are_a_look(root: Path, tmp_path: Path) -> None:
    file = traces(root, tmp_path / "t.jsonl", questions_of(HELD))
    assert atlas(root, "measure", "--held-out", "--traces", str(file)).exit_code == 0
    assert len((root / "heldout" / "ledger.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", ":2: not JSON"),
        ("5", ":2: not"),
        ("[]", ":2: not a trace"),
        ('{"question": "x"}', ":2: not a trace"),
        ('{"question": NaN}', ":2: not JSON (NaN is no number of JSON)"),
    ],
)
def test_a_file_that_is_no_traces_is_refused_with_its_line(
    root: Path, tmp_path: Path, line: str, problem: str
) -> None:
    file = traces(root, tmp_path / "t.jsonl", questions_of(CASES)[:1])
    file.write_text(f"{file.read_text()}{line}\n")
    message = refusal(atlas(root, "measure", "--traces", str(file)))
    assert f"{file}{problem}" in message


@pytest.mark.parametrize("key", ["scope", "context", "timings_seconds", "tokens", "question"])
def test_a_trace_with_values_of_other_types_is_refused_with_its_line(
    root: Path, tmp_path: Path, key: str
) -> None:
    file = traces(root, tmp_path / "t.jsonl", questions_of(CASES)[:1])
    file.write_text(json.dumps({**json.loads(file.read_text()), key: 5}) + "\n")
    assert f"{file}:1: " in refusal(atlas(root, "measure", "--traces", str(file)))


def test_traces_that_are_not_there_are_refused(root: Path, tmp_path: Path) -> None:
    missing = tmp_path / "none.jsonl"
    assert f"{missing}: cannot be read" in refusal(atlas(root, "measure", "--traces", str(missing)))


# ---- gates ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gates", "code", "lines"),
    [
        (["recall>=0.5"], 0, []),
        (["recall>=0.75", "hit <= 0.75", "leak_rate<=0", "ndcg@10>0.1"], 0, []),
        (["recall>=0.95"], 1, ["gate recall >= 0.95: it is 0.75 over n 4"]),
        (["recall>0.75", "hit>=0", "leak_rate>0"], 1,
         ["gate recall > 0.75: it is 0.75 over n 4",
          "gate leak_rate > 0: it is 0 over n 15"]),
        (["asked_back>=0"], 1, ["gate asked_back >= 0: no question was scored"]),
    ],
)  # fmt: skip
def test_a_gate_that_is_missed_ends_with_1(
    root: Path, gates: list[str], code: int, lines: list[str]
) -> None:
    options = [part for gate in gates for part in ("--gate", gate)]
    result = atlas(root, "measure", "--json", *options)
    assert values(result, code)["summary"]["recall"]["mean"] == 0.75
    assert result.stderr.splitlines() == lines


def test_a_gate_and_failed_questions(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missed gate is 1 whatever else happened; one that holds does not hide a failure."""
    breaking(monkeypatch, "crank bolts")
    assert atlas(root, "measure", "--gate", "recall>=0.95").exit_code == 1
    assert atlas(root, "measure", "--gate", "recall>=0.5").exit_code == 3


def test_a_gate_is_missed_where_everything_failed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, " ")
    result = atlas(root, "measure", "--gate", "recall>=0")
    assert result.exit_code == 1
    assert "gate recall >= 0: no question was scored" in result.stderr


# ---- exit codes -----------------------------------------------------------------------------


def test_some_failed_questions_end_with_3(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    breaking(monkeypatch, "crank bolts")
    found = values(atlas(root, "measure", "--json"), code=3)
    failed = by_id(found)["S3"]
    assert failed["failed"] == "the server is gone"
    assert nulls(failed) == set(MEASURES)
    assert failed["unscored"]["recall"] == "the question failed"
    recall = found["summary"]["recall"]
    assert (recall["scored"], recall["total"], recall["failed"]) == (3, 5, 1)
    assert found["failed"] == 1


def test_a_bug_in_one_question_keeps_its_traceback_and_the_other_results(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, "crank bolts", ZeroDivisionError("division by zero"))
    result = atlas(root, "measure", "--json")
    assert values(result, code=3)["summary"]["recall"]["scored"] == 3
    assert "S3 broke:" in result.stderr
    assert "Traceback (most recent call last)" in result.stderr
    assert "ZeroDivisionError: division by zero" in result.stderr


def test_where_every_question_failed_nothing_was_measured(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, " ")
    result = atlas(root, "measure", "--json")
    assert values(result, code=4)["failed"] == 5
    assert result.stderr == "atlas: all 5 questions failed, nothing was measured\n"


def test_without_cases_there_is_nothing_to_measure(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", cases=None)
    for options in ([], ["--held-out"], ["--sweep", "k=1,5"]):
        message = refusal(atlas(root, "measure", *options), code=4)
        assert "no question in *.yaml" in message
        assert "measure them" not in message


def test_questions_of_the_other_set_are_pointed_at(root: Path) -> None:
    (root / "cases" / "core.yaml").unlink()
    message = refusal(atlas(root, "measure"), code=4)
    assert message.endswith("; heldout/ has 2, measure them with --held-out")
    (root / "cases" / "core.yaml").write_text(CASES, encoding="utf-8")
    (root / "heldout" / "core.yaml").unlink()
    message = refusal(atlas(root, "measure", "--held-out"), code=4)
    assert message.endswith("; cases/ has 5, measure them without --held-out")


def test_a_bad_case_is_refused_with_file_and_line(root: Path) -> None:
    path = root / "cases" / "core.yaml"
    path.write_text(CASES.replace("  relevant: [MANUAL-1-p0]", "  relevant: [MANUAL-9]"))
    message = refusal(atlas(root, "measure"))
    assert f"{path}:12: relevant 'MANUAL-9' of S3 matches nothing" in message


def test_questions_outside_the_sample_are_counted_apart(root: Path) -> None:
    result = atlas(root, "measure", "--sample")
    assert result.exit_code == 0
    assert "; 3 more lie outside the sample" in result.stdout
    found = values(atlas(root, "measure", "--sample", "--json"))
    assert list(by_id(found)) == ["S1", "S2"]
    (root / "atlas.yaml").write_text(SETTINGS.replace("[WARR]", "[MANUAL]"))
    (root / "cases" / "core.yaml").write_text(CASES[: CASES.index("- id: S2")])
    message = refusal(atlas(root, "measure", "--sample"), code=4)
    assert "all 1 cases lie outside the sample" in message


def test_skipped_documents_are_named_on_stderr(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", {**FILES, "bad.md": "---\nid: [\n---\n# x\n"}, cases=CASES)
    result = atlas(root, "measure", "--json")
    assert values(result)["set"] == "development"
    assert "skipped documents/bad.md" in result.stderr


# ---- saved runs -----------------------------------------------------------------------------


def test_two_saved_runs_are_compared(root: Path) -> None:
    saved = atlas(root, "measure", "--save", "before")
    assert saved.exit_code == 0
    assert saved.stderr == f"note: saved as {root / '.atlas' / 'runs' / 'before.json'}\n"
    atlas(root, "measure", "--save", "after", "--min-score", "1")
    result = atlas(root, "compare", "before", "after")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "  changed min_score: 0.02 to 1.0" in result.stdout
    assert "fewer than 30 questions: only large differences can show" in result.stdout
    assert "S1      hit     lost" in result.stdout
    found = values(atlas(root, "compare", "before", "after", "--json"))
    for name in ("hit", "recall", "evidence", "ndcg@10", "prompt_tokens"):
        assert found[name].keys() >= {
            "difference", "low", "high", "p_value", "verdict", "detectable",
        }  # fmt: skip
    assert found["recall"]["difference"] == -0.75
    assert found["recall"]["verdict"] == "could be chance"
    assert found["ndcg@10"]["difference"] == 0


def test_a_run_is_saved_under_a_path(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "there" / "run.json"
    assert atlas(root, "measure", "--save", str(path)).exit_code == 0
    found = values(atlas(root, "compare", str(path), str(path), "--json"))
    assert found["recall"]["difference"] == 0
    assert found["recall"]["p_value"] == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("case", "were made on different questions or labels"),
        ("document", "were made on different documents"),
    ],
)
def test_runs_that_asked_something_else_are_not_compared(
    root: Path, change: str, problem: str
) -> None:
    atlas(root, "measure", "--save", "before")
    if change == "case":
        path = root / "cases" / "core.yaml"
        path.write_text(CASES.replace("[PRICES-1]", "[PRICES]"))
    else:
        path = root / "documents" / "manual.md"
        path.write_text(path.read_text() + "\nMore text.\n")
    atlas(root, "measure", "--save", "after")
    assert problem in refusal(atlas(root, "compare", "before", "after"))


def test_one_question_is_not_compared_with_all(root: Path) -> None:
    atlas(root, "measure", "--save", "all")
    atlas(root, "measure", "--save", "one", "--question", "S1")
    assert "different questions" in refusal(atlas(root, "compare", "all", "one"))


def test_a_run_that_is_not_there_or_no_run_is_refused(root: Path, tmp_path: Path) -> None:
    atlas(root, "measure", "--save", "mine")
    message = refusal(atlas(root, "compare", "mine", "yours"))
    assert "yours.json: no such run" in message
    assert message.endswith("saved are: mine")
    for text in ("{", "[]", "5", "{}", '{"schema": "atlas-run-0"}'):
        (tmp_path / "bad.json").write_text(text)
        assert "bad.json" in refusal(atlas(root, "compare", "mine", str(tmp_path / "bad.json")))


def test_a_run_with_a_part_missing_is_refused(root: Path) -> None:
    atlas(root, "measure", "--save", "mine")
    path = root / ".atlas" / "runs" / "mine.json"
    whole = json.loads(path.read_text())
    for key in ("questions", "fingerprints", "settings"):
        broken = path.with_name(f"no-{key}.json")
        broken.write_text(json.dumps({k: v for k, v in whole.items() if k != key}))
        assert f"{broken}" in refusal(atlas(root, "compare", "mine", f"no-{key}"))


# ---- exports --------------------------------------------------------------------------------


def test_exports_are_written_and_told_on_stderr(root: Path, tmp_path: Path) -> None:
    rows, trec = tmp_path / "rows.jsonl", tmp_path / "trec"
    options = ["--export-ragas", str(rows), "--export-trec", str(trec), "--json"]
    result = atlas(root, "measure", *options)
    assert values(result)["set"] == "development"
    written = [json.loads(line) for line in rows.read_text().splitlines()]
    assert written[0]["user_input"] == "how long is the battery under warranty"
    assert {path.name for path in trec.iterdir()} >= {"run.txt", "qrels.txt"}
    assert str(rows) in result.stderr
    assert str(trec) in result.stderr


# ---- streams --------------------------------------------------------------------------------


def test_progress_goes_to_stderr_and_stdout_stays_json(root: Path) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen(
        command("measure", "-C", str(root), "--json"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with process:
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            shown += data
        assert process.stdout is not None
        printed = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    assert len(json.loads(printed)["questions"]) == 5
    assert b"asking" in shown


def test_a_whole_process_prints_json_and_nothing_else(root: Path) -> None:
    done = run("measure", "-C", str(root), "--json", "--held-out")
    assert done.returncode == 0
    assert done.stderr == b""
    assert json.loads(done.stdout)["set"] == "held-out"


def test_traces_are_not_asked_again_with_another_min_score(root: Path, tmp_path: Path) -> None:
    file = traces(root, tmp_path / "t.jsonl", questions_of(CASES)[:1])
    result = atlas(root, "measure", "--traces", str(file), "--min-score", "0.5")
    assert "traces were asked already" in refusal(result)


def test_a_gate_does_not_pass_on_a_file_that_lacks_questions(root: Path, tmp_path: Path) -> None:
    file = traces(root, tmp_path / "t.jsonl", questions_of(CASES)[:1])
    result = atlas(root, "measure", "--traces", str(file), "--gate", "milliseconds>=0")
    assert result.exit_code == 1
    assert "gates: 4 questions have no trace" in result.stderr
