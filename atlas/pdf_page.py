"""One PDF page -> what stands on it: pieces of text, ruled lines and filled areas, with places.

In:  a page of pypdf's reader, and the cache of fonts of its document.
Out: a `Page`, its coordinates in points from the bottom left corner of the page as it is shown:
     /Rotate is applied, and a page whose text mostly runs up or down is turned upright.
Refused: more steps than `STEPS_PER_PAGE` (OverLimit). A damaged operator is skipped, and content
that breaks off is read as far as it goes (`Page.damage` says so).

pypdf parses the content and decodes the fonts. The drawing operators are followed here and not by
`extract_text`, whose visitors tell where a text begins but neither where it ends nor in which font
or color it is; without these there are no columns, no table cells and no hidden text.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pypdf import PageObject
from pypdf.errors import LimitReachedError
from pypdf.generic import ContentStream, DictionaryObject, IndirectObject
from pypdf.generic._font import Font

STEPS_PER_PAGE = 300_000
"""Operators and operands that one page may cost, its forms included."""

_FORM_DEPTH = 12
_MOST_AREAS = 2_000
"""Filled areas that are remembered for the question what lies under a text."""
_THIN = 2.5
"""A filled area no thicker than this, in points, is a line."""
_TINY = 2.0

Matrix = tuple[float, float, float, float, float, float]
Color = tuple[float, float, float]
Box = tuple[float, float, float, float]
"""x0, y0, x1, y1."""
_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_WHITE: Color = (1.0, 1.0, 1.0)
_BLACK: Color = (0.0, 0.0, 0.0)
_SLANTED = -1
_BULLETS = ("\x7f", "\x81", "\x8d", "\x8f", "\x90", "\x9d")
"""Codes that WinAnsiEncoding leaves free, and that show a bullet by its rules."""


class OverLimit(Exception):
    """The page costs more work than a page may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Text shown in one go, without a wide gap inside."""

    text: str
    x0: float
    x1: float
    y: float
    """The base line."""
    size: float
    font: str
    bold: bool
    fixed: bool
    """Whether all letters are equally wide."""
    hidden: str = ""
    """Why a reader of the page does not see it, or ""."""
    margin: bool = False
    """Whether the file itself marks it as a running header or footer."""
    slanted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A straight line, drawn or filled, along one axis."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def horizontal(self) -> bool:
        return self.x1 - self.x0 >= self.y1 - self.y0


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A filled rectangle or a picture. `color` is None where it is not one known color."""

    x0: float
    y0: float
    x1: float
    y1: float
    color: Color | None
    order: int
    picture: bool = False

    def covers(self, x: float, y: float) -> bool:
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What stands on a page. `aside` is text that runs in another direction than the rest."""

    width: float
    height: float
    pieces: tuple[Piece, ...] = ()
    aside: tuple[tuple[Piece, ...], ...] = ()
    rules: tuple[Rule, ...] = ()
    areas: tuple[Area, ...] = ()
    placed: Matrix = _IDENTITY
    """From the coordinates of the file to those of the page as it is shown here."""
    unreadable: int = 0
    """Letters in fonts that do not say which letters they are."""
    damage: str = ""

    def place(self, x: float, y: float) -> tuple[float, float]:
        return _apply(self.placed, x, y)

    @property
    def picture_share(self) -> float:
        """Share of the page that its largest picture fills, 0 to 1."""
        sizes = [(a.x1 - a.x0) * (a.y1 - a.y0) for a in self.areas if a.picture]
        return max(sizes, default=0.0) / max(1.0, self.width * self.height)


def read_page(page: PageObject, fonts: FontCache) -> Page:
    """Follow a page's operators. Raises `OverLimit`; other errors mean a page beyond reading."""
    box = [float(value) for value in page.cropbox]
    left, bottom = min(box[0], box[2]), min(box[1], box[3])
    width, height = abs(box[2] - box[0]), abs(box[3] - box[1])
    quarter = int(page.rotation or 0) // 90 % 4
    base = _multiply((1.0, 0.0, 0.0, 1.0, -left, -bottom), _turn_matrix(quarter, width, height))
    if quarter % 2:
        width, height = height, width
    drawing = _Drawing(base, (0.0, 0.0, width, height), fonts)
    damage = ""
    if "/Contents" in page:
        operations, damage = _operations(page["/Contents"], page.pdf)
        drawing.run(operations, _dictionary(page.get("/Resources")), depth=0)
    return _upright(drawing, width, height, base, damage or drawing.damage)


