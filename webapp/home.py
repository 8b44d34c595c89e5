"""The first page: what goes on in this workspace, and where to begin when nothing does."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from webapp.accounts.models import Membership, Role
from webapp.datasets.models import Dataset
from webapp.experiments import queries as experiments

RECENT = 6


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Template `home.html` gets `runs` and `datasets`, newest first; both are empty for annotators."""
    membership: Membership | None = getattr(request, "membership", None)
    if membership is None:
        return redirect("workspaces")
    context: dict[str, object] = {"membership": membership, "may_launch": membership.may(Role.RESEARCHER)}
    if membership.may(Role.REVIEWER):
        workspace_id = membership.workspace.pk
        context["runs"] = experiments.runs(workspace_id).order_by("-id")[:RECENT]
        context["datasets"] = Dataset.objects.filter(workspace_id=workspace_id).order_by("-id")[:RECENT]
    return render(request, "home.html", context)
