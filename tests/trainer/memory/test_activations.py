"""The forecast of the tensors that a pass keeps, compared with the tensors that autograd really saves."""

from typing import Any

import pytest
import torch

from tests.trainer.memory.shapes import SMALL
from trainer.config import resolve
from trainer.loops.learner.learner import Learner, Marked
from trainer.memory.activations import layer_bytes
from trainer.memory.shape import BYTES, ModelShape

RANK = 4


def kept_bytes(layers: int, tokens: int, dtype: str, lora: bool, kind: str, recompute: bool = False) -> int:
    """Bytes of the distinct tensors, without weights, that one pass keeps for its backward pass."""
    from transformers import AutoConfig, AutoModelForCausalLM

    wanted = SMALL | {"num_hidden_layers": layers}
    config = AutoConfig.for_model(kind, **{key: value for key, value in wanted.items() if key != "model_type"})
    model = AutoModelForCausalLM.from_config(config).to(getattr(torch, dtype))
    raw = {
        "model": {"dtype": dtype, "lora": {"rank": RANK} if lora else None},
        "optim": {"recompute_activations": recompute},
    }
    learner = Learner(model, resolve("sft", raw), reference=False)
    held = learner.adapted if lora else model
    weights = {parameter.untyped_storage().data_ptr() for parameter in held.parameters()}
    found: dict[int, tuple[int, Any]] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            found[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        learner.measure([Marked(tuple(range(1, tokens + 2)), range(tokens - 3, tokens + 1))])
    return sum(size for size, _ in found.values())


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
@pytest.mark.parametrize("lora", [False, True], ids=["all weights", "adapters"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_layer_keeps_exactly_what_is_said(dtype: str, lora: bool, kind: str) -> None:
    shape, element, tokens = ModelShape.of(SMALL | {"model_type": kind}), BYTES[dtype], 100
    layer = kept_bytes(3, tokens, dtype, lora, kind) - kept_bytes(2, tokens, dtype, lora, kind)
    rank = RANK if lora else None
    assert layer == tokens * layer_bytes(shape, element, rank)


def test_with_recomputation_a_layer_keeps_its_input_alone() -> None:
    one, two = (kept_bytes(layers, 100, "float32", True, "llama", recompute=True) for layers in (2, 3))
    assert two - one == 100 * 64 * 4


def test_a_layer_by_hand() -> None:
    shape = ModelShape.of(SMALL)
    # float32, all weights: 6 tensors of 64, 2 of 64 queries, 2 of 32 keys, 4 of 160; two scales and four sums
    assert layer_bytes(shape, 4, None) == 4 * (6 * 64 + 2 * 64 + 2 * 32 + 4 * 160 + 2 + 4)
