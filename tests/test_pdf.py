"""PDF files -> Reading: what is read, in which order, and what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pdf_samples import (
    BODY,
    GRID,
    HEIGHT,
    MARGIN,
    PLAIN,
    ROWS,
    WIDTH,
    Draw,
    assembled,
    bookmark,
    drawn,
    lines,
    paged,
    paragraph,
    raw,
    table,
    text,
)
from PIL import Image
from reportlab.lib import colors
from reportlab.lib.enums import TA_JUSTIFY
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, TableStyle

from atlas.errors import DocumentError
from atlas.pdf import read_pdf, reading_of
from atlas.pdf.document import Refused, read_document
from atlas.pdf.words import Words, clean
from atlas.records import Reading, Section, UnitKind

LONG = (
    "The battery of the bike is charged at room temperature, on the bike or off it, with the "
    "charger that came with it and no other. From empty to full takes five hours. "
)


INLINE = b"BI /W 1 /H 1 /BPC 8 /CS /G ID \xff EI\n"
"""A white picture of one dot within the content."""


def read(path: Path) -> Reading:
    """The reading without the child process, which has tests of its own."""
    return reading_of(read_document(str(path)))


def units(reading: Reading, section: int | None = None) -> list[tuple[UnitKind, str]]:
    return [
        (unit.kind, reading.text[unit.start : unit.end])
        for part in reading.sections
        if section in (None, part.number)
        for unit in part.units
    ]


def texts(reading: Reading, section: int | None = None) -> list[str]:
    return [words for _, words in units(reading, section)]


def sections(reading: Reading) -> list[tuple[int, tuple[str, ...], list[str]]]:
    return [(s.number, s.titles, texts(reading, s.number)) for s in reading.sections]


def header_of(reading: Reading, section: Section, row: int) -> str | None:
    header = section.units[row].header
    return reading.text[slice(*header)] if header else None


# ---- units and their places -----------------------------------------------------------------


def test_units_cover_the_text_and_rows_stand_close(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        paragraph(canvas, LONG, MARGIN, 550, 340)
        table(canvas, [["Item", "Value"], ["Torque", "45 Nm"]], [80, 80], top=460)

    reading = read(drawn(tmp_path, draw))
    assert reading.text == f"{LONG.strip()}\n\nItem | Value\nTorque | 45 Nm"
    assert "".join(texts(reading)) == reading.text.replace("\n", "")
    assert all(unit.page == 1 for section in reading.sections for unit in section.units)


def test_lines_of_a_paragraph_are_joined_and_paragraphs_kept_apart(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        end = paragraph(canvas, LONG, MARGIN, 550, 200)
        paragraph(canvas, "A second paragraph stands a line below.", MARGIN, end - 8, 200)

    assert units(read(drawn(tmp_path, draw))) == [
        ("paragraph", LONG.strip()),
        ("paragraph", "A second paragraph stands a line below."),
    ]


def test_first_line_indents_begin_paragraphs(tmp_path: Path) -> None:
    words = ["The lamp shines red while charging and", "green when the battery is full."]

    def draw(canvas: Canvas) -> None:
        end = 540.0
        for start in ("Charging.", "Charged."):
            canvas.drawString(MARGIN + 15, end, f"{start} {words[0]}")
            end = lines(canvas, [f"it turns to {words[1]}"], end - 12)

    expected = [f"{start} {words[0]} it turns to {words[1]}" for start in ("Charging.", "Charged.")]
    assert texts(read(drawn(tmp_path, draw))) == expected


def test_a_paragraph_goes_on_over_the_page_break(tmp_path: Path) -> None:
    half = "The charger works from 100 V to 240 V mains and weighs less than one kilogram with"

    def first(canvas: Canvas) -> None:
        lines(canvas, [half], top=90)

    def second(canvas: Canvas) -> None:
        bookmark(canvas, "Later", top=300)
        lines(canvas, ["the cable of two metres."], top=500)
        lines(canvas, ["Later", "Another text."], top=290)

    reading = read(paged(tmp_path, [first, second]))
    assert texts(reading, 0) == [f"{half} the cable of two metres."]
    assert reading.sections[0].units[0].page == 1


def test_list_items_are_units_with_their_wrapped_lines(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, ["Before every ride:"], 540)
        for top, marker, words in (
            (520, "•", ["Squeeze both brake levers: they must stop", "well before the grip."]),
            (490, "-", ["Switch on the lights."]),
            (470, "1.", ["Turn the key and take the battery out of", "its rail."]),
            (440, "a)", ["Put the cap on the contacts."]),
        ):
            canvas.drawString(MARGIN, top, marker)
            lines(canvas, words, top, MARGIN + 15)

    assert units(read(drawn(tmp_path, draw))) == [
        ("paragraph", "Before every ride:"),
        ("item", "• Squeeze both brake levers: they must stop well before the grip."),
        ("item", "- Switch on the lights."),
        ("item", "1. Turn the key and take the battery out of its rail."),
        ("item", "a) Put the cap on the contacts."),
    ]


def test_captions_are_units_of_their_own(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, ["The ring on the fork shows how far it moved."], 540)
        lines(canvas, ["Figure 3: Sag of the fork. The ring should", "have moved 16 mm."], 528)
        lines(canvas, ["Figure 3 is not to scale."], 490)

    assert units(read(drawn(tmp_path, draw))) == [
        ("paragraph", "The ring on the fork shows how far it moved."),
        ("caption", "Figure 3: Sag of the fork. The ring should have moved 16 mm."),
        ("paragraph", "Figure 3 is not to scale."),
    ]


def test_code_keeps_its_lines(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, ["Send the reset:"], 540)
        canvas.setFont("Courier", 10)
        lines(canvas, ["reset --code E-417", "exit"], 528)
        canvas.setFont("Helvetica", 10)
        lines(canvas, ["and wait."], 504)

    assert units(read(drawn(tmp_path, draw))) == [
        ("paragraph", "Send the reset:"),
        ("code", "reset --code E-417\nexit"),
        ("paragraph", "and wait."),
    ]


def test_superscripts_stay_in_their_line(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(MARGIN, 540, "An area of 12 m")
        canvas.setFont("Helvetica", 6)
        canvas.drawString(MARGIN + canvas.stringWidth("An area of 12 m", "Helvetica", 10), 544, "2")
        canvas.setFont("Helvetica", 10)
        lines(canvas, ["is enough for the workshop."], 528)

    assert texts(read(drawn(tmp_path, draw))) == ["An area of 12 m2 is enough for the workshop."]


def test_first_lines_of_single_lines_begin_paragraphs_too(tmp_path: Path) -> None:
    full = "It shines in red while the battery is charging and in green when it is"

    def draw(canvas: Canvas) -> None:
        top = 560.0
        for _ in range(3):
            canvas.drawString(
                MARGIN + 12, top, "The lamp on the charger tells how far the charging is."
            )
            top = lines(canvas, [full, "full."], top - 12)
        canvas.drawString(
            MARGIN + 12, top, "The lamp on the charger tells how far the charging is."
        )
        canvas.drawString(MARGIN + 12, top - 12, "The next paragraph has one line as well.")

    assert texts(read(drawn(tmp_path, draw)))[-2:] == [
        "The lamp on the charger tells how far the charging is.",
        "The next paragraph has one line as well.",
    ]


JUSTIFIED = ParagraphStyle("justified", parent=BODY, alignment=TA_JUSTIFY)


def test_a_justified_paragraph_ends_where_a_line_is_not_stretched(tmp_path: Path) -> None:
    """No space and no indent: the end of the last line alone tells."""
    nearly = "The battery of the bike is charged at room temperature, on the bike or off it. " * 2

    def draw(canvas: Canvas) -> None:
        top = 560.0
        for start in ("First.", "Second.", "Third."):
            flow = Paragraph(f"{start} {nearly}", JUSTIFIED)
            _, height = flow.wrap(182, HEIGHT)
            flow.drawOn(canvas, MARGIN, top - height)
            top -= height

    assert [words.split()[0] for words in texts(read(drawn(tmp_path, draw)))] == [
        "First.",
        "Second.",
        "Third.",
    ]


def test_a_stretched_line_at_the_foot_of_a_page_goes_on(tmp_path: Path) -> None:
    sentences = "The lamp shines red now. " * 40
    parts = Paragraph(sentences, JUSTIFIED).split(160, 12 * 20)

    def page(part: Paragraph) -> Draw:
        def draw(canvas: Canvas) -> None:
            _, height = part.wrap(160, HEIGHT)
            part.drawOn(canvas, MARGIN, 540 - height)
            bookmark(canvas, "All", top=590) if part is parts[0] else None

        return draw

    assert texts(read(paged(tmp_path, [page(part) for part in parts]))) == [sentences.strip()]


def test_text_drawn_twice_to_look_bold_is_read_once(tmp_path: Path) -> None:
    content = text("Danger of fire", x=40) + text("Danger of fire", x=40.4)
    assert texts(read(raw(tmp_path, content))) == ["Danger of fire"]


def test_a_space_that_is_pressed_together_is_a_space(tmp_path: Path) -> None:
    content = b"BT /F1 10 Tf -2.4 Tw 40 500 Td (two words) Tj ET"
    assert texts(read(raw(tmp_path, content))) == ["two words"]


# ---- words ----------------------------------------------------------------------------------


def test_text_is_normalised() -> None:
    assert clean("\ufb01le o\ufb03ce") == "file office"
    assert clean("cafe\u0301") == "caf\u00e9"
    assert clean("5\u00a0h \u2009 30\u2003min\x00\x1b") == "5 h 30 min"
    assert clean("war\u00adranty\u200b") == "warranty"
    assert clean("\u202eevil\u202c \U000e0041tag") == "evil tag"
    assert clean("E\u2011417") == "E-417"


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("the war-", "ranty ends", "the warranty ends"),
        ("the war\u00ad", "ranty ends", "the warranty ends"),
        ("error E-", "417 means", "error E-417 means"),
        ("a 36-", "volt battery", "a 36-volt battery"),
        ("the e-", "bike stands", "the e-bike stands"),
        ("code A-12/", "B fits", "code A-12/B fits"),
        ("from 10–", "20 Nm", "from 10–20 Nm"),
        ("from 10-", "20 Nm", "from 10-20 Nm"),
        ("our long-", "term test", "our long-term test"),
        ("our rear-", "light cable", "our rear-light cable"),
        ("the front-", "and rear brakes", "the front- and rear brakes"),
        ("the state-of-the-", "art drive", "the state-of-the-art drive"),
        ("it is ready -", "or not", "it is ready - or not"),
        ("the WAR-", "RANTY card", "the WARRANTY card"),
        ("the Wi-", "Fi network", "the Wi-Fi network"),
    ],
)
def test_hyphens_at_line_ends_follow_the_document(before: str, after: str, joined: str) -> None:
    elsewhere = ["the long-term plan and the warranty", "a rear wheel and a light"]
    assert Words.of([*elsewhere, before, after]).join([before, after]) == joined


def test_hyphenated_words_are_joined_in_a_page(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, ["The bike needs no lubri-", "cation of its belt; see error E-", "417."])

    assert texts(read(drawn(tmp_path, draw))) == [
        "The bike needs no lubrication of its belt; see error E-417."
    ]


def test_bullets_of_winansi_and_ligatures_are_read(tmp_path: Path) -> None:
    content = b"BT /F1 10 Tf 40 500 Td (\x7f) Tj 12 0 Td (Check the lights.) Tj ET"
    assert units(read(raw(tmp_path, content))) == [("item", "• Check the lights.")]


# ---- columns --------------------------------------------------------------------------------


def columned(count: int, canvas: Canvas, top: float = 500) -> list[str]:
    """Paragraphs in columns, each with its own words; returns them as they should be read."""
    gap = 14
    width = (WIDTH - 2 * MARGIN - gap * (count - 1)) / count
    words = [f"Column {n} begins. " + LONG * 2 + f"Column {n} ends." for n in range(count)]
    for number, part in enumerate(words):
        paragraph(canvas, part, MARGIN + number * (width + gap), top, width)
    return words


@pytest.mark.parametrize("count", [2, 3])
def test_columns_are_read_one_after_another(tmp_path: Path, count: int) -> None:
    expected: list[str] = []

    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica-Bold", 16)
        canvas.drawString(MARGIN, 530, "A title that runs across all of the columns")
        expected.extend(columned(count, canvas))

    assert texts(read(drawn(tmp_path, draw))) == [
        "A title that runs across all of the columns",
        *expected,
    ]


def test_full_width_blocks_stand_between_columns(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        columned(2, canvas, 570)
        table(canvas, [["Level", "Range"], ["Eco", "90 km"]], [170, 170], top=330)
        lines(canvas, ["Table 1: Range of the bike by level, measured with a rider of 75 kg."], 270)
        columned(2, canvas, 250)

    kinds = [(kind, words[:16]) for kind, words in units(read(drawn(tmp_path, draw)))]
    assert kinds == [
        ("paragraph", "Column 0 begins."),
        ("paragraph", "Column 1 begins."),
        ("row", "Level | Range"),
        ("row", "Eco | 90 km"),
        ("caption", "Table 1: Range o"),
        ("paragraph", "Column 0 begins."),
        ("paragraph", "Column 1 begins."),
    ]


def test_a_heading_below_the_left_column_goes_with_the_text_below_it(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        columned(2, canvas, 570)
        lines(canvas, ["Warranty"], 330)
        paragraph(canvas, LONG * 2, MARGIN, 310, 340)

    assert [words[:8] for words in texts(read(drawn(tmp_path, draw)))] == [
        "Column 0",
        "Column 1",
        "Warranty",
        "The batt",
    ]


def test_an_aligned_table_between_columns_is_read_across(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        columned(2, canvas, 570)
        wide = "These values hold for the city bike C-3 and for all of its sizes, S to L:"
        lines(canvas, [wide], 330)
        table(canvas, [["Eco", "90 km"], ["Tour", "65 km"], ["Boost", "40 km"]], [177, 163],
              top=310, style=PLAIN)  # fmt: skip
        lines(canvas, [wide], 230)

    assert texts(read(drawn(tmp_path, draw)))[-4:-1] == [
        "Eco | 90 km",
        "Tour | 65 km",
        "Boost | 40 km",
    ]


def test_a_paragraph_goes_on_in_the_next_column(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        column = Paragraph(LONG * 4, BODY)
        left, right = column.split(160, 120)
        for part, x in ((left, MARGIN), (right, 220)):
            _, height = part.wrap(160, HEIGHT)
            part.drawOn(canvas, x, 560 - height)

    assert texts(read(drawn(tmp_path, draw))) == [(LONG * 4).strip()]


def test_a_page_with_little_text_is_read_by_the_columns_of_the_others(tmp_path: Path) -> None:
    def last(canvas: Canvas) -> None:
        paragraph(canvas, LONG, MARGIN, 560, 163)
        lines(canvas, ["The right column", "has two lines."], 550, 217)

    pages = [lambda canvas: columned(2, canvas, 560), last]
    assert texts(read(paged(tmp_path, pages)), 2) == [
        LONG.strip(),
        "The right column has two lines.",
    ]


def test_wide_spaces_of_justified_text_are_no_cells(tmp_path: Path) -> None:
    words = [("maintenance", "temperature"), ("specification", "lubrication"), ("to", "shines")] * 3

    def draw(canvas: Canvas) -> None:
        for number, (left, right) in enumerate(words):
            canvas.drawString(MARGIN, 540 - 12 * number, left)
            canvas.drawRightString(MARGIN + 160, 540 - 12 * number, right)

    kinds = {kind for kind, _ in units(read(drawn(tmp_path, draw)))}
    assert kinds == {"paragraph"}


# ---- tables ---------------------------------------------------------------------------------

CHECKS = [
    ["Check", "What to look at", "Limit"],
    ["R01", Paragraph("Casing: cracks, dents and signs that it was opened by force", BODY), "none"],
    ["R02", Paragraph("Contacts: dirt and rust", BODY), "2 mm"],
    ["R03", Paragraph("Weight of the battery with its carrying handle", BODY), "2.8 kg"],
]
CHECKED = [
    "Check | What to look at | Limit",
    "R01 | Casing: cracks, dents and signs that it was opened by force | none",
    "R02 | Contacts: dirt and rust | 2 mm",
    "R03 | Weight of the battery with its carrying handle | 2.8 kg",
]


@pytest.mark.parametrize("style", [GRID, ROWS], ids=["grid", "rows"])
def test_ruled_tables_keep_wrapped_cells_in_their_row(tmp_path: Path, style: TableStyle) -> None:
    path = drawn(tmp_path, lambda canvas: table(canvas, CHECKS, [60, 140, 60], style=style))
    reading = read(path)
    assert units(reading) == [("row", row) for row in CHECKED]
    assert header_of(reading, reading.sections[0], 0) is None
    assert {header_of(reading, reading.sections[0], row) for row in (1, 2, 3)} == {CHECKED[0]}


def test_colored_bands_make_rows(tmp_path: Path) -> None:
    bands = [
        ("BACKGROUND", (0, row), (-1, row), colors.lightgrey if row % 2 else colors.whitesmoke)
        for row in range(1, 4)
    ]
    dark = [
        ("BACKGROUND", (0, 0), (-1, 0), colors.darkblue),
        ("TEXTCOLOR", (0, 0), (-1, 0), colors.white),
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
    ]
    style = TableStyle([*bands, *dark])
    reading = read(drawn(tmp_path, lambda c: table(c, CHECKS, [60, 140, 60], style=style)))
    assert texts(reading) == CHECKED
    assert header_of(reading, reading.sections[0], 3) == CHECKED[0]
    assert reading.warnings == ()  # white letters on blue can be seen


def test_aligned_cells_without_lines_make_a_table(tmp_path: Path) -> None:
    rows = [["Size", "Seat tube", "Rider"], ["S", "46 cm", "150 cm"], ["M", "50 cm", "163 cm"]]

    def draw(canvas: Canvas) -> None:
        paragraph(canvas, LONG, MARGIN, 560, 340)
        end = table(canvas, rows, [100, 100, 100], top=500, style=PLAIN)
        paragraph(canvas, LONG, MARGIN, end - 20, 340)

    reading = read(drawn(tmp_path, draw))
    assert [kind for kind, _ in units(reading)] == ["paragraph", "row", "row", "row", "paragraph"]
    assert texts(reading)[1:4] == [" | ".join(row) for row in rows]
    assert header_of(reading, reading.sections[0], 2) == "Size | Seat tube | Rider"


def test_names_and_values_have_no_header(tmp_path: Path) -> None:
    rows = [["Torque", "45 Nm"], ["Weight", "24.6 kg"], ["Range", "90 km"]]
    style = TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black)])
    reading = read(drawn(tmp_path, lambda c: table(c, rows, [100, 100], style=style)))
    assert texts(reading) == ["Torque | 45 Nm", "Weight | 24.6 kg", "Range | 90 km"]
    assert [unit.header for unit in reading.sections[0].units] == [None] * 3


def test_a_colored_row_names_two_columns(tmp_path: Path) -> None:
    rows = [["Name", "Value"], ["Torque", "45 Nm"], ["Weight", "24.6 kg"]]
    ground = [("BACKGROUND", (0, 0), (-1, 0), colors.lightgrey)]
    style = TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black), *ground])
    reading = read(drawn(tmp_path, lambda c: table(c, rows, [100, 100], style=style)))
    assert header_of(reading, reading.sections[0], 2) == "Name | Value"


def test_a_line_keeps_close_cells_apart(tmp_path: Path) -> None:
    """Each cell is a rectangle of its own, and its text fills it."""

    def draw(canvas: Canvas) -> None:
        for row, words in enumerate((["Model", "Gears"], ["Tour", "Eight"])):
            for column, word in enumerate(words):
                canvas.rect(MARGIN + 30 * column, 500 - 16 * row, 30, 16)
                canvas.drawRightString(MARGIN + 30 * column + 29, 505 - 16 * row, word)

    assert texts(read(drawn(tmp_path, draw))) == ["Model | Gears", "Tour | Eight"]


def test_a_heading_between_two_tables_is_in_none(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        end = table(canvas, [["Size", "Rider"], ["S", "150 cm"]], [90, 90], style=ROWS)
        canvas.setFont("Helvetica-Bold", 10)
        canvas.drawString(MARGIN + 6, end - 14, "Torques")
        table(canvas, [["Part", "Torque"], ["Stem", "6 Nm"]], [90, 90], top=end - 16, style=ROWS)

    assert texts(read(drawn(tmp_path, draw))) == [
        "Size | Rider",
        "S | 150 cm",
        "Torques",
        "Part | Torque",
        "Stem | 6 Nm",
    ]


def test_cells_over_rows_are_repeated_and_empty_cells_kept(tmp_path: Path) -> None:
    rows = [["Bike", "Part", "Torque"], ["C-3", "Stem", "6 Nm"], ["", "Seat", ""]]
    style = TableStyle([*GRID.getCommands(), ("SPAN", (0, 1), (0, 2))])
    reading = read(drawn(tmp_path, lambda c: table(c, rows, [70, 70, 70], style=style)))
    assert texts(reading) == ["Bike | Part | Torque", "C-3 | Stem | 6 Nm", "C-3 | Seat |"]


def test_a_table_over_a_page_break_is_one_table(tmp_path: Path) -> None:
    head = ["Code", "Meaning", "Action"]

    def first(canvas: Canvas) -> None:
        bookmark(canvas, "Errors", top=560)
        lines(canvas, ["Errors"], 545)
        table(canvas, [head, ["E-101", "Motor hot", "Wait"]], [60, 90, 90], top=120)

    def second(canvas: Canvas) -> None:
        table(canvas, [head, ["E-102", "Motor cold", "Ride"]], [60, 90, 90], top=570)
        lines(canvas, ["All other codes are for the dealer."], 300)

    reading = read(paged(tmp_path, [first, second]))
    assert units(reading) == [
        ("row", "Code | Meaning | Action"),
        ("row", "E-101 | Motor hot | Wait"),
        ("row", "E-102 | Motor cold | Ride"),
        ("paragraph", "All other codes are for the dealer."),
    ]
    rows = reading.sections[0].units
    assert [unit.page for unit in rows] == [1, 1, 2, 2]
    assert rows[2].header == (rows[0].start, rows[0].end)


def test_the_caption_of_a_continued_table_is_dropped(tmp_path: Path) -> None:
    def page(caption: str, rows: list[list[str]]) -> Draw:
        def draw(canvas: Canvas) -> None:
            bookmark(canvas, "Errors", top=560) if "continued" not in caption else None
            lines(canvas, ["Errors"] if "continued" not in caption else [], 550)
            lines(canvas, [caption], 400)
            table(canvas, [["Code", "Meaning"], *rows], [60, 90], top=390)

        return draw

    first = page("Table 2: Errors of the drive", [["E-101", "Motor hot"]])
    second = page("Table 2 (continued): Errors of the drive", [["E-102", "Motor cold"]])
    assert texts(read(paged(tmp_path, [first, second]))) == [
        "Table 2: Errors of the drive",
        "Code | Meaning",
        "E-101 | Motor hot",
        "E-102 | Motor cold",
    ]


def test_tables_that_follow_each_other_keep_their_headers(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        end = table(canvas, [["Size", "Rider"], ["S", "150 cm"]], [90, 90], style=ROWS)
        table(canvas, [["Part", "Torque"], ["Stem", "6 Nm"]], [90, 90], top=end - 4, style=ROWS)

    reading = read(drawn(tmp_path, draw))
    assert texts(reading) == ["Size | Rider", "S | 150 cm", "Part | Torque", "Stem | 6 Nm"]
    headers = [header_of(reading, reading.sections[0], row) for row in range(4)]
    assert headers == [None, "Size | Rider", None, "Part | Torque"]
    assert "\n\nPart" in reading.text


def test_headers_on_two_levels_become_one_row(tmp_path: Path) -> None:
    rows = [
        ["Bike", "Pressure", ""],
        ["", "Front", "Rear"],
        ["C-3", "3.0 bar", "3.5 bar"],
        ["T-7", "2.5 bar", "2.8 bar"],
    ]
    spans = [("SPAN", (1, 0), (2, 0)), ("SPAN", (0, 0), (0, 1))]
    style = TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black), *spans])
    reading = read(drawn(tmp_path, lambda c: table(c, rows, [70, 70, 70], style=style)))
    assert texts(reading)[-2:] == ["C-3 | 3.0 bar | 3.5 bar", "T-7 | 2.5 bar | 2.8 bar"]
    assert header_of(reading, reading.sections[0], 2) == "Bike | Pressure Front | Rear"


def test_a_frame_around_text_is_no_table(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.rect(MARGIN - 5, 470, 350, 90)
        paragraph(canvas, LONG, MARGIN, 550, 340)

    assert units(read(drawn(tmp_path, draw))) == [("paragraph", LONG.strip())]


# ---- sections -------------------------------------------------------------------------------


def test_sections_begin_where_bookmarks_point(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setTitle("Owner's manual")
        lines(canvas, ["Owner's manual", "Keep it with the bike."], 560)
        bookmark(canvas, "The battery", top=530)
        lines(canvas, ["The battery"], 520)
        bookmark(canvas, "Charging the battery at home and on the way", 1, top=500)
        lines(canvas, ["Charging the battery at home", "and on the way"], 490)
        lines(canvas, ["It takes five hours."], 450)
        bookmark(canvas, "Brakes", top=420)
        lines(canvas, ["2. Brakes", "New brakes need 30 stops."], 410)

    reading = read(drawn(tmp_path, draw))
    assert reading.title == "Owner's manual"
    assert sections(reading) == [
        (0, (), ["Keep it with the bike."]),
        (1, ("The battery",), []),
        (
            2,
            ("The battery", "Charging the battery at home and on the way"),
            ["It takes five hours."],
        ),
        (3, ("Brakes",), ["New brakes need 30 stops."]),
    ]


def test_a_bookmark_without_a_height_finds_its_heading(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        for title in ("Tyres", "Lights"):
            bookmark(canvas, title)
        lines(canvas, ["Tyres", "Front and rear.", "LIGHTS", "The lamp gives 70 lux."], 540)

    assert sections(read(drawn(tmp_path, draw))) == [
        (1, ("Tyres",), ["Front and rear."]),
        (2, ("Lights",), ["The lamp gives 70 lux."]),
    ]


def test_of_two_equal_headings_the_nearer_one_is_meant(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, ["Tyres", "is what the first part is about."], 560)
        bookmark(canvas, "Tyres", top=460)
        lines(canvas, ["Tyres", "Front and rear."], 450)

    assert sections(read(drawn(tmp_path, draw)))[-1] == (1, ("Tyres",), ["Front and rear."])


def test_bookmarks_in_columns_find_their_column(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        for x, title in ((MARGIN, "Left part"), (220, "Right part")):
            bookmark(canvas, title, top=560)
            canvas.drawString(x, 545, title)
            paragraph(canvas, LONG * 2 + title, x, 535, 160)

    got = sections(read(drawn(tmp_path, draw)))
    assert [(number, titles) for number, titles, _ in got] == [
        (1, ("Left part",)),
        (2, ("Right part",)),
    ]
    assert [words[0][-10:].strip() for _, _, words in got] == ["Left part", "Right part"]


def test_a_bookmark_that_points_nowhere_is_left_out_with_a_warning(tmp_path: Path) -> None:
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /Outlines 6 0 R >>",
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 595] /Contents 5 0 R "
        b"/Resources << /Font << /F1 3 0 R >> >> >>",
        b"<< /Length 46 >>\nstream\nBT /F1 10 Tf 40 500 Td (The brakes grip.) Tj ET\nendstream",
        b"<< /First 7 0 R /Last 8 0 R /Count 2 >>",
        b"<< /Title (Gone) /Parent 6 0 R /Next 8 0 R /Dest (nowhere) >>",
        b"<< /Title (Brakes) /Parent 6 0 R /Prev 7 0 R /Dest [4 0 R /XYZ 0 540 0] >>",
    ]
    reading = read(assembled(tmp_path / "broken.pdf", objects))
    assert sections(reading) == [(1, ("Brakes",), ["The brakes grip."])]
    assert reading.warnings == ("the bookmark «Gone» points nowhere and was left out",)


def test_pages_are_sections_where_there_are_no_bookmarks(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.addPageLabel(0, style="ROMAN_LOWER")
        canvas.addPageLabel(3, style="ARABIC", start=1)
        for words in ("Foreword.", "", "Thanks.", "The first chapter."):
            canvas.setFont("Helvetica", 10)
            lines(canvas, [words] if words else [], 300)
            canvas.showPage()

    reading = read(drawn(tmp_path, draw))
    assert reading.page_labels == ("i", "ii", "iii", "1")
    assert sections(reading) == [
        (1, ("Page i",), ["Foreword."]),
        (3, ("Page iii",), ["Thanks."]),
        (4, ("Page 1",), ["The first chapter."]),
    ]
    assert reading.warnings == ("1 of 4 pages: no text (page 2)",)


@pytest.mark.parametrize("title", ["untitled", "Microsoft Word - manual.doc", "t7_v3.indd", " - "])
def test_a_title_that_a_program_put_in_is_none(tmp_path: Path, title: str) -> None:
    path = paged(tmp_path, [lambda canvas: lines(canvas, ["Text."], 300)], title=title)
    assert read(path).title == ""


def test_a_table_of_contents_is_left_out(tmp_path: Path) -> None:
    names = ["Setting up", "Charging", "Loading"]

    def contents(canvas: Canvas) -> None:
        lines(canvas, ["Keep this manual.", "", "Contents"], 540)
        for number, name in enumerate(names):
            canvas.drawString(MARGIN, 480 - 14 * number, f"{name} . . . . . . . . . . 2")

    def chapters(canvas: Canvas) -> None:
        for number, name in enumerate(names):
            bookmark(canvas, name, top=560 - 60 * number)
            lines(canvas, [name, f"Words about it: {number}."], 545 - 60 * number)

    assert texts(read(paged(tmp_path, [contents, chapters]))) == [
        "Keep this manual.",
        *(f"Words about it: {number}." for number in range(3)),
    ]


# ---- margins --------------------------------------------------------------------------------


def test_running_headers_footers_and_page_numbers_are_left_out(tmp_path: Path) -> None:
    def page(number: int) -> Draw:
        def draw(canvas: Canvas) -> None:
            canvas.drawString(MARGIN, 570, "Service manual T-7")
            canvas.drawRightString(WIDTH - MARGIN, 570, f"Edition 4, page {number} of 2")
            lines(canvas, [f"Step {number} takes {number + 3} minutes."], 500)
            canvas.drawCentredString(WIDTH / 2, 25, f"- {number} -")

        return draw

    reading = read(paged(tmp_path, [page(1), page(2)]))
    assert texts(reading) == ["Step 1 takes 4 minutes.", "Step 2 takes 5 minutes."]


def test_the_header_of_a_table_below_a_running_header_is_kept(tmp_path: Path) -> None:
    def page(codes: list[str]) -> Draw:
        def draw(canvas: Canvas) -> None:
            canvas.drawString(MARGIN, 575, "Service manual T-7")
            canvas.drawRightString(WIDTH - MARGIN, 575, "Atlas Bikes")
            rows = [[code, f"Meaning of {code}"] for code in codes]
            table(canvas, [["Code", "Meaning"], *rows], [60, 120], top=562, style=ROWS)

        return draw

    reading = read(paged(tmp_path, [page(["E-1", "E-2"]), page(["E-3", "E-4"])]))
    assert texts(reading) == [
        "Code | Meaning",
        "E-1 | Meaning of E-1",
        "E-2 | Meaning of E-2",
        "Code | Meaning",
        "E-3 | Meaning of E-3",
        "E-4 | Meaning of E-4",
    ]


def test_a_lone_page_number_is_left_out_and_other_numbers_are_not(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.addPageLabel(0, style="ROMAN_LOWER", start=7)
        lines(canvas, ["The code of the lock is", "4711"], 540)
        lines(canvas, ["Keep it safe."], 480)
        canvas.drawCentredString(WIDTH / 2, 90, "vii")  # LaTeX sets it far in

    assert texts(read(drawn(tmp_path, draw))) == ["The code of the lock is 4711", "Keep it safe."]


def test_text_at_the_edge_that_does_not_count_pages_is_kept(tmp_path: Path) -> None:
    def page(words: str, value: int) -> Draw:
        def draw(canvas: Canvas) -> None:
            canvas.drawString(MARGIN, 570, f"The torque of the bolt is {value} Nm.")
            lines(canvas, [words], 500)

        return draw

    path = paged(tmp_path, [page("Front.", 6), page("Rear.", 40), page("Stem.", 5)])
    assert [words for words in texts(read(path)) if "torque" in words] == [
        f"The torque of the bolt is {value} Nm." for value in (6, 40, 5)
    ]


def test_pages_that_say_the_same_are_not_emptied(tmp_path: Path) -> None:
    def slide(canvas: Canvas) -> None:
        lines(canvas, ["Ask your dealer."], 560)

    assert texts(read(paged(tmp_path, [slide, slide]))) == ["Ask your dealer."] * 2


# ---- turned pages ---------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_turned_pages_are_read_upright(tmp_path: Path, angle: int) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setPageRotation(angle)
        canvas.translate(WIDTH / 2, HEIGHT / 2)
        canvas.rotate(angle)
        lines(canvas, ["The first line of the page", "and the second one."], 100, -150)

    assert texts(read(drawn(tmp_path, draw))) == ["The first line of the page and the second one."]


def test_text_in_another_direction_follows_the_page(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, ["The text of the page."], 500)
        canvas.rotate(90)
        canvas.drawString(100, -400, "Side note")

    assert texts(read(drawn(tmp_path, draw))) == ["The text of the page.", "Side note"]


def test_a_stamp_across_every_page_is_left_out(tmp_path: Path) -> None:
    def page(words: str) -> Draw:
        def draw(canvas: Canvas) -> None:
            lines(canvas, [words], 500)
            canvas.rotate(45)
            canvas.drawString(300, 0, "DRAFT")

        return draw

    path = paged(tmp_path, [page("One."), page("Two.")])
    assert texts(read(path)) == ["One.", "Two."]


# ---- hidden text ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"3 Tr " + text("secret words"), "invisible"),
        (b"1 g " + text("secret words"), "white"),
        (b"1 0 0 rg 30 490 200 30 re f " + text("secret words"), "in the color of its ground"),
        (text("secret words", size=1), "tiny"),
        (text("secret words", x=900), "off the page"),
        (text("secret words") + b"0 0 1 rg 30 480 300 40 re f ", "painted over"),
        (b"q 0 0 10 10 re W n " + text("secret words") + b"Q ", "off the page"),
        (b"7 Tr " + text("secret words"), "invisible"),
        (b"q 7 Tr " + text("secret words") + b"0 0 9 9 re f Q ", "invisible"),
        (b"q 7 Tr " + text("secret words") + b"1 g 30 480 300 40 re f Q ", "white"),
        (b"q 7 Tr " + text("secret words") + b"0 Tr " + text("other words") + b"Q ", "invisible"),
        (b"0.1 Tz " + text("secret words") + b"100 Tz ", "tiny"),
        (b"q 0.01 0 0 1 40 0 cm " + text("secret words") + b"Q ", "tiny"),
    ],
    ids=[
        "mode 3", "white", "ground", "tiny", "off page", "covered", "clipped", "mode 7",
        "painted beside mode 7", "white through mode 7", "others through mode 7",
        "pressed together", "squeezed",
    ],
)  # fmt: skip
def test_hidden_text_is_read_with_a_warning(tmp_path: Path, content: bytes, reason: str) -> None:
    reading = read(raw(tmp_path, content + b"0 Tr 0 g " + text("Shown words.", y=300)))
    assert "secret words" in reading.text
    assert "Shown words." in reading.text
    assert reading.warnings == (f"hidden text on page 1 ({reason}): «secret words»",)


@pytest.mark.parametrize(
    "content",
    [
        b"0 0 1 rg 30 490 200 30 re f 1 g " + text("White on blue"),
        b"1 1 0 rg 30 490 200 30 re f 0 g " + text("Black on yellow"),
        b"0.9 g 0 0 420 595 re f 0 g " + text("Black on a tinted page"),
        b"q 7 Tr " + text("Cut out of a band") + b"0 0 1 rg 30 480 300 40 re f Q ",
        b"q 7 Tr " + text("Cut out of a picture") + b"300 0 0 40 30 480 cm " + INLINE + b"Q ",
        b"q 7 Tr " + text("twice") + b"0 Tr " + text("Set twice", x=18) + b"Q ",
        b"60 Tz " + text("Condensed"),
    ],
)
def test_text_that_can_be_seen_gives_no_warning(tmp_path: Path, content: bytes) -> None:
    assert read(raw(tmp_path, content)).warnings == ()


def test_text_under_a_picture_that_was_painted_later_is_hidden(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(MARGIN, 500, "secret words")
        canvas.drawString(MARGIN, 400, "Shown words.")
        canvas.drawImage(ImageReader(Image.new("RGB", (9, 9), "white")), 30, 480, 300, 40)
        canvas.drawString(MARGIN, 490, "Printed on the picture.")

    reading = read(drawn(tmp_path, draw))
    reason = "painted over by a picture"
    assert reading.warnings == (f"hidden text on page 1 ({reason}): «secret words»",)
    assert "Printed on the picture." in reading.text


def test_text_across_the_page_under_a_picture_is_hidden(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, [LONG[:60], LONG[60:120]], 300)
        canvas.rotate(90)
        canvas.drawString(400, -100, "secret words")
        canvas.drawImage(ImageReader(Image.new("L", (9, 9))), 390, -101, 200, 12)

    (warning,) = read(drawn(tmp_path, draw)).warnings
    assert warning.endswith("(painted over by a picture): «secret words»")


STENCIL = b"BI /W 1 /H 1 /BPC 1 /IM true ID \xff EI\n"


@pytest.mark.parametrize(
    ("before", "image"),
    [
        (b"300 0 0 40 30 480 cm ", STENCIL),
        (b"/Half gs 300 0 0 40 30 480 cm ", INLINE),
        (b"/Soft gs 300 0 0 40 30 480 cm ", INLINE),
        (b"300 0 0 5 30 497 cm ", INLINE),
        (b"50 0 0 40 30 480 cm ", INLINE),
        (b"200 200 -200 200 100 400 cm ", INLINE),
        (b"30 480 m 330 480 l 330 520 l h W n 300 0 0 40 30 480 cm ", INLINE),
        (b"300 0 0 40 30 480 cm ", b"/Soft Do "),
        (b"/Half gs ", b"/Form Do "),
    ],
    ids=[
        "stencil", "half transparent", "mask of the state", "foot only", "beginning only",
        "turned", "clipped by a triangle", "soft mask", "inside a half transparent form",
    ],
)  # fmt: skip
def test_text_that_shows_through_or_beside_a_picture_is_seen(
    tmp_path: Path, before: bytes, image: bytes
) -> None:
    extra = (
        b"/ExtGState << /Half << /ca 0.5 >> /Full << /ca 1 >> /Soft << /SMask << /S /Alpha >> >> >>"
        b" /XObject << /Soft 6 0 R /Form 7 0 R >>"
    )
    path = raw(tmp_path, text("Seen words.") + b"q " + before + image + b"Q ", extra=extra)
    assert read(with_objects(path, MASKED, FORM)).warnings == ()


MASKED = (
    b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace "
    b"/DeviceGray /SMask 3 0 R /Length 1 >>\nstream\n\xff\nendstream"
)
_PAINTING = b"/Full gs 300 0 0 40 30 480 cm " + INLINE
FORM = (
    b"<< /Type /XObject /Subtype /Form /BBox [0 0 420 595] /Length %d /Group << /S /Transparency "
    b">> >>\nstream\n%b\nendstream" % (len(_PAINTING), _PAINTING)
)


def with_objects(path: Path, *objects: bytes, catalog: bytes = b"") -> Path:
    """A file of one page of `raw` with more objects, numbered from 6, and a fuller catalog."""
    held = re.split(rb"\d+ 0 obj\n|\nendobj\n", path.read_bytes().partition(b"xref\n0 ")[0])[1::2]
    held[0] = held[0].replace(b"/Catalog", b"/Catalog " + catalog)
    return assembled(path, [*held, *objects])


@pytest.mark.parametrize("name", ["Always", "Never"])
def test_an_opaque_picture_of_the_file_covers_unless_its_layer_is_off(
    tmp_path: Path, name: str
) -> None:
    layer = b"/OC 6 0 R /SMask null" if name == "Never" else b"/ImageMask false"
    image = MASKED.replace(b"/SMask 3 0 R", layer)
    path = raw(
        tmp_path, text("secret words") + b"q 300 0 0 40 30 480 cm /X Do Q " + text("Seen.", y=300),
        extra=b"/XObject << /X 7 0 R >>",
    )  # fmt: skip
    path = with_objects(
        path, b"<< /Type /OCG >>", image, catalog=b"/OCProperties << /D << /OFF [6 0 R] >> >>"
    )
    assert len(read(path).warnings) == (name == "Always")


@pytest.mark.parametrize(
    ("setting", "layer", "off"),
    [
        (b"/OFF [6 0 R]", b"/A", True),
        (b"/OFF [7 0 R]", b"/A", False),
        (b"/BaseState /OFF", b"/A", True),
        (b"/BaseState /OFF /ON [6 0 R]", b"/A", False),
        (b"/OFF [6 0 R]", b"/Any", False),
        (b"/OFF [6 0 R 7 0 R]", b"/Any", True),
        (b"/OFF [6 0 R]", b"/All", True),
        (b"/OFF [6 0 R]", b"/OneOff", False),
        (b"/OFF [6 0 R]", b"/AllOff", True),
        (b"/OFF 12", b"/A", False),
        (b"/OFF [6 0 R]", b"/Missing", False),
    ],
)
def test_text_in_a_layer_that_is_switched_off_is_hidden(
    tmp_path: Path, setting: bytes, layer: bytes, off: bool
) -> None:
    several = b" << /Type /OCMD /OCGs [6 0 R null 7 0 R] /P /%b >> "
    extra = b"/Properties << /A 6 0 R " + b"".join(
        b"/%b" % name + several % policy
        for name, policy in [
            (b"Any", b"AnyOn"), (b"All", b"AllOn"), (b"OneOff", b"AnyOff"), (b"AllOff", b"AllOff"),
        ]
    ) + b">>"  # fmt: skip
    inside = b"/OC " + layer + b" BDC /P BMC " + text("secret words") + b"EMC "
    cover = b"0 0 1 rg 30 290 300 40 re f EMC 0 g "
    path = raw(tmp_path, text("Seen.", y=300) + inside + cover + text("After.", y=200), extra=extra)
    group = b"<< /Type /OCG /Name (Layer) >>"
    catalog = b"/OCProperties << /OCGs [6 0 R 7 0 R] /D << %b >> >>" % setting
    warnings = read(with_objects(path, group, group, catalog=catalog)).warnings
    hidden = "secret words" if off else "Seen."
    reason = "in a layer that is switched off" if off else "painted over"
    assert [w for w in warnings if "operator" not in w] == [
        f"hidden text on page 1 ({reason}): «{hidden}»"
    ]


def test_a_form_of_a_layer_that_is_switched_off_is_hidden(tmp_path: Path) -> None:
    words = b"EMC " + text("secret words")
    form = (
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 420 595] /OC 6 0 R /Length %d >>\n"
        b"stream\n%b\nendstream" % (len(words), words)
    )
    path = raw(tmp_path, b"/X Do " + text("Seen.", y=300), extra=b"/XObject << /X 7 0 R >>")
    path = with_objects(
        path, b"<< /Type /OCG >>", form, catalog=b"/OCProperties << /D << /OFF [6 0 R] >> >>"
    )
    (warning,) = read(path).warnings
    assert warning.endswith("(in a layer that is switched off): «secret words»")


def picture(canvas: Canvas) -> None:
    canvas.drawImage(ImageReader(Image.new("L", (20, 20), 128)), 0, 0, WIDTH, HEIGHT)


def test_the_words_that_a_scan_was_painted_over_are_just_read(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(MARGIN, 500, "Words that were recognised.")
        picture(canvas)

    reading = read(drawn(tmp_path, draw))
    assert (texts(reading), reading.warnings) == (["Words that were recognised."], ())


def test_the_words_under_a_scan_are_just_read(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        picture(canvas)
        recognised = canvas.beginText(MARGIN, 500)
        recognised.setTextRenderMode(3)
        recognised.textLine("Words that were recognised.")
        canvas.drawText(recognised)

    reading = read(drawn(tmp_path, draw))
    assert (texts(reading), reading.warnings) == (["Words that were recognised."], ())


# ---- one bad page ---------------------------------------------------------------------------


def test_a_bad_page_costs_one_page(tmp_path: Path) -> None:
    path = raw(
        tmp_path,
        text("The first page."),
        b"0 0 m 1 1 l S\n" * 60_000 + text("Below a drawing."),
        text("Cut off: ") + b"BT (never closed",
        b"",
    )
    reading = read(path)
    assert texts(reading) == ["The first page.", "Cut off:"]
    assert reading.warnings == (
        "1 of 4 pages: over the limit of work for one page (page 2)",
        "1 of 4 pages: read in part: its content breaks off (PdfStreamError) (page 3)",
        "1 of 4 pages: no text (page 4)",
    )


def test_a_form_that_draws_itself_ends(tmp_path: Path) -> None:
    form = b"/XObject << /X 6 0 R >>"
    path = raw(tmp_path, text("Before.") + b"/X Do", extra=form)
    body = text("Inside.", y=400) + b"/X Do"
    data = path.read_bytes()
    objects = [part.split(b"\n", 1)[1].rsplit(b"\nendobj", 1)[0] for part in objects_of(data)]
    objects.append(
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 420 595] /Resources << /Font << /F1 3 0 R >>"
        b" /XObject << /X 6 0 R >> >> /Length %d >>\nstream\n%b\nendstream" % (len(body), body)
    )
    assert texts(read(assembled(path, objects))) == ["Before.", "Inside."]


def objects_of(data: bytes) -> list[bytes]:
    body = data[data.index(b"1 0 obj") : data.index(b"xref\n0 ")]
    return [part + b"endobj" for part in body.split(b"endobj\n")[:-1]]


# ---- refused --------------------------------------------------------------------------------


def test_files_that_hold_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"^scanned, 2 pages without text; run OCR first$"):
        read(paged(tmp_path, [picture, picture]))
    with pytest.raises(Refused, match=r"1 page without text \(page 1: no text\)"):
        read(raw(tmp_path, b""))


def encrypted(folder: Path, password: str) -> Path:
    path = folder / "locked.pdf"
    canvas = Canvas(str(path), encrypt=StandardEncryption(password, ownerPassword="o"))
    canvas.drawString(72, 700, "Locked words.")
    canvas.save()
    return path


def test_a_password_that_is_empty_is_no_obstacle(tmp_path: Path) -> None:
    assert texts(read(encrypted(tmp_path, ""))) == ["Locked words."]
    with pytest.raises(Refused, match="needs a password; save a copy without one"):
        read(encrypted(tmp_path, "secret"))


def written(folder: Path, data: bytes) -> Path:
    path = folder / "file.pdf"
    path.write_bytes(data)
    return path


def test_other_files_are_refused_in_one_line_that_names_them(tmp_path: Path) -> None:
    half = raw(tmp_path, text("Words.")).read_bytes()[:300]
    for data, reason in (
        (b"", "the file is empty (0 bytes); put the whole PDF in its place"),
        (b"<html>404</html>", "not a PDF: it begins with '<html>404</html>' and not with"),
        (half, "damaged beyond reading (no text in what could be found); print it to a new PDF"),
    ):
        with pytest.raises(DocumentError) as caught:
            read_pdf(written(tmp_path, data))
        assert str(caught.value).startswith(f"file.pdf: {reason}")
        assert "\n" not in str(caught.value)
    with pytest.raises(DocumentError, match="no such file"):
        read_pdf(tmp_path / "missing.pdf")


# ---- the child process ----------------------------------------------------------------------


def test_the_child_reads_what_the_module_reads(tmp_path: Path) -> None:
    path = paged(tmp_path, [lambda canvas: lines(canvas, ["Grüße – 5 °C"], 300)])
    assert read_pdf(path) == read(path)
    assert texts(read_pdf(path)) == ["Grüße – 5 °C"]


def test_limits_of_time_and_memory_are_kept(tmp_path: Path) -> None:
    heavy = raw(tmp_path, *[b"0 0 m 1 1 l S\n" * 35_000] * 60)
    start = time.monotonic()
    with pytest.raises(DocumentError, match=r"took longer than 1 s to read"):
        read_pdf(heavy, seconds=1.0)
    assert time.monotonic() - start < 5
    with pytest.raises(DocumentError, match=r"needs more than 0\.1 GB of memory to read"):
        read_pdf(raw(tmp_path, b" " * 70_000_000 + text("Words.")), memory_bytes=100_000_000)


def test_the_child_takes_no_module_from_the_folder_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = raw(tmp_path, text("Words."))
    (tmp_path / "pypdf.py").write_text("raise SystemExit('planted')")
    monkeypatch.chdir(tmp_path)
    assert texts(read_pdf(Path(path.name))) == ["Words."]


def test_the_child_loads_nothing_heavy() -> None:
    code = "import sys, atlas.pdf.__main__; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    ).stdout.split()
    heavy = {"numpy", "torch", "onnxruntime", "faiss", "transformers", "markdown_it", "yaml"}
    assert heavy.isdisjoint(loaded)
