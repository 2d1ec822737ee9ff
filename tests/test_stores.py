"""The same behaviour from every store, and what a server can do wrong."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent import futures
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FakeEncoder
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from small import FILES, MANUAL, QUESTION, SETTINGS, WARRANTY, collection, command, opened
from small import use_fakes as fakes

from atlas import Scope
from atlas.assistant import Assistant
from atlas.collection import Collection
from atlas.errors import IndexDamagedError, SettingsError, StoreError
from atlas.index import Index
from atlas.ingest import ingest
from atlas.keyword import ScopedBM25
from atlas.settings import load_settings
from atlas.stores import Candidates, Store, describe_store, open_store
from atlas.stores import milvus_filling as filling
from atlas.stores import milvus_rows as rows
from atlas.stores import milvus_server as servers
from atlas.stores.milvus import MilvusStore
from atlas.stores.milvus_scope import expression
from atlas.words import terms

STORES = ("local", "milvus")
CHANGING = ("id", "time", "timings_seconds", "fingerprints")
WORDS = "saddle lock chain frame wheel brake light bell pump crank".split()
METADATA = ("products: [C-3]", "products: [T-7]", "readers: [sales]", "valid_from: 2026-01-01")
PAPERS = {
    f"{n:02}.md": f"---\n{METADATA[n % 4]}\n---\n# Paper {n}\n\n## One\n\nThe {WORDS[n % 10]} and "
    f"the {WORDS[(n * 3) % 10]} of {n}.\n\n## Two\n\nA bell weighs {n} kg.\n"
    for n in range(30)
} | {
    "80.md": "# Signs\n\nBelow -5 °C the Überzug shrinks by 2.5 % and 日本語 shows. E-417 it is.\n",
    "81.md": "# Other signs\n\nThe manual speaks of e 417 and of u8x61 too.\n",
    "90.md": "# Twin\n\nTwo horns blow.\n",
    "91.md": "# Twin\n\nTwo horns blow.\n",
}


@pytest.fixture(autouse=True)
def _no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes(monkeypatch)
    for name in (servers.URI, servers.TOKEN):
        monkeypatch.delenv(name, raising=False)


def with_store(name: str, settings: str = SETTINGS) -> str:
    return f"{settings}store: {name}\n"


@pytest.fixture(scope="module", params=STORES)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An assistant over the papers, with one store after the other."""
    root = tmp_path_factory.mktemp(request.param) / "c"
    settings = with_store(request.param, SETTINGS.replace("sample: [WARR]\n", ""))
    with pytest.MonkeyPatch.context() as monkeypatch:
        fakes(monkeypatch)
        monkeypatch.delenv(servers.URI, raising=False)
        with opened(collection(root, PAPERS, settings=settings, cases=None)) as made:
            yield made


@pytest.fixture
def milvus(tmp_path: Path) -> Iterator[Assistant]:
    """An assistant of a few blocks, with Milvus Lite of its own."""
    made = opened(collection(tmp_path / "c", settings=with_store("milvus"), cases=None))
    yield made
    made.store.close()
    made.index.close()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assistant]:
    """The same for many tests, which change nothing in it."""
    root = tmp_path_factory.mktemp("kept") / "c"
    with pytest.MonkeyPatch.context() as monkeypatch:
        fakes(monkeypatch)
        monkeypatch.delenv(servers.URI, raising=False)
        with opened(collection(root, settings=with_store("milvus"), cases=None)) as made:
            yield made


def scope_of(index: Index, mask: Sequence[bool] | np.ndarray[Any, Any]) -> ScopedBM25:
    return ScopedBM25(index.postings, np.asarray(mask, bool))


def found(
    asked: Assistant, text: str, mask: Any = None, count: int = 100, store: Store | None = None
) -> Candidates:
    index = asked.index
    scope = scope_of(index, np.ones(len(index), bool) if mask is None else mask)
    vector = FakeEncoder().encode_question(text)
    return (store or asked.store).candidates(terms(text), vector, scope, count)


