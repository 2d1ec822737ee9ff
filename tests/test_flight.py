"""Several pieces of work at once: results in order, errors in turn, no thread left behind."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from atlas.measure.flight import in_flight

PATIENCE = 20.0
"""Seconds after which a test that hangs has failed."""


class Watched:
    """Items that count how many of them were taken."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.taken = 0

    def __iter__(self) -> Iterator[int]:
        for number in range(self.count):
            self.taken += 1
            yield number


def settled(threads: int) -> bool:
    """Whether no more threads run than before, after a moment."""
    until = time.monotonic() + PATIENCE
    while threading.active_count() > threads and time.monotonic() < until:
        time.sleep(0.01)
    return threading.active_count() <= threads


@pytest.mark.parametrize("count", [-1, 0, 1, 2, 7, 100])
@pytest.mark.parametrize("items", [0, 1, 50])
def test_every_result_comes_once_and_in_the_order_of_the_items(items: int, count: int) -> None:
    before = threading.active_count()
    assert list(in_flight(lambda n: n * n, range(items), count)) == [n * n for n in range(items)]
    assert settled(before)


def test_a_slow_item_keeps_its_place() -> None:
    last = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            assert last.wait(PATIENCE)  # ends after all that come behind it
        elif number == 5:
            last.set()
        return number

    assert list(in_flight(work, range(6), 2)) == list(range(6))


def test_as_many_as_asked_for_are_worked_on_at_once_and_no_more() -> None:
    lock, together = threading.Lock(), threading.Barrier(3, timeout=PATIENCE)
    running = most = 0

    def work(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait()  # passes when three are here
        with lock:
            running -= 1
        return number

    assert list(in_flight(work, range(12), 3)) == list(range(12))
    assert most == 3


def test_one_at_a_time_needs_no_thread() -> None:
    here = threading.get_ident()
    assert set(in_flight(lambda _: threading.get_ident(), range(3), 1)) == {here}
    assert here not in set(in_flight(lambda _: threading.get_ident(), range(3), 2))


@pytest.mark.parametrize("count", [1, 3])
def test_items_are_taken_as_they_are_needed(count: int) -> None:
    items = Watched(1000)
    results = in_flight(lambda n: n, items, count)
    assert items.taken == 0
    for number in range(100):
        assert next(results) == number
        assert items.taken <= number + 4 * count
    results.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_is_raised_in_its_turn_and_ends_the_rest(
    count: int, error: type[BaseException]
) -> None:
    before = threading.active_count()
    items = Watched(1000)

    def work(number: int) -> int:
        if number in (5, 6):
            raise error(number)
        return number

    found: list[int] = []
    with pytest.raises(error) as caught:
        found.extend(in_flight(work, items, count))
    assert caught.value.args == (5,)
    assert items.taken <= 6 + 4 * count
    assert settled(before)


def test_results_before_an_error_are_given_out() -> None:
    results = in_flight(lambda n: 1 // (3 - n), range(10), 4)
    assert [next(results) for _ in range(3)] == [0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(results) == []


def test_an_error_of_the_items_comes_through_and_ends_the_threads() -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        raise LookupError("no more")

    before = threading.active_count()
    with pytest.raises(LookupError, match="no more"):
        list(in_flight(lambda n: n, items(), 2))
    assert settled(before)


def test_what_is_given_up_is_not_begun() -> None:
    before = threading.active_count()
    begun: list[int] = []
    leave = threading.Event()

    def work(number: int) -> int:
        begun.append(number)
        if number > 0:
            assert leave.wait(PATIENCE)
        return number

    results = in_flight(work, range(100), 2)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    leave.set()
    assert settled(before)
    assert len(begun) <= 3


def test_threads_keep_no_program_from_ending() -> None:
    kinds: list[bool] = []
    list(in_flight(lambda _: kinds.append(threading.current_thread().daemon), range(4), 2))
    assert kinds == [True] * 4


class Slow(queue.SimpleQueue[Any]):
    """A queue from which others take while somebody looks whether it is empty."""

    def empty(self) -> bool:
        found = super().empty()
        time.sleep(0.05)
        return found


def test_giving_up_does_not_wait_for_work_that_a_thread_takes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue, "SimpleQueue", Slow)
    done = threading.Event()

    def work(number: int) -> int:
        time.sleep(0.005)
        return 1 // number

    def give_up() -> None:
        with contextlib.suppress(ZeroDivisionError):
            list(in_flight(work, range(8), 2))
        done.set()

    threading.Thread(target=give_up, daemon=True).start()
    assert done.wait(PATIENCE / 4), "whoever gave up waits for ever"
