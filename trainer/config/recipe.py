"""The declaration of a recipe: all that form, API, pages, command line and trainer must know about it. It needs no torch.

A recipe is a module of this package (its schema and its declaration) and a module of `trainer.loops` (its stage). One line
in `trainer.config.RECIPES` and one in `trainer.loops.registry` register it; a recipe needs no other code.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from trainer.contracts.labels import Labels
from trainer.contracts.plurals import with_noun

from .errors import FieldProblem
from .fields import Section, When, knob
from .memory_inventory import Holdings
from .presets import Preset, changes
from .rewards.parts import RewardPart
from .sections.common import Checkpoint, Evaluation, Model, Optim, Reserved
from .sections.phases import Line, Phase, label_problems, lines

Samples = Literal["rollout", "pair", "text", "judgement", "episode"]
"""The viewer of the Samples tab of a run."""
SlotKind = Literal["model", "judge"]
Head = Literal["lm", "scalar"]
HELD_OUT = "eval/"
"""The keys of metrics that an evaluation measures begin with this."""


@dataclass(frozen=True)
class DataNeed:
    """A demand on a dataset version. `count` is a key of `trainer.contracts.training_counts`; `words` name what it counts, in the
    plural.

    `left_out` are counts of items that look usable and are not ("ties"); people are told before the launch. Of the needs that share an
    `either`, one is enough.
    """

    count: str
    words: str
    left_out: tuple[tuple[str, str], ...] = ()
    either: str = ""


@dataclass(frozen=True)
class Slot:
    """A row that the config names: a model of the registry or a judge version.

    `path` is the dotted place of the row's name in the config; `*` stands for every item of a list. The slot is empty if the section is
    switched off, or if the field `when[0]` of the same section is not one of `when[1]`. A model must have one of the `heads`: it writes
    text (`lm`) or scores it (`scalar`).
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
    """The declaration of a metric; its meaning is explained only here. `key` may end in `*`, which stands for names that the config gives.

    Metrics with the same `chart` share one picture with that title; `title` then names the curve, and the help of the picture joins
    the helps of all its metrics. Charts stand in the order of declaration. `band` is the key of the standard deviation or error that is
    drawn around the curve, `band_times` as wide. `ends` are the keys of the lower and the upper end of an interval, which may lie at
    different distances. Bands and ends have no chart of their own; those of a pattern are patterns. `count` is the key of the number of
    cases on which the newest value rests; a metric that is such a number may name itself. `optional`: not every run of the recipe
    emits the metric, so its chart appears with the first value.
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
    """The values mark steps: the other charts show them as bands, and the metric has no chart of its own."""
    over: str = ""
    """For a histogram: the key of another with the same edges, of whose values this one counts a part. The share of each bin is drawn
    too."""

    @property
    def is_pattern(self) -> bool:
        """Whether `*` in the key stands for a name that the config gives."""
        return "*" in self.key

    def holds(self, key: str) -> bool:
        """Whether an emitted key is this metric."""
        if not self.is_pattern:
            return key == self.key
        before, _, after = self.key.partition("*")
        return len(key) > len(before) + len(after) and key.startswith(before) and key.endswith(after)

    def interval(self, values: Mapping[str, float]) -> tuple[float, float] | None:
        """The 95% interval from the values of one step; None if there is none. A standard deviation is no interval."""
        if self.ends:
            low, high = (values.get(end) for end in self.ends)
            return None if low is None or high is None else (low, high)
        value, error = values.get(self.key), values.get(self.band)
        if self.band_times == 1.0 or value is None or error is None:
            return None
        return value - self.band_times * error, value + self.band_times * error

    @property
    def held_out(self) -> bool:
        """Whether evaluations measure it. It has few values: each is drawn as a dot, and the first is kept to show what training
        changed."""
        return self.key.startswith(HELD_OUT)

    @property
    def label(self) -> str:
        """The metric's name in places without a chart around it."""
        return f"{self.chart}, {self.title}" if self.chart else self.title


def with_ends(metric: Metric, help: str) -> tuple[Metric, Metric, Metric]:
    """The metric with its 95% interval, and the metrics of the interval's two ends, which `help` explains."""
    name, star = metric.key.removesuffix("/*"), "/*" if metric.key.endswith("/*") else ""
    low, high = (f"{name}_{end}{star}" for end in ("low", "high"))

    def end(key: str, words: str) -> Metric:
        title = f"{metric.title}, {words} end"
        return Metric(key, title, help, metric.group, share=metric.share, optional=True)

    return replace(metric, ends=(low, high)), end(low, "lower"), end(high, "upper")


