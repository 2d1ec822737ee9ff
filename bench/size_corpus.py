"""Collections of any size, made of the words of real documents, and stand-ins for the models.

The texts are those of `../shared/data` (manuals of nine phones, abstracts of SciFact) where it is
there, and else the repository's own documents. Copies of them get other words here and there, codes
of their own, and a product of their own, so that the vocabulary grows as it does in life. All of it
follows from a seed.
"""

from __future__ import annotations

import json
import math
import random
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from surroundings import ROOT

DATA = ROOT.parent / "shared" / "data"
CHANGED = 0.12
"""Share of the longer words of a copy that are replaced."""
SECTIONS = 120
"""Sections of a document."""
SECTION_CHARACTERS = 700
"""Short sections are joined until they have so many."""
PRODUCTS = 60
DIMENSION = 384
ROWS = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and its text, of a source document with that title."""

    title: str
    heading: str
    text: str


def sources() -> tuple[str, list[Section]]:
    """Where the texts are from, in words, and the sections."""
    if (DATA / "galaxy-family").is_dir() and (DATA / "scifact").is_dir():
        manuals = sorted((DATA / "galaxy-family" / "documents").glob("*.md"))
        found = [section for path in manuals for section in _manual(path)]
        with (DATA / "scifact" / "beir" / "corpus.jsonl").open(encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        found += [Section(title="Abstracts", heading=r["title"], text=r["text"]) for r in rows]
        return "Galaxy family and SciFact", found
    own = sorted((ROOT / "documents").glob("*.md"))
    return "the repository's documents", [s for path in own for s in _manual(path)]


def _manual(path: Path) -> Iterator[Section]:
    """The sections of a Markdown file, short ones joined below the heading of the first."""
    body = re.sub(r"\A---\n.*?\n---\n", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    title, heading, text = path.stem, path.stem, ""
    for part in re.split(r"(?m)^#+ ", body):
        first, _, rest = part.partition("\n")
        heading = heading or first.strip()
        text += re.sub(r"(?m)^[|#].*$", "", rest).strip() + "\n\n"
        if len(text) >= SECTION_CHARACTERS:
            yield Section(title=title, heading=heading, text=text.strip())
            heading, text = "", ""


def make(root: Path, blocks: int, files: int | None = None) -> list[str]:
    """Write a collection that has about `blocks` blocks; returns questions about it.

    `files` spreads them over so many documents.
    """
    _, sections = sources()
    rng = random.Random(blocks)
    words = sorted({w for s in sections for w in re.findall(r"[a-z]{5,}", s.text)})
    folder = root / "documents"
    folder.mkdir(parents=True)
    (root / "atlas.yaml").write_text("title: Made for size\nreaders: [service]\n", "utf-8")
    size = SECTIONS if files is None else max(1, round(0.55 * blocks / files))
    questions: list[str] = []
    made = number = 0
    while made < blocks:
        start = number * size % len(sections)
        chosen = (sections[start:] + sections)[:size]
        product = f"Model {chr(65 + number % 26)}{number % PRODUCTS + 10}"
        head = f"---\nid: D{number}\ntitle: {chosen[0].title} {number}\n"
        if chosen[0].title != "Abstracts":
            head += f"products: [{product}]\n"
        head += "readers: [service]\n" if number % 10 == 9 else ""
        head += f"valid_from: {2020 + number % 6}-01-01\n" if number % 3 == 0 else ""
        parts = [f"{head}---\n# {chosen[0].title} {number}\n"]
        for place, section in enumerate(chosen):
            text = _other_words(section.text, words, rng)
            parts.append(f"## {section.heading}\n\n{text} Code {_code(rng)}-{number}.\n")
            made += math.ceil(len(text) / 950)
            if place % 40 == 7:
                named = f" of the {product}" if number % 2 else ""
                questions.append(f"{_asked(section.heading, text, rng)}{named}?")
        (folder / f"{number:06}.md").write_text("\n".join(parts), encoding="utf-8")
        number += 1
    return questions


def _other_words(text: str, words: Sequence[str], rng: random.Random) -> str:
    def other(match: re.Match[str]) -> str:
        return rng.choice(words) if rng.random() < CHANGED else match.group()

    return re.sub(r"\b[a-z]{5,}\b", other, text)


def _code(rng: random.Random) -> str:
    return f"{rng.choice('ABCDEFGHKLMNPRSTVWXZ')}{rng.randrange(100, 100_000)}"


def _asked(heading: str, text: str, rng: random.Random) -> str:
    """A question as people type: some words in a row, every tenth with a typing error."""
    found = re.findall(r"[A-Za-z]{3,}", text)
    first = rng.randrange(max(1, len(found) - 7))
    asked = found[first : first + 7]
    if rng.random() < 0.1 and len(max(asked, key=len)) > 5:
        longest = max(asked, key=len)
        asked[asked.index(longest)] = longest[:2] + longest[3:]
    return f"What about {heading}: {' '.join(asked)}"


class WordsEncoder:
    """A text is the sum of fixed random directions of its words, the frequent ones short: texts
    that share words are near, and copies of a text are a cluster."""

    name, fingerprint, dimension, max_tokens = "words", "words-1", DIMENSION, 512

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self._directions = rng.standard_normal((ROWS, DIMENSION), dtype=np.float32)

    def encode_documents(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        return np.array([self.encode_question(text) for text in texts], np.float32)

    def encode_question(self, text: str) -> NDArray[np.float32]:
        found = re.findall(r"\w+", text.casefold()) or [""]
        rows = [zlib.crc32(word.encode("utf-8", "surrogatepass")) % ROWS for word in found]
        weights = np.array([min(len(word), 8) ** 2 for word in found], np.float32)
        vector = weights @ self._directions[rows]
        unit: NDArray[np.float32] = vector / max(float(np.linalg.norm(vector)), 1e-9)
        return unit

    def count_tokens(self, text: str) -> int:
        return text.count(" ") + 3


class WordsReranker:
    """The share of a question's words that the text holds, as a logit."""

    name, fingerprint, max_tokens = "words", "words-1", 512

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.score_pairs([(question, text) for text in texts])

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return np.array([self._logit(*pair) for pair in pairs], np.float32)

    def pair_tokens(self, question: str, text: str) -> int:
        return question.count(" ") + text.count(" ") + 3

    def _logit(self, question: str, text: str) -> float:
        wanted = set(re.findall(r"\w+", question.casefold()))
        held = set(re.findall(r"\w+", text.casefold()))
        share = min(0.99, max(0.01, len(wanted & held) / len(wanted)))
        return math.log(share / (1 - share))
