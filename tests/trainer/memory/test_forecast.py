"""Forecasts by hand, the effect of every knob, and the advice if a run does not fit."""

from typing import Any

import pytest

from tests.trainer.memory.shapes import QWEN_7B, shape
from trainer.config import RECIPES, OnPolicyConfig, resolve
from trainer.inference import local
from trainer.memory.advice import advice, cache_problem, problem
from trainer.memory.forecast import (
    CONTEXT,
    FEWEST_PASSES,
    FEWEST_ROWS,
    WORKSPACE,
    Device,
    Forecast,
    Process,
    forecast,
)
from trainer.memory.shape import GIB, ModelShape
from trainer.runners.conductor import rules_of

H100 = Device("gpu", 80 * GIB, "NVIDIA H100")
SMALL_CARD = Device("gpu", 24 * GIB, "NVIDIA L4")
HOST = Device("cpu", 23 * GIB)
SEVEN = ModelShape.of(QWEN_7B)


def raw(**changes: Any) -> dict[str, Any]:
    """A policy run that is easy to count. `section__name` is a field of a section."""
    config: dict[str, Any] = {"scaffold": None, "evaluation": {"max_examples": 0}}
    for path, value in changes.items():
        section, _, name = path.partition("__")
        if name:
            config[section] = {**config.get(section, {}), name: value}
        else:
            config[section] = value
    return config


def of(device: Device | None = H100, model: ModelShape = SEVEN, recipe: str = "policy", **changes: Any) -> Forecast:
    return forecast(resolve(recipe, raw(**changes)), model, device)


def sizes(process: Process) -> dict[str, int]:
    return {part.label: part.bytes for part in process.parts}


@pytest.mark.parametrize(("kl_beta", "frozen"), [(0.0, 0), (0.1, 2)])
def test_full_training_in_bfloat16_holds_eighteen_bytes_a_parameter_and_two_more_for_a_kl(
    kl_beta: float, frozen: int
) -> None:
    changed: dict[str, Any] = {"model__lora": None, "model__dtype": "bfloat16", "objective__kl_beta": kl_beta}
    (process,) = of(**changed, sampler__kind="vllm_server").processes
    always = sum(part.bytes for part in process.parts if not part.turn)
    assert always == CONTEXT + SEVEN.parameters * (2 + frozen + 4 + 4 + 8)


ARM = {"steps": 8, "warmup": {"judge_steps": 1, "writer_steps": 1}, "objective__kl_beta": 0.1}


def in_memory(device: Device | None = None, **changes: Any) -> dict[str, int]:
    """The tensors in the machine's memory of a run of two roles: those of the role that waits, and the ends of the warm-up of both."""
    config = raw(**ARM | changes)
    del config["scaffold"]
    (process,) = forecast(resolve("alternating", config), shape(), device).processes
    return {label: size for label, size in sizes(process).items() if label in ("Who waits", "Ends of the warm-up")}


def test_two_roles_keep_who_waits_with_its_moments_and_what_both_were_after_the_warm_up() -> None:
    every, adapters = shape().parameters, shape().adapter_parameters(16)
    assert in_memory(model__lora=None) == {"Who waits": 12 * every, "Ends of the warm-up": 8 * every}
    assert in_memory() == {"Who waits": 12 * adapters, "Ends of the warm-up": 8 * adapters}
    assert in_memory(model__lora=None, objective__kl_beta=0.0) == {"Who waits": 12 * every}, "nothing is held to them"
    assert in_memory(model__lora=None, warmup=None) == {"Who waits": 12 * every}
    assert in_memory(H100, model__lora=None) == {}, "a card has none of it"


def test_adapters_cost_sixteen_bytes_a_trained_parameter() -> None:
    (process,) = of(model__lora={"rank": 16}, model__dtype="bfloat16", sampler__kind="vllm_server").processes
    trained = SEVEN.adapter_parameters(16)
    always = sum(part.bytes for part in process.parts if not part.turn)
    assert always == CONTEXT + SEVEN.parameters * 2 + trained * (4 + 4 + 8)


