"""The composer: how a question is read, its three doors, and what it refuses to open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from fakes import FakeEncoder, FakeReranker
from pieces import use_weights
from small import FILES, QUESTION, SETTINGS, WARRANTY, collection, opened, use_fakes

from atlas import assistant as module
from atlas.assistant import (
    SCOPES_KEPT,
    Assistant,
)
from atlas.collection import Collection
from atlas.errors import IndexDamagedError, UsageError
from atlas.reading import MAX_QUESTION, clean_question, in_their_words
from atlas.records import Scope
from atlas.rerank import LEAST
from atlas.trace import NEAREST, nearest_documents

OLD = WARRANTY.replace("id: WARR", "id: WARR-R1\nvalid_to: 2025-12-31").replace(
    "3 years", "2 years"
)
NEW = WARRANTY.replace("id: WARR", "id: WARR-R2\nvalid_from: 2026-01-01\nsupersedes: WARR-R1")
CHECKS = "# Checks\n\n## Battery checks\n\n| Check | Meaning |\n|---|---|\n" + "".join(
    f"| R{n:02} | the casing of battery {n} was opened {'and shut again ' * 5}|\n"
    for n in range(1, 12)
)
TRAIL = "---\nproducts: [T-7]\n---\n# Trail\n\nThe lock of the T-7 is under warranty for 2 years.\n"
TODAY = Scope(date=date(2026, 3, 2))


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)
    use_weights(monkeypatch)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assistant]:
    files = {**FILES, "warranty.md": NEW, "old.md": OLD, "checks.md": CHECKS, "trail.md": TRAIL}
    settings = SETTINGS.replace("sample: [WARR]\n", "glossary: {accu: battery, key set: lock}\n")
    root = collection(tmp_path_factory.mktemp("a") / "c", files, settings=settings, cases=None)
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_fakes(monkeypatch)
        with opened(root) as made:
            yield made


# ---- how a question is read -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "clean"),
    [
        ("  how \n long\t is it ", "how long is it"),
        ("a\x00b\x1b[31m", "a b"),
        ("is\u202eit\u200bhot\ufeff", "is it hot"),
        ("cafe\u0301", "café"),
        ("\ud800 hot", "? hot"),
        ("保証は何年ですか", "保証は何年ですか"),
        ("x" * MAX_QUESTION, "x" * MAX_QUESTION),
    ],
)
def test_a_question_is_cleaned(typed: str, clean: str) -> None:
    assert clean_question(typed) == clean


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("", "is empty"),
        (" \n\u200b\x00", "is empty"),
        ("?!…", "no word in it"),
        ("x" * (MAX_QUESTION + 1), "2,001 characters; ask in at most 2,000"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(typed: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        clean_question(typed)


def test_glossary_words_are_whole_words_in_any_case() -> None:
    glossary = {"accu": "battery", "a.b": "c"}
    assert in_their_words("Accu, accus, accu-x, ACCU? aXb", glossary) == (
        "battery, accus, accu-x, battery? aXb"
    )


def test_a_question_in_the_words_of_the_glossary_is_answered(small: Assistant) -> None:
    values = small.ask("how long is the accu of the C-3 under warranty", TODAY).values
    assert values["question"] == "how long is the accu of the C-3 under warranty"
    assert values["read_as"] == "how long is the battery of the C-3 under warranty"
    assert values["status"] == "answered"
    assert "3 years" in values["answer"]


def test_an_alias_is_read_as_the_product(small: Assistant) -> None:
    read = small.understand("how long is the city bike's battery under warranty", TODAY)
    assert read.text == "how long is the C-3's battery under warranty"
    assert read.seen.products == ("C-3",)
    assert "c3" not in read.question.terms


def test_a_typing_error_is_mended_and_told(small: Assistant) -> None:
    values = small.ask("how long is the battrey of the C-3 under warranty", TODAY).values
    assert values["mended"] == {"battrey": "battery"}
    assert values["status"] == "answered"


def test_a_year_chooses_the_policy_and_leaves_the_question(small: Assistant) -> None:
    question = "how long was the C-3 battery under warranty in 2025"
    assert small.understand(question, TODAY).text == "how long was the C-3 battery under warranty"
    values = small.ask(question, TODAY).values
    assert {row["document"] for row in values["citations"]} == {"WARR-R1"}
    assert "2 years" in values["answer"]


@pytest.mark.parametrize("name", ["WARR-R1", "warr-r1"])
def test_an_id_chooses_the_policy_and_leaves_the_question(small: Assistant, name: str) -> None:
    question = f"how long is the battery under warranty under {name}"
    assert small.understand(question, TODAY).text == "how long is the battery under warranty"
    assert "2 years" in small.ask(question, TODAY).values["answer"]


def test_a_question_of_nothing_but_an_id_stays(small: Assistant) -> None:
    assert small.understand("WARR-R1", TODAY).text == "WARR-R1"


def test_the_id_of_a_document_out_of_scope_stays_a_word_like_any_other(
    tmp_path: Path,
) -> None:
    secret = FILES["prices.md"].replace("id: PRICES", "id: PRICES-R1")
    with opened(collection(tmp_path / "c", {**FILES, "prices.md": secret})) as made:
        question = "what does the battery cost in PRICES-R1"
        assert made.understand(question, TODAY).text == question
        sales = replace(TODAY, reader="sales")
        assert made.understand(question, sales).text == "what does the battery cost"


def test_an_unknown_product_is_said_so_and_nothing_is_searched(small: Assistant) -> None:
    values = small.ask("how long is the battery of a C-4 under warranty", TODAY).values
    assert values["status"] == "abstained"
    assert values["reason"] == "the documents know no “C-4”; they know C-3, T-7"
    assert values["context"] == values["ranked"] == values["nearest"] == []


def test_a_code_that_looks_like_a_product_is_none(small: Assistant) -> None:
    assert small.understand("what is R01", TODAY).unknown == ""


def test_a_question_without_a_subject_is_declined(small: Assistant) -> None:
    values = small.ask("how is it", TODAY).values
    assert values["status"] == "abstained"
    assert values["reason"] == "the question names nothing to look for"


# ---- asking ---------------------------------------------------------------------------------


def test_an_answer_is_a_quote_with_its_source(small: Assistant) -> None:
    values = small.ask("how long is the battery of the C-3 under warranty", TODAY).values
    assert values["answer"].startswith("The battery is under warranty for 3 years. [1]")
    [citation] = values["citations"]
    assert (citation["ref"], citation["marker"]) == ("WARR-R2-1-p0", 1)
    assert citation["quote"].startswith("The battery is under warranty for 3 years.")
    assert values["settings"].keys() == set(module.TRACED_SETTINGS)
    assert values["timings_seconds"].keys() >= {"scope", "search", "rerank", "answer", "total"}


def test_a_declined_question_lists_the_nearest_documents_once_each(small: Assistant) -> None:
    values = small.ask("what is the airspeed of a swallow under warranty", TODAY).values
    assert values["status"] == "abstained"
    names = [row["document"] for row in values["nearest"]]
    assert 0 < len(names) <= NEAREST
    assert len(set(names)) == len(names)
    assert "PRICES" not in names
    assert nearest_documents([]) == []


def test_a_count_is_supplied_the_rest_of_its_table(small: Assistant) -> None:
    values = small.ask("how many battery checks are there", TODAY).values
    assert values["answer"].startswith("11, counted in “Battery checks” of Checks: R01; R02;")
    refs = {row["ref"] for row in values["context"]}
    assert {ref for ref in refs if ref.startswith("checks-1-")} == {"checks-1-p0", "checks-1-p1"}


def test_a_question_without_a_product_is_compared_over_all_products(small: Assistant) -> None:
    narrow = Assistant(small.collection, small.index, small.encoder, small.reranker)
    narrow.settings = replace(small.settings, depth=1, k=1)
    question = "how long is the lock under warranty"
    values = narrow.ask(question, TODAY).values
    assert {row["document"] for row in values["context"]} == {"WARR-R2", "trail"}
    assert (values["status"], values["choices"]) == ("needs_clarification", ["C-3", "T-7"])
    named = narrow.ask(f"{question} of the C-3", TODAY).values
    assert {row["document"] for row in named["context"]} == {"WARR-R2"}
    assert "5 years" in named["answer"]


def test_a_trace_ranks_ten_at_least_even_where_fewer_are_reranked(small: Assistant) -> None:
    shallow = Assistant(small.collection, small.index, small.encoder, small.reranker)
    shallow.settings = replace(small.settings, depth=1)
    values = shallow.ask("how long is the battery of the C-3 under warranty", TODAY).values
    in_scope = int(shallow.understand("battery of the C-3", TODAY).seen.blocks.sum())
    assert len(values["ranked"]) == min(in_scope, module.RANKED) > 1
    assert len(values["context"]) + len(values["dropped"]) == values["pairs"] == 1


def test_what_was_not_read_is_ranked_last_and_never_supplied(small: Assistant) -> None:
    shallow = Assistant(small.collection, small.index, small.encoder, small.reranker)
    shallow.settings = replace(small.settings, depth=2, k=5, min_score=0.0)
    values = shallow.ask("how long is the battery of the C-3 under warranty", TODAY).values
    assert [row["ref"] for row in values["context"]] == values["ranked"][:2]
    assert all(row["rerank_score"] is not None for row in values["context"])
    assert len(values["ranked"]) > values["pairs"] == 2


LONG = {
    f"long-{n}.md": f"# Long {n}\n\n## Part\n\n{'red ' * (12 - n)}{'saddle ' * n}\n"
    for n in range(12)
}
"""Twelve blocks that are less and less about red."""


def test_a_shorter_reach_reads_fewer_pairs_and_the_trace_tells_how_many(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", LONG, settings="vector_weight: 1\ndepth: 10\n", cases=None)
    read = []
    with opened(root) as made:
        for reach in (1.0, 0.3, 0.0):
            model = FakeReranker()
            made.reranker, made.settings = model, replace(made.settings, rerank_reach=reach)
            made.forget_pairs()
            values = made.ask("red", TODAY).values
            rows = (*values["context"], *values["dropped"])
            assert sum(row["rerank_score"] is not None for row in rows) == values["pairs"]
            blocks = {text for _, text in model.scored if text.startswith("Long")}
            whole = {made.index.block(n).searched for n in range(len(made.index))}
            assert len(blocks & whole) == values["pairs"]
            assert len(values["ranked"]) == module.RANKED
            read.append(values["pairs"])
    assert read == sorted(read, reverse=True)
    assert read[0] == 10 > read[1] > read[2] == LEAST


def test_a_question_asked_again_costs_no_pair_and_says_the_same(small: Assistant) -> None:
    model = FakeReranker()
    made = Assistant(small.collection, small.index, small.encoder, model)
    question = "how long is the battery of the C-3 under warranty"
    first = made.ask(question, TODAY).values
    asked = len(model.scored)
    assert len(set(model.scored)) == asked > 0
    again = made.ask(question, TODAY).values
    assert len(model.scored) == asked
    changing = ("id", "time", "timings_seconds")
    assert {k: v for k, v in first.items() if k not in changing} == {
        k: v for k, v in again.items() if k not in changing
    }
    made.under(replace(made.settings, k=3)).ask(question, TODAY)
    assert len(model.scored) == asked


def test_without_a_reranker_the_search_decides(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", settings=f"{SETTINGS}reranker: none\n")
    with opened(root) as made:
        values = made.ask(QUESTION, TODAY).values
        assert made.reranker is None
    assert values["fingerprints"]["reranker"] is None
    assert values["context"][0]["ref"] == "WARR-1-p0"
    assert all(row["rerank_score"] is None for row in values["context"])


def test_the_statistics_of_a_scope_are_kept_and_the_oldest_go(small: Assistant) -> None:
    made = Assistant(small.collection, small.index, small.encoder, small.reranker)
    first = made.understand("battery", TODAY).statistics
    assert made.understand("lock", TODAY).statistics is first
    assert made.understand("battery of the C-3", TODAY).statistics is not first
    for number in range(SCOPES_KEPT):
        made._statistics[(number,)] = first
    made.understand("battery", replace(TODAY, reader="sales"))
    assert len(made._statistics) == SCOPES_KEPT


# ---- the other doors ------------------------------------------------------------------------


def test_an_answer_can_be_made_of_given_blocks_alone(small: Assistant) -> None:
    blocks = {small.index.block(n).ref: small.index.block(n) for n in range(len(small.index))}
    question = "how long is the battery of the C-3 under warranty"
    other = small.answer_from(question, [blocks["WARR-R1-1-p0"]], TODAY)
    assert other.status == "answered"
    assert "2 years" in other.values["answer"]
    assert [citation["ref"] for citation in other.values["citations"]] == ["WARR-R1-1-p0"]
    assert small.answer_from(question, [blocks["MANUAL-1-p0"]], TODAY).status == "abstained"
    assert small.answer_from(question, [], TODAY).status == "abstained"


def test_a_selection_can_be_made_again_from_the_trace(small: Assistant) -> None:
    values = small.ask("how long is the battery under warranty", TODAY).values
    supplied = [row["ref"] for row in values["context"]]
    again = small.reselect(values, small.settings)
    assert [hit.block.ref for hit in again.kept] == supplied
    assert again.tokens == values["tokens"]["supplied"]
    wide = replace(small.settings, k=10, min_score=0.0, max_per_document=10)
    small.settings = wide
    asked_wide = small.ask("how long is the battery under warranty", TODAY).values
    assert [hit.block.ref for hit in small.reselect(values, wide).kept] == [
        row["ref"] for row in asked_wide["context"]
    ]
    assert len(small.reselect(values, replace(wide, min_score=1.0)).kept) == 0


# ---- opening --------------------------------------------------------------------------------


def test_an_index_made_by_another_encoder_is_refused(small: Assistant) -> None:
    other = FakeEncoder(name="other", fingerprint="other-1")
    with pytest.raises(IndexDamagedError, match=r"made by encoder fake-encoder fake-encoder-1, "
                       r"this one is other other-1; run `atlas ingest`"):  # fmt: skip
        Assistant(small.collection, small.index, other, None)


def test_a_bad_document_is_told_when_asking_builds_the_index(tmp_path: Path) -> None:
    files = {**FILES, "bad.md": "---\nid: [\n---\n# Bad\n\nWords.\n"}
    notes: list[str] = []
    made = Assistant.of(Collection.open(collection(tmp_path / "c", files)), told=notes.append)
    assert len(notes) == 1
    assert notes[0].startswith("skipped documents/bad.md: ")
    assert made.ask(QUESTION, TODAY).status == "answered"
    made.index.close()


def test_opening_brings_a_stale_index_up_to_date(tmp_path: Path) -> None:
    root = collection(tmp_path / "c")
    with Assistant.open(root) as made:
        assert "3 years" in made.ask(QUESTION, TODAY).values["answer"]
        made.index.close()
    (root / "documents" / "warranty.md").write_text(WARRANTY.replace("3 years", "14 years"))
    with Assistant.open(root) as made:
        assert "14 years" in made.ask(QUESTION, TODAY).values["answer"]
        made.index.close()


def test_given_settings_replace_those_of_the_file(tmp_path: Path) -> None:
    root = collection(tmp_path / "c")
    plain = Collection.open(root).settings
    with Assistant.open(root, settings=replace(plain, k=1)) as made:
        assert made.settings.k == 1
        assert len(made.ask("how long is the battery of the C-3", TODAY).values["context"]) == 1
        made.index.close()
