"""Long runs of `measure-answers`: killed and gone on with, twice at once, quick and small.

Kills come after a random number of requests and a random wait, so that they are spread over the run
on a machine of any speed. Whoever waits for a reply keeps it before asking again: so a kill can
cost as many replies as calls were in flight, and no more.
"""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_servers import FakeChat, answers, hang
from small import SETTINGS, collection, command, opened, use_fakes
from test_cli_answering import FILES_HERE, without_times, writes

from atlas.assistant import Assistant
from atlas.collection import Collection
from atlas.measure.answers.journal import journal
from atlas.measure.answers.running import Plan, answer_all
from atlas.measure.doors import Silent
from atlas.measure.questions import load_questions

IN_FLIGHT = 4
DELAY = 0.02
QUESTIONS = 24
OPTIONS = ("measure-answers", "--answerer", "chat", "--json")
REAL_ONLY = ("--arms", "real", "--k", "5")
PATIENCE = 30.0
"""Seconds after which a test that hangs has failed."""
WORDS = "lock bolt saddle chain rim light bell brake gear fork".split()
CASES = "".join(
    f"- {{id: Q{n}, question: how long is {WORDS[n % 10]} {n} of the battery under warranty, "
    f"relevant: [WARR-1], facts: [[{3 + n % 2} years]], near_misses: [MANUAL-2]}}\n"
    for n in range(QUESTIONS)
)
BENCH = Path(__file__).resolve().parent.parent / "bench" / "answers_speed.py"
FORKS = """
import json, os
import openai.resources, scipy.special
import atlas.assistant, atlas.cli, atlas.measure.answers.report, atlas.measure.answers.running
import atlas.measure.draws, atlas.models.openai_chat
for line in sys.stdin.buffer:
    order = json.loads(line)
    child = os.fork()
    if not child:
        os.environ["ATLAS_STATE"] = order["state"]
        for number in (1, 2):
            os.dup2(os.open(order["outputs"][number - 1], os.O_WRONLY), number)
        sys.argv = ["atlas", *order["arguments"]]
        break
    print(child, flush=True)
    sys.stdin.buffer.readline()  # until then nobody else can have its number
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
"""
"""A process that has imported everything and makes one of each order, which spares a second."""


def says(seen: Any) -> str:
    """Right for every second question, which wants the 3 years that it quotes."""
    if "END OF SOURCES" not in seen.prompt:
        return '{"status": "unknown", "answer": ""}'
    number = seen.prompt.partition("for 3 years")[0].count("\n[")
    sentence = {"text": "The battery is under warranty for 3 years.", "sources": [number]}
    return json.dumps({"status": "answered", "sentences": [sentence], "expression": ""})


