"""A look at a chat server without asking it anything: is it there, what does it offer.

Enters: an address, a model's name, the name of the variable with the key. Leaves: a Look. Refuses,
with ModelError: a missing library, a variable without a key. No chat request is sent, so nothing
is paid for and no model is loaded. What the server says is not trusted, and the key stands in
nothing that leaves here.
"""

from __future__ import annotations

import asyncio
import importlib.util
from dataclasses import dataclass

from atlas.errors import ModelError
from atlas.models.chat_key import read_key
from atlas.models.chat_wire import Arrived, Broken, Wire, json_object, run
from atlas.models.context_window import look_up, model_names, same_model


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a server told."""

    broken: str = ""
    """Why no reply came, in a few words; "" where one did."""
    status: int = 0
    """That of the list of models; 0 without a reply."""
    offers: tuple[str, ...] = ()
    """The names of the models it lists."""
    known: bool = False
    """Whether one of them can be the model that was asked for."""
    window: int | None = None
    """Tokens of prompt and answer together; None where it does not tell."""
    counts: bool = False
    """Whether it counts tokens exactly."""
    waiting: bool = False
    """Whether it will tell its window once the model is loaded, as Ollama does."""


def look(base_url: str, model: str, *, api_key_env: str, seconds: float) -> Look:
    """Ask a server about itself; every reply is waited for at most `seconds`."""
    if importlib.util.find_spec("openai") is None:
        raise ModelError(
            f"chat model {model}: the library openai is not installed;"
            " pip install '.[chat]' in atlas's folder"
        )
    key = read_key(model, api_key_env)
    address = base_url.rstrip("/")
    wire = Wire(address, key)

    async def ask() -> Look:
        told = await wire.fetch(f"{address}/models", seconds=seconds)
        if isinstance(told, Broken) and told.cause != "unreadable":
            return Look(broken=key.hidden(told.text))
        server = await look_up(
            lambda place, body=None: wire.ask(place, body, seconds=seconds / 2), address, model
        )
        status = told.status if isinstance(told, Arrived) else 200
        names = model_names(json_object(told.body)) if isinstance(told, Arrived) else ()
        return Look(
            status=status,
            offers=tuple(key.hidden(name) for name in names),
            known=any(same_model(name, model) for name in names),
            window=server.window,
            counts=bool(server.counts),
            waiting=server.window is None and not server.settled,
        )

    async def within() -> Look:
        try:
            async with asyncio.timeout(2 * seconds):
                return await ask()
        except TimeoutError:
            return Look(broken=f"no whole reply within {2 * seconds:g} s")

    return run(within(), 2 * seconds + 1)
