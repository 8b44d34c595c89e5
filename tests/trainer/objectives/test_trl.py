"""The losses that TRL also has, compared with TRL's own methods on the same tensors, value and gradient.

TRL computes a loss inside its trainers. The test calls the method on a substitute that has the settings which the method reads, so no
model, tokenizer or process group is needed.
"""

from collections import defaultdict
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from trainer.objectives import REGISTRY, ObjectiveBatch, PairBatch, ScoreBatch

pytest.importorskip("trl", reason="TRL is a test-only peer: pip install trl==1.16.0")
pytestmark = pytest.mark.slow  # importing TRL takes most of this time

B, T, LIMIT = 6, 7, 12


def tensors(seed: int) -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)

    def normal(scale: float) -> torch.Tensor:
        return scale * torch.randn(B, T, dtype=torch.float64, generator=draw)

    logp = normal(1) - 2
    lengths = torch.randint(1, T + 1, (B, 1), generator=draw)
    return {
        "logp": logp,
        "logp_old": logp + normal(0.2),
        "logp_roll": logp + normal(0.2),
        "logp_ref": logp + normal(0.5),
        "mask": (torch.arange(T) < lengths).double(),
        "advantages": torch.randn(B, dtype=torch.float64, generator=draw),
    }


def trl_grpo(data: dict[str, torch.Tensor], logp: torch.Tensor, **settings: Any) -> torch.Tensor:
    from trl.trainer.grpo_trainer import GRPOTrainer

    accelerator = SimpleNamespace(num_processes=1, gather=lambda x: x, reduce=lambda x, **_: x)
    stand_in = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (logp, torch.zeros_like(logp), None),
        accelerator=accelerator,
        model=SimpleNamespace(training=True),
        args=SimpleNamespace(use_bias_correction_kl=False, delta=None, steps_per_generation=1),
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level="token",
        beta=0.0,
        use_vllm=False,
        vllm_importance_sampling_correction=False,
        epsilon_low=0.2,
        epsilon_high=0.2,
        current_gradient_accumulation_steps=1,
        max_completion_length=LIMIT,
        _entropy_bonus_enabled=False,
        _metrics=defaultdict(lambda: defaultdict(list)),
    )
    for name, value in settings.items():
        setattr(stand_in, name, value)
    ids, mask = torch.zeros(B, T, dtype=torch.long), data["mask"]
    mismatch = torch.exp(data["logp_old"] - data["logp_roll"])
    # vllm_importance_sampling_mode "token_mask", which TRL applies where it scores the responses
    low, high = (
        settings.get("vllm_importance_sampling_clip_min", 0.0),
        settings.get("vllm_importance_sampling_clip_max", 1e9),
    )
    inputs = {
        "prompt_ids": ids,
        "prompt_mask": torch.ones(B, T),
        "completion_ids": ids,
        "completion_mask": mask,
        "advantages": data["advantages"],
        "old_per_token_logps": data["logp_old"],
        "ref_per_token_logps": data["logp_ref"],
        "importance_sampling_ratio": torch.where((low <= mismatch) & (mismatch <= high), mismatch, 0.0),
        "num_items_in_batch": mask.sum(),
    }
    return GRPOTrainer._compute_loss(stand_in, None, inputs)


GRPO_LIKE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("grpo", {}, {"loss_type": "grpo"}),
    ("grpo", {"kl_beta": 0.07}, {"loss_type": "grpo", "beta": 0.07}),
    ("grpo", {"eps_low": 0.1, "eps_high": 0.4}, {"loss_type": "grpo", "epsilon_low": 0.1, "epsilon_high": 0.4}),
    (
        "grpo",
        {"decoupled": True, "weight_cap": 1e9, "kl_beta": 0.2},
        {"loss_type": "grpo", "beta": 0.2, "use_vllm": True, "vllm_importance_sampling_correction": True},
    ),
    (
        "icepop",
        {"pop_mode": "weight", "pop_low": 0.8, "pop_high": 1.2},
        {
            "loss_type": "grpo",
            "epsilon_high": 0.28,
            "use_vllm": True,
            "vllm_importance_sampling_correction": True,
            "vllm_importance_sampling_clip_min": 0.8,
            "vllm_importance_sampling_clip_max": 1.2,
        },
    ),
    ("dr_grpo", {"max_tokens": LIMIT}, {"loss_type": "dr_grpo"}),
    ("dr_grpo", {"max_tokens": LIMIT, "kl_beta": 0.1}, {"loss_type": "dr_grpo", "beta": 0.1}),
    ("dapo", {}, {"loss_type": "dapo", "epsilon_high": 0.28}),
    ("dapo", {"kl_beta": 0.1}, {"loss_type": "dapo", "epsilon_high": 0.28, "beta": 0.1}),
    (
        "gspo",
        {},
        {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon_low": 3e-4, "epsilon_high": 4e-4},
    ),
    (
        "gspo",
        {"eps_low": 0.1, "eps_high": 0.1, "kl_beta": 0.1},
        {
            "loss_type": "grpo",
            "importance_sampling_level": "sequence",
            "epsilon_low": 0.1,
            "epsilon_high": 0.1,
            "beta": 0.1,
        },
    ),
]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("name", "ours", "theirs"), GRPO_LIKE)
def test_policy_losses(name: str, ours: dict[str, Any], theirs: dict[str, Any], seed: int) -> None:
    data = tensors(seed)
    logp = data["logp"].clone().requires_grad_()
    peer = data["logp"].clone().requires_grad_()
    batch = ObjectiveBatch(
        logp_BT=logp,
        mask_BT=data["mask"],
        advantages_B=data["advantages"],
        logp_old_BT=data["logp_old"],
        logp_roll_BT=data["logp_roll"],
        logp_ref_BT=data["logp_ref"],
    )
    loss = REGISTRY[name].loss(batch, REGISTRY[name].params(**ours)).loss
    expected = trl_grpo(data, peer, **theirs)
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=1e-12)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(logp.grad, peer.grad, rtol=1e-9, atol=1e-12)


