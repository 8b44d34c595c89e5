"""The shipped pairs with rubrics, read by the importer of RubricBench's layout: they match their README, and have no shortcut to the
labels.
"""

from collections import Counter
from typing import Any

import pytest

from trainer.claims.rubric_pairs import FEWEST, GIVEN, MOST, examples, split_examples
from trainer.contracts import Example
from webapp.datasets.formats.rubricbench.read import IMPORTER

from .test_demo_data import DEMO

FILE = DEMO / GIVEN.name
TRAPS = {"longer", "formatted", "confident", "explicit", "implicit", "refusal"}


@pytest.fixture(scope="module")
def imported() -> list[Example]:
    with FILE.open("rb") as stream:
        found: list[Any] = [example for _, example in IMPORTER.read(stream, FILE.name)]
    assert all(isinstance(each, Example) for each in found), "a row that the importer refuses"
    return found


def side(example: Example) -> tuple[str, bool, bool]:
    """(split, whether the first answer is better, whether the first answer is longer)."""
    first, second = (response.text for response in example.responses)
    first_better = example.preferences[0].strength < 0
    return example.meta["split"], first_better, (len(first) > len(second)) is first_better


def test_the_importer_reads_sixty_pairs_of_five_domains(imported):
    assert Counter(example.domain for example in imported) == dict.fromkeys(
        ("Chat", "IF", "STEM", "Coding", "Safety"), 12
    )
    assert len({example.key for example in imported}) == len({example.prompt for example in imported}) == 60
    for example in imported:
        texts = [criterion.text for criterion in example.rubric.criteria]
        assert FEWEST <= len(texts) <= MOST and len(set(texts)) == len(texts), example.key
        assert len({response.text.strip() for response in example.responses}) == 2, example.key
        assert example.meta["trap"] in TRAPS, example.key


def test_neither_place_nor_length_tells_the_label(imported):
    counts = Counter((example.domain, *side(example)) for example in imported)
    assert set(counts.values()) == {1, 2} and len(counts) == 5 * 2 * 2 * 2
    assert {count for (_, split, _, _), count in counts.items() if split == "train"} == {2}, "8 training pairs a domain"


def test_what_should_mislead_by_length_is_longer_and_what_by_form_has_marks(imported):
    for example in imported:
        texts = [response.text for response in example.responses]
        better, worse = texts if example.preferences[0].strength < 0 else texts[::-1]
        if example.meta["trap"] in ("longer", "confident", "refusal"):
            assert len(worse) >= 1.5 * len(better), example.key
        if example.meta["trap"] == "formatted":
            assert "**" in worse and "**" not in better, example.key


def test_the_claim_reads_what_the_importer_reads(imported):
    """Both read the same, except for the split, which RubricBench does not have, and the place of origin."""
    own = {"source": "", "tags": (), "meta": {}}
    told = [
        example.model_copy(update=own | {"split": example.meta["split"], "group": example.key}) for example in imported
    ]
    assert [each.canonical() for each in examples(FILE)] == [
        Example.model_validate(each.model_dump()).canonical() for each in told
    ]
    shown, kept = split_examples(examples(FILE))
    assert len(shown) == 40 and Counter(example.split for example in kept) == {"train": 40, "heldout": 20}
