"""Which encoder, prefix, fusion, depth and order find the evidence of the development questions?

    python bench/settings_table.py [-C DIR]

For every answerable development question the blocks in scope are searched with every combination
of encoder, prefix and fusion, the first 20 are reranked once, and the rest is arithmetic. Printed:
hit@1, hit@5, recall of labels in the first 5, nDCG@10 over labelled blocks, and how often the first
stage alone has a labelled block within its first `depth`. Intervals are 95% bootstrap intervals
over questions. Held-out questions are never read.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from atlas.assistant import Assistant
from atlas.collection import Collection
from atlas.measure.cases import Case, Labels, load_cases
from atlas.records import Hit, Scope
from atlas.scope import view, with_names
from atlas.search import search
from atlas.spelling import mend
from atlas.words import terms

ENCODERS = ("bge-small-en-v1.5", "all-minilm-l6-v2")
PREFIXES = ("none", "keyword", "vector", "both")
DEPTH = 20
Row = tuple[list[Hit], list[float], list[bool]]


def rows_of(
    assistant: Assistant, cases: Sequence[Case], logits: dict[tuple[str, str], float]
) -> list:
    """Per case: fused candidates of every weight, with reranker logits and relevance by block."""
    labels = Labels(tuple(assistant.index.documents()))
    found = []
    for case in cases:
        scope = Scope(reader=case.reader, date=case.date or assistant.settings.as_of)
        seen = view(case.question, scope, assistant.settings, assistant.index, scope.date)
        statistics = assistant._statistics_of(seen)
        text, _ = mend(
            with_names(case.question, seen.mentions),
            assistant.index,
            statistics,
            assistant._is_word,
        )
        vector = assistant.encoder.encode_question(text)
        hits = search(terms(text), vector, assistant.index, statistics, assistant.settings, 100)
        relevant = {
            h.block.ref: [lb for lb in case.relevant if labels.covers(lb, h.block)] for h in hits
        }
        total = sum(
            any(labels.covers(label, assistant.index.block(n)) for label in case.relevant)
            for n in np.flatnonzero(seen.blocks)
        )
        found.append((case, text, hits, relevant, total, logits))
    return found


def order_weighted(share: float) -> Callable[[list[Hit]], list[Hit]]:
    def order(hits: list[Hit]) -> list[Hit]:
        best = max((h.keyword_score for h in hits), default=0) or 1
        return sorted(
            hits,
            key=lambda h: (
                -(share * max(h.vector_score, 0) + (1 - share) * max(h.keyword_score, 0) / best)
            ),
        )

    return order


def order_rrf(hits: list[Hit]) -> list[Hit]:
    by_word = {h.block.ref: r for r, h in enumerate(sorted(hits, key=lambda h: -h.keyword_score))}
    by_vector = {h.block.ref: r for r, h in enumerate(sorted(hits, key=lambda h: -h.vector_score))}
    return sorted(
        hits, key=lambda h: -(1 / (60 + by_word[h.block.ref]) + 1 / (60 + by_vector[h.block.ref]))
    )


def score(
    rows: list,
    order: Callable[[list[Hit]], list[Hit]],
    depth: int,
    weight: float | None,
    assistant: Assistant,
    share: float,
) -> dict[str, np.ndarray]:
    values: dict[str, list[float]] = {
        k: [] for k in ("hit@1", "hit@5", "recall@5", "ndcg@10", "reach")
    }
    for case, text, hits, relevant, total, logits in rows:
        ranked = order(hits)
        values["reach"].append(any(relevant[h.block.ref] for h in ranked[: depth or 10]))
        if weight is not None and depth:
            head = ranked[:depth]
            missing = [h for h in head if (text, h.block.ref) not in logits]
            if missing:
                scores = assistant.reranker.score(text, [h.block.searched for h in missing])
                logits.update({(text, h.block.ref): float(s) for h, s in zip(missing, scores)})
            best = max((h.keyword_score for h in hits), default=0) or 1
            fused = {
                h.block.ref: share * max(h.vector_score, 0)
                + (1 - share) * max(h.keyword_score, 0) / best
                for h in head
            }
            key = {
                h.block.ref: weight / (1 + math.exp(-logits[text, h.block.ref]))
                + (1 - weight) * fused[h.block.ref]
                for h in head
            }
            ranked = sorted(head, key=lambda h: -key[h.block.ref]) + ranked[depth:]
        gains = [bool(relevant[h.block.ref]) for h in ranked[:10]]
        dcg = sum(g / math.log2(i + 2) for i, g in enumerate(gains))
        ideal = sum(1 / math.log2(i + 2) for i in range(min(total, 10)))
        values["hit@1"].append(gains[0] if gains else 0)
        values["hit@5"].append(any(gains[:5]))
        seen = {label for h in ranked[:5] for label in relevant[h.block.ref]}
        values["recall@5"].append(len(seen) / len(case.relevant))
        values["ndcg@10"].append(dcg / ideal if ideal else 0)
    return {k: np.array(v, float) for k, v in values.items()}


def interval(values: np.ndarray) -> str:
    draws = np.random.default_rng(1).choice(values, (2000, len(values))).mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    return f"{values.mean():.3f} [{low:.2f}, {high:.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-C", dest="folder", default=".")
    folder = parser.parse_args().folder
    collection = Collection.open(folder)
    cases = [c for c in load_cases(collection.root) if c.relevant]
    print(f"{len(cases)} development questions with a labelled source")
    print(
        f"{'encoder':18} {'prefix':8} {'fusion':12} {'rerank':14} {'hit@1':18} {'hit@5':18} {'recall@5':18} {'ndcg@10':18} reach"
    )
    with tempfile.TemporaryDirectory() as state:
        for encoder in ENCODERS:
            logits: dict[tuple[str, str], float] = {}
            for prefix in PREFIXES:
                own = replace(collection.settings, encoder=encoder, prefix=prefix)
                assistant = Assistant.of(replace(collection, settings=own, state=Path(state)))
                rows = rows_of(assistant, cases, logits)
                setups = [("rrf", order_rrf, 0.5)]
                setups += [
                    (f"w {s:g}", order_weighted(s), s) for s in (0, 0.3, 0.5, 0.6, 0.7, 0.8, 1)
                ]
                for name, order, share in setups:
                    plans: list[tuple[int, float | None]] = [(0, None)]
                    if prefix == "both" and name in ("w 0.5", "w 0.6", "w 0.7", "w 0.8"):
                        plans += [(d, w) for d in (5, 10, 20) for w in (1.0, 0.8, 0.65, 0.5, 0.3)]
                    for depth, weight in plans:
                        got = score(rows, order, depth, weight, assistant, share)
                        rerank = "none" if weight is None else f"{depth} x {weight:g}"
                        cells = " ".join(
                            f"{interval(got[k]):18}"
                            for k in ("hit@1", "hit@5", "recall@5", "ndcg@10")
                        )
                        print(
                            f"{encoder:18} {prefix:8} {name:12} {rerank:14} {cells} {got['reach'].mean():.3f}",
                            flush=True,
                        )


if __name__ == "__main__":
    main()
