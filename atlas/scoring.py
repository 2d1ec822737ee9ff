"""The two models with a memory: what one question asks of them again costs nothing.

In:  texts, and pairs of question and text.
Out: the encoder's vectors and token counts, the reranker's logits. What is remembered is what the
     models would give again, since they read each text and each pair alone.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from atlas.models import Encoder, Reranker
from atlas.rerank import Score

PAIRS_KEPT = 8192
"""Pairs whose logits are remembered, about a megabyte."""
TEXTS_COUNTED = 4096
SHORT_WORD_TOKENS = 3
"""Tokens of one word that the encoder's vocabulary holds whole: itself and two markers."""


class Scoring:
    """An encoder and, unless results are ordered by search alone, a reranker.

    Measuring puts others that count or remember in their place, with the same fingerprints.
    """

    def __init__(self, encoder: Encoder, reranker: Reranker | None) -> None:
        self.encoder = encoder
        self.reranker = reranker
        self._pairs = ReadPairs()
        self._last: tuple[str, NDArray[np.float32]] = ("", np.zeros(0, np.float32))
        self._counted: dict[str, int] = {}

    @property
    def pair_score(self) -> Score | None:
        """What scores pairs of question and block; None without a reranker."""
        return None if self.reranker is None else self.score

    def score(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Logits of pairs; without a reranker, cosines stretched to a similar range."""
        if not pairs:
            return []
        if self.reranker is not None:
            return self._pairs.score(pairs, self.reranker)
        return [30 * self.cosine(question, text) - 20 for question, text in pairs]

    def cosine(self, question: str, text: str) -> float:
        """Cosine of a question and a text, -1 to 1."""
        return float(self.encoder.encode_documents([text])[0] @ self.vector(question))

    def vector(self, question: str) -> NDArray[np.float32]:
        """The question's vector, float32 of shape (dimension,); the last one is remembered."""
        if self._last[0] != question:
            self._last = (question, self.encoder.encode_question(question))
        return self._last[1]

    def count_tokens(self, text: str) -> int:
        """Tokens of a text as the encoder counts them; remembered, since blocks return."""
        if text not in self._counted:
            if len(self._counted) >= TEXTS_COUNTED:
                self._counted.clear()
            self._counted[text] = self.encoder.count_tokens(text)
        return self._counted[text]

    def is_word(self, word: str) -> bool:
        """Whether the encoder's vocabulary holds a word whole."""
        return self.encoder.count_tokens(word) <= SHORT_WORD_TOKENS

    def forget_pairs(self) -> None:
        """Remember no pair, as after opening."""
        self._pairs.forget()


class ReadPairs:
    """Logits of the pairs that were read last; those that were not asked for longest go first.

    Each pair is scored alone, so a remembered logit is the one that the model would give again.
    Texts are kept as digests.
    """

    def __init__(self, most: int = PAIRS_KEPT) -> None:
        self._most = most
        self._logits: OrderedDict[bytes, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._logits)

    def score(self, pairs: Sequence[tuple[str, str]], reranker: Reranker) -> list[float]:
        """One logit per pair; only pairs that are not remembered are given to the model, once."""
        keys = [_digest(reranker.fingerprint, *pair) for pair in pairs]
        found = {key: self._logits[key] for key in keys if key in self._logits}
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in found}
        if new:
            logits = reranker.score_pairs(list(new.values()))
            found |= zip(new, map(float, logits), strict=True)
        for key, logit in found.items():
            self._logits[key] = logit
            self._logits.move_to_end(key)
        while len(self._logits) > self._most:
            self._logits.popitem(last=False)
        return [found[key] for key in keys]

    def forget(self) -> None:
        """Remember nothing, as after opening; for measuring what reading costs."""
        self._logits.clear()


def _digest(*parts: str) -> bytes:
    """Sixteen bytes that differ for different parts."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()
