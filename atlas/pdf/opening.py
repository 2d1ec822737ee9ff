"""A path -> pypdf's reader of the file, mended where its table of objects is damaged.

In:  a path. This runs in the child process, under its limits.
Out: a reader whose pages can be counted, and what had to be mended.
Refused (`Refused`): a file that needs a password or is damaged beyond reading.

pypdf looks for objects by itself where the table that says where they stand is wrong, but gives up
where the end of the file is missing. Such a file, a download that broke off for example, gets an
end that sends pypdf looking.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError
from pypdf.generic import DictionaryObject

PASSWORD = "encrypted: it needs a password; save a copy without one"
CRYPTOGRAPHY = "encrypted with AES; install the package cryptography, or save a copy without"
MENDED = "its end or its table of objects is damaged; what could be found was read"
_OBJECT = re.compile(rb"(?<!\d)(\d{1,7})\s+\d{1,5}\s+obj\b")


class Refused(Exception):
    """The file as a whole cannot be read; the message is the reason."""


class _Reader(PdfReader):
    """pypdf's reader, which asks for no password where nothing but attachments is encrypted."""

    @property
    def is_encrypted(self) -> bool:
        return super().is_encrypted and not self._only_attachments()

    def _only_attachments(self) -> bool:
        entry = self.trailer["/Encrypt"].get_object()
        if not isinstance(entry, DictionaryObject) or entry.get("/V") not in (4, 5):
            return False
        return all(entry.get(name, "/Identity") == "/Identity" for name in ("/StmF", "/StrF"))


def opened(path: str) -> tuple[PdfReader, str]:
    """The reader of a file, and what is wrong with the file or "". Raises `Refused`."""
    try:
        return _counted(_Reader(path)), ""
    except LimitReachedError as error:
        raise Refused(f"over a limit of the reader ({error}); print it to a new PDF") from error
    except Exception as error:
        refuse_whole(error)
        damage = error  # a damaged file makes pypdf raise anything
    try:
        return _counted(_Reader(io.BytesIO(_with_end(Path(path).read_bytes())))), MENDED
    except Exception as error:
        refuse_whole(error)
        what = "no pages" if isinstance(damage, _NoPages) else type(damage).__name__
        raise Refused(f"damaged beyond reading ({what}); print it to a new PDF") from damage


def refuse_whole(error: Exception) -> None:
    """Raise what an error says of the whole file: `Refused` where it is encrypted, MemoryError as
    it is. Any other error is damage, and of one place only."""
    if isinstance(error, MemoryError):
        raise error
    if isinstance(error, FileNotDecryptedError):
        raise Refused(PASSWORD) from error
    if isinstance(error, DependencyError):
        raise Refused(CRYPTOGRAPHY) from error


def claimed_pages(reader: PdfReader) -> int:
    """How many pages the file says that it has, 0 where it does not say."""
    try:
        count = reader.root_object["/Pages"]["/Count"]  # type: ignore[index]
    except MemoryError:
        raise
    except Exception:
        return 0
    return count if isinstance(count, int) else 0


class _NoPages(Exception):
    """The file can be opened and has no page."""


def _counted(reader: PdfReader) -> PdfReader:
    if not len(reader.pages):
        raise _NoPages
    return reader


def _with_end(data: bytes) -> bytes:
    """The file with an end that points at no table and tells how many objects there may be."""
    count = 1 + max((int(number) for number in _OBJECT.findall(data)), default=0)
    return data + b"\ntrailer\n<< /Size %d >>\nstartxref\n1\n%%%%EOF\n" % count
