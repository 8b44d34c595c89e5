"""What a recipe declares: everything that form, API, pages, command line and trainer must know of it. Torch-free.

A recipe is a module of this package (its schema and its declaration) and a module of `trainer.loops` (its stage). One line
in `trainer.config.RECIPES` and one in `trainer.loops.registry` make it known; nothing else is written per recipe.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal

from pydantic import ConfigDict

from trainer.contracts.counted import counted

from .errors import FieldProblem
from .fields import Section, When, knob
from .holdings import Holdings
from .rewards.parts import RewardPart
from .sections.common import Checkpoint, Evaluation, Model, Optim
from .sections.phases import Line

Samples = Literal["rollout", "pair", "text", "judgement", "episode"]
"""Which viewer the Samples tab of a run uses."""
SlotKind = Literal["model", "judge"]
Head = Literal["lm", "scalar"]
HELD_OUT = "eval/"
"""What keys of metrics begin with that an evaluation measures."""


@dataclass(frozen=True)
class Need:
    """What a dataset version must have. `count` is a key of `trainer.contracts.training_counts`, `words` name it in the
    plural.

    `left_out` are counts of what looks usable and is not ("ties"): they are told before the launch. One of the needs
    that share an `either` is enough.
    """

    count: str
    words: str
    left_out: tuple[tuple[str, str], ...] = ()
    either: str = ""


@dataclass(frozen=True)
class Slot:
    """A row that the config names: a model of the registry or a judge version.

    `path` is the dotted place of its name in the config; `*` stands for every item of a list. The slot is empty where
    the section is switched off, or where the field `when[0]` beside it is not one of `when[1]`. A model has one of the
    `heads`: it writes text (`lm`) or scores it (`scalar`).
    """

    role: str
    path: str
    kind: SlotKind = "model"
    when: When | None = None
    heads: tuple[Head, ...] = ("lm",)

    def at(self, path: str) -> bool:
        """Whether `path`, a place in a config, is one of this slot's."""
        mine, other = self.path.split("."), path.split(".")
        return len(mine) == len(other) and all(
            m == o or (m == "*" and o.isdigit()) for m, o in zip(mine, other, strict=True)
        )


@dataclass(frozen=True)
class Metric:
    """The one home of a metric's meaning. `key` may end in `*`, which stands for names that the config gives.

    Metrics with the same `chart`, which is the title of the picture, share it; `title` then names the curve, and the help
    of the picture is what each of them says. Charts stand in the order of declaration. `band` is the key of the standard
    deviation or error that is drawn around it (`band_times` of it), `ends` are the keys of an interval's lower and upper end,
    which need not be as far away from it; neither has a chart of its own, and those of a pattern are patterns. `count` is the
    key of how many cases its newest value rests on; a metric that is such a number itself may name its own. `optional`: not every run of the recipe emits it, so its chart appears
    with the first value.
    """

    key: str
    title: str
    help: str
    group: str
    """The id of a `metrics.GROUPS`."""
    chart: str = ""
    unit: str = ""
    better: Literal["", "higher", "lower"] = ""
    band: str = ""
    band_times: float = 1.0
    ends: tuple[str, str] | tuple[()] = ()
    count: str = ""
    share: bool = False
    """Drawn as per cent."""
    optional: bool = False
    marks: bool = False
    """Its values mark steps, as bands of the other charts; it has no chart of its own."""
    over: str = ""
    """Of a histogram: the key of one on the same edges whose values it is a part of. Its share of every bin is drawn too."""

    def holds(self, key: str) -> bool:
        """Whether an emitted key is this metric."""
        return key.startswith(self.key[:-1]) if self.key.endswith("*") else key == self.key

    def interval(self, values: Mapping[str, float]) -> tuple[float, float] | None:
        """Its 95% interval by the values of one step; None where there is none. A standard deviation is no interval."""
        if self.ends:
            low, high = (values.get(end) for end in self.ends)
            return None if low is None or high is None else (low, high)
        value, error = values.get(self.key), values.get(self.band)
        if self.band_times == 1.0 or value is None or error is None:
            return None
        return value - self.band_times * error, value + self.band_times * error

    @property
    def held_out(self) -> bool:
        """Measured by evaluations: few values, each drawn as a dot, and the first is kept to tell what training changed."""
        return self.key.startswith(HELD_OUT)

    @property
    def label(self) -> str:
        """Its name where no chart stands around it."""
        return f"{self.chart}, {self.title}" if self.chart else self.title


