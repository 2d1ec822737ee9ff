"""The composer of the asking side: collection, index, models and stages -> traces.

    with Assistant.open("path/to/collection") as assistant:
        trace = assistant.ask("how long is the battery of a C-3 under warranty", Scope())

Stages know nothing of each other; this is the one place where they meet. The measuring side has
three doors: `ask`, `answer_from` (an answer from given blocks) and `reselect` (a trace as it would
be under other settings of what follows reranking). Many threads may use one assistant: everything
but the waiting for a chat model is done by one at a time.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any

from atlas import trace as traces
from atlas.answer import chat as chat_answers
from atlas.answer.answerer import Material, draft
from atlas.answer.clarification import Products
from atlas.answer.counting import counted_blocks
from atlas.answer.decision import Evidence
from atlas.citations import uncited, validate
from atlas.collection import Collection
from atlas.errors import IndexDamagedError
from atlas.index import Index
from atlas.ingest import Progress
from atlas.keyword import ScopedBM25
from atlas.models import ChatModel, Encoder, Reranker, load_both, load_encoder
from atlas.opening import chat_model, current_index
from atlas.reading import Understood, read
from atlas.records import Answer, Block, Draft, Hit, Scope, Selection, Trace
from atlas.rerank import pairs_read, rerank, within_reach
from atlas.scope import ScopeView
from atlas.scoring import Scoring
from atlas.search import search
from atlas.select import missing_products, prompt_order, select
from atlas.settings import Chat, Settings
from atlas.stores import open_store
from atlas.words import content_terms, terms

RANKED = 10
"""Least length of the ranked list that a trace keeps for measuring."""
CANDIDATES = 100
"""Length of the fused ranking, from which products missing among the first are taken."""
SCOPES_KEPT = 64
READINGS_KEPT = 8
NEAR = 0.5
"""Share of the best score from which another product's block is supplied for comparison."""
TRACED_SETTINGS = ("k", "depth", "rerank_reach", "min_score", "vector_weight", "rerank_weight")
SCORES = ("keyword_score", "vector_score", "fused_score", "rerank_score")


