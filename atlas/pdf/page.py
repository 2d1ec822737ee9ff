"""One PDF page -> what stands on it, upright, with hidden text kept apart.

In:  a page of pypdf's reader, and the cache of fonts of its document.
Out: a `Page`, its coordinates in points from the bottom left corner of the page when most of its
     text runs from left to right, which needs no look at /Rotate.
Refused: a page that costs too much (`OverLimit`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pypdf import PageObject
from pypdf.generic import ArrayObject, is_null_or_none

from atlas.pdf.content import dictionary, operations_of
from atlas.pdf.drawing import Drawing, Shown
from atlas.pdf.fonts import FontCache
from atlas.pdf.layers import Layers
from atlas.pdf.shapes import (
    IDENTITY,
    SLANTED,
    WHITE,
    Area,
    Color,
    Matrix,
    Piece,
    Rule,
    apply,
    multiply,
    transformed,
    turn,
)

_MOST_COVERS = 500
"""Areas that are asked whether they were painted over a text."""
_SCAN_SHARE = 0.5
"""A picture over this share of a page is a scan, and invisible text on it the words of the scan."""
_UNDER_PICTURE = "painted over by a picture"
_OF_SCANS = ("invisible", _UNDER_PICTURE)
"""How a text recognition keeps the words of a scan out of sight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What stands on a page: `pieces` is the text that a person sees on it."""

    width: float
    height: float
    pieces: tuple[Piece, ...] = ()
    aside: tuple[tuple[Piece, ...], ...] = ()
    """Text that runs in another direction than the rest, a group for each."""
    unseen: tuple[tuple[Piece, ...], ...] = ()
    """Text that a person does not see, a group for each direction and reason."""
    rules: tuple[Rule, ...] = ()
    areas: tuple[Area, ...] = ()
    placed: Matrix = IDENTITY
    """From the coordinates of the file to those of the page as it is shown here."""
    unreadable: int = 0
    """Letters in fonts that do not say which letters they are."""
    damage: str = ""

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a place of the file lies on the page as it is shown here."""
        return apply(self.placed, x, y)

    @property
    def picture_share(self) -> float:
        """Share of the page that its largest picture fills, 0 to 1."""
        sizes = [(a.x1 - a.x0) * (a.y1 - a.y0) for a in self.areas if a.picture]
        return max(sizes, default=0.0) / max(1.0, self.width * self.height)

    @property
    def scanned(self) -> bool:
        """Whether a picture fills the page or most of it."""
        return self.picture_share >= _SCAN_SHARE


def read_page(page: PageObject, fonts: FontCache) -> Page:
    """Follow a page's operators. Raises `OverLimit`; other errors mean a page beyond reading."""
    box = [float(value) for value in page.cropbox]
    left, bottom = min(box[0], box[2]), min(box[1], box[3])
    width, height = abs(box[2] - box[0]), abs(box[3] - box[1])
    base = (1.0, 0.0, 0.0, 1.0, -left, -bottom)
    drawing = Drawing(base, (0.0, 0.0, width, height), fonts, Layers(page.pdf).is_off)
    damage = ""
    if "/Contents" in page:
        operations, damage = operations_of(page["/Contents"], page.pdf)
        drawing.run(operations, dictionary(page.get("/Resources")))
        if not damage and _lacks_content(page["/Contents"]):
            damage = "its content is missing in the file"
    upright = _upright(drawing, width, height)
    return replace(upright, placed=multiply(base, upright.placed), damage=damage or drawing.damage)


def _lacks_content(contents: object) -> bool:
    """Whether a page names content that is not in the file, as where a download broke off."""
    if is_null_or_none(contents):
        return True
    parts = contents if isinstance(contents, ArrayObject) else ()
    return any(is_null_or_none(part.get_object()) for part in parts)


def _upright(drawing: Drawing, width: float, height: float) -> Page:
    """Turn the page so that most of its text runs from left to right."""
    shown, unread = _plausible(_with_unseen(drawing.shown, drawing.paths.areas))
    letters: Counter[int] = Counter()
    for item in shown:
        letters[item.direction] += len(item.piece.text)
    del letters[SLANTED]
    main = letters.most_common(1)[0][0] if letters else 0
    turned = turn(main, width, height)
    by_direction: dict[int, list[Piece]] = {main: []}
    for item in shown:
        slanted = item.direction == SLANTED
        own = turned if slanted else turn(item.direction, width, height)
        x0, y = apply(own, item.piece.x0, item.piece.y)
        x1, _ = apply(own, *item.end)
        piece = replace(item.piece, x0=min(x0, x1), x1=max(x0, x1), y=y)
        by_direction.setdefault(item.direction, []).append(piece)
    page = Page(
        width=height if main % 2 else width,
        height=width if main % 2 else height,
        rules=tuple(_turned_rule(rule, turned) for rule in drawing.paths.rules),
        areas=tuple(_turned_area(area, turned) for area in drawing.paths.areas),
        placed=turned,
        unreadable=drawing.unreadable + unread,
    )
    groups = [by_direction.pop(main), *(group for _, group in sorted(by_direction.items()))]
    return _with_text(page, groups)


