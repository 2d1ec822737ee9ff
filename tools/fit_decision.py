"""Fit the decision to answer or decline on development questions; write decision.json.

    python tools/fit_decision.py            print the tables, write nothing
    python tools/fit_decision.py --write    also write atlas/answer/decision.json

Every development question is asked twice: as it is, and, where it has an answer, once more with
every block taken away that holds the answer, when declining is right. For each the two candidates
that the reranker likes best are looked at. A candidate is right if it holds the facts of the case,
or overlaps its evidence, and nothing rejected.

The probability is validated ten-fold, five times over with other folds. Questions with the same
first source, and those that share half of their terms, stay in one fold. Of the thresholds that
decline at least 0.8 of the unanswerable questions, the one with the best balance is taken: right
answers less wrong ones, an answer to an unanswerable question being a wrong one. Held-out questions
are never read.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from atlas.answer.answerer import CONSIDERED, _found, _unknown_codes, refused, rivals_of
from atlas.answer.decision import FEATURES, features_of
from atlas.answer.extractive import Candidate
from atlas.assistant import Assistant
from atlas.keyword import ScopedBM25
from atlas.measure.cases import Case, Labels, load_cases
from atlas.measure.facts import missing_facts, rejected
from atlas.records import Scope
from atlas.trace import Clock
from atlas.words import content_terms, terms

TARGET = Path(__file__).parents[1] / "atlas" / "answer" / "decision.json"
FOLDS = 10
SHUFFLES = 5
STRENGTH = 0.3
"""Inverse regularisation of the shipped weights, all features scaled to one spread."""
DECLINED = 0.8
"""Least share of unanswerable questions that must be declined."""
NEAR = 0.015
"""Balances this near to the best count as equal; then the lowest threshold answers most."""
ALIKE = 0.5
"""Share of common terms from which two questions stay in one fold."""

Outcome = tuple["Example", float, bool]
"""An example, the probability of its best candidate, and whether that one is right."""


@dataclass(frozen=True)
class Example:
    """One asking of one question: features and rightness of its candidates, best first."""

    case: Case
    removed: bool
    features: np.ndarray
    logits: np.ndarray
    right: np.ndarray


def examples(assistant: Assistant) -> Iterator[Example]:
    labels = Labels(tuple(assistant.index.documents()))
    for case in load_cases(assistant.collection.root):
        if case.expect == "clarify" or case.kind == "calculation":
            continue
        yield example(assistant, case, labels, removed=False)
        if case.expect == "answer":
            yield example(assistant, case, labels, removed=True)


def example(assistant: Assistant, case: Case, labels: Labels, *, removed: bool) -> Example:
    scope = Scope(reader=case.reader, date=case.date or assistant.settings.as_of)
    asked = assistant.understand(case.question, scope)
    if removed:
        blocks = asked.seen.blocks.copy()
        for number in np.flatnonzero(blocks):
            block = assistant.index.block(int(number))
            holds = case.facts and not missing_facts(block.searched, case)
            if holds or any(labels.covers(label, block) for label in case.relevant):
                blocks[number] = False
        seen = replace(asked.seen, blocks=blocks)
        asked = replace(asked, seen=seen, statistics=ScopedBM25(assistant.index.postings, blocks))
    material = assistant.material(asked)
    hits = [] if asked.unknown else assistant._hits(asked, Clock())
    scored = [hit for hit in hits if hit.order_score is not None]
    selection = assistant._select(scored, asked.seen, assistant.settings)
    supplied = assistant._supplied(hits, selection, asked)
    found = _found(asked.question, supplied, material)
    rows, right, logits = [], [], []
    for item in found[:CONSIDERED] if not _unknown_codes(asked.question, material) else ():
        rivals = rivals_of(item, found, material.products)
        row = features_of(asked.question, item, material.evidence, rivals)
        if not refused(asked.question, item, row):
            rows.append([row[name] for name in FEATURES])
            right.append(not removed and is_right(case, item, labels))
            logits.append(max(-12.0, min(12.0, item.logit)) / 12)
    table = np.array(rows).reshape(-1, len(FEATURES))
    return Example(case, removed, table, np.array(logits), np.array(right, bool))


def is_right(case: Case, candidate: Candidate, labels: Labels) -> bool:
    """Whether an answer with this quote would be right."""
    if case.expect == "abstain":
        return False
    quote = candidate.quote
    if rejected(quote.readable, case):
        return False
    inside = any(labels.covers(label, quote.block) for label in case.relevant)
    for evidence in case.evidence if inside else ():
        words, have = set(terms(evidence)), set(terms(quote.text))
        if len(words & have) >= 0.8 * min(len(words), len(have)):
            return True
    return case.expect == "answer" and bool(case.facts) and not missing_facts(quote.readable, case)


def expected_cosines(rows: Sequence[Example]) -> dict[str, list[float]]:
    """Intercept and slope of the two cosines over the clipped logit of the quote."""
    x = np.concatenate([row.features for row in rows])
    logit = np.concatenate([row.logits for row in rows])
    found = {}
    for name in ("quote_cosine", "bare_cosine"):
        slope, intercept = np.polyfit(logit, x[:, FEATURES.index(name)], 1)
        found[name] = [round(float(intercept), 4), round(float(slope), 4)]
    return found


def groups(rows: Sequence[Example]) -> dict[str, str]:
    """Case -> its group: the same first source, or half of the terms in common."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    cases = {row.case.id: row.case for row in rows}
    words = {name: set(content_terms(case.question)) for name, case in cases.items()}
    names = list(cases)
    for place, name in enumerate(names):
        for label in cases[name].relevant[:1]:
            parent[root(name)] = root(f"source {label}")
        for other in names[:place]:
            joint = words[name] | words[other]
            if joint and len(words[name] & words[other]) >= ALIKE * len(joint):
                parent[root(name)] = root(other)
    return {name: root(name) for name in names}


