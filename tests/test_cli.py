"""The command line: what it prints where, and the code that it ends with."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from small import CASES, FILES, QUESTION, SETTINGS, collection, command, run, use_fakes

from atlas.cli import cli

COMMANDS = (
    "ask", "show", "ingest", "check", "measure", "compare", "experiment", "promote", "import",
    "judge-calibration", "measure-answers", "measure-injection", "init", "doctor",
)  # fmt: skip
HEAVY = [
    "numpy", "faiss", "onnxruntime", "torch", "tokenizers", "sentence_transformers", "pypdf",
    "openai", "httpx2",
]  # fmt: skip
UNANSWERABLE = "what is the airspeed of a swallow"


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return collection(tmp_path / "c")


def atlas(root: Path, *arguments: str, stdin: str = "") -> Result:
    name, *rest = arguments
    return CliRunner().invoke(cli, [name, "-C", str(root), *rest], input=stdin)


def refusal(result: Result, code: int = 2) -> str:
    """The one line on stderr of a command that refused."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, lines
    assert lines[0].startswith("atlas: ")
    return lines[0]


# ---- ask ------------------------------------------------------------------------------------


def test_an_answer_goes_to_stdout_and_ends_with_0(root: Path) -> None:
    result = atlas(root, "ask", QUESTION)
    assert result.exit_code == 0
    assert result.stdout.startswith("The battery is under warranty for 3 years. [1]")


def test_an_abstention_is_a_result(root: Path) -> None:
    result = atlas(root, "ask", UNANSWERABLE)
    assert result.exit_code == 0
    assert result.stdout.startswith("No answer: ")


def test_a_failed_answer_ends_with_3(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from atlas.records import Draft

    failed = Draft(status="failed", reason="the server is gone")
    monkeypatch.setattr("atlas.assistant.draft", lambda *_: failed)
    result = atlas(root, "ask", QUESTION)
    assert result.exit_code == 3
    assert result.stdout == "Failed: the server is gone\n"


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        ("", "the question is empty; write it after `ask`, in quotation marks"),
        (" \t\n ", "the question is empty"),
        ("\x1b\x00\u202e", "the question is empty"),
        ("x" * 20_000, "the question has 20,000 characters; ask in at most 2,000"),
        ("?!… — ”", "has no word in it; ask in words"),
    ],
)
def test_what_is_no_question_is_refused_before_models_are_opened(
    root: Path, monkeypatch: pytest.MonkeyPatch, question: str, problem: str
) -> None:
    monkeypatch.setattr("atlas.assistant.Assistant.of", None)
    assert problem in refusal(atlas(root, "ask", question))


@pytest.mark.parametrize(
    "question",
    [
        "сколько лет гарантия",
        "電池の保証は何年ですか",
        "كم سنة ضمان البطارية",
        "🚲 battery?",
        "३ वर्ष",
    ],
)
def test_questions_in_other_scripts_are_asked(root: Path, question: str) -> None:
    result = atlas(root, "ask", "--json", question)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["status"] != "failed"


def test_control_characters_of_a_question_reach_no_terminal(root: Path) -> None:
    result = atlas(root, "ask", f"\x1b[31m{QUESTION}\x07\u202e\x9b")
    assert result.exit_code == 0
    result = atlas(root, "show", "last")
    assert "question   how long" in result.stdout
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(result.stdout)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--reader", "boss"], "unknown reader group 'boss'; this collection has: sales, workshop"),
        (["--product", "C-4"], "unknown product 'C-4'; this collection has: C-3, T-7"),
        (["--date", "tomorrow"], "'tomorrow' is no date; expected one such as 2026-03-01"),
        (["--date", "2026-02-30"], "'2026-02-30' is no date"),
    ],
)
def test_an_unknown_reader_product_or_date_is_refused(
    root: Path, options: list[str], problem: str
) -> None:
    assert problem in refusal(atlas(root, "ask", QUESTION, *options))


