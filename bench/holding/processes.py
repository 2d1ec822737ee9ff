"""Commands in processes of their own that can be killed, counted and held back.

Enters: an `Order`. Leaves: a `Done` with exit code and output. A process leads a group of its own,
so that a kill takes all that it started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

LAUNCHER = Path(__file__).with_name("launcher.py")
PATIENCE_SECONDS = 120.0
"""After this a process hangs, which is a broken promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One call of the command line."""

    arguments: tuple[str, ...]
    stdin: str = ""
    frozen: bool = False
    """Whether `ask` answers from the index as it lies, without an ingest before."""
    largest_file: int | None = None
    """Bytes at which a file cannot grow any more."""
    operation: int | None = None
    """Number of the file operation before which it is killed; 0 to count them."""
    before: str = ""
    """Python to run first, to break something on purpose."""
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a process left."""

    code: int
    """The exit code, or minus the signal."""
    out: str
    err: str
    seconds: float
    operations: int = 0

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def told_in_one_line(self) -> bool:
        """Whether it failed as a program should: one line for a person, no traceback."""
        told = [line for line in self.err.splitlines() if line.startswith("atlas: ")]
        return len(told) == 1 and "Traceback" not in self.err


def plain(*arguments: str, stdin: str = "") -> Done:
    """`python -m atlas` in a fresh process, with real models and nothing prepared."""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "atlas", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env=own_environment(),
    )
    seconds = time.monotonic() - begun
    return Done(code=done.returncode, out=done.stdout, err=done.stderr, seconds=seconds)


def own_environment() -> dict[str, str]:
    """The environment, without a state folder that somebody uses."""
    return {name: value for name, value in os.environ.items() if name != "ATLAS_STATE"}


class Process:
    """A command that is running."""

    def __init__(self, launcher: Launcher, order: Order, number: int) -> None:
        self.launcher = launcher
        self.begun = time.monotonic()
        self.streams = tuple(launcher.folder / f"{number}-{name}" for name in ("in", "out", "err"))
        self.tally = launcher.folder / f"{number}-tally"
        self.streams[0].write_text(order.stdin, encoding="utf-8")
        values = asdict(order) | {
            "streams": [str(path) for path in self.streams],
            "tally": str(self.tally) if order.operation == 0 else "",
        }
        self.id = launcher.tell(values)

    def kill(self) -> None:
        """Kill it and all that it started."""
        os.killpg(self.id, signal.SIGKILL)

    @property
    def running(self) -> bool:
        """Whether it has not ended yet. Not waited for, it keeps its number until then."""
        try:
            status = Path(f"/proc/{self.id}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        return status.rpartition(")")[2].split()[0] not in "ZX"

    def wait(self) -> Done:
        """Wait for its end; one that hangs is killed then, which its code shows."""
        code = self.launcher.tell({"wait": self.id, "patience": PATIENCE_SECONDS})
        seconds = time.monotonic() - self.begun
        out, err = (
            path.read_text("utf-8", "replace") if path.exists() else "" for path in self.streams[1:]
        )
        counted = self.tally.read_text() if self.tally.exists() else "0"
        for path in (*self.streams, self.tally):
            path.unlink(missing_ok=True)
        return Done(code=code, out=out, err=err, seconds=seconds, operations=int(counted))


class Launcher:
    """Makes processes of one kind: with stand-in models or with real ones."""

    def __init__(self, models: str, folder: Path, *, unprivileged: bool = False) -> None:
        self.folder = folder
        self.models = models
        folder.mkdir(parents=True, exist_ok=True)
        environment = own_environment()
        # A fork knows nothing of the threads that a numerical library had begun before it.
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        kind = [models, *(["unprivileged"] if unprivileged else [])]
        self._process = subprocess.Popen(
            [sys.executable, str(LAUNCHER), *kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=folder,
        )
        self._count = 0

    def tell(self, order: dict[str, object]) -> int:
        """Give an order, return the number that it is answered with."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise ChildProcessError("the launcher of processes has ended; see its error above")
        return int(answer)

    def begin(self, order: Order) -> Process:
        self._count += 1
        return Process(self, order, self._count)

    def run(self, order: Order) -> Done:
        """A command from its beginning to its end."""
        return self.begin(order).wait()

    def command(self, *arguments: str, **more: object) -> Done:
        """The same, by its words."""
        return self.run(Order(arguments=arguments, **more))  # type: ignore[arg-type]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)
        self._process.stdout.close()


@contextmanager
def launcher(models: str, folder: Path, *, unprivileged: bool = False) -> Iterator[Launcher]:
    """A launcher for as long as the block runs."""
    made = Launcher(models, folder, unprivileged=unprivileged)
    try:
        yield made
    finally:
        made.close()
