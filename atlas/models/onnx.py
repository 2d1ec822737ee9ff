"""Runs a model folder with onnxruntime and tokenizers: Description -> encoder or reranker.

Enters: texts of any length and content. Leaves: unit vectors, or one logit per pair. Refuses,
with ModelError: a file that is no ONNX model or tokenizer, a graph with inputs or outputs that
atlas does not know, a result that is not a number.

A text longer than the limit is cut at its end, and only there; `count_tokens` and `pair_tokens`
tell beforehand. Each text runs alone (see `alone`), so that a result depends on nothing else.
The optimised graph is kept in the state folder: opening it takes a third of the time.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atlas.errors import ModelError
from atlas.models.alone import readable, run_all
from atlas.models.description import Description
from atlas.models.verified import Verified

# Official builds since 1.29 report sessions and model names to Microsoft over the network, and
# write a device id to ~/.cache, unless this is set before the import (onnxruntime/Privacy.md).
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime
from tokenizers import Encoding, Tokenizer

_ABANDONED_SECONDS = 3600
_ERRORS_ONLY = 3
_EXTERNAL = "session.optimized_model_external_initializers"


class OnnxEncoder:
    """Texts to unit vectors. Safe to share between threads."""

    def __init__(self, description: Description, verified: Verified) -> None:
        self.name = description.name
        self.fingerprint = description.fingerprint
        self.max_tokens = description.max_tokens
        self._description = description
        self._graph = _Graph(description, verified)
        dimensions = 2 if description.pooling == "none" else 3
        if self._graph.run(self._graph.single("")).ndim != dimensions:
            raise ModelError(
                f"encoder {self.name} with pooling {description.pooling}: expected an output of"
                f" {dimensions} dimensions from {description.model}"
            )
        self.dimension = len(self._vector(""))

    def encode_documents(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Float32 of shape (len(texts), dimension), rows of length 1, in the order of the texts.

        `progress` gets the number of texts finished since its last call, from this thread.
        """
        vectors = np.empty((len(texts), self.dimension), np.float32)
        prefix = self._description.document_prefix

        def encode(row: int) -> None:
            vectors[row] = self._vector(prefix + texts[row])

        run_all(encode, range(len(texts)), progress)
        return vectors

    def encode_question(self, text: str) -> NDArray[np.float32]:
        """Float32 of shape (dimension,) and length 1, with the model's question prefix if any."""
        return self._vector(self._description.question_prefix + text)

    def count_tokens(self, text: str) -> int:
        """Tokens of a document, special tokens and prefix included, before any cut.

        More than `max_tokens` means that `encode_documents` will not see the text's end.
        """
        return self._graph.count(self._description.document_prefix + text)

    def _vector(self, text: str) -> NDArray[np.float32]:
        output = self._graph.run(self._graph.single(text))
        if self._description.pooling == "cls":
            vector = output[0, 0]
        elif self._description.pooling == "mean":
            vector = output[0].mean(axis=0)
        else:
            vector = output.reshape(-1)
        length = np.sqrt(np.dot(vector, vector))
        return np.asarray(vector / max(length, np.float32(1e-12)), np.float32)


