"""Reads: lists, charts, histograms, rollouts, log. Every response is bounded, for any length of a run."""

from collections import Counter

from django.db.models import Count, Q, QuerySet

from trainer.metrics.claims import PLANS
from webapp.datasets.models import VersionMember
from webapp.inference.models import RegisteredModel
from webapp.usage.models import WorkKind
from webapp.usage.works import MeteredWork

from .models import ClaimStudy, Run, RunQuerySet, Sweep, SweepTrial


def runs(workspace_id: int) -> RunQuerySet:
    """The workspace's runs with the names they show: one query for a whole list."""
    return Run.objects.with_names().filter(experiment__workspace_id=workspace_id).present()


def work_of(run: Run) -> MeteredWork:
    """The run in the ledger of what work has cost."""
    return MeteredWork(run.experiment.workspace_id, WorkKind.RUN, run.pk, run.created_by_id, run.experiment_id)


def models_by_role(run: Run) -> dict[str, RegisteredModel]:
    """The models that the run loads, by role. If several slots share a role, it names the first, and each is under its path as well."""
    slots = list(run.slots.filter(model__isnull=False).select_related("model__base").order_by("id"))
    shared = {role for role, n in Counter(slot.role for slot in slots).items() if n > 1}
    found: dict[str, RegisteredModel] = {}
    for slot, model in ((slot, slot.model) for slot in slots):
        if model is not None:
            found.setdefault(slot.role, model)
            found |= {slot.path: model} if slot.role in shared else {}
    return found


def example_lines(version_id: int, after: int, limit: int) -> list[tuple[int, str]]:
    """(position, canonical JSON) of the version's examples that follow `after`; -1 starts at the first."""
    members = VersionMember.objects.filter(version_id=version_id, position__gt=after).order_by("position")
    return list(members.values_list("position", "example__canonical")[:limit])


def studies(workspace_id: int) -> QuerySet[ClaimStudy]:
    """Studies with `run_count` and `finished_count`, newest first."""
    counted = {
        "run_count": Count("runs"),
        "finished_count": Count("runs", filter=Q(runs__run__state=Run.State.FINISHED)),
    }
    return ClaimStudy.objects.filter(workspace_id=workspace_id, plan__in=PLANS).annotate(**counted).order_by("-id")


def sweeps(workspace_id: int) -> QuerySet[Sweep]:
    """Sweeps with `trial_count` and `over_count`, newest first."""
    over = Q(trials__isnull=False) & ~Q(trials__state=SweepTrial.State.RUNNING)
    counted = {"trial_count": Count("trials"), "over_count": Count("trials", filter=over)}
    found = Sweep.objects.filter(workspace_id=workspace_id).select_related("experiment", "source")
    return found.annotate(**counted).order_by("-id")
