"""What is run in which order: every process, what it is asked, and where its result is kept."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environments import ATLAS, HERE, Peer
from material import Material, Question
from models import Reranker, digest

WARM_UP = "What is this about?"
LONGEST_SECONDS = 3600
SEED = 20
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
    "ORT_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""Nobody downloads a model, and nobody tells anybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured."""

    documents: int | None
    """Of SciFact; None for all."""
    part: int
    """SciFact documents that ingest is timed with; of the manual it is all."""
    rounds: int
    asked: int
    """Questions of a set."""
    reranked: int
    """Of these, the questions whose reranking is timed."""
    ingests: int
    colds: int


@dataclass(kw_only=True)
class Runner:
    """Runs peers and keeps what they found; a result that is there is not asked for again."""

    folder: Path
    pythons: dict[str, Path]
    models: dict[str, str]
    dry: bool = False
    """Only read what is there."""
    failures: list[str] = field(default_factory=list)

    def result(self, material: Material, peer: str, step: str) -> dict[str, Any] | None:
        """What a step found; None where it has not been run or failed."""
        path = self._place(material, peer) / f"{step}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def run(self, material: Material, peer: Peer, step: str, **task: Any) -> None:
        """Run one process of a peer unless its result is known."""
        place = self._place(material, peer.name)
        out = place / f"{step}.json"
        if out.is_file() or self.dry or peer.name in {f.partition(" ")[0] for f in self.failures}:
            return
        place.mkdir(parents=True, exist_ok=True)
        part, request = place / f"{step}.part", place / f"{step}.task"
        values = {"rerank": False, "warm_up": "", "out": str(part), **self.models, **task}
        request.write_text(json.dumps(values), encoding="utf-8")
        environment = {**os.environ, **QUIET}
        # A process of its own for each state of atlas; the others do not look at it.
        environment["ATLAS_STATE"] = values.get("state") or str(
            material.collection.parent / "state"
        )
        print(f"{material.name}: {peer.name} {step}", file=sys.stderr, flush=True)
        start = time.perf_counter()
        command = [str(self.pythons[peer.name]), str(HERE / peer.script), str(request)]
        with (place / f"{step}.log").open("w") as log:
            try:
                done = subprocess.run(
                    command, env=environment, stdout=log, stderr=log, timeout=LONGEST_SECONDS
                ).returncode
            except subprocess.TimeoutExpired:
                done = -1
        took = time.perf_counter() - start
        if done or not part.is_file():
            self.failures.append(f"{peer.name} failed in {step} of {material.name}: see {log.name}")
            print(self.failures[-1], file=sys.stderr)
            return
        found = json.loads(part.read_text(encoding="utf-8"))
        part.unlink()
        out.write_text(json.dumps({**found, "process_seconds": took}), encoding="utf-8")

    def forget(self, peer: str) -> None:
        """Drop every result of a peer, and its indexes."""
        for place in (self.folder / "results").glob(f"*/{peer}"):
            shutil.rmtree(place)

    def index(self, material: Material, peer: str) -> Path:
        """Where a peer's own index lies."""
        return self._place(material, peer) / "index"

    def _place(self, material: Material, peer: str) -> Path:
        return self.folder / "results" / material.name / peer


def chosen(material: Material, plan: Plan) -> tuple[list[Question], list[Question]]:
    """The questions that are asked, and those of them whose reranking is timed."""
    questions = list(material.questions)
    random.Random(SEED).shuffle(questions)
    asked = questions[: plan.asked]
    return asked, asked[: plan.reranked] if len(asked) > 2 * plan.reranked else asked


