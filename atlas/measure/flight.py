"""Work that waits for servers, several pieces at a time, in the order in which it was given."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_flight(
    work: Callable[[Item], Result], items: Iterable[Item], count: int
) -> Iterator[Result]:
    """`work` of every item, up to `count` at once; results come in the order of the items.

    What is begun but not yet given out is bounded, so memory does not grow with the number of
    items. The first exception is raised in its turn and ends the rest. The threads are daemons: an
    interrupted program does not wait for a server.
    """
    if count <= 1:
        yield from map(work, items)
        return
    tasks: queue.SimpleQueue[tuple[Item, _Slot[Result]] | None] = queue.SimpleQueue()

    def serve() -> None:
        while (task := tasks.get()) is not None:
            item, slot = task
            try:
                slot.result = work(item)
            except BaseException as error:  # raised again where the result is taken
                slot.error = error
            slot.ready.set()

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    waiting: list[_Slot[Result]] = []
    try:
        for item in items:
            slot: _Slot[Result] = _Slot()
            waiting.append(slot)
            tasks.put((item, slot))
            if len(waiting) >= 4 * count:  # ahead, so that one slow item holds nobody up
                yield waiting.pop(0).take()
        while waiting:
            yield waiting.pop(0).take()
    finally:
        with contextlib.suppress(queue.Empty):
            while True:
                tasks.get_nowait()
        for _ in threads:
            tasks.put(None)


class _Slot(Generic[Result]):
    """A place for one result."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.result: Result
        self.error: BaseException | None = None

    def take(self) -> Result:
        self.ready.wait()
        if self.error is not None:
            raise self.error
        return self.result
