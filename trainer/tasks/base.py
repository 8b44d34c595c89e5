"""Tasks make questions from examples and say how answers are valued: a policy can train on them besides prompts.

A task has three parts, and none of them is a loop. `pose` says what the policy is asked. The parts of its config's
`composition` say what a response earns (`trainer.rewards.kinds` measures them). `measured` and `held_out` give the metrics.
The stage of recipe `policy` does the rest, with any objective, sampler and collector. Torch-free.

A part keeps what it has read of a response in `PartResult.shown`: metrics and pages read it there, so nothing is read twice,
and rewards may be made in another process.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from trainer.contracts import Example, PartResult
from trainer.contracts.model_folder import OutputRole

JSON = Any
KEY_LENGTH = 200


@dataclass(frozen=True)
class Posed:
    """One question. The policy is shown `example.prompt`, and `example.key` is unique among the questions of a run;
    split, domain and tags are those of the example that the question was made from. `facts` is what an answer is measured by: rewards
    read it as `Item.facts`, and the policy never sees it.
    """

    example: Example
    facts: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True)
class AnsweredQuestion:
    """A response to a question, with what its parts measured."""

    key: str
    facts: Mapping[str, JSON]
    text: str
    parts: Mapping[str, PartResult]

    def shown(self, part: str) -> Mapping[str, JSON]:
        """The record that the part of this name has kept to show; empty if it could not be measured."""
        found = self.parts.get(part)
        return found.shown if found is not None and isinstance(found.shown, dict) else {}


def question_key(text: str) -> str:
    """The text, or as much of it as fits before a digest of the whole."""
    if len(text) <= KEY_LENGTH:
        return text
    return f"{text[: KEY_LENGTH - 20]}… {hashlib.sha256(text.encode()).hexdigest()[:16]}"


class TrainingTask(Protocol):
    """The interface of a task. `role` is that of the model which a run leaves in the registry."""

    role: OutputRole

    def pose(self, example: Example, held_out: bool) -> Iterator[Posed | str]:
        """The questions of one example. A text says why a part of the example is left out: it is counted, and reported in the log.

        Every random choice comes from `derive_seed` and the example's key.
        """
        ...

    def remarks(self, train: Sequence[Posed]) -> Iterator[str]:
        """Remarks about the training questions as a whole, for the log."""
        ...

    def measured(self, answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
        """Metrics of the responses of a training step; undefined values are left out."""
        ...

    def held_out(self, answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
        """Metrics of the responses of an evaluation; keys begin with `eval/`."""
        ...
