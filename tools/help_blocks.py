"""Write the real help texts into README.md, between its `<!-- help … -->` marks.

python tools/help_blocks.py            update README.md
python tools/help_blocks.py --check    write nothing; exit code 1 if a block is out of date
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from click.testing import CliRunner

from atlas.cli import cli

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"<!-- help (?P<command>[\w -]+?) -->\n.*?<!-- /help -->", re.DOTALL)


def help_of(command: str) -> str:
    """What `command --help` prints, in 96 columns."""
    arguments = [*command.split()[1:], "--help"]
    result = CliRunner().invoke(cli, arguments, prog_name="atlas", terminal_width=96)
    return result.output.rstrip()


def updated(text: str) -> str:
    """The README with every help block as it is today."""

    def block(match: re.Match[str]) -> str:
        command = match["command"]
        return f"<!-- help {command} -->\n```\n{help_of(command)}\n```\n<!-- /help -->"

    return BLOCK.sub(block, text)


def main() -> None:
    text = README.read_text(encoding="utf-8")
    new = updated(text)
    if "--check" in sys.argv:
        sys.exit(new != text)
    README.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
