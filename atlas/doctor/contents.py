"""What a person put into the folder: settings, documents, cases, labels.

Enters: a folder. Leaves: findings, and the Collection where there is one. Documents are not read
again: what was skipped or warned of when the index was made stands in its sources.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from atlas.collection import SUFFIXES, Collection, state_folder
from atlas.doctor.finding import Finding, counted, fail, of_error, ok, warn
from atlas.errors import AtlasError, NothingToMeasure, SettingsError, apart
from atlas.index import Index
from atlas.measure.cases import DEVELOPMENT, HELD_OUT, Case, Labels, check_cases, load_cases
from atlas.measure.labels import FOLDER as LABELS
from atlas.measure.labels import load_labels
from atlas.settings import FILE_NAME, Settings, load_settings

OTHER_KINDS = {
    ".csv", ".doc", ".docx", ".epub", ".htm", ".html", ".odt", ".ppt", ".pptx", ".rst", ".rtf",
    ".txt", ".xls", ".xlsx",
}  # fmt: skip
"""Files that look like documents and are passed over."""
ABOUT = {"README", "CHANGELOG", "CONTRIBUTING", "LICENSE"}
"""Files that describe a folder and are no documents of it."""
HIDDEN = "see who put it there: it is searched, and said to be hidden where it is quoted"
LOOK = "look whether the right text was read"
START = "`atlas init DIR` writes a collection to start from, -C DIR names one that you have"


def settings(root: Path) -> tuple[Settings, list[Finding]]:
    """The settings of a folder; the shipped ones where they cannot be read."""
    try:
        found = load_settings(root)
    except SettingsError as error:
        return Settings(), [of_error("settings", error, f"correct {root / FILE_NAME}")]
    if not (root / FILE_NAME).exists():
        return found, [ok("settings", f"no {FILE_NAME}: every setting has its shipped value")]
    changed = sum(getattr(found, name) != getattr(Settings(), name) for name in _names())
    total = len(_names())
    text = f"{root / FILE_NAME}: {changed} of {total} settings differ from the shipped ones"
    return found, [ok("settings", text)]


def _names() -> tuple[str, ...]:
    return tuple(Settings.__dataclass_fields__)


def folder_problem(root: Path) -> Finding | None:
    """Why a folder is no collection, or None where it is one."""
    try:
        return _folder_problem(root, root / "documents")
    except OSError as error:
        found = f"{error.filename} cannot be looked at ({error.strerror})"
        return fail("collection", found, "let the user that runs atlas read it")


def _folder_problem(root: Path, folder: Path) -> Finding | None:
    name = "collection"
    if not root.is_dir():
        what = "is a file" if root.exists() else "does not exist"
        return fail(name, f"{root} {what}", "give the folder of a collection with -C DIR")
    if folder.is_dir():
        os.listdir(folder)
        return None
    loose = [
        entry.name
        for entry in root.iterdir()
        if entry.suffix.lower() in SUFFIXES and entry.stem.upper() not in ABOUT
    ]
    if loose:
        found = f"{root} has no folder `documents`, but {counted(len(loose), 'file')} of its own"
        return fail(name, found, f"make {folder} and move what is to be searched into it")
    started = any((root / part).exists() for part in (FILE_NAME, DEVELOPMENT, HELD_OUT))
    found = f"{root} has no folder `documents`"
    if not started:  # who only wanted to know of the installation should not be alarmed
        found += ", so it is no collection, and only the installation was looked at"
    return fail(name, found, f"{START}; or make {folder} and put documents there")


def opened(
    root: Path, settings: Settings, sample: bool, take: Callable[[Collection], None]
) -> Iterator[Finding]:
    """Find the state folder; `take` gets the collection, also where nothing can be kept."""
    state = root / ".atlas"
    notes: tuple[str, ...] = ()
    existed = state.exists()
    try:
        state, notes = state_folder(root)
    except AtlasError as error:
        yield of_error("state", error, "set ATLAS_STATE to a folder that can be written")
    else:
        if not existed and state == root / ".atlas" and not any(state.iterdir()):
            state.rmdir()  # looking leaves no trace
    if sample and not settings.sample:
        yield fail(
            "sample",
            f"{root / FILE_NAME} names no sample",
            "list document ids under `sample`, or leave --sample out",
        )
        sample = False
    take(Collection(root=root, settings=settings, state=state, sample=sample, notes=notes))


def documents(collection: Collection) -> Iterator[Finding]:
    """The files in `documents/`, those that are read and those that are not."""
    folder = collection.root / "documents"
    files = collection.files()
    kinds = Counter("PDF" if path.suffix.lower() == ".pdf" else "Markdown" for path in files)
    if files:
        text = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        yield ok("documents", f"{counted(len(files), 'file')} in {folder}: {text}")
    else:
        yield fail("documents", f"{folder} holds no Markdown file and no PDF", "put some there")
    others: Counter[str] = Counter()
    alone: list[str] = []
    known = {path.name for path in files}
    for place, names, found in os.walk(folder):
        names[:] = [name for name in names if not name.startswith(".")]
        for name in found:
            suffix = Path(name).suffix.lower()
            if name.lower().endswith(".pdf.yaml") and name[: -len(".yaml")] not in known:
                alone.append(str(Path(place, name)))
            elif suffix in OTHER_KINDS and not name.startswith("."):
                others[suffix] += 1
    if others:
        text = ", ".join(f"{count} {suffix}" for suffix, count in sorted(others.items()))
        yield warn(
            "documents",
            f"{counted(others.total(), 'file')} of other kinds passed over ({text})",
            "save as PDF or Markdown what should be searched",
        )
    for path in sorted(alone):
        yield warn("documents", f"{path} describes a PDF that is not there", "rename or remove it")


def read(collection: Collection, index: Index, current: bool) -> Iterator[Finding]:
    """What was skipped and warned of when the index was made, and names that nothing bears."""
    later = "" if current else " (when the index was made)"
    for warning in index.manifest.get("warnings", ()):
        found, todo = apart(str(warning), "look at the documents again")
        yield warn("documents", f"{found}{later}", todo)
    for source in index.sources:
        if source.reason:
            found, todo = apart(source.reason, "mend the file")
            what = "skipped" if source.document is None else "noted"
            yield warn("document", f"{source.path} {what}{later}: {found}", todo)
        for warning in source.warnings:
            advice = HIDDEN if warning.startswith("hidden text") else LOOK
            found, todo = apart(warning, advice)
            yield warn("document", f"{source.path}{later}: {found}", todo)
    if not current or collection.sample:
        return
    names = collection.settings
    absent = [name for name in names.sample if name not in index.ids]
    if absent:
        found = f"`sample` names {', '.join(absent)}, which is no document here"
        yield warn("settings", found, "correct the ids, or --sample is refused")
    borne = {product for profile in index.profiles for product in profile.products}
    for name in names.products:
        if name not in borne:
            found = f"`products` names {name}, but no document has it under `products`"
            yield warn("settings", found, "correct the name, or give its documents `products`")


def cases(collection: Collection, index: Index | None) -> Iterator[Finding]:
    """The questions of both sets; against the documents where an index of today is at hand."""
    root = collection.root
    sets: dict[str, tuple[Case, ...]] = {}
    for folder in (DEVELOPMENT, HELD_OUT):
        try:
            sets[folder] = load_cases(root, folder)
        except AtlasError as error:
            yield of_error("cases", error, "correct the file")
            return  # each reads the other's files, so the same would be said twice
    both = [*sets[DEVELOPMENT], *sets[HELD_OUT]]
    if not both:
        found = "none, so nothing can be checked or measured"
        yield ok("cases", found, "write some into cases/*.yaml; `atlas init` shows how")
        return
    against = "the documents are not indexed as they are now, so labels were not compared"
    if index is not None and not collection.sample:
        check_cases(both, _labels(both, index))
        against = "labels and quotes match the documents"
    elif index is not None:
        against = "labels are compared without --sample"
    core = sum(case.core for case in sets[DEVELOPMENT])
    count = f"{len(sets[DEVELOPMENT])} development ({core} core), {len(sets[HELD_OUT])} held-out"
    yield ok("cases", f"{count}; {against}")


def labels(collection: Collection) -> Iterator[Finding]:
    """The labelled answers that judges are measured on."""
    folder = collection.root / LABELS
    if not folder.is_dir():
        return
    try:
        count = len(load_labels(folder))
    except NothingToMeasure:
        yield ok("labels", f"{folder} holds none yet")
        return
    yield ok("labels", f"{counted(count, 'labelled answer')} in {folder}")


def _labels(cases: Sequence[Case], index: Index) -> Labels:
    """Labels over the documents that cases name; the others need not be read."""
    named = {label for case in cases for label in (*case.relevant, *case.near_misses)}
    starts = set(named)
    for label in named:
        starts |= {label[:place] for place, sign in enumerate(label) if sign in "-@"}
    numbers = [number for number, name in enumerate(index.ids) if name in starts]
    blocks = [index.block(place) for number in numbers for place in index.blocks_of(number)]
    return Labels(
        [index.document(number) for number in numbers], {block.ref: block for block in blocks}
    )
