"""What speaks for answering with a quote, as numbers -> the probability that it is right.

Declining is a decision of its own, not a threshold on one score: the reranker is nearly certain of
a block about the battery's warranty when the question is about engine oil. So the quote itself is
looked at: does what is asked about stand in it, and the kind of value that was asked for?

The probability is logistic in the features below. Its weights were fitted on development questions
by `tools/fit_decision.py`, are kept in `decision.json`, and say how they were made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

FEATURES = (
    "quote_logit",
    "block_logit",
    "vector_score",
    "covered_quote",
    "covered_block",
    "worst_missing",
    "unknown_share",
    "value_given",
    "value_missing",
)
"""In the order of the weights:

- `quote_logit`: the reranker on question and quote, clipped to -12..12, divided by 10;
- `block_logit`: the same on the whole block;
- `vector_score`: cosine of question and block;
- `covered_quote`: share of the question's terms, weighted by rarity in scope, that stand in the
  quote or in the titles above it;
- `covered_block`: the same for the whole block;
- `worst_missing`: rarity of the rarest question term that the block lacks, 0 to 1;
- `unknown_share`: share of the question's terms that stand in no block in scope;
- `value_given`, `value_missing`: a kind of value was asked for, and the quote has or lacks it.
"""


@lru_cache(maxsize=1)
def weights() -> Mapping[str, Any]:
    """The fitted weights: `bias`, `weights` by feature, `threshold`, and how they were made."""
    text = (Path(__file__).parent / "decision.json").read_text(encoding="utf-8")
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


def probability(features: Mapping[str, float]) -> float:
    """Probability, 0 to 1, that an answer made of the quote is right."""
    fitted = weights()
    value = fitted["bias"] + sum(fitted["weights"][name] * features[name] for name in FEATURES)
    return float(1 / (1 + math.exp(-max(-60.0, min(60.0, value)))))


def threshold() -> float:
    """The probability below which atlas declines."""
    return float(weights()["threshold"])
