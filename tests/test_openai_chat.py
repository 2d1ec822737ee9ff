"""The chat model adapter against servers that fail in every way, and against a real one."""

from __future__ import annotations

import email.utils
import gc
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from chat_servers import (
    SMOLLM,
    TOOL,
    WHOLE,
    Behaviour,
    FakeChat,
    answers,
    body,
    completion,
    cut,
    cut_stream,
    cut_unannounced,
    drip,
    echo_key,
    hang,
    huge,
    raw,
    redirect,
    reset,
    slow,
    smollm,
    status,
)

from atlas.errors import ChatError, ModelError
from atlas.models import ChatModel, ChatRequest, Reply, load_chat
from atlas.models.chat_replies import retry_after
from atlas.models.openai_chat import OpenAIChat

SCHEMA = {
    "type": "object",
    "properties": {"status": {"enum": ["answered", "abstained"]}},
    "required": ["status"],
    "additionalProperties": False,
}
KEY = "sk-secret-0123456789"
DEADLINE = 1.5


def request(text: str = "how long is the warranty", **changes: Any) -> ChatRequest:
    values: dict[str, Any] = {"messages": (("user", text),), "schema": SCHEMA, "answer_tokens": 50}
    return ChatRequest(**(values | changes))


def chat(server: FakeChat, **options: Any) -> ChatModel:
    return load_chat(server.base_url, "fake", **({"deadline_seconds": DEADLINE} | options))


def failure(model: ChatModel, asked: ChatRequest | None = None) -> ChatError:
    """The error of a request, which must have come within the deadline."""
    started = time.monotonic()
    with pytest.raises(ChatError) as caught:
        model.complete(asked or request())
    assert time.monotonic() - started < DEADLINE + 0.5
    assert caught.value.cause in ChatError.CAUSES
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """The library's import is no part of any deadline."""
    with FakeChat() as server:
        chat(server).complete(request())


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ATLAS_TEST_KEY", KEY)
    return "ATLAS_TEST_KEY"


# ---- a reply ---------------------------------------------------------------------------------


def test_a_whole_reply_is_returned_as_it_was_written() -> None:
    with FakeChat(answers(prompt_tokens=31)) as server:
        reply = chat(server).complete(request())
    assert reply.text == WHOLE
    assert (reply.model, reply.prompt_tokens, reply.attempts) == ("fake", 31, 1)
    assert not reply.cached
    assert 0 < reply.seconds < DEADLINE


def test_the_request_carries_schema_temperature_seed_and_limit() -> None:
    with FakeChat() as server:
        chat(server).complete(request(repeat=3, about=(("index", "abc"),)))
        sent = server.seen[0].body
    assert sent == {
        "model": "fake",
        "messages": [{"role": "user", "content": "how long is the warranty"}],
        "temperature": 0,
        "seed": 3,
        "max_tokens": 50,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
        },
    }


def test_a_text_that_is_not_of_the_schema_is_left_to_the_caller() -> None:
    with FakeChat(answers('{"other": 1}'), answers("no JSON")) as server:
        model = chat(server)
        assert model.complete(request()).text == '{"other": 1}'
        assert model.complete(request()).text == "no JSON"


@pytest.mark.parametrize("name", ["fake-2026-01-01", "/models/FAKE.gguf", "", None])
def test_longer_names_of_the_same_model_are_accepted(name: str | None) -> None:
    with FakeChat(body(completion(model=name))) as server:  # type: ignore[arg-type]
        assert chat(server).complete(request()).model == (name or "fake")


def test_tokens_are_estimated_where_the_server_counts_none() -> None:
    with FakeChat(body(completion())) as server:
        reply = chat(server).complete(request("x" * 30))
    assert (reply.prompt_tokens, reply.completion_tokens) == (18, 16)


def test_halves_of_surrogate_pairs_are_neither_sent_nor_returned() -> None:
    with FakeChat(answers("\ud83d cut emoji")) as server:
        reply = chat(server).complete(request("a lone \ud800 half"))
        assert server.seen[0].prompt == "a lone ? half"
    assert reply.text == "? cut emoji"


# ---- faults ----------------------------------------------------------------------------------