class Forks:
    """Makes one process after the other."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            command(before=FORKS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.orders, self.told = self.process.stdin, self.process.stdout

    def begin(self, arguments: list[str], state: Path) -> int:
        """Begin a process; returns its number."""
        for path in self._outputs(state):
            path.touch()
        outputs = [str(path) for path in self._outputs(state)]
        order = {"arguments": arguments, "state": str(state), "outputs": outputs}
        self.orders.write(json.dumps(order) + "\n")
        self.orders.flush()
        return int(self.told.readline())

    def end(self, state: Path) -> tuple[int, str, str]:
        """Wait for it; returns its exit code and what it printed."""
        self.orders.write("\n")
        self.orders.flush()
        code = int(self.told.readline())
        out, err = (path.read_text("utf-8") for path in self._outputs(state))
        for path in self._outputs(state):
            path.unlink()
        return code, out, err

    def close(self) -> None:
        self.orders.close()
        self.process.wait(PATIENCE)
        self.told.close()

    def _outputs(self, state: Path) -> tuple[Path, Path]:
        return state.with_name("out"), state.with_name("err")


class Runs:
    """Runs of one collection against one server, each in a process and some killed."""

    def __init__(self, forks: Forks, root: Path, server: FakeChat, state: Path) -> None:
        self.forks = forks
        self.root = root
        self.server = server
        self.state = state
        self.lives: list[list[str]] = []
        """The bodies that the server saw from each process, in their order."""

    def kill(self, after: int, wait: float, *options: str) -> bool:
        """Kill a run some seconds after so many requests; False where it was done before."""
        seen = len(self.server.seen)
        number = self.forks.begin([*OPTIONS, "-C", str(self.root), *options], self.state)
        until = time.monotonic() + PATIENCE
        while len(self.server.seen) < seen + after:
            assert time.monotonic() < until
            time.sleep(0.001)
        time.sleep(wait)
        os.kill(number, signal.SIGKILL)
        code, _, _ = self.forks.end(self.state)
        self._live(seen)
        return code == -signal.SIGKILL

    def finish(self, *options: str) -> tuple[dict[str, Any], str]:
        """The JSON of a run that nobody disturbs, and what it says besides."""
        seen = len(self.server.seen)
        self.forks.begin([*OPTIONS, "-C", str(self.root), *options], self.state)
        code, out, err = self.forks.end(self.state)
        assert code == 0, err
        self._live(seen)
        return without_times(json.loads(out)), err

    def _live(self, seen: int) -> None:
        """What came since then, once requests on the line have come in."""
        count = -1
        while count != len(self.server.seen):
            count = len(self.server.seen)
            time.sleep(2 * DELAY)
        came = [one.body for one in self.server.seen[seen:]]
        self.lives.append(  # a kill can cut a request off before its body
            [json.dumps(body, sort_keys=True) for body in came if body]
        )

    def asked(self) -> set[str]:
        return {body for life in self.lives for body in life}

    def asked_again(self) -> list[int]:
        """For every process how many of its requests a later one made again."""
        return [
            len(set(life) & {body for later in self.lives[n + 1 :] for body in later})
            for n, life in enumerate(self.lives)
        ]

    def whole(self) -> None:
        """Nothing is asked twice but what a kill can have cost."""
        assert max(self.asked_again()) <= IN_FLIGHT, self.asked_again()
        for life in self.lives:  # also within one process
            assert len(life) == len(set(life))
        times = Counter(body for life in self.lives for body in life)
        twice = sum(times.values()) - len(times)
        assert twice <= IN_FLIGHT * (len(self.lives) - 1)


@pytest.fixture(scope="module")
def server() -> Iterator[FakeChat]:
    with FakeChat(answers(says, delay=DELAY)) as running:
        yield running


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    making = Forks()
    yield making
    making.close()


@pytest.fixture(scope="module")
def root(server: FakeChat, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection whose index stands."""
    chat = f"chat: {{base_url: {server.base_url}, model: fake, in_flight: {IN_FLIGHT}}}\n"
    made = collection(
        tmp_path_factory.mktemp("kill") / "c", FILES_HERE, settings=SETTINGS + chat, cases=CASES
    )
    with pytest.MonkeyPatch.context() as patch:
        use_fakes(patch)
        patch.delenv("ATLAS_STATE", raising=False)
        opened(made)
    return made


@pytest.fixture(scope="module")
def undisturbed(
    forks: Forks, root: Path, server: FakeChat, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], int]:
    """What a run says that nobody kills, and how many requests it makes."""
    runs = fresh(forks, root, server, tmp_path_factory.mktemp("whole"))
    values, _ = runs.finish()
    rates = values["arms"]["real"]
    assert (rates["accuracy"]["mean"], rates["accuracy"]["scored"]) == (0.5, QUESTIONS)
    assert sum(values["causes"].values()) == QUESTIONS // 2
    runs.whole()
    return values, len(runs.lives[0])


def fresh(forks: Forks, root: Path, server: FakeChat, folder: Path) -> Runs:
    """Runs that know of no other: the index is there and nothing else."""
    state = folder / "state"
    shutil.copytree(root / ".atlas", state)
    return Runs(forks, root, server, state)


# ---- killed -----------------------------------------------------------------------------------


def test_a_run_that_is_killed_again_and_again_ends_like_one_that_is_not(
    forks: Forks,
    root: Path,
    server: FakeChat,
    undisturbed: tuple[dict[str, Any], int],
    tmp_path: Path,
) -> None:
    expected, requests = undisturbed
    draw = random.Random(1)
    runs = fresh(forks, root, server, tmp_path)
    for _ in range(15):
        left = requests - len(runs.asked())
        after = min(draw.randint(0, 10), max(0, left - 2 * IN_FLIGHT))
        assert runs.kill(after, draw.uniform(0, 2 * DELAY))
    assert runs.finish()[0] == expected
    runs.whole()
    assert len(runs.asked()) == requests
    assert sum(map(bool, runs.lives)) > 8  # the kills came in the middle


@pytest.mark.parametrize("seed", range(5))
def test_a_kill_at_any_moment_of_a_fresh_run_loses_nothing(
    forks: Forks,
    root: Path,
    server: FakeChat,
    undisturbed: tuple[dict[str, Any], int],
    tmp_path: Path,
    seed: int,
) -> None:
    expected, requests = undisturbed
    draw = random.Random(seed)
    runs = fresh(forks, root, server, tmp_path)
    after = round((seed + draw.random()) / 5 * (requests - 10))
    assert runs.kill(after, draw.uniform(0, 2 * DELAY))
    assert len(runs.lives[0]) >= after
    assert runs.finish()[0] == expected
    runs.whole()


