"""Pieces of text -> segments: words of one line without a wide gap between them.

In:  the pieces of a page, and its ruled lines: a vertical one keeps cells apart.
Out: segments with clean text, from the top of the page to its bottom.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from atlas.pdf.shapes import Piece, Rule
from atlas.pdf.words import clean

_WIDE_GAP = 1.0
"""Two pieces further apart than this, in units of the font size, are two segments."""
_WORD_GAP = 0.12
"""Two pieces further apart than this are two words."""
_HOLE = 3.0
_MARKER_LETTERS = 3
_STRONG_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LEFT_TO_RIGHT = re.compile(r"[A-Za-z0-9\u00c0-\u024f](?:[^\u0590-\u08ff\ufb1d-\ufefc]*"
                            r"[A-Za-z0-9%\u00c0-\u024f])?")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Words of one line without a wide gap between them."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    bold: bool = False
    fixed: bool = False
    margin: bool = False
    text_x0: float = 0.0
    """Where the text begins after a list's marker that was shown apart; else `x0`."""

    @property
    def top(self) -> float:
        return self.y + 0.8 * self.size

    @property
    def bottom(self) -> float:
        return self.y - 0.2 * self.size

    @property
    def middle(self) -> float:
        return self.y + 0.3 * self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a column. `left` and `right` are the edges of its column."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    bold: bool
    fixed: bool
    left: float
    right: float
    page: int = 0
    """1-based page of the file."""
    segments: tuple[Segment, ...] = ()
    hidden: str = ""
    """Why a person does not see the line on its page, or ""."""

    @property
    def top(self) -> float:
        return self.y + 0.8 * self.size

    @property
    def text_x0(self) -> float:
        """Where the text begins after a list's marker that was shown apart; else `x0`."""
        first = self.segments[0]
        apart = len(self.segments) > 1 and len(first.text) <= _MARKER_LETTERS
        return self.segments[1].x0 if apart and first.text_x0 == first.x0 else first.text_x0

    @property
    def holed(self) -> bool:
        """Whether the line has a gap that no running text has.

        In a justified line of few words all gaps are wide, so one beside narrow ones must be.
        """
        wide = any(b.x0 - a.x1 > _HOLE * self.size for a, b in pairwise(self.segments))
        words = [segment.text.split() for segment in self.segments]
        words[0] = words[0][len(words[0][0]) <= _MARKER_LETTERS :]
        return wide and any(len(found) > 1 for found in words)


Cell = tuple[str, ...]
"""The lines of a table cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table as rows of cells; its first `heads` rows name the columns."""

    x0: float
    y0: float
    x1: float
    y1: float
    rows: tuple[tuple[Cell, ...], ...]
    heads: int
    columns: int
    size: float
    page: int = 0

    @property
    def top(self) -> float:
        return self.y1

    @property
    def bottom(self) -> float:
        return self.y0


# ---- pieces -> segments ---------------------------------------------------------------------


def segments_of(pieces: Sequence[Piece], rules: Sequence[Rule] = ()) -> list[Segment]:
    """Join pieces that stand on one line, from top to bottom; a vertical rule keeps them apart."""
    verticals = [rule for rule in rules if not rule.horizontal]
    segments = []
    for row in _rows(_settled([piece for piece in pieces if piece.text.strip()])):
        current: list[Piece] = []
        for piece in _without_doubles(row):
            if current and not _joined(current[-1], piece, verticals):
                segments.append(_segment(current))
                current = []
            current.append(piece)
        segments.append(_segment(current))
    return [segment for segment in segments if segment.text]


