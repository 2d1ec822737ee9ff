"""Vectors on disk: what was written is found, in scope only, and the same by either search."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import atlas.vectors as module
from atlas.vectors import Vectors, best, write_graph

DIMENSION, COUNT = 48, 3000


def clustered(count: int = COUNT, seed: int = 1) -> NDArray[np.float32]:
    """Unit vectors around some middles, as texts about some subjects give them."""
    rng = np.random.default_rng(seed)
    middles = rng.standard_normal((40, DIMENSION))
    rows = middles[rng.integers(0, 40, count)] + rng.standard_normal((count, DIMENSION)) * 0.7
    unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("f4")
    return unit


def write(folder: Path, rows: NDArray[np.float32], *, graph: bool = True, step: int = 700) -> None:
    folder.mkdir(exist_ok=True)
    with module.VectorFile(folder, rows.shape[1], len(rows)) as file:
        for first in range(0, len(rows), step):
            file.add(rows[first : first + step])
    if graph:
        write_graph(folder)


def read(folder: Path, count: int = COUNT, *, graph: bool = False) -> Vectors:
    return Vectors(folder, count, DIMENSION, graph=graph)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vectors")
    write(folder, clustered())
    return folder


def expected(query: NDArray[np.float32], mask: NDArray[np.bool_], count: int) -> list[int]:
    cosines = np.where(mask, clustered().astype(np.float64) @ query, -9.0)
    return np.argsort(-cosines, kind="stable")[: min(count, int(mask.sum()))].tolist()


def test_rows_written_in_pieces_come_back_as_one_faiss_index(folder: Path) -> None:
    import faiss

    index = faiss.read_index(str(folder / "vectors.faiss"))
    assert (index.ntotal, index.d, index.metric_type) == (COUNT, DIMENSION, 0)
    np.testing.assert_array_equal(index.reconstruct_n(0, COUNT), clustered())
    np.testing.assert_array_equal(read(folder).rows, clustered())


def test_rows_can_be_read_after_their_index_is_forgotten(folder: Path) -> None:
    rows = read(folder).rows[5:7]
    gc.collect()
    np.testing.assert_array_equal(rows, clustered()[5:7])
    with pytest.raises(ValueError, match="read-only"):
        rows[0, 0] = 1


@pytest.mark.parametrize("share", [1.0, 0.5, 0.01])
def test_the_flat_search_is_exact_in_every_scope(folder: Path, share: float) -> None:
    vectors, rng = read(folder), np.random.default_rng(3)
    for query in clustered(20, seed=2):
        mask = rng.random(COUNT) < share
        numbers, cosines = vectors.nearest(query, mask, 25)
        assert numbers.tolist() == expected(query, mask, 25)
        np.testing.assert_allclose(cosines, clustered()[numbers] @ query, atol=1e-6)


def test_a_cosine_is_the_same_to_the_bit_whatever_else_is_in_scope(folder: Path) -> None:
    vectors = read(folder, graph=True)
    query = clustered(1, seed=7)[0]
    _, whole = vectors.nearest(query, np.ones(COUNT, bool), COUNT)
    numbers, _ = vectors.nearest(query, np.ones(COUNT, bool), COUNT)
    alone = np.array([vectors.cosines(query, numbers[[n]])[0] for n in range(COUNT)])
    assert alone.tobytes() == whole.tobytes()
    assert vectors.cosines(query, numbers[::7]).tobytes() == whole[::7].tobytes()


@pytest.mark.parametrize("share", [1.0, 0.6, 0.3])
def test_the_graph_finds_nearly_all_in_scope_and_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    monkeypatch.setattr(module, "STEP_COSINES", 0)
    vectors, rng = read(folder, graph=True), np.random.default_rng(3)
    found = []
    for query in clustered(40, seed=2):
        mask = rng.random(COUNT) < share
        numbers, cosines = vectors.nearest(query, mask, 20)
        assert mask[numbers].all()
        assert len(numbers) == 20
        assert cosines.tolist() == sorted(cosines.tolist(), reverse=True)
        found.append(len(set(numbers.tolist()) & set(expected(query, mask, 20))) / 20)
    assert np.mean(found) > 0.97


def test_the_graph_itself_keeps_to_the_scope(folder: Path) -> None:
    vectors = read(folder, graph=True)
    query, mask = clustered(1, seed=5)[0], np.arange(COUNT) % 2 == 0
    proposed = vectors._proposed(query, mask, 20, 320)  # with others among them it were too few
    assert proposed is not None
    assert len(proposed) == 20
    assert mask[proposed].all()


def test_a_graph_that_finds_too_few_is_not_believed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STEP_COSINES", 0)
    monkeypatch.setattr(module, "SEARCH_BREADTH", 0)  # looks at next to nothing
    vectors, query = read(folder, graph=True), clustered(1, seed=2)[0]
    mask = np.zeros(COUNT, bool)
    mask[::100] = True
    numbers, _ = vectors.nearest(query, mask, 29)
    assert numbers.tolist() == expected(query, mask, 29)


def test_a_narrow_scope_is_searched_exactly_beside_a_graph(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, query = read(folder, graph=True), clustered(1, seed=2)[0]
    monkeypatch.setattr(Vectors, "_proposed", None)  # would be called for a wide scope
    mask = np.arange(COUNT) % 3 == 0
    assert vectors.nearest(query, mask, 5)[0].tolist() == expected(query, mask, 5)


def test_the_same_vectors_give_the_same_bytes_however_they_came(
    folder: Path, tmp_path: Path
) -> None:
    write(tmp_path, clustered(), step=11)
    for name in ("vectors.faiss", "graph.faiss"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_a_graph_holds_no_second_copy_of_the_vectors(folder: Path) -> None:
    links = 4 * COUNT * 2 * module.NEIGHBOURS
    assert (folder / "graph.faiss").stat().st_size < links * 1.3
    assert (folder / "vectors.faiss").stat().st_size < 4 * COUNT * DIMENSION + 100


@pytest.mark.parametrize("graph", [False, True])
def test_no_vector_at_all_is_searched_without_a_hit(tmp_path: Path, graph: bool) -> None:
    write(tmp_path, np.empty((0, DIMENSION), np.float32))
    numbers, cosines = read(tmp_path, 0, graph=graph).nearest(
        np.ones(DIMENSION, np.float32), np.zeros(0, bool), 5
    )
    assert len(numbers) == len(cosines) == 0


def test_an_empty_scope_and_a_small_one_are_no_trouble(folder: Path) -> None:
    vectors, query = read(folder, graph=True), clustered(1)[0]
    mask = np.zeros(COUNT, bool)
    assert vectors.nearest(query, mask, 5)[0].tolist() == []
    mask[[4, 9]] = True
    assert sorted(vectors.nearest(query, mask, 5)[0].tolist()) == [4, 9]


def test_ties_go_by_number(tmp_path: Path) -> None:
    row = clustered(1)
    write(tmp_path, np.repeat(row, 9, axis=0))
    numbers, _ = read(tmp_path, 9).nearest(row[0], np.ones(9, bool), 4)
    assert numbers.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["vectors.faiss", "graph.faiss"])
@pytest.mark.parametrize("content", [b"", b"hello" * 100])
def test_a_file_that_is_no_index_is_named(
    folder: Path, tmp_path: Path, name: str, content: bytes
) -> None:
    for each in ("vectors.faiss", "graph.faiss"):
        (tmp_path / each).write_bytes((folder / each).read_bytes())
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name}: is no FAISS index"):
        read(tmp_path, graph=True)


def test_a_file_for_other_blocks_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"vectors\.faiss: holds 3000 vectors for 2999 blocks"):
        read(folder, COUNT - 1)
    write(tmp_path, clustered())
    write(tmp_path, clustered(10), graph=False)
    with pytest.raises(ValueError, match=r"graph\.faiss: is no graph over 10 blocks"):
        read(tmp_path, 10, graph=True)


def test_too_few_rows_are_no_file_of_vectors(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="3 of 4 vectors were written"),
        module.VectorFile(tmp_path, DIMENSION, 4) as file,
    ):
        file.add(clustered(3))


def test_a_full_disk_is_an_error_of_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRAPH", "/dev/full")
    with pytest.raises(OSError, match="No space left"):
        write_graph(folder)
    monkeypatch.setattr(module, "VECTORS", "/dev/full")
    with pytest.raises(OSError, match="No space left"):
        write(folder, clustered(), graph=False)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 4), max_size=12), st.integers(1, 14))
def test_the_best_are_the_highest_and_then_the_first(values: Sequence[int], count: int) -> None:
    found = best(np.array(values, np.float64), count).tolist()
    assert found == sorted(range(len(values)), key=lambda place: (-values[place], place))[:count]
