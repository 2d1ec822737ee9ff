"""The README says what the program does."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from atlas import __version__
from atlas.cli import cli
from atlas.measure.report import MEANINGS
from atlas.measure.rows import NAMES
from atlas.measure.summary import LEAK_RATE
from atlas.settings import Settings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_help_blocks_are_the_real_help() -> None:
    run = subprocess.run([sys.executable, "tools/help_blocks.py", "--check"], cwd=ROOT, check=False)
    assert run.returncode == 0, "run `make help-blocks`"


def test_every_command_has_its_help_in_the_readme() -> None:
    for name in cli.commands:
        assert f"<!-- help atlas {name} -->\n```\nUsage: atlas {name}" in README


def test_every_setting_is_documented_with_its_default() -> None:
    for field in fields(Settings):
        row = re.search(rf"^\| .*`{field.name}`.* \|(.*)\|.*\|$", README, re.MULTILINE)
        assert row, field.name
        default = getattr(Settings(), field.name)
        if isinstance(default, int | float) or (isinstance(default, str) and default):
            assert str(default) in row.group(1), field.name


def test_every_measure_is_documented_and_has_a_meaning_in_the_table() -> None:
    for name in (*NAMES, LEAK_RATE):
        general = re.sub(r"@\d+$", "@k", name)
        assert f"`{name}`" in README or f"`{general}`" in README, name
        assert name in MEANINGS or general in MEANINGS, name


def test_every_file_that_the_readme_names_exists() -> None:
    for name in re.findall(r"`((?:tools|bench|cases|heldout)/[\w./-]+\.\w+)`", README):
        assert (ROOT / name).is_file(), name


def test_every_make_target_in_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([a-z-]+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_changelog_opens_with_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    assert first
    assert first.group(1) == __version__


def test_the_package_has_this_version() -> None:
    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
