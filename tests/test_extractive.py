"""Candidates in order of what the reranker says of them, and the claims that they make."""

from __future__ import annotations

import pytest
from pieces import block, blocks, candidate, hit, scored

from atlas.answer.extractive import (
    HEDGE,
    MAX_ANSWER,
    MAX_QUOTES,
    RANGE_BONUS,
    candidates,
    claims,
    in_context,
)
from atlas.answer.question import analyse

LOADS = block(
    "# Springs\n\n| Rider | Spring |\n|---|---|\n"
    "| 60 kg to 75 kg | soft |\n| 76 kg to 90 kg | medium |\n| 91 kg to 120 kg | hard |\n"
)
SENTENCES = block("One is hot. Two is warm. Three is cool. Four is cold.")


def best_first(question: str, *texts: str, **logits: float) -> list[str]:
    kept = [hit(block(text, f"D{n}")) for n, text in enumerate(texts)]
    return [item.quote.text for item in candidates(analyse(question), kept, scored(logits))]


def test_candidates_come_best_first_with_the_marker_of_their_block() -> None:
    kept = [hit(block("Alpha. Beta.", "A")), hit(block("Gamma.", "B"))]
    found = candidates(analyse("x"), kept, scored({"Alpha": 1, "Beta": 3, "Gamma": 2}))
    assert [(item.quote.text, item.marker, item.logit) for item in found] == [
        ("Beta.", 1, 3),
        ("Gamma.", 2, 2),
        ("Alpha.", 1, 1),
    ]


def test_ties_keep_the_rank_of_the_block_and_then_the_reading_order() -> None:
    assert best_first("x", "Alpha. Beta.", "Gamma.") == ["Alpha.", "Beta.", "Gamma."]


def test_a_quote_is_scored_under_its_titles() -> None:
    [piece] = blocks("# Battery\n\n## Term\n\nIt is three years.\n")
    seen: list[tuple[str, str]] = []

    def score(pairs: list[tuple[str, str]]) -> list[float]:
        seen.extend(pairs)
        return [0.0] * len(pairs)

    [found] = candidates(analyse("how long"), [hit(piece)], score)  # type: ignore[arg-type]
    assert seen == [("how long", "Battery. Term. It is three years.")]
    assert in_context(found.quote) == "Battery. Term. It is three years."


def test_the_better_of_two_wordings_counts() -> None:
    def score(pairs: list[tuple[str, str]]) -> list[float]:
        return [5.0 if "every 12 months" in words else 1.0 for words, _ in pairs]

    found = candidates(analyse("is it oiled once a year"), [hit(SENTENCES)], score)  # type: ignore[arg-type]
    assert {item.logit for item in found} == {5.0}


def test_of_very_many_quotes_those_with_the_question_words_are_scored() -> None:
    text = " ".join(f"Filler {n}." for n in range(MAX_QUOTES + 10)) + " The crank is last."
    found = candidates(analyse("crank"), [hit(block(text))], scored({}))
    assert len(found) == MAX_QUOTES
    assert "The crank is last." in [item.quote.text for item in found]


def test_a_row_whose_range_holds_the_number_goes_first() -> None:
    found = candidates(analyse("spring for 80 kg"), [hit(LOADS)], scored({}, 0.0))
    assert found[0].quote.text == "76 kg to 90 kg | medium"
    assert [item.logit for item in found] == [RANGE_BONUS, -RANGE_BONUS, -RANGE_BONUS]


@pytest.mark.parametrize(("weight", "spring"), [("76", "medium"), ("90", "medium"), ("91", "hard")])
def test_both_ends_belong_to_a_range(weight: str, spring: str) -> None:
    found = candidates(analyse(f"spring at {weight} kg"), [hit(LOADS)], scored({}, 0.0))
    assert found[0].quote.text.endswith(spring)


@pytest.mark.parametrize("question", ["spring for 80 km", "which spring"])
def test_a_number_of_another_unit_says_nothing_of_a_range(question: str) -> None:
    found = candidates(analyse(question), [hit(LOADS)], scored({}, 0.0))
    assert [item.logit for item in found] == [0.0, 0.0, 0.0]


def test_a_number_without_a_unit_belongs_to_the_range_that_holds_it() -> None:
    found = candidates(analyse("spring for 80"), [hit(LOADS)], scored({}, 0.0))
    assert [item.logit for item in found] == [RANGE_BONUS, 0.0, 0.0]
    assert found[0].quote.text == "76 kg to 90 kg | medium"
    sums = block("| Term | Sum |\n|---|---|\n| 2 to 5 kg | low |\n| 1950 to 2100 kg | high |")
    for question in ("sum in line 4", "sum in 2026"):
        found = candidates(analyse(question), [hit(sums)], scored({}, 0.0))
        assert [item.logit for item in found] == [0.0, 0.0]


