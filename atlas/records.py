"""The data that flows through atlas, in the order in which it flows.

Reading -> Document -> Block -> Hit -> Selection -> Draft -> Answer -> Trace

Records are frozen and whole when made. Scores say who made them and stand side by side: a stage
adds its own and overwrites nobody's. Offsets are character positions in a document's `text`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

UnitKind = Literal["paragraph", "item", "row", "caption", "code"]
Status = Literal["answered", "abstained", "needs_clarification", "failed"]
PageState = Literal["text", "no text", "over the limit", "damaged"]


# ---- documents ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The smallest piece that splitting keeps whole."""

    kind: UnitKind
    start: int
    end: int
    page: int | None = None
    """1-based page of the file; None where the format has no pages."""
    header: tuple[int, int] | None = None
    """For a table row: the offsets of the table's header row. None on the header itself."""
    hidden: str = ""
    """Why a person who looks at the page does not see it ("white", "off the page"), or ""."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageVerdict:
    """What became of one page of a file."""

    page: int
    """1-based page of the file."""
    state: PageState
    """A page that was read in part is damaged, and what was read is kept."""
    reason: str = ""
    """What is missing and what to do; "" where the state is "text"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One heading with the text below it, up to the next heading of any level."""

    number: int
    """Headings after the document's title, counted from 1; 0 is the text before the first."""
    titles: tuple[str, ...]
    """The headings above it from outermost to its own; empty for section 0."""
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a file reader found, before metadata is applied."""

    title: str
    """The document's own title, or "" where it has none."""
    text: str
    sections: tuple[Section, ...]
    page_labels: tuple[str, ...] = ()
    """Printed label of each page of the file; empty where there are no pages."""
    warnings: tuple[str, ...] = ()
    page_verdicts: tuple[PageVerdict, ...] = ()
    """One for each page of the file, in order; empty where there are no pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What is known about a document besides its text. Empty products or readers: for all."""

    id: str
    title: str
    path: str
    """Relative to the collection, with forward slashes."""
    kind: str = ""
    products: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    valid_from: date | None = None
    valid_to: date | None = None
    supersedes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document as it is searched and cited."""

    metadata: Metadata
    text: str
    sections: tuple[Section, ...]
    page_labels: tuple[str, ...]
    warnings: tuple[str, ...]
    content_hash: str
    """sha256 of the file and its metadata: equal hashes need no new work."""
    page_verdicts: tuple[PageVerdict, ...] = ()
    """One for each page of the file, in order; empty where there are no pages."""

    @property
    def id(self) -> str:
        return self.metadata.id

    @property
    def title(self) -> str:
        return self.metadata.title


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file that could not be read, and why."""

    path: str
    reason: str


# ---- blocks ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A searchable piece of one section."""

    document: str
    section: int
    piece: int
    title: str
    """The document's title."""
    titles: tuple[str, ...]
    """The section's headings, outermost first."""
    text: str
    """What is shown and cited. A table that goes on from the piece before repeats its header."""
    start: int
    """Offset of the piece in the document's text, a repeated header not counted."""
    end: int
    units: tuple[Unit, ...]
    """The units of the block, with offsets in the block's own `text`."""
    page: int | None
    page_label: str | None
    products: tuple[str, ...]

    @property
    def ref(self) -> str:
        return f"{self.document}-{self.section}-p{self.piece}"

    @property
    def prefix(self) -> str:
        """The titles that stand before the text in the searched form."""
        return "\n".join((self.title, *self.titles))

    @property
    def searched(self) -> str:
        return f"{self.prefix}\n{self.text}"

    @property
    def hidden(self) -> str:
        """Why some of the text is not seen on its page, or "" where all of it is."""
        return ", ".join(dict.fromkeys(unit.hidden for unit in self.units if unit.hidden))

    def hidden_in(self, words: str) -> str:
        """Why words of the text are not seen on its page, or "" where they are.

        Words that stand in several places count as seen where one of those is.
        """
        reasons: list[str] = []
        at = self.text.find(words) if words else -1
        while at >= 0:
            end = at + len(words)
            found = [u.hidden for u in self.units if u.hidden and u.start < end and at < u.end]
            if not found:
                return ""
            reasons.extend(found)
            at = self.text.find(words, at + 1)
        return ", ".join(dict.fromkeys(reasons))


# ---- a question -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Who asks, about when, about what. The caller vouches for the reader."""

    reader: str | None = None
    """A reader group of the collection, or None for anyone."""
    date: date | None = None
    """The day the answer must hold on; None means today."""
    products: tuple[str, ...] = ()
    """Products the caller fixes; those the question names are added by the assistant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A block found for a question, with the score of every stage that has seen it."""

    block: Block
    keyword_score: float
    """BM25 over the blocks in scope; 0 or below where few or no words match."""
    vector_score: float
    """Cosine of question and block, -1 to 1."""
    fused_score: float
    """What the first stage orders by, 0 to 1."""
    rerank_score: float | None = None
    """Calibrated relevance, 0 to 1; None where the reranker did not see the block."""
    rerank_logit: float | None = None
    """The same before calibration, as the model gave it."""
    order_score: float | None = None
    """What the ranking orders by after reranking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A hit that was not supplied, and the rule that dropped it."""

    hit: Hit
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the answerer is given: `kept` in rank order, and what was dropped."""

    kept: tuple[Hit, ...]
    dropped: tuple[Dropped, ...]
    tokens: int
    """Tokens of the kept texts, as the encoder counts them."""


# ---- an answer ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One sentence of a draft, with the markers that cite for it."""

    text: str
    markers: tuple[int, ...]
    """1-based positions in the list of supplied blocks."""
    quotes: tuple[str, ...] = ()
    """For each marker the words of the block that the claim rests on; "" where not stated."""
    computed: bool = False
    """Whether the text was written in code around an expression that it evaluated."""
    results: tuple[str, ...] = ()
    """Numbers that code computed from cited figures; the sentence may hold them uncited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatUse:
    """What a chat model was given and took for a draft."""

    model: str
    """As the server names it."""
    prompt: tuple[str, ...]
    """References of the supplied blocks in the order of the prompt."""
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    attempts: int
    cached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What an answerer proposes, before its citations are checked."""

    status: Status
    claims: tuple[Claim, ...] = ()
    reason: str = ""
    """Why it abstained or failed, in words for a person."""
    choices: tuple[str, ...] = ()
    """For a clarification: what the reader can choose between."""
    evidence: tuple[tuple[str, float], ...] = ()
    """The features that the decision to answer or decline was made on, by name."""
    cause: str = ""
    """Of a failed draft: the cause by its fixed name."""
    chat: ChatUse | None = None
    """Where a chat model wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """One numbered source of an answer."""

    marker: int
    ref: str
    document: str
    title: str
    section: str
    page: str | None
    """The printed page label, with the page of the file where they differ."""
    quote: str
    hidden: str = ""
    """Why a person does not see quoted words on the page, or "" where all are seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A draft whose citations have been checked in code."""

    status: Status
    text: str
    citations: tuple[Citation, ...]
    choices: tuple[str, ...]
    reason: str
    removed: tuple[str, ...]
    """What validation took out or marked, one line each."""
    kept: tuple[int, ...] = ()
    """Places in the draft of the claims that are presented, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Everything that happened for one question; `values` is the JSON that programs rely on."""

    values: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.values["id"])

    @property
    def status(self) -> Status:
        status: Status = self.values["status"]
        return status
