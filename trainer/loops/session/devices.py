"""Chooses the devices that train and sample; a GPU that would stay unused ends the run."""

from urllib.parse import urlsplit

from trainer.config import OnPolicyConfig, RecipeConfig
from trainer.config.rewards.base import NARROW, PRECISION_AT, MatchedPart
from trainer.config.sections.sampler import Sampler
from trainer.devices import CHOICE, REMEDY, cards, on_purpose
from trainer.inference.models import best_device

from .errors import RunFailed


def settle_device() -> str:
    """The device of this process, as text. Raises RunFailed if the machine has a GPU that torch does not find, unless the CPU was chosen
    or no GPU was given to the process: a run on the CPU would be many times slower and look as if it worked.
    """
    import torch

    if best_device() == "cuda":
        return str(torch.cuda.get_device_name(0))
    found, why = cards(), on_purpose()
    if found and not why:
        build = (
            "is a build without CUDA"
            if torch.version.cuda is None
            else f"for CUDA {torch.version.cuda} does not find it"
        )
        hint = (
            REMEDY
            if torch.version.cuda is None
            else f"upgrade its driver, or set {CHOICE}=cpu to train on the processor on purpose"
        )
        raise RunFailed(
            f"this machine has {found[0]}, but torch {build}, so that the run would train on the processor: {hint}."
        )
    return f"the processor, though there is {found[0]}: {why}" if found else "the processor"


def devices(config: RecipeConfig, here: str) -> tuple[str, str]:
    """The devices that train and that sample, if this process is on `here`; the second is empty if nothing is sampled."""
    held = config.holdings()
    learner = here if held.processes == 1 else f"{held.processes} processes of the Ray cluster"
    if held.sampling is None:
        return learner, ""
    if held.sampling.by == "elsewhere":
        sampler: Sampler = config.sampler  # type: ignore[attr-defined]  # who is sampled elsewhere has the section
        return learner, f"the vLLM server at {urlsplit(sampler.url).netloc}"
    where = f"{held.sampling.copies} workers of the Ray cluster" if held.sampling.copies else here
    return learner, f"vLLM, {where}" if held.sampling.by == "vllm" else where


def slow_precision(config: RecipeConfig) -> str:
    """A warning if this process's CPU does not compute in the model's precision; else empty."""
    from trainer.inference.products import computes_bfloat16

    if config.model.dtype != "bfloat16" or best_device() != "cpu" or computes_bfloat16():
        return ""
    return (
        "model.dtype is bfloat16, and this processor has no arithmetic for it (neither AVX512-BF16 nor AMX): software computes "
        "it, many times slower than float32. It saves memory here, not time."
    )


def narrow_matcher(config: RecipeConfig) -> str:
    """A warning if a matcher embeds in bfloat16; else empty."""
    parts = config.composition.parts if isinstance(config, OnPolicyConfig) else ()
    if not any(isinstance(part, MatchedPart) and part.found_by == NARROW for part in parts):
        return ""
    return f"{PRECISION_AT} is bfloat16: the matcher embeds people's items and the model's in it; its results say '{NARROW}'."
