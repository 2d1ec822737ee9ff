"""What every peer's process does: read a task, build or ask, write down what it took.

    python with_langchain.py TASK.json

A peer is two functions, `build` and `load`, in a file that reads as its own documentation
recommends; everything that measures is here. The task says which (`do`), with what and where to
write the result. Times are of this process's clock; importing is over before they begin, and a
cold start is timed from outside.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models import Encoder, Reranker

TOP = 10
"""Length of every ranking, and how many of the first stage are reranked."""
CANDIDATES = 100
"""Blocks that either search brings into the fusion, where a peer lets one choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A text to search, as atlas splits it: the same for everybody."""

    id: str
    text: str


Ask = Callable[[str], list[str]]
"""A question -> ids of the first TOP blocks, best first."""
Build = Callable[[list[Block], Path, "Encoder"], None]
"""Index the blocks and save everything that asking needs into the folder."""
Load = Callable[[Path, "Encoder", "Reranker | None"], Ask]
"""Open what was saved. Without a reranker the first stage's order stays."""


def run(build: Build, load: Load) -> None:
    """Do the task that the command line names, with the shared models."""

    def ingest(task: dict[str, Any]) -> int:
        blocks = [Block(**row) for row in json_lines(Path(task["blocks"]))]
        build(blocks, Path(task["index"]), encoder(task))
        return len(blocks)

    def opened(task: dict[str, Any]) -> Ask:
        return load(Path(task["index"]), encoder(task), reranker(task))

    perform(ingest, opened)


def perform(
    ingest: Callable[[dict[str, Any]], int], opened: Callable[[dict[str, Any]], Ask]
) -> None:
    """Do the task that the command line names. `ingest` returns how many blocks it indexed."""
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if task["do"] == "ingest":
        start = time.perf_counter()
        blocks = ingest(task)
        result: dict[str, Any] = {"blocks": blocks, "seconds": time.perf_counter() - start}
    else:
        start = time.perf_counter()
        ask = opened(task)
        result = {"open_seconds": time.perf_counter() - start}
        if task["warm_up"]:
            ask(task["warm_up"])  # allocations and caches of the first question count apart
        result["asked"] = [_asked(ask, row) for row in task["questions"]]
    result["peak_mib"] = peak_mib()
    Path(task["out"]).write_text(json.dumps(result), encoding="utf-8")


def _asked(ask: Ask, row: dict[str, str]) -> dict[str, Any]:
    start = time.perf_counter()
    ranked = ask(row["question"])
    seconds = time.perf_counter() - start
    return {"id": row["id"], "ranked": ranked, "seconds": seconds}


def encoder(task: dict[str, Any]) -> Encoder:
    """The encoder, with the vectors that the task says are known."""
    import numpy as np
    from models import Encoder

    known = {}
    if task.get("vectors"):
        with np.load(task["vectors"]) as arrays:
            known = dict(zip(arrays["keys"].tolist(), arrays["vectors"], strict=True))
    return Encoder(Path(task["encoder"]), known)


def reranker(task: dict[str, Any]) -> Reranker | None:
    """The reranker, with the scores that the task says are known; None where none is wanted."""
    if not task["rerank"]:
        return None
    from models import Reranker

    known = json.loads(Path(task["pairs"]).read_text()) if task.get("pairs") else {}
    return Reranker(Path(task["reranker"]), known)


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def peak_mib() -> float:
    """The most memory that this process ever had resident."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        # Unlike ru_maxrss, this begins anew when a process is started from a larger one.
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 2**10
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)
