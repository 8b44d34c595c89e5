"""The questions that a task makes from a run's examples, encoded."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.config import OnPolicyConfig
from trainer.contracts import Example, PartResult
from trainer.contracts.plurals import with_noun
from trainer.inference.chat import encode_prompt
from trainer.rollouts import RolloutTask, Trajectory, one_of_each
from trainer.tasks import AnsweredQuestion, Posed, TrainingTask

from ..session.errors import RunFailed
from .data import Prompt, PromptSets


def posed_prompts(
    examples: Sequence[Example], tokenizer: Any, config: OnPolicyConfig, task: TrainingTask
) -> PromptSets:
    """All questions of the training examples, and of the first `evaluation.max_examples` held-out examples that have a question. Raises
    RunFailed if nothing is left to train on.
    """
    train: list[tuple[Posed, Prompt]] = []
    heldout: list[Prompt] = []
    used, reasons = 0, Counter[str]()
    for example in examples:
        held_out = example.split == "heldout"
        found = _encoded(example, held_out, tokenizer, config, task, reasons)
        if not held_out:
            train += found
        elif found and used < config.evaluation.max_examples:
            used += 1
            heldout += [prompt for _, prompt in found]
    left_out = [f"{count:,} {reason}" for reason, count in reasons.items()]
    if not train:
        said = "; ".join(left_out) or "none is in the training split"
        raise RunFailed(f"nothing to train on; of {with_noun(len(examples), 'examples')}: {said}")
    left_out += task.remarks([posed for posed, _ in train])
    return PromptSets([prompt for _, prompt in train], heldout, left_out)


def answered(trajectories: Sequence[Trajectory], prompts: Mapping[str, RolloutTask]) -> list[AnsweredQuestion]:
    """Responses as a task measures them; an attempt of several turns counts once."""
    return [_answered(each, prompts[each.plan.example_key]) for each in one_of_each(trajectories)]


def _answered(trajectory: Trajectory, prompt: RolloutTask) -> AnsweredQuestion:
    parts: dict[str, PartResult] = {part.name: part for part in trajectory.reward.parts}
    return AnsweredQuestion(trajectory.plan.example_key, prompt.facts, trajectory.text, parts)


def _encoded(
    example: Example, held_out: bool, tokenizer: Any, config: OnPolicyConfig, task: TrainingTask, reasons: Counter[str]
) -> list[tuple[Posed, Prompt]]:
    found, longest = [], config.data.max_prompt_tokens
    for posed in task.pose(example, held_out):
        if isinstance(posed, str):
            reasons[posed] += 1
            continue
        tokens = encode_prompt(tokenizer, posed.example.prompt)
        if len(tokens) > longest:
            reasons[f"questions left out: longer than data.max_prompt_tokens = {longest}"] += 1
            continue
        found.append((posed, Prompt(posed.example, None, tokens, posed.facts)))
    return found
