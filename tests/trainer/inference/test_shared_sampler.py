"""One sampler for several runs: whose weights it has, and what is sampled once for all runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from trainer.inference.common import in_common
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_apart, load_tokenizer
from trainer.inference.sampling import SampleRequest, SampleResult
from trainer.inference.shared_sampler import LentModel, LentSampler

REQUESTS = [SampleRequest((1, 2, 3), 4, seed=seed) for seed in (0, 1)]


@pytest.fixture
def pass_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of requests of each pass of the samplers."""
    passes: list[int] = []
    sample = LocalSampler.sample

    def noted(self, requests, *more):
        passes.append(len(requests))
        return sample(self, requests, *more)

    monkeypatch.setattr(LocalSampler, "sample", noted)
    return passes


@pytest.fixture
def two(tiny_dir: Path) -> Iterator[list[LentSampler]]:
    """Samplers of two runs that train together and have not made a step yet."""
    with in_common():
        desk = LentModel(load_apart(tiny_dir))
        samplers = [LentSampler(desk, load_tokenizer(tiny_dir)) for _ in range(2)]
        for sampler in samplers:
            give(sampler, 0, 0.0)
        yield samplers


def give(sampler: LentSampler, version: int, more: float) -> None:
    """Gives the run of `sampler` other weights: the base's last norm plus `more`."""
    name = "model.norm.weight"
    weight = torch.full_like(dict(sampler._parameters)[name], 1.0 + more)
    sampler.forget()
    sampler.put_back = lambda: sampler.load_weights([(name, weight)], version)


def test_untrained_runs_that_ask_for_the_same_are_given_the_same(two: list[LentSampler], pass_sizes: list[int]) -> None:
    told: list[list[tuple[int, SampleResult]]] = [[], []]
    found = [
        sampler.sample(REQUESTS, finished=lambda place, result, to=to: to.append((place, result)))  # type: ignore[misc]
        for sampler, to in zip(two, told, strict=True)
    ]
    assert pass_sizes == [2] and found[0] == found[1]
    assert sorted(told[0]) == sorted(told[1]) == list(enumerate(found[0])), "each run is told of each response once"
    found[0].clear()
    assert two[0].sample(REQUESTS) == found[1]
    two[1].sample(REQUESTS[:1])
    assert pass_sizes == [2, 1], "other requests are sampled"


@pytest.mark.parametrize(("version", "more"), [(1, 0.0), (0, 0.5)])
def test_trained_runs_and_other_weights_sample_for_themselves(
    two: list[LentSampler], pass_sizes: list[int], version: int, more: float
) -> None:
    first = two[0].sample(REQUESTS)
    give(two[1], version, more)
    other = two[1].sample(REQUESTS)
    assert pass_sizes == [2, 2] and [each.version for each in other] == [version] * 2
    assert (more == 0.0) == ([each.tokens for each in first] == [each.tokens for each in other])
