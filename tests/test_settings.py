"""atlas.yaml: every key optional, every value checked, every complaint with file, line and fix."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from atlas.errors import SettingsError
from atlas.settings import Settings, load_settings


def settings(folder: Path, text: str) -> Settings:
    (folder / "atlas.yaml").write_text(text, encoding="utf-8")
    return load_settings(folder)


def test_without_a_file_and_with_an_empty_one_everything_has_its_default(tmp_path: Path) -> None:
    assert load_settings(tmp_path) == Settings()
    assert settings(tmp_path, "") == Settings()
    assert settings(tmp_path, "k:\n# nothing\n") == Settings()


def test_given_values_are_taken(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        "title: Bikes\nas_of: 2026-03-01\nreaders: [sales]\nsample: [A, B]\nmin_score: 0\n"
        "products:\n  C-3: [city bike]\n  T-7:\n",
    )
    assert found.as_of == date(2026, 3, 1)
    assert found.products == {"C-3": ("city bike",), "T-7": ()}
    assert (found.readers, found.sample, found.min_score) == (("sales",), ("A", "B"), 0)


def test_products_may_be_a_plain_list(tmp_path: Path) -> None:
    assert settings(tmp_path, "products: [C-3, T-7]").products == {"C-3": (), "T-7": ()}


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("blok_size: 500", 1, "unknown setting 'blok_size'; did you mean 'block_size'?"),
        ("title: x\nqqq: 1", 2, "unknown setting 'qqq'; known: title"),
        ("k: many", 1, "k is 'many'; expected a whole number 1 to 100"),
        ("k: 2.5", 1, "expected a whole number"),
        ("k: true", 1, "expected a whole number"),
        ("k: 0", 1, "expected a whole number 1 to 100"),
        ("min_score: 1.5", 1, "expected a number 0 to 1"),
        ("min_score: .nan", 1, "expected a number 0 to 1"),
        ("title: [a]", 1, "expected text"),
        ("prefix: all", 1, "expected both or keyword or vector or none"),
        ("as_of: soon", 1, "expected a date such as 2026-03-01"),
        ("as_of: 2026-01-01 10:00:00", 1, "expected a date"),
        ("title: x\nas_of: 2026-02-30", 2, "cannot be read"),
        ("readers: sales", 1, "expected a list of words"),
        ("readers: [1]", 1, "expected a list of words"),
        ("products: [3]", 1, "expected a list of words"),
        ("products: C-3", 1, "expected `product: [other names]` lines"),
        ("products: {C-3: city bike}", 1, "products.C-3 is 'city bike'; expected a list"),
        ("products: {C-3: 0}", 1, "products.C-3 is 0; expected a list"),
        ("products: {A: [x], B: [X]}", 1, "'X' names both A and B"),
        ("glossary: [a]", 1, "expected `word that people use: word in the documents` lines"),
        ("glossary: {pedelec: 3}", 1, "expected `word that people use"),
        ("block_size: 200\nblock_overlap: 150", 2, "at most half of block_size"),
        ("k: 5\nk: 6", 2, "the key 'k' stands twice"),
        ("k: &x 5", 1, "an anchor or alias"),
        ("just words", 1, "expected settings as `key: value` lines"),
        ("a: [", 1, "not valid YAML"),
    ],
)
def test_a_bad_value_is_named_with_file_line_and_what_was_expected(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'atlas.yaml'}:{line}: ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_a_key(tmp_path: Path) -> None:
    assert settings(tmp_path, "\ufefftitle: Bikes").title == "Bikes"


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "atlas.yaml").write_bytes("title: Bikes".encode("utf-16"))
    with pytest.raises(SettingsError, match="cannot be read as UTF-8 text"):
        load_settings(tmp_path)


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "atlas.yaml").mkdir()
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(tmp_path)


def test_the_fingerprint_changes_with_every_setting() -> None:
    assert Settings().fingerprint() == Settings().fingerprint()
    assert Settings(k=6).fingerprint() != Settings().fingerprint()
    assert Settings(products={"C-3": ("x",)}).fingerprint() != Settings().fingerprint()


def test_only_what_an_index_depends_on_is_in_its_key() -> None:
    assert Settings(k=9, min_score=0.5).index_key() == Settings().index_key()
    assert Settings(block_size=500).index_key() != Settings().index_key()
    assert Settings(prefix="none").index_key() != Settings().index_key()


def test_settings_that_are_a_link_to_nowhere_are_named(tmp_path: Path) -> None:
    (tmp_path / "atlas.yaml").symlink_to(tmp_path / "gone.yaml")
    with pytest.raises(SettingsError, match=r"atlas\.yaml: is a link to a file that is not there"):
        load_settings(tmp_path)
