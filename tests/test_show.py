"""What a person reads of a trace, and who may read a past one."""

from __future__ import annotations

import unicodedata
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import FILES, PRICES, QUESTION, SETTINGS, WARRANTY, collection, opened, use_fakes

from atlas.assistant import Assistant
from atlas.collection import Collection
from atlas.errors import UsageError
from atlas.records import Scope, Trace
from atlas.show import WIDTH, answer_text, past_trace, printable, trace_text
from atlas.trace import line, save

DAY = date(2026, 3, 2)
EVIL = "\x1b[2J\x1b]8;;http://evil\x07click\x9b31m \u202etxet\u2066 zero\u200bwidth\x08\r"


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)


def asked(assistant: Assistant, question: str = QUESTION, reader: str | None = None) -> Trace:
    trace = assistant.ask(question, Scope(reader=reader, date=DAY))
    save(trace, assistant.collection.state)
    return trace


def steering(text: str) -> list[str]:
    return [
        c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co")
    ]


# ---- text -----------------------------------------------------------------------------------


@given(st.text())
def test_printable_text_steers_no_terminal(text: str) -> None:
    assert steering(printable(text)) == []


def test_printable_text_keeps_words_of_every_script() -> None:
    text = "naïve Größe батарея 電池 بطارية बैटरी 🚲\n\ttab"
    assert printable(text) == text


def test_an_answer_is_shown_with_its_sources(tmp_path: Path) -> None:
    text = answer_text(asked(opened(collection(tmp_path / "c"))).values)
    assert "under warranty for 3 years. [1]" in text
    assert "[1] Battery warranty > Term (WARR-1-p0)" in text
    assert "“The battery is under warranty for 3 years." in text


def test_a_decline_is_shown_with_the_nearest_places(tmp_path: Path) -> None:
    trace = asked(opened(collection(tmp_path / "c")), "what is the airspeed of a swallow")
    text = answer_text(trace.values)
    assert text.startswith("No answer: the documents do not say")
    assert "Nearest places in the documents\n  - " in text


def test_a_question_back_names_the_choices() -> None:
    values = {
        "status": "needs_clarification",
        "choices": ["C-3", "T-7"],
        "reason": "the answer depends on the product",
    }
    assert "  - C-3\n  - T-7\n" in answer_text(values)


def test_a_failure_names_its_cause() -> None:
    assert answer_text({"status": "failed", "reason": "no server"}) == "Failed: no server"


def test_a_whole_trace_tells_how_the_answer_came_about(tmp_path: Path) -> None:
    trace = asked(opened(collection(tmp_path / "c")), reader="sales")
    text = trace_text(trace.values)
    assert f"question   {QUESTION}" in text
    assert "scope      reader sales, 2026-03-02, products: none named" in text
    assert f"trace      {trace.id}" in text
    assert "WARR-1-p0" in text
    assert "\nencoder             fake-encoder fake-encoder-1\n" in text
    for name, value in trace.values["fingerprints"].items():
        assert f"{name} {value}" in " ".join(text.split()), "a name and its value stand apart"


def test_long_lines_are_wrapped(tmp_path: Path) -> None:
    long = WARRANTY.replace("3 years.", "3 years " + "and so on " * 30 + ".")
    assistant = opened(collection(tmp_path / "c", {**FILES, "warranty.md": long}))
    assert max(map(len, answer_text(asked(assistant).values).splitlines())) <= WIDTH


def test_nothing_in_a_document_or_question_steers_the_terminal(tmp_path: Path) -> None:
    evil = WARRANTY.replace("3 years.", f"3 years{EVIL}.").replace("## Term", f"## Term {EVIL}")
    evil = evil.replace("title: Battery warranty", 'title: "Battery \\e[31m\\u202E warranty"')
    assistant = opened(collection(tmp_path / "c", {**FILES, "warranty.md": evil}))
    assert len(assistant.index.ids) == 3
    trace = asked(assistant, f"{QUESTION} {EVIL}")
    assert trace.values["context"]
    assert steering(answer_text(trace.values)) == []
    assert steering(trace_text(trace.values)) == []
    assert steering(line(trace)) == []


# ---- past traces ----------------------------------------------------------------------------


def again(root: Path, reader: str | None = None, wanted: str = "last") -> dict[str, Any]:
    return past_trace(wanted, Collection.open(root), reader).values


