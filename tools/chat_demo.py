"""Start the small chat model, run one atlas command with it, and stop it again.

python tools/chat_demo.py "a question"                       atlas ask "a question" --answerer chat
python tools/chat_demo.py measure-answers --answerer chat …  that command

The address is the one below `chat` in the atlas.yaml of this repository.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from atlas.cli import cli
from atlas.settings import load_settings

ROOT = Path(__file__).parents[1]
SERVER = Path(__file__).with_name("chat_server.py")


def main() -> None:
    arguments = sys.argv[1:] or ["What does error E-417 mean?"]
    if arguments[0] not in cli.commands:
        arguments = ["ask", " ".join(arguments), "--answerer", "chat"]
    chat = load_settings(ROOT).chat
    assert chat is not None
    port = chat.base_url.rsplit(":", 1)[1].split("/")[0]
    threads = str(os.cpu_count() or 1)
    command = [sys.executable, str(SERVER), "--port", port, "--threads", threads]
    command += ["--parallel", str(chat.in_flight)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert server.stdout is not None
        if not server.stdout.readline().startswith(b"http"):
            sys.exit(f"the server did not start; `python {SERVER.relative_to(ROOT)}` says why")
        atlas = [sys.executable, "-m", "atlas", *arguments]
        sys.exit(subprocess.run(atlas, cwd=ROOT, check=False).returncode)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