def masks(index: Index, count: int) -> Iterator[np.ndarray[Any, Any]]:
    """Scopes as atlas makes them, and others: by profile, by document, by block."""
    chance = np.random.default_rng(7)
    for place in range(count):
        share = chance.random()
        groups = (index.block_profile, index.block_document, np.arange(len(index)))[place % 3]
        yield (chance.random(int(groups.max()) + 1) < share)[groups]


# ---- the same from every store --------------------------------------------------------------


def test_nothing_out_of_scope_and_everything_in_it(asked: Assistant) -> None:
    index = asked.index
    sizes = set()
    for mask in masks(index, 36):
        numbers = found(asked, "the bell of the crank", mask).numbers
        assert sorted(numbers.tolist()) == np.flatnonzero(mask).tolist()
        sizes.add(int(mask.sum()))
    assert min(sizes) < 10 < 60 < max(sizes)


@pytest.mark.parametrize("count", [1, 3, 100])
def test_both_scores_of_every_candidate(asked: Assistant, count: int) -> None:
    index = asked.index
    text = "the bell of the crank"
    vector = FakeEncoder().encode_question(text)
    cosines = index.vectors.cosines(vector, np.arange(len(index)))
    for mask in masks(index, 9):
        if not mask.any():
            continue
        some = found(asked, text, mask, count)
        keyword, matched = scope_of(index, mask).scores(terms(text))
        assert len(set(some.numbers.tolist())) == len(some.numbers)
        assert some.cosine == pytest.approx(cosines[some.numbers], abs=1e-5)
        assert some.matched.tolist() == matched[some.numbers].tolist()
        assert some.keyword == pytest.approx(keyword[some.numbers], abs=1e-9)
        size = min(count, int(mask.sum()))
        near = np.sort(cosines[mask])[::-1][:size]
        assert np.sort(some.cosine)[::-1][:size] == pytest.approx(near, abs=1e-5)
        assert size <= len(some.numbers) <= 2 * count
        assert some.matched.sum() >= min(size, int(matched.sum()))


def test_the_best_by_words_come_first(asked: Assistant) -> None:
    some = found(asked, "horns", count=2)
    assert {asked.index.block(n).document for n in some.numbers[some.matched]} == {"90", "91"}
    assert len(set(some.keyword[some.matched].tolist())) == 1


def test_an_empty_scope_has_no_candidates(asked: Assistant) -> None:
    some = found(asked, "bell", np.zeros(len(asked.index), bool))
    assert len(some.numbers) == len(some.keyword) == len(some.matched) == len(some.cosine) == 0


@pytest.mark.parametrize("text", ["unheard xylophone", "", "\ud800"])
def test_words_of_no_block_match_nothing(asked: Assistant, text: str) -> None:
    some = found(asked, text)
    assert len(some.numbers)
    assert not some.matched.any()
    assert not some.keyword.any()


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("E-417", {"80"}),
        ("e417", {"80"}),
        ("überzug", {"80"}),
        ("日本語", {"80"}),
        ("2.5%", {"80"}),
        ("5 °C", {"80"}),
        ("u8x61", {"81"}),
        ("a", set()),
    ],
)
def test_terms_are_found_whole(asked: Assistant, text: str, documents: set[str]) -> None:
    some = found(asked, text)
    matching = {asked.index.block(n).document for n in some.numbers[some.matched]}
    assert matching & {"80", "81"} == documents


def test_scopes_of_readers_days_and_products_are_exact(asked: Assistant) -> None:
    for scope in (Scope(), Scope(reader="sales"), Scope(products=("C-3",))):
        trace = asked.ask("how heavy is a bell", scope).values
        seen = asked.understand("how heavy is a bell", scope).seen
        supplied = {row["ref"] for row in (*trace["context"], *trace["dropped"])}
        allowed = {asked.index.block(n).ref for n in np.flatnonzero(seen.blocks)}
        assert supplied
        assert supplied <= allowed


def test_a_trace_says_which_store_and_whose_statistics(asked: Assistant) -> None:
    prints = asked.ask("how heavy is a bell").values["fingerprints"]
    local = asked.settings.store == "local"
    assert prints["store"].split()[0] == asked.settings.store
    others = "" if local else ", candidates by those of the collection"
    assert prints["keyword_statistics"] == f"scope{others}"
    assert asked.settings.index_key()["store"] == asked.settings.store


