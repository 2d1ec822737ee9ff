"""Address and token from the environment -> a connection to Milvus.

    ATLAS_MILVUS_URI    http(s)://host:19530[/database], or a path that ends in .db for Milvus Lite,
                        which runs inside this process; milvus.db in the state folder without it
    ATLAS_MILVUS_TOKEN  user:password or a key, for servers that want one

Every problem becomes one StoreError that names the address and never the token.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from atlas.errors import StoreError
from atlas.settings import address_problem

URI = "ATLAS_MILVUS_URI"
TOKEN = "ATLAS_MILVUS_TOKEN"
FORMS = "http(s)://host:port, https://host:port/database, or a path ending in .db"
CONNECT_SECONDS = 10.0
"""Longest wait for a connection."""
LITE_OPTIONS = {"grpc.keepalive_time_ms": 2**31 - 1}
"""Milvus Lite hangs up on a client that asks every ten seconds whether it is there."""
SHOWN = 200
"""Most characters of a server's own words in a message."""
NOT_FOUND = 100
"""Milvus's code for a collection that does not exist."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the store is."""

    uri: str
    """What the user wrote, or the path of Milvus Lite's folder."""
    lite: bool
    """Whether it is a folder that Milvus Lite keeps."""
    token: str = field(default="", repr=False)


def address(state: Path) -> Address:
    """The address that the environment names, for an index in this state folder.

    Raises StoreError for one that is neither a server's nor a path of Milvus Lite. What is wrong
    is not repeated: it may hold a password.
    """
    uri = os.environ.get(URI, "").strip()
    token = os.environ.get(TOKEN, "").strip()
    if not uri:
        return Address(uri=str((state / "milvus.db").resolve()), lite=True)
    if "://" not in uri:
        if not uri.endswith(".db"):
            raise StoreError(f"{URI} is no address; expected {FORMS}")
        path = Path(uri).resolve()
        if not path.parent.is_dir():
            raise StoreError(f"{URI}: the folder {path.parent} does not exist; make it first")
        return Address(uri=str(path), lite=True)
    problem = address_problem(uri)
    if problem == "shape":
        raise StoreError(f"{URI} is no address; expected {FORMS}")
    if problem:
        raise StoreError(
            f"{URI} holds a user, a password or a query; put user:password or the key into "
            f"{TOKEN}, and write the address as {FORMS}"
        )
    return Address(uri=uri.rstrip("/"), lite=False, token=token)


class Server:
    """A connection. `close` it, or let it go: Milvus Lite stops with its last user."""

    def __init__(self, where: Address) -> None:
        """Raises StoreError where nothing answers, and where a library is missing."""
        self.where = where
        uri = _start_lite(where.uri) if where.lite else where.uri
        release = _stop_lite if where.lite else _nothing
        try:
            self._client = self._connected(uri)
        except BaseException:
            release(where.uri)
            raise
        self._held = weakref.finalize(self, _closed, self._client, release, where.uri)

    def _connected(self, uri: str) -> Any:
        client_class = _pymilvus(self.where).MilvusClient

        def connect(_: Any) -> Any:
            # A connection of one's own is closed with it; shared ones outlive their server.
            return client_class(
                uri=uri,
                token=self.where.token,
                timeout=CONNECT_SECONDS,
                dedicated=True,
                grpc_options=LITE_OPTIONS if self.where.lite else {},
            )

        return self._attempt("connecting", connect, None)

    def ask(self, what: str, call: Callable[[Any], T]) -> T:
        """What `call(client)` gives; `what` names it where it fails, as in `searching`."""
        return self._attempt(what, call, self._client)

    def _attempt(self, what: str, call: Callable[[Any], T], client: Any) -> T:
        try:
            return call(client)
        except StoreError:
            raise
        except Exception as error:  # of pymilvus, grpc, or a reply that they cannot read
            raise StoreError(self._told(what, error)) from None

    def _told(self, what: str, error: Exception) -> str:
        import grpc

        words = str(getattr(error, "message", "") or error)
        codes = list(_codes(error))
        if self.where.token:
            for secret in (self.where.token, *self.where.token.split(":", 1)[1:]):
                words = words.replace(secret, "***") if secret else words
        words = " ".join(words.split())
        words = words if len(words) <= SHOWN else words[:SHOWN] + "…"
        refused = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
        if set(codes) & refused or re.search(r"authenticat|unauthori", words, re.IGNORECASE):
            return (
                f"{self.where.uri}: Milvus refused the token while {what}; set {TOKEN} to "
                "user:password or a key"
            )
        gone = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
        if set(codes) & gone or what == "connecting":
            return (
                f"{self.where.uri}: no Milvus answers while {what}; start the server or correct "
                f"{URI}, or set `store: local`"
            )
        if NOT_FOUND in codes:
            return (
                f"{self.where.uri}: Milvus lacks what was asked for while {what} ({words}); open "
                "the collection again, or run `atlas ingest`"
            )
        if self.where.lite:
            return (
                f"{self.where.uri}: Milvus Lite failed while {what} ({words}); remove the folder "
                f"{self.where.uri} and run `atlas ingest`"
            )
        return f"{self.where.uri}: Milvus failed while {what} ({words}); its log says more"

    def version(self) -> str:
        """The server's version as it tells it, such as `2.6.4`."""
        return str(self.ask("asking for its version", lambda client: client.get_server_version()))

    def close(self) -> None:
        """End the connection."""
        self._held()


