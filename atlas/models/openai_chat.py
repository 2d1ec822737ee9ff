"""A chat model behind an OpenAI-compatible address: OpenAI, llama.cpp, vLLM, Ollama.

Enters: a ChatRequest. Leaves: a whole Reply within the deadline. Refuses, with a ChatError that
names the cause, everything that is not one; with ModelError a missing library or key.

The key comes from the one variable that the settings name and stands in no error and no reply.
What the server sends is judged in `chat_replies`, carried by `chat_wire`, and what it can read is
known to `context_window`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import random
import threading
import time
from typing import Any

from atlas.errors import ChatError, ModelError
from atlas.models.chat import BOUNDS, ChatRequest, Reply, without_bounds
from atlas.models.chat_key import read_key
from atlas.models.chat_replies import Failure, failure, names_parameter, read, whole_text
from atlas.models.chat_wire import Arrived, Wire, run
from atlas.models.context_window import (
    Lookup,
    Messages,
    Server,
    estimate,
    fewest,
    model_names,
    same_model,
)

ATTEMPTS = 3
BACKOFF_SECONDS = 0.5
"""Wait before the second attempt where the server names none; doubled before the third."""
LOOKUP_SECONDS = 3.0
"""Most time for one question about the server itself; at most a quarter of the deadline."""
SHOWN = 200
"""Most characters of a server's words in a message."""


