"""A sweep measures what asking again under each value would have supplied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from small import SETTINGS, collection, opened, use_fakes

from atlas.assistant import Assistant
from atlas.errors import AtlasError, UsageError
from atlas.ingest import Silent
from atlas.measure.asking import Asked, ask_once
from atlas.measure.questions import load_questions
from atlas.measure.report_many import sweep_lines
from atlas.measure.statistics import Unscored, estimate
from atlas.measure.sweep import Step, Sweep, parse_sweep, sweep
from atlas.settings import with_value

SECTIONS = {
    "BIKE": [
        "The battery of the bike is under warranty for 3 years.",
        "The lock of the bike is under warranty for 5 years.",
        "The bell rings when the lever is pushed.",
        "Charge the battery before the first ride of the bike.",
        "The warranty of the frame is void after a crash of the bike.",
    ],
    "SHOP": [
        "Dealers sell a second battery for the bike.",
        "Dealers look at the lock once a year for free.",
    ],
    "CITY": ["The battery of the C-3 has 36 V and is under warranty."],
    "TREK": ["The battery of the T-7 has 48 V and is under warranty."],
    "LIST": ["| check | what |\n|---|---|\n| R01 | battery |\n| R02 | lock |\n| R03 | bell |"],
}
HEADS = {"CITY": "products: [C-3]\n", "TREK": "products: [T-7]\n"}
FILES = {
    f"{name}.md": f"---\nid: {name}\n{HEADS.get(name, '')}---\n# {name.title()}\n"
    + "".join(f"\n## Part {n}\n\n{text}\n" for n, text in enumerate(texts, 1))
    for name, texts in SECTIONS.items()
}
CASES = """\
- {id: S1, question: how long is the battery under warranty, relevant: [BIKE-1, CITY]}
- {id: S2, question: the lock of the bike, relevant: [BIKE-2, SHOP-2], evidence: [once a year]}
- {id: S3, question: how many checks are there, relevant: [LIST], facts: [['3']]}
- {id: S4, question: battery of a C-3, relevant: [CITY]}
- {id: S5, question: warranty of the frame after a crash, relevant: [BIKE-5]}
- {id: S6, question: what is the airspeed of a swallow, expect: abstain}
"""
SWEPT = {
    "k": (1, 2, 3, 5, 10),
    "min_score": (0.0, 0.1, 0.15, 0.2, 0.3, 0.5),
    "max_per_document": (1, 2, 5),
    "token_budget": (50, 60, 100, 2000),
}


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assistant]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_fakes(monkeypatch)
        settings = SETTINGS.replace("sample: [WARR]\n", "")
        root = collection(
            tmp_path_factory.mktemp("sweep") / "c", FILES, cases=CASES, settings=settings
        )
        yield opened(root)


def asked(assistant: Assistant, **settings: float) -> Asked:
    """Ask under other settings; the assistant's own come back."""
    own = assistant.settings
    try:
        for name, value in settings.items():
            assistant.settings = with_value(assistant.settings, "test", name, value)
        return ask_once(load_questions(assistant), assistant, Silent(), lambda line: None)
    finally:
        assistant.settings = own


def swept(assistant: Assistant, name: str, values: tuple[float, ...], found: Asked) -> Sweep:
    return sweep(name, values, found.rows, load_questions(assistant), assistant)


