"""The servers behind `chat` and `judge`: key, reply, model, and what fits into the window.

Enters: settings. Leaves: findings. A server that no command needs by itself (`chat` while
`answerer` is extractive, and the judge) is warned of where one that is needed fails.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from atlas.answer.chat import INSTRUCTIONS
from atlas.doctor.finding import Finding, Level, of_error, ok, warn
from atlas.errors import ModelError
from atlas.models.chat_look import Look, look
from atlas.models.context_window import estimate
from atlas.settings import Chat, Settings

SECONDS = 5.0
"""Most time for one reply."""
NAMES_SHOWN, NAME_LENGTH = 5, 60
ESTIMATED = 1.5
"""Where a server does not count, a token of the encoder is taken for so many: see `estimate`."""
REFUSED = (401, 403)


def servers(settings: Settings) -> Iterator[Finding]:
    """Look at the model that answers, then at the judge's."""
    needed: Level = "fail" if settings.answerer == "chat" else "warn"
    if settings.chat is None and settings.judge is None:
        yield ok("chat", "none is named; answers are quoted from the documents")
    if settings.chat is not None:
        yield from _server("chat", settings.chat, needed, settings.token_budget)
    if settings.judge is not None:
        yield from _server("judge", settings.judge, "warn", None)


def _server(name: str, chat: Chat, worst: Level, budget: int | None) -> Iterator[Finding]:
    where = f"{chat.model} at {chat.base_url}"
    spare = ""
    if worst == "warn":
        command = "--answerer chat" if name == "chat" else "the judge `chat`"
        spare = f" (needed for {command} only)"
    if chat.api_key_env and _in_clear(chat.base_url):
        found = f"{where}: key and documents go there unencrypted"
        yield warn(name, found, "use an address that begins with https")
    try:
        told = look(chat.base_url, chat.model, api_key_env=chat.api_key_env, seconds=SECONDS)
    except ModelError as error:
        yield of_error(name, error, "correct atlas.yaml", level=worst)
        return
    problem = _problem(told, chat)
    if problem is not None:
        level, found, todo = problem
        severe = worst if level == "fail" else level
        yield Finding(level=severe, name=name, found=f"{where} {found}{spare}", todo=todo)
        if level == "fail":
            return
    else:
        yield ok(name, f"{where} answers{' and knows the key' if chat.api_key_env else ''}")
    yield _window(name, told, chat, budget, worst)


def _problem(told: Look, chat: Chat) -> tuple[Level, str, str] | None:
    """Level, what is wrong and what to do; None for a server that offers the model."""
    if told.broken:
        return (
            "fail",
            f"gives no answer ({told.broken})",
            "start the server, or correct base_url",
        )
    if told.status in REFUSED:
        if chat.api_key_env:
            todo = f"correct the key in the variable {chat.api_key_env}"
        else:
            todo = "name the variable with its key under api_key_env"
        return "fail", f"refuses us (status {told.status})", todo
    if 300 <= told.status < 400:
        found = f"sends us on to another address (status {told.status}), which is not followed"
        return "fail", found, "set base_url to that address"
    if told.status == 404:
        return (
            "warn",
            "answers, but has no list of models",
            "base_url mostly ends in /v1; if questions are answered, all is well",
        )
    if told.status >= 500:
        found = f"is not well (status {told.status})"
        return "fail", found, "it may still be loading; look again, or into its log"
    if told.status != 200 or not told.offers:
        found = f"answers, but lists no models that can be read (status {told.status})"
        return "warn", found, "ask a question to see whether it works"
    if not told.known:
        names = [name[:NAME_LENGTH] for name in told.offers[:NAMES_SHOWN]]
        more = len(told.offers) - len(names)
        text = ", ".join(names) + (f" and {more} more" if more else "")
        return "fail", "answers, but has no such model", f"set model to one it offers: {text}"
    return None


def _window(name: str, told: Look, chat: Chat, budget: int | None, worst: Level) -> Finding:
    """What the window is, and whether the longest prompt fits."""
    name = f"{name} window"
    said = chat.context_tokens
    if told.window is None and not said:
        if told.waiting:
            return warn(
                name,
                "is told only once a question has loaded the model; Ollama's is short unless "
                "OLLAMA_CONTEXT_LENGTH or num_ctx says otherwise, and it cuts longer prompts "
                "without a word",
                "ask one question with --answerer chat, and look again",
            )
        return warn(
            name,
            "is not told by the server, so a prompt that is too long cannot be known beforehand",
            "set context_tokens to what the provider says",
        )
    if told.window is not None and said > told.window:
        found = f"context_tokens is {said:,}, but the server reads {told.window:,} tokens"
        todo = "take context_tokens out, or start the server with a larger window"
        return Finding(level=worst, name=name, found=found, todo=todo)
    window = said or told.window or 0
    source = "by context_tokens" if said else "as the server tells"
    if said and told.window is not None and said < told.window:
        source += f", of {told.window:,} that the server reads"
    text = f"{window:,} tokens {source}"
    if budget is None:
        return ok(name, text)
    supplied = budget if told.counts else round(budget * ESTIMATED)
    instructions = estimate([("system", INSTRUCTIONS), ("user", "")])
    needed = supplied + instructions + chat.answer_tokens
    if needed > window:
        found = (
            f"{text}; the longest prompt and its answer may take {needed:,} (token_budget "
            f"{budget:,}, answer_tokens {chat.answer_tokens:,}, instructions {instructions:,}"
            f"{'' if told.counts else ', counted with care, since the server does not count'}), "
            "and what does not fit is refused"
        )
        return warn(name, found, "lower token_budget, or start the server with a larger window")
    return ok(name, f"{text}; the longest prompt and its answer take at most {needed:,}")


def _in_clear(base_url: str) -> bool:
    """Whether an address is neither encrypted nor of this machine or its own network."""
    url = urlsplit(base_url)
    host = url.hostname or ""
    if url.scheme == "https" or host == "localhost" or "." not in host.rstrip("."):
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return True
    return not (address.is_loopback or address.is_private)