def test_a_past_trace_is_found_again(tmp_path: Path) -> None:
    root = collection(tmp_path / "c")
    made = asked(opened(root))
    assert again(root) == made.values
    assert again(root, wanted=made.id[:6]) == made.values


def test_a_trace_of_a_reader_group_is_shown_to_that_group_only(tmp_path: Path) -> None:
    root = collection(tmp_path / "c")
    made = asked(opened(root), reader="sales")
    for reader in (None, "workshop"):
        with pytest.raises(UsageError, match="was made for another reader group") as caught:
            again(root, reader)
        assert "PRICES" not in str(caught.value)
        assert "sales" not in str(caught.value)
    assert again(root, "sales") == made.values


def test_a_trace_made_for_anyone_is_shown_to_every_group(tmp_path: Path) -> None:
    root = collection(tmp_path / "c")
    made = asked(opened(root))
    assert again(root, "workshop") == made.values


def test_an_unknown_reader_group_sees_no_trace(tmp_path: Path) -> None:
    root = collection(tmp_path / "c")
    asked(opened(root))
    with pytest.raises(UsageError, match="unknown reader group 'boss'"):
        again(root, "boss")


def test_a_trace_is_refused_once_its_document_is_restricted(tmp_path: Path) -> None:
    root = collection(tmp_path / "c")
    made = asked(opened(root))
    path = root / "documents" / "warranty.md"
    path.write_text(WARRANTY.replace("---\n# ", "readers: [workshop]\n---\n# "), encoding="utf-8")
    for reader in (None, "sales"):
        with pytest.raises(UsageError, match="rests on documents that this reader may not read"):
            again(root, reader)
    assert again(root, "workshop") == made.values


def test_a_trace_is_refused_once_a_document_that_it_only_lists_is_restricted(
    tmp_path: Path,
) -> None:
    root = collection(tmp_path / "c")
    made = asked(opened(root), "what is the airspeed of a swallow")
    assert "MANUAL" in {row["document"] for row in made.values["nearest"]}
    path = root / "documents" / "manual.md"
    path.write_text(FILES["manual.md"].replace("---\n# ", "readers: [sales]\n---\n# "), "utf-8")
    with pytest.raises(UsageError, match="may not read now"):
        again(root)


def test_a_trace_is_refused_once_its_document_is_gone(tmp_path: Path) -> None:
    root = collection(tmp_path / "c")
    asked(opened(root))
    (root / "documents" / "warranty.md").unlink()
    with pytest.raises(UsageError, match="or that are gone; ask the question again"):
        again(root)


def test_other_changes_do_not_hide_a_trace(tmp_path: Path) -> None:
    root = collection(tmp_path / "c")
    made = asked(opened(root))
    path = root / "documents" / "warranty.md"
    path.write_text(WARRANTY.replace("3 years", "4 years"), encoding="utf-8")
    (root / "documents" / "prices.md").write_text(PRICES.replace("499", "599"), encoding="utf-8")
    assert again(root) == made.values


def test_traces_of_the_whole_and_of_the_sample_are_shown_by_either(tmp_path: Path) -> None:
    root = collection(tmp_path / "c")
    whole = asked(opened(root))
    part = asked(Assistant.of(Collection.open(root, sample=True)))
    assert {row["document"] for row in part.values["context"]} == {"WARR"}
    for sample in (False, True):
        for made in (whole, part):
            found = past_trace(made.id, Collection.open(root, sample=sample), None)
            assert found.values == made.values


# ---- nothing tells that something was out of scope -------------------------------------------


def test_a_trace_does_not_tell_that_a_document_was_out_of_scope(tmp_path: Path) -> None:
    question = "what does the battery of the C-3 cost"
    whole = asked(opened(collection(tmp_path / "whole")), question)
    files = {name: text for name, text in FILES.items() if name != "prices.md"}
    less = asked(opened(collection(tmp_path / "less", files)), question)
    changing = ("id", "time", "timings_seconds", "fingerprints")
    one, other = (
        line(Trace(values={key: v for key, v in made.values.items() if key not in changing}))
        for made in (whole, less)
    )
    assert one == other
    for hint in ("PRICES", "499", "sales", "out of scope"):
        assert hint not in one, "an id or a timing may hold any digits; this part may not"
    assert "sales" in SETTINGS
