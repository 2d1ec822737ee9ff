"""Fills a state folder with all that commands keep: runs, looks, traces, replies, answers."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holding.editions import ROOT
from holding.processes import Done, Launcher, Order

CHAT_RUN = ("measure-answers", "--answerer", "chat", "--json", "--arms", "real", "--k", "5")
_CHANGING = {
    "id", "time", "timings_seconds", "fingerprints", "seconds", "milliseconds", "looks", "cost",
    "took_seconds", "index", "state", "latency", "flag", "notes", "name",
}  # fmt: skip
"""Keys whose values differ between two equal results."""


def comparable(done: Done) -> str:
    """The result of a command without what differs from run to run."""
    try:
        values = json.loads(done.out)
    except ValueError:
        return f"{done.code} {done.out}"
    return json.dumps(_without(values))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without(v) for k, v in value.items() if not _changes(k)}
    if isinstance(value, list):
        return [_without(item) for item in value]
    return value


def _changes(key: str) -> bool:
    return key in _CHANGING or "second" in key or "path" in key


@contextmanager
def chat_server(root: Path) -> Iterator[Any]:
    """A chat server that answers quickly, and a collection whose settings name it."""
    sys.path.insert(0, str(ROOT / "tests"))
    from chat_servers import FakeChat, answers

    def says(seen: Any) -> str:
        return '{"status": "not_in_sources", "sentences": [], "expression": ""}'

    with FakeChat(answers(says, delay=0.02)) as server:
        path = root / "atlas.yaml"
        text = re.split(r"(?m)^(?=# The model that answers|chat:)", path.read_text("utf-8"))[0]
        chat = f"chat: {{base_url: {server.base_url}, model: fake, in_flight: 1}}\n"
        path.write_text(text + chat, encoding="utf-8")
        yield server


def keep_all(launcher: Launcher, root: Path) -> None:
    """Make one of everything. The chat server must be running; see `chat_server`."""
    folder = ("-C", str(root))
    for arguments in (
        ("ingest",),
        ("measure", "--save", "first", "--json"),
        ("measure", "--save", "second", "--min-score", "0.4", "--json"),
        ("measure", "--held-out", "--json"),
        ("ask", "how long is the battery under warranty"),
    ):
        done = launcher.command(*arguments, *folder)
        assert done.code in (0, 1), f"{arguments}: {done.err}"
    process = launcher.begin(Order(arguments=(*CHAT_RUN, *folder)))
    until = time.monotonic() + 60
    while not _lines(root / ".atlas" / "answers") and time.monotonic() < until:
        time.sleep(0.005)
    process.kill()
    process.wait()


def _lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("*.jsonl"))
