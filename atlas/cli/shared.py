"""What the commands share: options, errors for people, progress, printing."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from atlas.errors import AtlasError

if TYPE_CHECKING:
    from atlas.assistant import Assistant
    from atlas.collection import Collection
    from atlas.ingest import Progress
    from atlas.measure.chat_cache import CachedChat
    from atlas.records import Skipped

FINISHED_IN_PART, INTERRUPTED, OUTPUT_GONE = 3, 130, 141
"""Exit codes that no AtlasError brings; the last two are 128 and the number of the signal."""

folder_option = click.option(
    "-C", "folder", metavar="DIR", default=".", show_default=True, help="The collection's folder."
)
sample_option = click.option(
    "--sample", is_flag=True, help="Only the sample of documents that atlas.yaml names."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
answerer_option = click.option(
    "--answerer", metavar="NAME", help="`extractive` or `chat`; default: that of atlas.yaml."
)
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


def open_assistant(folder: str, sample: bool, answerer: str | None = None) -> Assistant:
    """An assistant on a folder; its index is brought up to date first."""
    return open_for(open_collection(folder, sample, answerer))


def open_collection(folder: str, sample: bool, answerer: str | None) -> Collection:
    """A collection, with the answerer of an option in place of that in its atlas.yaml.

    Raises SettingsError for an answerer that cannot be.
    """
    from dataclasses import replace

    from atlas.collection import Collection
    from atlas.settings import with_value

    collection = Collection.open(folder, sample=sample)
    if answerer is None:
        return collection
    settings = with_value(collection.settings, "--answerer", "answerer", answerer)
    return replace(collection, settings=settings)


def open_for(collection: Collection, progress: Progress | None = None) -> Assistant:
    """The same for a collection at hand; without `progress` a bar of its own is shown."""
    from atlas.assistant import Assistant

    notes(collection.notes)
    with Bar() as bar:
        return Assistant.of(collection, progress=progress or bar, told=lambda note: notes((note,)))


def keep_replies(opened: Assistant) -> CachedChat | None:
    """Let an assistant's chat model keep its replies in the state folder; None without one."""
    from atlas.measure.chat_cache import FOLDER, CachedChat

    if opened.chat is None:
        return None
    cache = CachedChat(opened.chat, opened.collection.state / FOLDER)
    opened.chat = cache
    return cache


def print_lines(lines: Iterable[str]) -> None:
    """Print lines for a person, without anything that could steer a terminal."""
    from atlas.show import printable

    for line in lines:
        click.echo(printable(line))


def print_json(values: Any) -> None:
    from atlas.trace import escaped

    text = json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False, default=str)
    click.echo(escaped(text))


def notes(notes: Sequence[str]) -> None:
    from atlas.show import printable

    for note in notes:
        click.echo(f"note: {printable(note)}", err=True)


def skipped_files(skipped: Sequence[Skipped]) -> None:
    from atlas.show import printable

    for item in skipped:
        click.echo(f"skipped {printable(item.path)}: {printable(item.reason)}", err=True)


class Bar:
    """A progress bar on stderr, one stage after the other; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __enter__(self) -> Bar:
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
