"""A file of the collection -> Document: its text, its metadata, each checked.

Markdown carries its metadata in front matter, a PDF in `NAME.pdf.yaml` beside it. Everything is
optional: the id falls back to the file name, the title to the first heading or the PDF's own
title, then to the file name. Refused with a DocumentError: unknown keys, values of a wrong type,
dates that contradict, text in an encoding that cannot be told, files above 50 MB.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from atlas.errors import DocumentError
from atlas.markdown import read_markdown
from atlas.metadata import READER_VERSION, printable, relative
from atlas.pdf import read_pdf
from atlas.records import Document, Metadata, Reading
from atlas.yaml_files import Located, YamlError, meant, parse

MARKDOWN = (".md", ".markdown")
PDF = (".pdf",)
MAX_BYTES = 50_000_000
KEYS = ("id", "title", "products", "readers", "valid_from", "valid_to", "supersedes", "kind")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n|)---[ \t]*(?:\n|\Z)", re.DOTALL)
_SPACE = re.compile(r"\s*")
_MOST_KEYS = 20
"""Lines that are looked at for a key of front matter in the wrong place."""
_KEY_LINE = re.compile(rf"[ \t]*[\"']?(?:{'|'.join(KEYS)})[\"']?[ \t]*[:=]")
_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def file_hash(path: Path) -> str:
    """sha256 over a document's bytes, its metadata file's bytes and the reader's version.

    Raises DocumentError where the file cannot be read or is too large.
    """
    digest = hashlib.sha256(f"reader {READER_VERSION}\n".encode())
    for part in (path, sidecar(path)):
        if part == path or part.is_file():
            digest.update(_bytes(part))
            digest.update(b"\0")
    return digest.hexdigest()


def sidecar(path: Path) -> Path:
    """Where a PDF's metadata stands."""
    return path.with_name(path.name + ".yaml")


def read_document(path: Path, root: Path) -> Document:
    """Read one file below the collection `root`. Raises DocumentError."""
    content_hash = file_hash(path)
    if path.suffix.lower() in PDF:
        beside, misnamed = sidecar(path), _misnamed(path)
        text, warning = _text(beside) if beside.is_file() else ("", ())
        located = _load(beside, text) if beside.is_file() else None
        reading = read_pdf(path)
        told = (f"the metadata in {beside.name} {words}" for words in warning)
        reading = replace(reading, warnings=(*told, *misnamed, *reading.warnings))
    else:
        text, warning = _text(path)
        located, body = _front_matter(path, text)
        reading = read_markdown(body)
        reading = replace(reading, warnings=(*warning, *reading.warnings))
    metadata = _metadata(path, root, located, reading)
    empty = not reading.text.strip() and not any(section.titles for section in reading.sections)
    if empty and path.suffix.lower() in MARKDOWN:  # a PDF has said why it has none
        raise DocumentError(path, f"{path.name}:1: holds no text; write some or remove it")
    return Document(
        metadata=metadata,
        text=reading.text,
        sections=reading.sections,
        page_labels=reading.page_labels,
        warnings=reading.warnings,
        content_hash=content_hash,
        page_verdicts=reading.page_verdicts,
    )


def _misnamed(path: Path) -> tuple[str, ...]:
    """A warning of metadata that may be meant for a PDF. Raises DocumentError where it surely is:
    the PDF would be open to readers whom that file shuts out."""
    wanted = sidecar(path)
    if wanted.is_file():
        return ()
    for name in (f"{path.name}.yml", f"{path.stem}.pdf.yaml", f"{path.stem}.pdf.yml"):
        if path.with_name(name).is_file():
            raise DocumentError(path, f"its metadata in {name} is not read; name it {wanted.name}")
    return tuple(
        f"{name} beside it is not read; metadata of this PDF stands in {wanted.name}"
        for name in (f"{path.stem}.yaml", f"{path.stem}.yml")
        if path.with_name(name).is_file()
    )


# ---- text -----------------------------------------------------------------------------------


def _bytes(path: Path) -> bytes:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            os.listdir(path)  # a folder stands here where it could not be listed: says why
        if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device might never end
            raise DocumentError(path, "is no regular file; replace it by one")
        if status.st_size > MAX_BYTES:
            raise DocumentError(path, f"larger than {MAX_BYTES // 1_000_000} MB; split it")
        return path.read_bytes()
    except OSError as error:
        raise DocumentError(path, f"cannot be read: {error.strerror or error}") from None


def _text(path: Path) -> tuple[str, tuple[str, ...]]:
    """The file's text with `\\n` line ends, and a warning where the encoding had to be guessed."""
    data = _bytes(path)
    warnings: tuple[str, ...] = ()
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            text = data.decode("utf-16")
        else:
            text = data.decode(_utf16(data) or "utf-8-sig")
    except UnicodeDecodeError:
        try:
            text = data.decode("cp1252")
        except UnicodeDecodeError as error:
            raise DocumentError(
                path, f"byte {error.start} is neither UTF-8 nor Windows-1252; save it as UTF-8"
            ) from None
        warnings = ("is not UTF-8 and was read as Windows-1252; save it as UTF-8",)
    if "\0" in text:
        line = 1 + text.count("\n", 0, text.index("\0"))
        problem = "holds binary data (a zero byte), not text; save it as UTF-8"
        raise DocumentError(path, f"{path.name}:{line}: {problem}")
    return text.replace("\r\n", "\n").replace("\r", "\n"), warnings