class FontCache:
    """The fonts of one document, decoded once each."""

    def __init__(self) -> None:
        self._fonts: dict[int, tuple[DictionaryObject, _Glyphs]] = {}

    def get(self, resource: DictionaryObject) -> _Glyphs:
        # The resource is kept beside its font so that its id is not given to another object.
        if id(resource) not in self._fonts:
            self._fonts[id(resource)] = (resource, _Glyphs(resource))
        return self._fonts[id(resource)][1]


class _Glyphs:
    """A font: bytes of a string -> letters and widths."""

    def __init__(self, resource: DictionaryObject) -> None:
        font = Font.from_font_resource(resource)
        self._font = font
        self._known: dict[str, tuple[str, float]] = {}
        self.name = font.name.rpartition("+")[2]
        lower = self.name.lower()
        descriptor = font.font_descriptor
        self.bold = any(word in lower for word in ("bold", "black", "heavy", "demi"))
        self.bold = self.bold or bool(_integer(descriptor.flags) & (1 << 18))
        self.fixed = bool(_integer(descriptor.flags) & 1) or any(
            word in lower for word in ("courier", "mono", "consolas", "typewriter")
        )
        # Numbers of glyphs are no letters: without a map nobody can tell which ones they are.
        unmapped = str(resource.get("/Encoding")).startswith("/Identity") and not font.character_map
        self.readable = font.interpretable and not unmapped
        self.em = 0.001
        self.tall = 1.0
        if font.sub_type == "Type3":
            matrix = [float(value) for value in resource.get("/FontMatrix", (0.001, 0, 0, 0.001))]
            bottom, top = font.font_descriptor.bbox[1], font.font_descriptor.bbox[3]
            self.em = abs(matrix[0]) or 0.001
            self.tall = abs(matrix[3] * (top - bottom)) or 1.0

    def letters(self, data: bytes) -> Iterator[tuple[str, float, bool]]:
        """Each glyph's text, its width in units of the font size, and if it is code 32."""
        encoding = self._font.encoding
        if isinstance(encoding, str):
            try:
                codes = data.decode(encoding, "surrogatepass")
            except UnicodeDecodeError:
                codes = data.decode(encoding, "replace")
            for code in codes:
                yield (*self._letter(code, code), False)
        else:
            for byte in data:
                code = chr(byte)
                yield (*self._letter(code, encoding.get(byte, code)), byte == 32)

    def _letter(self, code: str, name: str) -> tuple[str, float]:
        if code not in self._known:
            font = self._font
            text = str(font.character_map.get(name, name))
            if text in _BULLETS and isinstance(font.encoding, dict):
                text = "\u2022"
            if not self.readable or (len(text) > 1 and text.startswith("/")):
                text = ""  # pypdf passes on the name of a glyph that has no Unicode
            widths = font.character_widths
            width = widths.get(code, widths["default"])
            if code == font.space_char:
                width = font.space_width
            self._known[code] = (text, float(width) * self.em)
        return self._known[code]

    @property
    def space(self) -> float:
        return min(0.4, max(0.15, float(self._font.space_width) * self.em))