def test_muon_has_one_moment_for_the_matrices_of_the_layers() -> None:
    small = shape()
    (process,) = of(None, small, model__lora=None, optim__optimizer="muon").processes
    assert sizes(process)["Optimiser"] == 4 * (2 * small.parameters - small.matrix_parameters)


def test_the_local_sampler_has_a_copy_of_the_model_and_the_keys_of_all_responses() -> None:
    changes: dict[str, Any] = {
        "data__max_prompt_tokens": 100,
        "rollout__max_new_tokens": 28,
        "model__dtype": "bfloat16",
    }
    (process,) = of(None, shape(), rollout__prompts_per_step=2, rollout__group_size=3, **changes).processes
    assert sizes(process)["Sampler's weights"] == 2 * shape().parameters
    # six responses of 128 tokens, two layers, keys and values of 32 numbers of two bytes
    assert sizes(process)["Sampler's cache"] == 6 * 128 * 2 * 2 * 32 * 2


def test_while_it_samples_on_a_processor_its_matrices_are_there_once_more() -> None:
    def laid_out(device: Device | None = HOST, **changes: Any) -> int:
        (process,) = of(device, shape(), **changes).processes
        return sizes(process).get("Weights laid out", 0)

    assert (local.FEWEST_ROWS, local.FEWEST_PASSES) == (FEWEST_ROWS, FEWEST_PASSES)
    assert laid_out() == 4 * (shape().matrix_parameters + shape().vocabulary * shape().hidden)
    assert laid_out(model__lora=None) == laid_out()
    assert laid_out(model__dtype="bfloat16") == laid_out() // 2
    assert laid_out(H100) == laid_out(sampler__max_batch=7) == 0
    assert laid_out(rollout__max_new_tokens=15) == 0


def at_once(**changes: Any) -> int:
    asked = {"rollout__prompts_per_step": 4, "rollout__group_size": 6, "evaluation__max_examples": 0}
    sampling = resolve("policy", raw(**{**asked, "sampler__max_batch": 4096, **changes})).holdings().sampling
    return sampling.sequences if sampling else 0


def test_responses_that_are_spread_over_steps_are_begun_for_several_steps_at_once() -> None:
    spread = {"objective": {"name": "oapl"}, "steps": 10}
    assert at_once(**spread) == 24
    assert at_once(**spread, runner__spread=3) == 4 * (6 + 3 + 2), (
        "half of the next step's groups, a third of those after it"
    )
    assert at_once(**{**spread, "steps": 2}, runner__spread=3) == 4 * (6 + 3)
    assert at_once(**spread, runner__spread=3, sampler__max_batch=30) == 30


@pytest.mark.parametrize(
    ("runner", "most"),
    [
        ({"workers": 1, "ahead": 2}, 2 * 24 + 6),
        ({"workers": 3, "ahead": 2}, 3 * 6 + 6),
        ({"workers": 2, "policy": "april", "oversample": 1.5}, 3 * 6 + 6),
        ({"workers": 4, "policy": "dora", "max_staleness": 3}, 4 * 6 + 6),
    ],
)
def test_a_worker_has_its_part_of_what_is_outstanding_and_a_group_more(runner: dict[str, Any], most: int) -> None:
    changes: dict[str, Any] = {
        f"runner__{key}": value for key, value in {"kind": "async", "max_staleness": 4, **runner}.items()
    }
    assert at_once(**changes) == most
    config = resolve("policy", raw(rollout__prompts_per_step=4, rollout__group_size=6, **changes))
    assert isinstance(config, OnPolicyConfig)
    assert rules_of(config).places(4096, config.runner.workers) == most, "as the schedule deals them out"


def test_a_worker_may_be_given_the_largest_group_of_a_budget() -> None:
    budget = {"rollout__budget": {"low": 2, "high": 20}}
    assert at_once(runner__kind="async", runner__workers=1, **budget) == 2 * 24 + 20