def test_one_line_tells_of_the_store(asked: Assistant) -> None:
    line = describe_store(asked.settings.store, asked.index)
    assert line.startswith(asked.settings.store)
    assert f"{len(asked.index)} blocks" in line


@pytest.mark.parametrize("store", STORES)
def test_a_changed_document_is_answered_from(store: str, tmp_path: Path) -> None:
    root = collection(tmp_path / "c", settings=with_store(store), cases=None)
    with opened(root) as made:
        assert "3 years" in made.ask(QUESTION).values["answer"]
    made.index.close()
    changed = WARRANTY.replace("3 years", "9 years")
    (root / "documents" / "warranty.md").write_text(changed, encoding="utf-8")
    with opened(root) as again:
        assert "9 years" in again.ask(QUESTION).values["answer"]


@pytest.mark.parametrize("store", STORES)
def test_a_reader_goes_on_while_the_index_is_replaced(store: str, tmp_path: Path) -> None:
    root = collection(tmp_path / "c", settings=with_store(store), cases=None)
    with opened(root) as reader:
        (root / "documents" / "new.md").write_text("# New\n\nA horn blows.\n", encoding="utf-8")
        assert ingest(Collection.open(root)).built
        with opened(root) as other:
            assert len(other.index) == len(reader.index) + 1
            assert "3 years" in reader.ask(QUESTION).values["answer"]
            assert "3 years" in other.ask(QUESTION).values["answer"]


@pytest.mark.parametrize("store", STORES)
def test_what_is_out_of_scope_moves_no_score(store: str, tmp_path: Path) -> None:
    fewer = {name: text for name, text in FILES.items() if name != "prices.md"}
    traces = []
    for place, files in (("with", FILES), ("without", fewer)):
        root = collection(tmp_path / place, files, settings=with_store(store), cases=None)
        with opened(root) as made:
            values = made.ask("what does the battery of the C-3 cost under warranty").values
        assert values["context"]
        traces.append({name: values[name] for name in values if name not in CHANGING})
    assert traces[0] == traces[1]


# ---- how a scope and a term are told to Milvus ----------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
    st.sampled_from(["profile", "document", "block"]),
)
@examples(max_examples=100, deadline=None)
def test_an_expression_holds_for_the_mask_and_nothing_else(
    documents: list[tuple[int, int]], chance: Any, level: str
) -> None:
    class Drawn:
        block_profile = np.repeat([p for p, _ in documents], [n for _, n in documents])
        block_document = np.repeat(np.arange(len(documents)), [n for _, n in documents])

    size = len(Drawn.block_profile)
    groups = {
        "profile": Drawn.block_profile,
        "document": Drawn.block_document,
        "block": np.arange(size),
    }[level]
    mask = np.array([chance.random() < 0.5 for _ in range(int(groups.max()) + 1)])[groups]
    text = expression(mask, Drawn)  # type: ignore[arg-type]
    for number in range(size):
        values = {
            "number": number,
            "profile": int(Drawn.block_profile[number]),
            "document": int(Drawn.block_document[number]),
        }
        assert (not text or eval(text, {}, values)) == mask[number]


def test_a_scope_of_most_documents_has_a_short_expression() -> None:
    class Large:
        block_document = np.repeat(np.arange(10_000), 10)
        block_profile = block_document % 7

    mask = Large.block_profile != 3
    mask[Large.block_document == 4_001] = False
    assert expression(mask, Large) == "not (profile in [3] or document in [4001])"  # type: ignore[arg-type]
    assert expression(np.ones(100_000, bool), Large) == ""  # type: ignore[arg-type]


@given(st.lists(st.text(min_size=1, max_size=6), min_size=2, max_size=2, unique=True))
def test_two_terms_are_never_told_alike(pair: list[str]) -> None:
    one, other = map(rows.encoded, pair)
    assert one != other
    assert all(c.isascii() and c.isalnum() and c == c.lower() for c in one)
    assert one != rows.HEXED


# ---- generations and collections ------------------------------------------------------------


