"""`judge-calibration` on the command line: which judge, which models, what it ends with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from chat_servers import Behaviour, FakeChat, Seen, answers, status
from click.testing import CliRunner, Result
from small import SETTINGS, collection

from atlas.cli import cli
from atlas.errors import ChatError, UsageError
from atlas.models import ChatModel, ChatRequest, Reply

JUDGE = """\
judge:
  base_url: http://127.0.0.1:9/v1
  model: scripted-1
  deadline_seconds: 7
  answer_tokens: 77
"""
LABELS = """\
- {id: L1, question: How long, sources: [For 3 years.], answer: 3 years, label: correct}
- {id: L2, question: How long, sources: [For 3 years.], answer: 2 years, label: wrong}
- {id: L3, question: How long, sources: [For 3 years.], answer: 36 months, label: correct}
- {id: L4, question: How long, sources: [For 3 years.], answer: no idea, label: wrong}
"""
GOOD = '{"reason": "as the source", "verdict": "correct"}'


class Scripted:
    """A chat model that says what its script makes of a request."""

    name = "scripted-1"
    fingerprint = "scripted-1 at nowhere temperature 0"

    def __init__(self, script: Callable[[ChatRequest], str]) -> None:
        self.script = script
        self.seen: list[ChatRequest] = []

    def complete(self, request: ChatRequest) -> Reply:
        self.seen.append(request)
        return Reply(
            text=self.script(request), model=self.name, prompt_tokens=1, completion_tokens=1,
            seconds=0.0, attempts=1,
        )  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return labelled(tmp_path / "c", SETTINGS + JUDGE)


@pytest.fixture(autouse=True)
def _no_other_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder and the reranker are for `grounded` alone."""
    monkeypatch.setattr("atlas.models.load_both", None)


def labelled(root: Path, settings: str) -> Path:
    collection(root, settings=settings)
    (root / "judge_labels").mkdir()
    (root / "judge_labels" / "some.yaml").write_text(LABELS, encoding="utf-8")
    return root


def use(monkeypatch: pytest.MonkeyPatch, model: ChatModel) -> list[tuple[object, ...]]:
    """Let `load_chat` give a model; returns what it is called with."""
    called: list[tuple[object, ...]] = []

    def load_chat(base_url: str, model_name: str, **more: object) -> ChatModel:
        called.append((base_url, model_name, more))
        return model

    monkeypatch.setattr("atlas.opening.load_chat", load_chat)
    return called


def calibration(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["judge-calibration", "-C", str(root), *arguments])


def refusal(result: Result) -> tuple[int, str]:
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.exit_code, result.stderr.removeprefix("atlas: ").strip()


def failing(cause: str, unless: str = "nothing") -> Callable[[ChatRequest], str]:
    def script(request: ChatRequest) -> str:
        if unless in request.messages[1][1]:
            return GOOD
        raise ChatError(cause, "the server said so")

    return script


