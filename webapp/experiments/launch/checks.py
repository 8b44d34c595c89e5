"""Checks before a run is written. Nothing here changes a row, except that the version on which a run trains is frozen."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainer import reward_process
from trainer.config import RECIPES, ConfigInvalid, FieldProblem, Recipe, RecipeConfig, resolve
from trainer.config.recipe import ResolvedSlot
from trainer.config.rewards.parts import HttpPart, PythonPart
from trainer.contracts.labels import Labels
from trainer.judges.base import BaseSpec
from trainer.rewards.parts import spec_problem
from webapp.accounts.models import Membership
from webapp.datasets import queries as stored
from webapp.datasets.models import DatasetVersion
from webapp.datasets.versions import services as datasets
from webapp.datasets.versions import training_counts
from webapp.inference.folders.tokenizers import speaks_otherwise, unloadable
from webapp.inference.models import MARK, Endpoint, RegisteredModel
from webapp.inference.promotion import queries as promotion
from webapp.inference.trials.outcomes import unscorable, untrainable
from webapp.judging import queries as judging
from webapp.judging.models import JudgeVersion

from ..lifecycle import resources
from ..lifecycle.commands import NO_VLLM, sampler_is_missing
from ..models import Run
from ..people import human_grades
from ..recipes import fit as fitting
from ..rewards import relay
from ..rewards.grants import NO_RECORDED, value_at
from . import devices, memory

BASE = "base"  # the role of the model that a run begins with
TEACHER = "teacher"  # the role of models that say what they would have given its tokens


@dataclass(frozen=True)
class DatasetChoice:
    """A dataset by id or by name; without `version` its newest one."""

    id: int | None = None
    name: str | None = None
    version: int | None = None


@dataclass(frozen=True)
class FilledSlot:
    """A row that the config names at `path`: a model or a version of a judge; neither if it does not exist, or not yet."""

    role: str
    path: str
    model: RegisteredModel | None = None
    judge: JudgeVersion | None = None


@dataclass(frozen=True)
class RunPlan:
    """A run that may be written: everything it refers to exists and fits.

    `config` names models, also if `aliases` ({place in the config: alias}) were given: the record of a run's model stays true when an alias
    moves. `memory`: the forecast for processors; None if it is not known. `warning`: why the run may fail although it is not refused.
    """

    recipe: Recipe
    config: dict[str, Any]
    steps: int
    version: DatasetVersion
    model: RegisteredModel
    slots: list[FilledSlot]
    aliases: dict[str, str]
    memory: int | None
    warning: str


def plan(
    membership: Membership,
    recipe: str,
    raw: dict[str, Any],
    dataset: DatasetChoice,
    model: str | None,
    promised: Mapping[str, BaseSpec] | None = None,
) -> RunPlan:
    """Raises ConfigInvalid with every problem of the config, the dataset and the model at once, by field.

    `promised`: by its place in the config, how a judge will be asked that is not there yet.
    """
    problems: list[FieldProblem] = []
    config = None
    try:
        config = resolve(recipe, with_model(raw, model))
        problems += config.launch_problems()
    except ConfigInvalid as error:
        problems += error.problems
    version = version_of(membership, dataset)
    if version is None:
        problems.append(FieldProblem("dataset", missing(dataset)))
    elif recipe in RECIPES:
        problems += _data_problems(RECIPES[recipe], config, version)
    slots: list[FilledSlot] = []
    if config:
        filled, promised = RECIPES[recipe].filled(config), promised or {}
        slots = [_slot(membership, config, slot, problems, promised.get(slot.path)) for slot in filled]
        problems += _unasked(promised, filled)
        problems += _own_problems(membership.workspace_id, config)
        if sampler_is_missing(config.model_dump(mode="json")):
            problems.append(FieldProblem("sampler.kind", NO_VLLM))
        problems += devices.problems(config.model_dump(mode="json"))
    base = next((slot.model for slot in slots if slot.role == BASE), None)
    if base and not problems:
        problems += _teacher_problems(base, slots)
    if config and base and not problems:
        problems += [*memory.problems(config, base), *resources.problems(membership.workspace_id, config)]
    if problems or config is None or version is None or base is None:
        raise ConfigInvalid(problems)
    told = config.model_dump(mode="json")
    aliases, needed = _spell_out(told, slots), memory.on_processors(config, base)
    warning = memory.warning(config, base)
    return RunPlan(RECIPES[recipe], told, config.steps, version, base, slots, aliases, needed, warning)


def with_model(raw: dict[str, Any], model: str | None) -> dict[str, Any]:
    """The config with the model that a request names beside it."""
    section = raw.get("model", {})
    return {**raw, "model": {**section, "name": model}} if model and isinstance(section, dict) else raw


def _spell_out(told: dict[str, Any], slots: list[FilledSlot]) -> dict[str, str]:
    """Replaces aliases in the config by the names of their models; returns {place: alias}."""
    aliases = {}
    for slot in slots:
        if slot.model is not None and (name := value_at(told, slot.path)) != slot.model.name:
            section, _, last = slot.path.rpartition(".")
            aliases[slot.path] = name
            value_at(told, section)[last] = slot.model.name
    return aliases


def _unasked(promised: Mapping[str, BaseSpec], filled: list[ResolvedSlot]) -> Iterator[FieldProblem]:
    places = {slot.path for slot in filled if slot.kind == "judge"}
    for path in promised.keys() - places:
        yield FieldProblem(path, "the config asks no judge here")


def _slot(
    membership: Membership,
    config: RecipeConfig,
    slot: ResolvedSlot,
    problems: list[FieldProblem],
    promised: BaseSpec | None,
) -> FilledSlot:
    if promised is not None and slot.kind == "judge":
        if (part := config.asking(slot.path)) and (why := spec_problem(part, promised)):
            problems.append(FieldProblem(slot.path, f"the judge that is trained before it {why}"))
        return FilledSlot(slot.role, slot.path)
    if slot.kind == "judge":
        judge = judging.version_named(membership.workspace_id, slot.name)
        if judge is None:
            problems.append(FieldProblem(slot.path, judging.why_not_named(membership.workspace_id, slot.name)))
        elif why := _unfit(config, slot.path, judge):
            problems.append(FieldProblem(slot.path, f"{slot.name!r} {why}"))
        return FilledSlot(slot.role, slot.path, judge=judge)
    return FilledSlot(slot.role, slot.path, model=_model(membership, slot, problems))


def _unfit(config: RecipeConfig, path: str, judge: JudgeVersion) -> str:
    """The reason why the judge cannot do what the part of a reward at `path` asks of it; empty if it can."""
    part = config.asking(path)
    if part is None:
        return ""
    if judge.endpoint.kind == Endpoint.Kind.RECORDED:
        return NO_RECORDED
    return spec_problem(part, judge.resolved)


def _own_problems(workspace_id: int, config: RecipeConfig) -> Iterator[FieldProblem]:
    """Problems of a user's own rewards that a run of this server cannot have."""
    for i, part in enumerate(getattr(config, "rewards", [])):
        if isinstance(part, HttpPart) and relay.endpoint(workspace_id, part.endpoint) is None:
            reason = f"no reward service is called {part.endpoint!r}; name its address under Models, Endpoints"
            yield FieldProblem(f"rewards.{i}.endpoint", reason)
        if isinstance(part, PythonPart) and (why := reward_process.problem(part.entry)):
            yield FieldProblem(f"rewards.{i}.entry", why)
    name = human_grades.project_name(config.model_dump(mode="json"))
    if name and (why := human_grades.unfit(workspace_id, name)):
        yield FieldProblem("people.project", why)


