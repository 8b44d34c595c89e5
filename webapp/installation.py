"""The administrators' pages: the state of the installation, its people, and the limits of each workspace."""

import platform
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar, cast
from urllib.parse import urlencode

from django import get_version
from django.conf import settings
from django.contrib import messages
from django.db import connection
from django.db.models import Count, Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.access import administrators
from webapp.accounts.administration import quotas, services
from webapp.accounts.administration.forms import LimitsForm
from webapp.accounts.audit_log.queries import audit_of_all
from webapp.accounts.models import Membership, User, Workspace
from webapp.accounts.sessions.services import end_sessions_of
from webapp.backups import queries as backups
from webapp.core import health
from webapp.core.auditing import chain, syslog
from webapp.core.database import schema
from webapp.core.database.paging import Page, page
from webapp.core.distributed import reconciling
from webapp.core.models import AuditEntry
from webapp.core.pages import confirmation
from webapp.core.problems import Problem
from webapp.datasets import queries as datasets
from webapp.experiments.lifecycle import unknown_jobs, waiting_line
from webapp.experiments.models import Run
from webapp.version import VERSION
from webapp.weights.models import WeightsJob

PAGE = 50
COMPARED = {"runs": "Runs", "jobs": "Jobs that need weights"}
ROUND_LATE = timedelta(minutes=1)  # six rounds of upkeep
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class InstalledService:
    """`note`: the service's own words, or why it does not answer."""

    name: str
    up: bool
    note: str


@dataclass(frozen=True)
class Use:
    """A workspace's use and its limits."""

    workspace: Workspace
    members: int
    running: int
    imports: datasets.ImportUse
    limits: quotas.Limits
    own: bool


@administrators
@never_cache
@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """Services, storage, versions, and the workspaces with their use."""
    found = _page(request, Workspace.objects.all())
    context = {
        "services": _services(),
        "backups": backups.outcomes(),
        "storage": _storage(),
        "versions": _versions(),
        "uses": uses(found.items),
        "limits": quotas.limits_by_workspace().get(None, quotas.Limits()),
        "next": found.next,
    }
    return render(request, "installation/overview.html", context)


@administrators
@never_cache
@require_safe
def people(request: HttpRequest) -> HttpResponse:
    """Everybody with an account, the rights they have here, and how many workspaces they belong to."""
    words = request.GET.get("q", "").replace("\0", "").strip()[:100]
    rows = User.objects.filter(email__icontains=words, erased=False).annotate(count=Count("memberships"))
    found = _page(request, rows)
    return render(request, "installation/people.html", {"people": found.items, "next": found.next, "q": words})


@administrators
@require_POST
def change_rights(request: HttpRequest, user_id: int) -> HttpResponse:
    """Gives or takes the right that the button names."""
    person = get_object_or_404(User, pk=user_id)
    try:
        right, yes = request.POST.get("right", ""), request.POST.get("give") == "1"
        services.give_right(cast(User, request.user), person, right, yes)
        messages.success(request, f"The rights of {person} are changed.")
    except Problem as problem:
        messages.error(request, problem.message)
    return redirect("installation_people")


@administrators
@require_POST
def sign_out(request: HttpRequest, user_id: int) -> HttpResponse:
    """Signs a person out of every browser, after the administrator has confirmed."""
    person = get_object_or_404(User, pk=user_id)
    text = f"{person.email} has to sign in again in every browser. Tokens still work."
    back = reverse("installation_people")
    if asked := confirmation.question(
        request, title=f"Sign {person} out everywhere?", text=text, yes="Sign out", back=back
    ):
        return asked
    count = end_sessions_of(cast(User, request.user), person)
    messages.success(request, f"{person} was signed out of {count} {'browser' if count == 1 else 'browsers'}.")
    return redirect("installation_people")


@administrators
@never_cache
@require_safe
def audit_log(request: HttpRequest) -> HttpResponse:
    """The audit log of all workspaces, newest first; how far its chain reaches, and how far it was sent to another machine."""
    asked = {name: request.GET.get(name, "") for name in ("action", "who")}
    found = audit_of_all(request.GET.get("cursor"), **asked)
    context = {
        **asked,
        "page": found,
        "query": urlencode(asked),
        "head": chain.head(),
        "receiver": settings.AUDIT_SYSLOG,
        "sending": syslog.receiver_standing() if settings.AUDIT_SYSLOG else None,
    }
    return render(request, "installation/audit.html", context)


