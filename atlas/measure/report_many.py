"""A sweep, a comparison or an experiment -> lines for a person, at most 100 columns wide."""

from __future__ import annotations

import math
from collections.abc import Iterator

from atlas.measure.compare import FEW, Compared, Comparison
from atlas.measure.experiments import Experiment
from atlas.measure.report import MOST_LISTED, plain, short, wrapped
from atlas.measure.statistics import Unscored
from atlas.measure.sweep import MEASURES, Sweep


def sweep_lines(development: Sweep, held_out: Sweep | None = None) -> Iterator[str]:
    """A sweep as a table; the mark stands where development recall starts to fall."""
    first = development.steps[0].summary["recall"]
    yield f"{development.name}, development questions (scored {first.scored} of {first.total})"
    columns = "".join(f"  {name:<16}" for name in MEASURES[:3])
    yield f"{'value':>8}  {columns}{'tokens':>7}{'emptied':>9}" + (
        "   held-out recall" if held_out else ""
    )
    for place, step in enumerate(development.steps):
        cells = "".join(f"  {short(step.summary[name]):<16}" for name in MEASURES[:3])
        tokens = plain(step.summary["prompt_tokens"], ".0f")
        emptied = plain(step.summary["emptied"], ".2f")
        beside = f"   {short(held_out.steps[place].summary['recall'])}" if held_out else ""
        mark = "<" if step.value == development.falls_at else " "
        yield f"{step.value:>8g} {mark}{cells}{tokens:>7}{emptied:>9}{beside}"
    yield "emptied: questions without an answer for which nothing is supplied any more"
    if development.falls_at is None:
        yield "recall does not fall within these values"
    else:
        yield "<: from here on development recall falls"


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Two runs side by side, then by kind, then question by question."""
    a, b = comparison.a, comparison.b
    for letter, saved in (("a", a), ("b", b)):
        yield from wrapped(f"{letter}: {saved.name}, {saved.head['time'][:16]}")
    yield f"{len(a.questions)} {a.head['set']} questions; paired differences b - a, 95% intervals"
    for line in comparison.changed:
        yield from wrapped(f"  changed {line}")
    if len(a.questions) < FEW:
        yield f"fewer than {FEW} questions: only large differences can show"
    yield ""
    heads = f"{'b - a':>8}  {'interval':<17}{'p':>6}{'n':>5}{'detectable':>12}"
    yield f"{'measure':<19}{'a':>7}{'b':>7}{heads}  verdict"
    for item in comparison.overall.values():
        yield _compared_line(item.measure, item)
    for kind, items in comparison.by_kind.items():
        if items:
            yield from wrapped(kind)
            for item in items.values():
                yield _compared_line(f"  {item.measure}", item)
    yield "detectable: the smallest true difference that this many questions show 4 times in 5"
    if comparison.moved:
        yield ""
        yield f"{len(comparison.moved)} changes of single questions from a to b"
        for line in comparison.moved[:MOST_LISTED]:
            yield f"  {line}"


def experiment_lines(experiment: Experiment) -> Iterator[str]:
    """One line per setup, today's settings first."""
    first = experiment.measured[0].estimate("recall")
    yield (
        f"{len(experiment.measured)} setups on {first.total} {experiment.set} questions "
        f"(scored {first.scored}); 95% intervals"
    )
    yield "against today: paired difference, Holm-corrected over the setups"
    for place, item in enumerate(experiment.measured):
        name = "today's settings" if place == 0 else item.setup.name()
        hit, recall, ndcg = (item.estimate(n) for n in ("hit", "recall", "ndcg@10"))
        spent = plain(item.estimate("milliseconds"), ".0f")
        pairs = plain(item.estimate("pairs"), ".1f")
        yield ""
        yield from wrapped(f"{place:>3}  {name}  ({item.blocks} blocks)", "     ")
        yield (
            f"     hit {short(hit)}  recall {short(recall)}  ndcg@10 {short(ndcg)}  "
            f"{pairs} pairs  {spent} ms"
        )
        if place:
            verdicts = experiment.verdicts[place - 1]
            against = "; ".join(f"{measure} {v.text}" for measure, v in verdicts.items())
            yield f"     against today: {against}"


def _compared_line(name: str, item: Compared) -> str:
    d = item.difference
    places = 0 if item.measure in ("prompt_tokens", "milliseconds") else 3
    bounded = math.isfinite(d.low) and math.isfinite(d.high)
    ends = f"[{d.low:+.{min(places, 2)}f}, {d.high:+.{min(places, 2)}f}]"
    interval = ends if bounded else "[no interval]"
    verdict = item.verdict + (", better" if item.better else ", worse") * (item.verdict == "clear")
    detectable = "none" if isinstance(d.detectable, Unscored) else f"{d.detectable:.{places}f}"
    return (
        f"{name:<19}{item.first:>7.{places}f}{item.second:>7.{places}f}{d.value:>+8.{places}f}  "
        f"{interval:<17}{item.p_value:>6.3f}{d.n:>5}{detectable:>12}  {verdict}"
    )
