"""Measures of a ranked list: by hand, and as trec_eval and ir_measures compute them."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import ir_measures
import pytest

from atlas.errors import UsageError
from atlas.measure.ranking import RANKED, measure, ordered
from atlas.measure.statistics import Unscored

DATA = Path(__file__).parents[2] / "shared" / "data" / "trec-format"
Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]
THEIRS = {
    "hit": "Success",
    "precision": "P",
    "recall": "R",
    "reciprocal_rank": "RR",
    "ndcg": "nDCG",
}
RANKING = ["a", "b", "c", "d"]
GRADES = {"b": 1, "d": 3, "e": 2, "c": 0}


def theirs(qrels: Qrels, run: Run) -> dict[tuple[str, str], float]:
    """What ir_measures says, by question and the name that we give the measure."""
    names = {}
    for item in RANKED:
        kind, _, depth = item.name.partition("@")
        names[ir_measures.parse_measure(f"{THEIRS[kind]}@{depth}")] = item.name
    found = ir_measures.iter_calc(list(names), qrels, run)
    return {(one.query_id, names[one.measure]): one.value for one in found}


def first_ranks(qrels: Qrels, run: Run) -> dict[str, float]:
    """trec_eval's own reciprocal rank, which knows no cutoff."""
    import pytrec_eval

    found = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)
    return {question: values["recip_rank"] for question, values in found.items()}


def assert_agree(qrels: Qrels, run: Run, *, ties: bool) -> int:
    """Compare every measure on every question; returns how many values were compared.

    At ties ir_measures orders by another rule for RR@k alone; there trec_eval's is compared.
    """
    expected = theirs(qrels, run)
    ranks = first_ranks(qrels, run)
    compared = 0
    for question, grades in qrels.items():
        ranked = ordered(run.get(question, {}).items())
        for item in RANKED:
            ours = item(ranked, grades)
            want = expected[question, item.name]
            if ties and item.name == "reciprocal_rank@10":
                rank = ranks.get(question, 0.0)
                want = rank if rank >= 0.1 else 0.0
            if isinstance(ours, Unscored):
                assert max(grades.values()) <= 0
                assert want == 0
            else:
                assert ours == pytest.approx(want, abs=1e-9), (question, item.name)
            compared += 1
    return compared


def random_question(source: random.Random, scores: int) -> tuple[dict[str, int], dict[str, float]]:
    docs = [f"D{number}" for number in source.sample(range(200), 40)]
    judged = source.sample(docs, source.randint(1, 15))
    grades = {doc: source.choice((-1, 0, 0, 1, 1, 2, 3)) for doc in judged}
    ranked = source.sample(docs, source.choice((0, 1, 2, 4, 9, 10, 25)))
    return grades, {doc: source.randint(0, scores) / 7 for doc in ranked}


# ---- by hand --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hit@1", 0.0),
        ("hit@3", 1.0),
        ("precision@1", 0.0),
        ("precision@3", 1 / 3),
        ("precision@5", 2 / 5),
        ("precision@10", 2 / 10),
        ("recall@3", 1 / 3),
        ("recall@5", 2 / 3),
        ("reciprocal_rank@10", 1 / 2),
        (
            "ndcg@10",
            (1 / math.log2(3) + 3 / math.log2(5)) / (3 + 2 / math.log2(3) + 1 / math.log2(4)),
        ),
        ("ndcg@2", (1 / math.log2(3)) / (3 + 2 / math.log2(3))),
    ],
)
def test_a_measure_is_what_its_definition_says(name: str, value: float) -> None:
    assert measure(name)(RANKING, GRADES) == pytest.approx(value)


def test_the_first_relevant_block_beyond_the_cutoff_counts_for_nothing() -> None:
    ranked = [f"x{number}" for number in range(10)] + ["a"]
    for item in RANKED:
        assert item(ranked, {"a": 1}) == 0


def test_an_empty_ranking_scores_zero() -> None:
    assert {item([], {"a": 1}) for item in RANKED} == {0.0}


def test_a_perfect_ranking_scores_one_except_for_precision() -> None:
    for item in RANKED:
        if not item.name.startswith(("precision", "recall@3")):
            assert item(["d", "e", "b"], GRADES) == pytest.approx(1)


@pytest.mark.parametrize("grades", [{}, {"a": 0}, {"a": -1}])
def test_without_a_relevant_block_there_is_no_score(grades: dict[str, int]) -> None:
    for item in RANKED:
        assert item(RANKING, grades) == Unscored("the question has no relevant block")


def test_a_ref_ranked_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="b is ranked twice"):
        RANKED[0](["a", "b", "b"], {"a": 1})


# ---- names ----------------------------------------------------------------------------------


