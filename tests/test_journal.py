"""Finished answers survive a kill, and a line that was cut short costs one answer."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from small import SETTINGS, collection, opened, use_fakes
from test_outcomes import outcome

from atlas.errors import AtlasError, UsageError
from atlas.measure.answers.journal import FOLDER, Journal, journal
from atlas.measure.answers.outcome import Outcome
from atlas.measure.answers.running import Plan, digest, drawn
from atlas.measure.cases import Case
from atlas.measure.questions import load_questions


class Killed(Exception):
    """The end of a run in the middle."""


@contextlib.contextmanager
def run_until_killed(state: Path, name: str = "run") -> Iterator[Journal]:
    """The journal of a run that does not come to its end."""
    with contextlib.suppress(Killed), journal(state, name) as kept:
        yield kept
        raise Killed


def killed(state: Path, answers: Sequence[Outcome]) -> Path:
    """The file that a killed run leaves."""
    with run_until_killed(state) as kept:
        for made in answers:
            kept.add(made)
    return kept.path


def found(state: Path, name: str = "run") -> list[Outcome]:
    """What a run that goes on finds."""
    with run_until_killed(state, name) as kept:
        assert kept.resumed == len(kept.done)
        return list(kept.done.values())


def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    made = [outcome("Q1"), outcome("Q2", right=False, cause="declined"), outcome("Q1", repeat=1)]
    killed(tmp_path, made)
    assert found(tmp_path) == made
    with run_until_killed(tmp_path) as kept:
        kept.add(outcome("Q3"))
    assert found(tmp_path) == [*made, outcome("Q3")]


def test_an_answer_stands_on_disk_as_soon_as_it_is_finished(tmp_path: Path) -> None:
    with journal(tmp_path, "run") as kept:
        for number in range(3):
            kept.add(outcome(f"Q{number}"))
            assert kept.path.read_bytes().count(b"\n") == number + 1


def test_a_finished_run_leaves_nothing_and_the_next_one_begins_anew(tmp_path: Path) -> None:
    with journal(tmp_path, "run") as kept:
        kept.add(outcome())
        assert kept.path.is_file()
    assert not kept.path.exists()
    assert found(tmp_path) == []


def test_another_run_has_a_journal_of_its_own(tmp_path: Path) -> None:
    killed(tmp_path, [outcome()])
    assert found(tmp_path, "other") == []
    assert found(tmp_path) == [outcome()]


def test_a_failed_answer_is_known_in_this_run_and_asked_again_in_the_next(tmp_path: Path) -> None:
    failed = replace(outcome("Q2"), error="no reply", cause="deadline")
    path = killed(tmp_path, [outcome(), failed])
    assert b"no reply" not in path.read_bytes()
    assert found(tmp_path) == [outcome()]
    with path.open("a", encoding="utf-8") as file:  # also where another hand wrote one
        file.write(json.dumps(failed.as_json()) + "\n")
    assert found(tmp_path) == [outcome()]
    with journal(tmp_path, "run") as kept:
        kept.add(failed)
        assert kept.done[failed.key] == failed


def test_wherever_a_line_is_cut_the_others_stand_and_the_next_one_is_whole(tmp_path: Path) -> None:
    made = [outcome("Q1"), outcome("Q2")]
    path = killed(tmp_path, made)
    whole = path.read_bytes()
    second = whole.index(b"\n") + 1
    for length in (*range(second, len(whole), 97), len(whole) - 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        complete = made if length == len(whole) - 1 else made[:1]  # only the line's end lacks
        with run_until_killed(tmp_path) as kept:
            assert list(kept.done.values()) == complete
            kept.add(outcome("Q3"))
        assert found(tmp_path) == [*complete, outcome("Q3")]


@pytest.mark.parametrize(
    "line", [b"", b"\xff\xfe", b"[1]", b"null", b'{"case": "Q9"}', b"[" * 100_000, b"\0" * 50]
)
def test_a_line_that_is_no_answer_is_passed_over(tmp_path: Path, line: bytes) -> None:
    path = killed(tmp_path, [outcome("Q1")])
    path.write_bytes(line + b"\n" + path.read_bytes() + line + b"\n")
    assert found(tmp_path) == [outcome("Q1")]


def test_answers_of_many_threads_do_not_mix(tmp_path: Path) -> None:
    made = [outcome(f"Q{number}", answer="x" * 5000) for number in range(200)]
    together = threading.Barrier(8)

    def write(part: list[Outcome]) -> None:
        together.wait()
        for item in part:
            kept.add(item)

    with run_until_killed(tmp_path) as kept:
        threads = [threading.Thread(target=write, args=(made[n::8],)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found(tmp_path), key=lambda item: int(item.case[1:])) == made


def test_one_answer_is_added_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adding, together = threading.Lock(), []

    def add(handle: int, line: bytes) -> None:
        together.append(not adding.acquire(blocking=False))
        time.sleep(0.02)
        if not together[-1]:
            adding.release()

    monkeypatch.setattr("atlas.measure.answers.journal.add_line_to", add)
    with run_until_killed(tmp_path) as kept, ThreadPoolExecutor(4) as pool:
        list(pool.map(kept.add, [outcome(f"Q{number}") for number in range(8)]))
    assert together == [False] * 8


def test_the_same_run_twice_at_once_is_refused_and_leaves_the_first_alone(tmp_path: Path) -> None:
    with journal(tmp_path, "run") as kept:
        kept.add(outcome())
        with pytest.raises(UsageError, match="going on in another"), journal(tmp_path, "run"):
            raise AssertionError
        with journal(tmp_path, "other"):
            pass
        assert kept.path.is_file()
        kept.add(outcome("Q2"))
        assert kept.path.read_bytes().count(b"\n") == 2


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("in the way")
    with pytest.raises(AtlasError, match=r"run\.jsonl: could not be opened"):
        found(tmp_path)


def test_a_disk_that_refuses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with run_until_killed(tmp_path) as kept:
        monkeypatch.setattr("atlas.measure.answers.journal.os.write", full)
        with pytest.raises(AtlasError, match=r"run\.jsonl: could not be written \(No space left"):
            kept.add(outcome())


# ---- what a run is ----------------------------------------------------------------------------


def test_a_run_is_told_from_every_other_by_what_its_answers_depend_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch)
    assistant = opened(collection(tmp_path / "c", settings=SETTINGS))
    questions = load_questions(assistant)
    plan = Plan(ks=(3, 5))
    same = digest(plan, questions, assistant)
    assert same == digest(replace(plan, at_once=8), questions, assistant)
    others = [
        digest(replace(plan, ks=(3,)), questions, assistant),
        digest(replace(plan, arms=("real",)), questions, assistant),
        digest(replace(plan, repeats=2), questions, assistant),
        digest(plan, replace(questions, cases=questions.cases[:1]), assistant),
        digest(plan, replace(questions, documents=questions.documents[:1]), assistant),
    ]
    facts = replace(questions.cases[0], facts=(("4 years",),))
    others.append(digest(plan, replace(questions, cases=(facts,)), assistant))
    others.append(
        digest(plan, questions, assistant.under(replace(assistant.settings, token_budget=99)))
    )
    assistant.reranker.fingerprint = "another"  # type: ignore[union-attr]
    others.append(digest(plan, questions, assistant))
    assert len({same, *others}) == 1 + len(others)


def test_a_draw_of_questions_is_the_same_one_every_time_and_keeps_their_order() -> None:
    cases = tuple(Case(id=f"Q{n}", question=f"{n}", where="x") for n in range(50))
    some = drawn(cases, 10)
    assert some == drawn(cases, 10)
    assert len(some) == 10
    assert list(some) == sorted(some, key=cases.index)
    assert some != cases[:10]
    assert drawn(cases, 50) == drawn(cases, 99) == cases
    assert drawn((), 3) == ()
