"""Examples of the responses that a run has sampled: each prompt with its responses and, in `meta.rewards`, their rewards.

Filters decide step by step which responses stay: cheap filters come first, those that need a judge last (rejection sampling;
GLM-4.5, 2025). Each filter counts the responses that it leaves out, and each but the first can be switched off.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trainer.contracts.plurals import with_noun

from .example import Example, Response

LEFT_OUT = {
    "no_example": "to prompts that the dataset does not have",
    "no_reward": "without a reward",
    "repeated": "with the text of another response to their prompt",
    "short": "shorter than asked",
    "cut": "cut before their end",
    "format": "without the form",
    "incorrect": "not correct by verifiers",
    "low": "worth less than the least reward",
    "protocol": "against the protocol of tools, or short of the final state",
    "not_best": "not among the best of their prompt",
}
"""The filters in their order. Each value says what the filter leaves out, in words that follow a number."""
ALWAYS = ("no_example",)
"""Filters that cannot be switched off."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class SampledResponse:
    """One response of a run. `group` and `index` are its place in the step.

    `right`: the share of the criteria that verifiers decided as the rubric wishes; None if they decided none. The prompt showed
    `scaffold_shown` criteria of the rubric, or the share `hint` of the reference reasoning. `parts`: the values of the reward's parts.
    `failed`: its environment ended it with an error.
    """

    example_key: str
    step: int
    group: int
    index: int
    text: str
    reward: float | None
    cut: bool = False
    scaffold_shown: int = 0
    hint: float = 0.0
    right: float | None = None
    parts: Mapping[str, float | None] = field(default_factory=dict)
    failed: bool = False

    @property
    def id(self) -> str:
        return f"s{self.step}-{self.group}-{self.index}"


@dataclass(frozen=True)
class WantedResponses:
    """The wanted responses: those of the steps `first` to `last` that pass the filters. A filter without its number or text lets
    all pass; so does one that is named in `without`.

    `shortest`: the least number of characters. `whole`: not cut. `form`: `tags`, `json` or `pattern`; `form_of` holds the names of tags
    or of keys, separated by blanks, or the expression. `correct`: the share of the criteria decided by verifiers that must be as the
    rubric wishes. `least`: the least reward, or the least value of its part `part`. `protocol`: no environment ended the attempt with
    an error, and the part `protocol_part`, if one is named, is 1 or more. `best`: how many of each prompt; 0: all.
    """

    phase: Literal["train", "eval"] = "train"
    first: int = 0
    last: int | None = None
    best: int = 0
    least: float | None = None
    whole: bool = False
    shortest: int = 0
    form: Literal["", "tags", "json", "pattern"] = ""
    form_of: str = ""
    correct: float | None = None
    part: str = ""
    protocol: bool = False
    protocol_part: str = ""
    without: tuple[str, ...] = ()

    def does(self, step: str) -> bool:
        """Whether the filter is on."""
        asked = {
            "short": self.shortest > 0,
            "cut": self.whole,
            "format": bool(self.form),
            "incorrect": self.correct is not None,
            "low": self.least is not None,
            "protocol": self.protocol or bool(self.protocol_part),
            "not_best": self.best > 0,
        }
        return step in ALWAYS or (asked.get(step, True) and step not in self.without)


Fault = Callable[[str], str]
"""Says why a text does not have the form that is asked for; empty if it has."""


@dataclass(frozen=True)
class FilterStep:
    """One filter: how many responses came to it, and those that it leaves out, each with the reason."""

    key: str
    came: int
    left_out: list[tuple[SampledResponse, str]]

    @property
    def stayed(self) -> int:
        return self.came - len(self.left_out)


@dataclass
class Gathered:
    """The examples, and how many responses were left out, by the keys of LEFT_OUT."""

    examples: list[Example] = field(default_factory=list)
    responses: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def words(self) -> str:
        """The numbers of prompts and of responses."""
        return f"{with_noun(len(self.examples), 'prompts')} with {with_noun(self.responses, 'responses')}"

    @property
    def left_out_words(self) -> str:
        """The reasons for which responses were left out, one after the other; empty if nothing was."""
        return "; ".join(f"{count:,} {LEFT_OUT[reason]}" for reason, count in sorted(self.left_out.items()))


def filter_responses(
    sampled: Iterable[SampledResponse], known: Iterable[str], wanted: WantedResponses, fault: Fault | None = None
) -> tuple[list[SampledResponse], list[FilterStep]]:
    """The responses that stay, and each filter that is on, in order. `known`: the keys of the dataset's prompts. `fault` checks the form;
    it is needed if `wanted.form` is set."""
    kept, steps, keys = list(sampled), [], set(known)
    for key in LEFT_OUT:
        if not wanted.does(key):
            continue
        out = (
            _whole_groups(key, kept, wanted)
            if key in ("repeated", "not_best")
            else _single(key, kept, keys, wanted, fault)
        )
        steps.append(
            FilterStep(key, len(kept), [(each, out[place]) for place, each in enumerate(kept) if place in out])
        )
        kept = [each for place, each in enumerate(kept) if place not in out]
    return kept, steps


