"""A run, or one question of it -> lines for a person, at most 100 columns wide.

Plain text without colour. No score is shown without how many questions it speaks for.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from atlas.measure.misses import Miss, by_stage
from atlas.measure.questions import Questions
from atlas.measure.rows import Row
from atlas.measure.runs import Run
from atlas.measure.statistics import RESAMPLES, SEED, Estimate, Unscored
from atlas.measure.summary import BY_KIND, LEAK_RATE, by_kind, risk_coverage

WIDTH = 100
MOST_LISTED = 25
GROUPS: Mapping[str, tuple[str, ...]] = {
    "supplied blocks": ("hit", "recall", "precision", "evidence", "prompt_tokens"),
    "ranked list, before selection": (
        "hit@1", "hit@3", "hit@5", "hit@10", "precision@1", "precision@3", "precision@5",
        "precision@10", "recall@3", "recall@5", "recall@10", "reciprocal_rank@10", "ndcg@10",
    ),
    "declining and asking back": (
        "declined", "wrongly_declined", "asked_back", "wrongly_asked_back",
    ),
    "answers": ("unused_sources", "invalid_citations", "pairs", "milliseconds"),
}  # fmt: skip
MEANINGS = {
    "hit": "a relevant block was supplied",
    "recall": "labels supplied, of all labels",
    "precision": "relevant, of the supplied blocks",
    "evidence": "quotes whole in a supplied block",
    "prompt_tokens": "tokens supplied",
    "hit@k": "a relevant block among the first k",
    "precision@k": "relevant among the first k, of k",
    "recall@k": "relevant among the first k, of all such",
    "reciprocal_rank@10": "1 / rank of the first relevant block",
    "ndcg@10": "gain of the first ten, discounted by rank",
    "declined": "without an answer and declined",
    "wrongly_declined": "with an answer, but declined",
    "asked_back": "to be asked back and asked back",
    "wrongly_asked_back": "with an answer, but asked back",
    "unused_sources": "not cited, of the supplied blocks",
    "invalid_citations": "taken out by validation, of all citations",
    "pairs": "blocks that the reranker read for the order",
    "milliseconds": "a whole question, answer included",
    LEAK_RATE: "looks that saw something out of scope",
}


def run_lines(run: Run, questions: Questions, misses: Sequence[Miss]) -> Iterator[str]:
    """Everything that `measure` prints."""
    for remark in questions.remarks():
        yield from wrapped(remark)
    counts = f"{len(run.rows) - run.failed} of {len(run.rows)} asked, failed {run.failed}"
    yield f"{counts}; k {run.settings['k']}, min_score {run.settings['min_score']:g}"
    yield f"means with 95% intervals ({RESAMPLES:,} resamples, seed {SEED}; rates exact)"
    for title, names in GROUPS.items():
        yield ""
        yield f"{title:<42}  scored"
        for name in names:
            yield estimate_line(name, run.summary[name])
    yield ""
    yield leak_line(run)
    for leak in run.leaks[:MOST_LISTED]:
        yield from wrapped(f"  LEAK {leak.text()}", "    ")
    yield from kind_lines(run.rows)
    yield from risk_lines(run.rows)
    yield from miss_lines(misses)
    for row in run.rows:
        if row.failed:
            yield from wrapped(f"failed {row.case.id}: {row.error}")


def estimate_line(name: str, value: Estimate) -> str:
    """One measure: name, mean with interval, how many were scored, what it means."""
    meant = MEANINGS.get(name) or MEANINGS[name.partition("@")[0] + "@k"]
    return f"  {name:<20}{mean_text(value):<22}{value.scored:>4} of {value.total:<5}{meant}"


def leak_line(run: Run) -> str:
    """Looks and leaks."""
    value = run.summary[LEAK_RATE]
    leaking = round(value.mean.value * value.scored) if not isinstance(value.mean, Unscored) else 0
    looks = "every question as every reader group"
    if run.looks <= len(run.rows):
        looks = "each question once"
    return f"leaks: {leaking} of {run.looks:,} looks ({looks}); leak_rate {mean_text(value)}"


def kind_lines(rows: Sequence[Row]) -> Iterator[str]:
    """The chosen measures of every kind of question."""
    kinds = by_kind(rows, BY_KIND)
    if len(kinds) < 2:
        return
    yield ""
    yield f"{'kind':<18}{'n':>3}" + "".join(f"  {name:<17}" for name in BY_KIND[:-1])
    for kind, summary in kinds.items():
        n = summary["hit"].total
        cells = [short(summary[name]) for name in BY_KIND[:-1]]
        yield f"{kind[:17]:<18}{n:>3}" + "".join(f"  {cell:<17}" for cell in cells)
    yield ""
    yield (
        f"{'kind':<18}{'n':>3}  {'wrongly_declined':<18}{'right':>5}{'wrong':>7}{'declined':>10}"
        + (f"{'asked back':>12}{'failed':>8}")
    )
    for kind, summary in kinds.items():
        own = [row for row in rows if (row.case.kind or "no kind") == kind]
        right = sum(row.status == "answered" and not row.wrong for row in own)
        wrong = sum(row.status == "answered" and bool(row.wrong) for row in own)
        declined = sum(row.status == "abstained" for row in own)
        back = sum(row.status == "needs_clarification" for row in own)
        failed = sum(row.failed for row in own)
        cell = short(summary["wrongly_declined"])
        yield (
            f"{kind[:17]:<18}{len(own):>3}  {cell:<18}{right:>5}{wrong:>7}{declined:>10}"
            f"{back:>12}{failed:>8}"
        )


def risk_lines(rows: Sequence[Row]) -> Iterator[str]:
    """The risk-coverage curve: fewer answers, fewer wrong ones."""
    steps = risk_coverage(rows)
    if not steps:
        return
    yield ""
    yield "if it declined more: answers kept, of all asked, and the share of wrong ones among them"
    for step in steps:
        risk = step["risk"]
        yield (
            f"  {step['answered']:>4} answers ({step['coverage']:.2f})   wrong {risk['mean']:.3f} "
            f"[{risk['low']:.2f}, {risk['high']:.2f}]   probability from "
            f"{step['least_probability']:.2f}"
        )


def miss_lines(misses: Sequence[Miss]) -> Iterator[str]:
    """What was lost, by stage; the questions that found nothing come first."""
    if not misses:
        return
    yield ""
    stages = ", ".join(f"{count} {stage}" for stage, count in by_stage(misses).items())
    yield from wrapped(f"{len(misses)} labels were not supplied: {stages}")
    for alone in (True, False):
        group = [miss for miss in misses if miss.alone is alone]
        if group:
            yield ("nothing relevant was supplied" if alone else "another label was supplied") + ":"
        for miss in group[:MOST_LISTED]:
            yield from wrapped(f"  {miss.line()}", "          ")
        if len(group) > MOST_LISTED:
            yield f"  and {len(group) - MOST_LISTED} more; --json lists all"


def question_lines(row: Row, misses: Sequence[Miss]) -> Iterator[str]:
    """One question in full: every supplied block with its scores, relevant or noise."""
    case = row.case
    yield from wrapped(f"{case.id}  {case.question}")
    yield from wrapped(f"kind {case.kind or 'none'}; expected {case.expect}; status {row.status}")
    yield from wrapped(f"labels: {', '.join(case.relevant) or 'none'}")
    yield from wrapped(f"relevant blocks: {', '.join(row.relevant) or 'none'}")
    if row.trace is None:
        yield from wrapped(f"failed: {row.error}")
        return
    yield ""
    yield f"{'supplied':<28}{'':<10}{'keyword':>9}{'vector':>9}{'fused':>9}{'rerank':>9}"
    for item in row.trace["context"]:
        yield _block_line(item, row)
    if row.trace["dropped"]:
        yield "dropped"
    for item in row.trace["dropped"]:
        yield from wrapped(f"{_block_line(item, row)}  {item['reason']}")
    yield ""
    yield from wrapped(f"answer: {row.trace['answer'] or row.trace['reason'] or 'none'}")
    for problem in row.wrong:
        yield from wrapped(f"wrong: {problem}")
    for miss in misses:
        yield from wrapped(f"missed: {miss.line()}")
    yield ""
    for name, score in row.scores.items():
        shown = f"{score}" if isinstance(score, Unscored) else f"{score:.3f}"
        yield f"  {name:<22}{shown}"


# ---- pieces ---------------------------------------------------------------------------------


def _block_line(item: Mapping[str, Any], row: Row) -> str:
    word = "relevant" if item["ref"] in row.relevant else "noise"
    scores = [item[f"{name}_score"] for name in ("keyword", "vector", "fused", "rerank")]
    cells = "".join(f"{'-' if score is None else f'{score:.3f}':>9}" for score in scores)
    ref = item["ref"] if len(item["ref"]) < 28 else f"{item['ref'][:12]}…{item['ref'][-13:]}"
    return f"{ref:<28}{word:<10}{cells}"


def mean_text(value: Estimate) -> str:
    return "-" if isinstance(value.mean, Unscored) else str(value.mean)


def short(value: Estimate) -> str:
    """`0.912 [.86 .95]`, or a dash where nothing was scored."""
    if isinstance(value.mean, Unscored):
        return "-"
    ends = [f"{end:.2f}".replace("0.", ".", 1) for end in (value.mean.low, value.mean.high)]
    return f"{value.mean.value:.3f} [{' '.join(ends)}]"


def plain(value: Estimate, form: str) -> str:
    return "-" if isinstance(value.mean, Unscored) else format(value.mean.value, form)


def wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]
