"""The cross-encoder's score beside the others, the order that follows, and pairs not read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes import FakeReranker
from hypothesis import given
from hypothesis import strategies as st
from pieces import block, hit

from atlas.records import Hit
from atlas.rerank import (
    DOUBT,
    LEAST,
    OFFSET,
    SLOPE,
    STEP,
    calibrated,
    pairs_read,
    rerank,
    within_reach,
)


def found(name: str, text: str, fused: float) -> Hit:
    made = hit(block(f"# {name}\n\n{text}\n", name), None, None)
    return replace(made, fused_score=fused, rerank_score=None)


HITS = [found("A", "a saddle", 0.9), found("B", "the red lock", 0.5), found("C", "red", 0.4)]


def names(hits: list[Hit]) -> str:
    return "".join(item.block.document for item in hits)


def test_with_all_weight_the_reranker_decides_and_with_none_the_search() -> None:
    assert names(rerank("red lock", HITS, FakeReranker().score_pairs, 1.0)) == "BCA"
    assert names(rerank("red lock", HITS, FakeReranker().score_pairs, 0.0)) == "ABC"


@pytest.mark.parametrize("weight", [0.0, 0.35, 0.65, 1.0])
def test_the_order_is_the_weighted_mean_of_both_scores(weight: float) -> None:
    for item in rerank("red lock", HITS, FakeReranker().score_pairs, weight):
        assert item.rerank_logit is not None
        assert item.rerank_score == calibrated(item.rerank_logit)
        expected = weight * item.rerank_score + (1 - weight) * item.fused_score
        assert item.order_score == pytest.approx(expected)


def test_the_scores_of_the_search_stay() -> None:
    for before in HITS:
        [after] = rerank("red lock", [before], FakeReranker().score_pairs, 1.0)
        assert (after.block, after.keyword_score, after.vector_score, after.fused_score) == (
            before.block,
            before.keyword_score,
            before.vector_score,
            before.fused_score,
        )


def test_the_reranker_reads_titles_and_text() -> None:
    reranker = FakeReranker()
    rerank("red lock", HITS[:1], reranker.score_pairs, 1.0)
    assert reranker.scored == [("red lock", "A\na saddle")]


def test_ties_keep_the_order_of_the_search() -> None:
    same = [found(name, "red", 0.5) for name in "DBCA"]
    assert names(rerank("red", same, FakeReranker().score_pairs, 0.65)) == "DBCA"


def test_without_a_reranker_the_order_of_the_search_stays() -> None:
    ranked = rerank("red lock", HITS, None, 1.0)
    assert names(ranked) == "ABC"
    assert [item.order_score for item in ranked] == [0.9, 0.5, 0.4]
    assert all(item.rerank_score is None and item.rerank_logit is None for item in ranked)


def test_nothing_found_is_nothing_reranked() -> None:
    assert rerank("red", [], FakeReranker().score_pairs, 1.0) == []
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


# ---- which hits are worth reading -----------------------------------------------------------


class Logits:
    """Gives each text the logit that is written in it, and keeps what it was asked."""

    def __init__(self) -> None:
        self.calls: list[list[float]] = []

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.calls.append([float(text.split()[-1]) for _, text in pairs])
        return self.calls[-1]

    @property
    def read(self) -> int:
        return sum(map(len, self.calls))


def line_of(*places: tuple[float, float]) -> list[Hit]:
    """Hits with a fused score and the logit that they will get."""
    return [found(f"H{n}", f"{logit}", fused) for n, (fused, logit) in enumerate(places)]


def count(hits: list[Hit], reach: float) -> int:
    score = Logits()
    near = within_reach("q", hits, score, reach)
    assert [hit.block.ref for hit in near] == [hit.block.ref for hit in hits[: len(near)]]
    assert score.read in (0, len(near))
    return len(near)


FALLING = [1.0 - n / 10 for n in range(11)]
"""Fused scores from 1 to 0, so that a reach is a distance."""


def test_where_both_stages_like_the_first_hit_only_what_is_near_it_is_read() -> None:
    hits = line_of(*((fused, -n) for n, fused in enumerate(FALLING)))
    assert [count(hits, reach) for reach in (0, 0.35, 0.45, 0.75, 1)] == [LEAST, 4, 5, 8, 11]


def test_a_better_hit_farther_down_takes_the_reach_with_it() -> None:
    logits = [0, 0, 0, 9, 0, 0, 5, 0, 0, 0, 0]
    hits = line_of(*zip(FALLING, logits, strict=True))
    assert count(hits, 0.35) == 7  # from H3 down to H6, which is not better than H3
    logits[6] = 10
    assert count(line_of(*zip(FALLING, logits, strict=True)), 0.35) == 10  # from H6 down to H9


def test_the_reach_is_a_share_of_the_span_and_knows_no_scale() -> None:
    logits = [0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0]
    wide = line_of(*zip(FALLING, logits, strict=True))
    narrow = line_of(*((0.7 + fused / 50, x) for fused, x in zip(FALLING, logits, strict=True)))
    assert count(wide, 0.45) == count(narrow, 0.45) == 7


def test_few_hits_or_a_whole_reach_are_read_in_one_go() -> None:
    score = Logits()
    hits = line_of(*((fused, 0) for fused in FALLING))
    assert within_reach("q", hits, score, 1.0) == hits
    assert within_reach("q", hits[:LEAST], score, 0.0) == hits[:LEAST]
    assert within_reach("q", [], score, 0.5) == []
    assert score.calls == []  # the order needs their scores anyway, and asks for them


def test_hits_with_one_and_the_same_score_are_all_read() -> None:
    assert count(line_of(*[(0.5, 0)] * 9), 0.0) == 9


def one_by_one(hits: list[Hit], reach: float) -> int:
    """The rule as it reads: look at the next hit, stop where it is out of reach of the best."""
    span = hits[0].fused_score - hits[-1].fused_score
    logits: list[float] = []
    for item in hits:
        if len(logits) >= LEAST:
            best = logits.index(max(logits))
            far = 2 * reach if calibrated(logits[best]) < DOUBT else reach
            if item.fused_score < hits[best].fused_score - far * span:
                break
        logits.append(float(item.block.searched.split()[-1]))
    return len(logits)


@given(
    st.lists(
        st.tuples(st.integers(0, 12).map(lambda n: n / 12), st.integers(-6, 6)), min_size=5,
        max_size=14,
    ),
    st.integers(0, 10).map(lambda n: n / 10),
)  # fmt: skip
def test_reading_several_at_a_time_reads_what_one_by_one_would_or_a_step_more(
    places: list[tuple[float, int]], reach: float
) -> None:
    hits = line_of(*sorted(places, key=lambda place: -place[0]))
    least = len(hits) if reach == 1 else one_by_one(hits, reach)
    assert least <= count(hits, reach) < least + STEP


def test_where_nothing_convinces_the_reach_is_twice_as_far() -> None:
    low, high = -3.0, 9.0
    assert calibrated(low) < DOUBT < calibrated(high)
    assert count(line_of(*((fused, low) for fused in FALLING)), 0.35) == 8
    logits = [low, low, low, low, low, high, low, low, low, low, low]
    settled = line_of(*zip(FALLING, logits, strict=True))
    assert count(settled, 0.26) == 8  # in doubt down to H5, and from there only to H7
    score = Logits()
    within_reach("q", settled, score, 0.26)
    assert [len(call) for call in score.calls] == [4, 2, 2]


def test_equal_texts_count_as_one_pair_and_unread_hits_as_none() -> None:
    ranked = rerank("red", [*HITS, HITS[0]], FakeReranker().score_pairs, 0.5)
    assert pairs_read(ranked) == 3
    assert pairs_read([*ranked, found("D", "unread", 0.1)]) == 3
    assert pairs_read(HITS) == pairs_read([]) == 0
