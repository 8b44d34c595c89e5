"""Responses that others join have exactly the same tokens and log-probabilities as alone."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.inference.checksum import digest_of
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer
from trainer.inference.sampling import SampleRequest, SampleResult

WEIGHT = "model.layers.0.mlp.up_proj.weight"


def requests(count: int, **settings: Any) -> list[SampleRequest]:
    """Groups of three, with prompts and limits of different lengths."""
    chance = random.Random(5)  # noqa: S311
    prompts = [tuple(chance.randrange(3, 250) for _ in range(chance.randint(1, 90))) for _ in range(-(-count // 3))]
    drawn = {"temperature": 0.9, "top_p": 0.95} | settings
    return [SampleRequest(prompts[n // 3], chance.randint(1, 30), seed=n, **drawn) for n in range(count)]


def sampled(sampler: LocalSampler, wanted: list[SampleRequest], slots: int, seed: int) -> list[SampleResult]:
    """Samples in an order and at moments that `seed` decides, with at most `slots` side by side. Some responses leave and join again."""
    chance = random.Random(seed)  # noqa: S311
    weights = dict(load_model_weights(sampler))
    running, _ = sampler.open(weights.items(), 1)
    left, inside, found = list(range(len(wanted))), set[Any](), {}
    chance.shuffle(left)
    while left or inside:
        while left and len(inside) < slots and chance.random() < 0.7:
            name = left.pop()
            inside.add(name)
            running.join(name, wanted[name])
        if inside and chance.random() < 0.03:
            gone = chance.choice(sorted(inside))
            running.leave([gone])
            inside.remove(gone)
            left.insert(0, gone)
        for ended, result in running.step():
            found[ended] = result
            inside.remove(ended)
    running.close()
    return [found[n] for n in range(len(wanted))]


def load_model_weights(sampler: LocalSampler) -> Iterator[tuple[str, torch.Tensor]]:
    for name, tensor in sampler._model.named_parameters():
        if name == WEIGHT:
            yield name, tensor.clone()


@pytest.mark.parametrize(("dtype", "threads"), [("float32", 1), ("float32", 2), ("bfloat16", 1)])
def test_neither_slots_nor_neighbours_nor_the_order_change_a_bit(tiny_dir: Path, dtype: Any, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        sampler = LocalSampler(load_model(tiny_dir, dtype), load_tokenizer(tiny_dir))
        wanted = requests(9 if threads == 1 else 4)
        alone = sampled(sampler, wanted, 1, seed=0)
        assert len({result.tokens for result in alone}) > len(wanted) - 2
        for slots, seed in ((5, 1), (9, 2)):
            assert sampled(sampler, wanted, slots, seed) == alone
    finally:
        torch.set_num_threads(before)


def test_versions_that_are_open_together_sample_by_their_own_weights(tiny_dir: Path) -> None:
    sampler = LocalSampler(load_model(tiny_dir), load_tokenizer(tiny_dir))
    wanted = requests(4, top_p=1.0)
    pushed = [{WEIGHT: torch.randn(128, 64, generator=torch.Generator().manual_seed(n))} for n in range(3)]
    alone = []
    for version, weights in enumerate(pushed):
        running, digest = sampler.open(weights.items(), version)
        assert digest == digest_of(weights)
        for n, request in enumerate(wanted):
            running.join(n, request)
        alone.append(dict(to_the_end(running)))
        running.close()
    assert alone[0][0].tokens != alone[1][0].tokens
    opened = [sampler.open(weights.items(), version)[0] for version, weights in enumerate(pushed)]
    for running in opened:
        for n, request in enumerate(wanted):
            running.join(n, request)
    assert [dict(to_the_end(running)) for running in reversed(opened)][::-1] == alone
    assert {result.version for result in alone[2].values()} == {2}
    models = {id(running._model): running._model for running in opened}
    assert len(models) == 3
    shared = [{id(tensor) for tensor in model.parameters()} for model in models.values()]
    assert len(shared[0] & shared[1] & shared[2]) == len(shared[0]) - 1, "what is not pushed is there once"


def to_the_end(running: Any) -> Iterator[Any]:
    for stream in running._streams.values():
        while stream.busy:
            yield from running.step()


def test_a_worker_keeps_of_its_prompts_only_what_rows_still_need(tiny_dir: Path) -> None:
    """A sampler may sample for days. The size of its memory must not grow with the number of prompts that it has seen."""
    sampler = LocalSampler(load_model(tiny_dir), load_tokenizer(tiny_dir), max_batch=2)
    running, _ = sampler.open([], 0)
    for n, request in enumerate(requests(12)):
        running.join(n, request)
    (stream,) = running._streams.values()
    while stream.busy:
        running.step()
        assert len(stream._last) <= 2
        assert all(kept.untyped_storage().nbytes() == kept.nbytes for kept in stream._last.values())
    running.close()


def test_greedy_and_drawn_responses_run_side_by_side(tiny_dir: Path) -> None:
    sampler = LocalSampler(load_model(tiny_dir), load_tokenizer(tiny_dir))
    greedy, drawn = requests(1, temperature=0.0)[0], requests(1)[0]
    running, _ = sampler.open([], 0)
    running.join("greedy", greedy)
    running.join("drawn", drawn)
    found = dict(to_the_end(running))
    running.close()
    assert found["greedy"].tokens == sampler.sample([greedy])[0].tokens
    assert found["drawn"].tokens == sampler.sample([drawn])[0].tokens
