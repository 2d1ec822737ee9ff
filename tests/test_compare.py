"""Two runs of the same questions: a broken system is clearly worse, an equal one may be chance."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small import SETTINGS, collection, use_fakes

import atlas.assistant
from atlas.assistant import Assistant
from atlas.collection import Collection
from atlas.errors import NothingToMeasure, UsageError
from atlas.ingest import Silent
from atlas.measure.asking import ask_once
from atlas.measure.compare import COMPARED, Comparison, compare, compare_rows, score
from atlas.measure.paired import Difference
from atlas.measure.questions import load_questions
from atlas.measure.report_many import comparison_lines
from atlas.measure.runs import SCHEMA, SavedRun, load_run, run_of, run_path, save_run
from atlas.measure.statistics import Unscored
from atlas.records import Hit
from atlas.settings import Settings, with_value

TOPICS = (
    ("saddle", "height", "comfort"),
    ("pedal", "thread", "footing"),
    ("lantern", "beam", "night"),
    ("mirror", "angle", "traffic"),
    ("basket", "load", "shopping"),
    ("fender", "gap", "rain"),
    ("kickstand", "spring", "parking"),
    ("handlebar", "stem", "steering"),
)
"""Of every topic: its thing, a word beside it, and a word of its heading alone."""
FILLER = "one may set this with both hands while the wheel rests on flat ground at home"
RIGHT = "".join(
    f"\n## {heading.title()}\n\nAbout {thing} and {word}: {FILLER}.\n"
    for thing, word, heading in TOPICS
)
NOISE = "".join(f"\n## Note {n}\n\nThe {t[0]}.\n" for n, t in enumerate(TOPICS))
FILES = {
    "right.md": f"---\nid: RIGHT\n---\n# Right\n{RIGHT}",
    "noise.md": f"---\nid: NOISE\n---\n# Noise\n{NOISE}",
}
CASES = "".join(
    f"- {{id: T{n}, kind: words, question: {thing} {word}, relevant: [RIGHT-{n}]}}\n"
    f"- {{id: H{n}, kind: heading, question: {heading}, relevant: [RIGHT-{n}]}}\n"
    for n, (thing, word, heading) in enumerate(TOPICS, 1)
)
SOUND = {
    "vector_weight": 1, "rerank_weight": 1, "k": 1, "max_per_document": 16, "depth": 10,
    "rerank_reach": 1,
}  # fmt: skip
"""Ranks by cosine, then by the share of the question's words; supplies the best alone."""
Break = Callable[[Assistant, pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    settings = SETTINGS.replace("sample: [WARR]\n", "")
    return collection(tmp_path / "c", FILES, cases=CASES, settings=settings)


def measured(root: Path, name: str, broken: Break | None = None, **settings: Any) -> SavedRun:
    """Ask under the sound settings with some changed, save, and load again."""
    opened = Collection.open(root)
    chosen: Settings = opened.settings
    for key, value in (SOUND | settings).items():
        chosen = with_value(chosen, "test", key, value)
    variant = "" if chosen.index_key() == opened.settings.index_key() else "tried"
    with pytest.MonkeyPatch.context() as monkeypatch:
        assistant = Assistant.of(replace(opened, settings=chosen, variant=variant))
        if broken is not None:
            broken(assistant, monkeypatch)
        questions = load_questions(assistant)
        asked = ask_once(questions, assistant, Silent(), lambda line: None)
        run = run_of(asked, questions, assistant)
    save_run(run, run_path(name, opened.state))
    return load_run(name, opened.state)


def swapped(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every block stand under the reference of the other document's section."""
    real = atlas.assistant.search
    other = {"RIGHT": "NOISE", "NOISE": "RIGHT"}

    def search(*arguments: Any) -> list[Hit]:
        return [
            replace(hit, block=replace(hit.block, document=other[hit.block.document]))
            for hit in real(*arguments)
        ]

    monkeypatch.setattr("atlas.assistant.search", search)


def without_reranker(assistant: Assistant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assistant, "reranker", None)


def verdicts(found: Comparison, measure: str) -> dict[str, str]:
    kinds = {kind: items[measure].verdict for kind, items in found.by_kind.items()}
    return {"all": found.overall[measure].verdict, **kinds}


# ---- broken systems -------------------------------------------------------------------------


def test_a_sound_system_finds_everything_here(root: Path) -> None:
    assert {question["recall"] for question in measured(root, "a").questions} == {1}


def test_swapped_documents_are_clearly_worse_in_all_and_by_kind(root: Path) -> None:
    found = compare(measured(root, "a"), measured(root, "b", swapped))
    clear = {"all": "clear", "heading": "clear", "words": "clear"}
    assert verdicts(found, "recall") == clear
    assert verdicts(found, "ndcg@10") == clear
    assert found.overall["recall"].difference.value == -1
    assert not found.overall["recall"].better
    assert found.changed == ()  # nothing that a run knows of


def test_without_the_reranker_only_what_it_had_put_right_is_clearly_worse(root: Path) -> None:
    found = compare(measured(root, "a"), measured(root, "b", without_reranker))
    assert verdicts(found, "recall") == {
        "all": "clear", "words": "clear", "heading": "could be chance",
    }  # fmt: skip
    assert found.by_kind["words"]["recall"].difference.value < -0.8
    assert found.changed == ("reranker: fake-reranker fake-reranker-1 to None",)
    assert abs(found.by_kind["heading"]["recall"].difference.value) < 0.2


def test_a_k_of_one_is_clearly_worse_where_the_right_block_comes_second(root: Path) -> None:
    three = measured(root, "a", without_reranker, k=3)
    one = measured(root, "b", without_reranker, k=1)
    found = compare(three, one)
    assert verdicts(found, "recall")["words"] == "clear"
    assert (
        verdicts(found, "ndcg@10")["words"] == "could be chance"
    )  # the ranking before selection is the same
    assert found.overall["prompt_tokens"].better  # fewer tokens are the better side of it
    assert found.changed == ("k: 3 to 1",)


def test_without_titles_what_only_a_title_says_is_lost(root: Path) -> None:
    found = compare(measured(root, "a"), measured(root, "b", prefix="none"))
    assert found.by_kind["heading"]["recall"].verdict == "clear"
    assert found.by_kind["heading"]["recall"].difference.value < -0.7
    assert "prefix: both to none" in found.changed


def test_a_mended_system_is_clearly_better(root: Path) -> None:
    found = compare(measured(root, "a", swapped), measured(root, "b"))
    item = found.overall["recall"]
    assert (item.verdict, item.better) == ("clear", True)
    assert (item.first, item.second, item.difference.value) == (0, 1, 1)


# ---- equal systems --------------------------------------------------------------------------


def test_identical_runs_could_be_chance_in_everything(root: Path) -> None:
    first = measured(root, "a")
    questions = [dict(question) for question in first.questions]
    found = compare(first, replace(first, name="b", questions=tuple(questions)))
    for items in (found.overall, *found.by_kind.values()):
        assert items
        for item in items.values():
            assert (item.verdict, item.p_value) == ("could be chance", 1)
            assert item.difference.value == 0
    assert (found.changed, found.moved) == ((), ())


def test_the_same_system_asked_again_could_be_chance(root: Path) -> None:
    found = compare(measured(root, "a"), measured(root, "b"))
    for name, item in found.overall.items():
        if name != "milliseconds":
            assert item.verdict == "could be chance"
    assert found.changed == ()


def test_few_changes_could_be_chance_and_six_of_one_way_are_clear() -> None:
    for changed, verdict in ((5, "could be chance"), (6, "clear")):
        before = run("a", *([1.0] * 40))
        after = run("b", *([0.0] * changed + [1.0] * (40 - changed)))
        assert compare(before, after).overall["recall"].verdict == verdict


# ---- made-up runs ---------------------------------------------------------------------------


def run(name: str, *recalls: float | None, **values: Any) -> SavedRun:
    head = {
        "schema": SCHEMA,
        "set": "development",
        "time": "2026-03-02T10:00:00+0000",
        "settings": {"k": 5},
        "fingerprints": {"questions": "q", "collection": "c", "settings": name, "index": name},
    }
    questions = tuple(
        {"id": f"Q{n}", "kind": "", "expect": "answer", "recall": recall, **values}
        for n, recall in enumerate(recalls)
    )
    return SavedRun(name=name, head=head, questions=questions)


def headed(saved: SavedRun, part: str, **values: Any) -> SavedRun:
    head = {**saved.head, part: {**saved.head[part], **values}}
    return replace(saved, head=head)


def test_questions_unscored_in_either_run_are_left_out_of_both_means() -> None:
    item = compare(run("a", 1.0, 0.5, None, 1.0), run("b", 0.0, 1.0, 1.0, None)).overall["recall"]
    assert (item.first, item.second, item.difference.n) == (0.75, 0.5, 2)
    assert item.difference.value == -0.25


def test_questions_are_paired_by_their_id() -> None:
    a = run("a", 1.0, 0.0, 0.5)
    b = replace(a, name="b", questions=a.questions[::-1])
    assert compare(a, b).overall["recall"].difference.value == 0
    assert compare(a, b).overall["recall"].p_value == 1
    assert compare(a, b).moved == ()


def test_declining_counts_only_for_questions_without_an_answer() -> None:
    question = {"declined": True, "expect": "answer"}
    assert score(question, "declined") is None
    assert score(question | {"expect": "abstain"}, "declined") == 1
    assert score(question, "nothing") is None


def test_fewer_tokens_and_milliseconds_are_better_and_less_recall_is_not() -> None:
    a = run("a", *([1.0] * 8), prompt_tokens=90, milliseconds=50, wrongly_declined=1.0)
    b = run("b", *([0.0] * 8), prompt_tokens=30, milliseconds=20, wrongly_declined=0.0)
    found = compare(a, b).overall
    assert {name for name, item in found.items() if item.better} == {
        "prompt_tokens", "milliseconds", "wrongly_declined",
    }  # fmt: skip
    assert {item.verdict for item in found.values()} == {"clear"}


def test_questions_that_turned_are_listed_with_the_way_they_went() -> None:
    def with_hits(name: str, hits: Sequence[float]) -> SavedRun:
        made = run(name, *hits)
        rows = [{**row, "hit": row["recall"], "passed": True} for row in made.questions]
        return replace(made, questions=tuple(rows))

    found = compare(with_hits("a", [1, 0, 1]), with_hits("b", [0, 1, 1]))
    assert [line.split() for line in found.moved] == [["Q0", "hit", "lost"], ["Q1", "hit", "won"]]


def test_what_changed_between_the_runs_is_said() -> None:
    a = headed(run("a", 1.0), "settings", min_score=0.1)
    b = headed(headed(run("b", 1.0), "settings", k=3), "fingerprints", encoder="other")
    assert compare(a, b).changed == (
        "k: 5 to 3", "min_score: 0.1 to None", "encoder: None to other",
    )  # fmt: skip


def test_json_has_the_keys_that_programs_rely_on() -> None:
    found = compare(run("a", *([1.0] * 9)), run("b", *([0.0] * 9)))
    values = json.loads(json.dumps(found.as_json(), allow_nan=False))
    keys = {"difference", "low", "high", "p_value", "verdict", "detectable"}
    assert keys <= set(values["recall"])
    assert (values["a"], values["b"]) == ("a", "b")
    assert values["recall"]["verdict"] == "clear"
    assert values["recall"]["p_value"] == pytest.approx(2 / 2**9)
    assert keys <= set(values["by_kind"]["no kind"]["recall"])


def test_a_measure_that_no_question_has_in_both_runs_is_absent() -> None:
    found = compare(run("a", 1.0, 1.0), run("b", 1.0, 0.0))
    assert set(found.overall) == {"recall"}
    assert set(found.overall) < set(COMPARED)
    assert isinstance(compare_rows([{"hit": None}], [{"hit": 1}], "hit"), Unscored)
    assert isinstance(compare_rows([{"hit": 0}], [{"hit": 1}], "hit"), Difference)
    with pytest.raises(NothingToMeasure, match="a and b: no question was scored in both"):
        compare(run("a", None), run("b", 1.0))


# ---- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "what"), [("questions", "questions or labels"), ("collection", "documents")]
)
def test_other_questions_and_other_documents_are_refused(part: str, what: str) -> None:
    other = headed(run("b", 1.0), "fingerprints", **{part: "x"})
    with pytest.raises(UsageError, match=f"a and b were made on different {what} .*measure both"):
        compare(run("a", 1.0), other)


def test_runs_of_other_questions_by_id_are_refused() -> None:
    with pytest.raises(UsageError, match=r"asked different questions \(1 in one of them only"):
        compare(run("a", 1.0), run("b", 1.0, 1.0))


@pytest.mark.parametrize(
    ("file", "old", "new", "what"),
    [
        ("cases/core.yaml", "relevant: [RIGHT-1]", "relevant: [RIGHT-2]", "questions or labels"),
        ("cases/core.yaml", "saddle height", "saddle heights", "questions or labels"),
        ("documents/noise.md", "The saddle.", "A saddle.", "documents"),
    ],
)
def test_a_collection_that_changed_between_two_runs_is_refused(
    root: Path, file: str, old: str, new: str, what: str
) -> None:
    before = measured(root, "a")
    path = root / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError, match=f"different {what}"):
        compare(before, measured(root, "b"))


def test_texts_swapped_on_disk_are_other_documents_and_every_measure_falls(root: Path) -> None:
    before = measured(root, "a")
    right, noise = root / "documents" / "right.md", root / "documents" / "noise.md"
    one, other = right.read_text(encoding="utf-8"), noise.read_text(encoding="utf-8")
    right.write_text(other.replace("NOISE", "RIGHT"), encoding="utf-8")
    noise.write_text(one.replace("RIGHT", "NOISE"), encoding="utf-8")
    after = measured(root, "b")
    with pytest.raises(UsageError, match="different documents"):
        compare(before, after)
    for name in ("hit", "recall", "precision", "hit@1", "reciprocal_rank@10"):
        found = compare_rows(before.questions, after.questions, name)
        assert isinstance(found, Difference)
        assert found.value < -0.4
        assert found.p_value < 0.01


def test_a_sample_is_not_compared_with_the_whole(tmp_path: Path) -> None:
    settings = SETTINGS.replace("[WARR]", "[RIGHT]")
    root = collection(tmp_path / "c", FILES, cases=CASES, settings=settings)
    whole = measured(root, "a")
    assistant = Assistant.of(Collection.open(root, sample=True))
    questions = load_questions(assistant)
    asked = ask_once(questions, assistant, Silent(), lambda line: None)
    path = run_path("b", assistant.collection.state)
    save_run(run_of(asked, questions, assistant), path)
    with pytest.raises(UsageError, match="different documents"):
        compare(whole, load_run("b", assistant.collection.state))


# ---- for people -----------------------------------------------------------------------------


def test_under_thirty_questions_the_report_says_that_they_are_few() -> None:
    for count, few in ((29, True), (30, False)):
        found = compare(run("a", *([1.0] * count)), run("b", *([1.0] * count)))
        lines = list(comparison_lines(found))
        assert f"{count} development questions; paired differences b - a" in lines[2]
        said = "fewer than 30 questions: only large differences can show"
        assert (said in lines) == few


def test_the_report_gives_each_measure_its_verdict_and_what_could_have_shown() -> None:
    found = compare(run("a", *([1.0] * 8)), run("b", *([0.0] * 8)))
    text = "\n".join(comparison_lines(found))
    [line] = [line for line in text.splitlines() if line.startswith("recall")]
    assert line.endswith("clear, worse")
    assert "-1.000" in line
    assert "could be chance" in "\n".join(
        comparison_lines(compare(run("a", 1.0, 1.0), run("b", 1.0, 0.0)))
    )


def test_what_the_questions_cannot_bound_has_no_interval_in_the_report() -> None:
    found = compare(run("a", 1.0, 1.0, prompt_tokens=90), run("b", 1.0, 1.0, prompt_tokens=90))
    values = found.as_json()["prompt_tokens"]
    assert (values["low"], values["high"]) == (None, None)
    assert not any("inf" in line for line in comparison_lines(found))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "yes", [1]])
def test_a_score_that_is_no_number_is_refused(value: object) -> None:
    broken = run("b", 1.0)
    broken.questions[0]["recall"] = value  # type: ignore[index]
    with pytest.raises(UsageError, match=r"Q0: recall is .* no number"):
        compare(run("a", 1.0), broken)