def _utf16(data: bytes) -> str | None:
    """The byte order of UTF-16 text without a mark, told by where the zero bytes stand.

    Latin text has them in every second byte, other scripts at least in spaces and line ends; a
    stray zero byte or zeros in even and odd places are no text.
    """
    even, odd = data[0:400:2], data[1:400:2]
    if odd.count(0) > len(odd) / 20 and not even.count(0):
        return "utf-16-le"
    return "utf-16-be" if even.count(0) > len(even) / 20 and not odd.count(0) else None


def _front_matter(path: Path, text: str) -> tuple[Located | None, str]:
    if not re.match(r"---[ \t]*\n", text):
        _refuse_misplaced(path, text)
        return None, text
    match = _FRONT_MATTER.match(text)
    if match is None:
        raise DocumentError(
            path, f"{path.name}:1: the front matter is not closed; add a line `---`"
        )
    return _load(path, match.group(1), 2), text[match.end() :]


def _refuse_misplaced(path: Path, text: str) -> None:
    """Raises DocumentError for front matter that does not begin in the first line: read as text,
    it would leave the document open to everybody."""
    start = 0
    while True:
        start = _SPACE.match(text, start).end()  # type: ignore[union-attr]  # matches nothing too
        end = text.find("-->", start) if text.startswith("<!--", start) else -1
        if end < 0:
            break
        start = end + 3
    first, *rest = text[start : start + 4000].split("\n")[:_MOST_KEYS]
    if re.fullmatch(r"(?:-{3,}|\+{3,})[ \t]*", first) and any(map(_KEY_LINE.match, rest)):
        line = 1 + text.count("\n", 0, start)
        raise DocumentError(
            path,
            f"{path.name}:{line}: looks like front matter; it must begin in the first line, with "
            "`---` and nothing else, and hold `key: value` lines",
        )


def _load(path: Path, text: str, first_line: int = 1) -> Located:
    try:
        return parse(text, first_line)
    except YamlError as error:
        raise DocumentError(path, f"{path.name}:{error.line}: {error.problem}") from None


# ---- metadata -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fields:
    """Checked access to one document's metadata, with file and line in every complaint."""

    path: Path
    located: Located | None

    def refuse(self, key: str, problem: str) -> DocumentError:
        name = sidecar(self.path).name if self.path.suffix.lower() in PDF else self.path.name
        line = self.located.line(key) if self.located else 1
        return DocumentError(self.path, f"{name}:{line}: {problem}")

    @property
    def values(self) -> dict[str, Any]:
        value = self.located.value if self.located else None
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.refuse("", "expected metadata as `key: value` lines")
        for key in value:
            if key not in KEYS:
                hint = meant(key, KEYS)
                raise self.refuse(key, f"unknown key {key!r}; {hint}")
        return value

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if value is None or value == "":
            return ""
        if self.located is None or isinstance(value, list | dict):
            raise self.refuse(key, f"{key} is {value!r}; expected text")
        return " ".join(self.located.written[(key,)].split())

    def words(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key)
        if key == "readers" and key in self.values and not value:
            raise self.refuse(key, "readers names no group; name one, or leave it out for everyone")
        if value is None:
            return ()
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(i, str) and i.strip() for i in items):
            raise self.refuse(key, f"{key} is {value!r}; expected a list of words")
        return tuple(dict.fromkeys(" ".join(item.split()) for item in items))

    def day(self, key: str) -> date | None:
        value = self.values.get(key)
        if value is None or (isinstance(value, date) and type(value) is date):
            return value
        raise self.refuse(key, f"{key} is {value!r}; expected a date such as 2026-01-01")


def _metadata(path: Path, root: Path, located: Located | None, reading: Reading) -> Metadata:
    given = _Fields(path, located)
    document_id = given.text("id") or re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")
    if not document_id:
        raise given.refuse("id", "no id can be made of the file name; add a line `id: NAME`")
    if not _ID.fullmatch(document_id):
        raise given.refuse("id", f"id {document_id!r}: expected letters, digits, `-`, `.` and `_`")
    first_heading = next((s.titles[-1] for s in reading.sections if s.titles), "")
    heading = "" if path.suffix.lower() in PDF else first_heading
    valid_from, valid_to = given.day("valid_from"), given.day("valid_to")
    if valid_from and valid_to and valid_to < valid_from:
        raise given.refuse("valid_to", f"valid_to {valid_to} is before valid_from {valid_from}")
    supersedes = given.words("supersedes")
    if document_id in supersedes:
        raise given.refuse("supersedes", f"{document_id} supersedes itself; name the older one")
    return Metadata(
        id=document_id,
        title=given.text("title") or reading.title or heading or printable(path.stem),
        path=relative(path, root),
        kind=given.text("kind"),
        products=given.words("products"),
        readers=given.words("readers"),
        valid_from=valid_from,
        valid_to=valid_to,
        supersedes=supersedes,
    )
