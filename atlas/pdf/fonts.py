"""Fonts of a PDF: the bytes of a string -> letters and their widths.

pypdf decodes encodings and character maps; its class `Font` has no public name yet, which is why
it is touched in this file alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from pypdf.generic import DictionaryObject
from pypdf.generic._font import Font

_FREE_CODES = ("\x7f", "\x81", "\x8d", "\x8f", "\x90", "\x9d")
"""Codes that WinAnsiEncoding leaves free: they show a bullet by its rules."""
_SIGNS = {"\xfc": "\u2713", "\xfb": "\u2717", "\xfe": "\u2611", "\xa8": "\u2610"}
"""What Wingdings shows for letters that occur as signs in tables; all else is a bullet."""
_RIGHT_TO_LEFT = range(0x0590, 0x0900)


class FontCache:
    """The fonts of one document, decoded once each."""

    def __init__(self) -> None:
        self._fonts: dict[int, tuple[DictionaryObject, Glyphs]] = {}

    def get(self, resource: DictionaryObject) -> Glyphs:
        # The resource is kept beside its font so that its id is not given to another object.
        if id(resource) not in self._fonts:
            self._fonts[id(resource)] = (resource, Glyphs(resource))
        return self._fonts[id(resource)][1]


class Glyphs:
    """One font. `guessed` is set where it has no map from its codes to letters."""

    def __init__(self, resource: DictionaryObject) -> None:
        self._font = font = Font.from_font_resource(resource)
        self._known: dict[str, tuple[str, float]] = {}
        self.name = font.name.rpartition("+")[2]
        lower = self.name.lower()
        flags = _integer(font.font_descriptor.flags)
        self.bold = bool(flags & 1 << 18) or any(
            word in lower for word in ("bold", "black", "heavy", "demi")
        )
        self.fixed = bool(flags & 1) or any(
            word in lower for word in ("courier", "mono", "consolas", "typewriter")
        )
        self._signs = "wingding" in lower or "webding" in lower
        identity = str(resource.get("/Encoding")).startswith("/Identity")
        self.guessed = not font.interpretable or (identity and not font.character_map)
        if not font.interpretable:
            # pypdf leaves out the widths of a font that it cannot read.
            first = _integer(resource.get("/FirstChar"))
            widths: Any = resource.get("/Widths", ())
            for code, width in enumerate(widths[:256], start=first):
                font.character_widths[chr(code)] = float(width)
        self.em = 0.001
        self.tall = 1.0
        """Height of the letters in units of the font size."""
        if font.sub_type == "Type3":
            matrix = [float(value) for value in resource.get("/FontMatrix", (0.001, 0, 0, 0.001))]
            # pypdf has the box of no Type 3 font; one without a height may mean anything.
            box = [float(value) for value in resource.get("/FontBBox", (0, 0, 0, 0))]
            widest = max(map(float, font.character_widths.values()), default=0.0)
            self.em = abs(matrix[0]) or 0.001
            self.tall = abs(matrix[3] * (box[3] - box[1])) or 1.2 * widest * self.em or 1.0

    @property
    def space(self) -> float:
        """The width of a space in units of the letters' height, kept to what a space can be.

        A font of some letters only may lack the space, and then tells any width.
        """
        widest = 0.4 if self.fixed else 0.3
        return min(widest, max(0.15, float(self._font.space_width) * self.em / self.tall))

    def letters(self, data: bytes) -> Iterator[tuple[str, float, bool]]:
        """Each glyph's text, its width in units of the font size, and if it is code 32."""
        encoding = self._font.encoding
        if isinstance(encoding, str):
            try:
                codes = data.decode(encoding, "surrogatepass")
            except UnicodeDecodeError:
                codes = data.decode(encoding, "replace")
            for code in codes:
                yield (*self._letter(code, code), False)
        else:
            for byte in data:
                code = chr(byte)
                name = encoding.get(byte, code) if self._font.interpretable else code
                yield (*self._letter(code, name), byte == 32)

    def _letter(self, code: str, name: str) -> tuple[str, float]:
        if code not in self._known:
            font = self._font
            text = self._text(name)
            widths = font.character_widths
            width = widths.get(code, widths["default"])
            if code == font.space_char:
                width = font.space_width
            self._known[code] = (text, float(width) * self.em)
        return self._known[code]

    def _text(self, name: str) -> str:
        font = self._font
        text = str(font.character_map.get(name, name))
        if len(text) > 1 and text.startswith("/"):
            return ""  # the name of a glyph that stands for no letter
        if isinstance(font.encoding, dict):
            if text in _FREE_CODES:
                return "\u2022"
            if self._signs and not font.character_map and text.strip():
                return _SIGNS.get(text, "\u2022")
        if any("\ufb50" <= letter <= "\ufefc" for letter in text):
            text = unicodedata.normalize("NFKC", text)
        if len(text) > 1 and ord(text[0]) in _RIGHT_TO_LEFT:
            # A line is turned around as a whole later, and its ligatures must survive that.
            text = text[::-1]
        return text


def _integer(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0
