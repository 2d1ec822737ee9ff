"""The command line: parse, call, print. Every command is a thin skin over a function.

Results go to stdout, progress and warnings to stderr. Exit codes: 0 done (an abstention or a
question back is a result), 1 a case failed, 2 usage or bad input, 3 finished in part, 4 nothing
to measure; 130 interrupted, 141 the reader of the output went away.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from datetime import date
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from atlas import __version__
from atlas.errors import AtlasError, UsageError

if TYPE_CHECKING:
    from atlas.assistant import Assistant
    from atlas.collection import Collection
    from atlas.records import Scope, Skipped

FINISHED_IN_PART, INTERRUPTED, OUTPUT_GONE = 3, 130, 141
"""Exit codes that no AtlasError brings; the last two are 128 and the number of the signal."""

folder_option = click.option(
    "-C", "folder", metavar="DIR", default=".", show_default=True, help="The collection's folder."
)
sample_option = click.option(
    "--sample", is_flag=True, help="Only the sample of documents that atlas.yaml names."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
reader_option = click.option(
    "--reader", metavar="GROUP", help="The reader group you vouch for; default: anyone."
)


def errors_for_people(command: Callable[..., None]) -> Callable[..., None]:
    """Turn an AtlasError into one line on stderr and its exit code; Ctrl-C ends without noise."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except AtlasError as error:
            from atlas.show import printable

            click.echo(f"atlas: {printable(str(error))}", err=True)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("atlas: interrupted", err=True)
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            _discard_output()
            sys.exit(OUTPUT_GONE)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            click.echo("atlas: the output could not be written: no space left", err=True)
            _discard_output()
            sys.exit(AtlasError.exit_code)

    return run


def _discard_output() -> None:
    """Send what is still to be written nowhere, so that the end of the process stays quiet."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96})
@click.version_option(__version__, prog_name="atlas")
def cli() -> None:
    """Answers questions from a folder of documents with checked citations, or declines."""


@cli.command()
@click.argument("question", required=False)
@folder_option
@sample_option
@reader_option
@click.option(
    "--date", "day", metavar="DATE", help="The day the answer must hold on; default: today."
)
@click.option("--product", "products", metavar="NAME", multiple=True, help="A product to keep to.")
@json_option
@errors_for_people
def ask(
    question: str | None,
    folder: str,
    sample: bool,
    reader: str | None,
    day: str | None,
    products: tuple[str, ...],
    as_json: bool,
) -> None:
    """Answer QUESTION with its sources, ask back, or decline.

    Without QUESTION on a terminal, a small loop keeps the models loaded; otherwise questions are
    read from stdin, one a line.
    """
    from atlas.assistant import clean_question
    from atlas.records import Scope

    scope = Scope(reader=reader, date=_day(day), products=products)
    if question is not None:
        clean_question(question)  # refuse before seconds go into opening models
    assistant = _open(folder, sample)
    if question is not None:
        whole = _answer(assistant, question, scope, as_json)
    elif sys.stdin is not None and sys.stdin.isatty():
        whole = _loop(assistant, scope, as_json)
    else:
        whole = _batch(assistant, scope, as_json)
    if not whole:
        sys.exit(FINISHED_IN_PART)


@cli.command()
@folder_option
@sample_option
@json_option
@errors_for_people
def ingest(folder: str, sample: bool, as_json: bool) -> None:
    """Build the index, or redo what changed; `ask` does this by itself when needed."""
    from atlas.collection import Collection
    from atlas.ingest import ingest as run

    collection = Collection.open(folder, sample=sample)
    _notes(collection.notes)
    with _Bar() as bar:
        report = run(collection, bar, lambda: click.echo("waiting for another ingest", err=True))
    if as_json:
        _print_json(
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
    _skipped(report.skipped)
    _notes(report.warnings)
    if report.skipped:
        sys.exit(FINISHED_IN_PART)


@cli.command()
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
    outcome = checking.run(_open(folder, sample), cases, accept)
    if as_json:
        _print_json(outcome.as_json())
    else:
        for line in outcome.lines():
            click.echo(line)
    if outcome.core_failed:
        sys.exit(1)


@cli.command()
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
    with _Bar() as bar:
        values = past_trace(trace_id, collection, reader, bar).values
    if as_json:
        _print_json(values)
    else:
        click.echo(trace_text(values))


# ---- helpers --------------------------------------------------------------------------------


def _open(folder: str, sample: bool) -> Assistant:
    from atlas.assistant import Assistant
    from atlas.collection import Collection

    collection: Collection = Collection.open(folder, sample=sample)
    _notes(collection.notes)
    with _Bar() as bar:
        return Assistant.of(collection, progress=bar, told=lambda note: _notes((note,)))


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
        _notes((str(error),))
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
    from atlas.assistant import clean_question

    whole, answered = True, 0
    refused: UsageError | None = None
    for number, text in enumerate(sys.stdin or (), 1):
        if not text.strip():
            continue
        try:
            clean_question(text)
        except UsageError as error:
            refused = UsageError(f"line {number} of stdin: {error}")
            _notes((str(refused),))
            whole = False
            continue
        if answered and not as_json:
            click.echo()
        whole &= _answer(assistant, text.strip(), scope, as_json)
        answered += 1
    if not answered:
        raise refused or UsageError("no question; write it after `ask`, in quotation marks")
    return whole


def _print_json(values: Any) -> None:
    from atlas.trace import escaped

    text = json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False, default=str)
    click.echo(escaped(text))


def _notes(notes: Sequence[str]) -> None:
    from atlas.show import printable

    for note in notes:
        click.echo(f"note: {printable(note)}", err=True)


def _skipped(skipped: Sequence[Skipped]) -> None:
    from atlas.show import printable

    for item in skipped:
        click.echo(f"skipped {printable(item.path)}: {printable(item.reason)}", err=True)


class _Bar:
    """A progress bar on stderr, one stage after the other; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def stage(self, name: str, total: int) -> None:
        from tqdm import tqdm

        if self._bar is not None:
            self._bar.close()
        self._bar = tqdm(total=total, desc=name, unit="", file=sys.stderr, leave=True, disable=None)

    def step(self, count: int = 1) -> None:
        if self._bar is not None:
            self._bar.update(count)


def main() -> None:
    """The `atlas` command."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 is no reason to fail
    cli(prog_name="atlas")
