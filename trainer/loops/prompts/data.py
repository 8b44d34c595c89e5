"""The examples of a run: read once, checked, encoded."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trainer.config import PolicyConfig
from trainer.config.rewards.parts import UNJUDGED_CHOICES
from trainer.contracts import Example, Rubric, training_counts
from trainer.contracts.hints import reasoning_of
from trainer.contracts.plurals import with_noun
from trainer.files import digest_of
from trainer.inference.chat import encode_prompt
from trainer.inference.common import is_common, once

from ..session.errors import RunFailed
from .scorable import Unjudged, fit


@dataclass(frozen=True)
class Prompt:
    """An example that can be trained on: it has what the reward needs, and its prompt fits.

    `rubric` holds the criteria that are scored: all of the example's, unless some are left out.
    """

    example: Example
    rubric: Rubric | None
    tokens: tuple[int, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Values that a task's rewards read."""
    reasoning: tuple[int, ...] = ()
    """Tokens of the reference reasoning, if hints are taken from it."""

    @property
    def text(self) -> str:
        """The conversation as the rollout viewer shows it."""
        messages = self.example.prompt
        if len(messages) == 1:
            return messages[0].content
        return "\n\n".join(f"{message.role}: {message.content}" for message in messages)


@dataclass(frozen=True)
class PromptSets:
    """`left_out` says as text what could not be used, for the log."""

    train: list[Prompt]
    heldout: list[Prompt]
    left_out: list[str]


def read_examples(path: Path) -> list[Example]:
    """The examples of the file. Raises RunFailed with the number of a line that is not an example."""
    return list(once(("examples", digest_of(path)), lambda: _read(path))) if is_common() else _read(path)


def _read(path: Path) -> list[Example]:
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


def prepare_prompts(examples: Sequence[Example], tokenizer: Any, config: PolicyConfig) -> PromptSets:
    """Split and encode the examples. Raises RunFailed if nothing is left to train on, if criteria need a judge, the reward has
    none and `data.unjudged` refuses that, or if a hint needs what the prompts lack.
    """
    notes = _hint_notes(examples, config)
    sets: dict[str, list[Prompt]] = {"train": [], "heldout": []}
    reasons: Counter[str] = Counter()
    unjudged = Unjudged()
    for example in examples:
        prompt = _usable(example, tokenizer, config, unjudged)
        if isinstance(prompt, str):
            reasons[prompt] += 1
        else:
            sets[example.split or "train"].append(prompt)
    if unjudged.prompts and config.data.unjudged == "refuse":
        raise RunFailed(f"data.unjudged: {unjudged}; {UNJUDGED_CHOICES}")
    left_out = [f"{with_noun(count, 'examples')} left out: {reason}" for reason, count in reasons.items()]
    if not sets["train"]:
        raise RunFailed(
            f"no example to train on, of {len(examples):,}: " + ("; ".join(left_out) or "none is in the training split")
        )
    if unjudged.dropped:
        left_out.append(
            f"{with_noun(unjudged.dropped, 'criteria')} left out: they need a judge, and the reward has none"
        )
    return PromptSets(sets["train"], sets["heldout"][: config.evaluation.max_examples], [*left_out, *notes])


def _usable(example: Example, tokenizer: Any, config: PolicyConfig, unjudged: Unjudged) -> Prompt | str:
    fitted = fit(example, config, unjudged)
    if isinstance(fitted, str):
        return fitted
    if not any(message.role == "user" for message in example.prompt):
        return "their prompt has no user message"
    tokens, longest = encode_prompt(tokenizer, example.prompt), config.data.max_prompt_tokens
    if len(tokens) > longest:
        return f"their prompt is longer than data.max_prompt_tokens = {longest}"
    reasoning = reasoning_of(example) if config.hint and example.split != "heldout" else ""
    if config.hint and config.hint.without == "drop" and example.split != "heldout" and not reasoning:
        return "they have no reference reasoning to take a hint from (hint.without)"
    shown = tuple(tokenizer(reasoning, add_special_tokens=False)["input_ids"]) if reasoning else ()
    return Prompt(example, fitted.rubric, tokens, reasoning=shown)


def _hint_notes(examples: Sequence[Example], config: PolicyConfig) -> list[str]:
    """Remarks about prompts without a hint. Raises RunFailed for what the form refuses as well."""
    if config.hint is None:
        return []
    train = sum((training_counts(each) for each in examples if each.split != "heldout"), Counter[str]())
    for problem in config.hint.data_problems(train):
        raise RunFailed(f"{problem.path}: {problem.message}")
    return list(config.hint.data_notes(train))
