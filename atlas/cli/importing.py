"""`import`: questions, and documents where there are none, from files of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from atlas.cli.shared import Bar, errors_for_people, json_option, notes, print_json, print_lines
from atlas.errors import UsageError

if TYPE_CHECKING:
    from atlas.measure.imports.sources import Sources


@click.command("import")
@click.argument("form", metavar="beir|trec|ragas", type=click.Choice(("beir", "trec", "ragas")))
@click.argument("source", metavar="SOURCE", type=click.Path(path_type=Path))
@click.argument("target", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--split", metavar="NAME", help="BEIR: the qrels to take.  [default: test]")
@click.option("--held-out", is_flag=True, help="Write the questions into heldout/, not cases/.")
@json_option
@errors_for_people
def import_command(
    form: str, source: Path, target: Path, split: str | None, held_out: bool, as_json: bool
) -> None:
    """Make a collection, or cases for one, from a BEIR folder, TREC qrels or a Ragas test set.

    beir: a folder with corpus.jsonl, queries.jsonl and qrels/; DIR becomes a collection. trec: a
    folder with qrels and topics, whose document ids are labels of the collection in DIR. ragas: a
    JSON Lines or CSV test set; its contexts are looked up in DIR, or become its documents where it
    has none. Ids that match nothing are counted, and more than a few are an error.
    """
    from atlas.measure.imports.beir import import_beir
    from atlas.measure.imports.ragas import import_ragas
    from atlas.measure.imports.target import has_documents
    from atlas.measure.imports.trec import import_trec

    if split is not None and form != "beir":
        raise UsageError("--split names qrels of a BEIR folder; leave it out")
    if form == "beir":
        with Bar() as bar:
            done = import_beir(
                source, target, split=split or "test", held_out=held_out, progress=bar
            )
    elif form == "trec":
        done = import_trec(source, target, _sources(target), held_out=held_out)
    else:
        known = _sources(target) if has_documents(target) else None
        done = import_ragas(source, target, known, held_out=held_out)
    if as_json:
        print_json(done.as_json())
    else:
        print_lines(done.lines())


def _sources(target: Path) -> Sources:
    """What the labels and contexts of an import are looked up in."""
    from atlas.collection import Collection
    from atlas.measure.imports.sources import Sources
    from atlas.opening import current_index

    collection = Collection.open(target)
    notes(collection.notes)
    with Bar() as bar:
        index = current_index(collection, bar, lambda note: notes((note,)))
    blocks = [index.block(number) for number in range(len(index))]
    return Sources(tuple(index.documents()), blocks)
