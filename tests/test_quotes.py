"""What of a block can be quoted; a quote is always the block's own words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pieces import block, blocks, quote

from atlas.answer.quotes import MAX_WHOLE, instructions_of, quotes_of

TABLE = "| Code | Meaning |\n|---|---|\n| R01 | Casing. Opened. |\n| R02 | |\n"
LINES = st.lists(
    st.sampled_from(
        [
            "One. Two! Three?\n",
            "- item one. More.\n- item two\n",
            TABLE,
            "```\na. b\n```\n",
            "é。保証。\n",
        ]
    ),
    min_size=1,
    max_size=6,
)


def texts(markdown: str) -> list[str]:
    return [item.text for item in quotes_of(block(markdown))]


def test_a_paragraph_gives_its_sentences() -> None:
    assert texts("It is hot. Wait! Is it cold? Ride on") == [
        "It is hot.",
        "Wait!",
        "Is it cold?",
        "Ride on",
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "Use a charger, e.g. the small one.",
        "Use the charger, i.e. the small one.",
        "It takes approx. 4 hours.",
        "See no. 7 and fig. 3.",
        "It weighs max. 20 kg incl. the battery.",
        "It lasts 3.5 hours.",
    ],
)
def test_an_abbreviation_or_a_decimal_ends_no_sentence(sentence: str) -> None:
    assert texts(f"{sentence} Ride on.") == [sentence, "Ride on."]


def test_a_short_word_that_ends_a_sentence_is_no_abbreviation() -> None:
    assert texts("The answer is no. Charge for 5 min. Then ride.") == [
        "The answer is no.",
        "Charge for 5 min.",
        "Then ride.",
    ]


def test_a_closing_sign_belongs_to_its_sentence() -> None:
    assert texts('He said "stop." Then he left. (It was late.) Good.') == [
        'He said "stop."',
        "Then he left.",
        "(It was late.)",
        "Good.",
    ]


def test_a_row_is_one_quote_and_its_header_none() -> None:
    assert texts(TABLE) == ["R01 | Casing. Opened.", "R02 | "]


def test_a_row_reads_with_the_names_of_its_columns() -> None:
    row = quote(block(TABLE), "R01")
    assert row.readable == "Code: R01; Meaning: Casing. Opened."


def test_an_empty_cell_is_left_out_when_read() -> None:
    row = quote(block("| Code | Note | Meaning |\n|---|---|---|\n| R02 | | cold |\n"), "R02")
    assert row.readable == "Code: R02; Meaning: cold"


def test_a_column_without_a_name_reads_as_the_cell_alone() -> None:
    row = quote(block("| | C-3 |\n|---|---|\n| Weight | 24 kg |\n"), "24 kg")
    assert row.readable == "Weight; C-3: 24 kg"


def test_a_row_of_a_continued_table_knows_its_header() -> None:
    rows = "".join(f"| R{n:02} | the casing of battery {n} was opened |\n" for n in range(1, 12))
    pieces = blocks(f"# T\n\n## S\n\n| Code | Meaning |\n|---|---|\n{rows}", size=150)
    assert len(pieces) > 2
    found = [item for piece in pieces for item in quotes_of(piece)]
    assert [item.text[:3] for item in found] == [f"R{n:02}" for n in range(1, 12)]
    assert all(item.readable.startswith("Code: R") for item in found)


def test_a_sentence_over_two_lines_reads_as_one_line() -> None:
    [item] = quotes_of(block("```\nfirst\nsecond\n```\n"))
    assert item.text == "first\nsecond"
    assert item.readable == "first second"


def test_short_instructions_are_quoted_whole() -> None:
    piece = block("Press the button. Hold it.\n\n- Wait.\n- Let go.\n")
    [item] = instructions_of(piece)
    assert item.text == piece.text


def test_long_instructions_and_tables_give_single_quotes() -> None:
    sentence = "Press the button for a while. "
    long = block(sentence * (MAX_WHOLE // len(sentence) + 1))
    assert len(long.text) > MAX_WHOLE
    assert instructions_of(long) == quotes_of(long)
    assert instructions_of(block(TABLE)) == quotes_of(block(TABLE))
    assert len(quotes_of(block(TABLE))) == 2


@settings(max_examples=60, deadline=None)
@given(LINES)
def test_every_quote_is_verbatim_and_nothing_but_headers_is_lost(lines: list[str]) -> None:
    for piece in blocks("\n".join(lines)):
        covered = set()
        for item in (*quotes_of(piece), *instructions_of(piece)):
            assert item.text
            assert piece.text[item.start : item.end] == item.text
            covered |= set(range(item.start, item.end))
        headers = {place for u in piece.units if u.header for place in range(*u.header)}
        lost = set(range(len(piece.text))) - covered - headers
        assert not "".join(piece.text[place] for place in sorted(lost)).strip()
