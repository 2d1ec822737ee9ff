"""How many pairs must the reranker read, and which? Fixed depths and the reach, on one set.

    python bench/rerank_depth.py [-C DIR] [--cache FILE]

Searches every development question with a labelled source in its scope, as atlas does, and has the
reranker read the first 30 hits (and the best of each product where none is named) once. What every
row of the table would have read, ordered and supplied is then worked out by atlas's own functions
from those logits. `--cache` keeps the logits in a file, so that the table costs seconds the second
time. Columns:

- `pairs`: pairs read per question, the mean and the most; equal texts count once;
- `ndcg@10`: of the ranked list, and its paired difference from depth 20 with a 95% interval
  (normal approximation over questions). Rows that name a weight order by another share of the
  rerank score than the settings;
- `hit@5`: share of questions with a labelled block among the first five of that list;
- `recall`: share of a question's labels among the blocks that would be supplied;
- `blocks`: blocks that would be supplied.

Below the table the reach is chosen again without a tenth of the questions, ten times: the fewest
pairs whose mean nDCG@10 on the other nine tenths is not below that of depth 20. What the choices
give on the tenths that they were not made on is the last line. No held-out question is read.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from surroundings import ROOT, machine, private_copy

from atlas import Assistant, Collection
from atlas.assistant import CANDIDATES, RANKED
from atlas.measure.questions import Questions, load_questions
from atlas.measure.ranking import measure
from atlas.records import Block, Hit
from atlas.rerank import pairs_read, rerank, within_reach
from atlas.search import search
from atlas.select import missing_products, select
from atlas.settings import Settings
from atlas.words import content_terms, terms

READ = 30
"""Hits of a question whose logits are computed."""
DEPTHS = (3, 4, 5, 6, 7, 8, 10, 30)
MOST = (10, 20, 30)
REACHES = (0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.8)
WEIGHTS = (0.5, 0.8, 1.0)
FOLDS = 10
MEASURES = ("pairs", "ndcg@10", "hit@5", "recall", "blocks")
NDCG, HIT = measure("ndcg@10"), measure("hit@5")

Logits = dict[str, float]
"""Searched text -> logit, for one question."""
Columns = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question after search."""

    text: str
    hits: tuple[Hit, ...]
    named: bool
    """Whether the question or its scope names a product."""
    one_document: bool
    relevant: Mapping[str, int]
    labels: Mapping[str, frozenset[str]]
    """Block reference -> the labels of the case that cover it."""
    wanted: int
    """Labels of the case."""
    logits: Logits


def asked(assistant: Assistant, questions: Questions, known: dict[str, Logits]) -> list[Asked]:
    """Search every question and read what any row may ask for; `known` gains the logits."""
    found: list[Asked] = []
    begun = time.perf_counter()
    for case in questions.cases:
        relevant = questions.relevant(case)
        read = assistant.understand(case.question, questions.scope_of(case))
        if not relevant or read.unknown or not read.statistics.corpus_size:
            continue
        hits = search(
            content_terms(read.text) or terms(read.text),
            assistant.encoder.encode_question(read.text),
            assistant.index,
            assistant.store,
            read.statistics,
            assistant.settings,
            CANDIDATES,
        )
        named = bool(read.seen.products)
        pool = hits[:READ] + ([] if named else missing_products(hits, []))
        logits = known.setdefault(f"{case.id}: {read.text}", {})
        new = [t for t in dict.fromkeys(h.block.searched for h in pool) if t not in logits]
        if new and assistant.reranker is not None:
            scores = assistant.reranker.score(read.text, new)
            logits.update(zip(new, map(float, scores), strict=True))
        documents = set(assistant.index.block_document[read.seen.blocks].tolist())
        blocks: Sequence[Block] = [hit.block for hit in hits]
        found.append(
            Asked(
                text=read.text,
                hits=tuple(hits),
                named=named,
                one_document=len(documents) == 1,
                relevant=dict.fromkeys(relevant, 1),
                labels={
                    block.ref: frozenset(
                        label for label in case.relevant if questions.labels.covers(label, block)
                    )
                    for block in blocks
                },
                wanted=len(case.relevant),
                logits=logits,
            )
        )
    print(f"{len(found)} questions searched and read in {time.perf_counter() - begun:.0f} s")
    return found


