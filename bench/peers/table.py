"""Results -> one Markdown table a set, and below it what was aimed at and whether it was reached.

nDCG@10 and hit@5 are atlas's own measures, which agree with ir_measures, with the 95% intervals of
its reports; differences are question by question. Milliseconds are the median over questions of all
rounds and the 95% quantile; a ratio is the median over rounds with the lowest and the highest.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from environments import ATLAS, FLOOR, FRAMEWORKS, TITLES, Peer
from material import Material
from schedule import Plan, Runner, chosen

from atlas.measure.paired import Difference, difference
from atlas.measure.ranking import measure
from atlas.measure.statistics import Unscored, estimate

HEADS = (
    "", "nDCG@10", "reranked", "hit@5", "reranked", "ms a question", "reranked",
    "documents/s in", "MiB ingest", "MiB asking", "cold start, s",
)  # fmt: skip
MISSING = "—"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Everything that was measured of one program on one set; empty where it has not been."""

    hybrid: dict[str, list[str]]
    """Question id -> ranked blocks."""
    reranked: dict[str, list[str]]
    hybrid_ms: list[list[float]]
    """One list a round."""
    reranked_ms: list[list[float]]
    rate: float | None
    """Documents a second, median."""
    ingest_mib: float | None
    ask_mib: float | None
    cold: list[float]
    """Seconds of whole processes, the first left out."""


def report(runner: Runner, material: Material, peers: Sequence[Peer], plan: Plan) -> str:
    """The table of one set and its aims, as Markdown."""
    asked, timed = chosen(material, plan)
    found = {peer.name: _found(runner, material, peer.name, plan) for peer in peers}
    scores = {name: _scores(material, item) for name, item in found.items()}
    title = f"{material.name}: {len(material.texts)} blocks, {len(asked)} questions"
    title += f" ({len(timed)} of them timed with reranking), {time.strftime('%Y-%m-%d')}"
    lines = [f"\n{title}\n", _row(HEADS), _row(["---"] * len(HEADS))]
    for name, item in found.items():
        measured = [_mean(scores[name][kind]) for kind in scores[name]]
        lines.append(
            _row(
                (
                    TITLES[name], *measured, _spread(item.hybrid_ms), _spread(item.reranked_ms),
                    _number(item.rate, 1), _number(item.ingest_mib), _number(item.ask_mib),
                    _range(item.cold),
                )
            )
        )  # fmt: skip
    if ATLAS in found:
        lines += ["", *_aims(found, scores)]
    return "\n".join(lines)


def _found(runner: Runner, material: Material, name: str, plan: Plan) -> Found:
    def steps(kind: str, count: int, first: int = 0) -> list[dict[str, Any]]:
        results = (runner.result(material, name, f"{kind}-{n}") for n in range(first, count))
        return [item for item in results if item is not None]

    hybrid, reranked = steps("hybrid", plan.rounds), steps("reranked", plan.rounds)
    rest = runner.result(material, name, "reranked-rest")
    ingests = steps("ingest", plan.ingests)
    rates = [item["blocks"] / item["seconds"] for item in ingests]
    return Found(
        hybrid=_rankings(hybrid),
        reranked=_rankings([*reranked, *([rest] if rest else [])]),
        hybrid_ms=_milliseconds(hybrid),
        reranked_ms=_milliseconds(reranked),
        rate=statistics.median(rates) if rates else None,
        ingest_mib=max((item["peak_mib"] for item in ingests), default=None),
        ask_mib=max((item["peak_mib"] for item in reranked), default=None),
        cold=[item["process_seconds"] for item in steps("cold", plan.colds + 1, first=1)],
    )


def _rankings(results: list[dict[str, Any]]) -> dict[str, list[str]]:
    return {row["id"]: row["ranked"] for item in results for row in item["asked"]}


def _milliseconds(results: list[dict[str, Any]]) -> list[list[float]]:
    return [[1000 * row["seconds"] for row in item["asked"]] for item in results]


def _scores(material: Material, item: Found) -> dict[str, list[float | Unscored]]:
    """Of every question of the set that was asked, in the set's order."""
    gold = {question.id: question.relevant for question in material.questions}
    return {
        f"{kind} {name}": [
            measure(name)(ranked[id], relevant) for id, relevant in gold.items() if id in ranked
        ]
        for name in ("ndcg@10", "hit@5")
        for kind, ranked in (("hybrid", item.hybrid), ("reranked", item.reranked))
    }


