"""The numbers that decide how much memory a model takes, from its config.json."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.config.architectures import unknown

GIB = 2**30
BYTES = {"float32": 4, "bfloat16": 2}
"""Bytes of one number, by its type."""
BLOCK = 256
"""Tokens. vLLM's cache consists of blocks of 16 to 256 tokens, and each of these sizes divides this number. vLLM keeps one block for
itself.
"""
MAX_JSON_BYTES = 20_000_000


class ShapeUnknown(ValueError):
    """A config.json does not say how large its model is; the message says what is missing."""


@dataclass(frozen=True)
class ModelShape:
    """A decoder of the supported architectures: `layers` of attention and a gated MLP between an embedding and a head."""

    layers: int
    hidden: int
    inner: int
    """Width of the MLP."""
    heads: int
    key_heads: int
    head_width: int
    vocabulary: int
    tied: bool
    """Whether the head is the embedding."""
    longest: int | None = None
    """`max_position_embeddings`, in tokens."""
    attention_bias: int = 0
    """Numbers of the biases of one layer's attention."""
    mlp_bias: int = 0
    head_norms: bool = False
    """Whether queries and keys are normalised per head, as in Qwen3."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "ModelShape":
        """The shape that a config.json describes. Raises ShapeUnknown if a number is missing or the architecture is not supported."""
        kind = str(config.get("model_type"))
        if why := unknown(kind):
            raise ShapeUnknown(why)
        hidden, heads = _number(config, "hidden_size"), _number(config, "num_attention_heads")
        width = _number(config, "head_dim") if config.get("head_dim") else hidden // heads
        key_heads = _number(config, "num_key_value_heads") if config.get("num_key_value_heads") else heads
        inner = _number(config, "intermediate_size")
        queries, keys = heads * width, key_heads * width
        biased = kind == "qwen2" or bool(config.get("attention_bias"))
        # Qwen2 has biases at queries, keys and values; llama and qwen3, if they have any, have them at the output as well.
        return cls(
            layers=_number(config, "num_hidden_layers"),
            hidden=hidden,
            inner=inner,
            heads=heads,
            key_heads=key_heads,
            head_width=width,
            vocabulary=_number(config, "vocab_size"),
            tied=bool(config.get("tie_word_embeddings")),
            longest=_number(config, "max_position_embeddings") if config.get("max_position_embeddings") else None,
            attention_bias=(queries + 2 * keys + (0 if kind == "qwen2" else hidden)) if biased else 0,
            mlp_bias=2 * inner + hidden if kind == "llama" and config.get("mlp_bias") else 0,
            head_norms=kind == "qwen3",
        )

    @property
    def queries(self) -> int:
        """The count of numbers that the queries of one token in one layer are."""
        return self.heads * self.head_width

    @property
    def keys(self) -> int:
        """The count of numbers that the keys of one token in one layer are; its values are as many."""
        return self.key_heads * self.head_width

    @property
    def layer_parameters(self) -> int:
        """The count of numbers that one layer has: four matrices of attention, three of the MLP, the norms, and biases if there are any."""
        attention = self.hidden * (2 * self.queries + 2 * self.keys) + self.attention_bias
        norms = 2 * self.hidden + (2 * self.head_width if self.head_norms else 0)
        return attention + 3 * self.hidden * self.inner + self.mlp_bias + norms

    @property
    def parameters(self) -> int:
        """The count of numbers that the model has; a head that is the embedding counts once."""
        ends = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return ends + self.layers * self.layer_parameters + self.hidden

    @property
    def matrix_parameters(self) -> int:
        """The count of numbers that the matrices of the layers have, which the optimiser `muon` takes."""
        return self.layers * (self.hidden * (2 * self.queries + 2 * self.keys) + 3 * self.hidden * self.inner)

    def adapter_parameters(self, rank: int) -> int:
        """The count of numbers that LoRA on every matrix of the layers has (Hu et al., 2021): rank x (inputs + outputs) for each matrix."""
        attention = 2 * (self.hidden + self.queries) + 2 * (self.hidden + self.keys)
        return self.layers * rank * (attention + 3 * (self.hidden + self.inner))

    def cached_tokens(self, cache_bytes: int, element: int) -> int:
        """Tokens of one response that a cache of vLLM of this size holds."""
        return (cache_bytes // self.cache_bytes(1, element) // BLOCK - 1) * BLOCK

    def cache_bytes(self, tokens: int, element: int) -> int:
        """Bytes of the keys and values of this many tokens; one number has `element` bytes."""
        return tokens * self.layers * 2 * self.keys * element


def read_shape(folder: Path) -> ModelShape:
    """The shape of the model in a folder. Raises ShapeUnknown, also if config.json cannot be read."""
    file = folder / "config.json"
    try:
        if file.stat().st_size > MAX_JSON_BYTES:
            raise ShapeUnknown("its config.json is too large")
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ShapeUnknown(f"its config.json cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ShapeUnknown("its config.json is not JSON") from error
    if not isinstance(config, dict):
        raise ShapeUnknown("its config.json is not an object")
    return ModelShape.of(config)


def _number(config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ShapeUnknown(f"its config.json has no {key} that is a whole number above 0")
    return value
