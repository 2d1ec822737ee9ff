"""Models that remember give what the models themselves give, and compute less."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FakeEncoder, FakeReranker
from small import QUESTION, collection, opened, use_fakes

from atlas.assistant import Assistant
from atlas.measure.memory import RememberingEncoder, RememberingReranker, remembering
from atlas.records import Scope

CHANGING = ("id", "time", "timings_seconds")
TEXTS = ["the battery", "the lock", "the battery", "a bell"]
PAIRS = [("battery", text) for text in TEXTS]


def values(assistant: Assistant, question: str, reader: str | None) -> dict[str, Any]:
    trace = assistant.ask(question, Scope(reader=reader, date=date(2026, 3, 2)))
    return {key: value for key, value in trace.values.items() if key not in CHANGING}


@pytest.fixture
def assistant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assistant:
    use_fakes(monkeypatch)
    return opened(collection(tmp_path / "c"))


def test_traces_are_the_same_with_and_without_memory(assistant: Assistant) -> None:
    asked = [
        (question, reader)
        for question in (QUESTION, "what does the battery of a C-3 cost", "the engine oil")
        for reader in (None, "sales", "workshop", None)
    ]
    fresh = [values(assistant, *one) for one in asked]
    with remembering(assistant):
        remembered = [values(assistant, *one) for one in asked]
    assert remembered == fresh
    assert any(trace["context"] for trace in fresh)


def test_a_question_that_was_asked_costs_no_model_again_until_it_is_forgotten(
    assistant: Assistant,
) -> None:
    encoder, reranker = assistant.encoder, assistant.reranker
    assert isinstance(encoder, FakeEncoder)
    assert isinstance(reranker, FakeReranker)
    with remembering(assistant) as forget:
        values(assistant, QUESTION, None)
        spent = (len(encoder.encoded), len(reranker.scored))
        values(assistant, QUESTION, None)
        assert (len(encoder.encoded), len(reranker.scored)) == spent
        values(assistant, QUESTION, "sales")  # one more block to be scored
        assert len(reranker.scored) > spent[1]
        assert len(set(reranker.scored)) == len(reranker.scored)
        forget()
        values(assistant, QUESTION, "sales")
        assert len(set(reranker.scored)) < len(reranker.scored)


def test_afterwards_the_assistant_has_its_own_models_back(assistant: Assistant) -> None:
    models = (assistant.encoder, assistant.reranker)
    with remembering(assistant):
        assert isinstance(assistant.encoder, RememberingEncoder)
        assert isinstance(assistant.reranker, RememberingReranker)
    assert (assistant.encoder, assistant.reranker) == models


def test_without_a_reranker_there_is_still_none(assistant: Assistant) -> None:
    assistant.reranker = None
    with remembering(assistant) as forget:
        assert assistant.reranker is None
        forget()
        assert values(assistant, QUESTION, None)["context"][0]["rerank_score"] is None


def test_an_encoder_computes_each_text_once_and_gives_every_row() -> None:
    inner = FakeEncoder()
    encoder = RememberingEncoder(inner)
    steps: list[int] = []
    found = encoder.encode_documents(TEXTS, steps.append)
    assert inner.encoded == ["the battery", "the lock", "a bell"]
    assert steps == [1, 1, 1]
    assert found.dtype == np.float32
    assert np.array_equal(found, FakeEncoder().encode_documents(TEXTS))
    assert np.array_equal(encoder.encode_documents(["a bell"])[0], found[3])
    assert len(inner.encoded) == 3
    encoder.forget()
    encoder.encode_documents(["a bell"])
    assert inner.encoded[3:] == ["a bell"]


def test_questions_and_documents_of_the_same_words_are_apart() -> None:
    class Instructed(FakeEncoder):
        """An encoder with an instruction before questions, as some have."""

        def encode_question(self, text: str) -> Any:
            return -super().encode_question(text)

        def encode_documents(self, texts: Any, progress: Any = None) -> Any:
            return np.stack([FakeEncoder().encode_question(text) for text in texts])

    encoder = RememberingEncoder(Instructed())
    for _ in range(2):
        [document] = encoder.encode_documents(["bell"])
        assert np.array_equal(encoder.encode_question("bell"), -document)


def test_no_text_gives_an_empty_table() -> None:
    assert RememberingEncoder(FakeEncoder(dimension=8)).encode_documents([]).shape == (0, 8)
    assert RememberingReranker(FakeReranker()).score("x", []).shape == (0,)


def test_a_reranker_scores_each_pair_once_and_gives_every_row() -> None:
    inner = FakeReranker()
    reranker = RememberingReranker(inner)
    found = reranker.score_pairs(PAIRS)
    assert inner.scored == [PAIRS[0], PAIRS[1], PAIRS[3]]
    assert found.dtype == np.float32
    assert np.array_equal(found, FakeReranker().score_pairs(PAIRS))
    assert np.array_equal(reranker.score("battery", TEXTS), found)
    assert len(inner.scored) == 3
    assert not np.array_equal(reranker.score("lock", TEXTS), found)
    reranker.forget()
    reranker.score("battery", ["a bell"])
    assert inner.scored[-1] == ("battery", "a bell")


def test_names_limits_and_counts_are_those_of_the_models() -> None:
    encoder, reranker = FakeEncoder(max_tokens=7), FakeReranker(max_tokens=9)
    own, other = RememberingEncoder(encoder), RememberingReranker(reranker)
    for name in ("name", "fingerprint", "dimension", "max_tokens"):
        assert getattr(own, name) == getattr(encoder, name)
    for name in ("name", "fingerprint", "max_tokens"):
        assert getattr(other, name) == getattr(reranker, name)
    assert own.count_tokens("one two") == encoder.count_tokens("one two")
    assert other.pair_tokens("one", "two") == reranker.pair_tokens("one", "two")
