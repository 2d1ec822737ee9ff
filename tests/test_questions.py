"""The questions of a set, checked against the documents, and what is to know about them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from small import CASES, FILES, collection, opened, use_fakes

from atlas.assistant import Assistant
from atlas.collection import Collection
from atlas.errors import CollectionError, NothingToMeasure
from atlas.measure.questions import Questions, blocks_of, cases_of, load_questions
from atlas.records import Scope

MORE = """\
- id: S3
  question: how tight do the crank bolts go
  date: 2025-05-01
  reader: workshop
  relevant: [MANUAL-1]
- id: S4
  question: how many days for a claim
  relevant: [WARR]
  near_misses: [WARR-1, MANUAL-2]
"""
HELD_OUT = "- {id: H1, question: what does E-417 mean, relevant: [MANUAL-2]}\n"


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = collection(tmp_path / "c", cases=CASES + MORE)
    (root / "heldout").mkdir()
    (root / "heldout" / "core.yaml").write_text(HELD_OUT, encoding="utf-8")
    return root


def load(root: Path, folder: str = "cases", sample: bool = False) -> Questions:
    return load_questions(Assistant.of(Collection.open(root, sample=sample)), folder)


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_each_set_has_its_own_questions(root: Path) -> None:
    development, held_out = load(root), load(root, "heldout")
    assert (development.set, held_out.set) == ("development", "held-out")
    assert [case.id for case in development.cases] == ["S1", "S2", "S3", "S4"]
    assert [case.id for case in held_out.cases] == ["H1"]
    assert [case.id for case in development.unanswerable()] == ["S2"]


def test_a_case_is_asked_as_its_own_reader_on_its_own_day_or_the_collections(root: Path) -> None:
    questions = load(root)
    scopes = [questions.scope_of(case) for case in questions.cases]
    assert scopes[0] == Scope(reader=None, date=date(2026, 3, 2))
    assert scopes[2] == Scope(reader="workshop", date=date(2025, 5, 1))
    assert questions.scope_of(questions.cases[2], "sales").reader == "sales"


def test_relevant_blocks_stand_in_the_order_of_the_collection(root: Path) -> None:
    questions = load(root)
    one = replace(questions.cases[0], relevant=("WARR-2", "MANUAL", "WARR-1"))
    found = questions.relevant(one)
    assert found == ("MANUAL-1-p0", "MANUAL-2-p0", "WARR-1-p0", "WARR-2-p0")
    assert found == tuple(ref for ref in questions.blocks if ref in found)
    assert questions.relevant(questions.cases[1]) == ()


# ---- fingerprints ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("how many days", "how many weeks"),
        ("relevant: [WARR]", "relevant: [WARR-2]"),
        ("[[3 years]]", "[[3 years], [battery]]"),
        ("date: 2025-05-01", "date: 2025-05-02"),
        ("reader: workshop", "reader: sales"),
        ("id: S4", "id: S5"),
    ],
)
def test_another_question_or_label_gives_another_fingerprint(
    root: Path, old: str, new: str
) -> None:
    before = load(root).fingerprint()
    rewrite(root / "cases" / "core.yaml", old, new)
    assert load(root).fingerprint() != before


def test_another_day_of_the_collection_asks_something_else(root: Path) -> None:
    before = load(root).fingerprint()
    rewrite(root / "atlas.yaml", "as_of: 2026-03-02", "as_of: 2025-03-02")
    assert load(root).fingerprint() != before


def test_notes_lines_and_the_order_of_cases_leave_the_fingerprint(root: Path) -> None:
    before = load(root).fingerprint()
    text = f"# a comment\n\n{MORE}{CASES}".replace(
        "  relevant: [WARR]", "  note: x\n  relevant: [WARR]"
    )
    (root / "cases" / "core.yaml").write_text(text, encoding="utf-8")
    assert load(root).fingerprint() == before


def test_the_documents_have_a_fingerprint_however_they_are_split(root: Path) -> None:
    before = load(root).collection_fingerprint()
    rewrite(root / "atlas.yaml", "title:", "block_size: 100\ntitle:")
    assert load(root).collection_fingerprint() == before
    rewrite(root / "documents" / "manual.md", "40 Nm", "41 Nm")
    assert load(root).collection_fingerprint() != before


# ---- what to know ---------------------------------------------------------------------------


def test_word_overlap_is_the_share_of_a_questions_terms_in_its_evidence(tmp_path: Path) -> None:
    cases = """\
- id: S1
  question: how long is the battery under warranty in winter
  relevant: [WARR-1]
  evidence: [The battery is under warranty for 3 years.]
