"""What the models are asked once is remembered, and is what they would say again."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import FakeEncoder, FakeReranker

from atlas.scoring import TEXTS_COUNTED, ReadPairs, Scoring


def test_a_pair_is_read_once_however_often_it_is_asked_for() -> None:
    model, pairs = FakeReranker(), ReadPairs()
    first = pairs.score([("red", "red"), ("red", "saddle"), ("red", "red")], model)
    assert first == pairs.score([("red", "red"), ("red", "saddle"), ("red", "red")], model)
    assert first[0] == first[2] > first[1]
    assert model.scored == [("red", "red"), ("red", "saddle")]
    pairs.score([("red", "saddle"), ("saddle", "red"), ("redsaddle", "")], model)
    assert model.scored[2:] == [("saddle", "red"), ("redsaddle", "")]


def test_what_was_not_asked_for_longest_is_forgotten_first() -> None:
    model, pairs = FakeReranker(), ReadPairs(most=2)
    pairs.score([("q", "a"), ("q", "b")], model)
    pairs.score([("q", "a")], model)
    pairs.score([("q", "c")], model)
    assert len(pairs) == 2
    model.scored.clear()
    pairs.score([("q", "a"), ("q", "c")], model)
    assert model.scored == []
    pairs.score([("q", "b")], model)
    assert model.scored == [("q", "b")]


def test_more_pairs_than_are_remembered_still_get_their_own_logits() -> None:
    model, pairs = FakeReranker(), ReadPairs(most=2)
    asked = [("red lock", text) for text in ("red lock", "red", "saddle", "red lock")]
    assert pairs.score(asked, model) == pytest.approx(FakeReranker().score_pairs(asked).tolist())
    assert len(pairs) == 2
    assert pairs.score([], model) == []
    pairs.forget()
    assert len(pairs) == 0


def test_another_reranker_reads_for_itself() -> None:
    one, other, pairs = FakeReranker(), FakeReranker(fingerprint="other"), ReadPairs()
    pairs.score([("q", "a")], one)
    pairs.score([("q", "a")], other)
    assert other.scored == [("q", "a")]


def test_text_that_is_no_unicode_is_remembered_like_any_other() -> None:
    model, pairs = FakeReranker(), ReadPairs()
    odd = [("q", "\ud800"), ("q", "\x00"), ("", ""), ("q\x00", "")]
    pairs.score(odd, model)
    pairs.score(odd, model)
    assert model.scored == odd


def test_the_last_question_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, encoded = FakeEncoder(), []
    real = encoder.encode_question
    monkeypatch.setattr(encoder, "encode_question", lambda text: encoded.append(text) or real(text))
    scoring = Scoring(encoder, None)
    first = scoring.vector("red lock")
    assert np.array_equal(first, scoring.vector("red lock"))
    assert encoded == ["red lock"]
    scoring.vector("saddle")
    assert np.array_equal(scoring.vector("red lock"), first)
    assert encoded == ["red lock", "saddle", "red lock"]
    assert scoring.cosine("red lock", "red lock") == pytest.approx(1.0)


def test_tokens_of_a_text_are_counted_once_until_too_many_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder, counted = FakeEncoder(), []
    monkeypatch.setattr(encoder, "count_tokens", lambda text: counted.append(text) or 7)
    scoring = Scoring(encoder, FakeReranker())
    assert [scoring.count_tokens("a"), scoring.count_tokens("a")] == [7, 7]
    assert counted == ["a"]
    for number in range(TEXTS_COUNTED):
        scoring.count_tokens(str(number))
    scoring.count_tokens("a")
    assert counted.count("a") == 2


def test_without_a_reranker_nothing_scores_pairs_but_the_cosine_stands_in() -> None:
    bare, full = Scoring(FakeEncoder(), None), Scoring(FakeEncoder(), FakeReranker())
    assert bare.pair_score is None
    assert full.pair_score is not None
    near, far = bare.score([("red lock", "red lock"), ("red lock", "saddle")])
    assert near == pytest.approx(10)
    assert near > far
    assert bare.score([]) == full.score([]) == []


def test_pairs_are_remembered_until_they_are_forgotten() -> None:
    reranker = FakeReranker()
    scoring = Scoring(FakeEncoder(), reranker)
    pair = [("red lock", "red")]
    assert scoring.score(pair) == scoring.score(pair)
    assert len(reranker.scored) == 1
    scoring.forget_pairs()
    scoring.score(pair)
    assert len(reranker.scored) == 2
