"""YAML: plain values with lines; everything that a settings file never needs is refused."""

from __future__ import annotations

from datetime import date

import pytest

from atlas.yaml_files import MAX_CHARACTERS, YamlError, parse


def test_values_know_their_lines() -> None:
    located = parse("a: 1\nb:\n  - x\n  - y: 2\n", first_line=10)
    assert located.value == {"a": 1, "b": ["x", {"y": 2}]}
    assert located.line("a") == 10
    assert located.line("b") == 11
    assert located.line("b", 1, "y") == 13
    assert located.line("b", 9, "gone") == 11


def test_scalars_are_also_kept_as_they_are_written() -> None:
    located = parse("id: 0417\nversion: 1.10\ntime: 12:30\nday: 2026-01-01")
    assert located.written == {
        ("id",): "0417",
        ("version",): "1.10",
        ("time",): "12:30",
        ("day",): "2026-01-01",
    }
    assert located.value["day"] == date(2026, 1, 1)


def test_an_empty_text_is_no_value() -> None:
    assert parse("").value is None
    assert parse("# only a comment\n").value is None


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\nb: 2\na: 3", 3, "the key 'a' stands twice"),
        ("x:\n  a: 1\n  a: 2", 3, "the key 'a' stands twice"),
        ("a: &x 1", 1, "an anchor or alias"),
        ("a: 1\nb: *x", 2, "an anchor or alias"),
        ("a: !!python/object:os.system x", 1, "a value of type"),
        ("a: !!binary aGk=", 1, "a value of type"),
        ("a: 1\n---\nb: 2", 2, "not valid YAML"),
        ("a: [1, 2", 1, "not valid YAML"),
        ("a: 1\nb: [1", 2, "not valid YAML"),
        ("a: 1\nb: [1\n", 2, "not valid YAML"),
        ("a: 1\r\nb: {x\r\n\r\n", 2, "not valid YAML"),
        ("a: 1\n'b\n", 2, "not valid YAML"),
        ("a: 1\n b: 2", 2, "not valid YAML"),
        ("a:\tb: c", 1, "not valid YAML"),
        ("? [a, b]\n: 1", 1, "a key that is not a word"),
        ("a: 1\nday: 2026-13-01", 2, "'2026-13-01' cannot be read: month"),
        ("a: 1\nb: bell\x07", 2, "not valid YAML: the character U+0007"),
        ("a: " + "[" * 200 + "]" * 200, 1, "nested deeper"),
        ("a: " + "[" * 20_000 + "]" * 20_000, 1, "nested deeper"),
    ],
)
def test_what_is_refused_is_named_with_its_line(text: str, line: int, problem: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse(text)
    assert caught.value.line == line
    assert problem in caught.value.problem
    assert "\n" not in str(caught.value)


def test_a_few_lines_cannot_unfold_to_gigabytes() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
    )
    with pytest.raises(YamlError, match="write the value out"):
        parse(bomb)


def test_a_text_of_unreasonable_size_is_refused_unread() -> None:
    with pytest.raises(YamlError, match="more than 5,000,000 characters"):
        parse("#" * (MAX_CHARACTERS + 1))
