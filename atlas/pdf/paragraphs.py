"""Lines of a section -> paragraphs, list items, captions and code.

In:  a line after the other, in reading order, and how the document sets its paragraphs (`Style`).
Out: `Paragraph`s, which tell whether a line goes on with them, and their `Draft`s.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import quantiles

from atlas.pdf.drafts import Draft
from atlas.pdf.lines import Line, Table
from atlas.pdf.words import CAPTION, SOFT_HYPHEN, Words, clean
from atlas.records import UnitKind

_BULLET = re.compile(r"[\u2022\u2023\u25e6\u25aa\u25ab\u25a0\u25a1\u25cf\u25cb\u2043\u00b7*\u2013"
                     r"\u2014\-](?=\s)\s+(?=\S)")  # fmt: skip
_NUMBERED = re.compile(r"(?:\(?(\d{1,2})[.)]|\(?([a-zA-Z])[.)]|\(([ivx]{1,4})\))\s+(?=\S)")
_LEADER = re.compile(r"(?:\s?[.·_…]){4,}\s*")
_ENDS_SENTENCE = re.compile(r"[.!?:;…。！？][\"'”’)\]]*$")


@dataclass(slots=True)
class Paragraph:
    """Lines that belong together, while more may follow."""

    kind: UnitKind
    lines: list[Line]
    number: int = 0
    """The number of a list item, where it has one."""

    @classmethod
    def begun_by(cls, line: Line, before: Paragraph | None) -> Paragraph:
        """The paragraph that a line begins after another one."""
        numbered = _NUMBERED.match(line.text)
        number = int(numbered[1]) if numbered and numbered[1] else 0
        if CAPTION.match(line.text):
            return cls("caption", [line])
        if _BULLET.match(line.text) or (numbered and not _is_heading(line, before)):
            return cls("item", [line], number)
        if _LEADER.search(line.text):
            return cls("item", [line])  # a line of a table of contents
        return cls("code" if line.fixed else "paragraph", [line])

    def goes_on_with(self, line: Line, style: Style) -> bool:
        """Whether the next line of the section belongs to this paragraph."""
        last = self.lines[-1]
        if CAPTION.match(line.text) or self._is_new_item(line) or _LEADER.search(last.text):
            return False
        if line.holed or last.holed:
            return False
        if line.fixed != last.fixed or not 0.92 < line.size / last.size < 1.09:
            return False
        starts_low = line.text[:1].islower()
        if line.bold != last.bold and not (starts_low and _is_full(last, line)):
            return False
        usual = style.leading.get(round(last.size), 1.2 * last.size)
        step = last.y - line.y
        if line.page != last.page or step <= 0 or line.x0 > last.right or line.x1 < last.left:
            return self._goes_on_elsewhere(last, line, style)
        if step > 1.25 * usual + 0.5:
            return False
        if self.kind == "code" or _ends_broken(last):
            return True
        if style.begins_paragraph(line) and _ENDS_SENTENCE.search(last.text):
            return False
        if not self._is_aligned(line) or (style.justified and self._has_ended()):
            return False
        if _is_full(last, line):
            return True
        return starts_low and not _ENDS_SENTENCE.search(last.text)

    def _goes_on_elsewhere(self, last: Line, line: Line, style: Style) -> bool:
        """In the next column or on the next page: the sentence must be unfinished."""
        if _ends_broken(last):
            return True
        if style.justified and self._has_ended():
            return False
        if style.begins_paragraph(self.lines[0]):
            return not style.begins_paragraph(line) and _is_full(last, line)
        if style.justified and _reaches_edge(last) and self.kind in ("paragraph", "item"):
            return True
        if self.kind not in ("paragraph", "item") or _ENDS_SENTENCE.search(last.text):
            return False
        return _is_full(last, line) and not (self.kind == "paragraph" and last.bold)

    def _has_ended(self) -> bool:
        """Whether all lines but the last reach the edge, as all but the last of a paragraph do.

        A line of one long word cannot be stretched to the edge, and says nothing.
        """
        *before, last = self.lines
        if len(before) < 2 or " " not in last.text:
            return False
        return all(map(_reaches_edge, before)) and not _reaches_edge(last)

    def _is_new_item(self, line: Line) -> bool:
        if _BULLET.match(line.text):
            # A dash or a star inside a sentence may come to stand at a line's start.
            inside = line.text[0] in "-–—*·" and self.kind != "item"
            return not inside or not _is_full(self.lines[-1], line) or self._steps_aside(line)
        numbered = _NUMBERED.match(line.text)
        if not numbered:
            return False
        if numbered[1] and self.number:
            return int(numbered[1]) == self.number + 1
        return not _is_full(self.lines[-1], line) or self._steps_aside(line)

    def _steps_aside(self, line: Line) -> bool:
        return abs(line.x0 - self.lines[0].x0) > 0.5 * line.size

    def _is_aligned(self, line: Line) -> bool:
        """Whether the line stands where the paragraph's next line should."""
        em, last = line.size, self.lines[-1]
        step = line.x0 - last.x0
        if len(self.lines) == 1:
            # The second line may stand in (hanging indent, list item) or out (first-line indent).
            if self.kind == "item" and _begins_item(last):
                return abs(step) < 1 or self._hangs(line)
            return step < 0.8 * em or _is_full(last, line)
        if self.kind == "item":
            return abs(step) < 0.8 * em
        return abs(step) < 0.8 * em or _are_centered(last, line)

    def _hangs(self, line: Line) -> bool:
        """Whether the line stands below the text of a list item, right of its marker."""
        first = self.lines[0]
        marker = _BULLET.match(first.text) or _NUMBERED.match(first.text)
        if not marker:
            return False
        if first.text_x0 > first.x0:
            return abs(line.x0 - first.text_x0) < 1.5
        start = first.x0 + (first.x1 - first.x0) * marker.end() / len(first.text)
        return abs(line.x0 - start) < 0.7 * line.size

    def drafts(self, words: Words) -> list[Draft]:
        """The unit that it makes; none where it has no letter or digit."""
        page = self.lines[0].page
        if self.kind == "code":
            text = "\n".join(clean(line.text) for line in self.lines)
        else:
            text = clean(words.join(line.text for line in self.lines))
            text = _LEADER.sub(" … ", text).strip()
        return [Draft(self.kind, text, page)] if any(map(str.isalnum, text)) else []


