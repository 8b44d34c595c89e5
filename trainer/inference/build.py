"""The sampler that a run's config asks for."""

import os
import time
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from trainer.config import OnPolicyConfig

from .common import is_common, once
from .sampling import JoinableSampler, SamplerInvalid

PATIENCE_S = 60.0
"""The time to wait for a vLLM server that is starting, in seconds."""
AGAIN_S = 1.0
_LOCAL = ("127.0.0.1", "localhost", "::1")
HOSTS = "TOUCHSTONE_SAMPLER_HOSTS"
"""Environment variable: hosts of vLLM servers other than this machine, separated by commas. A config alone cannot name other hosts."""


def build_sampler(
    config: OnPolicyConfig, model_dir: Path, tokenizer: Any, device: str | None = None
) -> JoinableSampler:
    """`device` is that of a model that samples in this process; by default `best_device`. Raises SamplerInvalid or ModelInvalid, which say
    what to do.
    """
    from .local import LocalSampler, stop_token_ids
    from .models import best_device

    wanted = config.sampler
    rank = config.model.lora.rank if config.model.lora and wanted.push == "adapters" else None
    if wanted.kind == "local":
        if is_common() and not rank:
            from .shared_sampler import LentModel, LentSampler

            desk = ("desk", model_dir, config.model.dtype, wanted.precision)
            return LentSampler(once(desk, lambda: LentModel(_local(config, model_dir))), tokenizer, wanted.max_batch)
        return LocalSampler(_local(config, model_dir, rank, device), tokenizer, wanted.max_batch)
    from .vllm.sampler import VllmSampler

    stop_ids = stop_token_ids(generation_config(model_dir), tokenizer)
    engine = offline(config, model_dir, rank) if wanted.kind == "vllm" else server(config, rank)
    return VllmSampler(engine, tokenizer, stop_ids, wanted.folder, sleep_level(config, best_device()))


def _local(config: OnPolicyConfig, model_dir: Path, rank: int | None = None, device: str | None = None) -> Any:
    """The model that samples in this process: with adapters of `rank` beside shared weights, else with its own weights."""
    from .low_rank import with_low_rank
    from .models import best_device, load_apart, load_model
    from .quantised import in_whole_numbers

    load, precision = load_model if rank else load_apart, config.sampler.precision
    model = load(model_dir, config.model.dtype).to(device or best_device())
    if rank:
        model = with_low_rank(model, rank)
    return in_whole_numbers(model, precision) if precision != "model" else model


def sleep_level(config: OnPolicyConfig, device: str) -> Literal[1, 2] | None:
    """The level at which an engine sleeps while the learner on its GPU works; None if it has its own GPU, or there is none.

    The engine may drop its weights only if every step pushes all of them before it samples again.
    """
    runner = config.runner
    if config.sampler.kind != "vllm" or device != "cuda" or runner.kind == "async":
        return None
    pushes_all = config.model.lora is None and runner.kind == "sync" and runner.push_every == 1
    return 2 if pushes_all and not runner.one_step_off else 1


def offline(config: OnPolicyConfig, model_dir: Path, rank: int | None) -> Any:
    from .models import best_device
    from .vllm import installed_version, module_for
    from .vllm.memory import this_card

    wanted, module = config.sampler, module_for(installed_version())
    arguments = module.arguments(
        model_dir,
        config.model.dtype,
        wanted.max_batch,
        wanted.kv_cache_gb,
        rank,
        not wanted.compile,
        this_card(),
        sleep_level(config, best_device()) is not None,
    )
    return module.OfflineEngine(**arguments)


def server(config: OnPolicyConfig, rank: int | None) -> Any:
    from .vllm import module_for

    url = config.sampler.url
    host = urlsplit(url).hostname or ""
    if host not in _LOCAL and host not in os.environ.get(HOSTS, "").split(","):
        raise SamplerInvalid(f"sampler.url: {host or url} is not this machine; name it in {HOSTS} where the run trains")
    version = _version_of(url, time.monotonic() + PATIENCE_S)
    return module_for(version).ServerEngine(url, config.model.dtype, rank, config.sampler.max_batch)


def _version_of(url: str, until: float) -> str:
    """The version of the vLLM server at `url`, which may still be starting. Raises SamplerInvalid if none has answered by `until`."""
    import httpx

    while True:
        try:
            return str(httpx.get(f"{url.rstrip('/')}/version", timeout=10.0, trust_env=False).json()["version"])
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            if not isinstance(error, httpx.TransportError) or time.monotonic() >= until:
                raise SamplerInvalid(
                    f"sampler.url: no vLLM server answers at {url}, asked for up to {PATIENCE_S:.0f} s ({type(error).__name__}: {error}). "
                    "Start it with `python -m trainer sampler-server`, or name another, and launch or resume the run again"
                ) from error
        time.sleep(AGAIN_S)


def generation_config(model_dir: Path) -> Any:
    """The generation config that the loaded model would have."""
    from transformers import AutoConfig, GenerationConfig

    if (model_dir / "generation_config.json").is_file():
        return GenerationConfig.from_pretrained(model_dir)
    return GenerationConfig.from_model_config(AutoConfig.from_pretrained(model_dir))
