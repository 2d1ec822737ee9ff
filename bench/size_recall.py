"""What share of the nearest blocks does the graph index find, on vectors of the real encoder?

    python bench/size_recall.py DIR

Ingests SciFact and the Galaxy family of `../shared/data` with a graph index, DIR as state folder
(minutes the first time, seconds then), and asks their questions, 300 and 50, which are used for
nothing else here. Printed is the mean share of the exact nearest 10 and 100 blocks that the graph
finds when it is asked for 100, as every question asks it: over all blocks, and over a scope of
every second one. Both are asked of the graph, also where atlas would search exactly.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from size_corpus import DATA
from surroundings import machine

RECALLED = (10, 100)


def recall(assistant: Any, questions: list[str]) -> dict[str, float]:
    """Share of the exact nearest blocks that the graph finds too; nothing without a graph.

    Over all blocks and over a scope of every second one, both asked of the graph, however fast.
    """
    import atlas.vectors

    vectors = assistant.index.vectors
    if vectors._graph is None:
        return {}
    kept, found = atlas.vectors.STEP_COSINES, {}
    whole = np.ones(len(assistant.index), bool)
    half = np.arange(len(whole)) % 2 == 0
    for name, mask in (("all", whole), ("half", half)):
        for count in RECALLED:
            shares = []
            for question in questions:
                query = assistant.encoder.encode_question(question)
                atlas.vectors.STEP_COSINES = len(whole)
                exact, _ = vectors.nearest(query, mask, count)
                atlas.vectors.STEP_COSINES = 0
                near, _ = vectors.nearest(query, mask, max(RECALLED))  # as a question asks it
                shares.append(len(np.intersect1d(exact, near[:count])) / len(exact))
            found[f"recall_{count}_{name}"] = float(np.mean(shares))
    atlas.vectors.STEP_COSINES = kept
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("state", type=Path, help="folder for the collection and its index")
    state = parser.parse_args().state.absolute()
    print(machine())
    from atlas.assistant import Assistant
    from atlas.settings import load_settings

    os.environ["ATLAS_STATE"] = str(state)
    beir, root = DATA / "scifact" / "beir", state / "collection"
    if not beir.is_dir():
        sys.exit(f"{DATA}: not there; the real vectors are those of its texts")
    if not root.is_dir():
        command = ["-m", "atlas", "import", "beir", str(beir), str(root), "--held-out"]
        subprocess.run([sys.executable, *command], check=True)
        for path in (DATA / "galaxy-family" / "documents").iterdir():
            shutil.copy(path, root / "documents")
    queries = map(json.loads, (beir / "queries.jsonl").open(encoding="utf-8"))
    tested = {line.split()[0] for line in (beir / "qrels" / "test.tsv").open(encoding="utf-8")}
    questions = [row["text"] for row in queries if row["_id"] in tested]
    manual = DATA / "galaxy-s10" / "heldout"
    for path in sorted(manual.glob("*.yaml")):
        rows = yaml.safe_load(path.read_text(encoding="utf-8"))
        questions += [row["question"] for row in rows]
    settings = replace(load_settings(root), vector_index="graph", reranker="none")
    with Assistant.open(root, settings=settings) as assistant:
        found = recall(assistant, questions)
        print(f"{len(assistant.index)} blocks, {len(questions)} questions")
    for name, share in found.items():
        print(f"{name:16} {share:.4f}")


if __name__ == "__main__":
    main()