@dataclass(frozen=True)
class Trace:
    """A picture of two metrics of evaluations against each other. Each evaluation that has both is a point; lines join the points in order.
    `x` and `y` are keys of metrics, `group` is the id of a `metrics.GROUPS`."""

    title: str
    help: str
    group: str
    x: str
    y: str


@dataclass(frozen=True)
class Output:
    """A model that a finished run adds to the registry."""

    role: Literal["policy", "reward_model", "judge", "rubric_writer"]
    title: str


@dataclass(frozen=True)
class Amount:
    """A number that follows from the config and is shown beside the form. `value` is None if it is not known yet."""

    label: str
    value: int | None
    how: str


@dataclass(frozen=True)
class StepSize:
    """The work of a step. `items`: responses, pairs or texts, on average; None if steps of the recipe differ in kind. `tokens`: of
    each, at most; None if the data decide."""

    items: float | None
    tokens: int | None = None


@dataclass(frozen=True)
class ResolvedSlot:
    """A filled slot: `path` is its place in one config, `name` the row that is named there."""

    role: str
    path: str
    kind: SlotKind
    name: str
    heads: tuple[Head, ...]


PLACE = re.compile(r"\{([a-z_.]+)\}")
_LAST = ("objective", "people", "optim", "runner", "evaluation", "checkpoint", "resources")


def _as_drawn(schema: dict[str, Any]) -> None:
    """Puts the fields of the recipe itself first in the form, before those that its base class declares."""
    fields = schema.get("properties", {})
    schema["properties"] = {
        name: fields[name] for name in sorted(fields, key=lambda name: _LAST.index(name) if name in _LAST else -1)
    }


