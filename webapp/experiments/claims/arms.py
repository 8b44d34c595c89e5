"""Launches every arm of a plan with every seed, as ordinary runs and as steps after them."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainer.config import RECIPES, ConfigInvalid, FieldProblem, RecipeConfig, resolve
from trainer.contracts.labels import Labels
from trainer.metrics.claims import Arm, Plan
from trainer.metrics.claims.plan import merge_config
from trainer.metrics.claims.task_counts import counts_of
from webapp.accounts.models import Membership
from webapp.judging import queries as judging

from ..after import services as chains
from ..launch import checks
from ..launch import services as launching
from ..models import ChainStep, ClaimRun, ClaimStudy, Run


def check(membership: Membership, plan: Plan, shared: Mapping[str, Any]) -> None:
    """Checks the settings as far as possible before there are data and a model. Raises ConfigInvalid with every wrong field."""
    problems: dict[tuple[str, str], FieldProblem] = {}
    for arm in plan.arms:
        for found in _problems(membership, plan, arm, shared):
            problems.setdefault((found.path, found.message), found)
    if problems:
        raise ConfigInvalid(list(problems.values()))


def _problems(membership: Membership, plan: Plan, arm: Arm, shared: Mapping[str, Any]) -> Iterator[FieldProblem]:
    recipe = plan.recipe_of(arm)
    try:
        config = resolve(recipe, merge_config(plan.config(arm, shared, 0), {"model": {"name": "of the task"}}))
    except ConfigInvalid as error:
        yield from error.problems
        return
    yield from config.launch_problems()
    yield from data_problems(plan, recipe, config)
    for slot in RECIPES[recipe].filled(config):
        asked = slot.kind == "judge" and slot.path not in arm.uses
        if asked and judging.version_named(membership.workspace_id, slot.name) is None:
            yield FieldProblem(slot.path, judging.why_not_named(membership.workspace_id, slot.name))


def data_problems(plan: Plan, recipe: str, config: RecipeConfig) -> Iterator[FieldProblem]:
    """Problems with the data of the plan's constructed task, which are known before a job has made it."""
    if plan.constructed is None:
        return
    told = counts_of(plan.task, plan.constructed.wanted)
    counts = {side: told[side] for side in ("train", "heldout")}
    labels = {kind: Labels(found["counts"], found["others"]) for kind, found in told["labels"].items()}
    yield from checks.data_problems(RECIPES[recipe], config, counts, labels, "The task of this claim")


def launch_arms(
    membership: Membership,
    study: ClaimStudy,
    plan: Plan,
    dataset: checks.DatasetChoice,
    model: str,
    seeds: int,
    shared: Mapping[str, Any],
) -> None:
    """Launches seed by seed, so that an interrupted study has complete comparisons."""
    for seed in range(seeds):
        placed: dict[str, tuple[Run, ChainStep | None]] = {}
        for arm in plan.arms:
            given: dict[str, Any] = {
                "recipe": plan.recipe_of(arm),
                "config": plan.config(arm, shared, seed),
                "dataset": dataset,
                "experiment": f"Claim: {plan.name} {study.pk}",
                "name": f"{arm.name}, seed {seed}",
            }
            if not arm.uses:
                run = launching.launch(membership, **given, model=model)
                placed[arm.name] = run, None
                ClaimRun.objects.create(study=study, run=run, arm=arm.name, seed=seed)
                continue
            first, behind = placed[plan.waits_for(arm).name]
            step = chains.add(membership, first, _asked(plan, arm, model, given), behind)
            placed[arm.name] = first, step
            ClaimRun.objects.create(study=study, step=step, arm=arm.name, seed=seed)


def _asked(plan: Plan, arm: Arm, model: str, given: dict[str, Any]) -> chains.StepAsked:
    """An arm that uses the output of an earlier one, as a step after that one's run."""
    named = {
        place: output or RECIPES[plan.recipe_of(used)].outputs[0].role
        for place, (used, output) in plan.used(arm).items()
    }
    begins = named.pop(checks.BASE, None) is not None
    if not begins:
        given = given | {"config": merge_config(given["config"], {"model": {"name": model}})}
    return chains.StepAsked(kind=ChainStep.Kind.RUN, **given, with_output=begins, judges=named)
