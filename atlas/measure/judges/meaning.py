"""Claim, passages -> how near its meaning is to what the passages say, by the models on board.

Three measures, each higher for better support: the cosine of the claim and the nearest passage,
the share of its words that the nearest passages hold, and the reranker's score of the two. Every
text is encoded once and remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atlas.measure.judges.passages import Passage
from atlas.models import Encoder, Reranker
from atlas.words import content_terms

NEAREST = 3
"""Windows nearest by cosine that the reranker and the word count look at."""
PART = 4
"""Words that a cell or clause needs to be compared alone."""
MAX_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class Support:
    """What speaks for one claim."""

    cosine: float
    """-1 to 1."""
    coverage: float
    """Share of the claim's content terms, 0 to 1; 1 where it has none."""
    logit: float
    """The reranker's highest logit of claim and window."""
    nearest: tuple[Passage, ...]
    """The passages nearest to it, best first."""


class Meaning:
    """The two models with a memory."""

    def __init__(self, encoder: Encoder, reranker: Reranker) -> None:
        self._encoder = encoder
        self._reranker = reranker
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._logits: dict[tuple[str, str], float] = {}

    def support(self, claim: str, passages: Sequence[Passage]) -> Support:
        """Measure a claim against passages; without any everything is at its lowest."""
        if not passages:
            return Support(-1.0, 0.0, -12.0, ())
        windows = _windows(passages)
        cosines = self.cosines(claim, [text for text, _ in windows])
        order = [int(place) for place in np.argsort(-cosines, kind="stable")]
        best = order[:NEAREST]
        logits = self.logits([(claim, windows[place][0]) for place in best])
        coverage = share(
            claim, "\n".join(f"{windows[place][1].titles}\n{windows[place][0]}" for place in best)
        )
        nearest: dict[int, Passage] = {}
        for place in order:
            nearest.setdefault(id(windows[place][1]), windows[place][1])
            if len(nearest) == NEAREST:
                break
        return Support(
            float(cosines[best[0]]), coverage, float(max(logits)), tuple(nearest.values())
        )

    def cosines(self, text: str, others: Sequence[str]) -> NDArray[np.float32]:
        """Cosines of one text and others, shape (len(others),)."""
        vectors = self.encoded([text, *others])
        result: NDArray[np.float32] = vectors[1:] @ vectors[0]
        return result

    def logits(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The reranker's logits of (question or claim, text) pairs."""
        missing = list(dict.fromkeys(pair for pair in pairs if pair not in self._logits))
        if missing:
            if len(self._logits) + len(missing) > MAX_REMEMBERED:
                self._logits.clear()
                missing = list(dict.fromkeys(pairs))
            scores = self._reranker.score_pairs(missing)
            self._logits.update(zip(missing, map(float, scores), strict=True))
        return [self._logits[pair] for pair in pairs]

    def encoded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, shape (len(texts), dimension), rows of length 1."""
        missing = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if missing:
            if len(self._vectors) + len(missing) > MAX_REMEMBERED:
                self._vectors.clear()
                missing = list(dict.fromkeys(texts))
            vectors = self._encoder.encode_documents(missing)
            self._vectors.update(zip(missing, vectors, strict=True))
        return np.stack([self._vectors[text] for text in texts])


def share(text: str, other: str) -> float:
    """Share of the content terms of one text that another holds; 1 where it has none."""
    wanted, known = content_terms(text), set(content_terms(other))
    return sum(term in known for term in wanted) / len(wanted) if wanted else 1.0


def _windows(passages: Sequence[Passage]) -> list[tuple[str, Passage]]:
    """Each passage alone, with its titles, in its parts, and each two neighbouring sentences."""
    found: list[tuple[str, Passage]] = []
    for place, passage in enumerate(passages):
        found.append((passage.text, passage))
        found += [(part, passage) for part in passage.parts[1:] if len(part.split()) >= PART]
        following = passages[place + 1] if place + 1 < len(passages) else None
        if (
            following is not None
            and passage.table == following.table == -1
            and (passage.source, passage.titles) == (following.source, following.titles)
        ):
            found.append((f"{passage.titled} {following.text}", passage))
        elif passage.titles:
            found.append((passage.titled, passage))
    return found
