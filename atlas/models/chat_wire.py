"""The connection to a chat server: what leaves this machine, and how much may come back.

Enters: an address, a key, the parameters of a request. Leaves: status, headers and body as they
came, or what broke. Nothing is judged here. Refuses: to follow a redirect, to send a header that
is not named below, to read more of a body than MOST_BYTES.

The client is the `openai` library without its own retries and its own time limits, on one event
loop in a thread of its own: there a call can be ended at any moment, whatever the server does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import weakref
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from atlas.errors import ModelError
from atlas.models.chat_key import Key

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
MOST_BYTES = 2_000_000
"""Most bytes of a body. The longest answer that can be asked for has about 500,000."""
NO_KEY = "none"
"""What is sent where the server wants no key; some servers want the header all the same."""
_HEADERS = {
    "accept", "connection", "content-length", "content-type", "host", "transfer-encoding",
    "user-agent",
    "x-stainless-raw-response",  # by this one the library itself knows how to return the reply
}  # fmt: skip
"""Headers that leave. The library adds others, also from variables such as OPENAI_ORG_ID."""
_LOCK = threading.Lock()
_LOOPS: list[asyncio.AbstractEventLoop] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """A reply of the server, of whatever status. The body of a failure may be cut."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """No whole reply: `cause` is one of ChatError.CAUSES."""

    cause: str
    text: str


class _TooLarge(Exception):
    """More than MOST_BYTES."""


class Wire:
    """A client for one address. Its coroutines run through `run` only."""

    def __init__(self, base_url: str, key: Key) -> None:
        try:
            import httpx2
            import openai
        except ImportError:
            raise ModelError(
                "a chat model needs the library openai, which is not installed;"
                " pip install '.[chat]' in atlas's folder"
            ) from None

        async def leaves(request: httpx2.Request) -> None:
            for name in [name for name in request.headers if name.lower() not in _HEADERS]:
                del request.headers[name]
            request.headers["accept-encoding"] = "identity"  # a packed body hides its size
            request.headers["authorization"] = f"Bearer {key.text or NO_KEY}"

        # The hook must not hold `self`, or the client could never be closed after its last use.
        self._http = httpx2.AsyncClient(
            follow_redirects=False,  # the other address would get the key and the documents
            timeout=None,  # one deadline over everything is kept by the caller
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32),
            event_hooks={"request": [leaves], "response": [_arrives]},
        )
        # Every "" keeps the library from reading a variable of the environment in its place.
        client = openai.AsyncOpenAI(
            api_key=NO_KEY,
            admin_api_key="",
            organization="",
            project="",
            webhook_secret="",
            base_url=base_url,
            max_retries=0,
            timeout=None,
            http_client=self._http,
        )
        # Loads the library's other half now: most of a second, which is not the server's time.
        self._create = client.chat.completions.with_streaming_response.create
        weakref.finalize(self, _close, self._http)

    async def chat(self, parameters: Mapping[str, Any]) -> Arrived | Broken:
        """Send one chat completion, once.

        It is not streamed: a JSON object is either whole or visibly not, its token counts always
        come with it, and no half sentence can be taken for a whole one. The body is read piece by
        piece all the same, so that its size is bounded.
        """
        import httpx2
        import openai

        begun = False
        try:
            # All of it as extra fields, which stand above the named ones: those the library walks
            # through word by word for each call, which takes longer than sending them.
            model = parameters["model"]
            async with self._create(model=model, messages=[], extra_body=parameters) as response:
                begun = True
                raw = response.http_response
                body = b"".join([piece async for piece in raw.aiter_raw()])
                return Arrived(status=raw.status_code, headers=raw.headers, body=body)
        except openai.APIStatusError as error:
            answer = error.response
            return Arrived(status=answer.status_code, headers=answer.headers, body=answer.content)
        except openai.APIConnectionError as error:
            return Broken(
                cause="unreachable", text=str(error.__cause__ or "") or "connection error"
            )
        except _TooLarge:
            return Broken(cause="unreadable", text=f"the reply passes {MOST_BYTES:,} bytes")
        except httpx2.HTTPError as error:
            return Broken(cause="cut short" if begun else "unreachable", text=str(error))

    async def ask(
        self, address: str, body: Mapping[str, Any] | None = None, *, seconds: float
    ) -> dict[str, Any] | None:
        """The JSON object at an address; {} for any other reply, None where none came in time."""
        told = await self.fetch(address, body, seconds=seconds)
        if isinstance(told, Broken):
            return {} if told.cause == "unreadable" else None
        return (json_object(told.body) or {}) if told.status == 200 else {}

    async def fetch(
        self, address: str, body: Mapping[str, Any] | None = None, *, seconds: float
    ) -> Arrived | Broken:
        """What an address tells, of whatever status; the body of another status than 200 is b""."""
        import httpx2

        try:
            async with asyncio.timeout(seconds):
                method = "GET" if body is None else "POST"
                async with self._http.stream(method, address, json=body) as response:
                    text = b""
                    if response.status_code == 200:
                        text = b"".join([piece async for piece in response.aiter_raw()])
                    status, headers = response.status_code, response.headers
                    return Arrived(status=status, headers=headers, body=text)
        except TimeoutError:
            return Broken(cause="deadline", text=f"no answer within {seconds:g} s")
        except httpx2.HTTPError as error:
            return Broken(cause="unreachable", text=str(error) or type(error).__name__)
        except _TooLarge:
            return Broken(cause="unreadable", text=f"the reply passes {MOST_BYTES:,} bytes")


async def _arrives(response: httpx2.Response) -> None:
    """Bound the body. That of a failure is cut there: only its first words are of use."""
    import httpx2

    assert isinstance(response.stream, httpx2.AsyncByteStream)
    stream: httpx2.AsyncByteStream = response.stream
    failure = response.status_code >= 300

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            try:
                async for piece in stream:
                    size += len(piece)
                    if size > MOST_BYTES:
                        if failure:
                            return
                        raise _TooLarge
                    yield piece
            except httpx2.HTTPError:
                if not failure:
                    raise

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = Bounded()
    if "content-encoding" in response.headers:  # not asked for; left packed, so it is no JSON
        del response.headers["content-encoding"]


def json_object(body: bytes) -> dict[str, Any] | None:
    """The JSON object that a body holds, or None."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def run(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Run a coroutine on the private loop. Raises TimeoutError when the time has passed."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return future.result(seconds)
    except BaseException:
        future.cancel()
        raise


def _loop() -> asyncio.AbstractEventLoop:
    with _LOCK:
        if not _LOOPS:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="atlas-chat", daemon=True).start()
            _LOOPS.append(loop)
        return _LOOPS[0]


def _close(client: httpx2.AsyncClient) -> None:
    """Close idle connections when nobody can use them any more; nobody waits for it."""
    with contextlib.suppress(RuntimeError):
        asyncio.run_coroutine_threadsafe(client.aclose(), _loop())
