"""Replies kept on disk: nothing is asked twice, and nothing is taken for what it is not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from chat_servers import FakeChat, answers, cut, status

from atlas.errors import ChatError
from atlas.measure.chat_cache import CachedChat
from atlas.models import ChatRequest, Reply, load_chat

REQUEST = ChatRequest(
    messages=(("system", "rules"), ("user", "how long")),
    schema={"type": "object"},
    answer_tokens=50,
    about=(("prompt", "v1"), ("scope", "anyone"), ("index", "i1")),
)
REPLY = Reply(
    text='{"words": "3 years \u2013 \U0001f600"}', model="m-2026", prompt_tokens=70,
    completion_tokens=9, seconds=1.5, attempts=2,
)  # fmt: skip


@dataclass
class Counting:
    """A chat model that gives one reply, or raises an error, and counts."""

    reply: Reply = REPLY
    error: ChatError | None = None
    fingerprint: str = "m at http://h/v1, temperature 0"
    name: str = "m"
    asked: int = 0

    def complete(self, request: ChatRequest) -> Reply:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.reply


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# ---- hits and misses ------------------------------------------------------------------------


def test_the_same_request_is_asked_once_and_answered_as_it_was(tmp_path: Path) -> None:
    model = Counting()
    first = CachedChat(model, tmp_path).complete(REQUEST)
    same = replace(REQUEST, schema=dict(REQUEST.schema))
    second = CachedChat(model, tmp_path).complete(same)  # as another process would
    assert model.asked == 1
    assert first == REPLY
    assert second == replace(REPLY, cached=True)
    assert len(files(tmp_path)) == 1


def test_the_cache_is_known_by_the_model_behind_it(tmp_path: Path) -> None:
    cache = CachedChat(Counting(), tmp_path)
    assert (cache.name, cache.fingerprint) == ("m", "m at http://h/v1, temperature 0")


CHANGES: dict[str, dict[str, Any]] = {
    "message": {"messages": (("system", "rules"), ("user", "how long?"))},
    "instructions": {"messages": (("system", "rule"), ("user", "how long"))},
    "role": {"messages": (("user", "rules"), ("user", "how long"))},
    "border of messages": {"messages": (("system", "ruleshow"), ("user", " long"))},
    "order": {"messages": (("user", "how long"), ("system", "rules"))},
    "fewer messages": {"messages": (("user", "how long"),)},
    "schema": {"schema": {"type": "array"}},
    "bounds of the schema": {"schema": {"type": "object", "maxItems": 3}},
    "length": {"answer_tokens": 51},
    "prompt version": {"about": (("prompt", "v2"), ("scope", "anyone"), ("index", "i1"))},
    "scope": {"about": (("prompt", "v1"), ("scope", "sales"), ("index", "i1"))},
    "index": {"about": (("prompt", "v1"), ("scope", "anyone"), ("index", "i2"))},
    "nothing about": {"about": ()},
    "repeat": {"repeat": 1},
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_any_other_part_of_a_request_is_asked(tmp_path: Path, change: str) -> None:
    model = Counting()
    cache = CachedChat(model, tmp_path)
    cache.complete(REQUEST)
    assert not cache.complete(replace(REQUEST, **CHANGES[change])).cached
    assert (model.asked, len(files(tmp_path))) == (2, 2)


def test_every_field_of_a_request_is_tried_above() -> None:
    tried = {name for change in CHANGES.values() for name in change}
    assert tried == {item.name for item in fields(ChatRequest)}


@pytest.mark.parametrize(
    "fingerprint",
    ["n at http://h/v1, temperature 0", "m at http://i/v1, temperature 0", "m at http://h/v1, 1"],
)
def test_another_model_server_or_parameter_is_asked(tmp_path: Path, fingerprint: str) -> None:
    CachedChat(Counting(), tmp_path).complete(REQUEST)
    other = Counting(fingerprint=fingerprint)
    assert not CachedChat(other, tmp_path).complete(REQUEST).cached
    assert other.asked == 1


# ---- what is not kept -----------------------------------------------------------------------


@pytest.mark.parametrize("cause", ChatError.CAUSES)
def test_an_error_is_raised_and_not_kept(tmp_path: Path, cause: str) -> None:
    model = Counting(error=ChatError(cause, "x"))
    cache = CachedChat(model, tmp_path)
    for _ in range(2):
        with pytest.raises(ChatError) as caught:
            cache.complete(REQUEST)
        assert caught.value.cause == cause
    assert model.asked == 2
    assert files(tmp_path) == []
    model.error = None
    assert not cache.complete(REQUEST).cached
    assert cache.complete(REQUEST).cached


def test_of_a_real_exchange_only_the_whole_reply_is_kept(tmp_path: Path) -> None:
    script = [
        cut, answers(finish_reason="length"), answers(finish_reason="content_filter"),
        answers("  "), status(400), answers('{"words": "whole"}'),
    ]  # fmt: skip
    with FakeChat(*script) as server:
        cache = CachedChat(load_chat(server.base_url, "fake", deadline_seconds=5), tmp_path)
        for _ in script[:-1]:
            with pytest.raises(ChatError):
                cache.complete(REQUEST)
            assert files(tmp_path) == []
        assert cache.complete(REQUEST).text == '{"words": "whole"}'
        assert cache.complete(REQUEST).cached
        assert len(server.seen) == len(script)


def test_the_key_is_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_TEST_KEY", "sk-secret-0123456789")
    echo = answers(lambda seen: json.dumps({"key": seen.headers["authorization"]}))
    with FakeChat(echo) as server:
        model = load_chat(server.base_url, "fake", api_key_env="ATLAS_TEST_KEY")
        CachedChat(model, tmp_path).complete(REQUEST)
        assert "sk-secret" in server.seen[0].headers["authorization"]
    [file] = files(tmp_path)
    assert b"secret" not in file.read_bytes()


# ---- damage ---------------------------------------------------------------------------------


def rewritten(**changes: Any) -> Callable[[bytes], bytes]:
    """Damage that changes fields; None takes one out."""

    def damage(data: bytes) -> bytes:
        values = {**json.loads(data), **changes}
        kept = {name: value for name, value in values.items() if value is not None}
        return json.dumps(kept).encode()

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"\x00" * len(data),
        lambda data: b"\xff\xfe" + data,
        lambda data: b"[" * 100_000,
        lambda data: b"[]",
        lambda data: b"null",
        lambda data: b"{}",
        rewritten(text=""),
        rewritten(text=" \n"),
        rewritten(text=7),
        rewritten(text=None),
        rewritten(model=["m"]),
        rewritten(prompt_tokens="70"),
        rewritten(completion_tokens=None),
        rewritten(seconds="soon"),
        rewritten(attempts=1.5),
        rewritten(cached=False),
        rewritten(more=1),
    ],
)
def test_a_damaged_file_is_asked_again_and_mended(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    model = Counting()
    cache = CachedChat(model, tmp_path)
    cache.complete(REQUEST)
    [file] = files(tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    assert cache.complete(REQUEST) == REPLY
    assert cache.complete(REQUEST) == replace(REPLY, cached=True)
    assert model.asked == 2
    assert cache.unwritten == ""


def test_a_reply_that_cannot_be_kept_is_used_and_noted(tmp_path: Path) -> None:
    (tmp_path / "replies").write_text("a file where the folder should be", encoding="utf-8")
    model = Counting()
    cache = CachedChat(model, tmp_path / "replies")
    assert cache.unwritten == ""
    assert cache.complete(REQUEST) == cache.complete(REQUEST) == REPLY
    assert model.asked == 2
    assert "could not be written" in cache.unwritten
    assert "\n" not in cache.unwritten


def test_a_write_that_fails_half_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    cache = CachedChat(Counting(), tmp_path)
    monkeypatch.setattr(os, "replace", refuse)
    assert cache.complete(REQUEST) == REPLY
    assert "No space left on device" in cache.unwritten
    assert files(tmp_path) == []


def test_many_threads_may_ask_the_same_at_once(tmp_path: Path) -> None:
    cache = CachedChat(Counting(), tmp_path)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cache.complete(REQUEST), range(40)))
    assert {replace(reply, cached=False) for reply in found} == {REPLY}
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("text", ["no JSON", "[1]", '{"answer": "x", "more": 1}', "{}"])
def test_what_is_not_in_the_form_that_was_asked_for_is_not_kept(tmp_path: Path, text: str) -> None:
    asked = replace(REQUEST, schema={"type": "object", "properties": {"answer": {}}})
    model = Counting(replace(REPLY, text=text))
    for count in (1, 2):
        assert CachedChat(model, tmp_path).complete(asked).text == text
        assert (model.asked, files(tmp_path)) == (count, [])
