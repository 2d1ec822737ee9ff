"""Models that remember what they computed, until they are told to forget or remember too much.

Each text and pair is computed alone, so a remembered value is the one that would be computed again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from atlas.measure.doors import Opened
from atlas.models import Encoder, Reranker

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MOST = 5000
"""Texts or pairs after which everything is forgotten, so that memory stays bounded."""


class RememberingEncoder:
    """An encoder that computes each text once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.name = encoder.name
        self.fingerprint = encoder.fingerprint
        self.dimension = encoder.dimension
        self.max_tokens = encoder.max_tokens
        self._documents: dict[str, NDArray[np.float32]] = {}
        self._questions: dict[str, NDArray[np.float32]] = {}
        self._lock = threading.Lock()

    def forget(self) -> None:
        self._documents.clear()
        self._questions.clear()

    def encode_documents(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        with self._lock:
            return self._encoded(texts, progress)

    def _encoded(
        self, texts: Sequence[str], progress: Callable[[int], None] | None
    ) -> NDArray[np.float32]:
        import numpy as np

        missing = [text for text in dict.fromkeys(texts) if text not in self._documents]
        if missing:
            if len(self._documents) > MOST:
                self._documents.clear()
                missing = list(dict.fromkeys(texts))
            vectors = self._encoder.encode_documents(missing, progress)
            self._documents.update(zip(missing, vectors, strict=True))
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        return np.stack([self._documents[text] for text in texts])

    def encode_question(self, text: str) -> NDArray[np.float32]:
        with self._lock:
            if text not in self._questions:
                if len(self._questions) > MOST:
                    self._questions.clear()
                self._questions[text] = self._encoder.encode_question(text)
            return self._questions[text]

    def count_tokens(self, text: str) -> int:
        return self._encoder.count_tokens(text)


class RememberingReranker:
    """A reranker that scores each pair once."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker
        self.name = reranker.name
        self.fingerprint = reranker.fingerprint
        self.max_tokens = reranker.max_tokens
        self._pairs: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def forget(self) -> None:
        self._pairs.clear()

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.score_pairs([(question, text) for text in texts])

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        with self._lock:
            return self._scored(pairs)

    def _scored(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        import numpy as np

        missing = [pair for pair in dict.fromkeys(pairs) if pair not in self._pairs]
        if missing:
            if len(self._pairs) > MOST:
                self._pairs.clear()
                missing = list(dict.fromkeys(pairs))
            logits = self._reranker.score_pairs(missing)
            self._pairs.update(zip(missing, map(float, logits), strict=True))
        return np.array([self._pairs[pair] for pair in pairs], np.float32)

    def pair_tokens(self, question: str, text: str) -> int:
        return self._reranker.pair_tokens(question, text)


@contextmanager
def remembering(opened: Opened) -> Iterator[Callable[[], None]]:
    """Let an assistant's models remember; the value is the function that makes them forget."""
    encoder, reranker = opened.encoder, opened.reranker
    with_encoder = RememberingEncoder(encoder)
    with_reranker = None if reranker is None else RememberingReranker(reranker)
    opened.encoder, opened.reranker = with_encoder, with_reranker

    def forget() -> None:
        with_encoder.forget()
        if with_reranker is not None:
            with_reranker.forget()
        opened.forget_pairs()  # or a question asked twice would be timed without its pairs

    try:
        yield forget
    finally:
        opened.encoder, opened.reranker = encoder, reranker