def gather(
    sampled: Iterable[SampledResponse],
    examples: Mapping[str, Example],
    wanted: WantedResponses,
    model: str,
    fault: Fault | None = None,
) -> Gathered:
    """One example for each prompt, in the order in which the prompts come. `model` names who answered.

    An example keeps its key, prompt, side of the split, domain, tags, rubric and reference; its answers and preferences are replaced. Of
    equal texts the first stays. The best responses have the highest reward; of equal rewards the earlier response comes first.
    """
    kept, steps = filter_responses(sampled, examples, wanted, fault)
    by_prompt: dict[str, list[SampledResponse]] = {}
    for each in kept:
        by_prompt.setdefault(each.example_key, []).append(each)
    made = [_example(examples[key], responses, model) for key, responses in by_prompt.items()]
    return Gathered(made, len(kept), +Counter({step.key: len(step.left_out) for step in steps}))


def _single(
    step: str, kept: Sequence[SampledResponse], known: set[str], wanted: WantedResponses, fault: Fault | None
) -> dict[int, str]:
    """The places of the responses that a filter of single responses leaves out, with the reasons."""
    found = {}
    for place, each in enumerate(kept):
        if why := _unwanted(step, each, known, wanted, fault):
            found[place] = why
    return found


def _unwanted(step: str, each: SampledResponse, known: set[str], wanted: WantedResponses, fault: Fault | None) -> str:
    match step:
        case "no_example":
            return "" if each.example_key in known else f"no prompt has the key {each.example_key}"
        case "no_reward":
            return "it has none" if each.reward is None else ""
        case "short":
            return f"{with_noun(len(each.text), 'characters')}" if len(each.text) < wanted.shortest else ""
        case "cut":
            return "it ends at the limit of tokens" if each.cut else ""
        case "format":
            return fault(each.text) if fault else ""
        case "incorrect":
            wrong = each.right is not None and each.right < (wanted.correct or 0.0) - _ROUNDING
            return f"{each.right:.0%} of what verifiers decide is as it should be" if wrong else ""
        case "low":
            return _too_little(each, wanted.part, wanted.least or 0.0)
        case _:
            return _against_protocol(each, wanted.protocol_part)


def _too_little(each: SampledResponse, part: str, least: float) -> str:
    value = each.parts.get(part) if part else each.reward
    name = part or "reward"
    if value is None:
        return f"{name} has no value" if part else ""  # the filter `no_reward` looks for a missing reward
    return f"{name} {value:.4g}" if value < least else ""


def _against_protocol(each: SampledResponse, part: str) -> str:
    if each.failed:
        return "its environment ended it with an error"
    if not part:
        return ""
    value = each.parts.get(part)
    return (
        ""
        if value is not None and value >= 1.0 - _ROUNDING
        else f"{part} {'has no value' if value is None else f'{value:.4g}'}"
    )


def _whole_groups(step: str, kept: Sequence[SampledResponse], wanted: WantedResponses) -> dict[int, str]:
    """The places that a filter of all responses to one prompt leaves out, with the reasons."""
    by_prompt: dict[str, list[int]] = {}
    for place, each in enumerate(kept):
        by_prompt.setdefault(each.example_key, []).append(place)
    found: dict[int, str] = {}
    for places in by_prompt.values():
        found |= _repeats(places, kept) if step == "repeated" else _behind(places, kept, wanted.best)
    return found


def _repeats(places: Sequence[int], kept: Sequence[SampledResponse]) -> dict[int, str]:
    first: dict[str, int] = {}
    found = {}
    for place in places:
        earlier = first.setdefault(kept[place].text, place)
        if earlier != place:
            found[place] = f"the text of {kept[earlier].id}"
    return found


def _behind(places: Sequence[int], kept: Sequence[SampledResponse], best: int) -> dict[int, str]:
    ranked = sorted(places, key=lambda place: -(kept[place].reward or 0.0))
    return {place: f"place {rank} of {len(ranked)}" for rank, place in enumerate(ranked, 1) if rank > best}


def _example(example: Example, responses: Sequence[SampledResponse], model: str) -> Example:
    meta: dict[str, Any] = {"steps": {each.id: each.step for each in responses}, "model": model}
    if rewards := {each.id: each.reward for each in responses if each.reward is not None}:
        meta["rewards"] = rewards
    if any(each.scaffold_shown for each in responses):
        meta["scaffold_shown"] = {each.id: each.scaffold_shown for each in responses}
    if any(each.hint for each in responses):
        meta["hint"] = {each.id: each.hint for each in responses}
    answers = tuple(Response(id=each.id, text=each.text, origin=model) for each in responses)
    kept = {"responses": answers, "preferences": (), "meta": {**example.meta, **meta}}
    return example.model_copy(update=kept)
