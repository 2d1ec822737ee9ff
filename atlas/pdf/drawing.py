"""The operators of a page's content -> pieces of text, rules and areas.

In:  operators as pypdf parses them, and the resources that they name.
Out: `Drawing.shown`, `.paths.rules`, `.paths.areas`, in the coordinates of the page.
Refused: more steps than `STEPS_PER_PAGE` (`OverLimit`). An operator that cannot be followed is
skipped, and content that breaks off is followed as far as it goes (`Drawing.damage` says so).

The operators are followed here and not by pypdf's `extract_text`, whose visitors tell where a
text begins but neither where it ends nor in which font and color it is shown; without these there
are no columns, no table cells and no hidden text.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pypdf.errors import LimitReachedError
from pypdf.generic import DictionaryObject

from atlas.pdf.content import OverLimit, color_of, dictionary, opaque, operations_of
from atlas.pdf.fonts import FontCache, Glyphs
from atlas.pdf.paths import Paths
from atlas.pdf.shapes import (
    BLACK,
    IDENTITY,
    Box,
    Color,
    Matrix,
    Piece,
    apply,
    common,
    direction,
    finite,
    matrix_of,
    multiply,
    transformed,
)
from atlas.pdf.state import State

STEPS_PER_PAGE = 300_000
"""Operators and operands that one page may cost, its forms included."""

_FORM_DEPTH = 12
_MOST_SAVED = 1_000
_CUT_OUT = 7
"""The text mode of which only what is painted through the letters is seen."""
_MOST_CUT_OUT = 1_000
"""Texts of that mode that are remembered."""
LAYER_OFF = "in a layer that is switched off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A piece as it was drawn: where it ends, which way it runs, when and in which color."""

    piece: Piece
    end: tuple[float, float]
    direction: int
    order: int
    color: Color | None