@dataclass(slots=True)
class _State:
    """The graphics state that q saves and Q restores."""

    matrix: Matrix
    clip: Box
    font: _Glyphs | None = None
    size: float = 12.0
    spacing: float = 0.0
    word_spacing: float = 0.0
    stretch: float = 1.0
    leading: float = 0.0
    rise: float = 0.0
    mode: int = 0
    fill: Color | None = _BLACK
    stroke: Color | None = _BLACK
    fill_inks: bool = False
    """Whether the fill color is given in inks, where 0 is the bare paper."""
    alpha: float = 1.0


@dataclass(slots=True)
class _Shown:
    """A piece before the page is turned upright and the hidden ones are told."""

    piece: Piece
    quarter: int
    order: int
    color: Color | None
    end: tuple[float, float]


@dataclass(slots=True)
class _Path:
    """One part of a path: its corners, and its straight edges."""

    corners: list[tuple[float, float]] = field(default_factory=list)
    edges: list[Box] = field(default_factory=list)

    def box(self) -> Box:
        xs, ys = zip(*self.corners, strict=True)
        return min(xs), min(ys), max(xs), max(ys)


class _Drawing:
    """Follows operators and collects what they show."""

    def __init__(self, base: Matrix, clip: Box, fonts: FontCache) -> None:
        self.fonts = fonts
        self.shown: list[_Shown] = []
        self.rules: list[Rule] = []
        self.areas: list[Area] = []
        self.unreadable = 0
        self.damage = ""
        self.order = 0
        self.steps = 0
        self.state = _State(matrix=base, clip=clip)
        self.stack: list[_State] = []
        self.resources = DictionaryObject()
        self.forms: list[int] = []
        self.parsed: dict[int, tuple[Any, list[tuple[Any, bytes]]]] = {}
        self.marks: list[bool] = []
        self.paths: list[_Path] = []
        self.clipping = False
        self.text_matrix = self.line_matrix = _IDENTITY
        self.actions: dict[bytes, Callable[[list[Any]], None]] = {
            b"q": self._save, b"Q": self._restore, b"cm": self._transform, b"gs": self._look,
            b"m": self._move, b"l": self._line, b"c": self._curve, b"v": self._curve,
            b"y": self._curve, b"re": self._rectangle, b"h": self._close,
            b"W": self._clip, b"W*": self._clip, b"n": self._end_path,
            b"S": self._paint_stroke, b"s": self._paint_stroke,
            b"f": self._paint_fill, b"F": self._paint_fill, b"f*": self._paint_fill,
            b"B": self._paint_both, b"B*": self._paint_both, b"b": self._paint_both,
            b"b*": self._paint_both, b"sh": self._shade,
            b"g": self._fill_color, b"rg": self._fill_color, b"k": self._fill_color,
            b"sc": self._fill_color, b"scn": self._fill_color, b"cs": self._fill_space,
            b"G": self._stroke_color, b"RG": self._stroke_color, b"K": self._stroke_color,
            b"SC": self._stroke_color, b"SCN": self._stroke_color,
            b"BT": self._begin_text, b"Tf": self._font, b"Td": self._next_line,
            b"TD": self._next_line_leading, b"Tm": self._text_matrix, b"T*": self._new_line,
            b"Tj": self._show, b"TJ": self._show_spaced, b"'": self._show_line,
            b'"': self._show_line_spaced, b"Tc": self._set("spacing"),
            b"Tw": self._set("word_spacing"), b"Tz": self._set("stretch", 0.01),
            b"TL": self._set("leading"), b"Ts": self._set("rise"), b"Tr": self._render_mode,
            b"Do": self._do, b"INLINE IMAGE": self._picture,
            b"BMC": self._begin_mark, b"BDC": self._begin_mark, b"EMC": self._end_mark,
        }  # fmt: skip

    def run(
        self, operations: list[tuple[Any, bytes]], resources: DictionaryObject, depth: int
    ) -> None:
        outer, self.resources = self.resources, resources
        floor = len(self.stack)
        for operands, operator in operations:
            self.steps += 1 + len(operands)
            if self.steps > STEPS_PER_PAGE:
                raise OverLimit
            action = self.actions.get(operator)
            if action is None or (operator == b"Q" and len(self.stack) <= floor):
                continue
            try:
                action(operands)
            except (OverLimit, MemoryError):
                raise
            except LimitReachedError as error:
                raise OverLimit from error
            except Exception:
                # Nothing that a hostile or damaged operator does may cost more than itself.
                self.damage = "an operator could not be followed"
        del self.stack[floor + 1 :]
        if len(self.stack) > floor:
            self.state = self.stack.pop()
        self.resources = outer

    # ---- state --------------------------------------------------------------------------

    def _save(self, operands: list[Any]) -> None:
        if len(self.stack) > 1_000:
            raise OverLimit
        self.stack.append(copy.copy(self.state))

    def _restore(self, operands: list[Any]) -> None:
        self.state = self.stack.pop()

    def _transform(self, operands: list[Any]) -> None:
        self.state.matrix = _multiply(_matrix(operands), self.state.matrix)

    def _look(self, operands: list[Any]) -> None:
        look: Any = _dictionary(_dictionary(self.resources.get("/ExtGState")).get(operands[0]))
        if "/ca" in look:
            self.state.alpha = float(look["/ca"])
        if "/Font" in look:
            font = look["/Font"]
            self.state.font = self.fonts.get(font[0].get_object())
            self.state.size = float(font[1])

    def _set(self, name: str, factor: float = 1.0) -> Callable[[list[Any]], None]:
        def action(operands: list[Any]) -> None:
            setattr(self.state, name, _finite(operands[0]) * factor)

        return action

    def _render_mode(self, operands: list[Any]) -> None:
        self.state.mode = int(operands[0])

    def _fill_color(self, operands: list[Any]) -> None:
        self.state.fill = _color(operands, self.state.fill_inks)

    def _fill_space(self, operands: list[Any]) -> None:
        space = _dictionary(self.resources.get("/ColorSpace")).get(operands[0], operands[0])
        space = space.get_object()
        kind = str(space[0] if isinstance(space, list) else space)
        self.state.fill_inks = kind in ("/Separation", "/DeviceN")
        self.state.fill = None if kind in ("/Pattern", "/Indexed", "/Lab") else _BLACK

    def _stroke_color(self, operands: list[Any]) -> None:
        self.state.stroke = _color(operands, inks=False)

    # ---- paths --------------------------------------------------------------------------

    def _move(self, operands: list[Any]) -> None:
        point = _apply(self.state.matrix, _finite(operands[0]), _finite(operands[1]))
        self.paths.append(_Path(corners=[point]))

    def _line(self, operands: list[Any]) -> None:
        point = _apply(self.state.matrix, _finite(operands[0]), _finite(operands[1]))
        path = self.paths[-1]
        path.edges.append((*path.corners[-1], *point))
        path.corners.append(point)

    def _curve(self, operands: list[Any]) -> None:
        point = _apply(self.state.matrix, _finite(operands[-2]), _finite(operands[-1]))
        self.paths[-1].corners.append(point)

    def _close(self, operands: list[Any]) -> None:
        path = self.paths[-1]
        path.edges.append((*path.corners[-1], *path.corners[0]))

    def _rectangle(self, operands: list[Any]) -> None:
        x, y, width, height = (_finite(value) for value in operands[:4])
        matrix = self.state.matrix
        corners = [
            _apply(matrix, x, y), _apply(matrix, x + width, y),
            _apply(matrix, x + width, y + height), _apply(matrix, x, y + height),
        ]  # fmt: skip
        ends = corners[1:] + corners[:1]
        edges = [(*start, *end) for start, end in zip(corners, ends, strict=True)]
        self.paths.append(_Path(corners=corners, edges=edges))

    def _clip(self, operands: list[Any]) -> None:
        self.clipping = True

    def _end_path(self, operands: list[Any]) -> None:
        if self.clipping and self.paths:
            boxes = [path.box() for path in self.paths]
            self.state.clip = _common(
                self.state.clip,
                (min(b[0] for b in boxes), min(b[1] for b in boxes),
                 max(b[2] for b in boxes), max(b[3] for b in boxes)),
            )  # fmt: skip
        self.clipping = False
        self.paths = []

    def _paint_stroke(self, operands: list[Any]) -> None:
        for path in self.paths:
            self._draw_edges(path)
        self._end_path(operands)

    def _paint_fill(self, operands: list[Any]) -> None:
        for path in self.paths:
            self._draw_inside(path)
        self._end_path(operands)

    def _paint_both(self, operands: list[Any]) -> None:
        for path in self.paths:
            self._draw_inside(path)
            self._draw_edges(path)
        self._end_path(operands)

    def _draw_edges(self, path: _Path) -> None:
        for x0, y0, x1, y1 in path.edges:
            if abs(x1 - x0) <= 1.0 or abs(y1 - y0) <= 1.0:
                self._add_rule((min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)))

    def _draw_inside(self, path: _Path) -> None:
        box = _common(path.box(), self.state.clip)
        if min(box[2] - box[0], box[3] - box[1]) <= _THIN:
            self._add_rule(box)
        elif self.state.alpha >= 0.95:
            self._add_area(box, self.state.fill)

    def _add_rule(self, box: Box) -> None:
        x0, y0, x1, y1 = _common(box, self.state.clip)
        if max(x1 - x0, y1 - y0) < 3.0 or x1 < x0 or y1 < y0:
            return
        if x1 - x0 >= y1 - y0:
            middle = (y0 + y1) / 2
            self.rules.append(Rule(x0=x0, y0=middle, x1=x1, y1=middle))
        else:
            middle = (x0 + x1) / 2
            self.rules.append(Rule(x0=middle, y0=y0, x1=middle, y1=y1))

    def _add_area(
        self,
        box: Box,
        color: Color | None,
        picture: bool = False,
    ) -> None:
        self.order += 1
        if len(self.areas) < _MOST_AREAS and box[0] < box[2] and box[1] < box[3]:
            x0, y0, x1, y1 = box
            area = Area(x0=x0, y0=y0, x1=x1, y1=y1, color=color, order=self.order, picture=picture)
            self.areas.append(area)

    def _shade(self, operands: list[Any]) -> None:
        self._add_area(self.state.clip, None)

    def _picture(self, operands: Any) -> None:
        corners = [_apply(self.state.matrix, x, y) for x in (0.0, 1.0) for y in (0.0, 1.0)]
        box = _Path(corners=corners).box()
        self._add_area(_common(box, self.state.clip), None, picture=True)

    # ---- forms and marks ----------------------------------------------------------------

    def _do(self, operands: list[Any]) -> None:
        form = _dictionary(self.resources.get("/XObject")).get(operands[0])
        form = form.get_object() if form is not None else None
        if not isinstance(form, DictionaryObject):
            return
        if form.get("/Subtype") == "/Image":
            self._picture(operands)
        elif id(form) not in self.forms and len(self.forms) < _FORM_DEPTH:
            self._form(form)

    def _form(self, form: Any) -> None:
        if id(form) not in self.parsed:
            operations, damage = _operations(form, None)
            self.damage = self.damage or damage
            self.parsed[id(form)] = (form, operations)
        resources = _dictionary(form.get("/Resources")) or self.resources
        outer, texts = copy.copy(self.state), (self.text_matrix, self.line_matrix)
        self.forms.append(id(form))
        try:
            if "/Matrix" in form:
                self._transform(list(form["/Matrix"]))
            if "/BBox" in form:
                x0, y0, x1, y1 = (_finite(value) for value in form["/BBox"])
                corners = [_apply(self.state.matrix, x, y) for x in (x0, x1) for y in (y0, y1)]
                self.state.clip = _common(self.state.clip, _Path(corners=corners).box())
            self.run(self.parsed[id(form)][1], resources, len(self.forms))
        finally:
            self.forms.pop()
            self.state = outer
            self.text_matrix, self.line_matrix = texts

    def _begin_mark(self, operands: list[Any]) -> None:
        margin = False
        if operands and operands[0] == "/Artifact" and len(operands) > 1:
            properties = operands[1]
            if isinstance(properties, str):
                properties = _dictionary(self.resources.get("/Properties")).get(properties)
            margin = _dictionary(properties).get("/Type") == "/Pagination"
        self.marks.append(margin)

    def _end_mark(self, operands: list[Any]) -> None:
        if self.marks:
            self.marks.pop()

    # ---- text ---------------------------------------------------------------------------

    def _begin_text(self, operands: list[Any]) -> None:
        self.text_matrix = self.line_matrix = _IDENTITY

    def _font(self, operands: list[Any]) -> None:
        self.state.font = None
        self.state.size = _finite(operands[1])
        resource = _dictionary(self.resources.get("/Font")).get(operands[0])
        if resource is not None:
            self.state.font = self.fonts.get(resource.get_object())

    def _next_line(self, operands: list[Any]) -> None:
        step = (1.0, 0.0, 0.0, 1.0, _finite(operands[0]), _finite(operands[1]))
        self.text_matrix = self.line_matrix = _multiply(step, self.line_matrix)

    def _next_line_leading(self, operands: list[Any]) -> None:
        self.state.leading = -_finite(operands[1])
        self._next_line(operands)

    def _text_matrix(self, operands: list[Any]) -> None:
        self.text_matrix = self.line_matrix = _matrix(operands)

    def _new_line(self, operands: list[Any]) -> None:
        self._next_line([0.0, -self.state.leading])

    def _show(self, operands: list[Any]) -> None:
        self._show_parts(operands[:1])

    def _show_spaced(self, operands: list[Any]) -> None:
        self.steps += len(operands[0])
        self._show_parts(operands[0])

    def _show_line(self, operands: list[Any]) -> None:
        self._new_line(operands)
        self._show_parts(operands[:1])

    def _show_line_spaced(self, operands: list[Any]) -> None:
        self.state.word_spacing, self.state.spacing = _finite(operands[0]), _finite(operands[1])
        self._show_line(operands[2:])

    def _show_parts(self, parts: Sequence[Any]) -> None:
        """Show strings; numbers between them move the pen, in thousandths, against the text."""
        state = self.state
        font = state.font
        if font is None:
            return
        self.order += 1
        em = abs(state.size * state.stretch)
        narrow, wide = font.space * 0.5 * em, 1.0 * em
        pen = start = end = 0.0
        words: list[str] = []
        spaced = False
        for part in parts:
            if not isinstance(part, (bytes, str)):
                pen -= _finite(part) / 1000 * state.size * state.stretch
                continue
            data = part if isinstance(part, bytes) else part.encode("latin-1", "replace")
            self.steps += len(data) // 8
            for text, width, is_space in font.letters(data):
                glyph_end = pen + width * state.size * state.stretch
                if text.strip():
                    gap = pen - end
                    if words and (gap > wide or gap < -0.5 * em):
                        self._add_piece("".join(words), start, end, font)
                        words = []
                    elif words and (spaced or gap > narrow):
                        words.append(" ")
                    if not words:
                        start = pen
                    words.append(text)
                    end, spaced = glyph_end, False
                else:
                    spaced = spaced or bool(text)
                    self.unreadable += not text
                pen = glyph_end + state.spacing * state.stretch
                pen += state.word_spacing * state.stretch if is_space else 0.0
        if words:
            self._add_piece("".join(words), start, end, font)
        self.text_matrix = _multiply((1.0, 0.0, 0.0, 1.0, pen, 0.0), self.text_matrix)

    def _add_piece(self, text: str, start: float, end: float, font: _Glyphs) -> None:
        state = self.state
        matrix = _multiply(self.text_matrix, state.matrix)
        x0, y0 = _apply(matrix, start, state.rise)
        x1, y1 = _apply(matrix, end, state.rise)
        size = abs(state.size) * font.tall * math.hypot(matrix[2], matrix[3])
        if not all(abs(value) < 1e6 for value in (x0, y0, x1, y1, size)):
            return
        quarter = _quarter(x1 - x0, y1 - y0)
        hidden = ""
        middle_x, middle_y = (x0 + x1) / 2, (y0 + y1) / 2
        clip = state.clip
        if state.mode == 3 or state.alpha < 0.05:
            hidden = "invisible"
        elif size < _TINY:
            hidden = "tiny"
        elif not (
            clip[0] - 2 <= middle_x <= clip[2] + 2 and clip[1] - size <= middle_y <= clip[3] + 2
        ):
            hidden = "off the page"
        piece = Piece(
            text=text, x0=x0, x1=x1, y=y0, size=max(size, 0.1), font=font.name,
            bold=font.bold or state.mode == 2, fixed=font.fixed, hidden=hidden,
            margin=any(self.marks), slanted=quarter == _SLANTED,
        )  # fmt: skip
        color = state.stroke if state.mode == 1 else state.fill
        self.shown.append(
            _Shown(piece=piece, quarter=quarter, order=self.order, color=color, end=(x1, y1))
        )


