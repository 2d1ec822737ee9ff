"""Python, packages and extras, as the installed metadata says; loads no model library.

Enters: nothing but this installation. Leaves: findings. The libraries without which no question
is answered are loaded once, since a library can be there and not load; torch is not among them.
"""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import atlas
from atlas.doctor.finding import Finding, fail, ok, warn

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NEEDED = ("yaml", "numpy", "faiss", "tokenizers", "onnxruntime", "pypdf")
"""Modules that are loaded to see whether they can be; each in well under a second."""
EXTRAS = {"chat": "the client of chat servers", "milvus": "the client of the store milvus"}
OLDEST = (3, 11)


def python() -> Iterator[Finding]:
    """The interpreter and atlas itself."""
    version = platform.python_version()
    place = Path(atlas.__file__).parent
    if sys.version_info < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        yield fail(
            "python", f"Python {version}, expected {wanted} or newer", f"install Python {wanted}"
        )
        return
    yield ok("python", f"Python {version} on {platform.machine()}; atlas {atlas.__version__}")
    try:
        installed = metadata.version("atlas")
    except metadata.PackageNotFoundError:
        yield warn(
            "python",
            f"atlas runs from {place} and is not installed, so its packages cannot be compared",
            "run pip install -c constraints.txt . in atlas's folder",
        )
        return
    if installed != atlas.__version__:
        yield warn(
            "python",
            f"atlas {installed} is installed, but {atlas.__version__} runs from {place}",
            "run pip install -c constraints.txt . in atlas's folder",
        )


def packages() -> Iterator[Finding]:
    """Every required package against the bounds that atlas names."""
    wanted = requirements("atlas")
    problems = [problem for one in wanted for problem in missing(one)]
    for problem in problems:
        yield fail("packages", problem, "run pip install -c constraints.txt . in atlas's folder")
    broken = 0
    for name in NEEDED:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name == name and problems:
                continue  # said above
            broken += 1
            yield _broken(name, error)
        except Exception as error:  # a library may fail in any way while it is loaded
            broken += 1
            yield _broken(name, error)
    if not problems and not broken:
        yield ok("packages", f"{len(wanted)} of {len(wanted)} are there and as new as needed")


def _broken(name: str, error: Exception) -> Finding:
    reason = " ".join(str(error).split())
    return fail(
        "packages",
        f"{name} cannot be loaded ({type(error).__name__}: {reason})",
        "install the package again: pip install --force-reinstall --no-deps, with its version "
        "from constraints.txt",
    )


def extras(needed: dict[str, bool]) -> Iterator[Finding]:
    """The extras; `needed` tells for some whether this collection works only with them."""
    known = metadata.metadata("atlas").get_all("Provides-Extra") or []
    for name, meaning in EXTRAS.items():
        if name not in known:
            continue
        problems = [problem for one in requirements("atlas", name) for problem in missing(one)]
        command = f"run pip install -c constraints.txt '.[{name}]' in atlas's folder"
        if not problems:
            yield ok(f"extra {name}", f"{meaning} is installed")
        elif name in needed:
            finding = fail if needed[name] else warn
            yield finding(f"extra {name}", f"{meaning}: {'; '.join(problems)}", command)
        else:
            found = f"{meaning} is not installed; this collection does not use it"
            yield ok(f"extra {name}", found)


def requirements(package: str, extra: str = "") -> list[Requirement]:
    """What a package requires here: always, or for one of its extras only."""
    from packaging.requirements import Requirement

    parsed = [Requirement(text) for text in metadata.requires(package) or ()]
    always = [one for one in parsed if one.marker is None or one.marker.evaluate({"extra": ""})]
    if not extra:
        return always
    return [
        one
        for one in parsed
        if one not in always and one.marker is not None and one.marker.evaluate({"extra": extra})
    ]


def missing(wanted: Requirement) -> Iterator[str]:
    """What is wrong with one requirement, and with those of the extras that it names."""
    try:
        version = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        yield f"{wanted.name} is not installed, expected {wanted.specifier or 'any version'}"
        return
    if not wanted.specifier.contains(version, prereleases=True):
        yield f"{wanted.name} is {version}, expected {wanted.specifier}"
    for extra in sorted(wanted.extras):
        for one in requirements(wanted.name, extra):
            yield from missing(one)
