"""Every label that was not supplied names the stage that lost it, and what was supplied instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small import SETTINGS, collection, opened, use_fakes

from atlas.assistant import Assistant
from atlas.ingest import Silent
from atlas.measure.asking import ask_once
from atlas.measure.misses import Miss, by_stage, misses
from atlas.measure.questions import load_questions
from atlas.records import Scope
from atlas.settings import with_value

QUESTION = "saddle height"
DOCUMENTS = {
    "SHORT": "Saddle.",  # near by cosine, since it holds little else; one word of two
    "LONG": "The height of every saddle depends on the leg of the rider and on the frame.",
    "OTHER": "Saddle bags and saddle covers are sold by dealers near you.",
    "BELL": "The bell rings.",
}
SECRET = "---\nid: SECRET\nreaders: [sales]\n---\n# Secret\n\n## Part\n\nThe saddle height.\n"


def files(**texts: str) -> dict[str, str]:
    chosen = texts or DOCUMENTS
    found = {
        f"{name}.md": f"---\nid: {name}\n---\n# {name.title()}\n\n## Part\n\n{text}\n"
        for name, text in chosen.items()
    }
    return {**found, "secret.md": SECRET}


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)


def assistant_on(
    place: Path, relevant: str, texts: dict[str, str] | None = None, **settings: Any
) -> Assistant:
    """An assistant with one question; it ranks by cosine, then by the share of words alone."""
    cases = f"- {{id: Q1, question: {QUESTION}, relevant: [{relevant}], kind: named}}\n"
    root = collection(
        place / "c",
        files(**(texts or {})),
        cases=cases,
        settings=SETTINGS.replace("sample: [WARR]\n", ""),
    )
    assistant = opened(root)
    for name, value in {"vector_weight": 1, "rerank_weight": 1, **settings}.items():
        assistant.settings = with_value(assistant.settings, "test", name, value)
    return assistant


def lost(assistant: Assistant) -> tuple[Miss, ...]:
    questions = load_questions(assistant)
    found = ask_once(questions, assistant, Silent(), lambda line: None)
    return misses(found.rows, questions, assistant)


def ranked(assistant: Assistant) -> list[str]:
    refs: list[str] = assistant.ask(QUESTION, Scope()).values["ranked"]
    return [ref.removesuffix("-1-p0") for ref in refs]


def test_what_was_supplied_is_no_miss(tmp_path: Path) -> None:
    assistant = assistant_on(tmp_path, "LONG")
    assert ranked(assistant) == ["LONG", "SHORT", "OTHER", "BELL"]
    assert lost(assistant) == ()
    assert by_stage(()) == {}


def test_scope_lost_what_the_reader_may_not_see(tmp_path: Path) -> None:
    [miss] = lost(assistant_on(tmp_path, "SECRET"))
    assert (miss.stage, miss.reason, miss.ref, miss.rank) == ("scope", "", "", None)
    assert (miss.label, miss.alone, miss.beaten_by) == ("SECRET", True, "LONG-1-p0")


def test_search_lost_what_was_never_scored(tmp_path: Path) -> None:
    [miss] = lost(assistant_on(tmp_path, "LONG", depth=1))
    assert (miss.stage, miss.ref, miss.rank) == ("search", "LONG-1-p0", 3)
    assert miss.beaten_by == "SHORT-1-p0"


def test_reranking_lost_what_was_out_of_reach(tmp_path: Path) -> None:
    near = {f"S{n:02}": "Saddle height." for n in range(4)}
    texts = near | {"LONG": DOCUMENTS["LONG"], "BELL": "The bell rings."}
    [miss] = lost(assistant_on(tmp_path, "LONG", texts, rerank_reach=0.1))
    assert (miss.stage, miss.reason, miss.rank) == ("rerank", "not read, out of reach", 5)
    assert by_stage([miss]) == {"rerank: not read, out of reach": 1}


def test_search_lost_what_does_not_stand_in_the_ranking_at_all(tmp_path: Path) -> None:
    many = {f"S{n:02}": "Saddle height." for n in range(12)} | {"BELL": "The bell rings."}
    [miss] = lost(assistant_on(tmp_path, "BELL", many))
    assert (miss.stage, miss.ref, miss.rank) == ("search", "", None)


def test_reranking_lost_what_search_had_among_the_first_k(tmp_path: Path) -> None:
    [miss] = lost(assistant_on(tmp_path, "SHORT", k=1))
    assert (miss.stage, miss.reason, miss.ref, miss.rank) == ("rerank", "", "SHORT-1-p0", 2)
    assert miss.beaten_by == "LONG-1-p0"


def test_k_lost_what_neither_order_had_among_the_first(tmp_path: Path) -> None:
    [miss] = lost(assistant_on(tmp_path, "OTHER", k=1))
    assert (miss.stage, miss.reason, miss.rank) == ("select", "beyond k 1", 3)


@pytest.mark.parametrize("reranker", [True, False])
def test_reranking_lost_nothing_where_the_order_stayed(tmp_path: Path, reranker: bool) -> None:
    twins = {"AAA": "Saddle height.", "BBB": "Saddle height.", "CCC": "The bell rings."}
    assistant = assistant_on(tmp_path, "BBB", twins, k=1)
    if not reranker:
        assistant.reranker = None
    assert ranked(assistant) == ["AAA", "BBB", "CCC"]
    [miss] = lost(assistant)
    assert (miss.stage, miss.reason, miss.beaten_by) == ("select", "beyond k 1", "AAA-1-p0")


def test_min_score_lost_a_block_below_it(tmp_path: Path) -> None:
    [miss] = lost(assistant_on(tmp_path, "BELL", min_score=0.1))
    assert (miss.stage, miss.reason, miss.rank) == ("select", "below min_score 0.1", 4)


def test_a_straggler_was_lost_by_that_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atlas.select.STRAGGLER", 0.3)
    [miss] = lost(assistant_on(tmp_path, "BELL"))
    assert (miss.stage, miss.reason) == ("select", "straggler: under 0.3 of the best score")


def test_too_many_of_one_document_lose_the_rest_of_it(tmp_path: Path) -> None:
    texts = {
        "MANY": "Saddle height.\n\n## Next\n\nSaddle height again.\n\n## Last\n\nHeight.",
        "BELL": "The bell rings.",
    }
    [miss] = lost(assistant_on(tmp_path, "MANY-3", texts, max_per_document=2))
    assert (miss.stage, miss.reason) == ("select", "more than 2 of one document")
    assert (miss.ref, miss.beaten_by) == ("MANY-3-p0", "MANY-1-p0")


def test_the_budget_of_tokens_lost_a_block_that_was_too_long(tmp_path: Path) -> None:
    texts = {"AAA": "Saddle height " + "on " * 40, "BBB": "Saddle " + "on " * 40}
    [miss] = lost(assistant_on(tmp_path, "BBB", texts, token_budget=50))
    assert (miss.stage, miss.reason) == ("select", "over the budget of 50 tokens")


def test_a_failed_question_lost_its_labels_by_failing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assistant = assistant_on(tmp_path, "LONG, BELL")

    def ask(*_: object) -> Any:
        raise RuntimeError("the model fell over")

    monkeypatch.setattr(assistant, "ask", ask)
    found = lost(assistant)
    assert [(miss.label, miss.stage) for miss in found] == [("LONG", "failed"), ("BELL", "failed")]
    assert {miss.reason for miss in found} == {"RuntimeError: the model fell over"}
    assert {miss.beaten_by for miss in found} == {""}


def test_each_label_is_a_miss_of_its_own_and_beside_another_it_is_not_alone(tmp_path: Path) -> None:
    found = lost(assistant_on(tmp_path, "LONG, SECRET, BELL", min_score=0.1))
    assert [(miss.label, miss.stage) for miss in found] == [("SECRET", "scope"), ("BELL", "select")]
    assert {miss.alone for miss in found} == {False}
    assert {miss.beaten_by for miss in found} == {"SHORT-1-p0"}  # LONG is relevant itself
    assert by_stage(found) == {"scope": 1, "select: below min_score 0.1": 1}


def test_a_section_is_lost_where_its_best_seen_block_was_lost(tmp_path: Path) -> None:
    texts = {"TWO": "Bell.\n\n## Next\n\nThe bell of a saddle rings.", "LONG": DOCUMENTS["LONG"]}
    [miss] = lost(assistant_on(tmp_path, "TWO", texts, k=1))
    assert (miss.ref, miss.rank) == ("TWO-2-p0", 2)


def test_questions_with_nothing_found_come_first_and_each_miss_has_one_line(
    tmp_path: Path,
) -> None:
    cases = """\
- {id: Q1, question: saddle height, relevant: [LONG, SECRET]}
- {id: Q2, question: saddle height and bell, relevant: [SECRET]}
"""
    assistant = opened(collection(tmp_path / "c", files(), cases=cases, settings=""))
    found = lost(assistant)
    assert [(miss.case, miss.alone) for miss in found] == [("Q2", True), ("Q1", False)]
    values = found[0].as_json()
    assert values["stage"] == "scope"
    assert (values["ref"], values["rank"], values["nothing_found"]) == (None, None, True)
    assert found[0].line().split()[:3] == ["Q2", "scope", "SECRET;"]


def test_a_stage_line_names_block_rank_rule_and_winner(tmp_path: Path) -> None:
    [miss] = lost(assistant_on(tmp_path, "OTHER", k=1))
    assert miss.line() == "Q1      select  OTHER-1-p0, rank 3 (beyond k 1); beaten by LONG-1-p0"
    assert miss.kind == "named"
