"""What is supplied to the answerer, and the rule that dropped each of the rest."""

from __future__ import annotations

from dataclasses import replace

from atlas.records import Block, Hit, Selection
from atlas.select import STRAGGLER, prompt_order, select
from atlas.settings import Settings

SETTINGS = Settings(k=3, min_score=0.1, max_per_document=2, token_budget=100)


def hit(document: str, score: float | None, words: int = 5, fused: float = 0.5) -> Hit:
    text = " ".join(["word"] * words)
    block = Block(
        document=document,
        section=1,
        piece=0,
        title="Title",
        titles=(),
        text=text,
        start=0,
        end=len(text),
        units=(),
        page=None,
        page_label=None,
        products=(),
    )
    return Hit(
        block=block, keyword_score=0.0, vector_score=0.0, fused_score=fused, rerank_score=score
    )


def chosen(*hits: Hit, settings: Settings = SETTINGS, one: bool = False) -> Selection:
    return select(hits, settings, one, lambda text: len(text.split()))


def names(selection: Selection) -> list[str]:
    return [item.block.document for item in selection.kept]


def reasons(selection: Selection) -> list[str]:
    return [item.reason for item in selection.dropped]


def test_nothing_ranked_is_nothing_selected() -> None:
    assert chosen() == Selection(kept=(), dropped=(), tokens=0)


def test_hits_are_kept_in_rank_order_with_their_tokens() -> None:
    selection = chosen(hit("A", 0.5), hit("B", 0.9))
    assert names(selection) == ["A", "B"]
    assert selection.tokens == 10


def test_a_score_below_min_score_is_dropped_and_one_at_it_is_kept() -> None:
    selection = chosen(hit("A", 0.5), hit("B", 0.0999), hit("C", 0.1))
    assert names(selection) == ["A", "C"]
    assert reasons(selection) == ["below min_score 0.1"]


def test_a_straggler_far_below_the_best_is_dropped() -> None:
    low, edge = replace(SETTINGS, min_score=0.0), STRAGGLER * 0.9
    selection = chosen(hit("A", 0.9), hit("B", edge - 0.001), hit("C", edge), settings=low)
    assert names(selection) == ["A", "C"]
    assert reasons(selection) == [f"straggler: under {STRAGGLER:g} of the best score"]


def test_a_document_supplies_at_most_its_share() -> None:
    selection = chosen(hit("A", 0.9), hit("A", 0.8), hit("A", 0.7), hit("B", 0.6))
    assert names(selection) == ["A", "A", "B"]
    assert reasons(selection) == ["more than 2 of one document"]


def test_the_share_is_off_where_one_document_is_in_scope() -> None:
    assert names(chosen(*[hit("A", 0.9)] * 3, one=True)) == ["A", "A", "A"]


def test_k_blocks_are_enough() -> None:
    selection = chosen(*(hit(name, 0.9) for name in "ABCDE"))
    assert names(selection) == ["A", "B", "C"]
    assert reasons(selection) == ["beyond k 3", "beyond k 3"]


def test_the_budget_drops_what_does_not_fit_and_keeps_what_does() -> None:
    selection = chosen(hit("A", 0.9, 60), hit("B", 0.8, 50), hit("C", 0.7, 40))
    assert names(selection) == ["A", "C"]
    assert reasons(selection) == ["over the budget of 100 tokens"]
    assert selection.tokens == 100


def test_the_best_block_is_supplied_even_above_the_budget() -> None:
    assert names(chosen(hit("A", 0.9, 500))) == ["A"]


def test_without_a_reranker_min_score_does_not_apply_to_fused_scores() -> None:
    selection = chosen(hit("A", None, fused=0.02), hit("B", None, fused=0.0001))
    assert names(selection) == ["A"]
    assert reasons(selection) == [f"straggler: under {STRAGGLER:g} of the best score"]


def test_dropped_hits_keep_their_scores() -> None:
    [dropped] = chosen(hit("A", 0.9), hit("B", 0.05)).dropped
    assert dropped.hit.rerank_score == 0.05


def test_a_prompt_has_its_weakest_block_in_the_middle() -> None:
    ranked = [hit(name, 0.9) for name in "ABCDE"]
    assert [item.block.document for item in prompt_order(ranked)] == ["A", "C", "E", "D", "B"]
