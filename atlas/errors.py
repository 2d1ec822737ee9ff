"""Every error atlas raises on purpose.

AtlasError                    one line for a person, and an exit code
├── UsageError           (2)  the call itself: an option, a question, a reader, a date, a product
├── SettingsError        (2)  atlas.yaml
├── CollectionError      (2)  the folder: metadata that contradicts, a case that cannot be
├── DocumentError        (3)  one document that cannot be read; the others go on
├── ModelError           (2)  a model that is missing, damaged or of the wrong kind
├── ChatError            (3)  a chat model that gave no whole answer, with the cause by name
├── IndexDamagedError    (2)  a file of the index is not what the manifest says
├── StoreError           (2)  the server of a store does not answer, or not as it should
└── NothingToMeasure     (4)  no question, no case, no label was left to score

A message says what was found, where, what was expected and what to do. Anything else that is
raised is a bug of atlas and keeps its traceback.
"""

from __future__ import annotations

from pathlib import Path


class AtlasError(Exception):
    """The root: `str(error)` is one line, `exit_code` what the process should end with."""

    exit_code = 2

    def __str__(self) -> str:
        return " ".join(super().__str__().split())

    @property
    def found(self) -> str:
        """The message without what to do."""
        return apart(str(self))[0]


def apart(message: str, todo: str = "") -> tuple[str, str]:
    """What was found and what to do, which atlas's messages part by a semicolon.

    One in brackets parts nothing. `todo` stands in for advice that is missing.
    """
    depth = 0
    for place, sign in enumerate(message):
        depth += (sign in "([«") - (sign in ")]»")
        if depth <= 0 and message.startswith("; ", place):
            return message[:place], message[place + 2 :]
    return message, todo


class UsageError(AtlasError):
    """The caller asked for something that does not exist or makes no sense."""


class SettingsError(AtlasError):
    """`atlas.yaml` holds an unknown key, a wrong type or a value out of range."""


class CollectionError(AtlasError):
    """The collection contradicts itself; nothing was changed."""


class DocumentError(AtlasError):
    """One document cannot be read. `path` names it and `reason` says why and what to do."""

    exit_code = 3

    def __init__(self, path: Path | str, reason: str) -> None:
        self.path = Path(path)
        self.reason = " ".join(reason.split())
        super().__init__(f"{self.path.name}: {self.reason}")


class ModelError(AtlasError):
    """A model's file is missing, damaged, or cannot be loaded."""


class ChatError(AtlasError):
    """A chat model gave no whole answer. `cause` is one of CAUSES, the message says more."""

    exit_code = 3
    CAUSES = (
        "unreachable",  # no connection, or it broke before the first byte
        "refused",  # the key, the address or the request was not accepted
        "rate limited",  # 429, also after waiting as long as the deadline allows
        "server error",  # 5xx
        "deadline",  # no whole reply in time
        "wrong model",  # the server lacks the model, or another one answered
        "too long",  # the prompt and the answer do not fit into the context window
        "prompt cut",  # the server read fewer tokens than were sent
        "empty",  # a reply without text
        "cut short",  # the reply ended before its end
        "filtered",  # a content filter or a refusal took the place of the answer
        "unreadable",  # no JSON, not of the schema, or far too large
    )

    def __init__(self, cause: str, message: str) -> None:
        self.cause = cause
        super().__init__(f"{cause}: {message}")


class IndexDamagedError(AtlasError):
    """A file of the index is missing, cut short or changed since it was written."""


class StoreError(AtlasError):
    """The server behind a store cannot be reached, refuses, or answers what cannot be used."""


class NothingToMeasure(AtlasError):
    """There was nothing that could be scored."""

    exit_code = 4
