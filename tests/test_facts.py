"""Facts are found at token boundaries, with number words read as numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.measure.cases import Case
from atlas.measure.facts import contains, missing_facts, rejected


def case(**values: object) -> Case:
    return Case(id="X", question="?", where="x.yaml:1", **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("covered for 3 years.", "3 years"),
        ("covered for three years", "3 years"),
        ("covered for 3 years", "three years"),
        ("Covered for THREE  YEARS", "three years"),
        ("twenty-one days", "21 days"),
        ("twenty one days", "21 days"),
        ("21 days", "twenty-one days"),
        ("the 36V battery", "36 V"),
        ("1,200 EUR", "1200 EUR"),
        ("it costs 24, or so", "24"),
        ("| R07 | box A-12/B |", "A-12/B"),
        ("“3 years”, he said", "3 years, he"),
        ("at -12 °C", "-12 °C"),
        ("at −12 °C", "-12 °C"),
        ("Größe XL", "größe xl"),
        ("保修三年", "保修三年"),
    ],
)
def test_a_fact_is_found(text: str, wanted: str) -> None:
    assert contains(text, wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("covered for 13 years", "3 years"),
        ("covered for 3.5 years", "3"),
        ("covered for 3.5 years", "5 years"),
        ("covered for twenty-three years", "3 years"),
        ("1,200 EUR", "200 EUR"),
        ("1,200 EUR", "1"),
        ("E-4171", "E-417"),
        ("36 Ah", "36 A"),
        ("at -12 °C", "12 °C"),
        ("3 or 4 years", "3 years"),
        ("yearly", "year"),
        ("anything", ""),
        ("anything", " . "),
        ("", "3"),
    ],
)
def test_a_fact_is_not_found(text: str, wanted: str) -> None:
    assert not contains(text, wanted)


@given(st.integers(0, 9999), st.integers(0, 9999))
def test_a_number_is_found_in_itself_only(number: int, other: int) -> None:
    assert contains(f"for {number} days", f"{other} days") == (number == other)


def test_every_fact_needs_one_of_its_alternatives() -> None:
    wanted = case(facts=(("3 years", "36 months"), ("dealer",)))
    assert missing_facts("36 months, at the dealer", wanted) == []
    assert missing_facts("for 3 years", wanted) == ["dealer"]
    assert missing_facts("", wanted) == ["3 years or 36 months", "dealer"]


def test_rejected_strings_are_named() -> None:
    assert rejected("2 years or 12 years", case(reject=("2 years", "5 years"))) == ["2 years"]
