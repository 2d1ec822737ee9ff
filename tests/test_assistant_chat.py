"""The composer with a chat model that follows a script: what it is asked, and what is kept."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import pytest
from pieces import use_weights
from small import FILES, QUESTION, SETTINGS, WARRANTY, collection, opened, use_fakes

from atlas import trace as traces
from atlas.answer.chat import MEMORY_SCHEMA, NOT_SAID, PROMPT_VERSION
from atlas.assistant import Assistant
from atlas.citations import NO_SUPPORT
from atlas.collection import Collection
from atlas.errors import ChatError, ModelError, SettingsError
from atlas.models import ChatRequest, Reply
from atlas.opening import chat_model
from atlas.records import Block, Scope
from atlas.settings import Chat

TODAY = Scope(date=date(2026, 3, 2))
CHAT = Chat(base_url="http://127.0.0.1:9/v1", model="scripted", answer_tokens=77)
TRAIL = "---\nproducts: [T-7]\n---\n# Trail\n\nThe battery is under warranty for 2 years.\n"


@dataclass
class Scripted:
    """A chat model that says what its script makes of a request; keeps every request."""

    script: Callable[[ChatRequest], str]
    name: str = "scripted"
    fingerprint: str = "scripted at nowhere"
    seen: list[ChatRequest] = field(default_factory=list)

    def complete(self, request: ChatRequest) -> Reply:
        self.seen.append(request)
        return Reply(
            text=self.script(request), model="scripted-2026", prompt_tokens=70,
            completion_tokens=9, seconds=1.5, attempts=2,
        )  # fmt: skip


def reply(text: str = "", *sources: int, status: str = "answered", expression: str = "") -> str:
    rows = [{"text": text, "sources": list(sources)}] if text else []
    return json.dumps({"status": status, "sentences": rows, "expression": expression})


def number(request: ChatRequest, words: str) -> int:
    """The number in the prompt of the source that holds some words."""
    before = request.messages[1][1].partition(words)[0]
    return before.count("\n[")


def cites(text: str, words: str) -> Callable[[ChatRequest], str]:
    """A script that says a text and cites the source that holds some words."""
    return lambda request: reply(text, number(request, words))


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)
    use_weights(monkeypatch)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assistant]:
    root = collection(tmp_path_factory.mktemp("a") / "c", {**FILES, "trail.md": TRAIL}, cases=None)
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_fakes(monkeypatch)
        with opened(root) as made:
            yield made


def with_chat(plain: Assistant, script: Callable[[ChatRequest], str]) -> tuple[Assistant, Scripted]:
    model = Scripted(script)
    made = Assistant(plain.collection, plain.index, plain.encoder, plain.reranker, model)
    made.settings = replace(plain.settings, answerer="chat", chat=CHAT)
    return made, model


def block_of(plain: Assistant, ref: str) -> Block:
    return next(b for n in range(len(plain.index)) if (b := plain.index.block(n)).ref == ref)


RIGHT = cites("The battery is under warranty for 3 years.", "for 3 years. The lock")


# ---- asking ---------------------------------------------------------------------------------


def test_an_answer_of_the_model_is_checked_and_cited(plain: Assistant) -> None:
    made, model = with_chat(plain, RIGHT)
    values = made.ask(QUESTION, TODAY).values
    assert (values["status"], values["drafted"]) == ("answered", "answered")
    assert values["answer"] == "The battery is under warranty for 3 years. [1]"
    [citation] = values["citations"]
    assert citation["ref"] == "WARR-1-p0"
    assert citation["quote"] == "The battery is under warranty for 3 years."
    assert len(model.seen) == 1


def test_the_trace_holds_model_prompt_tokens_and_fingerprints(plain: Assistant) -> None:
    made, model = with_chat(plain, RIGHT)
    values = made.ask(QUESTION, TODAY).values
    assert values["chat"]["model"] == "scripted-2026"
    assert (values["chat"]["seconds"], values["chat"]["attempts"]) == (1.5, 2)
    assert values["chat"]["cached"] is False
    assert (values["tokens"]["prompt"], values["tokens"]["completion"]) == (70, 9)
    assert values["fingerprints"]["chat"] == "scripted at nowhere"
    assert values["fingerprints"]["prompt"] == PROMPT_VERSION
    assert values["cause"] is None
    refs = list(values["chat"]["prompt"])
    kept = json.loads(traces.line(made.ask(QUESTION, TODAY)))["chat"]
    assert kept == {**values["chat"], "prompt": refs}
    [request, _] = model.seen
    assert set(refs) == {row["ref"] for row in values["context"]}
    places = [request.messages[1][1].index(block_of(plain, ref).text) for ref in refs]
    assert places == sorted(places)


def test_the_best_blocks_stand_at_both_ends_of_the_prompt(plain: Assistant) -> None:
    made, _ = with_chat(plain, RIGHT)
    values = made.ask(f"{QUESTION} of the C-3 or the T-7", TODAY).values
    ranks = [row["ref"] for row in values["context"]]
    assert len(ranks) > 2
    prompt = list(values["chat"]["prompt"])
    assert (prompt[0], prompt[-1]) == (ranks[0], ranks[1])


def test_the_request_says_how_long_and_what_for(plain: Assistant) -> None:
    made, model = with_chat(plain, RIGHT)
    made.ask(QUESTION, replace(TODAY, reader="sales", products=("C-3",)))
    [request] = model.seen
    assert request.answer_tokens == 77
    about = dict(request.about)
    assert about["scope"] == "sales, 2026-03-02, C-3"
    assert about["index"] == made.index.folder.name
    assert request.messages[1][1].endswith(f"Question: {QUESTION}")


@pytest.mark.parametrize(
    ("changed", "scope"),
    [
        (QUESTION, replace(TODAY, date=date(2026, 3, 3))),
        (QUESTION, replace(TODAY, reader="workshop")),
        (QUESTION, replace(TODAY, products=("C-3",))),
        (f"{QUESTION} today", TODAY),
    ],
)
def test_another_scope_or_question_is_another_request(
    plain: Assistant, changed: str, scope: Scope
) -> None:
    made, model = with_chat(plain, RIGHT)
    made.ask(QUESTION, TODAY)
    made.ask(changed, scope)
    first, second = model.seen
    assert first.digest() != second.digest()


def test_what_is_out_of_scope_reaches_no_prompt(plain: Assistant) -> None:
    made, model = with_chat(plain, RIGHT)
    made.ask("what does the battery of the C-3 cost", TODAY)
    made.ask("what does the battery of the C-3 cost", replace(TODAY, reader="sales"))
    anyone, sales = (repr(request) for request in model.seen)
    assert "499 EUR" not in anyone
    assert "PRICES" not in anyone
    assert "499 EUR" in sales


@pytest.mark.parametrize(
    ("script", "removed"),
    [
        (lambda _: reply("It lasts 3 years.", 9), "points at no supplied block"),
        (lambda _: reply("It lasts 3 years."), "no valid citation: It lasts 3 years."),
        (cites("It lasts 13 years.", "for 3 years. The lock"), "13 not in the cited block"),
        (cites("It lasts 3 years.", "for 2 years."), "3 not in the cited block"),
    ],
)
def test_a_forged_citation_or_figure_leaves_an_abstention_with_its_trace(
    plain: Assistant, script: Callable[[ChatRequest], str], removed: str
) -> None:
    made, _ = with_chat(plain, script)
    values = made.ask(QUESTION, TODAY).values
    assert (values["status"], values["reason"], values["answer"]) == ("abstained", NO_SUPPORT, "")
    assert values["citations"] == []
    assert removed in "\n".join(values["removed"])
    assert values["drafted"] == "answered"
    assert [row["kept"] for row in values["proposed"]] == [False]
    assert values["nearest"]
    assert values["chat"]["completion_tokens"] == 9


def test_what_the_model_declines_names_the_nearest_documents(plain: Assistant) -> None:
    made, _ = with_chat(plain, lambda _: reply(status="not_in_sources"))
    values = made.ask(QUESTION, TODAY).values
    assert (values["status"], values["reason"]) == ("abstained", NOT_SAID)
    assert values["nearest"]


def test_an_ambiguous_question_is_asked_back_with_products_in_scope(plain: Assistant) -> None:
    made, _ = with_chat(plain, lambda _: reply(status="ambiguous"))
    values = made.ask(QUESTION, TODAY).values
    assert (values["status"], values["choices"]) == ("needs_clarification", ["C-3", "T-7"])
    named = made.ask(f"{QUESTION} of the C-3", TODAY).values
    assert (named["status"], named["choices"]) == ("abstained", [])


@pytest.mark.parametrize("cause", ChatError.CAUSES)
def test_an_error_of_the_model_is_a_failed_trace_with_its_cause(
    plain: Assistant, cause: str
) -> None:
    def fail(_: ChatRequest) -> str:
        raise ChatError(cause, "the server said so")

    made, _ = with_chat(plain, fail)
    values = made.ask(QUESTION, TODAY).values
    assert (values["status"], values["cause"]) == ("failed", cause)
    assert values["reason"] == f"chat model: {cause}: the server said so"
    assert (values["answer"], values["citations"], values["nearest"]) == ("", [], [])
    assert values["context"]


@pytest.mark.parametrize(
    "question", ["how long is the battery of a C-4 under warranty", "what is it of the"]
)
def test_a_question_that_no_document_can_answer_is_not_sent(
    plain: Assistant, question: str
) -> None:
    made, model = with_chat(plain, RIGHT)
    assert made.ask(question, TODAY).status == "abstained"
    assert model.seen == []


def test_nothing_supplied_is_not_sent(plain: Assistant) -> None:
    made, model = with_chat(plain, RIGHT)
    made.settings = replace(made.settings, min_score=1.0)
    values = made.ask(QUESTION, TODAY).values
    assert (values["status"], values["reason"], values["chat"]) == ("abstained", NOT_SAID, None)
    assert model.seen == []


def test_the_words_of_the_question_are_sent_as_they_were_typed(plain: Assistant) -> None:
    made, model = with_chat(plain, RIGHT)
    values = made.ask("how long is the battrey under warranty", TODAY).values
    assert values["mended"] == {"battrey": "battery"}
    assert model.seen[0].messages[1][1].endswith("Question: how long is the battrey under warranty")


# ---- the other doors ------------------------------------------------------------------------


def test_given_blocks_are_the_whole_prompt_in_their_order(plain: Assistant) -> None:
    made, model = with_chat(plain, RIGHT)
    given = [block_of(plain, "MANUAL-1-p0"), block_of(plain, "WARR-1-p0")]
    values = made.answer_from(QUESTION, given, TODAY).values
    assert (values["status"], len(values["citations"])) == ("answered", 1)
    assert {row["ref"] for row in values["context"]} == {"MANUAL-1-p0", "WARR-1-p0"}
    assert set(values["chat"]["prompt"]) == {"MANUAL-1-p0", "WARR-1-p0"}
    assert "Claims are made" not in model.seen[0].messages[1][1]


def test_without_blocks_the_model_answers_from_memory_uncited(plain: Assistant) -> None:
    words = "For 9 years [1], see https://evil.test/x"
    made, model = with_chat(plain, lambda _: json.dumps({"status": "answered", "answer": words}))
    values = made.answer_from(QUESTION, [], TODAY).values
    assert values["status"] == "answered"
    assert values["answer"] == "For 9 years (1), see evil.test/x"
    assert (values["citations"], values["context"], values["removed"]) == ([], [], [])
    assert values["tokens"]["prompt"] == 70
    assert model.seen[0].schema == MEMORY_SCHEMA
    made, _ = with_chat(plain, lambda _: json.dumps({"status": "unknown", "answer": ""}))
    assert made.answer_from(QUESTION, [], TODAY).status == "abstained"
    assert plain.answer_from(QUESTION, [], TODAY).status == "abstained"


def test_another_repeat_is_another_request_and_leaves_the_first_assistant(plain: Assistant) -> None:
    made, model = with_chat(plain, RIGHT)
    other = made.under(replace(made.settings, k=1), repeat=2)
    values = other.ask(QUESTION, TODAY).values
    made.ask(QUESTION, TODAY)
    assert [request.repeat for request in model.seen] == [2, 0]
    assert values["settings"]["k"] == 1
    assert values["fingerprints"]["settings"] != made.fingerprints()["settings"]
    assert (made.repeat, made.settings.k) == (0, plain.settings.k)
    with pytest.raises(ValueError, match="another index"):
        made.under(replace(made.settings, block_size=500))


# ---- threads --------------------------------------------------------------------------------


def test_waiting_for_the_model_holds_nobody_up(plain: Assistant) -> None:
    arrived, leave = threading.Barrier(5, timeout=20), threading.Event()

    def wait(request: ChatRequest) -> str:
        arrived.wait()  # passes when four requests wait here at the same time
        assert leave.wait(20)
        return RIGHT(request)

    made, _ = with_chat(plain, wait)
    questions = [QUESTION, f"{QUESTION} of the C-3", f"{QUESTION} please", f"so {QUESTION}"]
    with ThreadPoolExecutor(4) as pool:
        traces_ = pool.map(lambda text: made.ask(text, TODAY), questions)
        try:
            arrived.wait()
            begun = time.monotonic()
            assert plain.ask(QUESTION, TODAY).values["question"] == QUESTION
            assert made.understand("lock", TODAY).text == "lock"
            assert time.monotonic() - begun < 15
        finally:
            leave.set()
        found = [trace.values for trace in traces_]
    assert [values["question"] for values in found] == questions
    assert {values["status"] for values in found} == {"answered"}


def test_many_threads_get_each_the_answer_to_their_own_question(plain: Assistant) -> None:
    made, _ = with_chat(plain, RIGHT)
    questions = [f"{QUESTION} number {'i' * n}" for n in range(1, 25)]
    alone = [made.ask(text, TODAY).values for text in questions]
    with ThreadPoolExecutor(8) as pool:
        together = [trace.values for trace in pool.map(lambda q: made.ask(q, TODAY), questions)]
    for name in ("question", "answer", "context", "dropped", "ranked", "tokens"):
        assert [values[name] for values in together] == [values[name] for values in alone]


# ---- opening --------------------------------------------------------------------------------


def test_the_settings_say_which_model_is_opened(tmp_path: Path) -> None:
    lines = "chat:\n  base_url: http://127.0.0.1:9/v1\n  model: m-1\n"
    root = collection(tmp_path / "c", settings=f"{SETTINGS}answerer: chat\n{lines}")
    with opened(root) as made:
        assert made.chat is not None
        assert made.chat.name == "m-1"
    (root / "atlas.yaml").write_text(f"{SETTINGS}{lines}", encoding="utf-8")
    with opened(root) as made:  # named, but not chosen
        assert made.chat is None
        assert made.fingerprints()["chat"] is None


def test_a_key_that_is_not_there_is_told_before_an_index_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATLAS_TEST_KEY", raising=False)
    root = collection(
        tmp_path / "c",
        {"warranty.md": WARRANTY},
        settings="answerer: chat\nchat:\n  base_url: http://127.0.0.1:9/v1\n  model: m-1\n"
        "  api_key_env: ATLAS_TEST_KEY\n",
    )
    monkeypatch.setattr("atlas.assistant.current_index", None)
    with pytest.raises(ModelError, match="ATLAS_TEST_KEY holds no key"):
        Assistant.of(Collection.open(root))
    with pytest.raises(SettingsError, match="no chat model is named; add `chat:`"):
        chat_model(None)