def test_the_report_holds_these_measures_under_these_names() -> None:
    assert " ".join(item.name for item in RANKED) == (
        "hit@1 hit@3 hit@5 hit@10 precision@1 precision@3 precision@5 precision@10 "
        "recall@3 recall@5 recall@10 reciprocal_rank@10 ndcg@10"
    )
    assert all(item.meaning and "{" not in item.meaning for item in RANKED)


def test_a_measure_is_found_by_its_name() -> None:
    assert [measure(item.name) for item in RANKED] == list(RANKED)
    assert measure("recall@20").k == 20


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("recal@10", "recall@10"),
        ("ndcg", "ndcg@10"),
        ("hit@0", "hit@1"),
        ("hit@x", "hit@5"),
        ("hit@5.0", "hit@5"),
        ("", "ndcg@10"),
    ],
)
def test_an_unknown_name_is_refused_with_near_ones(name: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"unknown measure {name!r}.*{near}"):
        measure(name)


# ---- order ----------------------------------------------------------------------------------


def test_higher_scores_come_first_and_ties_by_id_from_the_last() -> None:
    assert ordered([("a", 1.0), ("b", 2.0), ("c", 1.0)]) == ["b", "c", "a"]
    assert ordered([("D10", 1), ("D9", 1), ("é", 1), ("z", 1)]) == ["é", "z", "D9", "D10"]
    assert ordered([]) == []


def test_scores_equal_in_single_precision_tie() -> None:
    assert ordered([("a", 1 + 1e-12), ("b", 1.0)]) == ["b", "a"]
    assert ordered([("a", 1e300), ("b", 1e299)]) == ["b", "a"]
    assert ordered([("a", 1 + 1e-6), ("b", 1.0)]) == ["a", "b"]


def test_a_score_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="score of a is not a number"):
        ordered([("a", math.nan)])


# ---- agreement with others ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_random_runs_with_ties_agree_with_trec_eval(seed: int) -> None:
    source = random.Random(seed)
    questions = {str(number): random_question(source, 5) for number in range(100)}
    qrels = {name: grades for name, (grades, _) in questions.items()}
    run = {name: scores for name, (_, scores) in questions.items()}
    assert assert_agree(qrels, run, ties=True) == 100 * len(RANKED)


def test_random_runs_without_ties_agree_with_ir_measures() -> None:
    source = random.Random(9)
    qrels, run = {}, {}
    for number in range(200):
        grades, scores = random_question(source, 5)
        qrels[str(number)] = grades
        run[str(number)] = {doc: float(place) for place, doc in enumerate(scores)}
    assert assert_agree(qrels, run, ties=False) == 200 * len(RANKED)


@pytest.mark.parametrize(
    "scores", [(1 + 1e-12, 1.0), (16777217.0, 16777216.0), (1e300, 1e299), (1e-60, 1e-61)]
)
def test_scores_too_near_for_single_precision_agree_with_trec_eval(
    scores: tuple[float, float],
) -> None:
    run = {"q": dict(zip("ab", scores, strict=True))}
    assert assert_agree({"q": {"a": 1, "b": 0}}, run, ties=True) == len(RANKED)


FILES = [
    ("trec_eval/qrels.test", "trec_eval/results.test"),
    ("ir_measures/compat.qrels", "ir_measures/compat.run"),
    ("ir_measures/cwl.qrels", "ir_measures/cwl.run"),
]


def rows(path: Path) -> Iterator[list[str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield line.split()


@pytest.mark.skipif(not DATA.is_dir(), reason="the files of trec_eval are not beside the code")
@pytest.mark.parametrize(("qrels_file", "run_file"), FILES)
def test_published_files_with_ties_agree(qrels_file: str, run_file: str) -> None:
    qrels: Qrels = defaultdict(dict)
    run: Run = defaultdict(dict)
    for question, _, doc, grade in rows(DATA / qrels_file):
        qrels[question][doc] = int(grade)
    for question, _, doc, _, score, _ in rows(DATA / run_file):
        run[question][doc] = float(score)
    assert assert_agree(dict(qrels), dict(run), ties=True) >= len(RANKED)


@pytest.mark.skipif(not DATA.is_dir(), reason="the files of trec_eval are not beside the code")
def test_the_printed_results_of_trec_eval_are_reproduced() -> None:
    qrels: Qrels = defaultdict(dict)
    run: Run = defaultdict(dict)
    for question, _, doc, grade in rows(DATA / "trec_eval" / "qrels.test"):
        qrels[question][doc] = int(grade)
    for question, _, doc, _, score, _ in rows(DATA / "trec_eval" / "results.test"):
        run[question][doc] = float(score)
    printed = {row[0]: row[2] for row in rows(DATA / "trec_eval" / "out.test")}
    for depth in (5, 10, 100):
        values = [measure(f"precision@{depth}")(ordered(run[q].items()), qrels[q]) for q in run]
        scored = [value for value in values if not isinstance(value, Unscored)]
        assert f"{sum(scored) / len(scored):.4f}" == printed[f"P_{depth}"]
