"""Which documents exist for a question: readers, dates, years, revisions, products."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from small import collection, opened, use_fakes

from atlas.assistant import Assistant
from atlas.errors import UsageError
from atlas.records import Scope
from atlas.scope import ScopeView, unreadable, view, without_years

TODAY = date(2026, 3, 2)
SETTINGS = """\
products:
  C-3: [C3, city bike]
  T-7: [T7, trekking bike, trekking e-bike]
  K-1: [kids' bike]
readers: [sales, workshop]
"""


def document(**metadata: str) -> str:
    lines = "\n".join(f"{key}: {value}" for key, value in metadata.items())
    return f"---\n{lines}\n---\n# {metadata['id']}\n\n## Term\n\nSome words on the battery.\n"


DOCUMENTS = [
    document(id="WARR-R1", products="[C-3]", valid_from="2025-01-01"),
    document(id="WARR-R2", products="[C-3]", valid_from="2026-01-01", supersedes="WARR-R1"),
    document(id="RETURNS-R1", valid_from="2024-01-01", valid_to="2025-12-31"),
    document(id="RETURNS-R2", valid_from="2026-01-01", supersedes="RETURNS-R1"),
    document(id="RETURNS-R3", valid_from="2027-01-01", supersedes="RETURNS-R2"),
    document(id="MANUAL-T7", products="[T-7]"),
    document(id="SPEC", products="[C-3, T-7]"),
    document(id="FAQ"),
    document(id="PRICES-R1", readers="[sales]", valid_from="2025-01-01"),
    document(id="RECALL", readers="[workshop, sales]", products="[K-1]"),
]
TODAYS = {"WARR-R2", "RETURNS-R2", "MANUAL-T7", "SPEC", "FAQ"}


def written(root: Path, documents: list[str], settings: str = SETTINGS) -> Path:
    files = {f"{number:02}.md": text for number, text in enumerate(documents)}
    return collection(root, files, settings=settings, cases=None)


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory) -> Assistant:
    root = written(tmp_path_factory.mktemp("scope") / "c", DOCUMENTS)
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_fakes(monkeypatch)
        return opened(root)


View = Callable[..., ScopeView]
Seen = Callable[..., set[str]]


@pytest.fixture
def look(assistant: Assistant) -> View:
    def of(question: str, **scope: object) -> ScopeView:
        wanted = Scope(**{"date": TODAY, **scope})  # type: ignore[arg-type]
        return view(question, wanted, assistant.settings, assistant.index, TODAY)

    return of


@pytest.fixture
def seen(assistant: Assistant, look: View) -> Seen:
    def of(question: str, **scope: object) -> set[str]:
        return documents_of(assistant, look(question, **scope))

    return of


def documents_of(assistant: Assistant, found: ScopeView) -> set[str]:
    numbers = assistant.index.block_document[found.blocks]
    return {assistant.index.ids[number] for number in np.unique(numbers)}


# ---- readers --------------------------------------------------------------------------------


def test_anyone_sees_unrestricted_documents_only(seen: Seen) -> None:
    assert seen("battery") == TODAYS


def test_a_reader_group_also_sees_its_own_documents(seen: Seen) -> None:
    assert seen("battery", reader="sales") == TODAYS | {"PRICES-R1", "RECALL"}
    assert seen("battery", reader="workshop") == TODAYS | {"RECALL"}


def test_naming_a_restricted_document_does_not_open_it(seen: Seen) -> None:
    assert seen("what does PRICES-R1 say") == TODAYS
    assert "PRICES-R1" not in seen("battery revision 1", reader="workshop")


def test_an_unknown_reader_is_refused_with_the_groups_that_exist(look: View) -> None:
    with pytest.raises(UsageError, match=r"unknown reader group 'boss'; .*: sales, workshop"):
        look("battery", reader="boss")


def test_an_empty_reader_is_no_reader_group(look: View) -> None:
    with pytest.raises(UsageError, match="unknown reader group ''"):
        look("battery", reader="")


# ---- dates ----------------------------------------------------------------------------------


def test_policies_in_force_on_the_day_are_seen_and_no_others(seen: Seen) -> None:
    assert seen("battery", date=date(2025, 6, 1)) == (TODAYS - {"WARR-R2", "RETURNS-R2"}) | {
        "WARR-R1",
        "RETURNS-R1",
    }
    assert "RETURNS-R3" in seen("battery", date=date(2027, 1, 1))


def test_the_first_and_the_last_day_of_a_policy_count(seen: Seen) -> None:
    assert "RETURNS-R1" in seen("battery", date=date(2025, 12, 31))
    assert "RETURNS-R2" not in seen("battery", date=date(2025, 12, 31))
    assert "RETURNS-R1" not in seen("battery", date=date(2026, 1, 1))
    assert "RETURNS-R2" in seen("battery", date=date(2026, 1, 1))


def test_today_is_the_day_where_none_is_given(assistant: Assistant) -> None:
    found = view("battery", Scope(), assistant.settings, assistant.index, date(2025, 6, 1))
    assert found.day == date(2025, 6, 1)
    assert "WARR-R1" in documents_of(assistant, found)


@pytest.mark.parametrize(
    "question",
    [
        "battery terms in 2025",
        "the 2025 battery terms",
        "battery terms in 2025?",
        "battery terms (2025)",
        "in 2025 a battery had what terms",
        "battery terms on 2025-06-01",
    ],
)
def test_a_year_or_day_in_the_question_chooses_its_policies(seen: Seen, question: str) -> None:
    assert {"WARR-R1", "RETURNS-R1"} <= seen(question)
    assert not {"WARR-R2", "RETURNS-R2"} & seen(question)


@pytest.mark.parametrize(
    "question",
    [
        "service after 2,000 km",
        "service after 2025 km",
        "service after 2025km",
        "service after 2025 kilometres",
        "is a 2025-km tour possible",
        "battery lasts 2000 charging cycles",
        "does it cost €2025",
        "does it cost 2025 EUR",
        "does it cost 2025 €",
        "does it cost $ 2025",
        "grease every 2000 or so",
        "lamp with 2000 lumens",
        "part 36C-2025",
        "part 2025/4",
        "firmware 2025.1",
        "call 20251",
        "a motor of 2000 W",
    ],
)
def test_an_amount_is_no_year(look: View, question: str) -> None:
    assert look(question).days == (TODAY,)


def test_this_year_means_today_and_a_later_one_its_first_day(look: View) -> None:
    assert look("terms in 2026").days == (TODAY,)
    assert look("terms in 2027").days == (date(2027, 1, 1),)


def test_a_year_long_before_any_policy_is_a_year(look: View) -> None:
    assert look("terms in 1850").days == (date(1850, 12, 31),)
    assert look("terms on 1899-05-01").days == (date(1899, 5, 1),)
    assert look("torque at 1850 rpm").days == (TODAY,)


def test_two_years_bring_the_policies_of_both(seen: Seen) -> None:
    assert {"RETURNS-R1", "RETURNS-R2"} <= seen("returns in 2025 and 2026") | {"RETURNS-R1"}
    assert look_days("returns in 2025 and 2026") == (date(2025, 12, 31), TODAY)


def look_days(question: str) -> tuple[date, ...]:
    from atlas.scope import _days

    return _days(question, TODAY)


def test_a_day_that_does_not_exist_is_passed_over(look: View) -> None:
    assert look("terms on 2025-02-31").days == (TODAY,)


def test_years_that_chose_policies_leave_the_words_and_amounts_stay() -> None:
    assert without_years("battery warranty in 2025") == "battery warranty"
    assert without_years("service after 2000 km") == "service after 2000 km"
    assert without_years("2025") == "2025"


# ---- revisions ------------------------------------------------------------------------------


def test_a_newer_document_in_scope_replaces_the_older(seen: Seen) -> None:
    assert "WARR-R1" not in seen("battery")


def test_a_newer_document_out_of_scope_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch)
    newer = document(id="TERMS-R2", readers="[sales]", supersedes="TERMS-R1")
    assistant = opened(written(tmp_path / "c", [document(id="TERMS-R1"), newer]))

    def seen(reader: str | None) -> set[str]:
        scope = Scope(reader=reader, date=TODAY)
        found = view("terms", scope, assistant.settings, assistant.index, TODAY)
        return documents_of(assistant, found)

    assert seen(None) == {"TERMS-R1"}
    assert seen("sales") == {"TERMS-R2"}


def test_a_named_document_is_seen_in_place_of_what_replaced_it(seen: Seen) -> None:
    found = seen("battery terms of WARR-R1")
    assert "WARR-R1" in found
    assert "WARR-R2" not in found
    assert found == seen("battery terms of WARR-R1 for a C-3"), "it speaks of its own product"
    assert "WARR-R1" in seen("warr-r1's battery terms")


def test_the_r1_of_a_document_id_names_no_other_document(seen: Seen) -> None:
    assert "RETURNS-R1" not in seen("battery terms of WARR-R1")


@pytest.mark.parametrize("words", ["revision 1", "rev. 1", "Rev 1", "rev1", "R1"])
def test_a_revision_names_every_readable_document_of_it(seen: Seen, words: str) -> None:
    found = seen(f"battery terms {words}")
    assert {"WARR-R1", "RETURNS-R1"} <= found
    assert not {"WARR-R2", "RETURNS-R2"} & found


def test_both_revisions_named_are_both_seen(seen: Seen) -> None:
    assert {"WARR-R1", "WARR-R2"} <= seen("compare WARR-R1 with WARR-R2")


def test_a_future_document_is_seen_when_it_is_named(seen: Seen) -> None:
    found = seen("what will RETURNS-R3 change")
    assert "RETURNS-R3" in found
    assert "RETURNS-R2" not in found


# ---- products -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        "battery of a T-7",
        "battery of a t-7?",
        "T7 battery",
        "t 7 battery",
        "T-7's battery",
        "the T-7s battery",
        "battery of the trekking bike",
        "trekking bikes battery",
        "trekking-bike battery",
        "trekking ebike battery",
        "treking bike battery",
        "battery of the TREKKING BIKE",
    ],
)
def test_a_product_is_known_by_name_alias_plural_and_typing_error(
    look: View, question: str
) -> None:
    assert look(question).products == ("T-7",)


def test_other_products_documents_are_absent_and_those_of_none_stay(seen: Seen) -> None:
    assert seen("battery of a T-7") == {"MANUAL-T7", "SPEC", "FAQ", "RETURNS-R2"}
    assert seen("battery", products=("C-3",)) == {"WARR-R2", "SPEC", "FAQ", "RETURNS-R2"}


def test_several_products_bring_the_documents_of_each(look: View, seen: Seen) -> None:
    assert look("c-3 or T-7 battery").products == ("C-3", "T-7")
    assert {"WARR-R2", "MANUAL-T7"} <= seen("c-3 or T-7 battery")


def test_products_of_the_caller_and_the_question_add_up(look: View) -> None:
    assert look("battery of a T-7", products=("C-3",)).products == ("C-3", "T-7")


def test_short_words_are_not_bent_into_products(look: View) -> None:
    assert look("my kid likes the city").products == ()


@pytest.mark.parametrize("name", ["C-4", "c4", "T-8", "c 4"])
def test_a_product_nobody_knows_is_mentioned_without_a_product(look: View, name: str) -> None:
    [mention] = look(f"battery of a {name}").mentions
    assert mention.product is None
    assert mention.words.casefold() == name.casefold()


def test_an_unknown_product_of_the_caller_is_refused(look: View) -> None:
    with pytest.raises(UsageError, match=r"unknown product 'C-4'; .*: C-3, T-7, K-1"):
        look("battery", products=("C-4",))


@pytest.fixture
def undeclared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assistant:
    use_fakes(monkeypatch)
    documents = [
        document(id="A", products="[Rover 9]"),
        document(id="B", products="[Rover 8]", readers="[sales]"),
        document(id="C", products="[Rover 7]", valid_from="2027-01-01"),
    ]
    return opened(written(tmp_path / "c", documents, settings=""))


def test_products_come_from_the_documents_where_the_settings_name_none(
    undeclared: Assistant,
) -> None:
    found = view(
        "is the rover9 fast", Scope(date=TODAY), undeclared.settings, undeclared.index, TODAY
    )
    assert found.products == ("Rover 9",)


@pytest.mark.parametrize("product", ["Rover 8", "Rover 7", "Rover 5"])
def test_a_product_of_hidden_documents_is_as_unknown_as_one_that_is_not_there(
    undeclared: Assistant, product: str
) -> None:
    scope = Scope(date=TODAY, products=(product,))
    with pytest.raises(UsageError) as caught:
        view("battery", scope, undeclared.settings, undeclared.index, TODAY)
    known = "this collection has: Rover 9"
    assert str(caught.value) == f"unknown product {product!r}; {known}"


def test_a_collection_without_groups_or_products_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch)
    assistant = opened(written(tmp_path / "c", [document(id="A")], settings=""))
    with pytest.raises(UsageError, match="it has none; leave --reader out"):
        view("x", Scope(reader="sales"), assistant.settings, assistant.index, TODAY)
    with pytest.raises(UsageError, match="it has none; leave --product out"):
        view("x", Scope(products=("C-3",)), assistant.settings, assistant.index, TODAY)


def test_a_product_of_replaced_documents_only_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch)
    older = document(id="OLD", products="[Rover 9]")
    newer = document(id="NEW", products="[Rover 8]", supersedes="OLD")
    assistant = opened(written(tmp_path / "c", [older, newer], settings=""))
    found = view("rover", Scope(date=TODAY), assistant.settings, assistant.index, TODAY)
    assert found.known_products == ("Rover 8",)


# ---- keys -----------------------------------------------------------------------------------


def test_equal_keys_mean_equal_blocks(look: View) -> None:
    views = [
        look(f"{question} battery", reader=reader, date=day)
        for question in ("", "T-7", "WARR-R1", "PRICES-R1", "revision 1", "in 2025", "RECALL")
        for reader in (None, "sales", "workshop")
        for day in (date(2024, 6, 1), date(2025, 6, 1), TODAY)
    ]
    for one in views:
        for other in views:
            assert (one.key == other.key) == np.array_equal(one.blocks, other.blocks)


def test_what_one_reader_asked_opens_nothing_to_the_next(assistant: Assistant) -> None:
    question = "does PRICES-R1 say anything of the C-3 battery"  # other restricted ones drop out
    day = date(2024, 6, 1)  # the price list is not yet in force, but it is named

    def supplied(reader: str | None) -> set[str]:
        values = assistant.ask(question, Scope(reader=reader, date=day)).values
        return {ref.rsplit("-", 2)[0] for ref in values["ranked"]}

    before = supplied(None)
    assert "PRICES-R1" in supplied("sales")
    assert supplied(None) == before
    assert "PRICES-R1" not in before


# ---- what may be shown again ----------------------------------------------------------------


def test_restricted_and_vanished_documents_are_unreadable(assistant: Assistant) -> None:
    names = ["FAQ", "PRICES-R1", "RECALL", "GONE", "WARR-R1"]
    assert unreadable(names, None, assistant.index) == ["PRICES-R1", "RECALL", "GONE"]
    assert unreadable(names, "sales", assistant.index) == ["GONE"]


def test_the_caller_may_name_a_product_by_alias_plural_or_without_its_hyphen(
    assistant: Assistant,
) -> None:
    for name in ("C-3", "c3", "C3s"):
        found = view(
            "battery",
            Scope(products=(name,), date=TODAY),
            assistant.settings,
            assistant.index,
            TODAY,
        )
        assert found.products == ("C-3",), name