class RecipeConfig(Section):
    """The fields that the config of every recipe has. A recipe adds its own fields and may narrow these."""

    model_config = ConfigDict(json_schema_extra=_as_drawn)
    phase_kind: ClassVar[type[Phase] | None] = None
    """The kind of phases that the field `phases` lists; None in recipes without it."""
    instead_of_phases: ClassVar[str] = "what it does in a step stays the same"
    """Words about a recipe without phases: what it has instead of them."""

    steps: int = knob(40, "Optimisation steps of the run", unit="steps", ge=1, le=10_000_000)
    seed: int = knob(
        0, "Fixes the order of the data, sampling, and the initial weights of added parameters", ge=0, lt=2**31
    )
    model: Model = Model()
    optim: Optim = Optim()
    evaluation: Evaluation = Evaluation()
    checkpoint: Checkpoint = Checkpoint()
    resources: Reserved = Reserved()

    def problems(self) -> Iterator[FieldProblem]:
        """Values that are valid alone but cannot work together. A method that overrides this one yields from it too."""
        if self.optim.warmup_steps > self.steps:
            yield FieldProblem(
                "optim.warmup_steps", f"must not be longer than the run, which has {with_noun(self.steps, 'steps')}"
            )

    def launch_problems(self) -> Iterator[FieldProblem]:
        """Values that a person who launches a run did not mean, though the run would work. Form and API refuse them. A shell does not, because
        there somebody tries a config out with fewer steps."""
        yield from ()

    def asking(self, path: str) -> RewardPart | None:
        """The part of the reward that asks the judge which the config names at `path`; None if no part does."""
        section, _, rest = path.partition(".")
        place = rest.partition(".")[0]
        return getattr(self, "rewards", [])[int(place)] if section == "rewards" and place.isdigit() else None

    def asked_as(self, role: str) -> dict[str, Any] | None:
        """The spec (`trainer.judges.spec`) of the judge that the output with this role was trained to be: its question, and the form and
        the greatest length of its answer; None if the output is not a judge. Keys that are left out have the spec's defaults."""
        return None

    def field(self, path: str) -> str:
        """The path in the config of the run of a field of this config."""
        return path

    def needs(self, declared: tuple[DataNeed, ...]) -> tuple[DataNeed, ...]:
        """The data that this config needs; `declared` are the needs of its recipe."""
        return declared

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        """The reason why the data does not fit this config, beyond the recipe's needs.

        `counts` are the training counts of the version, by `train` and `heldout`; counts of 0 may be left out.
        """
        yield from ()

    def data_notes(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
        """Remarks for a person about this config on data with these training counts, though nothing is wrong with it."""
        yield from ()

    def label_problems(self, known: Mapping[str, Labels]) -> Iterator[FieldProblem]:
        """Names that the config chooses examples by and that no training example has. `known` are those of the version, by kind
        (`tags`, `domains`); a kind that is left out is not known."""
        yield from label_problems(getattr(self, "phases", ()), known)

    @classmethod
    def suited(cls, counts: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
        """The defaults that a new form changes for data with these training counts."""
        return {}

    def agreeing(self) -> dict[str, Any]:
        """The defaults that a new form changes because they contradict other values of this config, which a link to the form has given."""
        return {}

    def unmeasured(self, counts: Mapping[str, Mapping[str, int]]) -> frozenset[str]:
        """The keys of declared metrics of which a run of this config, on data with these training counts, has no value."""
        return frozenset()

    def step_size(self) -> StepSize:
        """The size of a step, so that steps of two runs of the recipe can be compared."""
        return StepSize(getattr(self, "batch_size", None))

    def holdings(self) -> Holdings:
        """The contents of the run's memory, besides the model that it trains."""
        return Holdings()

    def reserved_cpus(self) -> float:
        """The processors that Ray reserves for the whole run: for its own process, and for its workers."""
        return self.resources.cpus

    def memory_knobs(self) -> str:
        """The settings to lower when memory runs out, cheapest first. The text continues after a colon."""
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
        """The phases of an unchecked config, as the form shows them before a launch."""
        return lines(raw, cls.phase_kind) if cls.phase_kind else []

    @classmethod
    def amounts(cls, raw: Mapping[str, Any]) -> list[Amount]:
        """The numbers that follow from an unchecked config, for the box "This run" beside the form."""
        return [Amount("Steps", whole_number(raw, "steps"), "updates of the weights")]


@dataclass(frozen=True)
class Recipe:
    """A kind of run. `example` is a config that finishes within a minute on the tiny model; tests and docs run it.

    `headline` is the key of the metric that says how good the result is. `stats` are keys that the top of the run's page shows as numbers
    beside it. Lists show a small curve of the first of these that every step measures.
    """

    name: str
    title: str
    summary: str
    schema: type[RecipeConfig]
    needs: tuple[DataNeed, ...]
    slots: tuple[Slot, ...]
    headline: str
    metrics: tuple[Metric, ...]
    outputs: tuple[Output, ...]
    example: Mapping[str, Any]
    otherwise: tuple[str, ...] = ()
    """Keys that replace the headline, in this order, in a run that does not measure it."""
    stats: tuple[str, ...] = ()
    opened: tuple[str, ...] = ("model",)
    """Sections of the form that are open at first. A problem opens any section."""
    brief: tuple[str, ...] = ()
    """Short texts by which its runs differ: `{path}` stands for a value of the config."""
    measured_by: tuple[str, ...] = ("evaluation.*",)
    """Dotted paths of the fields that say how the headline is measured, with `*` for any name. Runs with different values cannot be
    compared."""
    samples: Samples = "rollout"
    icon: str = "flask-conical"
    paper: str = ""
    """The publication of the method: authors, year, title."""
    histograms: tuple[Metric, ...] = field(default=())
    traces: tuple[Trace, ...] = ()
    presets: tuple[Preset, ...] = ()

    def preset(self, name: str) -> Preset | None:
        return next((each for each in self.presets if each.name == name), None)

    def filled_by(self, preset: Preset, raw: Mapping[str, Any]) -> dict[str, Any]:
        """{dotted path: value}: what the preset changes in an unchecked config."""
        return changes(raw, preset.config, self._filled[preset.name])

    @cached_property
    def _filled(self) -> dict[str, dict[str, Any]]:
        """The config that each preset gives alone."""
        return {
            each.name: self.schema.model_validate(dict(each.config)).model_dump(mode="json") for each in self.presets
        }

    def metric(self, key: str) -> Metric | None:
        """The declaration of an emitted key. An exact key goes before a pattern, and the first declaration before another."""
        exact = self._exact.get(key)
        return exact or next((metric for metric in self._patterns if metric.holds(key)), None)

    @cached_property
    def _exact(self) -> dict[str, Metric]:
        return {metric.key: metric for metric in reversed(self.metrics) if not metric.is_pattern}

    @cached_property
    def _patterns(self) -> tuple[Metric, ...]:
        return tuple(metric for metric in self.metrics if metric.is_pattern)

    @property
    def top(self) -> list[Metric]:
        """The metrics that a run's page shows as numbers: the headline, then `stats`."""
        keys = dict.fromkeys((self.headline, *self.stats))
        return [metric for key in keys if (metric := self.metric(key))]

    @property
    def pulse(self) -> Metric | None:
        """The metric of the small curve in lists: the first of `top` that every step measures, else the headline."""
        return next((metric for metric in self.top if not metric.held_out), next(iter(self.top), None))

    def says(self, config: Mapping[str, Any]) -> list[str]:
        """The texts of `brief` for a stored config. A text with a value that an older config does not have is left out."""
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
    """The sections that a path leads to; none if one of them is switched off."""
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
