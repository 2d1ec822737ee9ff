"""`chat` and `judge` in atlas.yaml: every value checked, every complaint with its line, no key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from atlas.errors import SettingsError
from atlas.settings import Chat, Settings, load_settings, with_value

KEY = "sk-secret-0123456789"
NAMES = ("chat", "judge")
HEAD = "base_url: http://127.0.0.1:8080/v1\n  model: qwen3:8b\n"


def settings(folder: Path, text: str) -> Settings:
    (folder / "atlas.yaml").write_text(text, encoding="utf-8")
    return load_settings(folder)


def refusal(folder: Path, text: str, line: int) -> str:
    """The one line of the error, which must name the file and the line."""
    with pytest.raises(SettingsError) as caught:
        settings(folder, text)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'atlas.yaml'}:{line}: ")
    assert "\n" not in message
    return message


# ---- what is taken --------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_an_address_and_a_model_are_enough(tmp_path: Path, name: str) -> None:
    found = getattr(settings(tmp_path, f"{name}:\n  {HEAD}"), name)
    assert found == Chat(base_url="http://127.0.0.1:8080/v1", model="qwen3:8b")
    assert (found.api_key_env, found.deadline_seconds, found.input_price) == ("", 60.0, None)


@pytest.mark.parametrize("name", NAMES)
def test_every_key_is_taken(tmp_path: Path, name: str) -> None:
    text = (
        f"{name}:\n  base_url: ' https://[::1]:8080/v1// '\n  model: ' m '\n"
        "  api_key_env: OPENAI_API_KEY\n  deadline_seconds: 2.5\n  context_tokens: 4096\n"
        "  answer_tokens: 200\n  in_flight: 8\n  input_price: 0.15\n  output_price: 0\n"
    )
    assert getattr(settings(tmp_path, text), name) == Chat(
        base_url="https://[::1]:8080/v1",
        model="m",
        api_key_env="OPENAI_API_KEY",
        deadline_seconds=2.5,
        context_tokens=4096,
        answer_tokens=200,
        in_flight=8,
        input_price=0.15,
        output_price=0,
    )


def test_the_judge_is_another_model_than_the_answerer(tmp_path: Path) -> None:
    found = settings(tmp_path, f"chat:\n  {HEAD}judge:\n  {HEAD.replace('qwen3:8b', 'gemma3')}")
    assert found.chat is not None
    assert found.judge is not None
    assert (found.chat.model, found.judge.model) == ("qwen3:8b", "gemma3")


def test_a_key_without_a_value_has_its_default(tmp_path: Path) -> None:
    found = settings(tmp_path, f"chat:\n  {HEAD}  deadline_seconds:\n  api_key_env:\njudge:\n")
    assert found.chat == Chat(base_url="http://127.0.0.1:8080/v1", model="qwen3:8b")
    assert found.judge is None


# ---- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("below", "line", "problem"),
    [
        (" some words", 2, "is 'some words'; expected base_url and model below it"),
        (" [a]", 2, "expected base_url and model below it"),
        (" {}", 2, "lacks base_url"),
        ("\n  model: m", 2, "lacks base_url"),
        ("\n  base_url: http://h/v1", 2, "lacks model"),
        ("\n  base_url: http://h/v1\n  model: ' '", 2, "lacks model"),
        ("\n  base_url: http://h/v1\n  model: 3", 4, "model is 3; expected text"),
        ("\n  base_url: [http://h]\n  model: m", 3, "expected text"),
        (f"\n  {HEAD}  modle: x", 5, "'modle'; did you mean 'model'?"),
        (f"\n  {HEAD}  qqq: x", 5, "'qqq'; known: base_url, model, api_key_env"),
        (f"\n  {HEAD}  model: x", 5, "the key 'model' stands twice"),
        (f"\n  {HEAD}  deadline_seconds: 0", 5, "expected a number 1 to 3600"),
        (f"\n  {HEAD}  deadline_seconds: 3601", 5, "expected a number 1 to 3600"),
        (f"\n  {HEAD}  deadline_seconds: .inf", 5, "expected a number 1 to 3600"),
        (f"\n  {HEAD}  deadline_seconds: .nan", 5, "expected a number 1 to 3600"),
        (f"\n  {HEAD}  deadline_seconds: soon", 5, "is 'soon'; expected a number 1 to 3600"),
        (f"\n  {HEAD}  deadline_seconds: true", 5, "expected a number 1 to 3600"),
        (f"\n  {HEAD}  context_tokens: -1", 5, "a whole number 0 to 10000000"),
        (f"\n  {HEAD}  context_tokens: 4096.5", 5, "expected a whole number"),
        (f"\n  {HEAD}  answer_tokens: 15", 5, "expected a whole number 16 to 100000"),
        (f"\n  {HEAD}  in_flight: 0", 5, "expected a whole number 1 to 256"),
        (f"\n  {HEAD}  in_flight: 257", 5, "expected a whole number 1 to 256"),
        (f"\n  {HEAD}  input_price: -0.1", 5, "expected a number 0 to 1000000"),
        (f"\n  {HEAD}  output_price: free", 5, "is 'free'; expected a number"),
    ],
)
def test_a_bad_value_is_named_with_its_line_and_what_was_expected(
    tmp_path: Path, name: str, below: str, line: int, problem: str
) -> None:
    message = refusal(tmp_path, f"title: x\n{name}:{below}\n", line)
    assert problem in message
    assert name in message or "stands twice" in message


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "address",
    ["localhost:8080", "//h/v1", "ftp://h/v1", "file:///etc/passwd", "http://", "http:///v1",
     "http://h:99999/v1", "http://h:0/v1", "http://h:x/v1", "http://[::1/v1", "words",
     "http://\u2603/v1", "http://h o/v1", "http://h/\u202ev1"],
)  # fmt: skip
def test_what_is_no_address_is_refused(tmp_path: Path, name: str, address: str) -> None:
    message = refusal(tmp_path, f"{name}:\n  model: m\n  base_url: '{address}'\n", 3)
    assert f"{name}.base_url is no address; expected http://host:port/v1" in message


@pytest.mark.parametrize("text", ["answerer: chat\n", f"judge:\n  {HEAD}answerer: chat\nchat:\n"])
def test_a_chat_answerer_without_a_model_is_refused(tmp_path: Path, text: str) -> None:
    line = text.splitlines().index("answerer: chat") + 1
    message = refusal(tmp_path, text, line)
    assert "no model is named; add `chat:` with `base_url` and `model` to atlas.yaml" in message


def test_the_option_is_checked_like_the_file(tmp_path: Path) -> None:
    plain = Settings()
    with pytest.raises(SettingsError, match=r"^--answerer: answerer is chat, but no model"):
        with_value(plain, "--answerer", "answerer", "chat")
    with pytest.raises(SettingsError, match=r"^--answerer: .* expected extractive or chat"):
        with_value(plain, "--answerer", "answerer", "magic")
    with pytest.raises(SettingsError, match="unknown setting 'chat'"):
        with_value(plain, "--set", "chat", "http://h/v1")
    named = replace(plain, chat=Chat(base_url="http://h/v1", model="m"))
    assert with_value(named, "--answerer", "answerer", "chat").answerer == "chat"


# ---- the key --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("line", "advice"),
    [
        (f"api_key: {KEY}", "name its variable with api_key_env"),
        (f"apiKey: {KEY}", "name its variable with api_key_env"),
        (f"key: {KEY}", "name its variable with api_key_env"),
        (f"token: {KEY}", "name its variable with api_key_env"),
        (f"api_key_env: {KEY}", "is no name of an environment variable"),
        (f"api_key_env: OPENAI {KEY}", "is no name of an environment variable"),
        (f"api_key_env: '1{KEY}'", "is no name of an environment variable"),
        (f"api_key_env: [{KEY}]", "environment variable"),
        (f"api_key_env: {{k: {KEY}}}", "environment variable"),
        (f"password: {KEY}", "unknown key"),
    ],
)
def test_a_key_in_the_file_is_refused_and_not_shown(
    tmp_path: Path, name: str, line: str, advice: str
) -> None:
    message = refusal(tmp_path, f"{name}:\n  {HEAD}  {line}\n", 4)
    assert advice in message
    assert KEY not in message
    assert "secret" not in message


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "address",
    [
        f"http://user:{KEY}@h/v1",
        f"http://{KEY}@h/v1",
        f"http://:{KEY}@h/v1",
        "http://@h/v1",
        f"http://h/v1?api_key={KEY}",
        f"http://h/v1#{KEY}",
    ],
)
def test_a_key_in_the_address_is_refused_and_not_shown(
    tmp_path: Path, name: str, address: str
) -> None:
    message = refusal(tmp_path, f"{name}:\n  model: m\n  base_url: '{address}'\n", 3)
    assert "holds a user, a password or a query" in message
    assert "api_key_env" in message
    assert KEY not in message


def test_the_value_of_the_variable_stands_in_no_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATLAS_TEST_KEY", KEY)
    text = f"answerer: chat\nchat:\n  {HEAD}  api_key_env: ATLAS_TEST_KEY\n"
    found = settings(tmp_path, text)
    before = found.fingerprint()
    assert KEY not in repr(found)
    monkeypatch.setenv("ATLAS_TEST_KEY", "another")
    assert settings(tmp_path, text).fingerprint() == before


# ---- fingerprints ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_part_of_a_model_changes_the_fingerprint_and_none_the_index(name: str) -> None:
    plain = Chat(base_url="http://h/v1", model="m")
    changes: list[dict[str, Any]] = [
        {"base_url": "http://i/v1"}, {"model": "n"}, {"api_key_env": "K"},
        {"deadline_seconds": 9.0}, {"context_tokens": 9}, {"answer_tokens": 99},
        {"in_flight": 9}, {"input_price": 1.0}, {"output_price": 1.0},
    ]  # fmt: skip
    models: list[dict[str, Any]] = [{name: replace(plain, **change)} for change in changes]
    found = [Settings(), *(Settings(**model) for model in [{name: plain}, *models])]
    assert len({item.fingerprint() for item in found}) == len(found)
    assert len({item.index_fingerprint() for item in found}) == 1