def test_the_scope_of_the_call_holds(root: Path) -> None:
    options = ["--reader", "sales", "--date", "2026-03-02", "--product", "C-3", "--product", "T-7"]
    result = atlas(root, "ask", QUESTION, "--json", *options)
    scope = json.loads(result.stdout)["scope"]
    assert scope["reader"] == "sales"
    assert scope["date"] == "2026-03-02"
    assert scope["products"] == ["C-3", "T-7"]


def test_a_product_that_nobody_knows_is_said_so(root: Path) -> None:
    result = atlas(root, "ask", "how long is the battery of a C-4 under warranty")
    assert result.exit_code == 0
    assert result.stdout.startswith("No answer: the documents know no “C-4”; they know C-3, T-7.")


def test_the_json_of_ask_has_its_keys(root: Path) -> None:
    values = json.loads(atlas(root, "ask", "--json", QUESTION).stdout)
    assert {
        "schema", "id", "question", "scope", "status", "answer", "citations", "context", "dropped",
        "nearest", "tokens", "timings_seconds", "fingerprints",
    } <= set(values)  # fmt: skip
    assert {"reader", "date", "products"} <= set(values["scope"])
    [citation] = values["citations"]
    assert {"marker", "ref", "document", "title", "page", "quote"} <= set(citation)
    scores = {"keyword_score", "vector_score", "fused_score", "rerank_score"}
    assert {"ref", "text", *scores} <= set(values["context"][0])


def test_the_json_of_a_decline_has_its_nearest_and_dropped(root: Path) -> None:
    settings = SETTINGS + "k: 1\n"
    (root / "atlas.yaml").write_text(settings, encoding="utf-8")
    values = json.loads(atlas(root, "ask", "--json", UNANSWERABLE).stdout)
    assert values["status"] == "abstained"
    assert values["nearest"]
    assert {"ref", "reason", "rerank_score"} <= set(values["dropped"][0])


def test_every_trace_is_kept_before_its_answer_is_printed(root: Path) -> None:
    shown = json.loads(atlas(root, "ask", "--json", QUESTION).stdout)
    assert json.loads(atlas(root, "show", "--json", shown["id"]).stdout) == shown