class Drawing:
    """Follows operators and collects what they show."""

    def __init__(
        self,
        base: Matrix,
        clip: Box,
        fonts: FontCache,
        is_off: Callable[[DictionaryObject], bool] = lambda layer: False,
    ) -> None:
        self.shown: list[Shown] = []
        self.paths = Paths()
        self.unreadable = 0
        self.damage = ""
        self._fonts = fonts
        self._is_off = is_off
        """Whether the file switches off what belongs to this layer."""
        self._times_off = 0
        """How many forms, pictures and marks that are open switch off what is drawn."""
        self._order = 0
        self._steps = 0
        self._state = State(matrix=base, clip=clip)
        self._saved: list[State] = []
        self._resources = DictionaryObject()
        self._forms: list[int] = []
        self._parsed: dict[int, tuple[Any, list[tuple[Any, bytes]]]] = {}
        self._marks: list[bool] = []
        self._marks_off: list[bool] = []
        self._cut_out: list[int] = []
        self._clipping = False
        self._text = self._line = IDENTITY
        """The text matrix, and the one at the start of the line."""
        self._actions: dict[bytes, Callable[[Any], None]] = {
            b"q": self._save, b"Q": self._restore, b"cm": self._transform, b"gs": self._look,
            b"m": self._move, b"l": self._draw_line, b"c": self._curve, b"v": self._curve,
            b"y": self._curve, b"re": self._rectangle, b"h": self._close, b"W": self._clip,
            b"W*": self._clip, b"n": self._end_path, b"S": self._paint_edges,
            b"s": self._paint_edges, b"f": self._paint_inside, b"F": self._paint_inside,
            b"f*": self._paint_inside, b"B": self._paint_both, b"B*": self._paint_both,
            b"b": self._paint_both, b"b*": self._paint_both, b"sh": self._shade,
            b"g": self._fill_color, b"rg": self._fill_color, b"k": self._fill_color,
            b"sc": self._fill_color, b"scn": self._fill_color, b"cs": self._fill_space,
            b"G": self._stroke_color, b"RG": self._stroke_color, b"K": self._stroke_color,
            b"SC": self._stroke_color, b"SCN": self._stroke_color, b"BT": self._begin_text,
            b"ET": self._end_text,
            b"Tf": self._font, b"Td": self._step, b"TD": self._step_leading, b"Tm": self._place,
            b"T*": self._new_line, b"Tj": self._show, b"TJ": self._show_spaced,
            b"'": self._show_line, b'"': self._show_line_spaced, b"Tc": self._set("spacing"),
            b"Tw": self._set("word_spacing"), b"Tz": self._set("stretch", 0.01),
            b"TL": self._set("leading"), b"Ts": self._set("rise"), b"Tr": self._text_mode,
            b"Do": self._do, b"INLINE IMAGE": self._inline_picture, b"BMC": self._begin_mark,
            b"BDC": self._begin_mark, b"EMC": self._end_mark,
        }  # fmt: skip

    def run(self, operations: Iterable[tuple[Any, bytes]], resources: DictionaryObject) -> None:
        """Follow operators; what they save and do not restore is undone at the end."""
        outer, self._resources = self._resources, resources
        floor = len(self._saved)
        for operands, operator in operations:
            self._steps += 1 + len(operands)
            if self._steps > STEPS_PER_PAGE:
                raise OverLimit
            action = self._actions.get(operator)
            if action is None or (operator == b"Q" and len(self._saved) <= floor):
                continue
            try:
                action(operands)
            except (OverLimit, MemoryError):
                raise
            except LimitReachedError as error:
                raise OverLimit from error
            except Exception:
                # Whatever a hostile or damaged operator holds, it costs no more than itself.
                self.damage = "an operator could not be followed"
        if len(self._saved) > floor:
            self._state = self._saved[floor]
            del self._saved[floor:]
        self._resources = outer

    # ---- state --------------------------------------------------------------------------

    def _save(self, operands: Any) -> None:
        if len(self._saved) >= _MOST_SAVED:
            raise OverLimit
        self._saved.append(copy.copy(self._state))

    def _restore(self, operands: Any) -> None:
        self._state = self._saved.pop()

    def _transform(self, operands: Any) -> None:
        self._state.matrix = multiply(matrix_of(operands), self._state.matrix)

    def _look(self, operands: Any) -> None:
        looks = dictionary(self._resources.get("/ExtGState"))
        look: Any = dictionary(looks.get(operands[0]))
        if "/ca" in look:
            self._state.alpha = float(look["/ca"])
        if "/BM" in look:
            mode = look["/BM"].get_object()
            first = mode[0] if isinstance(mode, list) else mode
            self._state.blended = first not in ("/Normal", "/Compatible")
        if "/SMask" in look:
            self._state.masked = look["/SMask"] != "/None"
        if "/Font" in look:
            font = look["/Font"]
            self._state.font = self._fonts.get(font[0].get_object())
            self._state.size = finite(font[1])

    def _set(self, name: str, factor: float = 1.0) -> Callable[[Any], None]:
        def action(operands: Any) -> None:
            setattr(self._state, name, finite(operands[0]) * factor)

        return action

    def _text_mode(self, operands: Any) -> None:
        self._state.mode = int(operands[0])

    def _fill_color(self, operands: Any) -> None:
        self._state.fill = color_of(operands, self._state.fill_inks)

    def _stroke_color(self, operands: Any) -> None:
        self._state.stroke = color_of(operands, inks=False)

    def _fill_space(self, operands: Any) -> None:
        spaces = dictionary(self._resources.get("/ColorSpace"))
        space = spaces.get(operands[0], operands[0]).get_object()
        kind = str(space[0] if isinstance(space, list) else space)
        self._state.fill_inks = kind in ("/Separation", "/DeviceN")
        self._state.fill = None if kind in ("/Pattern", "/Indexed", "/Lab") else BLACK

    # ---- paths and pictures -------------------------------------------------------------

    def _move(self, operands: Any) -> None:
        self.paths.move(self._state.matrix, operands)

    def _draw_line(self, operands: Any) -> None:
        self.paths.line(self._state.matrix, operands)

    def _curve(self, operands: Any) -> None:
        self.paths.curve(self._state.matrix, operands)

    def _close(self, operands: Any) -> None:
        self.paths.close()

    def _rectangle(self, operands: Any) -> None:
        self.paths.rectangle(self._state.matrix, operands)

    def _clip(self, operands: Any) -> None:
        self._clipping = True

    def _end_path(self, operands: Any) -> None:
        if self._clipping:
            self._state.ragged = self._state.ragged or not self.paths.boxed
            self._state.clip = self.paths.clipped(self._state.clip)
        self._clipping = False
        self.paths.end()

    def _paint_edges(self, operands: Any) -> None:
        if not self._off:
            self.paths.stroke(self._state.clip)
        self._end_path(operands)

    def _paint_inside(self, operands: Any) -> None:
        self._order += 1
        color = self._state.fill if self._state.solid else None
        if self._shows(self.paths.box, color) and self._state.alpha >= 0.05:
            self.paths.fill(self._state.clip, color, self._order)
        self._end_path(operands)

    def _paint_both(self, operands: Any) -> None:
        if not self._off:
            self.paths.stroke(self._state.clip)
        self._paint_inside(operands)

    def _shade(self, operands: Any) -> None:
        self._order += 1
        if self._shows(self._state.clip, None):
            self.paths.cover(self._state.clip, None, self._order)

    def _inline_picture(self, operands: Any) -> None:
        self._picture(opaque(operands["settings"]))

    def _picture(self, opaque: bool) -> None:
        state = self._state
        self._order += 1
        if self._shows(transformed(state.matrix, (0.0, 0.0, 1.0, 1.0)), None):
            opaque = opaque and state.solid and not state.ragged
            self.paths.picture(state.matrix, state.clip, self._order, opaque)

    def _shows(self, box: Box | None, color: Color | None) -> bool:
        """Whether an area is seen as such; where letters are cut out of it, only they are seen."""
        if self._off or not self._state.through:
            return not self._off
        self._paint_through(box, color)
        return False

    def _paint_through(self, box: Box | None, color: Color | None, words: str = "") -> None:
        """Letters that were cut out are seen where an area, or the same words, fill them."""
        self._steps += len(self._state.through) // 8
        for at in self._state.through:
            item = self.shown[at]
            piece, (x1, y1) = item.piece, item.end
            x, y = (piece.x0 + x1) / 2, (piece.y + y1) / 2
            inside = box is not None and box[0] <= x <= box[2] and box[1] <= y + 1 <= box[3]
            filled = inside and self._state.alpha >= 0.05 and (not words or piece.text in words)
            if filled and piece.hidden == "invisible":
                self.shown[at] = replace(
                    item, piece=replace(piece, hidden=""), color=color, order=self._order
                )

    # ---- forms and marks ----------------------------------------------------------------

    def _do(self, operands: Any) -> None:
        form = dictionary(dictionary(self._resources.get("/XObject")).get(operands[0]))
        off = self._layer_off(form.get("/OC"))
        self._times_off += off
        try:
            if form.get("/Subtype") == "/Image":
                self._picture(opaque(form))
            elif form and id(form) not in self._forms and len(self._forms) < _FORM_DEPTH:
                self._form(form)
        finally:
            self._times_off -= off

    def _form(self, form: Any) -> None:
        """A form is content of its own, drawn in its own space."""
        if id(form) not in self._parsed:
            operations, damage = operations_of(form, None)
            self.damage = self.damage or damage
            self._parsed[id(form)] = (form, operations)
        outer, texts = copy.copy(self._state), (self._text, self._line)
        self._forms.append(id(form))
        try:
            self._state.veiled = not self._state.solid
            if "/Matrix" in form:
                self._transform(form["/Matrix"])
            if "/BBox" in form:
                x0, y0, x1, y1 = (finite(value) for value in form["/BBox"])
                box = transformed(self._state.matrix, (x0, y0, x1, y1))
                self._state.clip = common(self._state.clip, box)
            resources = dictionary(form.get("/Resources")) or self._resources
            self.run(self._parsed[id(form)][1], resources)
        finally:
            self._forms.pop()
            self._state = outer
            self._text, self._line = texts

    def _begin_mark(self, operands: Any) -> None:
        """Marked content: tagged files mark their running headers and footers."""
        margin = off = False
        if len(operands) > 1 and operands[0] in ("/Artifact", "/OC"):
            properties = operands[1]
            if isinstance(properties, str):
                properties = dictionary(self._resources.get("/Properties")).get(properties)
            if operands[0] == "/OC":
                off = self._layer_off(properties)
            else:
                margin = dictionary(properties).get("/Type") == "/Pagination"
        self._marks.append(margin)
        self._marks_off.append(off)
        self._times_off += off

    def _end_mark(self, operands: Any) -> None:
        if self._marks:
            self._marks.pop()
            self._times_off -= self._marks_off.pop()

    def _layer_off(self, layer: Any) -> bool:
        return bool(layer) and self._is_off(dictionary(layer))

    @property
    def _off(self) -> bool:
        """Whether what is drawn now belongs to a layer that is switched off."""
        return self._times_off > 0

    # ---- text ---------------------------------------------------------------------------

    def _begin_text(self, operands: Any) -> None:
        self._text = self._line = IDENTITY

    def _end_text(self, operands: Any) -> None:
        self._state.through = (*self._state.through, *self._cut_out)[-_MOST_CUT_OUT:]
        self._cut_out.clear()

    def _font(self, operands: Any) -> None:
        self._state.font = None
        self._state.size = finite(operands[1])
        resource = dictionary(dictionary(self._resources.get("/Font")).get(operands[0]))
        if resource:
            self._state.font = self._fonts.get(resource)

    def _step(self, operands: Any) -> None:
        step = (1.0, 0.0, 0.0, 1.0, finite(operands[0]), finite(operands[1]))
        self._text = self._line = multiply(step, self._line)

    def _step_leading(self, operands: Any) -> None:
        self._state.leading = -finite(operands[1])
        self._step(operands)

    def _place(self, operands: Any) -> None:
        self._text = self._line = matrix_of(operands)

    def _new_line(self, operands: Any) -> None:
        self._step((0.0, -self._state.leading))

    def _show(self, operands: Any) -> None:
        self._show_parts(operands[:1])

    def _show_spaced(self, operands: Any) -> None:
        self._steps += len(operands[0])
        self._show_parts(operands[0])

    def _show_line(self, operands: Any) -> None:
        self._new_line(operands)
        self._show_parts(operands[:1])

    def _show_line_spaced(self, operands: Any) -> None:
        self._state.word_spacing, self._state.spacing = finite(operands[0]), finite(operands[1])
        self._show_line(operands[2:])

    def _show_parts(self, parts: Sequence[Any]) -> None:
        """Show strings; numbers between them move the pen back, in thousandths of the size."""
        state, font = self._state, self._state.font
        if font is None:
            return
        self._order += 1
        across = state.size * state.stretch
        em = abs(across) * font.tall
        # Letters set apart on purpose are still one word.
        apart = min(max(0.0, state.spacing * state.stretch), 0.6 * em)
        pen = start = end = 0.0
        words: list[str] = []
        spaced = False
        for part in parts:
            if not isinstance(part, (bytes, str)):
                pen -= finite(part) / 1000 * across
                continue
            data = part if isinstance(part, bytes) else part.encode("latin-1", "replace")
            self._steps += len(data) // 8
            for text, width, is_space in font.letters(data):
                glyph_end = pen + width * across
                self.unreadable += not text
                if text and not text.isspace():
                    gap = pen - end - apart
                    if words and (gap > em or gap < -0.5 * em):
                        self._add_piece("".join(words), start, end, font)
                        words = []
                    elif words and (spaced or gap > 0.5 * font.space * em):
                        words.append(" ")
                    if not words:
                        start = pen
                    words.append(text)
                    end, spaced = glyph_end, False
                elif text:
                    spaced = True
                pen = glyph_end + state.spacing * state.stretch
                pen += state.word_spacing * state.stretch if is_space else 0.0
        if words:
            # The space after a letter belongs to it, as it does inside the string.
            self._add_piece("".join(words), start, end + apart, font, spaced)
        self._text = multiply((1.0, 0.0, 0.0, 1.0, pen, 0.0), self._text)

    def _add_piece(
        self, text: str, start: float, end: float, font: Glyphs, spaced: bool = False
    ) -> None:
        state = self._state
        matrix = multiply(self._text, state.matrix)
        x0, y0 = apply(matrix, start, state.rise)
        x1, y1 = apply(matrix, end, state.rise)
        upright = math.hypot(matrix[2], matrix[3])
        size = abs(state.size) * font.tall * upright
        if not all(abs(value) < 1e6 for value in (x0, y0, x1, y1, size)):
            return
        surface = abs(matrix[0] * matrix[3] - matrix[1] * matrix[2])
        stretched = abs(state.size * state.stretch) * font.tall * surface
        across = stretched / upright if upright else 0.0
        hidden = state.hides((x0 + x1) / 2, (y0 + y1) / 2, size, across)
        piece = Piece(
            text=text, x0=x0, x1=x1, y=y0, size=max(size, 0.1), font=font.name, spaced=spaced,
            bold=font.bold or state.mode == 2, fixed=font.fixed, guessed=font.guessed,
            hidden=LAYER_OFF if self._off else hidden,
            margin=any(self._marks),
        )  # fmt: skip
        if state.through and not piece.hidden:
            box = (min(x0, x1), min(y0, y1) - size, max(x0, x1), max(y0, y1) + size)
            self._paint_through(box, state.fill, text)
        if state.mode == _CUT_OUT:
            self._cut_out.append(len(self.shown))
        self.shown.append(
            Shown(
                piece=piece,
                end=(x1, y1),
                direction=direction(x1 - x0, y1 - y0),
                order=self._order,
                color=state.stroke if state.mode == 1 else state.fill,
            )
        )
