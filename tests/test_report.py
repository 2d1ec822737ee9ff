"""What measuring prints: every measure with its n, nothing wider than 100 columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from small import collection, opened, use_fakes

from atlas.assistant import Assistant
from atlas.measure.asking import Asked, ask_all
from atlas.measure.compare import compare
from atlas.measure.grids import read_grid
from atlas.measure.leaks import Leak
from atlas.measure.misses import Miss, misses
from atlas.measure.questions import Questions, load_questions
from atlas.measure.report import (
    GROUPS,
    MEANINGS,
    WIDTH,
    estimate_line,
    kind_lines,
    leak_line,
    miss_lines,
    question_lines,
    run_lines,
    short,
)
from atlas.measure.report_many import comparison_lines, sweep_lines
from atlas.measure.rows import NAMES, row_of
from atlas.measure.runs import Run, load_run, run_of, run_path, save_run
from atlas.measure.statistics import estimate
from atlas.measure.summary import LEAK_RATE
from atlas.measure.sweep import MEASURES, Step, Sweep, sweep
from atlas.records import Claim, Draft, Hit, Scope, Trace
from atlas.settings import Settings

LONG_ID = "HANDBUCH-FUER-DIE-WARTUNG-DES-ELEKTRISCHEN-ANTRIEBS-UND-DER-BREMSEN-AUSGABE-2026-R12"
LONG_KIND = "a question whose kind somebody has described in a whole sentence, for clarity"
LONG_NAME = "question-that-was-imported-from-a-spreadsheet-with-the-name-of-its-first-column-0001"
UGLY = {
    "long.md": f"---\nid: {LONG_ID}\n---\n# Wartung\n\n## Bremsen\n\nThe brake pads last 900 km.\n"
    "\n## Rad\n\nThe rim is trued with 3 Nm.\n",
    "other.md": "---\nid: B\nreaders: [sales]\n---\n# Prices\n\n## Pads\n\nBrake pads: 9 EUR.\n",
}
UGLY_CASES = f"""\
- id: {LONG_NAME}
  question: how long do brake pads last {"when it rains and the road is wet " * 8}
  kind: {LONG_KIND}
  relevant: [{LONG_ID}-1, {LONG_ID}-2, {LONG_ID}, {LONG_ID}-1-p0, {LONG_ID}-2-p0]
  facts: [[{"a very long fact " * 12}]]
- id: {"x" * 140}
  question: what do brake pads cost
  kind: {"ä" * 130}
  relevant: [B-1]
- id: C
  question: 日本のブレーキは
  expect: abstain
"""
PLAIN_CASES = """\
- {id: S1, kind: fact, question: how long is the battery under warranty, relevant: [WARR-1],
   evidence: [The battery is under warranty for 3 years.], facts: [3 years]}
- {id: S2, kind: fact, question: how long is the lock under warranty, relevant: [WARR-1],
   facts: [[6 years]]}
