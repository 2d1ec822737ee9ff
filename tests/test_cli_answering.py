"""`measure-answers` on the command line, quoting and with a chat model behind an address."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from chat_servers import Behaviour, Exchange, FakeChat, Seen, answers, status
from click.testing import CliRunner, Result
from small import FILES, SETTINGS, collection, use_fakes
from test_draw_file import label

from atlas.assistant import Assistant
from atlas.cli import cli

FILES_HERE = {
    **FILES,
    "trekking.md": "---\nid: WARR-T7\ntitle: Battery warranty\nproducts: [T-7]\n---\n"
    "# Battery warranty\n\n## Term\n\nThe battery is under warranty for 4 years.\n",
}
BATTERY = "how long is the battery of the C-3 under warranty"
LOCK = "how long is the lock of the C-3 under warranty"
BOLTS = "how tight are the crank bolts of the T-7"
PRICE = "what does the battery of the C-3 cost"
SWALLOW = "what is the airspeed of the swallow of the C-3"
AMBIGUOUS = "how long is the battery under warranty"
CASES = f"""\
- id: BATTERY
  question: {BATTERY}
  kind: plain
  relevant: [WARR-1]
  evidence: [The battery is under warranty for 3 years.]
  facts: [[3 years]]
  near_misses: [WARR-T7]
- id: LOCK
  question: {LOCK}
  kind: plain
  relevant: [WARR-1]
  facts: [[5 years]]
  reject: [3 years]
