"""Which encoder, prefix, fusion, depth and order find the evidence of the development questions?

    python bench/settings_table.py [-C DIR] [--all]

Every development question with a labelled source is searched in its scope under each setup, as
atlas would search it, but for the extra hits that it reranks where no product is named. Without
`--all`, per encoder and with everything else as shipped: where the titles stand; how keyword and
vector scores are fused; how many hits are reranked and how much the rerank score counts; and, after
the shipped row, how far blocks move towards the best of their section, and one with stop words
kept. With `--all`: every combination. Printed
with 95% bootstrap intervals over questions (2,000 resamples, seed 1):

- `hit@1`, `hit@5`: share of questions with a labelled block among the first 1 or 5;
- `recall@5`: share of a question's labels that have a block among the first 5;
- `ndcg@10`: over labelled blocks with gain 1 (Järvelin and Kekäläinen 2002), the ideal order having
  every labelled block in scope first;
- `reach`: share of questions with a labelled block among the hits that get reranked (the first
  10 without reranking), which is the most that reranking could achieve.

Rerank scores are computed once per question and block. Rows are not corrected for their number:
take a setup for better only where the others around it agree. No held-out question is read.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from surroundings import ROOT, machine, private_copy

from atlas import Assistant, Collection, Scope
from atlas.measure.cases import Case, Labels, load_cases
from atlas.records import Hit
from atlas.rerank import calibrated
from atlas.search import search
from atlas.settings import Settings
from atlas.words import content_terms, terms

ENCODERS = ("bge-small-en-v1.5", "all-minilm-l6-v2")
PREFIXES = ("none", "keyword", "vector", "both")
WEIGHTS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
DEPTHS = (5, 10, 20)
RERANK_WEIGHTS = (1.0, 0.5, 0.3)
SECTION_WEIGHTS = (0.0, 0.3, 0.7)
RRF = "rrf"
RRF_CONSTANT = 60
"""As in Cormack, Clarke and Büttcher 2009."""
CANDIDATES = 100
MEASURES = ("hit@1", "hit@5", "recall@5", "ndcg@10")

Fusion = float | str
"""The share of the vector score, 0 to 1, or RRF."""
Logits = dict[tuple[str, str], float]
"""Question as read and block reference -> the reranker's logit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """One row of the table."""

    prefix: str
    fusion: Fusion
    depth: int
    """Hits that are reranked; 0 for none."""
    rerank_weight: float = 0.0
    stop_words: bool = False
    """Whether stop words stay in the keyword query."""
    section_weight: float = 0.0
    """Share of the best fused score of its section in a block's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question after search, before fusion."""

    case: Case
    text: str
    hits: tuple[Hit, ...]
    labels: dict[str, frozenset[str]]
    """Block reference -> the case's labels that it lies under."""
    relevant: int
    """Blocks in scope under any of the labels."""


def asked(assistant: Assistant, cases: Sequence[Case], stop_words: bool) -> list[Asked]:
    """Search every question in its scope."""
    labels = Labels(tuple(assistant.index.documents()))
    blocks = [assistant.index.block(number) for number in range(len(assistant.index))]
    under = [
        [frozenset(label for label in case.relevant if labels.covers(label, b)) for b in blocks]
        for case in cases
    ]
    found = []
    for case, of_block in zip(cases, under, strict=True):
        scope = Scope(reader=case.reader, date=case.date or assistant.settings.as_of)
        read = assistant.understand(case.question, scope)
        wanted = terms(read.text) if stop_words else content_terms(read.text) or terms(read.text)
        vector = assistant.encoder.encode_question(read.text)
        hits = search(
            wanted,
            vector,
            assistant.index,
            assistant.store,
            read.statistics,
            assistant.settings,
            CANDIDATES,
        )
        found.append(
            Asked(
                case=case,
                text=read.text,
                hits=tuple(hits),
                labels={b.ref: names for b, names in zip(blocks, of_block, strict=True)},
                relevant=sum(bool(of_block[n]) for n in np.flatnonzero(read.seen.blocks)),
            )
        )
    return found


def fused(hits: Sequence[Hit], fusion: Fusion) -> dict[str, float]:
    """Block reference -> fused score, for a weight as atlas computes it, or by reciprocal rank."""
    if isinstance(fusion, str):
        total = {hit.block.ref: 0.0 for hit in hits}
        orders: tuple[Callable[[Hit], float], ...] = (
            lambda hit: -hit.keyword_score,
            lambda hit: -hit.vector_score,
        )
        for order in orders:
            for rank, hit in enumerate(sorted(hits, key=order), 1):
                total[hit.block.ref] += 1 / (RRF_CONSTANT + rank)
        return total
    best = max((hit.keyword_score for hit in hits), default=0.0)
    return {
        hit.block.ref: fusion * max(hit.vector_score, 0.0)
        + (1 - fusion) * (max(hit.keyword_score, 0.0) / best if best > 0 else 0.0)
        for hit in hits
    }


def towards_sections(
    hits: Sequence[Hit], scores: dict[str, float], share: float
) -> dict[str, float]:
    """The scores moved towards the best of their sections, as atlas does it."""
    best: dict[tuple[str, int], float] = {}
    for hit in hits:
        place = hit.block.document, hit.block.section
        best[place] = max(best.get(place, 0.0), scores[hit.block.ref])
    return {
        hit.block.ref: (1 - share) * scores[hit.block.ref]
        + share * best[hit.block.document, hit.block.section]
        for hit in hits
    }


