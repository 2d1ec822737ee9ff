"""Cases pass or fail by the trace of their question, and say when to look at them again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from small import CASES, FILES, MANUAL, collection, opened, use_fakes

from atlas.assistant import Assistant
from atlas.blocks import split
from atlas.collection import Collection
from atlas.errors import AtlasError, CollectionError, NothingToMeasure
from atlas.measure.acceptance import FILE_NAME, load_accepted
from atlas.measure.cases import Case, Labels
from atlas.measure.check import Outcome, cases_of, problems, run

CITED = {"ref": "WARR-1-p0"}


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return collection(tmp_path / "c")


def checked(
    root: Path, *, every: bool = True, accept: bool = False, sample: bool = False
) -> Outcome:
    assistant = Assistant.of(Collection.open(root, sample=sample))
    return run(assistant, cases_of(root, every), accept)


def why(root: Path, case: Mapping[str, Any], trace: Mapping[str, Any]) -> list[str]:
    documents = Collection.open(root).documents
    blocks = {block.ref: block for document in documents for block in split(document)}
    values = {"status": "answered", "answer": "3 years", "reason": "", "choices": []}
    values |= {"context": [CITED], "citations": [CITED]} | trace
    wanted = {"relevant": ("WARR-1",), "facts": (("3 years",),)} | case
    made = Case(id="X", question="?", where="x.yaml:1", **wanted)  # type: ignore[arg-type]
    return list(problems(made, values, Labels(documents), blocks))


def test_a_right_answer_passes(root: Path) -> None:
    assert why(root, {}, {}) == []


@pytest.mark.parametrize(
    ("case", "trace", "problem"),
    [
        (
            {},
            {"status": "abstained", "answer": "", "citations": [], "reason": "none"},
            "status is abstained, expected answered (none)",
        ),
        ({"expect": "abstain"}, {}, "status is answered, expected abstained (no reason)"),
        ({}, {"context": [{"ref": "WARR-2-p0"}]}, "none of WARR-1 was supplied"),
        ({}, {"citations": [{"ref": "WARR-2-p0"}]}, "none of WARR-1 was cited"),
        ({}, {"citations": []}, "none of WARR-1 was cited"),
        ({}, {"answer": "13 years"}, "the answer lacks '3 years'"),
        (
            {"reject": ("dealer",)},
            {"answer": "3 years, dealer"},
            "the answer holds 'dealer', which",
        ),
        ({"relevant": ("WARR-1-p1",)}, {}, "none of WARR-1-p1 was supplied"),
    ],
)
def test_a_wrong_answer_fails_with_its_reason(
    root: Path, case: Mapping[str, Any], trace: Mapping[str, Any], problem: str
) -> None:
    [found] = why(root, case, trace)
    assert found.startswith(problem)


def test_one_relevant_source_of_several_is_enough(root: Path) -> None:
    assert why(root, {"relevant": ("MANUAL-1", "WARR")}, {}) == []


def test_a_question_back_shows_its_facts_in_the_choices(root: Path) -> None:
    case = {"expect": "clarify", "facts": (("C-3",), ("K-1",))}
    trace = {"status": "needs_clarification", "answer": "", "choices": ["C-3", "T-7"]}
    assert why(root, case, trace) == ["the answer lacks 'K-1'"]


def test_core_cases_are_asked_and_with_all_every_case(root: Path) -> None:
    assert [item.case.id for item in checked(root, every=False).checked] == ["S1"]
    outcome = checked(root)
    assert [(item.case.id, item.passed) for item in outcome.checked] == [("S1", True), ("S2", True)]
    assert not outcome.core_failed


def test_a_failing_core_case_fails_the_run_and_another_does_not(tmp_path: Path) -> None:
    wrong = CASES.replace("3 years]]", "9 years]]")
    outcome = checked(collection(tmp_path / "core", cases=wrong))
    assert outcome.core_failed
    assert outcome.as_json()["failed"] == 1
    outcome = checked(collection(tmp_path / "other", cases=wrong.replace("core: true", "note: x")))
    assert not outcome.core_failed
    assert outcome.as_json()["failed"] == 1


def test_a_case_that_cannot_be_asked_is_an_error_and_the_rest_goes_on(tmp_path: Path) -> None:
    cases = CASES.replace("  core: true\n", "  core: true\n  reader: boss\n", 1)
    outcome = checked(collection(tmp_path / "c", cases=cases))
    values = outcome.as_json()
    assert (values["errors"], values["passed"], values["failed"]) == (1, 1, 0)
    assert outcome.core_failed
    assert any(line.startswith("error S1") for line in outcome.lines())


def test_the_json_has_the_keys_that_programs_rely_on(root: Path) -> None:
    values = checked(root).as_json()
    assert {"passed", "failed", "errors", "cases"} <= set(values)
    assert values["cases"] == [
        {"id": "S1", "passed": True, "why": ""},
        {"id": "S2", "passed": True, "why": ""},
    ]


def test_without_cases_there_is_nothing_to_measure(tmp_path: Path) -> None:
    with pytest.raises(NothingToMeasure, match=r"cases: no case; write one"):
        cases_of(collection(tmp_path / "none", cases=None), every=True)
    with pytest.raises(NothingToMeasure, match=r"cases: no core case"):
        cases_of(collection(tmp_path / "some", cases=CASES.replace("core: true", "core: false")))


def test_cases_whose_sources_lie_outside_the_sample_are_counted_apart(tmp_path: Path) -> None:
    cases = CASES + "- {id: S3, question: how tight, relevant: [MANUAL-1]}\n"
    root = collection(tmp_path / "c", cases=cases)
    outcome = checked(root, sample=True)
    assert [item.case.id for item in outcome.checked] == ["S1", "S2"]
    assert outcome.outside == 1
    only = collection(tmp_path / "d", cases=cases[cases.index("- {id") :])
    with pytest.raises(NothingToMeasure, match="all 1 cases lie outside the sample"):
        checked(only, sample=True)


def test_a_case_that_contradicts_the_documents_stops_the_run(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", cases=CASES.replace("WARR-1]", "WARR-9]"))
    with pytest.raises(CollectionError, match=r"core\.yaml:1: relevant 'WARR-9' of S1 matches"):
        checked(root)


# ---- acceptance -----------------------------------------------------------------------------


def change(root: Path, name: str, old: str, new: str) -> None:
    path = root / "documents" / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_cases_never_accepted_are_counted_and_not_listed(root: Path) -> None:
    change(root, "manual.md", "40 Nm", "40 Nm within 3 years")
    outcome = checked(root)
    assert outcome.review == ()
    assert list(outcome.lines())[-1] == "2 never accepted; look at them and run with --accept"


def test_accepting_writes_what_each_case_rests_on(tmp_path: Path) -> None:
    manual = MANUAL.replace("40 Nm.", "40 Nm. The frame lasts three years.")
    root = collection(tmp_path / "c", {**FILES, "manual.md": manual})
    outcome = checked(root, accept=True)
    assert outcome.review == ()
    assert outcome.never_accepted == 0
    assert outcome.accepted == root / "cases" / FILE_NAME
    rows = json.loads((root / "cases" / FILE_NAME).read_text(encoding="utf-8"))
    assert set(rows) == {"S1", "S2"}
    assert len(rows["S1"]["sources"]) == 64
    assert rows["S1"]["others"] == ["MANUAL-1-p0"]
    assert list(outcome.lines())[-1].startswith("2 cases accepted in ")


def test_an_accepted_case_is_not_to_review_while_nothing_changes(root: Path) -> None:
    checked(root, accept=True)
    change(root, "warranty.md", "within 30 days", "within 60 days")  # another section
    outcome = checked(root)
    assert outcome.review == ()
    assert outcome.never_accepted == 0


def test_a_case_is_to_review_once_its_source_changed(root: Path) -> None:
    checked(root, accept=True)
    change(root, "warranty.md", "5 years", "6 years")
    outcome = checked(root)
    assert outcome.review == ("S1: a source changed since it was accepted",)
    assert "review S1: a source changed since it was accepted" in outcome.lines()
    assert outcome.as_json()["review"] == list(outcome.review)
    assert checked(root, accept=True).review == ()
    assert checked(root).review == ()


def test_a_case_is_to_review_once_another_block_in_its_scope_holds_its_facts(root: Path) -> None:
    checked(root, accept=True)
    change(root, "manual.md", "40 Nm", "40 Nm within 3 years")
    assert checked(root).review == ("S1: MANUAL-1-p0 now holds all of its facts as well",)


def test_blocks_out_of_a_cases_scope_do_not_matter(root: Path) -> None:
    checked(root, accept=True)
    change(root, "prices.md", "499 EUR", "499 EUR for 3 years")  # for sales only
    assert checked(root).review == ()


def test_accepting_core_cases_keeps_what_was_accepted_of_others(root: Path) -> None:
    checked(root, accept=True)
    before = load_accepted(root)
    change(root, "warranty.md", "5 years", "6 years")
    checked(root, every=False, accept=True)
    after = load_accepted(root)
    assert after["S2"] == before["S2"]
    assert after["S1"] != before["S1"]


def test_acceptances_of_cases_that_are_gone_are_dropped(root: Path) -> None:
    checked(root, accept=True)
    path = root / "cases" / "core.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("S2", "S9"), encoding="utf-8")
    checked(root, every=False, accept=True)
    assert set(load_accepted(root)) == {"S1"}


@pytest.mark.parametrize("text", ["{", "[]", '{"S1": 7}', '{"S1": {"sources": "x"}}', '{"S1": {}}'])
def test_a_damaged_file_of_acceptances_is_named(root: Path, text: str) -> None:
    (root / "cases" / FILE_NAME).write_text(text, encoding="utf-8")
    with pytest.raises(CollectionError, match=r"accepted\.json: cannot be read as acceptances"):
        checked(root)


def test_a_disk_that_refuses_leaves_the_old_acceptances(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked(root, accept=True)
    before = (root / "cases" / FILE_NAME).read_bytes()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    assistant = opened(root)
    with pytest.raises(AtlasError, match=r"accepted\.json: could not be written \(No space"):
        run(assistant, cases_of(root, True), accept=True)
    assert (root / "cases" / FILE_NAME).read_bytes() == before
    assert sorted(path.name for path in (root / "cases").iterdir()) == [FILE_NAME, "core.yaml"]