FAULTS: dict[str, tuple[Behaviour, str]] = {
    "429": (status(429, retry_after="0"), "rate limited"),
    "429 for long": (status(429, retry_after="60"), "rate limited"),
    "500": (status(500), "server error"),
    "529": (status(529), "server error"),
    "408": (status(408), "server error"),
    "hang": (hang, "deadline"),
    "slow first byte": (slow(30), "deadline"),
    "drip": (drip, "deadline"),
    "cut": (cut, "cut short"),
    "cut stream": (cut_stream, "cut short"),
    "cut, no length": (cut_unannounced, "cut short"),
    "empty body": (raw(b""), "empty"),
    "broken JSON": (raw(b'{"choices": [}'), "unreadable"),
    "a list": (raw(b"[1]"), "unreadable"),
    "deep": (raw(b"[" * 100_000), "unreadable"),
    "no choices": (body({"choices": []}), "unreadable"),
    "choices of another kind": (body({"choices": [7]}), "unreadable"),
    "error with 200": (body({"error": {"message": "upstream"}}), "server error"),
    "not of the schema of a reply": (body({"answer": "3 years"}), "unreadable"),
    "content is no text": (answers(content=[{"x": 1}]), "unreadable"),
    "huge": (huge, "unreadable"),
    "filter": (answers(finish_reason="content_filter"), "filtered"),
    "refusal": (answers(None, refusal="I will not"), "filtered"),
    "filter with 400": (status(400, code="content_filter"), "filtered"),
    "wrong model": (answers(model="llama-3"), "wrong model"),
    "reset": (reset, "unreachable"),
    "length": (answers(finish_reason="length"), "cut short"),
    "no finish reason": (answers(finish_reason=None), "cut short"),
    "odd finish reason": (answers(finish_reason="tired"), "unreadable"),
    "tool call": (answers(None, tool_calls=[{"id": "1"}]), "unreadable"),
    "no text": (answers("  "), "empty"),
    "null": (answers(None), "empty"),
    "401": (status(401), "refused"),
    "400": (status(400), "refused"),
    "window": (status(400, code="context_length_exceeded"), "too long"),
    "quota": (status(429, code="insufficient_quota"), "rate limited"),
    "redirect": (redirect("http://127.0.0.1:9/v1"), "refused"),
}  # fmt: skip


@pytest.mark.parametrize("fault", list(FAULTS))
def test_each_fault_ends_with_its_cause_within_the_deadline(fault: str) -> None:
    behaviour, cause = FAULTS[fault]
    with FakeChat(behaviour) as server:
        error = failure(chat(server))
        assert error.cause == cause
        assert str(error).startswith(f"{cause}: fake at {server.base_url}: ")


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with FakeChat() as server:
        model = chat(server)
    assert failure(model).cause == "unreachable"


def test_a_failure_of_a_moment_is_got_over() -> None:
    with FakeChat(reset, status(503), answers()) as server:
        assert chat(server, deadline_seconds=5).complete(request()).attempts == 3


def test_no_more_than_three_attempts_are_made() -> None:
    with FakeChat(status(500, retry_after="0")) as server:
        error = failure(chat(server))
        assert len(server.seen) == 3
    assert "attempt 3" in str(error)


@pytest.mark.parametrize("fault", ["cut", "400", "quota", "wrong model", "huge", "length"])
def test_what_another_attempt_cannot_mend_is_sent_once(fault: str) -> None:
    with FakeChat(FAULTS[fault][0]) as server:
        failure(chat(server))
        assert len(server.seen) == 1


def test_a_missing_model_is_named_with_those_that_are_offered() -> None:
    with FakeChat(status(404, "model 'fake' not found"), model="qwen3:8b") as server:
        error = failure(chat(server))
    assert error.cause == "wrong model"
    assert "qwen3:8b" in str(error)


def test_a_wrong_address_is_not_taken_for_a_missing_model() -> None:
    with FakeChat(status(404, "File Not Found")) as server:
        error = failure(chat(server))
    assert error.cause == "refused"
    assert "base_url" in str(error)


def test_words_of_the_server_are_shown_short_and_without_control_signs() -> None:
    with FakeChat(status(400, "\x1b[31mred\n" + "very " * 500)) as server:
        text = str(failure(chat(server)))
    assert "\x1b" not in text
    assert len(text) < 400


# ---- waiting ---------------------------------------------------------------------------------


