"""`init` and `doctor`: a collection to start from, and what is wrong with one."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from pathlib import Path

import click

from atlas.cli.shared import (
    errors_for_people,
    folder_option,
    json_option,
    print_json,
    print_lines,
    sample_option,
)
from atlas.errors import UsageError

FAILED = 1
ALIKE = 10
"""Most lines of one name that are printed; --json has all of them."""


@click.command()
@click.argument("directory", metavar="DIR")
@json_option
@errors_for_people
def init(directory: str, as_json: bool) -> None:
    """Write a small commented collection into DIR, which must be new or empty.

    It holds four short documents of an invented maker, an atlas.yaml with every setting explained,
    and questions that pass `atlas check`. Replace them by your own.
    """
    from atlas.starter import write_starter

    if not directory.strip():
        raise UsageError("the folder's name is empty; name a new or an empty folder, `.` for this")
    target = Path(directory)
    files = write_starter(target)
    where = "" if target == Path() else f" -C {shlex.quote(str(target))}"
    following = (
        f'atlas ask{where} "how long is the warranty on a coffee machine"',
        f"atlas check{where}",
        f"atlas measure{where}",
    )
    if as_json:
        print_json({"folder": str(target), "files": files, "next": following})
        return
    folder = "this folder" if target == Path() else str(target)
    print_lines(
        [
            f"{len(files)} files in {folder}: {', '.join(files)}",
            "try them, then put your own documents in their place:",
            *(f"  {line}" for line in following),
        ]
    )


@click.command()
@folder_option
@sample_option
@json_option
@errors_for_people
def doctor(folder: str, sample: bool, as_json: bool) -> None:
    """Say what is installed, intact and up to date, and what to do where it is not.

    Looks at packages, models and their checksums, settings, documents, cases, the index, the state
    folder, the store, and the chat servers that atlas.yaml names. Changes nothing. Exit code 1 if
    a line says `fail`.
    """
    from atlas.doctor import Finding, examine

    findings: list[Finding] = []
    alike: Counter[str] = Counter()
    for finding in examine(Path(folder), sample=sample):
        findings.append(finding)
        alike[finding.name] += 1
        if not as_json and alike[finding.name] <= ALIKE:
            todo = f"; {finding.todo}" if finding.todo else ""
            print_lines([f"{finding.level:<5} {finding.name}: {finding.found}{todo}"])
    levels = Counter(finding.level for finding in findings)
    if as_json:
        print_json(
            {
                "ok": levels["ok"],
                "warn": levels["warn"],
                "fail": levels["fail"],
                "findings": [
                    {
                        "level": finding.level,
                        "name": finding.name,
                        "found": finding.found,
                        "todo": finding.todo,
                    }
                    for finding in findings
                ],
            }
        )
    else:
        for name, count in alike.items():
            if count > ALIKE:
                more = f"{count - ALIKE} more lines about {name}"
                print_lines([f"      {more}; `--json` prints them all"])
        print_lines([f"{levels['fail']} fail, {levels['warn']} warn, {levels['ok']} ok"])
    if levels["fail"]:
        sys.exit(FAILED)
