"""What a page is made of, and where it stands: records and the arithmetic of places.

Coordinates are points (72 to the inch) from the bottom left corner of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Matrix = tuple[float, float, float, float, float, float]
"""a, b, c, d, e, f of a PDF transformation: x' = ax + cy + e, y' = bx + dy + f."""
Box = tuple[float, float, float, float]
"""x0, y0, x1, y1."""
Color = tuple[float, float, float]
"""Red, green and blue, 0 to 1."""

IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
WHITE: Color = (1.0, 1.0, 1.0)
BLACK: Color = (0.0, 0.0, 0.0)
SLANTED = -1
"""The direction of text that runs along no edge of the page."""


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
    guessed: bool = False
    """Whether the font only hints at which letters it shows."""
    hidden: str = ""
    """Why a reader of the page does not see it, or ""."""
    margin: bool = False
    """Whether the file itself marks it as a running header or footer."""
    spaced: bool = False
    """Whether it was shown with a space after its last letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A straight line along one axis, drawn or filled."""

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
    opaque: bool = False
    """Whether it is a picture that nothing below shows through."""

    def covers(self, x: float, y: float) -> bool:
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1


def finite(value: Any) -> float:
    """A number of the file. Raises ValueError or TypeError where it is none or absurd."""
    number = float(value)
    if not abs(number) < 1e9:
        raise ValueError("number out of range")
    return number


def matrix_of(operands: Sequence[Any]) -> Matrix:
    a, b, c, d, e, f = (finite(value) for value in operands[:6])
    return a, b, c, d, e, f


def upright(matrix: Matrix) -> bool:
    """Whether boxes stay boxes: it turns by whole quarters or not at all."""
    a, b, c, d = (abs(value) for value in matrix[:4])
    slack = 0.01 * max(a, b, c, d)
    return max(b, c) <= slack or max(a, d) <= slack


def multiply(first: Matrix, second: Matrix) -> Matrix:
    a, b, c, d, e, f = first
    g, h, i, j, k, m = second
    return (
        a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j,
        e * g + f * i + k, e * h + f * j + m,
    )  # fmt: skip


def apply(matrix: Matrix, x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f


def box_around(points: Iterable[tuple[float, float]]) -> Box:
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def transformed(matrix: Matrix, box: Box) -> Box:
    x0, y0, x1, y1 = box
    return box_around(apply(matrix, x, y) for x in (x0, x1) for y in (y0, y1))


def common(first: Box, second: Box) -> Box:
    """Where two boxes overlap; x1 < x0 or y1 < y0 where they do not."""
    return (
        max(first[0], second[0]), max(first[1], second[1]),
        min(first[2], second[2]), min(first[3], second[3]),
    )  # fmt: skip


def turn(quarter: int, width: float, height: float) -> Matrix:
    """Turn a page of this size clockwise by quarters, its corner back at the origin."""
    if quarter == 1:
        return 0.0, -1.0, 1.0, 0.0, 0.0, width
    if quarter == 2:
        return -1.0, 0.0, 0.0, -1.0, width, height
    if quarter == 3:
        return 0.0, 1.0, -1.0, 0.0, height, 0.0
    return IDENTITY


def direction(dx: float, dy: float) -> int:
    """How many quarters a text is turned against the clock, or SLANTED."""
    quarters = math.atan2(dy, dx) / (math.pi / 2)
    nearest = round(quarters)
    return nearest % 4 if abs(quarters - nearest) < 0.1 else SLANTED
