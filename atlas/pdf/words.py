"""Letters and words of a PDF -> clean text.

In:  text as fonts and lines give it.
Out: normal form C without ligatures, control characters and doubled spaces; lines put together,
     a hyphen at a line's end kept or dropped by what the rest of the document says.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

SOFT_HYPHEN = "\u00ad"
_LETTERS = str.maketrans({
    "\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl",
    "\ufb05": "st", "\ufb06": "st", "\u2010": "-", "\u2011": "-",
    "\uf0b7": "\u2022", "\uf0a7": "\u2022", "\uf0d8": "\u2022", "\uf0fc": "\u2713",
})  # fmt: skip
"""Ligatures, hyphens that look alike, and the signs that Word takes from symbol fonts."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]+"
)
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_WIDE_SCRIPT = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
CAPTION = re.compile(
    r"(?:figure|fig\.|table|tab\.|abbildung|abb\.|tabelle)\s*[A-Z]?\d+(?:[.\-–]\d+)*\s*"
    r"(?:\([^)]*\)\s*)?[:.–—|]\s*\S",
    re.IGNORECASE,
)
"""How a line begins that names a figure or a table."""
_LINKING = {"and", "or", "to", "und", "oder", "bis", "et", "ou"}
"""Words after a hyphen that stands for a part said later: "front- and rear wheel"."""


def clean(text: str) -> str:
    """Normal form C, no ligatures, no control characters, single spaces.

    A soft hyphen is kept at the end alone, where it says that the word goes on.
    """
    text = text.translate(_LETTERS)
    text = _UNSEEN.sub("", text.replace("\t", " "))
    broken = text.rstrip().endswith(SOFT_HYPHEN)
    text = unicodedata.normalize("NFC", " ".join(text.replace(SOFT_HYPHEN, "").split()))
    return text + SOFT_HYPHEN if broken and text else text


def folded(text: str) -> str:
    """Letters and digits alone, without case: what is left of a heading set in any way."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return "".join(letter for letter in text if letter.isalnum())


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a document, with hyphens, that are not broken at a line's end."""

    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, lines: Iterable[str]) -> Words:
        counts: Counter[str] = Counter()
        broken = False
        for line in lines:
            found = [word.casefold() for word in _WORD.findall(line)]
            if broken:
                found = found[1:]
            broken = line.endswith(("-", SOFT_HYPHEN))
            counts.update(found[:-1] if broken else found)
            for word in found:
                counts.update(word.split("-") if "-" in word else ())
        return cls(counts)

    def join(self, lines: Iterable[str]) -> str:
        """Put the lines of one paragraph or cell together."""
        text = ""
        for line in lines:
            line = line.strip()
            if not text or not line:
                text += line
            elif text.endswith(SOFT_HYPHEN):
                text = text[:-1] + line
            elif len(text) > 1 and text[-1] == "-" and text[-2].isalnum():
                text = self._join_hyphen(text, line)
            else:
                text += line if _closes_up(text, line) else " " + line
        return " ".join(text.replace(SOFT_HYPHEN, "").split())

    def _join_hyphen(self, text: str, line: str) -> str:
        """Keep the hyphen in codes, ranges and compounds, drop it inside a word.

        A code such as E-417 or 36-volt has a digit or a capital beside the hyphen. Otherwise
        the document decides: the form that it has elsewhere wins; a hyphen between two of its
        own words stays; what is left is a word that was broken to fit the line.
        """
        before = text[:-1].rsplit(None, 1)[-1].strip("\"'([{“‘")
        found = _WORD.match(line)
        if found is None:
            return f"{text} {line}"
        first, second = before.casefold(), found[0].casefold()
        if any(letter.isdigit() for letter in first + line[0]) or len(first) == 1 or "-" in first:
            return text + line
        whole, compound = self.counts[first + second], self.counts[f"{first}-{second}"]
        if whole > compound and (line[0].islower() or before.isupper()):
            return text[:-1] + line
        if compound or not line[0].islower():
            return text + line
        if second in _LINKING:
            return f"{text} {line}"
        if min(len(first), len(second)) >= 4 and self.counts[first] and self.counts[second]:
            return text + line
        return text[:-1] + line


def _closes_up(text: str, line: str) -> bool:
    """Whether no space stands between two lines: after a slash, in a range, in wide scripts."""
    last, before = text[-1], text[-2:-1]
    if last in "/—":
        return bool(before) and not before.isspace()
    if last == "–":
        return before.isdigit() and line[0].isdigit()
    return bool(_WIDE_SCRIPT.match(last) and _WIDE_SCRIPT.match(line))
