"""`measure`, `compare`, `experiment`, `promote`: how good it is, and whether a change helped."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from atlas.cli.shared import (
    FINISHED_IN_PART,
    Bar,
    errors_for_people,
    folder_option,
    json_option,
    notes,
    open_for,
    print_json,
    print_lines,
    sample_option,
)
from atlas.errors import NothingToMeasure, UsageError

if TYPE_CHECKING:
    from atlas.assistant import Assistant
    from atlas.measure.heldout import Ledger
    from atlas.measure.questions import Questions
    from atlas.measure.runs import Run
    from atlas.settings import Settings

held_out_option = click.option(
    "--held-out",
    is_flag=True,
    help="The held-out questions; the look is written into the ledger beside them.",
)


@click.command()
@folder_option
@sample_option
@held_out_option
@click.option("--question", "question_id", metavar="ID", help="One question in full.")
@click.option("--min-score", type=float, metavar="X", help="Try another min_score, 0 to 1.")
@click.option(
    "--sweep",
    "swept",
    metavar="NAME=VALUES",
    help="A table over values such as min_score=0:0.9:0.1 or k=3,5,10; with --held-out their "
    "columns stand beside those of the development questions.",
)
@click.option(
    "--traces",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Score traces that `ask` wrote instead of asking.",
)
@click.option(
    "--gate",
    "gate_texts",
    multiple=True,
    metavar="'MEASURE>=X'",
    help="Exit with 1 where the mean misses it; may be given more than once.",
)
@click.option("--save", metavar="RUN", help="Keep the run under a name, or as a .json file.")
@click.option(
    "--export-ragas", type=click.Path(path_type=Path), metavar="FILE", help="Rows for Ragas, JSONL."
)
@click.option(
    "--export-trec",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A TREC run and qrels for trec_eval or ir_measures.",
)
@json_option
@errors_for_people
def measure(
    folder: str,
    sample: bool,
    held_out: bool,
    question_id: str | None,
    min_score: float | None,
    swept: str | None,
    traces: Path | None,
    gate_texts: tuple[str, ...],
    save: str | None,
    export_ragas: Path | None,
    export_trec: Path | None,
    as_json: bool,
) -> None:
    """Ask every development question and measure what was found, supplied and declined.

    Each mean has a 95% interval and says how many questions it speaks for. Held-out questions may
    be measured, never tuned on: --held-out refuses --min-score, and a sweep shows them only beside
    the development questions.
    """
    from atlas.collection import Collection
    from atlas.measure import gates, report, runs
    from atlas.measure.asking import ask_all
    from atlas.measure.cases import DEVELOPMENT, HELD_OUT
    from atlas.measure.heldout import Ledger
    from atlas.measure.misses import misses
    from atlas.measure.questions import cases_of, load_questions
    from atlas.measure.rows import NAMES
    from atlas.measure.summary import LEAK_RATE
    from atlas.measure.sweep import parse_sweep
    from atlas.measure.trace_file import read_all
    from atlas.settings import with_value

    if held_out and min_score is not None:
        raise UsageError(
            "--min-score with --held-out would choose a setting on held-out questions; try it "
            "without --held-out, then set it in atlas.yaml"
        )
    bars = [gates.parse_gate(text, (*NAMES, LEAK_RATE)) for text in gate_texts]
    collection = Collection.open(folder, sample=sample)
    if min_score is not None:
        settings = with_value(collection.settings, "--min-score", "min_score", min_score)
        collection = replace(collection, settings=settings)
    if traces is not None and min_score is not None:
        raise UsageError("--min-score changes what is asked; traces were asked already")
    if swept is not None:
        _only_a_table(traces, gate_texts, save, export_ragas, export_trec, question_id)
        name, values = parse_sweep(swept)
    which = HELD_OUT if held_out and swept is None else DEVELOPMENT
    cases = cases_of(collection.root, which)
    if question_id is not None:
        cases = tuple(case for case in cases if case.id == question_id)
        if not cases:
            raise UsageError(
                f"no {which} question {question_id}; look into {collection.root / which}"
            )
    place = runs.run_path(save, collection.state) if save is not None else None
    opened = open_for(collection)

    if swept is not None:
        _sweep(name, values, held_out, opened, as_json)
        return
    questions = load_questions(opened, which, cases=cases)
    if traces is not None:
        asked = read_all(questions, traces)
    else:
        with Bar() as bar:
            asked = ask_all(questions, opened, bar, lambda text: click.echo(text, err=True))
    if asked.unmatched:
        notes((f"{asked.unmatched} traces of {traces} belong to no {questions.set} question",))
    if asked.missing:
        notes((f"{asked.missing} {questions.set} questions have no trace in {traces}",))
    if asked.fingerprints and asked.fingerprints != opened.fingerprints():
        notes((f"{traces} was made with other settings, models or another index than today's",))
    if asked.other_day:
        day = collection.settings.as_of
        notes((f"{asked.other_day} traces were asked on another day than {day}, when cases are",))
    run = runs.run_of(asked, questions, opened)
    if held_out:
        _look(Ledger(collection.root, collection.state), "measure", run)
    lost = misses(run.rows, questions, opened)
    _export(run, questions, export_ragas, export_trec)
    if place is not None:
        runs.save_run(run, place)
        notes((f"saved as {place}",))
    if as_json:
        print_json(runs.run_json(run, lost))
    elif question_id is not None:
        print_lines(report.question_lines(run.rows[0], lost))
    else:
        print_lines(report.run_lines(run, questions, lost))
    missed = list(gates.missed(bars, run.summary))
    if bars and asked.missing:
        missed.append(f"gates: {asked.missing} questions have no trace in {traces}")
    _end(run, missed)


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@folder_option
@json_option
@errors_for_people
def compare(a: str, b: str, folder: str, as_json: bool) -> None:
    """Compare two saved runs of the same questions: what got better, and could it be chance?"""
    from atlas.collection import Collection
    from atlas.measure.compare import compare as run
    from atlas.measure.report_many import comparison_lines
    from atlas.measure.runs import load_run

    state = Collection.open(folder).state
    comparison = run(load_run(a, state), load_run(b, state))
    if as_json:
        print_json(comparison.as_json())
    else:
        print_lines(comparison_lines(comparison))


@click.command()
@click.argument("grid", metavar="GRID.yaml", type=click.Path(path_type=Path))
@folder_option
@sample_option
@held_out_option
@json_option
@errors_for_people
def experiment(grid: Path, folder: str, sample: bool, held_out: bool, as_json: bool) -> None:
    """Ask the same questions under every combination of a grid of settings.

    A grid holds lists under `retriever` (keyword, vector, hybrid), `rerank` (true, false), or the
    names of settings. A killed experiment goes on where it was. With --held-out the table is for
    reporting: every setup is a look in the ledger, and nothing may be chosen by it.
    """
    from atlas.collection import Collection
    from atlas.ingest import Silent
    from atlas.measure.cases import DEVELOPMENT, HELD_OUT
    from atlas.measure.experiments import experiment as run
    from atlas.measure.grids import read_grid
    from atlas.measure.heldout import Ledger
    from atlas.measure.questions import cases_of
    from atlas.measure.report_many import experiment_lines

    collection = Collection.open(folder, sample=sample)
    today = collection.settings
    setups = read_grid(grid, today)
    which = HELD_OUT if held_out else DEVELOPMENT
    cases = cases_of(collection.root, which)
    ledger = Ledger(collection.root, collection.state)

    def looked(measured: Run) -> None:
        if held_out:
            _look(ledger, "experiment", measured)

    def open_with(settings: Settings) -> Assistant:
        same_index = settings.index_key() == today.index_key()
        variant = "" if same_index else settings.index_fingerprint()
        return open_for(replace(collection, settings=settings, variant=variant), Silent())

    with Bar() as bar:
        table = run(
            today,
            setups,
            open_with,
            bar,
            which,
            cases=cases,
            told=lambda text: click.echo(text, err=True),
            looked=looked,
        )
    if as_json:
        print_json(table.as_json())
    else:
        print_lines(experiment_lines(table))
    _end_of(table.failed, table.asked)


@click.command()
@click.argument("case_id", metavar="ID")
@click.option(
    "--reason", required=True, metavar="TEXT", help="Why it may be looked at from now on."
)
@folder_option
@errors_for_people
def promote(case_id: str, reason: str, folder: str) -> None:
    """Move a held-out question into the development cases, with the reason."""
    from datetime import date

    from atlas.collection import Collection
    from atlas.measure.promote import promote as run

    collection = Collection.open(folder)
    done = run(case_id, reason, collection.root, collection.state, date.today())
    click.echo(f"{done.id} moved from {done.source} to {done.target}")
    click.echo(f"fresh held-out questions owed: {done.owed}")


# ---- helpers --------------------------------------------------------------------------------


def _only_a_table(*others: object) -> None:
    if any(others):
        raise UsageError(
            "--sweep prints a table over values; leave --traces, --gate, --save, --question and "
            "exports out"
        )


def _sweep(
    name: str, values: Sequence[float], held_out: bool, opened: Assistant, as_json: bool
) -> None:
    """Print a sweep of the development questions, on request with the held-out ones beside it."""
    from atlas.measure.asking import ask_once
    from atlas.measure.cases import DEVELOPMENT, HELD_OUT
    from atlas.measure.heldout import Ledger
    from atlas.measure.questions import cases_of, load_questions
    from atlas.measure.report_many import sweep_lines
    from atlas.measure.runs import run_of
    from atlas.measure.sweep import sweep

    tables, failed, count = [], 0, 0
    sets = (DEVELOPMENT, HELD_OUT) if held_out else (DEVELOPMENT,)
    for which, cases in [(each, cases_of(opened.collection.root, each)) for each in sets]:
        questions = load_questions(opened, which, cases=cases)
        with Bar() as bar:
            bar.stage("asking", len(questions.cases))
            asked = ask_once(questions, opened, bar, lambda text: click.echo(text, err=True))
        if which == HELD_OUT:
            collection = opened.collection
            ledger = Ledger(collection.root, collection.state)
            run = run_of(asked, questions, opened)
            _look(ledger, "sweep", run, f"{name} beside the development questions")
        tables.append(sweep(name, values, asked.rows, questions, opened))
        failed += sum(row.failed for row in asked.rows)
        count += len(asked.rows)
    if as_json:
        print_json(
            {
                "setting": name,
                "falls_at": tables[0].falls_at,
                **{
                    title: [step.as_json() for step in table.steps]
                    for title, table in zip(("development", "held-out"), tables, strict=False)
                },
            }
        )
    else:
        print_lines(sweep_lines(*tables))
    _end_of(failed, count)


def _look(ledger: Ledger, kind: str, run: Run, note: str = "") -> None:
    """Write a look down before anything is shown, and say what is suspicious about it."""
    look = ledger.record(kind, run, note)
    if ledger.elsewhere:
        notes((f"the collection is read-only, the look is written down in {ledger.path}",))
    notes((look.flag,) if look.flag else ())


def _export(run: Run, questions: Questions, ragas: Path | None, trec: Path | None) -> None:
    from atlas.measure.exports import Exportable, export_ragas, export_trec

    rows = [
        Exportable(
            case=row.case,
            trace=row.trace,
            relevant=dict.fromkeys(row.relevant, 1),
            block_text=lambda ref: questions.blocks[ref].text,
        )
        for row in run.rows
    ]
    if ragas is not None:
        notes(tuple(export_ragas(rows, ragas).lines()))
    if trec is not None:
        notes(tuple(export_trec(rows, trec).lines()))


def _end(run: Run, missed: list[str]) -> None:
    """Leave with the exit code of a run: gates first, then questions that failed."""
    for line in missed:
        click.echo(line, err=True)
    if missed:
        sys.exit(1)
    _end_of(run.failed, len(run.rows))


def _end_of(failed: int, asked: int) -> None:
    """Leave with the exit code for questions that failed; nothing happens where none did."""
    if not asked:
        raise NothingToMeasure("no question was asked: none of the traces belongs to a case")
    if failed == asked:
        raise NothingToMeasure(f"all {asked} questions failed, nothing was measured")
    if failed:
        sys.exit(FINISHED_IN_PART)
