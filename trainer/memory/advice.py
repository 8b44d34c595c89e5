"""Lists the settings to lower if a run needs more memory than there is, in order, and the bytes that each change saves."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

from trainer.config.recipe import RecipeConfig

from .forecast import Device, Forecast, forecast
from .shape import BLOCK, BYTES, GIB, ModelShape

_WORTH = 0.01
"""A change that saves a smaller share of the run's memory is not mentioned."""
_LEAST_TOKENS = 64
_LEAST_CACHE_GB = 0.25


@dataclass(frozen=True)
class FieldChange:
    """A change of the field `path` to `value`; `needed` are the bytes after this change and those before it in the list."""

    path: str
    value: Any
    words: str
    saves: int
    needed: int


def advice(config: RecipeConfig, shape: ModelShape, device: Device) -> list[FieldChange]:
    """Changes that make the run fit, each on top of those before it, cheapest first; a change that saves next to nothing is
    left out. If even all changes do not suffice, all are listed.
    """
    found: list[FieldChange] = []
    before = forecast(config, shape, device)
    for path, value, words in _candidates(config):
        if before.fits:
            break
        changed = _with(config, path, value)
        after = forecast(changed, shape, device)
        saves = before.needed - after.needed
        if saves > _WORTH * before.needed:
            if found and found[-1].path == path:  # a further step of the same change
                saves += found.pop().saves
            found.append(FieldChange(path, value, words, saves, after.needed))
            config, before = changed, after
    return found


def problem(found: Forecast, changes: list[FieldChange]) -> str:
    """The problem of a run that does not fit, and the remedies, as text; empty if it fits."""
    if found.fits or found.device is None:
        return ""
    where = found.device.name or ("the GPU" if found.device.kind == "gpu" else "the machine")
    there = f"and {where} has {found.device.memory / GIB:.1f}"
    needs = f"the run needs about {found.needed / GIB:.1f} GiB, {there}"
    if not found.possible:
        needs = f"its weights, gradients and moments alone need {found.least / GIB:.1f} GiB, {there}"
    if not changes:
        return f"{needs}. Take a smaller model"
    helps = ", ".join(f"{change.words} (-{change.saves / GIB:.1f})" for change in changes)
    left = changes[-1].needed
    if left > found.device.memory:
        return f"{needs}. Even with all of this it would need {left / GIB:.1f}: {helps}. Take a smaller model"
    return f"{needs}. In this order: {helps}"


def cache_problem(config: RecipeConfig, shape: ModelShape) -> str:
    """The reason why an engine's cache cannot hold the longest prompt with its response, as text; empty if it can."""
    sampling, element = config.holdings().sampling, BYTES[config.model.dtype]
    if sampling is None or sampling.by != "vllm":
        return ""
    held = shape.cached_tokens(int(sampling.cache_gb * GIB), element)
    if held >= sampling.longest:
        return ""
    blocks = -(-sampling.longest // BLOCK) + 1
    needed = shape.cache_bytes(blocks * BLOCK, element) / GIB
    return (
        f"holds {max(0, held):,} tokens of this model, and a prompt with its response takes up to {sampling.longest:,}; set it to "
        f"{ceil(needed * 100) / 100:g} or more"
    )


def _candidates(config: RecipeConfig) -> Iterator[tuple[str, Any, str]]:
    """Paths of fields, each with a value that takes less memory and its text; the change that costs least comes first."""
    optim, held = config.optim, config.holdings()
    sampling = held.sampling
    if optim.micro_batch_tokens > max(held.longest, _LEAST_TOKENS):
        fewer = max(held.longest, _LEAST_TOKENS)
        yield "optim.micro_batch_tokens", fewer, f"set optim.micro_batch_tokens to {fewer}"
    if not optim.recompute_activations:
        yield "optim.recompute_activations", True, "set optim.recompute_activations"
    if sampling and sampling.by == "local":
        for batch in _halves(sampling.sequences):
            yield "sampler.max_batch", batch, f"set sampler.max_batch to {batch}"
    if sampling and sampling.by == "vllm" and sampling.cache_gb > _LEAST_CACHE_GB:
        yield "sampler.kv_cache_gb", _LEAST_CACHE_GB, f"lower sampler.kv_cache_gb to {_LEAST_CACHE_GB}"
    if sampling and sampling.copies > 1:
        yield "runner.workers", 1, "set runner.workers to 1"
    if config.model.dtype == "float32":
        yield "model.dtype", "bfloat16", "set model.dtype to bfloat16"
    if config.model.lora is None:
        yield "model.lora", _adapters(config), "train adapters (model.lora)"


def _halves(number: int) -> Iterator[int]:
    while number > 1:
        number = number // 2
        yield number


def _adapters(config: RecipeConfig) -> Any:
    """The adapters of a config that names none."""
    return type(config.model)().lora


def _with(config: RecipeConfig, path: str, value: Any) -> RecipeConfig:
    """A copy with another value at a dotted path. The copy is measured and never run, so its rules are not checked."""
    section, _, name = path.partition(".")
    return config.model_copy(update={section: getattr(config, section).model_copy(update={name: value})})