@administrators
@never_cache
@require_safe
def reconciler(request: HttpRequest) -> HttpResponse:
    """The time of Ray's last answer, the comparisons, and the differences, newest first. The page asks nobody: workers have stored it."""
    try:
        found = page(reconciling.repairs(), request.GET.get("cursor"), PAGE, "-id")
    except Problem:  # a cursor of another list, cut off or typed by hand: start at the beginning
        found = page(reconciling.repairs(), None, PAGE, "-id")
    now, rounds = timezone.now(), reconciling.rounds()
    context = {
        "heard": reconciling.last_heard(),
        "silence": reconciling.silence(),
        "compared": [{"label": label, "round": rounds.get(kind)} for kind, label in COMPARED.items()],
        "late": [
            label.lower()
            for kind, label in COMPARED.items()
            if kind not in rounds or now - rounds[kind].at > ROUND_LATE
        ],
        "today": reconciling.repairs().filter(created_at__gte=now - timedelta(days=1)).count(),
        "rows": _linked(request, found.items),
        "next": found.next,
        "unknown": unknown_jobs.unknown_jobs(),
    }
    return render(request, "installation/reconciler.html", context)


def _linked(request: HttpRequest, entries: Sequence[AuditEntry]) -> list[tuple[AuditEntry, str]]:
    """The entries with links to runs and jobs that exist in the workspace in which the administrator acts. Others they may not open."""
    membership: Membership | None = getattr(request, "membership", None)
    here = [each for each in entries if membership and each.workspace_id == membership.workspace_id]
    ids = {each.object_id for each in here}
    runs = set(Run.objects.filter(pk__in=ids).values_list("pk", flat=True))
    jobs = set(WeightsJob.objects.filter(pk__in=ids).values_list("pk", flat=True))
    pages = {"run": ("run", runs), "weightsjob": ("weights_job", jobs)}

    def href(entry: AuditEntry) -> str:
        name, there = pages[entry.object_type]
        return reverse(name, args=[entry.object_id]) if entry in here and entry.object_id in there else ""

    return [(each, href(each)) for each in entries]


@administrators
@never_cache
@require_http_methods(["GET", "POST"])
def limits(request: HttpRequest, workspace_id: int | None = None) -> HttpResponse:
    """The form for the limits of one workspace, or of all that have none of their own."""
    workspace = None if workspace_id is None else get_object_or_404(Workspace, pk=workspace_id)
    form = LimitsForm(request.POST) if request.method == "POST" else LimitsForm.showing(_own(workspace_id))
    if request.method == "POST" and form.is_valid():
        quotas.change(cast(User, request.user), workspace, form.limits())
        waiting_line.let_in()  # a run that waited for a place may have one now
        messages.success(request, "The limits are changed.")
        return redirect("installation")
    context = {"form": form, "workspace": workspace, "default": _own(None)}
    return render(request, "installation/limits.html", context, status=422 if form.errors else 200)


def _page(request: HttpRequest, rows: QuerySet[Row]) -> Page[Row]:
    try:
        return page(rows, request.GET.get("cursor"), PAGE, "id")
    except Problem:  # a cursor of another list, cut off or typed by hand: start at the beginning
        return page(rows, None, PAGE, "id")


def _own(workspace_id: int | None) -> quotas.Limits:
    return quotas.limits_by_workspace().get(workspace_id, quotas.Limits())


def uses(workspaces: Sequence[Workspace]) -> list[Use]:
    """The use of each workspace, in four queries for any number of them."""
    ids, known = [each.pk for each in workspaces], quotas.limits_by_workspace()
    rows = Membership.objects.filter(workspace_id__in=ids).values_list("workspace_id")
    members = dict(rows.annotate(count=Count("id")).order_by())
    active = waiting_line.launched(waiting_line.RUNNING).filter(experiment__workspace_id__in=ids)
    running = Counter(active.values_list("experiment__workspace_id", flat=True))
    imports, none = datasets.import_uses(ids), datasets.ImportUse(0, 0)
    return [
        Use(
            each,
            members.get(each.pk, 0),
            running[each.pk],
            imports.get(each.pk, none),
            quotas.limits_of(each.pk, known),
            each.pk in known,
        )
        for each in workspaces
    ]


def _services() -> list[InstalledService]:
    named = {"database": "Postgres"}
    seen = health.WATCH.look()
    return [InstalledService(named.get(name, name.title()), each.up, each.note) for name, each in seen.items()]


def _storage() -> dict[str, int]:
    """Bytes: free and in all on the disk of the data, and those of the database."""
    disk = shutil.disk_usage(health.folders()[0])
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        database = cursor.fetchone()[0]
    return {"free": disk.free, "total": disk.total, "database": database}


def _versions() -> dict[str, str]:
    fits = "fits this version" if schema.state() == "current" else "is not what this version expects: manage.py upgrade"
    return {"Touchstone": VERSION, "Schema": fits, "Python": platform.python_version(), "Django": get_version()}
