"""What changes when the first stage searches in Milvus instead of the index folder?

    python bench/stores.py [-C DIR] [--beside DIR] [--rounds N] [--no-answers]

Asks every development question with both stores, on one index each, Milvus being Milvus Lite or
the server that ATLAS_MILVUS_URI names. `--beside` adds the Markdown files of another folder, with
their products: more to search, and more that is out of scope where a question names a product.
Printed, with medians and the 5th and 95th percentile:

- `overlap@10`, `overlap@100`: share of the local store's first blocks, by fused score before
  sections and reranking, that the other store has among as many;
- `crowded`: questions with more than 100 matching blocks in scope, where Milvus's BM25 decides
  which 100 of them are candidates, and there the share of the local store's choice that it makes;
- `keyword order`: Kendall's tau between Milvus's own BM25, of the whole collection, and that of
  the scope, over the blocks that Milvus chose by words;
- `keyword score`: the largest difference between the two stores' keyword scores of one block;
- `first stage`: milliseconds from terms and vector to candidates, warm, the two stores in turn;
- `opening`: seconds to open each store, once, in a process that has loaded its client;
- then the table of `atlas experiment` over the two: labels among the supplied blocks and nDCG@10,
  each with a paired verdict.

No held-out question is read.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau
from surroundings import ROOT, machine, private_copy

from atlas import Assistant, Collection, Scope
from atlas.ingest import Silent
from atlas.keyword import ScopedBM25
from atlas.measure.cases import DEVELOPMENT, load_cases
from atlas.measure.experiments import experiment
from atlas.measure.grids import Setup
from atlas.measure.questions import cases_of
from atlas.measure.report_many import experiment_lines
from atlas.settings import Settings
from atlas.stores import Candidates, open_store
from atlas.stores.milvus import MilvusStore
from atlas.words import content_terms, terms

STORES = ("local", "milvus")
CANDIDATES = 100


@dataclass(slots=True, kw_only=True)
class Differences:
    """What was seen of all questions; one value per question, but for `milliseconds`."""

    overlap_10: list[float] = field(default_factory=list)
    overlap_100: list[float] = field(default_factory=list)
    crowded: list[float] = field(default_factory=list)
    order: list[float] = field(default_factory=list)
    apart: list[float] = field(default_factory=list)
    milliseconds: dict[str, list[float]] = field(
        default_factory=lambda: {name: [] for name in STORES}
    )


def fused(found: Candidates, weight: float) -> list[int]:
    """Numbers of the candidates, best first, as search.py fuses the scores."""
    best = float(found.keyword[found.matched].max()) if found.matched.any() else 0.0
    words = found.keyword / best if best > 0 else found.matched.astype(np.float64)
    score = weight * np.maximum(found.cosine, 0) + (1 - weight) * np.maximum(words, 0)
    return [int(n) for n in found.numbers[np.lexsort((found.numbers, -score))]]


def share(first: Sequence[int], second: Sequence[int], count: int) -> float:
    """Share of the first `count` of one ranking that stand among as many of the other."""
    one = set(first[:count])
    return len(one & set(second[:count])) / len(one) if one else 1.0


def differences(opened: dict[str, Assistant], rounds: int) -> Differences:
    """Ask every question's first stage of both stores."""
    seen = Differences()
    local = opened["local"]
    for case in load_cases(local.collection.root):
        scope = Scope(reader=case.reader, date=case.date or local.settings.as_of)
        read = {name: each.understand(case.question, scope) for name, each in opened.items()}
        text = read["local"].text
        wanted = content_terms(text) or terms(text)
        vector = local.encoder.encode_question(text)
        found: dict[str, Candidates] = {}
        for turn in range(rounds + 1):
            for name, assistant in opened.items():
                started = time.perf_counter()
                found[name] = assistant.store.candidates(
                    wanted, vector, read[name].statistics, CANDIDATES
                )
                if turn:  # the first makes the filter of a scope
                    seen.milliseconds[name].append((time.perf_counter() - started) * 1000)
        if found["local"].numbers.size:
            compare(found["local"], found["milvus"], local.settings.vector_weight, seen)
            by_words(opened["milvus"], wanted, read["milvus"].statistics, seen)
    return seen