def outcome(one: Asked, settings: Settings, count: Callable[[str], int]) -> list[Any]:
    """The measures of one question under some settings, without a model."""

    def score(pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [one.logits[text] for _, text in pairs]

    most = one.hits[: settings.depth]
    chosen = within_reach(one.text, most, score, settings.rerank_reach)
    if not one.named:
        chosen += missing_products(one.hits, chosen)
    ranked = rerank(one.text, chosen, score, settings.rerank_weight)
    present = {hit.block.ref for hit in ranked}
    rest = [hit for hit in one.hits if hit.block.ref not in present]
    rest = rest[: max(0, RANKED - len(ranked))]
    kept = select(ranked, settings, one.one_document, count).kept
    order = [hit.block.ref for hit in (*ranked, *rest)]
    told = {label for hit in kept for label in one.labels[hit.block.ref]}
    return [
        pairs_read(ranked),
        NDCG(order, one.relevant),  # every question here has a relevant block
        HIT(order, one.relevant),
        len(told) / one.wanted,
        len(kept),
    ]


def measured(
    questions: Sequence[Asked], settings: Settings, count: Callable[[str], int]
) -> Columns:
    """Every measure's values, one per question."""
    rows = np.array([outcome(one, settings, count) for one in questions], np.float64)
    return {name: rows[:, place] for place, name in enumerate(MEASURES)}


def line(name: str, values: Columns, full: Columns) -> str:
    """One row of the table."""
    apart = values["ndcg@10"] - full["ndcg@10"]
    half = 1.96 * apart.std(ddof=1) / math.sqrt(len(apart))
    pairs = values["pairs"]
    rest = [values[other].mean() for other in ("hit@5", "recall", "blocks")]
    return (
        f"{name:26} {pairs.mean():5.2f} {pairs.max():4.0f}   {values['ndcg@10'].mean():.4f} "
        f"{apart.mean():+.4f} [{apart.mean() - half:+.4f}, {apart.mean() + half:+.4f}]  "
        f"{rest[0]:.3f}  {rest[1]:.3f}   {rest[2]:.2f}"
    )


def left_out(rows: Mapping[float, Columns], full: Columns) -> str:
    """The reach chosen on nine tenths, measured on the tenth, over all tenths."""
    number = len(full["pairs"])
    fold = np.random.default_rng(1).permutation(number) % FOLDS
    pairs, apart, chosen = [], [], []
    for out in range(FOLDS):
        inside, outside = fold != out, fold == out
        bar = full["ndcg@10"][inside].mean()
        fair = [r for r, v in rows.items() if v["ndcg@10"][inside].mean() >= bar] or [1.0]
        best = min(fair, key=lambda r: rows[r]["pairs"][inside].mean())
        chosen.append(best)
        pairs += rows[best]["pairs"][outside].tolist()
        apart += (rows[best]["ndcg@10"] - full["ndcg@10"])[outside].tolist()
    half = 1.96 * statistics.stdev(apart) / math.sqrt(number)
    mean = statistics.fmean(apart)
    return (
        f"reach chosen without the tenth it is measured on ({sorted(chosen)}): "
        f"{statistics.fmean(pairs):.2f} pairs, nDCG@10 {mean:+.4f} "
        f"[{mean - half:+.4f}, {mean + half:+.4f}] against depth 20"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-C", dest="folder", type=Path, default=ROOT, help="collection (this one)")
    parser.add_argument("--cache", type=Path, help="file that keeps the logits")
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temporary:
        collection = Collection.open(private_copy(arguments.folder, Path(temporary)))
        assistant = Assistant.of(collection)
        if assistant.reranker is None:
            raise SystemExit(f"{arguments.folder}: its settings name no reranker to compare")
        made_by = f"{assistant.reranker.fingerprint} {assistant.index.folder.name}"
        known: dict[str, Logits] = {}
        if arguments.cache and arguments.cache.exists():
            kept = json.loads(arguments.cache.read_text(encoding="utf-8"))
            known = kept["logits"] if kept["made_by"] == made_by else {}
        questions = asked(assistant, load_questions(assistant), known)
        if arguments.cache:
            made = json.dumps({"made_by": made_by, "logits": known})
            arguments.cache.write_text(made, encoding="utf-8")
        print(table(questions, assistant.settings, assistant.encoder.count_tokens))


def table(questions: Sequence[Asked], today: Settings, count_tokens: Callable[[str], int]) -> str:
    """Every row, and the choice made anew without each tenth."""
    count = cache(count_tokens)
    whole = replace(today, depth=20, rerank_reach=1.0)
    full = measured(questions, whole, count)
    lines = [f"{'':26} {'pairs':>5} {'most':>4}   ndcg@10, against depth 20"
             "            hit@5  recall  blocks"]  # fmt: skip
    lines.append(line("depth 20", full, full))
    for depth in DEPTHS:
        values = measured(questions, replace(whole, depth=depth), count)
        lines.append(line(f"depth {depth}", values, full))
    reached = {}
    for most in MOST:
        for reach in REACHES:
            values = measured(questions, replace(whole, depth=most, rerank_reach=reach), count)
            lines.append(line(f"depth {most}, reach {reach:g}", values, full))
            if most == 20:
                reached[reach] = values
    for weight in WEIGHTS:
        for reach in (1.0, 0.4):
            changed = replace(whole, rerank_weight=weight, rerank_reach=reach)
            name = f"  reach {reach:g}, weight {weight:g}"
            lines.append(line(name, measured(questions, changed, count), full))
    return "\n".join([*lines, left_out(reached, full)])


if __name__ == "__main__":
    main()
