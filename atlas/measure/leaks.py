"""Trace, documents -> what stands in the trace although it was out of scope.

The rule of scope is written here a second time, from the documents' metadata alone, so that a fault
of the first cannot hide itself. A look is one question asked as one reader group; it leaks when a
block or document that is out of scope was supplied, ranked, dropped with a score, cited or listed
as near.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from atlas.records import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """One document that a question should not have seen."""

    case: str
    reader: str | None
    ref: str
    where: str
    """`context`, `ranked`, `dropped`, `citations` or `nearest`."""
    why: str

    def text(self) -> str:
        reader = self.reader or "anyone"
        return f"{self.case} as {reader}: {self.ref} in {self.where}, {self.why}"


def leaks(case: str, trace: Mapping[str, Any], documents: Sequence[Document]) -> Iterator[Leak]:
    """Everything of a trace that its scope does not allow."""
    scope, known = trace["scope"], {document.id: document for document in documents}
    reasons: dict[str, str] = {}
    for where in ("context", "ranked", "dropped", "citations", "nearest"):
        for item in trace[where]:
            ref = item if isinstance(item, str) else item["ref"]
            owner = re.sub(r"-\d+-p\d+$", "", ref)
            if owner in known and owner not in reasons:
                document = known[owner]
                reasons[owner] = out_of_scope(document, documents, scope, trace["question"])
            if reasons.get(owner):
                yield Leak(
                    case=case, reader=scope["reader"], ref=ref, where=where, why=reasons[owner]
                )


def out_of_scope(
    document: Document, documents: Sequence[Document], scope: Mapping[str, Any], question: str
) -> str:
    """Why a document does not exist for a question, or "" where it does.

    A document that the question names by its id or revision may be one that is not in force.
    """
    metadata = document.metadata
    if metadata.readers and scope["reader"] not in metadata.readers:
        return f"for {', '.join(metadata.readers)} only"
    products = scope["products"]
    if products and metadata.products and not set(products) & set(metadata.products):
        return f"about {', '.join(metadata.products)}"
    if _named(document.id, question):
        return ""
    days = [date.fromisoformat(day) for day in scope["days"]]
    if not any(_in_force(document, day) for day in days):
        return "not in force"
    for other in documents:
        older = other.metadata.supersedes
        replaces = bool(older) and document.id.casefold() in (name.casefold() for name in older)
        if replaces and not out_of_scope(other, (), scope, question):
            return f"replaced by {other.id}"
    return ""


def _in_force(document: Document, day: date) -> bool:
    start, end = document.metadata.valid_from, document.metadata.valid_to
    return (start is None or start <= day) and (end is None or day <= end)


def _named(name: str, question: str) -> bool:
    folded, own = question.casefold(), name.casefold()
    if "-" in own and re.search(rf"(?<![\w.-]){re.escape(own)}(?![\w.-]*\w)", folded):
        return True
    revision = re.search(r"-r(\d+)$", own)
    if revision is None:
        return False
    number = revision[1]
    return bool(re.search(rf"\brev(?:ision|\.)?\s*{number}\b|(?<![\w-])r{number}(?![\w-])", folded))