def compare(local: Candidates, other: Candidates, weight: float, seen: Differences) -> None:
    """Add how one question's candidates differ."""
    first, second = fused(local, weight), fused(other, weight)
    seen.overlap_10.append(share(first, second, 10))
    seen.overlap_100.append(share(first, second, CANDIDATES))
    _, here, there = np.intersect1d(local.numbers, other.numbers, return_indices=True)
    seen.apart.append(float(np.abs(local.keyword[here] - other.keyword[there]).max(initial=0)))


def by_words(
    assistant: Assistant, wanted: Sequence[str], statistics: ScopedBM25, seen: Differences
) -> None:
    """Add how Milvus's own order of one question's matches differs from that of the scope."""
    store = assistant.store
    assert isinstance(store, MilvusStore)
    scores, matched = statistics.scores(wanted)
    matches = np.flatnonzero(matched)
    ours = matches[np.argsort(-scores[matches], kind="stable")].tolist()
    theirs = store.by_words(wanted, statistics, CANDIDATES)
    if len(matches) > CANDIDATES:
        seen.crowded.append(share(ours, list(theirs), CANDIDATES))
    if len(theirs) > 2:
        own = [abs(score) for score in theirs.values()]
        tau = float(kendalltau(own, scores[list(theirs)]).statistic)
        seen.order += [tau] if np.isfinite(tau) else []


def put_beside(root: Path, folder: Path) -> None:
    """Add Markdown files to a collection, and the products that they name to its settings."""
    names: set[str] = set()
    for path in sorted(folder.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        (root / "documents" / f"beside-{path.name}").write_text(text, encoding="utf-8")
        listed = re.search(r"^products: \[(.*)\]$", text, re.MULTILINE)
        names |= {name.strip() for name in listed[1].split(",")} if listed else set()
    settings = (root / "atlas.yaml").read_text(encoding="utf-8")
    lines = "".join(f"  {name}: []\n" for name in sorted(names))
    settings = re.sub(r"^products:\n", lambda m: m[0] + lines, settings, flags=re.MULTILINE)
    (root / "atlas.yaml").write_text(settings, encoding="utf-8")


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Median, 5th and 95th percentile."""
    low, middle, high = np.quantile(np.asarray(values), (0.05, 0.5, 0.95))
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f}), n {len(values)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-C", dest="folder", type=Path, default=ROOT, help="collection (this one)")
    parser.add_argument("--beside", type=Path, help="folder with more documents")
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds per question")
    parser.add_argument("--no-answers", action="store_true", help="leave the experiment out")
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temporary:
        root = private_copy(arguments.folder, Path(temporary))
        if arguments.beside:
            put_beside(root, arguments.beside)
        collection = Collection.open(root)
        own = replace(collection.settings, store="local")

        def open_with(settings: Settings) -> Assistant:
            variant = "" if settings.store == "local" else settings.index_fingerprint()
            return Assistant.of(replace(collection, settings=settings, variant=variant))

        opened = {name: open_with(replace(own, store=name)) for name in STORES}
        print(f"{len(opened['local'].index)} blocks, {opened['milvus'].store.name}")
        for name, assistant in opened.items():
            started = time.perf_counter()
            open_store(name, assistant.index).close()
            print(f"opening {name}: {time.perf_counter() - started:.3f} s")
        seen = differences(opened, arguments.rounds)
        print(f"overlap@10     {spread(seen.overlap_10)}, mean {np.mean(seen.overlap_10):.3f}")
        print(f"overlap@100    {spread(seen.overlap_100)}, mean {np.mean(seen.overlap_100):.3f}")
        crowded = spread(seen.crowded) if seen.crowded else "none"
        print(f"crowded        {crowded}")
        print(f"keyword order  {spread(seen.order)}")
        print(f"keyword score  at most {max(seen.apart):.1e} apart")
        for name, values in seen.milliseconds.items():
            print(f"first stage {name:7} {spread(values)} ms")
        if not arguments.no_answers:
            setups = [
                Setup(values={"store": name}, settings=replace(own, store=name)) for name in STORES
            ]
            table = experiment(
                own,
                setups,
                lambda settings: opened[settings.store],
                Silent(),
                DEVELOPMENT,
                cases=cases_of(collection.root, DEVELOPMENT),
            )
            print("\n".join(experiment_lines(table)))
        for assistant in opened.values():
            assistant.store.close()


if __name__ == "__main__":
    main()