- {id: S3, kind: none, question: who painted the sistine chapel, expect: abstain}
- {id: S4, kind: price, question: what does the battery of the C-3 cost, relevant: [PRICES]}
- {id: S5, kind: fact, question: this one breaks, relevant: [MANUAL-1]}
"""


def plain_answerer(question: object, supplied: Sequence[Hit], *_: object) -> Draft:
    """Answers with the best block, or declines where that is not near."""
    if not supplied or (supplied[0].rerank_score or 0.0) < 0.2:
        return Draft(status="abstained", reason="the documents do not say")
    text = supplied[0].block.text
    claim = Claim(text=text, markers=(1,), quotes=(text,))
    return Draft(status="answered", claims=(claim,), evidence=(("probability", 0.9),))


class Quiet:
    """Progress that nobody looks at."""

    def stage(self, name: str, total: int) -> None: ...

    def step(self, count: int = 1) -> None: ...


class Measured:
    """A measured collection."""

    def __init__(self, root: Path) -> None:
        self.assistant: Assistant = opened(root)
        self.questions: Questions = load_questions(self.assistant)
        self.asked: Asked = ask_all(self.questions, self.assistant, Quiet())
        self.run: Run = run_of(self.asked, self.questions, self.assistant)
        self.misses: tuple[Miss, ...] = misses(self.run.rows, self.questions, self.assistant)

    def lines(self) -> list[str]:
        return list(run_lines(self.run, self.questions, self.misses))


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)
    monkeypatch.setattr("atlas.assistant.draft", plain_answerer)


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """Five questions: one that breaks, and one for a reader group that it is not asked as."""
    real = Assistant.ask

    def ask(self: Assistant, question: str, scope: Scope | None = None) -> Trace:
        if question == "this one breaks":
            raise RuntimeError("a bug " + "of many words " * 12)
        return real(self, question, scope)

    monkeypatch.setattr(Assistant, "ask", ask)
    return Measured(collection(tmp_path / "plain", cases=PLAIN_CASES))


@pytest.fixture
def ugly(tmp_path: Path) -> Measured:
    settings = "title: Ugly\nreaders: [sales]\nk: 1\n"
    return Measured(collection(tmp_path / "ugly", UGLY, settings=settings, cases=UGLY_CASES))


def widest(lines: list[str]) -> str:
    return max(lines, key=len)


# ---- a run ----------------------------------------------------------------------------------


def test_every_measure_is_printed_once_with_its_n(plain: Measured) -> None:
    lines = plain.lines()
    for name in NAMES:
        (line,) = [line for line in lines if re.match(rf"  {re.escape(name)}\s", line)]
        value = plain.run.summary[name]
        assert re.search(rf"\b{value.scored} of {value.total}\b", line), line
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(NAMES)


def test_every_measure_has_a_meaning_in_words() -> None:
    value = estimate([1.0, 0.0])
    for name in (*NAMES, LEAK_RATE):
        line = estimate_line(name, value)
        assert len(line) <= WIDTH
        assert re.search(r"2 of 2 +[a-z1]", line)
    assert all(MEANINGS.values())


def test_the_two_lists_are_told_apart(plain: Measured) -> None:
    lines = plain.lines()
    places = [next(n for n, line in enumerate(lines) if line.startswith(t)) for t in GROUPS]
    supplied, ranked = places[:2]
    assert lines[supplied].startswith("supplied blocks")
    assert lines[ranked].startswith("ranked list, before selection")
    between = [line.split()[0] for line in lines[supplied + 1 : ranked - 1]]
    assert between == ["hit", "recall", "precision", "evidence", "prompt_tokens"]


def test_what_was_asked_and_what_failed_is_counted(plain: Measured) -> None:
    text = "\n".join(plain.lines())
    assert "5 development questions, 1 of them without an answer in the documents" in text
    assert "4 of 5 asked, failed 1; k 5, min_score 0.02" in text
    assert "2,000 resamples, seed 20260101" in text
    assert "word overlap of questions and evidence: " in text
    assert "failed S5: RuntimeError: a bug of many words" in text
    assert re.search(r"\n  hit +\S+ \[.*\] +3 of 5 ", text)
    assert re.search(r"\n  declined +\S+ \[.*\] +1 of 5 ", text)


def test_a_measure_that_nothing_was_scored_for_is_a_dash(plain: Measured) -> None:
    (line,) = [line for line in plain.lines() if line.startswith("  asked_back ")]
    assert re.match(r"  asked_back +- +0 of 5 ", line)


def test_statuses_of_a_kind_add_up_to_its_questions(plain: Measured) -> None:
    lines = list(kind_lines(plain.run.rows))
    head = next(n for n, line in enumerate(lines) if "wrongly_declined" in line)
    counts = {}
    for line in lines[head + 1 :]:
        kind, n, *_, right, wrong, declined, back, failed = line.split()
        parts = [int(part) for part in (right, wrong, declined, back, failed)]
        assert sum(parts) == int(n)
        counts[kind] = parts
    assert counts["fact"] == [1, 1, 0, 0, 1]  # S2 gives 5 years, where the case wants 6
    assert counts["none"] == [0, 0, 1, 0, 0]
    assert sum(map(sum, counts.values())) == 5


def test_one_kind_needs_no_table(plain: Measured) -> None:
    assert list(kind_lines([row for row in plain.run.rows if row.case.kind == "fact"])) == []


def test_looks_and_leaks_are_counted(plain: Measured) -> None:
    assert leak_line(plain.run).startswith("leaks: 0 of 12 looks (every question as every reader")
    leak = Leak(case="S1", reader=None, ref="PRICES-1-p0", where="context", why="for sales only")
    again = replace(leak, where="ranked")
    other = replace(leak, reader="workshop", ref="PRICES-2-p0")
    run = replace(plain.run, leaks=(leak, again, other))
    assert leak_line(run).startswith("leaks: 2 of 12 looks")
    lines = list(run_lines(run, plain.questions, ()))
    assert "  LEAK S1 as anyone: PRICES-1-p0 in context, for sales only" in lines
    assert "  LEAK S1 as workshop: PRICES-2-p0 in context, for sales only" in lines


def test_the_risk_coverage_curve_ends_with_fewer_answers(plain: Measured) -> None:
    steps = [line for line in plain.lines() if " answers (" in line]
    assert [int(line.split()[0]) for line in steps] == [2, 1]
    assert "2 answers (0.50)" in steps[0]
    assert "wrong 0.500" in steps[0]


def test_the_miss_list_names_the_stage_and_what_beat_it(plain: Measured) -> None:
    lines = plain.lines()
    (head,) = [line for line in lines if "labels were not supplied" in line]
    assert head == "2 labels were not supplied: 1 scope, 1 failed"
    (line,) = [line for line in lines if line.startswith("  S4 ")]
    assert re.match(r"  S4 +scope +PRICES; beaten by WARR-1-p0", line)


def test_a_long_miss_list_says_how_many_it_left_out() -> None:
    miss = Miss(
        case="S1", kind="", question="", label="A-1", stage="search", reason="", ref="", rank=None,
        beaten_by="", alone=True,
    )  # fmt: skip
    lines = list(miss_lines([miss] * 40))
    assert len([line for line in lines if line.startswith("  S1")]) == 25
    assert lines[-1].startswith("  and 15 ")
    assert "another label" not in lines[-1]  # these questions found none
    mixed = list(miss_lines([miss] * 3 + [replace(miss, alone=False)] * 4))
    assert len([line for line in mixed if line.startswith("  S1")]) == 7
    assert mixed.index("another label was supplied:") == len(mixed) - 5


# ---- numbers --------------------------------------------------------------------------------


def test_short_means_are_the_same_numbers_in_fewer_letters() -> None:
    assert short(estimate([1.0] * 10)) == "1.000 [.69 1.00]"
    assert short(estimate([0.0] * 10)) == "0.000 [.00 .31]"
    assert short(estimate([], total=3)) == "-"


# ---- one question ---------------------------------------------------------------------------


def test_a_question_in_full_shows_every_supplied_block_and_its_scores(plain: Measured) -> None:
    row = plain.run.rows[0]
    lines = list(question_lines(row, ()))
    assert lines[0] == "S1  how long is the battery under warranty"
    assert lines[1] == "kind fact; expected answer; status answered"
    assert "relevant blocks: WARR-1-p0" in lines
    assert row.trace is not None
    for item in row.trace["context"]:
        (line,) = [line for line in lines if line.startswith(item["ref"])]
        word = "relevant" if item["ref"] == "WARR-1-p0" else "noise"
        scores = [f"{item[f'{n}_score']:.3f}" for n in ("keyword", "vector", "fused", "rerank")]
        assert line.split() == [item["ref"], word, *scores]
    assert any(
        line.startswith("answer: The battery is under warranty for 3 years.") for line in lines
    )
    assert any(re.match(r"  declined +unscored \(the documents answer it\)", x) for x in lines)


def test_dropped_blocks_are_shown_with_the_reason(ugly: Measured) -> None:
    lines = list(question_lines(ugly.run.rows[0], ()))
    assert "dropped" in lines
    assert ugly.run.rows[0].trace is not None
    assert ugly.run.rows[0].trace["dropped"]


def test_a_wrong_answer_says_why(plain: Measured) -> None:
    lines = list(question_lines(plain.run.rows[1], ()))
    assert any(line.startswith("wrong: ") and "6 years" in line for line in lines)


def test_a_question_that_failed_says_why(plain: Measured) -> None:
    lines = list(question_lines(plain.run.rows[4], ()))
    assert any(line.startswith("failed: RuntimeError: a bug") for line in lines)


# ---- width ----------------------------------------------------------------------------------


def test_a_run_fits_whatever_its_names_are(ugly: Measured) -> None:
    leak = Leak(case=LONG_NAME, reader=LONG_KIND, ref=LONG_ID, where="context", why=LONG_KIND)
    row = row_of(ugly.run.rows[0].case, None, "no " * 90, ugly.questions)
    run = replace(ugly.run, leaks=(leak,), rows=(*ugly.run.rows, row))
    lines = list(run_lines(run, ugly.questions, ugly.misses))
    assert len(widest(lines)) <= WIDTH, widest(lines)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_question_in_full_fits_whatever_its_names_are(ugly: Measured, place: int) -> None:
    lines = list(question_lines(ugly.run.rows[place], ugly.misses))
    assert len(widest(lines)) <= WIDTH, widest(lines)


def test_a_failure_fits(plain: Measured) -> None:
    lines = list(question_lines(plain.run.rows[4], plain.misses))
    assert len(widest(lines)) <= WIDTH, widest(lines)


def test_a_sweep_fits_with_held_out_columns_and_mark() -> None:
    def column(recalls: list[list[float]]) -> Sweep:
        steps = []
        for value, scores in enumerate(recalls):
            summary = dict.fromkeys((*MEASURES, "emptied"), estimate(scores))
            steps.append(
                Step(value=value / 10, summary={**summary, "prompt_tokens": estimate([9e5])})
            )
        return Sweep(name="max_per_document", steps=tuple(steps))

    ones = [1.0] * 10
    development = column([ones, [*ones, 0.99], ones])
    lines = list(sweep_lines(development, column([ones, ones, ones])))
    (mark,) = [line for line in lines if line.split()[1] == "<"]
    assert mark.split()[0] == "0.1"
    assert len(widest(lines)) <= WIDTH, widest(lines)


def test_a_comparison_fits_whatever_its_names_are(ugly: Measured, tmp_path: Path) -> None:
    names = [f"{'run-of-a-day-' * 9}{n}" for n in (1, 2)]
    lost = replace(ugly.run.rows[0], scores={**ugly.run.rows[0].scores, "hit": 0.0})
    settings = {**ugly.run.settings, "encoder": "a-model-with-a-long-name/" * 8}
    worse = replace(ugly.run, rows=(lost, *ugly.run.rows[1:]), settings=settings)
    for name, run in zip(names, (ugly.run, worse), strict=True):
        save_run(run, run_path(name, tmp_path))
    comparison = compare(*(load_run(name, tmp_path) for name in names))
    assert comparison.moved
    lines = list(comparison_lines(comparison))
    assert len(widest(lines)) <= WIDTH, widest(lines)


# ---- a sweep --------------------------------------------------------------------------------


def test_a_sweep_marks_the_value_at_which_recall_falls(plain: Measured) -> None:
    table = sweep("k", (1, 3, 5), plain.run.rows, plain.questions, plain.assistant)
    lines = list(sweep_lines(table))
    assert lines[0] == "k, development questions (scored 3 of 5)"
    assert [line.split()[0] for line in lines[2:5]] == ["1", "3", "5"]
    assert lines[-1] == "recall does not fall within these values"
    assert not any(line.split()[1] == "<" for line in lines)
    strict = sweep("min_score", (0, 0.2, 0.9), plain.run.rows, plain.questions, plain.assistant)
    marked = [line.split()[0] for line in sweep_lines(strict) if line.split()[1] == "<"]
    assert len(marked) == 1
    assert float(marked[0]) == strict.falls_at


@pytest.mark.parametrize("name", ["k", "min_score", "token_budget", "max_per_document"])
def test_the_columns_of_a_sweep_stand_below_their_names(name: str) -> None:
    summary = dict.fromkeys((*MEASURES, "prompt_tokens", "emptied"), estimate([1.0] * 10))
    steps = tuple(Step(value=value, summary=summary) for value in (1, 2))
    _, head, row, *_ = sweep_lines(Sweep(name=name, steps=steps))
    assert head.index(" hit") == row.index(" 1.000")


# ---- names of setups ------------------------------------------------------------------------


def test_a_setup_is_named_by_its_values(tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text("rerank: [false]\nblock_size: [section]\n")
    (setup,) = read_grid(tmp_path / "grid.yaml", Settings())
    assert setup.name() == "rerank off, block_size section"
