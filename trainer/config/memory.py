"""Which knobs of a run give memory back. Torch-free: the run says so itself, or the server where it was killed."""

from .policy import PolicyConfig


def is_shortage(error: str) -> bool:
    """Whether these are the words of an allocator that has failed: Python's, or torch's on CPU or GPU."""
    return "MemoryError" in error or "allocate memory" in error or "out of memory" in error.lower()


def what_to_lower(config: PolicyConfig) -> str:
    """In words, with the values they have now, those first that cost nothing but time; goes on behind a colon."""
    return f"for the update, {', '.join(_update(config))}; for sampling, {_sampling(config)}"


def _update(config: PolicyConfig) -> list[str]:
    optim = config.optim
    knobs = [f"lower optim.micro_batch_tokens (now {optim.micro_batch_tokens})"]
    if not optim.recompute_activations:
        knobs.append("set optim.recompute_activations")
    if config.model.dtype == "float32":
        knobs.append("set model.dtype to bfloat16")
    if config.model.lora is None:
        knobs.append("train adapters (model.lora) instead of all weights")
    return knobs


def _sampling(config: PolicyConfig) -> str:
    rollout, sampler = config.rollout, config.sampler
    knobs = [f"sampler.max_batch (now {sampler.max_batch})", f"rollout.max_new_tokens (now {rollout.max_new_tokens})"]
    if sampler.kind != "local":
        knobs.append(f"sampler.kv_cache_gb (now {sampler.kv_cache_gb:g})")
    if config.runner.kind == "async":
        knobs.append(f"runner.workers (now {config.runner.workers}), each of which holds a copy of the model")
    return f"lower {' or '.join(knobs)}"