def test_up_to_is_no_duration_unless_the_most_is_asked_for() -> None:
    bound, plain = "A warranty of up to 3 years.", "A warranty of 2 years."
    question = "how long is the warranty"
    assert best_first(question, bound, plain, bound=0.0) == [plain, bound]
    found = candidates(analyse(question), [hit(block(bound))], scored({}, 0.0))
    assert found[0].logit == -HEDGE
    found = candidates(analyse(f"maximum: {question}"), [hit(block(bound))], scored({}, 0.0))
    assert found[0].logit == 0.0


def test_up_to_costs_nothing_where_no_duration_is_asked_for() -> None:
    found = candidates(analyse("what load"), [hit(block("It takes up to 25 kg."))], scored({}, 0.0))
    assert found[0].logit == 0.0


def test_a_question_for_steps_quotes_a_short_block_whole() -> None:
    [found] = candidates(analyse("how do i cool it"), [hit(SENTENCES)], scored({}))
    assert found.quote.text == SENTENCES.text


def test_a_row_makes_one_claim_that_names_its_columns_and_quotes_it_verbatim() -> None:
    rows = [candidate(LOADS, spring, logit=3.0) for spring in ("soft", "medium", "hard")]
    [claim] = claims(rows[1], rows, analyse("tell of the springs"))
    assert claim.text == "Rider: 76 kg to 90 kg; Spring: medium"
    assert claim.quotes == ("76 kg to 90 kg | medium",)
    assert claim.markers == (1,)


def sentence_claims(question: str, *logits: float) -> list[str]:
    names = ("One", "Two", "Three", "Four")
    found = [candidate(SENTENCES, n, logit=x) for n, x in zip(names, logits, strict=False)]
    best = max(found, key=lambda item: item.logit)
    return [claim.text for claim in claims(best, found, analyse(question))]


def test_an_open_question_gets_the_nearly_as_good_sentences_in_reading_order() -> None:
    assert sentence_claims("tell of it", 3.0, 1.0, 4.0) == ["One is hot.", "Three is cool."]


def test_a_question_for_one_value_gets_one_quote() -> None:
    assert sentence_claims("how long is it hot", 3.0, 1.0, 4.0) == ["Three is cool."]


def test_what_the_reranker_doubts_is_never_added() -> None:
    assert sentence_claims("tell of it", -0.1, 0.5) == ["Two is warm."]


def test_another_block_adds_nothing() -> None:
    other = candidate(block("Elsewhere.", "E"), "Elsewhere", logit=4.0)
    best = candidate(SENTENCES, "One", logit=4.0)
    assert [c.text for c in claims(best, [best, other], analyse("tell"))] == ["One is hot."]


def test_an_answer_does_not_grow_past_its_limit() -> None:
    sentences = [f"{name} {'x' * 250}." for name in ("Alpha", "Beta", "Gamma")]
    piece = block(" ".join(sentences))
    found = [candidate(piece, name, logit=4.0) for name in ("Alpha", "Beta", "Gamma")]
    chosen = claims(found[0], found, analyse("tell"))
    assert [claim.text for claim in chosen] == sentences[:2]
    assert sum(len(claim.text) for claim in chosen) <= MAX_ANSWER


@pytest.mark.parametrize(
    ("question", "cost"),
    [
        ("how heavy is the bike", HEDGE),
        ("weight of the bike", HEDGE),
        ("what may the bike weigh", 0.0),
        ("maximum weight of the bike", 0.0),
        ("weight on the bike", 0.0),
        ("tell of the bike", 0.0),
    ],
)
def test_a_permitted_weight_is_not_what_a_thing_weighs(question: str, cost: float) -> None:
    limit = block("The permitted total weight of the bike is 150 kg.")
    [found] = candidates(analyse(question), [hit(limit)], scored({}, 0.0))
    assert found.logit == -cost
    [weighs] = candidates(analyse(question), [hit(block("It weighs 25 kg."))], scored({}, 0.0))
    assert weighs.logit == 0.0


NOISE = block("Some chargers whistle. The noise is no danger. A charger has a fan.")


def noise_claims(question: str, best: str = "whistle") -> list[str]:
    found = [candidate(NOISE, word, logit=-1.0) for word in ("whistle", "danger", "fan")]
    lead = next(item for item in found if best in item.quote.text)
    return [claim.text for claim in claims(lead, found, analyse(question))]


def test_a_yes_or_no_question_also_gets_the_sentence_on_the_word_that_is_missing() -> None:
    assert noise_claims("is a whistling charger in danger") == [
        "Some chargers whistle.",
        "The noise is no danger.",
    ]
    assert noise_claims("is a danger that it whistles", "danger") == [
        "Some chargers whistle.",
        "The noise is no danger.",
    ]


def test_nothing_is_added_where_no_word_is_missing_or_no_sentence_has_it() -> None:
    assert noise_claims("do chargers whistle") == ["Some chargers whistle."]
    assert noise_claims("do chargers whistle in Timbuktu") == ["Some chargers whistle."]
    assert noise_claims("tell of the danger") == ["Some chargers whistle."]
