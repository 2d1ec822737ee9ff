"""The child process of `read_pdf`: `python -m atlas.pdf PATH SECONDS BYTES`.

In:  a path, a limit of processor time in seconds, a limit of address space in bytes.
Out: one JSON document on stdout: the Reading as plain values, or {"refused": reason}.
"""

from __future__ import annotations

import json
import logging
import math
import resource
import sys
from collections.abc import Sequence

from pypdf import apply_configuration

from atlas.pdf.document import Refused, read_document
from atlas.pdf.drawing import STEPS_PER_PAGE


def main(arguments: Sequence[str]) -> None:
    """Set the limits, then read; nothing but the result reaches stdout."""
    path, seconds, memory_bytes = arguments[0], math.ceil(float(arguments[1])), int(arguments[2])
    _limit(resource.RLIMIT_CPU, seconds)
    _limit(resource.RLIMIT_AS, memory_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    logging.disable(logging.CRITICAL)
    output, sys.stdout = sys.stdout, sys.stderr
    try:
        with apply_configuration(
            stream_parsing_work_maximum_count=STEPS_PER_PAGE,
            array_maximum_element_count=STEPS_PER_PAGE,
            jbig2dec_binary=None,  # no picture is decoded, so no program is started
            disable_legacy_handling=True,
        ):
            printed = json.dumps(read_document(path))
    except Refused as error:
        printed = json.dumps({"refused": str(error)})
    except MemoryError:
        reason = f"needs more than {memory_bytes / 1e9:.1f} GB of memory to read"
        printed = json.dumps({"refused": f"{reason}; split it or print it to a new PDF"})
    output.write(printed)
    output.flush()


def _limit(kind: int, value: int) -> None:
    """Lower a limit of this process; one that is lower already stays."""
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


if __name__ == "__main__":
    main(sys.argv[1:])
