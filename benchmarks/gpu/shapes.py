"""Models with random weights in the shapes of published ones: speed and memory depend only on the shape."""

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Shape:
    """The shape of a model; `kind` is the architecture by transformers' name."""

    name: str
    kind: str
    width: int
    inner: int
    layers: int
    heads: int
    key_heads: int
    vocabulary: int
    tied: bool = True
    head_width: int = 128


HALF = Shape("0.5B", "qwen2", 896, 4864, 24, 14, 2, 151936, head_width=64)
ONE_AND_HALF = Shape("1.5B", "qwen2", 1536, 8960, 28, 12, 2, 151936)
SEVEN = Shape("7B", "qwen2", 3584, 18944, 28, 28, 4, 152064, tied=False)
QWEN3_06 = Shape("Qwen3-0.6B", "qwen3", 1024, 3072, 28, 16, 8, 151936)
QWEN3_4 = Shape("Qwen3-4B", "qwen3", 2560, 9728, 36, 32, 8, 151936)
TREE = Shape("4 layers of Qwen3-0.6B", "qwen3", 1024, 3072, 4, 16, 8, 32768)
TOY = Shape("toy", "qwen3", 64, 128, 2, 4, 2, 384, head_width=16)


def config_of(shape: Shape, positions: int = 32768) -> Any:
    from transformers import AutoConfig

    return AutoConfig.for_model(
        shape.kind,
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        head_dim=shape.head_width,
        max_position_embeddings=positions,
        tie_word_embeddings=shape.tied,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )


def make(shape: Shape, dtype: torch.dtype, device: str, seed: int = 0) -> Any:
    """The model, made on the device: drawing billions of numbers on a CPU takes minutes."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config_of(shape), dtype=dtype)
    return model.eval()
