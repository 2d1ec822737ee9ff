"""Broken and hostile YAML, JSON and Markdown at every door where atlas reads a file.

Each file is read as if it were settings, cases, labels, a draw, payloads, metadata of a document,
a document, an imported test set or a past run. It is accepted, or refused in one line that names
it, within two seconds of the processor's time. Nothing else may happen.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from atlas.documents import read_document
from atlas.errors import AtlasError
from atlas.measure.cases import load_cases
from atlas.measure.draw_file import load_draw
from atlas.measure.imports.beir import import_beir
from atlas.measure.labels import load_labels
from atlas.measure.payloads import load_payloads
from atlas.measure.ragas_rows import read_ragas
from atlas.measure.runs import load_run
from atlas.measure.trace_file import read_traces
from atlas.records import Reading
from atlas.settings import load_settings

ATTACKS = Path(__file__).resolve().parents[2] / "shared" / "data" / "attacks"
SECONDS = 2.0


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def settings(folder: Path, data: bytes) -> None:
    written(folder, "atlas.yaml", data)
    load_settings(folder)


def cases(folder: Path, data: bytes) -> None:
    written(folder, "cases/core.yaml", data)
    load_cases(folder)


def labels(folder: Path, data: bytes) -> None:
    load_labels(written(folder, "labels.yaml", data))


def label_lines(folder: Path, data: bytes) -> None:
    load_labels(written(folder, "labels.jsonl", data))


def draw(folder: Path, data: bytes) -> None:
    load_draw(written(folder, "draw.yaml", data))


def payloads(folder: Path, data: bytes) -> None:
    load_payloads(written(folder, "payloads.yaml", data))


def payload_lines(folder: Path, data: bytes) -> None:
    load_payloads(written(folder, "payloads.jsonl", data))


def payload_json(folder: Path, data: bytes) -> None:
    load_payloads(written(folder, "payloads.json", data))


def sidecar(folder: Path, data: bytes) -> None:
    written(folder, "manual.pdf.yaml", data)
    read_document(written(folder, "manual.pdf", b"%PDF-1.7"), folder)


def front_matter(folder: Path, data: bytes) -> None:
    path = written(folder, "manual.md", b"---\n" + data + b"\n---\n# Manual\n\nWords.\n")
    read_document(path, folder)


def document(folder: Path, data: bytes) -> None:
    read_document(written(folder, "manual.md", data), folder)


def test_set(folder: Path, data: bytes) -> None:
    list(read_ragas(written(folder, "ragas.jsonl", data)))


def corpus(folder: Path, data: bytes) -> None:
    written(folder, "beir/corpus.jsonl", data)
    written(folder, "beir/queries.jsonl", b'{"_id": "q", "text": "how long"}\n')
    written(folder, "beir/qrels/test.tsv", b"query-id\tcorpus-id\tscore\nq\td\t1\n")
    import_beir(folder / "beir", folder / "target")


def traces(folder: Path, data: bytes) -> None:
    list(read_traces(written(folder, "traces.jsonl", data)))


def run(folder: Path, data: bytes) -> None:
    load_run(str(written(folder, "run.json", data)), folder)


test_set.__test__ = False  # type: ignore[attr-defined]
Door = Callable[[Path, bytes], None]
YAML_DOORS = (settings, cases, labels, draw, payloads, sidecar, front_matter)
LINE_DOORS = (label_lines, payload_lines, test_set, corpus, traces)
JSON_DOORS = (payload_json, run)
ALL_DOORS = (*YAML_DOORS, *LINE_DOORS, *JSON_DOORS, document)


@pytest.fixture(autouse=True)
def _no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata beside a PDF is what is tried here, not the PDF."""
    empty = Reading(title="", text="", sections=())
    monkeypatch.setattr("atlas.documents.read_pdf", lambda path: empty)


_PLACE = re.compile(r"\.(?:yaml|jsonl|json|md):\d+: ")
"""File and line, as every refusal begins."""


def outcome(door: Door, folder: Path, data: bytes) -> str:
    """ "" where the file is accepted, else the one line that refuses it."""
    started = time.process_time()
    try:
        door(folder, data)
        message = ""
    except AtlasError as error:
        message = str(error)
    assert time.process_time() - started < SECONDS, door.__name__
    assert message.isprintable(), message
    return message


# ---- files made here ------------------------------------------------------------------------