# ---- the page as a whole --------------------------------------------------------------------


def _upright(drawing: _Drawing, width: float, height: float, base: Matrix, damage: str) -> Page:
    """Turn the page so that most of its text runs from left to right."""
    _tell_unseen(drawing.shown, drawing.areas)
    letters: Counter[int] = Counter()
    for shown in drawing.shown:
        letters[shown.quarter] += len(shown.piece.text)
    letters.pop(_SLANTED, None)
    main = letters.most_common(1)[0][0] if letters else 0
    turn = _turn_matrix(main, width, height)
    by_direction: dict[int, list[Piece]] = {}
    for shown in drawing.shown:
        own = turn if shown.quarter == _SLANTED else _turn_matrix(shown.quarter, width, height)
        x0, y = _apply(own, shown.piece.x0, shown.piece.y)
        x1, _ = _apply(own, *shown.end)
        piece = replace(shown.piece, x0=min(x0, x1), x1=max(x0, x1), y=y)
        by_direction.setdefault(shown.quarter, []).append(piece)
    if main % 2:
        width, height = height, width
    pieces = by_direction.pop(main, [])
    rules = [Rule(x0=a, y0=b, x1=c, y1=d) for a, b, c, d in _turned(drawing.rules, turn)]
    boxes = _turned(drawing.areas, turn)
    areas = [
        replace(area, x0=a, y0=b, x1=c, y1=d)
        for area, (a, b, c, d) in zip(drawing.areas, boxes, strict=True)
    ]
    return Page(
        width=width,
        height=height,
        pieces=tuple(pieces),
        aside=tuple(tuple(group) for _, group in sorted(by_direction.items())),
        rules=tuple(rules),
        areas=tuple(areas),
        placed=_multiply(base, turn),
        unreadable=drawing.unreadable,
        damage=damage,
    )


