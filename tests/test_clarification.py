"""Answers of several products are compared in what makes a difference to a person."""

from __future__ import annotations

import pytest
from pieces import block, candidate

from atlas.answer.clarification import Products, across_products, agree, joint_claim, leaders
from atlas.answer.extractive import Candidate
from atlas.answer.quotes import Quote
from atlas.records import Block

PRODUCTS = Products(["C-3", "T-7", "K-1"])


def says(text: str, product: str, marker: int = 1, logit: float = 1.0) -> Candidate:
    piece = block(f"{text} Every other word is the same.", product, (product,))
    return candidate(piece, text.rstrip("."), marker=marker, logit=logit)


def same(first: str, second: str) -> bool:
    ours, theirs = says(first, "C-3"), says(second, "T-7")
    assert agree(ours, theirs, PRODUCTS) == agree(theirs, ours, PRODUCTS)
    return agree(ours, theirs, PRODUCTS)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The battery lasts 3 years.", "The battery lasts three years."),
        ("The battery of the C-3 lasts 3 years.", "The battery of the T-7 lasts 3 years."),
        ("It runs at 36 V.", "It runs at 36 volts."),
        ("Never open the casing.", "Do not open the casing."),
        ("Error E-417 means heat.", "Error E417 means heat."),
    ],
)
def test_the_same_in_other_words_agrees(first: str, second: str) -> None:
    assert same(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The battery lasts 3 years.", "The battery lasts 2 years."),
        ("It runs at 36 V.", "It runs at 36 A."),
        ("Error E-417 means heat.", "Error E-471 means heat."),
        ("The casing may be opened.", "The casing may not be opened."),
        ("The casing may be opened.", "The casing may never be opened."),
        ("It lasts 3 years.", "It lasts long."),
    ],
)
def test_another_number_unit_code_or_negation_differs(first: str, second: str) -> None:
    assert not same(first, second)


def whole(text: str, product: str) -> Candidate:
    piece = block(text, product, (product,))
    some = candidate(piece, text.split(".")[0])
    quote = Quote(block=piece, kind="paragraph", start=0, end=len(piece.text), header="")
    return Candidate(quote=quote, hit=some.hit, marker=1, logit=1.0)


def test_instructions_that_share_nearly_all_words_agree_and_others_differ() -> None:
    first = whole("Press the button on the display. Hold it until the lamp turns green.", "C-3")
    near = whole("Press the button on the display. Hold it until a lamp turns green.", "T-7")
    other = whole("Open the menu on the screen. Choose the bike until the lamp goes out.", "T-7")
    assert agree(first, near, PRODUCTS)
    assert not agree(first, other, PRODUCTS)
    assert not agree(other, first, PRODUCTS)


def test_differing_products_are_asked_back_by_name_in_order() -> None:
    best = {
        "T-7": says("It lasts 3 years.", "T-7"),
        "C-3": says("It lasts 3 years.", "C-3"),
        "K-1": says("It lasts 2 years.", "K-1"),
    }
    draft = across_products(best, PRODUCTS)
    assert draft is not None
    assert draft.status == "needs_clarification"
    assert draft.choices == ("C-3", "K-1", "T-7")
    assert draft.reason == "the answer depends on the product: C-3, K-1, T-7"
    del best["K-1"]
    assert across_products(best, PRODUCTS) is None


def test_a_joint_claim_has_the_best_words_and_cites_only_who_says_the_same() -> None:
    best = {
        "C-3": says("The battery lasts 3 years.", "C-3", marker=1, logit=1.0),
        "T-7": says("The battery lasts 3 years from now.", "T-7", marker=2, logit=2.0),
        "K-1": says("See a dealer.", "K-1", marker=3, logit=0.5),
    }
    claim = joint_claim(best)
    assert claim.text == "The battery lasts 3 years from now."
    assert claim.markers == (2, 1)
    assert claim.quotes == ("The battery lasts 3 years from now.", "The battery lasts 3 years.")


def owner(piece: Block, words: str) -> tuple[str, ...]:
    return PRODUCTS.of(candidate(piece, words))


def test_a_quote_speaks_of_what_it_names_then_its_headings_then_its_document() -> None:
    both = ("C-3", "T-7")
    assert owner(block("# M\n\n## The C-3\n\nThe T-7 is heavy.\n", "M", both), "heavy") == ("T-7",)
    assert owner(block("# M\n\n## The C-3\n\nIt is heavy.\n", "M", both), "heavy") == ("C-3",)
    assert owner(block("It is heavy.", "M", ("K-1",)), "heavy") == ("K-1",)
    assert owner(block("It is heavy.", "M", both), "heavy") == ()


def test_product_names_are_whole_words_in_any_case() -> None:
    assert PRODUCTS.named("a c-3, the T-7's wheel, XC-3 and C-33, the C-3 again") == ("C-3", "T-7")
    assert Products([]).named("a C-3") == ()


def test_figures_are_numbers_codes_and_units_without_product_names() -> None:
    assert PRODUCTS.figures("The C-3 shows E-417 after three km at 36 V.") == {"e417", "3", "36v"}


def test_the_leader_of_a_product_is_its_first_candidate_alone() -> None:
    first, second = says("One.", "C-3"), says("Two.", "C-3")
    both = candidate(block("A C-3 and a T-7.", "M"), "and")
    other = says("Three.", "T-7")
    assert leaders([both, first, other, second], PRODUCTS) == {"C-3": first, "T-7": other}


def test_a_row_speaks_of_the_products_that_head_its_columns() -> None:
    table = block("| Job | C-3 | T-7 |\n|---|---|---|\n| Drive | 95 | 110 |", "JOBS", ("K-1",))
    assert PRODUCTS.of(candidate(table, "Drive")) == ("C-3", "T-7")
