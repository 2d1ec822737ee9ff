"""What does atlas itself cost per question, beside the two models, once it is open?

    python bench/warm.py [-C DIR] [--passes N]

Asks every development question of an open Assistant. Encoder and reranker stand behind proxies that
add up the time inside them; the rest of a question's time is overhead. It is printed as median and
95th percentile in milliseconds for up to three kinds of asking: the first question of a scope,
which computes the scope's keyword statistics; any other question asked for the first time; with
`--passes 2`, questions asked again. Below: what the models were asked to do, the median of each
stage with the models in it, seconds to open, and the peak memory.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from surroundings import ROOT, machine, private_copy, spread

OPENINGS = 5
FIRST, NEW, AGAIN = "first use of a scope", "asked for the first time", "asked again"


class Timed:
    """A model whose calls are counted and timed; everything else passes through."""

    def __init__(self, model: Any, counted: dict[str, Callable[[tuple[Any, ...]], int]]) -> None:
        self._model = model
        self._counted = counted
        self.seconds = 0.0
        self.processor = 0.0
        self.texts: dict[str, int] = defaultdict(int)
        self.calls: dict[str, int] = defaultdict(int)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._model, name)
        if not callable(value):
            return value

        def timed(*values: Any, **named: Any) -> Any:
            start, busy = time.perf_counter(), time.thread_time()
            try:
                return value(*values, **named)
            finally:
                self.seconds += time.perf_counter() - start
                self.processor += time.thread_time() - busy
                self.calls[name] += 1
                if name in self._counted:
                    self.texts[name] += self._counted[name](values)

        return timed


def megabytes() -> float:
    """The most memory that this process had in use so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def line(name: str, values: Sequence[float]) -> str:
    """One row of milliseconds."""
    middle, high = np.quantile(values, (0.5, 0.95)) * 1000
    return f"{name:26} {len(values):9} {middle:8.1f} {high:8.1f} {max(values) * 1000:8.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-C", dest="folder", type=Path, default=ROOT, help="collection (this one)")
    parser.add_argument("--passes", type=int, default=1, help="how often each is asked (1)")
    arguments = parser.parse_args()
    print(machine())
    start = time.perf_counter()
    from atlas import Assistant, Scope
    from atlas.measure.cases import load_cases

    imported = time.perf_counter() - start
    memory = {"imported": megabytes()}
    with tempfile.TemporaryDirectory() as temporary:
        copy = private_copy(arguments.folder, Path(temporary))
        cases = load_cases(copy)
        if not cases:
            sys.exit(f"{arguments.folder}: no development questions in cases/")
        Assistant.open(copy)  # builds the index
        openings = []
        for _ in range(OPENINGS):
            start = time.perf_counter()
            assistant = Assistant.open(copy)
            openings.append(time.perf_counter() - start)
        memory["opened"] = megabytes()
        encoder = Timed(assistant.encoder, {"encode_documents": lambda values: len(values[0])})
        reranker = Timed(assistant.reranker, {"score_pairs": lambda values: len(values[0])})
        assistant.encoder = encoder
        if assistant.reranker is not None:
            assistant.reranker = reranker
        totals: dict[str, list[float]] = defaultdict(list)
        overheads: dict[str, list[float]] = defaultdict(list)
        processor: dict[str, list[float]] = defaultdict(list)
        stages: dict[str, list[float]] = defaultdict(list)
        scopes: set[object] = set()
        for number in range(arguments.passes):
            for case in cases:
                scope = Scope(reader=case.reader, date=case.date or assistant.settings.as_of)
                before = encoder.seconds + reranker.seconds
                busy_before = encoder.processor + reranker.processor
                start, busy = time.perf_counter(), time.thread_time()
                trace = assistant.ask(case.question, scope)
                total, spent = time.perf_counter() - start, time.thread_time() - busy
                inside = encoder.seconds + reranker.seconds - before
                busy_inside = encoder.processor + reranker.processor - busy_before
                if number == 0:
                    key = assistant.understand(case.question, scope).seen.key
                    kind = NEW if key in scopes else FIRST
                    scopes.add(key)
                else:
                    kind = AGAIN
                totals[kind].append(total)
                overheads[kind].append(total - inside)
                processor[kind].append(spent - busy_inside)
                for stage, took in trace.values["timings_seconds"].items():
                    stages[stage].append(took)
        memory["asked"] = megabytes()
        index = f"{len(assistant.index.ids)} documents, {len(assistant.index)} blocks"
    print(f"{len(cases)} development questions, asked {arguments.passes} times, {index}\n")
    print(f"{'milliseconds':26} {'questions':>9} {'median':>8} {'95%':>8} {'highest':>8}")
    kinds = [kind for kind in (FIRST, NEW, AGAIN) if totals[kind]]
    print("besides the two models")
    for kind in kinds:
        print(line(f"  {kind}", overheads[kind]))
    print("the same in processor time, which other programs on the machine do not lengthen")
    for kind in kinds:
        print(line(f"  {kind}", processor[kind]))
    print("whole question")
    for kind in kinds:
        print(line(f"  {kind}", totals[kind]))
    asked = len(cases) * arguments.passes
    print(
        f"\nper question: {reranker.texts['score_pairs'] / asked:.1f} pairs read in"
        f" {reranker.calls['score_pairs'] / asked:.1f} calls,"
        f" {reranker.seconds / asked * 1000:.0f} ms;"
        f" {encoder.calls['encode_question'] / asked:.1f} questions and"
        f" {encoder.texts['encode_documents'] / asked:.1f} texts encoded,"
        f"\n{encoder.calls['count_tokens'] / asked:.1f} token counts,"
        f" {encoder.seconds / asked * 1000:.0f} ms in the encoder"
    )
    middles = ", ".join(f"{k} {statistics.median(v) * 1000:.1f}" for k, v in stages.items())
    print(f"median of each stage, models included: {middles}")
    print(f"imports {imported:.2f} s, opening {spread(openings)} s")
    print("peak memory, MB: " + ", ".join(f"{k} {v:.0f}" for k, v in memory.items()))


if __name__ == "__main__":
    main()
