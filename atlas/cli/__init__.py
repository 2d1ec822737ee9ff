"""The command line: parse, call, print. Every command is a thin skin over a function.

Results go to stdout, progress and warnings to stderr. Exit codes: 0 done (an abstention or a
question back is a result), 1 a case failed or `doctor` found a fault, 2 usage or bad input, 3
finished in part, 4 nothing to measure; 130 interrupted, 141 the reader of the output went away.
"""

from __future__ import annotations

import io
import sys

import click

from atlas import __version__
from atlas.cli.answering import measure_answers
from atlas.cli.asking import ask, show
from atlas.cli.attacking import measure_injection
from atlas.cli.building import ingest
from atlas.cli.checking import check
from atlas.cli.importing import import_command
from atlas.cli.judging import judge_calibration
from atlas.cli.measuring import compare, experiment, measure, promote
from atlas.cli.starting import doctor, init


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96})
@click.version_option(__version__, prog_name="atlas")
def cli() -> None:
    """Answers questions from a folder of documents with checked citations, or declines."""


for command in (
    ask,
    show,
    ingest,
    check,
    measure,
    compare,
    experiment,
    promote,
    import_command,
    judge_calibration,
    measure_answers,
    measure_injection,
    init,
    doctor,
):
    cli.add_command(command)


def main() -> None:
    """The `atlas` command."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 is no reason to fail
    cli(prog_name="atlas")
