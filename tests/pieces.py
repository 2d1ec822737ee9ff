"""Blocks, hits and candidates for tests of the answering side, written as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
from fakes import FakeEncoder, FakeReranker

from atlas.answer.answerer import Material
from atlas.answer.clarification import Products
from atlas.answer.decision import FEATURES, Evidence
from atlas.answer.extractive import Candidate
from atlas.answer.quotes import Quote, quotes_of
from atlas.blocks import split
from atlas.markdown import read_markdown
from atlas.records import Block, Document, Hit, Metadata
from atlas.words import terms

WEIGHTS = {
    "bias": -5.0,
    "threshold": 0.5,
    "weights": {
        **dict.fromkeys(FEATURES, 0.0),
        "quote_logit": 4.0,
        "quote_cosine": 6.0,
        "covered_quote": 3.0,
        "unknown_share": -4.0,
        "value_missing": -2.0,
    },
}
"""A decision that suits the stand-in models, and stays when the shipped one is fitted anew."""


def use_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let atlas decide by WEIGHTS in this process."""
    monkeypatch.setattr("atlas.answer.decision.weights", lambda: WEIGHTS)


def blocks(
    markdown: str, name: str = "DOC", products: tuple[str, ...] = (), size: int = 1000
) -> list[Block]:
    """The blocks of a Markdown document."""
    reading = read_markdown(markdown)
    document = Document(
        metadata=Metadata(
            id=name, title=reading.title or "Title", path=f"{name}.md", products=products
        ),
        text=reading.text,
        sections=reading.sections,
        page_labels=(),
        warnings=(),
        content_hash="",
    )
    return list(split(document, size, 0))


def block(markdown: str, name: str = "DOC", products: tuple[str, ...] = ()) -> Block:
    """The only block of a Markdown document."""
    [only] = blocks(markdown, name, products)
    return only


def hit(block: Block, logit: float | None = 1.0, order: float | None = 0.5) -> Hit:
    return Hit(
        block=block,
        keyword_score=1.0,
        vector_score=0.5,
        fused_score=0.5,
        rerank_score=0.5,
        rerank_logit=logit,
        order_score=order,
    )


def quote(block: Block, words: str) -> Quote:
    """The one quote of a block that holds some words."""
    [found] = [item for item in quotes_of(block) if words in item.text]
    return found


def candidate(block: Block, words: str, *, marker: int = 1, logit: float = 1.0) -> Candidate:
    return Candidate(quote=quote(block, words), hit=hit(block), marker=marker, logit=logit)


def scored(
    logits: Mapping[str, float], otherwise: float = -5.0
) -> Callable[[Sequence[tuple[str, str]]], list[float]]:
    """A reranker that gives a logit to texts that hold some words."""

    def score(pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [
            next((value for words, value in logits.items() if words in text), otherwise)
            for _, text in pairs
        ]

    return score


def material(
    supplied: Sequence[Block],
    names: Sequence[str] = (),
    named: tuple[str, ...] = (),
    score: Callable[[Sequence[tuple[str, str]]], Sequence[float]] | None = None,
    cosine: float | None = None,
) -> Material:
    """What the answerer may use; the supplied blocks are all that is in scope."""
    encoder, reranker = FakeEncoder(), FakeReranker()
    held = [set(terms(block.searched)) for block in supplied]

    def known(term: str) -> bool:
        return any(term in words for words in held)

    return Material(
        evidence=Evidence(
            encoder="fake-encoder",
            score=score
            or (lambda pairs: [float(value) for value in reranker.score_pairs(list(pairs))]),
            cosine=lambda question, text: (
                float(encoder.encode_question(question) @ encoder.encode_question(text))
                if cosine is None
                else cosine
            ),
            rarity=lambda term: 1.0 / (1 + sum(term in words for words in held)),
            known=known,
        ),
        products=Products(names),
        named=named,
        product_terms=frozenset(term for name in named for term in terms(name)),
    )
