"""A random draw of a run's answers gives labels of that run, and of no other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from test_draw_file import RUN, drawn, label

from atlas.errors import UsageError
from atlas.measure.draws import (
    Draw,
    Given,
    export_draw,
    load_draw,
    matched,
    population,
    run_digest,
)

# ---- the draw -------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [-1, 0, 21])
def test_a_count_that_cannot_be_drawn_is_refused(tmp_path: Path, count: int) -> None:
    with pytest.raises(UsageError, match=f"{count} labels of 20 answers: draw 1 to 20"):
        export_draw(RUN, count, tmp_path / "draw.yaml")
    with pytest.raises(UsageError, match="there is none"):
        export_draw([], 1, tmp_path / "draw.yaml")


def ids(path: Path, count: int, seed: int, run: list[Given] = RUN) -> list[str]:
    path.unlink(missing_ok=True)
    return [row.id for row in export_draw(run, count, path, seed).rows]


def test_a_draw_is_repeatable_shuffled_and_independent_of_the_runs_order(tmp_path: Path) -> None:
    path = tmp_path / "draw.yaml"
    all_ids = ids(path, 20, 3)
    assert sorted(all_ids) == sorted(row.id for row in RUN)
    assert all_ids != [row.id for row in RUN]
    assert ids(path, 20, 3, RUN[::-1]) == all_ids
    assert ids(path, 6, 3) == all_ids[:6]
    assert ids(path, 20, 4) != all_ids


def test_every_answer_is_drawn_equally_often(tmp_path: Path) -> None:
    path = tmp_path / "draw.yaml"
    times = Counter(id for seed in range(300) for id in ids(path, 5, seed))
    # 300 draws of 5 of 20: 75 times each, with a standard deviation of 7.5.
    assert len(times) == 20
    assert all(75 - 30 < count < 75 + 30 for count in times.values())


def test_the_digest_tells_runs_apart_and_not_their_order() -> None:
    assert run_digest(RUN[::-1]) == run_digest(RUN)
    for change in ({"id": "X"}, {"question": "?"}, {"answer": "No."}, {"writer": "chat"}):
        assert run_digest([replace(RUN[0], **change), *RUN[1:]]) != run_digest(RUN)
    assert run_digest(RUN[1:]) != run_digest(RUN)


@pytest.mark.parametrize("other", [replace(RUN[0], writer="chat", id="X"), RUN[0]])
def test_answers_that_are_no_run_are_a_mistake_of_the_caller(tmp_path: Path, other: Given) -> None:
    with pytest.raises(ValueError, match="no run"):
        export_draw([*RUN, other], 3, tmp_path / "draw.yaml")
    with pytest.raises(ValueError, match="no run"):
        matched(load_draw(drawn(tmp_path)), [*RUN, other])


# ---- the labels of a run --------------------------------------------------------------------


def test_labels_count_from_the_top(tmp_path: Path) -> None:
    draw = load_draw(label(drawn(tmp_path), "correct", "wrong", "'correct'"))
    first, second, third = (row.id for row in draw.rows[:3])
    assert matched(draw, RUN[::-1]) == {first: 1.0, second: 0.0, third: 1.0}


def test_a_draw_without_labels_gives_none(tmp_path: Path) -> None:
    assert matched(load_draw(label(drawn(tmp_path), "''")), RUN) == {}


def test_labels_below_an_empty_one_are_refused(tmp_path: Path) -> None:
    draw = load_draw(label(drawn(tmp_path), "correct", "", "wrong", "", "wrong"))
    with pytest.raises(UsageError, match="label from the top") as caught:
        matched(draw, RUN)
    labelled, empty = draw.rows[2], draw.rows[1]
    assert str(caught.value).startswith(f"{labelled.where}: ")
    assert f"{labelled.id} is labelled while {empty.id} above, at {empty.where}" in str(
        caught.value
    )


def changed(draw: Draw, count: int, **change: str) -> list[Given]:
    """The run with the first drawn rows changed."""
    hit = {row.id for row in draw.rows[:count]}
    return [replace(row, **change) if row.id in hit else row for row in RUN]


@pytest.mark.parametrize("change", [{"answer": "For 3 years"}, {"question": "How long?"}])
def test_labels_of_other_answers_say_nothing_of_this_run(
    tmp_path: Path, change: dict[str, str]
) -> None:
    draw = load_draw(label(drawn(tmp_path), *["correct"] * 6))
    with pytest.raises(UsageError, match=r"2 of 6 rows .* draw again"):
        matched(draw, changed(draw, 2, **change))
    with pytest.raises(UsageError, match=r"6 of 6 rows .* draw again"):
        matched(draw, [])


def test_labels_of_another_writer_say_nothing_of_this_run(tmp_path: Path) -> None:
    draw = load_draw(drawn(tmp_path))
    with pytest.raises(
        UsageError, match=r"drawn from extractive 1f2e, the run is by chat: .*again"
    ):
        matched(draw, [replace(row, writer="chat") for row in RUN])


def test_a_draw_of_a_part_of_the_run_is_no_draw_of_the_run(tmp_path: Path) -> None:
    draw = load_draw(label(drawn(tmp_path), "correct"))
    with pytest.raises(UsageError, match=r"drawn from 20 answers, 19 of which .*draw again"):
        matched(draw, [row for row in RUN if row.id != undrawn(draw)[0]])
    rest = {row.id for row in RUN} - {row.id for row in draw.rows}
    other = [replace(row, answer="No.") if row.id in rest else row for row in RUN]
    with pytest.raises(UsageError, match="some that were not drawn have changed"):
        matched(draw, other)


def test_answers_that_came_later_are_left_out_and_spoil_no_label(tmp_path: Path) -> None:
    draw = load_draw(label(drawn(tmp_path), "correct"))
    run = [*RUN, replace(RUN[0], id="X")]
    assert matched(draw, run) == matched(draw, RUN) != {}
    assert population(draw, run) == RUN


def undrawn(draw: Draw) -> list[str]:
    """Ids of the run that are not among the rows."""
    rows = {row.id for row in draw.rows}
    return [row.id for row in RUN if row.id not in rows]


def test_rows_that_were_moved_or_picked_are_no_random_draw(tmp_path: Path) -> None:
    draw = load_draw(drawn(tmp_path))
    first, second, *others = draw.rows
    with pytest.raises(UsageError, match=f"{second.id} stands where seed 3 draws {first.id}"):
        matched(replace(draw, rows=(second, first, *others)), RUN)
    with pytest.raises(UsageError, match="stands where seed 4 draws"):
        matched(replace(draw, seed=4), RUN)
