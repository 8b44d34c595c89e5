"""The first page: what needs attention, what runs now, recent results, and what to do next."""

from dataclasses import dataclass
from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from trainer.contracts.plurals import with_noun
from webapp.accounts.members.queries import members
from webapp.accounts.models import Membership, Role
from webapp.accounts.tokens.queries import my_tokens
from webapp.annotation import queries as projects
from webapp.annotation.kinds import KINDS
from webapp.annotation.work import inbox as annotation
from webapp.annotation.work.inbox import WaitingProject
from webapp.datasets import queries as datasets
from webapp.experiments import recipe_metrics
from webapp.experiments.launch import answers_to_model
from webapp.experiments.models import Run
from webapp.experiments.runs import listing
from webapp.inference.models import RegisteredModel
from webapp.localstack.demo import EMAIL as DEMO_EMAIL

from . import needs

RECENT = 6
MOST_STEPS = 4
PROJECTS, LAST_ANSWERS = 4, 8
DEMO_TAKES = timedelta(minutes=10)  # on a busy machine


@dataclass(frozen=True)
class NextStep:
    """A suggestion of what to do next: where to do it, and why it helps."""

    icon: str
    title: str
    text: str
    href: str
    does: bool = False
    """Whether a click does it, instead of opening the page on which it is done."""


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The first page. Reviewers and above see runs and datasets; annotators get a page of their own. The number of queries does not grow
    with the rows."""
    membership: Membership | None = getattr(request, "membership", None)
    if membership is None:
        return redirect("workspaces")
    waiting = annotation.projects_with_work(membership)
    if not membership.may(Role.REVIEWER):
        last = annotation.last_submissions(membership)[:LAST_ANSWERS]
        return render(request, "home_annotator.html", {"membership": membership, "waiting": waiting, "last": last})
    workspace_id = membership.workspace.pk
    active, recent = listing.overview(workspace_id, RECENT)
    found = list(datasets.datasets(workspace_id).order_by("-id")[:RECENT])
    runs = [row.run for row in (*active, *recent)]
    asked = projects.rows(projects.projects(workspace_id).exclude(state="closed").order_by("-id")[:PROJECTS])
    context = {
        "membership": membership,
        "may_launch": membership.may(Role.RESEARCHER),
        "needs": needs.rows_that_need_attention(membership),
        "active": active,
        "recent": recent,
        "datasets": found,
        "projects": asked,
        "steps": [*_work(waiting), *_learn(membership), *next_steps(membership, runs, bool(found), bool(asked))][
            :MOST_STEPS
        ],
        "demo_comes": bool(found) and not runs and _demo_comes(membership),
    }
    return render(request, "home.html", context)


def _demo_comes(membership: Membership) -> bool:
    """Whether `manage.py up` is still preparing the demo's model, after which it starts the demo's run."""
    young = timezone.now() - membership.workspace.created_at < DEMO_TAKES
    return young and membership.user.email == DEMO_EMAIL and not _has_model(membership)


def _has_model(membership: Membership) -> bool:
    return RegisteredModel.objects.filter(workspace=membership.workspace).exists()


def _work(waiting: list[WaitingProject]) -> list[NextStep]:
    """The project that waits for the person's own judgements; most people judge in one at a time. Tasks are counted as on the project's
    page. Gold tasks are named separately, because the people who see this may know of them."""
    first = next((each for each in waiting if each.waits), None)
    if first is None:
        return []
    tasks = first.waiting - first.gold
    parts = [with_noun(tasks, "tasks")] if tasks or not first.gold else []
    parts += [with_noun(first.gold, "gold tasks")] if first.gold else []
    what = f"more than {first.free:,} tasks" if first.more else " and ".join(parts)
    waits = "waits" if what.startswith("1 ") and len(parts) == 1 else "wait"
    told = f"{what} {waits} for you."
    if not first.waiting:
        told = f"{with_noun(first.reopened, 'answers')} of yours to check again."
    text = f"{told} {KINDS[first.project.kind].text}"
    href = _at("project_work", first.project.pk)
    return [NextStep(icon="pencil", title=f"Annotate: {first.project}", text=text, href=href)]


def _learn(membership: Membership) -> list[NextStep]:
    """Suggests a reward model from the project with the most comparisons."""
    found = answers_to_model.ready(membership.workspace.pk) if membership.may(Role.RESEARCHER) else []
    if not found:
        return []
    project, answers = found[0].project, found[0].answers
    return [
        NextStep(
            icon="scale",
            title=f"Train a reward model on {with_noun(answers, 'answers')}",
            text=f"Publishes what people chose in “{project}” and starts a run on it.",
            href=_at("train_on_answers", project.pk),
            does=True,
        )
    ]


def next_steps(membership: Membership, runs: list[Run], any_dataset: bool, any_project: bool) -> list[NextStep]:
    """The most helpful suggestions first, only those that this role may carry out."""
    steps: list[NextStep] = []
    if membership.may(Role.RESEARCHER):
        steps += _to_the_first_run(membership, runs, any_dataset)
    steps += _with_results(membership, runs)
    if membership.may(Role.RESEARCHER) and any_dataset and not any_project:
        text = "Which answer is better? What does a good answer need? A project asks people and keeps every answer."
        steps.append(
            NextStep(icon="messages-square", title="Ask people about a dataset", text=text, href=_at("project_new"))
        )
    if membership.may(Role.OWNER) and members(membership).count() == 1:
        steps.append(
            NextStep(
                icon="users",
                title="Invite someone",
                text="A link brings a colleague or an annotator into this workspace.",
                href=_at("members"),
            )
        )
    if not my_tokens(membership).exists():
        steps.append(
            NextStep(
                icon="key-round",
                title="Create an API token",
                text="A script can do everything that these pages do.",
                href=_at("tokens"),
            )
        )
    return steps


def _to_the_first_run(membership: Membership, runs: list[Run], any_dataset: bool) -> list[NextStep]:
    steps = []
    if not any_dataset:
        text = "Prompts with rubrics teach a model; preferences compare its answers. JSONL, CSV or Parquet."
        steps.append(NextStep(icon="upload", title="Import a dataset", text=text, href=_at("import_new")))
    if not runs and not _demo_comes(membership):
        if not _has_model(membership):
            text = "Your runs start from a folder on the server or a name on the Hugging Face hub."
            steps.append(NextStep(icon="box", title="Register a model", text=text, href=_at("model_new")))
        if any_dataset:
            text = "The defaults show a gain within minutes; change what you like before it starts."
            steps.append(NextStep(icon="play", title="Start the first run", text=text, href=_at("run_new")))
    return steps


def _with_results(membership: Membership, runs: list[Run]) -> list[NextStep]:
    """Suggestions for the newest run that was launched here and has finished. A run of another program has no rollouts and no form."""
    steps = []
    finished = next((run for run in runs if run.state == Run.State.FINISHED and not run.is_logged), None)
    if finished is not None:
        text = "Scores can rise for the wrong reason. Read a few answers beside the criteria that graded them."
        href = _at("run_tab", finished.pk, "rollouts")
        read = f"Read the {recipe_metrics.samples_title(finished.recipe).lower()} of {_named(finished)}"
        steps.append(NextStep(icon="text-search", title=read, text=text, href=href))
        if membership.may(Role.RESEARCHER):
            text = "The form opens with the values of that run; your changes are marked."
            href = _at("run_fork", finished.pk)
            steps.append(
                NextStep(icon="git-fork", title=f"Repeat {_named(finished)} with changes", text=text, href=href)
            )
    return steps


def _named(run: Run) -> str:
    return f"“{run}” of {run.experiment.name}" if run.name else f"{run} of {run.experiment.name}"


def _at(name: str, *parts: object) -> str:
    return reverse(name, args=parts)
