"""Every citation and every figure of a draft is checked against the supplied blocks."""

from __future__ import annotations

import pytest

from atlas.citations import NO_SUPPORT, uncited, unsupported_figures, validate
from atlas.records import Answer, Block, Claim, Draft, Status

BATTERY = "The battery of 36 V lasts 3 years. Error E-417 means too hot."
CHARGER = "The charger gives 4 A and costs 1,200 EUR."


def block(text: str, name: str = "DOC", page: int | None = None, label: str | None = None) -> Block:
    return Block(
        document=name,
        section=1,
        piece=0,
        title=f"Title of {name}",
        titles=("Outer", "Inner"),
        text=text,
        start=0,
        end=len(text),
        units=(),
        page=page,
        page_label=label,
        products=(),
    )


SUPPLIED = [block(BATTERY, "A"), block(CHARGER, "B")]


def claim(text: str, *markers: int, quotes: tuple[str, ...] = (), computed: bool = False) -> Claim:
    return Claim(text=text, markers=markers, quotes=quotes, computed=computed)


def checked(
    *claims: Claim, status: Status = "answered", supplied: list[Block] = SUPPLIED
) -> Answer:
    return validate(Draft(status=status, claims=claims), supplied)


def test_a_supported_claim_is_answered_and_cited() -> None:
    answer = checked(claim("It lasts 3 years.", 1, quotes=("lasts 3 years",)))
    assert answer.status == "answered"
    assert answer.text == "It lasts 3 years. [1]"
    [citation] = answer.citations
    assert (citation.marker, citation.ref, citation.quote) == (1, "A-1-p0", "lasts 3 years")
    assert (citation.document, citation.title, citation.section) == (
        "A",
        "Title of A",
        "Outer > Inner",
    )
    assert answer.removed == ()


@pytest.mark.parametrize("marker", [0, -1, 3, 99])
def test_a_forged_marker_is_removed_and_the_rest_of_the_claim_stands(marker: int) -> None:
    answer = checked(claim("It lasts 3 years.", marker, 1))
    assert answer.text == "It lasts 3 years. [1]"
    assert answer.removed == (f"marker [{marker}] points at no supplied block",)


def test_a_claim_with_forged_markers_only_is_not_presented() -> None:
    answer = checked(claim("It lasts 3 years.", 7), claim("The charger gives 4 A.", 2))
    assert answer.text == "The charger gives 4 A. [1]"
    assert "no valid citation: It lasts 3 years." in answer.removed


def test_a_quote_must_stand_in_its_own_block_word_for_word() -> None:
    answer = checked(
        claim("It lasts 3 years.", 2, quotes=("lasts 3 years",)),
        claim("It lasts 3 years.", 1, quotes=("Lasts 3 years",)),
    )
    assert answer.status == "abstained"
    assert answer.removed[0] == "marker [2] quotes words that are not in its block"


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        ("It lasts 2 years.", "2"),
        ("It lasts 13 years.", "13"),
        ("It lasts four years.", "4"),
        ("It has 36 A.", "36a"),
        ("It has 3.6 V.", "3.6v"),
        ("E-471 means too hot.", "e471"),
        ("Error E-4171.", "e4171"),
        ("It lasts 36 %.", "36%"),
    ],
)
def test_a_figure_that_the_cited_block_lacks_removes_the_claim(text: str, figure: str) -> None:
    answer = checked(claim(text, 1))
    assert answer.status == "abstained"
    assert answer.reason == NO_SUPPORT
    assert answer.text == ""
    assert answer.citations == ()
    assert answer.removed == (f"{figure} not in the cited block: {text}",)


@pytest.mark.parametrize(
    "text",
    ["It lasts three years.", "36V, that is 36 volts.", "The number is 36.", "e417 is too hot."],
)
def test_the_same_figure_in_other_writing_is_supported(text: str) -> None:
    assert checked(claim(text, 1)).status == "answered"


def test_a_figure_of_another_supplied_block_does_not_support() -> None:
    assert checked(claim("It gives 4 A.", 1)).status == "abstained"
    assert checked(claim("36 V and 4 A.", 1, 2)).status == "answered"


