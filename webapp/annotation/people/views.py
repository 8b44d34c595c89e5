"""Pages of the people of a project: their figures, and the links that let others in."""

from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from trainer.contracts.plurals import with_noun
from webapp.accounts.access import member, require, to_sign_in
from webapp.accounts.addresses import services as addresses
from webapp.accounts.authentication.middleware import SESSION_KEY
from webapp.accounts.models import Membership, User
from webapp.accounts.sign_in.last_step import BACKEND
from webapp.core.network import mail
from webapp.core.network.addresses import public_url
from webapp.core.pages import confirmation
from webapp.core.problems import Problem
from webapp.core.requests.limits import seconds_to_wait
from webapp.core.requests.numbers import whole_number

from .. import access, page_context, queries
from ..agreement import coefficients, person_figures, refresh
from ..models import Participant, Project
from . import queries as persons
from . import services
from .forms import ProjectJoinForm

NAMED = 5  # people whom a message names
PAGE = 100  # people: a table is sorted and copied in the browser, so few projects should need a second page
SIGN_UPS_PER_MINUTE = 30  # from one address: a class may follow a link at once, a script may not fill the workspace


@member(access.READER)
@never_cache
@require_http_methods(["GET", "POST"])
def project_people(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """Everybody's figures. A POST creates an invitation; only the response has its link."""
    membership = require(request)
    project = access.project_read(membership, project_id)
    link, problems = "", {}
    if request.method == "POST":
        access.project_write(membership, project_id)
        try:
            link = _invited(request, membership, project)
        except Problem as problem:
            problems = problem.fields
    report = refresh.current_report(project)
    everybody = persons.people(project)
    context = page_context.context(membership, project, "people") | {
        **_listed(request.GET, everybody, access.may_name(membership)),
        "uses": max(1, project.overlap - sum(person.takes_part for person in everybody)),
        "report": report,
        "fresh": coefficients.fresh(report, project),
        "compares": person_figures.compares(project),
        "fast_seconds": project.settings.get("fast_seconds"),
        "candidates": persons.candidates(project),
        "ticked": {whole_number(each, 6) for each in request.GET.getlist("add")},
        "invites": list(queries.invites(project)[:50]),
        "link": link,
        "link_for": request.POST.get("email", ""),
        "mails": mail.is_configured(),
        "problems": problems,
    }
    return render(request, "annotation/project_people.html", context, status=422 if problems else 200)


def _invited(request: HttpRequest, membership: Membership, project: Project) -> str:
    """The link to show; empty if it was mailed."""
    email = request.POST.get("email", "")
    uses, days = (whole_number(request.POST.get(name, ""), 6) or 0 for name in ("uses", "days"))
    row, secret = services.invite(membership, project, 1 if email.strip() else uses, days, email)
    if row.mailed:
        messages.success(request, f"The invitation was mailed to {row.email}.")
    return f"{public_url()}/join/{secret}" if secret else ""


def _listed(given: QueryDict, everybody: list[persons.Person], named: bool) -> dict[str, Any]:
    """The people of this page: those who match the words and the choice, from an offset on. A reader who sees pseudonyms cannot find people
    by name."""
    words = given.get("q", "")[:200].strip()

    def says(person: persons.Person) -> str:
        return f"{person.label} {person.user.name} {person.user.email}" if named else person.label

    found = [person for person in everybody if words.lower() in says(person).lower()]
    warned = [person for person in found if person.warnings]
    show = "warned" if given.get("show") == "warned" else ""
    chosen, start = warned if show else found, whole_number(given.get("from", ""), 6) or 0
    like = urlencode({name: value for name, value in (("q", words), ("show", show)) if value})
    return {
        "people": chosen[start : start + PAGE],
        "everybody": len(everybody),
        "searchable": len(everybody) > PAGE or like,
        "shown": [("", "Everybody", len(found)), ("warned", "With a warning", len(warned))],
        "show": show,
        "words": words,
        "like": like,
        "started": start > 0,
        "next": start + PAGE if len(chosen) > start + PAGE else None,
    }


@member(access.WRITER)
@require_POST
def participant_add(request: HttpRequest, project_id: int) -> HttpResponseBase:
    membership = require(request)
    project = access.project_write(membership, project_id)
    chosen = request.POST.getlist("user")
    if not chosen:
        messages.error(request, "Choose the members to add.")
    try:
        added = services.add_participants(membership, project, _users(chosen))
        if added:
            named = ", ".join(map(str, added)) if len(added) <= NAMED else with_noun(len(added), "people")
            messages.success(request, f"{named} {'takes' if len(added) == 1 else 'take'} part.")
    except Problem as problem:
        messages.error(request, problem.message)
        kept = urlencode({"add": chosen}, doseq=True)  # the choice stays ticked
        return redirect(f"{reverse('project_people', args=[project_id])}?{kept}#h-add")
    return redirect("project_people", project_id)


@member(access.WRITER)
@require_POST
def participant_pause(request: HttpRequest, project_id: int, user_id: int) -> HttpResponseBase:
    """Pauses a person or ends the pause, as the button says."""
    membership = require(request)
    project = access.project_write(membership, project_id)
    paused = request.POST.get("paused") == "1"
    try:
        row = services.pause_participant(membership, project, access.participant(project, user_id), paused)
        done = "is paused; what they had open went back to the queue" if paused else "can work again"
        messages.success(request, f"{row.user} {done}.")
    except Problem as problem:
        messages.error(request, problem.message)
    return redirect("project_people", project_id)


def _users(chosen: list[str]) -> list[User]:
    """The users with these ids. An unknown id is refused in the same way as a user who is not a member."""
    ids = [whole_number(each, 6) or 0 for each in chosen]
    known = User.objects.in_bulk(ids)
    return [known.get(each) or User() for each in ids]


@member(access.WRITER)
@require_POST
def invite_revoke(request: HttpRequest, project_id: int, invite_id: int) -> HttpResponseBase:
    membership = require(request)
    project = access.project_write(membership, project_id)
    invite = access.invite(project, invite_id)
    back = reverse("project_people", args=[project_id])
    text = "The link stops working. People who have joined stay."
    if asked := confirmation.question(request, title="Revoke this link?", text=text, yes="Revoke", back=back):
        return asked
    services.revoke_invite(membership, invite)
    messages.success(request, "The link no longer works.")
    return redirect("project_people", project_id)


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """Joins as the signed-in person, or creates an account first. Nothing happens before the button is pressed."""
    row = services.open_invite(secret)
    mine = _already_in(request, secret)
    if mine is not None:
        return _inside(request, mine.project)
    if row is None:
        return render(request, "annotation/project_join.html", {"spent": True}, status=410)
    holder = User.objects.filter(email=row.email).first() if row.email else None
    if holder and not request.user.is_authenticated and not addresses.gives_way(holder, row.proof):
        return to_sign_in(request)
    form = None if request.user.is_authenticated else ProjectJoinForm(request.POST or None, email=row.email)
    context = {"project": row.project, "form": form, "secret": secret, "email": row.email, "taken": holder}
    if request.method == "POST" and seconds_to_wait(f"join:{request.META.get('REMOTE_ADDR')}", SIGN_UPS_PER_MINUTE):
        return render(
            request,
            "annotation/project_join.html",
            context | {"problem": "Too many people join at once. Try again in a minute."},
            status=429,
        )
    if request.method == "POST" and (form is None or form.is_valid()):
        try:
            if form is None:
                joined = services.join(cast(User, request.user), secret)
            else:
                joined = services.sign_up(secret, **form.cleaned_data)
                login(request, joined.user, backend=BACKEND)
            return _inside(request, joined.project)
        except Problem as problem:
            context["problem"] = problem.message
            if form is not None and "email" in problem.fields:
                form.add_error("email", problem.fields["email"])
    return render(request, "annotation/project_join.html", context, status=422 if request.method == "POST" else 200)


def _already_in(request: HttpRequest, secret: str) -> Participant | None:
    return services.participation(request.user, secret) if request.user.is_authenticated else None


def _inside(request: HttpRequest, project: Project) -> HttpResponse:
    """Redirects to the start page of the project's workspace, which shows the project."""
    request.session[SESSION_KEY] = project.workspace_id
    return redirect("home")


urls: list[URLPattern] = [
    path("projects/<int:project_id>/people", project_people, name="project_people"),
    path("projects/<int:project_id>/people/add", participant_add, name="participant_add"),
    path("projects/<int:project_id>/people/<int:user_id>", participant_pause, name="participant_pause"),
    path("projects/<int:project_id>/invites/<int:invite_id>/revoke", invite_revoke, name="invite_revoke"),
    path("join/<str:secret>", join, name="project_join"),
]