def trl_dpo(logp: torch.Tensor, ref: torch.Tensor, mask: torch.Tensor, sft_weight: float) -> torch.Tensor:
    """Rows: chosen, then rejected. TRL shifts by one token, so a column is added at the front."""
    from trl.trainer.dpo_trainer import DPOTrainer

    zeros = torch.zeros(len(logp), T)
    outputs = SimpleNamespace(
        log_probs=logp * mask,
        entropy=zeros,
        mean_logits=zeros,
        is_top1=zeros.bool(),
    )
    references = SimpleNamespace(log_probs=ref * mask)
    stand_in = SimpleNamespace(
        model=SimpleNamespace(training=True),
        ref_model=lambda **_: references,
        accelerator=SimpleNamespace(device="cpu", gather=lambda x: x, gather_for_metrics=lambda x: x),
        args=SimpleNamespace(gradient_checkpointing_kwargs=None),
        aux_loss_enabled=False,
        ld_alpha=None,
        precompute_ref_logps=True,
        f_divergence_type="reverse_kl",
        beta=0.3,
        loss_types=["sigmoid", "sft"],
        loss_weights=[1.0, sft_weight],
        use_weighting=False,
        _total_train_tokens=0,
        _tp_size=1,
        _metrics=defaultdict(lambda: defaultdict(list)),
    )
    reference_sums = (ref * mask).sum(1).chunk(2)
    padded = torch.cat([torch.zeros(len(mask), 1), mask], dim=1)
    inputs = {
        "input_ids": torch.zeros(len(mask), T + 1, dtype=torch.long),
        "attention_mask": torch.ones(len(mask), T + 1),
        "completion_mask": padded,
        "ref_chosen_logps": reference_sums[0],
        "ref_rejected_logps": reference_sums[1],
    }
    return DPOTrainer._compute_loss(stand_in, Mock(return_value=outputs), inputs, False)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sft_weight", [0.0, 0.2])
def test_dpo(sft_weight: float, seed: int) -> None:
    """TRL's imitation term averages over all tokens of the batch, ours over each response. They are compared on equal lengths."""
    data = tensors(seed)
    if sft_weight:
        data["mask"][: B // 2] = (torch.arange(T) < 5).double()
    logp = data["logp"].clone().requires_grad_()
    peer = data["logp"].clone().requires_grad_()
    chosen, rejected = slice(0, B // 2), slice(B // 2, B)
    batch = PairBatch(
        chosen_PT=logp[chosen],
        rejected_PT=logp[rejected],
        mask_chosen_PT=data["mask"][chosen],
        mask_rejected_PT=data["mask"][rejected],
        ref_chosen_PT=data["logp_ref"][chosen],
        ref_rejected_PT=data["logp_ref"][rejected],
    )
    params = REGISTRY["dpo"].params(beta=0.3, sft_weight=sft_weight)
    loss = REGISTRY["dpo"].loss(batch, params).loss
    expected = trl_dpo(peer, data["logp_ref"], data["mask"], sft_weight)
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=1e-12)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(logp.grad, peer.grad, rtol=1e-9, atol=1e-12)


def test_sft_is_the_loss_that_trl_leaves_to_transformers() -> None:
    from transformers.loss.loss_utils import ForCausalLMLoss

    draw = torch.Generator().manual_seed(0)
    logits_BTV = torch.randn(B, T + 1, 11, generator=draw, requires_grad=True)
    tokens_BT = torch.randint(11, (B, T + 1), generator=draw)
    labels_BT = torch.where(torch.rand(B, T + 1, generator=draw) < 0.6, tokens_BT, -100)
    expected = ForCausalLMLoss(logits_BTV, labels_BT, vocab_size=11)
    logp_BT = torch.log_softmax(logits_BTV[:, :-1], -1).gather(-1, tokens_BT[:, 1:, None])[..., 0]
    batch = ObjectiveBatch(logp_BT=logp_BT, mask_BT=(labels_BT[:, 1:] != -100).float())
    loss = REGISTRY["sft"].loss(batch, REGISTRY["sft"].params()).loss
    torch.testing.assert_close(loss, expected)
    ours, theirs = (torch.autograd.grad(value, logits_BTV, retain_graph=True)[0] for value in (loss, expected))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("centre", [None, 0.05])
def test_bradley_terry_with_margins_and_centring(centre: float | None) -> None:
    from trl.trainer.reward_trainer import RewardTrainer

    scores = torch.tensor([[1.0], [0.2], [-3.0], [0.5], [0.7], [-1.0]], dtype=torch.float64)
    margins = torch.tensor([0.5, 0.0, 1.0], dtype=torch.float64)
    stand_in = SimpleNamespace(
        model=SimpleNamespace(training=False),
        accelerator=SimpleNamespace(device="cpu", gather=lambda x: x, gather_for_metrics=lambda x: x),
        args=SimpleNamespace(center_rewards_coefficient=centre),
        aux_loss_enabled=False,
        _metrics=defaultdict(lambda: defaultdict(list)),
        _total_train_tokens=0,
    )
    inputs = {"margin": margins, "attention_mask": torch.ones(6, 2)}
    expected = RewardTrainer.compute_loss(stand_in, Mock(return_value=SimpleNamespace(logits=scores)), inputs)
    found = REGISTRY["bradley_terry"].loss(
        ScoreBatch(scores[:3, 0], scores[3:, 0], margins), REGISTRY["bradley_terry"].params(centre=centre)
    )
    torch.testing.assert_close(found.loss, expected)