def test_workers_lay_nothing_out_since_responses_join_and_leave_what_they_have_under_way() -> None:
    itself, worker = of(HOST, shape(), runner__kind="async").processes
    assert "Weights laid out" in sizes(itself) and "Sampler's cache" in sizes(worker)
    assert "Weights laid out" not in sizes(worker)


@pytest.mark.parametrize("recipe", ["judge", "rubric_writer"])
def test_questions_about_pairs_may_be_as_many_at_once_as_the_sampler_takes(recipe: str) -> None:
    def at_once(held_out: int) -> int:
        changes: dict[str, Any] = {
            "rollout": {"prompts_per_step": 2, "group_size": 2},
            "evaluation": {"max_examples": held_out},
        }
        sampling = (
            resolve(recipe, {**RECIPES[recipe].example, **changes, "sampler": {"max_batch": 24}}).holdings().sampling
        )
        return sampling.sequences if sampling else 0

    assert at_once(1) == 24, "an example may have any number of pairs"
    assert at_once(0) == 4


def test_a_sampler_in_one_memory_with_the_learner_has_no_copy_of_the_weights() -> None:
    def copies(**changes: Any) -> list[bool]:
        return [
            "Sampler's weights" in sizes(process)
            for process in of(None, shape(), model__lora=None, **changes).processes
        ]

    assert copies() == [False]
    assert copies(runner__push_every=2) == copies(runner__one_step_off=True) == [True]
    assert copies(runner__kind="async") == [True, True]


def test_an_engine_holds_what_it_is_given() -> None:
    (process,) = of(sampler__kind="vllm", sampler__kv_cache_gb=3.0, model__dtype="bfloat16").processes
    assert sizes(process)["Sampler's cache"] == 3 * GIB
    assert sizes(process)["Sampler's workspace"] == WORKSPACE


def test_an_engine_that_sleeps_takes_its_turn_with_the_learner_on_a_card_alone() -> None:
    changes: dict[str, Any] = {"sampler__kind": "vllm", "model__dtype": "bfloat16"}

    def turns(device: Device, **more: Any) -> set[str]:
        (process, *_) = of(device, **changes, **more).processes
        return {part.turn for part in process.parts if part.label in ("Sampler's weights", "Sampler's cache")}

    assert turns(H100) == {"sampling"}
    assert turns(HOST) == turns(H100, runner__kind="async") == {""}


def test_a_cache_must_hold_the_longest_prompt_with_its_response() -> None:
    # 7B in bfloat16: 28 layers x 2 x 512 numbers of 2 bytes are 57,344 bytes a token, so 0.1 GiB hold 7 blocks, one of them vLLM's
    def said(new: int, gb: float) -> str:
        wanted = {"sampler__kind": "vllm", "sampler__kv_cache_gb": gb, "rollout__max_new_tokens": new}
        return cache_problem(resolve("policy", raw(model__dtype="bfloat16", **wanted)), SEVEN)

    assert said(1024, 0.1) == "", "6 blocks hold 512 + 1024 tokens"
    assert said(1025, 0.1).startswith(
        "holds 1,536 tokens of this model, and a prompt with its response takes up to 1,537; "
    )
    assert said(1025, 0.1).endswith("set it to 0.11 or more") and said(1025, 0.11) == ""


def test_turns_are_not_added_up() -> None:
    (process,) = of(None, shape()).processes
    turns: dict[str, int] = {}
    for part in process.parts:
        turns[part.turn] = turns.get(part.turn, 0) + part.bytes
    always = turns.pop("")
    assert process.peak == always + max(turns.values())
    assert set(turns) == {"sampling", "gradients", "update"}


def test_a_pass_is_as_long_as_the_longest_text_where_that_is_longer_than_the_knob() -> None:
    changes: dict[str, Any] = {"data__max_prompt_tokens": 3000, "rollout__max_new_tokens": 1096}
    assert of(optim__micro_batch_tokens=1024, **changes) == of(optim__micro_batch_tokens=4096, **changes)