@pytest.mark.parametrize("lost", ["replies", "answers"])
def test_the_journal_and_the_kept_replies_each_suffice_alone(
    forks: Forks, root: Path, server: FakeChat, tmp_path: Path, lost: str
) -> None:
    whole = fresh(forks, root, server, tmp_path / "whole")
    expected, _ = whole.finish(*REAL_ONLY)
    draw = random.Random(7)
    runs = fresh(forks, root, server, tmp_path / "killed")
    for _ in range(3):
        assert runs.kill(draw.randint(2, 5), draw.uniform(0, 2 * DELAY), *REAL_ONLY)
        shutil.rmtree(runs.state / lost, ignore_errors=True)
    assert runs.finish(*REAL_ONLY)[0] == expected
    runs.whole()
    assert len(runs.lives[-1]) < QUESTIONS
    assert not list((runs.state / "answers").iterdir())


def test_what_was_finished_is_told(
    forks: Forks, root: Path, server: FakeChat, tmp_path: Path
) -> None:
    runs = fresh(forks, root, server, tmp_path)
    assert runs.kill(12, 0.0, *REAL_ONLY)
    [kept] = (runs.state / "answers").iterdir()
    lines = kept.read_bytes().count(b"\n")
    assert 12 - 2 * IN_FLIGHT <= lines <= 12 + IN_FLIGHT
    _, err = runs.finish(*REAL_ONLY)
    assert f"note: {lines} answers were finished before and are not asked again" in err


# ---- twice at once ----------------------------------------------------------------------------


def test_the_same_run_twice_at_once_is_refused_and_the_first_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATLAS_STATE", raising=False)
    with FakeChat(answers(writes), hang) as server:
        chat = f"chat: {{base_url: {server.base_url}, model: fake, in_flight: 1}}\n"
        root = collection(tmp_path / "c", FILES_HERE, settings=SETTINGS + chat, cases=CASES)
        arguments = command(*OPTIONS, "-C", str(root), *REAL_ONLY)
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        first = subprocess.Popen(arguments, **pipes)
        try:
            until = time.monotonic() + PATIENCE
            while len(server.seen) < 2 and time.monotonic() < until:
                time.sleep(0.01)
            second = subprocess.run(arguments, **pipes, timeout=PATIENCE)
            assert (second.returncode, second.stdout) == (2, b"")
            last = second.stderr.decode().splitlines()[-1]
            assert last.startswith("atlas: ")
            assert last.endswith(".jsonl: the same run is going on in another process")
            assert len(server.seen) == 2
            assert first.poll() is None
            assert len(list((root / ".atlas" / "answers").iterdir())) == 1
        finally:
            first.kill()
            first.communicate()


# ---- quick and small --------------------------------------------------------------------------


def speed(*options: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(BENCH), "--json", *options], capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    values: dict[str, Any] = json.loads(done.stdout)
    return values


@pytest.fixture(scope="module")
def timed() -> dict[str, Any]:
    return speed("--calls", "80", "--delay", "0.05", "--in-flight", "8")


def test_calls_are_made_at_once_and_as_many_as_the_settings_say(timed: dict[str, Any]) -> None:
    assert (timed["calls"], timed["calls_many"]) == (80, 320)
    assert timed["most"] == 8
    assert timed["ratio"] < 4  # one after the other it would be 8; a busy machine may double it


def test_memory_hardly_grows_with_the_number_of_calls(timed: dict[str, Any]) -> None:
    assert timed["growth"] < 240 * 25_000  # an outcome with its case takes about 9,000 bytes


def test_no_trace_outlives_its_answer(
    root: Path, server: FakeChat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch)
    monkeypatch.setenv("ATLAS_STATE", str(tmp_path))
    settings = replace(Collection.open(root).settings, answerer="chat")
    assistant = Assistant.open(root, settings=settings)
    questions = load_questions(assistant)
    plan = Plan(ks=(5,), arms=("real",), at_once=2)
    before = traces_in_memory()
    with journal(tmp_path, "run") as kept:
        outcomes = answer_all(questions, assistant, plan, kept, Silent())
    assert len(outcomes) == QUESTIONS
    assert traces_in_memory() - before <= 2


def traces_in_memory() -> int:
    gc.collect()
    parts = {"timings_seconds", "proposed", "ranked"}
    return sum(type(item) is dict and parts <= item.keys() for item in gc.get_objects())
