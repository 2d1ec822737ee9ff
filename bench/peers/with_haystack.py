"""Haystack: a pipeline of two in-memory retrievers, a joiner and a ranker.

The pipeline of its tutorial on hybrid retrieval, joined by reciprocal rank. (The tutorial's own
joiner only strings the two lists together, which is no order without a ranker behind it.) Keyword
search is its default, BM25L over words in lower case.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from driver import CANDIDATES, TOP, Ask, Block, run
from haystack import Document, Pipeline, component
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import (
    InMemoryBM25Retriever,
    InMemoryEmbeddingRetriever,
)
from haystack.components.writers import DocumentWriter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from models import Encoder, Reranker


@component
class OnnxDocumentEmbedder:
    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        vectors = self.encoder.documents([document.content or "" for document in documents])
        return {
            "documents": [
                Document(id=document.id, content=document.content, embedding=vector)
                for document, vector in zip(documents, vectors, strict=True)
            ]
        }


@component
class OnnxTextEmbedder:
    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        return {"embedding": self.encoder.question(text)}


@component
class OnnxRanker:
    def __init__(self, reranker: Reranker) -> None:
        self.reranker = reranker

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> dict[str, Any]:
        scores = self.reranker.score([(query, document.content or "") for document in documents])
        ranked = sorted(zip(scores, documents, strict=True), key=lambda row: -row[0])
        return {"documents": [document for _, document in ranked]}


def build(blocks: list[Block], folder: Path, encoder: Encoder) -> None:
    store = InMemoryDocumentStore()
    indexing = Pipeline()
    indexing.add_component("embedder", OnnxDocumentEmbedder(encoder))
    indexing.add_component("writer", DocumentWriter(store))
    indexing.connect("embedder.documents", "writer.documents")
    documents = [Document(id=block.id, content=block.text) for block in blocks]
    indexing.run({"embedder": {"documents": documents}})
    store.save_to_disk(str(folder / "store.json"))


def load(folder: Path, encoder: Encoder, reranker: Reranker | None) -> Ask:
    store = InMemoryDocumentStore.load_from_disk(str(folder / "store.json"))
    hybrid = Pipeline()
    hybrid.add_component("embedder", OnnxTextEmbedder(encoder))
    hybrid.add_component("vectors", InMemoryEmbeddingRetriever(store, top_k=CANDIDATES))
    hybrid.add_component("keywords", InMemoryBM25Retriever(store, top_k=CANDIDATES))
    hybrid.add_component("joiner", DocumentJoiner("reciprocal_rank_fusion", top_k=TOP))
    hybrid.connect("embedder.embedding", "vectors.query_embedding")
    hybrid.connect("vectors", "joiner")
    hybrid.connect("keywords", "joiner")
    if reranker:
        hybrid.add_component("ranker", OnnxRanker(reranker))
        hybrid.connect("joiner", "ranker")
    last = "ranker" if reranker else "joiner"

    def ask(question: str) -> list[str]:
        inputs: dict[str, Any] = {"embedder": {"text": question}, "keywords": {"query": question}}
        if reranker:
            inputs["ranker"] = {"query": question}
        return [document.id for document in hybrid.run(inputs)[last]["documents"]]

    return ask


if __name__ == "__main__":
    run(build, load)
