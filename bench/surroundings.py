"""What every measurement here needs: the machine in one line, a private copy of a collection.

A copy keeps a measurement apart from a collection that is being edited, and leaves its index,
its traces and its held-out questions alone: only atlas.yaml, documents/ and cases/ are copied.
"""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def machine() -> str:
    """Processor, cores that this process may use, Python, day and load, in one line."""
    processor = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                processor = " ".join(line.partition(":")[2].split())
                break
    except OSError:
        pass
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    day = time.strftime("%Y-%m-%d %H:%M")
    return f"{processor}, {cores} cores, Python {platform.python_version()}, {day}{load}"


def private_copy(collection: Path, into: Path) -> Path:
    """Copy a collection below `into`, have its state kept there too, and return its folder."""
    copy = into / "collection"
    copy.mkdir()
    for name in ("documents", "cases"):
        if (collection / name).is_dir():
            shutil.copytree(collection / name, copy / name)
    if (collection / "atlas.yaml").is_file():
        shutil.copy2(collection / "atlas.yaml", copy)
    os.environ["ATLAS_STATE"] = str(into / "state")
    return copy


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The median, and the lowest and highest value in brackets."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f}, {high:.{digits}f})"
