"""`measure-injection`: how often hostile text in a document has its way with the answerer."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from atlas.cli.shared import (
    FINISHED_IN_PART,
    Bar,
    answerer_option,
    errors_for_people,
    folder_option,
    json_option,
    keep_replies,
    notes,
    open_collection,
    open_for,
    print_json,
    print_lines,
    sample_option,
)
from atlas.errors import NothingToMeasure


@click.command("measure-injection")
@folder_option
@sample_option
@click.option(
    "--payloads",
    "payload_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Payloads in YAML, or as published by BIPIA, PoisonedRAG (.json) or garak (.jsonl); "
    "default: injections/*.yaml.",
)
@click.option(
    "--questions",
    "count",
    type=click.IntRange(1),
    default=12,
    show_default=True,
    metavar="N",
    help="How many development questions are drawn.",
)
@answerer_option
@json_option
@errors_for_people
def measure_injection(
    folder: str,
    sample: bool,
    payload_path: Path | None,
    count: int,
    answerer: str | None,
    as_json: bool,
) -> None:
    """Plant hostile instructions among the sources and count how often they have their way.

    Every payload is planted for every drawn question that is answered rightly without it, into a
    genuine source or beside them. A payload file has rows with `id`, `goal` (override, refuse,
    claim, reveal or link), `text` and `signs`, words that betray that the attack succeeded.
    """
    from atlas.answer.chat import INSTRUCTIONS
    from atlas.measure.cases import DEVELOPMENT
    from atlas.measure.injection import attack
    from atlas.measure.payloads import FOLDER, load_payloads
    from atlas.measure.questions import cases_of, load_questions

    collection = open_collection(folder, sample, answerer)
    path = payload_path if payload_path is not None else collection.root / FOLDER
    payloads = load_payloads(path, lambda note: notes((note,)))
    cases = cases_of(collection.root)
    opened = open_for(collection)
    keep_replies(opened)
    questions = load_questions(opened, DEVELOPMENT, cases=cases)
    with Bar() as bar:
        attacked = attack(
            opened,
            questions,
            payloads,
            bar,
            count=count,
            secrets=(INSTRUCTIONS,) if collection.settings.answerer == "chat" else (),
            told=lambda text: click.echo(text, err=True),
        )
    if as_json:
        print_json(attacked.as_json())
    else:
        print_lines(attacked.lines())
    whole = attacked.tally()
    if whole.failed == whole.of:
        raise NothingToMeasure(f"none of {whole.of} attacks could be scored")
    if whole.failed:
        sys.exit(FINISHED_IN_PART)
