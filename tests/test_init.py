"""`atlas init`: a collection that works at once, or nothing at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from atlas import starter
from atlas.cli import cli
from atlas.collection import Collection
from atlas.errors import AtlasError, UsageError
from atlas.measure.cases import Labels, check_cases, load_cases
from atlas.settings import Settings, load_settings
from atlas.starter import write_starter

SOURCE = Path(starter.__file__).parent / "collection"
FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*") if path.is_file())


def init(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["init", *arguments])


def tree(root: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


# ---- what is written ------------------------------------------------------------------------


def test_the_files_are_copied_as_they_are_into_a_new_folder(tmp_path: Path) -> None:
    result = init(str(tmp_path / "a" / "new"))
    assert result.exit_code == 0, result.output
    assert tree(tmp_path / "a" / "new") == tree(SOURCE)
    assert sorted(os.listdir(tmp_path / "a")) == ["new"]


@pytest.mark.parametrize("held", [[], [".git"]])
def test_an_empty_folder_is_filled_and_stays_the_same_folder(
    tmp_path: Path, held: list[str]
) -> None:
    for name in held:
        (tmp_path / name).mkdir()
    inode = tmp_path.stat().st_ino
    write_starter(tmp_path)
    assert tmp_path.stat().st_ino == inode
    assert tree(tmp_path) == tree(SOURCE)


def test_it_says_what_was_made_and_what_to_do_next(tmp_path: Path) -> None:
    lines = init(str(tmp_path / "my coffee")).stdout.splitlines()
    assert lines[0].startswith(f"{len(FILES)} files in {tmp_path}/my coffee: ")
    assert "cases/core.yaml" in lines[0]
    assert [line.split()[:2] for line in lines[2:]] == [
        ["atlas", "ask"],
        ["atlas", "check"],
        ["atlas", "measure"],
    ]
    assert all(f"-C '{tmp_path}/my coffee'" in line for line in lines[2:])


def test_the_commands_for_this_folder_need_no_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    values = json.loads(init(".", "--json").stdout)
    assert sorted(values["files"]) == FILES
    assert values["next"][1] == "atlas check"
    assert (tmp_path / "atlas.yaml").is_file()


# ---- what is refused ------------------------------------------------------------------------


def refused(result: Result, problem: str) -> None:
    assert result.exit_code == 2
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert problem in line


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path: Path) -> None:
    for name in ("b", "a", ".c", "e", "d"):
        (tmp_path / name).touch()
    refused(init(str(tmp_path)), "is not empty (it holds .c, a, b and 2 more)")
    assert sorted(os.listdir(tmp_path)) == [".c", "a", "b", "d", "e"]


def test_a_file_and_a_link_to_nowhere_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    refused(init(str(tmp_path / "file")), "is a file")
    refused(init(str(tmp_path / "file" / "below")), "is a file or lies in one")
    refused(init(str(tmp_path / "link")), "is a link that leads nowhere")
    assert not (tmp_path / "gone").exists()


def test_a_name_that_is_empty_is_not_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(init(" "), "the folder's name is empty")
    assert list(tmp_path.iterdir()) == []


def test_a_second_time_is_refused(tmp_path: Path) -> None:
    write_starter(tmp_path / "c")
    with pytest.raises(UsageError, match="is not empty"):
        write_starter(tmp_path / "c")


# ---- whole or not at all --------------------------------------------------------------------


@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize("step", ["write_bytes", "rename"])
def test_whatever_the_disk_refuses_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existed: bool, step: str
) -> None:
    target = tmp_path / "deep" / "c"
    if existed:
        target.mkdir(parents=True)
    calls = 0

    def full(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError(28, "No space left on device")
        real(*_)

    owner = Path if step == "write_bytes" else os
    real = getattr(owner, step)
    monkeypatch.setattr(owner, step, full)
    with pytest.raises(AtlasError, match=r"No space left on device\); nothing was left behind"):
        write_starter(target)
    assert calls == 3
    assert list(tmp_path.rglob("*")) == ([target.parent, target] if existed else [])


def test_an_interruption_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupt)
    assert init(str(tmp_path / "c")).exit_code == 130
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_takes_no_more_bytes_is_named(tmp_path: Path) -> None:
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))\n"
        "from atlas.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, "init", str(tmp_path / "c")],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    [line] = done.stderr.decode().splitlines()
    assert "(File too large); nothing was left behind" in line
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_named() -> None:
    refused(init("/proc/atlas-init"), "/proc/atlas-init: the starter collection could not be")


def test_what_appears_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.rename

    def other(source: Path, target: Path) -> None:
        (tmp_path / "atlas.yaml").write_text("title: theirs\n")
        real(source, target)

    monkeypatch.setattr(os, "rename", other)
    with pytest.raises(AtlasError, match=r"atlas\.yaml has appeared there"):
        write_starter(tmp_path)
    assert tree(tmp_path) == {"atlas.yaml": b"title: theirs\n"}


# ---- what it holds --------------------------------------------------------------------------


def test_its_settings_are_valid_and_name_every_key_there_is(tmp_path: Path) -> None:
    settings = load_settings(SOURCE)
    assert settings.as_of is not None
    text = (SOURCE / "atlas.yaml").read_text(encoding="utf-8")
    for field in fields(Settings):
        assert f"\n{field.name}:" in text or f"\n# {field.name}:" in text, field.name


def test_a_setting_that_is_switched_off_shows_its_shipped_value(tmp_path: Path) -> None:
    lines = (SOURCE / "atlas.yaml").read_text(encoding="utf-8").splitlines()
    examples = ("readers", "sample", "chat", "judge")
    shown = []
    for line in lines:
        name, colon, rest = line.removeprefix("# ").partition(":")
        if line.startswith("# ") and colon and hasattr(Settings(), name) and name not in examples:
            shown.append(name)
            assert rest.split("#")[0].strip() == str(getattr(Settings(), name)), name
    assert len(shown) > 10


def test_its_documents_and_cases_hold_together() -> None:
    collection = Collection(
        root=SOURCE, settings=load_settings(SOURCE), state=SOURCE / "none", sample=False
    )
    documents = collection.documents
    assert [document.warnings for document in documents] == [()] * 4
    cases = load_cases(SOURCE)
    held_out = load_cases(SOURCE, "heldout")
    check_cases((*cases, *held_out), Labels(documents))
    assert {case.expect for case in cases if case.core} == {"answer", "abstain", "clarify"}
    assert len(cases) == 6
    assert len(held_out) == 2
    older = {name for document in documents for name in document.metadata.supersedes}
    assert older == {"WARR-2025"}
    assert older < {document.id for document in documents}


def test_it_is_not_about_the_bikes_of_this_repository() -> None:
    for name, data in tree(SOURCE).items():
        assert "bike" not in data.decode().casefold(), name


@pytest.mark.models
def test_it_passes_its_own_check_and_can_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATLAS_STATE", raising=False)
    root = tmp_path / "c"
    write_starter(root)

    def atlas(*arguments: str) -> Result:
        return CliRunner().invoke(cli, [*arguments, "-C", str(root), "--json"])

    result = atlas("check", "--all")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["passed"] == 6
    measured = json.loads(atlas("measure").stdout)
    assert measured["summary"]["hit"]["mean"] == 1.0
    result = atlas("measure", "--held-out")
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)["questions"]) == 2
    result = atlas("doctor")
    assert [f for f in json.loads(result.stdout)["findings"] if f["level"] != "ok"] == []
