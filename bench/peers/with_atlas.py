"""atlas itself, as the library: `ingest`, and of `Assistant.ask` what comes before the answer.

Timed is everything from the question to the ranked blocks: scope and reading of the question (with
its repair of typing errors), encoding, search, and reranking as shipped. Settings are the shipped
ones but for whole sections as blocks, which everybody gets; without reranking `reranker` is `none`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from driver import TOP, Ask, perform

from atlas import Assistant, Scope
from atlas.collection import Collection
from atlas.ingest import ingest
from atlas.trace import Clock


def build(task: dict[str, Any]) -> int:
    return ingest(Collection.open(task["collection"])).blocks


def load(task: dict[str, Any]) -> Ask:
    collection = Collection.open(task["collection"])
    settings = collection.settings
    if not task["rerank"]:
        settings = replace(settings, reranker="none")
    assistant = Assistant.of(replace(collection, settings=settings))
    scope = Scope()

    def ask(question: str) -> list[str]:
        # The first half of Assistant.ask; the other half writes and checks the answer.
        hits = assistant._hits(assistant.understand(question, scope), Clock())
        return [hit.block.ref for hit in hits[:TOP]]

    return ask


if __name__ == "__main__":
    perform(build, load)
