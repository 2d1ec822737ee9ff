"""The evidence for a quote, and the probability that follows from it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from pieces import block, candidate, hit, material, quote, scored

from atlas.answer import decision
from atlas.answer.answerer import STRICT, judge
from atlas.answer.decision import FEATURES, features_of, probability, threshold, weights
from atlas.answer.extractive import Candidate
from atlas.answer.question import VALUE_PATTERNS, analyse
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
    assert all(-1 <= value <= 1 for value in found.values())
    assert found["quote_logit"] == max(-12, min(12, logit)) / 12


def test_coverage_is_the_share_of_the_subject_in_quote_and_block() -> None:
    found = features("is the dealer of the battery under warranty")
    assert found["covered_quote"] == pytest.approx(3 / 4)
    assert found["covered_block"] == 1.0
    assert features("is the swallow under warranty")["unknown_share"] == pytest.approx(1 / 3)
    assert features("is the swallow under warranty")["covered_block"] == 0.5


def test_a_question_without_a_subject_is_covered_by_anything() -> None:
    found = features("what is it")
    assert (found["covered_quote"], found["unknown_share"], found["term_count"]) == (1.0, 0.0, 0.0)


def test_the_kind_of_value_is_given_or_missing_or_neither() -> None:
    def value(question: str, words: str) -> tuple[float, float]:
        found = features(question, words=words)
        return found["value_given"], found["value_missing"]

    assert value("how long is the warranty", "years") == (1.0, 0.0)
    assert value("how long is the warranty", "dealer") == (0.0, 1.0)
    assert value("where is the dealer", "dealer") == (0.0, 0.0)


def test_leaving_out_a_word_shows_whether_the_quote_is_about_it() -> None:
    other = block("The engine oil is green.")
    sight = material([BATTERY, other], score=lambda pairs: [2.0 - ("oil" in q) for q, _ in pairs])
    found = candidate(BATTERY, "years", logit=1.0)
    against = features_of(analyse("warranty of the oil"), found, sight.evidence)
    assert against["left_out_missing"] == pytest.approx(1 / 5)
    sight = material([BATTERY], score=lambda pairs: [-2.0 + 3 * ("battery" in q) for q, _ in pairs])
    speaks_for = features_of(analyse("battery under warranty"), found, sight.evidence)
    assert speaks_for["left_out_rarest"] == pytest.approx(-3 / 5)
    assert speaks_for["left_out_missing"] == 0.0


def test_a_block_the_reranker_did_not_see_has_the_quotes_score() -> None:
    unseen = Candidate(
        quote=quote(BATTERY, "years"), hit=hit(BATTERY, None, None), marker=1, logit=6.0
    )
    found = features_of(analyse("battery"), unseen, material([BATTERY]).evidence)
    assert found["block_logit"] == found["quote_logit"] == 0.5
    assert found["order_score"] == 0.0


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
    assert judge(asks, sure, sight).probability == 0.0
    assert judge(analyse("how long is the battery under warranty"), sure, sight).probability > 0.5


def test_the_evidence_of_a_judged_quote_is_every_feature_and_the_probability() -> None:
    judged = judge(analyse("battery"), candidate(BATTERY, "years"), material([BATTERY]))
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
