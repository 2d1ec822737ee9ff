"""Make the collection's PDF documents from the text sources in `tools/pdfs/`.

    python tools/make_pdfs.py            write documents/NAME.pdf and documents/NAME.pdf.yaml
    python tools/make_pdfs.py --check    write nothing; exit code 1 if a file is not what this makes

A source is Markdown (headings, paragraphs, bullet lists, tables) below front matter with two
parts: `document` is copied into the metadata file, `layout` says how the pages look. A line
`<!-- page -->` starts a new page, `<!-- contents -->` prints a table of contents, and
`<!-- figure NAME -->` draws one of the figures below. Words listed in `hyphenation.txt` may be
broken at line ends. The same sources give the same bytes on every run and every machine: no
dates, no fonts beyond the standard ones, no compression whose result depends on a library.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import yaml
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from reportlab.lib.colors import HexColor, black, white
from reportlab.lib.enums import TA_JUSTIFY
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    CondPageBreak,
    Flowable,
    Frame,
    KeepTogether,
    PageBreak,
    PageTemplate,
    Paragraph,
    Table,
)

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "tools" / "pdfs"
DOCUMENTS = ROOT / "documents"
FACES = {
    "serif": ("Times-Roman", "Times-Bold", "Times-Italic", 9.4),
    "sans": ("Helvetica", "Helvetica-Bold", "Helvetica-Oblique", 8.8),
}
PAGES = {"a5": (420.0, 595.0), "pocket": (354.0, 500.0)}
"""Width and height in points, 72 to the inch."""
INK = HexColor("#1d3b4f")
TINT = HexColor("#e4ebef")
GAP = 16.0


@dataclass(frozen=True)
class Source:
    """One text source: metadata for atlas, looks for this script, and the body."""

    document: dict[str, Any]
    layout: dict[str, Any]
    body: str

    @property
    def title(self) -> str:
        return str(self.document["title"])

    @property
    def front_pages(self) -> int:
        return int(self.layout.get("front_pages", 0))


def read_source(path: Path) -> Source:
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    parts = yaml.safe_load(front)
    return Source(parts["document"], parts["layout"], body)


# ---- words ----------------------------------------------------------------------------------


def hyphenation() -> dict[str, str]:
    """Word -> the same word with soft hyphens where it may be broken."""
    lines = (SOURCES / "hyphenation.txt").read_text(encoding="utf-8").splitlines()
    words = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return {word.replace("-", ""): word.replace("-", "\xad") for word in words}


def soften(text: str, breaks: dict[str, str]) -> str:
    """Put soft hyphens into the listed words; a capital first letter is kept."""

    def word(match: re.Match[str]) -> str:
        found = match.group()
        soft = breaks.get(found.lower(), found)
        return found[0] + soft[1:]

    return re.sub(r"(?<![\w-])[A-Za-z]{5,}(?![\w-])", word, text)


# ---- flowables ------------------------------------------------------------------------------


class Heading(Paragraph):
    """A heading that sets an outline entry where it stands and tells which page that is."""

    def __init__(
        self, words: str, level: int, style: ParagraphStyle, seen: Callable[[str, int], None]
    ) -> None:
        super().__init__(escape(words), style)
        self.words, self.level, self.seen = words, level, seen

    def draw(self) -> None:
        left, top = self.canv.absolutePosition(0, self.height)
        page = self.canv.getPageNumber()
        key = f"{page}-{self.words}"
        self.canv.bookmarkPage(key, fit="XYZ", left=round(left, 1), top=round(top + 2, 1), zoom=0)
        self.canv.addOutlineEntry(self.words, key, level=self.level)
        self.seen(self.words, page)
        super().draw()


class ContentsLine(Flowable):
    """`Words . . . . . 7`: a line of the table of contents."""

    def __init__(self, words: str, label: str, style: ParagraphStyle, indent: float) -> None:
        super().__init__()
        self.words, self.label, self.style, self.indent = words, label, style, indent

    def wrap(self, width: float, height: float) -> tuple[float, float]:
        self.width = width
        return width, self.style.leading + 2

    def draw(self) -> None:
        font, size = self.style.fontName, self.style.fontSize
        self.canv.setFont(font, size)
        self.canv.drawString(self.indent, 3, self.words)
        self.canv.drawRightString(self.width, 3, self.label)
        dot = stringWidth(" .", font, size)
        start = self.indent + stringWidth(self.words, font, size) + 2
        room = self.width - stringWidth(self.label, font, size) - 4 - start
        self.canv.drawString(start, 3, " ." * int(room / dot))


STROKES = {
    "1": [(0.2, 0.75, 0.5, 1), (0.5, 1, 0.5, 0)],
    "2": [(0, 0.8, 0.3, 1), (0.3, 1, 0.65, 0.85), (0.65, 0.85, 0, 0), (0, 0, 0.7, 0)],
    "3": [(0, 1, 0.65, 1), (0.65, 1, 0.3, 0.6), (0.3, 0.6, 0.68, 0.3), (0.68, 0.3, 0, 0)],
    "4": [(0.5, 0, 0.5, 1), (0.5, 1, 0, 0.32), (0, 0.32, 0.75, 0.32)],
}


def callout(canvas: Canvas, digit: str, x: float, y: float, to: tuple[float, float]) -> None:
    """A ringed digit, drawn and not written, with a line to what it names."""
    canvas.setLineWidth(0.6)
    canvas.line(x, y, *to)
    canvas.setFillColor(white)
    canvas.circle(x, y, 6, fill=1)
    canvas.setLineWidth(0.9)
    for x1, y1, x2, y2 in STROKES[digit]:
        canvas.line(x - 2 + x1 * 5.5, y - 3 + y1 * 6, x - 2 + x2 * 5.5, y - 3 + y2 * 6)
    canvas.setFillColor(black)


class Figure(Flowable):
    """A vector drawing of fixed size, centred in its column."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.paint, self.size = FIGURES[name]

    def wrap(self, width: float, height: float) -> tuple[float, float]:
        self.left = (width - self.size[0]) / 2
        return width, self.size[1] + 8

    def draw(self) -> None:
        self.canv.saveState()
        self.canv.translate(self.left, 4)
        self.canv.setStrokeColor(INK)
        self.paint(self.canv)
        self.canv.restoreState()


