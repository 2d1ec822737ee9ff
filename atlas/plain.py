"""Text of documents and models -> the same words, with nothing in them that becomes a link.

Terminals, chat windows and Markdown viewers make links and load images out of addresses and
brackets. What documents say is shown as words: the scheme of an address is left out, and the signs
of Markdown and HTML that would make a link or an image are parted. Nothing is ever fetched.
"""

from __future__ import annotations

import re

_SCHEME = re.compile(
    r"\b[a-z][a-z0-9+.-]{0,30}:(?=//)|(?:javascript|vbscript|mailto):", re.IGNORECASE
)
_SLASHES = re.compile(r"(?<![\w:/])//(?=[\w\[])")
_WWW = re.compile(r"\bwww\d?\.(?=\w)", re.IGNORECASE)
_DATA = re.compile(r"\bdata:(?=[a-z]+/[\w.+-]+[;,])", re.IGNORECASE)
_TAG = re.compile(
    r"<(?=/?(?:a|img|iframe|script|link|video|audio|source|object|embed|svg|form|input|button|meta"
    r"|base|style|area|picture|body|html|div|span|p)\b)",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"\](?=[(\[:])|!(?=\[)")
_MARKER = re.compile(r"\[\s*(\d+(?:\s*[,;–-]\s*\d+)*)\s*\]")


def without_links(text: str) -> str:
    """The text with every address and every sign of a link or image taken apart."""
    for _ in range(8):  # what is left of `hthttp://tp://` may be an address again
        before = text
        text = _SLASHES.sub("", _DATA.sub("", _WWW.sub("", _SCHEME.sub("", text))))
        if text == before:
            break
    text = _TAG.sub("< ", text)
    return _SIGNS.sub(lambda match: match.group() + " ", text)


def without_markers(text: str) -> str:
    """The text with bracketed numbers in round brackets: a `[2]` of its own would look cited."""
    return _MARKER.sub(r"(\1)", text)
