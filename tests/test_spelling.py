"""Typing errors are mended towards words of the blocks in scope, and real words are left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import collection, opened, use_fakes

from atlas.index import Index
from atlas.keyword import ScopedBM25
from atlas.spelling import mend
from atlas.words import STOP_WORDS, terms


@dataclass(frozen=True, kw_only=True)
class Desk:
    """An index and the statistics of what anyone sees of it, and of all of it."""

    index: Index
    public: ScopedBM25
    everything: ScopedBM25

    def mended(self, question: str, *, real: tuple[str, ...] = (), everything: bool = False) -> str:
        seen = self.everything if everything else self.public
        return mend(question, self.index, seen, real.__contains__)[0]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    root = collection(tmp_path_factory.mktemp("spelling") / "c", cases=None)
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_fakes(monkeypatch)
        index = opened(root).index
    public = np.array([index.block(n).document != "PRICES" for n in range(len(index))])
    yield Desk(
        index=index,
        public=ScopedBM25(index.postings, public),
        everything=ScopedBM25(index.postings, np.ones(len(index), bool)),
    )
    index.close()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("the batery lasts", "the battery lasts"),
        ("the battrey lasts", "the battery lasts"),
        ("Waranty of it", "warranty of it"),
        ("tigten it", "tighten it"),
        ("is it udner it", "is it under it"),
    ],
)
def test_one_typing_error_is_mended(desk: Desk, typed: str, meant: str) -> None:
    assert desk.mended(typed) == meant


def test_two_errors_are_mended_in_long_words_only(desk: Desk) -> None:
    assert desk.mended("warrentty") == "warranty"
    assert desk.mended("bettry") == "bettry"


def test_what_was_replaced_is_told(desk: Desk) -> None:
    text, replaced = mend("batery of teh e417", desk.index, desk.public, lambda word: False)
    assert text == "battery of the E-417"
    assert replaced == {"batery": "battery", "teh": "the", "e417": "E-417"}


def test_a_real_word_is_left_alone(desk: Desk) -> None:
    assert desk.mended("the batter", real=("batter",)) == "the batter"
    assert desk.mended("the batter") == "the battery"


def test_of_a_real_word_only_swapped_letters_are_mended(desk: Desk) -> None:
    assert desk.mended("the lokc", real=("lokc",)) == "the lock"
    assert desk.mended("the look", real=("look",)) == "the look"


@pytest.mark.parametrize(
    "question", ["the battery of it", "BATTERIES", "claimed at dealers", "how long is it", "5 kg"]
)
def test_words_that_the_documents_have_and_stop_words_stay(desk: Desk, question: str) -> None:
    assert desk.mended(question) == question


@pytest.mark.parametrize(
    ("typed", "meant"), [("teh lock", "the lock"), ("waht lock", "what lock"), ("si it", "si it")]
)
def test_a_stop_word_with_swapped_letters_is_mended(desk: Desk, typed: str, meant: str) -> None:
    assert desk.mended(typed) == meant


@pytest.mark.parametrize("written", ["e417", "E417", "e-417"])
def test_a_code_gets_the_form_of_the_documents(desk: Desk, written: str) -> None:
    assert desk.mended(f"what is {written}?") == "what is E-417?"


def test_a_code_that_no_document_has_is_never_bent(desk: Desk) -> None:
    assert desk.mended("what is e418") == "what is e418"


def test_part_of_a_longer_word_is_not_replaced(desk: Desk) -> None:
    assert desk.mended("batery and batery-x") == "battery and batery-x"


def test_a_word_from_outside_the_scope_is_not_proposed(desk: Desk) -> None:
    assert desk.mended("it costss", everything=True) == "it costs"
    assert desk.mended("it costss") == "it costss"


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_whatever_is_typed_only_words_in_scope_are_proposed(
    desk: Desk, data: st.DataObject
) -> None:
    words = sorted({w for n in range(len(desk.index)) for w in desk.index.block(n).text.split()})
    word = data.draw(st.sampled_from(words))
    place = data.draw(st.integers(0, len(word) - 1))
    typed = data.draw(st.sampled_from(_errors(word, place)))
    _, replaced = mend(f"the {typed} of it", desk.index, desk.public, lambda word: False)
    for better in replaced.values():
        known = all(desk.public.frequency(term) for term in terms(better))
        assert known or better in STOP_WORDS


def _errors(word: str, place: int) -> list[str]:
    make: list[Callable[[], str]] = [
        lambda: word[:place] + word[place + 1 :],
        lambda: word[:place] + "e" + word[place:],
        lambda: word[:place] + word[place : place + 2][::-1] + word[place + 2 :],
        lambda: word[:place] + "x" + word[place + 1 :],
    ]
    return [error() for error in make]