def paint_sag(canvas: Canvas) -> None:
    """A fork leg with its rubber ring pushed away from the seal."""
    canvas.setLineWidth(1)
    canvas.setFillColor(TINT)
    canvas.roundRect(40, 4, 30, 56, 4, fill=1)
    canvas.roundRect(37, 58, 36, 7, 2, fill=1)
    canvas.setFillColor(white)
    canvas.rect(45, 65, 20, 50, fill=1)
    canvas.setFillColor(INK)
    canvas.rect(43, 88, 24, 4, fill=1)
    canvas.setFillColor(TINT)
    canvas.roundRect(34, 115, 42, 12, 4, fill=1)
    canvas.setLineWidth(0.5)
    canvas.line(20, 65, 20, 88)
    for y, tip in ((65, 69), (88, 84)):
        canvas.line(14, y, 36, y)
        canvas.line(20, y, 18, tip)
        canvas.line(20, y, 22, tip)
    callout(canvas, "1", 98, 100, (67, 90))
    callout(canvas, "2", 98, 50, (73, 61))


def paint_display(canvas: Canvas) -> None:
    """The display D2 seen from the front, with its four buttons."""
    canvas.setLineWidth(1.2)
    canvas.setFillColor(TINT)
    canvas.roundRect(50, 8, 120, 116, 12, fill=1)
    canvas.setFillColor(white)
    canvas.roundRect(62, 52, 96, 62, 4, fill=1)
    canvas.setLineWidth(2)
    canvas.line(72, 98, 104, 98)
    canvas.line(72, 90, 92, 90)
    canvas.setLineWidth(0.8)
    for step in range(5):
        canvas.rect(72 + 16 * step, 62, 12, 8 + 3 * step, fill=0)
    canvas.setFillColor(white)
    for x, radius in ((72, 7), (98, 7), (124, 7), (150, 7)):
        canvas.circle(x, 30, radius, fill=1)
    canvas.line(95, 30, 101, 30)
    canvas.line(98, 27, 98, 33)
    canvas.line(121, 30, 127, 30)
    canvas.arc(69, 27, 75, 33, 120, 300)
    canvas.rect(147.5, 27.5, 5, 5)
    callout(canvas, "1", 24, 12, (65, 28))
    callout(canvas, "2", 24, 56, (92, 34))
    callout(canvas, "3", 196, 56, (130, 34))
    callout(canvas, "4", 196, 12, (157, 28))