def with_ends(metric: Metric, help: str) -> tuple[Metric, Metric, Metric]:
    """The metric with its 95% interval, and the two ends of that, of which `help` says what they are."""
    name, star = metric.key.removesuffix("/*"), "/*" if metric.key.endswith("/*") else ""
    low, high = (f"{name}_{end}{star}" for end in ("low", "high"))

    def end(key: str, words: str) -> Metric:
        title = f"{metric.title}, {words} end"
        return Metric(key, title, help, metric.group, share=metric.share, optional=True)

    return replace(metric, ends=(low, high)), end(low, "lower"), end(high, "upper")


@dataclass(frozen=True)
class Trace:
    """Two metrics of evaluations against each other: a point for each evaluation that has both, joined in their order. `x` and
    `y` are keys of metrics, `group` the id of a `metrics.GROUPS`."""

    title: str
    help: str
    group: str
    x: str
    y: str


@dataclass(frozen=True)
class Output:
    """What a finished run leaves in the registry."""

    role: Literal["policy", "reward_model", "judge", "rubric_writer"]
    title: str


@dataclass(frozen=True)
class Amount:
    """A number that follows from the config, shown beside the form; None where it cannot be told yet."""

    label: str
    value: int | None
    how: str


@dataclass(frozen=True)
class ResolvedSlot:
    """A filled slot: `path` is the place in this very config, `name` what stands there."""

    role: str
    path: str
    kind: SlotKind
    name: str
    heads: tuple[Head, ...]


PLACE = re.compile(r"\{([a-z_.]+)\}")
_LAST = ("objective", "people", "optim", "runner", "evaluation", "checkpoint")


def _as_drawn(schema: dict[str, Any]) -> None:
    """A form begins with what a recipe is about, not with what its base class declares first."""
    fields = schema.get("properties", {})
    schema["properties"] = {
        name: fields[name] for name in sorted(fields, key=lambda name: _LAST.index(name) if name in _LAST else -1)
    }