def _model(membership: Membership, slot: ResolvedSlot, problems: list[FieldProblem]) -> RegisteredModel | None:
    field, name = slot.path, slot.name
    found = promotion.named(membership.workspace_id, name)
    if found is None:
        problems.append(FieldProblem(field, _unknown(name)))
    elif why := untrainable(found) or unscorable(found, slot.heads):
        problems.append(FieldProblem(field, why))
    elif found.head not in slot.heads:
        reason = (
            "writes text; a reward needs a model that scores texts"
            if found.head == RegisteredModel.Head.LM
            else "scores texts and cannot write texts"
        )
        problems.append(FieldProblem(field, f"{name!r} {reason}"))
    elif why := unloadable(found):
        problems.append(FieldProblem(field, why))
    return found


def _unknown(name: str) -> str:
    if name.startswith(MARK):
        return f"no model has the alias {name}; Models, Aliases lists them"
    return f"no model called {name!r} is registered"


def _teacher_problems(base: RegisteredModel, slots: list[FilledSlot]) -> Iterator[FieldProblem]:
    for slot in slots:
        if slot.role == TEACHER and slot.model and (why := speaks_otherwise(slot.model, base)):
            yield FieldProblem(slot.path, why)


def version_of(membership: Membership, choice: DatasetChoice) -> DatasetVersion | None:
    """None if the workspace has none such."""
    return stored.version_of(membership.workspace_id, choice.id, choice.name, choice.version)