def names_of(made: Assistant) -> list[str]:
    assert isinstance(made.store, MilvusStore)
    return sorted(made.store.server.ask("listing", lambda client: client.list_collections()))


def test_the_collection_of_a_generation_goes_when_nobody_reads_it(milvus: Assistant) -> None:
    root, first = milvus.collection.root, names_of(milvus)
    assert len(first) == 1
    path = root / "documents" / "new.md"
    path.write_text("# New\n\nA horn blows.\n", encoding="utf-8")
    ingest(Collection.open(root))
    assert len(names_of(milvus)) == 2
    assert "3 years" in milvus.ask(QUESTION).values["answer"]
    milvus.index.close()
    path.write_text("# New\n\nTwo horns blow.\n", encoding="utf-8")
    ingest(Collection.open(root))
    assert len(names_of(milvus)) == 1
    assert first != names_of(milvus)


def test_foreign_collections_are_left_alone(milvus: Assistant) -> None:
    assert isinstance(milvus.store, MilvusStore)
    for name in ("atlas_0123456789ab_0123456789ab", "invoices"):
        milvus.store.server.ask(
            "making", lambda client, name=name: client.create_collection(name, dimension=4)
        )
    (milvus.collection.root / "documents" / "new.md").write_text("# A\n\nHorn.\n", "utf-8")
    ingest(milvus.collection)
    assert {"atlas_0123456789ab_0123456789ab", "invoices"} < set(names_of(milvus))


