"""Case files -> Cases, every label, quote and key checked against the collection.

`cases/*.yaml` are development questions, `heldout/*.yaml` held-out ones, in one schema. Refused
with file and line: unknown keys, wrong types, duplicate ids, a question that stands in both sets or
twice in one for the same reader and day, a label that matches nothing, an evidence quote that is
not in the documents it is labelled with.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

from atlas.errors import CollectionError
from atlas.records import Block, Document
from atlas.yaml_files import Located, YamlError, meant, parse, utf8

KEYS = (
    "id", "core", "question", "kind", "reader", "date", "relevant", "evidence", "expect", "facts",
    "reject", "reference", "near_misses", "note",
)  # fmt: skip
Expect = Literal["answer", "abstain", "clarify"]
DEVELOPMENT, HELD_OUT = "cases", "heldout"
PROMOTED = "Promoted from the held-out set"
"""How the note begins that a promoted question gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question with what a right answer needs."""

    id: str
    question: str
    where: str
    """File and line, for messages."""
    core: bool = False
    kind: str = ""
    reader: str | None = None
    date: date | None = None
    relevant: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    expect: Expect = "answer"
    facts: tuple[tuple[str, ...], ...] = ()
    """Every inner tuple needs one of its alternatives in the answer."""
    reject: tuple[str, ...] = ()
    reference: str = ""
    near_misses: tuple[str, ...] = ()
    note: str = ""


def load_cases(root: Path, folder: str = DEVELOPMENT, *, alone: bool = False) -> tuple[Case, ...]:
    """Every case of a folder, in file and line order. Raises CollectionError.

    The other folder is read as well, since no question and no id may stand in both; not if `alone`.
    """
    cases = _read_folder(root, folder)
    if alone:
        return cases
    other = HELD_OUT if folder == DEVELOPMENT else DEVELOPMENT
    others = _read_folder(root, other)
    questions = {folded(case.question): case for case in others}
    ids = {case.id: case for case in others}
    for case in cases:
        if case.id in ids:
            raise _taken(case, ids[case.id])
        twin = questions.get(folded(case.question))
        if twin is not None:
            raise CollectionError(
                f"{case.where}: the question of {case.id} also stands at {twin.where}; "
                "a held-out question must not be a development question"
            )
    return cases


def check_cases(cases: Sequence[Case], labels: Labels) -> None:
    """Check labels and quotes against documents. Raises CollectionError naming file and line."""
    for case in cases:
        for key, names in (("relevant", case.relevant), ("near_misses", case.near_misses)):
            for label in names:
                if not labels.exists(label):
                    raise CollectionError(
                        f"{case.where}: {key} {label!r} of {case.id} matches nothing; "
                        "expected a document, a section (ID-2), a page (ID@3) or a block (ID-2-p0)"
                    )
        for quote in case.evidence:
            texts = [labels.text(label) for label in case.relevant]
            if not any(comparable(quote) in comparable(text) for text in texts):
                raise CollectionError(
                    f"{case.where}: an evidence quote of {case.id} is in none of its relevant "
                    f"sources: {quote[:60]!r}"
                )


_LABEL_FORMS = tuple(
    re.compile(form, re.DOTALL)
    for form in (
        r"(?P<id>.+)",
        r"(?P<id>.+)@(?P<page>\d+)",
        r"(?P<id>.+)-(?P<section>\d+)",
        r"(?P<id>.+)-(?P<section>\d+)-p(?P<piece>\d+)",
    )
)
"""What a label can be, the longest id first."""


class Labels:
    """Resolves labels against documents; ids are matched longest first.

    `blocks` are those that labels of blocks mean, by reference; without them every piece exists
    and is that of the block with the same reference.
    """

    def __init__(
        self, documents: Sequence[Document], blocks: Mapping[str, Block] | None = None
    ) -> None:
        self._blocks = blocks
        self._documents = {document.id: document for document in documents}

    def parse(self, label: str) -> tuple[Document, int | None, int | None, int | None] | None:
        """Document, section, piece and page of a label, or None where no document has its id.

        Of several readings that with the longest id counts: `A-2` is a document of that name before
        it is section 2 of A.
        """
        for form in _LABEL_FORMS:
            match = form.fullmatch(label)
            document = self._documents.get(match["id"]) if match else None
            if match and document is not None:
                found = match.groupdict()
                section, piece, page = (
                    None if found.get(name) is None else int(found[name])
                    for name in ("section", "piece", "page")
                )
                return document, section, piece, page
        return None

    def exists(self, label: str) -> bool:
        """Whether a label points at something."""
        found = self.parse(label)
        if found is None:
            return False
        document, section, piece, page = found
        if piece is not None and self._blocks is not None:
            return label in self._blocks
        if page is not None:
            return 1 <= page <= len(document.page_labels)
        return section is None or any(item.number == section for item in document.sections)

    def text(self, label: str) -> str:
        """The text a label points at."""
        found = self.parse(label)
        if found is None:
            return ""
        document, section, _, page = found
        if section is None and page is None:
            return document.text
        units = [
            unit
            for item in document.sections
            if section is None or item.number == section
            for unit in item.units
            if page is None or unit.page == page
        ]
        return document.text[units[0].start : units[-1].end] if units else ""

    def covers(self, label: str, block: Block) -> bool:
        """Whether a block belongs to what a label points at."""
        found = self.parse(label)
        if found is None or found[0].id != block.document:
            return False
        _, section, piece, page = found
        if page is not None:
            return any(unit.page == page for unit in block.units)
        if piece is not None and self._blocks is not None:
            meant = self._blocks.get(label)
            return meant is not None and _mostly_same(meant, block)
        return (section is None or section == block.section) and (
            piece is None or piece == block.piece
        )


def _mostly_same(one: Block, other: Block) -> bool:
    """Whether two blocks of a document share more than half of the shorter one's text."""
    shared = min(one.end, other.end) - max(one.start, other.start)
    return shared > 0 and 2 * shared > min(one.end - one.start, other.end - other.start)


