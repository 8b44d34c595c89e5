"""The memory that an engine needs on GPUs that are not in this machine."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from trainer.inference.sampling import SampleRequest, SamplerInvalid
from trainer.inference.vllm.memory import CardMemory, longest_context, share_of_card, weight_bytes
from trainer.inference.vllm.v0_32 import arguments, check_lengths
from trainer.memory.shape import GIB

QWEN3_8B = {
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40960,
}
H100 = CardMemory(total=80 * GIB, free=80 * GIB)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The shape of a model in config.json beside two files of weights: 3,000,000 numbers in all."""
    (tmp_path / "config.json").write_text(json.dumps(QWEN3_8B))
    save_file({"one": np.zeros((1000, 1000), np.float16)}, tmp_path / "model-00001.safetensors")
    save_file({"two": np.zeros((2000, 1000), np.float32)}, tmp_path / "model-00002.safetensors")
    return tmp_path


def test_the_longest_context_is_what_the_cache_holds_of_one_response(model: Path) -> None:
    """36 layers x 2 x 8 heads x 128 numbers of 2 bytes are 147,456 bytes a token: 2 GiB hold 14,563 of them, 56 blocks."""
    assert longest_context(model, "bfloat16", 2 * GIB) == 55 * 256
    assert longest_context(model, "float32", 2 * GIB) == 27 * 256
    assert longest_context(model, "bfloat16", 40 * GIB) == 40960, "no longer than the model"


def test_a_model_without_the_newer_fields_has_as_many_key_heads_as_heads(model: Path) -> None:
    old = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    (model / "config.json").write_text(json.dumps(old))
    # 2 x 2 x 64 numbers of 4 bytes are 1,024 bytes a token
    assert longest_context(model, "float32", 1024 * 256 * 10) == 9 * 256


def test_a_cache_of_less_than_two_blocks_is_refused_with_what_it_takes(model: Path) -> None:
    with pytest.raises(
        SamplerInvalid, match=r"sampler.kv_cache_gb: 0.03 GiB do not hold .* 512 tokens.*set it to 0.07"
    ):
        longest_context(model, "bfloat16", int(0.03 * GIB))


def test_weights_are_counted_in_the_precision_that_they_run_in(model: Path) -> None:
    assert weight_bytes(model, "bfloat16") == 6_000_000 and weight_bytes(model, "float32") == 12_000_000


def test_an_engine_asks_for_its_own_share_of_the_card_so_that_a_learner_has_room(model: Path) -> None:
    beside_a_learner = CardMemory(total=80 * GIB, free=10 * GIB)
    share = share_of_card(beside_a_learner, model, "bfloat16", 2 * GIB)
    assert 4 / 80 < share < 4.1 / 80
    assert share * beside_a_learner.total <= beside_a_learner.free, "or vLLM refuses to start"


def test_no_engine_asks_for_more_than_vllm_would(model: Path) -> None:
    assert share_of_card(H100, model, "bfloat16", 77 * GIB) == 0.92


def test_a_card_without_room_is_refused_with_what_to_lower(model: Path) -> None:
    with pytest.raises(
        SamplerInvalid, match=r"needs about 4.0 GiB.*3.0 of 80.0 GiB are free.*Lower sampler.kv_cache_gb"
    ):
        share_of_card(CardMemory(80 * GIB, 3 * GIB), model, "bfloat16", 2 * GIB)


def test_the_arguments_say_both_to_vllm_and_a_processor_gets_no_share(model: Path) -> None:
    def wanted(card: CardMemory | None) -> dict[str, object]:
        return arguments(model, "bfloat16", 64, 2.0, None, True, card)

    assert wanted(H100)["max_model_len"] == 55 * 256
    assert wanted(H100)["gpu_memory_utilization"] == share_of_card(H100, model, "bfloat16", 2 * GIB)
    assert "gpu_memory_utilization" not in wanted(None)


def test_a_response_that_vllm_would_cut_is_refused() -> None:
    fits = SampleRequest((1,) * 100, 156, 1.0, 1.0, seed=0)
    check_lengths([fits], 256)
    with pytest.raises(
        SamplerInvalid, match=r"a prompt of 101 tokens and rollout.max_new_tokens 156 do not fit the 256"
    ):
        check_lengths([fits, SampleRequest((1,) * 101, 156, 1.0, 1.0, seed=0)], 256)
