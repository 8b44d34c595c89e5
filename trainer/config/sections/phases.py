"""Phases: what changes in the middle of a run, and when. `Phase` has what every recipe with phases has; the kinds that recipes list are in
`phase_kinds`."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import ConfigDict, ValidationError

from trainer.contracts.labels import Labels

from ..errors import FieldProblem
from ..fields import Section, knob
from .common import Evaluation
from .order import Order, Pool, same_rates

_WHEN = ("name", "begins", "metric", "step", "window", "pass_rate", "correct")
_SAMPLED = ("temperature", "set_to", "lowest", "highest", "tried", "within", "lengths", "every", "quantile", "solved")
_DRAWN = (
    *("prompts", "rate_above", "rate_up_to", "tags", "domains"),
    *("order", "data_share", "easy_share", "uncertain_share"),
)
_LEARNT = ("verification", "judged", "judgements", "tied", "learning_rate", "lr_times")


def _in_order(schema: dict[str, Any]) -> None:
    """Sorts the fields as forms draw them: each stands behind the field that makes it to be read."""
    fields = schema.get("properties", {})
    schema["properties"] = {name: fields[name] for name in (*_WHEN, *_SAMPLED, *_DRAWN, *_LEARNT) if name in fields}


class Phase(Section):
    """A phase lasts until the next one begins. The fields that it names change; all others stay as in the phase before."""

    model_config = ConfigDict(json_schema_extra=_in_order)

    name: str = knob("", "Name of the phase on pages; empty: what it changes", max_length=40)
    begins: Literal["step", "plateau"] = knob(
        "step",
        "When the phase begins, at the earliest after the phase before it. `step`: at a step that you name. `plateau`: when "
        "`metric` has reached a plateau, so that the slope over its last values cannot be distinguished from 0",
    )
    step: int = knob(1, "Its first step", ge=1, le=10_000_000, when=("begins", ("step",)))
    window: int = knob(
        20,
        "Last values of the metric that must be level. Only values since the phase before began count. Few values can look "
        "level although they fall",
        ge=4,
        le=10_000,
        when=("begins", ("plateau",)),
    )

    prompts: Literal["same", "some", "all"] = knob(
        "same",
        "From which training prompts steps draw: the `same` as before; `some`, by pass rate, tags or domain; or `all` from now on. "
        "`some` always chooses from all prompts",
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

    order: Literal["same", "data", "easy_first", "mixed"] = knob(
        "same",
        "Order in which these prompts come: the `same` as before; that of the `data`; `easy_first`, from the easiest to the "
        "hardest by pass rate (`meta.pass_rate`); or `mixed`, both orders with a share each",
    )
    data_share: float = knob(
        1.0,
        "Share of prompts that come in the order of the data, shuffled or not",
        ge=0,
        le=1000,
        when=("order", ("mixed",)),
    )
    easy_share: float = knob(
        0.0, "Share of prompts that come from the easiest to the hardest", ge=0, le=1000, when=("order", ("mixed",))
    )

    learning_rate: Literal["same", "times"] = knob(
        "same", "The learning rate: the `same` as before, or the rate that `optim` gives for the step `times` a factor"
    )
    lr_times: float = knob(
        0.1,
        "Factor for the learning rate that `optim` gives; 1: that rate itself",
        gt=0,
        le=1000,
        when=("learning_rate", ("times",)),
    )

    @property
    def watched(self) -> str:
        """The key of the metric whose plateau the phase may wait for."""
        raise NotImplementedError

    @property
    def watched_words(self) -> str:
        raise NotImplementedError

    @property
    def by_evaluation(self) -> bool:
        """Whether that metric has a value for each evaluation, not for each step."""
        return self.watched.startswith("eval/")

    @classmethod
    def refused(cls, field: str, value: Any) -> str:
        """The reason why a phase of this kind has no such field, or not this value of it, if others have; else empty."""
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
        named = self._shares if self.order == "mixed" else {self.order: 1.0}
        return Order(**({"data": 0.0} | named))

    @property
    def _shares(self) -> dict[str, float]:
        return {"data": self.data_share, "easy_first": self.easy_share}

    @property
    def sampled_at(self) -> float | None:
        """The temperature that the phase sets; None if it sets none."""
        return None

    @property
    def when(self) -> str:
        """The beginning of the phase, in words."""
        if self.begins == "step":
            return f"step {self.step}"
        return f"once {self.watched_words} has reached a plateau over {self.window} {self._unit}"

    @property
    def awaited(self) -> str:
        """The event that the phase waits for, in words that follow "it waited for"."""
        if self.begins == "step":
            return f"step {self.step}"
        return f"{self.watched_words} to reach a plateau over {self.window} {self._unit}"

    @property
    def _unit(self) -> str:
        return "evaluations" if self.by_evaluation else "steps"

    def earliest(self, after: int, every: int, round_steps: int = 1) -> int | None:
        """The first step with which it can begin. `after`: the first step of the phase before it, 0 if it is the first; `every`: steps
        between evaluations; `round_steps`: those of a round, if it begins with a round. None: with none."""
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
        yield from self._sampling_changes()
        if self.prompts == "some":
            yield self.pool.short
        elif self.prompts == "all":
            yield "all prompts"
        if self.mix:
            yield self.mix.short
        yield from self._judging_changes()
        if self.learning_rate == "times":
            yield f"learning rate × {self.lr_times:g}"

    def _sampling_changes(self) -> Iterator[str]:
        yield from ()

    def _judging_changes(self) -> Iterator[str]:
        yield from ()

    @property
    def changes(self) -> bool:
        return next(self._changes(), None) is not None

    def _pool_problems(self) -> Iterator[FieldProblem]:
        """The paths begin at the phase."""
        if self.prompts != "some":
            return
        if not (self.pool.bounded or self.tags or self.domains):
            yield FieldProblem("prompts", "say which prompts: by rate_above, rate_up_to, tags or domains")
        if self.rate_above is not None and self.rate_up_to is not None and self.rate_up_to <= self.rate_above:
            yield FieldProblem("rate_up_to", f"must be above rate_above, which is {self.rate_above:g}")

    def problems(self, held_out: int) -> Iterator[FieldProblem]:
        """Problems of the phase by itself; the paths begin at the phase. `held_out`: the most examples of an evaluation."""
        yield from self._pool_problems()
        if self.order == "mixed" and not (self.mix and self.mix.shares):
            yield FieldProblem("data_share", "no order has a share; give at least one order a share")
        if self.begins == "plateau" and self.by_evaluation and not held_out:
            yield FieldProblem("metric", f"{self.watched} needs held-out examples; set evaluation.max_examples above 0")

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        """Needs of the phase that the data lacks. The paths begin at the phase."""
        held_out = counts.get("heldout", {}).get("examples")
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
    return knob([], "Phases of the run, in this order; each begins after the one before it", max_length=50)


class Line(NamedTuple):
    """A phase as pages show it before the run reaches it. `never` says why it never begins, if that is known beforehand."""

    when: str
    what: str
    never: str = ""


def never_entered(first: int, steps: Any) -> str:
    """The reason why a phase with this first step never begins in a run of this many steps; empty if it does, or if the number is not
    known."""
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


def problems(
    phases: Sequence[Phase], steps: int, evaluation: Evaluation, round_steps: int = 1
) -> Iterator[FieldProblem]:
    """Problems of the schedule by itself. `steps`: of the run; `round_steps`: of a round, if phases begin with rounds."""
    last = earliest = 0
    for place, phase in enumerate(phases):
        at = f"phases.{place}"
        if not phase.changes:
            yield FieldProblem(at, "changes nothing; say what it changes, or remove it")
        possible = phase.earliest(earliest, evaluation.every, round_steps)
        if phase.begins == "step":
            if phase.step <= last:
                yield FieldProblem(f"{at}.step", f"is not after step {last}, at which an earlier phase begins")
            if phase.step > steps:
                yield FieldProblem(f"{at}.step", f"the run ends after step {steps}, so this phase would never begin")
            last = max(last, phase.step)
        elif possible is None:
            if evaluation.max_examples:
                yield FieldProblem(
                    f"{at}.metric",
                    f"{phase.watched} is measured only before and after the run, so it cannot reach a plateau in between; set "
                    "evaluation.every above 0",
                )
        elif possible > steps:  # its window holds only what comes in the phase before
            yield FieldProblem(
                f"{at}.window", f"the phase cannot begin before step {possible}, and the run ends after step {steps}"
            )
        earliest = possible or earliest
        for problem in phase.problems(evaluation.max_examples):
            yield FieldProblem(f"{at}.{problem.path}", problem.message)


def mixing(phases: Sequence[Phase]) -> Iterator[str]:
    """The places of the config where phases name an order."""
    return (f"phases.{place}.order" for place, phase in enumerate(phases) if phase.mix)


def data_problems(phases: Sequence[Phase], counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
    """Needs of the phases that the data lacks."""
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


def refusal(kind: str, replay: int, processes: int) -> str:
    """The reason why such a run cannot have phases; empty if it can."""
    if kind == "async":
        return "the workers of an asynchronous run sample ahead of its steps"
    if kind == "offline":
        return "the responses of an offline round are all sampled at its start"
    if replay:
        return "responses that are trained on again (runner.replay) come from the phase before"
    if processes > 1:
        return "the processes that train together (optim.processes) cannot change phase"
    return ""
