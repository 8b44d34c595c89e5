"""Numbers with the name of what they count."""

import pytest

from trainer.config import RECIPES
from trainer.contracts.plurals import noun, with_noun
from trainer.contracts.training_counts import COUNTS

NEEDS = {need.words for recipe in RECIPES.values() for need in recipe.needs}
LEFT_OUT = {words for recipe in RECIPES.values() for need in recipe.needs for _, words in need.left_out}


@pytest.mark.parametrize(
    ("words", "one"),
    [
        ("pairs with a preferred answer", "1 pair with a preferred answer"),
        ("prompts whose every criterion has a verifier", "1 prompt whose every criterion has a verifier"),
        ("criteria without a verifier", "1 criterion without a verifier"),
        ("gold tasks", "1 gold task"),
        ("people", "1 person"),
        ("ties", "1 tie"),
        ("responses", "1 response"),
        ("passes", "1 pass"),
        ("batches", "1 batch"),
        ("policies", "1 policy"),
    ],
)
def test_one_of_them_is_said_in_the_singular(words, one):
    assert with_noun(1, words) == one


def test_no_and_many_of_them_in_the_plural():
    assert [with_noun(0, "pairs"), with_noun(1200, "criteria")] == ["0 pairs", "1,200 criteria"]


@pytest.mark.parametrize("words", sorted({*COUNTS.values(), *NEEDS, *LEFT_OUT}))
def test_everything_that_data_are_counted_in_has_a_singular(words):
    assert noun(1, words) != words
