"""PDFs that broke other readers: each ends with a verdict, in time and in memory.

A fixed part of the shared files is read here; `bench/stress.py` reads all of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))

import expected_texts  # noqa: E402
import stress  # noqa: E402
from stress import Outcome  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
HANDMADE = DATA / "attacks" / "handmade" / "pdf"
EVERY = 20
"""One of so many files is read besides the hostile ones."""
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the shared stress PDFs are not here")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    hostile = set(stress.pdfs_below([HANDMADE]))
    others = set(stress.pdfs_below([DATA / "pdf-stress", DATA / "attacks"])) - hostile
    files = [*sorted(hostile), *sorted(others)[::EVERY]]
    return {outcome.path.stem: outcome for outcome in stress.run(files)}


@needs_data
def test_every_file_ends_with_a_verdict_in_time_and_in_memory(
    outcomes: dict[str, Outcome],
) -> None:
    assert len(outcomes) >= 20
    assert [outcome for outcome in outcomes.values() if not outcome.held] == []


@needs_data
def test_a_refusal_is_one_line_that_says_what_to_do(outcomes: dict[str, Outcome]) -> None:
    refused = [o.reason for o in outcomes.values() if o.kind not in ("read", "in part")]
    assert refused
    for reason in refused:
        assert reason.isprintable()
        assert any(word in reason for word in ("run OCR", "print it", "put ", "save a copy")), (
            reason
        )


@needs_data
def test_every_page_that_was_read_has_a_verdict(outcomes: dict[str, Outcome]) -> None:
    read = [outcome for outcome in outcomes.values() if outcome.text]
    assert read
    for outcome in read:
        assert [verdict.page for verdict in outcome.pages] == [*range(1, len(outcome.pages) + 1)]
        in_part = any(verdict.state != "text" for verdict in outcome.pages)
        assert outcome.kind == ("in part" if in_part else "read")


@needs_data
def test_hostile_files_are_what_they_are_taken_for(outcomes: dict[str, Outcome]) -> None:
    kinds = {path.stem: outcomes[path.stem].kind for path in HANDMADE.glob("*.pdf")}
    assert kinds == {
        "drawing_1500k_ops_then_text": "over a limit",
        "drawing_200k_ops_then_text": "over a limit",
        "flate_bomb_112MB": "over a limit",
        "html_named_pdf": "no PDF",
        "off_page_text": "read",
        "only_header": "no PDF",
        "plain_one_page": "read",
        "prev_points_to_itself": "read",
        "roman_page_labels": "read",
        "self_form_xobject": "without text",
        "truncated_half": "read",
    }
    assert "250 Nm" in outcomes["off_page_text"].text
    assert "hidden text on page 1 (off the page)" in outcomes["off_page_text"].reason
    assert "Torque the drain plug to 25 Nm." in outcomes["truncated_half"].text


# ---- the measurement itself -----------------------------------------------------------------


def test_words_are_compared_without_case_and_broken_lines() -> None:
    assert expected_texts.words_of("Bat-\nTERY 36 V, 電池") == ["battery", "36", "v", "電", "池"]


def test_found_and_order_are_shares_of_the_expected_words() -> None:
    compared = expected_texts.compare(Path("a.pdf"), "d a b c x y z", "a b c d e e")
    assert compared is not None
    assert (compared.words, compared.found, compared.order) == (6, 4 / 6, 3 / 4)
    assert expected_texts.compare(Path("a.pdf"), "words", " \n ") is None


def test_lines_that_run_along_the_edges_of_pages_are_not_expected() -> None:
    words = ("alpha", "beta", "gamma")
    pages = [f"Manual\n{word}\nmore\nof {word}\nPage {n}" for n, word in enumerate(words)]
    kept = "\n".join(f"{word}\nmore\nof {word}" for word in words)
    assert expected_texts.without_running(pages) == kept
    assert expected_texts.without_running(["Only one page\nPage 1"]) == "Only one page\nPage 1"


def test_expected_texts_are_found_beside_their_files(tmp_path: Path) -> None:
    for name in ("a.pdf", "a.txt", "b.pdf", "b.md", "c.pdf"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    files = stress.pdfs_below([tmp_path])
    assert expected_texts.texts_beside(files) == {
        tmp_path / "a.pdf": "a.txt",
        tmp_path / "b.pdf": "b.md",
    }


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("scanned, 3 pages without text; run OCR first", "without text"),
        ("1 page without text (page 1: damaged (TypeError)); print it", "damaged"),
        ("2 pages without text (pages 1-2: over the limit of work for one page)", "over a limit"),
        ("encrypted: it needs a password; save a copy without one", "encrypted"),
        ("took longer than 20 s to read; split it or print it to a new PDF", "over a limit"),
        ("the PDF reader stopped (Segmentation fault)", "crashed"),
    ],
)
def test_a_reason_belongs_to_one_column(reason: str, kind: str) -> None:
    assert stress.kind_of(reason) == kind
