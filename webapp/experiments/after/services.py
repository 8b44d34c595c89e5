"""Changes to the chain of a run: a step is added, a step is taken back. Each function checks, changes rows and audits."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from trainer.config import RECIPES, ConfigInvalid, FieldProblem, resolve, upgrade_stored
from trainer.judges.base import BaseSpec
from trainer.judges.spec import resolve as judge_spec
from webapp.accounts.models import Membership, User
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests import idempotency
from webapp.core.tasks import enqueue
from webapp.evaluation.launch import services as evaluating

from .. import names
from ..launch import checks, named_rows
from ..live import broadcasts
from ..models import LOGGED, ChainStep, ChainWait, Run
from ..queries import runs
from .queries import join_names

TAKE_UP = "workers.after.take_up"
POLICY = "policy"  # what a run leaves in the registry that another run can begin with; the recipe of evaluations of runs, too
MOST = 20  # steps that wait for one run
State, Kind = ChainStep.State, ChainStep.Kind


@dataclass(frozen=True)
class StepAsked:
    """A request for a step. `with_output`: the run begins with the model that the previous run leaves.

    `judges`: places in the config that name a judge, such as `rewards.0.judge`, and the output of the previous run that is asked there.
    `also`: ids of other runs that must have finished too; `also_steps`: of steps whose runs must have.
    """

    kind: str
    recipe: str = POLICY
    config: dict[str, Any] = field(default_factory=dict)
    dataset: checks.DatasetChoice = field(default_factory=checks.DatasetChoice)
    experiment: str = ""
    name: str = ""
    with_output: bool = True
    judges: dict[str, str] = field(default_factory=dict)
    also: tuple[int, ...] = ()
    also_steps: tuple[int, ...] = ()

    @property
    def said(self) -> dict[str, Any]:
        """The words for which a key stands. Those of before steps could wait for several runs stay what they were."""
        return {name: value for name, value in vars(self).items() if value or name not in ("also", "also_steps")}


def add(
    membership: Membership, run: Run, asked: StepAsked, behind: ChainStep | None = None, key: str | None = None
) -> ChainStep:
    """Adds a step that waits for `run`, or for the step `behind`. The same `key` adds only one step.

    Raises ConfigInvalid with every field that is wrong, as the launch itself would; Invalid, Conflict, KeyReused.
    """
    if why := run.not_here:
        raise why
    said = idempotency.key(key, run.pk, behind and behind.pk, asked.said)
    if earlier := idempotency.row_of_key(steps_of_person(membership), said):
        return earlier
    also = _also(membership, run, asked.also)
    content = _checked(membership, run, behind, asked)
    name = names.optional_name(asked.name, "name")
    try:
        with transaction.atomic():
            # if a step for which it waits is launched at this moment, the new step waits for its run
            locked = _locked(membership, {*asked.also_steps, *([behind.pk] if behind else [])})
            held = _held(locked, behind)
            first = held.run if held and held.state == State.LAUNCHED else None if held else run
            if held and first is None and (held.state != State.WAITING or held.kind != Kind.RUN):
                raise Conflict("Nothing can wait for that step, because it does not become a run.", "no_run")
            place = {"after": first, "behind": None if first else held}
            if ChainStep.objects.filter(**place, state=State.WAITING).count() >= MOST:
                raise Conflict(f"At most {MOST} steps wait for one run.", "too_many")
            step = ChainStep.objects.create(
                **place,
                workspace=membership.workspace,
                kind=asked.kind,
                name=name,
                asked=content,
                launch_key=said and said.text,
                launch_digest=said.digest if said else "",
                created_by=membership.user,
            )
            ChainWait.objects.bulk_create(_waits(step, also, _awaited(locked, asked.also_steps, behind)))
            audit.record(membership, membership.user, "run.then", run, step=step.pk, kind=asked.kind, then=str(step))
            broadcasts.run_changed(run)
            if first:
                enqueue(TAKE_UP, first.pk)  # it may have finished by now
    except IntegrityError:  # two requests with one key at the same moment: the other one made it
        if earlier := idempotency.made_meanwhile(ChainStep, membership.user, steps_of_person(membership), said):
            return earlier
        raise
    return step


def _also(membership: Membership, run: Run, ids: tuple[int, ...]) -> list[Run]:
    """The other runs for which a step waits. Raises Invalid at `also`."""
    wanted = [pk for pk in dict.fromkeys(ids) if pk != run.pk]
    if len(wanted) > MOST:
        raise Invalid("A step cannot wait for so many runs.", {"also": f"at most {MOST}"})
    found = runs(membership.workspace_id).filter(pk__in=wanted).exclude(recipe=LOGGED).exclude(state=Run.State.DRAFT)
    known = {each.pk: each for each in found}
    if missing := [str(pk) for pk in wanted if pk not in known]:
        told = f"no run with the id {', '.join(missing)} was launched here"
        raise Invalid("A step can wait only for runs that were launched here.", {"also": told})
    return list(known.values())


def _locked(membership: Membership, ids: set[int]) -> dict[int, ChainStep]:
    """The steps of chains with these ids, by id. They are locked in one order, so that no two requests ever wait for one another."""
    rows = ChainStep.objects.select_for_update().filter(workspace=membership.workspace, project=None, pk__in=ids)
    return {row.pk: row for row in rows.order_by("pk")}


def _held(locked: dict[int, ChainStep], behind: ChainStep | None) -> ChainStep | None:
    if behind is not None and behind.pk not in locked:
        raise Conflict("That step was deleted meanwhile.", "no_step")
    return behind and locked[behind.pk]


def _awaited(locked: dict[int, ChainStep], ids: tuple[int, ...], behind: ChainStep | None) -> list[ChainStep]:
    """The steps for whose runs a new step waits. Raises Invalid at `also_steps`."""
    wanted = [pk for pk in dict.fromkeys(ids) if behind is None or pk != behind.pk]
    if len(wanted) > MOST:
        raise Invalid("A step cannot wait for so many steps.", {"also_steps": f"at most {MOST}"})
    for pk in wanted:
        row = locked.get(pk)
        becomes = row is not None and row.kind == Kind.RUN and (row.state == State.WAITING or row.run_id)
        if not becomes:
            told = f"no step with the id {pk} becomes a run"
            raise Invalid("A step can wait only for steps that become runs.", {"also_steps": told})
    return [locked[pk] for pk in wanted]


def _waits(step: ChainStep, also: list[Run], awaited: list[ChainStep]) -> list[ChainWait]:
    """Each run once, also if it is named as a run and as the step that has launched it."""
    launched = [each.run_id for each in awaited if each.run_id]
    wanted = {run_id: None for run_id in (*(each.pk for each in also), *launched) if run_id != step.after_id}
    steps = [each for each in awaited if not each.run_id]
    return [*(ChainWait(step=step, run_id=each) for each in wanted), *(ChainWait(step=step, on=each) for each in steps)]


def steps_of_person(membership: Membership) -> QuerySet[ChainStep]:
    """The steps that this person has added, among which a key is unique."""
    return ChainStep.objects.filter(created_by=membership.user, workspace=membership.workspace)


def _checked(membership: Membership, run: Run, behind: ChainStep | None, asked: StepAsked) -> dict[str, Any]:
    """The request with every default. The output of the previous run does not exist yet, so its base model is checked instead."""
    if asked.kind == Kind.EVALUATION:
        return _checked_evaluation(membership, run, behind, asked)
    recipe, base = (behind.asked["recipe"], behind.asked["config"]["model"]["name"]) if behind else (run.recipe, "")
    if asked.with_output and not leaves_a_policy(recipe):
        wrong = f"{RECIPES[recipe].title} leaves no model that another run can begin with"
        raise ConfigInvalid([FieldProblem("with_output", wrong)])
    model = (base or run.base.name) if asked.with_output else None
    promised = _promised(asked.judges, recipe, behind.asked["config"] if behind else run.config)
    plan = checks.plan(membership, asked.recipe, asked.config, asked.dataset, model, promised)
    title = names.name(asked.experiment or plan.recipe.title, "experiment")
    dataset = {"id": plan.version.dataset_id, "version": plan.version.number}
    told = {"recipe": asked.recipe, "config": plan.config, "dataset": dataset, "experiment": title}
    told["named_rows"] = named_rows.of_plan(plan)
    return told | {"with_output": asked.with_output} | ({"judges": asked.judges} if asked.judges else {})


def _promised(judges: dict[str, str], recipe: str, config: dict[str, Any]) -> dict[str, BaseSpec]:
    """For each judge that a run with this recipe and config trains: how it will be asked. Raises ConfigInvalid if the run trains none."""
    found = {}
    for path, role in judges.items():
        spec = resolve(recipe, upgrade_stored(recipe, config)).asked_as(role) if recipe in RECIPES else None
        if spec is None:
            raise ConfigInvalid([FieldProblem(path, f"the run before it trains no judge that is its {role!r}")])
        found[path] = judge_spec(spec)
    return found


def _checked_evaluation(membership: Membership, run: Run, behind: ChainStep | None, asked: StepAsked) -> dict[str, Any]:
    if asked.recipe != POLICY:
        raise ConfigInvalid(
            [FieldProblem("recipe", "after a run, only an evaluation of its responses is possible: 'policy'")]
        )
    if "responses" in asked.config:
        raise ConfigInvalid(
            [FieldProblem("responses", "leave this out: the evaluation takes the responses of the run before it")]
        )
    before = behind.asked["config"] if behind else run.config
    if not before.get("evaluation", {}).get("max_examples") or not leaves_a_policy(
        behind.asked["recipe"] if behind else run.recipe
    ):
        wrong = "the run before it answers no held-out prompts, so there is nothing to evaluate"
        raise ConfigInvalid([FieldProblem("responses", wrong)])
    version = checks.version_of(membership, asked.dataset)
    if version is None:
        raise ConfigInvalid([FieldProblem("dataset", checks.missing(asked.dataset))])
    resolved = evaluating.plan(membership, asked.recipe, asked.config, version, None)
    config = resolved.model_dump(mode="json", exclude={"responses"})
    return {"recipe": asked.recipe, "config": config, "dataset": {"id": version.dataset_id, "version": version.number}}


def dataset_of(run: Run, behind: ChainStep | None) -> checks.DatasetChoice:
    """The dataset of the run or step after which a new step would come."""
    if behind:
        return checks.DatasetChoice(**behind.asked["dataset"])
    return checks.DatasetChoice(id=run.data.dataset_id, version=run.data.number)


def leaves_a_policy(recipe: str) -> bool:
    known = RECIPES.get(recipe)
    return bool(known and known.outputs and known.outputs[0].role == POLICY)


def cancel(membership: Membership, run: Run, step: ChainStep) -> ChainStep:
    """Takes back a step that waits, and those behind it. Twice is harmless; Conflict if it was launched or refused."""
    with transaction.atomic():
        held = ChainStep.objects.select_for_update().get(pk=step.pk)
        if held.state == State.WAITING:
            end(held, State.CANCELLED, "", actor=membership.user)
            audit.record(membership, membership.user, "run.then_cancelled", run, step=held.pk, then=str(held))
            broadcasts.run_changed(run)
        elif held.state != State.CANCELLED:
            raise Conflict(f"This step was {held.state}: only one that waits can be cancelled.", "not_waiting")
    return held


def end(step: ChainStep, state: str, reason: str, actor: User | None) -> None:
    """Ends a step as refused or cancelled; the steps that wait for it never start either. The caller holds the lock of the step."""
    _lock_all_after(step)
    _end(step, state, reason, actor)


def _end(step: ChainStep, state: str, reason: str, actor: User | None) -> None:
    ChainStep.objects.filter(pk=step.pk, state=State.WAITING).update(
        state=state, reason=reason, decided_at=timezone.now()
    )
    step.refresh_from_db(fields=["state", "reason", "decided_at"])
    for each in ChainStep.objects.select_for_update().filter(pk__in=_after([step.pk])).order_by("pk"):
        _end(each, State.CANCELLED, f"“{step}” before it was {state}", actor)


def _after(ids: Collection[int]) -> set[int]:
    """The ids of the waiting steps that wait for one of these."""
    waiting = ChainStep.objects.filter(state=State.WAITING)
    joined = ChainWait.objects.filter(on__in=ids).values("step")
    return set(waiting.filter(Q(behind__in=ids) | Q(pk__in=joined)).values_list("pk", flat=True))


def waiting_behind(step: ChainStep) -> list[ChainStep]:
    """All waiting steps that wait for this one, also by way of others: they end with it."""
    found: set[int] = set()
    newest = {step.pk}
    while newest := _after(newest) - found:
        found |= newest
    return list(ChainStep.objects.filter(pk__in=found).order_by("pk"))


def ends_with(step: ChainStep) -> str:
    """The warning before the step is cancelled: the steps behind it that end too."""
    behind = [f"“{each}”" for each in waiting_behind(step)]
    too = f" {join_names(behind)} behind it {'is' if len(behind) == 1 else 'are'} cancelled too." if behind else ""
    return f"It is not launched.{too} To have it again, you must fill in its form again."


def _lock_all_after(step: ChainStep) -> None:
    """Locks all steps that wait for this one, in one order: two steps that end at once may have some in common."""
    ids = [each.pk for each in waiting_behind(step)]
    list(ChainStep.objects.select_for_update().filter(pk__in=ids).order_by("pk"))


def invalid(error: ConfigInvalid | Invalid) -> dict[str, str]:
    """The fields of either error, as one mapping."""
    if isinstance(error, ConfigInvalid):
        return {problem.path: problem.message for problem in error.problems}
    return dict(error.fields) or {"": error.message}
