"""Experiments: grids that are refused, settings that take effect, and what is never done twice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fakes import FakeEncoder, FakeReranker
from pdf_samples import bookmark, lines, paged
from reportlab.pdfgen.canvas import Canvas
from small import collection, use_fakes

from atlas.assistant import Assistant
from atlas.cli import cli
from atlas.collection import Collection
from atlas.errors import AtlasError, SettingsError, UsageError
from atlas.ingest import ingest, open_index, why_stale
from atlas.measure.cases import DEVELOPMENT, load_cases
from atlas.measure.experiments import Experiment, experiment
from atlas.measure.grids import MAX_SETUPS, Setup, read_grid
from atlas.measure.report_many import experiment_lines
from atlas.measure.runs import Run
from atlas.measure.statistics import Unscored
from atlas.records import Scope, Trace
from atlas.rerank import LEAST
from atlas.settings import Settings

TODAY = Settings()
MANY = 32
"""Questions of the collection on which a broken setup must show."""


class Quiet:
    """Progress that counts its steps."""

    def __init__(self) -> None:
        self.total = 0
        self.done = 0

    def stage(self, name: str, total: int) -> None:
        self.total += total

    def step(self, count: int = 1) -> None:
        self.done += count


@dataclass
class Bench:
    """A collection on which experiments are run, and what was asked and opened there."""

    root: Path
    asked: list[str] = field(default_factory=list)
    opened: list[Settings] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    progress: Quiet = field(default_factory=Quiet)
    fail_at: int | None = None
    """The opening that is killed, from 0."""

    @property
    def today(self) -> Settings:
        return Collection.open(self.root).settings

    def open_with(self, settings: Settings) -> Assistant:
        if len(self.opened) == self.fail_at:
            raise KeyboardInterrupt
        self.opened.append(settings)
        own = settings.index_key() == self.today.index_key()
        variant = "" if own else settings.index_fingerprint()
        return Assistant.of(replace(Collection.open(self.root), settings=settings, variant=variant))

    def run(self, grid: str) -> Experiment:
        path = self.root / "grid.yaml"
        path.write_text(grid, encoding="utf-8")
        return experiment(
            self.today,
            read_grid(path, self.today),
            self.open_with,
            self.progress,
            DEVELOPMENT,
            cases=load_cases(self.root),
            looked=self.runs.append,
        )


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fakes(monkeypatch)


def bench(
    root: Path, files: Mapping[str, str], cases: str, settings: str = "title: Bench\n"
) -> Bench:
    return Bench(collection(root, files, settings=settings, cases=cases))


def watch(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Keep every question that is asked."""
    real = Assistant.ask

    def ask(self: Assistant, question: str, scope: Scope | None = None) -> Trace:
        bench.asked.append(question)
        return real(self, question, scope)

    monkeypatch.setattr(Assistant, "ask", ask)
    return bench


def supplied(table: Experiment, place: int, question: int = 0) -> list[str]:
    refs: list[str] = table.measured[place].questions[question]["supplied"]
    return refs


def recall(table: Experiment, place: int) -> list[float]:
    return [question["recall"] for question in table.measured[place].questions]


def timeless(table: Experiment) -> list[dict[str, Any]]:
    """The table without what a clock had to say."""
    setups: list[dict[str, Any]] = table.as_json()["setups"]
    for setup in setups:
        setup["summary"].pop("milliseconds")
    return setups


def word(number: int) -> str:
    """A made-up stem of its own for every number."""
    consonants = "bdfgklmnprst"
    first, second = divmod(number, len(consonants))
    return f"{consonants[first]}o{consonants[second]}ump"


def many_files(count: int = MANY) -> dict[str, str]:
    """Documents about one made-up word each."""
    return {
        f"d{n:02}.md": f"---\nid: D{n:02}\n---\n# Guide\n\n## Use\n\nIt was {word(n)}ed before.\n"
        for n in range(count)
    }


