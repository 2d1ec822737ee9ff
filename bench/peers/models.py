"""The two models for everybody: one small class each on onnxruntime and tokenizers.

Every peer but atlas (which has adapters of its own) gets these through its interface for custom
models: the same files, one text a call, sessions as onnxruntime makes them by default. One text a
call is the fast way here, not a handicap: of texts that differ in length a padded batch costs more
than its texts alone, and it changes what a quantised model says of each of them.

Vectors and scores that are known already can be handed in (`known`); then they are looked up. Runs
whose time counts hand in nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy as np
import onnxruntime
from tokenizers import Encoding, Tokenizer

MAX_TOKENS = 512
QUESTION_PREFIX = "Represent this sentence for searching relevant passages: "
"""What the card of bge-small-en-v1.5 puts before a question; documents take nothing."""


class _Model:
    def __init__(self, folder: Path, threads: int = 0) -> None:
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads  # 0, the default: all cores work on one text
        self.session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self.inputs = [entry.name for entry in self.session.get_inputs()]

    def run(self, encoding: Encoding) -> np.ndarray:
        values = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        feeds = {name: np.array([values[name]], np.int64) for name in self.inputs}
        return self.session.run(None, feeds)[0]


class Encoder:
    """bge-small-en-v1.5, int8: texts to unit vectors."""

    dimension = 384

    def __init__(self, folder: Path, known: Mapping[str, np.ndarray] | None = None) -> None:
        self.known = known or {}
        self.model = _Model(folder)

    def documents(self, texts: Iterable[str]) -> list[list[float]]:
        """One vector a text."""
        return [self._vector(text).tolist() for text in texts]

    def question(self, text: str) -> list[float]:
        """The vector of a question, with the prefix that the model was trained with."""
        return self._vector(QUESTION_PREFIX + text).tolist()

    def _vector(self, text: str) -> np.ndarray:
        if self.known and (vector := self.known.get(digest(text))) is not None:
            return vector
        first = self.model.run(self.model.tokenizer.encode(text))[0, 0]
        return first / np.linalg.norm(first)


class Reranker:
    """ms-marco-MiniLM-L-12-v2, int8: pairs to logits, higher is more relevant."""

    def __init__(
        self, folder: Path, known: Mapping[str, float] | None = None, threads: int = 0
    ) -> None:
        self.known = known or {}
        self.model = _Model(folder, threads)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """One logit a pair of question and text."""
        return [self._score(question, text) for question, text in pairs]

    def _score(self, question: str, text: str) -> float:
        if self.known and (score := self.known.get(digest(question, text))) is not None:
            return score
        return float(self.model.run(self.model.tokenizer.encode(question, text)).item())


def digest(*texts: str) -> str:
    """The key of a text or a pair among what is known."""
    return sha256("\0".join(texts).encode()).hexdigest()
