"""What `atlas doctor` says of chat servers, friendly, broken and hostile ones."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from chat_servers import FakeChat, Seen
from click.testing import CliRunner
from small import SETTINGS, collection

from atlas.cli import cli
from atlas.doctor import chat_servers, weights
from atlas.doctor.finding import Finding
from atlas.models import chat_look
from atlas.settings import Chat, Settings

KEY = "sk-not-to-be-seen-0123456789"


class Telling(FakeChat):
    """A server that tells about itself whatever it is given, for every address or for one."""

    def __init__(self, value: Any, status: int = 200, *, of: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.value, self.status, self.of = value, status, of

    def _about(self, request: Seen) -> tuple[Any, int]:
        if self.of and not request.path.endswith(self.of):
            return super()._about(request)
        value = self.value(request) if callable(self.value) else self.value
        return value, self.status


def looked(
    server: FakeChat, *, judge: bool = False, settings: dict[str, Any] | None = None, **chat: Any
) -> list[Finding]:
    """The findings about a server that answers questions, or judges."""
    values = {"base_url": server.base_url, "model": server.model, "answer_tokens": 400, **chat}
    role: dict[str, Any] = {"judge" if judge else "chat": Chat(**values)}
    answerer = "extractive" if judge else "chat"
    chosen = Settings(**{"answerer": answerer, **role, **(settings or {})})
    return list(chat_servers.servers(chosen))


def levels(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.level, finding.name) for finding in findings]


@pytest.mark.parametrize("kind", ["llama.cpp", "vllm"])
def test_a_server_in_order_is_said_with_its_window(kind: str) -> None:
    with FakeChat(kind=kind, window=8192) as server:
        findings = looked(server)
    assert levels(findings) == [("ok", "chat"), ("ok", "chat window")]
    assert findings[0].found == f"fake at {server.base_url} answers"
    assert findings[1].found.startswith("8,192 tokens as the server tells; the longest prompt")
    assert server.seen == []  # nothing was asked of the model


def test_without_a_chat_model_nothing_is_asked() -> None:
    [finding] = chat_servers.servers(Settings())
    assert (finding.level, finding.name) == ("ok", "chat")


def test_a_window_that_is_too_small_for_the_longest_prompt_is_warned_of() -> None:
    with FakeChat(kind="llama.cpp", window=2048) as server:
        [_, window] = looked(server)
        [_, fits] = looked(server, settings={"token_budget": 500})
    assert window.level == "warn"
    assert "token_budget 2,000, answer_tokens 400" in window.found
    assert window.todo.startswith("lower token_budget")
    assert fits.level == "ok"


def test_where_a_server_does_not_count_the_prompt_is_taken_for_longer() -> None:
    with FakeChat(kind="vllm", window=3100) as counts, FakeChat() as plain:
        assert looked(counts)[1].level == "ok"
        window = looked(plain, context_tokens=3100)[1]
    assert window.level == "warn"
    assert "the server does not count" in window.found


def test_a_window_that_nobody_tells_is_warned_of() -> None:
    with FakeChat() as server:
        [_, window] = looked(server)
        [_, told] = looked(server, context_tokens=8192)
    assert window.level == "warn"
    assert window.todo == "set context_tokens to what the provider says"
    assert told.level == "ok"
    assert told.found.startswith("8,192 tokens by context_tokens; ")


def test_ollama_before_its_first_question_is_warned_of_its_silent_cut() -> None:
    with FakeChat(kind="ollama", window=8192) as server:
        [_, before] = looked(server)
        server.loaded = True
        [_, after] = looked(server)
    assert before.level == "warn"
    assert "cuts longer prompts without a word" in before.found
    assert "ask one question" in before.todo
    assert after.level == "ok"


def test_context_tokens_above_the_servers_window_fail() -> None:
    with FakeChat(kind="llama.cpp", window=4096) as server:
        [_, larger] = looked(server, context_tokens=8192)
        [_, smaller] = looked(server, context_tokens=4000)
    assert larger.level == "fail"
    assert larger.found == "context_tokens is 8,192, but the server reads 4,096 tokens"
    assert smaller.level == "ok"
    assert "4,000 tokens by context_tokens, of 4,096 that the server reads" in smaller.found


def test_a_model_that_the_server_lacks_fails_and_names_those_it_has() -> None:
    names = [f"model-{number}" for number in range(8)]
    with Telling({"data": [{"id": name} for name in names]}) as server:
        [finding] = looked(server)
    assert finding.level == "fail"
    assert "answers, but has no such model" in finding.found
    assert finding.todo.endswith("model-0, model-1, model-2, model-3, model-4 and 3 more")


def test_a_server_that_is_not_there_fails_where_it_is_needed() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    chat = Chat(base_url=url, model="m")
    [needed] = chat_servers.servers(Settings(answerer="chat", chat=chat))
    assert needed.level == "fail"
    assert "gives no answer" in needed.found
    assert needed.todo == "start the server, or correct base_url"
    spare = list(chat_servers.servers(Settings(chat=chat, judge=chat)))
    assert levels(spare) == [("warn", "chat"), ("warn", "judge")]
    assert "(needed for --answerer chat only)" in spare[0].found
    assert "(needed for the judge `chat` only)" in spare[1].found


def test_a_server_that_says_nothing_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chat_servers, "SECONDS", 0.3)

    def never(request: Seen) -> None:
        server.closing.wait(20)

    with Telling(never) as server:
        chat_look.look(server.base_url, "m", api_key_env="", seconds=0.01)  # loads the library
        started = time.monotonic()
        [finding] = looked(server)
        assert time.monotonic() - started < 3
    assert finding.level == "fail"
    assert "no answer within 0.3 s" in finding.found


# ---- keys -----------------------------------------------------------------------------------


def test_a_variable_without_a_key_fails_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    with FakeChat() as server:
        [finding] = looked(server, api_key_env="SOME_KEY")
    assert finding.level == "fail"
    assert "the variable SOME_KEY holds no key" in finding.found
    assert finding.todo.startswith("set it")
    assert server.asked == []


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_fails(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    with Telling({}, status) as server:
        [with_key] = looked(server, api_key_env="SOME_KEY")
        [without] = looked(server)
    assert with_key.level == without.level == "fail"
    assert f"refuses us (status {status})" in with_key.found
    assert with_key.todo == "correct the key in the variable SOME_KEY"
    assert without.todo == "name the variable with its key under api_key_env"


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    monkeypatch.setattr(weights, "models", lambda settings, state: iter(()))

    def echoed(request: Seen) -> dict[str, Any]:
        return {"data": [{"id": f"you sent {request.headers['authorization']}"}]}

    with Telling(echoed) as server:
        chat = f"answerer: chat\nchat: {{base_url: '{server.base_url}', model: m, "
        chat += "api_key_env: SOME_KEY}\n"
        root = collection(tmp_path / "c", settings=SETTINGS + chat)
        for options in ([], ["--json"]):
            result = CliRunner().invoke(cli, ["doctor", "-C", str(root), *options])
            assert result.exit_code == 1
            assert KEY not in result.output
            assert "[key]" in result.output
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("base_url", "clear"),
    [
        ("http://api.example.com/v1", True),
        ("http://203.0.113.7:8080/v1", False),  # set aside for examples, so nobody's
        ("http://8.8.8.8/v1", True),
        ("https://api.example.com/v1", False),
        ("http://localhost:8080/v1", False),
        ("http://127.0.0.1:8080/v1", False),
        ("http://192.168.1.9:8080/v1", False),
        ("http://[::1]:8080/v1", False),
        ("http://gpu:8080/v1", False),
    ],
)
def test_a_key_that_travels_unencrypted_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, base_url: str, clear: bool
) -> None:
    monkeypatch.setattr(chat_servers, "look", lambda *_, **__: chat_look.Look(broken="x"))
    chat = Chat(base_url=base_url, model="m", api_key_env="SOME_KEY")
    findings = list(chat_servers.servers(Settings(chat=chat)))
    assert [f for f in findings if "unencrypted" in f.found] == findings[:-1]
    assert len(findings) == 1 + clear


# ---- hostile and odd servers ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "status", "level", "words"),
    [
        ([], 200, "warn", "lists no models that can be read"),
        ("text", 200, "warn", "lists no models that can be read"),
        ({"data": 7}, 200, "warn", "lists no models that can be read"),
        ({"data": [None, {"id": None}, {"id": 3}]}, 200, "warn", "lists no models"),
        ({}, 404, "warn", "has no list of models"),
        ({}, 500, "fail", "is not well (status 500)"),
        ({}, 503, "fail", "is not well (status 503)"),
        ({}, 302, "fail", "sends us on to another address"),
        ({}, 418, "warn", "(status 418)"),
    ],
)
def test_odd_replies_are_told_apart(value: Any, status: int, level: str, words: str) -> None:
    with Telling(value, status, of="/models") as server:
        findings = looked(server)
    assert findings[0].level == level
    assert words in findings[0].found
    assert findings[0].todo


@pytest.mark.parametrize("window", [-1, 0, True, "4096", 1e9, 10**30, None, [4096]])
def test_a_window_that_is_no_number_is_none(window: Any) -> None:
    with FakeChat(kind="llama.cpp", window=window) as server:
        findings = looked(server)
    assert levels(findings) == [("ok", "chat"), ("warn", "chat window")]


def test_a_reply_without_an_end_is_not_read_to_its_end() -> None:
    with Telling({"data": [{"id": "x" * 3_000_000}]}, of="/models") as server:
        findings = looked(server)
    assert findings[0].level == "warn"
    assert "lists no models that can be read" in findings[0].found


def test_names_that_would_flood_or_steer_a_terminal_are_cut_and_cleaned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(weights, "models", lambda settings, state: iter(()))
    with Telling({"data": [{"id": "\x1b[2J" + "n" * 10_000}]}, of="/models") as server:
        chat = f"answerer: chat\nchat: {{base_url: '{server.base_url}', model: zz}}\n"
        root = collection(tmp_path / "c", settings=SETTINGS + chat)
        result = CliRunner().invoke(cli, ["doctor", "-C", str(root)])
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) < 400


def test_without_the_client_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with FakeChat() as server:
        [finding] = looked(server)
    assert finding.level == "fail"
    assert "openai is not installed" in finding.found
    assert finding.todo == "pip install '.[chat]' in atlas's folder"


def test_the_command_looks_at_the_server_of_the_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(weights, "models", lambda settings, state: iter(()))
    with FakeChat(kind="llama.cpp", window=8192) as server:
        chat = f"judge: {{base_url: '{server.base_url}', model: fake}}\n"
        root = collection(tmp_path / "c", settings=SETTINGS + chat)
        result = CliRunner().invoke(cli, ["doctor", "-C", str(root), "--json"])
    findings = json.loads(result.stdout)["findings"]
    assert [f["level"] for f in findings if f["name"].startswith("judge")] == ["ok", "ok"]
