"""Sources -> passages: sentences, list items and table rows, each with the titles above it.

The first line of a source is its title line where it does not read as a sentence: `Document title >
Section`. Where two sources are revisions of one document, the earlier is left out unless the
question names its number or its year.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from atlas.measure.judges.claims import clauses, sentences
from atlas.measure.judges.figures import Figure, figures, same
from atlas.measure.judges.revisions import HEADING, ITEM, in_force, title_and_body
from atlas.words import content_terms

_ROW = re.compile(r"^\s*\|.*\|\s*$|^[^|]+(?: \| [^|]+)+$")
_RULE = re.compile(r"^[\s|:+-]+$")
_THOUSANDS = re.compile(r"(?<!\d)(\d{1,3}) , (?=\d{3}(?!\d))")
_DECIMALS = re.compile(r"(?<=\d) \. (?=\d)")
_PART = re.compile(r"[,;:]\s|\s(?:and|but|while|whereas)\s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Passage:
    """The smallest piece of a source that is read alone."""

    text: str
    titles: str
    source: int
    """Which of the sources it stands in."""
    table: int
    """A number that the rows or items of one table or list share; -1 for sentences."""
    figures: tuple[Figure, ...]
    """Those of the text; of a row also those of its header."""
    codes: frozenset[str]
    """The codes that it names, itself or in its titles."""
    cells: tuple[str, ...] = ()
    """Of a table row its cells."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The whole text, and its cells or clauses where it has several."""
        parts = self.cells or tuple(clauses(self.text))
        return (self.text, *parts) if len(parts) > 1 else (self.text,)

    @property
    def titled(self) -> str:
        return f"{self.titles}: {self.text}" if self.titles else self.text


def passages(question: str, sources: Sequence[str]) -> tuple[Passage, ...]:
    """The passages of all sources in force, in reading order."""
    found: list[Passage] = []
    tables: dict[tuple[str, str], int] = {}
    for number in in_force(question, sources):
        titles, body = title_and_body(sources[number])
        found += _Reader(number, titles, tables).read(_whole_numbers(body))
    return tuple(found)


def holds(
    passage: Passage,
    figure: Figure,
    codes: frozenset[str] = frozenset(),
    stated: Sequence[Figure] | None = None,
) -> bool:
    """Whether a passage states a figure, in its text or its titles.

    A number without unit stands for one with a unit only in a table, where headers hold units. In
    `5 years for the C-3, 3 years for the T-7` each figure belongs to the code in its own part:
    with `codes` only those count that stand with none or with one of them.
    """
    own = passage.figures if stated is None else stated
    for item in own:
        fits = passage.table >= 0 or figure.kind != "quantity" or item.kind != "number"
        if fits and same(figure, item):
            near = _codes_beside(passage, item) if figure.kind != "code" else frozenset()
            if agree(codes, near):
                return True
    return any(
        same(figure, item) for item in figures(passage.titles) if item.kind in ("code", "date")
    )


def _codes_beside(passage: Passage, figure: Figure) -> frozenset[str]:
    """The codes in the same part of a sentence as a figure."""
    if passage.table >= 0:
        return frozenset()
    cuts = [match.span() for match in _PART.finditer(passage.text)]
    start = max((end for _, end in cuts if end <= figure.start), default=0)
    end = min((begin for begin, _ in cuts if begin >= figure.end), default=len(passage.text))
    return frozenset(
        item.value
        for item in passage.figures
        if item.kind == "code" and start <= item.start and item.end <= end
    )


def shape(code: str) -> str:
    """The order of letters and digits in a code: `e417` and `e471` are of one shape."""
    return re.sub(r"\d", "9", re.sub(r"[^\W\d_]+", "a", code))


def about(codes: Collection[str], passage: Passage) -> bool:
    """Whether a passage may speak for a claim with these codes.

    It may not where it names only other codes of the same shape: what stands under E-471 says
    nothing of E-417, nor a T-7's row of a C-3.
    """
    return agree(codes, passage.codes)


