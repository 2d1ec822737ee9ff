"""Ruled lines of a page -> groups that may frame a table.

In:  the rules and areas of a page.
Out: lines put together from their parts; groups of lines that meet; stacks of equal lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from atlas.pdf.shapes import Area, Rule

TOUCH = 2.5
"""Lines this close, in points, touch; edges this close are one."""
_LEVEL = 1.2
"""Lines that differ by no more than this are one line drawn in parts."""
_MOST_RULES = 1_500
"""A page with more lines than this is a drawing."""


def straightened(rules: Iterable[Rule]) -> tuple[list[Rule], list[Rule]]:
    """Lines drawn in parts put together: the horizontal ones, then the vertical ones."""
    horizontals = _united([(r.y0, r.x0, r.x1) for r in rules if r.horizontal])
    verticals = _united([(r.x0, r.y0, r.y1) for r in rules if not r.horizontal])
    if len(horizontals) + len(verticals) > _MOST_RULES:
        return [], []
    return (
        [Rule(x0=start, y0=at, x1=end, y1=at) for at, start, end in horizontals],
        [Rule(x0=at, y0=start, x1=at, y1=end) for at, start, end in verticals],
    )


def _united(lines: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Join (place, start, end) that lie on one place and overlap or touch."""
    levels: list[list[tuple[float, float, float]]] = []
    for line in sorted(lines):
        if levels and line[0] - levels[-1][0][0] <= _LEVEL:
            levels[-1].append(line)
        else:
            levels.append([line])
    united: list[tuple[float, float, float]] = []
    for level in levels:
        place, reach_start, reach_end = level[0][0], -math.inf, -math.inf
        for _, start, end in sorted(level, key=lambda part: part[1]):
            if start <= reach_end + TOUCH:
                united.pop()
                reach_end = max(reach_end, end)
            else:
                reach_start, reach_end = start, end
            united.append((place, reach_start, reach_end))
    return united


def touching(horizontals: list[Rule], verticals: list[Rule]) -> list[tuple[list[Rule], list[Rule]]]:
    """Groups of lines that cross or meet: their horizontal and their vertical ones."""
    groups: list[tuple[list[Rule], list[Rule]]] = []
    across_left, down_left = list(horizontals), list(verticals)
    while down_left:
        across: list[Rule] = []
        down = newest = [down_left.pop()]
        while newest:
            met, across_left = _parted(across_left, newest)
            across = across + met
            newest, down_left = _parted(down_left, met)
            down = down + newest
        groups.append((across, down))
    return groups


def _parted(rules: list[Rule], others: list[Rule]) -> tuple[list[Rule], list[Rule]]:
    """Those of the rules that meet one of the others, and the rest."""
    met: list[Rule] = []
    rest: list[Rule] = []
    for rule in rules:
        meets = any(_meet(rule, other) for other in others)
        (met if meets else rest).append(rule)
    return met, rest


def _meet(first: Rule, second: Rule) -> bool:
    horizontal, vertical = (first, second) if first.horizontal else (second, first)
    return (
        horizontal.x0 - TOUCH <= vertical.x0 <= horizontal.x1 + TOUCH
        and vertical.y0 - TOUCH <= horizontal.y0 <= vertical.y1 + TOUCH
    )


def distinct(values: Iterable[float]) -> list[float]:
    """Sorted values, those closer than a touch being one."""
    kept: list[float] = []
    for value in sorted(values):
        if not kept or value - kept[-1] > TOUCH:
            kept.append(value)
    return kept


def band_edges(areas: Iterable[Area]) -> list[Rule]:
    """The upper and lower edges of colored bands that rows may stand on."""
    edges = []
    for area in areas:
        if not area.picture and area.x1 - area.x0 > 40 and 6 <= area.y1 - area.y0 <= 200:
            edges.append(Rule(x0=area.x0, y0=area.y0, x1=area.x1, y1=area.y0))
            edges.append(Rule(x0=area.x0, y0=area.y1, x1=area.x1, y1=area.y1))
    return straightened(edges)[0]


def stacked(rules: list[Rule]) -> list[list[Rule]]:
    """Horizontal lines of one width that stand above each other, two or more, from the top."""
    stacks: list[list[Rule]] = []
    for rule in sorted(rules, key=lambda rule: -rule.y0):
        for stack in stacks:
            if abs(stack[0].x0 - rule.x0) <= 3 and abs(stack[0].x1 - rule.x1) <= 3:
                if stack[-1].y0 - rule.y0 > TOUCH:
                    stack.append(rule)
                break
        else:
            stacks.append([rule])
    return [stack for stack in stacks if len(stack) >= 2 and stack[0].x1 - stack[0].x0 > 60]