def test_a_killed_fill_changes_no_answer_and_is_cleared_away(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", settings=with_store("milvus"), cases=None)
    with opened(root) as made:
        before = made.index.folder.name
    made.index.close()
    path = root / "documents" / "warranty.md"
    path.write_text(WARRANTY.replace("3 years", "9 years"), encoding="utf-8")
    killing = (
        "import os, signal\n"
        "from atlas.stores import milvus_filling\n"
        "milvus_filling._settle = lambda *given: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run(
        command("ingest", "-C", str(root), before=killing), capture_output=True, timeout=60
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    path.write_text(WARRANTY, encoding="utf-8")
    index = Index.open(root / ".atlas" / "full", root / ".atlas")
    assert index is not None
    assert index.folder.name == before
    store = open_store("milvus", index)
    assert isinstance(store, MilvusStore)
    assert len(store.server.ask("listing", lambda client: client.list_collections())) == 2
    store.close()
    index.close()
    with opened(root) as again:
        assert "3 years" in again.ask(QUESTION).values["answer"]
        assert len(names_of(again)) == 1


def test_a_failed_fill_leaves_the_old_index_and_no_collection(
    milvus: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(server: Any, name: str) -> None:
        raise StoreError("the disk of the server is full")

    monkeypatch.setattr(filling, "_settle", full)
    (milvus.collection.root / "documents" / "new.md").write_text("# A\n\nHorn.\n", "utf-8")
    with pytest.raises(StoreError, match="disk of the server"):
        ingest(milvus.collection)
    assert len(names_of(milvus)) == 1
    assert [path.name for path in milvus.index.folder.parent.glob("g-*")] == [
        milvus.index.folder.name
    ]
    assert "3 years" in milvus.ask(QUESTION).values["answer"]


def test_a_count_that_stays_wrong_ends_the_ingest(
    milvus: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "count", lambda server, name: 3)
    (milvus.collection.root / "documents" / "new.md").write_text("# A\n\nHorn.\n", "utf-8")
    with pytest.raises(StoreError, match=r"holds 3 blocks after \d were stored; run"):
        ingest(milvus.collection)
    assert len(names_of(milvus)) == 1


def test_old_collections_that_cannot_be_dropped_are_only_told(
    milvus: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = iter([None, StoreError("it is away")])

    def tidy(name: str, state: Path) -> None:
        problem = next(given)
        if problem is not None:
            raise problem

    monkeypatch.setattr("atlas.ingest.tidy_store", tidy)
    (milvus.collection.root / "documents" / "new.md").write_text("# A\n\nHorn.\n", "utf-8")
    report = ingest(milvus.collection)
    assert report.built
    assert report.warnings == (
        "collections that were replaced stay until the next ingest: it is away",
    )


def test_a_block_too_long_for_milvus_is_named(tmp_path: Path) -> None:
    long = " ".join(f"x{n:06}" for n in range(9_000))
    files = {**FILES, "long.md": f"# Long\n\n{long}\n"}
    settings = with_store("milvus", SETTINGS + "block_size: section\n")
    root = collection(tmp_path / "c", files, settings=settings, cases=None)
    with pytest.raises(StoreError, match=r"block long-0-p0 has \d+ bytes of terms.*65535; lower"):
        opened(root)


@pytest.mark.parametrize("damage", ["dropped", "short", "emptied", "halved", "deleted", "schema"])
def test_a_damaged_collection_is_named_and_ingest_fills_it(damage: str, milvus: Assistant) -> None:
    assert isinstance(milvus.store, MilvusStore)
    store, folder = milvus.store, milvus.collection.state / "milvus.db"
    if damage == "dropped":
        store.server.ask("dropping", lambda client: client.drop_collection(store.collection))
    elif damage == "short":
        store.server.ask("deleting", lambda client: client.delete(store.collection, ids=[1]))
    store.close()
    if damage == "deleted":
        shutil.rmtree(folder)
    elif damage in ("emptied", "halved"):
        for path in folder.rglob("*.parquet"):
            data = path.read_bytes()
            path.write_bytes(data[: len(data) // 2] if damage == "halved" else b"")
    elif damage == "schema":
        next(folder.rglob("schema.json")).write_text("{", "utf-8")
    with pytest.raises(IndexDamagedError, match=r"milvus\.db: .*; `atlas ingest` fills") as caught:
        open_store("milvus", milvus.index)
    assert "remove" not in str(caught.value), "an ingest is enough"
    report = ingest(milvus.collection)
    assert report.built
    [note] = report.warnings
    assert note.startswith(f"{folder}: ")
    assert note.endswith("; this ingest has mended it")
    assert "`atlas ingest`" not in note
    with opened(milvus.collection.root) as again:
        assert "3 years" in again.ask(QUESTION).values["answer"]
        assert len(names_of(again)) == 1


def test_damage_that_stops_an_ingest_names_the_folder_to_remove(milvus: Assistant) -> None:
    folder = milvus.collection.state / "milvus.db"
    milvus.store.close()
    next(folder.rglob("schema.json")).write_text("{", "utf-8")
    (milvus.collection.root / "documents" / "new.md").write_text("# A\n\nHorn.\n", "utf-8")
    with pytest.raises(StoreError) as caught:
        ingest(milvus.collection)
    assert str(caught.value).endswith(f"; remove the folder {folder} and run `atlas ingest`")
    shutil.rmtree(folder)
    assert ingest(milvus.collection).built


def test_a_server_is_used_by_its_address_and_by_two_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    server, files, port = start_server_in_thread(str(tmp_path / "server"))
    try:
        monkeypatch.setenv(servers.URI, f"http://127.0.0.1:{port}")
        root = collection(tmp_path / "c", settings=with_store("milvus"), cases=None)
        with opened(root) as made:
            done = subprocess.run(
                command("ask", QUESTION, "-C", str(root)), capture_output=True, timeout=60
            )
            assert b"3 years" in done.stdout, done.stderr
            assert "3 years" in made.ask(QUESTION).values["answer"]
            assert f"at http://127.0.0.1:{port}: " in describe_store("milvus", made.index)
        assert not (root / ".atlas" / "milvus.db").exists()
    finally:
        server.stop(0).wait(5)
        files.close()


def test_an_index_of_another_store_is_built_again(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", cases=None)
    with opened(root) as local:
        pass
    with pytest.raises(IndexDamagedError, match="was not made for the milvus store; run"):
        open_store("milvus", local.index)
    local.index.close()
    (root / "atlas.yaml").write_text(with_store("milvus"), encoding="utf-8")
    with opened(root) as made:
        assert isinstance(made.store, MilvusStore)
        assert "3 years" in made.ask(QUESTION).values["answer"]


def test_milvus_lite_serves_one_process_and_says_so(kept: Assistant) -> None:
    folder = kept.collection.state / "milvus.db"
    done = subprocess.run(
        command("ingest", "-C", str(kept.collection.root)), capture_output=True, timeout=60
    )
    assert done.returncode == 2
    line = done.stderr.decode().strip()
    assert line.endswith(
        f"{folder}: another process uses it, and Milvus Lite serves one at a time; wait for "
        f"that one, or name a server in {servers.URI}"
    )


# ---- what a server can do wrong -------------------------------------------------------------


class Answering:
    """A client that gives the same hits to every search."""

    def __init__(self, hits: list[dict[str, Any]]) -> None:
        self.hits = hits

    def search(self, *given: Any, **options: Any) -> list[list[dict[str, Any]]]:
        return [self.hits]


def hit(number: Any, distance: Any = 0.5) -> dict[str, Any]:
    return {"number": number, "distance": distance}


@pytest.mark.parametrize(
    ("hits", "problem"),
    [
        ([hit(0)], "a block out of scope"),
        ([hit(10**9)], "a block that the index does not have"),
        ([hit(-1)], "a block that the index does not have"),
        ([hit("1")], "a block that the index does not have"),
        ([hit(1), hit(1)], "more blocks than were asked for"),
        ([hit(1, float("nan"))], "a score that is no number"),
        ([hit(1, 0.99)], "a cosine of 0.990 for one of 0."),
        ([hit(1, "high")], "could not convert"),
        ([{}], "number"),
        ([hit(n) for n in range(1, 5)] * 9, "more blocks than were asked for"),
    ],
)
def test_what_a_server_answers_is_checked(
    kept: Assistant, hits: list[dict[str, Any]], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(kept.store, MilvusStore)
    monkeypatch.setattr(kept.store.server, "_client", Answering(hits))
    mask = np.ones(len(kept.index), bool)
    mask[0] = False
    with pytest.raises(StoreError, match=problem) as caught:
        found(kept, "battery", mask)
    assert "milvus.db" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lite", "advice"),
    [
        (True, r"; remove \S+milvus\.db and run `atlas ingest`$"),
        (False, r"; drop its collection atlas_\w+ and run `atlas ingest`$"),
    ],
)
def test_who_gets_a_wrong_answer_is_told_how_to_be_rid_of_it(
    kept: Assistant, lite: bool, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(kept.store, MilvusStore)
    server = kept.store.server
    monkeypatch.setattr(server, "_client", Answering([hit(-1)]))
    monkeypatch.setattr(server, "where", replace(server.where, lite=lite))
    with pytest.raises(StoreError, match=advice):
        found(kept, "battery", np.ones(len(kept.index), bool))


def test_a_collection_dropped_while_it_is_read_is_an_error(milvus: Assistant) -> None:
    assert isinstance(milvus.store, MilvusStore)
    name = milvus.store.collection
    milvus.store.server.ask("dropping", lambda client: client.drop_collection(name))
    with pytest.raises(StoreError, match=r"milvus\.db: .*searching.*atlas ingest"):
        milvus.ask(QUESTION)


@pytest.fixture
def unanswered(monkeypatch: pytest.MonkeyPatch) -> str:
    """An address where nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    monkeypatch.setattr(servers, "CONNECT_SECONDS", 2.0)
    return f"http://127.0.0.1:{port}"


def test_a_server_that_is_away_is_named_without_the_token(
    kept: Assistant, unanswered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(servers.URI, unanswered)
    monkeypatch.setenv(servers.TOKEN, "root:sesame")
    started = time.perf_counter()
    for attempt in (
        lambda: opened(kept.collection.root),
        lambda: ingest(kept.collection),
        lambda: describe_store("milvus", kept.index),
    ):
        with pytest.raises(StoreError) as caught:
            attempt()
        assert str(caught.value) == (
            f"{unanswered}: no Milvus answers while connecting; start the server or correct "
            f"{servers.URI}, or set `store: local`"
        )
    assert time.perf_counter() - started < 15


def test_a_new_collection_without_its_server_reads_no_document(
    tmp_path: Path, unanswered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(servers.URI, unanswered)
    root = collection(tmp_path / "c", settings=with_store("milvus"), cases=None)
    monkeypatch.setattr(Collection, "files", lambda self: pytest.fail("files were looked at"))
    with pytest.raises(StoreError, match="no Milvus answers"):
        ingest(Collection.open(root))


@pytest.fixture
def refusing() -> Iterator[str]:
    """A server that refuses every token and repeats it."""
    import grpc

    class Refuses(grpc.GenericRpcHandler):
        def service(self, details: Any) -> Any:
            shown = dict(details.invocation_metadata).get("authorization", "")

            def refuse(request: Any, context: Any) -> None:
                import base64

                told = base64.b64decode(shown).decode()
                context.abort(grpc.StatusCode.UNAUTHENTICATED, f"bad token {told}")

            return grpc.unary_unary_rpc_method_handler(refuse)

    server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[Refuses()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"http://127.0.0.1:{port}"
    server.stop(0).wait(5)


def test_a_refused_token_is_not_repeated(
    kept: Assistant, refusing: str, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setenv(servers.URI, refusing)
    monkeypatch.setenv(servers.TOKEN, "root:open-sesame")
    monkeypatch.setattr(servers, "CONNECT_SECONDS", 2.0)
    with pytest.raises(StoreError) as caught:
        opened(kept.collection.root)
    assert str(caught.value).startswith(f"{refusing}: Milvus refused the token while connecting; ")
    assert caught.value.__cause__ is None
    assert "sesame" not in str(caught.value)
    assert "sesame" not in "".join(capfd.readouterr())
    assert "sesame" not in repr(servers.address(kept.collection.state))


def test_a_token_reaches_no_file_and_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(servers.URI, str(tmp_path / "lite.db"))
    monkeypatch.setenv(servers.TOKEN, "root:open-sesame")
    root = collection(tmp_path / "c", settings=with_store("milvus"), cases=None)
    with opened(root) as made:
        assert "sesame" not in repr(made.ask(QUESTION).values)
        assert not (root / ".atlas" / "milvus.db").exists()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not [path for path in files if b"sesame" in path.read_bytes()]


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("nonsense", "is no address; expected http"),
        ("ftp://host:1", "is no address"),
        ("ftp://x/y", "is no address"),
        ("http://", "is no address"),
        ("http://host:99999", "is no address"),
        ("http://ho\x1b[2Jst", "is no address"),
        ("http://me:sesame@host:1", "holds a user, a password or a query; put"),
        ("http://host:1?token=sesame", "holds a user, a password or a query"),
        ("/no/such/folder/x.db", "the folder /no/such/folder does not exist"),
    ],
)
def test_an_address_that_is_none_is_refused(
    uri: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(servers.URI, uri)
    with pytest.raises(StoreError, match=problem) as caught:
        servers.address(tmp_path)
    assert "sesame" not in str(caught.value)
    if not uri.endswith(".db"):  # one of the three already
        assert str(caught.value).endswith(
            "http(s)://host:port, https://host:port/database, or a path ending in .db"
        )


@pytest.mark.parametrize("missing", ["pymilvus", "milvus_lite"])
def test_a_missing_library_says_how_to_get_it(
    missing: str, milvus: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    milvus.store.close()
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(StoreError, match=r"pip install 'atlas\[milvus\]'"):
        servers.Server(servers.address(milvus.collection.state))


def test_an_unknown_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "atlas.yaml").write_text("store: redis\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="store is 'redis'; expected local or milvus"):
        load_settings(tmp_path)


def test_the_local_store_loads_no_client_of_milvus(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", {"manual.md": MANUAL}, settings="", cases=None)
    program = (
        "import sys\nfrom small import opened\nfrom pathlib import Path\n"
        f"opened(Path({str(root)!r})).ask('what is E-417')\n"
        "sys.exit('pymilvus' in sys.modules or 'grpc' in sys.modules)"
    )
    run = [*command(), "x"][:3]
    run[2] = run[2].rsplit("\nfrom atlas.cli", 1)[0] + "\n" + program
    done = subprocess.run(run, capture_output=True, timeout=60, env={**os.environ})
    assert done.returncode == 0, done.stderr
