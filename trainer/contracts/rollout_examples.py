"""Examples made of what a run has sampled: each prompt with its responses and, in `meta.rewards`, what they were worth."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trainer.contracts.counted import counted

from .example import Example, Response

LEFT_OUT = {
    "no_reward": "without a reward",
    "cut": "cut before their end",
    "low": "worth less than the least reward",
    "repeated": "with the text of another response to their prompt",
    "not_best": "not among the best of their prompt",
    "no_example": "to prompts that the dataset does not have",
}
"""Why a sampled response is not in the examples -> in words that follow a number."""


@dataclass(frozen=True)
class Sampled:
    """One response of a run. `group` and `index` are its place in the step."""

    example_key: str
    step: int
    group: int
    index: int
    text: str
    reward: float | None
    cut: bool = False
    scaffold_shown: int = 0

    @property
    def id(self) -> str:
        return f"s{self.step}-{self.group}-{self.index}"


@dataclass(frozen=True)
class Wanted:
    """Which responses: of steps `first` to `last`, worth `least` or more, `best` of each prompt (0: all), `whole`: those
    that were not cut."""

    phase: Literal["train", "eval"] = "train"
    first: int = 0
    last: int | None = None
    best: int = 0
    least: float | None = None
    whole: bool = False


@dataclass
class Gathered:
    """The examples, and how many responses were left out, by the keys of LEFT_OUT."""

    examples: list[Example] = field(default_factory=list)
    responses: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def words(self) -> str:
        """What is in them."""
        return f"{counted(len(self.examples), 'prompts')} with {counted(self.responses, 'responses')}"

    @property
    def left_out_words(self) -> str:
        """What was left out, one reason after the other; empty where nothing was."""
        return "; ".join(f"{count:,} {LEFT_OUT[reason]}" for reason, count in sorted(self.left_out.items()))


def gather(sampled: Iterable[Sampled], examples: Mapping[str, Example], wanted: Wanted, model: str) -> Gathered:
    """One example for each prompt, in the order in which the prompts come. `model` names who answered.

    An example keeps its key, prompt, side of the split, domain, tags, rubric and reference; answers and preferences that it
    had give way. Of equal texts the first stays. The best are those of the highest reward, earlier ones first.
    """
    found = Gathered()
    by_prompt: dict[str, list[Sampled]] = {}
    for each in sampled:
        if reason := _unwanted(each, examples, wanted):
            found.left_out[reason] += 1
        else:
            by_prompt.setdefault(each.example_key, []).append(each)
    for key, responses in by_prompt.items():
        first: dict[str, Sampled] = {}
        for each in responses:
            first.setdefault(each.text, each)
        distinct = list(first.values())
        found.left_out["repeated"] += len(responses) - len(distinct)
        kept = _best(distinct, wanted.best)
        found.left_out["not_best"] += len(distinct) - len(kept)
        found.responses += len(kept)
        found.examples.append(_example(examples[key], kept, model))
    found.left_out = +found.left_out
    return found


def _unwanted(each: Sampled, examples: Mapping[str, Example], wanted: Wanted) -> str:
    if each.example_key not in examples:
        return "no_example"
    if each.reward is None:
        return "no_reward"
    if wanted.whole and each.cut:
        return "cut"
    return "low" if wanted.least is not None and each.reward < wanted.least else ""


def _best(responses: Sequence[Sampled], best: int) -> list[Sampled]:
    if not best:
        return list(responses)
    ranked = sorted(range(len(responses)), key=lambda place: -(responses[place].reward or 0.0))
    return [responses[place] for place in sorted(ranked[:best])]


def _example(example: Example, responses: Sequence[Sampled], model: str) -> Example:
    meta: dict[str, Any] = {
        "rewards": {each.id: each.reward for each in responses},
        "steps": {each.id: each.step for each in responses},
        "model": model,
    }
    if any(each.scaffold_shown for each in responses):
        meta["scaffold_shown"] = {each.id: each.scaffold_shown for each in responses}
    answers = tuple(Response(id=each.id, text=each.text, origin=model) for each in responses)
    kept = {"responses": answers, "preferences": (), "meta": {**example.meta, **meta}}
    return example.model_copy(update=kept)
