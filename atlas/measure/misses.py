"""Rows -> for every label that was not supplied: the stage that lost it, and what beat it.

In the order of the pipeline: `scope` (none of its blocks exists for the question), `search` (none
was among the first `depth` of the search), `rerank` (it was, but out of reach and so not read; or
the search had one among the first k and the new order pushed it out), else the rule of selection
that dropped it, in its own words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from atlas.measure.doors import Opened
from atlas.measure.questions import Questions
from atlas.measure.rows import Row

NOT_READ = "not read, out of reach"


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A label that no supplied block covers."""

    case: str
    kind: str
    question: str
    label: str
    stage: str
    """`scope`, `search`, `rerank`, `select`, or `failed`."""
    reason: str
    """The rule that dropped the block, for `select`; NOT_READ or nothing, for `rerank`; the cause,
    for `failed`."""
    ref: str
    """The label's best block that was seen, or ""."""
    rank: int | None
    """Its rank before selection, from 1."""
    beaten_by: str
    """The best supplied block that is not relevant, or ""."""
    alone: bool
    """Whether the question has no relevant block among those supplied at all."""

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.case,
            "kind": self.kind,
            "label": self.label,
            "stage": self.stage,
            "reason": self.reason,
            "ref": self.ref or None,
            "rank": self.rank,
            "beaten_by": self.beaten_by or None,
            "nothing_found": self.alone,
        }

    def line(self) -> str:
        where = f"{self.ref}, rank {self.rank}" if self.rank else self.label
        beaten = f"; beaten by {self.beaten_by}" if self.beaten_by else ""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.case:<8}{self.stage:<8}{where}{reason}{beaten}"


def misses(rows: Sequence[Row], questions: Questions, opened: Opened) -> tuple[Miss, ...]:
    """Every miss, those of questions with nothing relevant supplied first."""
    found = [miss for row in rows for miss in _of_row(row, questions, opened)]
    return tuple(sorted(found, key=lambda miss: not miss.alone))


def by_stage(found: Sequence[Miss]) -> dict[str, int]:
    """Misses per stage, most frequent first; of the drops each rule counts for itself."""
    rules = Counter(
        f"{m.stage}: {m.reason}" if m.reason and m.stage != "failed" else m.stage for m in found
    )
    return dict(rules.most_common())


def _of_row(row: Row, questions: Questions, opened: Opened) -> Iterator[Miss]:
    supplied = [questions.blocks[ref] for ref in row.supplied if ref in questions.blocks]
    beaten_by = next((ref for ref in row.supplied if ref not in row.relevant), "")
    for label in row.case.relevant:
        if any(questions.labels.covers(label, block) for block in supplied):
            continue
        stage, reason, ref, rank = _stage(row, label, questions, opened)
        yield Miss(
            case=row.case.id,
            kind=row.case.kind,
            question=row.case.question,
            label=label,
            stage=stage,
            reason=reason,
            ref=ref,
            rank=rank,
            beaten_by=beaten_by,
            alone=not any(ref in row.relevant for ref in row.supplied),
        )


def _stage(
    row: Row, label: str, questions: Questions, opened: Opened
) -> tuple[str, str, str, int | None]:
    """Stage, reason, block and rank of a label that was lost."""
    trace = row.trace
    if trace is None:
        return "failed", row.error, "", None
    own = [ref for ref in row.relevant if questions.labels.covers(label, questions.blocks[ref])]
    if not own or not _in_scope(own, row, questions, opened):
        return "scope", "", "", None
    dropped = {item["ref"]: item for item in trace["dropped"]}
    seen = [ref for ref in trace["ranked"] if ref in own and ref in dropped]
    if not seen:
        unread = next((ref for ref in trace["ranked"] if ref in own), "")
        rank = trace["ranked"].index(unread) + 1 if unread else None
        if rank and rank <= trace["settings"]["depth"]:
            return "rerank", NOT_READ, unread, rank
        return "search", "", unread, rank
    ref = seen[0]
    rank = trace["ranked"].index(ref) + 1
    reason = dropped[ref]["reason"]
    if (
        reason.startswith("beyond k")
        and _fused_rank(ref, trace, questions) <= trace["settings"]["k"]
    ):
        return "rerank", "", ref, rank
    return "select", reason, ref, rank


def _in_scope(own: Sequence[str], row: Row, questions: Questions, opened: Opened) -> bool:
    """Whether the scope of the question holds one of some blocks."""
    scope = questions.scope_of(row.case)
    seen = opened.understand(row.case.question, scope).seen.blocks
    inside = {ref for ref, ok in zip(questions.blocks, seen, strict=True) if ok}
    return any(ref in inside for ref in own)


def _fused_rank(ref: str, trace: Mapping[str, Any], questions: Questions) -> int:
    """Rank of a block by the search alone, from 1, among those that were scored."""
    place = {name: number for number, name in enumerate(questions.blocks)}
    scored = [
        (-item["fused_score"], place.get(item["ref"], 0), item["ref"])
        for item in (*trace["context"], *trace["dropped"])
    ]
    return 1 + [name for _, _, name in sorted(scored)].index(ref)
