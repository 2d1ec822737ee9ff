"""The collection of Atlas Bikes is what it is described to be.

What enters: the collection at the repository's root, read through atlas itself. Counts, facts and
the oddities that questions rely on are checked on the text that is searched, not on the sources.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from atlas.blocks import split
from atlas.collection import Collection
from atlas.records import Block, Document

ROOT = Path(__file__).resolve().parent.parent
FACTS: list[dict[str, Any]] = yaml.safe_load(
    (ROOT / "tests" / "collection_facts.yaml").read_text(encoding="utf-8")
)
PDFS = [
    "BROCHURE-C3",
    "DISPLAY-D2",
    "MANUAL-C3",
    "MANUAL-T7",
    "SERVICE-C3",
    "SERVICE-T7",
    "SPEC-C3",
    "SPEC-T7",
    "WARR-T7-R1",
]


@pytest.fixture(scope="module")
def documents() -> dict[str, Document]:
    return {document.id: document for document in Collection.open(ROOT).documents}


@pytest.fixture(scope="module")
def texts(documents: Mapping[str, Document]) -> dict[str, str]:
    return {name: folded(document.text) for name, document in documents.items()}


@pytest.fixture(scope="module")
def blocks(documents: Mapping[str, Document]) -> list[Block]:
    return [block for document in documents.values() for block in split(document)]


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pdfs", ROOT / "tools" / "make_pdfs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_pdfs"] = module
    spec.loader.exec_module(module)
    return module


def folded(text: str) -> str:
    return " ".join(text.split())


def section(document: Document, number: int) -> str:
    [found] = [part for part in document.sections if part.number == number]
    return folded(document.text[found.units[0].start : found.units[-1].end])


def rows(document: Document, number: int) -> list[str]:
    """The table rows of a section without header rows."""
    [found] = [part for part in document.sections if part.number == number]
    return [
        document.text[unit.start : unit.end]
        for unit in found.units
        if unit.kind == "row" and unit.header
    ]


# ---- counts ---------------------------------------------------------------------------------


def test_29_documents_split_into_114_blocks(
    documents: Mapping[str, Document], blocks: list[Block]
) -> None:
    assert len(documents) == 29
    assert len(blocks) == 114


def test_the_nine_documents_of_the_sample_split_into_32_blocks() -> None:
    sample = Collection.open(ROOT, sample=True).documents
    assert len(sample) == 9
    assert sum(len(split(document)) for document in sample) == 32


def test_every_document_reads_without_a_warning(documents: Mapping[str, Document]) -> None:
    assert {name: doc.warnings for name, doc in documents.items() if doc.warnings} == {}


def test_no_block_count_hangs_on_a_few_characters(documents: Mapping[str, Document]) -> None:
    counts = {
        size: sum(len(split(document, size)) for document in documents.values())
        for size in (900, 950, 1000, 1050)
    }
    assert set(counts.values()) == {114}, counts


# ---- facts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fact", FACTS, ids=[fact["id"] for fact in FACTS])
def test_a_fact_stands_where_it_must_and_nowhere_else(
    fact: dict[str, Any], texts: Mapping[str, str]
) -> None:
    for value in fact["values"]:
        assert [name for name in fact["documents"] if value not in texts[name]] == []
        if fact["nowhere_else"] is False:
            continue
        allowed = set(fact["documents"])
        if isinstance(fact["nowhere_else"], list):
            allowed |= set(fact["nowhere_else"])
        pattern = re.compile(rf"(?<![\w.,-]){re.escape(value)}(?!\w)")
        assert {name for name, text in texts.items() if pattern.search(text)} - allowed == set()


def test_fact_ids_are_unique_and_name_known_documents(documents: Mapping[str, Document]) -> None:
    ids = [fact["id"] for fact in FACTS]
    assert len(ids) == len(set(ids))
    assert {name for fact in FACTS for name in fact["documents"]} <= set(documents)


# ---- what questions rely on -----------------------------------------------------------------


def test_the_new_battery_warranty_replaces_the_old_one_without_a_gap(
    documents: Mapping[str, Document],
) -> None:
    old, new = documents["WARR-R1"].metadata, documents["WARR-R2"].metadata
    assert new.supersedes == ("WARR-R1",)
    assert [str(day) for day in (old.valid_from, old.valid_to, new.valid_from, new.valid_to)] == [
        "2025-01-01",
        "2025-12-31",
        "2026-01-01",
        "None",
    ]
    assert "3 years" in section(documents["WARR-R2"], 2)
    assert "up to 3 years" in section(documents["BROCHURE-C3"], 2)
    assert "at least two years" in section(documents["FAQ-CUSTOMERS"], 2)
    for number in (2, 3):
        assert "covered" in section(documents["WARR-FRAME-R1"], number) or "warrants the frame" in (
            section(documents["WARR-FRAME-R1"], number)
        )


def test_only_the_new_terms_say_plainly_how_long_the_c3_battery_is_covered(
    texts: Mapping[str, str],
) -> None:
    three = re.compile(r"(?<!up to )(?<![\w.,-])(3 years|three years|36 months)", re.IGNORECASE)
    assert {name for name, text in texts.items() if three.search(text)} == {
        "WARR-R2",
        "WARR-FRAME-R1",  # the T-7's suspension fork
        "WARR-T7-R1",  # the T-7's drive unit
    }


def test_the_two_entries_for_e417_agree_in_every_number(
    documents: Mapping[str, Document],
) -> None:
    c3, t7 = section(documents["ERR-C3"], 2), section(documents["ERR-T7"], 2)
    assert c3 != t7
    assert sorted(set(re.findall(r"(?<![-\d])\d+ °?\w+", c3))) == ["30 minutes", "45 °C", "58 °C"]
    assert sorted(set(re.findall(r"(?<![-\d])\d+ °?\w+", t7))) == ["30 minutes", "45 °C", "58 °C"]
    negation = re.compile(r"\b(no|not|never|without)\b")
    assert not negation.search(c3)
    assert not negation.search(t7)


def test_the_t7_has_no_e471(texts: Mapping[str, str]) -> None:
    assert [name for name, text in texts.items() if "E-471" in text] == ["ERR-C3"]


def test_the_c3_has_eleven_battery_checks_in_a_table_of_two_pieces(
    documents: Mapping[str, Document],
) -> None:
    document = documents["BATT-CHECK-C3"]
    table = rows(document, 2)
    assert [row.split(" | ")[0] for row in table] == [f"R{number:02}" for number in range(1, 12)]
    pieces = [block for block in split(document) if block.section == 2]
    assert len(pieces) == 2
    assert all(piece.text.startswith("Check | What to look at") for piece in pieces)
    assert "R07" in pieces[0].text
    assert "R11" in pieces[1].text
    assert not re.search(r"\b(eleven|11)\b", document.text)


def test_the_t7_has_another_number_of_checks_and_its_own_r07(
    documents: Mapping[str, Document],
) -> None:
    c3, t7 = rows(documents["BATT-CHECK-C3"], 2), rows(documents["BATT-CHECK-T7"], 2)
    assert len(t7) == 8
    [c3_opened] = [row for row in c3 if "opened" in row]
    [t7_opened] = [row for row in t7 if "opened" in row]
    assert c3_opened.startswith("R07")
    assert t7_opened.startswith("R07")
    assert "48 V" in t7_opened
    assert "24 hours" in c3_opened
    assert "72 hours" in t7_opened


def test_recall_stands_in_a_title_and_in_no_text(documents: Mapping[str, Document]) -> None:
    titled = [name for name, doc in documents.items() if "recall" in doc.title.lower()]
    assert titled == ["BULL-2025-07"]
    for document in documents.values():
        headings = " ".join(words for part in document.sections for words in part.titles)
        assert "recall" not in (document.text + headings).lower()


def test_the_t7_service_manual_says_service_and_never_serviced(texts: Mapping[str, str]) -> None:
    assert len(re.findall(r"\bservice\b", texts["SERVICE-T7"])) >= 5
    assert not re.search(r"servic(ed|ing)", texts["SERVICE-T7"], re.IGNORECASE)


def test_firmware_says_installation_and_no_other_form_of_the_word(
    texts: Mapping[str, str],
) -> None:
    forms = {word.lower() for word in re.findall(r"(?i)\binstall\w*", texts["FIRMWARE-3-2"])}
    assert forms == {"installation"}


def test_prices_are_for_sales_only_and_stand_nowhere_else(
    documents: Mapping[str, Document],
) -> None:
    priced = [name for name, doc in documents.items() if re.search(r"EUR|€|euro", doc.text)]
    assert priced == ["PRICES-2026"]
    assert documents["PRICES-2026"].metadata.readers == ("sales",)
    closed = {name for name, doc in documents.items() if doc.metadata.readers}
    assert closed == {"PRICES-2026", "BULL-2026-01"}
    assert documents["BULL-2026-01"].metadata.readers == ("workshop",)


@pytest.mark.parametrize(
    "absent", ["engine", "top speed", "maximum speed", "C-4", "rider weight", "lorem"]
)
def test_what_nobody_states_stands_nowhere(absent: str, texts: Mapping[str, str]) -> None:
    assert [name for name, text in texts.items() if absent.lower() in text.lower()] == []


def test_no_speed_is_stated_but_that_of_the_walk_assist(texts: Mapping[str, str]) -> None:
    speeds = {name: re.findall(r"[\d.,]+ km/h", text) for name, text in texts.items()}
    assert {name: found for name, found in speeds.items() if found} == {"DISPLAY-D2": ["5 km/h"]}


def test_no_weight_of_a_rider_or_a_load_is_stated_for_the_k1(
    documents: Mapping[str, Document], texts: Mapping[str, str]
) -> None:
    own = [name for name, doc in documents.items() if doc.metadata.products == ("K-1",)]
    weights = [weight for name in own for weight in re.findall(r"[\d.]+ kg", texts[name])]
    assert sorted(weights) == ["1.1 kg", "14.2 kg"]


# ---- PDFs -----------------------------------------------------------------------------------


def test_nine_documents_are_pdfs_of_modest_size() -> None:
    found = sorted((ROOT / "documents").glob("*.pdf"))
    assert [path.stem for path in found] == PDFS
    assert all(path.stat().st_size < 60_000 for path in found)


def test_the_pdfs_are_byte_for_byte_what_the_script_makes(maker: ModuleType) -> None:
    made = maker.make_all()
    assert sorted(path.name for path in made) == sorted(
        name for stem in PDFS for name in (f"{stem}.pdf", f"{stem}.pdf.yaml")
    )
    stale = [path.name for path, data in made.items() if path.read_bytes() != data]
    assert stale == [], "run: python tools/make_pdfs.py"


def test_the_manuals_number_their_front_pages_in_roman(
    documents: Mapping[str, Document],
) -> None:
    for name in ("MANUAL-C3", "MANUAL-T7"):
        assert documents[name].page_labels[:4] == ("i", "ii", "1", "2")


@pytest.mark.parametrize("name", PDFS)
def test_a_pdf_reads_as_its_source_was_written(
    name: str, documents: Mapping[str, Document], maker: ModuleType
) -> None:
    """Columns, page breaks, line-end hyphens, headers and footers leave no trace in the text."""
    source = maker.read_source(ROOT / "tools" / "pdfs" / f"{name}.md")
    document = documents[name]
    expected = source_sections(source.body)
    assert [part.titles[-1] for part in document.sections if part.number] == [
        title for title, _ in expected[1:]
    ]
    for number, (title, units) in enumerate(expected):
        found = [
            folded(document.text[unit.start : unit.end]).removeprefix("• ")
            for part in document.sections
            if part.number == number
            for unit in part.units
        ]
        if "contents" in title:  # the page with the table of contents: its own words come first
            found = found[: len(units)]
        assert found == units, f"{name}, section {number}"


def source_sections(body: str) -> list[tuple[str, list[str]]]:
    """Headings and units of a PDF's source, by simple rules of its own: no shared parser."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    paragraph: list[str] = []

    def close() -> None:
        if paragraph:
            sections[-1][1].append(" ".join(paragraph))
            paragraph.clear()

    for line in [*body.splitlines(), ""]:
        words = line.strip()
        if words.startswith("#"):
            close()
            sections.append((words.lstrip("# "), []))
        elif words.startswith("|"):
            if not set(words) <= set("|- "):
                sections[-1][1].append(" | ".join(c.strip() for c in words.strip("|").split("|")))
        elif words.startswith("<!--"):
            close()
            if "contents" in words:
                sections[-1] = ("contents", sections[-1][1])
        elif words.startswith("- "):
            close()
            paragraph.append(words[2:])
        elif words:
            paragraph.append(words)
        else:
            close()
    return sections
