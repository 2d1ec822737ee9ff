"""`judge-calibration`: how far a judge of answers agrees with labels."""

from __future__ import annotations

import sys
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
    print_json,
    print_lines,
)
from atlas.errors import UsageError

if TYPE_CHECKING:
    from atlas.measure.chat_cache import CachedChat
    from atlas.measure.judges import Judge
    from atlas.settings import Chat


@click.command("judge-calibration")
@click.option(
    "--judge",
    "judge_name",
    default="grounded",
    show_default=True,
    help="`grounded`, `overlap`, or `chat`: the model under `judge`, else `chat`, in atlas.yaml.",
)
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Labelled answers, YAML or JSON Lines, or a folder of them; default: judge_labels/.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Let `chat` judge every answer N times and print how far it agrees with itself.",
)
@folder_option
@json_option
@errors_for_people
def judge_calibration(
    judge_name: str, labels: Path | None, repeat: int, folder: str, as_json: bool
) -> None:
    """Let a judge judge labelled answers, and say how far it may be trusted, and for what.

    A label file has rows with `question`, `sources`, `answer`, `label` (`correct` or `wrong`) and
    optionally `id`, `kind`, `reference`, `history`, `raters` (a list of ratings) and `note`.
    """
    from atlas.collection import Collection
    from atlas.measure.calibration import calibrate
    from atlas.measure.judges.chat import ChatJudge
    from atlas.measure.labels import FOLDER, load_labels

    if repeat > 1 and judge_name != "chat":
        raise UsageError(
            f"--repeat is for the judge chat; {judge_name} says the same every time: leave it out"
        )
    collection = Collection.open(folder)
    notes(collection.notes)
    labelled = load_labels(labels if labels is not None else collection.root / FOLDER)
    settings = collection.settings.judge or collection.settings.chat
    judges, model = judges_of(judge_name, settings, collection.state, repeat)
    first = judges[0]
    about = first.fingerprint if isinstance(first, ChatJudge) else ""
    in_flight = settings.in_flight if model is not None and settings is not None else 1
    with Bar() as bar:
        bar.stage(first.name, len(labelled) * repeat)
        calibration = calibrate(
            first, labelled, bar.step, again=judges[1:], in_flight=in_flight, model=about
        )
    if as_json:
        print_json(calibration.as_json())
    else:
        print_lines(calibration.lines())
    if model is not None and model.unwritten:
        notes((f"replies could not be kept: {model.unwritten}",))
    if calibration.failed:
        missing = sum(count for _, count in calibration.failed)
        causes = ", ".join(f"{cause} {count}" for cause, count in calibration.failed)
        notes(
            (
                f"the server failed {missing} of {len(labelled) * repeat} times ({causes}), which "
                "are unscored; run it again: whole replies are kept",
            )
        )
        sys.exit(FINISHED_IN_PART)


def judges_of(
    name: str, settings: Chat | None, state: Path, repeat: int
) -> tuple[list[Judge], CachedChat | None]:
    """The judge of that name, the judge `chat` once per repeat and with its model.

    Only the models that it needs are loaded; a chat model keeps whole replies in the state folder.
    """
    from atlas.measure.judges import load_judge
    from atlas.models import load_both
    from atlas.settings import Settings

    if name == "chat" and settings is not None:
        from atlas.measure.chat_cache import FOLDER, CachedChat
        from atlas.measure.judges.chat import ChatJudge
        from atlas.opening import chat_model

        model = CachedChat(chat_model(settings), state / FOLDER)
        return [ChatJudge(model, n, settings.answer_tokens) for n in range(repeat)], model
    if name != "grounded":
        return [load_judge(name, None, None)], None
    shipped = Settings()  # what the judge was fitted with, whatever this collection searches with
    return [load_judge(name, *load_both(shipped.encoder, shipped.reranker, state))], None
