"""Models behind two small Protocols, and the functions that load them by name.

Enters: a name from the settings (`encoder`, `reranker`) and the state folder. Leaves: an Encoder
or a Reranker. Refuses, with ModelError: a model that is missing, damaged or of the wrong kind.

A name is a shipped one (see `carriers`), a folder with `model.onnx` and `tokenizer.json`, or
whatever sentence-transformers can load by name or folder. Importing this module loads nothing
heavy; that happens in the functions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from atlas.models.chat import ChatModel, ChatRequest, Reply, load_chat

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from atlas.models.description import Role

__all__ = [
    "ChatModel",
    "ChatRequest",
    "Encoder",
    "Reply",
    "Reranker",
    "load_both",
    "load_chat",
    "load_encoder",
    "load_reranker",
]


class Encoder(Protocol):
    """Texts to vectors whose inner product is their cosine similarity.

    Each text is encoded alone: the same text gives the same bytes whatever else is encoded.
    """

    name: str
    fingerprint: str
    """Changes with the weights and with how texts are prepared; keys caches and the index."""
    dimension: int
    max_tokens: int
    """Most tokens that are read of a text, special tokens included; the rest is cut off."""

    def encode_documents(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Float32 of shape (len(texts), dimension), rows of length 1, in the order of the texts.

        `progress` is called with the number of texts finished since its last call.
        """
        ...

    def encode_question(self, text: str) -> NDArray[np.float32]:
        """Float32 of shape (dimension,) and length 1."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of a document before any cut; compare with `max_tokens`."""
        ...


class Reranker(Protocol):
    """Reads a question and a text together; each pair alone."""

    name: str
    fingerprint: str
    max_tokens: int
    """Most tokens that are read of a pair, special tokens included; the text's end is cut off."""

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Float32 logits of shape (len(texts),): no fixed range, higher is more relevant."""
        ...

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """The same for (question, text) pairs of several questions, shape (len(pairs),)."""
        ...

    def pair_tokens(self, question: str, text: str) -> int:
        """Tokens of the pair before any cut; compare with `max_tokens`."""
        ...


def load_encoder(name: str, state: Path) -> Encoder:
    """The encoder of that name. `state` is the collection's state folder; it is made if needed.

    The first load of a model writes an optimised or compiled copy there, which takes 0.2 seconds
    for a model that is ready to run and up to 20 for one that is compiled.
    """
    from atlas.models import carriers
    from atlas.models.onnx import OnnxEncoder
    from atlas.models.verified import Verified

    verified = Verified(state / "models")
    carrier = carriers.find("encoder", name)
    if carrier is not None and carrier.onnx:
        return OnnxEncoder(carriers.describe(carrier, verified), verified)
    if carrier is None and _is_onnx(name):
        from atlas.models.description import read_folder

        return OnnxEncoder(read_folder("encoder", name, Path(name).absolute(), verified), verified)
    from atlas.models import sentence_transformers

    return sentence_transformers.load_encoder(name, carrier, verified)


def load_reranker(name: str, state: Path) -> Reranker:
    """The reranker of that name; see `load_encoder`."""
    from atlas.models import carriers
    from atlas.models.onnx import OnnxReranker
    from atlas.models.verified import Verified

    verified = Verified(state / "models")
    carrier = carriers.find("reranker", name)
    if carrier is not None and carrier.onnx:
        return OnnxReranker(carriers.describe(carrier, verified), verified)
    if carrier is None and _is_onnx(name):
        from atlas.models.description import read_folder

        folder = Path(name).absolute()
        return OnnxReranker(read_folder("reranker", name, folder, verified), verified)
    from atlas.models import sentence_transformers

    return sentence_transformers.load_reranker(name, carrier, verified)


def load_both(encoder: str, reranker: str, state: Path) -> tuple[Encoder, Reranker]:
    """Both models, opened at the same time on two cores where neither needs torch."""
    if not (_starts_fast("encoder", encoder) and _starts_fast("reranker", reranker)):
        return load_encoder(encoder, state), load_reranker(reranker, state)
    from atlas.models import onnx  # noqa: F401  imported once, before two threads would

    loaded: list[Reranker] = []
    failures: list[BaseException] = []

    def load() -> None:
        try:
            loaded.append(load_reranker(reranker, state))
        except BaseException as error:  # raised again below
            failures.append(error)

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    try:
        first = load_encoder(encoder, state)
    finally:
        thread.join()
    if failures:
        raise failures[0]
    return first, loaded[0]


def _starts_fast(role: Role, name: str) -> bool:
    from atlas.models import carriers

    carrier = carriers.find(role, name)
    return carrier.onnx if carrier is not None else _is_onnx(name)


def _is_onnx(name: str) -> bool:
    return Path(name, "model.onnx").is_file()
