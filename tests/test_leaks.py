"""What was out of scope and stands in a trace is found; what was in scope is not called a leak."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import SETTINGS, collection, opened, use_fakes

from atlas import scope as scopes
from atlas.assistant import Assistant
from atlas.errors import UsageError
from atlas.ingest import Silent
from atlas.measure.asking import Asked, ask_all
from atlas.measure.leaks import Leak, leaks, out_of_scope
from atlas.measure.questions import load_questions
from atlas.measure.runs import Run, run_of
from atlas.measure.statistics import Unscored
from atlas.records import Document, Draft, Metadata, Scope
from atlas.scope import ScopeView

DAY = "2026-03-02"


def document(name: str, **metadata: Any) -> Document:
    return Document(
        metadata=Metadata(id=name, title=name, path=f"{name}.md", **metadata),
        text="",
        sections=(),
        page_labels=(),
        warnings=(),
        content_hash="",
    )


PLAIN = document("PLAIN")
HIDDEN = document("HIDDEN", readers=("sales",))
DOCUMENTS = (PLAIN, HIDDEN)


def asked_as(
    reader: str | None = None, products: Sequence[str] = (), days: Sequence[str] = (DAY,)
) -> dict[str, Any]:
    return {"reader": reader, "date": DAY, "products": list(products), "days": list(days)}


def trace(**values: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {
        "question": "what",
        "scope": asked_as(),
        "context": [],
        "ranked": [],
        "dropped": [],
        "citations": [],
        "nearest": [],
    }
    return empty | values


def why(
    name: str,
    *documents: Document,
    question: str = "what",
    reader: str | None = None,
    products: Sequence[str] = (),
    days: Sequence[str] = (DAY,),
) -> str:
    [own] = [item for item in documents if item.id == name]
    return out_of_scope(own, documents, asked_as(reader, products, days), question)


# ---- where a leak can stand -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "item"),
    [
        ("context", {"ref": "HIDDEN-1-p0", "text": "x"}),
        ("ranked", "HIDDEN-1-p0"),
        ("dropped", {"ref": "HIDDEN-1-p0", "reason": "x"}),
        ("citations", {"ref": "HIDDEN-1-p0", "marker": 1}),
        ("nearest", {"ref": "HIDDEN-1-p0", "document": "HIDDEN"}),
    ],
)
def test_a_hidden_block_is_found_wherever_it_stands(where: str, item: object) -> None:
    fine = {"ref": "PLAIN-1-p0"} if isinstance(item, dict) else "PLAIN-1-p0"
    [leak] = leaks("Q", trace(**{where: [fine, item]}), DOCUMENTS)
    assert leak == Leak(case="Q", reader=None, ref="HIDDEN-1-p0", where=where, why="for sales only")
    assert leak.text() == f"Q as anyone: HIDDEN-1-p0 in {where}, for sales only"


def test_the_reader_group_may_see_it() -> None:
    seen = trace(scope=asked_as("sales"), context=[{"ref": "HIDDEN-1-p0"}])
    assert list(leaks("Q", seen, DOCUMENTS)) == []
    [other] = leaks("Q", seen | {"scope": asked_as("workshop")}, DOCUMENTS)
    assert other.reader == "workshop"


@pytest.mark.parametrize("hidden", ["DOC", "DOC-1"])
def test_a_block_belongs_to_the_document_that_its_whole_reference_names(hidden: str) -> None:
    documents = [
        document(name, readers=("sales",) if name == hidden else ()) for name in ("DOC", "DOC-1")
    ]
    refs = ["DOC-1-p0", "DOC-1-2-p0"]  # section 1 of DOC, section 2 of DOC-1
    found = [leak.ref for leak in leaks("Q", trace(ranked=refs), documents)]
    assert found == [refs[0] if hidden == "DOC" else refs[1]]


# ---- the rule -------------------------------------------------------------------------------


def test_a_document_without_metadata_is_for_everyone_and_always() -> None:
    assert why("PLAIN", PLAIN, products=["C-3"]) == ""


def test_documents_of_other_products_are_out_only_where_a_product_is_named() -> None:
    own = document("A", products=("C-3", "K-1"))
    assert why("A", own) == ""
    assert why("A", own, products=["T-7", "K-1"]) == ""
    assert why("A", own, products=["T-7"]) == "about C-3, K-1"


@pytest.mark.parametrize(
    ("day", "inside"),
    [("2025-12-31", False), ("2026-01-01", True), ("2026-06-30", True), ("2026-07-01", False)],
)
def test_both_ends_of_validity_count(day: str, inside: bool) -> None:
    own = document("A", valid_from=date(2026, 1, 1), valid_to=date(2026, 6, 30))
    assert why("A", own, days=[day]) == ("" if inside else "not in force")


def test_one_of_the_days_asked_about_is_enough() -> None:
    own = document("A", valid_to=date(2025, 6, 30))
    assert why("A", own, days=["2024-12-31", "2026-03-02"]) == ""


def test_a_replaced_document_is_out_while_the_new_one_is_in() -> None:
    old = document("W-R1")
    new = document("W-R2", supersedes=("w-r1",), valid_from=date(2026, 1, 1))
    assert why("W-R1", old, new) == "replaced by W-R2"
    assert why("W-R2", old, new) == ""
    assert why("W-R1", old, new, days=["2025-12-31"]) == ""


def test_who_may_not_read_the_new_one_keeps_the_old_one() -> None:
    old, new = document("A"), document("B", supersedes=("A",), readers=("sales",))
    assert why("A", old, new) == ""
    assert why("A", old, new, reader="sales") == "replaced by B"


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("what does w-r1 say", True),
        ("what did revision 1 say", True),
        ("what did rev. 1 say", True),
        ("what did R1 say", True),
        ("what does W-R10 say", False),
        ("what does W-R1-2 say", False),
        ("what does revision 2 say", False),
        ("what does NEW-R1 say", False),
    ],
)
def test_naming_an_old_policy_opens_it_to_those_who_may_read_it(question: str, named: bool) -> None:
    old = document("W-R1", valid_to=date(2025, 12, 31), readers=("sales",))
    found = why("W-R1", old, question=question, reader="sales")
    assert found == ("" if named else "not in force")
    assert why("W-R1", old, question=question) == "for sales only"


# ---- a scope stage that is broken on purpose ------------------------------------------------


CASES = """\
- {id: S1, question: what does the battery of a C-3 cost, relevant: [PRICES], reader: sales}
- {id: S2, question: how long is the battery under warranty, relevant: [NEW]}
- {id: S3, question: how tight are the crank bolts of a C-3, relevant: [TIGHT]}
- {id: S4, question: what is the airspeed of a swallow, expect: abstain}
"""
FILES = {
    f"{name}.md": f"---\nid: {name}\n{metadata}---\n# {name.title()}\n\n## Part\n\n{text}\n"
    for name, metadata, text in (
        ("PRICES", "readers: [sales]\n", "The battery of the C-3 costs 499 EUR."),
        ("OLD", "valid_to: 2025-12-31\n", "The battery is under warranty for 2 years."),
        ("NEW", "valid_from: 2026-01-01\n", "The battery is under warranty for 3 years."),
        ("FIRST", "", "The lock is under warranty for 4 years."),
        ("SECOND", "supersedes: [FIRST]\n", "The lock is under warranty for 5 years."),
        ("TIGHT", "products: [C-3]\n", "Tighten the crank bolts of the C-3 to 30 Nm."),
        ("LOOSE", "products: [T-7]\n", "Tighten the crank bolts of the T-7 to 40 Nm."),
    )
}


@pytest.fixture
def assistant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assistant:
    use_fakes(monkeypatch)
    return opened(collection(tmp_path / "c", FILES, cases=CASES))


def asked(assistant: Assistant) -> tuple[Asked, Run]:
    questions = load_questions(assistant)
    found = ask_all(questions, assistant, Silent())
    return found, run_of(found, questions, assistant)


def rate(run: Run) -> float:
    mean = run.summary["leak_rate"].mean
    assert not isinstance(mean, Unscored)
    return mean.value


def without_products(question: str, *rest: Any) -> ScopeView:
    """The scope of a question whose products narrow nothing, though the trace names them."""
    seen = scopes.view(question, *rest)
    unnamed = scopes.view(re.sub("[CT]-[37]", "bike", question), *rest)
    return replace(seen, blocks=unnamed.blocks, key=unnamed.key)


def test_a_sound_scope_leaks_in_none_of_its_looks(assistant: Assistant) -> None:
    found, run = asked(assistant)
    assert (found.looks, found.leaks) == (12, ())
    assert rate(run) == 0
    assert run.summary["leak_rate"].scored == 12


@pytest.mark.parametrize(
    ("place", "broken", "document", "reason"),
    [
        ("atlas.scope._may_read", lambda *_: True, "PRICES", "for sales only"),
        ("atlas.scope._in_force", lambda *_: True, "OLD", "not in force"),
        ("atlas.scope._replaced", lambda *_: [], "FIRST", "replaced by SECOND"),
        ("atlas.reading.view", without_products, "LOOSE", "about T-7"),
    ],
    ids=["readers", "dates", "replaced", "products"],
)
def test_a_scope_that_ignores_a_rule_leaks(
    assistant: Assistant,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    broken: object,
    document: str,
    reason: str,
) -> None:
    monkeypatch.setattr(place, broken)
    found, run = asked(assistant)
    assert rate(run) > 0
    assert {leak.why for leak in found.leaks} == {reason}
    assert {leak.ref for leak in found.leaks} == {f"{document}-1-p0"}
    assert "context" in {leak.where for leak in found.leaks}


def test_a_group_that_was_not_asked_again_leaks_by_its_own_right(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atlas.scope._may_read", lambda *_: True)  # all see the same blocks
    found, run = asked(assistant)
    assert {leak.reader for leak in found.leaks} == {None, "workshop"}
    assert found.looks == 12
    looks = {(leak.case, leak.reader) for leak in found.leaks}
    assert rate(run) == pytest.approx(len(looks) / 12)


# ---- the two rules agree --------------------------------------------------------------------

IDS = ("WARR-R1", "WARR-R2", "WARR-R10", "FAQ", "PRICE-LIST", "X.1", "a-b", "A-B-r1")
QUESTIONS = (
    "how long is the battery under warranty",
    "the battery of a C-3",
    "battery of the trekking bike",
    "batteries of C-3 and T-7 in 2025",
    "what did revision 1 say of the battery",
    "battery rev.2",
    "battery under r1 in 2024 and 2026",
    "what did the battery cost on 2025-06-30",
    "does {id} say how long the battery lasts",
    "the battery ({id}'s) of a T-7",
    "{id}, {other}: battery",
    "battery {id}. and 2025",
)


@st.composite
def files(draw: st.DrawFn) -> dict[str, str]:
    """A few documents with random metadata; whoever supersedes comes later in the list."""
    ids = draw(st.lists(st.sampled_from(IDS), min_size=2, max_size=6, unique=True))
    day = st.sampled_from(["2024-06-01", "2025-12-31", "2026-01-01"])
    found: dict[str, str] = {}
    for place, name in enumerate(ids):
        lines = [f"id: {name}"]
        for key, values in (("products", ("C-3", "T-7")), ("readers", ("sales", "workshop"))):
            chosen = draw(st.lists(st.sampled_from(values), unique=True))
            lines += [f"{key}: [{', '.join(chosen)}]"] * bool(chosen)
        older = (
            draw(st.lists(st.sampled_from(ids[:place]), max_size=2, unique=True)) if place else []
        )
        if older:
            lines.append(f"supersedes: [{', '.join(older)}]")
        else:
            kind = draw(st.sampled_from(["valid_from", "valid_to", ""]))
            lines += [f"{kind}: {draw(day)}"] * bool(kind)
        text = f"# {name}\n\n## Part\n\nThe battery lasts {place} years.\n"
        found[f"{place}.md"] = "\n".join(["---", *lines, "---", text])
    return found


@pytest.fixture(scope="module", autouse=True)
def _fakes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_fakes(monkeypatch)
        yield


def declined(*_: object) -> Draft:
    """Instead of an answer, which takes the most time; the nearest documents are then listed."""
    return Draft(status="abstained")


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(files=files(), texts=st.lists(st.sampled_from(QUESTIONS), min_size=4, max_size=4))
def test_on_any_collection_a_sound_scope_and_the_rule_of_leaks_agree(
    files: dict[str, str],
    texts: list[str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = collection(
        tmp_path_factory.mktemp("random") / "c",
        files,
        settings=SETTINGS.replace("sample: [WARR]\n", "depth: 100\nk: 100\nmin_score: 0\n"),
    )
    assistant = opened(found)
    monkeypatch.setattr("atlas.assistant.draft", declined)
    documents = tuple(assistant.index.documents())
    ids = [item.id for item in documents]
    for place, text in enumerate(texts):
        question = text.format(id=ids[place % len(ids)], other=ids[0])
        for reader in (None, "sales", "workshop"):
            for day in (date(2026, 3, 2), date(2025, 12, 31)):
                scope = Scope(reader=reader, date=day)
                values = assistant.ask(question, scope).values
                assert list(leaks("Q", values, documents)) == [], (question, scope)
                if assistant.understand(question, scope).unknown:
                    continue  # nothing is searched for
                seen = {ref.removesuffix("-1-p0") for ref in values["ranked"]}
                for item in documents:  # what replaced a policy that is named may be left out
                    if not set(item.metadata.supersedes) & seen:
                        reason = out_of_scope(item, documents, values["scope"], question)
                        assert (item.id in seen) == (reason == ""), (item.id, question, scope)


@pytest.mark.parametrize("end", ["", ".", ",", "'s", ")", "-", " -", "..", ".-", "/W-R2"])
def test_a_policy_that_the_scope_takes_as_named_is_no_leak(tmp_path: Path, end: str) -> None:
    file = "---\nid: W-R1\nvalid_to: 2025-12-31\n---\n# W\n\n## Part\n\nThe battery lasts.\n"
    assistant = opened(collection(tmp_path / "c", {"w.md": file}, cases=None))
    values = assistant.ask(f"does the battery last under W-R1{end}", Scope(date=date(2026, 3, 2)))
    assert values.values["ranked"] == ["W-R1-1-p0"]
    assert list(leaks("Q", values.values, tuple(assistant.index.documents()))) == []


def test_a_reader_group_that_does_not_exist_is_refused_before_any_look(tmp_path: Path) -> None:
    assistant = opened(collection(tmp_path / "c"))
    with pytest.raises(UsageError, match="unknown reader group 'boss'"):
        assistant.ask("what", Scope(reader="boss"))
