"""Arrays of numbers on disk: numpy's own format, mapped into memory when read.

Refused with a ValueError: a file that holds no such array, or objects.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray


def save(path: Path, values: NDArray[Any]) -> None:
    """Write an array. Raises OSError with the disk's own reason, which numpy.save withholds."""
    whole = np.ascontiguousarray(values)
    with path.open("wb") as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(whole))
        file.write(whole.data)


def mapped(path: Path) -> NDArray[np.int64]:
    """The array in a file, read where it is used."""
    loaded: NDArray[np.int64] = np.load(path, mmap_mode="r", allow_pickle=False)
    return np.asarray(loaded)  # still mapped; a plain array's items cost far less
