"""What a judge checks exactly: figures, units, codes, dates, counts, revisions, denials."""

from __future__ import annotations

import pytest

from atlas.measure.judges import exact
from atlas.measure.judges.claims import is_abstention, sentences, statements
from atlas.measure.judges.figures import figures, supported
from atlas.measure.judges.passages import counted, in_force, passages
from atlas.measure.judges.polarity import contradiction

WARRANTY = "Warranty C-3 > Term\nThe battery of the C-3 is covered for 3 years."
CHECKS = """\
Battery checks C-3 > The checks
| Check | What to look at |
|---|---|
| R01 | Serial label can be read |
| R02 | No smell at the seams |
| R03 | Casing without dents |"""
CHECKS_ON = """\
Battery checks C-3 > The checks
| Check | What to look at |
|---|---|
| R04 | Casing without cracks |"""
CODES = [
    "Errors C-3 > E-417\nE-417 means that the battery is too hot: more than 58 °C.",
    "Errors C-3 > E-471\nE-471 means that the battery is too cold: less than minus 12 °C.",
]


def keys(text: str) -> list[tuple[str, str]]:
    return [figure.key for figure in figures(text)]


def wrong(claim: str, question: str, *sources: str) -> list[str]:
    """Everything exact that is wrong with a claim."""
    every = passages(question, sources)
    may = exact.allowed(exact.codes_of(question, claim), every)
    tables = counted(every)
    counts = exact.counted_right(claim, question, tables)
    found = exact.unsupported(claim, question, may, every, question, counts)
    found += exact.miscounted(claim, question, tables, may)
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 years", "36 months"), ("three years", "3-year"), ("two and a half years", "30 months"),
        ("an hour and a half", "90 minutes"), ("half an hour", "30 min"), ("24 hours", "one day"),
        ("1.2 cm", "12 mm"), ("0.5 kg", "500 g"), ("a dozen", "12"), ("half a dozen", "six"),
        ("EUR 1,190.00", "€1190"), ("549 euros", "EUR 549.00"), ("1 January 2026", "2026-01-01"),
        ("January 1st, 2026", "1 January 2026"), ("E-417", "e417"), ("twenty-one days", "3 weeks"),
        ("two hundred and fifty km", "250 kilometres"), ("minus 12 °C", "-12 degrees Celsius"),
        ("36 V", "36-volt"), ("136.4 °F", "58 °C"), ("once a year", "every 12 months"),
    ],
)  # fmt: skip
def test_figures_written_in_different_ways_are_the_same(one: str, other: str) -> None:
    mine, theirs = figures(one), figures(other)
    assert mine
    assert all(supported(figure, theirs) for figure in mine)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 years", "3 months"), ("13 years", "3 years"), ("30 days", "one month"),
        ("7 working days", "7 days"), ("58 °C", "58 V"), ("504 Ah", "504 Wh"), ("12 cm", "12 mm"),
        ("-5 °C", "5 °C"), ("1 January 2026", "1 February 2026"), ("E-417", "E-471"),
        ("1 January 2025", "1 January 2026"), ("36C-24-08100", "36C-24-08101"),
    ],
)  # fmt: skip
def test_figures_that_differ_in_number_unit_or_sign_are_not(one: str, other: str) -> None:
    assert not supported(figures(one)[0], figures(other))


def test_the_first_number_of_a_range_has_the_unit_of_the_second() -> None:
    assert keys("15 to 35 km") == keys("15 km to 35 km")


def test_list_numbers_and_citation_markers_are_no_figures() -> None:
    assert keys("1. Take it out.\n2) Dry it.") == []
    assert sentences("It is covered for 3 years [1][2]. Ask us [3].") == [
        "It is covered for 3 years.",
        "Ask us.",
    ]


def test_a_figure_of_the_sources_is_right_and_another_is_not() -> None:
    question = "How long is the battery covered?"
    assert wrong("It is covered for 36 months.", question, WARRANTY) == []
    assert wrong("It is covered for 2 years.", question, WARRANTY) == [
        "2 years does not stand in the sources"
    ]
    assert "another unit" in wrong("It is covered for 3 weeks.", question, WARRANTY)[0]


def test_a_number_in_a_title_supports_no_quantity() -> None:
    titled = "Warranty, revision 2 > Term\nThe battery is covered for 3 years."
    assert wrong("It is covered for 2 years.", "How long?", titled)


def test_a_figure_of_another_product_or_code_is_not_taken_for_this_one() -> None:
    other = "Warranty T-7 > Term\nThe battery of the T-7 is covered for 4 years."
    question = "How long is the battery of the C-3 covered?"
    assert (
        "about something else (Warranty T-7 > Term)"
        in (wrong("The battery is covered for 4 years.", question, WARRANTY, other)[0])
    )
    claim = "E-417 means too cold, less than minus 12 °C."
    assert wrong(claim, "What does E-417 mean?", *CODES)
    assert not wrong(claim.replace("417", "471"), "What does E-471 mean?", *CODES)


def test_a_value_that_a_sentence_sets_aside_no_longer_holds() -> None:
    source = "Note > New\nThe range is worked out from the last 15 km instead of the last 5 km."
    question = "From how many km is the range worked out?"
    assert not wrong("From the last 15 km.", question, source)
    assert "no longer holds" in wrong("From the last 5 km.", question, source)[0]


def test_rows_are_counted_over_all_pieces_of_a_table() -> None:
    question = "How many battery checks are there?"
    assert wrong("There are four battery checks.", question, CHECKS, CHECKS_ON) == []
    assert wrong("There are three battery checks.", question, CHECKS, CHECKS_ON)
    assert wrong("There are three battery checks.", question, CHECKS) == []