def paint_range(canvas: Canvas) -> None:
    """Three bars, one for each assist level, on a ruler with a tick every ten kilometres."""
    canvas.setLineWidth(0.6)
    canvas.line(4, 10, 124, 10)
    for tick in range(11):
        canvas.line(4 + 12 * tick, 10, 4 + 12 * tick, 4 if tick % 5 == 0 else 7)
    for row, (reach, tint) in enumerate(((40, "#b5543c"), (65, "#7a97a8"), (90, "#1d3b4f"))):
        canvas.setFillColor(HexColor(tint))
        canvas.rect(4, 16 + 18 * row, 1.2 * reach, 12, fill=1, stroke=0)


FIGURES: dict[str, tuple[Callable[[Canvas], None], tuple[float, float]]] = {
    "sag": (paint_sag, (112.0, 130.0)),
    "display": (paint_display, (220.0, 128.0)),
    "range": (paint_range, (128.0, 70.0)),
}


# ---- source to story ------------------------------------------------------------------------


@dataclass
class Typesetter:
    """Turns one source into flowables. `pages` maps headings to pages, from the pass before."""

    source: Source
    breaks: dict[str, str]
    pages: dict[str, int]
    found: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        roman, bold, italic, size = FACES[self.source.layout["face"]]
        self.body = ParagraphStyle(
            "body",
            fontName=roman,
            fontSize=size,
            leading=size * 1.25,
            spaceAfter=5,
            alignment=TA_JUSTIFY,
        )
        self.item = ParagraphStyle(
            "item", parent=self.body, leftIndent=10, bulletIndent=1, spaceAfter=2.5
        )
        self.cell = ParagraphStyle(
            "cell",
            parent=self.body,
            fontSize=size - 0.6,
            leading=size * 1.15,
            spaceAfter=0,
            alignment=0,
        )
        self.head = ParagraphStyle("head", parent=self.cell, fontName=bold)
        self.caption = ParagraphStyle(
            "caption",
            parent=self.body,
            fontName=italic,
            fontSize=size - 0.6,
            leading=size * 1.15,
            spaceAfter=8,
            alignment=0,
        )
        self.headings = [
            ParagraphStyle(
                f"heading{level}",
                fontName=bold,
                fontSize=big,
                leading=big * 1.2,
                textColor=INK,
                spaceBefore=8,
                spaceAfter=3,
            )
            for level, big in enumerate((size + 3, size + 1.2))
        ]

    def story(self, width: float) -> list[Flowable]:
        tree = SyntaxTreeNode(MarkdownIt("commonmark").enable("table").parse(self.source.body))
        blocks = [flowable for node in tree.children for flowable in self.block(node, width)]
        return list(self.keep_figures(blocks))

    @staticmethod
    def keep_figures(blocks: list[Flowable]) -> Iterator[Flowable]:
        """A figure stays in one column with the caption below it."""
        waiting = iter(blocks)
        for block in waiting:
            yield KeepTogether([block, next(waiting)]) if isinstance(block, Figure) else block

    def block(self, node: SyntaxTreeNode, width: float) -> Iterator[Flowable]:
        if node.type == "heading":
            level = int(node.tag[1:]) - 2
            yield CondPageBreak(80 - 15 * level)
            yield Heading(words_of(node), level, self.headings[level], self.found.setdefault)
        elif node.type == "paragraph":
            words = words_of(node)
            style = self.caption if words.startswith("Figure ") else self.body
            yield Paragraph(escape(soften(words, self.breaks)), style)
        elif node.type == "bullet_list":
            for item in node.children:
                words = escape(soften(words_of(item), self.breaks))
                yield Paragraph(words, self.item, bulletText="\u2022")
        elif node.type == "table":
            yield self.table(node, width)
        elif node.type == "html_block":
            yield from self.directive(*node.content.strip().removeprefix("<!--")[:-3].split())
        else:
            raise ValueError(f"{self.source.document['id']}: no rule for {node.type}")

    def directive(self, name: str, value: str = "") -> Iterator[Flowable]:
        if name == "page":
            yield PageBreak()
        elif name == "figure":
            yield Figure(value)
        elif name == "contents":
            yield Paragraph("Contents", ParagraphStyle("c", parent=self.headings[0]))
            for words, page in self.pages.items():
                label = page_label(page, self.source.front_pages)
                yield ContentsLine(words, label, self.body, 0)
        else:
            raise ValueError(f"{self.source.document['id']}: unknown directive {name!r}")

    def table(self, node: SyntaxTreeNode, width: float) -> Table:
        texts = [
            [words_of(cell) for cell in row.children]
            for part in node.children
            for row in part.children
        ]
        rows = [
            [Paragraph(escape(text), self.cell if number else self.head) for text in cells]
            for number, cells in enumerate(texts)
        ]
        style: list[tuple[Any, ...]] = [
            ("BACKGROUND", (0, 0), (-1, 0), TINT),
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("TOPPADDING", (0, 0), (-1, -1), 2),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 3),
            ("LEFTPADDING", (0, 0), (-1, -1), 4),
            ("RIGHTPADDING", (0, 0), (-1, -1), 4),
        ]
        if self.source.layout.get("rules") == "horizontal":
            style += [
                ("LINEBELOW", (0, 0), (-1, -1), 0.5, INK),
                ("LINEABOVE", (0, 0), (-1, 0), 0.5, INK),
            ]
        else:
            style.append(("GRID", (0, 0), (-1, -1), 0.5, INK))
        return Table(
            rows,
            colWidths=self.column_widths(texts, width),
            repeatRows=1,
            style=style,
            spaceBefore=3,
            spaceAfter=8,
        )

    def column_widths(self, texts: list[list[str]], width: float) -> list[float]:
        """Share the width by each column's longest cell, but leave room for its longest word."""

        def measure(text: str) -> float:
            return stringWidth(text, self.head.fontName, self.head.fontSize) + 9

        columns = list(zip(*texts, strict=True))
        wanted = [max(measure(text) for text in column) for column in columns]
        least = [max(measure(w) for text in column for w in text.split()) for column in columns]
        if sum(wanted) <= width:
            return wanted if len(wanted) > 3 else [w * width / sum(wanted) for w in wanted]
        spare = width - sum(least)
        missing = [w - low for w, low in zip(wanted, least, strict=True)]
        total = sum(missing)
        return [low + spare * m / total for low, m in zip(least, missing, strict=True)]


