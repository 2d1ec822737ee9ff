"""Which blocks each arm answers from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small import FILES, SETTINGS, collection, opened, use_fakes
from test_outcomes import case

from atlas.measure.answers.arms import ARMS, AS_REAL, MOST, blocks_for, evidence_of
from atlas.measure.cases import Case
from atlas.measure.questions import Questions, load_questions
from atlas.measure.statistics import Unscored

MANY = "# Many\n\n" + "\n\n".join(f"## Part {n}\n\nPart {n} says {n}.\n" for n in range(1, 16))
SUPPLIED = ("MANUAL-2-p0", "WARR-2-p0", "WARR-1-p0", "MANUAL-1-p0")


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Questions:
    use_fakes(monkeypatch)
    files = {**FILES, "many.md": f"---\nid: MANY\n---\n{MANY}"}
    root = collection(tmp_path / "c", files, settings=SETTINGS)
    return load_questions(opened(root))


def given(arm: str, asked: Case, questions: Questions, supplied: Any = SUPPLIED) -> list[str]:
    blocks = blocks_for(arm, asked, supplied, questions)
    assert not isinstance(blocks, Unscored), blocks
    return [block.ref for block in blocks]


def term(**changes: Any) -> Case:
    """A question whose label is the whole document and whose quote stands in one section."""
    quote = "The battery is under warranty for 3 years."
    return case(**{"relevant": ("WARR",), "evidence": (quote,), **changes})


def test_no_documents_are_no_blocks_also_where_there_is_evidence(questions: Questions) -> None:
    assert blocks_for("none", term(), SUPPLIED, questions) == ()
    assert blocks_for("none", case(), SUPPLIED, questions) == ()


def test_the_oracle_is_the_blocks_with_the_quotes_and_nothing_else(questions: Questions) -> None:
    assert given("oracle", term(), questions) == ["WARR-1-p0"]
    both = term(evidence=("The battery is under  WARRANTY", "within 30 days"))
    assert given("oracle", both, questions) == ["WARR-1-p0", "WARR-2-p0"]
    assert given("oracle", term(), questions, supplied=()) == ["WARR-1-p0"]


def test_without_a_quote_in_one_block_the_oracle_is_all_that_the_labels_cover(
    questions: Questions,
) -> None:
    assert given("oracle", term(evidence=()), questions) == ["WARR-1-p0", "WARR-2-p0"]
    across = "for 5 years.\n\nClaims"
    one_of_two = term(evidence=("The battery is under warranty", across))
    assert given("oracle", one_of_two, questions) == ["WARR-1-p0", "WARR-2-p0"]
    several = term(relevant=("MANUAL-2", "WARR-2-p0"), evidence=())
    assert given("oracle", several, questions) == ["MANUAL-2-p0", "WARR-2-p0"]


def test_a_label_of_a_long_document_brings_in_its_first_blocks(questions: Questions) -> None:
    long = term(relevant=("MANY",), evidence=())
    assert given("oracle", long, questions) == [f"MANY-{n}-p0" for n in range(1, MOST + 1)]
    last = term(relevant=("MANY",), evidence=("Part 15 says 15.",))
    assert given("oracle", last, questions) == ["MANY-15-p0"]
    assert len(evidence_of(long, questions)) == MOST == 12


def test_noise_is_what_was_retrieved_besides_and_comes_after_the_evidence(
    questions: Questions,
) -> None:
    found = given("oracle+noise", term(), questions)
    assert found == ["WARR-1-p0", "MANUAL-2-p0", "MANUAL-1-p0"]
    assert given("oracle+noise", term(), questions, supplied=()) == ["WARR-1-p0"]


def test_near_misses_are_those_that_the_case_names_and_its_labels_do_not_cover(
    questions: Questions,
) -> None:
    near = term(relevant=("WARR-1",), near_misses=("PRICES-1", "WARR", "MANUAL-2-p0"))
    found = given("oracle+near-misses", near, questions)
    assert found == ["WARR-1-p0", "MANUAL-2-p0", "PRICES-1-p0", "WARR-2-p0"]
    many = term(near_misses=("MANY",))
    assert len(given("oracle+near-misses", many, questions)) == 1 + MOST


@pytest.mark.parametrize("names", [(), ("WARR-2",)])
def test_a_case_without_a_near_miss_has_no_such_arm(
    questions: Questions, names: tuple[str, ...]
) -> None:
    found = blocks_for("oracle+near-misses", term(near_misses=names), SUPPLIED, questions)
    assert found == Unscored("the case names no near miss")


@pytest.mark.parametrize("arm", ["oracle", "oracle+noise"])
def test_a_question_without_evidence_has_no_better_blocks(questions: Questions, arm: str) -> None:
    asked = case(relevant=(), near_misses=("PRICES-1",), expect="abstain")
    assert blocks_for(arm, asked, SUPPLIED, questions) is AS_REAL
    misses = blocks_for("oracle+near-misses", asked, SUPPLIED, questions)
    assert not isinstance(misses, Unscored)
    assert [block.document for block in misses] == ["PRICES"]


def test_the_arms_are_those_that_the_command_names() -> None:
    assert ARMS == ("none", "real", "oracle", "oracle+noise", "oracle+near-misses")