def fitted(rows: Sequence[Example], strength: float) -> LogisticRegression:
    x = np.concatenate([row.features for row in rows])
    y = np.concatenate([row.right for row in rows])
    scale = np.maximum(x.std(axis=0), 1e-9)  # one strength of regularisation for all features
    model = LogisticRegression(C=strength, max_iter=5000).fit(x / scale, y)
    model.coef_ = model.coef_ / scale
    return model


def best_of(model: LogisticRegression, row: Example) -> Outcome:
    if not len(row.features):
        return row, 0.0, False
    chances = model.predict_proba(row.features)[:, 1]
    best = int(chances.argmax())
    return row, float(chances[best]), bool(row.right[best])


def cross_validated(rows: Sequence[Example], strength: float) -> list[Outcome]:
    """The outcome of every example under a model that never saw its group, once per shuffle."""
    group = groups(rows)
    found = []
    for shuffle in range(SHUFFLES):
        names = sorted(set(group.values()))
        np.random.default_rng(shuffle).shuffle(names)
        fold = {name: place % FOLDS for place, name in enumerate(names)}
        for number in range(FOLDS):
            inside = [fold[group[row.case.id]] == number for row in rows]
            model = fitted([r for r, held in zip(rows, inside, strict=True) if not held], strength)
            found += [best_of(model, r) for r, held in zip(rows, inside, strict=True) if held]
    return found


def table(found: Sequence[Outcome], thresholds: np.ndarray) -> list[dict[str, Any]]:
    real = [item for item in found if not item[0].removed]
    answerable = [item for item in real if item[0].case.expect == "answer"]
    unanswerable = [item for item in real if item[0].case.expect == "abstain"]
    taken_away = [item for item in found if item[0].removed]
    rows = []
    for limit in thresholds:
        worth = [(1 if ok else -1) if p >= limit else 0 for _, p, ok in answerable + unanswerable]
        rows.append(
            {
                "threshold": round(float(limit), 3),
                "declined": np.mean([p < limit for _, p, _ in unanswerable]),
                "declined_without_evidence": np.mean([p < limit for _, p, _ in taken_away]),
                "wrongly_declined": np.mean([p < limit for _, p, _ in answerable]),
                "right": np.mean([p >= limit and ok for _, p, ok in answerable]),
                "wrong": np.mean([p >= limit and not ok for _, p, ok in answerable]),
                "balance": np.mean(worth),
            }
        )
    return rows


def show(rows: Sequence[dict[str, Any]]) -> None:
    for row in rows:
        print("  ".join(f"{name} {value:.3f}" for name, value in row.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-C", dest="folder", default=".")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    assistant = Assistant.open(options.folder)
    encoder = assistant.encoder.name
    rows = list(examples(assistant))
    counts = {
        "answerable": sum(r.case.expect == "answer" and not r.removed for r in rows),
        "unanswerable": sum(r.case.expect == "abstain" for r in rows),
        "without evidence": sum(r.removed for r in rows),
        "groups": len(set(groups(rows).values())),
    }
    print(counts)
    thresholds = np.linspace(0.06, 0.3, 13)
    for strength in (0.03, 0.1, 0.3, 1.0, 3.0):
        found = cross_validated(rows, strength)
        loss = -np.mean([np.log(max(1e-6, p if ok else 1 - p)) for _, p, ok in found])
        print(f"C {strength:g}: log loss {loss:.4f}")
    validated = table(cross_validated(rows, STRENGTH), thresholds)
    print("cross-validated")
    show(validated)
    enough = [row for row in validated if row["declined"] >= DECLINED]
    best = max(row["balance"] for row in enough)
    chosen = next(row for row in enough if row["balance"] >= best - NEAR)
    model = fitted(rows, STRENGTH)
    print("resubstituted: the same questions with the model that was fitted on them")
    show(table([best_of(model, row) for row in rows], thresholds))
    print("chosen", {name: round(float(value), 3) for name, value in chosen.items()})
    if options.write:
        names = dict(zip(FEATURES, (round(float(w), 4) for w in model.coef_[0]), strict=True))
        made = (
            f"tools/fit_decision.py on {date.today()}: {counts['answerable']} answerable and "
            f"{counts['unanswerable']} unanswerable development questions, and "
            f"{counts['without evidence']} with their evidence taken away"
        )
        TARGET.write_text(
            json.dumps(
                {
                    "made": made,
                    "encoder": encoder,
                    "expected": expected_cosines(rows),
                    "bias": round(float(model.intercept_[0]), 4),
                    "threshold": chosen["threshold"],
                    "weights": names,
                },
                indent=2,
            )
            + "\n"
        )


if __name__ == "__main__":
    main()
