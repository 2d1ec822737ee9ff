"""`check`: do the core cases pass."""

from __future__ import annotations

import sys

import click

from atlas.cli.shared import (
    errors_for_people,
    folder_option,
    json_option,
    open_assistant,
    print_json,
    sample_option,
)
from atlas.errors import UsageError


@click.command()
@folder_option
@sample_option
@click.option("--all", "every", is_flag=True, help="Every development case, not only the core.")
@click.option(
    "--accept",
    is_flag=True,
    help="Record the cases as reviewed: cases/accepted.json keeps what they rest on now.",
)
@json_option
@errors_for_people
def check(folder: str, sample: bool, every: bool, accept: bool, as_json: bool) -> None:
    """Ask the core cases and say which pass; exit code 1 where a core case fails.

    Also lists the cases to review: a source has changed since the case was last accepted, or
    another block in its scope now holds all of its facts.
    """
    from atlas.collection import Collection
    from atlas.measure import check as checking

    if accept and sample:
        raise UsageError("--accept looks at the whole collection; leave --sample out")
    root = Collection.open(folder, sample=sample).root
    cases = checking.cases_of(root, every)  # refuse bad files before models are opened
    outcome = checking.run(open_assistant(folder, sample), cases, accept)
    if as_json:
        print_json(outcome.as_json())
    else:
        for line in outcome.lines():
            click.echo(line)
    if outcome.core_failed:
        sys.exit(1)
