"""How much longer do many calls of a chat model take than their own time, and how much memory?

    python bench/answers_speed.py [--calls 600] [--delay 0.05] [--in-flight 8] [--json]

A server in a process of its own answers every call after `--delay` seconds, and keeps several
waiting. `measure-answers` asks it one call per question, on stand-in models, in another process:
everything but the waiting is atlas. Printed:

- ideal: calls * delay / in flight; measured: from the first call to the last answer; their ratio,
  whose bar is 1.2; and the most calls that the server saw at once;
- the same calls made by bare threads, which shows what the server itself allows;
- the peak memory of a run of that many calls and of four times as many.

The first call of a process also imports the client's library; it is made before and told apart.
"""

from __future__ import annotations

import argparse
import http.client
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from surroundings import ROOT, machine

sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT))
REPLY = '{"status": "not_in_sources", "sentences": [], "expression": ""}'
MORE = 4
"""How many times more calls the second run makes, to see whether memory grows with them."""


# ---- the three processes ----------------------------------------------------------------------


def serve(delay: float) -> None:
    """Answer until stdin ends; then print how many calls came and how many at once."""
    from chat_servers import FakeChat, answers

    with FakeChat(answers(REPLY, delay=delay), keeps=True) as server:
        print(server.base_url, flush=True)
        for _ in sys.stdin:  # a line asks how far it is
            print(json.dumps({"calls": len(server.seen), "most": server.most_in_flight}))
            server.seen.clear()
            server.most_in_flight = 0
            sys.stdout.flush()


def ask(base_url: str, calls: int, in_flight: int) -> None:
    """Measure that many answers of one call each; print seconds and memory."""
    import pytest
    from small import SETTINGS, collection, opened, use_fakes

    from atlas.cli.shared import keep_replies
    from atlas.measure.answers.journal import journal
    from atlas.measure.answers.running import Plan, answer_all, digest
    from atlas.measure.doors import Silent
    from atlas.measure.questions import load_questions

    chat = f"answerer: chat\nchat: {{base_url: {base_url}, model: fake, in_flight: {in_flight}}}\n"
    cases = "".join(
        f"- {{id: Q{n}, question: how long is battery {n} under warranty, relevant: [WARR-1], "
        "facts: [[3 years]]}\n"
        for n in range(calls)
    )
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        use_fakes(patch)
        patch.delenv("ATLAS_STATE", raising=False)
        root = collection(Path(folder) / "c", settings=SETTINGS + chat, cases=cases)
        assistant = opened(root)
        keep_replies(assistant)
        questions = load_questions(assistant)
        plan = Plan(ks=(assistant.settings.k,), arms=("real",), at_once=in_flight)
        begun = time.perf_counter()
        assistant.ask("how long is the battery under warranty")
        first = time.perf_counter() - begun
        with journal(Path(folder), digest(plan, questions, assistant)) as kept:
            begun, worked = time.perf_counter(), time.process_time()
            outcomes = answer_all(questions, assistant, plan, kept, Silent())
            seconds, worked = time.perf_counter() - begun, time.process_time() - worked
    failed = [item.error for item in outcomes if item.error]
    if failed:
        raise SystemExit(f"{len(failed)} of {calls} answers failed: {failed[0]}")
    print(json.dumps({"seconds": seconds, "worked": worked, "first": first, "peak": _peak()}))


def bare(base_url: str, calls: int, in_flight: int) -> float:
    """Seconds that threads take for the same calls with nothing around them."""
    address = urlsplit(base_url)
    body = json.dumps({"model": "fake", "messages": [{"role": "user", "content": "x" * 2000}]})

    def call(_: int) -> None:
        line = http.client.HTTPConnection(address.hostname or "", address.port)
        line.request("POST", f"{address.path}/chat/completions", body)
        line.getresponse().read()
        line.close()

    begun = time.perf_counter()
    with ThreadPoolExecutor(in_flight) as pool:
        list(pool.map(call, range(calls)))
    return time.perf_counter() - begun


def _peak() -> int:
    """Most memory that this process held so far, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


# ---- putting them together --------------------------------------------------------------------


@contextmanager
def server(delay: float) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server of its own process; it ends with the block."""
    command = [sys.executable, __file__, "--serve", "--delay", str(delay)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process
        assert process.stdin is not None
        process.stdin.close()


def counted(process: subprocess.Popen[str]) -> dict[str, int]:
    """Calls since this was last asked, and the most at once."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    values: dict[str, int] = json.loads(process.stdout.readline())
    return values


def measure(calls: int, delay: float, in_flight: int) -> dict[str, Any]:
    """Everything that is printed."""
    with server(delay) as (base_url, process):
        alone = bare(base_url, calls, in_flight)
        counted(process)
        runs = []
        for count in (calls, calls * MORE):
            arguments = ["--ask", base_url, "--calls", str(count), "--in-flight", str(in_flight)]
            done = subprocess.run(
                [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, check=True
            )
            runs.append({**json.loads(done.stdout), **counted(process)})
    ideal = calls * delay / in_flight
    few, many = runs
    return {
        "calls": few["calls"] - 1,  # one was made before the run
        "ideal": ideal,
        "bare": alone,
        "seconds": few["seconds"],
        "ratio": few["seconds"] / ideal,
        "ratio_many": many["seconds"] / (ideal * MORE),
        "worked": few["worked"],
        "first": few["first"],
        "most": max(few["most"], many["most"]),
        "calls_many": many["calls"] - 1,
        "peak": few["peak"],
        "peak_many": many["peak"],
        "growth": many["peak"] - few["peak"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=600)
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--in-flight", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ask", metavar="URL", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.delay)
    elif given.ask:
        ask(given.ask, given.calls, given.in_flight)
    else:
        found = measure(given.calls, given.delay, given.in_flight)
        if given.json:
            print(json.dumps(found))
        else:
            show(found)


def show(found: dict[str, Any]) -> None:
    print(machine())
    print(
        f"{found['calls']} calls: ideal {found['ideal']:.2f} s, measured {found['seconds']:.2f} s, "
        f"ratio {found['ratio']:.2f} (bar 1.2); most at once {found['most']}"
    )
    print(
        f"the processor worked {1000 * found['worked'] / found['calls']:.1f} ms a call of it; the "
        f"ideal leaves {1000 * found['ideal'] / found['calls']:.1f} ms"
    )
    print(
        f"bare threads: {found['bare']:.2f} s, ratio {found['bare'] / found['ideal']:.2f}; "
        f"first call of the process {found['first']:.2f} s"
    )
    per_answer = found["growth"] / (found["calls_many"] - found["calls"])
    print(
        f"peak memory {found['peak'] / 1e6:.0f} MB; with {found['calls_many']} calls "
        f"{found['peak_many'] / 1e6:.0f} MB, {per_answer / 1e3:.1f} kB an answer "
        f"(ratio there {found['ratio_many']:.2f})"
    )


if __name__ == "__main__":
    main()
