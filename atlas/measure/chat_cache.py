"""A chat model that keeps its replies on disk, so that nothing is asked twice.

The key is the model's fingerprint (server, model, parameters) and the whole request (messages,
schema, length, prompt version, scope, index, number of the repetition). Only whole replies are
kept: a failed, cut or filtered one never gets here, and one that is no object of the schema's
fields is given on and not kept. A file that is not a reply is asked again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from atlas.errors import AtlasError
from atlas.measure.runs import read_whole, write_whole
from atlas.models import ChatModel, ChatRequest, Reply

FOLDER = "replies"
"""Its place in the state folder."""
_KINDS: dict[str, type | tuple[type, ...]] = {
    "text": str, "model": str, "prompt_tokens": int, "completion_tokens": int,
    "seconds": (int, float), "attempts": int,
}  # fmt: skip


class CachedChat:
    """A chat model in front of another one; see the module."""

    def __init__(self, model: ChatModel, folder: Path) -> None:
        self._model = model
        self._folder = folder
        self.unwritten = ""
        """Why replies could not be kept, or ""; they are used all the same."""

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    def complete(self, request: ChatRequest) -> Reply:
        path = self.path(request)
        kept = _read(path)
        if kept is not None:
            return kept
        reply = self._model.complete(request)
        if not _in_form(reply.text, request):
            return reply
        values = asdict(reply)
        values.pop("cached")
        try:
            write_whole(path, values)
        except AtlasError as error:
            self.unwritten = str(error)
        return reply

    def path(self, request: ChatRequest) -> Path:
        """Where the reply to a request lies, or would."""
        whole = f"{self._model.fingerprint}\n{request.digest()}"
        key = hashlib.sha256(whole.encode()).hexdigest()
        return self._folder / key[:2] / f"{key}.json"


def _in_form(text: str, request: ChatRequest) -> bool:
    """Whether a reply is a JSON object with the fields that were asked for."""
    try:
        values: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(values, dict) and set(values) == set(request.schema.get("properties", values))


def _read(path: Path) -> Reply | None:
    try:
        values = read_whole(path)
    except (OSError, ValueError, RecursionError):
        return None
    names = {item.name for item in fields(Reply)} - {"cached"}
    if not isinstance(values, dict) or set(values) != names:
        return None
    if not all(isinstance(values[name], kind) for name, kind in _KINDS.items()):
        return None
    if not values["text"].strip():
        return None
    return replace(Reply(**values), cached=True)
