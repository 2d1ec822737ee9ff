"""`ingest`: documents to an index."""

from __future__ import annotations

import sys

import click

from atlas.cli.shared import (
    FINISHED_IN_PART,
    Bar,
    errors_for_people,
    folder_option,
    json_option,
    notes,
    print_json,
    sample_option,
    skipped_files,
)


@click.command()
@folder_option
@sample_option
@json_option
@errors_for_people
def ingest(folder: str, sample: bool, as_json: bool) -> None:
    """Build the index, or redo what changed; `ask` does this by itself when needed."""
    from atlas.collection import Collection
    from atlas.ingest import ingest as run

    collection = Collection.open(folder, sample=sample)
    notes(collection.notes)
    with Bar() as bar:
        report = run(collection, bar, lambda: click.echo("waiting for another ingest", err=True))
    if as_json:
        print_json(
            {
                "documents": report.documents,
                "blocks": report.blocks,
                "skipped": [{"path": s.path, "reason": s.reason} for s in report.skipped],
                "warnings": list(report.warnings),
                "recomputed": report.recomputed,
                "seconds": round(report.seconds, 3),
            }
        )
    else:
        done = "" if report.built else " (already current)"
        click.echo(
            f"{report.documents} documents, {report.blocks} blocks, {report.recomputed} of them "
            f"embedded now, in {report.seconds:.1f} s{done}"
        )
    skipped_files(report.skipped)
    notes(report.warnings)
    if report.skipped:
        sys.exit(FINISHED_IN_PART)
