"""A sampler with integer weights: its results, its pushes, and the reports of a run about the difference."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.trainer.loops.conftest import metrics_of, small_config
from tests.trainer.running import run
from trainer.config import ConfigInvalid
from trainer.inference.build import build_sampler
from trainer.inference.models import load_model, load_tokenizer
from trainer.inference.quantised import WholeLinear, as_held, in_whole_numbers, layers_of, rounded
from trainer.inference.sampling import SampleRequest
from trainer.loops.learner.learner import Learner, Marked, Teacher
from trainer.loops.learner.weight_push import WeightPusher
from trainer.loops.session.errors import RunFailed

BRIEF: dict[str, Any] = {"steps": 2, "evaluation": {"every": 1}, "scaffold": None, "objective": {"name": "icepop"}}
FULL: dict[str, Any] = {"lora": None}
ROW = Marked(tuple(range(1, 17)), range(1, 16))


def setup(tiny_dir: Path, precision: str, **changes: Any) -> tuple[Learner, Any, WeightPusher]:
    sampler = {"precision": precision, **changes.pop("sampler", {})}
    config = small_config(**{"model": FULL, **changes}, sampler=sampler)
    learner = Learner(load_model(tiny_dir, config.model.dtype), config)
    held = build_sampler(config, tiny_dir, load_tokenizer(tiny_dir))
    return learner, held, WeightPusher(config, learner, held)


def change(learner: Learner) -> None:
    with torch.no_grad():
        for parameter in learner.parameters.values():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    learner._masters.publish()


def test_rows_are_rounded_to_the_nearest_whole_number_of_their_own_scale() -> None:
    whole, scale = rounded(torch.tensor([[1.1, -2.0, 0.4], [0.0, 0.0, 0.0]]), 7)
    assert whole.tolist() == [[4, -7, 1], [0, 0, 0]] and whole.dtype == torch.int8
    assert scale[0].item() == pytest.approx(2 / 7)


@pytest.mark.parametrize("bias", [False, True])
def test_fewer_bits_are_farther_from_the_layer_and_a_second_part_is_nearer(bias: bool) -> None:
    torch.manual_seed(0)
    plain, x_NI = nn.Linear(65, 33, bias=bias), torch.randn(7, 65)
    ways = [WholeLinear(plain, 7), WholeLinear(plain), WholeLinear(plain, parts=2)]
    four, eight, finer = [float((way(x_NI) - plain(x_NI)).abs().mean()) for way in ways]
    assert four > 5 * eight > 5 * finer > 0 and eight < 0.01
    assert WholeLinear(plain.bfloat16())(x_NI.bfloat16()).dtype == torch.bfloat16


def test_a_row_has_the_same_bits_alone_and_beside_others() -> None:
    torch.manual_seed(0)
    layer, x_NI = WholeLinear(nn.Linear(64, 48)), torch.randn(9, 64)
    assert torch.equal(layer(x_NI)[3:4], layer(x_NI[3:4]))


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_a_push_rounds_anew_what_was_trained(precision: Any, tiny_dir: Path) -> None:
    learner, sampler, pusher = setup(tiny_dir, precision)
    change(learner)
    assert pusher.push(3) == pusher.push(3)
    fresh = load_model(tiny_dir)
    fresh.load_state_dict(dict(learner.merged_weights()), strict=False)
    expected = in_whole_numbers(fresh, precision)
    found, wanted, exact = (
        Teacher(model).measure([ROW], 1.0)[0] for model in (sampler._model, expected, learner.plain)
    )
    assert torch.equal(found, wanted) and not torch.equal(found, exact)
    assert sampler.sample([SampleRequest((1, 2, 3), 4, seed=1)])[0].version == 3


def test_a_push_that_does_not_arrive_ends_the_run(tiny_dir: Path) -> None:
    learner, sampler, pusher = setup(tiny_dir, "int8")
    layer = next(part for part in sampler._model.modules() if isinstance(part, WholeLinear))
    load = sampler.load_weights

    def spoilt(weights: Any, version: int) -> str:
        given = list(weights)
        load(given, version)
        layer.weight[0, 0] += 1
        return str(load([(name, sampler._parameters[name].clone()) for name, _ in given], version))

    sampler.load_weights = spoilt
    with pytest.raises(RunFailed, match="did not reach the sampler"):
        pusher.push(1)


def test_weights_that_nobody_rounded_are_refused(tiny_dir: Path) -> None:
    learner, sampler, _ = setup(tiny_dir, "int8")
    plain = dict(learner.merged_weights())
    with pytest.raises(ValueError, match=r"held as whole numbers and was given in torch\.float32"):
        sampler.load_weights(plain.items(), 1)
    assert sampler.load_weights(as_held(plain.items(), layers_of(sampler._model)), 1)


@pytest.mark.parametrize(
    "changes",
    [{"model": FULL}, {}, {"sampler": {"push": "adapters"}}],
    ids=["all weights", "merged adapters", "adapters beside"],
)
def test_a_run_samples_in_int8_and_says_how_far_off_it_is(
    changes: dict[str, Any], examples_file: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    farther = {}
    for precision in ("model", "int8", "int4"):
        given = {**BRIEF, **changes, "sampler": {"precision": precision, **changes.get("sampler", {})}}
        config = small_config(**given)
        assert config.one_memory is (precision == "model" and config.model.lora is None)
        assert run(config, examples_file, tiny_dir, tmp_path / precision)
        found = metrics_of(tmp_path / precision)
        farther[precision] = found[2, "policy/mismatch_kl_raw"]
        assert found[2, "policy/mismatch_far_raw"] >= found[2, "policy/mismatch_far_masked"] >= 1.0
    assert abs(farther["model"]) < 1e-7 < farther["int8"] < farther["int4"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sampler": {"kind": "vllm"}}, "vLLM would round the weights again"),
        ({"sampler": {"kind": "vllm_server"}}, "vLLM would round the weights again"),
        ({"runner": {"kind": "async"}}, "take the weights as they are trained"),
    ],
)
def test_it_is_refused_where_it_cannot_be(changes: dict[str, Any], said: str) -> None:
    sampler = {"precision": "int8", **changes.pop("sampler", {})}
    with pytest.raises(ConfigInvalid, match=said) as caught:
        small_config(**changes, sampler=sampler)
    assert "sampler.precision" in [problem.path for problem in caught.value.problems]
