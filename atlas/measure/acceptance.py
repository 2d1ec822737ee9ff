"""Cases a person has looked at -> what they rested on then, to tell when to look again.

`cases/accepted.json` keeps for every accepted case the sha256 over the text of its relevant
sources, and the blocks outside them that hold all of its facts too. A case is due for review when
a source has changed since, or when another block in its scope now holds all of its facts: then the
case may ask for what is no longer true, or no longer has one right source.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from atlas.errors import AtlasError, CollectionError
from atlas.measure.cases import DEVELOPMENT, Case, Labels
from atlas.measure.facts import missing_facts
from atlas.records import Block
from atlas.whole_files import write_whole

FILE_NAME = "accepted.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What a case rests on."""

    sources: str
    """sha256 over the texts of its relevant labels, in their order."""
    others: tuple[str, ...]
    """Blocks in its scope, outside its sources, that hold all of its facts; sorted."""


def acceptance_of(case: Case, labels: Labels, in_scope: Iterable[Block]) -> Acceptance:
    """What a case rests on as the collection is now."""
    digest = hashlib.sha256()
    for label in case.relevant:
        digest.update(labels.text(label).encode() + b"\0")
    others: list[str] = []
    if case.expect == "answer" and case.facts:
        others = [
            block.ref
            for block in in_scope
            if not any(labels.covers(label, block) for label in case.relevant)
            and not missing_facts(block.searched, case)
        ]
    return Acceptance(sources=digest.hexdigest(), others=tuple(sorted(others)))


def reasons(then: Acceptance, now: Acceptance) -> Iterator[str]:
    """Why an accepted case should be looked at again; nothing where it need not be."""
    if then.sources != now.sources:
        yield "a source changed since it was accepted"
    for ref in now.others:
        if ref not in then.others:
            yield f"{ref} now holds all of its facts as well"


def load_accepted(root: Path) -> dict[str, Acceptance]:
    """Every acceptance by case id; none where no case was accepted yet. Raises CollectionError."""
    path = root / DEVELOPMENT / FILE_NAME
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
        return {
            name: Acceptance(sources=str(row["sources"]), others=tuple(map(str, row["others"])))
            for name, row in rows.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CollectionError(
            f"{path}: cannot be read as acceptances ({error}); delete it and run "
            "`atlas check --all --accept`"
        ) from None


def save_accepted(root: Path, accepted: Mapping[str, Acceptance]) -> Path:
    """Write the file as a whole or not at all. Raises AtlasError where the disk refuses."""
    path = root / DEVELOPMENT / FILE_NAME
    rows = {name: asdict(accepted[name]) for name in sorted(accepted)}
    text = json.dumps(rows, ensure_ascii=False, indent=1) + "\n"
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise AtlasError(f"{path}: could not be written ({error.strerror or error})") from None
    return path
