"""One virtual environment a peer, made once from its pinned requirements."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ATLAS, FLOOR = "atlas", "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A program that is compared."""

    name: str
    title: str
    script: str
    packages: tuple[str, ...] = ()
    """Whose versions the table names."""


PEERS = (
    Peer(name=ATLAS, title="**atlas**", script="with_atlas.py", packages=("atlas",)),
    Peer(name=FLOOR, title="plain script", script="plain.py", packages=("faiss-cpu", "bm25s")),
    Peer(
        name="langchain",
        title="LangChain",
        script="with_langchain.py",
        packages=("langchain-classic", "langchain-community"),
    ),
    Peer(
        name="llamaindex",
        title="LlamaIndex",
        script="with_llamaindex.py",
        packages=("llama-index-core",),
    ),
    Peer(name="haystack", title="Haystack", script="with_haystack.py", packages=("haystack-ai",)),
    Peer(name="txtai", title="txtai", script="with_txtai.py", packages=("txtai", "torch")),
)
FRAMEWORKS = tuple(peer.name for peer in PEERS if peer.name not in (ATLAS, FLOOR))
TITLES = {peer.name: peer.title for peer in PEERS}


def interpreter(peer: Peer, folder: Path) -> Path:
    """The Python of a peer's environment, which is made first where it is missing or outdated.

    atlas runs in the environment that this program runs in.
    """
    if peer.name == ATLAS:
        return Path(sys.executable)
    wanted = HERE / f"requirements-{peer.name}.txt"
    place = folder / peer.name
    python = place / "bin" / "python"
    mark = place / f"installed-{hashlib.sha256(wanted.read_bytes()).hexdigest()[:12]}"
    if not mark.is_file():
        print(f"making the environment {place}", file=sys.stderr)
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(wanted)], check=True)
        mark.touch()
    return python


def versions(peer: Peer, python: Path) -> str:
    """Versions of the packages that make a peer what it is."""
    code = "import sys; from importlib.metadata import version\n"
    code += "print(', '.join(f'{name} {version(name)}' for name in sys.argv[1:]))"
    done = subprocess.run(
        [str(python), "-c", code, *peer.packages], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()
