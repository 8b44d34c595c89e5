"""A plan says before the runs which arms are compared, and which results would make each claim true. Torch-free.

A claim has parts. Each part is a number per seed, a difference between two arms or a value of one, and the claim holds if
all its parts do. All arms share their settings, except for what the arms are about.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .curves import curves_of, measure_curves
from .responses import measured_responses, reads

Size = Literal["tiny", "demo"]
SIZES: tuple[Size, ...] = ("tiny", "demo")
RESPONSES = 16
"""The number of responses to each held-out prompt, in a plan that measures responses."""
Task = Literal[
    "syllables",
    "graded",
    "near",
    "wordy",
    "tailed",
    "halves",
    "pool",
    "faults",
    "answers",
    "rubrics",
    "rubric_pairs",
    "turns",
]
"""The constructed tasks of `trainer.claims`, each with a model that was taught for it."""
TASK_FORM = 1
"""Raise this number if the examples of a task, or what its model is taught, change: installations then make them again."""


@dataclass(frozen=True)
class Arm:
    """An arm of a plan. `config` is what it changes in the settings that all arms share. `rounds` is the number of offline rounds that its
    steps are cut into.

    `recipe` trains the arm, if it is not that of the plan; of the shared settings such an arm has only the number of steps. `uses`
    names, by role of a slot, the earlier arm whose output of the same seed fills the slot, in place of the model that all runs begin
    with. A judge's slot is the path of its name in the config, such as `rewards.0.judge`: there the earlier arm trains a judge.
    `first` is the first output of that arm's recipe, `first/stage-1` the output of this name.
    """

    name: str
    title: str
    config: Mapping[str, Any] = field(default_factory=dict)
    rounds: int = 0
    recipe: str = ""
    uses: Mapping[str, str] = field(default_factory=dict)

    @property
    def decides(self) -> dict[str, Any]:
        """The fields that decide, without optional ones that the arm lacks."""
        return {key: value for key, value in vars(self).items() if value or key not in ("recipe", "uses")}


@dataclass(frozen=True)
class ClaimPart:
    """The part that `measure` of arm `better`, minus that of arm `worse` if there is one, is above 0 by more than chance.

    `margin` is the smallest amount that would matter: if the interval stays below it, the claim does not hold.
    `sign` is -1 for measures of which less is better.
    """

    text: str
    measure: str
    better: str
    worse: str | None = None
    margin: float = 0.02
    sign: int = 1


@dataclass(frozen=True)
class Claim:
    text: str
    parts: tuple[ClaimPart, ...]


@dataclass(frozen=True)
class Setting:
    """A size of a plan. `wanted`: syllables of a perfect answer to the toy task. `columns`: columns of the table of arms beside those of
    every size.
    `over_pairs`: (title, metric, metric that counts its pairs) of evaluations whose own intervals a report shows, because a size with one
    seed needs them.
    `judges`: the config of each judge that no run trains, by the path of its name in the run's config; the model as it was given answers.
    """

    config: Mapping[str, Any]
    seeds: tuple[int, ...]
    wanted: int = 4
    note: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    over_pairs: tuple[tuple[str, str, str], ...] = ()
    judges: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def measures(self) -> Iterator[str]:
        """The measures that a report of this size shows beside those of the plan."""
        yield from (key for _, key in self.columns)
        for _, metric, count in self.over_pairs:
            yield from (f"{key}:{when}" for key in (metric, *ends_of(metric), count) for when in ("first", "last"))


@dataclass(frozen=True)
class Plan:
    """A plan. `recipe` trains every arm. `columns` are (title, measure) of the table of arms.

    With `measured` `responses`, a run answers the held-out prompts again after its last step, 16 times each, and reports the measures
    of these responses (`trainer.metrics.claims.responses`). With `curves`, every measure is read off the other curves of the run
    (`trainer.metrics.claims.curves`). Either way any run of the arm will do.
    """

    name: str
    title: str
    paper: str
    arms: tuple[Arm, ...]
    claims: tuple[Claim, ...]
    sizes: Mapping[Size, Setting]
    recipe: str = "policy"
    task: Task = "syllables"
    measured: Literal["responses", "curves"] = "responses"
    columns: tuple[tuple[str, str], ...] = ()
    summary: str = ""
    by_hand: tuple[str, ...] = ()
    """The steps that make the plan's prerequisites before a page can launch it, if no job can make them."""

    def arm(self, name: str) -> Arm:
        """The arm of this name. Raises KeyError if the plan has none."""
        found = next((arm for arm in self.arms if arm.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def config(self, arm: Arm, shared: Mapping[str, Any], seed: int) -> dict[str, Any]:
        """The raw config of one run: the settings that all arms share, what the arm changes, and the seed."""
        given = {"steps": shared.get("steps")} if self.recipe_of(arm) != self.recipe else shared
        config = merge_config(merge_config(given, arm.config), {"seed": seed})
        if arm.rounds:
            config = merge_config(config, {"runner": {"kind": "offline", "push_every": config["steps"] // arm.rounds}})
        if self.measured == "responses" and self.recipe_of(arm) == self.recipe:
            config = merge_config(config, {"evaluation": {"closing": {"samples": RESPONSES}}})
        return config

    def recipe_of(self, arm: Arm) -> str:
        return arm.recipe or self.recipe

    def used(self, arm: Arm) -> dict[str, tuple[Arm, str]]:
        """Role -> the arm whose output it uses, and the output's name; an empty name stands for the first output of that arm's
        recipe. Raises ValueError if that arm does not come before this one.
        """
        found, earlier = {}, {each.name: each for each in self.arms[: self.arms.index(arm)]}
        for role, text in arm.uses.items():
            name, _, output = text.partition("/")
            if name not in earlier:
                raise ValueError(f"{self.name}: arm {arm.name} uses {name}, which is not an earlier arm")
            found[role] = earlier[name], output
        return found

    def waits_for(self, arm: Arm) -> Arm:
        """The earlier arm that an arm with `uses` waits for. Raises ValueError if there are several, or none."""
        found = {used.name: used for used, _ in self.used(arm).values()}
        if len(found) != 1:
            raise ValueError(f"{self.name}: arm {arm.name} waits for {', '.join(found) or 'nothing'}, not for one arm")
        return next(iter(found.values()))

    @property
    def passes(self) -> Mapping[Size, float]:
        """For each size, the score from which pass@k counts a response."""
        asked = {size: setting.config.get("evaluation", {}).get("closing", {}) for size, setting in self.sizes.items()}
        return {size: closing.get("passed", 1.0) for size, closing in asked.items()}

    @property
    def constructed(self) -> Setting | None:
        """The setting that suits the constructed task; None if the plan is only about given data."""
        return self.sizes.get("tiny")

    @property
    def digest(self) -> str:
        """SHA-256 of what decides: arms, claims and how they are measured. The launcher may choose settings and seeds."""
        decides = [[arm.decides for arm in self.arms], [[each.text, *map(vars, each.parts)] for each in self.claims]]
        return hashlib.sha256(json.dumps([self.measured, decides], sort_keys=True).encode()).hexdigest()

    @property
    def shared(self) -> Mapping[str, Any]:
        """The settings of the smallest size, which all arms share."""
        return next(iter(self.sizes.values())).config

    def of_run(self, curves: Mapping[str, Mapping[int, float]]) -> dict[str, float | None]:
        """The measures of a finished run of the plan, from its metrics by step; a measure that the run lacks is None."""
        if self.measured == "responses":
            return measured_responses(curves)
        return measure_curves(curves, self.measures())

    def reads(self, key: str) -> bool:
        """Whether a measure reads the metric."""
        return reads(key) if self.measured == "responses" else key in curves_of(self.measures())

    def measures(self, size: Size | None = None) -> Iterator[str]:
        """Each measure that a part or a column names, once, and the measures that only reports of this size show."""
        named = [part.measure for claim in self.claims for part in claim.parts] + [key for _, key in self.columns]
        yield from dict.fromkeys([*named, *(self.sizes[size].measures() if size else ())])


def ends_of(metric: str) -> tuple[str, str]:
    """The keys of both ends of the 95% interval of an evaluation's metric."""
    return f"{metric}_low", f"{metric}_high"


def merge_config(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`changes` over `base`, section by section."""
    out = dict(base)
    for key, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(out.get(key), Mapping)
        out[key] = merge_config(out[key], value) if both else value
    return out
