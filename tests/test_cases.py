"""Case files are checked as a whole, and every refusal names file and line."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from small import collection

from atlas.blocks import split
from atlas.collection import Collection
from atlas.errors import CollectionError
from atlas.measure.cases import HELD_OUT, Case, Labels, check_cases, load_cases
from atlas.records import Document, Metadata, Section, Unit

GOOD = """\
- id: A1
  question: how long
  relevant: [WARR-1]
"""


def folder(root: Path, cases: str, heldout: str = "") -> Path:
    for name, text in (("cases", cases), ("heldout", heldout)):
        (root / name).mkdir(parents=True)
        (root / name / "core.yaml").write_text(text, encoding="utf-8")
    return root


def refused(root: Path, cases: str, heldout: str = "") -> str:
    with pytest.raises(CollectionError) as caught:
        load_cases(folder(root, cases, heldout))
    return str(caught.value).removeprefix(f"{root}/")


def test_every_key_is_read(tmp_path: Path) -> None:
    text = """\
- id: A1
  core: true
  question: " how long "
  kind: exact code
  reader: sales
  date: 2025-06-01
  relevant: WARR-1
  evidence: [a quote]
  expect: answer
  facts: [3 years, [a, b]]
  reject: [2 years]
  reference: three
  near_misses: [MANUAL]
  note: a note
