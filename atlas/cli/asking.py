"""`ask` and `show`: one question, or a past one."""

from __future__ import annotations

import sys
from datetime import date
from typing import TYPE_CHECKING

import click

from atlas.cli.shared import (
    FINISHED_IN_PART,
    Bar,
    answerer_option,
    errors_for_people,
    folder_option,
    json_option,
    notes,
    open_assistant,
    print_json,
    reader_option,
    sample_option,
)
from atlas.errors import AtlasError, UsageError

if TYPE_CHECKING:
    from atlas.assistant import Assistant
    from atlas.records import Scope


@click.command()
@click.argument("question", required=False)
@folder_option
@sample_option
@reader_option
@click.option(
    "--date", "day", metavar="DATE", help="The day the answer must hold on; default: today."
)
@click.option("--product", "products", metavar="NAME", multiple=True, help="A product to keep to.")
@answerer_option
@json_option
@errors_for_people
def ask(
    question: str | None,
    folder: str,
    sample: bool,
    reader: str | None,
    day: str | None,
    products: tuple[str, ...],
    answerer: str | None,
    as_json: bool,
) -> None:
    """Answer QUESTION with its sources, ask back, or decline.

    Without QUESTION on a terminal, a small loop keeps the models loaded; otherwise questions are
    read from stdin, one a line.
    """
    from atlas.reading import clean_question
    from atlas.records import Scope

    scope = Scope(reader=reader, date=_day(day), products=products)
    if question is not None:
        clean_question(question)  # refuse before seconds go into opening models
    assistant = open_assistant(folder, sample, answerer)
    if question is not None:
        whole = _answer(assistant, question, scope, as_json)
    elif sys.stdin is not None and sys.stdin.isatty():
        whole = _loop(assistant, scope, as_json)
    else:
        whole = _batch(assistant, scope, as_json)
    if not whole:
        sys.exit(FINISHED_IN_PART)


@click.command()
@click.argument("trace_id", metavar="ID")
@folder_option
@sample_option
@reader_option
@json_option
@errors_for_people
def show(trace_id: str, folder: str, sample: bool, reader: str | None, as_json: bool) -> None:
    """Print a past trace; ID is its first digits, or `last`.

    The scope is checked again: a trace that was made for a reader group is shown to that group
    only, and none is shown to a reader who may no longer read what it rests on.
    """
    from atlas.collection import Collection
    from atlas.show import past_trace, trace_text

    collection = Collection.open(folder, sample=sample)
    with Bar() as bar:
        values = past_trace(trace_id, collection, reader, bar).values
    if as_json:
        print_json(values)
    else:
        click.echo(trace_text(values))


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no date; expected one such as 2026-03-01") from None


def _answer(assistant: Assistant, question: str, scope: Scope, as_json: bool) -> bool:
    """Ask, keep the trace, print. Returns whether there is a result, also a negative one."""
    from atlas.show import answer_text
    from atlas.trace import line, save

    trace = assistant.ask(question, scope)
    try:
        save(trace, assistant.collection.state)
    except AtlasError as error:
        notes((str(error),))
    click.echo(line(trace) if as_json else answer_text(trace.values))
    return trace.status != "failed"


def _loop(assistant: Assistant, scope: Scope, as_json: bool) -> bool:
    from atlas.show import printable

    click.echo("Ask a question; an empty line ends.", err=True)
    while True:
        try:
            question = input("? ").strip()
        except EOFError:
            click.echo(err=True)
            return True
        if not question:
            return True
        try:
            _answer(assistant, question, scope, as_json)
        except UsageError as error:
            click.echo(f"atlas: {printable(str(error))}", err=True)
        click.echo()


def _batch(assistant: Assistant, scope: Scope, as_json: bool) -> bool:
    """Answer every line of stdin; one that is no question is named and passed over."""
    from atlas.reading import clean_question

    whole, answered = True, 0
    refused: UsageError | None = None
    for number, text in enumerate(sys.stdin or (), 1):
        if not text.strip():
            continue
        try:
            clean_question(text)
        except UsageError as error:
            refused = UsageError(f"line {number} of stdin: {error}")
            notes((str(refused),))
            whole = False
            continue
        if answered and not as_json:
            click.echo()
        whole &= _answer(assistant, text.strip(), scope, as_json)
        answered += 1
    if not answered:
        raise refused or UsageError("no question; write it after `ask`, in quotation marks")
    return whole
