"""The numbers of `grounded.json` -> probabilities: how features of meaning are read.

They are made by `tools/fit_grounded.py`, which says on what; nothing else holds a weight.
"""

from __future__ import annotations

import json
import math
from importlib.resources import files
from typing import Any

from atlas.measure.judges.meaning import Support
from atlas.measure.judges.question import Answerable

WEIGHTS = (0.5, 0.25, 0.25)
"""Of cosine, word coverage and reranker in the meaning of a claim."""
_numbers: dict[str, Any] = {}


def fitted() -> dict[str, Any]:
    """The whole file."""
    if not _numbers:
        place = files("atlas.measure.judges").joinpath("grounded.json")
        _numbers.update(json.loads(place.read_text(encoding="utf-8")))
    return _numbers


def use(numbers: dict[str, Any]) -> None:
    """Read these numbers in place of the file's, while they are being fitted."""
    _numbers.clear()
    _numbers.update(numbers)


def threshold() -> float:
    """The score from which an answer is correct, 0 to 1."""
    return float(fitted()["threshold"])


def supported_by_meaning(support: Support) -> float:
    """How far meaning speaks for a claim, 0 to 1: the weighted mean of three z-scores on a scale.

    0 is where the lowest twentieth of foreign claims lies and 1 where the highest of own ones does;
    between them the scale is linear, because foreign claims are told so easily that a probability
    fitted to them would be sure of everything. The cosine weighs as much as the two others.
    """
    numbers = fitted()["support"]
    values = (support.cosine, support.coverage, support.logit)
    score = sum(
        weight * (value - mean) / deviation
        for weight, value, mean, deviation in zip(
            WEIGHTS, values, numbers["means"], numbers["deviations"], strict=True
        )
    )
    low, high = numbers["scale"]
    return float(min(1.0, max(0.0, (score - low) / (high - low))))


def unanswered(features: Answerable) -> float:
    """Probability that the sources do not answer a question, 0 to 1."""
    numbers = fitted()["unanswered"]
    total = numbers["bias"]
    for name, weight in numbers["weights"].items():
        total += weight * getattr(features, name)
    return _logistic(total)


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value))))
