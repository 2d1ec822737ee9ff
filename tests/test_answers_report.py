"""What `measure-answers` prints for a person and for a program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from test_answers_summary import CASES, NONE, ORACLE, REAL, failed, paid, summary
from test_outcomes import case, outcome

from atlas.measure.answers.judged import Judged
from atlas.measure.answers.report import SHOWN, WIDTH, as_json, lines
from atlas.measure.answers.summary import Summary
from atlas.measure.corrected import corrected
from atlas.measure.judges import Verdict
from atlas.measure.statistics import Unscored, estimate

ARM = ("accuracy", "abstained", "wrongly_abstained", "invented", "errors")
EVERYTHING_FAILED = [
    failed(case.id, arm=arm) for case in CASES for arm in ("none", "real", "oracle")
]


def printed(found: Summary, judged: Judged | None = None) -> list[str]:
    return list(lines(found, "8 development questions", judged))


def values(found: Summary, judged: Judged | None = None) -> dict[str, Any]:
    """The JSON as a program reads it; nothing but JSON may stand in it."""
    text = json.dumps(as_json(found, {"schema": "x"}, judged), allow_nan=False)
    read: dict[str, Any] = json.loads(text)
    return read


def line(found: Sequence[str], start: str) -> str:
    [only] = [text for text in found if text.strip().startswith(start)]
    return only


def judged() -> Judged:
    verdicts = {"A1": Verdict(verdict="correct", score=1.0, reason="as the source")}
    return Judged(
        judge="overlap",
        verdicts=verdicts,
        rate=estimate([1.0], total=1),
        corrected=corrected([1.0], []),
        with_facts=estimate([1.0]),
        changed=Unscored("one look shows no spread; give --repeat 3"),
    )


# ---- JSON -------------------------------------------------------------------------------------


def test_programs_find_what_the_specification_promises() -> None:
    found = values(summary())
    assert found["schema"] == "x"
    assert list(found["arms"]) == ["none", "real", "oracle"]
    for rates in found["arms"].values():
        for name in ARM:
            assert set(rates[name]) >= {"mean", "low", "high", "scored", "total", "failed"}
            if rates[name]["mean"] is not None:
                assert 0 <= rates[name]["low"] <= rates[name]["mean"] <= rates[name]["high"] <= 1
    assert found["easy"]["questions"] == found["hard"]["questions"] == 2
    assert found["headroom"]["value"] == pytest.approx(1 / 3)
    assert set(found["ceiling"]) == {"value", "low", "high"}
    assert found["causes"] == {"left out": 1, "declined": 1, "invented": 1}
    assert set(found["cost"]) == {"none", "real", "oracle"}


def test_a_missing_measurement_is_null_beside_its_reason() -> None:
    found = values(summary(REAL))
    assert (found["headroom"]["value"], found["ceiling"]["value"]) == (None, None)
    assert found["headroom"]["unscored"]
    assert found["ceiling"]["unscored"] == "the arm oracle was not asked"
    assert found["spread"] == {
        "sd": None, "unscored": "one run shows no spread; give --repeat 3",
    }  # fmt: skip
    assert found["cost"]["real"]["price"] is None
    assert found["judged"] is None
    easy = found["easy"]["real"]
    assert easy["mean"] is None
    assert easy["unscored"] == "there was no question"


@pytest.mark.parametrize("outcomes", [EVERYTHING_FAILED, REAL, [*NONE, *REAL, *ORACLE]])
def test_it_is_json_and_readable_whatever_became_of_the_run(outcomes: list[Any]) -> None:
    for found in (summary(outcomes), summary(outcomes, repeats=2), summary(outcomes, ks=(3, 10))):
        assert values(found)["arms"]["real"]["errors"]["total"] == len(CASES)
        assert len(printed(found)) > 20
        assert all(len(text) <= WIDTH + 20 for text in printed(found))
    assert values(summary([], []))["arms"] == {}
    assert printed(summary([], []))


def test_every_wrong_answer_and_every_failure_is_listed() -> None:
    wrong = replace(REAL[1], place=2, prompt=("A", "B", "C"), answer="For\n2 years.")
    found = values(summary([REAL[0], wrong, *REAL[2:], failed("A1", arm="oracle")]))
    assert [row["id"] for row in found["wrong"]] == ["A2", "A3", "N2"]
    assert found["wrong"][0] == {
        "id": "A2", "cause": "left out", "place": 2, "of": 3, "status": "answered",
        "why": ["lacks '3 years'"], "answer": "For\n2 years.",
    }  # fmt: skip
    assert found["wrong"][1]["place"] is None
    assert found["wrong"][1]["answer"] == "The documents do not say."
    assert [(row["id"], row["arm"], row["cause"]) for row in found["failures"]] == [
        ("A4", "real", "deadline"), ("A1", "oracle", "deadline"),
    ]  # fmt: skip


def test_the_spread_of_equal_runs_is_told_with_what_changed() -> None:
    again = [replace(item, repeat=1) for item in (*REAL[1:], REAL[0])]
    flipped = [replace(outcome("A1", False), repeat=1), *again[:-1]]
    found = values(summary([*REAL, *flipped], repeats=2))["spread"]
    assert found["repeats"] == 2
    assert found["sd"] == pytest.approx(abs(3 / 6 - 2 / 6) / 2**0.5)
    assert found["changed"]["mean"] == pytest.approx(1 / 6)


def test_the_sweep_is_a_row_per_k_with_the_step_to_it() -> None:
    runs = [*REAL, *(replace(outcome(item.case), k=10) for item in REAL)]
    found = values(summary(runs, ks=(10,)))
    assert [row["k"] for row in found["sweep"]] == [5, 10]
    assert found["sweep"][0]["step"] is None
    assert found["sweep"][1]["step"]["value"] == pytest.approx(0.5)
    assert found["sweep"][1]["step"]["noise"] is True
    assert found["enough_k"] == 10


def test_a_judge_stands_beside_what_corrects_it() -> None:
    found = values(summary(), judged())["judged"]
    assert (found["judge"], found["correct"]["mean"]) == ("overlap", 1.0)
    assert found["corrected"]["value"] is None
    assert found["corrected"]["missing"] == 30
    assert found["verdicts"] == {"A1": {"verdict": "correct", "reason": "as the source"}}
    assert found["changed"]["unscored"].startswith("one look")


# ---- for a person -----------------------------------------------------------------------------


def test_the_table_of_arms_has_rates_and_counts_errors() -> None:
    found = printed(summary())
    cells = [text.split() for text in found if text.startswith(("none ", "real ", "oracle "))][:3]
    assert [(row[0], row[1], row[-1]) for row in cells] == [
        ("none", "0.43", "0"), ("real", "0.50", "1"), ("oracle", "0.86", "0"),
    ]  # fmt: skip
    assert "  real: accuracy scored 6 of 8, failed 1, invented scored 2 of 2, failed 0" in found


def test_easy_hard_headroom_and_ceiling_are_lines_of_their_own() -> None:
    found = printed(summary())
    assert "2 with an answer, right without documents: real 0.50" in line(found, "easy ")
    assert "2 with an answer, not right" in line(found, "hard ")
    assert " 1 with an answer" in line(found, "unsorted ")
    assert line(found, "headroom").startswith("headroom  +0.333 [")
    assert " noise  oracle minus real" in line(found, "headroom")
    assert line(found, "ceiling").startswith("ceiling   0.143 [")
    sorted_out = summary([*NONE, *REAL], CASES[:4])
    assert not [text for text in printed(sorted_out) if text.startswith("unsorted")]


def test_causes_are_counted_and_the_first_wrong_answers_are_shown() -> None:
    count = SHOWN + 3
    cases = [case(f"Q{n}") for n in range(count)]
    wrong = [outcome(f"Q{n}", False, cause="left out", answer="x" * 500) for n in range(count)]
    found = printed(summary([replace(wrong[0], place=2, prompt=("A", "B")), *wrong[1:]], cases))
    assert f"{count} wrong answers in the real arm, by cause" in found
    assert line(found, str(count) + "  left out")
    shown = [text for text in found if text.startswith("  Q")]
    assert len(shown) == SHOWN
    assert shown[0].startswith("  Q0: left out, place 2 of 2: lacks '3 years':")
    assert "  … and 3 more, in --json" in found


def test_the_checks_and_the_table_of_abstentions_are_shown() -> None:
    found = printed(summary())
    assert line(found, "wrong drafts caught").split()[-3:] == ["0", "of", "2"]
    tables = [text.split()[-4:] for text in found if text.strip().startswith("should decline")]
    assert tables == [["1", "1", "0", "0"]] * 2  # real and oracle
    answers = [text.split()[-4:] for text in found if text.strip().startswith("should answer")]
    assert answers == [["3", "1", "0", "1"], ["5", "0", "0", "0"]]


def test_the_price_is_a_dash_without_prices() -> None:
    tokens = {"prompt_tokens": 1000, "completion_tokens": 100}
    runs = [replace(item, **tokens) for item in REAL]
    free = printed(summary(runs))
    assert [text.split()[-1] for text in free if text.startswith("  real  ")] == ["-"]
    chat = paid(input_price=2.0, output_price=10.0)
    cost = [text.split() for text in printed(summary(runs, chat=chat)) if text[:8] == "  real  "]
    assert cost == [["real", "1000", "100", "0.00", "0.00300"]]


def test_replies_from_the_cache_are_counted() -> None:
    assert not [text for text in printed(summary()) if "cache" in text]
    kept = [replace(item, cached=True) for item in REAL[:3]]
    assert line(printed(summary([*kept, *REAL[3:]])), "3 replies came from the cache")


def test_what_a_judge_says_never_stands_alone() -> None:
    found = printed(summary(), judged())
    start = found.index("judge overlap on the answers of the real arm, by their sources")
    assert found[start + 1].startswith("  as judged 1.000")
    assert found[start + 2].startswith("  corrected unscored (30 labels are needed, 0 are there")
    assert len(found) == start + 5
    assert not [text for text in printed(summary()) if "judge" in text]
