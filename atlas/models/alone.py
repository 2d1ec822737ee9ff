"""Texts run one by one, on every core: the shape of all work with a model here.

A text is never padded and never shares a call with another: quantised models choose their scales
per call, so batch mates would change a score, and padding would be paid for and thrown away. Two
threads that each run one text beat one text on two threads by a quarter to a third, measured by
`bench/rerank_rate.py`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence


def cores() -> int:
    """Cores that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_all(
    work: Callable[[int], None],
    order: Sequence[int],
    progress: Callable[[int], None] | None = None,
) -> None:
    """Call `work(item)` for every item of `order`, started in that order, on all cores.

    `progress` is called from this thread only, with how many items were finished since the last
    call; the calls add up to `len(order)`. The first exception stops the rest and is raised here.
    """
    waiting = iter(order)
    lock = threading.Lock()
    finished: list[int] = []
    failures: list[BaseException] = []

    def next_item() -> int | None:
        with lock:
            return None if failures else next(waiting, None)

    def helper() -> None:
        while (item := next_item()) is not None:
            try:
                work(item)
            except BaseException as error:  # raised again in the calling thread
                failures.append(error)
            else:
                finished.append(item)

    threads = [
        threading.Thread(target=helper, daemon=True) for _ in range(min(cores(), len(order)) - 1)
    ]
    for thread in threads:
        thread.start()
    told = 0
    try:
        while (item := next_item()) is not None:
            work(item)
            finished.append(item)
            if progress is not None:
                done = len(finished)
                progress(done - told)
                told = done
    except BaseException as error:
        failures.append(error)  # tells the helpers to stop
        raise
    finally:
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    if progress is not None and len(finished) > told:
        progress(len(finished) - told)


def readable(text: str) -> str:
    """The text as valid Unicode: a lone surrogate, which no tokenizer takes, becomes U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