def test_a_trace_that_cannot_be_kept_costs_no_answer(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from atlas.errors import AtlasError

    def refuse(*_: object) -> None:
        raise AtlasError("the disk is full")

    monkeypatch.setattr("atlas.trace.save", refuse)
    result = atlas(root, "ask", QUESTION)
    assert result.exit_code == 0
    assert "3 years" in result.stdout
    assert "note: the disk is full" in result.stderr


# ---- folders --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ask", "ingest", "check", "show"])
def test_a_folder_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    more = {"ask": [QUESTION], "show": ["last"]}.get(name, [])
    line = refusal(atlas(tmp_path / "nowhere", name, *more))
    assert "nowhere: does not exist; give the folder of a collection with -C DIR" in line


def test_a_file_is_no_collection(root: Path) -> None:
    assert "is a file" in refusal(atlas(root / "atlas.yaml", "ask", QUESTION))


def test_a_folder_without_documents_is_refused(tmp_path: Path) -> None:
    assert "no folder `documents`" in refusal(atlas(tmp_path, "ask", QUESTION))
    (tmp_path / "documents").mkdir()
    assert "no documents; put Markdown files or PDFs there" in refusal(
        atlas(tmp_path, "ask", QUESTION)
    )


def test_a_folder_that_cannot_be_listed_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listdir = os.listdir

    def refuse(path: Any = ".") -> list[str]:
        if Path(path).name == "documents":
            raise PermissionError(13, "Permission denied")
        return listdir(path)

    monkeypatch.setattr(os, "listdir", refuse)
    line = refusal(atlas(root, "ask", QUESTION))
    assert "documents: cannot be listed (Permission denied)" in line


def test_a_read_only_collection_is_asked_all_the_same(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = Path.mkdir

    def refuse(path: Path, *arguments: Any, **named: Any) -> None:
        if path.is_relative_to(root):
            raise OSError(30, "Read-only file system")
        mkdir(path, *arguments, **named)

    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ATLAS_STATE", raising=False)
    result = atlas(root, "ask", QUESTION)
    assert result.exit_code == 0
    assert "3 years" in result.stdout
    assert "cannot be written to (read-only file system); the index is kept in" in result.stderr
    assert not (root / ".atlas").exists()


def test_a_setting_with_a_typing_error_is_refused(root: Path) -> None:
    (root / "atlas.yaml").write_text("min_scor: 1\n", encoding="utf-8")
    line = refusal(atlas(root, "ask", QUESTION))
    assert "atlas.yaml:1: unknown setting 'min_scor'; did you mean 'min_score'?" in line


def test_progress_is_shown_on_a_terminal_only(root: Path) -> None:
    result = atlas(root, "ingest")
    assert result.stderr == ""
    assert result.stdout.startswith("3 documents, 5 blocks, 5 of them embedded now")


# ---- ingest ---------------------------------------------------------------------------------


def test_the_json_of_ingest_has_its_keys(root: Path) -> None:
    result = atlas(root, "ingest", "--json")
    assert result.exit_code == 0
    values = json.loads(result.stdout)
    assert (values["documents"], values["blocks"], values["recomputed"]) == (3, 5, 5)
    assert values["skipped"] == []
    assert values["seconds"] >= 0
    assert json.loads(atlas(root, "ingest", "--json").stdout)["recomputed"] == 0


def test_a_bad_document_is_named_and_the_rest_ingested(root: Path) -> None:
    (root / "documents" / "bad.md").write_text("---\nidd: X\n---\n# X\n", encoding="utf-8")
    result = atlas(root, "ingest", "--json")
    assert result.exit_code == 3
    values = json.loads(result.stdout)
    assert values["documents"] == 3
    [skipped] = values["skipped"]
    assert skipped["path"] == "documents/bad.md"
    assert "unknown key" in skipped["reason"]
    assert "skipped documents/bad.md: " in result.stderr


# ---- check ----------------------------------------------------------------------------------


def test_the_json_of_check_has_its_keys(root: Path) -> None:
    result = atlas(root, "check", "--all", "--json")
    assert result.exit_code == 0
    values = json.loads(result.stdout)
    assert (values["passed"], values["failed"], values["errors"]) == (2, 0, 0)
    assert values["cases"][0] == {"id": "S1", "passed": True, "why": ""}


def test_a_failing_core_case_ends_with_1(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", cases=CASES.replace("3 years]]", "9 years]]"))
    result = atlas(root, "check")
    assert result.exit_code == 1
    assert "FAIL  S1" in result.stdout
    assert "the answer lacks '9 years'" in result.stdout


def test_without_cases_there_is_nothing_to_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atlas.assistant.Assistant.of", None)
    root = collection(tmp_path / "c", cases=None)
    assert "cases: no core case; write one with `core: true`" in refusal(atlas(root, "check"), 4)


@pytest.mark.parametrize(
    ("cases", "problem"),
    [
        (
            CASES.replace("facts:", "fact:"),
            "core.yaml:6: unknown key 'fact'; did you mean 'facts'?",
        ),
        (CASES.replace("S2", "S1"), "core.yaml:7: the id S1 is taken at"),
        ("- id: [", "core.yaml:1: not valid YAML"),
    ],
)
def test_a_bad_case_file_is_refused_before_models_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cases: str, problem: str
) -> None:
    monkeypatch.setattr("atlas.assistant.Assistant.of", None)
    root = collection(tmp_path / "c", cases=cases)
    assert problem in refusal(atlas(root, "check"))