"""
    [case] = load_cases(folder(tmp_path, text))
    assert case == Case(
        id="A1",
        question="how long",
        where=f"{tmp_path}/cases/core.yaml:1",
        core=True,
        kind="exact code",
        reader="sales",
        date=date(2025, 6, 1),
        relevant=("WARR-1",),
        evidence=("a quote",),
        facts=(("3 years",), ("a", "b")),
        reject=("2 years",),
        reference="three",
        near_misses=("MANUAL",),
        note="a note",
    )


def test_folders_that_are_empty_or_not_there_hold_no_case(tmp_path: Path) -> None:
    assert load_cases(tmp_path) == ()
    assert load_cases(folder(tmp_path, "# nothing yet\n")) == ()


def test_the_held_out_folder_is_read_by_name(tmp_path: Path) -> None:
    root = folder(tmp_path, GOOD, GOOD.replace("A1", "H1").replace("long", "wide"))
    assert [case.id for case in load_cases(root)] == ["A1"]
    assert [case.id for case in load_cases(root, HELD_OUT)] == ["H1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n", "core.yaml:1: expected a list of cases, each beginning with `- id:`"),
        ("- just text\n", "core.yaml:1: case 1 is no mapping"),
        (GOOD + "  relevent: [X]\n", "core.yaml:4: unknown key 'relevent'; did you mean"),
        (GOOD + "  zzz: 1\n", "core.yaml:4: unknown key 'zzz'; known: id, core, question"),
        (GOOD + "  core: yep\n", "core.yaml:4: core is 'yep'; expected true or false"),
        (GOOD + "  date: soon\n", "core.yaml:4: date is 'soon'; expected a date such as"),
        (GOOD + "  date: 2026-01-01 10:00:00\n", "core.yaml:4: date is datetime"),
        (GOOD + "  expect: guess\n", "core.yaml:4: expect is 'guess'; expected answer, abstain"),
        (GOOD + "  facts: 3 years\n", "core.yaml:4: facts: expected a list"),
        (GOOD + "  facts: [3]\n", "core.yaml:4: facts: 3 is no text"),
        (GOOD + "  facts: [[]]\n", "core.yaml:4: facts:"),
        (GOOD + "  reject: [3]\n", "core.yaml:4: reject: expected a list of texts"),
        (GOOD + "  reject: ['']\n", "core.yaml:4: reject: expected a list of texts"),
        (GOOD + "  evidence: [' ']\n", "core.yaml:4: evidence: expected a list of texts"),
        (GOOD + "  note: 7\n", "core.yaml:4: note of case A1: expected text"),
        (GOOD.replace("A1", "7"), "core.yaml:1: id of case 7: expected text"),
        ("- id: A1\n  relevant: [X]\n", "core.yaml:1: question of case A1: expected text"),
        ("- id: A1\n  question: x\n", "core.yaml:1: case A1 expects an answer but names no source"),
        (GOOD + GOOD.replace("how", "so"), "core.yaml:4: the id A1 is taken at"),
        (GOOD + GOOD.replace("A1", "A2"), "core.yaml:4: the question of A2 also stands at"),
        (GOOD + "  id: A2\n", "core.yaml:4: the key 'id' stands twice"),
        (GOOD + "  note: [\n", "core.yaml:4: not valid YAML"),
    ],
)
def test_a_bad_case_is_refused_with_its_file_and_line(
    tmp_path: Path, text: str, message: str
) -> None:
    assert refused(tmp_path, text).startswith(f"cases/{message}")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    folder(tmp_path, GOOD)
    (tmp_path / "cases" / "more.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CollectionError, match=r"more\.yml:1: cannot be read as UTF-8 text"):
        load_cases(tmp_path)


def test_one_question_may_be_asked_by_another_reader_or_on_another_day(tmp_path: Path) -> None:
    other = GOOD.replace("A1", "A2") + "  reader: sales\n"
    third = GOOD.replace("A1", "A3") + "  date: 2025-01-01\n"
    assert len(load_cases(folder(tmp_path, GOOD + other + third))) == 3


def test_a_question_may_not_stand_in_both_folders(tmp_path: Path) -> None:
    held = GOOD.replace("A1", "H1").replace("how long", "How LONG?") + "  reader: sales\n"
    message = refused(tmp_path, GOOD, held)
    assert message.startswith("cases/core.yaml:1: the question of A1 also stands at")
    assert "heldout/core.yaml:1" in message


def test_an_id_may_not_stand_in_both_folders(tmp_path: Path) -> None:
    message = refused(tmp_path, GOOD, GOOD.replace("long", "wide"))
    assert message.startswith("cases/core.yaml:1: the id A1 is taken at")


# ---- labels ---------------------------------------------------------------------------------


def paged(name: str) -> Document:
    """Two sections on two pages: the first one runs over both."""
    text = "one two three four"
    units = [
        Unit(kind="paragraph", start=start, end=end, page=page)
        for start, end, page in ((0, 3, 1), (4, 7, 2), (8, 18, 2))
    ]
    return Document(
        metadata=Metadata(id=name, title=name, path=f"documents/{name}.pdf"),
        text=text,
        sections=(
            Section(number=1, titles=("One",), units=tuple(units[:2])),
            Section(number=2, titles=("Two",), units=(units[2],)),
        ),
        page_labels=("i", "ii"),
        warnings=(),
        content_hash="",
    )


DOCUMENTS = [paged("MANUAL"), paged("MANUAL-2"), paged("MANUAL-2-1")]


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("MANUAL", ("MANUAL", None, None, None)),
        ("MANUAL-1", ("MANUAL", 1, None, None)),
        ("MANUAL-2", ("MANUAL-2", None, None, None)),
        ("MANUAL-2-2", ("MANUAL-2", 2, None, None)),
        ("MANUAL-2-1", ("MANUAL-2-1", None, None, None)),
        ("MANUAL-2-p0", ("MANUAL", 2, 0, None)),
        ("MANUAL-2-1-p3", ("MANUAL-2", 1, 3, None)),
        ("MANUAL@2", ("MANUAL", None, None, 2)),
        ("MANUAL-2-1@12", ("MANUAL-2-1", None, None, 12)),
    ],
)
def test_a_label_is_resolved_against_the_longest_id(
    label: str, expected: tuple[str, int | None, int | None, int | None]
) -> None:
    found = Labels(DOCUMENTS).parse(label)
    assert found
    assert (found[0].id, *found[1:]) == expected


@pytest.mark.parametrize("label", ["", "MANUA", "MANUALS", "MANUAL-", "MANUAL-x", "MANUAL-1-p"])
def test_what_is_no_label_resolves_to_nothing(label: str) -> None:
    labels = Labels(DOCUMENTS)
    assert labels.parse(label) is None
    assert not labels.exists(label)
    assert labels.text(label) == ""


def test_sections_and_pages_must_exist() -> None:
    labels = Labels(DOCUMENTS)
    assert [labels.exists(f"MANUAL@{page}") for page in (0, 1, 2, 3)] == [False, True, True, False]
    assert [labels.exists(f"MANUAL-{number}") for number in (1, 3)] == [True, False]


def test_a_label_has_the_text_of_its_section_or_page() -> None:
    labels = Labels(DOCUMENTS)
    assert labels.text("MANUAL-1") == "one two"
    assert labels.text("MANUAL@2") == "two three four"
    assert labels.text("MANUAL") == "one two three four"


def test_a_page_covers_the_blocks_that_stand_on_it() -> None:
    labels = Labels(DOCUMENTS)
    blocks = split(DOCUMENTS[0])
    covered = [
        [labels.covers(label, block) for block in blocks] for label in ("MANUAL@1", "MANUAL@2")
    ]
    assert covered == [[True, False], [True, True]]
    assert not labels.covers("MANUAL-2", blocks[1])  # that is another document


# ---- against the documents ------------------------------------------------------------------


@pytest.fixture
def documents(tmp_path: Path) -> tuple[Document, ...]:
    return Collection.open(collection(tmp_path / "c")).documents


def case(**values: object) -> Case:
    values = {"relevant": ("WARR-1",), **values}
    return Case(id="X", question="?", where="x.yaml:7", **values)  # type: ignore[arg-type]


def test_a_case_that_fits_its_documents_passes(documents: tuple[Document, ...]) -> None:
    quote = "The battery  is under\nwarranty for 3 years."
    check_cases([case(evidence=(quote,))], Labels(documents))


@pytest.mark.parametrize("key", ["relevant", "near_misses"])
@pytest.mark.parametrize("label", ["WARRR", "WARR-3", "WARR@1", "WARR-1-q0"])
def test_a_label_that_matches_nothing_is_refused(
    documents: tuple[Document, ...], key: str, label: str
) -> None:
    with pytest.raises(CollectionError, match=rf"x\.yaml:7: {key} '{label}' of X matches nothing"):
        check_cases([case(**{key: (label,)})], Labels(documents))


def test_a_block_that_does_not_exist_is_refused(documents: tuple[Document, ...]) -> None:
    blocks = {block.ref: block for document in documents for block in split(document)}
    check_cases([case(relevant=("WARR-1-p0",))], Labels(documents, blocks))
    with pytest.raises(CollectionError, match="'WARR-1-p1' of X matches nothing"):
        check_cases([case(relevant=("WARR-1-p1",))], Labels(documents, blocks))


@pytest.mark.parametrize(
    "quote", ["The battery is under warranty for 4 years.", "the battery is under", "40 Nm"]
)
def test_an_evidence_quote_must_stand_in_its_source(
    documents: tuple[Document, ...], quote: str
) -> None:
    with pytest.raises(CollectionError, match="an evidence quote of X is in none of its relevant"):
        check_cases([case(evidence=(quote,))], Labels(documents))


def test_a_hyphen_at_a_line_end_is_folded_and_one_within_is_not() -> None:
    document = paged("A")
    text = "war-\nranty E-417 and so on"
    document = Document(
        metadata=document.metadata,
        text=text,
        sections=(
            Section(number=1, titles=(), units=(Unit(kind="paragraph", start=0, end=len(text)),)),
        ),
        page_labels=(),
        warnings=(),
        content_hash="",
    )
    check_cases([case(relevant=("A",), evidence=("warranty E-417",))], Labels([document]))
    with pytest.raises(CollectionError):
        check_cases([case(relevant=("A",), evidence=("E417",))], Labels([document]))
