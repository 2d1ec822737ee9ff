"""Several processes at once: two ingests and readers, and the first questions of all."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from holding.editions import COLLECTIONS, EDITION_QUESTIONS, look_of, set_edition
from holding.kills import Bench
from holding.processes import Order

MOST_TURNS = 50
"""Times that the readers of one round ask; they stop when both ingests have ended."""


def two_ingests(bench: Bench, rounds: int, readers: int = 2) -> None:
    """Both end well, one waits or finds nothing to do; readers see the old or the new index."""
    tally: Counter[str] = Counter()
    folder = ("-C", str(bench.root))
    for number in range(rounds):
        bench.edition += 1
        set_edition(bench.root, bench.edition)
        ingests = [bench.launcher.begin(Order(arguments=("ingest", *folder))) for _ in range(2)]
        for turn in range(MOST_TURNS):
            if turn and not any(process.running for process in ingests):
                break
            asking = [
                bench.launcher.begin(
                    Order(
                        arguments=("ask", "--json", *folder),
                        stdin="\n".join(EDITION_QUESTIONS) + "\n",
                        frozen=True,
                        before=bench.before,
                    )
                )
                for _ in range(readers)
            ]
            for process in asking:
                seen = look_of(process.wait())
                right = seen.editions in (
                    {f"ED-{bench.edition - 1}"},
                    {f"ED-{bench.edition}"},
                )
                bench.part.expect(
                    seen.done.code == 0 and right,
                    f"round {number}: a reader saw {sorted(seen.editions)} {seen.done.err[-300:]}",
                )
                tally["new" if seen.editions == {f"ED-{bench.edition}"} else "old"] += 1
        for process in ingests:
            done = process.wait()
            bench.part.expect(done.code == 0, f"round {number}: an ingest: {done.err[-300:]}")
            tally["waited"] += "waiting for another ingest" in done.err
            tally["nothing to do"] += "already current" in done.out
    bench.part.expect(tally["nothing to do"] <= rounds, "both of two ingests found nothing to do")
    bench.part.rows.append(
        (f"two ingests at once, {rounds} times", f"{tally['waited']} waited",
         f"{tally['nothing to do']} had nothing to do", "all ended well")
    )  # fmt: skip
    bench.part.rows.append(
        ("readers meanwhile", f"{tally['old'] + tally['new']} asked", f"{tally['old']} old",
         f"{tally['new']} new")
    )  # fmt: skip


def first_questions(bench: Bench, folder: Path, count: int = 5) -> None:
    """The first questions of all, asked at once where no index is yet."""
    root = COLLECTIONS[bench.kind](folder)
    set_edition(root, 0)
    order = Order(
        arguments=("ask", "--json", "-C", str(root)), stdin="\n".join(EDITION_QUESTIONS) + "\n"
    )
    processes = [bench.launcher.begin(order) for _ in range(count)]
    looks = [look_of(process.wait()) for process in processes]
    for seen in looks:
        bench.part.expect(
            seen.done.code == 0 and seen.editions == {"ED-0"},
            f"first questions at once: {seen.done.code} {seen.done.err[-300:]}",
        )
    same = len({seen.traces for seen in looks}) == 1
    bench.part.expect(same, "first questions at once: answers differ")
    generations = len(list((root / ".atlas" / "full").glob("g-*")))
    bench.part.expect(generations == 1, f"first questions at once leave {generations} generations")
    traces = (root / ".atlas" / "traces.jsonl").read_text("utf-8").splitlines()
    whole = sum(re.fullmatch(r"\{.*\}", line) is not None for line in traces)
    bench.part.expect(
        whole == count * len(EDITION_QUESTIONS), f"first questions at once: {whole} whole traces"
    )
    bench.part.rows.append((f"{count} first questions at once", f"{count} answered", "same", ""))
