"""The floor: FAISS, bm25s and the two models in one script, without any framework.

Fusion is the sum of cosine and of BM25 over its best, half each.
"""

from __future__ import annotations

import json
from pathlib import Path

import bm25s
import faiss
import numpy as np
import Stemmer
from driver import CANDIDATES, TOP, Ask, Block, run
from models import Encoder, Reranker

WEIGHT = 0.5


def build(blocks: list[Block], folder: Path, encoder: Encoder) -> None:
    texts = [block.text for block in blocks]
    vectors = faiss.IndexFlatIP(encoder.dimension)
    vectors.add(np.array(encoder.documents(texts), np.float32))
    faiss.write_index(vectors, str(folder / "vectors.faiss"))
    words = bm25s.tokenize(
        texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False
    )
    keywords = bm25s.BM25()
    keywords.index(words, show_progress=False)
    keywords.save(folder / "keywords")
    rows = [[block.id, block.text] for block in blocks]
    (folder / "blocks.json").write_text(json.dumps(rows), encoding="utf-8")


def load(folder: Path, encoder: Encoder, reranker: Reranker | None) -> Ask:
    vectors = faiss.read_index(str(folder / "vectors.faiss"))
    keywords = bm25s.BM25.load(folder / "keywords")
    rows = json.loads((folder / "blocks.json").read_text(encoding="utf-8"))
    stemmer = Stemmer.Stemmer("english")
    count = min(CANDIDATES, len(rows))

    def ask(question: str) -> list[str]:
        query = np.array([encoder.question(question)], np.float32)
        fused: dict[int, float] = {}
        cosines, numbers = vectors.search(query, count)
        for number, cosine in zip(numbers[0].tolist(), cosines[0].tolist(), strict=True):
            fused[number] = WEIGHT * cosine
        words = bm25s.tokenize(question, stopwords="en", stemmer=stemmer, show_progress=False)
        found, scores = keywords.retrieve(words, k=count, show_progress=False)
        best = max(float(scores[0][0]), 1e-9)
        for number, score in zip(found[0].tolist(), scores[0].tolist(), strict=True):
            fused[number] = fused.get(number, 0.0) + (1 - WEIGHT) * score / best
        first = sorted(fused, key=lambda number: -fused[number])[:TOP]
        if reranker:
            logits = reranker.score([(question, rows[number][1]) for number in first])
            first = [n for _, n in sorted(zip(logits, first, strict=True), key=lambda row: -row[0])]
        return [rows[number][0] for number in first]

    return ask


if __name__ == "__main__":
    run(build, load)
