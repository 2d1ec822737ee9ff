"""Sums and counts: exact, of figures that stand in the documents, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pieces import block, blocks, candidate, hit, scored

from atlas.answer.arithmetic import MAX_EXPRESSION, evaluate, money_in, shown
from atlas.answer.calculation import compute
from atlas.answer.clarification import Products
from atlas.answer.counting import counted_blocks, counted_noun
from atlas.answer.extractive import candidates
from atlas.answer.question import analyse
from atlas.answer.sums import asks_difference, difference_in, wanted_items
from atlas.records import Block, Draft

# ---- expressions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("0.1 + 0.2", "0.3"),
        ("2 × 549.00 + 89.00", "1187.00"),
        ("599.00 − 549.00", "50.00"),
        ("-(2 + 3) * 4", "-20"),
        ("2 + 3 * 4", "14"),
        ("7 / 2", "3.5"),
        ("1234567890123456789012345.01 + 0.01", "1234567890123456789012345.02"),
    ],
)
def test_an_expression_has_its_exact_value(expression: str, value: str) -> None:
    assert evaluate(expression) == Decimal(value)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "1 +",
        "1 / 0",
        "0 / 0",
        "a + 1",
        "__import__('os')",
        "abs(1)",
        "'1'",
        "True",
        "2 ** 3",
        "5 % 2",
        "1j",
        "(1, 2)",
        "1 if 1 else 2",
        "1e999999 * 1e999999",
    ],
)
def test_anything_but_sums_of_numbers_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match="number"):
        evaluate(expression)


def test_an_expression_has_at_most_400_characters() -> None:
    longest = "1+" * 199 + "11"
    assert len(longest) == MAX_EXPRESSION == 400
    assert evaluate(longest) == 210
    with pytest.raises(ValueError, match="longer than 400 characters"):
        evaluate(f"{longest}1")


@given(st.lists(st.decimals(0, 10**6, places=2), min_size=1, max_size=8))
def test_cents_add_up_exactly(amounts: list[Decimal]) -> None:
    assert evaluate(" + ".join(f"{amount:f}" for amount in amounts)) == sum(amounts)


def test_results_are_written_for_people() -> None:
    assert shown(Decimal("1187"), "EUR") == "EUR 1,187.00"
    assert shown(Decimal("1200.50")) == "1,200.5"


# ---- money ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("EUR 549.00", "549.00", "EUR"),
        ("549 EUR", "549", "EUR"),
        ("12.5 euros", "12.5", "EUR"),
        ("€1,299.50", "1299.50", "EUR"),
        ("$5", "5", "USD"),
        ("CHF 20", "20", "CHF"),
        ("It costs EUR 549, or less.", "549", "EUR"),
        ("It costs EUR 549.", "549", "EUR"),
        ("the price (£1,200)", "1200", "GBP"),
    ],
)
def test_an_amount_of_money_is_read(text: str, amount: str, currency: str) -> None:
    [money] = money_in(text)
    assert (money.amount, money.currency) == (Decimal(amount), currency)
    assert money.words in text


@pytest.mark.parametrize("text", ["549", "549 km", "5 eurostars", "1,2345 EUR", "EUR 1,29"])
def test_other_figures_are_no_money(text: str) -> None:
    assert money_in(text) == []


def test_every_amount_is_found_in_reading_order() -> None:
    assert [m.words for m in money_in("EUR 5, $6 and 7 €")] == ["EUR 5", "$6", "7 €"]


# ---- what is wanted -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        "two batteries and a charger",
        "how much are two batteries and a charger?",
        "what do two batteries and a charger cost together",
        "two batteries and a charger, what does that come to",
        "two batteries and a charger how much is that",
        "price of 2 batteries plus one charger please",
        "i need two batteries & the charger in total",
        "what would 2 batteries with a charger cost for the T-7",
    ],
)
def test_two_batteries_and_a_charger(question: str) -> None:
    assert [(item.count, item.item) for item in wanted_items(question)] == [
        (2, "batteries"),
        (1, "charger"),
    ]


@pytest.mark.parametrize(
    "question",
    ["how much is a charger for the T-7", "price of the battery", "one charger", "T-7 charger"],
)
def test_one_thing_is_no_sum_and_a_product_is_no_number(question: str) -> None:
    assert wanted_items(question) == []


def test_several_of_one_thing_are_a_sum() -> None:
    [item] = wanted_items("what do three locks cost")
    assert (item.count, item.item) == (3, "locks")


@pytest.mark.parametrize(
    ("question", "items"),
    [
        (
            "how much more is a T-7 battery than a C-3 battery",
            ["T-7 battery", "C-3 battery"],
        ),
        ("how much dearer is the battery than the charger", ["battery", "charger"]),
        ("difference between the charger and the battery", ["charger", "battery"]),
        ("price diference between the charger and the battery", ["charger", "battery"]),
    ],
)
def test_the_two_sides_of_a_difference_are_found(question: str, items: list[str]) -> None:
    assert asks_difference(question)
    assert [item.item for item in wanted_items(question)] == items
    assert not asks_difference("how much are a battery and a charger")


@pytest.mark.parametrize(
    ("question", "noun"),
    [
        ("how many battery checks are there", ["batteri", "check"]),
        ("number of error codes", ["error", "code"]),
        ("how many keys do i get", ["key"]),
        ("how heavy is it", []),
    ],
)
def test_what_is_counted_is_named_by_its_stems(question: str, noun: list[str]) -> None:
    assert counted_noun(question) == noun


# ---- sums -----------------------------------------------------------------------------------

PRICES = block(
    "# Prices\n\n| Item | Price |\n|---|---|\n"
    "| Battery 500 | EUR 549.00 |\n| Charger | EUR 89.90 |\n| Lock | USD 20 |\n"
)
BY_PRODUCT = [
    block("# Prices C-3\n\n| Item | Price |\n|---|---|\n| Battery | EUR 549 |\n", "A", ("C-3",)),
    block("# Prices T-7\n\n| Item | Price |\n|---|---|\n| Battery | EUR 699 |\n", "B", ("T-7",)),
]


def computed(
    question: str,
    supplied: Sequence[Block],
    names: Sequence[str] = ("C-3", "T-7"),
    named: Sequence[str] = (),
) -> Draft | None:
    asked = analyse(question)
    found = candidates(asked, [hit(item) for item in supplied], scored({}, 1.0))
    return compute(asked, supplied, found, Products(names), named)


def texts(draft: Draft | None) -> list[str]:
    assert draft is not None
    assert draft.status == "answered"
    return [claim.text for claim in draft.claims]


def test_a_sum_is_shown_with_its_operands_and_cites_them() -> None:
    draft = computed("how much are two batteries and a charger", [PRICES])
    assert texts(draft) == [
        "2 × 549.00 + 89.90 = EUR 1,187.90",
        "Item: Battery 500; Price: EUR 549.00",
        "Item: Charger; Price: EUR 89.90",
    ]
    assert draft is not None
    total, *operands = draft.claims
    assert total.computed
    assert total.quotes == ("Battery 500 | EUR 549.00", "Charger | EUR 89.90")
    assert [claim.quotes for claim in operands] == [(quote,) for quote in total.quotes]
    assert not any(claim.computed for claim in operands)


def test_the_order_of_a_difference_does_not_matter() -> None:
    for question in (
        "how much more is the battery than the charger",
        "difference between the charger and the battery",
    ):
        assert texts(computed(question, [PRICES]))[0] == "549.00 − 89.90 = EUR 459.10"


@pytest.mark.parametrize(
    "question",
    [
        "how much are two batteries and a saddle",
        "how much are two batteries and a lock",
        "how much is a battery",
        "how long do two batteries and a charger last",
    ],
)
def test_a_missing_item_two_currencies_or_another_question_make_no_sum(question: str) -> None:
    assert computed(question, [PRICES]) is None


def test_a_quote_with_two_amounts_is_no_operand() -> None:
    piece = block("A battery costs EUR 549, before EUR 599.")
    assert computed("how much are two batteries", [piece]) is None


def test_a_sum_that_depends_on_the_product_is_asked_back() -> None:
    draft = computed("how much are two batteries", BY_PRODUCT)
    assert draft is not None
    assert (draft.status, draft.choices) == ("needs_clarification", ("C-3", "T-7"))
    assert texts(computed("how much are two batteries", BY_PRODUCT, named=("T-7",)))[0] == (
        "2 × 699 = EUR 1,398.00"
    )


# ---- counts ---------------------------------------------------------------------------------

ROWS = "".join(f"| R{n:02} | the casing of battery {n} was opened |\n" for n in range(1, 12))
CHECKS = blocks(
    f"# Safety\n\n## Battery checks\n\n| Check | Meaning |\n|---|---|\n{ROWS}", size=350
)


def test_rows_of_a_table_in_two_pieces_are_counted_once_each() -> None:
    assert len(CHECKS) == 2
    draft = computed("how many battery checks are there", CHECKS)
    [text] = texts(draft)
    names = "; ".join(f"R{n:02}" for n in range(1, 12))
    assert text == f"11, counted in “Battery checks” of Safety: {names}."
    assert draft is not None
    [claim] = draft.claims
    assert claim.computed
    assert claim.markers == (1, 2)
    assert all(quote in piece.text for quote, piece in zip(claim.quotes, CHECKS, strict=True))
    assert draft.evidence == (("counted", 11.0),)


def test_codes_are_listed_in_order_whatever_the_rank_of_the_pieces() -> None:
    assert texts(computed("how many battery checks are there", CHECKS[::-1])) == texts(
        computed("how many battery checks are there", CHECKS)
    )


def test_items_of_a_list_are_counted() -> None:
    piece = block("# Box\n\n## Tools in the box\n\n- Hex key\n- Pump\n- Spoke key\n")
    assert texts(computed("how many tools are in the box", [piece])) == [
        "3, counted in “Tools in the box” of Box: Hex key; Pump; Spoke key."
    ]


@pytest.mark.parametrize(
    "question", ["how many spokes are there", "how many casings are there", "battery checks"]
)
def test_what_no_table_lists_is_not_counted(question: str) -> None:
    assert computed(question, CHECKS) is None


def test_a_figure_of_one_row_is_no_count_of_the_rows_in_the_other_pieces_of_its_table() -> None:
    places = ("Alabama", "Ohio", "Maine", "Texas", "Utah", "Iowa", "Idaho", "Guam", "Oregon")
    rows = "".join(f"| {place} | {40 + n} |\n" for n, place in enumerate(places))
    pieces = blocks(
        f"# Safety\n\n## Battery checks\n\n| State | Checks |\n|---|---|\n{rows}", size=60
    )
    assert len(pieces) > 1
    for supplied in (pieces, pieces[::-1]):
        assert computed("how many battery checks in Alabama", supplied) is None
        [text] = texts(computed("how many battery checks are there", supplied))
        assert text.startswith("9, counted in “Battery checks” of Safety: ")


def test_a_number_that_a_quote_states_is_not_counted_again() -> None:
    stated = block("There are twelve battery checks.")
    asked = analyse("how many battery checks are there")
    found = [candidate(stated, "twelve", logit=1.0)]
    assert compute(asked, CHECKS, found, Products(()), ()) is None
    doubted = [candidate(stated, "twelve", logit=-1.0)]
    assert compute(asked, CHECKS, doubted, Products(()), ()) is not None


def test_a_count_needs_the_rest_of_the_table_and_the_sections_of_its_codes() -> None:
    document = blocks(
        "# Errors\n\n## List\n\n| Code | Meaning |\n|---|---|\n"
        + "".join(f"| E-{n} | {'hot ' * 12}|\n" for n in range(1, 6))
        + "\n## E-6\n\nLate.\n\n## Other\n\n| a | b |\n|---|---|\n| c | d |\n",
        size=200,
    )
    first, *rest = document
    others = counted_blocks(first, document)
    assert first not in others
    assert {item.titles[-1] for item in others} == {"List", "E-6"}
    assert len(others) == len(rest) - 1
    assert counted_blocks(block("No table."), document) == []


# ---- differences within a row ---------------------------------------------------------------

JOBS = block(
    "# Jobs\n\n| Job | C-3 | T-7 | K-1 |\n|---|---|---|---|\n"
    "| Drive | 95 minutes | 110 minutes | none |\n| Cable | 70 minutes | 1.5 hours | 20 |\n"
)


def test_the_difference_of_two_products_cells_is_shown_with_its_row() -> None:
    row = candidate(JOBS, "Drive", marker=3)
    question = analyse("drive swap, how many minutes more on a T-7 than on a C-3")
    for named in (("T-7", "C-3"), ("C-3", "T-7")):
        found = difference_in(row, question, named)
        assert found is not None
        assert found[0].text == "110 − 95 = 15 minutes"
        assert found[0].computed
        assert not found[1].computed
        assert "C-3: 95 minutes" in found[1].text
        assert {claim.markers for claim in found} == {(3,)}


@pytest.mark.parametrize(
    ("question", "job", "named"),
    [
        ("how many minutes on a T-7 and a C-3", "Drive", ("T-7", "C-3")),
        ("how much longer on a T-7 than on a C-3", "Cable", ("T-7", "C-3")),
        ("how much longer on a T-7 than on a K-1", "Drive", ("T-7", "K-1")),
        ("how much longer on a T-7 than on a C-4", "Drive", ("T-7", "C-4")),
        ("how much longer on a T-7", "Drive", ("T-7",)),
    ],
)
def test_other_questions_units_cells_and_columns_make_no_difference(
    question: str, job: str, named: tuple[str, ...]
) -> None:
    assert difference_in(candidate(JOBS, job), analyse(question), named) is None


def test_a_sentence_holds_no_difference() -> None:
    sentence = candidate(block("The C-3 takes 95 minutes, the T-7 110."), "95")
    question = analyse("how much longer on a T-7 than on a C-3")
    assert difference_in(sentence, question, ("T-7", "C-3")) is None
