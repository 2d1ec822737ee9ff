"""The blocks in scope -> a filter expression of Milvus that holds for them and for no others.

A scope is made of documents, and documents that agree in products, readers and dates share a
profile, so a few numbers of profiles and documents say it all. Blocks that neither says are
listed one by one, which no scope of atlas needs, so that every mask has an exact expression.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atlas.index import Index


def expression(in_scope: NDArray[np.bool_], index: Index) -> str:
    """The shortest expression for a mask over the blocks of an index; "" where all are in scope.

    Either what is in scope is named or what is not, whichever is shorter.
    """
    if in_scope.all():
        return ""
    named = _named(in_scope, index)
    excluded = f"not ({_named(~in_scope, index)})"
    return min(named, excluded, key=len)


def _named(mask: NDArray[np.bool_], index: Index) -> str:
    """What names exactly the blocks of a mask: whole profiles, whole documents, then blocks."""
    parts = []
    rest = mask.copy()
    for field, groups in (("profile", index.block_profile), ("document", index.block_document)):
        inside = np.bincount(groups[mask], minlength=int(groups.max(initial=0)) + 1)
        whole = (inside > 0) & (inside == np.bincount(groups, minlength=len(inside)))
        chosen = np.unique(groups[rest & whole[groups]])
        if len(chosen):
            parts.append(f"{field} in {_listed(chosen)}")
            rest &= ~whole[groups]
    if rest.any():
        parts.append(f"number in {_listed(np.flatnonzero(rest))}")
    return " or ".join(parts) if parts else "number < 0"


def _listed(numbers: NDArray[np.int64]) -> str:
    return f"[{','.join(map(str, numbers.tolist()))}]"
