"""Groups are scored as soon as they have ended, while others are still sampled."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from trainer.config.on_policy import Rollout
from trainer.contracts import Example, Message
from trainer.inference.sampling import SampleRequest, SampleResult
from trainer.rewards import Item
from trainer.rollouts import Groups, PromptPlan, Reward, sample_and_score


class Task:
    example = Example(key="row", prompt=(Message(role="user", content="Hi"),))
    rubric = None
    facts: ClassVar[dict[str, Any]] = {}


PLANS = [PromptPlan("row", group, index, "Hi", (1,), (1,), 10 * group + index) for group in (0, 1) for index in (0, 1)]


class Sampler:
    """Ends responses in the order of `ends`, and fails before the response at place `fails`."""

    def __init__(self, seen: list[str], ends: Sequence[int], fails: int | None = None) -> None:
        self.seen, self.ends, self.fails = seen, ends, fails

    def sample(self, requests: Sequence[SampleRequest], progress: Any = None, finished: Any = None) -> Any:
        results = [SampleResult((5,), (0.0,), f"text {request.seed}", "stop", 0) for request in requests]
        for place in self.ends:
            if place == self.fails:
                raise KeyboardInterrupt
            self.seen.append(f"ended {place}")
            if finished:
                finished(place, results[place])
        return results


class Scorer:
    longest = 8

    def __init__(self, seen: list[str], asks: bool) -> None:
        self.seen, self.asks = seen, asks
        self.cancelled = 0

    def begin(self, items: Sequence[Item]) -> Any:
        self.seen.append(f"scored {items[0].place.split('/')[-2]}")
        scorer = self

        class Begun(list[Item]):
            def cancel(self) -> None:
                scorer.cancelled += 1

        return Begun(items)

    def finish(self, begun: Sequence[Any], watch: Any = None) -> list[Reward]:
        return [Reward(float(item.response.split()[1])) for items in begun for item in items]


def collected(
    asks: bool, ends: Sequence[int] = (2, 3, 1, 0), fails: int | None = None
) -> tuple[list[str], Scorer, Any]:
    seen: list[str] = []
    scorer = Scorer(seen, asks)
    groups = Groups(PLANS, {"row": Task()}, scorer, "train/1")
    sampler: Any = Sampler(seen, ends, fails)
    try:
        return seen, scorer, sample_and_score(sampler, PLANS, Rollout(), groups, scorer)
    except KeyboardInterrupt:
        return seen, scorer, None


def test_a_group_is_scored_once_its_last_response_has_ended_and_before_the_others_have():
    seen, _, found = collected(asks=True)
    assert seen == ["ended 2", "ended 3", "scored 1", "ended 1", "ended 0", "scored 0"]
    assert [(t.plan.group, t.plan.index, t.text, t.reward.total) for t in found.trajectories] == [
        (0, 0, "text 0", 0.0),
        (0, 1, "text 1", 1.0),
        (1, 0, "text 10", 10.0),
        (1, 1, "text 11", 11.0),
    ]


def test_where_nobody_is_asked_scoring_does_not_disturb_the_sampling():
    seen, _, found = collected(asks=False)
    assert seen[:4] == ["ended 2", "ended 3", "ended 1", "ended 0"]
    assert [t.reward.total for t in found.trajectories] == [0.0, 1.0, 10.0, 11.0]


@pytest.mark.parametrize(("fails", "begun"), [(2, 0), (1, 1)])
def test_what_was_begun_is_given_up_with_the_step(fails: int, begun: int):
    _, scorer, found = collected(asks=True, fails=fails)
    assert found is None and scorer.cancelled == begun
