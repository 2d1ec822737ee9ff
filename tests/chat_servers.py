"""Chat servers for tests: one that does what a script says, and a real one with a small model.

    with FakeChat(status(429, retry_after="1"), answers('{"status": "abstained"}')) as server:
        model = load_chat(server.base_url, server.model)

Each request to /chat/completions takes the next behaviour of the script; when it is used up, the
last one goes on for ever. What came in stands in `server.seen`. `kind` lets the server also answer
what llama.cpp, vLLM or Ollama tell about themselves; a `plain` one only lists its model.

`smollm()` starts tools/chat_server.py; tests that use it are marked `models`.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

TOOL = Path(__file__).resolve().parent.parent / "tools" / "chat_server.py"
SMOLLM = "SmolLM2-135M-Instruct"
WHOLE = '{"status": "answered"}'


@dataclass(kw_only=True)
class Seen:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: dict[str, Any]
    at: float
    """`time.monotonic()` when it had come in."""

    @property
    def prompt(self) -> str:
        """The texts of its messages, one below the other."""
        return "\n".join(message["content"] for message in self.body.get("messages", ()))


@dataclass(kw_only=True)
class Exchange:
    """What a behaviour has to work with."""

    request: Seen
    server: FakeChat
    handler: BaseHTTPRequestHandler

    def send(self, data: bytes) -> None:
        """Bytes on the line, as they are."""
        self.handler.wfile.write(data)
        self.handler.wfile.flush()

    def head(self, code: int = 200, **headers: str) -> None:
        """Status line and headers; `_` in a name stands for `-`.

        The connection ends after it, unless the server keeps connections.
        """
        lines = [f"HTTP/1.1 {code} Because", "Content-Type: application/json"]
        lines += [] if self.server.keeps else ["Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode())

    def json(self, value: Any, code: int = 200, **headers: str) -> None:
        """A whole reply."""
        data = json.dumps(value).encode()
        self.head(code, Content_Length=str(len(data)), **headers)
        self.send(data)

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than the server lives."""
        self.server.closing.wait(seconds)


Behaviour = Callable[[Exchange], None]


