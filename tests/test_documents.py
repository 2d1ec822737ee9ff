"""One file -> one document, or one error that names file, line and the fix."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest
from pdf_samples import drawn, lines

from atlas.documents import file_hash, read_document, sidecar
from atlas.errors import DocumentError
from atlas.records import Document

TEXT = "# Battery – care\n\nCharge it at 36 V.\n"


def read(folder: Path, content: str | bytes, name: str = "care.md") -> Document:
    path = folder / "documents" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_document(path, folder)


def refusal(folder: Path, content: str | bytes, name: str = "care.md") -> str:
    with pytest.raises(DocumentError) as caught:
        read(folder, content, name)
    assert caught.value.path.name == name
    assert "\n" not in str(caught.value)
    return caught.value.reason


# ---- encodings ------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_in_any_form_is_read_without_a_warning(tmp_path: Path, encoding: str) -> None:
    document = read(tmp_path, TEXT.encode(encoding))
    assert (document.title, document.text) == ("Battery – care", "Charge it at 36 V.")
    assert document.warnings == ()


def test_a_byte_order_mark_before_front_matter_is_not_part_of_the_text(tmp_path: Path) -> None:
    document = read(tmp_path, b"\xef\xbb\xbf---\nid: X-1\n---\ntext")
    assert (document.id, document.text) == ("X-1", "text")


def test_unmarked_utf16_of_another_script_is_told_by_its_spaces(tmp_path: Path) -> None:
    text = "гарантия на батарею составляет три года\n" * 4
    assert "три года" in read(tmp_path, text.encode("utf-16-le")).text


def test_latin_text_is_read_with_a_warning(tmp_path: Path) -> None:
    document = read(tmp_path, "Räder für 36 V".encode("latin-1"))
    assert document.text == "Räder für 36 V"
    assert document.warnings == ("is not UTF-8 and was read as Windows-1252; save it as UTF-8",)


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x00",
        b"PK\x03\x04\x14\x00\x08\x00\x08\x00!\x00\x00\x00",
        b"plain text with one\x00stray zero byte in it, and more text after it",
        "text".encode("utf-32"),
        b"\x81\x8d\x8f text",
    ],
)
def test_binary_data_is_refused(tmp_path: Path, data: bytes) -> None:
    reason = refusal(tmp_path, data)
    assert "binary data" in reason or "save it as UTF-8" in reason


def test_windows_line_ends_read_like_others(tmp_path: Path) -> None:
    marked = "---\nid: X-1\n---\n" + TEXT
    unix, windows = read(tmp_path, marked), read(tmp_path, marked.replace("\n", "\r\n"))
    assert (unix.id, unix.text, unix.sections) == (windows.id, windows.text, windows.sections)


@pytest.mark.parametrize("content", ["", "\n \n", "---\nid: X\n---\n", "# A title alone\n"])
def test_a_file_without_any_text_is_named(tmp_path: Path, content: str) -> None:
    assert refusal(tmp_path, content) == "care.md:1: holds no text; write some or remove it"


# ---- metadata -------------------------------------------------------------------------------


def test_metadata_is_read_from_front_matter(tmp_path: Path) -> None:
    document = read(
        tmp_path,
        "---\nid: WARR-R2\ntitle: Battery  warranty\nproducts: [C-3]\nreaders: sales\n"
        "valid_from: 2026-01-01\nvalid_to: 2026-12-31\nsupersedes: [WARR-R1]\nkind: policy\n---\n"
        "# Other title\n\ntext",
    )
    metadata = document.metadata
    assert (metadata.id, metadata.title, metadata.kind) == ("WARR-R2", "Battery warranty", "policy")
    assert metadata.products == ("C-3",)
    assert metadata.readers == ("sales",)
    assert (metadata.valid_from, metadata.valid_to) == (date(2026, 1, 1), date(2026, 12, 31))
    assert metadata.supersedes == ("WARR-R1",)
    assert metadata.path == "documents/care.md"


@pytest.mark.parametrize(
    ("front", "line", "problem"),
    [
        ("id: X\ntitel: Y", 3, "unknown key 'titel'; did you mean 'title'?"),
        ("zzz: Y", 2, "unknown key 'zzz'; known: id, title"),
        ("id: [a]", 2, "id is ['a']; expected text"),
        ("title: {a: b}", 2, "expected text"),
        ("id: a b", 2, "id 'a b': expected letters, digits"),
        ("id: ../x", 2, "expected letters, digits"),
        ("products: 3", 2, "products is 3; expected a list of words"),
        ("products: ['']", 2, "expected a list of words"),
        ("products: [C-3, null]", 2, "expected a list of words"),
        ("valid_from: soon", 2, "valid_from is 'soon'; expected a date such as 2026-01-01"),
        ("valid_from: 2026", 2, "expected a date"),
        ("id: X\nvalid_from: 2026-02-30", 3, "'2026-02-30' cannot be read"),
        (
            "valid_from: 2026-02-01\nvalid_to: 2026-01-01",
            3,
            "valid_to 2026-01-01 is before valid_from 2026-02-01",
        ),
        ("id: X\nsupersedes: [X]", 3, "X supersedes itself"),
        ("id: X\nid: Y", 3, "the key 'id' stands twice"),
        ("id: &a X", 2, "an anchor or alias"),
        ("id: X\ntitle: *a", 3, "an anchor or alias"),
        ("id: X\ntitle: a: b", 3, "not valid YAML"),
        ("id: X\ntitle: bell \x07", 3, "not valid YAML: the character U+0007"),
        ("just text", 2, "expected metadata as `key: value` lines"),
        ("- a\n- b", 2, "expected metadata as `key: value` lines"),
    ],
)
def test_bad_metadata_is_named_with_file_and_line(
    tmp_path: Path, front: str, line: int, problem: str
) -> None:
    reason = refusal(tmp_path, f"---\n{front}\n---\ntext")
    assert reason.startswith(f"care.md:{line}: ")
    assert problem in reason


def test_front_matter_that_is_not_closed_is_named(tmp_path: Path) -> None:
    reason = refusal(tmp_path, "---\nid: X\n\n# Title\n\ntext")
    assert reason == "care.md:1: the front matter is not closed; add a line `---`"


SALES = "readers: [sales]"


@pytest.mark.parametrize(
    "content",
    [
        f"\n---\n{SALES}\n---\n", f" ---\n{SALES}\n---\n", f"----\n{SALES}\n----\n",
        f"<!-- kept by sales --> <!-- x -->\n---\nid: X\n{SALES}\n---\n",
        '+++\nreaders = ["sales"]\n+++\n',
    ],
)  # fmt: skip
def test_front_matter_in_the_wrong_place_is_not_read_as_text_for_everyone(
    tmp_path: Path, content: str
) -> None:
    assert "looks like front matter; it must begin in the first line" in refusal(
        tmp_path, f"{content}# Prices\n\nThe discount is 20 %.\n"
    )


@pytest.mark.parametrize(
    "content",
    ["\n---\n\nmore: text\n", "<!-- a note -->\n---\nmore: text\n", "text\n\n---\nid: X\n"],
)
def test_a_rule_above_other_text_is_no_front_matter(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, f"{content}\n# Care\n\nOil it.\n").metadata.readers == ()


@pytest.mark.parametrize("value", ["", "[]", "~", '""'])
def test_readers_without_a_group_are_not_everyone(tmp_path: Path, value: str) -> None:
    found = refusal(tmp_path, f"---\nid: X\nreaders: {value}\n---\n# Prices\n\n20 %.\n")
    assert found == "care.md:3: readers names no group; name one, or leave it out for everyone"


@pytest.mark.parametrize("name", ["manual.PDF.yml", "manual.pdf.yaml", "manual.pdf.yml"])
def test_metadata_of_a_pdf_under_a_wrong_name_keeps_it_out(tmp_path: Path, name: str) -> None:
    pdf = drawn(tmp_path, lambda canvas: canvas.drawString(50, 500, "Price 20"), "manual.PDF")
    pdf.with_name(name).write_text(SALES)
    with pytest.raises(DocumentError) as caught:
        read_document(pdf, tmp_path)
    expected = f"its metadata in {name} is not read; name it manual.PDF.yaml"
    assert caught.value.reason == expected


def test_a_yaml_file_that_may_be_meant_for_a_pdf_is_told(tmp_path: Path) -> None:
    pdf = drawn(tmp_path, lambda canvas: canvas.drawString(50, 500, "Price 20"), "manual.pdf")
    pdf.with_name("manual.yaml").write_text(SALES)
    assert read_document(pdf, tmp_path).warnings[0] == (
        "manual.yaml beside it is not read; metadata of this PDF stands in manual.pdf.yaml"
    )


def test_empty_front_matter_says_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "---\n---\ntext").text == "text"
    assert read(tmp_path, "---\n# only a comment\n---\ntext").id == "care"


def test_a_rule_below_the_text_is_no_front_matter(tmp_path: Path) -> None:
    assert read(tmp_path, "text\n\n---\n\nid: X\n").id == "care"


@pytest.mark.parametrize("written", ["417", "0417", "1.10", "2026-01-01", "1e3"])
def test_an_id_of_digits_is_kept_as_it_is_written(tmp_path: Path, written: str) -> None:
    assert read(tmp_path, f"---\nid: {written}\n---\ntext").id == written


def test_a_title_is_kept_as_it_is_written(tmp_path: Path) -> None:
    assert read(tmp_path, "---\ntitle: 12:30\n---\ntext").title == "12:30"
    assert read(tmp_path, "---\ntitle: No\n---\ntext").title == "No"


def test_the_id_falls_back_to_the_file_name(tmp_path: Path) -> None:
    assert read(tmp_path, TEXT, "Care of bikes (2).md").id == "Care-of-bikes-2"
    assert read(tmp_path, TEXT, "保証.v2.md").id == "v2"


def test_a_file_name_that_makes_no_id_asks_for_one(tmp_path: Path) -> None:
    assert "add a line `id: NAME`" in refusal(tmp_path, TEXT, "保証.md")
    assert read(tmp_path, "---\nid: W-1\n---\ntext", "保証.md").title == "保証"


def test_a_file_name_that_is_no_utf8_can_be_stored_and_printed(tmp_path: Path) -> None:
    document = read(tmp_path, "text", os.fsdecode(b"f\xfcr.md"))
    assert document.id == "f-r"
    assert document.title.encode()
    assert document.metadata.path.encode() == b"documents/f\\udcfcr.md"


def test_the_title_falls_back_to_the_first_heading_then_the_file_name(tmp_path: Path) -> None:
    assert read(tmp_path, "# One\n\n## Two\n").title == "One"
    assert read(tmp_path, "text\n\n## Two\n").title == "Two"
    assert read(tmp_path, "text\n").title == "care"


def test_the_metadata_of_a_pdf_is_checked_in_the_file_beside_it(tmp_path: Path) -> None:
    pdf = drawn(tmp_path, lambda canvas: lines(canvas, ["Unplug the charger."]), "m.pdf")
    assert sidecar(pdf).name == "m.pdf.yaml"
    sidecar(pdf).write_text("id: M-1\nproducts: [C-3]\n")
    assert read_document(pdf, tmp_path).metadata.products == ("C-3",)
    sidecar(pdf).write_text("id: M-1\nproduct: C-3\n")
    with pytest.raises(DocumentError) as caught:
        read_document(pdf, tmp_path)
    expected = "m.pdf.yaml:2: unknown key 'product'; did you mean 'products'?"
    assert caught.value.reason == expected


# ---- files ----------------------------------------------------------------------------------


def test_a_file_that_is_gone_and_a_link_to_nowhere_are_named(tmp_path: Path) -> None:
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere.md")
    with pytest.raises(DocumentError, match=r"gone\.md: cannot be read: No such file"):
        read_document(tmp_path / "gone.md", tmp_path)


def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    (tmp_path / "a.md").touch()
    with pytest.raises(DocumentError, match=r"a\.md: cannot be read: Permission denied"):
        read_document(tmp_path / "a.md", tmp_path)


def test_a_pipe_or_device_is_refused_rather_than_read_for_ever(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "zero.md").symlink_to("/dev/zero")
    for name in ("pipe.md", "zero.md"):
        with pytest.raises(DocumentError, match="is no regular file"):
            read_document(tmp_path / name, tmp_path)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "huge.md").open("wb") as file:
        file.truncate(50_000_001)
    with pytest.raises(DocumentError, match="larger than 50 MB; split it"):
        read_document(tmp_path / "huge.md", tmp_path)


def test_the_hash_covers_the_file_and_the_metadata_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"one")
    first = file_hash(path)
    sidecar(path).write_text("title: x")
    second = file_hash(path)
    sidecar(path).write_text("title: y")
    assert len({first, second, file_hash(path)}) == 3