def _with_text(page: Page, groups: Sequence[Sequence[Piece]]) -> Page:
    """The page with its text, the main direction first, hidden text kept apart.

    The words that a text recognition put under its scan are meant to be found: they count as seen.
    """
    everything = [piece for group in groups for piece in group]
    under_scan = sum(len(piece.text) for piece in everything if piece.hidden in _OF_SCANS)
    if page.scanned and 2 * under_scan > sum(len(piece.text) for piece in everything):
        groups = [
            [replace(p, hidden="") if p.hidden in _OF_SCANS else p for p in group]
            for group in groups
        ]
    seen = [tuple(piece for piece in group if not piece.hidden) for group in groups]
    unseen = [
        tuple(piece for piece in group if piece.hidden == reason)
        for group in groups
        for reason in dict.fromkeys(piece.hidden for piece in group if piece.hidden)
    ]
    return replace(page, pieces=seen[0], aside=tuple(filter(None, seen[1:])), unseen=tuple(unseen))


def _turned_rule(rule: Rule, turned: Matrix) -> Rule:
    x0, y0, x1, y1 = transformed(turned, (rule.x0, rule.y0, rule.x1, rule.y1))
    return Rule(x0=x0, y0=y0, x1=x1, y1=y1)


def _turned_area(area: Area, turned: Matrix) -> Area:
    x0, y0, x1, y1 = transformed(turned, (area.x0, area.y0, area.x1, area.y1))
    return replace(area, x0=x0, y0=y0, x1=x1, y1=y1)


def _plausible(shown: list[Shown]) -> tuple[list[Shown], int]:
    """Drop text in fonts without a map to letters, unless it reads like words."""
    texts: dict[str, str] = {}
    for item in shown:
        if item.piece.guessed:
            texts[item.piece.font] = texts.get(item.piece.font, "") + item.piece.text
    # Numbers of glyphs taken for letters are capitals, signs and control characters.
    garbled = {
        font
        for font, text in texts.items()
        if sum(letter.isascii() and letter.islower() for letter in text) < 0.6 * len(text)
    }
    kept = [i for i in shown if not (i.piece.guessed and i.piece.font in garbled)]
    return kept, sum(len(text) for font, text in texts.items() if font in garbled)


# ---- text that cannot be seen ---------------------------------------------------------------


def _with_unseen(shown: list[Shown], areas: list[Area]) -> list[Shown]:
    """Mark text in the color of what lies under it, and text that something was painted over."""
    colors = {area.color for area in areas if area.color is not None} | {WHITE}
    covers = [area for area in areas if area.color is not None or area.opaque][-_MOST_COVERS:]
    orders = [area.order for area in covers]
    marked = []
    for item in shown:
        reason = item.piece.hidden
        later = covers[bisect_right(orders, item.order) :]
        if not reason:
            over = next((area for area in later if _hides(area, item)), None)
            reason = "" if over is None else _UNDER_PICTURE if over.opaque else "painted over"
        if not reason and item.color is not None and any(_same(item.color, c) for c in colors):
            reason = _lost_in_ground(item, item.color, areas)
        marked.append(replace(item, piece=replace(item.piece, hidden=reason)) if reason else item)
    return marked


def _lost_in_ground(item: Shown, color: Color, areas: Sequence[Area]) -> str:
    piece, (x1, y1) = item.piece, item.end
    x, y = (piece.x0 + x1) / 2, (piece.y + y1) / 2 + 0.2 * piece.size
    under = [area for area in areas if area.order < item.order and area.covers(x, y)]
    ground = under[-1].color if under else WHITE
    if ground is None or not _same(ground, color):
        return ""
    return "white" if _same(ground, WHITE) else "in the color of its ground"


def _hides(area: Area, item: Shown) -> bool:
    piece, (x1, y1) = item.piece, item.end
    if not (area.covers(piece.x0 + 1, piece.y + 1) and area.covers(x1 - 1, y1 + 1)):
        return False
    if not area.opaque:
        return True
    # A picture may well touch the foot of a line; over it, it reaches half way up the letters.
    _, _, up_x, up_y, _, _ = turn(-max(0, item.direction) % 4, 0.0, 0.0)
    dx, dy = 0.5 * piece.size * up_x, 0.5 * piece.size * up_y
    return area.covers(piece.x0 + 1 + dx, piece.y + 1 + dy) and area.covers(
        x1 - 1 + dx, y1 + 1 + dy
    )


def _same(first: Color, second: Color) -> bool:
    return all(abs(a - b) <= 0.04 for a, b in zip(first, second, strict=True))