def test_retry_after_is_obeyed() -> None:
    with FakeChat(status(429, retry_after="1"), answers()) as server:
        reply = chat(server, deadline_seconds=3).complete(request())
        first, second = (seen.at for seen in server.seen)
    assert 1.0 <= second - first < 1.5
    assert reply.attempts == 2
    assert reply.seconds >= 1.0


@pytest.mark.parametrize("code", [429, 503])
def test_a_wait_that_does_not_fit_is_not_begun(code: int) -> None:
    with FakeChat(status(code, retry_after="20")) as server:
        started = time.monotonic()
        error = failure(chat(server))
        assert time.monotonic() - started < 0.5
        assert len(server.seen) == 1
    assert "asks to wait 20 s" in str(error)


def test_milliseconds_go_before_seconds() -> None:
    headers = {"retry-after-ms": "300"}
    with FakeChat(status(429, retry_after="9", headers=headers), answers()) as server:
        chat(server).complete(request())
        first, second = (seen.at for seen in server.seen)
    assert 0.3 <= second - first < 0.8


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf", "Mon, 99 Foo 2026", ""])
def test_a_wait_that_cannot_be_read_is_none(value: str) -> None:
    assert retry_after({"retry-after": value}) is None


def test_a_date_to_wait_for_is_read() -> None:
    value = email.utils.formatdate(time.time() + 30, usegmt=True)
    seconds = retry_after({"retry-after": value})
    assert seconds is not None
    assert 28 < seconds <= 30
    assert retry_after({"retry-after": email.utils.formatdate(0, usegmt=True)}) == 0


# ---- parameters that a server does not take --------------------------------------------------


def refuses(name: str, message: str) -> Behaviour:
    def act(exchange: Any) -> None:
        if name in exchange.request.body:
            status(400, message, param=name, code="unsupported_parameter")(exchange)
        else:
            answers()(exchange)

    return act


def test_the_other_name_of_the_limit_is_used_and_remembered() -> None:
    words = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    with FakeChat(refuses("max_tokens", words)) as server:
        model = chat(server)
        with ThreadPoolExecutor(8) as pool:
            assert len(list(pool.map(lambda _: model.complete(request()), range(8)))) == 8
        before = len(server.seen)
        assert model.complete(request()).attempts == 1
        assert len(server.seen) == before + 1
        assert server.seen[-1].body["max_completion_tokens"] == 50


def test_a_temperature_that_is_refused_is_left_out() -> None:
    words = "Unsupported value: 'temperature' does not support 0 with this model."
    with FakeChat(refuses("temperature", words)) as server:
        assert chat(server).complete(request()).attempts == 2


# ---- the key ---------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [400, 401, 404, 429, 500])
def test_the_key_stands_in_no_error(code: int, key: str) -> None:
    with FakeChat(echo_key(code)) as server:
        model = chat(server, api_key_env=key)
        error = failure(model)
        assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(model)
    assert KEY not in shown + model.fingerprint
    assert "[key]" in str(error)
    assert error.__cause__ is error.__context__ is None


def test_no_half_of_the_key_is_left_where_words_are_cut(key: str) -> None:
    places = range(150, 210)
    with FakeChat(*(status(400, "x" * before + KEY) for before in places)) as server:
        model = chat(server, api_key_env=key)
        for _ in places:
            assert KEY[:6] not in str(failure(model))


def test_the_key_stands_in_no_reply(key: str) -> None:
    with FakeChat(echo_key(200), answers(model=f"fake-{KEY}")) as server:
        model = chat(server, api_key_env=key)
        assert KEY not in repr([model.complete(request()), model.complete(request())])


def test_the_key_does_not_follow_a_redirect(key: str) -> None:
    with FakeChat() as other, FakeChat(redirect(f"{other.base_url}/chat/completions")) as server:
        error = failure(chat(server, api_key_env=key))
        assert other.seen == other.asked == []
        assert other.base_url in str(error)


