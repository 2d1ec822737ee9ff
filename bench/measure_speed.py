"""What does measuring cost beside the questions that it asks?

    python bench/measure_speed.py [--sample]

One process measures every development question, as `atlas measure` does: models loaded once, each
question also asked as every other reader group, labels, misses and intervals computed. Printed:

- the ratio of the whole run, without opening the models, to the sum of the questions' own times
  (the `total` of their traces); the bar is 1.15;
- a sweep of ten values of `min_score` on the same traces, with the number of texts and pairs that
  the models were given for it, which must be 0.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from surroundings import ROOT, machine, private_copy

from atlas import Assistant
from atlas.ingest import Silent
from atlas.measure.asking import ask_all
from atlas.measure.memory import RememberingEncoder, RememberingReranker
from atlas.measure.misses import misses
from atlas.measure.questions import load_questions
from atlas.measure.report import run_lines
from atlas.measure.runs import run_of
from atlas.measure.sweep import parse_sweep, sweep


class Counted:
    """What the models were given."""

    def __init__(self) -> None:
        self.texts = self.pairs = 0


class CountingEncoder(RememberingEncoder):
    """An encoder that counts what it is given and remembers nothing."""

    def __init__(self, encoder: object, counted: Counted) -> None:
        super().__init__(encoder)  # type: ignore[arg-type]
        self._counted = counted

    def encode_documents(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        self._counted.texts += len(texts)
        return self._encoder.encode_documents(texts, progress)

    def encode_question(self, text: str) -> NDArray[np.float32]:
        self._counted.texts += 1
        return self._encoder.encode_question(text)


class CountingReranker(RememberingReranker):
    """A reranker that counts what it is given and remembers nothing."""

    def __init__(self, reranker: object, counted: Counted) -> None:
        super().__init__(reranker)  # type: ignore[arg-type]
        self._counted = counted

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        self._counted.pairs += len(pairs)
        return self._reranker.score_pairs(pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", action="store_true")
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temporary:
        folder = private_copy(ROOT, Path(temporary))
        opened = Assistant.open(folder, sample=arguments.sample)
        counted = Counted()
        opened.encoder = CountingEncoder(opened.encoder, counted)
        opened.reranker = CountingReranker(opened.reranker, counted)
        started = time.perf_counter()
        questions = load_questions(opened)
        asked = ask_all(questions, opened, Silent())
        run = run_of(asked, questions, opened)
        lines = list(run_lines(run, questions, misses(run.rows, questions, opened)))
        whole = time.perf_counter() - started
        print(
            f"{len(run.rows)} questions, {run.looks} looks, {len(lines)} lines: {whole:.1f} s, "
            f"{whole / asked.seconds:.3f} of the sum of the questions' own {asked.seconds:.1f} s"
        )
        counted.texts = counted.pairs = 0
        started = time.perf_counter()
        name, values = parse_sweep("min_score=0:0.9:0.1")
        sweep(name, values, run.rows, questions, opened)
        print(
            f"a sweep of {len(values)} values: {time.perf_counter() - started:.2f} s, the models "
            f"were given {counted.texts} texts and {counted.pairs} pairs"
        )


if __name__ == "__main__":
    main()
