"""Small PDFs for tests, drawn with reportlab or written byte by byte.

Every function writes one file below `folder` and returns its path. Pages are 420 x 595 points
(A5), the body is set in Helvetica 10, and y grows upwards.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from reportlab.lib import colors
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, Table, TableStyle

Draw = Callable[[Canvas], object]
"""Puts something on a canvas; what it returns does not matter."""

WIDTH, HEIGHT = 420, 595
MARGIN = 40
BODY = ParagraphStyle("body", fontName="Helvetica", fontSize=10, leading=12)

GRID = TableStyle([
    ("GRID", (0, 0), (-1, -1), 0.5, colors.black), ("FONT", (0, 0), (-1, -1), "Helvetica", 9),
    ("FONT", (0, 0), (-1, 0), "Helvetica-Bold", 9), ("VALIGN", (0, 0), (-1, -1), "TOP"),
])  # fmt: skip
ROWS = TableStyle([
    ("LINEBELOW", (0, 0), (-1, -1), 0.5, colors.black),
    ("FONT", (0, 0), (-1, -1), "Helvetica", 9),
    ("FONT", (0, 0), (-1, 0), "Helvetica-Bold", 9), ("VALIGN", (0, 0), (-1, -1), "TOP"),
])  # fmt: skip
PLAIN = TableStyle([("FONT", (0, 0), (-1, -1), "Helvetica", 9)])


def drawn(folder: Path, draw: Draw, name: str = "sample.pdf") -> Path:
    """Whatever `draw` puts on a canvas; it ends its own pages but the last."""
    path = folder / name
    canvas = Canvas(str(path), pagesize=(WIDTH, HEIGHT))
    canvas.setFont("Helvetica", 10)
    draw(canvas)
    canvas.save()
    return path


def paged(folder: Path, pages: Sequence[Draw], **properties: str) -> Path:
    """One drawing for each page."""

    def draw(canvas: Canvas) -> None:
        for name, value in properties.items():
            getattr(canvas, f"set{name.capitalize()}")(value)
        for page in pages:
            canvas.setFont("Helvetica", 10)
            page(canvas)
            canvas.showPage()

    return drawn(folder, draw)


def lines(canvas: Canvas, texts: Iterable[str], top: float = 540, left: float = MARGIN) -> float:
    """Lines of text 12 points apart; returns the base line that would follow."""
    for text in texts:
        canvas.drawString(left, top, text)
        top -= 12
    return top


def paragraph(canvas: Canvas, text: str, left: float, top: float, width: float) -> float:
    """A paragraph that wraps; returns where it ends."""
    flow = Paragraph(text, BODY)
    _, height = flow.wrap(width, HEIGHT)
    flow.drawOn(canvas, left, top - height)
    return top - height


def table(
    canvas: Canvas,
    rows: Sequence[Sequence[object]],
    widths: Sequence[float],
    left: float = MARGIN,
    top: float = 540,
    style: TableStyle = GRID,
) -> float:
    """A table; a cell that is a Paragraph wraps. Returns where the table ends."""
    flow = Table([list(row) for row in rows], colWidths=list(widths), style=style)
    _, height = flow.wrap(sum(widths), HEIGHT)
    flow.drawOn(canvas, left, top - height)
    return top - height


def bookmark(canvas: Canvas, title: str, level: int = 0, top: float | None = None) -> None:
    """An outline entry to this page, with the height that it points at where `top` is given."""
    key = f"{canvas.getPageNumber()}-{title}-{top}"
    if top is None:
        canvas.bookmarkPage(key)
    else:
        canvas.bookmarkPage(key, fit="XYZ", left=0, top=top)
    canvas.addOutlineEntry(title, key, level=level)


def raw(folder: Path, *contents: bytes, extra: bytes = b"", name: str = "raw.pdf") -> Path:
    """Pages with these content streams as they are, the font F1 and `extra` resources."""
    count = len(contents)
    kids = b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(count))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, count),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, content in enumerate(contents):
        packed = zlib.compress(content)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 595] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> %b >> >>" % (5 + 2 * number, extra)
        )
        objects.append(
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(packed), packed)
        )
    return assembled(folder / name, objects)


def assembled(path: Path, objects: Sequence[bytes]) -> Path:
    """A PDF of these objects, numbered from 1; the first is the catalog."""
    data = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        start,
    )
    path.write_bytes(bytes(data))
    return path


def text(words: str, x: float = 40, y: float = 500, size: float = 10) -> bytes:
    """Operators that show words at a place."""
    return b"BT /F1 %g Tf %g %g Td (%b) Tj ET\n" % (size, x, y, words.encode("cp1252"))
