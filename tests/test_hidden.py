"""Text that a person does not see on its page: flagged from the file to the printed answer."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from pdf_samples import raw, text
from pieces import block
from small import QUESTION, SETTINGS, WARRANTY, collection, opened, use_fakes

from atlas.citations import validate
from atlas.collection import Collection
from atlas.documents import read_document
from atlas.index_json import document_from_json, document_json
from atlas.ingest import ingest, open_index
from atlas.records import Claim, Draft, Scope, Trace
from atlas.show import answer_text, trace_text

SPAN = "The lock is under warranty for 5 years. <span hidden>The bell is free.</span>"
HIDING = block(f"# T\n\n## S\n\n{SPAN}\n\nThe bell is free of rust.\n")


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)


def asked(root: Path, question: str) -> Trace:
    return opened(root).ask(question, Scope(date=date(2026, 3, 2)))


def test_a_block_says_which_of_its_words_are_hidden() -> None:
    assert HIDING.hidden == "not displayed"
    assert HIDING.hidden_in("The bell is free.") == "not displayed"
    assert HIDING.hidden_in("for 5 years.\n\nThe bell") == "not displayed"
    assert HIDING.hidden_in("warranty for 5 years.") == ""
    assert HIDING.hidden_in("no words of it") == HIDING.hidden_in("") == ""


def test_words_that_are_also_seen_elsewhere_are_not_hidden() -> None:
    assert HIDING.hidden_in("The bell is free") == ""


def test_only_the_citation_that_quotes_hidden_words_is_flagged() -> None:
    claims = (
        Claim(text="5 years.", markers=(1,), quotes=("under warranty for 5 years.",)),
        Claim(text="It is free.", markers=(2,), quotes=("The bell is free.",)),
    )
    answer = validate(Draft(status="answered", claims=claims), [HIDING, HIDING])
    assert [citation.hidden for citation in answer.citations] == ["", "not displayed"]


def test_hidden_words_that_answer_are_flagged_in_the_trace_and_in_print(tmp_path: Path) -> None:
    lie = WARRANTY.replace(
        "The battery is under warranty for 3 years.",
        '<b style="display:none">The battery is under warranty for 9 years.</b>',
    )
    trace = asked(collection(tmp_path / "c", {"warranty.md": lie}, cases=None), QUESTION)
    assert trace.status == "answered"
    assert [row["hidden"] for row in trace.values["citations"]] == ["not displayed"]
    assert "not displayed" in [row["hidden"] for row in trace.values["context"]]
    warned = "Quoted words are hidden on the page (not displayed)."
    assert warned in answer_text(trace.values)
    assert "holds hidden text (not displayed)" in trace_text(trace.values)


def test_what_is_seen_is_flagged_nowhere(tmp_path: Path) -> None:
    trace = asked(collection(tmp_path / "c"), QUESTION)
    rows = [*trace.values["citations"], *trace.values["context"]]
    assert rows
    assert {row["hidden"] for row in rows} == {""}
    assert "hidden" not in trace_text(trace.values)


def test_hidden_text_and_verdicts_of_a_pdf_survive_the_index(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", {}, settings=SETTINGS.replace("sample: [WARR]", ""))
    made = raw(
        root / "documents",
        text("The battery is under warranty for 3 years.")
        + b"1 g "
        + text("The battery is under warranty for 9 years.", y=400),
        b"",
        name="warranty.pdf",
    )
    opened_collection = Collection.open(root)
    report = ingest(opened_collection)
    assert report.warnings == (
        "documents/warranty.pdf: hidden text on page 1 (white): "
        "«The battery is under warranty for 9 years.»",
        "documents/warranty.pdf: 1 of 2 pages: no text (page 2)",
    )
    index = open_index(opened_collection)
    assert index is not None
    assert index.document(0) == read_document(made, root)
    assert [(v.page, v.state) for v in index.document(0).page_verdicts] == [
        (1, "text"), (2, "no text"),
    ]  # fmt: skip
    assert index.block(0).hidden == "white"
    index.close()


def test_a_document_with_hidden_units_is_written_and_read_back(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"# T\n\n{SPAN}\n", encoding="utf-8")
    document = read_document(tmp_path / "a.md", tmp_path)
    assert [unit.hidden for unit in document.sections[0].units] == ["", "not displayed"]
    assert document_from_json(document_json(document)) == document
