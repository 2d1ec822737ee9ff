"""Summary -> the JSON of `measure-answers --json`, and the lines that a person reads."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from atlas.measure.agreement import interval_json
from atlas.measure.answers.arms import NONE, ORACLE, REAL
from atlas.measure.answers.judged import Judged
from atlas.measure.answers.summary import Gap, Summary
from atlas.measure.paired import Difference
from atlas.measure.statistics import Estimate, Unscored

WIDTH = 100
SHOWN = 12
"""Wrong answers that are printed one by one; JSON has all."""


def as_json(summary: Summary, head: Mapping[str, Any], judged: Judged | None) -> dict[str, Any]:
    """What programs read. Fields may be added; see the specification for those that stay."""
    spread = summary.spread
    return {
        **head,
        "arms": {arm: _estimates(rates) for arm, rates in summary.arms.items()},
        **{name: _estimates(part) for name, part in summary.split().items()},
        "headroom": summary.headroom.as_json(),
        "ceiling": interval_json(summary.ceiling),
        "sweep": [
            {"k": k, "accuracy": rate.as_json(), "step": gap and gap.as_json()}
            for k, rate, gap in summary.sweep
        ],
        "enough_k": summary.enough,
        "causes": summary.causes(),
        "wrong": [
            {
                "id": item.case,
                "cause": item.cause,
                "place": item.place or None,
                "of": len(item.prompt),
                "status": item.status,
                "why": list(item.wrong),
                "answer": item.said,
            }
            for item in summary.wrong()
        ],
        "abstention": {arm: summary.abstention(arm) for arm in summary.arms},
        "by_place": {str(place): rate.as_json() for place, rate in summary.by_place().items()},
        "citations": _estimates(summary.citations()),
        "spread": {"sd": None, "unscored": spread.reason}
        if isinstance(spread, Unscored)
        else {"sd": spread, "changed": summary.changed().as_json(), "repeats": summary.repeats},
        "cost": {arm: summary.cost(summary.of_arm(arm).values()) for arm in summary.arms},
        "by_kind": {kind: _estimates(rates) for kind, rates in summary.by_kind().items()},
        "judged": judged.as_json() if judged is not None else None,
        "failures": [
            {"id": item.case, "arm": item.arm, "k": item.k, "cause": item.cause, "why": item.error}
            for item in summary.outcomes
            if item.error
        ],
    }


def lines(summary: Summary, title: str, judged: Judged | None) -> Iterator[str]:
    """The report for a person."""
    yield from textwrap.wrap(title, WIDTH)
    for part in (_arms, _gaps, _sweep, _wrong, _checks, _abstention, _kinds, _cost):
        yield ""
        yield from part(summary)
    if judged is not None:
        yield ""
        yield from _judged(judged)


def _arms(summary: Summary) -> Iterator[str]:
    shown = ("accuracy", "abstained", "wrongly_abstained", "invented")
    yield f"{'arm':<20}" + "".join(f"{name:<18}" for name in shown) + "errors"
    for arm, rates in summary.arms.items():
        cells = "".join(f"{_short(rates[name]):<18}" for name in shown)
        errors = sum(bool(item.error) for item in summary.of_arm(arm).values())
        yield f"{arm:<20}{cells}{errors}"
    shown_arms = [arm for arm in (NONE, REAL, ORACLE) if arm in summary.arms]
    for arm in shown_arms:
        rates = summary.arms[arm]
        counted = ", ".join(f"{name} {rates[name].counted}" for name in ("accuracy", "invented"))
        yield f"  {arm}: {counted}"
    for arm in shown_arms:
        rates = summary.arms[arm]
        yield (
            f"  {arm}: of the answers given {_short(rates['wrong_if_answered'])} are wrong; "
            f"relevance {_short(rates['relevance'])}"
        )


def _gaps(summary: Summary) -> Iterator[str]:
    for name, part in summary.split().items():
        if part["questions"] or name != "unsorted":
            meaning = {
                "easy": "right without documents",
                "hard": "not right without",
                "unsorted": "not known without documents",
            }[name]
            yield (
                f"{name:<10}{part['questions']} with an answer, {meaning}: "
                f"real {_short(part[REAL])}, oracle {_short(part[ORACLE])}"
            )
    yield f"headroom  {_gap(summary.headroom)}  oracle minus real: what retrieval could add"
    yield f"ceiling   {summary.ceiling}  wrong with all evidence at hand"
    if isinstance(summary.spread, Unscored):
        yield f"spread    {summary.spread}"
    else:
        yield (
            f"spread    {summary.spread:.3f} standard deviation over {summary.repeats} equal runs; "
            f"{_short(summary.changed())} of the questions change"
        )


def _sweep(summary: Summary) -> Iterator[str]:
    yield f"{'k':<5}{'accuracy':<24}{'step':<28}prompt tokens"
    for k, rate, gap in summary.sweep:
        cost = summary.cost(summary.of_arm(REAL, k).values())
        tokens = "-" if cost["prompt_tokens"] is None else f"{cost['prompt_tokens']:.0f}"
        shown = "-" if isinstance(rate.mean, Unscored) else str(rate)
        yield f"{k:<5}{shown:<24}{_gap(gap) if gap else '':<28}{tokens}".rstrip()
    if summary.enough is not None:
        yield f"accuracy does not rise after k {summary.enough}"


def _wrong(summary: Summary) -> Iterator[str]:
    wrong = summary.wrong()
    yield f"{len(wrong)} wrong answers in the real arm, by cause"
    for cause, count in summary.causes().items():
        yield f"{count:>5}  {cause}"
    places = summary.by_place()
    if places:
        yield "accuracy by place of the first relevant block in the prompt"
        for place, rate in places.items():
            yield f"{place:>5}  {rate}  of {rate.scored}"
    for item in wrong[:SHOWN]:
        where = f", place {item.place} of {len(item.prompt)}" if item.place else ""
        said = " ".join(item.said.split())
        yield from textwrap.wrap(
            f"{item.case}: {item.cause}{where}: {'; '.join(item.wrong)}: {said[:160]}",
            WIDTH,
            initial_indent="  ",
            subsequent_indent="      ",
        )
    if len(wrong) > SHOWN:
        yield f"  … and {len(wrong) - SHOWN} more, in --json"


def _checks(summary: Summary) -> Iterator[str]:
    values = summary.citations()
    yield "citation checks in the real arm"
    yield f"  sentences with support    {values['supported']}  of those drafted"
    yield f"  invalid citations         {values['invalid']}  of those drafted"
    yield f"  wrong drafts caught       {values['caught']} of {values['wrong_drafts']}"
    yield f"  right drafts lost         {values['lost']} of {values['right_drafts']}"


def _abstention(summary: Summary) -> Iterator[str]:
    columns = {"answered": "answered", "abstained": "declined", "needs_clarification": "asked back"}
    names = {
        "answered": "should answer",
        "abstained": "should decline",
        "needs_clarification": "should ask back",
    }
    for arm in [arm for arm in (REAL, ORACLE) if arm in summary.arms]:
        head = "".join(f"{name:>12}" for name in (*columns.values(), "failed"))
        yield f"{arm:<18}{head}"
        for expected, counts in summary.abstention(arm).items():
            cells = "".join(f"{counts[column]:>12}" for column in (*columns, "failed"))
            yield f"  {names[expected]:<16}{cells}"


def _kinds(summary: Summary) -> Iterator[str]:
    kinds = summary.by_kind()
    width = min(24, max((len(kind) for kind in kinds), default=4) + 2)
    arms = [arm for arm in (NONE, REAL, ORACLE) if arm in summary.arms]
    yield f"{'kind':<{width}}{'n':>4}  " + "".join(f"{arm:<20}" for arm in arms)
    for kind, rates in kinds.items():
        cells = "".join(f"{_short(rates[arm]):<20}" for arm in arms)
        yield f"{kind[: width - 1]:<{width}}{rates[REAL].scored:>4}  {cells}".rstrip()


def _cost(summary: Summary) -> Iterator[str]:
    heads = f"{'prompt tokens':>14}{'answer tokens':>15}{'seconds':>9}{'price':>10}"
    yield f"{'cost per answer':<20}{heads}"
    for arm in summary.arms:
        cost = summary.cost(summary.of_arm(arm).values())
        if cost["answers"]:
            price = "-" if cost["price"] is None else f"{cost['price']:.5f}"
            yield (
                f"  {arm:<18}{cost['prompt_tokens']:>14.0f}{cost['completion_tokens']:>15.0f}"
                f"{cost['seconds']:>9.2f}{price:>10}"
            )
    cached = sum(item.cached for item in summary.outcomes)
    if cached:
        yield f"  {cached} replies came from the cache, with the seconds that they took at first"


def _judged(judged: Judged) -> Iterator[str]:
    yield f"judge {judged.judge} on the answers of the real arm, by their sources"
    yield f"  as judged {judged.rate}  {judged.rate.counted}"
    yield f"  {judged.corrected.line()}"
    yield f"  agrees with the facts of the cases {judged.with_facts}  {judged.with_facts.counted}"
    yield f"  changes its mind on the same answers: {judged.changed}"


def _short(rate: Estimate) -> str:
    if isinstance(rate.mean, Unscored):
        return "-"
    return f"{rate.mean.value:.2f} [{rate.mean.low:.2f}, {rate.mean.high:.2f}]"


def _gap(gap: Gap) -> str:
    if not isinstance(gap.difference, Difference):
        return "-"
    sign = f"{gap.difference.value:+.3f} [{gap.difference.low:+.2f}, {gap.difference.high:+.2f}]"
    return f"{sign}{' noise' if gap.noise else ''}"


def _estimates(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.as_json() if isinstance(value, Estimate) else value
        for name, value in values.items()
    }
