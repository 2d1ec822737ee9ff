"""A judge beside people: the numbers by hand, and a report that shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fakes import FakeEncoder, FakeReranker

from atlas.errors import NothingToMeasure, UsageError
from atlas.measure.agreement import agreement_of
from atlas.measure.calibration import calibrate, run
from atlas.measure.judges import Outcome, Verdict
from atlas.measure.labels import Labelled
from atlas.measure.statistics import Interval, Unscored
from atlas.models import load_both

LABELS = Path(__file__).parents[1] / "judge_labels"


@dataclass
class Fixed:
    """A judge that says what it is told to, by the answer; and keeps what it was shown."""

    says: dict[str, Outcome]
    name: str = "fixed"
    shown: list[tuple[str, ...]] = field(default_factory=list)

    def judge(
        self,
        question: str,
        answer: str,
        sources: Sequence[str],
        *,
        reference: str = "",
        history: Sequence[str] = (),
    ) -> Verdict:
        self.shown.append((question, answer, *sources, reference, *history))
        verdict = self.says[answer]
        if verdict == "unscored":
            return Verdict(verdict=verdict, score=Unscored("no reply"), reason="no reply")
        score = 0.9 if verdict == "correct" else 0.1
        return Verdict(verdict=verdict, score=score, reason=f"because {answer}")


def label(id: str, label: str, kind: str = "k", raters: tuple[float, ...] = ()) -> Labelled:
    return Labelled(
        id=id, kind=kind, question="q", sources=("s",), answer=id, reference="r", history=("h",),
        label=label, raters=raters, where="here:1",
    )  # type: ignore[arg-type]  # fmt: skip


FOUR = [label("a", "correct"), label("b", "correct"), label("c", "wrong"), label("d", "wrong", "l")]


def test_agreement_kappa_and_confusion_by_hand() -> None:
    judge = Fixed({"a": "correct", "b": "wrong", "c": "wrong", "d": "wrong"})
    found = calibrate(judge, FOUR)
    shown = found.as_json()
    assert shown["agreement"] == {"same": 3, "of": 4}
    assert shown["kappa"]["value"] == pytest.approx((0.75 - 0.5) / (1 - 0.5))
    assert shown["base_rate"] == 0.5
    assert shown["constant_judge"] == {"same": 2, "of": 4}
    assert shown["confusion"] == {
        "correct": {"correct": 1, "wrong": 1, "unscored": 0},
        "wrong": {"correct": 0, "wrong": 2, "unscored": 0},
    }
    assert shown["by_kind"]["k"]["same"] == 2
    assert shown["by_kind"]["l"]["of"] == 1
    assert shown["labels"][1] == {
        "id": "b", "kind": "k", "person": "correct", "judge": "wrong", "score": 0.1,
        "reason": "because b",
    }  # fmt: skip
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def test_an_unscored_verdict_gains_nothing() -> None:
    judge = Fixed({"a": "correct", "b": "unscored", "c": "wrong", "d": "wrong"})
    found = calibrate(judge, FOUR)
    shown = found.as_json()
    assert shown["agreement"] == {"same": 3, "of": 4}
    assert shown["coverage"] == {"scored": 3, "of": 4}
    assert shown["kappa"]["value"] == pytest.approx(1.0)
    assert shown["kappa_with_unscored"]["value"] == pytest.approx(0.5)
    assert shown["labels"][1]["score"] is None
    assert shown["labels"][1]["unscored"] == "no reply"
    assert any("unscored counted as disagreement" in line for line in found.lines())


def test_a_judge_that_scores_nothing_has_no_kappa_and_no_agreement() -> None:
    found = calibrate(Fixed(dict.fromkeys("abcd", "unscored")), FOUR)
    assert isinstance(found.kappa, Unscored)
    assert found.as_json()["agreement"]["same"] == 0
    assert found.as_json()["kappa"]["value"] is None


def test_a_judge_never_sees_the_label() -> None:
    judge = Fixed(dict.fromkeys("abcd", "correct"))
    calibrate(judge, FOUR)
    assert judge.shown[0] == ("q", "a", "s", "r", "h")


def test_a_kind_is_trusted_only_where_its_whole_interval_is_high() -> None:
    rows = [
        *(label(f"g{n}", "wrong", "good") for n in range(30)),
        *(label(f"f{n}", "correct", "few") for n in range(4)),
        *(label(f"b{n}", "correct", "bad") for n in range(30)),
    ]
    says: dict[str, Outcome] = {row.id: row.label if row.kind != "bad" else "wrong" for row in rows}
    found = calibrate(Fixed(says), rows)
    verdicts = {kind: item.verdict for kind, item in found.by_kind.items()}
    assert verdicts == {"good": "may be trusted", "few": "open", "bad": "not to be trusted"}
    missing = found.by_kind["few"].missing
    assert missing == 9  # thirteen of thirteen: 0.025 ** (1 / 13) = 0.753
    assert any(f"at least {missing} more labels" in line for line in found.lines())


def test_the_raters_are_shown_beside_the_judge() -> None:
    rows = [
        label("a", "correct", raters=(4, 4, 3)), label("b", "correct", raters=(4, 3, 3)),
        label("c", "wrong", raters=(1, 2, 1)), label("d", "wrong", raters=(2, 1, 1)),
        label("e", "wrong", raters=(1, 1, 1)),
    ]  # fmt: skip
    says: dict[str, Outcome] = {row.id: row.label for row in rows}
    found = calibrate(Fixed(says), rows).raters
    assert found is not None
    assert isinstance(found.judge, Interval)
    assert found.judge.value > 0.8
    assert len(found.each) == 3
    # the first rater's ranks 4.5 4.5 1.5 3 1.5 with those of the others' means 5 4 3 1.5 1.5
    assert isinstance(found.each[0], Interval)
    assert found.each[0].value == pytest.approx(0.7300, abs=1e-4)
    assert isinstance(found.kappa, float)
    assert 0 < found.kappa < 1
    assert calibrate(Fixed(says), [*rows[:4], label("e", "wrong")]).raters is None


def test_progress_is_told_after_every_answer() -> None:
    told: list[int] = []
    calibrate(Fixed(dict.fromkeys("abcd", "wrong")), FOUR, told.append)
    assert told == [1, 1, 1, 1]


def test_without_labels_there_is_nothing_to_measure() -> None:
    with pytest.raises(NothingToMeasure):
        calibrate(Fixed({}), [])


def test_the_report_stays_within_100_columns_and_names_every_disagreement() -> None:
    rows = [
        label("x" * 80, "correct", "a kind with a very long name indeed, longer than a column"),
        label("word " * 60, "wrong"),
    ]
    found = calibrate(Fixed({rows[0].answer: "wrong", rows[1].answer: "correct"}), rows)
    lines = list(found.lines())
    assert max(map(len, lines)) <= 100
    assert "2 disagreements" in lines
    assert any("agreement 0 of 2" in line for line in lines)


def test_overlap_agrees_on_exactly_three_of_the_six_core_labels() -> None:
    found = run("overlap", LABELS / "core.yaml", FakeEncoder(), FakeReranker())
    assert found.as_json()["agreement"] == {"same": 3, "of": 6}
    assert {i.labelled.id: i.verdict.verdict for i in found.judgements} == {
        "J01": "correct", "J02": "correct", "J03": "correct", "J04": "wrong", "J05": "wrong",
        "J06": "correct",
    }  # fmt: skip
    assert any("agreement 3 of 6" in line for line in found.lines())


@pytest.mark.models
def test_grounded_sees_the_wrong_version_and_the_wrong_count_of_the_core(tmp_path: Path) -> None:
    models = load_both("bge-small-en-v1.5", "ms-marco-minilm-l-12-v2", tmp_path)
    found = run("grounded", LABELS / "core.yaml", *models)
    said = {item.labelled.id: item.verdict.verdict for item in found.judgements}
    assert said["J02"] == said["J04"] == said["J06"] == "wrong"
    assert said["J01"] == said["J03"] == "correct"
    assert found.scored == 6


def test_an_unknown_judge_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(UsageError, match="overlap, grounded"):
        run("oracle", LABELS, FakeEncoder(), FakeReranker())


def test_a_judge_must_beat_saying_the_commoner_label_where_a_kind_has_both() -> None:
    assert agreement_of(100, 100, 0.84).verdict == "may be trusted"
    assert agreement_of(191, 234).verdict == "may be trusted"
    below = agreement_of(191, 234, 197 / 234)
    assert below.verdict == "open"
    assert below.missing > 0
