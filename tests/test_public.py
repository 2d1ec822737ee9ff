"""The public surface: what `atlas` exports, and that it works from Python."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from small import QUESTION, collection, use_fakes

import atlas
from atlas import Assistant, Collection, Scope, Trace


def test_the_exports_are_what_they_say() -> None:
    assert atlas.__all__ == ["Assistant", "Collection", "Scope", "Trace", "__version__"]
    for name in atlas.__all__:
        assert getattr(atlas, name) is not None


def test_the_exports_are_the_classes_of_their_modules() -> None:
    from atlas import assistant, records
    from atlas import collection as collections

    assert Assistant is assistant.Assistant
    assert Collection is collections.Collection
    assert (Scope, Trace) == (records.Scope, records.Trace)


def test_a_name_that_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'atlas' has no attribute 'Asistant'"):
        atlas.Asistant  # noqa: B018


def test_a_star_import_brings_the_exports_and_no_more() -> None:
    names: dict[str, object] = {}
    exec("from atlas import *", names)
    assert set(names) - {"__builtins__"} == set(atlas.__all__)


def test_importing_atlas_alone_is_light() -> None:
    program = "import atlas, sys; print(sorted(m for m in sys.modules if m.startswith('atlas')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"['atlas']"


def test_a_collection_is_asked_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)
    root = collection(tmp_path / "c")
    with Assistant.open(root) as assistant:
        trace = assistant.ask(QUESTION, Scope(reader="sales", date=date(2026, 3, 2)))
    assert isinstance(trace, Trace)
    assert trace.status == "answered"
    assert "3 years" in trace.values["answer"]
    assert trace.values["scope"]["reader"] == "sales"
