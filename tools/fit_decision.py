"""Fit the decision to answer or decline on development questions; write decision.json.

    python tools/fit_decision.py            print the cross-validated table, write nothing
    python tools/fit_decision.py --write    also write atlas/answer/decision.json

Every development question is asked twice: as it is, and, where it has an answer, once more with
every block taken away that holds the answer, when declining is right. For each the three candidates
that the reranker likes best are looked at. A candidate is right if it holds the facts of the case,
or overlaps its evidence, and nothing rejected. Of the thresholds that decline
at least 0.8 of the unanswerable questions, the one with the best balance is taken: right answers
less wrong ones, an answer to an unanswerable question being a wrong one, by ten-fold
cross-validation over questions. Held-out questions are never read.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from atlas.answer.answerer import CONSIDERED, STRICT, _found
from atlas.answer.decision import FEATURES, features_of
from atlas.answer.extractive import Candidate
from atlas.assistant import Assistant, _Clock
from atlas.keyword import ScopedBM25
from atlas.measure.cases import Case, Labels, load_cases
from atlas.measure.facts import missing_facts, rejected
from atlas.records import Scope
from atlas.words import terms

TARGET = Path(__file__).parents[1] / "atlas" / "answer" / "decision.json"
FOLDS = 10
DECLINED = 0.8
"""Least share of unanswerable questions that must be declined."""
NEAR = 0.01
"""Balances this near to the best count as equal; then the lowest threshold answers most."""


@dataclass(frozen=True)
class Example:
    """One asking of one question: features and rightness of its candidates, best first."""

    case: Case
    removed: bool
    features: np.ndarray
    right: np.ndarray


def examples(assistant: Assistant) -> Iterator[Example]:
    labels = Labels(tuple(assistant.index.documents()))
    for case in load_cases(assistant.collection.root):
        yield example(assistant, case, labels, removed=False)
        if case.expect == "answer" and case.kind != "calculation":
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
    hits = [] if asked.unknown else assistant._hits(asked, _Clock())
    kept = assistant._select(hits, asked.seen).kept
    found = _found(asked.question, kept, material)[:CONSIDERED]
    pairs = [(item, features_of(asked.question, item, material.evidence)) for item in found]
    if asked.question.asked in STRICT:  # the answerer refuses these whatever the weights say
        pairs = [(item, row) for item, row in pairs if not row["value_missing"]]
    rows = [row for _, row in pairs]
    right = [not removed and is_right(case, item, labels) for item, _ in pairs]
    table = np.array([[row[name] for name in FEATURES] for row in rows]).reshape(-1, len(FEATURES))
    return Example(case, removed, table, np.array(right, bool))


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


def expected_cosines(rows: list[Example]) -> dict[str, list[float]]:
    """Intercept and slope of the two cosines over `quote_logit`."""
    x = np.concatenate([row.features for row in rows])
    logit = x[:, FEATURES.index("quote_logit")]
    found = {}
    for name in ("vector_score", "quote_cosine"):
        slope, intercept = np.polyfit(logit, x[:, FEATURES.index(name)], 1)
        found[name] = [round(float(intercept), 4), round(float(slope), 4)]
    return found


def fitted(rows: list[Example], strength: float) -> LogisticRegression:
    x = np.concatenate([row.features for row in rows])
    y = np.concatenate([row.right for row in rows])
    scale = np.maximum(x.std(axis=0), 1e-9)  # one strength of regularisation for all features
    model = LogisticRegression(C=strength, max_iter=5000).fit(x / scale, y)
    model.coef_ = model.coef_ / scale
    return model


def outcomes(rows: list[Example], strength: float) -> list[tuple[Example, float, bool]]:
    """Cross-validated: each example's best probability, and whether that candidate is right."""
    ids = sorted({row.case.id for row in rows})
    np.random.default_rng(7).shuffle(ids)
    fold = {name: place % FOLDS for place, name in enumerate(ids)}
    found = []
    for number in range(FOLDS):
        model = fitted([row for row in rows if fold[row.case.id] != number], strength)
        for row in rows:
            if fold[row.case.id] != number:
                continue
            if not len(row.features):
                found.append((row, 0.0, False))
                continue
            chances = model.predict_proba(row.features)[:, 1]
            best = int(chances.argmax())
            found.append((row, float(chances[best]), bool(row.right[best])))
    return found


def table(found: list[tuple[Example, float, bool]], thresholds: np.ndarray) -> list[dict[str, Any]]:
    real = [item for item in found if not item[0].removed and item[0].case.kind != "calculation"]
    answerable = [item for item in real if item[0].case.expect == "answer"]
    unanswerable = [item for item in real if item[0].case.expect == "abstain"]
    taken_away = [item for item in found if item[0].removed]
    rows = []
    for limit in thresholds:
        rows.append(
            {
                "threshold": round(float(limit), 3),
                "declined": np.mean([p < limit for _, p, _ in unanswerable]),
                "declined_without_evidence": np.mean([p < limit for _, p, _ in taken_away]),
                "wrongly_declined": np.mean([p < limit for _, p, _ in answerable]),
                "right": np.mean([p >= limit and ok for _, p, ok in answerable]),
                "wrong": np.mean([p >= limit and not ok for _, p, ok in answerable]),
                "balance": np.mean(
                    [
                        (1 if ok else -1) if p >= limit else 0
                        for _, p, ok in answerable + unanswerable
                    ]
                ),
            }
        )
    return rows


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
    }
    print(counts)
    rows = [row for row in rows if row.case.kind != "calculation"]
    thresholds = np.linspace(0.05, 0.6, 23)
    for strength in (0.03, 0.1, 0.3, 1.0, 3.0):
        found = outcomes(rows, strength)
        loss = -np.mean([np.log(max(1e-6, p if ok else 1 - p)) for _, p, ok in found])
        print(f"C {strength:g}: log loss {loss:.4f}")
    found = outcomes(rows, 1.0)
    for row in table(found, thresholds):
        print("  ".join(f"{name} {value:.3f}" for name, value in row.items()))
    enough = [row for row in table(found, thresholds) if row["declined"] >= DECLINED]
    best = max(row["balance"] for row in enough)
    chosen = next(row for row in enough if row["balance"] >= best - NEAR)
    print("chosen", {name: round(float(value), 3) for name, value in chosen.items()})
    if options.write:
        model = fitted(rows, 1.0)
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
