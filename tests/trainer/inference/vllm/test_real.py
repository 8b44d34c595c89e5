"""vLLM itself, in each of its forms, compared with the model in this process."""

from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.inference.build import build_sampler
from trainer.inference.checksum import Checksum
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer
from trainer.inference.sampling import SampleRequest, SamplerInvalid
from trainer.loops.learner.learner import Learner, Marked

from .conftest import SERVERS, vllm_config

pytestmark = pytest.mark.vllm
TOLERANCE = 2e-5
"""The tolerance of a log-probability in float32, because kernels add in different orders."""
PROMPTS = ((5, 6, 7, 8), (5, 6, 7, 9, 10, 11), (70, 71))


def requests(temperature: float, top_p: float = 1.0, tokens: int = 12) -> list[SampleRequest]:
    prompts = [prompt for prompt in PROMPTS for _ in range(3)]
    return [SampleRequest(prompt, tokens, temperature, top_p, seed=seed) for seed, prompt in enumerate(prompts)]


def push(sampler: Any, learner: Learner, config: Any, version: int) -> None:
    """Pushes weights like the loop. The checksum that comes back must be that of the given weights."""
    sent = Checksum()
    weights = (
        learner.adapter_weights(config.model.dtype) if config.sampler.push == "adapters" else learner.merged_weights()
    )
    assert sampler.load_weights(sent.watching(weights), version) == sent.hexdigest()


def disturbed(learner: Learner, seed: int) -> Learner:
    with torch.no_grad():
        generator = torch.Generator().manual_seed(seed)
        for parameter in learner.parameters.values():
            parameter += 0.2 * parameter.abs().mean().clamp(min=0.1) * torch.randn(parameter.shape, generator=generator)  # type: ignore[misc]
    return learner


@pytest.fixture
def learner(setting: Any, small_dir: Path) -> Learner:
    return Learner(load_model(small_dir), setting[1])


@pytest.fixture
def local(small_dir: Path) -> LocalSampler:
    return LocalSampler(load_model(small_dir), load_tokenizer(small_dir))


@pytest.mark.parametrize("top_p", [1.0, 0.7])
def test_log_probs_are_those_of_the_distribution_that_was_drawn_from_as_with_the_local_sampler(
    setting: Any, learner: Learner, local: LocalSampler, top_p: float
) -> None:
    sampler, config = setting
    push(sampler, learner, config, 0)
    asked = requests(0.8, top_p)
    for who in (sampler, local):
        results = who.sample(asked)
        for request, result in zip(asked, results, strict=True):
            (expected,) = learner.sampled_log_probs([Marked.response(request.prompt_tokens, result.tokens)], 0.8, top_p)
            torch.testing.assert_close(torch.tensor(result.logprobs), expected, atol=TOLERANCE, rtol=0)
            assert (result.version, len(result.tokens)) == (0, 12) or result.finish_reason == "stop"
        assert len({result.tokens for result in results}) == len(asked), "seeds make them differ"


def test_a_push_changes_what_is_sampled_into_what_the_local_sampler_says(
    setting: Any, learner: Learner, local: LocalSampler
) -> None:
    sampler, config = setting
    greedy = requests(0.0)[::3]
    push(sampler, learner, config, 0)
    before = [result.tokens for result in sampler.sample(greedy)]
    assert before == [result.tokens for result in local.sample(greedy)]
    for version in (1, 2):
        disturbed(learner, version)
        push(sampler, learner, config, version)
        local.load_weights(learner.merged_weights(), version)
        mine, theirs = sampler.sample(greedy), local.sample(greedy)
        assert [(r.tokens, r.text, r.version) for r in mine] == [(r.tokens, r.text, r.version) for r in theirs]
        assert [r.tokens for r in mine] != before
        assert {logprob for r in mine for logprob in r.logprobs} == {0.0}
        asked = requests(0.9)
        for request, result in zip(asked, sampler.sample(asked), strict=True):
            (expected,) = learner.sampled_log_probs([Marked.response(request.prompt_tokens, result.tokens)], 0.9, 1.0)
            torch.testing.assert_close(torch.tensor(result.logprobs), expected, atol=TOLERANCE, rtol=0)


def test_the_same_requests_give_the_same_responses_again(setting: Any, learner: Learner) -> None:
    sampler, config = setting
    push(sampler, learner, config, 0)
    first = sampler.sample(requests(1.0))
    push(sampler, disturbed(learner, 5), config, 1)
    assert [r.tokens for r in sampler.sample(requests(1.0))] != [r.tokens for r in first]
    fresh = Learner(load_model(Path(learner._model.config._name_or_path)), config)
    push(sampler, fresh, config, 2)
    assert [(r.tokens, r.logprobs) for r in sampler.sample(requests(1.0))] == [(r.tokens, r.logprobs) for r in first]


def test_a_push_that_is_lost_shows_in_the_checksum(
    setting: Any, learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler, config = setting
    push(sampler, learner, config, 0)
    monkeypatch.setattr(sampler._engine, "update", lambda path, kind, version: None)
    with pytest.raises(AssertionError):
        push(sampler, disturbed(learner, 9), config, 1)
    sampler.version = 0


def test_stop_tokens_and_stop_texts_end_a_response(setting: Any, learner: Learner, local: LocalSampler) -> None:
    sampler, config = setting
    push(sampler, learner, config, 0)
    free = SampleRequest(PROMPTS[0], 12, 0.0)
    said = local.sample([free])[0]
    stop = said.text[3:5]
    by_text = SampleRequest(PROMPTS[0], 12, 0.0, stop=(stop,))
    (mine,), (theirs,) = sampler.sample([by_text]), local.sample([by_text])
    assert (mine.tokens, mine.text, mine.finish_reason) == (theirs.tokens, theirs.text, "stop")
    before, sampler._stop_ids = sampler._stop_ids, [said.tokens[2]]
    (result,) = sampler.sample([free])
    sampler._stop_ids = before
    assert (result.tokens, result.finish_reason) == (said.tokens[: said.tokens.index(said.tokens[2]) + 1], "stop")


def test_progress_is_told_and_may_end_the_sampling(setting: Any, learner: Learner) -> None:
    sampler, config = setting
    push(sampler, learner, config, 0)
    seen: list[tuple[int, int]] = []
    sampler.sample(requests(1.0), lambda *pair: seen.append(pair))
    assert seen[-1] == (9, 9) and seen == sorted(seen)

    def stop(done: int, total: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        sampler.sample(requests(1.0), stop)
    assert len(sampler.sample(requests(1.0))) == 9


@pytest.mark.parametrize("setting", SERVERS, indirect=True, ids="-".join)
def test_a_server_is_refused_where_it_cannot_serve_the_run(setting: Any, small_dir: Path) -> None:
    _, config = setting
    other = config.model_copy(update={"model": config.model.model_copy(update={"dtype": "bfloat16"})})
    with pytest.raises(SamplerInvalid, match="dtype 'float32', this run needs 'bfloat16'"):
        build_sampler(other, small_dir, load_tokenizer(small_dir))
    swapped, why = ("adapters", "takes adapters of rank 0") if config.sampler.push == "merged" else ("merged", "--rank")
    other = vllm_config("vllm_server", swapped, config.sampler.url)
    with pytest.raises(SamplerInvalid, match=why):
        build_sampler(other, small_dir, load_tokenizer(small_dir))