def words_of(node: SyntaxTreeNode) -> str:
    return " ".join(
        "".join(
            " " if leaf.type == "softbreak" else leaf.content
            for leaf in node.walk()
            if leaf.type in ("text", "softbreak")
        ).split()
    )


# ---- pages ----------------------------------------------------------------------------------


def page_label(page: int, front_pages: int) -> str:
    if page > front_pages:
        return str(page - front_pages)
    return ("i", "ii", "iii", "iv", "v", "vi")[page - 1]


class Manual(BaseDocTemplate):
    """Cover or title band, running header and footer, one or two columns."""

    def __init__(self, target: io.BytesIO, source: Source) -> None:
        self.source = source
        super().__init__(
            target,
            pagesize=PAGES[source.layout["page"]],
            invariant=1,
            pageCompression=0,
            title=source.title,
            author="Atlas Bikes",
            creator="Atlas Bikes, technical documentation",
            subject=source.document["kind"],
            leftMargin=40,
            rightMargin=40,
            topMargin=54,
            bottomMargin=50,
        )
        self.face = FACES[source.layout["face"]]
        columns = int(source.layout["columns"])
        cover = self.template("cover", 1 if source.front_pages else columns, self.draw_cover, 60)
        front = self.template("front", 1, self.draw_running, 0)
        inner = self.template("inner", columns, self.draw_running, 0)
        self.addPageTemplates([cover, front, inner])

    def template(
        self, name: str, columns: int, draw: Callable[[Canvas, Any], None], band: float
    ) -> PageTemplate:
        width = (self.width - GAP * (columns - 1)) / columns
        frames = [
            Frame(
                self.leftMargin + number * (width + GAP),
                self.bottomMargin,
                width,
                self.height - band,
                leftPadding=0,
                rightPadding=0,
                topPadding=0,
                bottomPadding=0,
                id=f"{name}{number}",
            )
            for number in range(columns)
        ]
        return PageTemplate(name, frames, onPage=draw)

    def column_width(self) -> float:
        columns = int(self.source.layout["columns"])
        return float((self.width - GAP * (columns - 1)) / columns)

    def handle_pageBegin(self) -> None:
        """The first page has the title, the front pages one column, the others the manual's."""
        super().handle_pageBegin()
        following = self.page + 1
        self._nextPageTemplateIndex = 1 if following <= self.source.front_pages else 2

    def draw_cover(self, canvas: Canvas, _: Any) -> None:
        """The title in large type over a rule; here the whole file's page labels are set, too."""
        canvas.addPageLabel(
            0, style="ROMAN_LOWER" if self.source.front_pages else "ARABIC", start=1
        )
        if self.source.front_pages:
            canvas.addPageLabel(self.source.front_pages, style="ARABIC", start=1)
        canvas.saveState()
        top = self.pagesize[1] - self.topMargin
        canvas.setFillColor(INK)
        canvas.setFont(self.face[1], 17)
        canvas.drawString(self.leftMargin, top - 24, self.source.title)
        canvas.setLineWidth(2)
        canvas.setStrokeColor(INK)
        canvas.line(self.leftMargin, top - 36, self.pagesize[0] - self.rightMargin, top - 36)
        canvas.restoreState()
        if self.source.front_pages:
            self.draw_emblem(canvas)
            self.draw_footer(canvas)
        else:
            self.draw_running(canvas, None)

    def draw_emblem(self, canvas: Canvas) -> None:
        """Two wheels and a frame at the foot of a cover."""
        canvas.saveState()
        canvas.translate(self.pagesize[0] / 2 - 40, 62)
        canvas.setStrokeColor(INK)
        canvas.setLineWidth(1.6)
        canvas.circle(14, 14, 14)
        canvas.circle(66, 14, 14)
        for x1, y1, x2, y2 in (
            (14, 14, 26, 36),
            (26, 36, 38, 14),
            (38, 14, 14, 14),
            (38, 14, 58, 34),
            (66, 14, 56, 42),
            (26, 36, 24, 42),
        ):
            canvas.line(x1, y1, x2, y2)
        canvas.restoreState()

    def draw_running(self, canvas: Canvas, _: Any) -> None:
        canvas.saveState()
        canvas.setFont(self.face[2], 8)
        canvas.setFillColor(INK)
        y = self.pagesize[1] - 34
        self.draw_outer(canvas, y, str(self.source.layout["header"]))
        canvas.setLineWidth(0.4)
        canvas.line(self.leftMargin, y - 5, self.pagesize[0] - self.rightMargin, y - 5)
        canvas.restoreState()
        self.draw_footer(canvas)

    def draw_footer(self, canvas: Canvas) -> None:
        canvas.saveState()
        canvas.setFont(self.face[0], 8)
        canvas.drawCentredString(self.pagesize[0] / 2, 28, str(self.source.layout["footer"]))
        self.draw_outer(canvas, 28, page_label(self.page, self.source.front_pages))
        canvas.restoreState()

    def draw_outer(self, canvas: Canvas, y: float, words: str) -> None:
        """On the edge away from the fold: right on odd pages, left on even ones."""
        if self.page % 2:
            canvas.drawRightString(self.pagesize[0] - self.rightMargin, y, words)
        else:
            canvas.drawString(self.leftMargin, y, words)


