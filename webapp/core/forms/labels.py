"""The names and the limits that fields of a config have on forms."""

from typing import Any

ACRONYMS = {"lr": "Learning rate", "kl_beta": "KL weight", "top_p": "Top-p", "t0": "Midpoint", "eps_low": "Clip below"}
ACRONYMS |= {"pop_low": "Mismatch at least", "pop_high": "Mismatch at most", "pop_mode": "How mismatch counts"}
ACRONYMS |= {"std_ddof": "Taken off the count", "std_eps": "Added to the deviation", "max_tokens": "Divisor"}
ACRONYMS |= {
    "into": "Dataset of the responses",
    "cpus": "Processors",
    "gpus": "GPUs",
    "lr_times": "Times the learning rate",
    "memory_gb": "Memory",
    "eps_high": "Clip above",
    "lora": "LoRA",
    "optim": "Optimiser",
    "dtype": "Precision",
}


def words(name: str) -> str:
    """`max_grad_norm` as a label; some names mean nothing without their own."""
    return ACRONYMS.get(name) or name.replace("_", " ").capitalize()


def bounds_words(schema: dict[str, Any]) -> str:
    """`1 to 256`, `over 0, at most 5`: the limits in words."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{_limit(low)} to {_limit(high)}"
    parts = []
    for key, word in (("minimum", "at least"), ("exclusiveMinimum", "over"), ("maximum", "at most")):
        if schema.get(key) is not None:
            parts.append(f"{word} {_limit(schema[key])}")
    if schema.get("exclusiveMaximum") is not None:
        parts.append(f"under {_limit(schema['exclusiveMaximum'])}")
    return ", ".join(parts)


def _limit(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