def missing(choice: DatasetChoice) -> str:
    """The reason why the choice has no version, in words."""
    if choice.id is None and not choice.name:
        return "choose a dataset"
    which = f"{choice.name!r}" if choice.id is None else f"with the id {choice.id}"
    version = "" if choice.version is None else f" and version {choice.version}"
    return f"this workspace has no dataset {which}{version}"


def _data_problems(recipe: Recipe, config: RecipeConfig | None, version: DatasetVersion) -> Iterator[FieldProblem]:
    counts = training_counts.count_now(version)
    yield from data_problems(recipe, config, counts, training_counts.labels(version), str(version))


def data_problems(
    recipe: Recipe,
    config: RecipeConfig | None,
    counts: training_counts.Counts,
    labels: Mapping[str, Labels],
    named: str,
) -> Iterator[FieldProblem]:
    """Problems of the config with data of these counts and labels, which are called `named`."""
    wanted = config.evaluation.max_examples if config else 0
    # else the config decides what it needs, and it cannot be read
    if config or recipe.schema.needs is RecipeConfig.needs:
        yield from fitting.problems(fitting.fit(recipe, counts, config), named, wanted)
    if config:
        yield from config.data_problems(counts)
        yield from config.label_problems(labels)


def continues(plan: RunPlan, source: Run, step: int) -> None:
    """Checks whether the planned run can continue from a checkpoint of `source`: what determines the weights must be the same.

    Raises ConfigInvalid with the differences.
    """
    problems = []
    if plan.recipe.name != source.recipe:
        problems.append(FieldProblem("recipe", f"the checkpoint is of recipe {source.recipe!r}"))
    if plan.model != source.base:
        problems.append(FieldProblem("model.name", f"the checkpoint was trained from {source.base.name!r}"))
    if plan.config["model"].get("lora") != source.config.get("model", {}).get("lora"):
        problems.append(
            FieldProblem("model.lora", "the checkpoint has other adapters; use the same adapters as before")
        )
    if plan.version.digest != source.data.digest:
        problems.append(FieldProblem("dataset", f"the checkpoint was trained on {source.data}"))
    if plan.steps <= step:
        problems.append(FieldProblem("steps", f"the checkpoint is after step {step}; set a larger number"))
    if problems:
        raise ConfigInvalid(problems)


def frozen(membership: Membership, version: DatasetVersion) -> DatasetVersion:
    """The frozen version: a draft on which a run trains is frozen by the launch, and nobody can delete it before the transaction ends.
    Raises Invalid."""
    if version.state == DatasetVersion.State.FROZEN:
        datasets.keep_version(version)
        return version
    return datasets.freeze(membership, version)