def _is_heading(line: Line, before: Paragraph | None) -> bool:
    """Whether a numbered line is rather a heading than an item: it is bold and stands out."""
    return line.bold and (before is None or before.kind != "item" or not before.lines[0].bold)


def _is_full(last: Line, line: Line) -> bool:
    """Whether the next line's first word would not have fitted on the last line."""
    room = last.right - last.x1
    if _are_centered(last, line):
        room += last.x0 - last.left
    word = line.text.split()[0] if line.text.split() else ""
    letters = max(1, len(line.text))
    width = (line.x1 - line.x0) * (len(word) + 1) / letters
    return room < 1.15 * width + 0.3 * last.size


def _are_centered(*lines: Line) -> bool:
    """Whether lines stand in the middle of their column, and not just indented alike."""
    off = max(abs(line.x0 + line.x1 - line.left - line.right) / line.size for line in lines)
    inset = min((line.x0 - line.left) / line.size for line in lines)
    starts = [line.x0 for line in lines]
    return inset > 1 and off < 0.6 and max(starts) - min(starts) > 1


def _is_indented(line: Line) -> bool:
    return line.x0 - line.left > 0.8 * line.size


def _reaches_edge(line: Line) -> bool:
    return abs(line.right - line.x1) < 0.5


def _begins_item(line: Line) -> bool:
    return bool(_BULLET.match(line.text) or _NUMBERED.match(line.text))


def _ends_broken(line: Line) -> bool:
    text = line.text
    return text.endswith(SOFT_HYPHEN) or (text.endswith("-") and text[-2:-1].isalpha())


@dataclass(frozen=True, slots=True)
class Style:
    """How a document sets its paragraphs."""

    leading: dict[int, float]
    """For each font size, rounded, the usual distance of two base lines."""
    indent: float | None
    """How far first lines stand in, where paragraphs begin with such lines."""
    justified: bool
    """Whether lines end at the edge of their column, all but the last of a paragraph."""

    @classmethod
    def of(cls, blocks: Sequence[Line | Table]) -> Style:
        steps: dict[int, list[float]] = {}
        indents: Counter[int] = Counter()
        lines = [block for block in blocks if isinstance(block, Line)]
        edges = sum(map(_reaches_edge, lines))
        for first, second in pairwise(blocks):
            if not (isinstance(first, Line) and isinstance(second, Line)):
                continue
            step = first.y - second.y
            if first.page == second.page and 0.8 * first.size < step < 3 * first.size:
                steps.setdefault(round(first.size), []).append(step)
                flush = second.x0 - second.left < 1
                if flush and _is_indented(first) and not _begins_item(first):
                    indents[round(first.x0 - first.left)] += 1
        leading = {
            size: quantiles(found, n=4)[0] if len(found) > 3 else min(found)
            for size, found in steps.items()
        }
        usual = indents.most_common(1)
        settled = bool(usual) and usual[0][1] >= max(3, 0.6 * indents.total())
        indent = float(usual[0][0]) if settled else None
        return cls(leading, indent, justified=edges >= 0.5 * len(lines))

    def begins_paragraph(self, line: Line) -> bool:
        """Whether the line stands in as first lines do."""
        if self.indent is None or _begins_item(line):
            return False
        return abs(line.x0 - line.left - self.indent) < 1.5