def agree(codes: Collection[str], others: Collection[str]) -> bool:
    """Whether two sets of codes have one in common for every shape that both have."""
    for kind in {shape(code) for code in codes}:
        theirs = {code for code in others if shape(code) == kind}
        if theirs and theirs.isdisjoint(codes):
            return False
    return True


def _whole_numbers(text: str) -> str:
    """Numbers that were cut at their signs, as in `1 , 000`, made whole."""
    return _DECIMALS.sub(".", _THOUSANDS.sub(r"\1,", text))


class _Reader:
    """Reads one source line by line; holds the paragraph and the table that are open."""

    def __init__(self, source: int, titles: str, tables: dict[tuple[str, str], int]) -> None:
        self.found: list[Passage] = []
        self._source = source
        self._titles = self._heading = titles
        self._tables = tables
        self._paragraph: list[str] = []
        self._lead = ""
        """The sentence before a list, which its items continue."""
        self._header: list[str] = []
        self._rows = 0

    def read(self, body: str) -> list[Passage]:
        for line in body.splitlines():
            if _ROW.match(line):
                self._close_paragraph()
                self._row(line)
                continue
            self._close_table()
            if not line.strip():
                self._close_paragraph()
            elif HEADING.match(line):
                self._close_paragraph()
                own = HEADING.sub("", line).strip()
                self._heading = " > ".join(filter(None, (self._titles, own)))
                self._lead = ""
            elif ITEM.match(line):
                self._close_paragraph()
                text = f"{self._lead} {ITEM.sub('', line).strip()}".strip()
                self._add(text, self._table(self._lead))
            else:
                self._paragraph.append(line.strip())
        self._close_paragraph()
        self._close_table()
        return self.found

    def _row(self, line: str) -> None:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if _RULE.match(line) or cells == self._header:
            return
        if not self._header:
            self._header = cells
            return
        self._rows += 1
        text = "; ".join(cells)
        if len(self._header) == len(cells):
            named = zip(self._header, cells, strict=True)
            text = "; ".join(f"{name}: {cell}" if name else cell for name, cell in named)
        self._add(text, self._table(" | ".join(self._header)), tuple(cells))

    def _close_table(self) -> None:
        if self._header and not self._rows:  # a line with bars that is no table
            self._add(" | ".join(self._header), -1)
        self._header, self._rows = [], 0

    def _close_paragraph(self) -> None:
        for sentence in sentences("\n".join(self._paragraph)):
            self._add(sentence, -1)
            self._lead = sentence
        self._paragraph = []

    def _table(self, name: str) -> int:
        """A number that the pieces of one table share: same titles, same header."""
        place = (self._heading or str(self._source), name)
        return self._tables.setdefault(place, len(self._tables))

    def _add(self, text: str, table: int, cells: tuple[str, ...] = ()) -> None:
        own = figures(text)
        codes = {item.value for item in (*own, *figures(self._heading)) if item.kind == "code"}
        self.found.append(
            Passage(text, self._heading, self._source, table, own, frozenset(codes), cells)
        )


@dataclass(frozen=True, slots=True)
class Counted:
    """A table or list of the sources with the number of its rows or items."""

    rows: int
    words: frozenset[str]
    """The content terms of its titles, header and lead-in: what it lists."""
    members: tuple[Passage, ...]


def counted(found: Sequence[Passage]) -> tuple[Counted, ...]:
    """The tables and lists among passages; the pieces of a table that was split are one."""
    groups: dict[int, list[Passage]] = {}
    for passage in found:
        if passage.table >= 0:
            groups.setdefault(passage.table, []).append(passage)
    return tuple(
        Counted(
            len({member.text for member in members}),
            frozenset(
                term
                for member in members[:1]
                for term in content_terms(f"{member.titles} {member.text}")
            ),
            tuple(members),
        )
        for members in groups.values()
    )