class RecipeConfig(Section):
    """What the config of every recipe has. A recipe adds its own fields and may narrow these."""

    model_config = ConfigDict(json_schema_extra=_as_drawn)

    steps: int = knob(40, "Optimisation steps of the run", unit="steps", ge=1, le=10_000_000)
    seed: int = knob(0, "Fixes data order, sampling and initial weights of what is added", ge=0, lt=2**31)
    model: Model = Model()
    optim: Optim = Optim()
    evaluation: Evaluation = Evaluation()
    checkpoint: Checkpoint = Checkpoint()

    def problems(self) -> Iterator[FieldProblem]:
        """Combinations of single valid values that cannot work together. Overriding methods yield from this one."""
        if self.optim.warmup_steps > self.steps:
            yield FieldProblem("optim.warmup_steps", f"longer than the run of {counted(self.steps, 'steps')}")

    def asking(self, path: str) -> RewardPart | None:
        """The part of a reward that asks the judge which the config names at `path`; None where no part does."""
        section, _, rest = path.partition(".")
        place = rest.partition(".")[0]
        return getattr(self, "rewards", [])[int(place)] if section == "rewards" and place.isdigit() else None

    def asked_as(self, role: str) -> dict[str, Any] | None:
        """The spec of the judge (`trainer.judges.spec`) that its output of this role was trained to be: question, form of the
        answer and its longest; None where it is no judge. The keys that are left out are the spec's defaults."""
        return None

    def field(self, path: str) -> str:
        """Where this config's field stands in the config of the run."""
        return path

    def needs(self, declared: tuple[Need, ...]) -> tuple[Need, ...]:
        """What this very config needs of the data, given what its recipe declares."""
        return declared

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        """What of the data does not go with this config, beyond the recipe's needs.

        `counts` are the training counts of the version, by `train` and `heldout`; what is 0 may be left out of them.
        """
        yield from ()

    @classmethod
    def suited(cls, counts: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
        """What a new form changes of the defaults for data with these training counts."""
        return {}

    def holdings(self) -> Holdings:
        """What the run's process holds in memory beside the model that it trains."""
        return Holdings()

    def memory_knobs(self) -> str:
        """What to lower when memory runs out, in words that go on behind a colon, cheapest first."""
        return ", ".join(self._update_knobs())

    def _update_knobs(self) -> list[str]:
        knobs = [f"lower optim.micro_batch_tokens (now {self.optim.micro_batch_tokens})"]
        if not self.optim.recompute_activations:
            knobs.append("set optim.recompute_activations")
        if self.model.dtype == "float32":
            knobs.append("set model.dtype to bfloat16")
        if self.model.lora is None:
            knobs.append("train adapters (model.lora) instead of all weights")
        return knobs

    @classmethod
    def outline(cls, raw: Mapping[str, Any]) -> list[Line]:
        """The phases of an unchecked config, as the form shows them beforehand."""
        return []

    @classmethod
    def amounts(cls, raw: Mapping[str, Any]) -> list[Amount]:
        """What the numbers of an unchecked config amount to: the box "This run" beside the form."""
        return [Amount("Steps", whole_number(raw, "steps"), "updates of the weights")]


@dataclass(frozen=True)
class Recipe:
    """What a run can do. `example` is a config that finishes within a minute on the tiny model; tests and docs run it.

    `headline` is the key of the metric that says how good the result is; `stats` are the keys shown as numbers beside it
    on top of the run's page, the first of them that every step measures also as a small curve in lists.
    """

    name: str
    title: str
    summary: str
    schema: type[RecipeConfig]
    needs: tuple[Need, ...]
    slots: tuple[Slot, ...]
    headline: str
    metrics: tuple[Metric, ...]
    outputs: tuple[Output, ...]
    example: Mapping[str, Any]
    otherwise: tuple[str, ...] = ()
    """Keys that stand in for the headline, in this order, in a run that measures something else."""
    stats: tuple[str, ...] = ()
    opened: tuple[str, ...] = ("model",)
    """Sections of the form that are not folded; a problem opens any."""
    brief: tuple[str, ...] = ()
    """What tells its runs apart, in a few words each: `{path}` stands for a value of the config."""
    measured_by: tuple[str, ...] = ("evaluation.*",)
    """What of the config says how its headline is measured, by dotted path, `*` for any: runs that differ in it do not
    compare."""
    samples: Samples = "rollout"
    icon: str = "flask-conical"
    paper: str = ""
    """Where the method is published: authors, year, title."""
    histograms: tuple[Metric, ...] = field(default=())
    traces: tuple[Trace, ...] = ()

    def metric(self, key: str) -> Metric | None:
        """The declaration of an emitted key: an exact one before a pattern."""
        found = [metric for metric in self.metrics if metric.holds(key)]
        return min(found, key=lambda metric: metric.key.endswith("*"), default=None)

    @property
    def top(self) -> list[Metric]:
        """What a run's page shows as numbers: the headline, then `stats`."""
        keys = dict.fromkeys((self.headline, *self.stats))
        return [metric for key in keys if (metric := self.metric(key))]

    @property
    def pulse(self) -> Metric | None:
        """The curve that lists draw small: the first of `top` that every step measures, else the headline."""
        return next((metric for metric in self.top if not metric.held_out), next(iter(self.top), None))

    def says(self, config: Mapping[str, Any]) -> list[str]:
        """`brief` of a stored config; what an older one does not have is left out."""
        found = []
        for words in self.brief:
            values = {path: reduce(_within, path.split("."), config) for path in PLACE.findall(words)}
            if None not in values.values():
                for path, value in values.items():
                    words = words.replace(f"{{{path}}}", str(value))
                found.append(words)
        return found

    def remembers(self, key: str) -> bool:
        """Whether the last value of this key is kept in the run's summary."""
        return key.startswith(HELD_OUT) or key == self.headline or key in self.stats

    def filled(self, config: RecipeConfig) -> list[ResolvedSlot]:
        """The slots that this config fills, in the order of declaration."""
        return [found for slot in self.slots for found in _resolve(slot, config)]


def _within(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def whole_number(raw: Any, *path: str) -> int | None:
    """A positive whole number in an unchecked config, or None."""
    for part in path:
        raw = raw.get(part) if isinstance(raw, Mapping) else None
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and raw > 0 else None


def _resolve(slot: Slot, config: RecipeConfig) -> Iterator[ResolvedSlot]:
    *sections, last = slot.path.split(".")
    for path, owner in _owners(config, sections, []):
        if slot.when and getattr(owner, slot.when[0], None) not in slot.when[1]:
            continue
        name = getattr(owner, last, None)
        if name:
            yield ResolvedSlot(slot.role, ".".join([*path, last]), slot.kind, str(name), slot.heads)


def _owners(node: Any, sections: Sequence[str], path: list[str]) -> Iterator[tuple[list[str], Any]]:
    """The sections that a path leads to; none where one of them is switched off."""
    if node is None:
        return
    if not sections:
        yield path, node
        return
    head, *rest = sections
    if head == "*":
        for place, item in enumerate(node):
            yield from _owners(item, rest, [*path, str(place)])
    else:
        yield from _owners(getattr(node, head, None), rest, [*path, head])