def test_rows_that_the_question_narrows_are_counted_too() -> None:
    question = "How many checks look at the casing?"
    assert not wrong("Two checks look at the casing.", question, CHECKS, CHECKS_ON)
    assert wrong("Three checks look at the casing.", question, CHECKS, CHECKS_ON)


def test_a_number_that_stands_elsewhere_is_still_a_wrong_count() -> None:
    source = f"{CHECKS}\n\nWait for 8 minutes."
    question = "How many battery checks are there?"
    assert wrong("There are 8 battery checks.", question, source) == ["8 where the sources list 3"]


def test_list_items_are_counted() -> None:
    source = "Claims > Exclusions\nNo claim exists for a battery that\n\n- is open,\n- is empty."
    question = "How many exclusions are there?"
    assert not wrong("There are two exclusions.", question, source)
    assert wrong("There are five exclusions.", question, source)


def test_the_result_of_a_right_expression_is_right() -> None:
    source = "Prices > C-3\nA battery costs EUR 549.00. A charger costs EUR 89.00."
    question = "What do two batteries and a charger cost?"
    right = "2 x EUR 549.00 + EUR 89.00 = EUR 1,187.00"
    assert wrong(right, question, source) == []
    assert wrong(right.replace("1,187", "1,178"), question, source)
    assert wrong(right.replace("549", "594"), question, source)


def test_half_of_a_joint_limit_is_cut_short() -> None:
    source = "Warranty T-7 > Term\nIt is covered for 4 years or 800 charge cycles."
    found = passages("", [source])
    assert "800" in exact.cut_short("It is covered for 4 years.", [found])
    assert exact.cut_short("4 years or 800 cycles, whichever is first.", [found]) == ""


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("how long is it covered", [1]),
        ("how long is it covered, bike of 2026", [1]),
        ("how long was it covered in 2025", [0]),
        ("how long is it covered under revision 1", [0]),
        ("how long was it covered under the old terms", [0]),
    ],
)
def test_the_newest_revision_holds_unless_the_question_names_another(
    question: str, kept: list[int]
) -> None:
    sources = [
        "Warranty C-3, revision 1 > Term\nBikes of 2025 are covered for 2 years.",
        "Warranty C-3, revision 2 > Term\nBikes from 2026 on are covered for 3 years.",
    ]
    assert in_force(question, sources) == kept


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Registration is a condition of cover.", "Registration is not a condition of cover."),
        ("The battery may not be charged overnight.", "The battery may be charged overnight."),
        ("The battery is too hot.", "The battery is too cold."),
        ("It opens above 30 V.", "It opens below 30 V."),
        ("Keep it for at least 12 hours.", "Keep it for at most 12 hours."),
    ],
)
def test_a_plain_contradiction_is_seen(claim: str, passage: str) -> None:
    assert contradiction(claim, passage)
    assert not contradiction(passage, passage)


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("You must not charge the battery.", "Do not charge the battery."),
        ("The battery stays dry.", "The charger is not waterproof."),
        ("Claims within 30 days.", "A claim is made no later than 30 days after the fault."),
    ],
)
def test_the_same_in_other_words_is_no_contradiction(claim: str, passage: str) -> None:
    assert contradiction(claim, passage) == ""


@pytest.mark.parametrize(
    "text",
    [
        "The documents do not say how long.", "That is not stated in the sources.",
        "I could not find anything about it.", "There is no information about prices.",
        "The manual doesn't mention it.", "Nothing in the sources answers this.",
        "None of the texts says whether it is covered.",
    ],
)  # fmt: skip
def test_an_abstention_is_known_by_its_words(text: str) -> None:
    assert is_abstention(text)


@pytest.mark.parametrize(
    "text",
    [
        "The battery is not covered.", "The manual says 3 years.", "Registration is not needed.",
        "INCORRECT", "Do not open the casing.",
    ],
)  # fmt: skip
def test_a_negative_fact_is_no_abstention(text: str) -> None:
    assert not is_abstention(text)


def test_claims_are_clauses_without_greetings_offers_and_questions_back() -> None:
    answer = (
        "Hello! Yes, it is covered for 3 years, and the lock is covered for 5 years. Anything else?"
    )
    found = statements("Is it covered?", answer)
    assert [item.text for item in found] == [
        "it is covered for 3 years",
        "the lock is covered for 5 years.",
    ]
    assert [item.polar for item in found] == ["yes", ""]


def test_a_short_claim_is_read_with_its_question() -> None:
    (claim,) = statements("How long is the battery covered?", "3 years.")
    assert claim.read == "How long is the battery covered? 3 years."


def test_a_bare_number_of_a_sentence_is_no_quantity_but_one_of_a_table_is() -> None:
    question = "How heavy is it?"
    assert wrong("It weighs 14 kg.", question, "Bike\nIt has 14 gears.")
    assert not wrong("It weighs 14 kg.", question, "Bike\n| Part | Weight (kg) |\n| Bike | 14 |")


def test_a_list_mark_within_a_line_is_no_claim() -> None:
    found = statements("", "Do this: 1. Open the lid. 2. Dry the seal.")
    assert all("." not in item.text[:2] for item in found)
    assert [item.text for item in found][-1] == "Dry the seal."


def test_numbers_that_were_cut_at_their_signs_are_made_whole() -> None:
    (found,) = passages("", ["It weighs 4 . 5 kg and has 1 , 250 seats."])
    assert keys(found.text) == keys("4.5 kg for 1,250 seats")


def test_a_line_with_bars_that_heads_no_table_is_still_read() -> None:
    found = passages("", ["Custody | Courts | Guide\nKeep a record.", "One | two\n\nThree."])
    assert [item.text for item in found] == [
        "Custody | Courts | Guide", "Keep a record.", "One | two", "Three.",
    ]  # fmt: skip