def _settled(pieces: list[Piece]) -> list[Piece]:
    """Put superscripts and subscripts on the base line of the word that they stand at."""
    if not pieces:
        return []
    typical = median(piece.size for piece in pieces for _ in piece.text)
    hosts: dict[int, list[Piece]] = {}
    for piece in pieces:
        if piece.size > 0.8 * typical:
            hosts.setdefault(int(piece.y // 10), []).append(piece)
    return [
        _beside_host(piece, hosts)
        if piece.size <= 0.8 * typical and len(piece.text) <= 6
        else piece
        for piece in pieces
    ]


def _beside_host(piece: Piece, hosts: dict[int, list[Piece]]) -> Piece:
    band = int(piece.y // 10)
    for host in (host for near in (band, band - 1, band + 1) for host in hosts.get(near, ())):
        apart = min(abs(piece.x0 - host.x1), abs(host.x0 - piece.x1))
        if apart < 0.3 * host.size and 0.05 < abs(piece.y - host.y) / host.size < 0.6:
            return replace(piece, y=host.y)
    return piece


def _rows(pieces: list[Piece]) -> list[list[Piece]]:
    """Pieces on one base line, rows from top to bottom, each from left to right."""
    rows: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda piece: (-piece.y, piece.x0)):
        if rows and rows[-1][0].y - piece.y <= 0.25 * min(rows[-1][0].size, piece.size):
            rows[-1].append(piece)
        else:
            rows.append([piece])
    return [sorted(row, key=lambda piece: piece.x0) for row in rows]


def _without_doubles(row: list[Piece]) -> list[Piece]:
    """Drop text that was drawn twice, a little beside itself, to look bold."""
    kept: list[Piece] = []
    for piece in row:
        near = min(0.1 * piece.size, 0.5 * (piece.x1 - piece.x0))
        if not any(
            piece.text == other.text and abs(piece.x0 - other.x0) <= near for other in kept[-4:]
        ):
            kept.append(piece)
    return kept


def _joined(left: Piece, right: Piece, verticals: list[Rule]) -> bool:
    gap, em = right.x0 - left.x1, min(left.size, right.size)
    if gap > _WIDE_GAP * em or gap < -0.6 * em:
        return False
    if gap < 1.0:
        return True
    middle = left.y + 0.3 * left.size
    return not any(
        left.x1 - 1 <= rule.x0 <= right.x0 + 1 and rule.y0 <= middle <= rule.y1
        for rule in verticals
    )


def _segment(pieces: list[Piece]) -> Segment:
    text = pieces[0].text
    for left, right in pairwise(pieces):
        gap = right.x0 - left.x1
        space = gap > _WORD_GAP * min(left.size, right.size) or (left.spaced and gap > 0)
        text += (" " if space else "") + right.text
    letters = sum(len(piece.text) for piece in pieces)
    marked = len(pieces) > 1 and len(pieces[0].text) <= _MARKER_LETTERS
    main = max(pieces, key=lambda piece: len(piece.text))
    return Segment(
        text=clean(text),
        x0=pieces[0].x0,
        x1=max(piece.x1 for piece in pieces),
        y=main.y,
        size=main.size,
        bold=sum(len(piece.text) for piece in pieces if piece.bold) > 0.8 * letters,
        fixed=all(piece.fixed for piece in pieces),
        margin=all(piece.margin for piece in pieces),
        text_x0=pieces[1].x0 if marked else pieces[0].x0,
    )


def logical(text: str) -> str:
    """Text as it is read: a line of right-to-left script stands in the file from left to right."""
    if len(_STRONG_RTL.findall(text)) <= len(text) / 3:
        return text
    return _LEFT_TO_RIGHT.sub(lambda match: match[0][::-1], text[::-1])


def base_lines(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Segments on one base line, from the top."""
    lines: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda segment: (-segment.y, segment.x0)):
        if lines and lines[-1][0].y - segment.y <= 0.3 * segment.size:
            lines[-1].append(segment)
        else:
            lines.append([segment])
    return lines


def joined_lines(segments: Iterable[Segment]) -> Cell:
    """The lines of a cell from its segments."""
    return tuple(
        logical(" ".join(s.text for s in sorted(line, key=lambda s: s.x0)))
        for line in base_lines(segments)
    )