def many_cases(count: int = MANY) -> str:
    """Questions with the word in another form: a keyword search stems, the stand-in encoder and
    reranker do not."""
    return "".join(
        f"- {{id: Q{n}, question: who is {word(n)}ing, relevant: [D{n:02}-1]}}\n"
        for n in range(count)
    )


# ---- grids ----------------------------------------------------------------------------------


def grid(tmp_path: Path, text: str, today: Settings = TODAY) -> tuple[Setup, ...]:
    path = tmp_path / "grid.yaml"
    path.write_text(text, encoding="utf-8")
    return read_grid(path, today)


def test_a_grid_is_every_combination_in_its_order(tmp_path: Path) -> None:
    setups = grid(tmp_path, "retriever: [keyword, hybrid]\nrerank: [true, false]\nk: [3, 5]\n")
    assert [setup.name() for setup in setups] == [
        f"retriever {retriever}, rerank {rerank}, k {k}"
        for retriever in ("keyword", "hybrid")
        for rerank in ("on", "off")
        for k in (3, 5)
    ]
    assert setups[0].values == {"retriever": "keyword", "rerank": True, "k": 3}


def test_a_list_of_grids_is_one_grid_after_the_other(tmp_path: Path) -> None:
    made = grid(tmp_path, "- rerank: false\n- depth: [5, 10]\n  k: [3]\n- rerank_reach: 0.4\n")
    assert [dict(setup.values) for setup in made] == [
        {"rerank": False},
        {"depth": 5, "k": 3},
        {"depth": 10, "k": 3},
        {"rerank_reach": 0.4},
    ]
    assert made[0].settings == replace(TODAY, reranker="none")
    assert made[3].settings == replace(TODAY, rerank_reach=0.4)


def test_names_of_a_grid_become_settings(tmp_path: Path) -> None:
    today = replace(TODAY, vector_weight=0.7)
    weights = [
        s.settings.vector_weight
        for s in grid(tmp_path, "retriever: [keyword, vector, hybrid]", today)
    ]
    assert weights == [0.0, 1.0, 0.7]
    assert [s.settings.reranker for s in grid(tmp_path, "rerank: [true, false]", today)] == [
        today.reranker,
        "none",
    ]
    sizes = [s.settings.block_size for s in grid(tmp_path, "block_size: [500, section, page]")]
    assert sizes == [500, "section", "page"]