class OpenAIChat:
    """A ChatModel. Nothing is sent, and no library loaded, before the first request."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key_env: str = "",
        deadline_seconds: float = 60.0,
        context_tokens: int = 0,
    ) -> None:
        if importlib.util.find_spec("openai") is None:
            raise ModelError(
                f"chat model {model}: the library openai is not installed;"
                " pip install '.[chat]' in atlas's folder"
            )
        self._address = base_url.rstrip("/")
        self._model = model
        self._key = read_key(model, api_key_env)
        self._deadline_seconds = deadline_seconds
        self._context_tokens = context_tokens
        self._lock = threading.Lock()
        self._wire_made: Wire | None = None
        # What follows is touched on the private loop only.
        self._lookup = Lookup(self._ask, self._address, model, context_tokens or None)
        self._limit_name = "max_tokens"
        self._takes_temperature = True
        self._takes_bounds = True

    @property
    def name(self) -> str:
        return self._model

    @property
    def fingerprint(self) -> str:
        return f"{self._model} at {self._address}, temperature 0 where the model takes one"

    def __repr__(self) -> str:
        return f"OpenAIChat({self._address!r}, {self._model!r})"

    def complete(self, request: ChatRequest) -> Reply:
        """A whole reply. Raises ChatError within the deadline. May be called by many threads."""
        self._wire()  # the import of the library is not the server's time
        # The loop ends the call; the quarter of a second is for a loop that is itself held up.
        try:
            result = run(self._complete(request), self._deadline_seconds + 0.25)
        except TimeoutError:
            result = self._late()
        if isinstance(result, Failure):
            raise self._error(result)
        return result

    def window(self) -> int | None:
        """Tokens of prompt and answer together that the server can take; None if not known."""
        if self._context_tokens:
            return self._context_tokens
        self._wire()
        try:
            return run(self._lookup.server(), self._deadline_seconds).window
        except TimeoutError:
            return None

    def models(self) -> tuple[str, ...]:
        """The names of the models that the server offers; empty where it lists none.

        Raises ChatError, `unreachable`, where no answer comes.
        """
        self._wire()
        try:
            listed = run(self._ask(f"{self._address}/models"), self._deadline_seconds)
        except TimeoutError:
            listed = None
        if listed is None:
            raise self._error(Failure(cause="unreachable", text="no answer; is it running?"))
        return tuple(self._key.hidden(name) for name in model_names(listed))

    async def _complete(self, request: ChatRequest) -> Reply | Failure:
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._deadline_seconds):
                return await self._reply(request, started)
        except TimeoutError:
            return self._late()

    async def _reply(self, request: ChatRequest, started: float) -> Reply | Failure:
        messages = [(role, whole_text(text)) for role, text in request.messages]
        server = await self._lookup.server()
        exact = await self._lookup.tokens(server, messages)
        tokens = estimate(messages) if exact is None else exact
        long = self._too_long(tokens, exact, request, server)
        if long is not None:
            return long
        sent = await self._send(request, messages, started)
        if isinstance(sent, Failure):
            return sent
        arrived, attempts = sent
        content = read(arrived, self._model)
        if isinstance(content, Failure):
            return content
        seconds = time.monotonic() - started
        if not server.settled:  # Ollama has loaded the model by now, and tells its window
            server = await self._look_again(server, started)
            long = self._too_long(tokens, exact, request, server)
            if long is not None:
                return long
        if content.prompt_tokens is not None and content.prompt_tokens < fewest(messages, exact):
            return Failure(
                cause="prompt cut",
                text=f"the server read {content.prompt_tokens:,} tokens of a prompt of about"
                f" {tokens:,}; raise its context window, or lower token_budget or k",
            )
        text = self._key.hidden_in_reply(content.text)
        return Reply(
            text=text,
            model=self._key.hidden_in_reply(content.model) or self._model,
            prompt_tokens=content.prompt_tokens or tokens,
            completion_tokens=content.completion_tokens or estimate([("", text)]),
            seconds=seconds,
            attempts=attempts,
        )

    async def _send(
        self, request: ChatRequest, messages: Messages, started: float
    ) -> tuple[Arrived, int] | Failure:
        """Send until there is a success, with the number of attempts, or no more sense in it."""
        attempts = failures = 0
        while True:
            attempts += 1
            parameters = self._parameters(request, messages)
            outcome = await self._wire().chat(parameters)
            wrong = failure(outcome)
            if wrong is None and isinstance(outcome, Arrived):
                return outcome, attempts
            assert wrong is not None
            if "max_tokens" in parameters and names_parameter(
                outcome, "max_tokens", "max_completion_tokens"
            ):
                self._limit_name = "max_completion_tokens"
                continue
            if "temperature" in parameters and names_parameter(outcome, "temperature", "support"):
                self._takes_temperature = False
                continue
            if self._takes_bounds and any(
                names_parameter(outcome, "response_format", bound.casefold())
                or names_parameter(outcome, bound, "schema")
                for bound in BOUNDS
            ):
                self._takes_bounds = False
                continue
            failures += 1
            if isinstance(outcome, Arrived) and outcome.status == 404:
                return await self._not_found(wrong)
            if not wrong.again or failures == ATTEMPTS:
                return _counted(wrong, attempts)
            wait = wrong.wait
            if wait is None:
                wait = BACKOFF_SECONDS * 2 ** (failures - 1) * random.uniform(1, 1.2)
            left = self._deadline_seconds - (time.monotonic() - started)
            if wait >= left:
                return _no_time(_counted(wrong, attempts), left)
            await asyncio.sleep(wait)

    def _parameters(self, request: ChatRequest, messages: Messages) -> dict[str, Any]:
        form = request.schema if self._takes_bounds else without_bounds(request.schema)
        schema = {"name": "reply", "strict": True, "schema": form}
        parameters = {
            "model": self._model,
            "messages": [{"role": role, "content": text} for role, text in messages],
            "seed": request.repeat,
            "response_format": {"type": "json_schema", "json_schema": schema},
            self._limit_name: request.answer_tokens,
        }
        return parameters | ({"temperature": 0} if self._takes_temperature else {})

    async def _not_found(self, wrong: Failure) -> Failure:
        """A 404 is about the model where the server lists others, else about the address."""
        names = model_names(await self._ask(f"{self._address}/models"))
        if names and not any(same_model(name, self._model) for name in names):
            return Failure(
                cause="wrong model",
                text=f"the server has no model {self._model}; set model to one that it offers",
                words=", ".join(names),
            )
        if "model" in wrong.words.casefold():
            return Failure(cause="wrong model", text=wrong.text, words=wrong.words)
        text = f"{wrong.text} at /chat/completions; base_url mostly ends in /v1"
        return Failure(cause="refused", text=text, words=wrong.words)

    async def _look_again(self, server: Server, started: float) -> Server:
        """What the server tells now; a reply that is whole is not lost over it."""
        left = self._deadline_seconds - (time.monotonic() - started)
        try:
            async with asyncio.timeout(left / 2):
                return await self._lookup.again(last=True)
        except TimeoutError:
            return server

    async def _ask(self, address: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        seconds = min(LOOKUP_SECONDS, self._deadline_seconds / 4)
        return await self._wire().ask(address, body, seconds=seconds)

    def _wire(self) -> Wire:
        with self._lock:
            if self._wire_made is None:
                self._wire_made = Wire(self._address, self._key)
            return self._wire_made

    def _too_long(
        self, tokens: int, exact: int | None, request: ChatRequest, server: Server
    ) -> Failure | None:
        if server.window is None or tokens + request.answer_tokens <= server.window:
            return None
        about = "about " if exact is None else ""
        return Failure(
            cause="too long",
            text=f"the prompt has {about}{tokens:,} tokens and the answer may take"
            f" {request.answer_tokens:,}, but the context window has {server.window:,};"
            " lower token_budget or k",
        )

    def _late(self) -> Failure:
        text = f"no whole reply within {self._deadline_seconds:g} s; raise deadline_seconds"
        return Failure(cause="deadline", text=text)

    def _error(self, wrong: Failure) -> ChatError:
        words = self._key.hidden(wrong.words)  # before it is cut, or half of a key could stay
        if len(words) > SHOWN:
            words = f"{words[:SHOWN]}…"
        text = f"{self._model} at {self._address}: {self._key.hidden(wrong.text)}"
        return ChatError(wrong.cause, f"{text}: {words}" if words else text)


def _counted(wrong: Failure, attempts: int) -> Failure:
    if attempts == 1:
        return wrong
    text = f"{wrong.text} (attempt {attempts})"
    return Failure(cause=wrong.cause, text=text, words=wrong.words, wait=wrong.wait)


def _no_time(wrong: Failure, left: float) -> Failure:
    asked = f"; it asks to wait {wrong.wait:g} s" if wrong.wait is not None else ""
    text = f"{wrong.text}{asked}; {max(0.0, left):.1f} s are left of the deadline"
    return Failure(cause=wrong.cause, text=text, words=wrong.words)