class Assistant:
    """Answers questions about one collection. Open it once and ask often."""

    def __init__(
        self,
        collection: Collection,
        index: Index,
        encoder: Encoder,
        reranker: Reranker | None,
        chat: ChatModel | None = None,
    ) -> None:
        made_by = index.manifest["encoder"]["fingerprint"]
        if made_by != encoder.fingerprint:
            raise IndexDamagedError(
                f"{index.folder}: made by encoder {index.manifest['encoder']['name']} {made_by}, "
                f"this one is {encoder.name} {encoder.fingerprint}; run `atlas ingest`"
            )
        self.collection = collection
        self.settings = collection.settings
        self.index = index
        self.store = open_store(collection.settings.store, index)
        self.scoring = Scoring(encoder, reranker)
        self.chat = chat
        self.repeat = 0
        """Number of the repetition, for measuring the spread of a chat model."""
        self._lock = threading.RLock()
        self._statistics: OrderedDict[tuple[object, ...], ScopedBM25] = OrderedDict()
        self._read: OrderedDict[tuple[object, ...], Understood] = OrderedDict()
        self._fingerprint: tuple[Settings, str] | None = None

    @classmethod
    def open(
        cls,
        folder: Path | str = ".",
        *,
        sample: bool = False,
        settings: Settings | None = None,
        progress: Progress | None = None,
    ) -> Assistant:
        """Open a collection; its index is built or brought up to date where that is needed.

        `settings` replaces those of atlas.yaml. Raises AtlasError: no such collection, a model
        that is missing, an index that cannot be written.
        """
        collection = Collection.open(folder, sample=sample)
        if settings is not None:
            collection = replace(collection, settings=settings)
        return cls.of(collection, progress=progress)

    @classmethod
    def of(
        cls,
        collection: Collection,
        *,
        progress: Progress | None = None,
        told: Callable[[str], None] = lambda note: None,
    ) -> Assistant:
        """Open a collection that is at hand already; see `open`.

        `told` gets a line for every document that an ingest leaves out.
        """
        settings = collection.settings
        chat = chat_model(settings.chat) if settings.answerer == "chat" else None
        index = current_index(collection, progress, told)
        if settings.reranker == "none":
            encoder = load_encoder(settings.encoder, collection.state)
            return cls(collection, index, encoder, None, chat)
        both = load_both(settings.encoder, settings.reranker, collection.state)
        return cls(collection, index, *both, chat)

    @property
    def encoder(self) -> Encoder:
        """The model that the index was made by."""
        return self.scoring.encoder

    @encoder.setter
    def encoder(self, encoder: Encoder) -> None:
        self.scoring.encoder = encoder

    @property
    def reranker(self) -> Reranker | None:
        """None where results are ordered by search alone."""
        return self.scoring.reranker

    @reranker.setter
    def reranker(self, reranker: Reranker | None) -> None:
        self.scoring.reranker = reranker

    def __enter__(self) -> Assistant:
        return self

    def __exit__(self, *_: object) -> None:
        self._statistics.clear()
        self.store.close()

    # ---- the three doors --------------------------------------------------------------------

    def ask(self, question: str, scope: Scope | None = None) -> Trace:
        """Answer one question. Raises UsageError for a question or scope that makes no sense."""
        clock = traces.Clock()
        with self._lock:
            with clock.time("scope"):
                asked = self.understand(question, scope)
            hits = [] if asked.unknown else self._hits(asked, clock)
            with clock.time("select"):
                scored = [hit for hit in hits if hit.order_score is not None]
                selection = self._select(scored, asked.seen, self.settings)
                supplied = self._supplied(hits, selection, asked)
        return self._answered(asked, hits, selection, supplied, clock)

    def answer_from(
        self, question: str, blocks: Sequence[Block], scope: Scope | None = None
    ) -> Trace:
        """The trace of an answer from given blocks, in that order, without search or selection.

        Without blocks the extractive answerer declines, and a chat model answers from its memory:
        such an answer has no citations and is for measuring only.
        """
        clock = traces.Clock()
        with self._lock:
            with clock.time("scope"):
                asked = self.understand(question, scope)
            hits = [
                Hit(block=block, keyword_score=0.0, vector_score=0.0, fused_score=0.0)
                for block in blocks
            ]
            with clock.time("rerank"):
                ranked = rerank(asked.text, hits, self.scoring.pair_score, 1.0)
            selection = Selection(kept=tuple(ranked), dropped=(), tokens=self._tokens(ranked))
        if blocks or self.chat is None:
            return self._answered(asked, ranked, selection, ranked, clock)
        with clock.time("answer"):
            proposed = self._written(asked, (), self.chat)
        answer = uncited(proposed)
        with self._lock:
            return self._trace(asked, ranked, selection, ranked, proposed, answer, clock)

    def _answered(
        self,
        asked: Understood,
        hits: Sequence[Hit],
        selection: Selection,
        supplied: Sequence[Hit],
        clock: traces.Clock,
    ) -> Trace:
        """Answer from the supplied hits, check the answer, and put the trace together."""
        with clock.time("answer"):
            proposed = self._draft(asked, supplied)
        with self._lock:
            with clock.time("citations"):
                answer = validate(proposed, [hit.block for hit in supplied])
            return self._trace(asked, hits, selection, supplied, proposed, answer, clock)

    def reselect(self, trace: Mapping[str, Any], settings: Settings) -> Selection:
        """What would have been supplied under other settings of what follows reranking.

        `trace` holds the values of a trace of this index. No model runs: the scores are those of
        the trace. `kept` is everything supplied, also what was added after selection.
        """
        scope = trace["scope"]
        day = date.fromisoformat(scope["date"])
        again = Scope(reader=scope["reader"], date=day, products=tuple(scope["products"]))
        asked = self.understand(trace["question"], again)
        rows = {row["ref"]: row for row in (*trace["context"], *trace["dropped"])}
        hits = [
            Hit(
                block=self.index.block(number),
                **{name: rows[ref][name] for name in SCORES},
            )
            for ref in trace["ranked"]
            if ref in rows and (number := self.index.number_of(ref)) is not None
        ]
        selection = self._select(hits, asked.seen, settings)
        supplied = tuple(self._supplied(hits, selection, asked))
        return replace(selection, kept=supplied, tokens=self._tokens(supplied))

    def under(self, settings: Settings, repeat: int = 0) -> Assistant:
        """The same assistant with other settings of what follows the index; for measuring.

        Raises ValueError for settings that another index would be needed for.
        """
        if settings.index_key() != self.settings.index_key():
            raise ValueError("these settings need another index")
        if settings == self.settings and repeat == self.repeat:
            return self
        other = copy.copy(self)
        other.settings, other.repeat = settings, repeat
        other._read, other._fingerprint = OrderedDict(), None
        return other

    def forget_pairs(self) -> None:
        """Let the next question cost what it costs after opening; for measuring."""
        with self._lock:
            self.scoring.forget_pairs()

    def _tokens(self, supplied: Sequence[Hit]) -> int:
        return sum(self.scoring.count_tokens(hit.block.text) for hit in supplied)

    # ---- stages -----------------------------------------------------------------------------

    def understand(self, question: str, scope: Scope | None = None) -> Understood:
        """Apply the scope and read the question: products, codes and typing errors.

        The last few readings are kept: measuring asks the same again as other readers.
        """
        scope = scope or Scope()
        key = (question, scope, date.today(), id(self.settings))
        with self._lock:
            if key not in self._read:
                self._read[key] = read(
                    question,
                    scope,
                    self.settings,
                    self.index,
                    self._statistics_of,
                    self.scoring.is_word,
                )
                while len(self._read) > READINGS_KEPT:
                    self._read.popitem(last=False)
            return self._read[key]

    def _hits(self, asked: Understood, clock: traces.Clock) -> list[Hit]:
        """Search and rerank."""
        if not asked.statistics.corpus_size:
            return []
        with clock.time("encode"):
            vector = self.scoring.vector(asked.text)
        with clock.time("search"):
            wanted = content_terms(asked.text) or terms(asked.text)
            found = search(
                wanted, vector, self.index, self.store, asked.statistics, self.settings, CANDIDATES
            )
        with clock.time("rerank"):
            return self._reranked(asked.text, found, asked.seen)

    def _statistics_of(self, seen: ScopeView) -> ScopedBM25:
        """The keyword statistics of a scope, computed once and kept."""
        statistics = self._statistics.get(seen.key)
        if statistics is None:
            statistics = ScopedBM25(self.index.postings, seen.blocks)
            self._statistics[seen.key] = statistics
            while len(self._statistics) > SCOPES_KEPT:
                self._statistics.popitem(last=False)
        else:
            self._statistics.move_to_end(seen.key)
        return statistics

    def _reranked(self, question: str, found: Sequence[Hit], seen: ScopeView) -> list[Hit]:
        """The hits within reach reranked, and the best of each product if none is named."""
        chosen = list(found[: self.settings.depth])
        score = self.scoring.pair_score
        if score is not None:
            chosen = within_reach(question, chosen, score, self.settings.rerank_reach)
        if not seen.products:
            chosen += missing_products(found, chosen)
        seen_refs = {hit.block.ref for hit in chosen}
        rest = [hit for hit in found if hit.block.ref not in seen_refs]
        ranked = rerank(question, chosen, score, self.settings.rerank_weight)
        return ranked + rest[: max(0, RANKED - len(ranked))]

    def _select(self, scored: Sequence[Hit], seen: ScopeView, settings: Settings) -> Selection:
        documents = self.index.block_document[seen.blocks]  # ascending
        one = len(documents) > 0 and documents[0] == documents[-1]
        return select(scored, settings, bool(one), self.scoring.count_tokens)

    def _supplied(self, hits: Sequence[Hit], selection: Selection, asked: Understood) -> list[Hit]:
        """The kept hits; for a question without a product, the best hit of every other product
        that comes near; for a count the rest of the tables."""
        supplied = list(selection.kept)
        if not supplied:
            return supplied
        if not asked.seen.products:
            bar = NEAR * (supplied[0].rerank_score or 0.0)
            near = [hit for hit in hits if (hit.rerank_score or 0.0) >= bar]
            supplied += missing_products(near, supplied)
        if asked.question.asked != "count":
            return supplied
        present = {hit.block.ref for hit in supplied}
        for hit in selection.kept:
            for other in counted_blocks(hit.block, self._document_blocks(hit.block, asked.seen)):
                if other.ref not in present:
                    present.add(other.ref)
                    supplied.append(
                        Hit(block=other, keyword_score=0.0, vector_score=0.0, fused_score=0.0)
                    )
        return supplied

    def _document_blocks(self, block: Block, seen: ScopeView) -> list[Block]:
        number = self.index.numbers[block.document.casefold()]
        return [self.index.block(n) for n in self.index.blocks_of(number) if seen.blocks[n]]

    def _draft(self, asked: Understood, supplied: Sequence[Hit]) -> Draft:
        if asked.unknown:
            reason = f"the documents know no “{asked.unknown}”"
            if asked.seen.known_products:
                reason += f"; they know {', '.join(asked.seen.known_products)}"
            return Draft(status="abstained", reason=reason)
        if not asked.question.terms and not asked.seen.products:
            return Draft(status="abstained", reason="the question names nothing to look for")
        if self.chat is not None:
            if not supplied:
                return Draft(status="abstained", reason=chat_answers.NOT_SAID)
            return self._written(asked, supplied, self.chat)
        with self._lock:
            return draft(asked.question, supplied, self.material(asked))

    def _written(self, asked: Understood, supplied: Sequence[Hit], chat: ChatModel) -> Draft:
        """What a chat model makes of the supplied hits; waits for it without holding the lock."""
        seen, settings = asked.seen, self.settings
        about = (
            ("index", self.index.folder.name),
            ("scope", f"{seen.reader or 'anyone'}, {seen.day}, {', '.join(seen.products)}"),
        )
        ordered = [hit.block for hit in prompt_order(supplied)]
        tokens = (settings.chat or Chat(base_url="", model="")).answer_tokens
        request = chat_answers.request(asked.words, ordered, tokens, about, self.repeat)
        blocks = [hit.block for hit in supplied]
        return chat_answers.draft(asked.words, blocks, ordered, chat, request)

    def material(self, asked: Understood) -> Material:
        """What the answerer may use for a question besides the supplied blocks."""
        return Material(
            evidence=Evidence(
                encoder=self.encoder.name,
                score=self.scoring.score,
                cosine=self.scoring.cosine,
                rarity=asked.statistics.rarity,
                known=lambda term: asked.statistics.frequency(term) > 0,
            ),
            products=Products(asked.seen.known_products),
            named=asked.seen.products,
            product_terms=frozenset(t for name in asked.seen.products for t in terms(name)),
            held=asked.seen.days if asked.seen.days != (asked.seen.day,) else (),
        )

    # ---- the trace --------------------------------------------------------------------------

    def _trace(
        self,
        asked: Understood,
        hits: Sequence[Hit],
        selection: Selection,
        supplied: Sequence[Hit],
        proposed: Draft,
        answer: Answer,
        clock: traces.Clock,
    ) -> Trace:
        seen, settings = asked.seen, self.settings
        refs = {hit.block.ref for hit in supplied}
        tokens = {
            "question": self.encoder.count_tokens(asked.words),
            "supplied": self._tokens(supplied),
        }
        if proposed.chat is not None:
            tokens["prompt"] = proposed.chat.prompt_tokens
            tokens["completion"] = proposed.chat.completion_tokens
        return traces.make_trace(
            question=asked.words,
            scope={
                "reader": seen.reader,
                "date": seen.day.isoformat(),
                "products": list(seen.products),
                "days": [day.isoformat() for day in seen.days],
            },
            answer=answer,
            kept=supplied,
            dropped=[item for item in selection.dropped if item.hit.block.ref not in refs],
            ranked=hits,
            nearest=traces.nearest_documents(hits) if answer.status == "abstained" else [],
            read_as=asked.text,
            mended=asked.replaced,
            decision={name: round(value, 6) for name, value in proposed.evidence},
            proposed=[
                {"text": claim.text, "markers": list(claim.markers), "kept": place in answer.kept}
                for place, claim in enumerate(proposed.claims)
            ],
            drafted=proposed.status,
            cause=proposed.cause or None,
            chat=asdict(proposed.chat) if proposed.chat is not None else None,
            tokens=tokens,
            pairs=pairs_read(hits),
            settings={name: getattr(settings, name) for name in TRACED_SETTINGS},
            fingerprints=self.fingerprints(),
            time=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            timings_seconds=clock.seconds(),
        )

    def _settings_fingerprint(self) -> str:
        """Computed once per state of the settings: every trace holds it."""
        if self._fingerprint is None or self._fingerprint[0] is not self.settings:
            self._fingerprint = (self.settings, self.settings.fingerprint())
        return self._fingerprint[1]

    def fingerprints(self) -> dict[str, str | None]:
        """What an answer depends on besides the question: models, index, settings."""
        return {
            "encoder": f"{self.encoder.name} {self.encoder.fingerprint}",
            "reranker": f"{self.reranker.name} {self.reranker.fingerprint}"
            if self.reranker
            else None,
            "index": self.index.folder.name,
            "store": self.store.name,
            "keyword_statistics": self.store.keyword_statistics,
            "settings": self._settings_fingerprint(),
            "chat": self.chat.fingerprint if self.chat else None,
            "prompt": chat_answers.PROMPT_VERSION if self.chat else None,
        }
