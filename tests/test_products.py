"""Names in a question -> products: by their ends where one product alone has them."""

from __future__ import annotations

import pytest

from atlas.products import find_products, product_names, with_names
from atlas.settings import Settings

GALAXY = ("Galaxy S10", "Galaxy S20")


def named(question: str, *products: str) -> list[str | None]:
    found = find_products(question, product_names(Settings(), products))
    return [mention.product for mention in found]


def test_the_end_of_a_name_with_a_digit_names_its_product() -> None:
    assert named("does the S10 float", *GALAXY) == ["Galaxy S10"]
    assert named("does the s 20 float", *GALAXY) == ["Galaxy S20"]


def test_an_end_that_two_products_share_names_neither() -> None:
    both = ("Galaxy S10", "Nexus S10")
    assert named("does the S10 float", *both) == []
    assert named("does the Nexus S10 float", *both) == ["Nexus S10"]


def test_an_end_that_is_anothers_name_is_that_one() -> None:
    assert named("does the S10 float", "Galaxy S10", "S10") == ["S10"]


@pytest.mark.parametrize("question", ["is the Galaxy dear", "what is a galaxy"])
def test_an_end_or_a_beginning_without_a_digit_names_nothing(question: str) -> None:
    assert named(question, *GALAXY) == []


def test_an_alias_becomes_the_name_that_the_documents_use() -> None:
    settings = Settings(products={"C-3": ("city bike",)})
    question = "how heavy is a city bike"
    found = find_products(question, product_names(settings, ("C-3",)))
    assert with_names(question, found) == "how heavy is a C-3"
