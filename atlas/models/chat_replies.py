"""What came from a chat server -> a whole reply, or why there is none.

Enters: status, headers and body, all of it untrusted. Leaves: the Content of a whole reply, or a
Failure with its cause: a reply that is cut, empty, filtered, of another model or not readable.
Raises nothing. Words of the server stand apart from ours: they may hold anything, also the key.
"""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from atlas.models.chat_wire import Arrived, Broken, json_object
from atlas.models.context_window import same_model

KEPT = 4000
"""Most characters kept of a server's words; what is shown of them is far less."""
_ENDED = {"stop", "eos", "eos_token", "stop_sequence", "end_turn"}
"""How servers say that the model ended by itself."""
_CUT = {"length", "max_tokens"}
_FILTERED = {"content_filter", "refusal", "safety"}
_CALLS = {"tool_calls", "function_call"}
_TOO_LONG = ("context length", "context_length", "context size", "context window")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why there is no reply, and whether sending the request again may help."""

    cause: str
    """One of ChatError.CAUSES."""
    text: str
    words: str = ""
    """What the server said about it, on one line."""
    again: bool = False
    wait: float | None = None
    """Seconds that the server asks to wait; None where it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A whole reply as it stood in the body."""

    text: str
    model: str
    """"" where the server names none."""
    prompt_tokens: int | None
    """None where the server does not count."""
    completion_tokens: int | None


def failure(outcome: Arrived | Broken) -> Failure | None:
    """What is wrong by the status alone; None for a success."""
    if isinstance(outcome, Broken):
        if outcome.cause == "unreachable":
            text = "no connection, or it broke before an answer; is the server running?"
            return Failure(cause=outcome.cause, text=text, words=plain(outcome.text), again=True)
        # Once the answer had begun the model has done its work: not paid for a second time.
        return Failure(cause=outcome.cause, text="no whole reply", words=plain(outcome.text))
    status = outcome.status
    if status == 200:
        return None
    code, words = _error(outcome.body)
    text = f"the server answered {status}"
    wait = retry_after(outcome.headers)
    if status == 429:
        spent = code == "insufficient_quota"  # waiting does not fill an account
        return Failure(cause="rate limited", text=text, words=words, again=not spent, wait=wait)
    if status == 408 or status >= 500:
        return Failure(cause="server error", text=text, words=words, again=True, wait=wait)
    if 300 <= status < 400:
        text += " and sends on to another address, which is not followed; set base_url to it"
        return Failure(cause="refused", text=text, words=plain(outcome.headers.get("location", "")))
    if code == "model_not_found":
        return Failure(cause="wrong model", text=text, words=words)
    if status == 413 or any(sign in f"{code} {words}".casefold() for sign in _TOO_LONG):
        text += "; lower token_budget or k"
        return Failure(cause="too long", text=text, words=words)
    if code == "content_filter":
        return Failure(cause="filtered", text=text, words=words)
    return Failure(cause="refused", text=text, words=words)


def names_parameter(outcome: Arrived | Broken, name: str, sign: str) -> bool:
    """Whether a 400 or 422 is about one parameter: it is named, or the words hold the sign."""
    if isinstance(outcome, Broken) or outcome.status not in (400, 422):
        return False
    error = (json_object(outcome.body) or {}).get("error")
    named = isinstance(error, dict) and error.get("param") == name
    _, words = _error(outcome.body)
    return named or (name in words and sign in words.casefold())


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by `retry-after-ms` or `Retry-After` (RFC 9110: seconds or a date)."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    if seconds is not None or not value:
        return seconds
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - time.time())


def read(arrived: Arrived, model: str) -> Content | Failure:
    """The content of a success."""
    if not arrived.body.strip():
        return Failure(cause="empty", text="the server sent an empty body")
    body = json_object(arrived.body)
    if body is None:
        # Without a length, and not in pieces, only the end of the connection ends a body.
        told = "content-length" in arrived.headers or "transfer-encoding" in arrived.headers
        return Failure(
            cause="unreadable" if told else "cut short",
            text="the server's reply is no JSON object",
            words=_shown(arrived.body),
        )
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        failed = "error" in body
        return Failure(
            cause="server error" if failed else "unreadable",
            text="an error in place of a reply" if failed else "the reply holds no choice",
            words=_error(arrived.body)[1] if failed else _shown(arrived.body),
        )
    name = body.get("model")
    name = plain(name) if isinstance(name, str) else ""
    if name and not same_model(name, model):
        text = f"another model than {model} has answered; mend base_url or model"
        return Failure(cause="wrong model", text=text, words=name)
    wrong = _not_whole(choice, message)
    if wrong is not None:
        return wrong
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Content(
        text=whole_text(message["content"]),
        model=name,
        prompt_tokens=_number(usage.get("prompt_tokens")),
        completion_tokens=_number(usage.get("completion_tokens")),
    )


def _not_whole(choice: Mapping[str, Any], message: Mapping[str, Any]) -> Failure | None:
    """What keeps a choice from being a whole text; None for one that ended by itself."""
    reason = choice.get("finish_reason")
    reason = reason if isinstance(reason, str) else ""
    refusal = message.get("refusal")
    if reason in _FILTERED or refusal:
        words = plain(refusal) if isinstance(refusal, str) else ""
        text = "the model or its filter declined"
        return Failure(cause="filtered", text=text, words=words)
    if message.get("tool_calls") or message.get("function_call") or reason in _CALLS:
        return Failure(cause="unreadable", text="the reply calls a tool, and none was offered")
    if reason in _CUT:
        return Failure(cause="cut short", text="the reply is at its limit; raise answer_tokens")
    if not reason:
        return Failure(cause="cut short", text="the reply does not say that it ended")
    if reason not in _ENDED:
        text = "the reply ended for a reason that is not known"
        return Failure(cause="unreadable", text=text, words=plain(reason))
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        return Failure(cause="unreadable", text="the content of the reply is not text")
    if not content or not content.strip():
        return Failure(cause="empty", text="the reply holds no text")
    return None


def whole_text(text: str) -> str:
    """The text without halves of surrogate pairs, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def plain(words: object) -> str:
    """A server's words on one line, without control characters."""
    text = "".join(sign if sign.isprintable() else " " for sign in str(words)[:KEPT])
    return " ".join(text.split())


def _error(body: bytes) -> tuple[str, str]:
    """(code, words) of an error's body, in the shapes that servers use."""
    value = json_object(body)
    if value is None:
        return "", _shown(body)
    error = value.get("error", value)
    if not isinstance(error, dict):
        return "", plain(error)
    code = error.get("code") if isinstance(error.get("code"), str) else error.get("type")
    words = error.get("message") or error.get("detail") or error
    return str(code or ""), plain(words)


def _shown(body: bytes) -> str:
    return plain(body[:KEPT].decode("utf-8", "replace"))


def _seconds(value: str | None) -> float | None:
    try:
        seconds = float(value) if value else math.nan
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _number(value: Any) -> int | None:
    """A count of tokens; 0 is what servers send that do not count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