@pytest.mark.parametrize("value", [None, "", "  ", "two words", "caf\u00e9", "line\nbreak"])
def test_a_variable_without_a_usable_key_is_named(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATLAS_TEST_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("ATLAS_TEST_KEY", value)
    with pytest.raises(ModelError, match="ATLAS_TEST_KEY") as caught:
        load_chat("http://127.0.0.1:9/v1", "fake", api_key_env="ATLAS_TEST_KEY")
    assert not (value or "").strip() or str(value) not in str(caught.value)


def test_no_variable_of_the_library_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "WEBHOOK_SECRET"):
        monkeypatch.setenv(f"OPENAI_{name}", f"leaked-{name}")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://leaked.invalid/v1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Leak: leaked\nAuthorization: Bearer leaked")
    with FakeChat() as server:
        chat(server).complete(request())
        everything = [*server.seen, *server.asked]
    assert "leaked" not in repr(everything)
    assert {seen.headers["authorization"] for seen in everything} == {"Bearer none"}


# ---- many at once ----------------------------------------------------------------------------


def test_twenty_threads_are_served_at_the_same_time() -> None:
    with FakeChat(answers(lambda seen: seen.prompt, delay=0.3)) as server:
        model = chat(server, deadline_seconds=5)
        started = time.monotonic()
        with ThreadPoolExecutor(20) as pool:
            replies = list(pool.map(lambda n: model.complete(request(f"number {n}")), range(20)))
        assert time.monotonic() - started < 2
        assert server.most_in_flight >= 15
        assert len(server.asked) == 3  # the server was looked up once
    assert [reply.text for reply in replies] == [f"number {n}" for n in range(20)]


def test_one_late_request_does_not_hold_up_others() -> None:
    with FakeChat(hang, answers()) as server, ThreadPoolExecutor(1) as pool:
        model = chat(server)
        late = pool.submit(failure, model)
        while not server.seen:
            time.sleep(0.01)
        assert model.complete(request()).seconds < 0.5
        assert late.result().cause == "deadline"


def test_a_model_that_is_dropped_closes_its_connections() -> None:
    with FakeChat() as server:
        model = OpenAIChat(server.base_url, "fake", deadline_seconds=DEADLINE)
        model.complete(request())
        client = model._wire()._http
        assert not client.is_closed
        del model
        gc.collect()
        for _ in range(100):
            if client.is_closed:
                return
            time.sleep(0.01)
    pytest.fail("the client is still open")


# ---- window and tokens -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["llama.cpp", "vllm"])
def test_the_window_is_asked_once(kind: str) -> None:
    with FakeChat(kind=kind, window=2048) as server:
        model = chat(server)
        assert isinstance(model, OpenAIChat)
        assert model.window() == model.window() == 2048
        assert [seen.path for seen in server.asked].count("/props") == 1


def test_ollama_tells_its_window_after_the_first_reply() -> None:
    with FakeChat(kind="ollama", window=2048) as server:
        model = chat(server)
        assert isinstance(model, OpenAIChat)
        assert model.window() is None
        model.complete(request())
        assert model.window() == 2048
        before = len(server.asked)
        model.complete(request())
        assert len(server.asked) == before


def test_a_first_prompt_that_ollama_may_have_cut_is_refused() -> None:
    with FakeChat(kind="ollama", window=256) as server:
        assert failure(chat(server), request("word " * 300)).cause == "too long"
        assert len(server.seen) == 1


def test_the_setting_goes_before_what_the_server_says() -> None:
    with FakeChat(kind="llama.cpp", window=2048) as server:
        model = chat(server, context_tokens=60)
        assert isinstance(model, OpenAIChat)
        assert model.window() == 60
        assert failure(model, request("word " * 20)).cause == "too long"


@pytest.mark.parametrize("kind", ["llama.cpp", "vllm", "ollama"])
@pytest.mark.parametrize("window", ["4096", -1, 0, True, 1.5, None, [1], 10**30])
def test_a_window_of_the_wrong_kind_is_none(kind: str, window: Any) -> None:
    with FakeChat(kind=kind, window=window) as server:
        model = chat(server)
        assert isinstance(model, OpenAIChat)
        model.complete(request())
        assert model.window() is None


@pytest.mark.parametrize("kind", ["llama.cpp", "vllm"])
def test_a_prompt_is_counted_exactly_where_the_server_can(kind: str) -> None:
    with FakeChat(answers(prompt_tokens=30), kind=kind, window=100) as server:
        model = chat(server)
        model.complete(request("documentation " * 50))  # 50 tokens there, 242 by the estimate
        error = failure(model, request("documentation " * 51))
        assert len(server.seen) == 1
    assert error.cause == "too long"
    for part in ("51 tokens", "50", "100", "token_budget"):
        assert part in str(error)