def make_pdf(source: Source) -> bytes:
    """The PDF's bytes. Set twice, so that the table of contents knows its page numbers."""
    breaks = hyphenation()
    pages: dict[str, int] = {}
    for _ in range(3):
        target = io.BytesIO()
        manual = Manual(target, source)
        setter = Typesetter(source, breaks, pages)
        manual.build(setter.story(manual.column_width()))
        pages = setter.found
    return target.getvalue()


def make_all() -> dict[Path, bytes]:
    """Every file this script answers for, with its bytes."""
    made: dict[Path, bytes] = {}
    for path in sorted(SOURCES.glob("*.md")):
        source = read_source(path)
        name = str(source.document["id"])
        metadata = yaml.safe_dump(source.document, sort_keys=False, allow_unicode=True)
        made[DOCUMENTS / f"{name}.pdf"] = make_pdf(source)
        made[DOCUMENTS / f"{name}.pdf.yaml"] = metadata.encode()
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description="Make documents/*.pdf from tools/pdfs/*.md.")
    parser.add_argument("--check", action="store_true", help="write nothing, compare only")
    check = parser.parse_args().check
    stale = []
    for path, data in make_all().items():
        if not path.is_file() or path.read_bytes() != data:
            stale.append(path.name)
            if not check:
                path.write_bytes(data)
    print(("differs: " if check else "written: ") + (", ".join(stale) or "nothing"))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
