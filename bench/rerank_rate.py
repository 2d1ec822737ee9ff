"""How much of the machine the reranker uses: its arithmetic rate beside a large matrix product.

Printed per number of pairs and pair length: the floating-point operations that the model's layers
need for the real tokens (a padded one would not count), the time, both rates, and their ratio.
The two are measured in turns in one run, so that a busy machine slows both; medians are printed.
An int8 model may exceed 1, since the operations are counted as the float32 ones they stand for.

    python bench/rerank_rate.py
    python bench/rerank_rate.py --cold     # a cold process beside `import sentence_transformers`
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from surroundings import ROOT, machine

LAYERS, WIDTH, INNER = 12, 384, 1536  # the shape of ms-marco-MiniLM-L-12-v2
RERANKER = "ms-marco-minilm-l-12-v2"
ENCODER = "bge-small-en-v1.5"
QUESTION = "How long is the battery of a C-3 under warranty?"
SENTENCES = (
    "The battery of the city bike is covered for three years from the day of purchase.",
    "Unplug the charger, wait for one minute and plug it in again.",
    "Error E-417 says that the voltage at the charging port is too low.",
    "A dealer checks the casing, the connector and the seal before each service.",
    "The limit of 25 km/h is set at the factory and must not be changed.",
)
COLD = """
from pathlib import Path
from atlas.models import load_both
encoder, reranker = load_both({encoder!r}, {reranker!r}, Path({state!r}))
encoder.encode_question({question!r})
reranker.score({question!r}, {texts!r})
"""


def pair_flops(tokens: int) -> int:
    """Floating-point operations of the model's layers on one pair of that many tokens.

    A product of (n, a) and (a, b) is 2nab operations. Terms after Vaswani et al. 2017, section 3,
    counted as in Kaplan et al. 2020, table 1, with d = WIDTH and f = INNER, for each layer:

        8nd^2   queries, keys, values (3.2.2) and the projection of the joined heads
        4n^2d   scores of every token against every token, and the weighted sums (3.2.1)
        4ndf    the two products of the feed-forward part (3.3)

    and once per pair 2d^2 + 2d for the pooler and the scoring head (Devlin et al. 2019). Look-ups,
    sums, normalisation, softmax and GELU are left out: they cost time but no matrix product.
    """
    layer = 8 * tokens * WIDTH**2 + 4 * tokens**2 * WIDTH + 4 * tokens * WIDTH * INNER
    return LAYERS * layer + 2 * WIDTH**2 + 2 * WIDTH


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def make_texts(count: int, target: int, tokens: Callable[[str], int]) -> list[str]:
    """Texts whose pairs hold from `target` to about 15 tokens more, all different."""
    texts = []
    for number in range(count):
        text, sentence = f"Item {number}.", number
        while tokens(text) < target:
            text += " " + SENTENCES[sentence % len(SENTENCES)]
            sentence += 1
        texts.append(text)
    return texts


def rates(state: Path, repeats: int, size: int) -> None:
    """Print the table of rates."""
    import numpy as np

    from atlas.models import load_reranker

    if "OPENBLAS_CORETYPE" in os.environ:
        print("OPENBLAS_CORETYPE is set: numpy may be slower here than the processor allows")
    reranker = load_reranker(RERANKER, state)
    random = np.random.default_rng(0)
    left, right = random.random((2, size, size), np.float32)

    def count(text: str) -> int:
        return reranker.pair_tokens(QUESTION, text)

    print(
        "pairs  tokens/pair  GFLOP  milliseconds  GFLOP/s  matrix product  ratio (lowest, highest)"
    )
    for target in (75, 200):
        for pairs in (10, 20, 40):
            texts = make_texts(pairs, target - 8, count)
            lengths = [count(text) for text in texts]
            work = sum(pair_flops(length) for length in lengths) / 1e9
            reranker.score(QUESTION, texts)
            np.matmul(left, right)
            times, products = [], []
            for _ in range(repeats):
                products.append(seconds(lambda: np.matmul(left, right)))
                times.append(seconds(partial(reranker.score, QUESTION, texts)))
                products[-1] = min(products[-1], seconds(lambda: np.matmul(left, right)))
            product_rates = [2 * size**3 / 1e9 / product for product in products]
            ratios = [work / run / rate for run, rate in zip(times, product_rates, strict=True)]
            took = statistics.median(times)
            print(
                f"{pairs:5}  {sum(lengths) / pairs:11.0f}  {work:5.0f}  {took * 1000:12.0f}"
                f"  {work / took:7.0f}  {statistics.median(product_rates):14.0f}"
                f"  {statistics.median(ratios):5.2f} ({min(ratios):.2f}, {max(ratios):.2f})"
            )


def cold(state: Path, repeats: int) -> None:
    """Print what a process pays from its start to ten reranked pairs."""
    texts = make_texts(10, 60, lambda text: len(text) // 4)
    ours = COLD.format(
        encoder=ENCODER, reranker=RERANKER, state=str(state), question=QUESTION, texts=texts
    )
    programs = {
        "python": "pass",
        "import numpy": "import numpy",
        "both models, a question, 10 pairs": ours,
        "import sentence_transformers": "import sentence_transformers",
    }
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "ORT_DISABLE_TELEMETRY": "1"}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for round_number in range(repeats + 1):
        for name, program in programs.items():
            command = [sys.executable, "-c", program]
            took = seconds(partial(subprocess.run, command, env=environment, check=True))
            if round_number:  # the first round fills the disk cache and the state folder
                times[name].append(took)
    medians = {name: statistics.median(took) for name, took in times.items()}
    whole = medians["import sentence_transformers"]
    for name, median in medians.items():
        print(f"{median:6.2f} s  {median / whole:5.3f}  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cold", action="store_true", help="measure a cold process instead")
    parser.add_argument("--repeats", type=int, default=9, help="measurements per line (9)")
    parser.add_argument("--size", type=int, default=2048, help="rows of the square matrices (2048)")
    parser.add_argument("--state", type=Path, help="state folder (a temporary one)")
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temporary:
        state = arguments.state or Path(temporary)
        if arguments.cold:
            cold(state, arguments.repeats)
        else:
            rates(state, arguments.repeats, arguments.size)


if __name__ == "__main__":
    main()