def _tell_unseen(shown: list[_Shown], areas: list[Area]) -> None:
    """Mark text in the color of what lies under it, and text that something was painted over."""
    colors = {area.color for area in areas if area.color is not None} | {_WHITE}
    plain = [area for area in areas if area.color is not None][-500:]
    orders = [area.order for area in plain]
    for item in shown:
        piece = item.piece
        if piece.hidden:
            continue
        x, y = (piece.x0 + item.end[0]) / 2, (piece.y + item.end[1]) / 2 + piece.size * 0.2
        reason = ""
        if item.color is not None and any(_same(item.color, color) for color in colors):
            under = [area for area in areas if area.order < item.order and area.covers(x, y)]
            ground = under[-1].color if under else _WHITE
            if ground is not None and _same(ground, item.color):
                reason = "white" if _same(ground, _WHITE) else "in the color of its ground"
        later = plain[bisect_right(orders, item.order) :]
        if any(area.covers(x, y) and _hides(area, item) for area in later):
            reason = "painted over"
        if reason:
            item.piece = replace(piece, hidden=reason)


def _hides(area: Area, item: _Shown) -> bool:
    piece, (x1, y1) = item.piece, item.end
    return area.covers(piece.x0 + 1, piece.y + 1) and area.covers(x1 - 1, y1 + 1)