class OnnxReranker:
    """Question and text to a relevance logit. Safe to share between threads."""

    def __init__(self, description: Description, verified: Verified) -> None:
        self.name = description.name
        self.fingerprint = description.fingerprint
        self.max_tokens = description.max_tokens
        self._graph = _Graph(description, verified)
        self.score("", [""])  # a graph of the wrong kind is refused here, not in a question

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Float32 logits of shape (len(texts),); higher is more relevant, no fixed range.

        A pair over `max_tokens` loses the end of its text; a question longer than half of the
        limit is first cut to that half.
        """
        return self.score_pairs([(question, text) for text in texts])

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """As `score`, for pairs of several questions: float32 logits of shape (len(pairs),)."""
        heads = {
            question: self._graph.piece(question, self.max_tokens // 2)
            for question in dict.fromkeys(question for question, _ in pairs)
        }
        inputs = [self._graph.pair(heads[question], text) for question, text in pairs]
        scores = np.empty(len(pairs), np.float32)

        def run(row: int) -> None:
            logit = self._graph.run(inputs[row])
            if logit.size != 1:
                raise ModelError(
                    f"reranker {self.name} gives {logit.size} numbers for a pair, expected one"
                )
            scores[row] = logit.reshape(())

        # The longest first, so that no core is left alone with a long one at the end.
        run_all(run, sorted(range(len(pairs)), key=lambda row: -len(inputs[row])))
        return scores

    def pair_tokens(self, question: str, text: str) -> int:
        """Tokens of the pair, special tokens included, before any cut."""
        return self._graph.count(question, text)


class _Graph:
    """A session and its tokenizer; everything that knows their two libraries."""

    def __init__(self, description: Description, verified: Verified) -> None:
        self._where = description.model
        self._limit = description.max_tokens
        try:
            self._tokenizer = Tokenizer.from_file(str(description.tokenizer))
        except Exception as error:  # tokenizers raises nothing narrower
            raise ModelError(f"{description.tokenizer} is not a tokenizer: {error}") from None
        # Some files ask for padding to 512: forty times the work for a short question.
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._session = _open_session(description, verified)
        self._inputs = tuple(entry.name for entry in self._session.get_inputs())
        known = {"input_ids", "attention_mask", "token_type_ids"}
        if not {"input_ids"} <= set(self._inputs) <= known:
            raise ModelError(
                f"{self._where} takes {', '.join(self._inputs)}; expected input_ids and at most"
                " attention_mask and token_type_ids"
            )
        outputs = [entry.name for entry in self._session.get_outputs()]
        pooled = description.pooling == "none"
        wanted = {"sentence_embedding"} if pooled else {"last_hidden_state", "token_embeddings"}
        self._output = next((name for name in outputs if name in wanted), outputs[0])

    def piece(self, text: str, limit: int) -> Encoding:
        encoding = self._tokenizer.encode(readable(text), add_special_tokens=False)
        encoding.truncate(limit)
        return encoding

    def single(self, text: str) -> Encoding:
        room = self._limit - self._tokenizer.num_special_tokens_to_add(False)
        return self._tokenizer.post_process(self.piece(text, room))

    def pair(self, head: Encoding, text: str) -> Encoding:
        room = self._limit - self._tokenizer.num_special_tokens_to_add(True) - len(head)
        return self._tokenizer.post_process(head, self.piece(text, room))

    def count(self, text: str, second: str | None = None) -> int:
        pair = None if second is None else readable(second)
        return len(self._tokenizer.encode(readable(text), pair))

    def run(self, encoding: Encoding) -> NDArray[np.float32]:
        # A text without any token, where the tokenizer adds none, is read as token 0.
        ids = np.array([encoding.ids or [0]], np.int64)
        feeds = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.array([encoding.type_ids or [0]], np.int64),
        }
        result = self._session.run([self._output], {name: feeds[name] for name in self._inputs})
        output: NDArray[np.float32] = result[0]
        if not np.isfinite(output).all():
            raise ModelError(f"{self._where} gives values that are not numbers; it is not usable")
        return output


def _open_session(description: Description, verified: Verified) -> Any:
    """A session for one text at a time, from the optimised copy of the graph if there is one."""
    folder = verified.store / description.fingerprint
    copy = folder / f"optimized-{onnxruntime.__version__}.onnx"
    weights = copy.with_suffix(".weights")  # a file of their own is mapped, not read
    level = onnxruntime.GraphOptimizationLevel
    if not (verified.unchanged(copy) and verified.unchanged(weights)):
        # Extended is the last level whose result does not depend on the processor.
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            for old in folder.glob("optimized-*"):
                if time.time() - old.stat().st_mtime > _ABANDONED_SECONDS:
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
            part = folder / f"{copy.name}.{os.getpid()}.tmp"
            try:
                part.mkdir()
                _session(description.model, level.ORT_ENABLE_EXTENDED, part / copy.name)
                for path in (weights, copy):
                    os.replace(part / path.name, path)
                    verified.wrote(path)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    if verified.unchanged(copy) and verified.unchanged(weights):
        return _session(copy, level.ORT_DISABLE_ALL)
    return _session(description.model, level.ORT_ENABLE_EXTENDED)


def _session(model: Path, level: Any, save_to: Path | None = None) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    # Every text has its own length: a pattern per length is memory for nothing.
    options.enable_mem_pattern = False
    if save_to is not None:
        options.optimized_model_filepath = str(save_to)
        weights = save_to.with_suffix(".weights").name
        for key, value in (("file_name", weights), ("min_size_in_bytes", "1024")):
            options.add_session_config_entry(f"{_EXTERNAL}_{key}", value)
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's exceptions share no base class
        if save_to is not None:  # no room to write, or no model: opening it plainly will tell
            raise OSError(str(error)) from error
        raise ModelError(f"{model} cannot be opened as an ONNX model: {error}") from None