def _codes(error: BaseException | None) -> Iterator[Any]:
    """The codes of an error and of those that it came from, by gRPC and by Milvus."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:  # pymilvus names errors their own cause
        code = getattr(error, "code", None)
        yield code() if callable(code) else code
        seen.append(error)
        error = error.__cause__


def connected(state: Path) -> closing[Server]:
    """A connection for a `with`, to the address for an index in this state folder."""
    return closing(Server(address(state)))


def _pymilvus(where: Address) -> Any:
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what it prints is raised as well
    try:
        import pymilvus
    except ImportError:
        raise StoreError(
            f"{where.uri}: `store: milvus` needs pymilvus; pip install 'atlas[milvus]', or set "
            "`store: local`"
        ) from None
    # It prints every failure that it also raises.
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL + 1)
    return pymilvus


# ---- Milvus Lite ----------------------------------------------------------------------------

_users: dict[str, int] = {}
_lite = threading.Lock()


def _start_lite(path: str) -> str:
    """The address of Milvus Lite over a folder, started where it does not run yet."""
    where = Address(uri=path, lite=True)
    _pymilvus(where)
    try:
        from milvus_lite import MilvusLite
        from milvus_lite.server_manager import server_manager_instance
    except ImportError:
        raise StoreError(
            f"{path}: Milvus Lite is not installed; pip install 'atlas[milvus]', or name a server "
            f"in {URI}"
        ) from None
    logging.getLogger("milvus_lite").setLevel(logging.CRITICAL + 1)
    with _lite:
        uri = server_manager_instance.start_and_get_uri(path)
        if uri is not None:
            _users[path] = _users.get(path, 0) + 1
            return str(uri)
        try:  # it keeps to itself why, so the same is tried without the server around it
            MilvusLite(path).close()
            reason = "it did not start"
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:SHOWN]}"
    if "Locked" in reason:
        raise StoreError(
            f"{path}: another process uses it, and Milvus Lite serves one at a time; wait for "
            f"that one, or name a server in {URI}"
        )
    raise StoreError(
        f"{path}: Milvus Lite cannot open it ({reason}); remove the folder {path} and run "
        "`atlas ingest`"
    )


def _stop_lite(path: str) -> None:
    from milvus_lite.server_manager import server_manager_instance

    with _lite:
        _users[path] = _users.get(path, 1) - 1
        if _users[path] <= 0:
            del _users[path]
            server_manager_instance.release_server(path)


def _nothing(path: str) -> None:
    """A server that others run goes on."""


def _closed(client: Any, release: Callable[[str], None], path: str) -> None:
    client.close()
    release(path)
