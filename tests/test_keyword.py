"""Keyword scores over a scope equal those of rank_bm25 on just the blocks in scope."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from atlas.keyword import Postings, PostingsWriter, ScopedBM25

WORDS = ["battery", "charger", "e417", "36v", "c3", "warranty", "3", "naïve", "保証"]
SCRATCH = tempfile.TemporaryDirectory()
"""Goes away with the process; postings are read from their files when they are first used."""


def postings(corpus: Sequence[Sequence[str]]) -> Postings:
    writer = PostingsWriter()
    for words in corpus:
        writer.add(words)
    folder = Path(tempfile.mkdtemp(dir=SCRATCH.name))
    writer.write(folder)
    return Postings(folder)


def mask(*values: int) -> NDArray[np.bool_]:
    return np.array(values, bool)


@st.composite
def searches(draw: st.DrawFn) -> tuple[list[list[str]], NDArray[np.bool_], list[str]]:
    block = st.lists(st.sampled_from(WORDS), max_size=12)
    corpus = draw(st.lists(block, min_size=1, max_size=14))
    scope = draw(st.lists(st.booleans(), min_size=len(corpus), max_size=len(corpus)))
    query = draw(st.lists(st.sampled_from([*WORDS, "unknown", ""]), max_size=6))
    return corpus, np.array(scope, bool), query


@settings(max_examples=300, deadline=None)
@given(searches())
def test_scores_equal_those_of_the_library_on_the_blocks_in_scope(
    search: tuple[list[list[str]], NDArray[np.bool_], list[str]],
) -> None:
    corpus, scope, query = search
    scores, matched = ScopedBM25(postings(corpus), scope).scores(query)
    inside = [words for words, kept in zip(corpus, scope, strict=True) if kept]
    if any(inside):  # the library divides by the number of words
        expected = BM25Okapi(inside).get_scores(query)
        np.testing.assert_allclose(scores[scope], expected, rtol=0, atol=1e-9)
    else:
        assert not scores.any()
    for number, words in enumerate(corpus):
        assert matched[number] == bool(scope[number] and set(words) & set(query))
    assert not scores[~scope].any()


@settings(max_examples=100, deadline=None)
@given(searches())
def test_blocks_out_of_scope_change_nothing(
    search: tuple[list[list[str]], NDArray[np.bool_], list[str]],
) -> None:
    corpus, scope, query = search
    inside = [words for words, kept in zip(corpus, scope, strict=True) if kept]
    if not inside:
        return
    scoped = ScopedBM25(postings(corpus), scope)
    alone = ScopedBM25(postings(inside), np.ones(len(inside), bool))
    np.testing.assert_array_equal(scoped.scores(query)[0][scope], alone.scores(query)[0])
    assert scoped.vocabulary() == alone.vocabulary()
    for word in WORDS:
        assert scoped.frequency(word) == alone.frequency(word)
        assert scoped.rarity(word) == alone.rarity(word)


def test_a_word_of_exactly_half_of_the_blocks_scores_nothing_and_is_a_match() -> None:
    scores, matched = ScopedBM25(postings([["a"], ["b"]]), mask(1, 1)).scores(["a"])
    assert scores.tolist() == [0.0, 0.0]
    assert matched.tolist() == [True, False]


def test_a_repeated_query_word_counts_each_time() -> None:
    statistics = ScopedBM25(postings([["a"], ["b"], ["c"]]), mask(1, 1, 1))
    once, twice = statistics.scores(["a"])[0], statistics.scores(["a", "a"])[0]
    assert once[0] > 0
    assert twice[0] == pytest.approx(2 * once[0])


def test_an_unknown_word_matches_nothing() -> None:
    scores, matched = ScopedBM25(postings([["a"], ["b"]]), mask(1, 1)).scores(["zebra"])
    assert not scores.any()
    assert not matched.any()


def test_a_word_that_stands_only_out_of_scope_is_unknown() -> None:
    statistics = ScopedBM25(postings([["secret"], ["open"]]), mask(0, 1))
    assert statistics.frequency("secret") == 0
    assert statistics.vocabulary() == ["open"]
    assert statistics.blocks_with("secret").tolist() == []
    assert not statistics.scores(["secret"])[1].any()


def test_an_empty_scope_and_an_empty_corpus_are_searched_without_a_hit() -> None:
    scores, matched = ScopedBM25(postings([["a"]]), mask(0)).scores(["a"])
    assert scores.tolist() == [0.0]
    assert matched.tolist() == [False]
    assert ScopedBM25(postings([]), mask()).scores(["a"])[0].shape == (0,)


def test_a_rarer_word_is_worth_more() -> None:
    statistics = ScopedBM25(postings([["a", "b"], ["a"], ["a"]]), mask(1, 1, 1))
    assert statistics.rarity("new") == 1
    assert statistics.rarity("new") > statistics.rarity("b") > statistics.rarity("a") > 0


def test_terms_are_found_by_name_and_number() -> None:
    found = postings([["b", "naïve", "保証"], ["a", "half \ud800"]])
    names = sorted(["b", "naïve", "保証", "a", "half \ud800"])
    assert [found.term(number) for number in range(len(found))] == names
    assert [found.find(name) for name in names] == list(range(len(names)))
    assert found.find("c") is None
    assert found.find("zz\udfff") is None
