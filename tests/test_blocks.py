"""Splitting: whole units in pieces of a size, with places that can be trusted."""

from __future__ import annotations

import inspect
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas import blocks as module
from atlas.blocks import split
from atlas.markdown import read_markdown
from atlas.records import Block, Document, Metadata


def document(markdown: str) -> Document:
    reading = read_markdown(markdown)
    return Document(
        metadata=Metadata(id="DOC-1", title=reading.title or "Title", path="documents/d.md"),
        text=reading.text,
        sections=reading.sections,
        page_labels=(),
        warnings=(),
        content_hash="",
    )


def pieces(markdown: str, size: int = 100, overlap: int = 0) -> tuple[Block, ...]:
    return split(document(markdown), size, overlap)


SENTENCE = "The charger is checked before it is sold to a customer in a shop. "
TABLE = "| Code | Meaning |\n|---|---|\n" + "".join(
    f"| R{n:02} | the casing of battery {n} was opened |\n" for n in range(1, 12)
)
MARKDOWN = st.lists(
    st.sampled_from(
        [
            "# Heading\n",
            "## Deeper\n",
            SENTENCE * 3 + "\n",
            "short\n",
            "- one\n- two\n  - deeper\n",
            TABLE,
            "| " + "very long header " * 6 + "| b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n",
            "電池の保証は三年です。" * 15 + "\n",
            "x" * 350 + "\n",
            "```\n# no heading\ncode\n```\n",
        ]
    ),
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(MARKDOWN, st.sampled_from([100, 150, 300, 1000]), st.sampled_from([0, 20, 50]))
def test_no_piece_is_over_size_and_every_offset_points_into_the_text(
    parts: list[str], size: int, overlap: int
) -> None:
    whole = document("\n".join(parts))
    for block in split(whole, size, overlap):
        assert 0 < len(block.text) <= size
        shown = whole.text[block.start : block.end]
        assert block.text.endswith(shown)
        for unit in block.units:
            assert block.text[unit.start : unit.end].strip()
            if unit.header:
                assert 0 <= unit.header[0] < unit.header[1] <= len(block.text)


@settings(max_examples=200, deadline=None)
@given(MARKDOWN, st.sampled_from([100, 150, 300]))
def test_nothing_but_white_space_is_lost(parts: list[str], size: int) -> None:
    whole = document("\n".join(parts))
    covered = [False] * len(whole.text)
    for block in split(whole, size):
        for place in range(block.start, block.end):
            covered[place] = True
    lost = "".join(c for c, seen in zip(whole.text, covered, strict=True) if not seen)
    assert not lost.strip()


def test_a_piece_never_crosses_a_section() -> None:
    found = pieces("# Title\n\nintro\n\n## One\n\na\n\n## Two\n\nb\n", 1000)
    assert [(block.section, block.titles, block.text) for block in found] == [
        (0, (), "intro"),
        (1, ("One",), "a"),
        (2, ("Two",), "b"),
    ]
    assert [block.ref for block in found] == ["DOC-1-0-p0", "DOC-1-1-p0", "DOC-1-2-p0"]


def test_a_table_that_goes_on_repeats_its_header() -> None:
    found = pieces(TABLE, 200)
    assert len(found) > 2
    for block in found:
        assert block.text.startswith("Code | Meaning\nR")
        assert block.text.count("Code | Meaning") == 1
        rows = [unit for unit in block.units if unit.header]
        assert {block.text[slice(*unit.header)] for unit in rows if unit.header} == {
            "Code | Meaning"
        }
    assert found[1].text.split("\n", 1)[1] == document(TABLE).text[found[1].start : found[1].end]


def test_a_header_that_would_fill_the_piece_is_not_repeated() -> None:
    header = "word " * 18
    found = pieces(f"| {header}| b |\n|---|---|\n" + "| one | two |\n" * 6, 100)
    assert sum("word" in block.text for block in found) == 1
    assert sum(block.text.count("one | two") for block in found) == 6


def test_overlap_repeats_whole_units_and_never_rows() -> None:
    sentences = "\n\n".join(f"Paragraph number {n} is here." for n in range(8))
    found = pieces(sentences, 100, 40)
    for before, after in pairwise(found):
        assert after.start < before.end
        assert after.text.startswith(before.text.rsplit("\n\n", 1)[1])
    table = pieces(TABLE, 200, 100)
    rows = [
        block.text[unit.start : unit.end]
        for block in table
        for unit in block.units
        if unit.header is not None
    ]
    assert len(rows) == len(set(rows)) == 11


def test_a_long_unit_is_cut_at_sentence_ends() -> None:
    found = pieces(SENTENCE * 6, 150)
    assert [block.text for block in found] == [(SENTENCE * 2).strip()] * 3


def test_a_closing_quotation_mark_stays_with_its_sentence() -> None:
    found = pieces('The label says "unplug it now." ' + SENTENCE, 90)
    assert [block.text[-1] for block in found] == ['"', "."]


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    found = pieces("seventeen words " * 30, 100)
    assert all(block.text.split()[-1] in ("seventeen", "words") for block in found)


def test_a_script_without_spaces_is_cut_at_its_full_stops() -> None:
    found = pieces("電池の保証は購入日から三年です。" * 20, 100)
    assert len(found) == 4
    assert all(block.text.endswith("。") for block in found)


def test_a_text_without_any_place_to_cut_is_cut_at_the_limit() -> None:
    assert [len(block.text) for block in pieces("x" * 250, 100)] == [100, 100, 50]


def test_an_empty_document_has_no_blocks() -> None:
    assert pieces("") == ()
    assert pieces("# Only a title") == ()


def test_splitting_knows_no_model() -> None:
    assert list(inspect.signature(split).parameters) == ["document", "size", "overlap"]
    assert "models" not in inspect.getsource(module)


@pytest.mark.parametrize("overlap", [0, 30])
def test_splitting_again_gives_the_same(overlap: int) -> None:
    text = SENTENCE * 9 + "\n\n" + TABLE
    assert pieces(text, 150, overlap) == pieces(text, 150, overlap)
