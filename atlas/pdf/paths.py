"""Paths of a page -> ruled lines and filled areas.

In:  path operators with the matrix and the clip that hold for them.
Out: rules (lines along an axis, thin fillings) and areas (all other fillings, pictures).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from atlas.pdf.shapes import (
    Area,
    Box,
    Color,
    Matrix,
    Rule,
    apply,
    box_around,
    common,
    finite,
    transformed,
    upright,
)

_MOST_AREAS = 2_000
"""Areas that are remembered for the question what lies under a text."""
_THIN = 2.5
"""A filling no thicker than this is a line."""
_SHORT = 3.0
"""A line no longer than this is a dot."""


@dataclass(slots=True)
class _Part:
    """One part of a path: its corners, and its straight edges."""

    corners: list[tuple[float, float]] = field(default_factory=list)
    edges: list[Box] = field(default_factory=list)


class Paths:
    """Builds the current path and keeps what was painted."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.areas: list[Area] = []
        self._parts: list[_Part] = []

    # ---- building -----------------------------------------------------------------------

    def move(self, matrix: Matrix, operands: Sequence[Any]) -> None:
        point = apply(matrix, finite(operands[0]), finite(operands[1]))
        self._parts.append(_Part(corners=[point]))

    def line(self, matrix: Matrix, operands: Sequence[Any]) -> None:
        point = apply(matrix, finite(operands[0]), finite(operands[1]))
        part = self._parts[-1]
        part.edges.append((*part.corners[-1], *point))
        part.corners.append(point)

    def curve(self, matrix: Matrix, operands: Sequence[Any]) -> None:
        """A curve counts by where it ends; it is never a ruled line."""
        point = apply(matrix, finite(operands[-2]), finite(operands[-1]))
        self._parts[-1].corners.append(point)

    def close(self) -> None:
        part = self._parts[-1]
        part.edges.append((*part.corners[-1], *part.corners[0]))

    def rectangle(self, matrix: Matrix, operands: Sequence[Any]) -> None:
        x, y, width, height = (finite(value) for value in operands[:4])
        outline = ((x, y), (x + width, y), (x + width, y + height), (x, y + height))
        corners = [apply(matrix, *corner) for corner in outline]
        ends = corners[1:] + corners[:1]
        edges = [(*start, *end) for start, end in zip(corners, ends, strict=True)]
        self._parts.append(_Part(corners=corners, edges=edges))

    # ---- painting -----------------------------------------------------------------------

    def clipped(self, clip: Box) -> Box:
        """The clip after the current path was added to it."""
        box = self.box
        return common(clip, box) if box else clip

    @property
    def box(self) -> Box | None:
        """The box around the current path."""
        corners = [corner for part in self._parts for corner in part.corners]
        return box_around(corners) if corners else None

    @property
    def boxed(self) -> bool:
        """Whether the current path is one rectangle along the edges of the page."""
        if len(self._parts) != 1:
            return False
        corners = self._parts[0].corners
        x0, y0, x1, y1 = box_around(corners)
        at_corner = all(min(x - x0, x1 - x) < 0.5 and min(y - y0, y1 - y) < 0.5 for x, y in corners)
        return at_corner and 4 <= len(corners) <= 5

    def stroke(self, clip: Box) -> None:
        for part in self._parts:
            for x0, y0, x1, y1 in part.edges:
                if abs(x1 - x0) <= 1.0 or abs(y1 - y0) <= 1.0:
                    self._add_rule((min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)), clip)

    def fill(self, clip: Box, color: Color | None, order: int) -> None:
        for part in self._parts:
            box = common(box_around(part.corners), clip)
            if min(box[2] - box[0], box[3] - box[1]) <= _THIN:
                self._add_rule(box, clip)
            else:
                self.cover(box, color, order)

    def end(self) -> None:
        self._parts = []

    def cover(
        self,
        box: Box,
        color: Color | None,
        order: int,
        picture: bool = False,
        opaque: bool = False,
    ) -> None:
        """Remember an area that was painted."""
        x0, y0, x1, y1 = box
        if len(self.areas) < _MOST_AREAS and x0 < x1 and y0 < y1:
            self.areas.append(
                Area(
                    x0=x0, y0=y0, x1=x1, y1=y1, color=color, order=order, picture=picture,
                    opaque=opaque,
                )
            )  # fmt: skip

    def picture(self, matrix: Matrix, clip: Box, order: int, opaque: bool) -> None:
        """A picture fills the unit square of its own space; a turned one not all of its box."""
        box = common(transformed(matrix, (0.0, 0.0, 1.0, 1.0)), clip)
        self.cover(box, None, order, picture=True, opaque=opaque and upright(matrix))

    def _add_rule(self, box: Box, clip: Box) -> None:
        x0, y0, x1, y1 = common(box, clip)
        if x1 < x0 or y1 < y0 or max(x1 - x0, y1 - y0) < _SHORT:
            return
        if x1 - x0 >= y1 - y0:
            y0 = y1 = (y0 + y1) / 2
        else:
            x0 = x1 = (x0 + x1) / 2
        self.rules.append(Rule(x0=x0, y0=y0, x1=x1, y1=y1))
