"""Tests of papers' claims by ordinary runs: launching a study, and its result so far."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from trainer.config import ConfigInvalid, FieldProblem
from trainer.metrics.claims import PLANS, Arm, ClaimResult, Plan, Verdict, judge_all
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid, Problem
from webapp.core.requests import idempotency
from webapp.core.tasks import enqueue
from webapp.webhooks.services import announce
from webapp.weights.models import WeightsJob

from .. import access
from ..after.queries import state_without_run, waiting_reason
from ..launch import checks, refusals
from ..models import OVER, ChainStep, ClaimRun, ClaimStudy, ClaimTask, Run
from . import arms, tasks

logger = logging.getLogger(__name__)
MOST_SEEDS = 20
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
State = ClaimStudy.State


@dataclass(frozen=True)
class ArmRun:
    """One arm with one seed. `measures` is empty until the run has finished. `step` instead of a run: it waits for another run of the
    study."""

    seed: int
    measures: Mapping[str, float | None]
    run: Run | None = None
    step: ChainStep | None = None

    @property
    def state(self) -> str:
        """The state of the run, or of the step that has no run yet."""
        return self.run.state if self.run else self.step.state if self.step else ""

    @property
    def over(self) -> bool:
        """Whether its state can no longer change by itself."""
        if self.run:
            return self.run.state in OVER
        return self.step is None or self.step.state != ChainStep.State.WAITING or self._waits_for_nothing

    @property
    def _waits_for_nothing(self) -> bool:
        """Whether the run for which it waits has ended without finishing."""
        before = self.step.after if self.step else None
        return before is not None and before.state in OVER and before.state != Run.State.FINISHED

    @property
    def badge(self) -> str:
        return state_without_run(self.step) if self.step else ""

    @property
    def why(self) -> str:
        """The runs for which a step waits, or the reason why it was never launched."""
        return waiting_reason(self.step) if self.step else ""


@dataclass(frozen=True)
class ArmRow:
    arm: Arm
    cells: Sequence[ArmRun]


@dataclass(frozen=True)
class Standing:
    """The progress of a study and its result. `changed`: the plan's rule of decision is not that of the launch, so the result uses the new
    rule."""

    study: ClaimStudy
    plan: Plan
    rows: Sequence[ArmRow]
    results: Sequence[ClaimResult]
    changed: bool

    @property
    def cells(self) -> list[ArmRun]:
        return [cell for row in self.rows for cell in row.cells]

    @property
    def finished(self) -> int:
        return sum(bool(cell.measures) for cell in self.cells)

    @property
    def lost(self) -> int:
        """The number of runs that ended without finishing."""
        return sum(cell.over and not cell.measures for cell in self.cells)

    @property
    def over(self) -> bool:
        """Whether its state can no longer change by itself."""
        if self.study.state == State.WAITING:
            return self.making is not None and self.making.is_over and not self.made
        return all(cell.over for cell in self.cells)

    @property
    def making(self) -> WeightsJob | None:
        """The job that makes the task which its runs wait for."""
        task = self.study.task if self.study.state == State.WAITING else None
        return task.job if task else None

    @property
    def made(self) -> bool:
        """Whether the task exists: its runs are launched within moments."""
        return self.study.task is not None and tasks.is_ready(self.study.task)

    @property
    def planned(self) -> int:
        """The number of runs that the launch will make."""
        return planned(self.study)

    @property
    def decided(self) -> bool:
        """Whether the verdicts are final: no run of the study is under way or waits."""
        return self.study.state == State.LAUNCHED and self.over


def verdicts(studies: Iterable[ClaimStudy]) -> dict[int, str]:
    """{id: "1 holds, 2 not decided"} of the studies that have all their results; one query for any number of them."""
    plans = {row.pk: PLANS[row.plan] for row in studies}
    measures: dict[int, dict[str, dict[int, Any]]] = {}
    whole = dict.fromkeys(plans, True)
    rows = ClaimRun.objects.filter(study__in=plans).values_list("study", "arm", "seed", "measures", "run__state")
    for study, arm, seed, found, state in rows:
        whole[study] = whole[study] and found is not None and state == Run.State.FINISHED
        measures.setdefault(study, {}).setdefault(arm, {})[seed] = found
    return {pk: _counted(judge_all(plans[pk].claims, found)) for pk, found in measures.items() if whole[pk]}


def _counted(results: Sequence[ClaimResult]) -> str:
    counts = Counter(each.corrected for each in results)
    words = {"holds": "hold", "does not hold here": "do not hold here"}
    told = ((n, words.get(name, name) if n > 1 else name) for name in VERDICTS if (n := counts[name]))
    return ", ".join(f"{n} {name}" for n, name in told)


def planned(study: ClaimStudy) -> int:
    """The number of runs of a study that has not launched them yet."""
    return len(PLANS[study.plan].arms) * int(study.asked.get("seeds", 0))


def plan_of(name: str) -> Plan:
    """The plan of this name. Raises Invalid if there is none."""
    plan = PLANS.get(name)
    if plan is None:
        raise Invalid("There is no such claim.", {"plan": f"one of {', '.join(PLANS)}"})
    return plan


def launch(
    membership: Membership,
    name: str,
    *,
    dataset: checks.DatasetChoice | None,
    model: str | None,
    seeds: int,
    config: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> ClaimStudy:
    """Every arm with the seeds 0 to `seeds` - 1 as runs in the usual line, all of them or none. An arm that uses the output of an earlier
    one waits for that one's run.

    Without `dataset` and `model` they are those of the plan's constructed task: the study waits until a job has made them, or is launched
    at once if they are there. `config` has the settings that all arms share; None: the plan's. The values of the arm and the seed take
    precedence. Raises Invalid or ConfigInvalid with every field that is wrong, KeyReused if the key came with another request.
    """
    plan = plan_of(name)
    asked = idempotency.key(key, name, str(dataset), model, seeds, config)
    if earlier := idempotency.row_of_key(_mine(membership), asked):
        return earlier
    shared = plan.shared if config is None else config
    _checked(plan, seeds, shared, dataset, model)
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
            if dataset is None or model is None:
                _with_its_task(membership, study, plan, {"seeds": seeds, "config": shared})
            else:
                arms.launch_arms(membership, study, plan, dataset, model, seeds, shared)
    except IntegrityError:  # two requests with one key at the same moment: the other one made it
        if earlier := idempotency.made_meanwhile(ClaimStudy, membership.user, _mine(membership), asked):
            return earlier
        raise
    return study


def _checked(
    plan: Plan, seeds: int, shared: Mapping[str, Any], dataset: checks.DatasetChoice | None, model: str | None
) -> None:
    """Checks all that does not depend on the data. Raises ConfigInvalid."""
    problems = []
    if not 2 <= seeds <= MOST_SEEDS:
        problems.append(
            FieldProblem("seeds", f"must be 2 to {MOST_SEEDS}: one seed does not show how much seeds differ")
        )
    if not isinstance(shared.get("steps"), int):
        problems.append(FieldProblem("steps", "say how many steps every run has, as a whole number"))
    if dataset is None and model is not None:
        problems.append(
            FieldProblem(
                "dataset", "also name the data, or leave out the model too: then the plan's data and model are used"
            )
        )
    if dataset is not None and model is None:
        problems.append(
            FieldProblem(
                "model.name", "also name a model, or leave out the data too: then the plan's data and model are used"
            )
        )
    if problems:
        raise ConfigInvalid(problems)


def _with_its_task(membership: Membership, study: ClaimStudy, plan: Plan, asked: dict[str, Any]) -> None:
    """Launches the study at once if the task exists, otherwise when its job has made it."""
    arms.check(
        membership, plan, asked["config"]
    )  # first, because text that is not a config may not be JSON that can be stored
    study.asked = asked
    study.task = task = tasks.ask(membership, plan)
    if tasks.is_ready(task):
        _launch_on(membership, study, task)
    else:
        study.state = State.WAITING
        enqueue(tasks.BEGIN, study.pk)  # the task may be made by the time that others see this study
    study.save(update_fields=["task", "asked", "state"])


def _launch_on(membership: Membership, study: ClaimStudy, task: ClaimTask) -> None:
    version, model = task.version, task.model
    assert version is not None and model is not None  # noqa: S101  the task is ready
    data = checks.DatasetChoice(id=version.dataset_id, version=version.number)
    asked = study.asked
    arms.launch_arms(membership, study, plan_of(study.plan), data, model.name, asked["seeds"], asked["config"])


def begin(study_id: int) -> None:
    """Launches the runs of a waiting study, if its task is made. Several workers may call it at once: one of them does it."""
    with transaction.atomic():
        rows = ClaimStudy.objects.select_for_update(no_key=True)
        study = rows.filter(pk=study_id, state=State.WAITING).first()
        if study is None or study.task_id is None:
            return
        task = ClaimTask.objects.select_related("version", "model").get(pk=study.task_id)
        if not tasks.is_ready(task):
            return
        try:
            with transaction.atomic():  # all runs or none
                _launch_on(_of_who_asked(study), study, task)
            study.state, study.problem = State.LAUNCHED, ""
        except (ConfigInvalid, Problem) as error:
            study.state, study.problem = State.REFUSED, refusals.refusal_message(error)
            audit.record(study.workspace, None, "claim.refused", study, reason=study.problem)
            told = {"claim": study.pk, "plan": study.plan, "name": plan_of(study.plan).title, "reason": study.problem}
            announce(study.workspace_id, "claim.refused", told)
        study.save(update_fields=["state", "problem"])


def _of_who_asked(study: ClaimStudy) -> Membership:
    """Raises Conflict if they may not launch here any more."""
    found = access.launcher(study.workspace_id, study.created_by_id)
    if found is None:
        raise Conflict(
            "The person who asked for it is no longer allowed to launch anything here. Launch the claim again."
        )
    return found


def again(membership: Membership, study: ClaimStudy) -> ClaimStudy:
    """Retries what could not be made or launched. A study that is launched, or whose task is being made, does not change."""
    with transaction.atomic():
        held = ClaimStudy.objects.select_for_update(no_key=True).get(pk=study.pk)
        if held.task_id is None or held.state == State.LAUNCHED:
            return study
        tasks.make(membership, ClaimTask.objects.select_related("version", "model").get(pk=held.task_id))
        if held.state == State.REFUSED:
            held.state, held.problem = State.WAITING, ""
            held.save(update_fields=["state", "problem"])
            audit.record(membership, membership.user, "claim.again", held)
        enqueue(tasks.BEGIN, held.pk)
    study.refresh_from_db()
    return study


def watch() -> None:
    """Launches what a lost message has left waiting."""
    made = ClaimStudy.objects.filter(state=State.WAITING, task__version__isnull=False, task__model__isnull=False)
    for pk in list(made.order_by("pk").values_list("pk", flat=True)):
        try:
            begin(pk)
        except Exception:  # one study must not keep the others waiting
            logger.exception("the runs of study %s could not be launched; the next round tries again", pk)


def _mine(membership: Membership) -> QuerySet[ClaimStudy]:
    return ClaimStudy.objects.filter(workspace=membership.workspace, created_by=membership.user)


def standing_of(study: ClaimStudy) -> Standing:
    """Two queries, however many runs. A run that is under way again has no measures until it has finished."""
    plan = PLANS[study.plan]
    found: dict[str, list[ArmRun]] = {arm.name: [] for arm in plan.arms}
    parts = ClaimRun.objects.filter(study=study).select_related("run", "step__after", "step__behind")
    parts = parts.prefetch_related("step__waits__run")
    for row in parts.order_by("seed"):
        known = (row.measures or {}) if row.run and row.run.state == Run.State.FINISHED else {}
        if row.arm in found:
            found[row.arm].append(ArmRun(row.seed, known, row.run, row.step))
    rows = [ArmRow(plan.arm(name), cells) for name, cells in found.items()]
    measures = {name: {cell.seed: cell.measures for cell in cells if cell.measures} for name, cells in found.items()}
    results = judge_all(plan.claims, measures)
    return Standing(study, plan, rows, results, study.plan_digest != plan.digest)
