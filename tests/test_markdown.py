"""Markdown is read as a person reads it: words stay, markup goes, headings make sections."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas.markdown import read_markdown
from atlas.records import Reading


def units(markdown: str) -> list[tuple[str, str]]:
    reading = read_markdown(markdown)
    return [
        (unit.kind, reading.text[unit.start : unit.end])
        for section in reading.sections
        for unit in section.units
    ]


def headings(reading: Reading) -> list[tuple[int, tuple[str, ...]]]:
    return [(section.number, section.titles) for section in reading.sections]


# ---- headings -------------------------------------------------------------------------------


def test_a_first_heading_of_level_one_is_the_title_and_no_section() -> None:
    reading = read_markdown("# The *C-3*\n\nintro\n\n## Battery\n\ntext\n")
    assert reading.title == "The C-3"
    assert headings(reading) == [(0, ()), (1, ("Battery",))]


def test_a_second_heading_of_level_one_is_a_section() -> None:
    reading = read_markdown("# Title\n\n# One\n\na\n\n## Deep\n\nb\n\n# Two\n\nc\n")
    assert reading.title == "Title"
    assert headings(reading) == [(1, ("One",)), (2, ("One", "Deep")), (3, ("Two",))]


def test_a_heading_of_level_one_after_text_is_a_section() -> None:
    reading = read_markdown("text first\n\n# Later\n\nmore\n")
    assert reading.title == ""
    assert headings(reading) == [(0, ()), (1, ("Later",))]


def test_a_first_heading_of_level_two_is_a_section() -> None:
    reading = read_markdown("## Two\n\ntext\n\n# One\n")
    assert reading.title == ""
    assert headings(reading) == [(1, ("Two",)), (2, ("One",))]


def test_underlined_headings_count_like_marked_ones() -> None:
    reading = read_markdown("Title\n=====\n\nSection\n-------\n\ntext\n")
    assert reading.title == "Title"
    assert headings(reading) == [(1, ("Section",))]


def test_a_section_without_text_keeps_its_number() -> None:
    assert headings(read_markdown("## A\n\n## B\n\ntext\n")) == [(1, ("A",)), (2, ("B",))]


def test_a_hash_in_a_code_fence_is_no_heading() -> None:
    reading = read_markdown("## Real\n\n```sh\n# comment\n\n## more\n```\n")
    assert headings(reading) == [(1, ("Real",))]
    assert units("```sh\n# comment\n```\n") == [("code", "# comment")]


# ---- lists, tables, figures -----------------------------------------------------------------


def test_items_of_nested_lists_are_units_with_their_numbers() -> None:
    text = "3. three\n   - deep\n     - deeper\n4. four\n\nafter\n"
    assert units(text) == [
        ("item", "3. three"),
        ("item", "deep"),
        ("item", "deeper"),
        ("item", "4. four"),
        ("paragraph", "after"),
    ]


def test_the_second_paragraph_of_an_item_is_not_numbered_again() -> None:
    assert units("1. one\n\n   more\n2. two\n") == [
        ("item", "1. one"),
        ("item", "more"),
        ("item", "2. two"),
    ]


def test_cells_lose_their_markup_and_rows_know_their_header() -> None:
    reading = read_markdown(
        "| **Code** | `Text` |\n|---|---|\n| *E-417* | [low](http://x.example) |\n| a\\|b | |\n"
    )
    [section] = reading.sections
    texts = [reading.text[unit.start : unit.end] for unit in section.units]
    assert texts == ["Code | Text", "E-417 | low", "a|b | "]
    assert [unit.header for unit in section.units] == [None, (0, 11), (0, 11)]


def test_a_line_break_in_a_cell_does_not_join_two_figures() -> None:
    assert units("| a |\n|---|\n| 36 V<br>10 Ah |\n")[1] == ("row", "36 V 10 Ah")
    assert units("36 V<br/>10 Ah") == [("paragraph", "36 V 10 Ah")]


def test_rows_below_an_empty_header_have_no_header() -> None:
    reading = read_markdown(
        "| A |\n|---|\n| 1 |\n\ntext\n\n| | |\n|---|---|\n| Weight | 22 kg |\n| Range | 80 km |\n"
    )
    rows = [unit for unit in reading.sections[0].units if unit.kind == "row"]
    texts = [reading.text[unit.start : unit.end] for unit in rows]
    assert texts == ["A", "1", "Weight | 22 kg", "Range | 80 km"]
    assert [unit.header for unit in rows] == [None, (0, 1), None, None]


def test_an_image_alone_is_a_caption_of_its_description() -> None:
    assert units("![The *key* turns left](figure.png)\n") == [("caption", "The key turns left")]
    assert units("see ![the key](k.png) here") == [("paragraph", "see the key here")]
    assert units("![](figure.png)") == []


def test_a_line_that_begins_like_a_caption_is_one() -> None:
    assert units("Figure 3: the lock\n") == [("caption", "Figure 3: the lock")]
    assert units("Figure it out.\n")[0][0] == "paragraph"


# ---- what is dropped ------------------------------------------------------------------------


def test_a_link_keeps_its_words_and_loses_its_target() -> None:
    text = "See [our *site*](https://evil.example/?q=1 'title') or <https://shown.example>.\n"
    assert units(text) == [("paragraph", "See our site or https://shown.example.")]
    assert units("[a][r]\n\n[r]: https://evil.example\n") == [("paragraph", "a")]


def test_html_loses_tags_comments_and_scripts() -> None:
    text = (
        "<div>\n<!-- secret --><p>E<b>-417</b> is</p><p>low</p>\n<script>alert(1)</script></div>\n"
    )
    assert units(text) == [("paragraph", "E-417 is low")]
    assert units("a <span onclick='x'>b</span> c") == [("paragraph", "a b c")]
    assert units("<!-- nothing -->\n") == []


def test_what_html_leaves_out_is_told() -> None:
    text = "<!-- pay\nattention -->\n\nA<!-- 2 --> b <script>go(1)</script>c.\n\n<style>x</style>\n"
    reading = read_markdown(text)
    assert reading.text == "A b c."
    assert reading.warnings == (
        "HTML comments were left out: 2, the first: «pay attention»",
        "scripts and styles of HTML were left out: 2",
    )


def test_a_comment_that_is_never_closed_is_no_text() -> None:
    reading = read_markdown("Shown.\n\n<!-- say ten years\n\nand more")
    assert reading.text == "Shown."
    assert reading.warnings[0].endswith("the first: «say ten years and more»")


def hidden(text: str) -> list[tuple[str, str]]:
    reading = read_markdown(text)
    return [
        (reading.text[unit.start : unit.end], unit.hidden)
        for section in reading.sections
        for unit in section.units
    ]


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ('style="display:none"', "not displayed"),
        ("style='color: black; DISPLAY : none'", "not displayed"),
        ("hidden", "not displayed"),
        ("style=visibility:hidden", "invisible"),
        ('style="opacity: 0"', "invisible"),
        ('style="font-size:0px"', "tiny"),
        ('style="color:#FFFFFF"', "white"),
        ('style="position:absolute;left:-9999px"', "off the page"),
        ('style="opacity:0.05"', "invisible"),
        ('style="opacity: 4%"', "invisible"),
        ('style="filter:opacity(0)"', "invisible"),
        ('style="color:rgba(0,0,0,0)"', "invisible"),
        ('style="color:rgb(0 0 0 / 0%)"', "invisible"),
        ('style="color:#0000"', "invisible"),
        ('style="color:transparent;background:#000"', "invisible"),
        ('style="-webkit-text-fill-color:transparent"', "invisible"),
        ('style="height:0;overflow:hidden"', "tiny"),
        ('style="width:0px; overflow : clip"', "tiny"),
        ('style="max-height:0"', "tiny"),
        ('style="height:1px;width:1px;padding:0;overflow:hidden"', "tiny"),
        ('style="transform:scale(0)"', "tiny"),
        ('style="transform:rotate(9deg) scale(1, 0)"', "tiny"),
        ('style="scale:0"', "tiny"),
        ('style="color:hsl(0,0%,100%)"', "white"),
        ('style="color:hsl(120deg 100 99)"', "white"),
        ('style="color:#fefefe"', "white"),
        ('style="color:rgb(99.9%, 100%, 98%)"', "white"),
        ('style="color:whitesmoke"', "white"),
        ('style="color:black;color:/* */white"', "white"),
        ('style="color:white!important;color:black"', "white"),
        ('style="color:white;background:none;background-color:#fff"', "white"),
        ('style="color:rgb(255,0,0);background:#f00"', "in the color of its ground"),
    ],
)
def test_words_that_html_hides_stand_in_units_of_their_own(attribute: str, reason: str) -> None:
    words = f"Two <span {attribute}>or *ten*</span> years.\n\nNext."
    assert hidden(words) == [("Two years.", ""), ("or ten", reason), ("Next.", "")]
    assert read_markdown(words).warnings == (f"hidden text ({reason}): «or ten»",)


@pytest.mark.parametrize(
    "markup",
    [
        '<b style="color:white;background:#000">shown</b>',
        '<b style="font-size:12px">shown</b>',
        '<b style="opacity:0.5">shown</b>',
        '<b style="opacity:0.06">shown</b>',
        '<b style="color:white;color:black">shown</b>',
        '<b style="color:white;background:url(dark.png)">shown</b>',
        '<b style="color:#f0f0f0">shown</b>',
        '<b style="color:hsl(0,0%,90%)">shown</b>',
        '<b style="color:rgba(0,0,0,0.5)">shown</b>',
        '<b style="color:transparent;-webkit-background-clip:text">shown</b>',
        '<b style="color:#12345">shown</b>',
        '<b style="color:rgb(,,)">shown</b>',
        '<b style="transform:scale(-1,1)">shown</b>',
        '<b style="height:0">shown</b>',
        '<b style="height:20px;overflow:hidden">shown</b>',
        '<b style="height:0;overflow:hidden;padding-bottom:50%">shown</b>',
        "<dialog open>shown</dialog>",
        "<details>shown</details>",
        "<b hidden></b>shown",
        "<img hidden>shown",
    ],
)
def test_words_that_html_shows_are_not_hidden(markup: str) -> None:
    assert hidden(markup) == [("shown", "")]


def test_an_element_hides_the_blocks_of_markdown_inside_it() -> None:
    text = "Seen.\n\n<div hidden>\n\n- one\n- two\n\n```\nrm\n```\n\n</div>\n\nSeen again."
    reason = "not displayed"
    assert hidden(text) == [
        ("Seen.", ""), ("one two", reason), ("rm", reason), ("Seen again.", ""),
    ]  # fmt: skip


def test_what_stands_inside_a_hidden_element_is_hidden() -> None:
    text = "A <span hidden>b <b>c</b> d</span> e."
    assert hidden(text) == [("A e.", ""), ("b c d", "not displayed")]


def test_a_dialog_that_is_closed_is_not_displayed() -> None:
    text = "<dialog>ten years</dialog>\n\nA."
    assert hidden(text) == [
        ("ten years", "not displayed"),
        ("A.", ""),
    ]


def test_a_paragraph_ends_what_is_hidden_within_it() -> None:
    assert hidden("a <span hidden>b\n\nc") == [("a", ""), ("b", "not displayed"), ("c", "")]
    assert hidden("<p hidden>a\n\nb") == [("a", "not displayed"), ("b", "")]


def test_hidden_words_of_a_table_a_list_and_a_heading_follow_it() -> None:
    row = "| a | b |\n|---|---|\n| 1 | <i hidden>x</i> |\n| 2 | y |\n"
    assert hidden(row) == [("a | b", ""), ("1 | ", ""), ("2 | y", ""), ("x", "not displayed")]
    assert hidden("- a <i hidden>x</i>\n- b\n") == [("a", ""), ("b", ""), ("x", "not displayed")]
    reading = read_markdown("# T\n\n## Care <i hidden>x</i>\n\nWords.\n")
    assert reading.sections[0].titles == ("Care",)
    assert hidden("## Care <i hidden>x</i>\n\nA.\n") == [("x", "not displayed"), ("A.", "")]


def test_control_characters_are_no_part_of_the_text() -> None:
    text = "a\x1b[31mb\x00c\x07\ufeffd\u200be\n"
    assert units(text) == [("paragraph", "a[31mbcde")]
    assert read_markdown(text).warnings == ("control characters were left out: 3",)


def test_characters_that_turn_words_around_go_with_a_warning_however_they_are_written() -> None:
    for text in ("Code \u202e714-E\u202c here.", "Code &#x202e;714-E&#8236; here."):
        reading = read_markdown(text)
        assert reading.text == "Code 714-E here."
        assert reading.warnings == ("characters that turn words around were left out: 2",)


def test_words_spelled_in_tag_characters_are_told() -> None:
    spelled = "".join(chr(0xE0000 + ord(letter)) for letter in "say ten")
    reading = read_markdown(f"Two years{spelled}.")
    assert reading.text == "Two years."
    (warning,) = reading.warnings
    assert warning.startswith("tag characters that nobody sees were left out: 7")
    assert warning.endswith("they spell «say ten»")


def test_joiners_of_other_scripts_stay() -> None:
    assert units("می\u200cخواهم 👩\u200d🔧") == [("paragraph", "می\u200cخواهم 👩\u200d🔧")]


@pytest.mark.parametrize(
    "text",
    ["<b hidden>" * 20_000, "<a " * 20_000, "<!--" * 20_000, "</b>" * 20_000, "<div>\n\n" * 9_000,
     "<![CDATA[" * 20_000, "<?" * 20_000, "<!" * 20_000, "a<!--b-->" * 9_000, "[a](" * 9_000,
     "<div " + "<a '" * 20_000, "<div>" + "<a \"x=" * 20_000, "<div>" + "<script>" * 20_000,
     "<div>" + "&#x" * 30_000 + "&" * 30_000],
)  # fmt: skip
def test_hostile_markup_takes_no_quadratic_time(text: str) -> None:
    started = time.process_time()
    reading = read_markdown(text)
    assert time.process_time() - started < 5
    assert reading.title == ""


def test_soft_hyphens_do_not_part_words() -> None:
    assert units("bat\u00adtery") == [("paragraph", "battery")]


def test_entities_and_hard_spaces_are_plain_text() -> None:
    assert units("36&nbsp;V &amp; more") == [("paragraph", "36 V & more")]


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_of_other_systems_read_the_same(end: str) -> None:
    text = "# T\n\na\nb\n\n- x\n- y\n\n```\nc\n\nd\n```\n\n| a |\n|---|\n| b |\n"
    assert read_markdown(text.replace("\n", end)) == read_markdown(text)


def test_accents_are_composed() -> None:
    assert units("cafe\u0301") == [("paragraph", "café")]
    assert units("    cafe\u0301\n") == [("code", "café")]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="#-*|`<>![]() \n\r\tab1.é~=&;:\\_\x00", max_size=120))
def test_any_text_is_read_and_every_unit_points_into_it(text: str) -> None:
    reading = read_markdown(text)
    last = 0
    for section in reading.sections:
        for unit in section.units:
            assert last <= unit.start < unit.end <= len(reading.text)
            last = unit.end
    assert [section.number for section in reading.sections] == sorted(
        {section.number for section in reading.sections}
    )


def test_a_long_document_takes_no_quadratic_time() -> None:
    reading = read_markdown("A paragraph of a long document.\n\n" * 20_000)
    assert len(reading.sections[0].units) == 20_000


def test_what_is_nested_too_deep_is_told() -> None:
    quoted, listed = (
        read_markdown(">" * 100 + " the bottom\n"),
        "".join("  " * depth + f"- level {depth}\n" for depth in range(70)),
    )
    assert "the bottom" in quoted.text
    assert quoted.warnings == ()
    reading = read_markdown(listed)
    assert "level 58" in reading.text
    assert "level 65" not in reading.text
    assert reading.warnings == ("lists or quotations nested deeper than 120 levels were left out",)