def test_the_model_under_judge_judges_with_its_settings(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Scripted(lambda request: GOOD)
    called = use(monkeypatch, model)
    result = calibration(root, "--judge", "chat", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["judge"], found["agreement"]) == ("chat", {"same": 2, "of": 4})
    assert found["model"] == f"rubric 1, {model.fingerprint}"
    assert found["spread"] is None
    more = {"api_key_env": "", "deadline_seconds": 7, "context_tokens": 0}
    assert called == [("http://127.0.0.1:9/v1", "scripted-1", more)]
    assert {request.answer_tokens for request in model.seen} == {77}


def test_without_a_judge_of_its_own_the_model_under_chat_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = labelled(tmp_path / "c", SETTINGS + JUDGE.replace("judge:", "chat:"))
    called = use(monkeypatch, Scripted(lambda request: GOOD))
    assert calibration(root, "--judge", "chat").exit_code == 0
    assert len(called) == 1


def test_without_any_model_it_says_where_to_name_one(tmp_path: Path) -> None:
    code, said = refusal(calibration(labelled(tmp_path / "c", SETTINGS), "--judge", "chat"))
    assert code == 2
    assert "under `judge:` in atlas.yaml" in said


def test_overlap_and_a_name_that_does_not_exist_load_no_model(root: Path) -> None:
    assert calibration(root, "--judge", "overlap").exit_code == 0
    code, said = refusal(calibration(root, "--judge", "oracle"))
    assert (code, "expected one of: overlap, grounded, chat" in said) == (2, True)


def test_repeats_are_for_chat_and_show_the_spread(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Scripted(lambda request: "no idea" if request.repeat == 1 else GOOD)
    use(monkeypatch, model)
    result = calibration(root, "--judge", "chat", "--repeat", "2")
    assert result.exit_code == 0, result.output
    assert "of 2 repeats), 4 of 4 verdicts changed" in result.stdout
    assert sorted(request.repeat for request in model.seen) == [0] * 4 + [1] * 4
    code, said = refusal(calibration(root, "--judge", "overlap", "--repeat", "2"))
    assert (code, said) == (
        2,
        "--repeat is for the judge chat; overlap says the same every time: leave it out",
    )


def test_whole_replies_are_kept_and_not_asked_for_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Scripted(lambda request: GOOD)
    use(monkeypatch, model)
    first = calibration(root, "--judge", "chat", "--json")
    assert len(model.seen) == 4
    again = calibration(root, "--judge", "chat", "--json")
    assert len(model.seen) == 4
    assert json.loads(first.stdout) == json.loads(again.stdout)


def test_a_full_disk_is_told_and_the_verdicts_stand(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, values: object) -> None:
        raise UsageError("no space left")

    monkeypatch.setattr("atlas.measure.chat_cache.write_whole", full)
    use(monkeypatch, Scripted(lambda request: GOOD))
    result = calibration(root, "--judge", "chat")
    assert result.exit_code == 0
    assert "4 of 4 scored" in result.stdout
    assert result.stderr == "note: replies could not be kept: no space left\n"


def test_a_server_that_cannot_be_reached_is_an_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Scripted(failing("unreachable")))
    assert refusal(calibration(root, "--judge", "chat")) == (3, "unreachable: the server said so")


def test_what_the_server_failed_is_named_and_asked_for_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Scripted(failing("rate limited", unless="36 months")))
    result = calibration(root, "--judge", "chat")
    assert result.exit_code == 3
    assert "coverage          1 of 4 scored" in result.stdout
    assert "the server failed 3 of 4 times (rate limited 3)" in result.stderr
    model = Scripted(lambda request: GOOD)
    use(monkeypatch, model)
    assert calibration(root, "--judge", "chat").exit_code == 0
    assert len(model.seen) == 3


def test_a_judge_that_cannot_be_read_is_a_result(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Scripted(lambda request: "The answer is correct."))
    result = calibration(root, "--judge", "chat")
    assert result.exit_code == 0, result.output
    assert "coverage          0 of 4 scored" in result.stdout
    assert result.stderr == ""


# ---- over a connection ----------------------------------------------------------------------


def served(tmp_path: Path, server: FakeChat, more: str = "") -> Path:
    judge = f"judge:\n  base_url: {server.base_url}\n  model: {server.model}\n{more}"
    return labelled(tmp_path / "c", SETTINGS + judge)


def test_a_server_is_asked_by_schema_and_its_verdicts_are_compared(tmp_path: Path) -> None:
    def verdict(request: Seen) -> str:
        wrong = any(f"\n{said}\n[END ANSWER" in request.prompt for said in ("2 years", "no idea"))
        return json.dumps({"reason": "by the source", "verdict": "wrong" if wrong else "correct"})

    with FakeChat(answers(verdict)) as server:
        result = calibration(served(tmp_path, server), "--judge", "chat", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["agreement"] == {"same": 4, "of": 4}
    assert [row["judge"] for row in found["labels"]] == ["correct", "wrong", "correct", "wrong"]
    asked = [request.body for request in server.seen if request.path.endswith("/completions")]
    assert len(asked) == 4
    assert all(body["response_format"]["type"] == "json_schema" for body in asked)


@pytest.mark.parametrize(
    ("behaviour", "cause"),
    [(status(401), "refused"), (answers(GOOD, model="another"), "wrong model")],
)
def test_a_server_that_cannot_serve_ends_it_with_the_cause(
    tmp_path: Path, behaviour: Behaviour, cause: str
) -> None:
    with FakeChat(behaviour) as server:
        code, said = refusal(calibration(served(tmp_path, server), "--judge", "chat"))
    assert (code, said.split(":")[0]) == (3, cause)


def test_replies_that_are_cut_short_are_unscored_and_say_so(tmp_path: Path) -> None:
    with FakeChat(answers(GOOD, finish_reason="length")) as server:
        result = calibration(served(tmp_path, server), "--judge", "chat")
    assert result.exit_code == 0, result.output
    assert "coverage          0 of 4 scored" in result.stdout
    assert result.stdout.count("reason: cut short: ") == 4


def test_where_nobody_listens_it_ends_with_the_cause(tmp_path: Path) -> None:
    with FakeChat(answers()) as server:
        root = served(tmp_path, server, "  deadline_seconds: 2\n")
    code, said = refusal(calibration(root, "--judge", "chat"))
    assert code == 3
    assert said.startswith("unreachable: ")
