"""Test sets of others become cases whose every id is accounted for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from small import collection

from atlas.blocks import split
from atlas.collection import Collection
from atlas.documents import read_document
from atlas.errors import AtlasError, CollectionError, NothingToMeasure, UsageError
from atlas.markdown import read_markdown
from atlas.measure.cases import Case, Labels, check_cases, load_cases
from atlas.measure.imports import target as target_module
from atlas.measure.imports.beir import import_beir
from atlas.measure.imports.lines import text_lines
from atlas.measure.imports.markdown import clean, document, paragraphs
from atlas.measure.imports.names import safe_ids
from atlas.measure.imports.new_cases import NewCases
from atlas.measure.imports.ragas import import_ragas
from atlas.measure.imports.sources import Sources
from atlas.measure.imports.target import Imported, has_documents, write_cases
from atlas.measure.imports.trec import import_trec

SCIFACT = Path(__file__).resolve().parents[2] / "shared" / "data" / "scifact" / "beir"
CORPUS = [
    {"_id": "31", "title": "Brakes", "text": "Brake pads last for 2000 km."},
    {"_id": "31-2", "title": "", "text": "Discs last for 8000 km."},
    {
        "_id": 7,
        "title": "Bells",
        "text": "# The bell\n\n* rings *loud*\n\n1. <b>once</b> &amp; again",
    },
]
QUERIES = [
    {"_id": "q1", "text": "how long do pads last"},
    {"_id": "q2", "text": "how loud is the bell"},
    {"_id": "q3", "text": "who made it"},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\t31\t1\nq2\t7\t2\nq2\t31\t0\n"


def lines(rows: Iterable[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def beir(
    root: Path,
    corpus: str | bytes = lines(CORPUS),
    queries: str = lines(QUERIES),
    qrels: str = QRELS,
) -> Path:
    (root / "qrels").mkdir(parents=True)
    data = corpus if isinstance(corpus, bytes) else corpus.encode()
    (root / "corpus.jsonl").write_bytes(data)
    (root / "queries.jsonl").write_text(queries, encoding="utf-8", newline="")
    (root / "qrels" / "test.tsv").write_text(qrels, encoding="utf-8", newline="")
    return root


def summary(cases: Iterable[Case]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(case.id, case.question, case.relevant) for case in cases]


def snapshot(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def many(count: int) -> tuple[list[Any], list[Any], list[str]]:
    """Corpus, queries and qrels rows of equal number."""
    corpus = [{"_id": f"d{n}", "title": "", "text": f"text {n}"} for n in range(count)]
    queries = [{"_id": f"q{n}", "text": f"question {n}"} for n in range(count)]
    return corpus, queries, [f"q{n}\td{n}\t1" for n in range(count)]


# ---- BEIR ---------------------------------------------------------------------------------------


def test_a_beir_folder_becomes_a_collection_that_loads(tmp_path: Path) -> None:
    done = import_beir(beir(tmp_path / "bikes"), tmp_path / "new")
    assert (done.documents, done.cases) == (3, 2)
    assert done.files == (tmp_path / "new" / "cases" / "beir-test.yaml",)
    opened = Collection.open(tmp_path / "new")
    assert opened.settings.title == "bikes"
    assert opened.settings.block_size == "section"
    documents = {item.id: item for item in opened.documents}
    assert sorted(documents) == ["31", "31-2_6b81c531", "7"]
    assert documents["31"].title == "Brakes"
    assert documents["31"].text == "Brake pads last for 2000 km."
    assert documents["7"].text == "# The bell\n\n* rings *loud*\n\n1. <b>once</b> &amp; again"
    cases = load_cases(tmp_path / "new")
    assert summary(cases) == [
        ("q1", "how long do pads last", ("31",)),
        ("q2", "how loud is the bell", ("7",)),
    ]
    assert {(case.kind, case.expect) for case in cases} == {("imported", "answer")}
    check_cases(cases, Labels(tuple(documents.values())))
    notes = "\n".join(done.notes)
    assert "1 of 3 queries have no relevant document in test.tsv" in notes
    assert "1 grades above 1 count as relevant" in notes
    assert "1 judgements of grade 0 or below" in notes
    assert "1 document ids had to be changed (first: '31-2' is '31-2_" in notes
    assert next(done.lines()).startswith(f"{tmp_path / 'new'}: 3 documents and 2 cases imported")


def test_a_held_out_import_goes_to_the_held_out_folder(tmp_path: Path) -> None:
    import_beir(beir(tmp_path / "bikes"), tmp_path / "new", held_out=True)
    assert len(load_cases(tmp_path / "new", "heldout")) == 2
    assert load_cases(tmp_path / "new") == ()


def test_marks_line_ends_null_and_missing_titles_are_no_trouble(tmp_path: Path) -> None:
    corpus = (
        b'\xef\xbb\xbf{"_id": "a", "text": "one\\u2028two"}\r\n\r\n'
        b'{"_id": 2, "title": null, "text": "x\\ud800\\u0000y"}\r\n'
    )
    qrels = "\ufeffq1\ta\t1\r\nq2\t2\t1.0\r\n"
    done = import_beir(beir(tmp_path / "b", corpus, qrels=qrels), tmp_path / "new")
    texts = {item.id: item.text for item in Collection.open(tmp_path / "new").documents}
    assert texts == {"a": "one two", "2": "x\ufffdy"}
    assert done.cases == 2


def test_a_record_with_a_title_alone_is_searched_by_it(tmp_path: Path) -> None:
    corpus = lines([{"_id": "a", "title": "Only this", "text": " "}, {"_id": "b", "text": ""}])
    qrels = "q1\ta\t1\nq1\tb\t1\nq2\tb\t1\n"
    done = import_beir(beir(tmp_path / "b", corpus, qrels=qrels), tmp_path / "new")
    [only] = Collection.open(tmp_path / "new").documents
    assert (only.title, only.text) == ("Only this", "Only this")
    assert summary(load_cases(tmp_path / "new")) == [("q1", "how long do pads last", ("a",))]
    assert "1 documents hold no text and were left out (first: 'b')" in done.notes
    assert "1 queries with no relevant document that holds text were left out" in done.notes


def test_questions_with_the_same_words_are_merged_and_empty_ones_left_out(tmp_path: Path) -> None:
    queries = lines(
        [
            {"_id": "q1", "text": "How long?"},
            {"_id": "q2", "text": "how  long"},
            {"_id": "q3", "text": " ?? "},
        ]
    )
    qrels = "q1\t31\t1\nq2\t7\t1\nq3\t7\t1\n"
    done = import_beir(beir(tmp_path / "b", queries=queries, qrels=qrels), tmp_path / "new")
    assert summary(load_cases(tmp_path / "new")) == [("q1", "How long?", ("31", "7"))]
    notes = "\n".join(done.notes)
    assert "1 questions repeat another word for word and were merged with it" in notes
    assert "(first: 'q2' into 'q1')" in notes
    assert "1 questions hold no word and were left out (first: 'q3')" in notes


def test_a_few_unknown_ids_are_counted_and_more_are_refused(tmp_path: Path) -> None:
    corpus, queries, qrels = many(40)

    def run(name: str, wrong: int, column: int) -> Imported:
        rows = [row.split("\t") for row in qrels]
        for row in rows[:wrong]:
            row[column] = f"x{row[column]}"
        source = beir(
            tmp_path / name,
            lines(corpus),
            lines(queries),
            "".join(map("{0[0]}\t{0[1]}\t1\n".format, rows)),
        )
        return import_beir(source, tmp_path / f"{name}-new")

    done = run("few", 2, 1)
    assert done.cases == 38
    assert (
        f"{tmp_path}/few/qrels/test.tsv:1: 2 of 40 ids in column 2 are not in corpus.jsonl "
        "(first: 'xd0'); left out"
    ) in done.notes
    assert run("queries", 2, 0).cases == 38
    with pytest.raises(CollectionError, match=r"test.tsv:1: 3 of 40 ids in column 2 are not in"):
        run("many", 3, 1)
    with pytest.raises(CollectionError, match=r"3 of 40 ids in column 1 are not in queries"):
        run("manyqueries", 3, 0)
    assert not (tmp_path / "many-new").exists()


def test_swapped_columns_are_an_error_that_says_so(tmp_path: Path) -> None:
    corpus, queries, qrels = many(10)
    swapped = "".join("{1}\t{0}\t{2}\n".format(*row.split("\t")) for row in qrels)
    source = beir(tmp_path / "b", lines(corpus), lines(queries), swapped)
    with pytest.raises(CollectionError) as caught:
        import_beir(source, tmp_path / "new")
    assert str(caught.value) == (
        f"{source}/qrels/test.tsv:1: none of the 10 ids in column 1 is in queries.jsonl; the first "
        "are 'd0', 'd1', 'd2'; are the columns shifted?"
    )
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"corpus": '{"_id": "a", "text": "x"}\n{"_id": \n'}, "corpus.jsonl:2: not valid JSON"),
        (
            {"corpus": '{"_id": NaN, "text": "x"}\n'},
            "corpus.jsonl:1: JSON that cannot be read (NaN",
        ),
        ({"corpus": '{"_id": 1.5, "text": "x"}\n'}, "corpus.jsonl:1: _id is 1.5; expected an id"),
        (
            {"corpus": '{"id": "a", "text": "x"}\n'},
            "corpus.jsonl:1: no key '_id' (found: id, text)",
        ),
        ({"corpus": '["a"]\n'}, "corpus.jsonl:1: expected a JSON object"),
        ({"corpus": "[" * 100_000 + "\n"}, "corpus.jsonl:1: JSON that cannot be read"),
        ({"corpus": '{"_id": "a", "text": 3}\n'}, "corpus.jsonl:1: text is 3; expected text"),
        ({"corpus": b'{"_id": "\xff"}\n'}, "corpus.jsonl:1: byte 9 is no UTF-8"),
        ({"corpus": '{"_id": "a", "contents": "x"}\n'}, "corpus.jsonl:1: no record with a `text`"),
        ({"corpus": lines(CORPUS[:1] * 2)}, "corpus.jsonl:2: the id '31' stands in line 1 too"),
        ({"queries": lines(QUERIES[:1] * 2)}, "queries.jsonl:2: the id 'q1' stands twice"),
        ({"qrels": "q1\t31\t1\nq1 31 1\n"}, "test.tsv:2: expected query-id, corpus-id and score"),
        ({"qrels": "q1\t0\t31\t1\n"}, "found 4 columns; four columns are TREC qrels"),
        ({"qrels": "q1\t31\tNaN\n"}, "test.tsv:1: the grade is 'NaN'; expected a whole number"),
        ({"qrels": "q1\t31\t1\nquery-id\tcorpus-id\tscore\n"}, "test.tsv:2: the grade is 'score'"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    with pytest.raises(CollectionError) as caught:
        import_beir(beir(tmp_path / "b", **change), tmp_path / "new")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_lines_come_without_their_ends_and_with_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\n \r\n\ntwo \x0b\xe2\x80\xa8x\rz\n")
    assert list(text_lines(tmp_path / "a")) == [(1, "one"), (4, "two \x0b\u2028x\rz")]


def test_a_line_above_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atlas.measure.imports.lines.MAX_LINE_BYTES", 60)
    with pytest.raises(CollectionError, match=r"corpus.jsonl:1: longer than"):
        import_beir(beir(tmp_path / "b"), tmp_path / "new")


def test_a_missing_file_is_named_with_the_splits_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no such folder; expected corpus.jsonl"):
        import_beir(tmp_path / "none", tmp_path / "new")
    source = beir(tmp_path / "b")
    with pytest.raises(UsageError, match=r"qrels/dev.tsv: no such file.*splits there: test"):
        import_beir(source, tmp_path / "new", split="dev")
    (source / "queries.jsonl").unlink()
    with pytest.raises(UsageError, match=r"queries.jsonl: no such file"):
        import_beir(source, tmp_path / "new")


def test_without_a_relevant_document_there_is_nothing_to_measure(tmp_path: Path) -> None:
    with pytest.raises(NothingToMeasure, match="left to import: 1 judgements of grade 0 or below"):
        import_beir(beir(tmp_path / "b", qrels="q1\t31\t0\n"), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_progress_counts_every_document(tmp_path: Path) -> None:
    class Counted:
        stages: list[tuple[str, int]] = []  # noqa: RUF012
        steps = 0

        def stage(self, name: str, total: int) -> None:
            self.stages.append((name, total))

        def step(self, count: int = 1) -> None:
            self.steps += count

    progress = Counted()
    import_beir(beir(tmp_path / "b"), tmp_path / "new", progress=progress)
    assert (progress.stages, progress.steps) == ([("documents", 3)], 3)


def test_scifact_is_imported_as_it_is(tmp_path: Path) -> None:
    if not SCIFACT.is_dir():
        pytest.skip(f"{SCIFACT} is not there")
    done = import_beir(SCIFACT, tmp_path / "scifact")
    assert (done.documents, done.cases, done.notes) == (5183, 300, ())
    cases = load_cases(tmp_path / "scifact")
    assert sum(len(case.relevant) for case in cases) == 339
    with (SCIFACT / "corpus.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(next(file)) for _ in range(150)]
    for row in rows:
        path = tmp_path / "scifact" / "documents" / f"{row['_id']}.md"
        read = read_document(path, tmp_path / "scifact")
        assert read.id == row["_id"]
        assert read.title.split() == row["title"].split()
        assert read.text.split() == clean(row["text"]).split()


# ---- what is never overwritten ------------------------------------------------------------------


def test_documents_that_are_there_are_not_touched(tmp_path: Path) -> None:
    root = collection(tmp_path / "own")
    before = snapshot(root)
    with pytest.raises(UsageError, match="documents: holds documents already; import into a new"):
        import_beir(beir(tmp_path / "b"), root)
    assert snapshot(root) == before


def test_case_files_that_are_there_are_not_touched(tmp_path: Path) -> None:
    target = tmp_path / "new"
    (target / "cases").mkdir(parents=True)
    (target / "cases" / "beir-test.yml").write_text("[]")
    with pytest.raises(UsageError, match=r"beir-test\.yml: exists already; rename or remove it"):
        import_beir(beir(tmp_path / "b"), target)
    assert snapshot(target) == {"cases/beir-test.yml": b"[]"}


def test_settings_and_cases_that_are_there_stay_beside_the_imported_ones(tmp_path: Path) -> None:
    target = tmp_path / "new"
    (target / "documents").mkdir(parents=True)
    (target / "documents" / ".keep").write_text("")
    (target / "cases").mkdir()
    (target / "cases" / "own.yaml").write_text("- {id: q1, question: mine, expect: abstain}")
    (target / "atlas.yaml").write_text("title: Mine\n")
    done = import_beir(beir(tmp_path / "b"), target)
    assert f"{target / 'atlas.yaml'} was kept as it is" in done.notes
    assert Collection.open(target).settings.title == "Mine"
    assert len(Collection.open(target).documents) == 3
    assert (target / "documents" / ".keep").exists()
    [q1, q2, own] = load_cases(target)
    assert (q2.id, own.id) == ("q2", "q1")
    assert re.fullmatch(r"q1_[0-9a-f]{8}", q1.id)
    assert not [path for path in target.iterdir() if path.name.startswith(".import")]


def test_a_question_that_is_asked_already_is_left_out(tmp_path: Path) -> None:
    target = tmp_path / "new"
    (target / "heldout").mkdir(parents=True)
    (target / "heldout" / "own.yaml").write_text(
        "- {id: H1, question: How long do PADS last, expect: abstain}"
    )
    done = import_beir(beir(tmp_path / "b"), target)
    assert [case.id for case in load_cases(target)] == ["q2"]
    assert any("1 questions stand in the collection already" in note for note in done.notes)


def test_an_import_that_fails_half_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> list[str]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("atlas.measure.imports.beir.write_cases", full)
    (tmp_path / "there").mkdir()
    for target in (tmp_path / "new", tmp_path / "there"):
        with pytest.raises(AtlasError, match=r"could not be written \(No space left on device\)"):
            import_beir(beir(tmp_path / f"b-{target.name}"), target)
    assert not (tmp_path / "new").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b-new", "b-there", "there"]
    assert list((tmp_path / "there").iterdir()) == []


def test_a_killed_import_leaves_no_collection_that_looks_whole(tmp_path: Path) -> None:
    corpus, queries, qrels = many(3000)
    source = beir(tmp_path / "b", lines(corpus), lines(queries[:50]), "\n".join(qrels[:50]))
    program = (
        "import sys; from pathlib import Path; sys.stdout.write('.'); sys.stdout.flush();"
        "from atlas.measure.imports.beir import import_beir;"
        "import_beir(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    for number, seconds in enumerate((0.1, 0.3, 0.5, 0.7)):
        target = tmp_path / f"new-{number}"
        command = [sys.executable, "-c", program, str(source), str(target)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.read(1)
            time.sleep(seconds)
            process.kill()
        if target.exists():
            assert len(list((target / "documents").iterdir())) == 3000
            assert len(load_cases(target)) == 50


def test_a_target_that_cannot_be_is_named(tmp_path: Path) -> None:
    source = beir(tmp_path / "b")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file: is a file; give a folder"):
        import_beir(source, tmp_path / "file")
    with pytest.raises(AtlasError, match="the import could not be written"):
        import_beir(source, Path("/proc/none/here"))


def test_hidden_files_are_no_documents(tmp_path: Path) -> None:
    assert not has_documents(tmp_path)
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / ".keep").write_text("")
    assert not has_documents(tmp_path)
    (tmp_path / "documents" / "a.md").write_text("")
    assert has_documents(tmp_path)


# ---- ids, texts, case files ---------------------------------------------------------------------


def test_safe_ids_stay_and_others_are_told_apart() -> None:
    plain = ["31715818", "WARR-R2", "a.b_c-d", "X", "Y-2", "X-2-3"]
    assert safe_ids(plain) == dict(zip(plain, plain, strict=True))
    odd = ["a b", "a/b", "A-B", "X", "X-2", "X-2-p0", "ü", "", "../x", ".", "x" * 300, "x@3"]
    safe = safe_ids(odd)
    assert safe["X"] == "X"
    assert len({name.casefold() for name in safe.values()}) == len(odd)
    label = re.compile(r"X-\d+(-p\d+)?", re.IGNORECASE)
    for name in safe.values():
        assert re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", name)
        assert len(name) <= 110
        assert not label.fullmatch(name)
    assert safe_ids(list(reversed(odd))) == safe
    assert safe_ids(["a"], ["A"])["a"] != "a"


def test_an_id_that_reads_like_a_section_of_another_cannot_be_mistaken(tmp_path: Path) -> None:
    corpus = lines({"_id": name, "text": f"text of {name}"} for name in ("X", "X-0", "X-0-p0"))
    qrels = "q1\tX-0\t1\nq2\tX-0-p0\t1\n"
    import_beir(beir(tmp_path / "b", corpus, qrels=qrels), tmp_path / "new")
    documents = Collection.open(tmp_path / "new").documents
    labels = Labels(documents)
    texts = [labels.text(case.relevant[0]) for case in load_cases(tmp_path / "new")]
    assert texts == ["text of X-0", "text of X-0-p0"]
    refs = [block.ref for item in documents for block in split(item)]
    assert not set(refs) & {item.id for item in documents}


@pytest.mark.parametrize(
    "text",
    [
        "# no heading",
        "Not\n===\na\n---\nheading",
        "---\ntitle: no front matter\n---",
        "- no\n- list\n\n+ at\n\n* all",
        "1. no 2) number\n\n10) neither",
        "    no code\n\n```\nnor here\n```\n\n~~~\nor `here`",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "<script>alert(1)</script> <b>bold</b> <!-- c --> p < 0.05 <x",
        "&amp; &#65; &nbsp; AT&T",
        "*a* **b** _c_ __d__ snake_case 2*3*4",
        "[a](b) ![c](d) [e]: f\n\n[g]: http://h",
        "http://a.b/c_d_e <http://a.b> a@b.c",
        "a\\*b \\\\ c\\\nd  \ne",
        "> no quote\n>> either",
        "=== \n\n~ x\n\n+ \n\n-",
        "a\u00a0b\u2003c\u000bd\x1ce\x85f\x07g\u200bh\u00adi",
    ],
)
def test_text_that_looks_like_markup_reads_back_as_its_words(text: str) -> None:
    reading = read_markdown(document("A", "", text).split("---\n", 2)[2])
    assert reading.text.split() == clean(text).split()
    assert [section.number for section in reading.sections] == [0]
    assert {unit.kind for section in reading.sections for unit in section.units} == {"paragraph"}


WRITTEN = st.text(
    st.one_of(st.sampled_from("#-*_`~|<>&[]()!\\=+ .:1\n\t\r"), st.characters()), max_size=60
)


@settings(max_examples=150, deadline=None)
@given(WRITTEN)
def test_any_text_reads_back_as_its_paragraphs(text: str) -> None:
    import unicodedata

    parts = [unicodedata.normalize("NFC", part) for part in paragraphs(text)]
    reading = read_markdown(document("A", "", text).split("---\n", 2)[2])
    assert reading.text.split() == " ".join(parts).split()
    assert len(reading.sections) == bool(parts)


@settings(max_examples=60, deadline=None)
@given(WRITTEN, WRITTEN, WRITTEN)
def test_any_question_loads_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, question: str, quote: str, name: str
) -> None:
    root = tmp_path_factory.mktemp("cases")
    new = NewCases(root)
    new.add(name, f"why {question}", ["A"], reference=quote, evidence=[f"x {clean(quote)}"])
    write_cases(root, "cases", "set", new.rows(()))
    [case] = load_cases(root)
    assert case.question.split() == f"why {clean(question)}".split()
    assert case.reference == clean(quote).strip()
    assert case.evidence == (f"x {clean(quote)}",)


def test_many_cases_are_spread_over_files_that_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_module, "CASE_FILE_CHARACTERS", 300)
    corpus, queries, qrels = many(20)
    source = beir(tmp_path / "b", lines(corpus), lines(queries), "\n".join(qrels))
    done = import_beir(source, tmp_path / "new")
    assert len(done.files) > 3
    assert done.files[1].name == "beir-test-2.yaml"
    assert len(load_cases(tmp_path / "new")) == 20
    assert done.as_json()["cases"] == 20


# ---- a collection to import into ----------------------------------------------------------------

TABLE = "| part | lasts |\n|---|---|\n" + "".join(
    f"| part number {n} of the bike | {n} thousand km |\n" for n in range(40)
)
OWN = {
    "warranty.md": (
        "---\nid: WARR\n---\n# Battery warranty\n\n## Term\n\nThe battery is under warranty for\n"
        "three years.\n\n## Claims\n\nClaims are made at a dealer within 30 days. Bring the key "
        "and the receipt with you.\n"
    ),
    "parts.md": f"---\nid: PARTS\n---\n# Parts\n\n## Wear\n\n{TABLE}",
}


@pytest.fixture
def own(tmp_path: Path) -> tuple[Path, Sources, Callable[[], tuple[Case, ...]]]:
    root = collection(tmp_path / "own", OWN, settings="", cases=None)
    documents = Collection.open(root).documents
    blocks = [block for item in documents for block in split(item)]

    def loaded() -> tuple[Case, ...]:
        cases = load_cases(root)
        check_cases(cases, Labels(documents, {block.ref: block for block in blocks}))
        return cases

    return root, Sources(documents, blocks), loaded


Own = tuple[Path, Sources, Callable[[], tuple[Case, ...]]]


def trec(root: Path, qrels: str, topics: str = "1\thow long\n2\twhich claims\n3\twhy\n") -> Path:
    root.mkdir(parents=True)
    (root / "qrels.txt").write_text(qrels, encoding="utf-8")
    (root / "topics.tsv").write_text(topics, encoding="utf-8")
    return root


def test_trec_topics_become_cases_of_a_collection(tmp_path: Path, own: Own) -> None:
    root, sources, loaded = own
    qrels = "1 0 WARR 1\n1 0 PARTS 0\n2 0 WARR-2-p0 2\n2 0 WARR-2 1\n"
    done = import_trec(trec(tmp_path / "bikes.d", qrels), root, sources)
    assert done.files == (root / "cases" / "trec-bikes.yaml",)
    assert summary(loaded()) == [
        ("1", "how long", ("WARR",)),
        ("2", "which claims", ("WARR-2-p0", "WARR-2")),
    ]
    assert any("1 of 3 topics have no relevant document in qrels.txt" in n for n in done.notes)
    assert any("1 grades above 1" in note for note in done.notes)


def test_topics_may_be_json_lines(tmp_path: Path, own: Own) -> None:
    root, sources, loaded = own
    source = trec(tmp_path / "t", "1 0 WARR-1 1\n")
    (source / "topics.tsv").rename(source / "old.txt")
    (source / "queries.jsonl").write_text('{"_id": 1, "text": "how long"}\n')
    import_trec(source, root, sources, held_out=True)
    assert loaded() == ()
    assert summary(load_cases(root, "heldout")) == [("1", "how long", ("WARR-1",))]


def test_labels_that_are_not_in_the_collection_are_counted_or_refused(
    tmp_path: Path, own: Own
) -> None:
    root, sources, loaded = own
    qrels = "1 0 WARR 1\n1 0 WARR-9 1\n2 0 WARR-2-p7 1\n"
    done = import_trec(trec(tmp_path / "few", qrels), root, sources)
    assert done.cases == 1
    assert any("2 of 3 ids in column 3 are not in the collection" in n for n in done.notes)
    shifted = "".join(f"{n} 0 {n} 1\n" for n in (1, 2, 3))
    with pytest.raises(CollectionError, match=r"qrels.txt:1: none of the 3 ids in column 3 is in"):
        import_trec(trec(tmp_path / "shifted", shifted), root, sources)
    assert len(loaded()) == 1


@pytest.mark.parametrize(
    ("topics", "problem"),
    [
        ("1 how long\n", "topics.tsv:1: expected an id, a tab and the question; found '1 how"),
        ("1\ta\n1\tb\n", "topics.tsv:2: the topic '1' stands in line 1 too"),
    ],
)
def test_a_bad_topic_is_named(tmp_path: Path, own: Own, topics: str, problem: str) -> None:
    with pytest.raises(CollectionError) as caught:
        import_trec(trec(tmp_path / "t", "1 0 WARR 1\n", topics), own[0], own[1])
    assert problem in str(caught.value)


def test_a_trec_folder_needs_one_file_of_each_kind(tmp_path: Path, own: Own) -> None:
    source = trec(tmp_path / "t", "1 0 WARR 1\n")
    (source / "qrels.dev").write_text("")
    with pytest.raises(UsageError, match=r"2 qrels files \(qrels.dev, qrels.txt\); expected a"):
        import_trec(source, own[0], own[1])
    (source / "qrels.dev").unlink()
    (source / "topics.tsv").unlink()
    with pytest.raises(UsageError, match=r"0 topics files \(none\)"):
        import_trec(source, own[0], own[1])
    with pytest.raises(UsageError, match="no such folder"):
        import_trec(source / "qrels.txt", own[0], own[1])


# ---- Ragas --------------------------------------------------------------------------------------

CLAIMS = "Claims are made at a dealer within 30 days. Bring the key and the receipt with you."
TERM = "The battery is under warranty for three years."


def ragas(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text(lines(rows), encoding="utf-8")
    return path


def asked(question: str, *contexts: str, **more: Any) -> dict[str, Any]:
    return {"user_input": question, "reference_contexts": list(contexts), **more}


def test_contexts_are_found_in_the_collection(tmp_path: Path, own: Own) -> None:
    root, sources, loaded = own
    done = import_ragas(
        ragas(
            tmp_path / "set.jsonl",
            asked("how  long", TERM, reference="three years", synthesizer_name="single_hop"),
            asked("both", f"<1-hop>\n\n{TERM}", f"<2-hop>\n\n{CLAIMS}"),
            asked("labels", reference_context_ids=["WARR-1", "PARTS-1-p1"]),
        ),
        root,
        sources,
    )
    assert (done.documents, done.cases, done.notes) == (0, 3, ())
    assert done.files == (root / "cases" / "ragas-set.yaml",)
    first, second, third = loaded()
    assert (first.question, first.reference, first.kind) == (
        "how long",
        "three years",
        "single_hop",
    )
    assert (first.relevant, first.evidence) == (("WARR-1-p0",), (TERM,))
    assert (second.relevant, second.evidence) == (("WARR-1-p0", "WARR-2-p0"), (TERM, CLAIMS))
    assert (third.relevant, third.evidence) == (("WARR-1", "PARTS-1-p1"), ())


def test_a_context_that_was_cut_in_other_places_is_found_by_its_parts(
    tmp_path: Path, own: Own
) -> None:
    root, sources, loaded = own
    context = f"## Term\n\n{TERM}\n\n## Claims\n\nMade up here entirely. {CLAIMS}"
    import_ragas(ragas(tmp_path / "set.jsonl", asked("all", context)), root, sources)
    [case] = loaded()
    assert case.relevant == ("WARR-1-p0", "WARR-2-p0")
    assert case.evidence == ()


def test_a_table_with_its_header_repeated_is_found_but_is_no_quote(
    tmp_path: Path, own: Own
) -> None:
    root, sources, loaded = own
    documents = Collection.open(root).documents
    piece = next(b for d in documents for b in split(d) if b.ref == "PARTS-1-p1")
    assert piece.text.startswith("part | lasts\n")
    import_ragas(ragas(tmp_path / "set.jsonl", asked("which", piece.text)), root, sources)
    [case] = loaded()
    assert (case.relevant, case.evidence) == (("PARTS-1-p1",), ())


def test_rows_whose_contexts_are_not_found_are_counted_or_refused(tmp_path: Path, own: Own) -> None:
    root, sources, loaded = own
    wrong = [asked(f"not {n}", f"nowhere does it say {n} times that") for n in range(3)]
    few = ragas(tmp_path / "few.jsonl", asked("a", TERM), *wrong[:2], asked("none"))
    done = import_ragas(few, root, sources)
    assert done.cases == len(loaded()) == 1
    assert (
        f"{few}:2: 2 of 3 rows have sources that match nothing in the collection; left out"
    ) in done.notes
    assert "1 rows have no reference context and were left out" in done.notes
    many_wrong = ragas(tmp_path / "many.jsonl", asked("b", CLAIMS), *wrong)
    with pytest.raises(CollectionError, match=r"many.jsonl:2: 3 of 4 rows have sources that match"):
        import_ragas(many_wrong, root, sources)
    with pytest.raises(
        CollectionError, match=r"none of the 3 ids in `reference_context_ids` is in"
    ):
        import_ragas(
            ragas(
                tmp_path / "ids.jsonl",
                *(asked(f"x {n}", reference_context_ids=[str(n)]) for n in range(3)),
            ),
            root,
            sources,
        )


def test_a_shifted_column_of_ids_is_refused(tmp_path: Path, own: Own) -> None:
    root, sources, _ = own
    rows = [
        asked("a", TERM, reference_context_ids=["WARR-2-p0"]),
        asked("b", CLAIMS, reference_context_ids=["PARTS-1"]),
        asked("c", "part number 3 of the bike | 3 thousand km", reference_context_ids=["WARR-1"]),
    ]
    with pytest.raises(CollectionError, match="3 of 3 rows name ids of other places"):
        import_ragas(ragas(tmp_path / "set.jsonl", *rows), root, sources)


def test_ids_of_another_system_give_way_to_the_contexts(tmp_path: Path, own: Own) -> None:
    root, sources, loaded = own
    rows = [asked("a", TERM, reference_context_ids=["chunk-1"])]
    done = import_ragas(ragas(tmp_path / "set.jsonl", *rows), root, sources)
    assert loaded()[0].relevant == ("WARR-1-p0",)
    assert any("1 ids match nothing in the collection (first: 'chunk-1')" in n for n in done.notes)


def test_a_context_that_several_documents_hold_is_relevant_in_all_of_them(tmp_path: Path) -> None:
    files = {f"{name}.md": f"---\nid: {name}\n---\n{TERM}\n" for name in ("ONE", "TWO")}
    root = collection(tmp_path / "own", files, settings="", cases=None)
    documents = Collection.open(root).documents
    sources = Sources(documents, [block for item in documents for block in split(item)])
    source = ragas(
        tmp_path / "set.jsonl", asked("a", TERM), asked("b", TERM, reference_context_ids=["TWO"])
    )
    done = import_ragas(source, root, sources)
    assert [case.relevant for case in load_cases(root)] == [("ONE-0-p0", "TWO-0-p0"), ("TWO",)]
    assert any(":1: 2 rows have contexts that stand in several doc" in note for note in done.notes)


def test_without_documents_the_contexts_become_a_collection(tmp_path: Path) -> None:
    odd = "# Charger-\n\nUse it < 40 °C.\u00ad Always-\nalways."
    source = ragas(
        tmp_path / "set.jsonl",
        asked("how long", TERM, reference="three"),
        asked("which", f"<1-hop>\n\n{TERM}", odd),
        asked("more", "long words " * 200),
    )
    done = import_ragas(source, tmp_path / "new")
    assert (done.documents, done.cases) == (3, 3)
    documents = Collection.open(tmp_path / "new").documents
    assert [item.id for item in documents] == ["C0001", "C0002", "C0003"]
    assert documents[0].text == TERM
    cases = load_cases(tmp_path / "new")
    check_cases(cases, Labels(documents))
    assert [case.relevant for case in cases] == [("C0001",), ("C0001", "C0002"), ("C0003",)]
    assert cases[1].evidence == (TERM, "# Charger-\n\nUse it < 40 °C. Always- always.")
    assert cases[2].evidence == ()
    with pytest.raises(UsageError, match="holds documents already"):
        import_ragas(source, tmp_path / "new")


def test_csv_lists_are_read_as_json_or_python(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text(
        "user_input,reference_contexts,reference\n"
        'one,"[\'first context here\', \'and ""its"" second\']",r1\n'
        '"two\nlines","[""third context, here""]",r2\n'
        "three,,r3\n",
        encoding="utf-8-sig",
    )
    done = import_ragas(path, tmp_path / "new")
    assert (done.documents, done.cases) == (3, 2)
    texts = [item.text for item in Collection.open(tmp_path / "new").documents]
    assert texts == ["first context here", 'and "its" second', "third context, here"]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "a.csv",
            "user_input,reference_contexts\nq,\"['a' 'b']\"\n",
            "a.csv:2: reference_contexts",
        ),
        ("a.csv", "user_input,reference_contexts\nq,\"['a'\n 'b']\"\n", "a.csv:2: reference_con"),
        ("a.csv", "user_input,reference_contexts\nq,plain text\n", "a.csv:2: reference_contexts"),
        ("a.csv", "user_input,reference_contexts\nq,\"{'a': 1}\"\n", "a.csv:2: reference_contexts"),
        ("a.csv", "user_input,x\nq,1\nq\n", "a.csv:3: more or fewer fields"),
        ("a.csv", "user_input,x\nq,1,2\n", "a.csv:2: more or fewer fields"),
        ("a.csv", 'user_input,x\nq,"1\n', "a.csv:2: not valid CSV"),
        ("a.csv", "question,contexts\nq,[]\n", "a.csv:2: no `user_input` (found: question, con"),
        ("a.jsonl", '{"question": "q"}\n', "a.jsonl:1: no `user_input` (found: question)"),
        (
            "a.jsonl",
            '{"user_input": [{"content": "hi"}]}\n',
            "a.jsonl:1: a conversation of several",
        ),
        ("a.jsonl", '{"user_input": 3}\n', "a.jsonl:1: user_input is '3'; expected text"),
        (
            "a.jsonl",
            '{"user_input": "q", "reference_contexts": [1.5]}\n',
            "expected a list of texts",
        ),
    ],
)
def test_a_bad_row_of_a_ragas_set_is_named(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(CollectionError) as caught:
        import_ragas(tmp_path / name, tmp_path / "new")
    assert problem in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_a_ragas_set_without_sources_is_nothing_to_measure(tmp_path: Path) -> None:
    with pytest.raises(NothingToMeasure, match="1 rows have no reference context and were left"):
        import_ragas(ragas(tmp_path / "set.jsonl", asked("a")), tmp_path / "new")
    with pytest.raises(UsageError, match="cannot be read"):
        import_ragas(tmp_path / "none.jsonl", tmp_path / "new")


def test_written_cases_are_plain_yaml(tmp_path: Path) -> None:
    import_beir(beir(tmp_path / "b"), tmp_path / "new")
    text = (tmp_path / "new" / "cases" / "beir-test.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)[0] == {
        "id": "q1",
        "question": "how long do pads last",
        "kind": "imported",
        "relevant": ["31"],
        "expect": "answer",
    }


def test_trec_qrels_whose_grades_are_all_zero_look_shifted(tmp_path: Path, own: Own) -> None:
    source = trec(tmp_path / "t", "1 WARR 1 0\n2 WARR 2 0\n")
    with pytest.raises(CollectionError, match=r"grade 0 or below; .* are the columns shifted\?"):
        import_trec(source, own[0], own[1])
    assert not (own[0] / "cases" / "trec-t.yaml").exists()
