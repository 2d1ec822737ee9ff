"""Wrong answer of the real arm, its trace -> the one cause that it is counted under.

Asked in this order: should there have been an answer at all; was what is missing supplied, and if
not, which stage lost it; if it was, what was made of it. Every wrong answer has exactly one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atlas.measure.answers.outcome import Outcome
from atlas.measure.cases import Case
from atlas.measure.doors import Opened
from atlas.measure.facts import contains
from atlas.measure.misses import misses
from atlas.measure.questions import Questions
from atlas.measure.rows import row_of

INVENTED = "answered what the documents do not say"
CHECKED_OUT = "supplied, but no sentence passed the checks"
DECLINED = "supplied, but declined"
ASKED_BACK = "supplied, but asked back"
REJECTED = "supplied, but a wrong detail was given"
MISSING = "supplied, but left out or got wrong"
NOT_ASKED_BACK = "not asked back"
MEANINGLESS = "asked back about what the documents do not say"


def cause_of(
    case: Case, outcome: Outcome, trace: Mapping[str, Any], questions: Questions, opened: Opened
) -> str:
    """The cause of a wrong answer; `trace` is the one that it was judged by."""
    if case.expect == "abstain":
        return INVENTED if outcome.status == "answered" else MEANINGLESS
    stage = _lost(case, outcome, trace, questions, opened)
    if stage:
        return f"evidence lost: {stage}"
    if case.expect == "clarify":
        return MISSING if outcome.status == "needs_clarification" else NOT_ASKED_BACK
    if outcome.status == "abstained":
        return CHECKED_OUT if outcome.drafted == "answered" else DECLINED
    if outcome.status == "needs_clarification":
        return ASKED_BACK
    return REJECTED if any(line.startswith("holds") for line in outcome.wrong) else MISSING


def _lost(
    case: Case, outcome: Outcome, trace: Mapping[str, Any], questions: Questions, opened: Opened
) -> str:
    """The stage that lost the evidence, or "" where what the answer needs was supplied.

    It was lost where no relevant block was supplied, or where a fact that the answer lacks stands
    in none of the supplied blocks.
    """
    texts = "\n".join(row["text"] for row in trace["context"])
    relevant = set(questions.relevant(case))
    lacking = [
        options
        for options in case.facts
        if not any(contains(outcome.answer, option) for option in options)
        and not any(contains(texts, option) for option in options)
    ]
    none_there = bool(relevant) and not relevant & set(outcome.supplied)
    if not none_there and not lacking:
        return ""
    found = misses([row_of(case, trace, "", questions)], questions, opened)
    if found:
        return f"{found[0].stage} ({found[0].reason})" if found[0].reason else found[0].stage
    return ""  # all labels are there: the fact is worded otherwise than in the documents
