"""What measuring needs of an assistant, as Protocols: it asks, and reads what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from atlas.models import ChatModel, Encoder, Reranker
from atlas.records import Block, Document, Scope, Selection, Trace
from atlas.settings import Settings


class Asks(Protocol):
    """Answers a question with a trace."""

    def ask(self, question: str, scope: Scope | None = None) -> Trace: ...


class Seen(Protocol):
    """What a question may see."""

    @property
    def blocks(self) -> Iterable[Any]:
        """One truth value per block of the index."""
        ...

    @property
    def key(self) -> tuple[object, ...]:
        """Equal keys mean equal blocks."""
        ...


class Understood(Protocol):
    """A question in its scope."""

    @property
    def seen(self) -> Seen: ...


class Folder(Protocol):
    """The collection that an assistant answers from."""

    @property
    def root(self) -> Path: ...

    @property
    def state(self) -> Path: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def sample(self) -> bool: ...


class Indexed(Protocol):
    """Its documents and blocks."""

    def __len__(self) -> int: ...

    def block(self, number: int) -> Block: ...

    def documents(self) -> Iterator[Document]: ...


class Opened(Asks, Protocol):
    """An assistant on an open collection."""

    encoder: Encoder
    reranker: Reranker | None

    @property
    def collection(self) -> Folder: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def index(self) -> Indexed: ...

    def understand(self, question: str, scope: Scope | None = None) -> Understood: ...

    def reselect(self, trace: Mapping[str, Any], settings: Settings) -> Selection: ...

    def fingerprints(self) -> dict[str, str | None]: ...

    def forget_pairs(self) -> None: ...


class Answers(Opened, Protocol):
    """An assistant that also answers from given blocks and under other settings."""

    chat: ChatModel | None

    def answer_from(
        self, question: str, blocks: Sequence[Block], scope: Scope | None = None
    ) -> Trace: ...

    def under(self, settings: Settings, repeat: int = 0) -> Asks: ...


class Progress(Protocol):
    """Is told how far a long run has come."""

    def stage(self, name: str, total: int) -> None: ...

    def step(self, count: int = 1) -> None: ...


class Silent:
    """Progress that nobody looks at."""

    def stage(self, name: str, total: int) -> None: ...

    def step(self, count: int = 1) -> None: ...