def test_what_a_grid_does_not_name_stays_as_it_is(tmp_path: Path) -> None:
    today = replace(TODAY, k=7, min_score=0.3, title="Bikes")
    (setup,) = grid(tmp_path, "prefix: none", today)
    assert setup.settings == replace(today, prefix="none")


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("k: [3]\nretreiver: [keyword]\n", 2, "unknown setting 'retreiver'"),
        ("k: [3]\n\nfinish: [3]\n", 3, "unknown setting 'finish'"),
        ("title: [a, b]\n", 1, "unknown setting 'title'"),
        ("retriever: [keyword, bm25]\n", 1, "retriever 'bm25'; expected keyword, vector, hybrid"),
        ("retriever: [[keyword]]\n", 1, "expected keyword, vector, hybrid"),
        ("retriever: {keyword: 1}\n", 1, "expected keyword, vector, hybrid"),
        ("k: [3]\nrerank: [1]\n", 2, "rerank 1; expected true or false"),
        ("k: [3, 0]\n", 1, "k is 0; expected a whole number 1 to 100"),
        ("k: [3, 3.5]\n", 1, "k is 3.5; expected a whole number"),
        ("k: [many]\n", 1, "k is 'many'"),
        ("k:\n", 1, "k is None"),
        ("min_score: [.nan]\n", 1, "min_score is nan"),
        ("# sizes\nblock_size: [500, chapter]\n", 2, "expected a number, section or page"),
        ("block_size: [10]\n", 1, "block_size is 10"),
        ("block_size: [500]\nblock_overlap: [400]\n", 2, "at most half of block_size"),
        ("prefix: [some]\n", 1, "prefix is 'some'"),
        ("k: [3]\nprefix: []\n", 2, "prefix: expected a list of values"),
        ("k: [3]\nprefix: [none]\nk: [4]\n", 3, "the key 'k' stands twice"),
        ("k: [3\n", 1, "not valid YAML"),
        ("- k: 3\n- three\n", 2, "expected lines such as"),
        ("- k: 3\n- k: 4\n  dept: [5]\n", 3, "unknown setting 'dept'"),
        ("- k: 3\n- depth: []\n", 2, "depth: expected a list of values"),
        ("[]\n", 1, "expected lines such as"),
        ("", 1, "expected lines such as"),
        ("three\n", 1, "expected lines such as"),
    ],
)  # fmt: skip
def test_a_bad_grid_is_refused_with_file_and_line(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        grid(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'grid.yaml'}:{line}: ")
    assert problem in str(caught.value)


def test_too_many_combinations_are_refused_before_they_are_made(tmp_path: Path) -> None:
    numbers = list(range(1, 51))
    text = "".join(f"{key}: {numbers}\n" for key in ("k", "depth", "max_per_document"))
    with pytest.raises(SettingsError, match=f"125000 combinations; expected at most {MAX_SETUPS}"):
        grid(tmp_path, text)


def test_a_grid_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml: cannot be read as a grid"):
        read_grid(tmp_path / "none.yaml", TODAY)


# ---- settings take effect -------------------------------------------------------------------


def test_the_retriever_takes_effect(tmp_path: Path) -> None:
    own = bench(tmp_path / "c", many_files(8), many_cases(8), "k: 1\n")
    table = own.run("retriever: [keyword, vector]\n")
    assert recall(table, 0) == [1.0] * 8
    assert recall(table, 1) == [1.0] * 8
    assert recall(table, 2) == [1.0] + [0.0] * 7


def test_reranking_takes_effect(tmp_path: Path) -> None:
    """A long text with every word of the question against a short one with half of them."""
    files = {
        "a.md": "# A\n\n## One\n\nGrease chain.\n",
        "b.md": "# B\n\n## One\n\nGrease the bright chain weekly " + "and so on " * 20 + ".\n",
    }
    case = "- {id: Q, question: grease bright chain weekly, relevant: [b-1]}\n"
    settings = "k: 1\nvector_weight: 1.0\nrerank_weight: 1.0\nprefix: none\n"
    table = bench(tmp_path / "c", files, case, settings).run("rerank: [true, false]\n")
    assert len(table.measured) == 2  # reranking is on today
    assert supplied(table, 0) == ["b-1-p0"]
    assert supplied(table, 1) == ["a-1-p0"]


@pytest.mark.parametrize("retriever", ["keyword", "vector"])
def test_the_prefix_takes_effect(tmp_path: Path, retriever: str) -> None:
    """The word that is asked for stands in a title only."""
    files = {
        "a.md": "# Pedals\n\n## One\n\nClean it often.\n",
        "b.md": "# Saddles\n\n## One\n\nClean it often.\n",
        "c.md": "# Lamps\n\n## One\n\nWipe it dry.\n",
    }
    case = "- {id: Q, question: saddles, relevant: [b-1]}\n"
    own = bench(tmp_path / "c", files, case, "k: 1\n")
    other = "vector" if retriever == "keyword" else "keyword"
    table = own.run(
        f"retriever: [{retriever}]\nrerank: [false]\nprefix: [both, {retriever}, {other}, none]\n"
    )
    assert [recall(table, place) for place in range(1, 5)] == [[1.0], [1.0], [0.0], [0.0]]


def test_the_block_size_takes_effect_up_to_whole_sections(tmp_path: Path) -> None:
    text = "# A\n\n## One\n\n" + "\n\n".join(f"{word(n)} " * 12 for n in range(6)) + "\n"
    case = "- {id: Q, question: dobump, relevant: [a-1]}\n"
    table = bench(tmp_path / "c", {"a.md": text}, case, "block_size: 200\n").run(
        "block_size: [100, 400, section]\n"
    )
    assert [item.blocks for item in table.measured] == [3, 6, 2, 1]


def test_whole_pages_are_cut_where_a_page_ends(tmp_path: Path) -> None:
    def first(canvas: Canvas) -> None:
        bookmark(canvas, "Care")
        lines(canvas, ["Care", "", "The chain is cleaned weekly.", "", "Then it is oiled."])

    def second(canvas: Canvas) -> None:
        lines(canvas, ["The rim is wiped dry.", "", "The bell is never oiled."])

    case = "- {id: Q, question: is the bell oiled, relevant: [sample@2]}\n"
    own = bench(tmp_path / "c", {}, case)
    paged(own.root / "documents", [first, second])
    table = own.run("block_size: [section, page]\n")
    assert [item.blocks for item in table.measured[1:]] == [1, 2]


def test_k_takes_effect(tmp_path: Path) -> None:
    table = bench(tmp_path / "c", many_files(6), many_cases(2)).run("k: [1, 3]\n")
    assert [len(supplied(table, place)) for place in (1, 2)] == [1, 3]


def test_depth_and_reach_take_effect_in_pairs(tmp_path: Path) -> None:
    own = bench(tmp_path / "c", many_files(), many_cases(3), "depth: 10\nrerank_reach: 1\n")
    made = own.run("- rerank: false\n- depth: [3, 20]\n- depth: 20\n  rerank_reach: 0\n")
    pairs = [item.estimate("pairs").mean for item in made.measured]
    values = [None if isinstance(mean, Unscored) else mean.value for mean in pairs]
    assert values[:4] == [10, 0, 3, 20]
    assert values[4] is not None
    assert LEAST <= values[4] < 20
    assert "20.0 pairs" in "\n".join(experiment_lines(made))


def test_todays_settings_stand_first_and_only_once(tmp_path: Path) -> None:
    own = bench(tmp_path / "c", many_files(4), many_cases(2), "k: 3\n")
    table = own.run("k: [1, 3]\nprefix: [both]\n")
    assert [item.setup.values for item in table.measured] == [{}, {"k": 1, "prefix": "both"}]
    assert [setup["today"] for setup in table.as_json()["setups"]] == [True, False]
    assert [run.settings["k"] for run in own.runs] == [3, 1]
    assert own.progress.done == own.progress.total == 4


# ---- block labels ---------------------------------------------------------------------------


def test_a_label_of_a_block_means_the_same_text_under_another_block_size(tmp_path: Path) -> None:
    """`a-1-p2` is the third paragraph today; with half the size the third piece is another one."""
    texts = [f"First {word(n)} lies here. " + f"{word(n)} " * 12 + "end." for n in range(4)]
    files = {
        "a.md": "# A\n\n## One\n\n" + "\n\n".join(texts) + "\n",
        "b.md": "# B\n\n## One\n\nNothing of it.\n",
    }
    case = (
        f"- {{id: Q, question: where is {word(2)}, relevant: [a-1-p2], "
        f"evidence: [First {word(2)} lies here.]}}\n"
    )
    own = bench(tmp_path / "c", files, case, "block_size: 150\nk: 1\nmax_per_document: 9\n")
    table = own.run("block_size: [100, 300, section]\n")
    assert [item.blocks for item in table.measured] == [5, 9, 3, 2]
    relevant = [item.questions[0]["relevant"] for item in table.measured]
    assert relevant[0] == ["a-1-p2"]
    assert "a-1-p2" not in relevant[1]
    assert relevant[2:] == [["a-1-p1"], ["a-1-p0"]]
    assert [recall(table, place) for place in range(4)] == [[1.0]] * 4


# ---- nothing is done twice, and nothing of the user's is touched ----------------------------


def test_each_text_is_embedded_once_over_all_setups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = FakeEncoder()
    monkeypatch.setattr("atlas.ingest.load_encoder", lambda name, state: encoder)
    own = bench(tmp_path / "c", many_files(6), many_cases(2))
    own.run("block_size: [section, 500]\nprefix: [both, none]\nretriever: [vector, hybrid]\n")
    assert len(own.opened) == 1 + 8
    assert len(encoder.encoded) == len(set(encoder.encoded)) == 12  # with and without titles
    own.run("block_size: [page, 700]\n")
    assert len(encoder.encoded) == 12


def test_the_index_in_use_stays_what_it_was(tmp_path: Path) -> None:
    own = bench(tmp_path / "c", many_files(4), many_cases(2))
    own.open_with(own.today)
    before = open_index(Collection.open(own.root))
    assert before is not None
    own.run("block_size: [300, section]\nprefix: [none]\nk: [2]\n")
    after = open_index(Collection.open(own.root))
    assert after is not None
    assert after.folder == before.folder
    assert why_stale(Collection.open(own.root), after) == ""


def test_a_setup_has_an_index_of_its_own(tmp_path: Path) -> None:
    own = bench(tmp_path / "c", many_files(4), many_cases(1))
    own.run("prefix: [none, keyword]\n")
    folders = [run.fingerprints["index"] for run in own.runs]
    state = own.root / ".atlas"
    assert len(list(state.glob("full*"))) == 3
    assert len(folders) == 3


# ---- killed and run again -------------------------------------------------------------------


GRID = "retriever: [keyword, vector]\nk: [1, 2]\n"


def test_a_killed_experiment_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, cases = many_files(6), many_cases(4)
    whole = bench(tmp_path / "whole", files, cases).run(GRID)
    own = watch(bench(tmp_path / "c", files, cases), monkeypatch)
    own.fail_at = 2
    with pytest.raises(KeyboardInterrupt):
        own.run(GRID)
    assert len(own.asked) == 2 * 4
    own.fail_at, own.asked, own.opened, own.runs = None, [], [], []
    own.progress = Quiet()
    again = own.run(GRID)
    assert len(own.asked) == 3 * 4
    assert [run.settings["k"] for run in own.runs] == [2, 1, 2]
    assert own.progress.done == own.progress.total
    assert timeless(again) == timeless(whole)
    assert again.verdicts == whole.verdicts


def test_a_finished_experiment_starts_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = watch(bench(tmp_path / "c", many_files(4), many_cases(3)), monkeypatch)
    own.run("k: [1]\n")
    own.run("k: [1]\n")
    assert len(own.asked) == 2 * 2 * 3


@pytest.mark.parametrize("changed", ["document", "case", "damage"])
def test_what_a_killed_experiment_left_is_not_used_for_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    own = watch(bench(tmp_path / "c", many_files(4), many_cases(3)), monkeypatch)
    own.fail_at = 2
    with pytest.raises(KeyboardInterrupt):
        own.run(GRID)
    if changed == "document":
        (own.root / "documents" / "d01.md").write_text("---\nid: D01\n---\n# New\n\n## Use\n\nx\n")
    elif changed == "case":
        text = many_cases(3).replace("who is", "what is")
        (own.root / "cases" / "core.yaml").write_text(text)
    else:
        for path in (own.root / ".atlas" / "experiments").glob("*/*.json"):
            path.write_bytes(path.read_bytes()[:-9])
    own.fail_at, own.asked = None, []
    own.run(GRID)
    assert len(own.asked) == 5 * 3


def test_another_encoder_under_the_same_name_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = watch(bench(tmp_path / "c", many_files(4), many_cases(3)), monkeypatch)
    own.fail_at = 2
    with pytest.raises(KeyboardInterrupt):
        own.run(GRID)
    other = FakeEncoder(fingerprint="fake-encoder-2")
    for name in ("atlas.assistant.load_encoder", "atlas.ingest.load_encoder"):
        monkeypatch.setattr(name, lambda *_: other)
    monkeypatch.setattr("atlas.assistant.load_both", lambda *_: (other, FakeReranker()))
    ingest(Collection.open(own.root))
    own.fail_at, own.asked = None, []
    own.run(GRID)
    assert len(own.asked) == 5 * 3


# ---- verdicts -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Experiment]:
    """Thirty-two questions, today's settings, two that change nothing and two that break it."""
    with pytest.MonkeyPatch.context() as patch:
        use_fakes(patch)
        root = tmp_path_factory.mktemp("many") / "c"
        own = bench(root, many_files(), many_cases(), "k: 1\n")
        yield own.run("retriever: [hybrid, vector]\nmin_score: [0.02, 0.01, 0.9]\n")


def test_a_broken_setup_is_clear(table: Experiment) -> None:
    verdicts = {
        measured.setup.name(): verdict["recall"]
        for measured, verdict in zip(table.measured[1:], table.verdicts, strict=True)
    }
    assert {name: verdict.text.split(" ", 1)[1] for name, verdict in verdicts.items()} == {
        "retriever hybrid, min_score 0.01": "could be chance",
        "retriever hybrid, min_score 0.9": "clear",
        "retriever vector, min_score 0.02": "clear",
        "retriever vector, min_score 0.01": "clear",
        "retriever vector, min_score 0.9": "clear",
    }
    vector = verdicts["retriever vector, min_score 0.02"].as_json()
    assert vector["difference"] == pytest.approx(1 / MANY - 1)
    assert vector["high"] < -0.7
    assert vector["p_value"] < 0.01
    assert vector["n"] == MANY
    nothing = verdicts["retriever hybrid, min_score 0.01"].as_json()
    assert (nothing["difference"], nothing["p_value"]) == (0.0, 1.0)


def test_the_order_before_selection_has_a_verdict_of_its_own(table: Experiment) -> None:
    """A bar that drops everything changes what is supplied and not what was ranked."""
    places = {item.setup.name(): n for n, item in enumerate(table.measured)}
    dropped = table.verdicts[places["retriever hybrid, min_score 0.9"] - 1]
    assert dropped["recall"].text == "-1.000 clear"
    assert dropped["ndcg@10"].text == "+0.000 could be chance"


def test_p_values_are_corrected_for_the_number_of_setups(tmp_path: Path) -> None:
    """Six questions lost of six: p = 2 / 2^6 alone, and twice that beside a second setup."""
    own = bench(tmp_path / "c", many_files(7), many_cases(7), "k: 1\n")
    alone = own.run("retriever: [vector]\n")
    both = own.run("retriever: [vector]\nmin_score: [0.02, 0.01]\n")
    assert alone.verdicts[0]["recall"].p_value == pytest.approx(2 / 64)
    assert alone.verdicts[0]["recall"].text.endswith(" clear")
    assert both.verdicts[0]["recall"].p_value == pytest.approx(4 / 64)
    assert both.verdicts[0]["recall"].text.endswith(" could be chance")


def test_the_json_table_has_a_summary_and_a_verdict_for_every_setup(table: Experiment) -> None:
    values = json.loads(json.dumps(table.as_json(), allow_nan=False))
    assert values["set"] == "development"
    first, *others = values["setups"]
    assert first["today"] is True
    assert first["against_today"] is None
    for setup in values["setups"]:
        assert set(setup["summary"]) >= {"hit", "recall", "ndcg@10", "milliseconds"}
        for summary in setup["summary"].values():
            assert {"mean", "low", "high", "scored", "total", "failed"} <= summary.keys()
            assert summary["scored"] == MANY
    for setup in others:
        assert set(setup["against_today"]) == {"recall", "ndcg@10"}
        for verdict in setup["against_today"].values():
            assert set(verdict) >= {
                "difference", "low", "high", "p_value", "verdict", "detectable",
            }  # fmt: skip


def test_the_printed_table_has_intervals_milliseconds_and_verdicts(table: Experiment) -> None:
    printed = list(experiment_lines(table))
    assert max(map(len, printed)) <= 100
    assert printed[0] == f"6 setups on {MANY} development questions (scored {MANY}); 95% intervals"
    text = "\n".join(printed)
    assert "  0  today's settings  (32 blocks)" in text
    assert "recall 1.000 [.89 1.00]" in text
    assert text.count("     against today: recall ") == 5
    assert sum(line.endswith(" ms") for line in printed) == 6


def test_without_a_scored_question_there_is_no_verdict(tmp_path: Path) -> None:
    case = "- {id: Q, question: who sings, expect: abstain}\n"
    table = bench(tmp_path / "c", many_files(3), case).run("k: [1]\n")
    assert table.verdicts[0]["recall"].text == "unscored"
    assert table.as_json()["setups"][1]["against_today"]["recall"]["difference"] is None
    assert any("recall unscored" in line for line in experiment_lines(table))


# ---- the command ----------------------------------------------------------------------------


def atlas(root: Path, *arguments: str) -> Result:
    name, *rest = arguments
    return CliRunner().invoke(cli, [name, "-C", str(root), *rest])


@pytest.fixture
def shop(tmp_path: Path) -> Bench:
    own = bench(tmp_path / "c", many_files(4), many_cases(3), "title: Shop\nk: 2\n")
    (own.root / "grid.yaml").write_text("block_size: [section]\nk: [1, 2]\n")
    return own


def test_the_command_prints_the_table(shop: Bench) -> None:
    result = atlas(shop.root, "experiment", str(shop.root / "grid.yaml"))
    assert result.exit_code == 0
    assert result.stdout.startswith("3 setups on 3 development questions")
    assert "block_size section, k 1  (4 blocks)" in result.stdout
    assert result.stderr == ""
    index = open_index(Collection.open(shop.root))
    assert index is not None
    assert why_stale(Collection.open(shop.root), index) == ""


def test_the_command_prints_json(shop: Bench) -> None:
    result = atlas(shop.root, "experiment", str(shop.root / "grid.yaml"), "--json")
    setups = json.loads(result.stdout)["setups"]
    expected = [{}, {"block_size": "section", "k": 1}, {"block_size": "section", "k": 2}]
    assert [setup["setup"] for setup in setups] == expected


def test_the_command_refuses_a_bad_grid_in_one_line(shop: Bench) -> None:
    (shop.root / "grid.yaml").write_text("k: [0]\n")
    result = atlas(shop.root, "experiment", str(shop.root / "grid.yaml"))
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"atlas: {shop.root / 'grid.yaml'}:1: k is 0")


