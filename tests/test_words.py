"""The one tokenizer: what counts as the same word, code, number or unit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.words import content_terms, is_code, number_of, stem, terms, tokens


@pytest.mark.parametrize(
    "text",
    [
        "E-417",
        "e417",
        "E417",
        "e-417",
        "E\u2010417",  # the typeset hyphen of PDFs
        "E\u2011417",  # the unbreakable one
        "E\u2013417",  # a dash that a word processor made of it
    ],
)
def test_a_code_is_one_term_however_it_is_written(text: str) -> None:
    assert terms(text) == ["e417"]


def test_a_code_with_a_slash_stays_whole() -> None:
    assert terms("part A-12/B fits") == ["part", "a12b", "fit"]


def test_two_codes_beside_a_slash_are_found_apart_and_together() -> None:
    assert terms("E-417/E-471") == ["e417", "e471", "e417e471"]


def test_codes_that_differ_in_their_order_are_different_terms() -> None:
    assert terms("E-417") != terms("E-471")
    assert terms("R01") != terms("R1")


@pytest.mark.parametrize("text", ["36 V", "36V", "36-volt", "36 volts", "36-V", "36 v"])
def test_a_number_with_its_unit_is_one_term(text: str) -> None:
    assert terms(text) == ["36v"]


def test_the_same_number_with_another_unit_is_another_term() -> None:
    assert set(terms("36 V")).isdisjoint(terms("36 A"))
    assert set(terms("25 km/h")).isdisjoint(terms("25 km"))


def test_two_quantities_beside_a_slash_are_two_terms() -> None:
    assert terms("36 V/10 Ah") == ["36v", "10ah"]
    assert terms("36V/10.4Ah") == ["36v", "10.4ah"]


def test_money_is_one_term_before_and_after_the_amount() -> None:
    assert terms("€3.50") == terms("3.5 EUR") == terms("3.50 euros") == ["3.5eur"]
    assert terms("€ 3,500.00") == ["3500eur"]


def test_thousands_are_joined_and_a_list_of_numbers_is_not() -> None:
    assert terms("1,000 km") == ["1000km"]
    assert terms("sections 1, 2 and 3") == ["section", "1", "2", "and", "3"]


def test_number_words_are_numbers_but_one_is_a_pronoun() -> None:
    assert terms("three years") == terms("3 years")
    assert terms("twenty-one days") == terms("21 days")
    assert terms("thirty-six months") == terms("36 months")
    assert terms("this one") == ["this", "one"]


def test_a_number_is_not_part_of_a_longer_one() -> None:
    assert "3" not in terms("13 years, 2013 and 3.5")


def test_a_range_gives_both_ends() -> None:
    assert terms("120-250-mm") == ["120", "250mm"]
    assert terms("3\u20135 years")[:2] == ["3", "5"]


def test_a_compound_gives_its_parts_and_the_joined_word() -> None:
    assert terms("Wi-Fi") == ["wi", "fi", "wifi"]
    assert set(terms("wifi")) <= set(terms("Wi-Fi"))


@pytest.mark.parametrize("text", ["bike's", "bikes'", "bike’s", "bikes’", "Bikes", "bike"])
def test_possessives_and_plurals_are_the_word_itself(text: str) -> None:
    assert terms(text) == ["bike"]


def test_a_possessive_of_a_code_is_the_code() -> None:
    assert terms("the T-7's battery") == ["the", "t7", "batteri"]


def test_case_accents_and_ligatures_do_not_matter() -> None:
    assert terms("CAFÉ") == terms("cafe\u0301") == terms("cafe")
    assert terms("Straße") == terms("STRASSE")
    assert terms("ﬁrmware") == terms("firmware")


def test_words_of_other_scripts_are_kept() -> None:
    assert terms("гарантия") == ["гарантия"]
    assert terms("保証") == ["保証"]


def test_dates_and_versions_keep_their_numbers() -> None:
    assert terms("2026-01-01") == ["2026", "01", "01"]
    assert terms("firmware 3.2")[1] == "3.2"


def test_content_terms_have_a_subject_and_stand_once() -> None:
    assert content_terms("What is the battery of the battery's C-3?") == ["batteri", "c3"]
    assert content_terms("who, what and where?") == []


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("e417", True),
        ("a12b", True),
        ("36v", False),
        ("2nd", False),
        ("abc", False),
        ("417", False),
    ],
)
def test_a_code_mixes_letters_and_digits_and_is_no_quantity(term: str, expected: bool) -> None:
    assert is_code(term) is expected


def test_the_number_of_a_quantity_is_told_and_that_of_a_code_is_not() -> None:
    assert number_of("36v") == "36"
    assert number_of("3.5") == "3.5"
    assert number_of("12x") is None
    assert number_of("e417") is None


def test_a_stem_is_that_of_the_terms() -> None:
    assert [stem("warranties")] == terms("warranties")


@given(st.text(max_size=200))
def test_every_term_points_at_its_place_in_any_text(text: str) -> None:
    last = 0
    for token in tokens(text):
        assert token.term
        assert last <= token.start < token.end <= len(text)
        last = token.start


@given(
    st.lists(st.sampled_from(["E-417", "36 V", "three", "Wi-Fi", "bike's", "1,000"]), max_size=8)
)
def test_the_terms_of_a_list_are_those_of_its_items(items: list[str]) -> None:
    assert terms(" ; ".join(items)) == [term for item in items for term in terms(item)]
