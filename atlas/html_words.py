"""The HTML inside a Markdown document -> its words, those that a browser would not show apart.

In:  pieces of HTML in the order of the document: whole blocks, or single tags between words.
Out: runs of words with the reason why they are hidden ("" where they are seen), and what was left
     out: comments, scripts and styles. Nothing is fetched; style sheets and classes say nothing.

Read in one pass and not by `html.parser`, which needs minutes for some kilobytes of quotation
marks that are never closed.
"""

from __future__ import annotations

import re
from colorsys import hls_to_rgb
from html import unescape

Color = tuple[float, float, float, float]
"""Red, green, blue and how far it covers, 0 to 1."""
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
_INVISIBLE = re.compile(r"visibility:(?:hidden|collapse)")
_TINY = re.compile(r"font-size:0*(?:[01](?:\.\d+)?|\.\d+)(?:px|pt|%)?(?:;|!|$)")
_AWAY = re.compile(r"(?:left|top|right|bottom|text-indent|margin-left):-\d{3,}")
_COMMENT = re.compile(r"/\*.*?(?:\*/|$)", re.DOTALL)
_SIZES = ("height", "width", "max-height", "max-width")
_OVERFLOWS = ("overflow", "overflow-x", "overflow-y")
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([a-z%]*)")
_FACTORS = re.compile(r"(?:scale(?:x|y|3d)?|opacity)\(([^)]{0,99})\)")
_HEX = re.compile(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_FUNCTION = re.compile(r"(rgb|hsl)a?\(([^)]*)\)")
_NAMES = {
    "white": (1.0, 1.0, 1.0, 1.0), "transparent": (1.0, 1.0, 1.0, 0.0),
    "snow": (1.0, 0.98, 0.98, 1.0), "ghostwhite": (0.97, 0.97, 1.0, 1.0),
    "mintcream": (0.961, 1.0, 0.98, 1.0), "whitesmoke": (0.961, 0.961, 0.961, 1.0),
}  # fmt: skip
"""The names of colors as good as white, and of none at all."""
_CLOSE = 0.04
"""Colors whose red, green and blue differ by no more than this, of 1, look the same."""
_FAINT = 0.05
"""Words no less transparent than this are not seen."""


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
    spaced = _COMMENT.sub("", attributes.get("style", ""))
    style = "".join(spaced.split())
    closed = tag == "dialog" and "open" not in attributes
    if "hidden" in attributes or tag == "template" or closed or _NO_DISPLAY.search(style):
        return "not displayed"
    said = _declarations(spaced)
    opacities = [said.get("opacity", ""), *_factors(said.get("filter", ""), "opacity")]
    if _INVISIBLE.search(style) or any(_at_most(factor, _FAINT) for factor in opacities):
        return "invisible"
    scales = [*said.get("scale", "").split(), *_factors(said.get("transform", ""), "scale")]
    scaled_away = any(_at_most(factor.lstrip("-"), _FAINT) for factor in scales)
    if scaled_away or _TINY.search(style) or _without_size(said):
        return "tiny"
    if _AWAY.search(style):
        return "off the page"
    return _reason_of_color(said, attributes.get("color", "") if tag == "font" else "")


def _reason_of_color(said: dict[str, str], own: str) -> str:
    """Why words are not seen on the ground that the element gives them, the white page if none."""
    color = _color(said.get("text-fill-color") or said.get("color") or own.strip())
    if color is None:
        return ""
    if color[3] <= _FAINT:
        return "" if "text" in said.get("background-clip", "") else "invisible"
    ground: Color | None = _NAMES["white"]
    if any(name.startswith("background") for name in said):
        ground = _color(said.get("background-color") or said.get("background", ""))
        if ground and ground[3] <= _FAINT:
            ground = _NAMES["white"]
    if not ground or any(abs(a - b) > _CLOSE for a, b in zip(color[:3], ground[:3], strict=True)):
        return ""
    return "white" if min(ground[:3]) >= 1 - _CLOSE else "in the color of its ground"


def _declarations(style: str) -> dict[str, str]:
    """What a style says: the last word on each property, or the last marked as important."""
    said: dict[str, str] = {}
    strong: set[str] = set()
    for part in style.split(";"):
        name, _, value = part.partition(":")
        name = name.strip().removeprefix("-webkit-")
        value, _, claim = value.partition("!")
        if claim or name not in strong:
            said[name] = value.strip()
            strong |= {name} if claim else set()
    return said


def _without_size(said: dict[str, str]) -> bool:
    """Whether a box is too small for words and what runs over it is cut off."""
    small = [name for name in _SIZES if _at_most(said.get(name, ""), 0.0, px=1.0)]
    cut = any(said.get(name, "").startswith(("hidden", "clip")) for name in _OVERFLOWS)
    padded = any(
        name.startswith("padding") and not _at_most(value, 0.0) for name, value in said.items()
    )
    return not padded and ("max-height" in small or (cut and bool(small)))


def _factors(value: str, name: str) -> list[str]:
    """The numbers of the functions of this name, such as `scale(0, 1)`."""
    found = [match for match in _FACTORS.finditer(value) if match[0].startswith(name)]
    return [part.strip() for match in found for part in match[1].split(",")]


def _at_most(value: str, limit: float, px: float = 0.0) -> bool:
    """Whether a length or a factor is no more than `limit`, or than `px` in pixels or points."""
    number = _NUMBER.fullmatch(value.strip())
    if not number:
        return False
    amount = float(number[1]) / (100 if number[2] == "%" else 1)
    return amount <= (max(limit, px) if number[2] in ("px", "pt", "") else limit)


def _color(value: str) -> Color | None:
    """Red, green, blue and alpha, 0 to 1; None for a color that is not known here."""
    if found := _HEX.fullmatch(value):
        digits = found[1] if len(found[1]) > 4 else "".join(digit * 2 for digit in found[1])
        red, green, blue, cover = bytes.fromhex(f"{digits}ff"[:8])
        return red / 255, green / 255, blue / 255, cover / 255
    found = _FUNCTION.fullmatch(value)
    if not found:
        return _NAMES.get(value)
    numbers = [_NUMBER.fullmatch(part) for part in re.split(r"[\s,/]+", found[2].strip())]
    if not 3 <= len(numbers) <= 4:
        return None
    whole = (360.0, 100.0, 100.0, 1.0) if found[1] == "hsl" else (255.0, 255.0, 255.0, 1.0)
    parts = [
        min(1.0, max(0.0, float(n[1]) / (100 if n[2] == "%" else scale))) if n else 0.0
        for n, scale in zip(numbers, whole, strict=False)
    ]
    alpha = parts[3] if len(parts) > 3 else 1.0
    if found[1] == "hsl":
        return (*hls_to_rgb(parts[0], parts[2], parts[1]), alpha)
    return parts[0], parts[1], parts[2], alpha