def _same(first: Color, second: Color) -> bool:
    return all(abs(a - b) <= 0.04 for a, b in zip(first, second, strict=True))


def _operations(contents: Any, reader: Any) -> tuple[list[tuple[Any, bytes]], str]:
    """Parse content. What stands before a damaged place is kept, and the damage told."""
    try:
        stream = ContentStream(contents, reader, "bytes")
    except LimitReachedError as error:
        raise OverLimit from error
    try:
        return stream.operations, ""
    except LimitReachedError as error:
        raise OverLimit from error
    except MemoryError:
        raise
    except Exception as error:
        # pypdf keeps what it has parsed, and only an empty list is parsed again.
        try:
            return stream.operations, f"its content breaks off ({type(error).__name__})"
        except Exception:
            return [], f"its content is damaged ({type(error).__name__})"


# ---- numbers --------------------------------------------------------------------------------


def _finite(value: Any) -> float:
    number = float(value)
    if not abs(number) < 1e9:
        raise ValueError("number out of range")
    return number


def _integer(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _matrix(operands: Sequence[Any]) -> Matrix:
    a, b, c, d, e, f = (_finite(value) for value in operands[:6])
    return a, b, c, d, e, f


def _multiply(first: Matrix, second: Matrix) -> Matrix:
    a, b, c, d, e, f = first
    g, h, i, j, k, m = second
    return (
        a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j,
        e * g + f * i + k, e * h + f * j + m,
    )  # fmt: skip


def _apply(matrix: Matrix, x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f


def _turn_matrix(quarter: int, width: float, height: float) -> Matrix:
    """Turn a page of this size clockwise by quarters, its corner back at the origin."""
    if quarter == 1:
        return 0.0, -1.0, 1.0, 0.0, 0.0, width
    if quarter == 2:
        return -1.0, 0.0, 0.0, -1.0, width, height
    if quarter == 3:
        return 0.0, 1.0, -1.0, 0.0, height, 0.0
    return _IDENTITY


def _quarter(dx: float, dy: float) -> int:
    """The direction of a text: how many quarters it is turned against the clock."""
    turns = math.atan2(dy, dx) / (math.pi / 2)
    nearest = round(turns)
    return nearest % 4 if abs(turns - nearest) < 0.1 else _SLANTED


def _turned(boxes: Iterable[Rule | Area], turn: Matrix) -> list[Box]:
    turned = []
    for box in boxes:
        ax, ay = _apply(turn, box.x0, box.y0)
        bx, by = _apply(turn, box.x1, box.y1)
        turned.append((min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)))
    return turned


def _common(first: Box, second: Box) -> Box:
    return (
        max(first[0], second[0]), max(first[1], second[1]),
        min(first[2], second[2]), min(first[3], second[3]),
    )  # fmt: skip


def _color(operands: list[Any], inks: bool) -> Color | None:
    try:
        values = [min(1.0, max(0.0, float(value))) for value in operands]
    except (TypeError, ValueError):
        return None  # a pattern
    if inks:
        return _WHITE if not any(values) else None
    if len(values) == 1:
        return values[0], values[0], values[0]
    if len(values) == 3:
        return values[0], values[1], values[2]
    if len(values) == 4:
        red, green, blue = ((1 - value) * (1 - values[3]) for value in values[:3])
        return red, green, blue
    return None


def _dictionary(value: Any) -> DictionaryObject:
    if isinstance(value, IndirectObject):
        value = value.get_object()
    return value if isinstance(value, DictionaryObject) else DictionaryObject()
