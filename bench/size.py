"""How does atlas grow with a collection: time, memory and disk at 1,000 to 100,000 blocks?

    python bench/size.py [--blocks 1000,10000,100000] [--index flat,graph] [--files N] [--keep DIR]

Makes collections of each size (see size_corpus.py) and, each in a process of its own, ingests them,
opens them twice and asks questions. Encoder and reranker are stand-ins that cost little, and their
time is subtracted: what is printed is atlas itself. The last lines say how each figure grows with
ten times the blocks, and whether the bars at 100,000 blocks hold: under 40 ms for a question, under
100 ms to open, under 1 GiB of memory.

What share of the nearest blocks the graph finds is told too; size_recall.py does that with vectors
of the real encoder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from size_corpus import WordsEncoder, WordsReranker, make, sources
from size_recall import recall
from surroundings import machine
from warm import Timed

BARS = {"question_ms": 40.0, "open_ms": 100.0, "ingest_mib": 1024.0, "ask_mib": 1024.0}
QUESTIONS = 300
FIGURES = {
    "blocks_per_second": "blocks a second, without the encoder",
    "bytes_per_block": "bytes of the index per block",
    "ingest_seconds": "seconds of an ingest, without the encoder",
    "ingest_cpu_seconds": "seconds of processor of the same",
    "ingest_mib": "MiB at the peak of an ingest",
    "again_seconds": "seconds of an ingest that finds nothing new",
    "first_open_ms": "ms to open after an ingest, checksums",
    "open_ms": "ms to open later",
    "first_ms": "ms of the first question",
    "scope_ms": "ms of the first question in a scope",
    "question_ms": "ms of a question, median",
    "question_95_ms": "ms of a question, 95th percentile",
    "question_cpu_ms": "ms of processor per question, median",
    "ask_mib": "MiB at the peak of asking",
}


def peak_mib() -> float:
    """The most memory that this process had, in MiB; mapped files count."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)


def stand_in() -> tuple[Timed, Timed]:
    """Let atlas load stand-ins for its models; returns them."""
    import atlas.assistant
    import atlas.ingest

    encoder = Timed(WordsEncoder(), {})
    atlas.ingest.load_encoder = lambda name, state: encoder
    atlas.assistant.load_encoder = lambda name, state: encoder
    return encoder, Timed(WordsReranker(), {})


def ingested(root: Path) -> dict[str, Any]:
    """Ingest a collection and tell what it took."""
    encoder, _ = stand_in()
    from atlas.collection import Collection
    from atlas.ingest import index_folder, ingest

    collection = Collection.open(root)
    busy = time.process_time()
    report = ingest(collection)
    busy = time.process_time() - busy - encoder.processor
    seconds = report.seconds - encoder.seconds
    peak = peak_mib()
    again = ingest(collection).seconds
    folder = index_folder(collection)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {
        "documents": report.documents,
        "blocks": report.blocks,
        "blocks_per_second": report.blocks / seconds,
        "bytes_per_block": size / report.blocks,
        "ingest_seconds": seconds,
        "ingest_cpu_seconds": busy,
        "again_seconds": again,
        "ingest_mib": peak,
    }


def opened(root: Path) -> tuple[Any, float]:
    """An assistant on an index that is there, and the milliseconds that opening it took."""
    encoder, reranker = stand_in()
    from atlas.assistant import Assistant
    from atlas.collection import Collection
    from atlas.opening import current_index

    start = time.perf_counter()
    collection = Collection.open(root)
    assistant = Assistant(collection, current_index(collection), encoder, reranker)
    return assistant, (time.perf_counter() - start) * 1000


def asked(root: Path, questions: list[str]) -> dict[str, Any]:
    """Open an index and ask; the time of the stand-ins is not counted."""
    from atlas.records import Scope

    assistant, open_ms = opened(root)
    encoder, reranker = assistant.encoder, assistant.reranker
    took: dict[str, list[float]] = defaultdict(list)
    answered, scopes = 0, set()
    for number, question in enumerate(questions):
        scope = Scope(reader="service" if number % 5 == 4 else None)
        before, busy_before = (
            encoder.seconds + reranker.seconds,
            encoder.processor + reranker.processor,
        )
        start, busy = time.perf_counter(), time.thread_time()
        trace = assistant.ask(question, scope)
        seconds, spent = time.perf_counter() - start, time.thread_time() - busy
        seconds -= encoder.seconds + reranker.seconds - before
        spent -= encoder.processor + reranker.processor - busy_before
        answered += trace.values["status"] == "answered"
        key = assistant.understand(question, scope).seen.key
        kind = "first" if not number else "question" if key in scopes else "scope"
        scopes.add(key)
        took[kind].append(seconds * 1000)
        if kind == "question":
            took["cpu"].append(spent * 1000)
            for stage, value in trace.values["timings_seconds"].items():
                took[f"stage {stage}"].append(value * 1000)
    middle = {kind: float(np.median(values)) for kind, values in took.items()}
    return {
        "open_ms": open_ms,
        "first_ms": middle["first"],
        "scope_ms": middle.get("scope", float("nan")),
        "question_ms": middle["question"],
        "question_95_ms": float(np.quantile(took["question"], 0.95)),
        "question_cpu_ms": middle["cpu"],
        "ask_mib": peak_mib(),
        "answered": answered / len(questions),
        "scopes": len(scopes),
        "stages": {k[6:]: round(v, 2) for k, v in middle.items() if k.startswith("stage ")},
        **recall(assistant, questions),
    }


