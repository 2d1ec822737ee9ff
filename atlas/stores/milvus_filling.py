"""A generation of an index -> a collection in Milvus, filled before the generation is used.

The collection is named after the state folder on this machine and the generation, so that no two
indexes ever share one. It holds for every block its number, those of its document and profile,
its vector, and its terms, from which Milvus makes the keyword index itself. A fill that was killed
leaves a collection of a generation that no longer stands in the state folder; `drop_unused` removes
it, as it does those of generations that were replaced.
"""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atlas.errors import IndexDamagedError, StoreError
from atlas.index import Index
from atlas.stores.milvus_rows import MOST_BYTES, batches
from atlas.stores.milvus_server import Server

FILLS = 2
"""Times that a fill is begun where the count is wrong at its end."""
CALL_SECONDS = 60
SETTLE_SECONDS = 600  # whole seconds: pymilvus waits for ever where it gets others
"""Longest wait for the server to write, index or load a collection."""


def owner(state: Path) -> str:
    """Twelve hex digits for a state folder on this machine, part of its collections' names."""
    place = f"{socket.gethostname()}\0{state.resolve()}"
    return hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def collection_name(index: Index) -> str:
    """The collection of an index. Raises IndexDamagedError where it was made for another store."""
    made = index.manifest.get("store") or {}
    if not re.fullmatch(r"[0-9a-f]{12}", str(made.get("owner"))):
        raise IndexDamagedError(
            f"{index.folder}: was not made for the milvus store; run `atlas ingest`"
        )
    return f"atlas_{made['owner']}_{index.folder.name.removeprefix('g-')}"


def fill(server: Server, index: Index, step: Callable[[int], None]) -> None:
    """Make the collection of an index and put every block in. `step(n)` tells of n more blocks.

    Raises StoreError, and then no collection is left behind where the server can be reached.
    """
    name = collection_name(index)
    for _ in range(FILLS):
        try:
            _make(server, name, index)
            for rows in batches(index):
                _insert(server, name, rows)
                step(len(rows))
            _settle(server, name)
            found = count(server, name)
        except BaseException:
            _drop_quietly(server, name)
            raise
        if found == len(index):
            return
        _drop_quietly(server, name)
        step(-len(index))
    raise StoreError(
        f"{server.where.uri}: Milvus holds {found} blocks after {len(index)} were stored; "
        "run `atlas ingest` again"
    )


def drop_unused(server: Server, state: Path) -> None:
    """Drop the collections of this state folder's generations that are gone.

    A generation that somebody still reads stands in the folder, and its collection stays.
    """
    prefix = f"atlas_{owner(state)}_"
    names = server.ask("listing collections", lambda c: c.list_collections(timeout=CALL_SECONDS))
    for name in names:
        if name.startswith(prefix) and not any(state.glob(f"*/g-{name.removeprefix(prefix)}")):
            _drop(server, name)


def discard(server: Server, index: Index) -> None:
    """Drop a damaged collection of Milvus Lite, which lists no collection while it has one.

    On a server others may still read what is left of it; it goes with its generation.
    """
    if server.where.lite:
        _drop_quietly(server, collection_name(index))


def check_whole(server: Server, name: str, index: Index) -> None:
    """Load a collection and compare it with its index. Raises IndexDamagedError, StoreError.

    Milvus Lite's files are part of the state folder, so those that cannot be loaded are damage.
    """
    try:
        problem = _problem(server, name, index)
    except StoreError as error:
        if server.where.lite:
            # An ingest mends it, and no one else need.
            raise IndexDamagedError(f"{error.found}; `atlas ingest` fills it again") from None
        raise
    if problem:
        raise IndexDamagedError(
            f"{server.where.uri}: collection {name} {problem}; `atlas ingest` fills it again"
        )


def _problem(server: Server, name: str, index: Index) -> str:
    if not server.ask("looking", lambda client: client.has_collection(name, timeout=CALL_SECONDS)):
        return "does not exist"
    server.ask("loading", lambda client: client.load_collection(name, timeout=SETTLE_SECONDS))

    def dimension(client: Any) -> int:
        fields = client.describe_collection(name, timeout=CALL_SECONDS)["fields"]
        return next(int(field["params"]["dim"]) for field in fields if field["name"] == "vector")

    if server.ask("looking", dimension) != index.manifest["dimension"]:
        return "has vectors of another size"
    found = count(server, name)
    return "" if found == len(index) else f"holds {found} of {len(index)} blocks"


def count(server: Server, name: str) -> int:
    """Blocks in a loaded collection, with all that was ever written."""

    def counted(client: Any) -> int:
        rows = client.query(
            name,
            filter="",
            output_fields=["count(*)"],
            consistency_level="Strong",
            timeout=CALL_SECONDS,
        )
        return int(rows[0]["count(*)"])

    return server.ask("counting", counted)


def _make(server: Server, name: str, index: Index) -> None:
    from pymilvus import DataType, Function, FunctionType, MilvusClient

    def make(client: Any) -> None:
        schema = MilvusClient.create_schema(
            auto_id=False,
            enable_dynamic_field=False,
            description=f"atlas generation {index.folder.name}, {len(index)} blocks, encoder "
            f"{index.manifest['encoder']['fingerprint']}",
        )
        schema.add_field("number", DataType.INT64, is_primary=True)
        schema.add_field("document", DataType.INT32)
        schema.add_field("profile", DataType.INT32)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=index.manifest["dimension"])
        schema.add_field(
            "terms",
            DataType.VARCHAR,
            max_length=MOST_BYTES,
            enable_analyzer=True,
            analyzer_params={"tokenizer": "standard"},
        )
        schema.add_field("keyword", DataType.SPARSE_FLOAT_VECTOR)
        schema.add_function(
            Function(
                name="bm25",
                function_type=FunctionType.BM25,
                input_field_names=["terms"],
                output_field_names=["keyword"],
            )
        )
        client.create_collection(
            name, schema=schema, consistency_level="Bounded", timeout=CALL_SECONDS
        )

    server.ask("making a collection", make)


def _settle(server: Server, name: str) -> None:
    """Write, index and load what was sent."""

    def settle(client: Any) -> None:
        client.flush(name, timeout=SETTLE_SECONDS)
        wanted = client.prepare_index_params()
        # Exact searches: with a graph, a narrow scope could come back short.
        wanted.add_index("vector", index_type="FLAT", metric_type="IP")
        wanted.add_index(
            "keyword",
            index_type="SPARSE_INVERTED_INDEX",
            metric_type="BM25",
            params={"bm25_k1": 1.5, "bm25_b": 0.75},  # those of rank_bm25
        )
        wanted.add_index("document", index_type="INVERTED")
        wanted.add_index("profile", index_type="INVERTED")
        # Milvus Lite has made an index when it answers; waiting would look twice a second.
        client.create_index(name, wanted, timeout=SETTLE_SECONDS, sync=not server.where.lite)
        client.load_collection(name, timeout=SETTLE_SECONDS)

    server.ask("indexing", settle)


def _insert(server: Server, name: str, rows: list[dict[str, Any]]) -> None:
    server.ask("storing blocks", lambda client: client.insert(name, rows, timeout=CALL_SECONDS))


def _drop(server: Server, name: str) -> None:
    server.ask("dropping", lambda client: client.drop_collection(name, timeout=CALL_SECONDS))


def _drop_quietly(server: Server, name: str) -> None:
    try:
        _drop(server, name)
    except StoreError:
        return  # the next ingest drops it
