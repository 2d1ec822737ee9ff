"""The documents of a collection, as an import looks things up in them: labels and texts."""

from __future__ import annotations

from collections.abc import Sequence

from atlas.measure.cases import Labels, comparable
from atlas.measure.imports.markdown import clean
from atlas.records import Block, Document

MIN_WORDS = 4
"""A shorter text stands in too many places to tell where it is from."""


class Sources:
    """Documents and the blocks of the index, held in memory."""

    def __init__(self, documents: Sequence[Document], blocks: Sequence[Block]) -> None:
        self._blocks = {block.ref: block for block in blocks}
        self._labels = Labels(documents, self._blocks)
        self._refs = list(self._blocks)
        self._known = {*self._refs, *(document.id for document in documents)}
        self._texts = [comparable(block.text) for block in self._blocks.values()]
        self._with: dict[str, list[int]] = {}
        """Numbers of the blocks that a word stands in."""
        for number, text in enumerate(self._texts):
            for word in set(text.split()):
                self._with.setdefault(word, []).append(number)

    def exists(self, label: str) -> bool:
        """Whether a label is a document, section, page or block of the collection."""
        return label in self._known or self._labels.exists(label)

    def document(self, ref: str) -> str:
        """The id of the document that a block is from."""
        return self._blocks[ref].document

    def covers(self, label: str, ref: str) -> bool:
        """Whether a block lies in what a label points at."""
        return self._labels.covers(label, self._blocks[ref])

    def holding(self, text: str) -> list[str]:
        """References of the blocks that hold a text, white space folded; none for a short one."""
        wanted = comparable(clean(text))
        words = wanted.split()
        if len(words) < MIN_WORDS:
            return []
        # the first and the last may be cut; of the others the rarest leaves least to compare
        numbers = min((self._with.get(word, []) for word in words[1:-1]), key=len)
        return [self._refs[number] for number in numbers if wanted in self._texts[number]]

    def quotable(self, quote: str, label: str) -> bool:
        """Whether a text is a verbatim quote of what a label points at, as case files need it."""
        return comparable(clean(quote)) in comparable(self._labels.text(label))
