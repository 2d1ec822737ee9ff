"""Models run by sentence-transformers itself: the original that a compiled model must equal.

Enters: a loaded SentenceTransformer or CrossEncoder, and texts. Leaves: what the onnx adapter
leaves, one text at a time, in float32. Slow to start, since it needs torch. Refuses, with
ModelError: an encoder given as reranker or the reverse, other than one score per pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atlas.errors import ModelError
from atlas.models.alone import readable

_DEFAULT_MAX_TOKENS = 512


class LibraryEncoder:
    """A SentenceTransformer as Encoder."""

    def __init__(self, name: str, fingerprint: str, model: Any) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.model = model
        self.max_tokens = _max_tokens(model)
        if _architecture(model).endswith("ForSequenceClassification"):
            raise ModelError(f"encoder {name} is a cross-encoder; expected a sentence encoder")
        self.dimension = len(self.encode_question(""))

    @property
    def conventions(self) -> dict[str, Any]:
        """What a compiled copy must know besides the graph."""
        return {
            "max_tokens": self.max_tokens,
            "question_prefix": self._prefix("query"),
            "document_prefix": self._prefix("document", "passage", "corpus"),
        }

    def encode_documents(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Float32 of shape (len(texts), dimension), rows of length 1, in the order of the texts."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._unit(self.model.encode_document, text)
            if progress is not None:
                progress(1)
        return vectors

    def encode_question(self, text: str) -> NDArray[np.float32]:
        """Float32 of shape (dimension,) and length 1."""
        return self._unit(self.model.encode_query, text)

    def count_tokens(self, text: str) -> int:
        """Tokens of a document, special tokens and prefix included, before any cut."""
        text = self.conventions["document_prefix"] + readable(text)
        return len(self.model.tokenizer(text, truncation=False, verbose=False)["input_ids"])

    def _prefix(self, *names: str) -> str:
        # The library's own rule: the first prompt of these names, else the default prompt.
        prompts = self.model.prompts
        for name in (*names, self.model.default_prompt_name):
            if name in prompts:
                return str(prompts[name] or "")
        return ""

    def _unit(self, encode: Callable[..., Any], text: str) -> NDArray[np.float32]:
        vector = encode([readable(text)], normalize_embeddings=True, show_progress_bar=False)[0]
        return np.asarray(vector, np.float32)


class LibraryReranker:
    """A CrossEncoder as Reranker."""

    def __init__(self, name: str, fingerprint: str, model: Any) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.model = model
        self.max_tokens = _max_tokens(model)
        if not _architecture(model).endswith(("ForSequenceClassification", "ForCausalLM")):
            # The library would put random numbers where the head is missing.
            raise ModelError(
                f"reranker {name} is a {_architecture(model)}, which has no trained scoring head;"
                " expected a cross-encoder"
            )
        if model.num_labels != 1:
            raise ModelError(
                f"reranker {name} gives {model.num_labels} scores for a pair, expected one"
            )

    @property
    def conventions(self) -> dict[str, Any]:
        """What a compiled copy must know besides the graph."""
        return {"max_tokens": self.max_tokens, "question_prefix": "", "document_prefix": ""}

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Float32 logits of shape (len(texts),); higher is more relevant."""
        return self.score_pairs([(question, text) for text in texts])

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """As `score`, for pairs of several questions: float32 logits of shape (len(pairs),)."""
        import torch

        scores = np.empty(len(pairs), np.float32)
        for row, (question, text) in enumerate(pairs):
            scores[row] = self.model.predict(
                [(self._head(readable(question)), readable(text))],
                activation_fn=torch.nn.Identity(),
                show_progress_bar=False,
                processing_kwargs={"text": {"truncation": "only_second"}},
            )[0]
        return scores

    def pair_tokens(self, question: str, text: str) -> int:
        """Tokens of the pair, special tokens included, before any cut."""
        pair = ([readable(question)], [readable(text)])  # alone, an empty text would be no pair
        return len(self.model.tokenizer(*pair, truncation=False, verbose=False)["input_ids"][0])

    def _head(self, question: str) -> str:
        """The question, cut to half of the limit, so that there is room for a text."""
        tokens = self.model.tokenizer(
            question, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )["offset_mapping"]
        half = self.max_tokens // 2
        return question if len(tokens) <= half else question[: tokens[half - 1][1]]


def _architecture(model: Any) -> str:
    """The class of the weights as stored, which is not always the class they were loaded into."""
    stored = getattr(model.config, "architectures", None) or ["model of no stated kind"]
    return str(stored[0])


def _max_tokens(model: Any) -> int:
    """The library's limit, or the model's own number of positions where it states none."""
    stated = (model.max_seq_length, getattr(model.config, "max_position_embeddings", None))
    limits = [limit for limit in stated if isinstance(limit, int) and 0 < limit < 1_000_000]
    return min(limits, default=_DEFAULT_MAX_TOKENS)