def _aims(found: dict[str, Found], scores: dict[str, dict[str, Any]]) -> Iterator[str]:
    """One line an aim."""
    own, others = found[ATLAS], [name for name in found if name != ATLAS]
    frameworks = [name for name in FRAMEWORKS if name in found]
    kinds = ("hybrid ndcg@10", "reranked ndcg@10")
    ours = max(kinds, key=lambda kind: _plain_mean(scores[ATLAS][kind]))
    rivals = [(name, kind) for name in others for kind in kinds if scores[name][kind]]
    if rivals and scores[ATLAS][ours]:
        name, kind = max(rivals, key=lambda rival: _plain_mean(scores[rival[0]][rival[1]]))
        apart = _apart(scores[name][kind], scores[ATLAS][ours])
        won = _plain_mean(scores[ATLAS][ours]) > _plain_mean(scores[name][kind])
        yield _aim(
            won, f"best nDCG@10: atlas {ours.split()[0]}, next {name} {kind.split()[0]}", apart
        )
    for name in others:
        parts = [
            f"{kind.split()[0]} {_apart(scores[name][kind], scores[ATLAS][kind])}" for kind in kinds
        ]
        yield f"- atlas less {TITLES[name]}, nDCG@10: {', '.join(parts)}"
    if FLOOR in found and own.cold and found[FLOOR].cold:
        yield _ratio("cold start, of the plain script's", 1.15, own.cold, found[FLOOR].cold)
    cold = [name for name in frameworks if found[name].cold]
    if cold and own.cold:
        name = min(cold, key=lambda name: statistics.median(found[name].cold))
        yield _ratio(f"cold start, of {name}'s, the fastest", 0.2, own.cold, found[name].cold)
    if "langchain" in found:
        yield _ratio("hybrid, of langchain's", 0.5, *_rounds("hybrid_ms", own, found["langchain"]))
    timed = [name for name in frameworks if found[name].reranked_ms]
    if timed and own.reranked_ms:
        name = min(timed, key=lambda name: _middle(found[name].reranked_ms))
        both = _rounds("reranked_ms", own, found[name])
        yield _ratio(f"reranked, of {name}'s, the fastest", 0.6, *both)
    if FLOOR in found and own.rate and (rate := found[FLOOR].rate):
        yield _aim(own.rate >= 0.9 * rate, "ingest rate, of the plain script's 0.90 or more",
                   f"{own.rate / rate:.2f}")  # fmt: skip
    for kind, label in (("ingest_mib", "ingest"), ("ask_mib", "asking")):
        peaks = {name: getattr(found[name], kind) for name in frameworks}
        peaks = {name: peak for name, peak in peaks.items() if peak}
        if peaks and (peak := getattr(own, kind)):
            name = min(peaks, key=lambda name: peaks[name])
            share = peak / peaks[name]
            text = f"peak memory {label}, of {name}'s, the lowest: 0.50 or less"
            yield _aim(share <= 0.5, text, f"{share:.2f}")


def _aim(reached: bool, text: str, value: str) -> str:
    return f"- {'reached' if reached else '**not reached**'}: {text}: {value}"


def _ratio(text: str, aim: float, ours: Sequence[float], theirs: Sequence[float]) -> str:
    ratios = [one / other for one, other in zip(ours, theirs, strict=False)]
    if not ratios:
        return f"- not measured: {text} {aim:.2f} or less"
    return _aim(statistics.median(ratios) <= aim, f"{text} {aim:.2f} or less", _range(ratios))


def _rounds(kind: str, *items: Found) -> list[list[float]]:
    """Median milliseconds of every round, for each."""
    return [[statistics.median(one) for one in getattr(item, kind)] for item in items]


def _apart(theirs: Sequence[Any], ours: Sequence[Any]) -> str:
    if len(theirs) != len(ours) or not ours:
        return MISSING
    apart = difference(theirs, ours)
    if not isinstance(apart, Difference):
        return MISSING
    sure = f"p {apart.p_value:.3f}" + ("" if apart.p_value < 0.05 else ", could be chance")
    return f"{apart.value:+.3f} [{apart.low:.2f} {apart.high:.2f}] {sure}"


def _plain_mean(values: Sequence[Any]) -> float:
    return statistics.fmean(values) if values else -1.0


def _middle(rounds: list[list[float]]) -> float:
    return statistics.median([one for part in rounds for one in part])


def _mean(values: Sequence[Any]) -> str:
    return str(estimate(values)) if values else MISSING


def _spread(rounds: list[list[float]]) -> str:
    every = [one for part in rounds for one in part]
    return f"{np.median(every):.1f} ({np.quantile(every, 0.95):.1f})" if every else MISSING


def _range(values: Sequence[float]) -> str:
    if not values:
        return MISSING
    return f"{statistics.median(values):.2f} ({min(values):.2f}, {max(values):.2f})"


def _number(value: float | None, digits: int = 0) -> str:
    return f"{value:.{digits}f}" if value is not None else MISSING


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