def completion(text: str | None = WHOLE, *, model: str = "fake", **changes: Any) -> dict[str, Any]:
    """The body of a whole reply. `changes` go into the choice or, by their name, the message."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "stop"}
    for name, value in changes.items():
        (choice if name == "finish_reason" else message)[name] = value
    return {"object": "chat.completion", "model": model, "choices": [choice]}


def answers(
    text: str | Callable[[Seen], str] | None = WHOLE,
    *,
    delay: float = 0.0,
    model: str | None = None,
    prompt_tokens: int | None = None,
    **changes: Any,
) -> Behaviour:
    """A reply with that text, or with what a function makes of the request.

    `delay` is slept before the first byte. `changes` such as `finish_reason="length"` or
    `refusal="no"` go into the reply. `prompt_tokens` are 1 for 4 characters unless given.
    """

    def act(exchange: Exchange) -> None:
        exchange.pause(delay)
        words = text(exchange.request) if callable(text) else text
        name = exchange.server.model if model is None else model
        body = completion(words, model=name, **changes)
        counted = len(exchange.request.prompt) // 4 + 1 if prompt_tokens is None else prompt_tokens
        body["usage"] = {"prompt_tokens": counted, "completion_tokens": len(words or "") // 4 + 1}
        exchange.json(body)

    return act


def raw(data: bytes, code: int = 200) -> Behaviour:
    """A reply with that body and its right length: broken JSON, no bytes, an odd shape."""

    def act(exchange: Exchange) -> None:
        exchange.head(code, Content_Length=str(len(data)))
        exchange.send(data)

    return act


def body(value: Any) -> Behaviour:
    """A reply with that JSON for a body."""
    return raw(json.dumps(value).encode())


def status(
    number: int,
    message: str = "no",
    *,
    retry_after: str = "",
    headers: dict[str, str] | None = None,
    **error: Any,
) -> Behaviour:
    """A failure, with `error` for further fields such as `code` or `param`."""

    def act(exchange: Exchange) -> None:
        extra = {"Retry_After": retry_after} if retry_after else {}
        exchange.json({"error": {"message": message, **error}}, number, **extra, **(headers or {}))

    return act


def hang(exchange: Exchange) -> None:
    """Not one byte, for as long as the server lives."""
    exchange.server.closing.wait()


def slow(seconds: float) -> Behaviour:
    """The first byte comes late."""
    return answers(delay=seconds)


def drip(exchange: Exchange) -> None:
    """A byte every tenth of a second, so that no time limit between bytes ever strikes."""
    data = json.dumps(completion(model=exchange.server.model)).encode()
    exchange.head(Content_Length=str(len(data)))
    for byte in data:
        if exchange.server.closing.wait(0.1):
            return
        exchange.send(bytes([byte]))


def cut(exchange: Exchange) -> None:
    """More bytes are announced than come."""
    data = json.dumps(completion(model=exchange.server.model)).encode()
    exchange.head(Content_Length=str(len(data)))
    exchange.send(data[: len(data) // 2])


def cut_stream(exchange: Exchange) -> None:
    """A body in pieces that stops in the middle of a piece."""
    exchange.head(Transfer_Encoding="chunked")
    exchange.send(b'40\r\n{"choices": [{"mess')


def cut_unannounced(exchange: Exchange) -> None:
    """A body of no announced length that stops in the middle."""
    exchange.head()
    exchange.send(b'{"choices": [{"message": {"content": "{')


def reset(exchange: Exchange) -> None:
    """The connection is reset before the first byte."""
    linger = struct.pack("ii", 1, 0)
    exchange.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    exchange.handler.connection.close()


def huge(exchange: Exchange) -> None:
    """A reply without an end."""
    exchange.head()
    piece = b" " * 65_536
    with contextlib.suppress(OSError):
        while not exchange.server.closing.is_set():
            exchange.send(piece)


def redirect(address: str) -> Behaviour:
    """Sends on to another address."""
    return lambda exchange: exchange.json({}, 307, Location=address)


def echo_key(code: int) -> Behaviour:
    """A failure, or with 200 an answer, that says what stood in the Authorization header."""

    def act(exchange: Exchange) -> None:
        words = f"bad header: {exchange.request.headers.get('authorization')}"
        if code == 200:
            exchange.json(completion(words, model=exchange.server.model))
        else:
            exchange.json({"error": {"message": words}}, code)

    return act


@dataclass
class FakeChat:
    """A server on a port of its own. Use it in a `with` statement."""

    script: tuple[Behaviour, ...]
    model: str
    kind: str
    window: Any
    seen: list[Seen] = field(default_factory=list)
    """Every request but those for the server itself, in order of arrival."""
    asked: list[Seen] = field(default_factory=list)
    """The requests for the server itself: /props, /models, /tokenize and the like."""
    most_in_flight: int = 0
    """Most chat requests at the same time."""

    def __init__(
        self,
        *script: Behaviour,
        model: str = "fake",
        kind: str = "plain",
        window: Any = 4096,
        keeps: bool = False,
    ) -> None:
        self.script = script or (answers(),)
        self.model = model
        self.kind = kind
        self.window = window
        self.keeps = keeps
        """Whether connections stay open for the next request, as real servers do."""
        self.seen = []
        self.asked = []
        self.closing = threading.Event()
        self.loaded = kind != "ollama"
        """Ollama tells its window only of a model that a first request has loaded."""
        self._queue: queue.SimpleQueue[Behaviour] = queue.SimpleQueue()
        for behaviour in self.script:
            self._queue.put(behaviour)
        self._lock = threading.Lock()
        self._in_flight = 0
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = keeps
        self._server.block_on_close = not keeps
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> FakeChat:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()  # also joins the threads of requests

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # the body must not wait for the head to arrive

            def log_message(self, format: str, *values: Any) -> None:
                pass

            def do_GET(self) -> None:
                self.respond()

            def do_POST(self) -> None:
                self.respond()

            def respond(self) -> None:
                self.close_connection = not fake.keeps
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = Seen(
                    method=self.command,
                    path=self.path,
                    headers={name.lower(): value for name, value in self.headers.items()},
                    body=json.loads(data) if data else {},
                    at=time.monotonic(),
                )
                exchange = Exchange(request=request, server=fake, handler=self)
                with contextlib.suppress(OSError):  # the client has gone
                    if self.path == "/v1/chat/completions":
                        fake._chat(exchange)
                    else:
                        fake.asked.append(request)
                        exchange.json(*fake._about(request))

        return Handler

    def _chat(self, exchange: Exchange) -> None:
        with self._lock:
            self.seen.append(exchange.request)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            try:
                behaviour = self._queue.get_nowait()
            except queue.Empty:
                behaviour = self.script[-1]
        self.loaded = True
        try:
            behaviour(exchange)
        finally:
            with self._lock:
                self._in_flight -= 1

    def _about(self, request: Seen) -> tuple[Any, int]:
        """What the server tells about itself, and the status. A token is a word here."""
        path, kind = request.path, self.kind
        if path == "/v1/models":
            entry = {"id": self.model, "object": "model"}
            if kind == "vllm":
                entry["max_model_len"] = self.window
            return {"object": "list", "data": [entry]}, 200
        if kind == "llama.cpp" and path == "/props":
            return {"default_generation_settings": {"n_ctx": self.window}}, 200
        if kind == "llama.cpp" and path == "/apply-template":
            return {"prompt": request.prompt}, 200
        if kind == "llama.cpp" and path == "/tokenize":
            return {"tokens": [1] * len(request.body.get("content", "").split())}, 200
        if kind == "vllm" and path == "/tokenize":
            return {"count": len(request.prompt.split()), "max_model_len": self.window}, 200
        if kind == "ollama" and path == "/api/ps":
            entry = {"name": f"{self.model}:latest", "context_length": self.window}
            return {"models": [entry] if self.loaded else []}, 200
        return {"error": {"message": "File Not Found"}}, 404


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what many tests are about."""

    def shutdown_request(self, request: Any) -> None:
        with contextlib.suppress(OSError):
            super().shutdown_request(request)


@contextlib.contextmanager
def smollm(*, parallel: int = 1, window: int = 4096) -> Iterator[str]:
    """A real server with SmolLM2-135M-Instruct; yields its base URL, and ends it for sure."""
    command = [sys.executable, str(TOOL), "--parallel", str(parallel), "--window", str(window)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    watch = threading.Timer(120, process.kill)  # a server that never starts must not hang a test
    watch.start()
    try:
        base_url = process.stdout.readline().decode().strip()
        watch.cancel()
        if not base_url.startswith("http"):
            raise RuntimeError(f"{TOOL.name} did not start; run it by hand to see why")
        yield base_url
    finally:
        watch.cancel()
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
