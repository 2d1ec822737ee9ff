"""One question's trace gives the values that can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log2
from typing import Any

import pytest

from atlas.blocks import split
from atlas.markdown import read_markdown
from atlas.measure.cases import Case, Labels
from atlas.measure.questions import Questions
from atlas.measure.rows import NAMES, Row, row_of
from atlas.measure.statistics import Unscored
from atlas.records import Block, Document, Metadata, Section, Unit
from atlas.settings import Settings

ALPHA = """\
# Alpha

## One

The battery lasts 3 years.

## Two

The lock lasts 5 years.

## Three

The bell rings.

## Four

The chain turns.
"""
BETA = "# Beta\n\n## One\n\nA charger costs 80 EUR.\n\n## Two\n\nA lamp costs 20 EUR.\n"


def document(name: str, markdown: str) -> Document:
    reading = read_markdown(markdown)
    return Document(
        metadata=Metadata(id=name, title=reading.title, path=f"{name}.md"),
        text=reading.text,
        sections=reading.sections,
        page_labels=(),
        warnings=(),
        content_hash=name,
    )


def paged(name: str, *pages: str) -> Document:
    """A document of one section with a paragraph on every page."""
    text = "\n".join(pages)
    units, start = [], 0
    for number, page in enumerate(pages, 1):
        units.append(Unit(kind="paragraph", start=start, end=start + len(page), page=number))
        start += len(page) + 1
    return replace(
        document(name, "# T\n"),
        text=text,
        sections=(Section(number=1, titles=("Whole",), units=tuple(units)),),
        page_labels=tuple("i ii iii iv v".split()[: len(pages)]),
    )


def questions(
    *documents: Document, size: int | str = 1000, spans: Mapping[str, Block] | None = None
) -> Questions:
    blocks = {block.ref: block for item in documents for block in split(item, size)}
    return Questions(
        set="development",
        cases=(),
        outside=0,
        labels=Labels(documents, blocks if spans is None else spans),
        documents=documents,
        blocks=blocks,
        settings=Settings(),
    )


AB = questions(document("A", ALPHA), document("B", BETA))


def case(**values: Any) -> Case:
    return Case(**{"id": "Q", "question": "what", "where": "x.yaml:1"} | values)


def trace(*supplied: str, **values: Any) -> dict[str, Any]:
    return {
        "status": "answered",
        "reason": "",
        "answer": "3 years",
        "choices": [],
        "citations": [],
        "removed": [],
        "context": [{"ref": ref, "text": AB.blocks[ref].text} for ref in supplied],
        "ranked": list(supplied),
        "tokens": {"question": 1, "supplied": 57},
        "timings_seconds": {"total": 0.25},
    } | values


def scored(case: Case, trace: Mapping[str, Any], over: Questions = AB) -> Row:
    return row_of(case, trace, "", over)


def test_every_measure_has_its_value_by_hand() -> None:
    row = scored(
        case(
            relevant=("A-1", "A-2", "B"),
            evidence=("The battery lasts 3 years.", "The lock lasts 5 years."),
        ),
        trace(
            *("A-3-p0", "A-1-p0", "B-2-p0"),
            ranked=["A-3-p0", "A-1-p0", "A-4-p0", "B-2-p0", "B-1-p0"],
            citations=[{"ref": "A-1-p0"}, {"ref": "A-1-p0"}],
            removed=["a marker without a block"],
        ),
    )
    assert row.relevant == ("A-1-p0", "A-2-p0", "B-1-p0", "B-2-p0")
    assert row.supplied == ("A-3-p0", "A-1-p0", "B-2-p0")
    assert row.first_rank == 2
    found = {name: score for name, score in row.scores.items() if not isinstance(score, Unscored)}
    assert found == pytest.approx(
        {
            "hit": 1,
            "recall": 2 / 3,  # labels A-1 and B of three
            "precision": 2 / 3,
            "evidence": 1 / 2,
            "prompt_tokens": 57,
            "hit@1": 0,
            "hit@3": 1,
            "hit@5": 1,
            "hit@10": 1,
            "precision@1": 0,
            "precision@3": 1 / 3,
            "precision@5": 3 / 5,
            "precision@10": 3 / 10,
            "recall@3": 1 / 4,  # blocks of four
            "recall@5": 3 / 4,
            "recall@10": 3 / 4,
            "reciprocal_rank@10": 1 / 2,
            "ndcg@10": (1 / log2(3) + 1 / log2(5) + 1 / log2(6))
            / (1 + 1 / log2(3) + 1 / log2(4) + 1 / log2(5)),
            "milliseconds": 250,
            "wrongly_declined": 0,
            "wrongly_asked_back": 0,
            "unused_sources": 2 / 3,
            "invalid_citations": 1 / 3,
        }
    )


def test_every_row_has_every_measure_in_the_order_of_the_report() -> None:
    assert tuple(scored(case(relevant=("A",)), trace("A-1-p0")).scores) == NAMES


def test_nothing_relevant_supplied_is_zero_and_has_no_first_rank() -> None:
    row = scored(case(relevant=("A-1",)), trace("B-1-p0", "A-2-p0"))
    names = ("hit", "recall", "precision", "hit@10", "reciprocal_rank@10", "ndcg@10")
    assert [row.scores[name] for name in names] == [0] * 6
    assert row.first_rank is None


def test_nothing_supplied_leaves_precision_without_a_value_and_not_recall() -> None:
    row = scored(case(relevant=("A-1",)), trace(status="abstained"))
    assert (row.scores["hit"], row.scores["recall"], row.scores["hit@1"]) == (0, 0, 0)
    assert row.scores["precision"] == Unscored("no block was supplied")


def test_a_question_without_a_relevant_block_has_no_score_of_retrieval() -> None:
    row = scored(case(expect="abstain"), trace("A-1-p0", status="abstained"))
    names = ["hit", "recall", "precision", *(name for name in NAMES if "@" in name)]
    assert {row.scores[name] for name in names} == {
        Unscored("the question has no relevant block"),
    }
    assert row.scores["prompt_tokens"] == 57
    assert row.scores["milliseconds"] == 250


@pytest.mark.parametrize(
    ("expect", "status", "values"),
    [
        ("abstain", "abstained", {"declined": 1}),
        ("abstain", "answered", {"declined": 0}),
        ("abstain", "needs_clarification", {"declined": 0}),
        ("answer", "abstained", {"wrongly_declined": 1, "wrongly_asked_back": 0}),
        ("answer", "answered", {"wrongly_declined": 0, "wrongly_asked_back": 0}),
        ("answer", "needs_clarification", {"wrongly_declined": 0, "wrongly_asked_back": 1}),
        ("clarify", "needs_clarification", {"asked_back": 1}),
        ("clarify", "abstained", {"asked_back": 0}),
    ],
)
def test_declining_and_asking_back_count_where_they_can_be_right_or_wrong(
    expect: str, status: str, values: dict[str, float]
) -> None:
    row = scored(case(expect=expect, relevant=("A-1",)), trace("A-1-p0", status=status))
    names = ("declined", "wrongly_declined", "asked_back", "wrongly_asked_back")
    found = {name: row.scores[name] for name in names}
    assert {name: v for name, v in found.items() if not isinstance(v, Unscored)} == values


def test_sources_are_unused_only_by_an_answer() -> None:
    declined = scored(case(relevant=("A",)), trace("A-1-p0", status="abstained"))
    assert declined.scores["unused_sources"] == Unscored("not answered")
    all_used = trace("A-1-p0", "A-2-p0", citations=[{"ref": "A-2-p0"}, {"ref": "A-1-p0"}])
    assert scored(case(relevant=("A",)), all_used).scores["unused_sources"] == 0
    without = scored(case(relevant=("A",)), trace(status="answered"))
    assert without.scores["unused_sources"] == Unscored("not answered")


def test_without_a_citation_there_is_no_rate_of_invalid_ones() -> None:
    row = scored(case(relevant=("A",)), trace("A-1-p0"))
    assert row.scores["invalid_citations"] == Unscored("the answer has no citation")
    removed = scored(case(relevant=("A",)), trace("A-1-p0", removed=["one", "two"]))
    assert removed.scores["invalid_citations"] == 1


def test_evidence_counts_whole_quotes_in_one_block_with_space_and_line_ends_folded() -> None:
    texts = [
        {"ref": "A-1-p0", "text": "The bat-\ntery  lasts\n3 years."},
        {"ref": "A-2-p0", "text": "The lock"},
        {"ref": "A-3-p0", "text": "lasts 5 years."},
    ]
    quotes = ("The battery lasts 3 years.", "The lock lasts 5 years.", "the battery")
    row = scored(case(relevant=("A",), evidence=quotes), trace(context=texts, ranked=[]))
    assert row.scores["evidence"] == pytest.approx(1 / 3)
    without = scored(case(relevant=("A",)), trace("A-1-p0"))
    assert without.scores["evidence"] == Unscored("the case has no evidence quote")


def test_a_failed_question_scores_nothing_and_says_why() -> None:
    for values in (None, trace("A-1-p0", status="failed", reason="the server is gone")):
        row = row_of(case(relevant=("A-1",)), values, "the server is gone", AB)
        assert row.failed
        assert row.status == "failed"
        assert row.wrong == ("the server is gone",)
        assert set(row.scores.values()) == {Unscored("the question failed")}
        assert tuple(row.scores) == NAMES
        found = row.as_json()
        assert found["failed"] == "the server is gone"
        assert found["passed"] is False
        assert found["hit"] is None


def test_the_json_has_the_keys_that_programs_rely_on() -> None:
    found = scored(case(relevant=("A-1",), kind="named"), trace("A-2-p0", "A-1-p0")).as_json()
    keys = (
        "id kind relevant supplied hit recall precision first_rank evidence hit@1 hit@3 hit@5 "
        "hit@10 recall@10 reciprocal_rank@10 ndcg@10 declined prompt_tokens milliseconds unscored"
    )
    assert set(keys.split()) <= set(found)
    assert (found["id"], found["kind"], found["first_rank"]) == ("Q", "named", 2)
    assert (found["relevant"], found["supplied"]) == (["A-1-p0"], ["A-2-p0", "A-1-p0"])
    assert found["evidence"] is None
    assert found["unscored"]["evidence"] == "the case has no evidence quote"
    assert found["declined"] is False


def test_json_tells_of_every_question_whether_it_was_declined() -> None:
    answerable = scored(case(relevant=("A-1",)), trace("A-1-p0", status="abstained"))
    assert answerable.as_json()["declined"] is True
    assert row_of(case(), None, "broke", AB).as_json()["declined"] is None


def test_a_case_passes_where_its_facts_are_answered_and_cited() -> None:
    wanted = case(relevant=("A-1",), facts=(("3 years",),))
    right = trace("A-1-p0", citations=[{"ref": "A-1-p0"}])
    assert scored(wanted, right).wrong == ()
    assert scored(wanted, right).as_json()["passed"] is True
    wrong = scored(wanted, right | {"answer": "13 years"})
    assert wrong.wrong == ("the answer lacks '3 years'",)
    assert wrong.as_json()["passed"] is False


# ---- labels ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "blocks"),
    [
        ("A", ["A-1-p0", "A-2-p0", "A-3-p0", "A-4-p0"]),
        ("A-2", ["A-2-p0"]),
        ("B-2-p0", ["B-2-p0"]),
        ("P", ["P-1-p0", "P-1-p1", "P-1-p2"]),
        ("P@2", ["P-1-p1"]),
        ("P-1-p2", ["P-1-p2"]),
        ("A-1-1", ["A-1-1-p0", "A-1-1-p1"]),
        ("A-1", ["A-1-1-p0", "A-1-1-p1"]),  # a document rather than section 1 of A
    ],
)
def test_a_label_stands_for_the_blocks_that_it_covers(label: str, blocks: list[str]) -> None:
    over = questions(
        document("A", ALPHA),
        document("B", BETA),
        paged("P", "first page", "second page", "third page"),
        paged("A-1", "longer", "id"),
        size="page",
    )
    assert list(over.relevant(case(relevant=(label,)))) == blocks


def test_a_block_over_two_pages_is_covered_by_either() -> None:
    over = questions(paged("P", "first page", "second page", "third page"))
    for page in (1, 2, 3):
        assert over.relevant(case(relevant=(f"P@{page}",))) == ("P-1-p0",)


def test_several_labels_of_one_block_count_it_once_and_each_label_for_itself() -> None:
    row = scored(case(relevant=("A-1", "A-1-p0", "A-2")), trace("A-1-p0"))
    assert row.relevant == ("A-1-p0", "A-2-p0")
    assert row.scores["recall"] == pytest.approx(2 / 3)
    assert row.scores["recall@10"] == pytest.approx(1 / 2)


LONG = "# L\n\n## Only\n\n" + "\n\n".join(f"{letter * 59}." for letter in "abcdef") + "\n"
"""Six paragraphs of sixty characters."""


def test_a_block_label_keeps_its_text_when_blocks_become_smaller() -> None:
    long = document("L", LONG)
    spans = {block.ref: block for block in split(long, 200)}  # abc, def
    assert [spans[ref].text[0] for ref in spans] == ["a", "d"]
    over = questions(long, size=100, spans=spans)  # a, b, c, d, e, f
    assert len(over.blocks) == 6
    assert over.relevant(case(relevant=("L-1-p1",))) == ("L-1-p3", "L-1-p4", "L-1-p5")


def test_a_block_label_keeps_its_text_when_blocks_become_larger() -> None:
    long = document("L", LONG)
    spans = {block.ref: block for block in split(long, 100)}
    over = questions(long, size=200, spans=spans)
    found = [over.relevant(case(relevant=(f"L-1-p{piece}",))) for piece in range(6)]
    assert found == [("L-1-p0",)] * 3 + [("L-1-p1",)] * 3
    whole = questions(long, size="section", spans=spans)
    assert whole.relevant(case(relevant=("L-1-p5",))) == ("L-1-p0",)


def test_a_block_that_shares_less_than_half_with_the_label_is_not_covered() -> None:
    long = document("L", LONG)
    spans = {block.ref: block for block in split(long, 260)}  # abcd, ef
    over = questions(long, size=200, spans=spans)  # abc, def: one of three is d
    assert over.relevant(case(relevant=("L-1-p0",))) == ("L-1-p0",)
    assert over.relevant(case(relevant=("L-1-p1",))) == ("L-1-p1",)