def test_a_question_in_both_folders_is_refused(root: Path) -> None:
    (root / "heldout").mkdir()
    held = CASES.replace("S1", "H1").replace("S2", "H2")
    (root / "heldout" / "core.yaml").write_text(held, encoding="utf-8")
    line = refusal(atlas(root, "check"))
    assert "core.yaml:1: the question of S1 also stands at" in line


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[WARR-1]", "[WARR-7]", "core.yaml:1: relevant 'WARR-7' of S1 matches nothing"),
        ("for 3 years.]", "for 8 years.]", "core.yaml:1: an evidence quote of S1 is in none"),
    ],
)
def test_a_case_that_contradicts_the_documents_is_refused(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    root = collection(tmp_path / "c", cases=CASES.replace(old, new))
    assert problem in refusal(atlas(root, "check"))


def test_cases_are_accepted_and_reviewed(root: Path) -> None:
    result = atlas(root, "check", "--all", "--accept")
    assert result.exit_code == 0
    assert "2 cases accepted in " in result.stdout
    path = root / "documents" / "warranty.md"
    path.write_text(path.read_text(encoding="utf-8").replace("5 years", "6 years"), "utf-8")
    result = atlas(root, "check", "--all")
    assert result.exit_code == 0
    assert "review S1: a source changed since it was accepted" in result.stdout


def test_a_sample_is_not_accepted(root: Path) -> None:
    line = refusal(atlas(root, "check", "--accept", "--sample"))
    assert "--accept looks at the whole collection; leave --sample out" in line


# ---- show -----------------------------------------------------------------------------------


def test_without_traces_there_is_none_to_show(root: Path) -> None:
    line = refusal(atlas(root, "show", "last"))
    assert "no trace last; `atlas ask --json` prints the id of each answer" in line


@pytest.mark.parametrize("name", ["lst", "ab cd", "../traces", "0x1"])
def test_what_is_no_trace_id_is_refused(root: Path, name: str) -> None:
    assert "is no trace id; expected its first hex digits, or `last`" in refusal(
        atlas(root, "show", name)
    )


def test_show_checks_the_reader_again(root: Path) -> None:
    assert atlas(root, "ask", QUESTION, "--reader", "sales").exit_code == 0
    assert "made for another reader group" in refusal(atlas(root, "show", "last"))
    assert atlas(root, "show", "last", "--reader", "sales").exit_code == 0


def test_show_refuses_what_the_reader_may_not_read_now(root: Path) -> None:
    assert atlas(root, "ask", QUESTION).exit_code == 0
    text = FILES["warranty.md"].replace("---\n# ", "readers: [sales]\n---\n# ")
    (root / "documents" / "warranty.md").write_text(text, encoding="utf-8")
    for options in ([], ["--json"]):
        assert "may not read now" in refusal(atlas(root, "show", "last", *options))


# ---- several questions ----------------------------------------------------------------------


def test_questions_are_read_from_stdin_one_a_line(root: Path) -> None:
    result = atlas(root, "ask", "--json", stdin=f"{QUESTION}\n\n  \n{UNANSWERABLE}\n")
    assert result.exit_code == 0
    asked = [json.loads(line)["question"] for line in result.stdout.splitlines()]
    assert asked == [QUESTION, UNANSWERABLE]


def test_answers_for_people_are_kept_apart_by_a_blank_line(root: Path) -> None:
    result = atlas(root, "ask", stdin=f"{QUESTION}\n{QUESTION}\n")
    once = atlas(root, "ask", QUESTION).stdout
    assert result.stdout == f"{once}\n{once}"


def test_a_line_that_is_no_question_is_named_and_the_rest_asked(root: Path) -> None:
    result = atlas(root, "ask", "--json", stdin=f"???\n{QUESTION}\n{'x' * 3000}\n{QUESTION}\n")
    assert result.exit_code == 3
    assert len(result.stdout.splitlines()) == 2
    assert "note: line 1 of stdin: the question '???' has no word in it" in result.stderr
    assert "note: line 3 of stdin: the question has 3,00" in result.stderr


@pytest.mark.parametrize(("stdin", "problem"), [("", "no question; "), ("??\n", "line 1 of stdin")])
def test_stdin_without_a_question_is_refused(root: Path, stdin: str, problem: str) -> None:
    result = atlas(root, "ask", stdin=stdin)
    assert result.exit_code == 2
    assert f"atlas: {problem}" in result.stderr


def test_an_unknown_reader_stops_a_batch(root: Path) -> None:
    result = atlas(root, "ask", "--reader", "boss", stdin=f"{QUESTION}\n{QUESTION}\n")
    assert "unknown reader group 'boss'" in refusal(result)


def test_stdin_that_is_no_utf8_is_asked_as_far_as_it_can_be_read(root: Path) -> None:
    done = run("ask", "-C", str(root), "--json", stdin=b"caf\xe9 battery\n")
    assert done.returncode == 0
    assert json.loads(done.stdout)["question"] == "caf\ufffd battery"


def test_the_loop_on_a_terminal_answers_refuses_and_ends(root: Path) -> None:
    assert atlas(root, "ingest").exit_code == 0
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("ask", "-C", str(root)),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    os.write(ours, f"{QUESTION}\n???\n{UNANSWERABLE}\n\x04".encode())
    out, err = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0
    assert b"The battery is under warranty for 3 years. [1]" in out
    assert b"No answer: the documents do not say" in out
    assert b"Ask a question; an empty line ends." in err
    assert b"atlas: the question '???' has no word in it" in err
    assert b"Traceback" not in err


# ---- the process ----------------------------------------------------------------------------


def test_a_reader_that_goes_away_ends_it_quietly(root: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    process = subprocess.Popen(
        command("ask", "-C", str(root), QUESTION), stdout=theirs, stderr=subprocess.PIPE
    )
    os.close(theirs)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 141
    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err
    assert atlas(root, "show", "last").exit_code == 0  # the trace was kept


INTERRUPT = """\
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run in the background
FakeEncoder.encode_question = lambda *_: signal.raise_signal(2)
"""


def test_ctrl_c_ends_with_130_and_one_line(root: Path) -> None:
    done = run("ask", "-C", str(root), QUESTION, before=INTERRUPT)
    assert done.returncode == 130
    assert done.stdout == b""
    assert done.stderr.splitlines()[-1] == b"atlas: interrupted"
    assert b"Traceback" not in done.stderr


def test_a_terminal_without_unicode_is_written_to_all_the_same(root: Path) -> None:
    done = run("ask", "-C", str(root), QUESTION, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert b"The battery is under warranty for 3 years. [1]" in done.stdout


def test_a_bug_keeps_its_traceback(root: Path) -> None:
    bug = "FakeEncoder.encode_question = lambda *_: 1 / 0"
    done = run("ask", "-C", str(root), QUESTION, before=bug)
    assert done.returncode == 1
    assert b"ZeroDivisionError" in done.stderr


def test_atlas_runs_as_a_module(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "atlas", "ask", "-C", str(tmp_path / "no"), "x"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"atlas: ")


# ---- usage ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["aks"], ["ask", "--reader"], ["ask", "--nope"], ["ask", "a", "b"], ["show"]]
)
def test_a_wrong_call_ends_with_2(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture(scope="module")
def loaded() -> dict[str, Any]:
    program = (
        "import json, sys\n"
        "from atlas.cli import cli\n"
        "found = {}\n"
        f"for call in {[[], *([name] for name in COMMANDS)]!r}:\n"
        "    try: cli.main([*call, '--help'])\n"
        "    except SystemExit as done: assert not done.code\n"
        f"    found[' '.join(call)] = [m for m in {HEAVY!r} if m in sys.modules]\n"
        "print(json.dumps([found, list(cli.commands)]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    found, names = json.loads(done.stdout.splitlines()[-1])
    return {"found": found, "commands": names, "text": done.stdout.decode()}


def test_help_imports_nothing_heavy(loaded: dict[str, Any]) -> None:
    assert loaded["found"] == {name: [] for name in ["", *COMMANDS]}


def test_every_command_is_among_those_whose_help_is_tried(loaded: dict[str, Any]) -> None:
    assert sorted(loaded["commands"]) == sorted(COMMANDS)


def test_help_names_every_command_with_a_sentence(loaded: dict[str, Any]) -> None:
    for name in COMMANDS:
        command = cli.commands[name]
        assert command.help
        assert f"Usage: cli {name}" in loaded["text"] or f" {name} " in loaded["text"]


def test_the_version_is_the_packages() -> None:
    import atlas as package

    assert package.__version__ in CliRunner().invoke(cli, ["--version"]).stdout
