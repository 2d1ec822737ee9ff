"""How long does `python -m atlas ask` take from nothing to an answer, and where does it go?

    python bench/cold_start.py [-C DIR] [--repeats N] [QUESTION]

Whole processes, taken in turns in one run so that a busy machine slows all of them:

- `python -c pass`, the floor of any program;
- `import sentence_transformers`, which is what a program built on that library pays first;
- a plain script on onnxruntime and tokenizers: it opens the two models that atlas uses, from the
  files in their packages with the libraries' own defaults, embeds one question and scores ten
  pairs, the first ten blocks that atlas ranks for the same question;
- `python -m atlas ask` on an index that is current.

The first round fills the disk cache and is not counted. Every line has the median of the others,
and its ratio to the import in the same round as median (lowest, highest). Below stands where the
time of atlas goes, once: imports by package as `python -X importtime` sees them, which makes each
a little slower, and the stages of the question as its trace has them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from surroundings import ROOT, machine, private_copy, spread

QUESTION = "How long is the battery of a C-3 under warranty?"
PAIRS = 10
IMPORT, PLAIN, ASK = "import sentence_transformers", "plain onnxruntime script", "atlas ask"
LISTED = 12
PLAIN_SCRIPT = """
import json, sys
import numpy as np
import onnxruntime
from tokenizers import Tokenizer

task = json.load(open(sys.argv[1], encoding="utf-8"))

def open_model(model, tokenizer):
    reader = Tokenizer.from_file(tokenizer)
    reader.no_padding()
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]), reader

def run(session, encoding):
    values = {
        "input_ids": [encoding.ids],
        "attention_mask": [encoding.attention_mask],
        "token_type_ids": [encoding.type_ids],
    }
    wanted = {entry.name: np.array(values[entry.name], np.int64) for entry in session.get_inputs()}
    return session.run(None, wanted)[0]

encoder, reader = open_model(*task["encoder"])
reranker, pair_reader = open_model(*task["reranker"])
vector = run(encoder, reader.encode(task["question"]))[0, 0]
for text in task["texts"]:
    run(reranker, pair_reader.encode(task["question"], text))
"""


def plain_task(collection: Path, question: str) -> dict[str, object]:
    """Build the index, and collect what the plain script needs to do the same work."""
    from atlas import Assistant
    from atlas.models.carriers import describe, find
    from atlas.models.description import Role
    from atlas.models.verified import Verified

    with Assistant.open(collection) as assistant:
        index, settings = assistant.index, assistant.settings
        blocks = {index.block(n).ref: index.block(n).searched for n in range(len(index))}
        ranked = assistant.ask(question).values["ranked"][:PAIRS]
        verified = Verified(assistant.collection.state / "models")
        task: dict[str, object] = {
            "question": question,
            "texts": [blocks[ref] for ref in ranked],
        }
        names: dict[Role, str] = {"encoder": settings.encoder, "reranker": settings.reranker}
        for role, name in names.items():
            carrier = find(role, name)
            if carrier is None or not carrier.onnx:
                sys.exit(f"{role} {name} does not come as ONNX; compare with a shipped one")
            description = describe(carrier, verified)
            task[role] = (str(description.model), str(description.tokenizer))
    return task


def seconds(command: list[str]) -> float:
    """Wall-clock seconds of a whole process, which must succeed."""
    start = time.perf_counter()
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def compare(programs: dict[str, list[str]], repeats: int) -> dict[str, float]:
    """Run the programs in turns, print a line for each, and return the medians."""
    times: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(repeats + 1):
        for name, command in programs.items():
            took = seconds(command)
            if number:
                times[name].append(took)
    medians = {name: statistics.median(took) for name, took in times.items()}
    print(f"{'whole process':30} {'seconds':>7}  ratio to the import (lowest, highest)")
    for name, measured in times.items():
        ratios = [one / other for one, other in zip(measured, times[IMPORT], strict=True)]
        print(f"{name:30} {medians[name]:7.2f}  {spread(ratios, 3)}")
    both = [one / other for one, other in zip(times[ASK], times[PLAIN], strict=True)]
    print(f"{ASK} is {spread(both)} times the {PLAIN}")
    return medians


def imports(stderr: str) -> tuple[dict[str, float], float]:
    """Self time in milliseconds by top-level package, and the sum, from -X importtime's lines."""
    by_package: dict[str, float] = defaultdict(float)
    for line in stderr.splitlines():
        label, _, rest = line.partition(":")
        columns = rest.split("|")
        if label != "import time" or len(columns) != 3 or not columns[0].strip().isdigit():
            continue
        package = columns[2].strip().partition(".")[0]
        if package in sys.stdlib_module_names:
            package = "standard library"
        by_package[package] += int(columns[0]) / 1000
    return by_package, sum(by_package.values())


def breakdown(ask: list[str], whole: float, bare: float) -> None:
    """Print where one cold question spends its time."""
    command = [ask[0], "-X", "importtime", *ask[1:], "--json"]
    done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
    stages = json.loads(done.stdout)["timings_seconds"]
    by_package, total = imports(done.stderr)
    rest = (whole - stages["total"]) * 1000 - total
    print(f"\none question, {whole * 1000:.0f} ms, of which `python -c pass` {bare * 1000:.0f}:")
    print(f"{total:6.0f} ms  imports, those of Python's own start included")
    print(f"{rest:6.0f} ms  start, index and models opened, answer printed (what is left)")
    print(f"{stages.pop('total') * 1000:6.0f} ms  the question: ", end="")
    print(", ".join(f"{name} {took * 1000:.0f}" for name, took in stages.items()))
    print("imports by package, ms without what they import in turn:")
    ranked = sorted(by_package.items(), key=lambda item: -item[1])
    for package, took in ranked[:LISTED]:
        print(f"{took:6.0f}     {package}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("-C", dest="folder", type=Path, default=ROOT, help="collection (this one)")
    parser.add_argument("--repeats", type=int, default=7, help="counted rounds (7)")
    arguments = parser.parse_args()
    print(machine())
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    with tempfile.TemporaryDirectory() as temporary:
        copy = private_copy(arguments.folder, Path(temporary))
        task = Path(temporary, "task.json")
        task.write_text(json.dumps(plain_task(copy, arguments.question)), encoding="utf-8")
        python = sys.executable
        programs = {
            "python -c pass": [python, "-c", "pass"],
            IMPORT: [python, "-c", "import sentence_transformers"],
            PLAIN: [python, "-c", PLAIN_SCRIPT, str(task)],
            ASK: [python, "-m", "atlas", "ask", arguments.question, "-C", str(copy)],
        }
        medians = compare(programs, arguments.repeats)
        breakdown(programs[ASK], medians[ASK], medians["python -c pass"])


if __name__ == "__main__":
    main()
