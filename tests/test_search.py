"""Keyword and vector scores fused by the stated formula, over the blocks in scope."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fakes import FakeEncoder
from numpy.typing import NDArray
from small import collection, opened, use_fakes

from atlas import search as module
from atlas.index import Index
from atlas.keyword import ScopedBM25
from atlas.records import Hit
from atlas.search import search
from atlas.settings import Settings
from atlas.stores.local import LocalStore
from atlas.words import terms

WORDS = "saddle lock chain frame wheel brake light bell pump crank".split()
FILES = {
    f"{n:02}.md": f"# Paper {n}\n\nThe {WORDS[n % 10]} and the {WORDS[(n * 3) % 10]} of {n}.\n"
    for n in range(20)
} | {"90.md": "# Twin\n\nTwo bells ring.\n", "91.md": "# Twin\n\nTwo bells ring.\n"}
QUERY = ["bell", "crank"]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = collection(tmp_path_factory.mktemp("search") / "c", FILES, settings="", cases=None)
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_fakes(monkeypatch)
        made = opened(root).index
    yield made
    made.close()


def scope_of(index: Index, numbers: Sequence[int] | None = None) -> ScopedBM25:
    mask = np.ones(len(index), bool)
    if numbers is not None:
        mask[:] = False
        mask[list(numbers)] = True
    return ScopedBM25(index.postings, mask)


def vector(text: str) -> NDArray[np.float32]:
    return FakeEncoder().encode_question(text)


def found(
    index: Index,
    query: Sequence[str] = QUERY,
    near: NDArray[np.float32] | None = None,
    scope: Sequence[int] | None = None,
    weight: float = 0.8,
    limit: int = 100,
) -> list[Hit]:
    settings = replace(Settings(), vector_weight=weight)
    asked = vector("the bell of the crank") if near is None else near
    return search(query, asked, index, LocalStore(index), scope_of(index, scope), settings, limit)


def number(index: Index, hit: Hit) -> int:
    return next(n for n in range(len(index)) if index.block(n).ref == hit.block.ref)


def cosine(index: Index, hit: Hit, asked: NDArray[np.float32]) -> float:
    return float(vector(hit.block.searched) @ asked)


@pytest.mark.parametrize("weight", [0.0, 0.5, 0.8, 1.0])
def test_the_fused_score_is_the_stated_formula(index: Index, weight: float) -> None:
    asked = vector("the bell of the crank")
    keyword, _ = scope_of(index).scores(QUERY)
    hits = found(index, near=asked, weight=weight)
    assert len(hits) == len(index)
    for hit in hits:
        assert hit.keyword_score == pytest.approx(keyword[number(index, hit)])
        assert hit.vector_score == pytest.approx(cosine(index, hit, asked), abs=1e-6)
        expected = weight * hit.vector_score + (1 - weight) * hit.keyword_score / keyword.max()
        assert hit.fused_score == pytest.approx(expected)
        assert 0 <= hit.fused_score <= 1 + 1e-6
        assert hit.rerank_score is hit.order_score is None
    assert [h.fused_score for h in hits] == sorted((h.fused_score for h in hits), reverse=True)


def test_a_block_moves_towards_the_best_of_its_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch)
    long = f"{'The saddle is made of leather. ' * 3}\n\n{'The bell rings when it rains. ' * 3}"
    files = {"a.md": f"# A\n\n## One\n\n{long}\n", "b.md": "# B\n\n## Two\n\nA bell or a saddle.\n"}
    made = opened(collection(tmp_path / "c", files, settings="block_size: 100\n", cases=None))
    asked, keyword = vector("saddle leather"), scope_of(made.index)

    def fused(share: float) -> dict[str, float]:
        settings = replace(Settings(), section_weight=share)
        query = ["saddl", "leather"]
        hits = search(query, asked, made.index, made.store, keyword, settings, 100)
        assert [h.fused_score for h in hits] == sorted((h.fused_score for h in hits), reverse=True)
        return {hit.block.ref: hit.fused_score for hit in hits}

    alone, moved, one = fused(0), fused(0.5), fused(1)
    best = alone["a-1-p0"]
    assert alone["a-1-p1"] < alone["b-1-p0"] < best
    assert moved["a-1-p0"] == best
    assert moved["b-1-p0"] == alone["b-1-p0"]
    assert moved["a-1-p1"] == pytest.approx((alone["a-1-p1"] + best) / 2)
    assert one["a-1-p1"] == best


def test_what_only_the_keywords_found_has_its_cosine_too(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CANDIDATES", 1)
    asked = vector("Paper saddle of twin")
    [hit] = found(index, ["ring"], asked, weight=0.0, limit=1)
    assert hit.block.document == "90"
    assert hit.vector_score > 0.1
    assert hit.vector_score == pytest.approx(cosine(index, hit, asked), abs=1e-6)
    assert hit.keyword_score > 0


def test_what_only_the_vectors_found_has_its_keyword_score_too(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CANDIDATES", 1)
    asked = vector(index.block(7).searched)
    query = ["ring", *terms("paper")]
    [hit] = found(index, query, asked, weight=1.0, limit=1)
    assert hit.block.ref == index.block(7).ref
    assert hit.vector_score == pytest.approx(1.0, abs=1e-6)
    assert hit.keyword_score == pytest.approx(scope_of(index).scores(query)[0][7])
    assert hit.keyword_score != 0


def test_ties_go_by_position_in_the_collection(index: Index) -> None:
    hits = found(index, ["ring"], vector("bells ring"))
    assert [hit.block.document for hit in hits[:2]] == ["90", "91"]
    assert hits[0].fused_score == hits[1].fused_score


@pytest.mark.parametrize("scope", [[3], [0, 7, 8, 9, 21], list(range(1, 22, 2))])
def test_only_blocks_in_scope_are_found_with_the_statistics_of_the_scope(
    index: Index, scope: list[int]
) -> None:
    hits = found(index, scope=scope)
    assert {number(index, hit) for hit in hits} == set(scope)
    keyword, _ = scope_of(index, scope).scores(QUERY)
    for hit in hits:
        assert hit.keyword_score == pytest.approx(keyword[number(index, hit)])


@pytest.mark.parametrize("scope", [None, [3], [0, 7, 8, 9, 21], list(range(1, 22, 2))])
def test_the_nearest_blocks_are_those_of_the_scope(index: Index, scope: list[int] | None) -> None:
    asked = vector("the bell of the crank")
    inside = np.array(scope if scope is not None else range(len(index)), np.int64)
    numbers, cosines = index.vectors.nearest(asked, scope_of(index, scope).in_scope, 4)
    exact = {int(n): float(vector(index.block(int(n)).searched) @ asked) for n in inside}
    assert set(numbers.tolist()) <= set(exact)
    np.testing.assert_allclose(cosines, sorted(exact.values(), reverse=True)[:4], atol=1e-6)
    np.testing.assert_allclose(cosines, [exact[int(n)] for n in numbers], atol=1e-6)


def test_an_empty_scope_finds_nothing(index: Index) -> None:
    assert found(index, scope=[]) == []


@pytest.mark.parametrize("limit", [1, 3, 22, 500])
def test_no_more_than_the_limit_is_found(index: Index, limit: int) -> None:
    hits = found(index, limit=limit)
    assert len(hits) == min(limit, len(index))
    assert hits == found(index)[:limit]


def test_a_cosine_below_zero_counts_as_zero_and_is_told(index: Index) -> None:
    hits = found(index, near=-vector("the bell of the crank"), weight=0.8)
    assert min(hit.vector_score for hit in hits) < -0.1
    assert all(hit.fused_score >= 0 for hit in hits)
    assert hits[0].fused_score == pytest.approx(0.2)


def test_a_match_counts_where_its_word_has_no_weight(index: Index) -> None:
    scope = [0, 20]  # a word of exactly half of the blocks has the weight 0
    hits = found(index, ["ring"], vector("zzz"), scope=scope, weight=0.5)
    assert [(hit.block.document, hit.keyword_score) for hit in hits] == [("90", 0.0), ("00", 0.0)]
    assert hits[0].fused_score == pytest.approx(0.5 + 0.5 * max(hits[0].vector_score, 0))


def test_without_a_match_the_vectors_decide(index: Index) -> None:
    hits = found(index, ["swallow"])
    assert all(hit.keyword_score == 0 for hit in hits)
    for hit in hits:
        assert hit.fused_score == pytest.approx(0.8 * hit.vector_score)
