"""The evidence for a quote, and the probability that follows from it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from pieces import block, candidate, hit, material, quote, scored

from atlas.answer import decision
from atlas.answer.answerer import judge, rivals_of
from atlas.answer.clarification import Products
from atlas.answer.decision import (
    FEATURES,
    features_of,
    lacks_value,
    probability,
    threshold,
    weights,
)
from atlas.answer.extractive import Candidate
from atlas.answer.question import STRICT, VALUE_PATTERNS, analyse
from atlas.answer.quotes import quotes_of
from atlas.records import Block

BATTERY = block("# Battery\n\nThe battery is under warranty for 3 years. See a dealer.\n")


def features(
    question: str, piece: Block = BATTERY, words: str = "years", logit: float = 1.0
) -> dict[str, float]:
    found = candidate(piece, words, logit=logit)
    return features_of(analyse(question), found, material([piece]).evidence)


def test_the_shipped_file_has_a_finite_weight_for_exactly_every_feature() -> None:
    path = Path(decision.__file__).parent / "decision.json"
    shipped = json.loads(path.read_text(encoding="utf-8"))
    assert tuple(sorted(shipped["weights"])) == tuple(sorted(FEATURES))
    assert all(math.isfinite(value) for value in shipped["weights"].values())
    assert math.isfinite(shipped["bias"])
    assert 0 < shipped["threshold"] < 1
    assert shipped["made"]
    assert weights() == shipped
    assert threshold() == shipped["threshold"]


@pytest.mark.parametrize(
    ("question", "logit"),
    [
        ("how long is the battery under warranty", 3.0),
        ("how much oil needs the engine of a swallow", -99.0),
        ("3", 99.0),
        ("what is it", 0.0),
    ],
)
def test_every_feature_is_given_and_in_its_range(question: str, logit: float) -> None:
    found = features(question, logit=logit)
    assert set(found) == set(FEATURES)
    wide = {"word_count", "missing_terms"}
    assert all(-1 <= value <= 1 for name, value in found.items() if name not in wide)
    assert found["missing_terms"] >= 0
    assert 0 < found["word_count"] <= 4
    assert found["quote_logit"] == max(-12, min(12, logit)) / 12


def test_coverage_is_the_share_of_the_subject_in_quote_and_block() -> None:
    found = features("is the dealer of the battery under warranty")
    assert found["covered_quote"] == pytest.approx(3 / 4)
    assert found["covered_block"] == 1.0
    assert features("is the swallow under warranty")["unknown_share"] == pytest.approx(1 / 3)
    assert features("is the swallow under warranty")["covered_block"] == 0.5


def test_a_question_without_a_subject_is_covered_by_anything() -> None:
    found = features("what is it")
    assert (found["covered_quote"], found["unknown_share"], found["missing_terms"]) == (1.0, 0, 0)


def test_a_quote_stands_out_as_far_as_its_best_rival_is_below_it() -> None:
    question, sight = analyse("battery"), material([BATTERY]).evidence
    best = candidate(BATTERY, "years", logit=4.0)

    def ahead(*logits: float) -> float:
        rivals = [candidate(BATTERY, "dealer", logit=logit) for logit in logits]
        return features_of(question, best, sight, rivals)["quote_ahead"]

    assert ahead() == 1.0
    assert ahead(1.0, -9.0) == 0.5
    assert ahead(1.0, 7.0) == -0.5
    rival = candidate(BATTERY, "dealer", logit=1.0)
    assert features_of(question, best, sight, [rival])["sure_ahead"] == pytest.approx(4 / 12 / 2)


def test_a_block_stands_out_from_other_blocks_only() -> None:
    other = block("The frame is blue.", "FRAME")
    best = Candidate(quote=quote(BATTERY, "years"), hit=hit(BATTERY, 5.0), marker=1, logit=4.0)
    inside = Candidate(quote=quote(BATTERY, "dealer"), hit=hit(BATTERY, 9.0), marker=1, logit=1.0)
    outside = Candidate(quote=quote(other, "blue"), hit=hit(other, 2.0), marker=2, logit=1.0)
    sight = material([BATTERY, other]).evidence
    found = features_of(analyse("battery"), best, sight, [inside, outside])
    assert found["block_ahead"] == 0.5
    assert features_of(analyse("battery"), best, sight, [inside])["block_ahead"] == 1.0


def test_quotes_of_another_product_are_no_rivals() -> None:
    products = Products(("C-3", "T-7"))
    ours, theirs, both = (
        candidate(block(f"It lasts {years} years.", f"D{years}", owners), "years")
        for years, owners in ((1, ("C-3",)), (2, ("T-7",)), (3, ()))
    )
    found = [ours, theirs, both]
    assert rivals_of(ours, found, products) == [both]
    assert rivals_of(both, found, products) == [ours, theirs]


def test_the_first_cell_of_a_row_says_what_the_row_is_about() -> None:
    table = block("| Item | Value |\n|---|---|\n| Saddle clamp | 6 Nm |\n| Lever | on the stem |\n")
    sight = material([table]).evidence

    def head(question: str, words: str) -> float:
        found = features_of(analyse(question), candidate(table, words), sight)
        return found["covered_head"]

    assert head("clamp of the saddle", "6 Nm") == 1.0
    assert head("stem", "stem") == 0.0
    assert features("battery")["covered_head"] == 0.0


def test_a_code_of_the_question_is_held_or_not() -> None:
    codes = block("E-448 means a short circuit. E-449 means rain.")
    sight = material([codes]).evidence

    def held(question: str) -> float:
        return features_of(analyse(question), candidate(codes, "rain"), sight)["code_held"]

    assert [held("what is E-449"), held("what is E-448"), held("what is rain")] == [1.0, 0.0, 0.0]


def test_what_is_known_but_not_in_the_quote_is_missing_weighted_by_rarity() -> None:
    found = features("battery of a dealer")
    assert found["missing_terms"] == pytest.approx(0.5 / 3)
    assert features("battery of a swallow")["missing_terms"] == 0.0


def test_a_value_of_a_thing_that_no_document_names_is_nameless() -> None:
    def nameless(question: str) -> float:
        return features(question)["nameless_value"]

    assert nameless("price of the swallow") == 1.0
    assert nameless("price of the battery") == 0.0
    assert nameless("where is the swallow") == 0.0
    assert nameless("price of the swallow that ate the battery under warranty of a dealer") == 0.0


def test_names_of_products_are_left_out_of_one_of_the_cosines() -> None:
    sight = replace(
        material([BATTERY]).evidence,
        cosine=lambda question, text: 0.9 if "C-3" in question else 0.3,
        encoder=weights()["encoder"],
    )
    found = features_of(
        analyse("battery of a C-3", frozenset(["c3"])), candidate(BATTERY, "years"), sight
    )
    assert (found["quote_cosine"], found["bare_cosine"]) == (0.9, 0.3)


@pytest.mark.parametrize(
    ("question", "words", "lacks"),
    [
        ("how long is the warranty", "It holds for 3 years.", False),
        ("how long is the warranty", "It holds for the frame.", True),
        ("where is the dealer", "It holds for the frame.", False),
        ("how many spokes are there", "It has 36 spokes.", False),
        ("how many spokes are there", "It has thirty-six steel spokes.", False),
        ("how many spokes are there", "True the wheel to 0.5 mm and look at the spokes.", True),
        ("how many spokes are there", "Press 2 levers and look at all of the spokes.", True),
        ("how many spokes are there", "Spokes have been black since 1 January 2026.", True),
        ("how many spokes are there", "The wheels have 36 of them.", False),
        ("how many spokes are there", "| Part | Value |\n|---|---|\n| Spokes | steel, 36 |", False),
        ("how many keys are there", "None of the keys is spare.", False),
        ("what do i charge for the fan kit", "Order the fan kit, one per unit.", True),
    ],
)
def test_a_value_that_was_asked_for_is_lacking_or_not(
    question: str, words: str, lacks: bool
) -> None:
    piece = block(words)
    [found] = quotes_of(piece)
    assert lacks_value(analyse(question), found) is lacks


def test_a_block_the_reranker_did_not_see_has_the_quotes_score() -> None:
    unseen = Candidate(
        quote=quote(BATTERY, "years"), hit=hit(BATTERY, None, None), marker=1, logit=6.0
    )
    found = features_of(analyse("battery"), unseen, material([BATTERY]).evidence)
    assert found["quote_logit"] == 0.5
    rival = block("The frame is blue.", "FRAME")
    other = Candidate(quote=quote(rival, "blue"), hit=hit(rival, 3.0), marker=2, logit=-9.0)
    sight = material([BATTERY, rival]).evidence
    assert features_of(analyse("battery"), unseen, sight, [other])["block_ahead"] == 0.5


@pytest.mark.parametrize("base", [-1.0, 0.0, 0.5])
def test_the_probability_rises_with_what_the_reranker_says_of_the_quote(base: float) -> None:
    others = dict.fromkeys(FEATURES, base)
    steps = [probability({**others, "quote_logit": value / 10}) for value in range(-10, 11)]
    assert steps == sorted(steps)
    assert steps[0] < steps[-1]
    assert all(0 < value < 1 for value in steps)


def test_the_probability_never_overflows() -> None:
    for extreme in (-1e9, 1e9):
        assert 0 <= probability(dict.fromkeys(FEATURES, extreme)) <= 1


def test_no_value_is_given_for_what_the_documents_hardly_name() -> None:
    sight = material([BATTERY], cosine=1.0)
    sure = candidate(BATTERY, "years", logit=12.0)

    def chance(question: str) -> float:
        return judge(analyse(question), sure, [sure], sight).probability

    assert chance("how long is the warranty of a swallow") == 0.0
    assert chance("how long is the battery of a swallow under warranty by the nest") > 0.0


def test_every_strict_kind_can_be_checked() -> None:
    assert set(VALUE_PATTERNS) >= STRICT


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("how much is the battery", "price"),
        ("what does the battery weigh", "weight"),
        ("speed of the battery", "speed"),
        ("pressure of the battery", "pressure"),
        ("torque of the battery", "torque"),
        ("voltage of the battery", "voltage"),
        ("temperature of the battery", "temperature"),
    ],
)
def test_a_quote_without_the_asked_kind_of_value_answers_nothing(question: str, asked: str) -> None:
    sure = candidate(BATTERY, "years", logit=12.0)
    sight = material([BATTERY], cosine=1.0)
    asks = analyse(question)
    assert asks.asked == asked
    assert asked in STRICT
    assert judge(asks, sure, [sure], sight).probability == 0.0
    answered = judge(analyse("how long is the battery under warranty"), sure, [sure], sight)
    assert answered.probability > 0.5


def test_the_evidence_of_a_judged_quote_is_every_feature_and_the_probability() -> None:
    found = candidate(BATTERY, "years")
    judged = judge(analyse("battery"), found, [found], material([BATTERY]))
    assert [name for name, _ in judged.evidence] == [*FEATURES, "probability"]
    assert dict(judged.evidence)["probability"] == judged.probability


def test_another_encoder_gets_the_cosines_that_the_fitted_one_would_most_likely_give() -> None:
    piece = block("The battery lasts 3 years.")
    question = analyse("how long does the battery last")
    sight = material([piece], score=scored({"battery": 6.0}), cosine=0.1).evidence
    item = candidate(piece, "battery", logit=6.0)
    foreign = features_of(question, item, sight)
    fitted = features_of(question, item, replace(sight, encoder=weights()["encoder"]))
    assert fitted["quote_cosine"] == 0.1
    low, slope = weights()["expected"]["quote_cosine"]
    assert foreign["quote_cosine"] == pytest.approx(low + slope * 6.0 / 12)
