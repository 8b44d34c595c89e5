"""Components add up; one that fails or hangs excludes the sample and says why."""

import threading

import pytest

from trainer.config import ConfigInvalid, resolve
from trainer.config.policy import RewardComponent
from trainer.contracts import Criterion, Rubric, VerifierSpec
from trainer.rewards import Sample, compose, exclusions, overlong_penalty

SHORT = VerifierSpec(name="word_count", args={"max": 3})
RUBRIC = Rubric(
    criteria=(
        Criterion(id="short", text="Is short.", points=1, verifier=SHORT),
        Criterion(
            id="calm", text="Shouts.", points=-1, verifier=VerifierSpec(name="must_contain", args={"texts": ["!"]})
        ),
    )
)
UNJUDGED = Rubric(criteria=(Criterion(id="kind", text="Is kind.", points=1),))
QUALITY = RewardComponent(name="quality", weight=2.0)
LENGTH = RewardComponent(name="length", kind="overlong", weight=0.5, soft_tokens=40)


def sample(response: str = "Two words", rubric: Rubric = RUBRIC, tokens: int = 10) -> Sample:
    return Sample(rubric, response, tokens, max_new_tokens=60)


@pytest.mark.parametrize(("tokens", "penalty"), [(0, 0.0), (40, 0.0), (45, -0.25), (50, -0.5), (60, -1.0), (70, -1.0)])
def test_overlong_falls_linearly_from_the_soft_limit_to_the_cut(tokens, penalty):
    assert overlong_penalty(tokens, 40, 60) == pytest.approx(penalty)


def test_overlong_without_a_slope_is_refused_before_the_run():
    with pytest.raises(ValueError, match="not below"):
        overlong_penalty(10, 60, 60)
    with pytest.raises(ConfigInvalid) as caught:
        resolve("policy", {"rewards": [{"name": "length", "kind": "overlong", "soft_tokens": 64}]})
    assert [problem.path for problem in caught.value.problems] == ["rewards.0.soft_tokens"]


def test_total_is_the_weighted_sum_and_parts_stay_unweighted():
    reward = compose([QUALITY, LENGTH], sample(tokens=50))
    assert reward.components == {"quality": 1.0, "length": -0.5}
    assert reward.total == pytest.approx(2.0 * 1.0 + 0.5 * -0.5)
    assert reward.rubric.score == 1.0
    assert reward.excluded == ""


def test_a_missing_verdict_excludes_the_sample():
    reward = compose([QUALITY], sample(rubric=UNJUDGED))
    assert reward.total is None
    assert reward.excluded == "quality: no verdict for kind"
    assert reward.rubric.missing == 1


def test_a_rubric_that_is_not_rewarded_cannot_exclude():
    assert compose([LENGTH], sample(rubric=UNJUDGED)).total == 0.0


def test_a_component_that_raises_excludes_the_sample_and_is_counted():
    def broken(part, sample, scores):
        raise RuntimeError("no answer")

    rewards = [compose([QUALITY], sample(), kinds={"rubric": broken}) for _ in range(2)] + [
        compose([QUALITY], sample())
    ]
    assert exclusions(rewards) == {"quality: RuntimeError: no answer": 2}


def test_a_component_that_hangs_excludes_the_sample():
    release = threading.Event()
    reward = compose([QUALITY], sample(), kinds={"rubric": lambda *_: release.wait(30) or 0.0}, seconds=0.05)
    release.set()
    assert (reward.total, reward.excluded) == (None, "quality: took longer than 0.05 s")
