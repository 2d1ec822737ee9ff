"""A run asks every question, counts what failed, and looks as every reader group."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small import CASES, SETTINGS, collection, opened, use_fakes

from atlas.assistant import Assistant
from atlas.errors import CollectionError
from atlas.ingest import Silent
from atlas.measure.asking import Asked, all_readers, ask_all, ask_once
from atlas.measure.questions import load_questions
from atlas.measure.statistics import Unscored
from atlas.measure.summary import summarise
from atlas.measure.trace_file import read_all, read_traces
from atlas.records import Scope, Trace
from atlas.trace import line

MORE = """\
- {id: S3, question: how tight are the crank bolts, relevant: [MANUAL-1]}
- {id: S4, question: what does the battery of a C-3 cost, reader: sales, relevant: [PRICES]}
"""


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return collection(tmp_path / "c", cases=CASES + MORE)


class Count:
    """A progress that counts."""

    def __init__(self) -> None:
        self.total = self.done = 0

    def stage(self, name: str, total: int) -> None:
        self.total += total

    def step(self, count: int = 1) -> None:
        self.done += count


def counted(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """Every question that is asked from now on, with its reader."""
    asked: list[tuple[str, str | None]] = []
    real = assistant.ask

    def ask(question: str, scope: Scope | None = None) -> Trace:
        asked.append((question, scope.reader if scope else None))
        return real(question, scope)

    monkeypatch.setattr(assistant, "ask", ask)
    return asked


def broken(assistant: Assistant, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    """Let every question with a word break the assistant."""
    real = assistant.ask

    def ask(question: str, scope: Scope | None = None) -> Trace:
        if word in question:
            raise RuntimeError("the model fell over")
        return real(question, scope)

    monkeypatch.setattr(assistant, "ask", ask)


def asked(assistant: Assistant, told: Callable[[str], None] = lambda line: None) -> Asked:
    return ask_all(load_questions(assistant), assistant, Silent(), told)


def test_every_question_has_its_row_in_the_order_of_the_file(root: Path) -> None:
    progress = Count()
    assistant = opened(root)
    found = ask_all(load_questions(assistant), assistant, progress)
    assert [row.case.id for row in found.rows] == ["S1", "S2", "S3", "S4"]
    assert [row.scores["hit"] for row in found.rows if row.case.relevant] == [1, 1, 1]
    assert (progress.total, progress.done) == (4, 4)
    total = sum(float(row.trace["timings_seconds"]["total"]) for row in found.rows if row.trace)
    assert found.seconds == pytest.approx(total)


def test_every_question_is_looked_at_as_every_reader_group(root: Path) -> None:
    assistant = opened(root)
    assert all_readers(load_questions(assistant)) == ("sales", "workshop")
    found = asked(assistant)
    assert found.looks == 4 * 3  # anyone, sales, workshop
    assert found.leaks == ()


def test_reader_groups_of_the_documents_count_where_the_settings_name_none(tmp_path: Path) -> None:
    settings = SETTINGS.replace("readers: [sales, workshop]\n", "")
    assistant = opened(collection(tmp_path / "c", settings=settings))
    assert all_readers(load_questions(assistant)) == ("sales",)
    assert asked(assistant).looks == 2 * 2


def test_a_group_that_sees_the_same_blocks_is_not_asked_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assistant = opened(root)
    questions = counted(assistant, monkeypatch)
    found = asked(assistant)
    # the workshop sees what anyone sees; sales also see the prices
    assert [reader for question, reader in questions if "bolts" in question] == [None, "sales"]
    assert [reader for question, reader in questions if "cost" in question] == ["sales", None]
    assert len(questions) == 4 * 2
    assert found.looks == 4 * 3


def test_asking_once_looks_at_no_other_scope(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assistant = opened(root)
    questions = counted(assistant, monkeypatch)
    progress = Count()
    found = ask_once(load_questions(assistant), assistant, progress, lambda line: None)
    assert [reader for _, reader in questions] == [None, None, None, "sales"]
    assert (found.looks, found.leaks, progress.done) == (0, (), 4)
    both = [row.as_json() | {"milliseconds": 0} for row in found.rows]
    assert both == [row.as_json() | {"milliseconds": 0} for row in asked(assistant).rows]


def test_tokens_count_every_supplied_block_also_those_added_after_selection(tmp_path: Path) -> None:
    settings = SETTINGS + "k: 1\n"  # the other product's best block comes besides
    assistant = opened(collection(tmp_path / "c", settings=settings))
    [row, _] = asked(assistant).rows
    assert row.trace is not None
    texts = [item["text"] for item in row.trace["context"]]
    assert len(texts) == 2
    tokens = sum(assistant.encoder.count_tokens(text) for text in texts)
    assert row.scores["prompt_tokens"] == tokens


# ---- failures -------------------------------------------------------------------------------


def test_an_unknown_reader_fails_its_question_alone(tmp_path: Path) -> None:
    cases = CASES.replace("  core: true\n", "  reader: boss\n") + MORE
    found = asked(opened(collection(tmp_path / "c", cases=cases)))
    failed = [row for row in found.rows if row.failed]
    assert [row.case.id for row in failed] == ["S1"]
    assert failed[0].error.startswith("unknown reader group 'boss'")
    assert found.looks == 3 * 3


def test_a_bug_fails_its_question_alone_and_keeps_its_traceback(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assistant = opened(root)
    broken(assistant, monkeypatch, "bolts")
    told: list[str] = []
    found = asked(assistant, told.append)
    assert [row.error for row in found.rows] == ["", "", "RuntimeError: the model fell over", ""]
    [text] = told
    assert text.startswith("S3 broke:\nTraceback")
    assert "the model fell over" in text


def test_failed_questions_stay_in_the_total_and_out_of_the_mean(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assistant = opened(root)
    broken(assistant, monkeypatch, "bolts")
    hit = summarise(asked(assistant).rows)["hit"]
    assert not isinstance(hit.mean, Unscored)
    assert hit.mean.value == 1
    assert hit.counted == "scored 2 of 4, failed 1"  # S2 has no relevant block


def test_an_answer_that_failed_with_a_cause_is_a_failed_question(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assistant = opened(root)
    real = assistant.ask

    def ask(question: str, scope: Scope | None = None) -> Trace:
        trace = real(question, scope)
        return Trace(values={**trace.values, "status": "failed", "reason": "the server is gone"})

    monkeypatch.setattr(assistant, "ask", ask)
    found = asked(assistant)
    assert {row.error for row in found.rows} == {"the server is gone"}
    assert found.looks == 12  # what was supplied can leak all the same


def test_a_stopped_run_leaves_the_assistants_own_models(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assistant = opened(root)
    models = (assistant.encoder, assistant.reranker)

    def stop(*_: object) -> Trace:
        raise KeyboardInterrupt

    monkeypatch.setattr(assistant, "ask", stop)
    with pytest.raises(KeyboardInterrupt):
        asked(assistant)
    assert (assistant.encoder, assistant.reranker) == models


# ---- traces of a file -----------------------------------------------------------------------


def traced(assistant: Assistant, *ids: str) -> list[dict[str, Any]]:
    questions = load_questions(assistant)
    return [
        assistant.ask(case.question, questions.scope_of(case)).values
        for case in questions.cases
        if case.id in ids
    ]


def written(path: Path, traces: list[dict[str, Any]], end: str = "\n") -> Path:
    path.write_bytes("".join(line(Trace(values=trace)) + end for trace in traces).encode())
    return path


def test_traces_of_a_file_give_the_rows_that_asking_gives(root: Path, tmp_path: Path) -> None:
    assistant = opened(root)
    file = written(tmp_path / "t.jsonl", traced(assistant, "S1", "S2", "S3", "S4"))
    read = read_all(load_questions(assistant), file)
    fresh = asked(assistant)
    assert [row.as_json() | {"milliseconds": 0} for row in read.rows] == [
        row.as_json() | {"milliseconds": 0} for row in fresh.rows
    ]
    assert (read.looks, read.leaks, read.unmatched) == (4, (), 0)


def test_cases_without_a_trace_are_left_out_and_traces_without_a_case_counted(
    root: Path, tmp_path: Path
) -> None:
    assistant = opened(root)
    questions = load_questions(assistant)
    [own] = traced(assistant, "S3")
    foreign = [
        own | {"question": "where is the bell"},
        own | {"scope": own["scope"] | {"reader": "sales"}},
    ]
    read = read_all(questions, written(tmp_path / "t.jsonl", [own, *foreign]))
    assert [row.case.id for row in read.rows] == ["S3"]
    assert read.unmatched == 2
    none = read_all(questions, written(tmp_path / "none.jsonl", foreign))
    assert (none.rows, none.unmatched, none.looks) == ((), 2, 0)


def on(trace: dict[str, Any], day: str, tokens: int) -> dict[str, Any]:
    """A trace as if asked on another day, told apart by its tokens."""
    return trace | {"scope": trace["scope"] | {"date": day}, "tokens": {"supplied": tokens}}


def test_a_trace_of_the_collections_day_goes_before_a_later_one_of_another(
    root: Path, tmp_path: Path
) -> None:
    assistant = opened(root)
    [own] = traced(assistant, "S3")
    both = [on(own, "2026-03-02", 1), on(own, "2026-03-09", 2)]
    read = read_all(load_questions(assistant), written(tmp_path / "t.jsonl", both))
    assert [row.scores["prompt_tokens"] for row in read.rows] == [1]
    assert (read.other_day, read.unmatched) == (0, 1)


def test_a_trace_of_another_day_is_used_where_no_day_is_named_and_counted(
    root: Path, tmp_path: Path
) -> None:
    assistant = opened(root)
    [own] = traced(assistant, "S3")
    file = written(tmp_path / "t.jsonl", [on(own, "2026-03-09", 2)])
    read = read_all(load_questions(assistant), file)
    assert [row.case.id for row in read.rows] == ["S3"]
    assert (read.other_day, read.unmatched) == (1, 0)


def test_a_case_that_names_its_day_takes_no_trace_of_another(tmp_path: Path) -> None:
    cases = CASES.replace("core: true", "date: 2025-05-01")
    assistant = opened(collection(tmp_path / "c", cases=cases))
    [own] = traced(assistant, "S1")
    assert own["scope"]["date"] == "2025-05-01"
    file = written(tmp_path / "t.jsonl", [own, on(own, "2026-03-02", 2)])
    read = read_all(load_questions(assistant), file)
    assert [row.trace for row in read.rows] == [own]
    assert (read.other_day, read.unmatched) == (0, 1)
    only = written(tmp_path / "only.jsonl", [on(own, "2026-03-02", 2)])
    read = read_all(load_questions(assistant), only)
    assert (read.rows, read.unmatched) == ((), 1)


def test_case_and_punctuation_of_a_question_make_no_difference(root: Path, tmp_path: Path) -> None:
    assistant = opened(root)
    [own] = traced(assistant, "S3")
    file = written(tmp_path / "t.jsonl", [own | {"question": "How tight are the crank bolts?"}])
    assert [row.case.id for row in read_all(load_questions(assistant), file).rows] == ["S3"]


def test_the_last_trace_of_a_question_counts(root: Path, tmp_path: Path) -> None:
    assistant = opened(root)
    [own] = traced(assistant, "S3")
    later = own | {"tokens": {"supplied": 7}}
    read = read_all(load_questions(assistant), written(tmp_path / "t.jsonl", [own, later]))
    assert [row.scores["prompt_tokens"] for row in read.rows] == [7]
    assert read.unmatched == 0


def test_the_last_trace_counts_also_where_a_day_comes_back(tmp_path: Path) -> None:
    settings = SETTINGS.replace("as_of: 2026-03-02\n", "")
    assistant = opened(collection(tmp_path / "c", settings=settings))
    [own] = traced(assistant, "S1")
    days = (("2026-03-02", 1), ("2026-03-03", 2), ("2026-03-02", 3))
    traces = [on(own, day, tokens) for day, tokens in days]
    read = read_all(load_questions(assistant), written(tmp_path / "t.jsonl", traces))
    assert [row.scores["prompt_tokens"] for row in read.rows] == [3]


def test_a_case_without_a_day_leaves_the_trace_of_another_cases_day(tmp_path: Path) -> None:
    settings = SETTINGS.replace("as_of: 2026-03-02\n", "")
    then = CASES.split("- id: S2")[0].replace("S1", "S9").replace("core: true", "date: 2025-05-01")
    assistant = opened(collection(tmp_path / "c", settings=settings, cases=CASES + then))
    file = written(tmp_path / "t.jsonl", traced(assistant, "S1", "S9"))
    read = read_all(load_questions(assistant), file)
    days = {row.case.id: row.trace["scope"]["date"] for row in read.rows if row.trace}
    assert set(days) == {"S1", "S9"}
    assert days["S9"] == "2025-05-01"
    assert days["S1"] != "2025-05-01"


def test_a_failed_trace_of_a_file_is_a_failed_question(root: Path, tmp_path: Path) -> None:
    assistant = opened(root)
    [own] = traced(assistant, "S3")
    file = written(tmp_path / "t.jsonl", [own | {"status": "failed", "reason": "no server"}])
    [row] = read_all(load_questions(assistant), file).rows
    assert (row.failed, row.error) == (True, "no server")


def test_a_leak_in_a_trace_of_a_file_is_found(root: Path, tmp_path: Path) -> None:
    assistant = opened(root)
    [own] = traced(assistant, "S4")
    to_anyone = own | {"question": "how tight are the crank bolts"}
    to_anyone["scope"] = own["scope"] | {"reader": None}
    read = read_all(load_questions(assistant), written(tmp_path / "t.jsonl", [to_anyone]))
    assert {leak.ref for leak in read.leaks} == {"PRICES-1-p0"}


def test_a_byte_order_mark_line_ends_and_empty_lines_are_read(root: Path, tmp_path: Path) -> None:
    traces = traced(opened(root), "S1", "S3")
    file = written(tmp_path / "t.jsonl", traces, "\r\n\r\n")
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert list(read_traces(file)) == traces
    file.write_bytes(file.read_bytes().rstrip())  # a last line without its end
    assert list(read_traces(file)) == traces


def test_a_lone_carriage_return_ends_no_line(root: Path, tmp_path: Path) -> None:
    traces = traced(opened(root), "S1")
    file = written(tmp_path / "t.jsonl", traces)
    file.write_bytes(file.read_bytes().replace(b',"question"', b',\r"question"'))
    assert list(read_traces(file)) == traces


def test_a_line_separator_inside_a_text_ends_no_line(root: Path, tmp_path: Path) -> None:
    [own] = traced(opened(root), "S1")
    own["answer"] = "one\u2028two\x85three"
    file = tmp_path / "t.jsonl"
    file.write_text(json.dumps(own, ensure_ascii=False) + "\n", encoding="utf-8")
    assert [trace["answer"] for trace in read_traces(file)] == ["one\u2028two\x85three"]


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (b'{"id": ', "not JSON"),
        (b'{"id": NaN}', "NaN is no number of JSON"),
        (b'{"id": -Infinity}', "-Infinity is no number of JSON"),
        (b'{"id": "\xff"}', "not JSON"),
        (b'{"id": "x"}', "not a trace; expected lines that `atlas ask --json` prints"),
        (b'["schema"]', "not a trace"),
        (b"7", "not "),
        (b"[" * 100_000, "not JSON"),
        (b"null", "not "),
        (b'"schema"', "not a trace"),
    ],
)
def test_a_broken_line_is_refused_with_file_and_line(
    root: Path, tmp_path: Path, second: bytes, problem: str
) -> None:
    file = written(tmp_path / "t.jsonl", traced(opened(root), "S1"))
    file.write_bytes(file.read_bytes() + b"\n" + second + b"\n")
    with pytest.raises(CollectionError) as refused:
        list(read_traces(file))
    assert str(refused.value).startswith(f"{file}:3: ")
    assert problem in str(refused.value)


READ = (
    "question", "scope", "status", "answer", "reason", "choices", "citations", "removed",
    "context", "dropped", "ranked", "nearest", "decision", "settings", "tokens", "timings_seconds",
)  # fmt: skip
"""What is read of a trace somewhere below `measure`."""


@pytest.mark.parametrize("key", READ)
def test_a_trace_that_lacks_something_measured_is_refused(
    root: Path, tmp_path: Path, key: str
) -> None:
    [own] = traced(opened(root), "S1")
    del own[key]
    file = written(tmp_path / "t.jsonl", [own])
    with pytest.raises(CollectionError, match=r"t\.jsonl:1: not a trace"):
        list(read_traces(file))


@pytest.mark.parametrize(
    "wrong",
    [
        {"scope": None},
        {"scope": {"reader": None}},
        {"question": 7},
        {"context": [7]},
        {"citations": [{"marker": 1}]},
        {"ranked": ["WARR-1-p0", "WARR-1-p0"]},
        {"tokens": {}},
        {"timings_seconds": {"total": "0.1"}},
        {"settings": {}},
    ],
    ids=str,
)
def test_a_trace_of_another_form_is_refused_and_is_no_bug(
    root: Path, tmp_path: Path, wrong: dict[str, Any]
) -> None:
    assistant = opened(root)
    [own] = traced(assistant, "S1")
    file = written(tmp_path / "t.jsonl", [own | wrong])
    with pytest.raises(CollectionError, match=r"t\.jsonl:1: "):
        read_all(load_questions(assistant), file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match=r"none\.jsonl: cannot be read \(No such file"):
        list(read_traces(tmp_path / "none.jsonl"))


def test_traces_that_were_made_with_different_settings_are_not_mixed(
    root: Path, tmp_path: Path
) -> None:
    assistant = opened(root)
    traces = traced(assistant, "S1", "S3")
    file = written(tmp_path / "t.jsonl", traces)
    read = read_all(load_questions(assistant), file)
    assert read.settings == traces[0]["settings"]
    assert read.fingerprints == assistant.fingerprints()
    assert read.missing == len(load_questions(assistant).cases) - 2
    other = traces[1] | {"settings": traces[1]["settings"] | {"k": 1}}
    with pytest.raises(CollectionError, match="made with different settings, models or indexes"):
        read_all(load_questions(assistant), written(tmp_path / "u.jsonl", [traces[0], other]))


def test_a_trace_of_an_unknown_status_is_refused(root: Path, tmp_path: Path) -> None:
    [own] = traced(opened(root), "S1")
    with pytest.raises(CollectionError, match=r"t\.jsonl:1: not a trace"):
        list(read_traces(written(tmp_path / "t.jsonl", [own | {"status": "weird"}])))
