"""Claims of papers, tested by ordinary runs: launching a study, and what it has shown so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from trainer.config import RECIPES, ConfigInvalid, FieldProblem
from trainer.metrics.claims import PLANS, Arm, ClaimResult, Plan, judge_all
from trainer.metrics.claims.plan import merged
from webapp.accounts.models import Membership
from webapp.core import audit, once
from webapp.core.problems import Invalid

from ..after import services as chains
from ..after.queries import looks, why
from ..launch import checks
from ..launch import services as launching
from ..models import OVER, ChainStep, ClaimRun, ClaimStudy, Run

MOST_SEEDS = 20


@dataclass(frozen=True)
class Cell:
    """One arm with one seed. `measures` is empty until the run has finished. `step` instead of a run: it waits for another run of the
    study."""

    seed: int
    measures: Mapping[str, float | None]
    run: Run | None = None
    step: ChainStep | None = None

    @property
    def state(self) -> str:
        """Of the run, or of the step that is none yet."""
        return self.run.state if self.run else self.step.state if self.step else ""

    @property
    def over(self) -> bool:
        """Nothing more comes of it by itself."""
        if self.run:
            return self.run.state in OVER
        return self.step is None or self.step.state != ChainStep.State.WAITING or self._waits_for_nothing

    @property
    def _waits_for_nothing(self) -> bool:
        """Whether the run that it waits for has ended without having finished."""
        before = self.step.after if self.step else None
        return before is not None and before.state in OVER and before.state != Run.State.FINISHED

    @property
    def badge(self) -> str:
        return looks(self.step) if self.step else ""

    @property
    def why(self) -> str:
        """What a step waits for, or why it never came."""
        return why(self.step) if self.step else ""


@dataclass(frozen=True)
class Row:
    arm: Arm
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Standing:
    """How far a study is and what it shows. `changed`: the plan decides by something else than at the launch, so that what is
    shown is by the new rule."""

    study: ClaimStudy
    plan: Plan
    rows: Sequence[Row]
    results: Sequence[ClaimResult]
    changed: bool

    @property
    def cells(self) -> list[Cell]:
        return [cell for row in self.rows for cell in row.cells]

    @property
    def finished(self) -> int:
        return sum(bool(cell.measures) for cell in self.cells)

    @property
    def lost(self) -> int:
        """Runs that are over without having finished."""
        return sum(cell.over and not cell.measures for cell in self.cells)

    @property
    def over(self) -> bool:
        return all(cell.over for cell in self.cells)


def plan_of(name: str) -> Plan:
    """Raises Invalid where there is no such plan."""
    plan = PLANS.get(name)
    if plan is None:
        raise Invalid("There is no such claim.", {"plan": f"one of {', '.join(PLANS)}"})
    return plan


def launch(
    membership: Membership,
    name: str,
    *,
    dataset: checks.DatasetChoice,
    model: str,
    seeds: int,
    config: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> ClaimStudy:
    """Every arm with the seeds 0 to `seeds` - 1 as runs in the usual line, all of them or none. An arm that uses what an earlier one
    leaves waits behind that one's run.

    `config` has the settings that all arms share; None: the plan's. What an arm is about and the seed stand above it. Raises
    Invalid or ConfigInvalid with every field that is wrong, KeyReused where the key came with another request.
    """
    plan = plan_of(name)
    asked = once.key(key, name, str(dataset), model, seeds, config)
    if earlier := once.earlier(_mine(membership), asked):
        return earlier
    if not 2 <= seeds <= MOST_SEEDS:
        raise ConfigInvalid([FieldProblem("seeds", f"2 to {MOST_SEEDS}: one seed has no spread")])
    try:
        with transaction.atomic():
            study = ClaimStudy.objects.create(
                workspace=membership.workspace,
                plan=name,
                plan_digest=plan.digest,
                launch_key=asked and asked.text,
                launch_digest=asked.digest if asked else "",
                created_by=membership.user,
            )
            audit.record(membership, membership.user, "claim.launch", study, plan=name, seeds=seeds)
            _launch_arms(membership, study, plan, dataset, model, seeds, plan.shared if config is None else config)
    except IntegrityError:  # two requests with one key at the same moment: the other one made it
        if earlier := once.made_meanwhile(ClaimStudy, membership.user, _mine(membership), asked):
            return earlier
        raise
    return study


def _launch_arms(
    membership: Membership,
    study: ClaimStudy,
    plan: Plan,
    dataset: checks.DatasetChoice,
    model: str,
    seeds: int,
    shared: Mapping[str, Any],
) -> None:
    """Seed by seed, so that a line that is cut short has whole comparisons."""
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
    """An arm that uses what an earlier one leaves, as a step behind that one's run."""
    named = {
        place: output or RECIPES[plan.recipe_of(used)].outputs[0].role
        for place, (used, output) in plan.used(arm).items()
    }
    begins = named.pop(checks.BASE, None) is not None
    if not begins:
        given = given | {"config": merged(given["config"], {"model": {"name": model}})}
    return chains.StepAsked(kind=ChainStep.Kind.RUN, **given, with_output=begins, judges=named)


def _mine(membership: Membership) -> QuerySet[ClaimStudy]:
    return ClaimStudy.objects.filter(workspace=membership.workspace, created_by=membership.user)


def standing(study: ClaimStudy) -> Standing:
    """Two queries, however many runs. A run that is under way again has no measures until it has finished."""
    plan = PLANS[study.plan]
    found: dict[str, list[Cell]] = {arm.name: [] for arm in plan.arms}
    parts = ClaimRun.objects.filter(study=study).select_related("run", "step__after", "step__behind")
    for row in parts.order_by("seed"):
        known = (row.measures or {}) if row.run and row.run.state == Run.State.FINISHED else {}
        if row.arm in found:
            found[row.arm].append(Cell(row.seed, known, row.run, row.step))
    rows = [Row(plan.arm(name), cells) for name, cells in found.items()]
    measures = {name: {cell.seed: cell.measures for cell in cells if cell.measures} for name, cells in found.items()}
    results = judge_all(plan.claims, measures)
    return Standing(study, plan, rows, results, study.plan_digest != plan.digest)
