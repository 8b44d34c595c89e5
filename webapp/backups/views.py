"""The administrators' page of backups."""

from collections.abc import Callable
from typing import cast

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.access import administrators
from webapp.accounts.models import User
from webapp.core.problems import Problem

from . import drill, queries, services
from .forms import PlanForm
from .models import Backup, BackupDrill, Origin


@administrators
@never_cache
@require_http_methods(["GET", "POST"])
def backups(request: HttpRequest) -> HttpResponse:
    """The backups, the last drill, and the plan, which a POST changes."""
    found = queries.overview()
    form = PlanForm(request.POST) if request.method == "POST" else PlanForm.showing(found.plan)
    if request.method == "POST" and form.is_valid():
        services.change_plan(cast(User, request.user), **form.plan())
        messages.success(request, "The plan is changed.")
        return redirect("installation_backups")
    context = {
        "found": found,
        "form": form,
        "folder": settings.BACKUP_FOLDER,
        "encrypted": settings.BACKUP_KEY_FILE is not None,
    }
    page = "installation/_backups.html" if request.headers.get("HX-Request") else "installation/backups.html"
    return render(request, page, context, status=422 if form.errors else 200)


@administrators
@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """Starts a backup, by a worker."""
    return _done(request, lambda: services.start_here(Origin.PAGE, cast(User, request.user)))


@administrators
@require_POST
def cancel(request: HttpRequest, backup_id: int) -> HttpResponse:
    """Asks the backup under way to end."""
    backup = get_object_or_404(Backup, pk=backup_id)
    return _done(request, lambda: services.stop(backup), "The backup ends in a moment.")


@administrators
@require_POST
def start_drill(request: HttpRequest) -> HttpResponse:
    """Starts a drill of the newest backup, by a worker."""
    asker = cast(User, request.user)
    return _done(request, lambda: drill.start(settings.BACKUP_FOLDER, Origin.PAGE, asker, queue=True))


@administrators
@require_POST
def cancel_drill(request: HttpRequest, drill_id: int) -> HttpResponse:
    """Asks the drill under way to end."""
    tried = get_object_or_404(BackupDrill, pk=drill_id)
    return _done(request, lambda: drill.stop(tried), "The drill ends in a moment.")


def _done(request: HttpRequest, action: Callable[[], object], said: str = "") -> HttpResponse:
    """Redirects to the page with `said`, or with the reason if it failed."""
    try:
        action()
    except Problem as problem:
        messages.error(request, problem.message)
    else:
        if said:
            messages.success(request, said)
    return redirect("installation_backups")
