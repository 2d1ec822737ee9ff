"""An empty folder -> a small commented collection that works at once.

Enters: a folder that does not exist yet or is empty. Leaves: the files below `collection/` in it,
as they are. Refuses, with UsageError: a folder that holds something, or a file of that name. The
files are there all or not at all; AtlasError names what the disk refused.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from atlas.errors import AtlasError, UsageError

ALLOWED = {".git"}
"""What may stand in a folder that counts as empty."""
SHOWN = 3


def write_starter(folder: Path) -> tuple[str, ...]:
    """Write the starter collection into `folder`; returns its files, relative, in order.

    Raises UsageError, AtlasError.
    """
    _check_free(folder)
    made: list[Path] = []  # folders above, and then what was moved in; removed on failure
    try:
        made += _make(folder)
        # Beside their places first, so that what can fail has failed before one of them is used.
        stage = Path(tempfile.mkdtemp(prefix=".atlas-init-", dir=folder))
        made.append(stage)
        files = _copy(resources.files("atlas.starter") / "collection", stage)
        for entry in sorted(stage.iterdir()):
            target = folder / entry.name
            if os.path.lexists(target):  # somebody else is at work here, and renaming overwrites
                raise FileExistsError(errno.EEXIST, f"{entry.name} has appeared there")
            os.rename(entry, target)
            made.append(target)
        stage.rmdir()
    except BaseException as error:
        for path in reversed(made):
            _remove(path)
        if isinstance(error, OSError):
            raise AtlasError(
                f"{folder}: the starter collection could not be written "
                f"({error.strerror or error}); nothing was left behind; name a folder that can be "
                "written to, on a disk with space"
            ) from None
        raise
    return files


def _check_free(folder: Path) -> None:
    """Raises UsageError unless the folder is empty or not there."""
    try:
        names = sorted(set(os.listdir(folder)) - ALLOWED)
    except FileNotFoundError:
        if folder.is_symlink():
            raise UsageError(
                f"{folder}: is a link that leads nowhere; name a new or an empty folder"
            ) from None
        return
    except NotADirectoryError:
        raise UsageError(
            f"{folder}: is a file or lies in one; name a new or an empty folder"
        ) from None
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be listed ({error.strerror}); name a new or an empty folder"
        ) from None
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise UsageError(
            f"{folder}: is not empty (it holds {', '.join(names[:SHOWN])}{more}); "
            "name a new or an empty folder, nothing was changed"
        )


def _make(folder: Path) -> list[Path]:
    """Make a folder and those above it; returns the ones that were missing, the top one first."""
    missing: list[Path] = []
    place = folder.absolute()
    while not place.exists():
        missing.insert(0, place)
        place = place.parent
    made: list[Path] = []
    try:
        for path in missing:
            path.mkdir()
            made.append(path)
    except OSError:
        for path in reversed(made):
            _remove(path)
        raise
    return made


def _copy(source: Traversable, target: Path) -> tuple[str, ...]:
    """Copy a tree of the package; returns its files, relative, with forward slashes."""
    files: list[str] = []
    for entry in sorted(source.iterdir(), key=lambda item: item.name):
        place = target / entry.name
        if entry.is_dir():
            place.mkdir()
            files += [f"{entry.name}/{name}" for name in _copy(entry, place)]
        else:
            place.write_bytes(entry.read_bytes())
            files.append(entry.name)
    return tuple(files)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
