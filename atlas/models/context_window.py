"""How much a chat server can read: its context window, and the tokens of a prompt.

Enters: what the server says about itself. Leaves: a Server, asked once, and counts of tokens.
Refuses: nothing. What a server says is not trusted: a value of the wrong type is no value.

llama.cpp tells the window of a slot in /props and counts with /apply-template and /tokenize, vLLM
tells it among its models and counts with /tokenize, Ollama tells what a loaded model runs with in
/api/ps. That one matters most: Ollama cuts a longer prompt in silence. Hosted servers tell
nothing, and the setting context_tokens stands in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

Messages = Sequence[tuple[str, str]]
LARGEST = 100_000_000
"""A window above it is taken for a mistake."""


class Ask(Protocol):
    """Asks the server for JSON: {} for a reply that is none, None where no reply came."""

    async def __call__(
        self, address: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any] | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What is known about a server."""

    window: int | None = None
    """Tokens of prompt and answer together; None where it does not tell."""
    counts: Literal["llama.cpp", "vLLM", ""] = ""
    """Whose way of counting it knows."""
    settled: bool = True
    """False where asking again may tell more: it gave no answer, or has yet to load the model."""


class Lookup:
    """What is known about one server, looked up once by whoever comes first. On one loop only."""

    def __init__(self, ask: Ask, base_url: str, model: str, window: int | None) -> None:
        self._ask = ask
        self._base_url = base_url
        self._model = model
        self._window = window
        self._looking: asyncio.Task[Server] | None = None

    async def server(self) -> Server:
        """The first look, or a new one where the last told nothing."""
        task = self._looking
        if task is not None and task.done() and not task.cancelled() and not task.exception():
            known = task.result()
            return known if known.settled else await self.again(last=False)
        return await self.again(last=False)

    async def again(self, *, last: bool) -> Server:
        """Look again, or join who is looking. After the `last` look nothing more is asked."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._look(last))
        return await asyncio.shield(self._looking)  # one caller's deadline ends it for no other

    async def tokens(self, server: Server, messages: Messages) -> int | None:
        """The exact number of tokens of a prompt, or None."""
        return await count(self._ask, server, self._base_url, self._model, messages)

    async def _look(self, last: bool) -> Server:
        found = await look_up(self._ask, self._base_url, self._model)
        return replace(found, window=self._window or found.window, settled=found.settled or last)


def same_model(one: str, other: str) -> bool:
    """Whether two names can be one model's: case aside, one contains the other.

    `gpt-4o` answers as `gpt-4o-2024-08-06`, and llama.cpp with the path of its file.
    """
    one, other = one.casefold().strip(), other.casefold().strip()
    return one in other or other in one


def root(base_url: str) -> str:
    """The address of the server itself, above /v1."""
    return base_url.rstrip("/").removesuffix("/v1")


def model_names(listed: dict[str, Any] | None) -> tuple[str, ...]:
    """The names in a reply of /v1/models."""
    names = [entry.get("id") for entry in _entries(listed, "data")]
    return tuple(name for name in names if isinstance(name, str) and name)


async def look_up(ask: Ask, base_url: str, model: str) -> Server:
    """Ask in the three ways at once."""
    above = root(base_url)
    props, listed, running = await asyncio.gather(
        ask(f"{above}/props"), ask(f"{base_url}/models"), ask(f"{above}/api/ps")
    )
    slot = (props or {}).get("default_generation_settings")
    served = [entry for entry in _entries(listed, "data") if _is(entry, model)]
    loaded = [entry for entry in _entries(running, "models") if _is(entry, model)]
    windows = [
        *([_size(slot.get("n_ctx"))] if isinstance(slot, dict) else []),
        *(_size(entry.get("max_model_len")) for entry in served),
        *(_size(entry.get("context_length")) for entry in loaded),
    ]
    window = next((size for size in windows if size is not None), None)
    silent = props is None and listed is None and running is None
    waiting = isinstance((running or {}).get("models"), list) and not loaded
    counts: Literal["llama.cpp", "vLLM", ""] = ""
    if isinstance(slot, dict):
        counts = "llama.cpp"
    elif any("max_model_len" in entry for entry in served):
        counts = "vLLM"
    if counts and await count(ask, Server(counts=counts), base_url, model, [("user", "a")]) is None:
        counts = ""
    return Server(
        window=window, counts=counts, settled=not silent and (bool(window) or not waiting)
    )


async def count(
    ask: Ask, server: Server, base_url: str, model: str, messages: Messages
) -> int | None:
    """The tokens of a prompt as the server itself counts them; None where it cannot."""
    above = root(base_url)
    wire = [{"role": role, "content": text} for role, text in messages]
    if server.counts == "vLLM":
        told = await ask(f"{above}/tokenize", {"model": model, "messages": wire})
        return _size((told or {}).get("count"))
    if server.counts == "llama.cpp":
        filled = await ask(f"{above}/apply-template", {"messages": wire})
        prompt = (filled or {}).get("prompt")
        if not isinstance(prompt, str):
            return None
        body = {"content": prompt, "add_special": True, "parse_special": True}
        tokens = ((await ask(f"{above}/tokenize", body)) or {}).get("tokens")
        return len(tokens) if isinstance(tokens, list) and tokens else None
    return None


def estimate(messages: Messages) -> int:
    """Tokens of a prompt, rather too many: one for 3 bytes of UTF-8, and 8 for each message.

    English text has 4 to 5 bytes a token; what is taken for too long may just have fitted.
    """
    return sum(-(-len(text.encode("utf-8", "replace")) // 3) + 8 for _, text in messages)


def fewest(messages: Messages, exact: int | None) -> float:
    """Tokens below which a server cannot have read the whole prompt.

    Half of an exact count; otherwise one for 12 bytes, far below what any text needs.
    """
    if exact is not None:
        return exact / 2
    return sum(len(text.encode("utf-8", "replace")) for _, text in messages) / 12


def _is(entry: dict[str, Any], model: str) -> bool:
    names = [entry.get(key) for key in ("id", "name", "model")]
    return any(isinstance(name, str) and name and same_model(name, model) for name in names)


def _entries(answer: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    entries = (answer or {}).get(key)
    if not isinstance(entries, list):
        return []
    return [entry for entry in entries if isinstance(entry, dict)]


def _size(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 < value <= LARGEST else None
