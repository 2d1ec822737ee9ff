"""A grid of settings -> the same questions under every combination, each compared with today's.

Every setup is asked through the same door as a user's question. Embeddings are shared by all of
them. A setup that was measured is kept until the whole table is there, so that a killed experiment
goes on where it was; a finished one starts afresh.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atlas.measure.asking import ask_once
from atlas.measure.cases import Case
from atlas.measure.compare import LEVEL, compare_rows
from atlas.measure.doors import Opened, Progress
from atlas.measure.grids import Setup
from atlas.measure.paired import Difference, holm
from atlas.measure.questions import Questions, blocks_of, load_questions
from atlas.measure.runs import Run, read_whole, run_of, write_whole
from atlas.measure.statistics import Estimate, Unscored, estimate
from atlas.settings import Settings

MEASURES = ("recall", "ndcg@10")
"""What setups are compared by: labels among the supplied blocks, and the order before selection."""

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A setup with what it reached."""

    setup: Setup
    questions: tuple[Values, ...]
    """One entry per question, as in `measure --json`."""
    blocks: int

    def estimate(self, measure: str) -> Estimate:
        """Mean and interval of one measure."""
        scores = [q[measure] for q in self.questions if q.get(measure) is not None]
        failed = sum(q["failed"] is not None for q in self.questions)
        return estimate([float(x) for x in scores], total=len(self.questions), failed=failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A setup against today's settings, by one measure."""

    difference: Difference | Unscored
    p_value: float
    """After Holm's correction over the setups of the table; 1 where there is no difference."""

    @property
    def text(self) -> str:
        if isinstance(self.difference, Unscored):
            return "unscored"
        word = "clear" if self.p_value < LEVEL else "could be chance"
        return f"{self.difference.value:+.3f} {word}"

    def as_json(self) -> dict[str, Any]:
        if isinstance(self.difference, Unscored):
            return {"difference": None, "unscored": self.difference.reason}
        return {
            **self.difference.as_json(),
            "p_value": self.p_value,
            "verdict": "clear" if self.p_value < LEVEL else "could be chance",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """The whole table; `measured[0]` are today's settings."""

    set: str
    measured: tuple[Measured, ...]
    verdicts: tuple[Mapping[str, Verdict], ...]
    """For every setup after the first, by measure."""

    @property
    def failed(self) -> int:
        return sum(q["failed"] is not None for m in self.measured for q in m.questions)

    @property
    def asked(self) -> int:
        return sum(len(m.questions) for m in self.measured)

    def as_json(self) -> dict[str, Any]:
        setups = []
        for place, item in enumerate(self.measured):
            names = ("hit", *MEASURES, "prompt_tokens", "pairs", "milliseconds")
            setups.append(
                {
                    "setup": dict(item.setup.values),
                    "today": place == 0,
                    "blocks": item.blocks,
                    "summary": {name: item.estimate(name).as_json() for name in names},
                    "against_today": self._against(place),
                }
            )
        return {"set": self.set, "setups": setups}

    def _against(self, place: int) -> dict[str, Any] | None:
        """The verdicts of a setup; None for today's settings."""
        if not place:
            return None
        return {name: verdict.as_json() for name, verdict in self.verdicts[place - 1].items()}


def experiment(
    today: Settings,
    setups: Sequence[Setup],
    open_with: Callable[[Settings], Opened],
    progress: Progress,
    folder: str,
    *,
    cases: Sequence[Case],
    told: Callable[[str], None] = lambda line: None,
    looked: Callable[[Run], None] = lambda run: None,
) -> Experiment:
    """Ask the same questions under every setup and under today's settings.

    `open_with` gives an assistant for settings; `looked` is told of every finished run.
    """
    opened_today = open_with(today)
    spans = blocks_of(opened_today.index)
    first = load_questions(opened_today, folder, cases=cases, spans=spans)
    base = Setup(values={}, settings=today)
    others = {setup.settings.fingerprint(): setup for setup in setups if setup.settings != today}
    ordered = [base, *others.values()]
    kept = opened_today.collection.state / "experiments" / _digest(first, opened_today)
    progress.stage(f"{len(ordered)} setups", len(first.cases) * len(ordered))
    measured = []
    for setup in ordered:
        place = kept / f"{setup.settings.fingerprint()}.json"
        known = _known(place)
        if known is None:
            opened = opened_today if setup is base else open_with(setup.settings)
            questions = load_questions(opened, folder, cases=cases, spans=spans)
            run = run_of(ask_once(questions, opened, progress, told), questions, opened)
            looked(run)
            known = {
                "questions": [row.as_json() for row in run.rows],
                "blocks": len(questions.blocks),
            }
            write_whole(place, known)
        else:
            told(f"kept from before: {setup.name()}")
            progress.step(len(known["questions"]))
        measured.append(
            Measured(setup=setup, questions=tuple(known["questions"]), blocks=known["blocks"])
        )
    shutil.rmtree(kept, ignore_errors=True)
    return Experiment(set=first.set, measured=tuple(measured), verdicts=tuple(_verdicts(measured)))


def _verdicts(measured: Sequence[Measured]) -> Iterator[Mapping[str, Verdict]]:
    """Every setup against the first, p-values corrected over the setups for each measure."""
    today, others = measured[0], measured[1:]
    columns = {}
    for name in MEASURES:
        found = [compare_rows(today.questions, other.questions, name) for other in others]
        raw = [1.0 if isinstance(item, Unscored) else item.p_value for item in found]
        columns[name] = [
            Verdict(difference=item, p_value=p) for item, p in zip(found, holm(raw), strict=True)
        ]
    for place in range(len(others)):
        yield {name: column[place] for name, column in columns.items()}


def _digest(questions: Questions, opened: Opened) -> str:
    """Names what setups measured before may be used again for."""
    parts = (
        questions.fingerprint(),
        questions.collection_fingerprint(),
        str(opened.collection.sample),
        questions.set,
        *(str(opened.fingerprints()[name]) for name in ("encoder", "reranker")),
    )
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]


def _known(place: Path) -> dict[str, Any] | None:
    """What a killed experiment measured of a setup, or None."""
    try:
        known = read_whole(place)
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) and {"questions", "blocks"} <= known.keys() else None
