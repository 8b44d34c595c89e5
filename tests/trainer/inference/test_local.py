"""The local sampler against plain forward passes."""

from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.inference.local import LocalSampler, filled_holes
from trainer.inference.models import load_model, load_tokenizer
from trainer.inference.sampling import SampleRequest, SampleResult

PROMPTS = ("A short one", "A prompt that starts like the next", "A prompt that starts like the next, and goes on")


@pytest.fixture(scope="module")
def sampler(tiny_dir: Path) -> LocalSampler:
    return LocalSampler(load_model(tiny_dir), load_tokenizer(tiny_dir))


def request_for(sampler: LocalSampler, text: str, **settings: Any) -> SampleRequest:
    tokens = tuple(sampler._tokenizer(text)["input_ids"])
    return SampleRequest(tokens, **{"max_new_tokens": 12, "temperature": 0.9, **settings})


def log_probs_of_a_full_pass(tiny_dir: Path, request: SampleRequest, tokens: tuple[int, ...]) -> torch.Tensor:
    """The log-probabilities by a model that has neither our attention nor our cache."""
    model = load_model(tiny_dir)
    with torch.no_grad():
        logits = model(torch.tensor([request.prompt_tokens + tokens])).logits[0, len(request.prompt_tokens) - 1 : -1]
    logp = torch.log_softmax(logits / request.temperature, dim=-1)
    return logp.gather(-1, torch.tensor(tokens)[:, None])[:, 0]


def test_log_probs_are_those_of_a_full_forward_pass(sampler: LocalSampler, tiny_dir: Path) -> None:
    requests = [request_for(sampler, text, seed=seed) for seed, text in enumerate(PROMPTS)]
    for request, result in zip(requests, sampler.sample(requests), strict=True):
        expected = log_probs_of_a_full_pass(tiny_dir, request, result.tokens)
        torch.testing.assert_close(torch.tensor(result.logprobs), expected, atol=2e-5, rtol=0)


def test_a_response_does_not_depend_on_its_neighbours(sampler: LocalSampler) -> None:
    requests = [request_for(sampler, text, seed=seed) for text in PROMPTS for seed in range(4)]
    together = sampler.sample(requests)
    backwards = sampler.sample(requests[::-1])[::-1]
    alone = [sampler.sample([request])[0] for request in requests]
    assert [result.tokens for result in together] == [result.tokens for result in backwards]
    assert [result.tokens for result in together] == [result.tokens for result in alone]


def test_seeds_make_the_members_of_a_group_differ(sampler: LocalSampler) -> None:
    results = sampler.sample([request_for(sampler, PROMPTS[0], seed=seed) for seed in range(8)])
    assert len({result.tokens for result in results}) == 8


def test_batches_beyond_the_limit_give_the_same_responses(sampler: LocalSampler, tiny_dir: Path) -> None:
    small = LocalSampler(load_model(tiny_dir), load_tokenizer(tiny_dir), max_batch=2)
    requests = [request_for(sampler, text, seed=7) for text in PROMPTS]
    assert [r.tokens for r in small.sample(requests)] == [r.tokens for r in sampler.sample(requests)]


def passes_of(sampler: LocalSampler) -> list[tuple[int, int]]:
    """(rows, tokens per row) of every pass from now on."""
    seen: list[tuple[int, int]] = []
    sampler._model.model.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    return seen


def test_a_response_that_ends_makes_room_for_the_next(tiny_dir: Path) -> None:
    pair = LocalSampler(load_model(tiny_dir), load_tokenizer(tiny_dir), max_batch=2)
    limits = [20, 1, 2, 3, 4, 5]
    requests = [request_for(pair, PROMPTS[n % 3], max_new_tokens=limit, seed=n) for n, limit in enumerate(limits)]
    alone = [pair.sample([request])[0] for request in requests]
    passes = passes_of(pair)
    results = pair.sample(requests)
    assert [result.tokens for result in results] == [result.tokens for result in alone]
    for one, other in zip(results, alone, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=2e-5)
    decoding = [rows for rows, width in passes if width == 1]
    assert len(decoding) == 19, "the five short responses were sampled beside the long one"
    assert sum(decoding) == sum(limit - 1 for limit in limits)


def test_a_group_computes_its_prompt_once_even_where_its_members_come_later(tiny_dir: Path) -> None:
    few = LocalSampler(load_model(tiny_dir), load_tokenizer(tiny_dir), max_batch=3)
    requests = [request_for(few, PROMPTS[2], max_new_tokens=4 + n, seed=n) for n in range(9)]
    passes = passes_of(few)
    few.sample(requests)
    assert [width for _, width in passes if width > 1] == [len(requests[0].prompt_tokens)]


def test_bfloat16_gives_the_log_probs_of_a_full_pass_within_its_three_digits(tiny_dir: Path) -> None:
    half = LocalSampler(load_model(tiny_dir, "bfloat16"), load_tokenizer(tiny_dir), max_batch=2)
    requests = [request_for(half, text, seed=seed) for seed, text in enumerate(PROMPTS)]
    for request, result in zip(requests, half.sample(requests), strict=True):
        expected = log_probs_of_a_full_pass(tiny_dir, request, result.tokens)
        torch.testing.assert_close(torch.tensor(result.logprobs), expected, atol=0.1, rtol=0)