def ranked(one: Asked, setup: Setup, assistant: Assistant, logits: Logits) -> list[Hit]:
    """The hits in the order that a setup gives them."""
    scores = towards_sections(one.hits, fused(one.hits, setup.fusion), setup.section_weight)
    order = sorted(one.hits, key=lambda hit: -scores[hit.block.ref])
    if not setup.depth:
        return order
    head = order[: setup.depth]
    missing = [hit for hit in head if (one.text, hit.block.ref) not in logits]
    if missing and assistant.reranker is not None:
        values = assistant.reranker.score(one.text, [hit.block.searched for hit in missing])
        for hit, value in zip(missing, values, strict=True):
            logits[one.text, hit.block.ref] = float(value)

    def key(hit: Hit) -> float:
        relevance = calibrated(logits[one.text, hit.block.ref])
        share = setup.rerank_weight
        return -(share * relevance + (1 - share) * scores[hit.block.ref])

    return sorted(head, key=key) + order[setup.depth :]


def measured(
    questions: Sequence[Asked], setup: Setup, assistant: Assistant, logits: Logits
) -> dict[str, NDArray[np.float64]]:
    """Every measure's values, one per question."""
    values: dict[str, list[float]] = {name: [] for name in (*MEASURES, "reach")}
    for one in questions:
        order = ranked(one, setup, assistant, logits)
        gains = [bool(one.labels[hit.block.ref]) for hit in order]
        found = {label for hit in order[:5] for label in one.labels[hit.block.ref]}
        gained = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains[:10]))
        ideal = sum(1 / math.log2(rank + 2) for rank in range(min(one.relevant, 10)))
        values["hit@1"].append(any(gains[:1]))
        values["hit@5"].append(any(gains[:5]))
        values["recall@5"].append(len(found) / len(one.case.relevant))
        values["ndcg@10"].append(gained / ideal if ideal else 0.0)
        values["reach"].append(any(gains[: setup.depth or 10]))
    return {name: np.array(column, np.float64) for name, column in values.items()}


def setups(shipped: Setup, every: bool) -> Iterator[Setup]:
    """The rows of one encoder; without `every`, one thing is varied at a time."""
    fusions: tuple[Fusion, ...] = (RRF, *WEIGHTS)
    if every:
        for prefix in PREFIXES:
            for fusion in fusions:
                row = replace(shipped, prefix=prefix, fusion=fusion)
                yield replace(row, depth=0, rerank_weight=0.0)
                for depth in DEPTHS:
                    for weight in RERANK_WEIGHTS:
                        yield replace(row, depth=depth, rerank_weight=weight)
    else:
        plain = replace(shipped, depth=0, rerank_weight=0.0)
        yield from (replace(plain, prefix=prefix) for prefix in PREFIXES)
        yield from (replace(plain, fusion=fusion) for fusion in fusions)
        for depth in DEPTHS:
            for weight in RERANK_WEIGHTS:
                yield replace(shipped, depth=depth, rerank_weight=weight)
    yield shipped
    yield from (replace(shipped, section_weight=share) for share in SECTION_WEIGHTS)
    yield replace(shipped, stop_words=True)


def interval(values: NDArray[np.float64]) -> str:
    """Mean and 95% interval."""
    draws = np.random.default_rng(1).choice(values, (2000, len(values))).mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    bounds = " ".join("1.0" if b > 0.995 else f"{b:.2f}"[1:] for b in (low, high))
    return f"{values.mean():.3f} [{bounds}]"


def line(setup: Setup, values: dict[str, NDArray[np.float64]]) -> str:
    """One row, at most 100 characters."""
    fusion = setup.fusion if isinstance(setup.fusion, str) else f"w {setup.fusion:g}"
    rerank = f"{setup.depth}x{setup.rerank_weight:g}" if setup.depth else "none"
    cells = " ".join(f"{interval(values[name]):15}" for name in MEASURES)
    note = " +stop" if setup.stop_words else ""
    if setup.depth and setup.section_weight != Settings().section_weight:
        note += f" s {setup.section_weight:g}"
    return f"{setup.prefix:7} {fusion + note:11} {rerank:7} {cells} {values['reach'].mean():.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-C", dest="folder", type=Path, default=ROOT, help="collection (this one)")
    parser.add_argument("--all", action="store_true", help="every combination")
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temporary:
        collection = Collection.open(private_copy(arguments.folder, Path(temporary)))
        cases = [case for case in load_cases(collection.root) if case.relevant]
        print(f"{len(cases)} development questions with a labelled source")
        own = collection.settings
        shipped = Setup(
            prefix=own.prefix,
            fusion=own.vector_weight,
            depth=own.depth,
            rerank_weight=own.rerank_weight,
            section_weight=own.section_weight,
        )
        head = " ".join(f"{name:15}" for name in MEASURES)
        for encoder in ENCODERS:
            print(f"\n{encoder}\n{'prefix':7} {'fusion':11} {'rerank':7} {head} reach")
            logits: Logits = {}
            opened: dict[tuple[str, bool], tuple[Assistant, list[Asked]]] = {}
            for setup in dict.fromkeys(setups(shipped, arguments.all)):
                key = setup.prefix, setup.stop_words
                if key not in opened:
                    settings = replace(own, encoder=encoder, prefix=setup.prefix)
                    assistant = Assistant.of(replace(collection, settings=settings))
                    opened[key] = assistant, asked(assistant, cases, setup.stop_words)
                assistant, questions = opened[key]
                print(line(setup, measured(questions, setup, assistant, logits)), flush=True)


if __name__ == "__main__":
    main()