- id: S2
  question: dealer
  relevant: [WARR-2]
  evidence: [Claims are made at a dealer within 30 days.]
- {id: S3, question: battery, relevant: [WARR]}
"""
    overlap = load(collection(tmp_path / "c", cases=cases)).overlap()
    assert overlap is not None
    assert 0.5 < overlap < 1  # "winter" is not in the evidence
    only = load(collection(tmp_path / "d", cases=cases[cases.index("- id: S2") :]))
    assert only.overlap() == 1
    assert any("ask in other words" in line for line in only.remarks())


def test_questions_in_other_words_are_not_called_easy(tmp_path: Path) -> None:
    cases = CASES.replace("how long is the battery under warranty", "guarantee of the power pack")
    questions = load(collection(tmp_path / "c", cases=cases))
    assert questions.overlap() == 0
    assert not any("other words" in line for line in questions.remarks())


def test_without_evidence_no_overlap_is_claimed(tmp_path: Path) -> None:
    questions = load(collection(tmp_path / "c", cases="- {id: S2, question: x, expect: abstain}\n"))
    assert questions.overlap() is None
    assert list(questions.remarks()) == [
        "1 development questions, 1 of them without an answer in the documents"
    ]


# ---- samples --------------------------------------------------------------------------------


def test_of_a_sample_only_questions_with_all_sources_inside_are_asked(root: Path) -> None:
    questions = load(root, sample=True)
    assert [case.id for case in questions.cases] == ["S1", "S2", "S4"]
    assert questions.outside == 1
    assert next(iter(questions.remarks())).endswith("; 1 more lie outside the sample")
    assert set(questions.blocks) == {"WARR-1-p0", "WARR-2-p0"}


def test_near_misses_outside_the_sample_are_left_out(root: Path) -> None:
    assert load(root).cases[3].near_misses == ("WARR-1", "MANUAL-2")
    assert load(root, sample=True).cases[2].near_misses == ("WARR-1",)


def test_a_question_with_one_of_its_sources_outside_is_outside(tmp_path: Path) -> None:
    cases = CASES + "- {id: S3, question: both, relevant: [WARR-1, MANUAL-1]}\n"
    questions = load(collection(tmp_path / "c", cases=cases), sample=True)
    assert [case.id for case in questions.cases] == ["S1", "S2"]


def test_a_sample_without_questions_has_nothing_to_measure(root: Path) -> None:
    with pytest.raises(NothingToMeasure, match="all 1 cases lie outside the sample"):
        load(root, "heldout", sample=True)


# ---- what is refused ------------------------------------------------------------------------


def test_without_questions_the_other_set_is_named(tmp_path: Path, root: Path) -> None:
    (root / "cases" / "core.yaml").unlink()
    with pytest.raises(NothingToMeasure, match=r"heldout/ has 1, measure them with --held-out"):
        cases_of(root)
    other = collection(tmp_path / "other")
    with pytest.raises(NothingToMeasure, match=r"cases/ has 2, measure them without --held-out"):
        cases_of(other, "heldout")
    with pytest.raises(NothingToMeasure, match=r"cases: no question in \*\.yaml; write cases"):
        cases_of(collection(tmp_path / "none", cases=None))


def test_a_label_that_matches_nothing_is_named_with_its_line(root: Path) -> None:
    rewrite(root / "cases" / "core.yaml", "[MANUAL-1]", "[MANUAL-7]")
    with pytest.raises(CollectionError, match=r"core\.yaml:\d+: relevant 'MANUAL-7' of S3 matches"):
        load(root)


def test_block_labels_are_checked_against_the_blocks_that_they_mean(tmp_path: Path) -> None:
    long = "---\nid: LONG\n---\n# Long\n\n## A\n\n" + "\n\n".join(
        f"Sentence number {number} about the saddle and its post." for number in range(8)
    )
    cases = "- {id: S1, question: saddle, relevant: [LONG-1-p0]}\n"
    root = collection(tmp_path / "c", {**FILES, "long.md": long}, cases=cases)
    spans = blocks_of(opened(root).index)
    assert [ref for ref in spans if ref.startswith("LONG")] == ["LONG-1-p0"]
    collection_ = Collection.open(root)
    small = replace(
        collection_, settings=replace(collection_.settings, block_size=120), variant="s"
    )
    questions = load_questions(Assistant.of(small), spans=spans)
    relevant = questions.relevant(questions.cases[0])
    assert len(relevant) == 4
    assert relevant == tuple(ref for ref in questions.blocks if ref.startswith("LONG"))
    unspanned = load_questions(Assistant.of(small))
    assert unspanned.relevant(unspanned.cases[0]) == ("LONG-1-p0",)
