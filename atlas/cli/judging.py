"""`judge-calibration`: how far a judge of answers agrees with labels."""

from __future__ import annotations

from pathlib import Path

import click

from atlas.cli.shared import (
    Bar,
    errors_for_people,
    folder_option,
    json_option,
    notes,
    print_json,
    print_lines,
)


@click.command("judge-calibration")
@click.option(
    "--judge", "judge_name", default="grounded", show_default=True, help="`grounded` or `overlap`."
)
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Labelled answers, YAML or JSON Lines, or a folder of them; default: judge_labels/.",
)
@folder_option
@json_option
@errors_for_people
def judge_calibration(judge_name: str, labels: Path | None, folder: str, as_json: bool) -> None:
    """Let a judge judge labelled answers, and say how far it may be trusted, and for what.

    A label file has rows with `question`, `sources`, `answer`, `label` (`correct` or `wrong`) and
    optionally `id`, `kind`, `reference`, `history`, `raters` (a list of ratings) and `note`.
    """
    from atlas.collection import Collection
    from atlas.measure.calibration import calibrate
    from atlas.measure.judges import load_judge
    from atlas.measure.labels import FOLDER, load_labels
    from atlas.models import load_both
    from atlas.settings import Settings

    collection = Collection.open(folder)
    notes(collection.notes)
    labelled = load_labels(labels if labels is not None else collection.root / FOLDER)
    shipped = Settings()  # what the judge was fitted with, whatever this collection searches with
    models = load_both(shipped.encoder, shipped.reranker, collection.state)
    judge = load_judge(judge_name, *models)
    with Bar() as bar:
        bar.stage(judge.name, len(labelled))
        calibration = calibrate(judge, labelled, bar.step)
    if as_json:
        print_json(calibration.as_json())
    else:
        print_lines(calibration.lines())
