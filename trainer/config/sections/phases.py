"""Phases: what changes in the middle of a run, and when. `phase_kinds` has those of recipes that do not sample for a reward."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from trainer.contracts.labels import Labels

from ..errors import FieldProblem
from ..fields import Section, knob
from .common import Evaluation
from .order import Order, Pool, same_rates

REWARD = "reward/mean"
"""The key of the metric whose plateau phases wait for where responses are rewarded."""


class Phase(Section):
    """A phase lasts until the next one begins. The fields that it names change; all others stay as in the phase before."""

    name: str = knob("", "What pages call it; empty: what it changes", max_length=40)
    begins: Literal["step", "plateau", "pass_rate"] = knob(
        "step",
        "What it waits for, once the phase before it has begun. `step`: a step that you name. `plateau`: the mean reward has "
        "levelled off, so that the slope over the last steps cannot be told from 0. `pass_rate`: enough responses of the last "
        "steps are correct",
    )
    step: int = knob(1, "Its first step", ge=1, le=10_000_000, when=("begins", ("step",)))
    window: int = knob(
        20,
        "Steps that are looked at, all of this phase's predecessor. Few steps of a noisy reward look level "
        "although they rise",
        unit="steps",
        ge=4,
        le=10_000,
        when=("begins", ("plateau", "pass_rate")),
    )
    pass_rate: float = knob(
        0.5,
        "Mean share of correct responses of these steps from which it begins",
        unit="of the responses",
        gt=0,
        le=1,
        when=("begins", ("pass_rate",)),
    )
    correct: float = knob(
        1.0,
        "Reward from which a response is correct, for a pass rate and for the budgets of a toggle",
        advanced=True,
    )
    temperature: Literal["same", "set", "search"] = knob(
        "same",
        "Sampling temperature: the `same` as before; `set` to a number; or by `search` on the held-out prompts the highest of "
        "several that costs no score (dynamic temperature)",
    )
    set_to: float = knob(1.0, "The temperature", gt=0, le=5, when=("temperature", ("set",)))
    lowest: float = knob(0.6, "Lowest temperature that is tried", gt=0, le=5, when=("temperature", ("search",)))
    highest: float = knob(1.4, "Highest temperature that is tried", gt=0, le=5, when=("temperature", ("search",)))
    tried: int = knob(
        5,
        "How many are tried, evenly spaced. Each is an evaluation of the held-out prompts",
        unit="temperatures",
        ge=2,
        le=50,
        when=("temperature", ("search",)),
    )
    within: float = knob(
        0.01,
        "Of the best held-out score, how much the chosen temperature may lose",
        unit="of the score",
        ge=0,
        lt=1,
        when=("temperature", ("search",)),
        advanced=True,
    )

    lengths: Literal["same", "toggle", "free"] = knob(
        "same",
        "Length of responses: the `same` as before; `toggle` between steps with a budget for each prompt and free ones; `free` "
        "from now on",
    )
    every: int = knob(
        20,
        "How long a stretch with a budget lasts, and a free one after it; the phase begins with a budget",
        unit="steps",
        ge=1,
        le=1_000_000,
        when=("lengths", ("toggle",)),
    )
    quantile: float = knob(
        0.8,
        "Of the lengths of a prompt's correct responses, the quantile that becomes its budget; it is taken once, from the first "
        "group of the phase that has a correct response",
        ge=0,
        le=1,
        when=("lengths", ("toggle",)),
    )
    solved: float = knob(
        0.5,
        "Mean reward of a group from which its budget is enforced: prompts that the policy hardly solves stay free",
        when=("lengths", ("toggle",)),
    )

    prompts: Literal["same", "some", "all"] = knob(
        "same",
        "Which training prompts are drawn from: the `same` as before; `some`, by pass rate, tags or domain; or `all` from now on. "
        "`some` after `some` chooses anew from all",
    )
    rate_above: float | None = knob(
        None,
        "Only prompts whose pass rate (`meta.pass_rate`) is above this; 0: those that were solved at least once. Empty: any",
        ge=0,
        lt=1,
        when=("prompts", ("some",)),
    )
    rate_up_to: float | None = knob(
        None, "Only prompts whose pass rate is at most this. Empty: any", ge=0, le=1, when=("prompts", ("some",))
    )
    tags: list[str] = knob(
        [], "Only prompts with one of these tags. None: any", max_length=50, when=("prompts", ("some",))
    )
    domains: list[str] = knob(
        [], "Only prompts of one of these domains. None: any", max_length=50, when=("prompts", ("some",))
    )

    order: Literal["same", "data", "easy_first", "uncertain", "mixed"] = knob(
        "same",
        "Which of these comes next: in the `same` order as before; in that of the `data`; `easy_first`, from the easiest to the hardest "
        "by pass rate (`meta.pass_rate`); `uncertain`, those whose pass rate is least certain; or `mixed`, each order with a share",
    )
    data_share: float = knob(
        1.0, "Share of the order of the data, shuffled or not", ge=0, le=1000, when=("order", ("mixed",))
    )
    easy_share: float = knob(
        0.0, "Share of the order from the easiest to the hardest", ge=0, le=1000, when=("order", ("mixed",))
    )
    uncertain_share: float = knob(
        0.0,
        "Share of those whose pass rate is least certain, by what the run has seen of them: near one half, or met seldom",
        ge=0,
        le=1000,
        when=("order", ("mixed",)),
    )

    verification: Literal["same", "on", "off"] = knob(
        "same",
        "Whether the policy also judges its own responses, and learns to see what they are worth: the `same` as before, `on`, or `off` "
        "from now on (self-verification)",
    )
    judged: int = knob(
        4,
        "Responses of each step that are judged, those to the hardest prompts first",
        unit="responses",
        ge=1,
        le=4096,
        when=("verification", ("on",)),
    )
    judgements: int = knob(4, "Judgements of each", unit="judgements", ge=2, le=256, when=("verification", ("on",)))
    tied: float = knob(
        0.5,
        "How far the reward of a judgement is tied to the quality of what it judges. 0: not at all; 1: whoever sees that a response "
        "is worthless earns nothing by it",
        ge=0,
        le=1,
        when=("verification", ("on",)),
    )

    learning_rate: Literal["same", "times"] = knob(
        "same", "The learning rate: the `same` as before, or so many `times` what `optim` says for the step"
    )
    lr_times: float = knob(
        0.1, "Times the learning rate of `optim`; 1 goes back to it", gt=0, le=1000, when=("learning_rate", ("times",))
    )

    @property
    def watched(self) -> str:
        """The key of the metric whose plateau the phase may wait for."""
        return REWARD

    @property
    def watched_words(self) -> str:
        return "the mean reward"

    @property
    def by_evaluation(self) -> bool:
        """Whether that metric has a value for each evaluation, not for each step."""
        return False

    @classmethod
    def refused(cls, field: str, value: Any) -> str:
        """Why a phase of this kind has no such field, or not this value of it, if others have; else empty."""
        return ""

    @property
    def pool(self) -> Pool:
        """The part of the prompts from which the phase draws, if it names one."""
        if self.prompts != "some":
            return Pool()
        return Pool(above=self.rate_above, up_to=self.rate_up_to, tags=self.tags, domains=self.domains)

    @property
    def mix(self) -> Order | None:
        """The share of each order from this phase on; None if it changes no order."""
        if self.order == "same":
            return None
        if self.order == "mixed":
            return Order(data=self.data_share, easy_first=self.easy_share, uncertain=self.uncertain_share)
        return Order(**{"data": 0.0, "easy_first": 0.0, "uncertain": 0.0, self.order: 1.0})

    @property
    def grid(self) -> list[float]:
        """The temperatures that the phase tries, in ascending order."""
        gap = (self.highest - self.lowest) / (self.tried - 1)
        return [round(self.lowest + place * gap, 6) for place in range(self.tried)]

    @property
    def when(self) -> str:
        """When the phase begins, in words."""
        if self.begins == "step":
            return f"step {self.step}"
        if self.begins == "plateau":
            return f"once {self.watched_words} has levelled off over {self.window} {self._unit}"
        return f"once {self.pass_rate:.3g} of the responses of {self.window} steps are correct"

    @property
    def awaited(self) -> str:
        """What it waits for, to go on after "it waited for"."""
        if self.begins == "step":
            return f"step {self.step}"
        if self.begins == "plateau":
            return f"{self.watched_words} to level off over {self.window} {self._unit}"
        return f"{self.pass_rate:.3g} of the responses of {self.window} steps to be correct"

    @property
    def _unit(self) -> str:
        return "evaluations" if self.by_evaluation else "steps"

    def earliest(self, after: int, every: int) -> int | None:
        """The first step with which it can begin. `after`: the first step of the phase before it, 0 if it is the first; `every`: steps
        between evaluations. None: with none."""
        if self.begins == "step":
            return max(after, self.step)
        if not self.by_evaluation:
            return max(after, 1) + self.window
        # Of the evaluation before the first step and of those after each `every` steps, the window holds those since the phase before.
        return (math.ceil(after / every) + self.window - 1) * every + 1 if every else None

    @property
    def what(self) -> str:
        """The phase on pages: its name, or what it changes."""
        return self.name or ", ".join(self._changes()) or "nothing changes"

    def _changes(self) -> Iterator[str]:
        if self.temperature == "set":
            yield f"temperature {self.set_to:g}"
        elif self.temperature == "search":
            yield f"the best temperature of {self.lowest:g} to {self.highest:g}"
        if self.lengths == "toggle":
            yield f"length budget on and off every {self.every} steps"
        elif self.lengths == "free":
            yield "lengths free"
        if self.prompts == "some":
            yield self.pool.short
        elif self.prompts == "all":
            yield "all prompts"
        if self.mix:
            yield self.mix.short
        if self.verification == "on":
            yield f"judges {self.judged} of its own responses a step"
        elif self.verification == "off":
            yield "judges its responses no more"
        if self.learning_rate == "times":
            yield f"learning rate × {self.lr_times:g}"

    @property
    def changes(self) -> bool:
        return next(self._changes(), None) is not None

    def _pool_problems(self) -> Iterator[FieldProblem]:
        """The paths begin at the phase."""
        if self.prompts != "some":
            return
        if not (self.pool.bounded or self.tags or self.domains):
            yield FieldProblem("prompts", "say which: by rate_above, rate_up_to, tags or domains")
        if self.rate_above is not None and self.rate_up_to is not None and self.rate_up_to <= self.rate_above:
            yield FieldProblem("rate_up_to", f"not above rate_above, which is {self.rate_above:g}")

    def problems(self, held_out: int) -> Iterator[FieldProblem]:
        """Problems of the phase by itself; the paths begin at the phase. `held_out`: the most examples of an evaluation."""
        yield from self._pool_problems()
        if self.order == "mixed" and not (self.mix and self.mix.shares):
            yield FieldProblem("data_share", "no order has a share; give one to at least one of them")
        if self.begins == "plateau" and self.by_evaluation and not held_out:
            yield FieldProblem("metric", f"{self.watched} needs held-out examples; set evaluation.max_examples above 0")
        if self.temperature == "search":
            if self.highest <= self.lowest:
                yield FieldProblem("highest", f"not above the lowest, which is {self.lowest:g}")
            if not held_out:
                yield FieldProblem(
                    "temperature", "a search needs held-out prompts; set evaluation.max_examples above 0"
                )

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        """What the phase needs and the data lacks. The paths begin at the phase."""
        held_out = counts.get("heldout", {}).get("examples")
        if self.temperature == "search" and not held_out:
            yield FieldProblem("temperature", "a search needs held-out prompts, and the dataset version has none")
        if self.begins == "plateau" and self.by_evaluation and not held_out:
            yield FieldProblem("metric", f"{self.watched} needs held-out examples, and the dataset version has none")
        if why := self.pool.unfit(counts.get("train", {})):
            path = "rate_above" if self.rate_above is not None else "rate_up_to"
            yield FieldProblem(path, f"{why}, so the phase would have no prompt")
        if self.mix and self.mix.easy_first and (why := same_rates(counts.get("train", {}))):
            path = "easy_share" if self.order == "mixed" else "order"
            yield FieldProblem(path, f"{why}, so there is no order from easy to hard; choose another")


def phases_knob() -> Any:
    """The field `phases` of a recipe."""
    return knob([], "What changes on the way, in this order; each begins after the one before it", max_length=50)


class Line(NamedTuple):
    """A phase as pages show it before the run reaches it. `never` says why it never begins, if that is known beforehand."""

    when: str
    what: str
    never: str = ""


def never_entered(first: int, steps: Any) -> str:
    """Why a phase with this first step never begins in a run of so many steps; empty if it does, or if the number is not known."""
    known = isinstance(steps, int) and not isinstance(steps, bool) and steps > 0
    return f"never entered: the run ends with step {steps}" if known and first > steps else ""


def lines(raw: Any, kind: type[Phase]) -> list[Line]:
    """The lines for the phases of an unchecked or stored config, in order. Phases that cannot be read are left out."""
    found = []
    for each in raw.get("phases") or () if isinstance(raw, Mapping) else ():
        try:
            phase = kind.model_validate(each)
        except ValidationError:
            continue
        never = never_entered(phase.step, raw.get("steps")) if phase.begins == "step" else ""
        found.append(Line(phase.when, phase.what, never))
    return found


def problems(phases: Sequence[Phase], steps: int, evaluation: Evaluation) -> Iterator[FieldProblem]:
    """Problems of the schedule by itself. `steps`: of the run."""
    last = earliest = 0
    for place, phase in enumerate(phases):
        at = f"phases.{place}"
        if not phase.changes:
            yield FieldProblem(at, "changes nothing; say what it changes, or take it away")
        possible = phase.earliest(earliest, evaluation.every)
        if phase.begins == "step":
            if phase.step <= last:
                yield FieldProblem(f"{at}.step", f"not after step {last}, where a phase before it begins")
            if phase.step > steps:
                yield FieldProblem(f"{at}.step", f"the run ends after step {steps}, so this phase would never begin")
            last = max(last, phase.step)
        elif possible is None:
            if evaluation.max_examples:
                yield FieldProblem(
                    f"{at}.metric",
                    f"{phase.watched} is measured before and after the run only, so it never levels off in between; set "
                    "evaluation.every above 0",
                )
        elif possible > steps:  # its window holds only what comes in the phase before
            yield FieldProblem(
                f"{at}.window", f"it cannot begin before step {possible}, and the run ends after step {steps}"
            )
        earliest = possible or earliest
        for problem in phase.problems(evaluation.max_examples):
            yield FieldProblem(f"{at}.{problem.path}", problem.message)


def mixing(phases: Sequence[Phase]) -> Iterator[str]:
    """The places of the config where phases name an order."""
    return (f"phases.{place}.order" for place, phase in enumerate(phases) if phase.mix)


def data_problems(phases: Sequence[Phase], counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
    """What the phases need and the data lacks."""
    for place, phase in enumerate(phases):
        for problem in phase.data_problems(counts):
            yield FieldProblem(f"phases.{place}.{problem.path}", problem.message)


def label_problems(phases: Sequence[Phase], known: Mapping[str, Labels]) -> Iterator[FieldProblem]:
    """Tags and domains that the phases name and no training prompt has. `known` are those of the data, by `tags` and `domains`."""
    for place, phase in enumerate(phases):
        for field, words in (("tags", "has the tag"), ("domains", "is of the domain")):
            labels = known.get(field)
            named = getattr(phase, field) if phase.prompts == "some" else ()
            if labels and (lacking := [name for name in named if labels.lacks(name)]):
                there = f"the {field} of the data are {labels.words}" if labels.counts else f"the data has no {field}"
                yield FieldProblem(
                    f"phases.{place}.{field}", f"no training prompt {words} {' or '.join(map(repr, lacking))}; {there}"
                )


def why_not(kind: str, replay: int, processes: int) -> str:
    """Why such a run cannot have phases; empty if it can."""
    if kind == "async":
        return "the workers of an asynchronous run sample ahead of its steps"
    if kind == "offline":
        return "the responses of an offline round are all sampled at its start"
    if replay:
        return "responses that are trained on again (runner.replay) come from the phase before"
    if processes > 1:
        return "the processes that train together (optim.processes) are told of no phase"
    return ""