def test_on_gpus_every_process_has_its_own_and_on_a_machine_they_share() -> None:
    changes: dict[str, Any] = {"runner__kind": "async", "runner__workers": 3}
    on_gpus, on_host = of(H100, shape(), **changes), of(HOST, shape(), **changes)
    assert on_gpus.needed == max(process.peak for process in on_gpus.processes)
    run, workers = on_host.processes
    assert workers.count == 3 and on_host.needed == run.peak + 3 * workers.peak


def test_processes_that_train_together_share_what_is_there_all_the_time() -> None:
    (one,) = of(model__lora=None, sampler__kind="vllm_server").processes
    shared, run = of(model__lora=None, sampler__kind="vllm_server", optim__processes=4).processes
    assert (shared.count, run.label) == (4, "The run itself")
    assert sizes(shared)["Optimiser"] == sizes(one)["Optimiser"] // 4
    assert sizes(shared)["Activations"] == sizes(one)["Activations"]


MORE = [
    ("optim__micro_batch_tokens", 1024, 4096),
    ("data__max_prompt_tokens", 512, 4096),
    ("rollout__max_new_tokens", 64, 4096),
    ("rollout__group_size", 2, 8),
    ("sampler__max_batch", 1, 32),
    ("optim__recompute_activations", True, False),
    ("model__dtype", "bfloat16", "float32"),
    ("model__lora", {"rank": 8}, {"rank": 64}),
    ("model__lora", {"rank": 64}, None),
    ("optim__optimizer", "muon", "adamw"),
    ("optim__processes", 2, 1),
]


@pytest.mark.parametrize("device", [HOST, H100], ids=["host", "card"])
@pytest.mark.parametrize(("path", "less", "more"), MORE, ids=str)
def test_more_of_a_knob_never_needs_less(path: str, less: Any, more: Any, device: Device) -> None:
    for others in (
        {},
        {"model__dtype": "bfloat16"},
        {"rollout__max_new_tokens": 2048, "optim__recompute_activations": True},
    ):
        wanted = others | {path: less}, others | {path: more}
        a, b = (of(device, SEVEN, **each).largest.peak for each in wanted)
        assert a <= b


@pytest.mark.parametrize("grown", ["num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size"])
def test_a_larger_model_never_needs_less(grown: str) -> None:
    for recipe in RECIPES:
        config = resolve(recipe, dict(RECIPES[recipe].example))
        small, large = (forecast(config, shape(**{grown: size}), None).needed for size in (128, 256))
        assert 0 < small < large


def test_what_does_not_fit_is_told_with_what_helps_and_by_how_much() -> None:
    config = resolve("policy", raw(model__lora=None, model__dtype="float32", optim__micro_batch_tokens=8192))
    found = forecast(config, SEVEN, H100)
    changes = advice(config, SEVEN, H100)
    assert not found.fits
    paths = [change.path for change in changes]
    assert paths == sorted(set(paths), key=paths.index), "each field once"
    assert paths[-1] == "model.lora", "the dearest comes last"
    assert changes[-1].needed <= H100.memory
    assert found.needed - sum(change.saves for change in changes) == changes[-1].needed
    words = problem(found, changes)
    assert "NVIDIA H100 has 80.0" in words and "In this order: " in words and "train adapters (model.lora)" in words


def test_what_no_change_makes_fit_is_told_as_such() -> None:
    config = resolve("policy", raw(model__lora=None))
    found = forecast(config, SEVEN, Device("gpu", 8 * GIB))
    words = problem(found, advice(config, SEVEN, Device("gpu", 8 * GIB)))
    assert "Even with all of this" in words and words.endswith("Take a smaller model")


def test_what_fits_needs_no_advice_and_an_unknown_device_refuses_nothing() -> None:
    config = resolve("policy", raw(model__dtype="bfloat16"))
    assert advice(config, shape(), SMALL_CARD) == [] and problem(forecast(config, shape(), SMALL_CARD), []) == ""
    assert forecast(resolve("policy", raw(model__lora=None)), SEVEN, None).fits
