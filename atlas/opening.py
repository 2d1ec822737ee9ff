"""A collection -> what is needed before a question can be asked: a current index, a chat model."""

from __future__ import annotations

from collections.abc import Callable

from atlas.collection import Collection
from atlas.errors import IndexDamagedError, SettingsError
from atlas.index import Index
from atlas.ingest import Progress, ingest, open_index, why_stale
from atlas.models import ChatModel, load_chat
from atlas.settings import Chat


def chat_model(chat: Chat | None) -> ChatModel:
    """The chat model that settings name. Raises SettingsError where they name none."""
    if chat is None:
        raise SettingsError(
            "no chat model is named; add `chat:` with `base_url` and `model` to atlas.yaml"
        )
    return load_chat(
        chat.base_url,
        chat.model,
        api_key_env=chat.api_key_env,
        deadline_seconds=chat.deadline_seconds,
        context_tokens=chat.context_tokens,
    )


def current_index(
    collection: Collection,
    progress: Progress | None = None,
    told: Callable[[str], None] = lambda note: None,
) -> Index:
    """The collection's index, built or brought up to date first where that is needed."""
    try:
        index = open_index(collection)
    except IndexDamagedError as error:
        told(f"{error} (done now)")
        index = None
    if index is None or why_stale(collection, index):
        if index is not None:
            index.close()
        report = ingest(collection, progress)
        for item in report.skipped:
            told(f"skipped {item.path}: {item.reason}")
        index = open_index(collection)
    if index is None:
        raise IndexDamagedError(f"{collection.state}: the index vanished; run `atlas ingest`")
    return index
