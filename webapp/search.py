"""The results of the command palette besides pages: runs, projects, datasets, judges and models by name."""

from django.db.models import Q
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.accounts.models import Membership, Role
from webapp.annotation.models import Project
from webapp.annotation.work import inbox
from webapp.core.requests.numbers import whole_number
from webapp.datasets.models import Dataset
from webapp.experiments import queries as experiments
from webapp.inference.models import RegisteredModel
from webapp.judging.models import Judge
from webapp.reports.models import ReportPage

MOST_OF_A_KIND = 6
LONGEST_QUERY = 100  # characters; no name is longer than 120


@never_cache
@require_safe
def search(request: HttpRequest) -> JsonResponse:
    """`{"items": [{"kind", "label", "note", "url"}]}`, newest first in each kind; without `q` the newest of all.

    Only rows of the current workspace. Annotators find only the projects they work in, because names of runs tell which models they
    judge.
    """
    membership: Membership | None = getattr(request, "membership", None)
    if membership is None:
        return JsonResponse({"items": []})
    words = request.GET.get("q", "")[:LONGEST_QUERY].replace("\0", "").split()
    if not membership.may(Role.REVIEWER):
        return JsonResponse({"items": _work(membership, words)})
    workspace_id = membership.workspace.pk
    kinds = (_runs, _projects, _datasets, _judges, _models, _reports)
    return JsonResponse({"items": [item for kind in kinds for item in kind(workspace_id, words)]})


def _every(words: list[str], *fields: str) -> Q:
    """A filter: each word appears in one of the fields."""
    found = Q()
    for word in words:
        anywhere = Q()
        for field in fields:
            anywhere |= Q(**{f"{field}__icontains": word})
        found &= anywhere
    return found


def _runs(workspace_id: int, words: list[str]) -> list[dict[str, str]]:
    """A run without a name is called "run 7", so the word "run" and numbers find it as well."""
    named = Q()
    for word in words:
        one = _every([word], "name", "experiment__name")
        if (number := whole_number(word, 9)) is not None:
            one |= Q(number=number)
        if "run".startswith(word.lower()):
            one |= Q(name="")
        named &= one
    rows = experiments.runs(workspace_id).filter(named).order_by("-id")[:MOST_OF_A_KIND]
    return [
        _item("run", str(run), f"{run.experiment.name} · {run.get_state_display()}", reverse("run", args=[run.pk]))
        for run in rows
    ]


def _projects(workspace_id: int, words: list[str]) -> list[dict[str, str]]:
    rows = Project.objects.filter(_every(words, "name"), workspace_id=workspace_id).order_by("-id")[:MOST_OF_A_KIND]
    return [_item("project", row.name, row.kind_title, reverse("project", args=[row.pk])) for row in rows]


def _work(membership: Membership, words: list[str]) -> list[dict[str, str]]:
    """The workbench of each project in which an annotator takes part."""
    found = [each.project for each in inbox.projects_with_work(membership)]
    named = [row for row in found if all(word.lower() in row.name.lower() for word in words)]
    return [_item("project", row.name, "annotate", reverse("project_work", args=[row.pk])) for row in named]


def _datasets(workspace_id: int, words: list[str]) -> list[dict[str, str]]:
    rows = Dataset.objects.filter(_every(words, "name"), workspace_id=workspace_id).order_by("-id")[:MOST_OF_A_KIND]
    return [_item("dataset", row.name, "dataset", reverse("dataset", args=[row.pk])) for row in rows]


def _judges(workspace_id: int, words: list[str]) -> list[dict[str, str]]:
    rows = Judge.objects.filter(_every(words, "name"), workspace_id=workspace_id, archived_at=None).order_by("-id")
    return [_item("judge", row.name, row.title, reverse("judge", args=[row.pk])) for row in rows[:MOST_OF_A_KIND]]


def _models(workspace_id: int, words: list[str]) -> list[dict[str, str]]:
    rows = RegisteredModel.objects.filter(_every(words, "name"), workspace_id=workspace_id).order_by("-id")
    return [_item("model", row.name, "model", reverse("model", args=[row.pk])) for row in rows[:MOST_OF_A_KIND]]


def _reports(workspace_id: int, words: list[str]) -> list[dict[str, str]]:
    rows = ReportPage.objects.filter(_every(words, "title"), workspace_id=workspace_id, archived_at=None).order_by(
        "-id"
    )
    return [_item("report", row.title, "report", reverse("report", args=[row.pk])) for row in rows[:MOST_OF_A_KIND]]


def _item(kind: str, label: str, note: str, url: str) -> dict[str, str]:
    return {"kind": kind, "label": label, "note": note, "url": url}
