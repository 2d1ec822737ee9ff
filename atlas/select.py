"""Ranked hits -> Selection: what the answerer is given, and why the rest was dropped.

The rules, in this order: a score below `min_score`; a straggler far below the best; more than
`max_per_document` of one document; more than `k` in all; over the token budget. Dropped hits are
kept with the rule that dropped them. What the reranker did not read is not among the hits here, so
that no block is supplied unread. Ranks are those of the scores; `prompt_order` is only for models
that read a prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from atlas.records import Dropped, Hit, Selection
from atlas.settings import Settings

STRAGGLER = 0.04
"""A hit with less than this share of the best score is a straggler."""


def select(
    ranked: Sequence[Hit],
    settings: Settings,
    one_document: bool,
    count_tokens: Callable[[str], int],
) -> Selection:
    """Choose from hits in rank order. `one_document`: whether the scope holds just one."""
    kept: list[Hit] = []
    dropped: list[Dropped] = []
    per_document: Counter[str] = Counter()
    best = max((_score(hit) for hit in ranked), default=0.0)
    tokens = 0
    for hit in ranked:
        score = _score(hit)
        reason = ""
        cost = 0
        if hit.rerank_score is not None and score < settings.min_score:
            reason = f"below min_score {settings.min_score:g}"
        elif score < STRAGGLER * best:
            reason = f"straggler: under {STRAGGLER:g} of the best score"
        elif not one_document and per_document[hit.block.document] >= settings.max_per_document:
            reason = f"more than {settings.max_per_document} of one document"
        elif len(kept) >= settings.k:
            reason = f"beyond k {settings.k}"
        else:
            cost = count_tokens(hit.block.text)
            if kept and tokens + cost > settings.token_budget:
                reason = f"over the budget of {settings.token_budget} tokens"
        if reason:
            dropped.append(Dropped(hit=hit, reason=reason))
            continue
        kept.append(hit)
        tokens += cost
        per_document[hit.block.document] += 1
    return Selection(kept=tuple(kept), dropped=tuple(dropped), tokens=tokens)


def prompt_order(kept: Sequence[Hit]) -> list[Hit]:
    """The order for a prompt: best first, second best last, the weakest in the middle.

    Models overlook what stands in the middle of a long prompt (Liu et al., Lost in the Middle).
    """
    front = list(kept[0::2])
    back = list(kept[1::2])
    return front + back[::-1]


def missing_products(found: Sequence[Hit], chosen: Sequence[Hit]) -> list[Hit]:
    """The best hit of every product that none of the chosen hits belongs to."""
    present = {product for hit in chosen for product in hit.block.products}
    extra: list[Hit] = []
    for hit in found:
        products = set(hit.block.products)
        if products and not products & present:
            present |= products
            extra.append(hit)
    return extra


def _score(hit: Hit) -> float:
    return hit.rerank_score if hit.rerank_score is not None else hit.fused_score
