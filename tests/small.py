"""A collection of three Markdown files, and an assistant on it that runs on stand-in models."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from fakes import FakeEncoder, FakeReranker
from pieces import use_weights

from atlas.assistant import Assistant
from atlas.collection import Collection

SETTINGS = """\
title: Small Bikes
as_of: 2026-03-02
products:
  C-3: [city bike]
  T-7: [trekking bike]
readers: [sales, workshop]
sample: [WARR]
"""
WARRANTY = """\
---
id: WARR
title: Battery warranty
products: [C-3]
---
# Battery warranty

## Term

The battery is under warranty for 3 years. The lock is under warranty for 5 years.

## Claims

Claims are made at a dealer within 30 days.
"""
MANUAL = """\
---
id: MANUAL
title: Manual
products: [T-7]
---
# Manual

## Bolts

Tighten the crank bolts of the T-7 to 40 Nm.

## Errors

Error E-417 means that the battery is too hot.
"""
PRICES = """\
---
id: PRICES
title: Price list
readers: [sales]
---
# Price list

## Batteries

The battery of the C-3 costs 499 EUR.
"""
FILES = {"warranty.md": WARRANTY, "manual.md": MANUAL, "prices.md": PRICES}
CASES = """\
- id: S1
  core: true
  question: how long is the battery under warranty
  relevant: [WARR-1]
  evidence: [The battery is under warranty for 3 years.]
  facts: [[3 years]]
- id: S2
  question: what is the airspeed of a swallow
  expect: abstain
"""
QUESTION = "how long is the battery under warranty"
FAKES = """\
import sys
sys.path.insert(0, {tests!r})
import atlas.answer.decision, atlas.assistant, atlas.ingest
from fakes import FakeEncoder, FakeReranker
from pieces import WEIGHTS
atlas.answer.decision.weights = lambda: WEIGHTS
atlas.assistant.load_encoder = atlas.ingest.load_encoder = lambda name, state: FakeEncoder()
atlas.assistant.load_both = lambda *names: (FakeEncoder(), FakeReranker())
"""


def collection(
    root: Path,
    files: Mapping[str, str] = FILES,
    *,
    settings: str = SETTINGS,
    cases: str | None = CASES,
) -> Path:
    """Write a collection; returns its root."""
    (root / "documents").mkdir(parents=True)
    for name, text in files.items():
        (root / "documents" / name).write_text(text, encoding="utf-8")
    if settings:
        (root / "atlas.yaml").write_text(settings, encoding="utf-8")
    if cases is not None:
        (root / "cases").mkdir()
        (root / "cases" / "core.yaml").write_text(cases, encoding="utf-8")
    return root


def use_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let atlas load the stand-ins in this process, and decide with weights made for them."""
    use_weights(monkeypatch)
    monkeypatch.setattr("atlas.assistant.load_encoder", lambda name, state: FakeEncoder())
    monkeypatch.setattr("atlas.ingest.load_encoder", lambda name, state: FakeEncoder())
    monkeypatch.setattr("atlas.assistant.load_both", lambda *names: (FakeEncoder(), FakeReranker()))


def opened(root: Path) -> Assistant:
    """An assistant on a collection; call `use_fakes` before."""
    return Assistant.of(Collection.open(root))


def command(*arguments: str, before: str = "") -> list[str]:
    """The command line that runs atlas on stand-in models in a process of its own."""
    fakes = FAKES.format(tests=str(Path(__file__).parent))
    program = f"{fakes}{before}\nfrom atlas.cli import main\nmain()"
    return [sys.executable, "-c", program, *arguments]


def run(
    *arguments: str, stdin: str | bytes = "", before: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run atlas on stand-in models in a process of its own."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    return subprocess.run(
        command(*arguments, before=before),
        input=data,
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, **(env or {})},
    )
