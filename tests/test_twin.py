"""Out of scope means absent: with and without the hidden documents everything is the same.

The whole collection of Atlas Bikes is asked by every reader group, before and after the change of
its policies, with each product fixed; then a copy of it from which all documents out of that scope
were removed. What comes back must be the same to the byte, but for ids, times and fingerprints.
Which documents are out of scope is worked out here from their metadata, not by atlas.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from small import collection, opened, use_fakes

from atlas.assistant import Assistant
from atlas.collection import Collection
from atlas.errors import AtlasError
from atlas.models import Encoder, Reranker, load_both
from atlas.opening import current_index
from atlas.records import Metadata, Scope, Trace
from atlas.trace import line

ROOT = Path(__file__).resolve().parent.parent
CHANGING = ("id", "time", "timings_seconds", "fingerprints")
BEFORE, AFTER = date(2025, 11, 3), date(2026, 3, 2)
PRODUCTS = ("C-3", "T-7", "K-1")
READERS = (None, "sales", "workshop")
SCOPES = [
    *(Scope(reader=reader, date=day) for reader in READERS for day in (BEFORE, AFTER)),
    *(Scope(date=AFTER, products=(product,)) for product in PRODUCTS),
    Scope(reader="sales", date=BEFORE, products=("C-3",)),
    Scope(reader="workshop", date=AFTER, products=("T-7", "K-1")),
]
NAMED = "PRICES-2026"
QUESTIONS = (
    "What does error E-417 mean?",  # two bikes agree
    "How long is the battery under warranty?",  # ambiguous; its answer changed in 2026
    "what does a spare battery cost",  # in the price list for sales only
    "what is new in the bulletin for workshops",  # likewise
    f"does {NAMED} say what a charger costs?",  # names a hidden document
    "what is the warranty on the engine oil",  # nobody says
    "how many days do i have to give a bike back",  # its terms were replaced
    "waranty of the batery casing",  # mended by the words in scope
)
ERRORS = ("", "?!", "x" * 3000)


# ---- the oracle -----------------------------------------------------------------------------


def hidden_from(documents: Sequence[Metadata], scope: Scope) -> set[str]:
    """The ids of the documents that do not exist in a scope."""
    assert scope.date

    def visible(item: Metadata) -> bool:
        return (
            (not item.readers or scope.reader in item.readers)
            and (item.valid_from is None or item.valid_from <= scope.date)
            and (item.valid_to is None or scope.date <= item.valid_to)
            and (
                not scope.products
                or not item.products
                or bool(set(item.products) & set(scope.products))
            )
        )

    seen = {item.id: item for item in documents if visible(item)}
    replaced = {older for item in seen.values() for older in item.supersedes}
    return {item.id for item in documents} - (set(seen) - replaced)


def twin_of(root: Path, documents: Sequence[Metadata], hidden: set[str], place: Path) -> Path:
    """A copy of a collection without the hidden documents, its index to be brought up to date."""
    place.mkdir()
    if (root / "atlas.yaml").exists():
        shutil.copy2(root / "atlas.yaml", place)
    shutil.copytree(root / "documents", place / "documents")
    for item in documents:
        path = place / item.path
        beside = path.with_name(f"{path.name}.yaml")
        if item.id in hidden:
            path.unlink()
            beside.unlink(missing_ok=True)
        elif set(item.supersedes) & hidden:
            forget(beside if beside.exists() else path, set(item.supersedes) - hidden)
    return place


def forget(path: Path, left: set[str]) -> None:
    """Leave only some ids under `supersedes` in a document's metadata."""
    text = path.read_text(encoding="utf-8")
    head = text if path.suffix == ".yaml" else text.split("---\n")[1]
    values = yaml.safe_load(head)
    values.pop("supersedes")
    if left:
        values["supersedes"] = sorted(left)
    path.write_text(text.replace(head, yaml.safe_dump(values, allow_unicode=True)), "utf-8")


def outcome(assistant: Assistant, question: str, scope: Scope) -> str:
    """All that a question brings, as one text: the trace's line, or the error."""
    try:
        values = assistant.ask(question, scope).values
    except AtlasError as error:
        return f"{type(error).__name__}: {error}"
    return line(Trace(values={k: v for k, v in values.items() if k not in CHANGING}))


# ---- real models ----------------------------------------------------------------------------