def run_apart(task: str, root: Path, questions: Path) -> dict[str, Any]:
    """Do a task in a process of its own and return what it found."""
    command = [sys.executable, __file__, "--task", task, str(root), str(questions)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(root: Path, questions: Path, index: str) -> dict[str, Any]:
    """Everything about one collection and one kind of index."""
    settings = (root / "atlas.yaml").read_text(encoding="utf-8")
    lines = [line for line in settings.splitlines() if not line.startswith("vector_index")]
    (root / "atlas.yaml").write_text("\n".join([*lines, f"vector_index: {index}", ""]), "utf-8")
    os.environ["ATLAS_STATE"] = str(root.parent / f"state-{root.name}-{index}")
    shutil.rmtree(os.environ["ATLAS_STATE"], ignore_errors=True)
    found = run_apart("ingest", root, questions)
    shutil.rmtree(Path(os.environ["ATLAS_STATE"]) / "indexes", ignore_errors=True)
    first = run_apart("open", root, questions)["open_ms"]
    return found | {"first_open_ms": first} | run_apart("ask", root, questions)


def table(found: dict[str, list[dict[str, Any]]]) -> None:
    """Print figures by index and size, and how they grow."""
    for index, columns in found.items():
        sizes = "".join(f"{column['blocks']:>12,}" for column in columns)
        print(f"\n{index + ' index, blocks':46}{sizes}  growth per ten times")
        recalls = [name for name in columns[-1] if name.startswith("recall")]
        for name in ("documents", *FIGURES, *recalls):
            values = [column.get(name, float("nan")) for column in columns]
            cells = "".join(f"{value:>12,.{0 if value >= 100 else 3}f}" for value in values)
            steps = [b / a for a, b in pairwise(values)]
            print(f"  {FIGURES.get(name, name):44}{cells}  {', '.join(f'{s:.1f}' for s in steps)}")
        print(f"  median of the stages, models included, ms: {columns[-1]['stages']}")
        print(f"  {columns[-1]['scopes']} scopes, {columns[-1]['answered']:.0%} answered")


def bars(found: dict[str, list[dict[str, Any]]]) -> bool:
    """Print whether the largest collections keep what is promised for 100,000 blocks."""
    held = True
    for index, columns in found.items():
        for name, bar in BARS.items():
            value = columns[-1][name]
            held &= value < bar
            verdict = "holds" if value < bar else "does NOT hold"
            print(f"{index}: {FIGURES[name]}: {value:.1f}, bar {bar:g}: {verdict}")
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", default="1000,10000,100000", help="sizes")
    parser.add_argument("--index", default="flat,graph", help="kinds of vector index")
    parser.add_argument("--files", type=int, help="documents of the largest (by their sections)")
    parser.add_argument("--keep", type=Path, help="folder for collections and states, to look at")
    parser.add_argument("--task", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        task, root, questions = arguments.task[0], *map(Path, arguments.task[1:])
        asking = json.loads(questions.read_text(encoding="utf-8"))[:QUESTIONS]
        if task == "ingest":
            print(json.dumps(ingested(root)))
        elif task == "open":
            print(json.dumps({"open_ms": opened(root)[1]}))
        else:
            print(json.dumps(asked(root, asking)))
        return
    print(machine(), flush=True)
    print(f"texts: {sources()[0]}", flush=True)
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as temporary:
        place = arguments.keep or Path(temporary)
        for blocks in map(int, arguments.blocks.split(",")):
            root, questions = place / f"{blocks}", place / f"{blocks}.json"
            if not root.is_dir():
                files = arguments.files and arguments.files * blocks // 100_000
                questions.write_text(json.dumps(make(root, blocks, files)), encoding="utf-8")
            for index in arguments.index.split(","):
                found[index].append(measured(root, questions, index))
                print(f"{index}, {blocks}: {json.dumps(found[index][-1])}", file=sys.stderr)
    table(found)
    print()
    sys.exit(not bars(found))


if __name__ == "__main__":
    main()
