"""Nothing that documents or models say becomes a link, an image or a marker."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt

from atlas.plain import without_links, without_markers

HOSTILE = [
    "see https://evil.example/a?b=c now",
    "HTTPS://EVIL.example",
    "hthttps://tps://evil.example",
    "www.evil.example and WWW.evil.example, wwwwww..evil.example",
    "[click](https://evil.example)",
    "[click](//evil.example)",
    "[click](\nevil.example)",
    "![x](https://evil.example/p.png?q=secret)",
    "![x][y]\n\n[y]: evil.example/p.png",
    "[y]\n\n[y]: evil.example",
    "<https://evil.example>",
    "<a href='//evil.example'>here</a>",
    "<IMG SRC=//evil.example/x.png>",
    "javascript:alert(1) [x](javascript:alert(1))",
    "javajavascript:script:alert(1)",
    "[x](data:text/html;base64,AAAA)",
    "ftp://evil.example ssh://evil.example custom+scheme://evil.example",
    "mailto:someone@evil.example",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_viewer_makes_a_link_or_an_image_of_it(text: str) -> None:
    plain = without_links(text)
    html = MarkdownIt("gfm-like", {"linkify": False}).render(plain)
    assert not re.search(r"<(a|img|iframe|script)\b", html, re.IGNORECASE)
    assert "://" not in plain
    assert not re.search(r"\bwww\.|javascript:|mailto:", plain, re.IGNORECASE)


@pytest.mark.parametrize("text", HOSTILE)
def test_taking_apart_twice_is_taking_apart_once(text: str) -> None:
    once = without_links(text)
    assert without_links(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "Tighten to 40 Nm (see table [2]): ratio 16:9, 5 < 7 and 9 > 3.",
        "Error E-417/E-471: switch off; wait 10 s. Really!",
        "Technical data: 36 V. Data:36 V",
        "A-12/B // spare part",
    ],
)
def test_ordinary_words_stay_as_they_are(text: str) -> None:
    assert without_links(text) == text


def test_a_number_in_brackets_does_not_look_like_a_citation() -> None:
    assert without_markers("It lasts [1] 3 years [2, 3].") == "It lasts (1) 3 years (2, 3)."
    assert without_markers("The list [R01] stays.") == "The list [R01] stays."
