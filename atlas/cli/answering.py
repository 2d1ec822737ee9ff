"""`measure-answers`: what the answerer makes of the evidence."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from atlas.cli.judging import judges_of
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
from atlas.errors import NothingToMeasure, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from atlas.assistant import Assistant
    from atlas.measure.answers.judged import Judged
    from atlas.measure.answers.summary import Summary
    from atlas.measure.draws import Given
    from atlas.measure.judges import Judge
    from atlas.measure.questions import Questions
    from atlas.settings import Settings


@click.command("measure-answers")
@folder_option
@sample_option
@answerer_option
@click.option(
    "--questions",
    "count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only a random draw of N questions, the same one every time.",
)
@click.option(
    "--arms",
    "arms_text",
    metavar="NAMES",
    help="Only these of none, real, oracle, oracle+noise, oracle+near-misses; real always is.",
)
@click.option(
    "--k",
    "k_text",
    default="3,5,10",
    show_default=True,
    metavar="VALUES",
    help="Values of k for the sweep; that of atlas.yaml is always among them.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    metavar="N",
    help="Answer the real arm N times, and let a chat judge judge N times, to see the spread.",
)
@click.option(
    "--judge",
    "judge_name",
    metavar="NAME",
    help="Let a judge look at the answers of the real arm: overlap, grounded or chat.",
)
@click.option(
    "--same-family",
    is_flag=True,
    help="Accept a judge of the family that wrote the answers.",
)
@click.option(
    "--export-labels",
    "wanted",
    type=click.IntRange(min=1),
    metavar="N",
    help="Draw N answers of the real arm and write them to the file of --labels, to be labelled.",
)
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A labelled draw of these answers, to correct what the judge says.",
)
@json_option
@errors_for_people
def measure_answers(
    folder: str,
    sample: bool,
    answerer: str | None,
    count: int | None,
    arms_text: str | None,
    k_text: str,
    repeat: int,
    judge_name: str | None,
    same_family: bool,
    wanted: int | None,
    labels: Path | None,
    as_json: bool,
) -> None:
    """Answer every development question with no, real and perfect evidence, and compare.

    Replies of a chat model are kept and not asked for again; a run that was killed goes on where it
    was. Right is what the facts of a case say; a judge is only asked with --judge, and what it says
    is corrected by people's labels.
    """
    from atlas.measure.answers import report
    from atlas.measure.answers.journal import journal
    from atlas.measure.answers.judged import given_answers
    from atlas.measure.answers.running import Plan, answer_all, digest, drawn
    from atlas.measure.answers.summary import Summary
    from atlas.measure.cases import DEVELOPMENT
    from atlas.measure.draws import export_draw, load_draw, matched, population
    from atlas.measure.questions import cases_of, load_questions

    ks = _ks(k_text)
    arms = _arms(arms_text)
    if wanted is not None and labels is None:
        raise UsageError("--export-labels writes a file; name it with --labels FILE")
    if wanted is not None and labels is not None and labels.exists():
        raise UsageError(f"{labels}: stands already and may hold labels; give another name")
    draw = load_draw(labels) if labels is not None and wanted is None else None
    if draw is not None and judge_name is None:
        raise UsageError("--labels corrects what a judge says; name one with --judge")
    collection = open_collection(folder, sample, answerer)
    cases = cases_of(collection.root, DEVELOPMENT)
    judges = _judges(judge_name, same_family, repeat, collection.settings, collection.state)
    opened = open_for(collection)
    questions = load_questions(opened, DEVELOPMENT, cases=cases)
    questions = replace(questions, cases=drawn(questions.cases, count or len(questions.cases)))
    if wanted is not None and wanted > len(questions.cases):
        raise UsageError(f"--export-labels {wanted}: there are {len(questions.cases)} questions")
    cache = keep_replies(opened)
    chat = collection.settings.chat if cache else None
    plan = Plan(ks=ks, arms=arms, repeats=repeat, at_once=chat.in_flight if chat else 1)
    with journal(collection.state, digest(plan, questions, opened)) as kept, Bar() as bar:
        if kept.resumed:
            notes((f"{kept.resumed} answers were finished before and are not asked again",))
        outcomes = answer_all(
            questions, opened, plan, kept, bar, lambda text: click.echo(text, err=True)
        )
    failed = [item for item in outcomes if item.error]
    if len(failed) == len(outcomes):
        raise NothingToMeasure(f"every answer failed; the first: {failed[0].error}")
    summary = Summary(
        cases=questions.cases,
        outcomes=outcomes,
        k=opened.settings.k,
        ks=ks,
        repeats=repeat,
        chat=chat,
    )
    answers = given_answers(summary, questions, _writer(opened))
    if wanted is not None and labels is not None:
        export_draw(answers, wanted, labels)
        notes((f"{wanted} of {len(answers)} answers are in {labels}; label them from the top",))
    judged = None
    if judges:
        people: Mapping[str, float] = {}
        if draw is not None:
            people = matched(draw, answers)
            inside = population(draw, answers)
            if len(inside) < len(answers):
                late = len(answers) - len(inside)
                notes((f"{late} answers came after the draw, so the judge leaves them out",))
            answers = inside
        judged = _judged(judges, summary, answers, people, opened)
    if cache is not None and cache.unwritten:
        notes((f"replies could not be kept: {cache.unwritten}",))
    if as_json:
        print_json(report.as_json(summary, _head(summary, questions, opened), judged))
    else:
        print_lines(report.lines(summary, _title(questions, opened), judged))
    _end(summary, judged)


def _arms(text: str | None) -> tuple[str, ...]:
    from atlas.measure.answers.arms import ARMS, REAL

    names = ARMS if text is None else (REAL, *(part.strip() for part in text.split(",")))
    unknown = [name for name in names if name not in ARMS]
    if unknown:
        raise UsageError(f"--arms: no arm is called {unknown[0]!r}; known: {', '.join(ARMS)}")
    return tuple(arm for arm in ARMS if arm in names)


def _ks(text: str) -> tuple[int, ...]:
    try:
        values = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        values = ()
    if not values or values[0] < 1 or values[-1] > 100:
        raise UsageError(f"--k {text!r}: expected whole numbers 1 to 100 such as 3,5,10")
    return values


def _end(summary: Summary, judged: Judged | None) -> None:
    """Leave with the exit code for answers and verdicts that failed."""
    failed = sum(bool(item.error) for item in summary.outcomes)
    if failed:
        notes((f"{failed} of {len(summary.outcomes)} answers failed; run it again to ask them",))
    unjudged = judged.failed if judged is not None else []
    if judged is not None and unjudged:
        notes((f"{len(unjudged)} of {len(judged.verdicts)} verdicts failed: {unjudged[0].reason}",))
    if failed or unjudged:
        sys.exit(FINISHED_IN_PART)


def _judges(
    name: str | None, same_family: bool, repeat: int, settings: Settings, state: Path
) -> list[Judge]:
    """The judge of that name, a chat judge once per repeat; none where no name is given."""
    from atlas.measure.judges.families import check_family

    if name is None:
        return []
    chosen = settings.judge or settings.chat
    if name == "chat" and chosen is not None:
        wrote = settings.chat.model if settings.answerer == "chat" and settings.chat else None
        check_family(chosen.model, wrote, same_family)
    return judges_of(name, chosen, state, repeat if name == "chat" else 1)[0]


def _judged(
    judges: list[Judge],
    summary: Summary,
    answers: list[Given],
    people: Mapping[str, float],
    opened: Assistant,
) -> Judged:
    from atlas.measure.answers.judged import judge_answers

    model = opened.settings.judge or opened.settings.chat
    at_once = model.in_flight if model is not None and judges[0].name == "chat" else 1
    with Bar() as bar:
        return judge_answers(judges, summary, answers, people, bar, at_once)


def _writer(opened: Assistant) -> str:
    return opened.chat.fingerprint if opened.chat is not None else "extractive"


def _head(summary: Summary, questions: Questions, opened: Assistant) -> dict[str, object]:
    return {
        "schema": "atlas-answers-1",
        "set": questions.set,
        "questions": len(questions.cases),
        "answerer": _writer(opened),
        "k": summary.k,
        "fingerprints": {
            **opened.fingerprints(),
            "questions": questions.fingerprint(),
            "collection": questions.collection_fingerprint(),
        },
    }


def _title(questions: Questions, opened: Assistant) -> str:
    none = len(questions.unanswerable())
    return (
        f"{len(questions.cases)} {questions.set} questions, {none} without an answer in the "
        f"documents; k {opened.settings.k}; answers by {_writer(opened)}"
    )
