"""What atlas asks of a chat model, and what it takes for an answer.

Enters: a request of messages with the JSON schema that the reply must follow. Leaves: a whole
Reply. Refuses, with a ChatError that names the cause: everything else. There is no half answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One question to a chat model. Everything in it keys the cache of replies."""

    messages: tuple[tuple[str, str], ...]
    """(role, text), roles as the servers name them: `system`, `user`."""
    schema: Mapping[str, Any]
    """JSON schema of the reply, in the part of the language that all servers know."""
    answer_tokens: int
    """Most tokens of the reply; one that reaches them is cut short and refused."""
    about: tuple[tuple[str, str], ...] = ()
    """What else the reply stands for: prompt version, scope, index. Not sent."""
    repeat: int = 0
    """Number of the repetition, from 0; sent as the seed."""

    def digest(self) -> str:
        """64 hex digits over all of it."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        text = json.dumps(values, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole reply: it ended by itself and holds text."""

    text: str
    model: str
    """The model that the server says has answered."""
    prompt_tokens: int
    completion_tokens: int
    """Both as the server counts them; where it does not, as estimated."""
    seconds: float
    """From the first attempt to the last byte, waiting included."""
    attempts: int
    cached: bool = False
    """Whether it was read from the cache; tokens and seconds are those of the first time."""


BOUNDS = ("maxLength", "maxItems")
"""Keywords of a schema that some servers refuse. They only keep a reply short."""


def without_bounds(schema: Any) -> Any:
    """A schema without the keywords that bound lengths."""
    if isinstance(schema, Mapping):
        return {name: without_bounds(part) for name, part in schema.items() if name not in BOUNDS}
    return [without_bounds(part) for part in schema] if isinstance(schema, list) else schema


class ChatModel(Protocol):
    """A chat model behind an address."""

    @property
    def name(self) -> str:
        """The model's name as the server knows it."""
        ...

    @property
    def fingerprint(self) -> str:
        """Server, model and parameters in one line; holds no key."""
        ...

    def complete(self, request: ChatRequest) -> Reply:
        """A whole reply. Raises ChatError within the deadline. May be called by many threads."""
        ...


def load_chat(
    base_url: str,
    model: str,
    *,
    api_key_env: str = "",
    deadline_seconds: float = 60.0,
    context_tokens: int = 0,
) -> ChatModel:
    """The chat model at an address. Nothing is sent before the first request.

    Raises ModelError where the client library is missing or the named variable holds no key.
    """
    from atlas.models.openai_chat import OpenAIChat

    return OpenAIChat(
        base_url,
        model,
        api_key_env=api_key_env,
        deadline_seconds=deadline_seconds,
        context_tokens=context_tokens,
    )