def test_a_prompt_is_estimated_where_the_server_cannot_count() -> None:
    with FakeChat() as server:
        model = chat(server, context_tokens=300)
        model.complete(request("x" * 720))  # 240 + 8 + 50 tokens
        error = failure(model, request("x" * 730))
    assert error.cause == "too long"
    assert "about" in str(error)


@pytest.mark.parametrize(("kind", "read"), [("llama.cpp", 40), ("vllm", 40), ("plain", 20)])
def test_a_prompt_that_was_cut_in_silence_is_noticed(kind: str, read: int) -> None:
    text = "word " * 100
    whole, short = answers(prompt_tokens=60), answers(prompt_tokens=read)
    with FakeChat(whole, short, kind=kind) as server:
        model = chat(server)
        model.complete(request(text))
        assert failure(model, request(text)).cause == "prompt cut"


def test_a_server_that_hangs_when_asked_about_itself_still_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeChat() as server:

        def hang_up(seen: Any) -> Any:
            server.closing.wait()
            return {}, 200

        monkeypatch.setattr(server, "_about", hang_up)
        assert chat(server).complete(request()).text == WHOLE
        server.script = (slow(DEADLINE * 0.6),)  # late, and then asked about itself again
        assert chat(server).complete(request()).text == WHOLE


def test_the_models_on_offer_are_listed() -> None:
    with FakeChat(model="qwen3:8b") as server:
        model = OpenAIChat(server.base_url, "fake", deadline_seconds=DEADLINE)
        assert model.models() == ("qwen3:8b",)
    with pytest.raises(ChatError, match="unreachable"):
        model.models()


# ---- the library -----------------------------------------------------------------------------


def test_nothing_heavy_is_imported_before_the_first_request() -> None:
    program = (
        "import sys, atlas.models\n"
        "atlas.models.load_chat('http://127.0.0.1:9/v1', 'fake')\n"
        "print([name for name in ('openai', 'httpx2', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install '.\[chat\]' in"):
        load_chat("http://127.0.0.1:9/v1", "fake")


def test_a_process_that_has_asked_ends_without_noise() -> None:
    with FakeChat() as server:
        program = (
            "from atlas.models import *\n"
            f"model = load_chat({server.base_url!r}, 'fake')\n"
            "model.complete(ChatRequest(messages=(('user', 'x'),), schema={}, answer_tokens=9))"
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program], capture_output=True, timeout=30
        )
    assert (done.returncode, done.stderr) == (0, b"")


# ---- a real model ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> Iterator[OpenAIChat]:
    with smollm(window=512) as base_url:
        yield OpenAIChat(base_url, SMOLLM, deadline_seconds=60)


@pytest.mark.models
def test_a_real_server_answers_by_the_schema_and_the_same_each_time(real: OpenAIChat) -> None:
    assert real.window() == 512
    assert real.models() == (SMOLLM,)
    first, second = real.complete(request()), real.complete(request())
    assert json.loads(first.text)["status"] in ("answered", "abstained")
    assert first.text == second.text
    assert first.model == SMOLLM


@pytest.mark.models
def test_a_real_server_is_never_sent_more_than_it_can_read(real: OpenAIChat) -> None:
    def outcome(words: int) -> Reply | ChatError:
        try:
            return real.complete(request("word " * words))
        except ChatError as error:
            return error

    fits = {words: outcome(words) for words in (420, 440)}
    assert isinstance(fits[420], Reply)
    assert isinstance(fits[440], ChatError)
    assert fits[440].cause == "too long"
    counted = int(str(fits[440]).split("has ")[1].split(" ")[0])
    assert counted - fits[420].prompt_tokens == 20


@pytest.mark.models
def test_a_real_reply_that_reaches_its_limit_is_cut_short(real: OpenAIChat) -> None:
    with pytest.raises(ChatError) as caught:
        real.complete(request(answer_tokens=3))
    assert caught.value.cause == "cut short"


@pytest.mark.models
def test_the_real_server_ends_with_the_process_that_started_it() -> None:
    program = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, {str(TOOL)!r}], stdout=subprocess.PIPE,"
        " stderr=subprocess.DEVNULL)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    for _ in itertools.repeat(None, 50):
        time.sleep(0.1)
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
    os.kill(child, signal.SIGKILL)
    pytest.fail("the server went on")
