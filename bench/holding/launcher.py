"""Runs the command line in processes that fork from one that has imported everything.

    python bench/holding/launcher.py stand-in|real [unprivileged]

Enters: one order a line on stdin, as JSON; see `Order` in processes.py. Leaves: one line for each,
the number of the new process, or the exit code of one that was waited for. A fork spares the second
that imports take, so that a kill falls into the work and not into the loading.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
PR_CAPBSET_DROP, CAPABILITIES_OF_FILES = 24, (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


def stand_in() -> None:
    """Let atlas load models that cost nothing; its own decide what is answered."""
    sys.path.insert(0, str(TESTS))
    from fakes import FakeEncoder, FakeReranker
    from pieces import WEIGHTS

    import atlas.answer.decision
    import atlas.assistant
    import atlas.ingest

    atlas.answer.decision.weights = lambda: WEIGHTS
    atlas.assistant.load_encoder = atlas.ingest.load_encoder = lambda name, state: FakeEncoder()
    atlas.assistant.load_both = lambda *names: (FakeEncoder(), FakeReranker())


def load_everything() -> None:
    """What commands import when they need it; but nothing that begins threads."""
    import faiss  # noqa: F401
    import openai.resources  # noqa: F401
    import scipy.special  # noqa: F401
    import tokenizers  # noqa: F401
    import tqdm  # noqa: F401

    import atlas.assistant
    import atlas.cli
    import atlas.cli.answering
    import atlas.cli.asking
    import atlas.cli.building
    import atlas.cli.measuring
    import atlas.documents
    import atlas.embeddings
    import atlas.measure.answers.report
    import atlas.measure.compare
    import atlas.measure.heldout
    import atlas.measure.promote
    import atlas.models.openai_chat  # noqa: F401


def frozen() -> None:
    """Let `ask` answer from the index as it lies on the disk, whatever the documents say now."""
    import atlas.assistant
    from atlas.ingest import open_index

    def as_it_lies(collection: Any, *_: object, **__: object) -> Any:
        index = open_index(collection)
        if index is None:
            raise SystemExit("no index")
        return index

    atlas.assistant.current_index = as_it_lies


CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "shutil.")


def kill_at(operation: int, tally: str) -> None:
    """Be killed right before the file operation of that number; 0 counts them into `tally`."""
    done = 0

    def watch(event: str, details: tuple[Any, ...]) -> None:
        nonlocal done
        if event == "open":
            mode, flags = details[1], details[2]
            wanted = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) or "w" in str(mode)
        else:
            wanted = event.startswith(CHANGES) or event == "sqlite3.connect"
        if not wanted or os.getpid() != me:
            return
        done += 1
        if done == operation:
            os.kill(me, signal.SIGKILL)
        if tally:
            os.pwrite(counter, f"{done:8}".encode(), 0)

    me = os.getpid()
    counter = os.open(tally, os.O_WRONLY | os.O_CREAT) if tally else -1
    sys.addaudithook(watch)


def without_privileges() -> None:
    """Make write bits count for root as well. Holds from the next program on."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in CAPABILITIES_OF_FILES:
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
            raise OSError(ctypes.get_errno(), errno.errorcode.get(ctypes.get_errno(), "prctl"))


def begin(order: dict[str, Any]) -> None:
    """Become what an order asks for, up to the call of the command line."""
    os.setpgid(0, 0)
    os.environ.update(order["environment"])
    for number, path in enumerate(order["streams"]):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        handle = os.open(path, flags, 0o600)
        os.dup2(handle, number)
        os.close(handle)
    if order["largest_file"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["largest_file"],) * 2)
    if order["frozen"]:
        frozen()
    exec(order["before"], {"__name__": "before"})  # what a test breaks on purpose
    if order["operation"] is not None:
        kill_at(order["operation"], order["tally"])
    sys.argv = ["atlas", *order["arguments"]]


def serve() -> None:
    """Take orders until stdin ends; returns only in the processes that were made."""
    for line in sys.stdin.buffer:
        order = json.loads(line)
        if "wait" in order:
            signal.signal(signal.SIGALRM, lambda *_, group=order["wait"]: os.killpg(group, 9))
            signal.setitimer(signal.ITIMER_REAL, order["patience"])  # one that hangs ends too
            code = os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1])
            signal.setitimer(signal.ITIMER_REAL, 0)
            print(code, flush=True)
            continue
        child = os.fork()
        if not child:
            begin(order)
            return
        with contextlib.suppress(OSError):  # it has done so itself
            os.setpgid(child, child)
        print(child, flush=True)
    os._exit(0)


if __name__ == "__main__":
    if "unprivileged" in sys.argv[1:]:
        if not os.geteuid():
            without_privileges()
        os.execv(sys.executable, [sys.executable, __file__, sys.argv[1]])
    if sys.argv[1] == "stand-in":
        stand_in()
    load_everything()
    serve()
    from atlas.cli import main

    code = 1
    try:
        main()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)  # what libraries tidy up at the end was made for a process without forks
