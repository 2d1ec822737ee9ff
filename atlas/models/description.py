"""What a model folder holds and how its texts are prepared: folder -> Description.

Enters: a folder with `model.onnx` and `tokenizer.json`, either compiled by atlas (then
`atlas-model.json` says everything) or exported by somebody else (then the configuration files of
sentence-transformers are read). Refuses, with ModelError: a missing or damaged file, a
configuration that leaves the pooling open, since a guess there would quietly search worse.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from atlas.errors import ModelError
from atlas.models.verified import Verified, read_json

Role = Literal["encoder", "reranker"]
Pooling = Literal["cls", "mean", "none"]

COMPILED = "atlas-model.json"
MODEL = "model.onnx"
TOKENIZER = "tokenizer.json"
_DEFAULT_MAX_TOKENS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One model as files and conventions; enough to run it."""

    role: Role
    name: str
    fingerprint: str
    """Sixteen hex digits over the weights, the tokenizer and everything below but the paths."""
    model: Path
    tokenizer: Path
    max_tokens: int
    """Most tokens of one text or pair, special tokens included."""
    pooling: Pooling = "none"
    """First token, mean over tokens, or none: the graph itself ends in the result."""
    question_prefix: str = ""
    document_prefix: str = ""


def fingerprint_of(role: Role, checksums: Mapping[str, str], conventions: Mapping[str, Any]) -> str:
    """Sixteen hex digits that change with any file's content and any convention."""
    text = json.dumps([role, dict(checksums), dict(conventions)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_compiled(role: Role, name: str, folder: Path, verified: Verified) -> Description | None:
    """The Description of a folder that atlas compiled, checked; None where there is none."""
    card = read_json(folder / COMPILED)
    if card.get("role") != role:
        return None
    remedy = f"delete the folder {folder} and atlas compiles the model again"
    for file in (MODEL, TOKENIZER):
        verified.check(folder / file, card[file], remedy)
    return Description(
        role=role,
        name=name,
        fingerprint=folder.name,
        model=folder / MODEL,
        tokenizer=folder / TOKENIZER,
        max_tokens=card["max_tokens"],
        question_prefix=card["question_prefix"],
        document_prefix=card["document_prefix"],
    )


def read_folder(role: Role, name: str, folder: Path, verified: Verified) -> Description:
    """The Description of an ONNX folder that was exported elsewhere.

    Limits and prompts come from `sentence_bert_config.json`, `tokenizer_config.json`,
    `config.json` and `config_sentence_transformers.json`; an encoder's pooling from
    `1_Pooling/config.json`, whose value `none` is atlas's own and says that the graph pools.
    """
    try:
        checksums = {file: verified.checksum(folder / file) for file in (MODEL, TOKENIZER)}
    except FileNotFoundError as error:
        raise ModelError(
            f"{role} folder {folder} lacks {Path(error.filename).name}; expected {MODEL} and"
            f" {TOKENIZER}, or a folder that sentence-transformers can load"
        ) from None
    max_tokens = _max_tokens(folder)
    conventions: dict[str, Any] = {"max_tokens": max_tokens}
    if role == "encoder":
        prompts = read_json(folder / "config_sentence_transformers.json").get("prompts") or {}
        conventions["pooling"] = _pooling(folder)
        conventions["question_prefix"] = str(prompts.get("query") or "")
        conventions["document_prefix"] = str(prompts.get("document") or "")
    return Description(
        role=role,
        name=name,
        fingerprint=fingerprint_of(role, checksums, conventions),
        model=folder / MODEL,
        tokenizer=folder / TOKENIZER,
        **conventions,
    )


def _max_tokens(folder: Path) -> int:
    limits = (
        read_json(folder / "sentence_bert_config.json").get("max_seq_length"),
        read_json(folder / "tokenizer_config.json").get("model_max_length"),
        read_json(folder / "config.json").get("max_position_embeddings"),
    )
    for limit in limits:
        # Tokenizers without a limit write a huge number, often 1e30.
        if isinstance(limit, int) and 0 < limit < 1_000_000:
            return limit
    return _DEFAULT_MAX_TOKENS


def _pooling(folder: Path) -> Pooling:
    try:
        modules = json.loads((folder / "modules.json").read_bytes())
    except (OSError, ValueError):
        modules = []
    kinds = {str(module["type"]).rpartition(".")[2] for module in modules}
    if extra := kinds - {"Transformer", "Pooling", "Normalize"}:
        raise ModelError(
            f"encoder folder {folder} has modules that a plain graph lacks"
            f" ({', '.join(sorted(extra))}); move its {MODEL} away to have the model compiled"
        )
    path = folder / "1_Pooling" / "config.json"
    config = read_json(path)
    found = [config["pooling_mode"]] if "pooling_mode" in config else []
    found += [
        key.removeprefix("pooling_mode_").removesuffix("_token").removesuffix("_tokens")
        for key, value in config.items()
        if key.startswith("pooling_mode_") and value is True
    ]
    for known in ("cls", "mean", "none"):
        if found == [known]:
            return known
    raise ModelError(
        f"encoder folder {folder} does not say how tokens become one vector: found"
        f" {found or 'nothing'} in {path}, expected one pooling_mode among cls, mean and none"
    )
