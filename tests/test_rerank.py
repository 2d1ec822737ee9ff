"""The cross-encoder's score beside the others, and the order that follows."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from fakes import FakeReranker
from hypothesis import given
from hypothesis import strategies as st
from pieces import block, hit

from atlas.records import Hit
from atlas.rerank import OFFSET, SLOPE, calibrated, rerank


def found(name: str, text: str, fused: float) -> Hit:
    made = hit(block(f"# {name}\n\n{text}\n", name), None, None)
    return replace(made, fused_score=fused, rerank_score=None)


HITS = [found("A", "a saddle", 0.9), found("B", "the red lock", 0.5), found("C", "red", 0.4)]


def names(hits: list[Hit]) -> str:
    return "".join(item.block.document for item in hits)


def test_with_all_weight_the_reranker_decides_and_with_none_the_search() -> None:
    assert names(rerank("red lock", HITS, FakeReranker(), 1.0)) == "BCA"
    assert names(rerank("red lock", HITS, FakeReranker(), 0.0)) == "ABC"


@pytest.mark.parametrize("weight", [0.0, 0.35, 0.65, 1.0])
def test_the_order_is_the_weighted_mean_of_both_scores(weight: float) -> None:
    for item in rerank("red lock", HITS, FakeReranker(), weight):
        assert item.rerank_logit is not None
        assert item.rerank_score == calibrated(item.rerank_logit)
        expected = weight * item.rerank_score + (1 - weight) * item.fused_score
        assert item.order_score == pytest.approx(expected)


def test_the_scores_of_the_search_stay() -> None:
    for before in HITS:
        [after] = rerank("red lock", [before], FakeReranker(), 1.0)
        assert (after.block, after.keyword_score, after.vector_score, after.fused_score) == (
            before.block,
            before.keyword_score,
            before.vector_score,
            before.fused_score,
        )


def test_the_reranker_reads_titles_and_text() -> None:
    reranker = FakeReranker()
    rerank("red lock", HITS[:1], reranker, 1.0)
    assert reranker.scored == [("red lock", "A\na saddle")]


def test_ties_keep_the_order_of_the_search() -> None:
    same = [found(name, "red", 0.5) for name in "DBCA"]
    assert names(rerank("red", same, FakeReranker(), 0.65)) == "DBCA"


def test_without_a_reranker_the_order_of_the_search_stays() -> None:
    ranked = rerank("red lock", HITS, None, 1.0)
    assert names(ranked) == "ABC"
    assert [item.order_score for item in ranked] == [0.9, 0.5, 0.4]
    assert all(item.rerank_score is None and item.rerank_logit is None for item in ranked)


def test_nothing_found_is_nothing_reranked() -> None:
    assert rerank("red", [], FakeReranker(), 1.0) == []
    assert rerank("red", [], None, 1.0) == []


def test_half_means_as_many_right_as_wrong_and_more_is_higher() -> None:
    assert calibrated(-OFFSET / SLOPE) == pytest.approx(0.5)
    assert calibrated(8.0) > 0.5 > calibrated(0.0)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_calibration_keeps_the_order_and_stays_within_0_and_1(first: float, second: float) -> None:
    low, high = sorted((first, second))
    assert 0 <= calibrated(low) <= calibrated(high) <= 1


@pytest.mark.parametrize("logit", [-math.inf, -1e308, -5000.0, 5000.0, 1e308, math.inf])
def test_an_extreme_logit_overflows_nothing(logit: float) -> None:
    assert calibrated(logit) == (1.0 if logit > 0 else 0.0)
