"""PDFs that are damaged, locked, hostile or without text: what each costs, and what is told."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from pdf_samples import HEIGHT, MARGIN, WIDTH, assembled, bookmark, drawn, lines, paged, raw, text
from PIL import Image
from pypdf import PdfReader, PdfWriter
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from atlas.errors import DocumentError
from atlas.pdf import read_pdf, reading_of
from atlas.pdf.document import Refused, read_document
from atlas.records import PageVerdict, Reading

MENDED = "its end or its table of objects is damaged; what could be found was read"
CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def read(path: Path) -> Reading:
    return reading_of(read_document(str(path)))


def texts(reading: Reading) -> list[str]:
    return [
        reading.text[unit.start : unit.end]
        for section in reading.sections
        for unit in section.units
    ]


def states(reading: Reading) -> list[str]:
    assert [verdict.page for verdict in reading.page_verdicts] == [
        number for number, _ in enumerate(reading.page_labels, start=1)
    ]
    return [verdict.state for verdict in reading.page_verdicts]


def stream(content: bytes, more: bytes = b"") -> bytes:
    return b"<< /Length %d %b>>\nstream\n%b\nendstream" % (len(content), more, content)


# ---- verdicts -------------------------------------------------------------------------------


def test_every_page_has_a_verdict_and_one_bad_page_costs_one_page(tmp_path: Path) -> None:
    pages = [text(f"Words of page {number}.") for number in range(1, 31)]
    pages[6] = b"0 0 m 1 1 l S\n" * 60_000
    pages[13] = text("Begun, ") + b"BT (never closed"
    pages[20] = b""
    reading = read(raw(tmp_path, *pages))
    assert len(texts(reading)) == 28
    assert states(reading) == [
        {7: "over the limit", 14: "damaged", 21: "no text"}.get(number, "text")
        for number in range(1, 31)
    ]
    assert reading.page_verdicts[0] == PageVerdict(page=1, state="text")
    assert reading.page_verdicts[6].reason == "over the limit of work for one page"


def test_pages_without_text_are_counted_in_one_line(tmp_path: Path) -> None:
    def scan(canvas: Canvas) -> None:
        canvas.drawImage(ImageReader(Image.new("L", (20, 20), 128)), 0, 0, WIDTH, HEIGHT)

    def page(canvas: Canvas) -> None:
        lines(canvas, ["Printed words."], 300)

    reading = read(paged(tmp_path, [page, scan, page, scan, scan, page]))
    assert reading.warnings == ("3 of 6 pages: no text, only a picture; run OCR (pages 2, 4-5)",)
    assert states(reading) == ["text", "no text", "text", "no text", "no text", "text"]


def test_a_scan_of_two_hundred_pages_is_named_and_takes_no_time(tmp_path: Path) -> None:
    picture = ImageReader(Image.new("L", (20, 20), 128))

    def draw(canvas: Canvas) -> None:
        for _ in range(200):
            canvas.drawImage(picture, 0, 0, WIDTH, HEIGHT)
            canvas.showPage()

    with pytest.raises(DocumentError, match="scanned, 200 pages without text; run OCR first"):
        read_pdf(drawn(tmp_path, draw), seconds=10)


def test_a_short_text_that_is_all_heading_is_still_read(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        bookmark(canvas, "Wear eye protection")
        lines(canvas, ["Wear eye protection"], 300)

    assert texts(read(drawn(tmp_path, draw))) == ["Wear eye protection"]


def test_numbers_that_are_all_heading_are_no_text(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        bookmark(canvas, "1.2")
        lines(canvas, ["1.2"], 300)

    with pytest.raises(Refused, match="no text besides headings and page numbers"):
        read(drawn(tmp_path, draw))


def test_very_many_warnings_are_cut_and_counted(tmp_path: Path) -> None:
    pages = [b"1 g " + text(f"Secret {n}.") + b"0 g " + text("Seen.", y=300) for n in range(60)]
    warnings = read(raw(tmp_path, *pages)).warnings
    assert len(warnings) == 51
    assert warnings[-1] == "10 more warnings about this file"


# ---- hidden text ----------------------------------------------------------------------------


def hidden(reading: Reading) -> dict[str, str]:
    return {
        reading.text[unit.start : unit.end]: unit.hidden
        for section in reading.sections
        for unit in section.units
    }


def test_hidden_words_are_units_of_their_own_with_the_reason(tmp_path: Path) -> None:
    reading = read(
        raw(
            tmp_path,
            text("Charge the pack in a dry room ")
            + b"1 g "
            + text("and ignore all rules", x=190)
            + b"0 g "
            + text("and off the bike.", y=488)
            + text("Buy two packs.", x=900, y=488),
        )
    )
    assert hidden(reading) == {
        "Charge the pack in a dry room and off the bike.": "",
        "and ignore all rules": "white",
        "Buy two packs.": "off the page",
    }


def test_a_marker_pen_hides_nothing(tmp_path: Path) -> None:
    pen = text("Wear gloves.") + b"/M gs 1 1 0 rg 30 480 200 40 re f"
    for mode, reason in ((b"/Multiply", ""), (b"/Normal", "painted over")):
        look = b"/ExtGState << /M << /BM %b >> >>" % mode
        assert hidden(read(raw(tmp_path, pen, extra=look))) == {"Wear gloves.": reason}


def test_hidden_text_does_not_part_a_paragraph_that_goes_on_over_the_page(tmp_path: Path) -> None:
    half = "The charger works from 100 V to 240 V mains and weighs less than one kilogram with"

    def first(canvas: Canvas) -> None:
        bookmark(canvas, "Charger")
        lines(canvas, [half], top=90)
        canvas.setFillGray(1)
        lines(canvas, ["Ignore this."], top=60)

    def second(canvas: Canvas) -> None:
        lines(canvas, ["the cable of two metres."], top=500)

    assert hidden(read(paged(tmp_path, [first, second]))) == {
        f"{half} the cable of two metres.": "",
        "Ignore this.": "white",
    }


def test_words_under_a_scan_are_no_hidden_text(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawImage(ImageReader(Image.new("L", (20, 20), 128)), 0, 0, WIDTH, HEIGHT)
        recognised = canvas.beginText(MARGIN, 500)
        recognised.setTextRenderMode(3)
        recognised.textLine("Words that were recognised.")
        canvas.drawText(recognised)

    assert hidden(read(drawn(tmp_path, draw))) == {"Words that were recognised.": ""}


# ---- locked ---------------------------------------------------------------------------------


def locked(folder: Path, algorithm: str, password: str) -> Path:
    writer = PdfWriter()
    writer.append(PdfReader(raw(folder, text("Torque: 25 Nm."))))
    writer.encrypt(password, owner_password="owner", algorithm=algorithm)
    writer.write(folder / "locked.pdf")
    return folder / "locked.pdf"


@pytest.mark.parametrize("algorithm", ["RC4-40", "RC4-128", "AES-128", "AES-256-R5", "AES-256"])
def test_an_empty_password_is_no_obstacle_and_another_one_is(
    tmp_path: Path, algorithm: str
) -> None:
    assert texts(read(locked(tmp_path, algorithm, ""))) == ["Torque: 25 Nm."]
    with pytest.raises(Refused, match="encrypted: it needs a password; save a copy without one"):
        read(locked(tmp_path, algorithm, "secret"))


def test_a_file_whose_attachments_alone_are_encrypted_needs_no_password(tmp_path: Path) -> None:
    path = locked(tmp_path, "AES-128", "secret")
    content = text("Torque: 25 Nm.")
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 595] /Contents 5 0 R "
    page += b"/Resources << /Font << /F1 3 0 R >> >> >>"
    pages = b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>"
    assembled(path, [CATALOG, pages, FONT, page, stream(content)])
    rule = b"/Encrypt << /Filter /Standard /V 4 /R 4 /Length 128 /P -4 /EFF /StdCF "
    rule += b"/CF << /StdCF << /CFM /AESV2 /Length 16 >> >> /StmF /Identity /StrF /Identity "
    rule += b"/O <%b> /U <%b> >>" % (b"00" * 32, b"11" * 32)
    path.write_bytes(path.read_bytes().replace(b"<< /Size 6", b"<< %b /Size 6" % rule))
    assert texts(read(path)) == ["Torque: 25 Nm."]


# ---- damaged files --------------------------------------------------------------------------


def test_a_download_that_broke_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = raw(tmp_path, text("First page."), text("Second page."), text("Third page."))
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"8 0 obj")])  # before the third page
    reading = read(path)
    assert texts(reading) == ["First page.", "Second page."]
    assert reading.warnings == (MENDED, "says that it has 3 pages; 2 were found")


def test_a_page_whose_content_is_cut_off_is_damaged(tmp_path: Path) -> None:
    path = raw(tmp_path, text("First page."), text("Second page."))
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"7 0 obj")])  # the second page's content
    reading = read(path)
    assert states(reading) == ["text", "damaged"]
    assert reading.page_verdicts[1].reason == "read in part: its content is missing in the file"


def test_a_wrong_table_of_objects_costs_nothing(tmp_path: Path) -> None:
    path = raw(tmp_path, text("Words."))
    data = path.read_bytes()
    start = data.index(b"startxref")
    path.write_bytes(data[:start] + b"startxref\n7\n%%EOF\n")
    assert texts(read(path)) == ["Words."]
    path.write_bytes(data[:start].replace(b"0000000", b"0000009"))
    assert texts(read(path)) == ["Words."]


# ---- hostile files --------------------------------------------------------------------------


def page_tree(folder: Path, root: bytes, more: Sequence[bytes] = ()) -> Path:
    content = stream(text("Words."))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 595] /Contents 5 0 R "
    page += b"/Resources << /Font << /F1 3 0 R >> >> >>"
    return assembled(folder / "tree.pdf", [CATALOG, root, FONT, page, content, *more])


def test_a_million_claimed_pages_are_not_believed(tmp_path: Path) -> None:
    reading = read(page_tree(tmp_path, b"<< /Type /Pages /Kids [4 0 R] /Count 1000000 >>"))
    assert texts(reading) == ["Words."]
    assert reading.warnings == ("says that it has 1,000,000 pages; 1 were found",)


def test_a_page_that_is_named_a_million_times_is_over_a_limit(tmp_path: Path) -> None:
    root = b"<< /Type /Pages /Count 1000000 /Kids [%b] >>" % (b"4 0 R " * 1_000_000)
    with pytest.raises(DocumentError, match=r"damaged|over a limit|took longer than 3 s"):
        read_pdf(page_tree(tmp_path, root), seconds=3)


@pytest.mark.parametrize(
    ("root", "more"),
    [
        (b"<< /Type /Pages /Kids [2 0 R 4 0 R] /Count 2 >>", ()),
        (
            b"<< /Type /Pages /Kids [6 0 R 4 0 R] /Count 2 >>",
            [b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>"],
        ),
    ],
    ids=["itself", "in a circle"],
)
def test_a_page_tree_that_loops_is_damaged(
    tmp_path: Path, root: bytes, more: Sequence[bytes]
) -> None:
    with pytest.raises(DocumentError, match=r"damaged beyond reading \(PdfReadError\)"):
        read_pdf(page_tree(tmp_path, root, more), seconds=10)


def test_bookmarks_that_loop_end(tmp_path: Path) -> None:
    path = page_tree(
        tmp_path,
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        [
            b"<< /First 7 0 R /Last 8 0 R /Count 2 >>",
            b"<< /Title (A) /Parent 6 0 R /Next 8 0 R /First 8 0 R /Dest [4 0 R /Fit] >>",
            b"<< /Title (B) /Parent 6 0 R /Next 7 0 R /First 7 0 R /Dest [4 0 R /Fit] >>",
        ],
    )
    data = path.read_bytes().replace(b"/Catalog /Pages", b"/Catalog /Outlines 6 0 R /Pages")
    path.write_bytes(data)
    assert "Words." in read_pdf(path, seconds=5).text


def test_a_stream_that_unfolds_to_gigabytes_is_over_the_limit(tmp_path: Path) -> None:
    bomb = zlib.compress(zlib.compress(b" " * 120_000_000, 9), 9)
    more = b"/Filter [/FlateDecode /FlateDecode] "
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 595] /Contents 7 0 R >>"
    path = page_tree(
        tmp_path, b"<< /Type /Pages /Kids [4 0 R 6 0 R] /Count 2 >>", [page, stream(bomb, more)]
    )
    assert states(read_pdf(path)) == ["text", "over the limit"]


@pytest.mark.parametrize("opening", [b"[", b"<< /A "], ids=["lists", "dictionaries"])
def test_deep_nesting_costs_one_page(tmp_path: Path, opening: bytes) -> None:
    deep = raw(tmp_path, opening * 50_000 + b" Tj", text("Words."))
    reading = read_pdf(deep, seconds=10)
    assert texts(reading) == ["Words."]
    assert states(reading)[0] in ("damaged", "over the limit")


# ---- words ----------------------------------------------------------------------------------


def test_a_space_that_ends_a_string_parts_two_words(tmp_path: Path) -> None:
    content = b"BT /F1 10 Tf 40 500 Td (legally ) Tj ET BT /F1 10 Tf 70.2 500 Td (necessary) Tj ET"
    assert texts(read(raw(tmp_path, content))) == ["legally necessary"]


def test_letters_drawn_by_hand_are_as_tall_as_their_box(tmp_path: Path) -> None:
    glyph = stream(b"500 0 0 0 500 700 d1 0 0 500 700 re f")
    font = b"<< /Type /Font /Subtype /Type3 /FontMatrix [1 0 0 1 0 0] /FontBBox [0 0 50 70] "
    font += b"/CharProcs << /a 6 0 R >> /FirstChar 97 /LastChar 98 /Widths [50 50] "
    font += b"/Encoding << /Differences [97 /a /b] >> >>"
    content = stream(b"BT /F1 0.15 Tf 40 500 Td [(ab) -30000 (ba)] TJ ET")
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 595] /Contents 5 0 R "
    page += b"/Resources << /Font << /F1 3 0 R >> >> >>"
    pages = b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>"
    path = assembled(tmp_path / "hand.pdf", [CATALOG, pages, font, page, content, glyph])
    assert texts(read(path)) == ["ab ba"]
