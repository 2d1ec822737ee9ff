"""The graphics state of a page's content, and what it says of text that is shown under it."""

from __future__ import annotations

from dataclasses import dataclass

from atlas.pdf.fonts import Glyphs
from atlas.pdf.shapes import BLACK, Box, Color, Matrix

_TINY = 2.0
"""Letters smaller than this, in points, cannot be read."""
_NARROW = 1.0
"""Letters pressed together so far that their size across is below this, in points."""
_INVISIBLE = (3, 7)
"""The text modes that neither fill nor stroke."""


@dataclass(slots=True)
class State:
    """What q saves and Q restores."""

    matrix: Matrix
    clip: Box
    font: Glyphs | None = None
    size: float = 12.0
    spacing: float = 0.0
    word_spacing: float = 0.0
    stretch: float = 1.0
    leading: float = 0.0
    rise: float = 0.0
    mode: int = 0
    fill: Color | None = BLACK
    stroke: Color | None = BLACK
    fill_inks: bool = False
    """Whether the fill color is given in inks, where 0 is the bare paper."""
    alpha: float = 1.0
    blended: bool = False
    """Whether what is painted mixes with what lies under it, as a marker pen does."""
    masked: bool = False
    """Whether a soft mask lets through what lies under."""
    veiled: bool = False
    """Whether the form around it is painted so that what lies under shows through."""
    ragged: bool = False
    """Whether the clip leaves out parts of its box."""
    through: tuple[int, ...] = ()
    """The texts of mode 7 that what is painted now shows through, as places in `shown`."""

    @property
    def solid(self) -> bool:
        """Whether nothing shows through what is painted."""
        return self.alpha >= 0.95 and not (self.blended or self.masked or self.veiled)

    def hides(self, x: float, y: float, size: float, across: float) -> str:
        """Why text at this place cannot be seen, or "".

        `size` is the height of its letters in points, `across` the same along the line.
        """
        if self.mode in _INVISIBLE or self.alpha < 0.05:
            return "invisible"
        if size < _TINY or across < _NARROW:
            return "tiny"
        left, bottom, right, top = self.clip
        inside = left - 2 <= x <= right + 2 and bottom - size <= y <= top + 2
        return "" if inside else "off the page"
