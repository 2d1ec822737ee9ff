"""txtai: Embeddings(hybrid=True) with content, and its Reranker pipeline.

Defaults, but for one: half weight each, BM25 with normalised scores, ten times as many candidates
as results. Above 5,000 rows its FAISS index would be approximate, which costs SciFact a lot; like
everybody's it is exact here. Reranker asks for text, so content is stored. The encoder comes in as
an external vectorisation, the reranker as a similarity function.
"""

from __future__ import annotations

from pathlib import Path

from driver import TOP, Ask, Block, run
from models import QUESTION_PREFIX, Encoder, Reranker
from txtai import Embeddings
from txtai.pipeline import Reranker as RerankerPipeline


def config(encoder: Encoder) -> dict[str, object]:
    def transform(texts: list[str]) -> list[list[float]]:
        return encoder.documents(texts)

    return {
        "method": "external",
        "transform": transform,
        "instructions": {"query": QUESTION_PREFIX},
        "hybrid": True,
        "content": True,
        "faiss": {"components": "IDMap,Flat"},
    }


def build(blocks: list[Block], folder: Path, encoder: Encoder) -> None:
    embeddings = Embeddings(config(encoder))
    embeddings.index([(block.id, block.text, None) for block in blocks])
    del embeddings.config["transform"]  # a function cannot be saved
    embeddings.save(str(folder))


def load(folder: Path, encoder: Encoder, reranker: Reranker | None) -> Ask:
    embeddings = Embeddings()
    embeddings.load(str(folder), config=config(encoder))

    def similarity(query: str, texts: list[str]) -> list[tuple[int, float]]:
        assert reranker is not None
        scores = reranker.score([(query, text) for text in texts])
        return sorted(enumerate(scores), key=lambda row: -row[1])

    rerank = RerankerPipeline(embeddings, similarity) if reranker else None

    def ask(question: str) -> list[str]:
        found = rerank(question, TOP, 1) if rerank else embeddings.search(question, TOP)
        return [row["id"] for row in found]

    return ask


if __name__ == "__main__":
    run(build, load)