# ---- reading --------------------------------------------------------------------------------


def _read_folder(root: Path, folder: str) -> tuple[Case, ...]:
    cases: dict[str, Case] = {}
    for path in sorted((root / folder).glob("*.y*ml")):
        for case in _read_file(path):
            first = cases.setdefault(case.id, case)
            if first is not case:
                raise _taken(case, first)
    asked: dict[object, Case] = {}
    for case in cases.values():
        first = asked.setdefault((folded(case.question), case.reader, case.date), case)
        if first is not case:
            raise CollectionError(
                f"{case.where}: the question of {case.id} also stands at {first.where}; "
                "keep one, or give them another reader or date"
            )
    return tuple(cases.values())


def _taken(case: Case, first: Case) -> CollectionError:
    if PROMOTED in f"{case.note} {first.note}" and case.question == first.question:
        return CollectionError(
            f"{case.where}: {case.id} also stands at {first.where}: its promotion was interrupted; "
            f"`atlas promote {case.id} --reason …` finishes it"
        )
    return CollectionError(f"{case.where}: the id {case.id} is taken at {first.where}; use another")


def _read_file(path: Path) -> Iterator[Case]:
    try:
        located = parse(utf8(path.read_bytes()))
    except YamlError as error:
        raise CollectionError(f"{path}:{error.line}: {error.problem}") from None
    except OSError as error:
        raise CollectionError(f"{path}: cannot be read ({error.strerror})") from None
    rows = located.value or []
    if not isinstance(rows, list):
        raise CollectionError(f"{path}:1: expected a list of cases, each beginning with `- id:`")
    for number, row in enumerate(rows):
        yield _case(path, located, number, row)


def _case(path: Path, located: Located, number: int, row: Any) -> Case:
    def refuse(key: str, problem: str) -> CollectionError:
        return CollectionError(f"{path}:{located.line(number, key)}: {problem}")

    if not isinstance(row, dict):
        raise refuse("", f"case {number + 1} is no mapping; expected `id`, `question` and so on")
    for key in row:
        if key not in KEYS:
            hint = meant(key, KEYS)
            raise refuse(key, f"unknown key {key!r}; {hint}")

    def text(key: str, needed: bool = False) -> str:
        value = row.get(key)
        if value is None and not needed:
            return ""
        if not isinstance(value, str) or not value.strip():
            raise refuse(key, f"{key} of case {row.get('id', number + 1)}: expected text")
        return value.strip()

    def words(key: str) -> tuple[str, ...]:
        value = row.get(key) or []
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(
            isinstance(item, str) and item.strip() for item in value
        ):
            raise refuse(key, f"{key}: expected a list of texts (quote numbers: '3')")
        return tuple(value)

    core = row.get("core", False)
    if not isinstance(core, bool):
        raise refuse("core", f"core is {core!r}; expected true or false")
    day = row.get("date")
    if day is not None and type(day) is not date:
        raise refuse("date", f"date is {day!r}; expected a date such as 2026-01-01")
    expect = row.get("expect", "answer")
    if expect not in ("answer", "abstain", "clarify"):
        raise refuse("expect", f"expect is {expect!r}; expected answer, abstain or clarify")
    facts = row.get("facts") or []
    if not isinstance(facts, list):
        raise refuse("facts", "facts: expected a list, each item a text or a list of alternatives")
    alternatives = []
    for item in facts:
        options = [item] if isinstance(item, str) else item
        written = isinstance(options, list) and all(isinstance(x, str) and x for x in options)
        if not options or not written:
            raise refuse(
                "facts", f"facts: {item!r} is no text and no list of texts (quote numbers)"
            )
        alternatives.append(tuple(options))
    relevant = words("relevant")
    if expect == "answer" and not relevant:
        raise refuse("relevant", f"case {row.get('id')} expects an answer but names no source")
    return Case(
        id=text("id", needed=True),
        question=text("question", needed=True),
        where=f"{path}:{located.line(number)}",
        core=core,
        kind=text("kind"),
        reader=text("reader") or None,
        date=day,
        relevant=relevant,
        evidence=words("evidence"),
        expect=expect,
        facts=tuple(alternatives),
        reject=words("reject"),
        reference=text("reference"),
        near_misses=words("near_misses"),
        note=text("note"),
    )


def folded(question: str) -> str:
    return " ".join(re.findall(r"\w+", question.casefold()))


def comparable(text: str) -> str:
    """Unicode form, white space and line-end hyphens folded, nothing else."""
    text = unicodedata.normalize("NFC", text)
    text = re.sub(r"-\s*\n\s*", "", text)
    return " ".join(text.split())
