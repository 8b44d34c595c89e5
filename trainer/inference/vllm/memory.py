"""The memory that an engine of vLLM needs, as numbers that can be checked without a GPU.

vLLM 0.32 derives neither number from the size of its cache. The cache must hold one response as long as the model's
longest context, and the share `gpu_memory_utilization` of the GPU must be free at the start, 92 % by default. Both are more than a run
needs, and an engine beside a learner then does not start.
"""

import json
import struct
from dataclasses import dataclass
from math import ceil, prod
from pathlib import Path
from typing import Any

from trainer.inference.sampling import SamplerInvalid
from trainer.memory.forecast import WORKSPACE
from trainer.memory.shape import BLOCK, BYTES, GIB

_MOST = 0.92


@dataclass(frozen=True)
class CardMemory:
    """Memory of a GPU in bytes."""

    total: int
    free: int


def this_card() -> CardMemory | None:
    """The memory of the GPU that an engine started here would use; None if there is no GPU."""
    import torch

    if not torch.cuda.is_available():
        return None
    free, total = torch.cuda.mem_get_info()
    return CardMemory(total, free)


def longest_context(model_dir: Path, dtype: str, cache_bytes: int) -> int:
    """The number of tokens of prompt and response that fit into the model's context and, alone, into the cache.

    One token's keys and values take 2 x layers x key heads x width of a head numbers. Raises SamplerInvalid if not even one
    block fits.
    """
    config = json.loads((model_dir / "config.json").read_text())
    one: int = 2 * config["num_hidden_layers"] * _key_numbers(config) * BYTES[dtype]
    held = (cache_bytes // one // BLOCK - 1) * BLOCK
    if held < BLOCK:
        raise SamplerInvalid(
            f"sampler.kv_cache_gb: {cache_bytes / GIB:g} GiB do not hold the keys and values of {2 * BLOCK} tokens of this "
            f"model; set it to {2 * BLOCK * one / GIB:.2g} or more"
        )
    return min(held, int(config.get("max_position_embeddings", held)))


def share_of_card(card: CardMemory, model_dir: Path, dtype: str, cache_bytes: int) -> float:
    """The `gpu_memory_utilization` that covers just weights, cache and workspace. Raises SamplerInvalid if this memory is
    not free.
    """
    weights = weight_bytes(model_dir, dtype)
    needed = weights + cache_bytes + WORKSPACE
    if needed > card.free:
        raise SamplerInvalid(
            f"sampler.kv_cache_gb: vLLM needs about {needed / GIB:.1f} GiB of the GPU ({weights / GIB:.1f} for weights, "
            f"{cache_bytes / GIB:g} for keys and values, {WORKSPACE / GIB:g} to work in), and {card.free / GIB:.1f} of "
            f"{card.total / GIB:.1f} GiB are free. Lower sampler.kv_cache_gb, set model.dtype to bfloat16, or take a smaller model"
        )
    return min(_MOST, ceil(needed / card.total * 1000) / 1000)


def weight_bytes(model_dir: Path, dtype: str) -> int:
    """Bytes of the model's tensors in `dtype`, from the headers of its files."""
    shapes = [
        tensor["shape"]
        for file in sorted(model_dir.glob("*.safetensors"))
        for name, tensor in _header(file).items()
        if name != "__metadata__"
    ]
    return sum(map(prod, shapes)) * BYTES[dtype]


def _key_numbers(config: dict[str, Any]) -> int:
    """The count of numbers that the keys of one token in one layer are."""
    heads = config["num_attention_heads"]
    width = config.get("head_dim") or config["hidden_size"] // heads
    return int((config.get("num_key_value_heads") or heads) * width)


def _header(file: Path) -> dict[str, Any]:
    """The header of a safetensors file: eight bytes of length, then JSON."""
    with file.open("rb") as opened:
        (length,) = struct.unpack("<Q", opened.read(8))
        return dict(json.loads(opened.read(length)))