def test_greedy_takes_the_most_likely_token_with_certainty(sampler: LocalSampler, tiny_dir: Path) -> None:
    request = request_for(sampler, PROMPTS[1], temperature=0.0, max_new_tokens=5)
    (result,) = sampler.sample([request])
    model, tokens = load_model(tiny_dir), list(request.prompt_tokens)
    for token in result.tokens:
        assert token == int(model(torch.tensor([tokens])).logits[0, -1].argmax())
        tokens.append(token)
    assert result.logprobs == (0.0,) * 5


def test_rows_with_their_own_limits_share_a_batch(sampler: LocalSampler) -> None:
    limits = [1, 9, 4]
    results = sampler.sample([request_for(sampler, PROMPTS[0], max_new_tokens=n, seed=n) for n in limits])
    assert [len(result.tokens) for result in results] == limits
    assert {result.finish_reason for result in results} == {"length"}


def test_the_stop_token_ends_a_response_and_belongs_to_it(tiny_dir: Path) -> None:
    model, tokenizer = load_model(tiny_dir), load_tokenizer(tiny_dir)
    first = LocalSampler(model, tokenizer).sample([SampleRequest((1, 2, 3), 6, temperature=0.0)])[0].tokens
    model.generation_config.eos_token_id = first[2]
    (result,) = LocalSampler(model, tokenizer).sample([SampleRequest((1, 2, 3), 6, temperature=0.0)])
    expected = first[: first.index(first[2]) + 1]
    assert (result.tokens, result.finish_reason) == (expected, "stop")


def test_a_stop_text_ends_a_response_and_is_cut_from_the_text(sampler: LocalSampler) -> None:
    free = request_for(sampler, PROMPTS[0], seed=3)
    text = sampler.sample([free])[0].text
    stop = text[3:5]
    (result,) = sampler.sample([request_for(sampler, PROMPTS[0], seed=3, stop=(stop,))])
    assert result.finish_reason == "stop"
    assert result.text == text[: text.index(stop)]
    assert len(result.tokens) < len(sampler.sample([free])[0].tokens)


def test_new_weights_change_the_responses_and_their_version(tiny_dir: Path) -> None:
    model = load_model(tiny_dir)
    sampler = LocalSampler(model, load_tokenizer(tiny_dir))
    request = SampleRequest((5, 6, 7), 8, seed=1)
    before = sampler.sample([request])[0]
    name, weight = "model.layers.0.mlp.down_proj.weight", model.model.layers[0].mlp.down_proj.weight
    sampler.load_weights([(name, weight + 0.5 * torch.randn(weight.shape))], version=3)
    after = sampler.sample([request])[0]
    assert (before.version, after.version) == (0, 3)
    assert before.logprobs != after.logprobs
    with pytest.raises(KeyError):
        sampler.load_weights([("no.such.weight", weight)], version=4)


def test_progress_counts_responses_and_may_end_the_sampling(sampler: LocalSampler) -> None:
    seen: list[tuple[int, int]] = []
    sampler.sample(
        [request_for(sampler, PROMPTS[0], max_new_tokens=n) for n in (1, 3)], lambda *pair: seen.append(pair)
    )
    assert seen == [(1, 2), (1, 2), (2, 2)]

    def stop(done: int, total: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        sampler.sample([request_for(sampler, PROMPTS[0])], stop)


def test_holes_are_filled_from_the_end() -> None:
    assert filled_holes([0, 2, 3]) == [0, 3, 2]
    assert filled_holes([0, 1]) == [0, 1]
    assert filled_holes([4]) == [4]
    assert filled_holes([1, 2, 5, 6]) == [5, 1, 2, 6]


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_stream_gives_token_by_token_what_sampling_gives_at_once(sampler: LocalSampler, temperature: float) -> None:
    request = request_for(sampler, PROMPTS[0], seed=3, temperature=temperature)
    whole = sampler.sample([request])[0]
    seen = list(sampler.stream(request))
    assert [tokens for tokens, _ in seen] == [whole.tokens[: n + 1] for n in range(len(whole.tokens))]
    assert [result for _, result in seen[:-1]] == [None] * (len(seen) - 1)
    assert seen[-1][1] == whole


def test_streams_take_turns_without_disturbing_each_other(sampler: LocalSampler) -> None:
    requests = [request_for(sampler, text, seed=seed) for seed, text in enumerate(PROMPTS)]
    streams = [sampler.stream(request) for request in requests]
    results: list[Any] = [None] * len(requests)
    while not all(results):
        for i, stream in enumerate(streams):
            results[i] = next(stream, (None, results[i]))[1]
            assert not torch.is_inference_mode_enabled()
    assert [result.tokens for result in results] == [result.tokens for result in sampler.sample(requests)]


def test_each_response_is_told_once_as_soon_as_it_has_ended(sampler: LocalSampler) -> None:
    requests = [request_for(sampler, text, seed=seed) for seed, text in enumerate(PROMPTS)]
    told: list[tuple[int, SampleResult, int]] = []
    counts: list[int] = [0]
    results = sampler.sample(
        requests,
        progress=lambda done, total: counts.append(done),
        finished=lambda place, result: told.append((place, result, counts[-1])),
    )
    assert sorted(place for place, _, _ in told) == list(range(len(requests)))
    assert all(results[place] is result for place, result, _ in told)
    assert all(before < len(requests) for _, _, before in told)