class RememberingEncoder:
    """The real encoder; a text is encoded once for all copies of the collection."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.name, self.fingerprint = encoder.name, encoder.fingerprint
        self.dimension, self.max_tokens = encoder.dimension, encoder.max_tokens
        self.count_tokens = encoder.count_tokens
        self.known: dict[tuple[bool, str], NDArray[np.float32]] = {}

    def encode_documents(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        for text in texts:
            if (False, text) not in self.known:
                self.known[False, text] = self.encoder.encode_documents([text])[0]
        if progress is not None:
            progress(len(texts))
        return np.array([self.known[False, text] for text in texts], np.float32)

    def encode_question(self, text: str) -> NDArray[np.float32]:
        if (True, text) not in self.known:
            self.known[True, text] = self.encoder.encode_question(text)
        return self.known[True, text]


class RememberingReranker:
    """The real reranker; a pair is scored once, since its score depends on nothing else."""

    def __init__(self, reranker: Reranker) -> None:
        self.reranker = reranker
        self.name, self.fingerprint = reranker.name, reranker.fingerprint
        self.max_tokens, self.pair_tokens = reranker.max_tokens, reranker.pair_tokens
        self.known: dict[tuple[str, str], float] = {}

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.score_pairs([(question, text) for text in texts])

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self.known]
        for pair, logit in zip(new, self.reranker.score_pairs(new) if new else (), strict=True):
            self.known[pair] = float(logit)
        return np.array([self.known[pair] for pair in pairs], np.float32)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assistant]:
    """The collection in a copy of its own, with an index and models that copies share."""
    root = tmp_path_factory.mktemp("twin") / "whole"
    twin_of(ROOT, (), set(), root)
    settings = Collection.open(root).settings
    encoder, reranker = load_both(settings.encoder, settings.reranker, root / ".atlas")
    models = (RememberingEncoder(encoder), RememberingReranker(reranker))
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("atlas.ingest.load_encoder", lambda *_: models[0])
        monkeypatch.setattr("atlas.assistant.load_both", lambda *_: models)
        yield opened(root)


@pytest.mark.models
@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_what_is_out_of_scope_makes_no_difference(
    whole: Assistant, scope: Scope, tmp_path: Path
) -> None:
    documents = [document.metadata for document in whole.index.documents()]
    hidden = hidden_from(documents, scope)
    assert hidden
    assert len(hidden) < len(documents)
    root = whole.collection.root
    place = twin_of(root, documents, hidden, tmp_path / "twin")
    shutil.copytree(whole.collection.state, place / ".atlas")
    twin = opened(place)
    assert set(twin.index.ids) == {item.id for item in documents} - hidden
    for question in (*QUESTIONS, *ERRORS):
        if NAMED in question and scope.reader == "sales":
            continue  # naming a document opens it on any day to those who may read it
        found = outcome(whole, question, scope)
        assert found == outcome(twin, question, scope), question
        shown = found.replace(NAMED, "") if NAMED in question else found
        assert not [name for name in hidden if re.search(rf"(?<![\w-]){name}(?!\w)", shown)]


@pytest.mark.models
def test_a_year_in_the_question_makes_its_other_policies_absent(
    whole: Assistant, tmp_path: Path
) -> None:
    documents = [document.metadata for document in whole.index.documents()]
    hidden = hidden_from(documents, Scope(date=date(2025, 12, 31), products=("C-3",)))
    place = twin_of(whole.collection.root, documents, hidden, tmp_path / "twin")
    shutil.copytree(whole.collection.state, place / ".atlas")
    twin = opened(place)
    question = "how long was the battery of a C-3 under warranty in 2025?"
    found = outcome(whole, question, Scope(date=AFTER))
    assert found == outcome(twin, question, Scope(date=AFTER))
    assert "WARR-R1" in found
    assert "WARR-R2" not in found


@pytest.mark.models
def test_the_questions_bring_every_kind_of_result(whole: Assistant) -> None:
    found = {whole.ask(question, Scope(date=AFTER)).status for question in QUESTIONS}
    assert found == {"answered", "abstained", "needs_clarification"}


# ---- random collections, stand-in models -----------------------------------------------------


def random_document(chance: random.Random, number: int) -> str:
    words = "battery charger casing bolt torque warranty price years dealer frame".split()
    lines = [f"id: DOC-R{number}"]
    if chance.random() < 0.5:
        lines.append(f"products: [Rover {chance.randint(1, 3)}]")
    if chance.random() < 0.4:
        lines.append(f"readers: [{chance.choice(('sales', 'workshop'))}]")
    if chance.random() < 0.4:
        lines.append(f"valid_from: {chance.choice(('2025-01-01', '2026-01-01', '2027-01-01'))}")
    elif chance.random() < 0.5:
        lines.append("valid_to: 2025-12-31")
    elif number and chance.random() < 0.5:
        lines.append(f"supersedes: DOC-R{chance.randrange(number)}")
    body = " ".join(
        f"The {chance.choice(words)} has {chance.randint(1, 9)} years." for _ in range(3)
    )
    return "---\n" + "\n".join(lines) + f"\n---\n# Title {number}\n\n## Part\n\n{body}\n"


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "undeclared"])
@pytest.mark.parametrize("seed", range(6))
def test_no_hidden_document_shows_in_a_random_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, declared: bool
) -> None:
    use_fakes(monkeypatch)
    chance = random.Random(seed)
    files = {f"{number}.md": random_document(chance, number) for number in range(10)}
    settings = "products: [Rover 1, Rover 2, Rover 3]\n" if declared else ""
    settings += "readers: [sales, workshop]\n"
    root = collection(tmp_path / "whole", files, settings=settings, cases=None)
    whole = opened(root)
    documents = [document.metadata for document in whole.index.documents()]
    for number, (reader, day) in enumerate((r, d) for r in READERS for d in (BEFORE, AFTER)):
        scope = Scope(reader=reader, date=day)
        place = tmp_path / f"twin-{number}"
        hidden = hidden_from(documents, scope)
        if len(hidden) == len(documents):
            continue
        twin = opened(twin_of(root, documents, hidden, place))
        asked: list[tuple[str, Any]] = [
            ("how many years has the battery", ()),
            ("batery waranty", ()),
            ("charger torque price", ()),
            ("what does the rover 4 cost", ()),
            ("how many years has the frame", ("Rover 9",)),
        ]
        for question, products in asked:
            narrowed = Scope(reader=reader, date=day, products=products)
            assert outcome(whole, question, narrowed) == outcome(twin, question, narrowed)


def test_the_twin_is_brought_up_to_date_and_not_the_old_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch)
    chance = random.Random(1)
    files = {f"{number}.md": random_document(chance, number) for number in range(4)}
    whole = opened(collection(tmp_path / "whole", files, settings="", cases=None))
    documents = [document.metadata for document in whole.index.documents()]
    place = twin_of(whole.collection.root, documents, {"DOC-R0"}, tmp_path / "twin")
    shutil.copytree(whole.collection.state, place / ".atlas")
    assert current_index(Collection.open(place)).ids == ["DOC-R1", "DOC-R2", "DOC-R3"]
