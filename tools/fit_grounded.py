"""Fits the numbers of the judge `grounded` and writes them beside it.

How meaning is read comes from the development cases: their reference answers are supported by their
own sources, and those of other questions, the nearest ones, are not. Whether sources answer a
question comes from the answerable cases with their sources and the unanswerable ones with their
near misses. The threshold comes from one half of the judge labels, those whose sha256 of the id is
even; the other half is only reported. No other labels are read.

The rules of the judge were written with the first half in view, and with those of the other half
whose last byte of the sha256 is 1 modulo 4. Of the rest, 3 modulo 4, no row was looked at, but
once the counts by kind over the whole other half.

    python tools/fit_grounded.py --write
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from atlas.blocks import split
from atlas.collection import Collection
from atlas.measure.cases import Case, Labels, load_cases
from atlas.measure.judges import fitted
from atlas.measure.judges.claims import statements
from atlas.measure.judges.grounded import Grounded
from atlas.measure.judges.passages import passages
from atlas.measure.judges.question import answerable
from atlas.measure.labels import in_first_half, load_labels
from atlas.models import load_both
from atlas.records import Block

TARGET = Path(__file__).parent.parent / "atlas" / "measure" / "judges" / "grounded.json"
FOREIGN = 2
"""Questions per question whose reference answers are taken as unsupported claims."""
FEATURES = ("logit", "cosine", "lacks_value", "unknown", "unknown_code")


@dataclass(frozen=True, slots=True)
class Sourced:
    """A case with the blocks that answer it and those that only look like it."""

    case: Case
    right: tuple[Block, ...]
    near: tuple[Block, ...]

    @property
    def texts(self) -> list[str]:
        return [
            f"{block.title} > {' > '.join(block.titles)}\n{block.text}"
            for block in (*self.right[:3], *self.near[:3])
        ]


def sourced(root: Path) -> list[Sourced]:
    collection = Collection.open(root)
    size, overlap = collection.settings.block_size, collection.settings.block_overlap
    blocks = [block for item in collection.documents for block in split(item, size, overlap)]
    labels = Labels(collection.documents)

    def covered(names: Sequence[str]) -> tuple[Block, ...]:
        return tuple(b for b in blocks if any(labels.covers(name, b) for name in names))

    return [
        Sourced(case, covered(case.relevant), covered(case.near_misses))
        for case in load_cases(root)
    ]


def claims(judge: Grounded, rows: Sequence[Sourced]) -> Iterator[tuple[bool, list[float]]]:
    """Supported and unsupported claims with their three features."""
    rows = [row for row in rows if row.case.expect == "answer" and row.case.reference]
    vectors = judge.meaning.encoded([row.case.reference for row in rows])
    for place, row in enumerate(rows):
        here = passages(row.case.question, row.texts)
        own = {block.ref for block in (*row.right, *row.near)}
        order = [
            int(other)
            for other in np.argsort(-(vectors @ vectors[place]), kind="stable")
            if other != place and not own & {block.ref for block in rows[int(other)].right}
        ]
        for other in (place, *order[:FOREIGN]):
            case = rows[other].case
            for item in statements(case.question, case.reference):
                if item.kind == "statement":
                    found = judge.meaning.support(item.read, here)
                    yield other == place, [found.cosine, found.coverage, found.logit]


def questions(judge: Grounded, rows: Sequence[Sourced]) -> Iterator[tuple[bool, list[float]]]:
    """Whether the sources do not answer, and the features from which that is told."""
    for row in rows:
        if row.case.expect != "clarify" and row.texts:
            here = passages(row.case.question, row.texts)
            found = answerable(judge.meaning, row.case.question, here)
            yield row.case.expect == "abstain", [getattr(found, name) for name in FEATURES]


def rounded(values: Any) -> list[float]:
    return [round(float(value), 4) for value in values]


def support_numbers(rows: Sequence[tuple[bool, list[float]]]) -> dict[str, Any]:
    right = np.array([label for label, _ in rows])
    values = np.array([features for _, features in rows])
    means, deviations = values.mean(0), values.std(0)
    scores = (values - means) / deviations @ np.array(fitted.WEIGHTS)
    print(f"claims: {right.sum()} own, {(~right).sum()} foreign; AUC")
    for name, column in zip(("cosine", "coverage", "logit"), values.T, strict=True):
        print(f"  {name:10}{roc_auc_score(right, column):.3f}")
    print(f"  {'together':10}{roc_auc_score(right, scores):.3f}")
    ends = np.quantile(scores[~right], 0.05), np.quantile(scores[right], 0.95)
    return {"means": rounded(means), "deviations": rounded(deviations), "scale": rounded(ends)}


def unanswered_numbers(rows: Sequence[tuple[bool, list[float]]]) -> dict[str, Any]:
    label = np.array([label for label, _ in rows])
    values = np.array([features for _, features in rows])
    scale = values.std(0) + 1e-9
    model = LogisticRegression(class_weight="balanced", C=1.0)
    held = cross_val_predict(model, values / scale, label, cv=5, method="predict_proba")[:, 1]
    model.fit(values / scale, label)
    print(f"questions: {label.sum()} unanswered, {(~label).sum()} answered; "
          f"cross-validated AUC {roc_auc_score(label, held):.3f}, "
          f"right {np.mean((held >= 0.5) == label):.3f}")  # fmt: skip
    return {
        "weights": dict(zip(FEATURES, rounded(model.coef_[0] / scale), strict=True)),
        "bias": rounded(model.intercept_)[0],
    }


def chosen_threshold(scores: np.ndarray, right: np.ndarray) -> float:
    """The middle of the widest run of thresholds with the most right verdicts."""
    places = np.unique(np.concatenate([[0.0], scores, [1.0]]))
    middles = (places[:-1] + places[1:]) / 2
    hits = np.array([np.mean((scores >= limit) == right) for limit in middles])
    best = np.flatnonzero(hits == hits.max())
    widest = max(best, key=lambda place: places[place + 1] - places[place])
    return float(middles[widest])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-C", dest="folder", type=Path, default=Path())
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        models = load_both("bge-small-en-v1.5", "ms-marco-minilm-l-12-v2", Path(state))
    judge = Grounded(*models)
    rows = sourced(options.folder)
    supported, unanswered = list(claims(judge, rows)), list(questions(judge, rows))
    numbers = {
        "made": "",
        "support": support_numbers(supported),
        "unanswered": unanswered_numbers(unanswered),
        "threshold": 0.5,
    }
    fitted.use(numbers)
    labelled = load_labels(options.folder / "judge_labels")
    first = np.array([in_first_half(item.id) for item in labelled])
    right = np.array([item.label == "correct" for item in labelled])

    def scored() -> np.ndarray:
        return np.array(
            [judge.score(i.question, i.answer, i.sources, i.history)[0] for i in labelled]
        )

    limit = chosen_threshold(scored()[first], right[first])
    numbers["threshold"] = round(limit, 3)
    fitted.use(numbers)
    scores = scored()  # an answer that declines is placed around the threshold
    print(f"threshold {limit:.3f}")
    for name, half in (("first half", first), ("other half", ~first)):
        hits = (scores[half] >= numbers["threshold"]) == right[half]
        print(f"{name}: right {hits.sum()} of {half.sum()}, "
              f"AUC {roc_auc_score(right[half], scores[half]):.3f}")  # fmt: skip
    numbers["made"] = (
        f"tools/fit_grounded.py on {date.today()}: {len(supported)} claims and "
        f"{len(unanswered)} questions of the development cases; the threshold on "
        f"{int(first.sum())} of {len(labelled)} judge labels"
    )
    if options.write:
        TARGET.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
