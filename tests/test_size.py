"""What grows with a collection: memory by little per block, and nothing of what opening reads."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FEW, MANY = 500, 5000
MEASURED = """
    import json, sys
    sys.path.insert(0, {tests!r})
    from fakes import FakeEncoder, FakeReranker
    import atlas.ingest
    fake = FakeEncoder(dimension=128)
    atlas.ingest.load_encoder = lambda name, state: fake
    from pathlib import Path
    from atlas.assistant import Assistant
    from atlas.opening import current_index
    from atlas.collection import Collection

    def peak():
        return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024

    collection = Collection.open({root!r})
    if {task!r} == "ingest":
        blocks = atlas.ingest.ingest(collection).blocks
    else:
        assistant = Assistant(collection, current_index(collection), fake, FakeReranker())
        blocks = len(assistant.index)
        for n in range(30):
            assistant.ask(f"What does word{{n * 7 % 900}} say about word{{n}}?")
    print(json.dumps([blocks, peak()]))
"""


def collection(root: Path, blocks: int) -> Path:
    """A collection of documents of a hundred sections, one block each."""
    rng = random.Random(blocks)
    (root / "documents").mkdir(parents=True)
    for number in range(blocks // 100):
        sections = [
            f"## Part {n}\n\n{' '.join(f'word{rng.randrange(900)}' for _ in range(90))}.\n"
            for n in range(100)
        ]
        path = root / "documents" / f"{number:03}.md"
        path.write_text(f"# Paper {number}\n\n{''.join(sections)}")
    return root


def measured(root: Path, task: str) -> tuple[int, int]:
    """Blocks, and the peak of memory in bytes of a process that ingests or asks."""
    script = MEASURED.format(tests=str(ROOT / "tests"), root=str(root), task=task)
    lines = [line.removeprefix("    ") for line in script.splitlines()]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "ATLAS_STATE"},
    )
    assert done.returncode == 0, done.stderr
    blocks, peak = json.loads(done.stdout)
    return blocks, peak


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc"
)
def test_memory_grows_by_little_with_every_block(tmp_path: Path) -> None:
    roots = [collection(tmp_path / str(blocks), blocks) for blocks in (FEW, MANY)]
    for task, bound in (("ingest", 3500), ("ask", 3500)):
        (few, low), (many, high) = (measured(root, task) for root in roots)
        assert (few, many) == (FEW, MANY)
        assert (high - low) / (many - few) < bound, f"{task}: {low:,} to {high:,} bytes"


def test_the_bench_prints_every_figure_and_whether_the_bars_hold(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, str(ROOT / "bench" / "size.py"), "--blocks", "250"),
            *("--index", "graph", "--keep", str(tmp_path)),
        ],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode in (0, 1), done.stderr  # 1: a bar that a busy machine does not keep
    figures = dict(re.findall(r"^  (\S.*?)\s{2,}(\S+)", done.stdout, re.MULTILINE))
    assert int(figures["documents"].split(".")[0]) > 0
    for name in ("bytes of the index per block", "ms to open later", "ms of a question, median"):
        assert float(figures[name].replace(",", "")) > 0
    assert 0.9 <= float(figures["recall_10_all"]) <= 1
    assert 0.9 <= float(figures["recall_100_half"]) <= 1
    assert done.stdout.count("bar ") == 4
