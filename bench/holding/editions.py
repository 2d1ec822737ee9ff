"""A collection in numbered editions, and what an index says of which edition it is.

Every edition changes many documents at once, each of which names it. So an index that holds the
names of two editions is a mixture, and one that holds a single name is whole.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holding.processes import Done, Launcher

ROOT = Path(__file__).resolve().parent.parent.parent
LISTS = 6
"""Documents that only tell the edition."""
PDFS_CHANGED = 2
NAMED = re.compile(r"ED-\d+")
MARK = "\n\n## Edition of this document\n\n"
TAIL = b"\n%ED-"
OF_THE_RUN = frozenset({"id", "time", "timings_seconds", "fingerprints"})
"""Parts of a trace that differ between two equal answers."""
HELD_OUT = """\
- id: H1
  question: how tight are the crank bolts
  relevant: [MANUAL-1]
  facts: [[40 Nm]]
- id: H2
  question: how long is the lock under warranty
  relevant: [WARR-1]
  facts: [[5 years]]
"""


def small_collection(root: Path) -> Path:
    """A small collection with cases, for runs of seconds."""
    sys.path.insert(0, str(ROOT / "tests"))
    from small import collection

    made = collection(root)
    (root / "heldout").mkdir()
    (root / "heldout" / "core.yaml").write_text(HELD_OUT, encoding="utf-8")
    for number in range(24):
        text = (
            f"# Part {number}\n\n## Use\n\nPart {number} fits.\n\n## Care\n\nKeep {number} dry.\n"
        )
        (made / "documents" / f"part-{number}.md").write_text(text, encoding="utf-8")
    return made


def own_collection(root: Path) -> Path:
    """A copy of the repository's collection, without its index."""
    root.mkdir(parents=True)
    for name in ("documents", "cases", "heldout"):
        shutil.copytree(ROOT / name, root / name)
    (root / "heldout" / "ledger.jsonl").unlink(missing_ok=True)
    shutil.copy2(ROOT / "atlas.yaml", root)
    return root


COLLECTIONS = {"small": small_collection, "own": own_collection}
QUESTIONS = {
    "small": ("how long is the battery under warranty", "what does error E-417 mean"),
    "own": ("How long is the battery of a C-3 under warranty?", "What does error E-417 mean?"),
}
EDITION_QUESTIONS = tuple(f"which edition is parts list {number}" for number in (1, 4))


def set_edition(root: Path, number: int) -> None:
    """Change the documents to those of an edition."""
    documents = root / "documents"
    for place in range(LISTS):
        text = f"# Parts list {place}\n\n## Edition\n\nParts list {place} is edition ED-{number}.\n"
        (documents / f"list-{place}.md").write_text(text, encoding="utf-8")
    for path in sorted(documents.glob("*.md")):
        if not path.name.startswith("list-"):
            text = path.read_text(encoding="utf-8").partition(MARK)[0].rstrip("\n")
            path.write_text(f"{text}{MARK}It is edition ED-{number}.\n", encoding="utf-8")
    for path in sorted(documents.glob("*.pdf"))[:PDFS_CHANGED]:
        data = path.read_bytes().partition(TAIL)[0]  # what follows the end is passed over
        path.write_bytes(data + TAIL + str(number).encode() + b"\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What an index said when it was asked."""

    done: Done
    editions: frozenset[str]
    """Every edition that is named in an answer, a citation, a supplied block, or any block."""
    answers: tuple[str, ...]
    """Status, answer, citations and what was supplied, with the edition left out."""
    traces: tuple[str, ...]
    """All but what differs between two equal answers."""


NOTHING = Look(
    done=Done(code=0, out="", err="", seconds=0.0), editions=frozenset(), answers=(), traces=()
)


def look(launcher: Launcher, root: Path, kind: str, *, frozen: bool = True, **more: Any) -> Look:
    """Ask a collection some questions; `frozen` leaves the index as it is."""
    questions = "\n".join((*QUESTIONS[kind], *EDITION_QUESTIONS)) + "\n"
    done = launcher.command(
        "ask", "--json", "-C", str(root), stdin=questions, frozen=frozen, **more
    )
    return look_of(done, texts_of(root) if frozen and not done.code else "")


def look_of(done: Done, texts: str = "") -> Look:
    """The same of what `ask --json` printed."""
    rows: list[dict[str, Any]] = []
    for line in done.out.splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            return Look(done=done, editions=frozenset(), answers=(), traces=())
    return Look(
        done=done,
        editions=frozenset(NAMED.findall(done.out)) | frozenset(NAMED.findall(texts)),
        answers=tuple(NAMED.sub("ED", _essence(row)) for row in rows),
        traces=tuple(
            json.dumps({k: v for k, v in row.items() if k not in OF_THE_RUN}) for row in rows
        ),
    )


def _essence(trace: dict[str, Any]) -> str:
    cited = sorted((item["ref"], item["quote"]) for item in trace["citations"])
    return json.dumps([trace["status"], trace["answer"], cited])


def texts_of(root: Path) -> str:
    """The text of every block of the index in use; none where it cannot be opened."""
    from atlas.collection import Collection
    from atlas.errors import IndexDamagedError
    from atlas.ingest import open_index

    try:
        index = open_index(Collection.open(root))
    except IndexDamagedError:
        return ""
    if index is None:
        return ""
    try:
        return "\n".join(index.block(number).text for number in range(len(index)))
    finally:
        index.close()


def listing(root: Path) -> tuple[str, ...]:
    """Every file of the state folder, with generations under one name each."""
    state = root / ".atlas"
    return tuple(
        sorted(
            re.sub(r"\bg-\w+", "g", path.relative_to(state).as_posix())
            for path in state.rglob("*")
            if path.is_file()
        )
    )