def test_grouped_and_plain_thousands_are_one_number() -> None:
    assert unsupported_figures("1200 EUR or €1,200", [SUPPLIED[1]]) == []
    assert unsupported_figures("12 EUR", [SUPPLIED[1]]) == ["12eur"]


def test_a_computed_result_needs_no_support_but_a_citation() -> None:
    text = "2 × 1,200 EUR = 2,400 EUR"
    assert checked(claim(text, 2, computed=True)).text == f"{text} [1]"
    assert checked(claim(text, 5, computed=True)).status == "abstained"


def test_sources_are_numbered_as_they_appear() -> None:
    answer = checked(claim("It gives 4 A.", 2), claim("36 V.", 1), claim("36 V and 4 A.", 1, 2))
    assert answer.text == "It gives 4 A. [1]\n36 V. [2]\n36 V and 4 A. [1][2]"
    assert [(c.marker, c.document) for c in answer.citations] == [(1, "B"), (2, "A")]


def test_one_block_quoted_twice_is_one_source_with_both_quotes() -> None:
    answer = checked(
        claim("It lasts 3 years.", 1, quotes=("lasts 3 years",)),
        claim("E-417 is heat.", 1, quotes=("E-417 means too hot",)),
        claim("Again 3 years.", 1, quotes=("lasts 3 years",)),
    )
    [citation] = answer.citations
    assert citation.quote == "lasts 3 years … E-417 means too hot"


def test_one_marker_given_twice_is_printed_once() -> None:
    assert checked(claim("36 V.", 1, 1)).text == "36 V. [1]"


def test_a_claim_without_a_quote_cites_its_whole_block() -> None:
    assert checked(claim("36 V.", 1)).citations[0].quote == BATTERY


@pytest.mark.parametrize(
    ("page", "label", "shown"),
    [
        (9, "vii", "vii (page 9 of the file)"),
        (9, "9", "9"),
        (None, None, None),
        (4, None, "4"),
    ],
)
def test_the_printed_page_is_shown_with_that_of_the_file(
    page: int | None, label: str | None, shown: str | None
) -> None:
    answer = checked(claim("36 V.", 1), supplied=[block(BATTERY, page=page, label=label)])
    assert answer.citations[0].page == shown


def test_an_abstention_presents_no_claim() -> None:
    answer = checked(claim("It lasts 3 years.", 1), status="abstained")
    assert (answer.status, answer.text, answer.citations) == ("abstained", "", ())


def test_an_answer_without_any_claim_is_an_abstention() -> None:
    assert checked().status == "abstained"


def test_a_question_back_needs_no_claim() -> None:
    draft = Draft(status="needs_clarification", choices=("C-3", "T-7"), reason="which bike")
    answer = validate(draft, SUPPLIED)
    assert (answer.status, answer.choices) == ("needs_clarification", ("C-3", "T-7"))


def test_a_removed_claim_is_reported_in_few_words() -> None:
    answer = checked(claim("99 " + "very " * 50, 1))
    assert len(answer.removed[0]) < 120


# ---- signs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "source", "missing"),
    [
        ("Charge it at 10 °C.", "From -10 °C on.", ["+10"]),
        ("Charge it at -10 °C.", "From 10 °C on.", ["-10"]),
        ("Charge it at −10 °C.", "From -10 °C on.", []),
        ("Charge it at -10 °C.", "From −10 °C on.", []),
        ("Charge it at 10 °C.", "From -10 °C or from 10 °C on.", []),
        ("It takes 5 to 10 minutes.", "It takes 5-10 minutes.", []),
        ("It takes 5–10 minutes.", "It takes 5 to 10 minutes.", []),
        ("From -10 to 45 °C.", "From 10 °C to -45 °C.", ["-10", "+45"]),
        ("The loss is -1,200 EUR.", "A gain of 1,200 EUR.", ["-1200"]),
        ("E-417 is heat.", "Error E-417 is heat.", []),
        ("It takes 3 - 1 steps.", "It takes 3 steps, then 1.", []),
    ],
)
def test_a_sign_belongs_to_its_number(text: str, source: str, missing: list[str]) -> None:
    assert unsupported_figures(text, [block(source)]) == missing
    answer = checked(claim(text, 1), supplied=[block(source)])
    assert answer.status == ("abstained" if missing else "answered")


# ---- results --------------------------------------------------------------------------------


