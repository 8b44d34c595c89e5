"""The part above the tabs that every page of a project shows."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from webapp.accounts.models import Membership, Role

from . import access, queries
from .agreement.pseudonyms import Faces, faces
from .kinds import KINDS
from .models import Project
from .tasks.order import SUGGESTED

TABS = (
    ("overview", "Overview", "project"),
    ("tasks", "Tasks", "project_tasks"),
    ("people", "People", "project_people"),
    ("guidelines", "Guidelines", "project_guidelines"),
    ("suggestions", "Suggestions", "project_suggestions"),
    ("agreement", "Agreement", "project_agreement"),
    ("review", "Review", "project_review"),
    ("answers", "Answers", "project_answers"),
    ("then", "Then", "project_then"),
    ("settings", "Settings", "project_settings"),
)
MOVES = {
    Project.State.DRAFT: (("open", "Open it", "play", True),),
    Project.State.OPEN: (("paused", "Pause", "pause", False),),
    Project.State.PAUSED: (("open", "Open again", "play", True),),
    Project.State.CLOSED: (("open", "Open again", "play", False),),
}


@dataclass(frozen=True)
class Tab:
    name: str
    label: str
    href: str


def context(membership: Membership, project: Project, tab: str) -> dict[str, Any]:
    """The context of `annotation/project_base.html`: `tab` is one of the names in TABS."""
    far = queries.progress(project)
    return {
        "project": project,
        "kind": KINDS[project.kind],
        "tab": tab,
        "tabs": tabs(membership, project),
        "moves": MOVES[Project.State(project.state)],
        "progress": far,
        "may_write": membership.may(Role.RESEARCHER),
        "may_name": access.may_name(membership),
    }


def seen_as(request: HttpRequest, membership: Membership, project: Project) -> Faces:
    """The names of people on a page about answers: pseudonyms, unless a reader who may see the real names asks for them."""
    return faces(project, named=access.may_name(membership) and request.GET.get("names") == "1")


def tabs(membership: Membership, project: Project) -> list[Tab]:
    """The tabs of a project; settings only for people who may change them."""
    found = []
    for name, label, view in TABS:
        if name == "settings" and not membership.may(Role.RESEARCHER):
            continue
        if name == "suggestions" and project.kind not in SUGGESTED:
            continue
        try:
            found.append(Tab(name, label, reverse(view, args=[project.pk])))
        except NoReverseMatch:  # a page that another app adds
            continue
    return found
