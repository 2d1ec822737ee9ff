"""bench/peers: what a peer's process reports, what the table makes of it, what is installed."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from atlas.measure.ranking import measure

HERE = Path(__file__).resolve().parent.parent / "bench" / "peers"
MODULES = ("driver", "environments", "material", "models", "schedule", "table")
FAKE = """
import sys
sys.path.insert(0, {here!r})
from driver import perform

def opened(task):
    return lambda question: [f"{{question}}-{{n}}" for n in range(10)]

perform(lambda task: 7, opened)
"""


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch):
    """Imports a module of the bench; its short names are gone again after the test."""
    monkeypatch.syspath_prepend(str(HERE))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield load
    for name in MODULES:
        sys.modules.pop(name, None)


def run(tmp_path: Path, **task: object) -> dict:
    """What a peer that always answers the same writes down about a task."""
    script, request = tmp_path / "fake.py", tmp_path / "task.json"
    script.write_text(FAKE.format(here=str(HERE)))
    out = tmp_path / "out.json"
    request.write_text(json.dumps({"rerank": False, "warm_up": "", "out": str(out), **task}))
    subprocess.run([sys.executable, str(script), str(request)], check=True)
    return json.loads(out.read_text())


def test_a_peer_reports_ranks_times_and_its_own_peak_memory(tmp_path):
    questions = [{"id": "q1", "question": "a"}, {"id": "q2", "question": "b"}]
    found = run(tmp_path, do="ask", questions=questions)
    assert [row["id"] for row in found["asked"]] == ["q1", "q2"]
    assert found["asked"][1]["ranked"][:2] == ["b-0", "b-1"]
    assert all(0 <= row["seconds"] < 5 for row in found["asked"])
    assert 3 < found["peak_mib"] < 60  # a bare Python, not the process that started it


def test_an_ingest_reports_blocks_and_seconds(tmp_path):
    found = run(tmp_path, do="ingest")
    assert found["blocks"] == 7
    assert found["seconds"] >= 0


def test_the_protocol_of_a_peer_loads_nothing_heavy(tmp_path):
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import driver; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"numpy", "onnxruntime", "atlas"} & set(done.stdout.split())


def test_every_peer_is_pinned_and_torch_only_where_it_cannot_be_left_out(bench):
    environments = bench("environments")
    for peer in environments.PEERS:
        assert (HERE / peer.script).is_file()
        if peer.name == environments.ATLAS:
            continue
        lines = (HERE / f"requirements-{peer.name}.txt").read_text().splitlines()
        pins = dict(line.split("==") for line in lines if not line.startswith("#"))
        assert all(version[0].isdigit() for version in pins.values())
        assert set(peer.packages) <= set(pins)
        assert {"onnxruntime", "tokenizers", "numpy"} <= set(pins)
        assert pins.get("torch") == ("2.13.0" if peer.name == "txtai" else None)


def test_the_same_model_libraries_run_everywhere(bench):
    pins = [
        dict(line.split("==") for line in path.read_text().splitlines() if line[0] != "#")
        for path in HERE.glob("requirements-*.txt")
    ]
    for package in ("onnxruntime", "tokenizers", "numpy"):
        assert len({pin[package] for pin in pins}) == 1


def results(runner, name: str, ranked: list[str], seconds: float, mib: float) -> None:
    """Results of one peer on two questions, as its processes would leave them."""
    place = runner.folder / "results" / "set" / name
    place.mkdir(parents=True)
    asked = [{"id": id, "ranked": ranked, "seconds": seconds} for id in ("q1", "q2")]
    slower = [{**row, "seconds": 10 * seconds} for row in asked]
    steps = {
        "hybrid-0": {"asked": asked, "peak_mib": mib},
        "reranked-0": {"asked": slower, "peak_mib": mib},
        "ingest-0": {"blocks": 100, "seconds": 100 * seconds, "peak_mib": mib},
        "cold-0": {"process_seconds": 99.0},
        "cold-1": {"process_seconds": 10 * seconds},
    }  # fmt: skip
    for step, values in steps.items():
        (place / f"{step}.json").write_text(json.dumps(values))


def empty_set(bench, folder: Path, **values: object):
    """A set whose files nobody looks at."""
    places = ("collection", "part", "blocks", "part_blocks", "vectors")
    values = {"questions": (), "texts": {}, **dict.fromkeys(places, folder), **values}
    return bench("material").Material(name="set", **values)


@pytest.fixture
def reported(bench, tmp_path):
    """The table of atlas, the floor and one framework, from given seconds of atlas."""
    schedule, material, environments = bench("schedule"), bench("material"), bench("environments")
    gold = {"b": 1}
    questions = tuple(
        material.Question(id=id, question=id, relevant=gold) for id in ("q1", "q2", "unasked")
    )
    made = empty_set(bench, tmp_path, questions=questions, texts={"a": "", "b": ""})
    plan = schedule.Plan(documents=None, part=1, rounds=1, asked=2, reranked=2, ingests=1, colds=1)

    def report(atlas_seconds: float, ranked: list[str]) -> str:
        folder = tmp_path / str(atlas_seconds)
        runner = schedule.Runner(folder=folder, pythons={}, models={})
        results(runner, "atlas", ranked, atlas_seconds, 100)
        results(runner, "plain", ["a", "b"], 0.1, 150)
        results(runner, "langchain", ["a", "b"], 0.2, 150)
        peers = [p for p in environments.PEERS if p.name in ("atlas", "plain", "langchain")]
        return bench("table").report(runner, made, peers, plan)

    return report


def test_the_table_holds_the_measures_and_says_which_aims_were_reached(reported):
    text = reported(0.08, ["b", "a"])
    rows = {line.split(" | ")[0].strip("| *"): line for line in text.splitlines()}
    second = measure("ndcg@10")(["a", "b"], {"b": 1})
    assert f"{second:.3f}" in rows["LangChain"]
    assert "1.000" in rows["atlas"]
    assert "80.0 (80.0)" in rows["atlas"]
    assert "800.0 (800.0)" in rows["atlas"]
    assert "12.5" in rows["atlas"]
    aims = [line for line in text.splitlines() if "reached" in line]
    assert "- reached: best nDCG@10" in aims[0]
    assert any("- reached: hybrid, of langchain's 0.50 or less: 0.40" in line for line in aims)
    assert any("- reached: reranked, of langchain's" in line for line in aims)
    assert any("- **not reached**: peak memory asking" in line for line in aims)
    assert any("- **not reached**: cold start, of langchain's" in line for line in aims)


def test_an_aim_that_is_missed_is_called_missed(reported):
    text = reported(0.3, ["a", "b"])
    assert "- **not reached**: best nDCG@10" in text
    assert "- **not reached**: hybrid, of langchain's 0.50 or less: 1.50" in text
    assert "- **not reached**: ingest rate" in text


def test_what_was_not_measured_is_a_dash_and_no_number(bench, tmp_path):
    schedule, environments = bench("schedule"), bench("environments")
    runner = schedule.Runner(folder=tmp_path / "none", pythons={}, models={})
    made = empty_set(bench, tmp_path)
    plan = schedule.Plan(documents=None, part=1, rounds=1, asked=2, reranked=2, ingests=1, colds=1)
    text = bench("table").report(runner, made, list(environments.PEERS), plan)
    row = next(line for line in text.splitlines() if "txtai" in line)
    assert set(row.replace("txtai", "").split(" ")) <= {"|", "—", ""}


def test_a_peer_that_fails_is_named_and_not_asked_again(bench, tmp_path):
    schedule, environments = bench("schedule"), bench("environments")
    made = empty_set(bench, tmp_path)
    peer = environments.Peer(name="broken", title="broken", script="no_such_file.py")
    pythons = {"broken": Path(sys.executable)}
    runner = schedule.Runner(folder=tmp_path / "run", pythons=pythons, models={})
    runner.run(made, peer, "hybrid-0", do="ask", questions=[])
    runner.run(made, peer, "hybrid-1", do="ask", questions=[])
    assert len(runner.failures) == 1
    assert runner.failures[0].startswith("broken failed in hybrid-0 of set: see ")
    assert runner.result(made, "broken", "hybrid-0") is None
    assert "no_such_file" in next(tmp_path.rglob("hybrid-0.log")).read_text()
