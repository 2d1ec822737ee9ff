"""LlamaIndex: QueryFusionRetriever over FAISS and BM25Retriever, a node postprocessor after it.

One query (none are made up by a language model), fused by reciprocal rank as its guide to hybrid
retrieval does. The vector index compares by inner product: with the L2 index of its examples the
store would hand distances to the fusion, which takes them for similarities. BM25Retriever stems and
drops stop words by default. Asynchronous calls are off: they made nothing faster here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faiss
from driver import CANDIDATES, TOP, Ask, Block, run
from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.retrievers.bm25 import BM25Retriever
from llama_index.vector_stores.faiss import FaissVectorStore
from models import Encoder, Reranker


class OnnxEmbedding(BaseEmbedding):
    encoder: Any

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.encoder.documents([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self.encoder.documents(texts)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.encoder.question(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class OnnxRerank(BaseNodePostprocessor):
    reranker: Any

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        question = query_bundle.query_str if query_bundle else ""
        scores = self.reranker.score([(question, node.get_content()) for node in nodes])
        for node, score in zip(nodes, scores, strict=True):
            node.score = score
        return sorted(nodes, key=lambda node: -node.score)


def build(blocks: list[Block], folder: Path, encoder: Encoder) -> None:
    nodes = [
        # The id in the metadata keeps blocks of the same text apart in the fusion.
        TextNode(
            id_=block.id,
            text=block.text,
            metadata={"id": block.id},
            excluded_embed_metadata_keys=["id"],
            excluded_llm_metadata_keys=["id"],
        )
        for block in blocks
    ]
    store = FaissVectorStore(faiss_index=faiss.IndexFlatIP(encoder.dimension))
    index = VectorStoreIndex(
        nodes,
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=OnnxEmbedding(encoder=encoder),
    )
    index.storage_context.persist(persist_dir=str(folder))
    BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=CANDIDATES).persist(
        str(folder / "keywords")
    )


def load(folder: Path, encoder: Encoder, reranker: Reranker | None) -> Ask:
    storage = StorageContext.from_defaults(
        vector_store=FaissVectorStore.from_persist_dir(str(folder)), persist_dir=str(folder)
    )
    index = load_index_from_storage(storage, embed_model=OnnxEmbedding(encoder=encoder))
    hybrid = QueryFusionRetriever(
        [
            index.as_retriever(similarity_top_k=CANDIDATES),
            BM25Retriever.from_persist_dir(str(folder / "keywords")),
        ],
        llm=MockLLM(),
        mode="reciprocal_rerank",
        num_queries=1,
        similarity_top_k=TOP,
        use_async=False,
    )
    rerank = reranker and OnnxRerank(reranker=reranker)

    def ask(question: str) -> list[str]:
        found = hybrid.retrieve(question)
        if rerank:
            found = rerank.postprocess_nodes(found, query_str=question)
        return [node.node_id for node in found]

    return ask


if __name__ == "__main__":
    run(build, load)
