"""The HTML inside a Markdown document -> its words, those that a browser would not show apart.

In:  pieces of HTML in the order of the document: whole blocks, or single tags between words.
Out: runs of words with the reason why they are hidden ("" where they are seen), and what was left
     out: comments, scripts and styles. Nothing is fetched; style sheets and classes say nothing.

Read in one pass and not by `html.parser`, which needs minutes for some kilobytes of quotation
marks that are never closed.
"""

from __future__ import annotations

import re
from html import unescape

Run = tuple[str, str]
"""Words, and why a reader does not see them or ""."""

_INLINE = frozenset(
    "a abbr b bdi bdo cite code del em font i ins kbd mark q s small span strong sub sup u".split()
)
"""Elements that stand within a line: their words close up with those beside them."""
_VOID = frozenset(
    "area base br col embed hr img input link meta source track wbr".split()
)  # fmt: skip
_NO_TEXT = ("script", "style")
_TOKEN = re.compile("<(?:!--|[!?]|/?[a-zA-Z])")
"""Where a comment, a declaration, an instruction or a tag may begin."""
_TAG = re.compile(
    r"<(/?)([a-zA-Z][^\s/>]{0,50}+)((?:[^>\"']|\"[^\"]{0,2000}+\"|'[^']{0,2000}+'){0,2000}+)>"
)
_ATTRIBUTE = re.compile(r"([^\s=/\"'>]+)(?:\s*+=\s*+(\"[^\"]*+\"|'[^']*+'|[^\s\"'>]++))?")
_MOST_BROKEN = 50
"""Tags of a piece that are never closed; after these nothing in it can be told."""
_DEEPEST = 100
"""Open elements that an end tag may belong to."""
_NO_DISPLAY = re.compile(r"display:none|content-visibility:hidden")
_INVISIBLE = re.compile(r"visibility:(?:hidden|collapse)|opacity:0?(?:\.0+)?(?:;|$)")
_TINY = re.compile(r"font-size:0*(?:[01](?:\.\d+)?|\.\d+)(?:px|pt|%)?(?:;|!|$)")
_AWAY = re.compile(r"(?:left|top|right|bottom|text-indent|margin-left):-\d{3,}")
_WHITE = re.compile(
    r"(?:^|;)color:(?:white|transparent|#fff(?:fff)?|rgba?\(255,255,255[^)]*\))(?:;|!|$)"
)


class Markup:
    """Follows the HTML of one document from piece to piece."""

    def __init__(self) -> None:
        self.comments: list[str] = []
        self.scripts = 0
        """Scripts and styles that were left out."""
        self._open: list[tuple[str, str]] = []
        """Open elements, each with the reason why its words are hidden, its own or from above."""
        self._silent = ""
        """The script or style that is open."""

    @property
    def hidden(self) -> str:
        """Why words at this place are not seen, or ""."""
        return self._open[-1][1] if self._open else ""

    @property
    def depth(self) -> int:
        """How many elements are open."""
        return len(self._open)

    @property
    def silent(self) -> bool:
        """Whether words at this place are a script or a style."""
        return bool(self._silent)

    def back_to(self, depth: int) -> None:
        """Close what was opened since: a block of text ends what began within it."""
        del self._open[depth:]
        self._silent = ""

    def end_paragraph(self) -> None:
        """A paragraph of Markdown begins: an open `<p>` ends, as it does in a browser."""
        self._close("p")

    def read(self, markup: str) -> list[Run]:
        """The words of a piece of HTML."""
        runs: list[Run] = []
        at = broken = 0
        while token := _TOKEN.search(markup, at):
            self._words(markup[at : token.start()], runs)
            if token[0][1] in "!?":
                at = self._untold(markup, token)
                continue
            tag = _TAG.match(markup, token.start())
            if tag:
                at = tag.end()
                self._tag(tag[2].lower(), bool(tag[1]), tag[3], runs)
                continue
            at = token.end() - 1
            broken += 1
            if broken > _MOST_BROKEN:
                runs.append((unescape(markup[at:]), "in broken markup"))
                return runs
            self._words("<", runs)
        self._words(markup[at:], runs)
        return runs

    def _untold(self, markup: str, token: re.Match[str]) -> int:
        """Where a comment or a declaration ends; one that is never closed ends with the piece."""
        mark = "-->" if token[0] == "<!--" else ">"
        end = markup.find(mark, token.end())
        end = len(markup) if end < 0 else end
        if mark == "-->":
            self.comments.append(markup[token.end() : end])
        return end + len(mark)

    def _words(self, text: str, runs: list[Run]) -> None:
        if text and not self._silent:
            runs.append((unescape(text), self.hidden))

    def _tag(self, tag: str, ends: bool, attributes: str, runs: list[Run]) -> None:
        if self._silent:
            self._silent = "" if ends and tag == self._silent else self._silent
            return
        if tag not in _INLINE:
            runs.append((" ", self.hidden))
        if ends:
            self._close(tag)
        elif tag in _NO_TEXT:
            self._silent = tag
            self.scripts += 1
        elif tag not in _VOID:
            if tag == "p":
                self._close("p")
            self._open.append((tag, self.hidden or _reason(tag, _values(attributes))))

    def _close(self, tag: str) -> None:
        for at in range(len(self._open) - 1, max(-1, len(self._open) - _DEEPEST), -1):
            if self._open[at][0] == tag:
                del self._open[at:]
                break


def _values(attributes: str) -> dict[str, str]:
    return {
        found[1].lower(): unescape((found[2] or "").strip("\"'")).lower()
        for found in _ATTRIBUTE.finditer(attributes)
    }


def _reason(tag: str, attributes: dict[str, str]) -> str:
    """Why an element's words are not seen, as far as it says so itself."""
    style = "".join(attributes.get("style", "").split())
    if "hidden" in attributes or tag == "template" or _NO_DISPLAY.search(style):
        return "not displayed"
    if _INVISIBLE.search(style):
        return "invisible"
    if _TINY.search(style):
        return "tiny"
    if _AWAY.search(style):
        return "off the page"
    color = attributes.get("color", "").strip()
    white = bool(_WHITE.search(style)) or (tag == "font" and color in ("white", "#fff", "#ffffff"))
    return "white" if white and "background" not in style else ""