- {{id: BOLTS, question: {BOLTS}, relevant: [MANUAL-1], facts: [[40 Nm]]}}
- {{id: PRICE, question: {PRICE}, relevant: [PRICES-1], facts: [[499 EUR]]}}
- {{id: SWALLOW, question: {SWALLOW}, expect: abstain}}
- {{id: AMBIGUOUS, question: {AMBIGUOUS}, expect: clarify, facts: [[C-3], [T-7]]}}
"""
TERM = "The battery is under warranty for 3 years."
WRITES = {
    BATTERY: (TERM, "for 3 years"),
    LOCK: (TERM, "for 3 years"),  # the wrong line of the right block
    BOLTS: ("Tighten them to 50 Nm.", "40 Nm"),  # a figure that no source holds
    PRICE: ("It costs 499 EUR.", "499 EUR"),
    SWALLOW: (TERM, "for 3 years"),  # invented
}
"""Question -> the sentence, and words of the source that it cites."""


def writes(seen: Seen) -> str:
    """What the model says: right by heart once, asking back once, otherwise by WRITES."""
    question = seen.prompt.rpartition("Question: ")[2]
    sentence, source = WRITES.get(question, ("", "no such words"))
    if "END OF SOURCES" not in seen.prompt:
        known = question == BATTERY
        said = {"status": "answered" if known else "unknown", "answer": sentence * known}
        return json.dumps(said)
    said = {"status": "not_in_sources", "sentences": [], "expression": ""}
    if question == AMBIGUOUS:
        said["status"] = "ambiguous"
    elif source in seen.prompt:
        number = seen.prompt.partition(source)[0].count("\n[")
        said["status"] = "answered"
        said["sentences"] = [{"text": sentence, "sources": [number]}]
    return json.dumps(said)


def judges(seen: Seen) -> str:
    return json.dumps({"reason": "by the sources", "verdict": "correct"})


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)
    monkeypatch.delenv("ATLAS_STATE", raising=False)


def quoting(folder: Path, cases: str = CASES, settings: str = "") -> Path:
    """A collection that is answered by quoting."""
    return collection(folder / "c", FILES_HERE, settings=SETTINGS + settings, cases=cases)


def chatting(
    folder: Path, base_url: str, more: str = "", cases: str = CASES, settings: str = ""
) -> Path:
    """The same, answered by a chat model; `more` stands below `chat`."""
    chat = f"chat:\n  base_url: {base_url}\n  model: fake\n  deadline_seconds: 5\n{more}"
    return quoting(folder, cases, f"answerer: chat\n{chat}{settings}")


def measured(root: Path, *options: str) -> Result:
    result = CliRunner().invoke(cli, ["measure-answers", "-C", str(root), *options])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def found(root: Path, *options: str, code: int = 0) -> dict[str, Any]:
    """The JSON of a run."""
    result = measured(root, "--json", *options)
    assert result.exit_code == code, result.output
    values: dict[str, Any] = json.loads(result.stdout)
    return values


def refusal(result: Result, code: int = 2) -> str:
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    last = result.stderr.splitlines()[-1]
    assert last.startswith("atlas: ")
    return last.removeprefix("atlas: ")


def many(count: int) -> str:
    """As many cases, each of its own words."""
    return "".join(
        f"- {{id: Q{n}, question: how long is the battery of the C-3 under warranty {n}, "
        "relevant: [WARR-1], facts: [[3 years]]}\n"
        for n in range(count)
    )


def without_times(values: Any) -> Any:
    """JSON without what two equal runs need not share."""
    if isinstance(values, dict):
        return {key: without_times(item) for key, item in values.items() if key != "seconds"}
    return [without_times(item) for item in values] if isinstance(values, list) else values


# ---- what is measured -------------------------------------------------------------------------


def test_a_chat_model_is_measured_in_every_arm(tmp_path: Path) -> None:
    with FakeChat(answers(writes)) as server:
        values = found(chatting(tmp_path, server.base_url))
    arms = values["arms"]
    assert list(arms) == ["none", "real", "oracle", "oracle+noise", "oracle+near-misses"]
    means = {
        arm: [rates[name]["mean"] for name in
              ("accuracy", "abstained", "wrongly_abstained", "invented", "errors")]
        for arm, rates in arms.items()
    }  # fmt: skip
    sixth = pytest.approx(1 / 6)
    # by heart: BATTERY right, all else unknown, which is right for SWALLOW
    assert means["none"] == [pytest.approx(2 / 6), pytest.approx(5 / 6), 0.75, 0.0, 0.0]
    # BATTERY and AMBIGUOUS right; BOLTS removed, PRICE not seen; LOCK wrong, SWALLOW invented
    assert means["real"] == [pytest.approx(2 / 6), pytest.approx(2 / 6), 0.5, 1.0, 0.0]
    # PRICE right besides; SWALLOW and AMBIGUOUS have no evidence and are those of `real`
    assert means["oracle"] == [0.5, sixth, 0.25, 1.0, 0.0]
    assert means["oracle+near-misses"] == [1.0, 0.0, 0.0, None, 0.0]
    totals = {arm: (rates["accuracy"]["scored"], rates["accuracy"]["total"])
              for arm, rates in arms.items()}  # fmt: skip
    assert totals == {
        "none": (6, 6), "real": (6, 6), "oracle": (6, 6), "oracle+noise": (6, 6),
        "oracle+near-misses": (1, 6),
    }  # fmt: skip
    assert (values["easy"]["questions"], values["hard"]["questions"]) == (1, 3)
    assert values["unsorted"]["questions"] == 0
    assert values["headroom"]["value"] == sixth
    assert values["ceiling"]["value"] == 0.5
    assert values["causes"] == {
        "supplied, but a wrong detail was given": 1,
        "supplied, but no sentence passed the checks": 1,
        "evidence lost: scope": 1,
        "answered what the documents do not say": 1,
    }
    assert {row["id"]: row["cause"] for row in values["wrong"]} == {
        "LOCK": "supplied, but a wrong detail was given",
        "BOLTS": "supplied, but no sentence passed the checks",
        "PRICE": "evidence lost: scope",
        "SWALLOW": "answered what the documents do not say",
    }
    checks = values["citations"]
    assert (checks["wrong_drafts"], checks["caught"]) == (3, 1)  # LOCK, BOLTS, SWALLOW
    assert (checks["right_drafts"], checks["lost"]) == (1, 0)
    table = values["abstention"]["real"]
    assert {row: sum(columns.values()) for row, columns in table.items()} == {
        "answered": 4, "abstained": 1, "needs_clarification": 1,
    }  # fmt: skip
    assert set(values["cost"]) == set(arms)
    assert values["cost"]["real"]["prompt_tokens"] > values["cost"]["none"]["prompt_tokens"] > 0


def test_quoting_is_measured_with_the_same_fields(tmp_path: Path) -> None:
    root = quoting(tmp_path)
    values = found(root)
    with FakeChat(answers(writes)) as server:
        assert values.keys() == found(chatting(tmp_path / "chat", server.base_url)).keys()
    arms = values["arms"]
    assert arms["none"]["abstained"]["mean"] == 1.0  # nothing to quote
    assert values["easy"]["questions"] == 0
    assert arms["real"]["accuracy"]["mean"] <= arms["oracle"]["accuracy"]["mean"]
    wrong = sum(values["causes"].values())
    assert wrong == len(values["wrong"]) == 6 - round(6 * arms["real"]["accuracy"]["mean"])
    assert all(row["cause"] for row in values["wrong"])
    assert values["cost"]["real"]["completion_tokens"] == 0
    report = measured(root)
    assert report.exit_code == 0
    assert report.stdout.startswith("6 development questions, 1 without an answer in the doc")
    for start in ("headroom", "ceiling", "accuracy does not rise after k", "cost per answer"):
        assert f"\n{start}" in report.stdout


def test_the_oracle_of_a_question_without_evidence_is_the_real_answer(tmp_path: Path) -> None:
    cases = f"- {{id: SWALLOW, question: {SWALLOW}, expect: abstain}}\n"
    with FakeChat(answers(writes)) as server:
        values = found(chatting(tmp_path, server.base_url, cases=cases))
        assert len(server.seen) == 2  # by heart, and from what was retrieved
    assert list(values["arms"]) == ["none", "real", "oracle", "oracle+noise"]
    assert values["arms"]["real"] == values["arms"]["oracle"] == values["arms"]["oracle+noise"]
    assert values["headroom"]["value"] == 0.0


# ---- options ----------------------------------------------------------------------------------


def test_only_the_arms_that_are_named_are_asked_and_real_always_is(tmp_path: Path) -> None:
    with FakeChat(answers(writes)) as server:
        root = chatting(tmp_path, server.base_url)
        values = found(root, "--arms", "oracle", "--k", "5")
        assert list(values["arms"]) == ["real", "oracle"]
        assert not [seen for seen in server.seen if "END OF SOURCES" not in seen.prompt]
        assert list(found(root, "--arms", " none , real", "--k", "5")["arms"]) == ["none", "real"]
    assert values["unsorted"]["questions"] == 4


def test_an_arm_that_does_not_exist_is_named_before_anything_is_asked(tmp_path: Path) -> None:
    root = quoting(tmp_path)
    assert refusal(measured(root, "--arms", "real,oracel")) == (
        "--arms: no arm is called 'oracel'; known: none, real, oracle, oracle+noise, "
        "oracle+near-misses"
    )
    assert not (root / ".atlas").exists()


@pytest.mark.parametrize("text", ["0", "3,0", "-1", "101", "x", "", "3,,5", "2.5"])
def test_a_k_that_cannot_be_is_refused(tmp_path: Path, text: str) -> None:
    said = refusal(measured(quoting(tmp_path), f"--k={text}"))
    assert said == f"--k {text!r}: expected whole numbers 1 to 100 such as 3,5,10"


def test_k_is_swept_with_that_of_the_settings(tmp_path: Path) -> None:
    values = found(quoting(tmp_path), "--k", "2, 1", "--arms", "real")
    assert [row["k"] for row in values["sweep"]] == [1, 2, 5]
    assert values["enough_k"] in (1, 2, 5)


def test_repeats_are_asked_again_and_show_the_spread(tmp_path: Path) -> None:
    turns: dict[str, int] = {}

    def fickle(seen: Seen) -> str:
        """Right at first, then it declines."""
        turns[seen.prompt] = turns.get(seen.prompt, 0) + 1
        return writes(seen) if turns[seen.prompt] == 1 else (
            '{"status": "not_in_sources", "sentences": [], "expression": ""}'
        )  # fmt: skip

    cases = many(4)
    right = {f"{BATTERY} {n}": WRITES[BATTERY] for n in range(4)}
    with pytest.MonkeyPatch.context() as patch, FakeChat(answers(fickle)) as server:
        patch.setitem(WRITES, BATTERY, WRITES[BATTERY])
        for question, text in right.items():
            patch.setitem(WRITES, question, text)
        root = chatting(tmp_path, server.base_url, cases=cases)
        values = found(root, "--repeat", "2", "--arms", "real", "--k", "5")
        assert len(server.seen) == 8
        assert len({json.dumps(seen.body, sort_keys=True) for seen in server.seen}) == 8
    assert values["arms"]["real"]["accuracy"]["mean"] == 1.0
    assert values["spread"]["sd"] == pytest.approx(0.5**0.5)  # accuracies of 1 and 0
    assert values["spread"]["changed"]["mean"] == 1.0
    assert values["spread"]["repeats"] == 2


def test_a_draw_of_questions_is_asked_and_the_same_one_every_time(tmp_path: Path) -> None:
    root = quoting(tmp_path, many(12))
    options = ("--questions", "4", "--arms", "real", "--judge", "overlap")
    values = found(root, *options)
    drawn = list(values["judged"]["verdicts"])
    assert values["questions"] == len(drawn) == 4
    assert drawn != [f"Q{n}" for n in range(4)]
    assert list(found(root, *options)["judged"]["verdicts"]) == drawn
    assert found(root, "--questions", "99", "--arms", "real")["questions"] == 12


def test_replies_are_kept_and_a_second_run_asks_nothing(tmp_path: Path) -> None:
    with FakeChat(answers(writes)) as server:
        root = chatting(tmp_path, server.base_url)
        first = found(root)
        asked = len(server.seen)
        again = found(root)
        assert len(server.seen) == asked
    assert again == first  # tokens and seconds are those of the first time
    assert "replies came from the cache" in measured(root).stdout
    assert list((root / ".atlas" / "answers").iterdir()) == []


@pytest.mark.parametrize("in_flight", [1, 3])
def test_as_many_questions_are_answered_at_once_as_the_settings_say(
    tmp_path: Path, in_flight: int
) -> None:
    with FakeChat(answers(writes, delay=0.05)) as server:
        root = chatting(tmp_path, server.base_url, f"  in_flight: {in_flight}\n", many(9))
        found(root, "--arms", "real", "--k", "5")
        assert server.most_in_flight == in_flight


def test_equal_requests_of_several_arms_are_asked_once(tmp_path: Path) -> None:
    with FakeChat(answers(writes)) as server:
        found(chatting(tmp_path, server.base_url))
        bodies = [json.dumps(seen.body, sort_keys=True) for seen in server.seen]
    assert len(bodies) == len(set(bodies))


# ---- judges and labels ------------------------------------------------------------------------


def test_a_judge_looks_at_the_answers_of_the_real_arm(tmp_path: Path) -> None:
    judged = found(quoting(tmp_path), "--judge", "overlap")["judged"]
    assert judged["judge"] == "overlap"
    assert set(judged["verdicts"]) == {
        "BATTERY", "LOCK", "BOLTS", "PRICE", "SWALLOW", "AMBIGUOUS",
    }  # fmt: skip
    assert judged["corrected"]["missing"] == 30
    assert judged["correct"]["total"] == 6


def test_labels_are_drawn_filled_in_and_correct_what_the_judge_says(tmp_path: Path) -> None:
    root = quoting(tmp_path, many(40))
    path = tmp_path / "draw.yaml"
    options = ("--arms", "real", "--k", "5", "--judge", "overlap", "--labels", str(path))
    result = measured(root, "--export-labels", "32", *options)
    assert result.exit_code == 0, result.output
    assert f"note: 32 of 40 answers are in {path}; label them from the top" in result.stderr
    assert "overlap" not in path.read_text("utf-8")
    nothing = found(root, *options)["judged"]["corrected"]
    assert (nothing["labels"], nothing["missing"], nothing["value"]) == (0, 30, None)
    label(path, *(["correct", "wrong"] * 15))
    judged = found(root, *options)["judged"]
    corrected = judged["corrected"]
    assert (corrected["labels"], corrected["answers"], corrected["missing"]) == (30, 40, 0)
    assert corrected["value"] == pytest.approx(0.5)
    assert corrected["low"] < 0.5 < corrected["high"]
    assert corrected["judged"]["value"] == judged["correct"]["mean"]
    assert "corrected 0.500 [" in measured(root, *options).stdout


def test_labels_of_another_run_are_refused(tmp_path: Path) -> None:
    root = quoting(tmp_path, many(8))
    path = tmp_path / "draw.yaml"
    labels = ("--labels", str(path))
    assert measured(root, "--arms", "real", "--export-labels", "4", *labels).exit_code == 0
    label(path, "correct")
    fewer = measured(root, "--arms", "real", "--questions", "7", "--judge", "overlap", *labels)
    assert "the labels say nothing of this run" in refusal(fewer)
    (root / "cases" / "core.yaml").write_text(many(9), encoding="utf-8")
    more = measured(root, "--arms", "real", "--judge", "overlap", *labels)
    assert more.exit_code == 0
    assert "1 answers came after the draw" in more.stderr


def test_a_draw_that_stands_already_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "draw.yaml"
    path.write_text("mine", encoding="utf-8")
    result = measured(quoting(tmp_path), "--export-labels", "2", "--labels", str(path))
    assert "stands already" in refusal(result)
    assert path.read_text("utf-8") == "mine"


def test_options_that_need_each_other_say_so(tmp_path: Path) -> None:
    root = quoting(tmp_path)
    assert "name it with --labels FILE" in refusal(measured(root, "--export-labels", "2"))
    path = tmp_path / "draw.yaml"
    assert "no such draw" in refusal(measured(root, "--labels", str(path), "--judge", "overlap"))
    assert measured(root, "--export-labels", "2", "--labels", str(path)).exit_code == 0
    assert "name one with --judge" in refusal(measured(root, "--labels", str(path)))
    unknown = refusal(measured(root, "--judge", "oracle"))
    assert "expected one of: overlap, grounded, chat" in unknown


def test_a_judge_of_the_family_that_wrote_is_refused_unless_forced(tmp_path: Path) -> None:
    with FakeChat(answers(writes)) as writer, FakeChat(answers(judges), model="fake-2") as other:
        judge = f"judge:\n  base_url: {other.base_url}\n  model: fake-2\n"
        root = chatting(tmp_path, writer.base_url, settings=judge)
        options = ("--judge", "chat", "--repeat", "2", "--arms", "real", "--k", "5")
        assert "force it with --same-family" in refusal(measured(root, *options))
        assert writer.seen == other.seen == []
        values = found(root, *options, "--same-family")
        assert len(other.seen) == 12
        quoted = found(root, "--answerer", "extractive", *options)
        assert quoted["judged"]["correct"]["scored"] == 6  # quoting has no family
    assert values["judged"]["correct"]["mean"] == 1.0
    assert values["judged"]["changed"]["mean"] == 0.0
    assert values["judged"]["agrees_with_facts"]["mean"] == pytest.approx(2 / 6)


# ---- what fails -------------------------------------------------------------------------------


def only(questions: Iterable[str], fault: Behaviour) -> Behaviour:
    """A fault for some questions, an answer for the others."""

    def act(exchange: Exchange) -> None:
        asked = exchange.request.prompt.rpartition("Question: ")[2]
        (fault if asked in questions else answers(writes))(exchange)

    return act


def test_errors_are_counted_apart_and_asked_again(tmp_path: Path) -> None:
    broken = status(400, "no")
    with FakeChat(only([BATTERY], broken)) as server:
        root = chatting(tmp_path, server.base_url)
        result = measured(root, "--json", "--k", "5")
        assert result.exit_code == 3
        assert "5 of 25 answers failed; run it again to ask them" in result.stderr
        values = json.loads(result.stdout)
        real = values["arms"]["real"]
        assert (real["accuracy"]["mean"], real["accuracy"]["scored"]) == (0.2, 5)
        assert (real["accuracy"]["total"], real["accuracy"]["failed"]) == (6, 1)
        assert real["errors"]["mean"] == pytest.approx(1 / 6)
        assert len(values["failures"]) == 5
        assert {row["id"] for row in values["failures"]} == {"BATTERY"}
        assert {row["cause"] for row in values["failures"]} == {"refused"}
        server.script = (answers(writes),)
        server.seen.clear()
        healed = found(root, "--k", "5")
        asked = {seen.prompt.rpartition("Question: ")[2] for seen in server.seen}
        assert asked == {BATTERY}
    assert healed["failures"] == []
    assert healed["arms"]["real"]["accuracy"]["scored"] == 6


@pytest.mark.parametrize(
    ("fault", "cause"),
    [(status(401, "bad key"), "refused"), (answers(model="llama-3"), "wrong model")],
)
def test_a_server_that_cannot_serve_ends_the_run_after_three_questions(
    tmp_path: Path, fault: Behaviour, cause: str
) -> None:
    with FakeChat(fault) as server:
        root = chatting(tmp_path, server.base_url, "  in_flight: 1\n", many(40))
        said = refusal(measured(root, "--json", "--arms", "real,oracle", "--k", "5"), 3)
        assert len({seen.prompt for seen in server.seen}) <= 2 * 4
    assert said.startswith(f"{cause}: no answer to 3 questions in a row, so the run stops")


def test_where_nobody_listens_the_run_ends_soon(tmp_path: Path) -> None:
    with FakeChat() as server:
        root = chatting(tmp_path, server.base_url, cases=many(200))
    begun = time.monotonic()
    said = refusal(measured(root, "--arms", "real", "--k", "5"), 3)
    assert said.startswith("unreachable: no answer to 3 questions in a row")
    assert time.monotonic() - begun < 30  # two hundred questions would take minutes


def test_a_server_that_dies_in_the_middle_costs_nothing_that_was_finished(tmp_path: Path) -> None:
    good, dead = answers(writes), status(401, "gone")
    with FakeChat(*[good] * 7, dead) as server:
        root = chatting(tmp_path, server.base_url, "  in_flight: 1\n", many(20))
        options = ("--arms", "real", "--k", "5")
        assert "what is finished is kept" in refusal(measured(root, *options), 3)
        assert len(server.seen) == 7 + 3
        server.script = (good,)
        server.seen.clear()
        result = measured(root, "--json", *options)
        assert len(server.seen) == 13
    assert result.exit_code == 0
    assert "note: 7 answers were finished before and are not asked again" in result.stderr
    assert json.loads(result.stdout)["arms"]["real"]["accuracy"]["scored"] == 20


def test_a_failure_now_and_then_does_not_end_the_run(tmp_path: Path) -> None:
    failing = [f"{BATTERY} {n}" for n in range(20) if n % 3]
    with FakeChat(only(failing, status(401))) as server:
        root = chatting(tmp_path, server.base_url, cases=many(20))
        values = found(root, "--arms", "real", "--k", "5", code=3)
    assert len(values["failures"]) == 13


def test_where_every_answer_failed_there_is_nothing_to_measure(tmp_path: Path) -> None:
    with FakeChat(status(401)) as server:
        root = chatting(tmp_path, server.base_url, cases=many(2))
        result = measured(root, "--json")
    assert result.exit_code == 4
    assert result.stdout == ""
    assert "every answer failed; the first: chat model: refused" in result.stderr


def test_a_bug_in_one_question_hides_no_other_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = Assistant._draft

    def breaks(self: Assistant, asked: Any, supplied: Any) -> Any:
        return 1 // 0 if asked.words == LOCK else real(self, asked, supplied)

    monkeypatch.setattr(Assistant, "_draft", breaks)
    result = measured(quoting(tmp_path), "--json", "--k", "5")
    assert result.exit_code == 3
    assert "LOCK broke:\nTraceback" in result.stderr
    values = json.loads(result.stdout)
    assert {(row["id"], row["cause"]) for row in values["failures"]} == {("LOCK", "bug")}
    assert values["arms"]["real"]["accuracy"]["scored"] == 5


def test_without_a_case_there_is_nothing_to_measure(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", FILES_HERE, cases=None)
    assert "no question in *.yaml" in refusal(measured(root), 4)
