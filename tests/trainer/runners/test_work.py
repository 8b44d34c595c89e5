"""Weights that arrive with a proof, rewards that fail, responses that are joined from segments."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.config import PolicyConfig
from trainer.config.on_policy import Rollout
from trainer.contracts import Example
from trainer.inference.checksum import digest_of
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer
from trainer.inference.sampling import SampleRequest, SampleResult
from trainer.rewards import Item
from trainer.rollouts import PromptPlan, Reward, RewardSetup
from trainer.runners.feed import AttemptKey, SampleJob
from trainer.runners.responses import OpenResponses, saved
from trainer.runners.work import RewardWorker, RolloutWorker, ScoredGroup, ScoreJob
from trainer.scheduling import SampleId, Start, Stretch

SAMPLE = SampleId(7, 1)


def test_a_worker_fetches_a_version_once_and_reads_back_what_was_pushed(tiny_dir: Path) -> None:
    worker = RolloutWorker(LocalSampler(load_model(tiny_dir), load_tokenizer(tiny_dir)), slots=8)
    name = "model.layers.0.mlp.up_proj.weight"
    pushed = {name: torch.randn(128, 64, generator=torch.Generator().manual_seed(0))}
    fetched: list[int] = []

    def fetch() -> dict[str, torch.Tensor]:
        fetched.append(3)
        return pushed

    request, found = SampleRequest((1, 2, 3), 4, seed=5), []
    for attempt in (1, 2):
        worker.submit(SampleJob((AttemptKey(SAMPLE, attempt),), (request,), version=3), fetch)
        found += worker.collect(60.0).ended
    first, second = found
    assert fetched == [3] and first.result == second.result and second.key == AttemptKey(SAMPLE, 2)
    assert first.digest == digest_of(pushed) and first.result.version == first.version == 3
    assert worker.progress > 0 and worker.collect(0.0).ended == ()


def test_what_ends_the_sampling_is_raised_where_results_are_waited_for(tiny_dir: Path) -> None:
    worker = RolloutWorker(LocalSampler(load_model(tiny_dir), load_tokenizer(tiny_dir)), slots=8)

    def gone() -> Any:
        raise OSError("the weights are gone")

    worker.submit(SampleJob((AttemptKey(SAMPLE, 1),), (SampleRequest((1,), 4),), version=1), gone)
    with pytest.raises(OSError, match="the weights are gone"):
        worker.collect(60.0)


def test_a_reward_that_raises_is_missing_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, examples: list[Example]
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("no words")

    monkeypatch.setattr("trainer.rollouts.scoring.RewardScorer.score", broken)
    item = Item("train/0/0", examples[0], examples[0].rubric, "text", 1, 8)
    worker = RewardWorker(RewardSetup(PolicyConfig()))
    scored = worker.score(ScoreJob(1, (AttemptKey(SAMPLE, 1),), (item,)))
    assert isinstance(scored, ScoredGroup)
    (reward,) = scored.rewards
    assert reward.total is None and reward.excluded == "the reward failed: ZeroDivisionError: no words"


@pytest.fixture
def responses() -> Callable[[], OpenResponses]:
    def plans(number: int, size: int) -> list[PromptPlan]:
        return [PromptPlan(f"row-{number}", 0, i, "hi", (5,), (5, 6), seed=i) for i in range(size)]

    def make() -> OpenResponses:
        return OpenResponses(Rollout(max_new_tokens=5), 2, plans, lambda tokens: " ".join(map(str, tokens)))

    return make


def segment(*tokens: int, version: int, reason: Any = "length") -> SampleResult:
    return SampleResult(tokens, tuple(-0.5 for _ in tokens), "piece", reason, version)


def test_a_response_is_put_together_from_its_segments(responses: Callable[[], OpenResponses]) -> None:
    found, key = responses(), AttemptKey(SAMPLE, 1)
    found.begin(Start("w", *key, version=0), 2)
    assert found.request(key).prompt_tokens == (5, 6) and found.request(key).max_new_tokens == 2
    assert found.add(key, segment(10, 11, version=0)) is None
    seeds = {found.request(key).seed, 1}
    assert found.add(key, segment(12, 13, version=0)) is None
    request = found.request(key)
    assert request.prompt_tokens == (5, 6, 10, 11, 12, 13) and request.max_new_tokens == 1
    assert request.seed not in seeds
    whole = found.add(key, segment(14, version=1))
    assert whole is not None and whole.text == "10 11 12 13 14" and whole.stop == "length"
    assert whole.versions == ((0, 0, 4), (1, 4, 5))
    assert [span.tokens for span in whole.spans] == [(5, 6), (10, 11, 12, 13), (14,)]


def test_what_is_put_off_goes_on_and_a_lost_attempt_takes_only_its_own_tokens(
    responses: Callable[[], OpenResponses],
) -> None:
    found = responses()
    found.begin(Start("w", SAMPLE, 1, version=0), 2)
    found.add(AttemptKey(SAMPLE, 1), segment(10, 11, version=0))
    stretches = found.put_off(AttemptKey(SAMPLE, 1))
    for attempt in (2, 3):
        found.begin(Start("w", SAMPLE, attempt, version=1, stretches=stretches), 2)
        assert found.request(AttemptKey(SAMPLE, attempt)).prompt_tokens == (5, 6, 10, 11)
        found.add(AttemptKey(SAMPLE, attempt), segment(12, 13, version=1))
        if attempt == 2:
            found.lose(AttemptKey(SAMPLE, attempt))


def test_saved_responses_come_back(responses: Callable[[], OpenResponses]) -> None:
    first, done, waiting = responses(), AttemptKey(SampleId(7, 0), 1), AttemptKey(SAMPLE, 1)
    for key in (done, waiting):
        first.begin(Start("w", *key, version=0), 2)
        first.add(key, segment(10, 11, version=0, reason="stop" if key == done else "length"))
    first.scored(done, Reward(0.1 + 0.2, {"rubric": 0.3}, (), 0.3, 0.3))
    stretches = first.put_off(waiting)
    state = json.loads(json.dumps(saved(*first.snapshot())))
    again = responses()
    again.load(state, {SAMPLE.group: 2})
    assert again.snapshot() == first.snapshot()
    again.begin(Start("w", SAMPLE, 2, version=0, stretches=stretches), 2)
    assert again.request(AttemptKey(SAMPLE, 2)).prompt_tokens == (5, 6, 10, 11)
    (taken,) = again.taken(7, [0], group=3)
    assert taken.plan.group == 3 and taken.reward.total == 0.1 + 0.2


def test_responses_of_a_checkpoint_from_before_spans_come_back(responses: Callable[[], OpenResponses]) -> None:
    said = {"tokens": [10, 11, 12], "logprobs": [-0.5, -0.25, -0.125], "text": "ten", "finish_reason": "length"}
    reward = {"total": 0.5, "components": {}, "criteria": [], "score": None, "clipped": None, "excluded": ""}
    written = said | {"version": 0, "versions": [[0, 0, 2], [1, 2, 3]], "reward": reward}
    found = responses()
    found.load({"done": [{"sample": [7, 0]} | written], "put_off": [[7, 1, [13], [-1.0], [[1, 0, 1]]]]}, {7: 2})
    found.begin(Start("w", SAMPLE, 2, version=1, stretches=(Stretch(1, 0, 1),)), 2)
    assert found.request(AttemptKey(SAMPLE, 2)).prompt_tokens == (5, 6, 13)
    (taken,) = found.taken(7, [0], group=0)
    assert taken.versions == ((0, 0, 2), (1, 2, 3)) and taken.logprobs == (-0.5, -0.25, -0.125)
    assert (taken.prompt, taken.view, taken.stop, taken.reward.total) == ((5, 6), (5,), "length", 0.5)
