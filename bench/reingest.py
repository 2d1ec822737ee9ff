"""What does it cost to build an index, and to build it again after one sentence changed?

    python bench/reingest.py [-C DIR] [--document PATH]

Works on a copy of the collection in a temporary folder. Ingests it, ingests it again unchanged,
changes one sentence of one Markdown document, ingests once more. Printed for each: documents,
blocks, blocks whose vector was computed, seconds. Both models are opened once before, so that
their first-time preparation is in none of the figures.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from surroundings import ROOT, machine, private_copy

ADDITION = "It is looked at once a year"
_SENTENCE = re.compile(r"(?<=[a-z])\.(?=\s|$)")


def change_a_sentence(path: Path) -> None:
    """Add some words to the end of the last sentence of a Markdown document."""
    text = path.read_text(encoding="utf-8")
    ends = [match.start() for match in _SENTENCE.finditer(text)]
    if not ends:
        sys.exit(f"{path}: no sentence to change; name another with --document")
    path.write_text(f"{text[: ends[-1]]}. {ADDITION}{text[ends[-1] :]}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-C", dest="folder", type=Path, default=ROOT, help="collection (this one)")
    parser.add_argument("--document", help="what to change, below documents/ (the first .md)")
    arguments = parser.parse_args()
    print(machine())
    from atlas.collection import Collection
    from atlas.ingest import ingest
    from atlas.models import load_encoder

    with tempfile.TemporaryDirectory() as temporary:
        copy = private_copy(arguments.folder, Path(temporary))
        folder = copy / "documents"
        names = (
            [arguments.document]
            if arguments.document
            else sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
        )
        if not names or not (folder / names[0]).is_file():
            sys.exit(f"{arguments.folder}: no such Markdown document to change")
        collection = Collection.open(copy)
        load_encoder(collection.settings.encoder, collection.state)
        print(f"{'':44} {'documents':>9} {'blocks':>7} {'computed':>9} {'seconds':>8}")

        def report(what: str) -> None:
            done = ingest(collection)
            print(
                f"{what:44} {done.documents:9} {done.blocks:7} {done.recomputed:9}"
                f" {done.seconds:8.2f}"
            )

        report("from nothing")
        report("again, unchanged")
        change_a_sentence(folder / names[0])
        report(f"one sentence of {names[0]} changed")


if __name__ == "__main__":
    main()
