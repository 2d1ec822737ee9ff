"""Stand-ins for the two models: deterministic, quick, and of a quality that can be reasoned about.

The encoder counts words, so texts are as near as the words that they share; the reranker gives the
share of the question's words that the text holds. Both keep what they were given, for tests that
ask whether something was computed again.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray


def words(text: str) -> list[str]:
    """The words of a text, case-folded, codes such as `E-417` whole."""
    return re.findall(r"\w+(?:-\w+)*", text.casefold())


class FakeEncoder:
    """A hashed bag of words of unit length; a token is a word, and two mark both ends."""

    def __init__(
        self,
        name: str = "fake-encoder",
        fingerprint: str = "fake-encoder-1",
        dimension: int = 256,
        max_tokens: int = 512,
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.dimension = dimension
        self.max_tokens = max_tokens
        self.encoded: list[str] = []
        """Every document text that was encoded, in order."""

    def encode_documents(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            self.encoded.append(text)
            vectors[row] = self.encode_question(text)
            if progress is not None:
                progress(1)
        return vectors

    def encode_question(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(self.dimension, np.float32)
        for word in words(text)[: self.max_tokens] or [""]:
            vector[zlib.crc32(word.encode("utf-8", "surrogatepass")) % self.dimension] += 1
        unit: NDArray[np.float32] = vector / np.linalg.norm(vector)
        return unit

    def count_tokens(self, text: str) -> int:
        return len(words(text)) + 2


class FakeReranker:
    """The share of the question's words that stand in the text, as a logit of 0.01 to 0.99."""

    def __init__(
        self,
        name: str = "fake-reranker",
        fingerprint: str = "fake-reranker-1",
        max_tokens: int = 512,
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.max_tokens = max_tokens
        self.scored: list[tuple[str, str]] = []
        """Every pair that was scored, in order."""

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.score_pairs([(question, text) for text in texts])

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        self.scored += pairs
        return np.array([self._logit(question, text) for question, text in pairs], np.float32)

    def pair_tokens(self, question: str, text: str) -> int:
        return len(words(question)) + len(words(text)) + 3

    def _logit(self, question: str, text: str) -> float:
        wanted = set(words(question))
        share = len(wanted & set(words(text))) / len(wanted) if wanted else 0.0
        share = min(0.99, max(0.01, share))
        return math.log(share / (1 - share))
