"""(a) Every objective and head: loss and gradient on the device equal those on the CPU."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.rows import MeasureRow, MeasureSetting
from benchmarks.gpu.shapes import TOY, config_of
from trainer.loops.learner.head import log_probs, sampled_log_probs
from trainer.objectives import REGISTRY, ObjectiveBatch
from trainer.objectives.batch import PairBatch, ScoreBatch

Leaves = Sequence[Tensor]
"""The tensors with a gradient; other tensors come with them."""
FLOAT32 = 1e-4
BFLOAT16 = 0.02
LONGEST = {"dr_grpo": {"max_tokens": 256}}


def run(setting: MeasureSetting) -> list[MeasureRow]:
    rows = [_compared(f"objective {name}", *_objective(name, setting), setting.device) for name in REGISTRY]
    for dtype, mark in ((torch.float32, FLOAT32), (torch.bfloat16, BFLOAT16)):
        for kind in ("frozen", "trained"):
            name = f"head, {kind}, {str(dtype).removeprefix('torch.')}"
            rows.append(_compared(name, *_head(kind, dtype, setting), setting.device, mark))
    rows.append(_compared("head, nucleus, float32", *_nucleus(setting), setting.device))
    rows.append(_compared("head of a reward model, float32", *_scalar(setting), setting.device))
    return rows


def _compared(
    name: str, loss: Callable[[Leaves], Tensor], leaves: Leaves, device: str, mark: float = FLOAT32
) -> MeasureRow:
    """The largest difference of the values and of any gradient, in parts of the largest number among them."""
    here, there = (_with_gradients(loss, leaves, where) for where in ("cpu", device))
    worst = max(_apart(one, other) for one, other in zip(here, there, strict=True))
    return MeasureRow(name, worst, "of the largest", mark)


def _with_gradients(loss: Callable[[Leaves], Tensor], leaves: Leaves, device: str) -> list[Tensor]:
    own = [leaf.detach().to(device).requires_grad_(leaf.requires_grad) for leaf in leaves]
    value = loss(own)
    if value.requires_grad:
        value.sum().backward()
    return [value.detach().cpu(), *(leaf.grad.cpu() for leaf in own if leaf.grad is not None)]


def _apart(one: Tensor, other: Tensor) -> float:
    """The largest difference; infinities must be at the same places."""
    one, other = one.float(), other.float()
    finite = one.isfinite()
    if not torch.equal(finite, other.isfinite()):
        return float("inf")
    one, other = one[finite], other[finite]
    largest = float(one.abs().max()) if len(one) else 0.0
    return float((one - other).abs().max()) / largest if largest else float(other.abs().sum())


def _drawn(*shape: int, scale: float = 1.0, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale


def _objective(name: str, setting: MeasureSetting) -> tuple[Callable[[Leaves], Tensor], Leaves]:
    objective = REGISTRY[name]
    params = objective.params(**LONGEST.get(name, {}))
    if name == "bradley_terry":
        scores = [_drawn(32, seed=seed).requires_grad_() for seed in (1, 2)]
        return lambda own: objective.loss(ScoreBatch(own[0], own[1]), params).loss, scores
    count, width = (6, 9) if setting.small else (64, 256)
    logp = (-_drawn(count, width).abs() - 0.05).requires_grad_()
    others = [logp.detach() + _drawn(count, width, scale=0.1, seed=seed) for seed in (1, 2, 3, 4)]
    lengths = torch.arange(count) * (width - 1) // count + 1
    mask = (torch.arange(width)[None] < lengths[:, None]).float()
    if name == "dpo":
        return partial(_dpo, objective, params), [logp, others[0].requires_grad_(), mask, others[1], others[2]]
    advantages = _drawn(count, seed=5)
    advantages[1] = float("nan")
    groups = torch.arange(count) // 2
    return partial(_policy, objective, params), [logp, mask, *others, advantages, groups]


def _policy(objective: Any, params: Any, own: Leaves) -> Tensor:
    logp, mask, old, roll, ref, teacher, advantages, groups = own
    batch = ObjectiveBatch(
        logp_BT=logp,
        mask_BT=mask,
        advantages_B=advantages,
        groups_B=groups,
        logp_old_BT=old,
        logp_roll_BT=roll,
        logp_ref_BT=ref,
        logp_teacher_BT=teacher,
    )
    loss: Tensor = objective.loss(batch, params).loss
    return loss


def _dpo(objective: Any, params: Any, own: Leaves) -> Tensor:
    chosen, rejected, mask, ref_chosen, ref_rejected = own
    loss: Tensor = objective.loss(PairBatch(chosen, rejected, mask, mask, ref_chosen, ref_rejected), params).loss
    return loss


def _head(kind: str, dtype: torch.dtype, setting: MeasureSetting) -> tuple[Callable[[Leaves], Tensor], Leaves]:
    hidden, weight, tokens = _hidden(setting)
    return _weighed, [hidden.to(dtype).requires_grad_(), weight.to(dtype).requires_grad_(kind == "trained"), tokens]


def _hidden(setting: MeasureSetting) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states, a head whose logits have a spread of 2, and tokens; more rows than one block of the head."""
    count, width, vocabulary = (300, 32, 96) if setting.small else (4096, 896, 32768)
    hidden, weight = _drawn(count, width), _drawn(vocabulary, width, scale=2.0 / width**0.5, seed=1)
    tokens = torch.randint(vocabulary, (count,), generator=torch.Generator().manual_seed(2))
    return hidden, weight, tokens


def _weighed(own: Leaves) -> Tensor:
    """Log-probabilities, each with its own gradient, and entropies."""
    hidden, weight, tokens = own
    logp, entropy = log_probs(hidden, weight, tokens, 0.9)
    scale = torch.linspace(-1.0, 1.0, len(tokens), device=tokens.device)
    return logp * scale + entropy.detach()


def _nucleus(setting: MeasureSetting) -> tuple[Callable[[Leaves], Tensor], Leaves]:
    """The most likely tokens, which are within the nucleus for any order of sums."""
    hidden, weight, _ = _hidden(setting)
    tokens = (hidden @ weight.T).argmax(-1)
    return lambda own: sampled_log_probs(own[0], own[1], own[2], 0.9, 0.9), [hidden, weight, tokens]


def _scalar(setting: MeasureSetting) -> tuple[Callable[[Leaves], Tensor], Leaves]:
    """Scores of texts that begin alike, and the gradient of the matrix that gives them."""
    from transformers import AutoModelForSequenceClassification

    from trainer.inference.attention import use_grouped_attention
    from trainer.inference.reward_models import ScalarPass

    config = config_of(TOY)
    config.num_labels = 1
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    use_grouped_attention(model)
    texts = [tuple(range(20)), (*range(10), *range(30, 50)), (*range(10), 60, 61)]

    def scores(own: Leaves) -> Tensor:
        model.to(own[0].device)
        found: Tensor = torch.func.functional_call(ScalarPass(model), {"model.score.weight": own[0]}, (texts,))
        return found

    return scores, [model.score.weight.detach().clone().requires_grad_()]
