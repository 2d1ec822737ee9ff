"""Markdown text -> Reading: sections and units as plain text.

Markup is dropped and words are kept: a link keeps its words and loses its target and title, an
image becomes its description as a caption, HTML loses its tags. Nothing is fetched.

What a reader of the page would not see is told: words that HTML hides stand in units of their own
with the reason; comments, scripts, control characters, and characters that turn words around or
spell hidden ones are left out with a warning. Soft hyphens and spaces without a width just go.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from markdown_it import MarkdownIt
from markdown_it.token import Token

from atlas.html_words import Markup, Run
from atlas.records import Reading, Section, Unit, UnitKind

_CAPTION = re.compile(r"(figure|fig\.|table|abbildung)\s+\w+\s*[:.]", re.IGNORECASE)
_NO_WIDTH = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u2060\ufeff]")
"""Characters without a width that part or order words, and carry none."""
_UNSEEN = {
    "control characters": re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]"),
    "characters that turn words around": re.compile("[\u202a-\u202e\u2066-\u2069]"),
    "tag characters that nobody sees": re.compile("[\U000e0000-\U000e007f]"),
}
_MOST_SHOWN = 60
"""Characters of something hidden or left out that a warning quotes."""
_MOST_PLACES = 5
"""Places with hidden text that are named one by one."""


_DEEPEST = 120
"""Levels that lists (two each) and quotations may be nested; the parser calls itself for each."""


def read_markdown(text: str) -> Reading:
    """Parse CommonMark with tables. A first heading of level 1 is the title, not a section."""
    parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable("table")
    builder = _Builder()
    markup = Markup()
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    tokens = parser.parse(builder.clean(lines))
    _walk(tokens, builder, markup)
    builder.cut_off = any(token.level >= _DEEPEST - 1 for token in tokens)
    return builder.reading(markup)


class _Builder:
    """Collects text and units; a heading closes one section and opens the next."""

    def __init__(self) -> None:
        self.title = ""
        self.parts: list[str] = []
        self.length = 0
        self.sections: list[Section] = []
        self.units: list[Unit] = []
        self.path: list[tuple[int, str]] = []
        self.headings = 0
        self.seen_heading = False
        self.unseen: list[Run] = []
        """Hidden words that follow when the list, table or paragraph that they stand in ends."""
        self.left_out: dict[str, list[str]] = {}
        self.cut_off = False
        """Whether the parser met its limit of nesting, and passed over what lies deeper."""

    def clean(self, text: str) -> str:
        """Take out characters that are no words, and remember those that hide something."""
        text = _NO_WIDTH.sub("", text)
        for name, pattern in _UNSEEN.items():
            found = pattern.findall(text)
            if found:
                self.left_out.setdefault(name, []).extend(found)
                text = pattern.sub("", text)
        return text

    def fold(self, text: str) -> str:
        """Normal form C, single spaces, without characters that entities brought back in."""
        return " ".join(unicodedata.normalize("NFC", self.clean(text)).split())

    def words(self, runs: Iterable[Run]) -> str:
        """The words that are seen, white space folded; the others are kept for `flush`."""
        seen: list[str] = []
        for reason, group in groupby(runs, key=itemgetter(1)):
            words = "".join(text for text, _ in group)
            if reason:
                self.unseen.append((self.fold(words), reason))
            seen.append(" " if reason else words)
        return self.fold("".join(seen))

    def heading(self, level: int, words: str) -> None:
        first, self.seen_heading = not self.seen_heading, True
        if first and level == 1 and not self.units:
            self.title = words
            self.flush()
            return
        self._close()
        self.headings += 1
        self.path = [item for item in self.path if item[0] < level]
        self.path.append((level, words))
        self.flush()

    def unit(self, kind: UnitKind, words: str, header: tuple[int, int] | None = None) -> None:
        self._add(kind, words, header)
        if kind not in ("item", "row"):
            self.flush()

    def flush(self) -> None:
        """Put hidden words where the list, table or paragraph that they stand in has ended."""
        runs, self.unseen = self.unseen, []
        for reason, group in groupby((run for run in runs if run[0]), key=itemgetter(1)):
            self._add("paragraph", " ".join(words for words, _ in group), None, reason)

    def _add(
        self, kind: UnitKind, words: str, header: tuple[int, int] | None, hidden: str = ""
    ) -> None:
        if not words:
            return
        close = bool(self.units) and kind in ("item", "row") and self.units[-1].kind == kind
        if close and kind == "row" and header is None:
            close = False
        gap = ("\n" if close else "\n\n") if self.parts else ""
        start = self.length + len(gap)
        self.length = start + len(words)
        self.parts += (gap, words)
        self.units.append(
            Unit(kind=kind, start=start, end=self.length, header=header, hidden=hidden)
        )

    def _close(self) -> None:
        if self.units or self.headings:
            titles = tuple(words for _, words in self.path if words)
            self.sections.append(
                Section(number=self.headings, titles=titles, units=tuple(self.units))
            )
        self.units = []

    def reading(self, markup: Markup) -> Reading:
        self.flush()
        self._close()
        text = "".join(self.parts)
        return Reading(
            title=self.title,
            text=text,
            sections=tuple(self.sections),
            warnings=(*self._hidden_places(text), *self._lost(markup)),
        )

    def _hidden_places(self, text: str) -> Iterator[str]:
        units = [unit for section in self.sections for unit in section.units if unit.hidden]
        for unit in units[:_MOST_PLACES]:
            yield f"hidden text ({unit.hidden}): «{text[unit.start : unit.end][:_MOST_SHOWN]}»"
        if len(units) > _MOST_PLACES:
            yield f"hidden text in {len(units) - _MOST_PLACES} more places"

    def _lost(self, markup: Markup) -> Iterator[str]:
        comments = [words for words in map(self.fold, markup.comments) if words]
        if comments:
            first = comments[0][:_MOST_SHOWN]
            yield f"HTML comments were left out: {len(comments)}, the first: «{first}»"
        if markup.scripts:
            yield f"scripts and styles of HTML were left out: {markup.scripts}"
        if self.cut_off:
            yield f"lists or quotations nested deeper than {_DEEPEST} levels were left out"
        for name, found in self.left_out.items():
            said = "".join(chr(ord(c) - 0xE0000) for c in found if 0xE0020 <= ord(c) < 0xE007F)
            spelled = f", they spell «{said[:_MOST_SHOWN]}»" if said else ""
            yield f"{name} were left out: {len(found)}{spelled}"


def _walk(tokens: Sequence[Token], out: _Builder, markup: Markup) -> None:
    lists: list[int | None] = []
    numbered = ""
    cells: list[str] = []
    header: tuple[int, int] | None = None
    heading = 0
    in_item = in_row = in_head = False
    for token in tokens:
        match token.type:
            case "heading_open":
                heading = int(token.tag[1:])
            case "heading_close":
                heading = 0
            case "bullet_list_open":
                lists.append(None)
            case "ordered_list_open":
                lists.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                lists.pop()
                if not lists:
                    out.flush()
            case "list_item_open":
                in_item, numbered = True, ""
                number = lists[-1] if lists else None
                if number is not None:
                    numbered, lists[-1] = f"{number}. ", number + 1
            case "list_item_close":
                in_item = bool(lists) and len(lists) > 1
            case "table_open":
                header, in_head = None, True
            case "table_close":
                out.flush()
            case "thead_close":
                in_head = False
            case "tr_open":
                cells, in_row = [], True
            case "tr_close":
                in_row = False
                if any(cells):  # the rows of a table with an empty header stand for themselves
                    out.unit("row", " | ".join(cells), header)
                    if in_head:
                        header = (out.units[-1].start, out.units[-1].end)
            case "inline":
                markup.end_paragraph()
                depth = markup.depth
                words = out.words(_runs(token.children or [], markup))
                markup.back_to(depth)
                if heading:
                    out.heading(heading, words)
                elif in_row:
                    cells.append(words)
                elif in_item:
                    out.unit("item", numbered + words if words else "")
                    numbered = ""
                else:
                    caption = _is_image(token) or _CAPTION.match(words)
                    out.unit("caption" if caption else "paragraph", words)
            case "fence" | "code_block":
                code = unicodedata.normalize("NFC", token.content)
                code = "\n".join(line.rstrip() for line in code.splitlines()).strip("\n")
                if markup.hidden:
                    out.unseen.append((code, markup.hidden))
                out.unit("code", "" if markup.hidden else code)
            case "html_block":
                out.unit("paragraph", out.words(markup.read(token.content)))
                markup.back_to(markup.depth)


def _is_image(token: Token) -> bool:
    children = [child for child in token.children or [] if child.content.strip() or child.children]
    return len(children) == 1 and children[0].type == "image"


def _runs(children: Sequence[Token], markup: Markup) -> Iterator[Run]:
    for child in children:
        if child.type in ("text", "code_inline"):
            yield "" if markup.silent else child.content, markup.hidden
        elif child.type in ("softbreak", "hardbreak"):
            yield " ", markup.hidden
        elif child.type == "html_inline":
            yield from markup.read(child.content)
        elif child.type == "image":
            yield from _runs(child.children or [], markup)
