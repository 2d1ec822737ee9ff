"""What kind of value a question asks for, what it is about, and what gives such a value."""

from __future__ import annotations

import pytest

from atlas.answer.question import VALUE_PATTERNS, analyse, gives, parts


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("how long is the battery under warranty", "duration"),
        ("how many days do i have", "duration"),
        ("warranty lock", "duration"),
        ("how long is the cable", "size"),
        ("How often must the chain be oiled?", "interval"),
        ("when was it recalled", "date"),
        ("how much is a charger", "price"),
        ("how much are two batteries", "price"),
        ("price of the lock", "price"),
        ("what does a battery cost", "price"),
        ("how much is the maximum load", "weight"),
        ("how much water does it take", "number"),
        ("how many battery checks are there", "count"),
        ("how many bar in the tyre", "pressure"),
        ("how many euros is a lock", "price"),
        ("how many amps does it draw", "number"),
        ("how many percent are left", "number"),
        ("how many km does it go", "distance"),
        ("how far does it go", "distance"),
        ("how many kg can it carry", "weight"),
        ("how heavy is it", "weight"),
        ("top speed", "speed"),
        ("tyre pressure", "pressure"),
        ("how tight are the crank bolts", "torque"),
        ("what voltage has the battery", "voltage"),
        ("how many wh has it", "capacity"),
        ("how cold may it get", "temperature"),
        ("which error code is it", "code"),
        ("can i use a pressure washer", "yes_no"),
        ("ok to use a pressure washer", "yes_no"),
        ("wash it with the pressure hose or not", "yes_no"),
        ("which pressure washer", "other"),
        ("how soon must it come in", "duration"),
        ("how early do i order one", "duration"),
        ("what do i charge for a lock", "price"),
        ("how do i charge the battery", "steps"),
        ("is the price fixed", "yes_no"),
        ("don't i need a helmet", "yes_no"),
        ("what does error E-417 mean", "meaning"),
        ("where is the button", "place"),
        ("who pays for it", "person"),
        ("how do i reset the display", "steps"),
        ("the battery", "other"),
    ],
)
def test_the_kind_of_value_is_read_from_the_words(text: str, asked: str) -> None:
    assert analyse(text).asked == asked


@pytest.mark.parametrize(
    ("lead", "asked"),
    [
        ("Hello, can you tell me how long it lasts?", "duration"),
        ("Hi! Could you please tell us how much a lock costs?", "price"),
        ("good morning, please how heavy is it", "weight"),
        ("would you let me know where the button is", "place"),
    ],
)
def test_a_polite_lead_does_not_make_it_a_yes_or_no_question(lead: str, asked: str) -> None:
    assert analyse(lead).asked == asked


def test_what_leads_to_a_question_does_not_decide_its_kind() -> None:
    assert analyse("my charger is broken, how much is a new one").asked == "price"


def test_a_typeset_apostrophe_reads_like_a_typed_one() -> None:
    assert analyse("can’t i wash it").asked == analyse("can't i wash it").asked == "yes_no"


@pytest.mark.parametrize(
    ("asked", "text", "given"),
    [
        ("price", "It costs EUR 549.00.", True),
        ("price", "It costs 549 euros.", True),
        ("price", "The repair is free.", True),
        ("price", "The repair takes 549 minutes.", False),
        ("duration", "within 10 working days", True),
        ("duration", "three years", True),
        ("duration", "a 2-year warranty", True),
        ("duration", "after 10,000 km", False),
        ("interval", "once a year", True),
        ("interval", "every 2,000 km", True),
        ("interval", "with a clean cloth", False),
        ("date", "from 2026-01-01", True),
        ("date", "on 3 March", True),
        ("voltage", "a 36 V battery", True),
        ("voltage", "a 36-volt battery", True),
        ("voltage", "4 A at 36 Vx", False),
        ("torque", "40 Nm", True),
        ("torque", "40 N", False),
        ("weight", "up to 120 kg", True),
        ("weight", "120 km", False),
        ("speed", "25 km/h", True),
        ("speed", "25 km", False),
        ("pressure", "3.5 bar", True),
        ("capacity", "504 Wh", True),
        ("temperature", "0 °C to 40 °C", True),
        ("size", "710 mm", True),
        ("count", "eleven checks", True),
        ("count", "checks", False),
        ("code", "see E-417", True),
        ("code", "see below", False),
    ],
)
def test_a_quote_holds_the_kind_of_value_or_lacks_it(asked: str, text: str, given: bool) -> None:
    assert gives(asked, text) is given  # type: ignore[arg-type]


def test_a_kind_without_a_pattern_cannot_be_checked() -> None:
    assert "yes_no" not in VALUE_PATTERNS
    assert gives("yes_no", "Never use one.") is None


def test_the_terms_are_the_subject_without_the_asking_and_the_products() -> None:
    question = analyse("how much does a C-3 helmet cost", frozenset({"c3"}))
    assert question.terms == ("helmet",)


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        ("is it oiled once a year", "is it oiled every 12 months"),
        ("is it oiled yearly", "is it oiled every 12 months"),
        ("is it oiled twice a year", "is it oiled every 6 months"),
        ("is it oiled every half year", "is it oiled every 6 months"),
        ("is it oiled every two years", "is it oiled every 24 months"),
        ("is it oiled quarterly", "is it oiled every 3 months"),
    ],
)
def test_a_period_is_also_worded_as_documents_write_it(text: str, wording: str) -> None:
    assert analyse(text).wordings == (text, wording)


def test_a_question_without_a_period_has_one_wording() -> None:
    assert analyse("how heavy is it").wordings == ("how heavy is it",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "it has a crack, which box does it go in and how early must i order it",
            ["it has a crack, which box does it go in", "how early must i order it"],
        ),
        (
            "it whistles. what is it and how much is a new one",
            ["it whistles, what is it", "how much is a new one"],
        ),
        ("how heavy is it? how fast is it?", ["how heavy is it", "how fast is it?"]),
        (
            "what is the term, and who pays, and where is it sent",
            ["what is the term", "who pays", "where is it sent"],
        ),
    ],
)
def test_a_question_of_several_parts_is_taken_apart(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "how heavy is it",
        "what do two batteries and a charger cost",
        "my bike is wet and cold, can i charge it",
    ],
)
def test_a_question_that_asks_one_thing_stays_whole(text: str) -> None:
    assert parts(text) == [text]


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("battery of a C-3", "battery of a it"),
        ("C-3 battery weight", "it battery weight"),
        ("is a C-3 heavier than a T-7?", "is a it heavier than a it?"),
        ("battery of a K-1", "battery of a K-1"),
    ],
)
def test_the_bare_question_names_no_product(text: str, bare: str) -> None:
    assert analyse(text, frozenset({"c3", "t7"})).bare == bare
