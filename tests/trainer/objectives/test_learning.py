"""Every objective teaches: a tiny policy reaches a given reward within a given number of steps, over three seeds.

The task has two prompts, and responses of four tokens from a vocabulary of six, some shortened by a stop token. The reward is the share of
tokens that equal the prompt's hidden answer. The policy is a random table of logits for each prompt and position. The sampler's copy is
rounded to bfloat16, so trainer and sampler disagree a little, as in real runs. A random table scores about 1/6.
"""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from trainer.objectives import REGISTRY, ObjectiveBatch, PairBatch, ScoreBatch

PROMPTS, TOKENS, VOCABULARY, GROUP = 2, 4, 6, 16
SEEDS = range(3)


@dataclass
class Task:
    """The policy, the hidden answers, and the sampler's lagging copy of the policy."""

    logits_PTV: Tensor
    sampler_PTV: Tensor
    answer_PT: Tensor
    draw: torch.Generator

    @classmethod
    def of(cls, seed: int) -> "Task":
        draw = torch.Generator().manual_seed(seed)
        logits = torch.randn(PROMPTS, TOKENS, VOCABULARY, generator=draw)
        answer = torch.randint(VOCABULARY, (PROMPTS, TOKENS), generator=draw)
        return cls(logits.clone().requires_grad_(), logits.bfloat16().float(), answer, draw)

    def push(self) -> None:
        """Copies the weights to the sampler, in its precision."""
        self.sampler_PTV = self.logits_PTV.detach().bfloat16().float()

    def sample(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Prompt ids, tokens, mask and rewards of one step. About a quarter of the responses stop early."""
        prompts_B = torch.arange(PROMPTS).repeat_interleave(GROUP)
        weights = torch.softmax(self.sampler_PTV, -1)[prompts_B].reshape(-1, VOCABULARY)
        tokens_BT = torch.multinomial(weights, 1, generator=self.draw).reshape(-1, TOKENS)
        lengths_B = torch.where(torch.rand(len(prompts_B), generator=self.draw) < 0.25, TOKENS - 1, TOKENS)
        mask_BT = (torch.arange(TOKENS) < lengths_B[:, None]).float()
        right_BT = (tokens_BT == self.answer_PT[prompts_B]) * mask_BT
        return prompts_B, tokens_BT, mask_BT, right_BT.sum(-1) / lengths_B

    def expected_reward(self) -> float:
        chances = torch.softmax(self.logits_PTV.detach(), -1)
        return float(chances.gather(-1, self.answer_PT[..., None]).mean())


def logp(table_PTV: Tensor, prompts_B: Tensor, tokens_BT: Tensor) -> Tensor:
    return torch.log_softmax(table_PTV, -1)[prompts_B].gather(-1, tokens_BT[..., None]).squeeze(-1)


def train(
    task: Task, name: str, steps: int, lr: float, lag: int = 1, teacher: Tensor | None = None, **knobs: Any
) -> None:
    """Two updates a step on the same responses, so that ratios differ from 1. Weights are pushed every `lag` steps."""
    objective, optimizer = REGISTRY[name], torch.optim.Adam([task.logits_PTV], lr=lr)
    params = objective.params(**knobs)
    reference = task.logits_PTV.detach().clone()
    for step in range(steps):
        if step % lag == 0:
            task.push()
        prompts_B, tokens_BT, mask_BT, rewards_B = task.sample()
        old = logp(task.logits_PTV.detach(), prompts_B, tokens_BT)
        batch = ObjectiveBatch(
            logp_BT=old,
            mask_BT=mask_BT,
            advantages_B=None if teacher is not None else objective.advantages(rewards_B, prompts_B, params),
            groups_B=prompts_B,
            logp_old_BT=old,
            logp_roll_BT=logp(task.sampler_PTV, prompts_B, tokens_BT),
            logp_ref_BT=logp(reference, prompts_B, tokens_BT),
            logp_teacher_BT=None if teacher is None else logp(teacher, prompts_B, tokens_BT),
        )
        for _ in range(2):
            optimizer.zero_grad()
            current = logp(task.logits_PTV, prompts_B, tokens_BT)
            objective.loss(batch.rows(torch.arange(len(prompts_B)), current), params).loss.backward()
            optimizer.step()


RECIPES: list[tuple[str, dict[str, Any], int]] = [
    ("grpo", {"kl_beta": 0.001}, 1),
    ("grpo", {"decoupled": True}, 2),
    ("dr_grpo", {"max_tokens": TOKENS}, 1),
    ("dapo", {"advantage": "leave_one_out"}, 1),
    ("gspo", {"eps_low": 0.05, "eps_high": 0.05}, 1),
    ("icepop", {}, 1),
    ("icepop", {"pop_mode": "weight"}, 1),
    ("misc", {"eps_low": 0.05, "eps_high": 0.05}, 1),
    ("misc", {"eps_low": 0.05, "eps_high": 0.05, "token_gradient": True}, 1),
    ("double_sided", {}, 1),
    ("kimi", {}, 1),
    ("oapl", {"beta2": 0.1}, 10),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "knobs", "lag"), RECIPES)
def test_the_policy_learns_from_rewards(name: str, knobs: dict[str, Any], lag: int, seed: int) -> None:
    task = Task.of(seed)
    assert task.expected_reward() < 0.35
    train(task, name, steps=75, lr=0.05, lag=lag, **knobs)
    assert task.expected_reward() > 0.9


@pytest.mark.parametrize("seed", SEEDS)
def test_distillation_finds_the_teacher(seed: int) -> None:
    task = Task.of(seed)
    teacher = torch.randn(PROMPTS, TOKENS, VOCABULARY, generator=task.draw)

    def distance() -> float:
        student = torch.log_softmax(task.logits_PTV.detach(), -1)
        return float((student.exp() * (student - torch.log_softmax(teacher, -1))).sum(-1).mean())

    assert distance() > 0.5
    train(task, "distill", steps=75, lr=0.05, teacher=teacher)
    assert distance() < 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_iterated_dpo_learns_from_pairs(seed: int) -> None:
    """Samples, labels and updates. Every 30 steps the policy becomes the sampler and the reference."""
    task = Task.of(seed)
    reference = task.logits_PTV.detach().clone()
    optimizer = torch.optim.Adam([task.logits_PTV], lr=0.05)
    for step in range(150):
        if step % 30 == 0:
            task.push()
            reference = task.logits_PTV.detach().clone()
        prompts_B, tokens_BT, mask_BT, rewards_B = task.sample()
        one, two = torch.arange(0, len(prompts_B), 2), torch.arange(1, len(prompts_B), 2)
        better = rewards_B[one] >= rewards_B[two]
        differ = rewards_B[one] != rewards_B[two]
        chosen, rejected = torch.where(better, one, two)[differ], torch.where(better, two, one)[differ]
        current = logp(task.logits_PTV, prompts_B, tokens_BT)
        frozen = logp(reference, prompts_B, tokens_BT)
        batch = PairBatch(
            chosen_PT=current[chosen],
            rejected_PT=current[rejected],
            mask_chosen_PT=mask_BT[chosen],
            mask_rejected_PT=mask_BT[rejected],
            ref_chosen_PT=frozen[chosen],
            ref_rejected_PT=frozen[rejected],
        )
        optimizer.zero_grad()
        REGISTRY["dpo"].loss(batch, REGISTRY["dpo"].params()).loss.backward()
        optimizer.step()
    assert task.expected_reward() > 0.8


@pytest.mark.parametrize("seed", SEEDS)
def test_bradley_terry_recovers_a_linear_taste(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    taste = torch.randn(8, generator=draw)
    weights = torch.zeros(8, requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.05)

    def pairs(count: int) -> tuple[Tensor, Tensor]:
        a, b = torch.randn(2, count, 8, generator=draw)
        first = (a @ taste > b @ taste)[:, None]
        return torch.where(first, a, b), torch.where(first, b, a)

    for _ in range(100):
        chosen, rejected = pairs(64)
        optimizer.zero_grad()
        loss = REGISTRY["bradley_terry"].loss
        loss(ScoreBatch(chosen @ weights, rejected @ weights), REGISTRY["bradley_terry"].params()).loss.backward()
        optimizer.step()
    chosen, rejected = pairs(1000)
    assert ((chosen - rejected) @ weights > 0).float().mean() > 0.95


@pytest.mark.parametrize("seed", SEEDS)
def test_sft_imitates_the_turns_of_the_mask_and_no_others(seed: int) -> None:
    task = Task.of(seed)
    before = task.logits_PTV.detach().clone()
    optimizer = torch.optim.Adam([task.logits_PTV], lr=0.1)
    mask = torch.tensor([[1.0, 0.0, 1.0, 1.0]]).expand(PROMPTS, TOKENS)
    for _ in range(100):
        current = logp(task.logits_PTV, torch.arange(PROMPTS), task.answer_PT)
        optimizer.zero_grad()
        REGISTRY["sft"].loss(ObjectiveBatch(logp_BT=current, mask_BT=mask), REGISTRY["sft"].params()).loss.backward()
        optimizer.step()
    chances = logp(task.logits_PTV.detach(), torch.arange(PROMPTS), task.answer_PT).exp()
    assert chances[:, [0, 2, 3]].min() > 0.95
    assert torch.equal(task.logits_PTV[:, 1], before[:, 1])
