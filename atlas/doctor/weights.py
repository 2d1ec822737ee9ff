"""The two models that the settings name, and the shipped ones: there, and intact.

Enters: settings and the state folder. Leaves: findings. Every file is read and hashed anew: what
opens a model trusts the checksum of a file whose stamp it knows, and a disk can change bytes
under the same stamp. No model is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from atlas.doctor.finding import Finding, of_error, ok, warn
from atlas.errors import ModelError
from atlas.models import carriers
from atlas.models.description import MODEL, Role, read_compiled, read_folder
from atlas.models.verified import Verified, read_json, sha256
from atlas.settings import Settings

REINSTALL = "install atlas again: pip install -c constraints.txt . in its folder"


class Unremembered(Verified):
    """Checksums of files as they are now."""

    def checksum(self, path: Path) -> str:
        return sha256(path)


def models(settings: Settings, state: Path | None) -> Iterator[Finding]:
    """The named models first, then what else is shipped."""
    verified = Unremembered((state or Path(".atlas")) / "models")
    named: dict[Role, str] = {"encoder": settings.encoder, "reranker": settings.reranker}
    for role, name in named.items():
        if role == "reranker" and name == "none":
            yield ok("reranker", "none: blocks are ordered by the search alone")
            continue
        try:
            yield _named(role, name, verified)
        except ModelError as error:
            yield of_error(role, error, REINSTALL)
    for carrier in carriers.CARRIERS:
        if carrier.name in named.values():
            continue
        try:
            carriers.locate(carrier, verified)
            yield ok("shipped", f"{carrier.name} is intact; this collection does not use it")
        except ModelError as error:
            yield of_error("shipped", error, REINSTALL, level="warn")


def _named(role: Role, name: str, verified: Verified) -> Finding:
    carrier = carriers.find(role, name)
    if carrier is not None:
        carriers.locate(carrier, verified)
        compiled = verified.store / carrier.fingerprint
        more = "" if read_compiled(role, name, compiled, verified) is None else ", compiled here"
        origin = f"{carrier.package} {carrier.version}"
        return ok(role, f"{name} from {origin}{more}: checksums right")
    folder = Path(name)
    if (folder / MODEL).is_file():
        found = read_folder(role, name, folder.absolute(), verified)
        return ok(role, f"{folder}: an ONNX folder, reads {found.max_tokens} tokens")
    if folder.is_dir():
        return ok(role, f"{folder}: a folder for sentence-transformers, compiled when first used")
    if folder.is_absolute() or name.startswith("."):
        raise ModelError(
            f"{role} folder {name} does not exist; set {role} to a folder that does, or to "
            f"{carriers.known(role)}"
        )
    known = read_json(verified.store / "compiled-names.json").get(f"{role} {name}", "")
    if known and read_compiled(role, name, verified.store / str(known), verified) is not None:
        return ok(role, f"{name}: compiled on this machine, checksums right")
    return warn(
        role,
        f"{name} is not shipped and not compiled here yet",
        "the first question loads it with sentence-transformers, from this machine or a model hub; "
        f"if the name is a mistake, take {carriers.known(role)}",
    )
