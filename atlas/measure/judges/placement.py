"""Claim whose figures stand in the sources -> whether they stand in the right place there.

The typical wrong answer gives a true figure of something else. Where the passage that holds a
figure fits question and claim much less well than one with another figure of the same kind, the
figure is doubted; where the passage that answers the question holds all figures, the claim is
supported, however it is worded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from atlas.measure.judges import exact
from atlas.measure.judges.claims import shortened
from atlas.measure.judges.figures import Figure
from atlas.measure.judges.judged import Reading
from atlas.measure.judges.meaning import Meaning, Support
from atlas.measure.judges.passages import Passage, holds
from atlas.measure.judges.question import ranked

MARGIN, STEEPNESS = 2.5, 1.5
"""How far, in logits, a passage may fit less well than another, and how fast doubt grows there."""
NAMED = 2.0
"""Logits that a passage is worth more which names the product or code that is asked about."""
DOUBTED = 0.5
"""Share of a score that is left, below which the doubt is reported and counts."""
LEAST = 0.1
"""What a doubt leaves of a score at least."""
DIRECT = 0.9
"""Most that a claim gets for having the figures of the passage that answers the question."""
ANCHORED = 0.8
"""Least score of a claim whose figures all stand in one passage, or in the nearest one."""
_UNRANKED = -99.0


def misplaced(
    meaning: Meaning,
    reading: Reading,
    text: str,
    own: Sequence[Figure],
    may: Sequence[Passage],
    first: bool,
) -> tuple[float, str]:
    """What is left of the claim's score, 0.1 to 1, and the doubt in words, "" without one.

    `own` are the figures that the claim brings in. Bare numbers, and figures of which the claim has
    several of one kind, are left alone. Only the first claim is read with its question.
    """
    codes = exact.codes_of(text, reading.question)
    named = exact.codes_of(reading.question)
    for figure in own:
        alike = sum(item.dimension == figure.dimension for item in own)
        if figure.loose or figure.kind == "number" or alike > 1:
            continue
        holders = [item for item in may if holds(item, figure, codes, exact.stated(item))]
        rivals = [
            item
            for item in may
            if item not in holders and any(exact.rival(figure, other) for other in item.figures)
        ]
        if not holders or not rivals:
            continue
        query = exact.masked(text, figure)
        if first:
            query = f"{reading.question} {query}"
        near = ranked(meaning, query, [*holders, *rivals])
        worth = {
            id(item): near.scores.get(id(item), _UNRANKED) + NAMED * bool(named & item.codes)
            for item in (*holders, *rivals)
        }
        best = max(rivals, key=lambda item: worth[id(item)])
        gap = max(worth[id(item)] for item in holders) - worth[id(best)]
        left = logistic(STEEPNESS * (gap + MARGIN))
        if left < DOUBTED:
            said = shortened(best.text)
            return max(LEAST, left), (
                f"{figure.written} is said of something else; where it fits best: {said!r}"
            )
    return 1.0, ""


def placed(
    meaning: Meaning,
    reading: Reading,
    text: str,
    own: Sequence[Figure],
    may: Sequence[Passage],
    support: Support,
    first: bool,
) -> float:
    """The score that a claim deserves for where its figures stand alone, 0 to 0.9.

    All of them must stand in one passage: with two or more figures in any, with one in the nearest
    passage; or, for the first claim of an answer, in one that answers the question.
    """
    codes = exact.codes_of(text, reading.question)
    whole = [
        item
        for item in may
        if all(holds(item, figure, codes, exact.stated(item)) for figure in own)
    ]
    anchored = len(own) > 1 or any(item is support.nearest[0] for item in whole)
    value = ANCHORED if whole and anchored else 0.0
    if first and whole:
        near = ranked(meaning, reading.question, may)
        scores = [near.scores[id(item)] for item in whole if id(item) in near.scores]
        if scores:
            gap = max(scores) - near.scores[id(near.order[0])]
            value = max(value, DIRECT * logistic(STEEPNESS * (gap + MARGIN)))
    return value


def logistic(value: float) -> float:
    """1 / (1 + exp(-value)), without overflow."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value))))