BOMB = b"a: &a [x, x]\n" + b"".join(
    b"%c: &%c [*%c, *%c]\n" % (n, n, n - 1, n - 1) for n in range(ord("b"), ord("z"))
)
BROKEN_YAML = {
    "alias bomb": BOMB,
    "holds itself": b"a: &a [*a]\n",
    "deep": b"[" * 20_000,
    "deep mappings": b"".join(b" " * n + b"a:\n" for n in range(400)),
    "a python object": b"a: !!python/object/apply:os.system [echo]\n",
    "another language": b"a: !ruby/object:Gem {}\n",
    "a key twice": b"a: 1\na: 2\n",
    "a merged key": b"<<: {a: 1}\n",
    "a list as a key": b"? [a, b]\n: c\n",
    "tabs": b"a:\n\t- b\n",
    "two documents": b"a: 1\n---\nb: 2\n",
    "a zero byte": b"a: b\0c\n",
    "no UTF-8": b"title: caf\xe9\nproducts: [\xff]\n",
    "a number of many digits": b"k: " + b"9" * 6_000,
    "no number": b"k: .nan\n",
    "an impossible day": b"as_of: 2026-02-31\n",
    "an unknown key": b"colour: red\n",
    "half a pair": b'title: "\\ud800"\n',
    "a list": b"- a\n- b\n",
    "a word": b"words\n",
    "one long line": b"a: '" + b"x" * 1_000_000,
}
BROKEN_LINES = {
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 50_000,
    "no number": b'{"question": NaN}\n',
    "endless": b'{"question": Infinity}\n',
    "a number of many digits": b'{"question": ' + b"9" * 6_000 + b"}\n",
    "a key twice": b'{"a": 1, "a": 2}\n',
    "no UTF-8": b'{"question": "caf\xe9"}\n',
    "half a pair": b'{"question": "\\ud800", "sources": [], "answer": "", "label": "wrong"}\n',
    "cut off": b'{"question": "how',
    "a list": b"[1, 2]\n",
    "a word": b"null\n",
    "a zero byte": b'{"a": "\0"}\n',
    "two in a line": b'{"a": 1} {"b": 2}\n',
    "a control character": b'{"a": "\x1b[2J"}\n',
}


@pytest.mark.parametrize("door", YAML_DOORS, ids=lambda door: door.__name__)
@pytest.mark.parametrize("name", BROKEN_YAML)
def test_broken_yaml_is_refused_with_its_line(tmp_path: Path, door: Door, name: str) -> None:
    message = outcome(door, tmp_path, BROKEN_YAML[name])
    if name == "no UTF-8" and door in (sidecar, front_matter):
        assert message == ""  # read as Windows-1252, with a warning
        return
    assert _PLACE.search(message), message


@pytest.mark.parametrize("door", [*LINE_DOORS, *JSON_DOORS], ids=lambda door: door.__name__)
@pytest.mark.parametrize("name", BROKEN_LINES)
def test_broken_json_is_refused_with_its_line(tmp_path: Path, door: Door, name: str) -> None:
    message = outcome(door, tmp_path, BROKEN_LINES[name])
    assert _PLACE.search(message) or (door is run and message.startswith(str(tmp_path)))


# ---- files that broke other readers ---------------------------------------------------------


def attacks(*kinds: str) -> Iterator[Path]:
    return (path for path in sorted(ATTACKS.rglob("*")) if path.suffix.removeprefix(".") in kinds)


@pytest.mark.skipif(not ATTACKS.is_dir(), reason="the shared hostile files are not here")
@pytest.mark.parametrize("door", ALL_DOORS, ids=lambda door: door.__name__)
def test_every_hostile_file_is_accepted_or_refused_in_one_line(tmp_path: Path, door: Door) -> None:
    accepted = set()
    files = list(attacks("yaml", "json", "jsonl", "md", "txt"))
    for number, path in enumerate(files):
        message = outcome(door, tmp_path / str(number), path.read_bytes())
        if not message:
            accepted.add(path.name)
        elif door is not run:
            assert _PLACE.search(message), (path.name, message)
    assert len(files) > 150
    if door is document:
        # Those that begin with `---` and do not close it, one with a zero byte, and one that is
        # nested so deep that no text of it is read.
        refused = {path.suffix for path in files if path.name not in accepted}
        assert len(files) - len(accepted) < 40
        assert refused == {".yaml", ".json", ".md"}
    else:
        assert accepted == ACCEPTED.get(door.__name__, set())


ACCEPTED = {
    "payload_json": {"text_attack_train.json", "nq.json"},
    "payload_lines": {"latentinjection_strings.jsonl"},
    # Two encodings in one file: its text is nonsense, and no front matter.
    "front_matter": {
        "i_string_UTF-16LE_with_BOM.json", "i_string_utf16BE_no_BOM.json",
        "i_string_utf16LE_no_BOM.json",
    },
}  # fmt: skip
"""What the doors take: the published payloads, which are made for two of them."""
