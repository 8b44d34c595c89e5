"""The size of a model by its config.json alone, compared with models that transformers makes of it."""

from pathlib import Path
from typing import Any

import pytest

from tests.trainer.memory.shapes import QWEN_7B, SMALL, shape
from trainer.memory.shape import ModelShape, ShapeUnknown, read_shape


def empty_model(config: dict[str, Any]) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    plain = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(config["model_type"], **plain))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tie_word_embeddings": False},
        {"attention_bias": True, "mlp_bias": True},
        {"model_type": "mistral"},
        {"model_type": "qwen2"},
        {"model_type": "qwen3"},
        {"model_type": "qwen3", "attention_bias": True},
    ],
    ids=str,
)
def test_it_has_as_many_numbers_as_the_model_that_transformers_makes(changes: dict[str, Any]) -> None:
    config = SMALL | changes
    assert ModelShape.of(config).parameters == sum(each.numel() for each in empty_model(config).parameters())


def test_a_large_model_has_the_size_that_its_name_says() -> None:
    assert ModelShape.of(QWEN_7B).parameters == 7_615_616_512


def test_adapters_lie_on_every_matrix_of_the_layers() -> None:
    # of rank 3 by hand: q, o 64+64 each, k, v 64+32 each, three of the MLP 64+160 each
    assert shape().adapter_parameters(3) == 2 * 3 * (2 * 128 + 2 * 96 + 3 * 224)


def test_keys_and_values_of_a_token_are_counted_in_every_layer() -> None:
    assert shape().cache_bytes(10, 4) == 10 * 2 * (2 * 2 * 16) * 4


@pytest.mark.parametrize("missing", ["hidden_size", "num_attention_heads", "vocab_size", "intermediate_size"])
def test_a_config_that_does_not_say_how_large_it_is_is_told(missing: str) -> None:
    with pytest.raises(ShapeUnknown, match=missing):
        ModelShape.of({key: value for key, value in SMALL.items() if key != missing})


@pytest.mark.parametrize("key", ["head_dim", "num_key_value_heads", "max_position_embeddings"])
@pytest.mark.parametrize("value", ["16", [16], -1, True])
def test_what_may_be_missing_is_a_number_where_it_is_there(key: str, value: Any) -> None:
    with pytest.raises(ShapeUnknown, match=key):
        ModelShape.of(SMALL | {key: value})
    assert ModelShape.of(SMALL | {key: None})


@pytest.mark.parametrize(
    "text",
    ["", "[1]", "{", "[" * 200_000, '{"model_type": "mamba"}', '{"model_type": "llama", "hidden_size": "4"}'],
    ids=lambda text: text[:40],
)
def test_a_file_that_is_no_config_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(ShapeUnknown):
        read_shape(tmp_path)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ShapeUnknown):
        read_shape(tmp_path)
