"""Plain text -> Markdown that reads back as the same words."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

_DROPPED = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060"
    "\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Control and invisible characters that reading a document drops; white space is not among them."""
_MARKUP = re.compile(r"[\\`*_\[\]<&]")
_NUMBERED = re.compile(r"(\d+)([.)])")


def clean(text: str) -> str:
    """Text without what no document keeps; half of a surrogate pair becomes U+FFFD."""
    text = _DROPPED.sub("", re.sub("\r\n|[\r\x85\u2028\u2029]", "\n", text))
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def folded(text: str) -> str:
    """Clean text on one line with single spaces."""
    return " ".join(clean(text).split())


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a text, each on one line: what stands between blank lines."""
    for part in re.split(r"\n\s*\n", clean(text)):
        line = " ".join(part.split())
        if line:
            yield line


def document(name: str, title: str, text: str) -> str:
    """A Markdown file with front matter; every paragraph of `text` is a paragraph of it."""
    front = {"id": name, "title": title} if title else {"id": name}
    head = yaml.safe_dump(front, allow_unicode=True, sort_keys=False, width=10**9)
    body = "\n\n".join(map(escaped, paragraphs(text)))
    return f"---\n{head}---\n\n{body}\n"


def escaped(line: str) -> str:
    """One line of text, written so that CommonMark sees no markup in it."""
    line = _MARKUP.sub(r"\\\g<0>", line)
    if line[0] in "#>+-=~|":
        return "\\" + line
    return _NUMBERED.sub(r"\1\\\2", line, count=1) if _NUMBERED.match(line) else line
