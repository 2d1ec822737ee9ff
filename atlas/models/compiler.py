"""A model loaded by sentence-transformers -> an ONNX folder that runs without it.

Enters: the loaded model, and a folder that is made. Leaves: `model.onnx` (the whole pipeline,
from token ids to the sentence vector or the logit, for one text of any length), `tokenizer.json`
and `atlas-model.json`. Refuses, with CannotCompile: a tokenizer without a fast form, a graph that
torch cannot export. Needs no network. Takes 5 to 20 seconds.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atlas.models.description import COMPILED, MODEL, TOKENIZER, Role
from atlas.models.verified import write_json

_EXAMPLE = "How long is the battery of a city bike under warranty?"


class CannotCompile(Exception):
    """The model has to be run by its library; the message says why."""


def compile_model(role: Role, model: Any, conventions: dict[str, Any], folder: Path) -> None:
    """Fill `folder`; `conventions` holds max_tokens, question_prefix and document_prefix."""
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", None)
    if tokenizer is None:
        raise CannotCompile("its tokenizer exists in Python only")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / TOKENIZER))
    try:
        with quiet():
            _export(role, model, conventions["max_tokens"], folder / MODEL)
    except Exception as error:  # the exporter raises whatever the model's code raises
        reason = " ".join(str(error).split())[:200]
        raise CannotCompile(f"torch cannot export it ({type(error).__name__}: {reason})") from error
    card = {"role": role, **conventions}
    for file in (MODEL, TOKENIZER):
        with (folder / file).open("rb") as opened:
            card[file] = hashlib.file_digest(opened, "sha256").hexdigest()
    write_json(folder / COMPILED, card)


def _export(role: Role, model: Any, max_tokens: int, path: Path) -> None:
    import torch

    example = _EXAMPLE if role == "encoder" else (_EXAMPLE, _EXAMPLE)
    features = model.preprocess([example])
    names = [name for name, value in features.items() if isinstance(value, torch.Tensor)]
    fixed = {name: value for name, value in features.items() if name not in names}

    class Pipeline(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
            output = self.model({**fixed, **dict(zip(names, tensors, strict=True))})
            if role == "reranker":
                scores: torch.Tensor = output["scores"]
                return scores.reshape(1, -1)
            vector: torch.Tensor = output["sentence_embedding"]
            return vector[:, : model.truncate_dim] if model.truncate_dim else vector

    length = torch.export.Dim("sequence", min=2, max=max_tokens)
    torch.onnx.export(
        Pipeline().eval(),
        tuple(features[name] for name in names),
        str(path),
        input_names=names,
        output_names=["sentence_embedding" if role == "encoder" else "logit"],
        dynamic_shapes={"tensors": tuple({1: length} for _ in names)},
        dynamo=True,
        external_data=False,
        verbose=False,
    )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no notes about missing optional packages while a model is loaded."""
    from transformers.utils import logging as untyped

    library_logging: Any = untyped
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    bars = library_logging.is_progress_bar_enabled()
    library_logging.disable_progress_bar()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if bars:
            library_logging.enable_progress_bar()