@pytest.mark.parametrize("name", SWEPT)
@pytest.mark.parametrize("reranker", [True, False])
def test_what_is_selected_again_is_what_asking_again_supplies(
    assistant: Assistant, name: str, reranker: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not reranker:
        monkeypatch.setattr(assistant, "reranker", None)
    before = asked(assistant)
    lists = set()
    for value in SWEPT[name]:
        settings = with_value(assistant.settings, "test", name, value)
        again = asked(assistant, **{name: value})
        for row, fresh in zip(before.rows, again.rows, strict=True):
            assert row.trace is not None
            assert fresh.trace is not None
            chosen = assistant.reselect(row.trace, settings)
            refs = tuple(hit.block.ref for hit in chosen.kept)
            assert refs == fresh.supplied, (row.case.id, value)
            assert chosen.tokens == fresh.trace["tokens"]["supplied"]
            lists.add((row.case.id, refs))
    if reranker or name != "min_score":  # without rerank scores there is nothing to be below
        assert len(lists) > len(before.rows)


@pytest.mark.parametrize("name", SWEPT)
def test_a_sweeps_means_are_those_of_asking_again(assistant: Assistant, name: str) -> None:
    found = swept(assistant, name, SWEPT[name], asked(assistant))
    for step in found.steps:
        again = asked(assistant, **{name: step.value})
        for measure in ("hit", "recall", "precision", "evidence", "prompt_tokens"):
            fresh = estimate([row.scores[measure] for row in again.rows])
            assert step.summary[measure] == fresh, (measure, step.value)


def test_a_sweep_from_a_small_k_reaches_a_larger_one(assistant: Assistant) -> None:
    small, large = asked(assistant, k=1), asked(assistant, k=5)
    for row, fresh in zip(small.rows, large.rows, strict=True):
        assert row.trace is not None
        settings = with_value(assistant.settings, "test", "k", 5)
        kept = assistant.reselect(row.trace, settings).kept
        assert tuple(hit.block.ref for hit in kept) == fresh.supplied


def test_questions_without_an_answer_are_counted_by_whether_anything_is_supplied(
    assistant: Assistant,
) -> None:
    found = swept(assistant, "min_score", (0.0, 0.9), asked(assistant))
    assert [step.summary["emptied"].as_json()["mean"] for step in found.steps] == [0, 1]
    assert [step.summary["emptied"].scored for step in found.steps] == [1, 1]
    assert [step.summary["hit"].counted for step in found.steps] == ["scored 5 of 6, failed 0"] * 2


def test_nothing_supplied_leaves_precision_without_a_value(assistant: Assistant) -> None:
    [_, nothing] = swept(assistant, "min_score", (0.0, 1.0), asked(assistant)).steps
    assert isinstance(nothing.summary["precision"].mean, Unscored)
    assert nothing.summary["recall"].as_json()["mean"] == 0
    assert nothing.summary["prompt_tokens"].as_json()["mean"] == 0


def test_failed_questions_are_counted_and_not_averaged(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = assistant.ask

    def ask(question: str, scope: Any = None) -> Any:
        if "lock" in question:
            raise RuntimeError("broke")
        return real(question, scope)

    monkeypatch.setattr(assistant, "ask", ask)
    for step in swept(assistant, "k", (1, 5), asked(assistant)).steps:
        assert step.summary["hit"].counted == "scored 4 of 6, failed 1"
        assert step.summary["evidence"].counted == "scored 0 of 6, failed 1"


def test_no_model_runs_for_a_sweep(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked(assistant)

    def refuse(*_: object) -> Any:
        raise AssertionError("a model ran")

    monkeypatch.setattr(assistant.encoder, "encode_question", refuse)
    monkeypatch.setattr(assistant.encoder, "encode_documents", refuse)
    monkeypatch.setattr(assistant.reranker, "score_pairs", refuse)
    assert len(swept(assistant, "k", (1, 2, 3), found).steps) == 3


# ---- the mark -------------------------------------------------------------------------------


def with_recalls(*recalls: float | None) -> Sweep:
    nothing = estimate([], total=4)
    names = ("hit", "recall", "precision", "evidence", "prompt_tokens", "emptied")
    return Sweep(
        name="min_score",
        steps=tuple(
            Step(
                value=place / 10,
                summary=dict.fromkeys(names, nothing)
                | ({} if mean is None else {"recall": estimate([mean] * 4)}),
            )
            for place, mean in enumerate(recalls)
        ),
    )


@pytest.mark.parametrize(
    ("recalls", "value"),
    [
        ((0.9, 0.9, 0.8, 0.7), 0.2),
        ((0.8, 0.9, 0.9, 0.85), 0.3),
        ((0.9, 0.8, 0.9, 0.7), 0.1),
        ((0.5, 0.6, 0.7), None),
        ((0.9, 0.9), None),
        ((None, None), None),
        ((0.1 + 0.2, 0.3), None),  # equal but for rounding
    ],
)
def test_the_mark_stands_at_the_first_value_below_the_one_before(
    recalls: tuple[float | None, ...], value: float | None
) -> None:
    assert with_recalls(*recalls).falls_at == value


def test_the_table_marks_the_development_column_alone() -> None:
    development, held_out = with_recalls(0.9, 0.9, 0.8), with_recalls(0.9, 0.5, 0.5)
    lines = list(sweep_lines(development, held_out))
    marked = [line for line in lines if line.split()[1] == "<"]
    assert len(marked) == 1
    assert marked[0].split()[0] == "0.2"
    assert "held-out recall" in lines[1]
    alone = "\n".join(sweep_lines(with_recalls(0.9, 0.9)))
    assert "recall does not fall within these values" in alone
    assert "held-out" not in alone
    assert "<" not in alone


def test_a_step_is_plain_json(assistant: Assistant) -> None:
    values = swept(assistant, "k", (1, 3), asked(assistant)).steps[1].as_json()
    assert values["value"] == 3
    assert {"mean", "low", "high", "scored", "total", "failed"} <= set(values["summary"]["recall"])


# ---- the text -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("min_score=0:0.9:0.1", "min_score", tuple(n / 10 for n in range(10))),
        ("min_score=0:0.25:0.1", "min_score", (0, 0.1, 0.2)),
        ("k=3,5,10", "k", (3, 5, 10)),
        (" k = 1 : 3 : 1 ", "k", (1, 2, 3)),
        ("min_score=0:1:0.01", "min_score", tuple(n / 100 for n in range(101))),
        ("token_budget=500,1000", "token_budget", (500, 1000)),
        ("max_per_document=1:4:3", "max_per_document", (1, 4)),
    ],
)
def test_values_are_a_range_with_both_ends_or_a_list(
    text: str, name: str, values: tuple[float, ...]
) -> None:
    assert parse_sweep(text) == (name, values)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected `min_score=0:0.9:0.1` or `k=3,5,10`"),
        ("min_score", "expected `min_score="),
        ("min_score=", "expected `min_score="),
        ("=0:1:0.1", "'' takes effect before reranking or is no setting"),
        ("depth=5,10", "'depth' takes effect before reranking or is no setting; sweep one of"),
        ("minscore=0,1", "or is no setting; sweep one of min_score, k, max_per_document"),
        ("k=3", "1 values; expected 2 to 101"),
        ("min_score=0:1:0.001", "expected 2 to 101"),
        ("min_score=0:1", "expected numbers, low:high:step"),
        ("min_score=0:1:0", "with a step above 0"),
        ("min_score=0:1:-0.1", "with a step above 0"),
        ("min_score=1:0:0.1", "expected numbers, low:high:step"),
        ("min_score=a:b:c", "expected numbers"),
        ("k=3,,5", "expected numbers"),
        ("k=5,3", "each once, rising"),
        ("k=3,3", "each once, rising"),
        ("k=3,nan", "expected finite values"),
        ("k=3,inf", "expected finite values"),
        ("min_score=0:inf:0.1", "expected numbers"),
        ("min_score=nan:1:0.1", "expected numbers"),
    ],
)
def test_a_text_of_another_form_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_sweep(text)
    assert str(refused.value).startswith("--sweep")
    assert problem in str(refused.value)


@pytest.mark.parametrize("text", ["min_score=0.5,1.5", "k=0,3", "k=1,2.5", "token_budget=10,100"])
def test_a_value_out_of_range_is_refused_before_anything_is_asked(text: str) -> None:
    with pytest.raises(AtlasError, match=r"^--sweep .*expected a (whole )?number"):
        parse_sweep(text)