def breaking(monkeypatch: pytest.MonkeyPatch, questions: Sequence[str]) -> None:
    """Let some questions fail."""
    real = Assistant.ask

    def ask(self: Assistant, question: str, scope: Scope | None = None) -> Trace:
        if question in questions:
            raise AtlasError("the server is gone")
        return real(self, question, scope)

    monkeypatch.setattr(Assistant, "ask", ask)


def test_failed_questions_end_the_command_with_3(
    shop: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, [f"who is {word(1)}ing"])
    result = atlas(shop.root, "experiment", str(shop.root / "grid.yaml"), "--json")
    assert result.exit_code == 3
    for setup in json.loads(result.stdout)["setups"]:
        counts = setup["summary"]["recall"]
        assert (counts["scored"], counts["total"], counts["failed"]) == (2, 3, 1)


def test_where_every_question_fails_nothing_was_measured(
    shop: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, [f"who is {word(n)}ing" for n in range(3)])
    assert atlas(shop.root, "experiment", str(shop.root / "grid.yaml")).exit_code == 4


def test_without_cases_there_is_nothing_to_measure(tmp_path: Path) -> None:
    root = collection(tmp_path / "c", many_files(2), cases=None)
    (root / "grid.yaml").write_text("k: [1]\n")
    result = atlas(root, "experiment", str(root / "grid.yaml"))
    assert (result.exit_code, result.stdout) == (4, "")


def test_a_setup_that_stands_twice_is_measured_once(shop: Bench) -> None:
    table = shop.run("k: [1, 1, 1]\n")
    assert [dict(item.setup.values) for item in table.measured] == [{}, {"k": 1}]
