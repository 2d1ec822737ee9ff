"""Any model that sentence-transformers can load: name or folder -> encoder or reranker.

The library and torch take seconds to import, so a model is compiled once to an ONNX folder in the
state folder, `models/<fingerprint>/`, and later processes run that alone. A compiled model is
kept only if it agrees with the original on probe texts; one that cannot be compiled is run by the
library, with a warning in the log `atlas.models`. Nothing here needs a network, unless the name
is a hub's and its files are not yet on this machine; a hub name stays at the revision that was
compiled. Remote code is never run. Refuses, with ModelError: what the library cannot load, a
folder without a trained scoring head as reranker, other than one score per pair.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from atlas.errors import ModelError
from atlas.models.carriers import Carrier, known, locate
from atlas.models.compiler import CannotCompile, compile_model, quiet
from atlas.models.description import Description, Role, fingerprint_of, read_compiled
from atlas.models.library import LibraryEncoder, LibraryReranker
from atlas.models.onnx import OnnxEncoder, OnnxReranker
from atlas.models.verified import Verified, read_json, write_json

log = logging.getLogger("atlas.models")

_NAMES = "compiled-names.json"
_CONTENT = {".json", ".txt", ".model", ".safetensors", ".bin"}
_OTHER_RUNTIMES = {"onnx", "openvino"}
_ORGANISATION = {"encoder": "sentence-transformers", "reranker": "cross-encoder"}
_HUB_SECONDS = 10
_ABANDONED_SECONDS = 3600
_TOLERANCE = 1e-4
_PROBES = (
    "a",
    "How long is the battery of a C-3 under warranty?",
    "Fehler E-471: Ladegerät prüfen,\tSTECKER ziehen. 日本 ½ naïve",
    "The battery of the city bike is covered for three years from the day of purchase. " * 60,
)

Library = TypeVar("Library", LibraryEncoder, LibraryReranker)
Compiled = TypeVar("Compiled", OnnxEncoder, OnnxReranker)


def load_encoder(
    name: str, carrier: Carrier | None, verified: Verified, *, compiled: bool = True
) -> OnnxEncoder | LibraryEncoder:
    """The encoder of that name or folder; `compiled=False` has the library run it."""
    return _load("encoder", name, carrier, verified, compiled, LibraryEncoder, OnnxEncoder)


def load_reranker(
    name: str, carrier: Carrier | None, verified: Verified, *, compiled: bool = True
) -> OnnxReranker | LibraryReranker:
    """The reranker of that name or folder; `compiled=False` has the library run it."""
    return _load("reranker", name, carrier, verified, compiled, LibraryReranker, OnnxReranker)


def _load(
    role: Role,
    name: str,
    carrier: Carrier | None,
    verified: Verified,
    compiled: bool,
    run_library: Callable[[str, str, Any], Library],
    run_compiled: Callable[[Description, Verified], Compiled],
) -> Library | Compiled:
    folder = Path(name).absolute() if carrier is None and Path(name).is_dir() else None
    if folder is None and (Path(name).is_absolute() or name.startswith(".")):
        raise ModelError(f"{role} folder {name} does not exist; expected a folder or {known(role)}")
    if carrier is not None:
        fingerprint = carrier.fingerprint
    elif folder is not None:
        fingerprint = _fingerprint(role, folder, verified)
    else:
        fingerprint = read_json(verified.store / _NAMES).get(f"{role} {name}", "")
    target = verified.store / fingerprint
    if fingerprint and compiled:
        description = read_compiled(role, name, target, verified)
        if description is not None:
            return run_compiled(description, verified)
    if carrier is not None:
        folder = locate(carrier, verified)
    model = _open_library(role, name, folder)
    if carrier is None and folder is None:
        fingerprint = _fingerprint(role, _downloaded(role, name), verified)
        target = verified.store / fingerprint
    library = run_library(name, fingerprint, model)
    if not compiled:
        return library
    try:
        if read_compiled(role, name, target, verified) is None:
            _compile(role, library, target, verified, run_compiled)
        if carrier is None and folder is None:
            names = read_json(verified.store / _NAMES) | {f"{role} {name}": fingerprint}
            write_json(verified.store / _NAMES, names)
    except (CannotCompile, OSError) as error:
        log.warning("%s %s is run by sentence-transformers, which is slow: %s", role, name, error)
        return library
    description = read_compiled(role, name, target, verified)
    return library if description is None else run_compiled(description, verified)


def _compile(
    role: Role,
    library: LibraryEncoder | LibraryReranker,
    target: Path,
    verified: Verified,
    run_compiled: Callable[[Description, Verified], Compiled],
) -> None:
    """Make `target` whole or not at all; another process may be doing the same."""
    verified.store.mkdir(parents=True, exist_ok=True)
    for left in verified.store.glob("compiling-*"):
        if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(left, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix="compiling-", dir=verified.store))
    try:
        compile_model(role, library.model, library.conventions, work)
        description = read_compiled(role, library.name, work, verified)
        assert description is not None
        difference = _difference(library, run_compiled(description, verified))
        if not difference <= _TOLERANCE:
            raise CannotCompile(f"the compiled model differs from the original by {difference:.1e}")
        for copy in work.glob("optimized-*"):
            copy.unlink()
        if target.exists() and read_compiled(role, library.name, target, verified) is None:
            shutil.rmtree(target)
        if not target.exists():
            os.rename(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _difference(library: object, compiled: object) -> float:
    """The largest difference over the probes, of vectors, or of logits relative to their size."""
    if isinstance(library, LibraryReranker) and isinstance(compiled, OnnxReranker):
        old, new = (model.score(_PROBES[1], _PROBES) for model in (library, compiled))
        return float(np.max(np.abs(old - new) / np.maximum(1, np.abs(old))))
    assert isinstance(library, LibraryEncoder)
    assert isinstance(compiled, OnnxEncoder)
    documents = library.encode_documents(_PROBES) - compiled.encode_documents(_PROBES)
    questions = [library.encode_question(text) - compiled.encode_question(text) for text in _PROBES]
    return float(max(np.abs(documents).max(), np.abs(questions).max()))


def _open_library(role: Role, name: str, folder: Path | None) -> Any:
    try:
        import torch
        from huggingface_hub import HfApi
        from sentence_transformers import CrossEncoder, SentenceTransformer
    except ImportError as error:
        raise ModelError(
            f"{role} {name} needs the package sentence-transformers ({error});"
            " install: pip install sentence-transformers"
        ) from None
    kind = SentenceTransformer if role == "encoder" else CrossEncoder
    options: dict[str, Any] = {
        "device": "cpu",
        "trust_remote_code": False,
        "model_kwargs": {"dtype": torch.float32},
    }
    try:
        with quiet():
            try:
                model = kind(str(folder or name), local_files_only=True, **options)
            except Exception:
                if folder is not None:
                    raise
                # One request first: the library would repeat its own for more than a minute.
                HfApi().model_info(_repository(role, name), timeout=_HUB_SECONDS)
                model = kind(name, **options)
    except Exception as error:  # the library lets through what a dozen others raise
        reason = " ".join(str(error).split())[:300]
        expected = f"{known(role)}, a folder, or a model on this machine or the hub"
        raise ModelError(
            f"{role} {name} cannot be loaded by sentence-transformers ({type(error).__name__}:"
            f" {reason}); expected {'a folder that it can load' if folder else expected}"
        ) from None
    return model.eval()


def _repository(role: Role, name: str) -> str:
    """The hub's full name; the library puts its own organisation before a short one."""
    return name if "/" in name else f"{_ORGANISATION[role]}/{name}"


def _downloaded(role: Role, name: str) -> Path:
    """The folder in the hub's cache that holds the files just loaded."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(_repository(role, name), "config.json")
    if not isinstance(found, str):
        raise ModelError(f"{role} {name} was loaded, but its files are not in the hub's cache")
    return Path(found).parent


def _fingerprint(role: Role, folder: Path, verified: Verified) -> str:
    """Over every file of the folder that can change a result."""
    checksums = {}
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if path.suffix in _CONTENT and path.is_file() and not _OTHER_RUNTIMES & set(place.parts):
            checksums[place.as_posix()] = verified.checksum(path)
    if not checksums:
        raise ModelError(f"{role} folder {folder} holds no model: expected config.json and weights")
    return fingerprint_of(role, checksums, {})