def worked_out(text: str, *markers: int, results: tuple[str, ...]) -> Claim:
    return Claim(text=text, markers=markers, results=results)


def test_a_result_needs_no_support_and_every_other_figure_does() -> None:
    text = "Two cost 2,400 EUR."
    assert checked(claim(text, 2)).status == "abstained"
    assert checked(worked_out(text, 2, results=("2400", "2"))).text == f"{text} [1]"
    assert checked(worked_out(text, 2, results=("2400",))).status == "abstained"
    more = checked(worked_out("Two cost 2,400 EUR for 36 V.", 2, results=("2400", "2")))
    assert more.removed[0].startswith("36v not in the cited block")


def test_a_result_still_needs_a_citation() -> None:
    answer = checked(worked_out("Two cost 2,400 EUR.", 9, results=("2400", "2")))
    assert (answer.status, answer.citations) == ("abstained", ())


def test_a_code_is_no_result() -> None:
    answer = checked(worked_out("E-471 costs 4 A.", 2, results=("471", "e471")))
    assert answer.removed[0].startswith("e471 not in the cited block")


def test_a_result_has_a_unit_that_stands_in_a_cited_block() -> None:
    answer = checked(worked_out("Two weigh 2,400 kg.", 2, results=("2400", "2")))
    assert answer.removed[0].startswith("2400kg not in the cited block")


def test_the_results_of_one_claim_except_nothing_in_another() -> None:
    answer = checked(
        worked_out("Two cost 2,400 EUR.", 2, results=("2400", "2")), claim("It has 2 parts.", 2)
    )
    assert answer.text == "Two cost 2,400 EUR. [1]"
    assert answer.kept == (0,)


# ---- markers and links of a claim's own -----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It gives 4 A [4].", "It gives 4 A (4). [1]"),
        ("It gives 4 A [ 4, 4 ].", "It gives 4 A (4, 4). [1]"),
        ("See ![4 A](https://evil.test/4?q=4)", "See ! [4 A] (evil.test/4?q=4) [1]"),
        ("See [the charger](https://evil.test/)", "See [the charger] (evil.test/) [1]"),
        ("See <img src=//evil.test/x>", "See < img src=evil.test/x> [1]"),
        ("See www.evil.test, HTTPS://evil.test", "See evil.test, evil.test [1]"),
        ("See javascript:alert()", "See alert() [1]"),
        ("See [4](https://evil.test/)", "See (4) (evil.test/) [1]"),
    ],
)
def test_a_claim_presents_no_marker_link_or_image_of_its_own(text: str, shown: str) -> None:
    assert checked(claim(text, 2)).text == shown
    assert uncited(Draft(status="answered", claims=(claim(text),))).text == shown[: -len(" [1]")]


def test_a_marker_in_the_words_of_a_claim_cites_nothing() -> None:
    answer = checked(claim("It gives 4 A [2]."), claim("It gives 4 A [4].", 2))
    assert [citation.document for citation in answer.citations] == ["B"]
    assert answer.text == "It gives 4 A (4). [1]"
    assert answer.removed == ("no valid citation: It gives 4 A [2].",)


# ---- without any block ----------------------------------------------------------------------


def test_a_draft_from_memory_stands_as_it_is_without_a_citation() -> None:
    draft = Draft(status="answered", claims=(claim("9 years."), claim("E-471, 5 A.")))
    answer = uncited(draft)
    assert (answer.status, answer.text) == ("answered", "9 years.\nE-471, 5 A.")
    assert (answer.citations, answer.removed, answer.kept) == ((), (), (0, 1))


@pytest.mark.parametrize("status", ["abstained", "failed"])
def test_no_answer_from_memory_stays_none(status: Status) -> None:
    answer = uncited(Draft(status=status, reason="why"))
    assert (answer.status, answer.text, answer.reason) == (status, "", "why")


# ---- which claims are presented -------------------------------------------------------------


def test_the_places_of_presented_claims_are_kept() -> None:
    answer = checked(
        claim("It lasts 2 years.", 1), claim("36 V.", 1), claim("x", 9), claim("It gives 4 A.", 2)
    )
    assert answer.kept == (1, 3)
    assert checked(claim("36 V.", 1), status="abstained").kept == ()
    assert checked(claim("37 V.", 1)).kept == ()
