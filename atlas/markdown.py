"""Markdown text -> Reading: sections and units as plain text.

Markup is dropped and words are kept: a link keeps its words and loses its target, an image becomes
its description as a caption, HTML loses its tags, comments and scripts. Nothing is fetched.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token

from atlas.records import Reading, Section, Unit, UnitKind

_CAPTION = re.compile(r"(figure|fig\.|table|abbildung)\s+\w+\s*[:.]", re.IGNORECASE)
_BREAK = re.compile(r"<(?:br|hr|p|/p|div|/div|li|/li)\b", re.IGNORECASE)
_INLINE = frozenset(
    "a abbr b bdi bdo cite code del em i ins kbd mark q s small span strong sub sup u".split()
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u2060\ufeff\u00ad]")


def read_markdown(text: str) -> Reading:
    """Parse CommonMark with tables. A first heading of level 1 is the title, not a section."""
    parser = MarkdownIt("commonmark", {"maxNesting": 50}).enable("table")
    builder = _Builder()
    tokens = parser.parse(_CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    _walk(tokens, builder)
    return builder.reading()


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

    def heading(self, level: int, words: str) -> None:
        first, self.seen_heading = not self.seen_heading, True
        if first and level == 1 and not self.units:
            self.title = words
            return
        self._close()
        self.headings += 1
        self.path = [item for item in self.path if item[0] < level]
        self.path.append((level, words))

    def unit(self, kind: UnitKind, words: str, header: tuple[int, int] | None = None) -> None:
        if not words:
            return
        close = bool(self.units) and kind in ("item", "row") and self.units[-1].kind == kind
        if close and kind == "row" and header is None:
            close = False
        gap = ("\n" if close else "\n\n") if self.parts else ""
        start = self.length + len(gap)
        self.length = start + len(words)
        self.parts += (gap, words)
        self.units.append(Unit(kind=kind, start=start, end=self.length, header=header))

    def _close(self) -> None:
        if self.units or self.headings:
            titles = tuple(words for _, words in self.path if words)
            self.sections.append(
                Section(number=self.headings, titles=titles, units=tuple(self.units))
            )
        self.units = []

    def reading(self) -> Reading:
        self._close()
        return Reading(title=self.title, text="".join(self.parts), sections=tuple(self.sections))


def _walk(tokens: Sequence[Token], out: _Builder) -> None:
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
            case "list_item_open":
                in_item, numbered = True, ""
                number = lists[-1] if lists else None
                if number is not None:
                    numbered, lists[-1] = f"{number}. ", number + 1
            case "list_item_close":
                in_item = bool(lists) and len(lists) > 1
            case "table_open":
                header, in_head = None, True
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
                words = _words(token.children or [])
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
                out.unit("code", "\n".join(line.rstrip() for line in code.splitlines()).strip("\n"))
            case "html_block":
                out.unit("paragraph", _fold(_html_words(token.content)))


def _is_image(token: Token) -> bool:
    children = [child for child in token.children or [] if child.content.strip() or child.children]
    return len(children) == 1 and children[0].type == "image"


def _is_break(token: Token) -> bool:
    return token.type == "html_inline" and _BREAK.match(token.content) is not None


def _words(children: Sequence[Token]) -> str:
    parts: list[str] = []
    for child in children:
        if child.type in ("text", "code_inline"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak") or _is_break(child):
            parts.append(" ")
        elif child.type == "image":
            parts.append(_words(child.children or []))
    return _fold("".join(parts))


def _fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


class _TagStripper(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.silent += tag in ("script", "style")
        self._gap(tag)

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in ("script", "style") and self.silent > 0
        self._gap(tag)

    def _gap(self, tag: str) -> None:
        if tag not in _INLINE:
            self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.parts.append(data)


def _html_words(markup: str) -> str:
    stripper = _TagStripper()
    stripper.feed(markup)
    stripper.close()
    return "".join(stripper.parts)
