"""atlas beside LangChain, LlamaIndex, Haystack, txtai and a plain script: one table.

    python bench/peers/run.py                 # everything, about half an hour on two cores
    python bench/peers/run.py --quick         # a tenth of it, to see that all works
    python bench/peers/run.py --again atlas   # measure one anew, keep what is known of the others

Run it with the Python of atlas's own environment. Every other program gets a virtual environment of
its own, made from `requirements-NAME.txt`; the package registry is the only network that is used.
Each works on the same blocks with the same two models (models.py), in processes of its own, in
turns whose order changes from round to round. What a process found is kept as a file in the working
folder, so that a run that was stopped goes on.

Time and memory are real: the models run. Only two things are looked up, in runs that are not timed:
the vectors of all of SciFact when the peers' indexes are made, and the scores of pairs when the
questions that the timed rounds left over are reranked. Both depend on nothing but their texts.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from environments import PEERS, interpreter, versions
from material import Material, model_folder, prepare
from schedule import Plan, Runner, measure
from table import report

ROOT = Path(__file__).resolve().parents[2]
FULL = Plan(documents=None, part=250, rounds=3, asked=300, reranked=45, ingests=2, colds=5)
QUICK = Plan(documents=500, part=40, rounds=2, asked=40, reranked=10, ingests=1, colds=2)
SETS = ("galaxy-s10", "scifact")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [peer.name for peer in PEERS]
    add = parser.add_argument
    add("--quick", action="store_true", help="few questions and documents")
    add("--again", action="append", default=[], choices=names, help="forget what is known of one")
    add("--peers", nargs="+", default=names, choices=names, help="only these (all)")
    add("--sets", nargs="+", default=SETS, choices=SETS, help="only these (both)")
    add("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the sets' folder")
    place = Path(tempfile.gettempdir()) / "atlas-peers"
    add("--folder", type=Path, default=place, help=f"working folder ({place})")
    add("--environments", type=Path, help="where virtual environments are (in the folder)")
    add("--table", action="store_true", help="measure nothing, print the table of what is known")
    arguments = parser.parse_args()
    for name in arguments.sets:
        if not (arguments.data / name).is_dir():
            sys.exit(f"{arguments.data / name}: no such folder; name that of the sets with --data")
    plan = QUICK if arguments.quick else FULL
    folder = arguments.folder.resolve() / ("quick" if arguments.quick else "full")
    peers = [peer for peer in PEERS if peer.name in arguments.peers]
    pythons = {
        peer.name: interpreter(peer, arguments.environments or arguments.folder / "environments")
        for peer in peers
    }
    print(*(f"{peer.name}: {versions(peer, pythons[peer.name])}" for peer in peers), sep="\n")
    sets: list[Material] = []
    for name in arguments.sets:
        os.environ["ATLAS_STATE"] = str(folder / name / "state")
        print(f"preparing {name}", file=sys.stderr)
        documents = plan.documents if name == "scifact" else None
        sets.append(prepare(name, arguments.data, folder / name, documents, plan.part))
    models = {
        "encoder": str(model_folder("encoder", "bge-small-en-v1.5", folder / "models")),
        "reranker": str(model_folder("reranker", "ms-marco-minilm-l-12-v2", folder / "models")),
    }
    runner = Runner(folder=folder, pythons=pythons, models=models, dry=arguments.table)
    for name in arguments.again:
        runner.forget(name)
    for material in sets:
        measure(runner, material, peers, plan)
    for material in sets:
        print(report(runner, material, peers, plan))
    if runner.failures:
        sys.exit("; ".join(runner.failures))


if __name__ == "__main__":
    main()
