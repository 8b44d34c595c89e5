"""Weights on their way to the local sampler: checksums, shared memory of both models, adapters beside the weights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import xxhash

from tests.trainer.loops.conftest import metrics_of, small_config
from tests.trainer.running import run
from trainer.config import ConfigInvalid
from trainer.inference.build import build_sampler
from trainer.inference.checksum import Checksum, digest_of
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer
from trainer.inference.sampling import SampleRequest
from trainer.loops.learner.learner import Learner, Marked, Teacher
from trainer.loops.learner.weight_push import WeightPusher
from trainer.runners import policy

BRIEF: dict[str, Any] = {"steps": 2, "evaluation": {"every": 1}, "scaffold": None}
FULL: dict[str, Any] = {"lora": None}
ROW = Marked(tuple(range(1, 17)), range(1, 16))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (1 << 17,), (3, 400_001)])
def test_a_checksum_is_that_of_all_bytes_without_minus_zero(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    content = xxhash.xxh3_128(tensor.reshape(-1).view(torch.uint8).numpy().data).hexdigest()
    whole = xxhash.xxh3_128(f"w {tuple(shape)} {dtype} {content}".encode()).hexdigest()
    negative = torch.where(tensor == 0, -tensor, tensor)
    one = Checksum()
    one.add("w", negative)
    assert one.hexdigest() == digest_of({"w": tensor}) == whole
    if tensor.numel():
        assert digest_of({"w": tensor + 1}) != whole


def test_checksums_side_by_side_are_those_one_after_the_other() -> None:
    weights = {f"layer.{place}": torch.full((100 + place,), float(place)) for place in range(20)}
    one = Checksum()
    for _ in one.watching(reversed(weights.items())):
        pass
    assert one.hexdigest() == digest_of(weights)


def test_a_checksum_keeps_no_more_than_it_has_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.inference.checksum._WAITING", 1000)
    held, weights = Checksum(), {f"layer.{place}": torch.full((100,), float(place)) for place in range(20)}
    for name, tensor in weights.items():
        held.add(name, tensor)
        assert len(held._waiting) < 3
    monkeypatch.undo()
    assert held.hexdigest() == digest_of(weights)


def pair(tiny_dir: Path, **model: Any) -> tuple[Learner, Any, WeightPusher]:
    lora = model.pop("push", "merged")
    config = small_config(model=model, sampler={"push": lora})
    learner = Learner(load_model(tiny_dir, config.model.dtype), config)
    sampler = build_sampler(config, tiny_dir, load_tokenizer(tiny_dir))
    return learner, sampler, WeightPusher(config, learner, sampler)


def logprobs(sampler: Any) -> torch.Tensor:
    """The log-probabilities of the tokens of ROW by the model that samples."""
    return Teacher(sampler._model).measure([ROW], 1.0)[0]


def change(learner: Learner, by: float) -> None:
    with torch.no_grad():
        for parameter in learner.parameters.values():
            parameter.add_(by * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    learner._masters.publish()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_sampler_that_follows_has_what_was_trained_at_once(dtype: str, tiny_dir: Path) -> None:
    learner, sampler, pusher = pair(tiny_dir, lora=None, dtype=dtype)
    _, other, copied = pair(tiny_dir, lora=None, dtype=dtype)
    copied._learner = learner
    sampler.follow(learner.plain)
    change(learner, 0.05)
    assert pusher.push(3) == copied.push(3) and sampler.version == 3
    assert torch.equal(logprobs(sampler), logprobs(other))
    names = {name: parameter.data_ptr() for name, parameter in learner.plain.named_parameters()}
    assert {name: parameter.data_ptr() for name, parameter in sampler._model.named_parameters()} == names


def test_a_sampler_that_follows_takes_no_other_weights(tiny_dir: Path) -> None:
    learner, sampler, _ = pair(tiny_dir, lora=None)
    sampler.follow(learner.plain)
    copies = {name: tensor.clone() for name, tensor in learner.merged_weights()}
    with pytest.raises(ValueError, match="is not the parameter that the sampler follows"):
        sampler.load_weights(copies.items(), 1)
    tokenizer = load_tokenizer(tiny_dir)
    with pytest.raises(ValueError, match="not of one shape, precision and device"):
        LocalSampler(load_model(tiny_dir, "bfloat16"), tokenizer).follow(learner.plain)


def test_a_run_in_one_memory_is_that_of_two_models(
    examples_file: Path, tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small_config(**BRIEF | {"model": FULL})
    assert config.one_memory
    assert run(config, examples_file, tiny_dir, tmp_path / "one")
    monkeypatch.setattr(policy, "one_memory", lambda config, learner: False)
    assert run(config, examples_file, tiny_dir, tmp_path / "two")
    assert metrics_of(tmp_path / "one") == metrics_of(tmp_path / "two")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"model": FULL, "runner": {"push_every": 2}},
        {"model": FULL, "runner": {"one_step_off": True}},
        {"model": FULL, "optim": {"minibatch_size": 4, "processes": 2}},
    ],
)
def test_a_sampler_that_may_lag_or_has_other_weights_has_its_own(changes: dict[str, Any]) -> None:
    assert not small_config(**changes).one_memory


def test_a_model_that_keeps_some_parameters_in_float32_is_not_shared(tiny_dir: Path) -> None:
    learner, _, _ = pair(tiny_dir, lora=None, dtype="bfloat16")
    config = small_config(model=FULL | {"dtype": "bfloat16"})
    assert policy.one_memory(config, learner)
    next(iter(learner.plain.parameters())).data = torch.zeros(1)
    assert not policy.one_memory(config, learner)


@pytest.mark.parametrize(("dtype", "near"), [("float32", 1e-4), ("bfloat16", 0.1)])
def test_adapters_beside_the_weights_are_those_of_the_learner(dtype: str, near: float, tiny_dir: Path) -> None:
    learner, sampler, pusher = pair(tiny_dir, dtype=dtype, push="adapters")
    change(learner, 0.05)
    pusher.push(1)
    scored = learner.measure([ROW])[0].logp_T.detach()
    torch.testing.assert_close(logprobs(sampler), scored, atol=near, rtol=near)
    request = SampleRequest((1, 2, 3), 4, seed=1)
    assert sampler.sample([request])[0].version == 1


def test_a_change_too_small_for_bfloat16_counts_where_adapters_are_not_merged(tiny_dir: Path) -> None:
    def moved(push: str, of: str) -> float:
        """The share of numbers that a push has changed, in parameters whose name contains this text."""
        learner, sampler, pusher = pair(tiny_dir, dtype="bfloat16", push=push)
        pusher.push(0)
        before = {name: weight.clone() for name, weight in sampler._model.named_parameters() if of in name}
        with torch.no_grad():
            for name, parameter in learner.parameters.items():
                if "lora_B" in name:
                    parameter.fill_(1e-7)
        pusher.push(1)
        after = dict(sampler._model.named_parameters())
        return float(torch.cat([(after[name] != weight).flatten() for name, weight in before.items()]).float().mean())

    assert moved("adapters", "lora_B") == 1.0
    assert moved("merged", "proj.weight") < 0.05


def test_a_run_that_pushes_adapters_learns_as_one_that_merges_them(
    examples_file: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    for push in ("adapters", "merged"):
        config = small_config(**BRIEF | {"sampler": {"push": push}})
        assert run(config, examples_file, tiny_dir, tmp_path / push)
    found, expected = (metrics_of(tmp_path / push) for push in ("adapters", "merged"))
    assert found == pytest.approx(expected, rel=1e-2, abs=1e-3)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": FULL, "sampler": {"push": "adapters"}}, "there are no adapters without model.lora"),
        ({"sampler": {"push": "adapters"}, "runner": {"kind": "async"}}, "only sure with merged weights"),
    ],
)
def test_adapters_are_pushed_where_there_are_some_and_they_can_be_held(
    changes: dict[str, Any], said: str, make: Callable[..., Any] = small_config
) -> None:
    with pytest.raises(ConfigInvalid, match=said):
        make(**changes)
