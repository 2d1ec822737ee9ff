"""From supplied blocks to a draft: computed, asked back, quoted or declined, in this order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

import pytest
from pieces import WEIGHTS, block, hit, material, scored, use_weights

from atlas.answer.answerer import draft
from atlas.answer.decision import FEATURES
from atlas.answer.question import analyse
from atlas.records import Block, Draft
from atlas.words import terms

NAMES = ("C-3", "T-7")
TERM = block("The battery is under warranty for 3 years. See a dealer.", "WARR")
SURE = {"years": 10.0, "EUR": 10.0, "dealer": 2.0}


@pytest.fixture(autouse=True)
def _weights(monkeypatch: pytest.MonkeyPatch) -> None:
    use_weights(monkeypatch)


def drafted(
    question: str,
    supplied: Sequence[Block],
    logits: Mapping[str, float] = SURE,
    *,
    named: tuple[str, ...] = (),
    cosine: float = 0.9,
) -> Draft:
    sight = material(supplied, NAMES, named, scored(logits), cosine)
    without = frozenset(term for name in named for term in terms(name))
    return draft(analyse(question, without), [hit(piece) for piece in supplied], sight)


def quotes(found: Draft) -> list[tuple[str, ...]]:
    return [claim.quotes for claim in found.claims]


def test_the_best_quote_answers_and_cites_its_block() -> None:
    other = block("The frame is blue.", "FRAME")
    found = drafted("how long is the battery under warranty", [other, TERM])
    assert found.status == "answered"
    [claim] = found.claims
    assert claim.text == "The battery is under warranty for 3 years."
    assert (claim.markers, claim.quotes) == ((2,), (claim.text,))
    assert [name for name, _ in found.evidence] == [*FEATURES, "probability"]


def test_an_improbable_quote_is_declined_with_the_evidence() -> None:
    found = drafted("how long is the battery under warranty", [TERM], {}, cosine=0.1)
    assert (found.status, found.claims) == ("abstained", ())
    assert found.reason == "the documents do not say"
    assert dict(found.evidence)["probability"] < WEIGHTS["threshold"]


def test_declining_names_the_words_that_no_document_has_as_they_were_typed() -> None:
    found = drafted("how long is the Swallow's warranty in Timbuktu", [TERM], {}, cosine=0.1)
    assert found.reason == (
        "the documents do not say; nothing in them mentions Swallow's, Timbuktu"
    )


def test_declining_about_another_day_speaks_of_what_held_on_it() -> None:
    sight = replace(material([], NAMES), held=(date(2024, 12, 31),))
    found = draft(analyse("how long was the warranty", frozenset()), [], sight)
    assert found.reason == (
        "the documents do not say; nothing that held on 2024-12-31 mentions warranty"
    )


def test_without_a_block_it_declines() -> None:
    found = drafted("how long is the battery under warranty", [])
    assert (found.status, found.evidence) == ("abstained", ())


def test_a_quote_without_the_asked_kind_of_value_is_declined_however_sure_the_model() -> None:
    found = drafted("how much is the battery", [TERM], {"": 12.0}, cosine=1.0)
    assert found.status == "abstained"
    assert dict(found.evidence)["probability"] == 0.0


# ---- products -------------------------------------------------------------------------------


def term_of(product: str, years: int, more: str = "") -> Block:
    text = f"The battery is under warranty for {years} years{more}. See a dealer."
    return block(text, f"WARR-{product}", (product,))


QUESTION = "how long is the battery under warranty"


def test_a_foreign_products_quote_is_not_used_even_if_it_is_better() -> None:
    logits = {"2 years": 12.0, "3 years": 8.0}
    found = drafted(QUESTION, [term_of("T-7", 2), term_of("C-3", 3)], logits, named=("C-3",))
    assert quotes(found) == [("The battery is under warranty for 3 years.",)]
    assert drafted(QUESTION, [term_of("T-7", 2)], logits, named=("C-3",)).status == "abstained"
    assert drafted(QUESTION, [term_of("T-7", 2)], logits, named=("T-7",)).status == "answered"


def test_a_quote_of_no_product_answers_for_a_named_one() -> None:
    found = drafted(QUESTION, [TERM], named=("C-3",))
    assert quotes(found) == [("The battery is under warranty for 3 years.",)]


def test_each_of_several_named_products_gets_its_answer_in_the_order_of_naming() -> None:
    supplied = [term_of("C-3", 3), term_of("T-7", 2)]
    found = drafted(QUESTION, supplied, named=("T-7", "C-3"))
    assert [claim.markers for claim in found.claims] == [(2,), (1,)]
    assert ["2 years" in claim.text for claim in found.claims] == [True, False]


def test_products_that_differ_are_asked_back() -> None:
    found = drafted(QUESTION, [term_of("T-7", 2), term_of("C-3", 3)])
    assert (found.status, found.choices) == ("needs_clarification", ("C-3", "T-7"))
    assert found.claims == ()


def test_products_that_agree_are_answered_together_and_all_cited() -> None:
    found = drafted(QUESTION, [term_of("T-7", 3), term_of("C-3", 3, " from the day of sale")])
    assert found.status == "answered"
    [claim] = found.claims
    assert sorted(claim.markers) == [1, 2]


def test_an_improbable_other_product_is_no_reason_to_ask_back() -> None:
    logits = {"3 years": 12.0, "2 years": -12.0}
    sight = drafted(QUESTION, [term_of("T-7", 2), term_of("C-3", 3)], logits, cosine=0.7)
    assert sight.status == "answered"
    assert [claim.markers for claim in sight.claims] == [(2,)]


# ---- sums and parts -------------------------------------------------------------------------


def test_a_sum_is_computed_rather_than_quoted() -> None:
    prices = block("| Item | Price |\n|---|---|\n| Battery | EUR 549 |\n| Charger | EUR 89 |\n")
    found = drafted("how much are two batteries and a charger", [prices])
    assert found.claims[0].text == "2 × 549 + 89 = EUR 1,187.00"
    assert found.claims[0].computed
    assert drafted("how much is a charger", [prices], {"89": 9.0}).claims[0].computed is False


def test_each_part_of_a_question_gets_its_answer() -> None:
    prices = block("A battery costs EUR 549.", "PRICES")
    found = drafted("how long is the battery under warranty and how much is a battery",
                    [TERM, prices])  # fmt: skip
    assert found.status == "answered"
    assert quotes(found) == [
        ("The battery is under warranty for 3 years.",),
        ("A battery costs EUR 549.",),
    ]
    assert [claim.markers for claim in found.claims] == [(1,), (2,)]
    assert found.reason == ""


def test_a_part_that_stays_open_is_named() -> None:
    found = drafted("how long is the battery under warranty and how much is a saddle", [TERM])
    assert quotes(found) == [("The battery is under warranty for 3 years.",)]
    assert found.reason == "the documents do not say: how much is a saddle"


def test_a_question_of_which_no_part_can_be_answered_is_declined() -> None:
    found = drafted("how heavy is the lock and how much is a saddle", [TERM])
    assert found.status == "abstained"
    assert "lock" in found.reason


@pytest.mark.parametrize(("code", "days"), [("R05", "2 days"), ("R06", "9 days")])
def test_a_later_part_follows_the_code_of_the_part_before(code: str, days: str) -> None:
    checks = block(f"A crack of the casing is check {code}.", "CHECKS")
    ways = block("R05 is sent within 2 days. R06 is sent within 9 days.", "WAYS")
    logits = {"crack": 10.0, "days": 7.0}
    question = "it has a crack, which check is it and how many days until it is sent"
    found = drafted(question, [checks, ways], logits)
    assert len(found.claims) == 2
    assert days in found.claims[1].text


def test_a_code_that_no_document_has_is_never_answered_with_another_ones_entry() -> None:
    codes = block("## Codes\n\nE-448 means a short circuit. It takes 3 years.", "ERR")
    assert drafted("what is E-448", [codes], {"E-448": 10.0}).status == "answered"
    found = drafted("what is E-447", [codes], {"E-448": 10.0})
    assert (found.status, found.claims) == ("abstained", ())
    assert found.reason.endswith("nothing in them mentions E-447")


def test_a_version_that_no_document_has_is_declined() -> None:
    note = block("Firmware 3.2 changes the range.", "NOTE")
    assert drafted("what changes in firmware 3.2", [note], {"3.2": 10.0}).status == "answered"
    assert drafted("what changes in firmware 3.3", [note], {"3.2": 10.0}).status == "abstained"


def test_counts_that_differ_between_products_are_asked_back() -> None:
    def checks(count: int, product: str) -> Block:
        rows = "\n".join(f"| R{n:02} | look |" for n in range(1, count + 1))
        text = f"# Battery checks {product}\n\n## Checks\n\n| Check | What |\n|---|---|\n{rows}"
        return block(text, f"CHECK-{product}", (product,))

    both = [checks(5, "C-3"), checks(4, "T-7")]
    found = drafted("how many battery checks are there", both)
    assert found.status == "needs_clarification"
    assert found.choices == ("C-3", "T-7")
    [claim] = drafted("how many battery checks are there", [both[1]]).claims
    assert claim.text.startswith("4, counted in")
    same = [checks(4, "C-3"), checks(4, "T-7")]
    assert drafted("how many battery checks are there", same).status == "answered"


def test_a_count_is_not_given_where_one_entry_is_asked_for() -> None:
    states = block(
        "# Checks\n\n## Checks by state\n\n| State | Checks |\n|---|---|\n"
        "| Alabama | 71 |\n| Alaska | 65 |\n| Arizona | 30 |",
        "STATES",
    )
    found = drafted("how many checks in Alabama", [states], {"Alabama": 10.0})
    assert "counted" not in " ".join(claim.text for claim in found.claims)


def test_a_row_on_both_products_answers_for_both_and_their_difference_is_computed() -> None:
    jobs = block("| Job | C-3 | T-7 |\n|---|---|---|\n| Drive | 95 min | 110 min |", "JOBS")
    other = block("The drive of the T-7 runs for 9 years.", "T7", ("T-7",))
    logits = {"Drive": 12.0, "runs": 9.0}
    named = ("C-3", "T-7")
    found = drafted("how long is the drive job on C-3 and T-7", [jobs, other], logits, named=named)
    assert [claim.text for claim in found.claims] == ["Job: Drive; C-3: 95 min; T-7: 110 min"]
    question = "drive, how much longer on the T-7 than on the C-3"
    found = drafted(question, [jobs, other], logits, named=named)
    assert [claim.computed for claim in found.claims] == [True, False]
    assert found.claims[0].text == "110 − 95 = 15 min"
