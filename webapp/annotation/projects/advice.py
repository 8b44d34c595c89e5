"""Advice for a manager: what to know about a project and what to do next, in sentences with a link."""

from dataclasses import dataclass
from datetime import timedelta

from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from webapp.accounts.models import Membership, Role

from ..models import Comment, Project
from ..people.queries import Person, annotators_to_add
from ..queries import Progress
from ..review.queries import undecided
from ..tasks.order import SUGGESTED
from ..work import suggestion_queries

STALLED = timedelta(days=7)
State = Project.State


@dataclass(frozen=True)
class Advice:
    """`tone` is warn, bad or info; `href` may be empty."""

    title: str
    text: str
    href: str = ""
    tone: str = "warn"
    icon: str = "triangle-alert"


def warnings(
    project: Project, far: Progress, people: list[Person], remarks: dict[str, int], named: bool
) -> list[Advice]:
    """Problems of the work or its quality, the worst first; people by their names if `named`, else by pseudonyms."""
    working = [person for person in people if person.takes_part and not person.paused]
    told = [*_of_the_queue(project, far, working), *_of_people(project, people, named)]
    if count := remarks.get(Comment.Kind.GUIDELINES):
        requests = "request" if count == 1 else "requests"
        told.append(
            Advice(
                f"{count} {requests} to change the guidelines",
                "Somebody found a case that the guidelines do not settle.",
                _at("project_guidelines", project),
                "info",
                icon="book-open",
            )
        )
    return told


def _of_the_queue(project: Project, far: Progress, working: list[Person]) -> list[Advice]:
    if project.tasks_made and not far.tasks and not far.gold:
        return [Advice("No example gave a task", "Set up another project on data that fits this kind.", tone="bad")]
    if project.state != State.OPEN or far.seats_done >= far.seats:
        return []
    if not working:
        return [Advice("Nobody works here yet", _whom_to_add(project), _at("project_people", project))]
    told = []
    if len(working) < project.overlap:
        text = f"Each task needs {project.overlap} different people; {len(working)} can work. No task will be complete."
        told.append(Advice("Too few people", text, _at("project_people", project)))
    last = max((person.last_at for person in working if person.last_at), default=None)
    if last and timezone.now() - last > STALLED:
        told.append(Advice("The work has stopped", f"The last answer came on {last:%-d %B}.", tone="warn"))
    if project.settings.get("gold_every") and not far.gold:
        text = "The settings use gold tasks, but no task has a known answer yet."
        told.append(Advice("No gold tasks", text, _at("project_gold", project), "info", icon="award"))
    if suggestion_queries.promised_in_vain(project):
        judged = project.kind in SUGGESTED
        text = "The settings show a model's view, but the tasks that come first have none. "
        text += "Ask a judge for it." if judged else "Put it into meta.suggestions of their examples."
        href = _at("project_suggestions" if judged else "project_settings", project)
        told.append(Advice("No model's view", text, href, "info", icon="scale"))
    return told


def _whom_to_add(project: Project) -> str:
    if not (count := annotators_to_add(project)):
        return "Invite people with a link."
    who = "1 annotator of the workspace does" if count == 1 else f"{count} annotators of the workspace do"
    return f"{who} not take part. Add them, or invite others with a link."


def _of_people(project: Project, people: list[Person], named: bool) -> list[Advice]:
    href = _at("project_people", project)
    return [Advice(person.shown(named), " ".join(person.warnings), href) for person in people if person.warnings]


def next_steps(membership: Membership, project: Project, far: Progress, people: list[Person]) -> list[Advice]:
    """The next steps for this role, at most three."""
    steps: list[Advice] = []
    writes = membership.may(Role.RESEARCHER)
    if writes and project.state == State.DRAFT:
        steps.append(
            _step(
                "Look at its tasks",
                "Then open the project. People get tasks only after that.",
                "project_tasks",
                project,
                icon="eye",
            )
        )
    if writes and not any(person.takes_part for person in people):
        steps.append(
            _step(
                "Invite people",
                "People who open the link work as annotators.",
                "project_people",
                project,
                icon="user-plus",
            )
        )
    if writes and far.tasks and not far.gold and project.state != State.CLOSED:
        text = "Tasks with a known answer show you early who has understood the task."
        steps.append(_step("Make some tasks gold", text, "project_gold", project, icon="award"))
    if far.complete and project.overlap > 1:
        text = "See who agrees with whom, and where they disagree."
        steps.append(_step("Look at the agreement", text, "project_agreement", project, icon="scale"))
    if writes and far.tasks and far.complete == far.tasks:
        text = "This makes a new version of the dataset with the answers."
        steps.insert(0, _step("Publish the answers", text, "project_answers", project, icon="send"))
    if project.overlap > 1 and (waiting := undecided(project).count()):
        text = f"{waiting:,} complete task{'s wait' if waiting != 1 else ' waits'} for a decision; the lowest agreement comes first."
        steps.insert(0, _step("Settle disagreements", text, "project_review", project, icon="gavel"))
    return [step for step in steps if step.href][:3]


def _step(title: str, text: str, view: str, project: Project, *, icon: str) -> Advice:
    return Advice(title, text, _at(view, project), "info", icon)


def _at(view: str, project: Project) -> str:
    try:
        return reverse(view, args=[project.pk])
    except NoReverseMatch:  # a page that another app adds
        return ""