def measure(runner: Runner, material: Material, peers: Sequence[Peer], plan: Plan) -> None:
    """Run everything that is not known yet of one set."""
    asked, timed = chosen(material, plan)
    for peer in peers:
        if peer.name != ATLAS:
            _index(runner, material, peer, "index", material.blocks, material.vectors)
    for number in range(plan.ingests):
        for peer in _turns(peers, number):
            _ingest(runner, material, peer, f"ingest-{number}")
    for number in range(plan.colds + 1):  # the first fills the disk's cache and does not count
        for peer in _turns(peers, number):
            _ask(runner, material, peer, f"cold-{number}", asked[:1], rerank=True)
    for number in range(plan.rounds):
        for peer in _turns(peers, number):
            share = slice(number, None, plan.rounds)
            _ask(runner, material, peer, f"hybrid-{number}", asked[share], warm_up=WARM_UP)
            _ask(
                runner, material, peer, f"reranked-{number}", timed[share], rerank=True,
                warm_up=WARM_UP,
            )  # fmt: skip
    rest = [question for question in asked if question not in timed]
    if rest:
        pairs = runner.folder / material.name / "pairs.json"
        if not runner.dry:
            _score_pairs(runner, material, peers, rest, plan, pairs)
        for peer in peers:
            _ask(runner, material, peer, "reranked-rest", rest, rerank=True, pairs=str(pairs))


def _turns(peers: Sequence[Peer], number: int) -> list[Peer]:
    """The peers, another one first each time."""
    first = number % len(peers)
    return [*peers[first:], *peers[:first]]


def _index(
    runner: Runner, material: Material, peer: Peer, step: str, blocks: Path, vectors: Path | None
) -> None:
    if runner.result(material, peer.name, step) or runner.dry:
        return
    place = runner.index(material, peer.name) if step == "index" else _scratch(runner, step)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    known = str(vectors) if vectors else None
    runner.run(
        material, peer, step, do="ingest", blocks=str(blocks), index=str(place), vectors=known
    )


def _ingest(runner: Runner, material: Material, peer: Peer, step: str) -> None:
    """An ingest that is timed, into an empty folder."""
    if peer.name != ATLAS:
        _index(runner, material, peer, step, material.part_blocks, None)
        return
    if runner.result(material, peer.name, step) or runner.dry:
        return
    state = _scratch(runner, step)
    shutil.rmtree(state, ignore_errors=True)
    runner.run(material, peer, step, do="ingest", collection=str(material.part), state=str(state))


def _scratch(runner: Runner, step: str) -> Path:
    return runner.folder / "scratch" / step


def _ask(
    runner: Runner, material: Material, peer: Peer, step: str, questions: list[Question],
    **task: Any,
) -> None:  # fmt: skip
    runner.run(
        material,
        peer,
        step,
        do="ask",
        index=str(runner.index(material, peer.name)),
        collection=str(material.collection),
        questions=[{"id": item.id, "question": item.question} for item in questions],
        **task,
    )


def _score_pairs(
    runner: Runner,
    material: Material,
    peers: Sequence[Peer],
    rest: list[Question],
    plan: Plan,
    file: Path,
) -> None:
    """Score, on all cores, the pairs that the peers will ask for in the run that is not timed."""
    known: dict[str, float] = json.loads(file.read_text()) if file.is_file() else {}
    wanted: dict[str, tuple[str, str]] = {}
    texts = {item.id: item.question for item in rest}
    for peer in peers:
        if peer.name == ATLAS or runner.result(material, peer.name, "reranked-rest"):
            continue
        for number in range(plan.rounds):
            found = runner.result(material, peer.name, f"hybrid-{number}") or {"asked": []}
            for row in found["asked"]:
                if row["id"] in texts:
                    for ref in row["ranked"]:
                        pair = (texts[row["id"]], material.texts[ref])
                        wanted[digest(*pair)] = pair
    todo = [key for key in wanted if key not in known]
    if not todo:
        file.write_text(json.dumps(known), encoding="utf-8")
        return
    print(f"{material.name}: scoring {len(todo)} pairs", file=sys.stderr, flush=True)
    reranker = Reranker(Path(runner.models["reranker"]), threads=1)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for first in range(0, len(todo), 500):
            keys = todo[first : first + 500]
            scores = pool.map(lambda key: reranker.score([wanted[key]])[0], keys)
            known.update(zip(keys, scores, strict=True))
            file.write_text(json.dumps(known), encoding="utf-8")
