"""The examples of a run: read once, checked, encoded."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trainer.contracts import Example, Rubric
from trainer.inference.chat import encode_prompt

from .errors import RunFailed


@dataclass(frozen=True)
class Prompt:
    """An example that can be trained on: it has a rubric and its prompt fits."""

    example: Example
    rubric: Rubric
    tokens: tuple[int, ...]

    @property
    def text(self) -> str:
        """The conversation as the rollout viewer shows it."""
        messages = self.example.prompt
        if len(messages) == 1:
            return messages[0].content
        return "\n\n".join(f"{message.role}: {message.content}" for message in messages)


@dataclass(frozen=True)
class PromptSets:
    """`left_out` says in words what could not be used, for the log."""

    train: list[Prompt]
    heldout: list[Prompt]
    left_out: list[str]


def read_examples(path: Path) -> list[Example]:
    """Raises RunFailed with the number of the line that is no example."""
    examples = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            examples.append(Example.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise RunFailed(f"{path}, line {number}, {where or 'line'}: {first['msg']}") from error
    return examples


def prepare_prompts(examples: Sequence[Example], tokenizer: Any, max_tokens: int, max_heldout: int) -> PromptSets:
    """Split and encode. Raises RunFailed when nothing is left to train on."""
    sets: dict[str, list[Prompt]] = {"train": [], "heldout": []}
    reasons: dict[str, int] = {}
    for example in examples:
        prompt = _usable(example, tokenizer, max_tokens)
        if isinstance(prompt, str):
            reasons[prompt] = reasons.get(prompt, 0) + 1
        else:
            sets[example.split or "train"].append(prompt)
    left_out = [f"{count} examples left out: {reason}" for reason, count in reasons.items()]
    if not sets["train"]:
        raise RunFailed(
            f"no example to train on; of {len(examples)} examples "
            + ("; ".join(left_out) or "none is in the training split")
        )
    return PromptSets(sets["train"], sets["heldout"][:max_heldout], left_out)


def _usable(example: Example, tokenizer: Any, max_tokens: int) -> Prompt | str:
    if example.rubric is None:
        return "they have no rubric"
    if any(criterion.verifier is None for criterion in example.rubric.criteria):
        return "a criterion of theirs has no verifier, so no response to them could be scored"
    if not any(message.role == "user" for message in example.prompt):
        return "their prompt has no user message"
    tokens = encode_prompt(tokenizer, example.prompt)
    if len(tokens) > max_tokens:
        return f"their prompt is longer than data.max_prompt_tokens = {max_tokens}"
    return Prompt(example, example.rubric, tokens)
