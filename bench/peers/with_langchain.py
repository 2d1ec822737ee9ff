"""LangChain: EnsembleRetriever over FAISS and BM25Retriever, CrossEncoderReranker after it.

Weights are its default, half each, fused by reciprocal rank with its constant of 60. BM25Retriever
splits at white space unless it is given a function; its documentation recommends one, so words are
folded to lower case here. It has no way of its own to be saved: the common one is pickle.
"""

from __future__ import annotations

import pickle
import re
from pathlib import Path

from driver import CANDIDATES, TOP, Ask, Block, run
from langchain_classic.retrievers import EnsembleRetriever
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_classic.retrievers.document_compressors.cross_encoder import BaseCrossEncoder
from langchain_community.retrievers import BM25Retriever
from langchain_community.vectorstores import FAISS
from langchain_community.vectorstores.utils import DistanceStrategy
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from models import Encoder, Reranker


class OnnxEmbeddings(Embeddings):
    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.encoder.documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.encoder.question(text)


class OnnxCrossEncoder(BaseCrossEncoder):
    def __init__(self, reranker: Reranker) -> None:
        self.reranker = reranker

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return self.reranker.score(text_pairs)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def build(blocks: list[Block], folder: Path, encoder: Encoder) -> None:
    documents = [
        Document(page_content=block.text, metadata={"id": block.id}, id=block.id)
        for block in blocks
    ]
    store = FAISS.from_documents(
        documents, OnnxEmbeddings(encoder), distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT
    )
    store.save_local(str(folder))
    keywords = BM25Retriever.from_documents(documents, preprocess_func=words)
    with (folder / "keywords.pickle").open("wb") as file:
        pickle.dump(keywords, file)


def load(folder: Path, encoder: Encoder, reranker: Reranker | None) -> Ask:
    store = FAISS.load_local(
        str(folder),
        OnnxEmbeddings(encoder),
        allow_dangerous_deserialization=True,
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
    )
    with (folder / "keywords.pickle").open("rb") as file:
        keywords = pickle.load(file)
    keywords.k = CANDIDATES
    hybrid = EnsembleRetriever(
        retrievers=[keywords, store.as_retriever(search_kwargs={"k": CANDIDATES})],
        weights=[0.5, 0.5],
        id_key="id",
    )
    compressor = reranker and CrossEncoderReranker(model=OnnxCrossEncoder(reranker), top_n=TOP)

    def ask(question: str) -> list[str]:
        found = hybrid.invoke(question)[:TOP]
        if compressor:
            # What ContextualCompressionRetriever would call, with no more than TOP pairs.
            found = compressor.compress_documents(found, question)
        return [document.metadata["id"] for document in found]

    return ask


if __name__ == "__main__":
    run(build, load)
