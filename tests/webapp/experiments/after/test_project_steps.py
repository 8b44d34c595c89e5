"""A run that waits for an annotation project is launched once, on the published answers, when the project is settled; or it says why not."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.concurrency import concurrently
from tests.team import ApiClient, browser
from tests.webapp.annotation.answers import annotators, answer, make_project, make_version, preference
from tests.webapp.webhooks.hooks import announced_events, listen
from webapp.accounts.models import Membership
from webapp.annotation.agreement.refresh import review_new
from webapp.annotation.jobs import runner
from webapp.annotation.models import Job, Project, Resolution, Task
from webapp.annotation.review import services as review
from webapp.core.background.jobs import JobReport
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict
from webapp.datasets.versions import services as datasets
from webapp.experiments.after import project_steps
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launching
from webapp.experiments.models import ChainStep, LoggedElsewhere, Run

from ..conftest import swap_names


@pytest.fixture
def like(team, model, version):
    """A run on comparisons, to be repeated."""
    rows = make_version(team, 4, "older", preferences=[{"a": "r1", "b": "r2", "strength": 1, "rater": "old"}])
    data = datasets.freeze(team.researcher, rows)
    config = {"steps": 3, "batch_size": 2, "model": {"name": model.name}, "evaluation": {"max_examples": 0}}
    choice = checks.DatasetChoice(id=data.dataset_id, version=data.number)
    return launching.launch(
        team.researcher, recipe="dpo", config=config, dataset=choice, experiment="taste", name="old"
    )


@pytest.fixture
def project(team):
    return make_project(team, n=4)


def judge(team, project: Project, *pairs: tuple[int, int]) -> None:
    """Two people answer the next tasks, each with a strength."""
    people = annotators(team, project)
    tasks = project.tasks.filter(completed_at=None).order_by("rank")
    for task, strengths in zip(list(tasks), pairs, strict=False):
        for person, strength in zip(people, strengths, strict=True):
            answer(task, person, preference(strength))


def fresh(step: ChainStep) -> ChainStep:
    return ChainStep.objects.get(pk=step.pk)


def test_it_waits_for_the_last_answer_and_trains_on_the_published_version(team, project, like):
    step = project_steps.add(team.researcher, project, like, "later", "second")
    judge(team, project, (2, 2), (1, 1), (-1, -1))
    project_steps.take_up(project.pk)
    assert (
        fresh(step).state == "waiting"
        and project_steps.waiting_reason(step, project_steps.why_not(project)) == "Waits: 1 task still lacks answers"
    )
    judge(team, project, (3, 3))
    assert project_steps.why_not(project) == ""
    project_steps.take_up(project.pk)
    run = fresh(step).run
    assert (run.recipe, run.name, run.experiment.name, run.state) == ("dpo", "second", "later", "queued")
    assert run.config == like.config and run.created_by == team.researcher.user
    made = project.publications.get()
    assert run.dataset_version == made.version and made.version.counts["preferences"] == 4
    project_steps.take_up(project.pk)
    assert Run.objects.count() == 2 and fresh(step).state == "launched"


def test_the_page_asks_no_more_for_three_runs_that_wait_than_for_one(team, project, like):
    costs = []
    for count in (1, 3):
        for _ in range(count):
            project_steps.add(team.researcher, project, like)
        with CaptureQueriesContext(connection) as asked:
            assert browser(team.researcher).get(f"/projects/{project.pk}/then").status_code == 200
        costs.append(len(asked))
    assert costs[0] == costs[1]


def test_a_disagreement_keeps_it_waiting_until_somebody_decides(team, project, like):
    step = project_steps.add(team.researcher, project, like)
    judge(team, project, (2, 2), (1, 1), (-1, -1), (-3, 3))
    assert (
        project_steps.waiting_reason(step, project_steps.why_not(project))
        == "Waits: 1 disagreement waits for a decision in the project's review"
    )
    apart = Task.objects.get(project=project, review__agreement__lt=1)
    review.leave_unresolved(team.reviewer, apart, answers=apart.review.answers)
    project_steps.take_up(project.pk)
    assert fresh(step).run.dataset_version.counts["preferences"] == 3


def one_answer_each(team, n: int, **settings) -> Project:
    """A project in which one person has answered every task."""
    project = make_project(team, n=n, overlap=1, **settings)
    [person] = annotators(team, project, 1)
    for task in project.tasks.order_by("rank"):
        answer(task, person, preference(2))
    return project


def test_single_answers_keep_it_waiting_until_they_are_accepted(team, like):
    project = one_answer_each(team, 2)
    step = project_steps.add(team.researcher, project, like)
    project_steps.take_up(project.pk)
    assert fresh(step).state == "waiting", "it was refused for ever, and what was behind it was cancelled"
    told = project_steps.waiting_reason(step, project_steps.why_not(project))
    assert told.startswith("Waits: 2 single answers wait for a decision. Accept single answers in the project's review")
    assert review.accept_majority(team.reviewer, project) == 2
    project_steps.take_up(project.pk)
    assert fresh(step).run.dataset_version.counts["preferences"] == 2


def test_it_waits_until_a_job_has_accepted_all_single_answers(team, like, monkeypatch):
    project = one_answer_each(team, 4)
    step = project_steps.add(team.researcher, project, like)
    with monkeypatch.context() as patch:
        patch.setattr(review, "AT_ONCE", 1)
        patch.setattr(runner, "enqueue", lambda *args: None)
        assert review.accept_majority(team.reviewer, project) is None, "a job does it"
    job, seen = Job.objects.get(kind=Job.Kind.MAJORITY), []

    def look(report, done, total):
        """Upkeep, after each batch; the job is open after the last one too."""
        project_steps.take_up(project.pk)
        accepting = "are being accepted" in project_steps.why_not(project)
        seen.append((Resolution.objects.filter(project=project).count(), fresh(step).state, accepting))

    monkeypatch.setattr(review, "BATCH", 2)
    monkeypatch.setattr(JobReport, "at", look)
    runner.run(job.pk)
    job.refresh_from_db()
    assert (job.state, seen) == ("finished", [(2, "waiting", True), (4, "waiting", True)])
    project_steps.take_up(project.pk)
    assert fresh(step).run.dataset_version.counts["preferences"] == 4


def test_the_first_decision_by_hand_does_not_launch_it(team, like):
    project = one_answer_each(team, 3)
    step = project_steps.add(team.researcher, project, like)
    review_new(project)
    first, second, last = project.tasks.order_by("rank")
    for task, told in ((first, "2 single answers wait"), (second, "1 single answer waits")):
        review.consolidate(team.reviewer, task, answers=task.review.answers, content=preference(2))
        project_steps.take_up(project.pk)
        assert fresh(step).state == "waiting"
        assert project_steps.why_not(project).startswith(f"{told} for a decision.")
    review.leave_unresolved(team.reviewer, last, answers=last.review.answers)
    project_steps.take_up(project.pk)
    assert fresh(step).run.dataset_version.counts["preferences"] == 2


def test_it_waits_if_every_task_was_left_unresolved(team, like):
    project = make_project(team, n=1)
    step = project_steps.add(team.researcher, project, like)
    judge(team, project, (-3, 3))
    review_new(project)
    task = project.tasks.get()
    review.leave_unresolved(team.reviewer, task, answers=task.review.answers)
    project_steps.take_up(project.pk)
    assert fresh(step).state == "waiting", "it was refused for ever: there was nothing to publish"
    told = project_steps.why_not(project)
    assert told.startswith("no task has a decision to train on. A task that a reviewer left unresolved is not one")
    review.consolidate(team.reviewer, task, answers=task.review.answers, content=preference(1))
    project_steps.take_up(project.pk)
    assert fresh(step).run.dataset_version.counts["preferences"] == 1


def test_single_answers_that_are_published_by_themselves_need_no_decision(team, like):
    project = one_answer_each(team, 2, publish="answers")
    step = project_steps.add(team.researcher, project, like)
    project_steps.take_up(project.pk)
    assert fresh(step).run.dataset_version.counts["preferences"] == 2


@pytest.mark.parametrize(("state", "words"), [("draft", "is not open yet"), ("paused", "is paused"), ("open", "")])
def test_it_says_if_nobody_is_asked(project, state, words):
    Project.objects.filter(pk=project.pk).update(state=state)
    project.refresh_from_db()
    assert project_steps.why_not(project) == "4 tasks still lack answers" + (f", and it {words}" if words else "")


def test_a_project_that_publishes_each_answer_needs_no_decision(team, project, like):
    Project.objects.filter(pk=project.pk).update(settings={**project.settings, "publish": "answers"})
    project.refresh_from_db()
    step = project_steps.add(team.researcher, project, like)
    judge(team, project, (2, 2), (1, 1), (-1, -1), (-3, 3))
    project_steps.take_up(project.pk)
    assert fresh(step).run.dataset_version.counts["preferences"] == 8


def test_a_step_that_cannot_be_launched_for_now_keeps_no_other_waiting(team, project, like, monkeypatch):
    first, second = (project_steps.add(team.researcher, project, like, name=name) for name in ("first", "second"))
    judge(team, project, (2, 2), (1, 1), (-1, -1), (3, 3))
    launch = launching.launch

    def refusing(membership, **given):
        if given["name"] == "first":
            raise OSError("the disk is full")
        return launch(membership, **given)

    monkeypatch.setattr(launching, "launch", refusing)
    project_steps.take_up(project.pk)
    assert (fresh(first).state, fresh(second).state) == ("waiting", "launched")


def test_what_cannot_be_launched_is_refused_with_the_reason_and_nothing_is_published(team, project, like):
    listen(team.owner)
    step = project_steps.add(team.researcher, project, like)
    type(like.model).objects.filter(pk=like.model.pk).update(head="scalar")
    judge(team, project, (2, 2), (1, 1), (-1, -1), (3, 3))
    project_steps.take_up(project.pk)
    held = fresh(step)
    assert held.state == "refused" and "model.name" in held.reason and held.run is None
    assert not project.publications.exists() and Run.objects.count() == 1
    assert AuditEntry.objects.get(action="project.then_refused").detail["reason"] == held.reason
    [facts] = [given for event, given in announced_events() if event == "project.then_refused"]
    assert (facts["project"], facts["chain_step"], facts["reason"]) == (project.pk, step.pk, held.reason)


def test_a_person_who_has_left_launches_nothing(team, project, like):
    step = project_steps.add(team.researcher, project, like)
    Membership.objects.filter(pk=team.researcher.pk).delete()
    judge(team, project, (2, 2), (1, 1), (-1, -1), (3, 3))
    project_steps.take_up(project.pk)
    assert fresh(step).state == "refused" and "no longer allowed" in fresh(step).reason


def test_upkeep_hands_only_settled_projects_to_a_worker(team, project, like, monkeypatch):
    asked = []
    monkeypatch.setattr(project_steps, "enqueue", lambda task, *given: asked.append((task, *given)))
    project_steps.watch()
    project_steps.add(team.researcher, project, like)
    asked.clear()
    project_steps.watch()
    assert asked == []
    judge(team, project, (2, 2), (1, 1), (-1, -1), (3, 3))
    project_steps.watch()
    assert asked == [("workers.after.settled", project.pk)]


def test_a_key_adds_one_and_a_cancelled_one_never_starts(team, project, like):
    first = project_steps.add(team.researcher, project, like, key="k")
    assert project_steps.add(team.researcher, project, like, key="k") == first
    assert project_steps.cancel(team.researcher, project, first.pk).state == "cancelled"
    assert project_steps.cancel(team.researcher, project, first.pk).state == "cancelled"
    judge(team, project, (2, 2), (1, 1), (-1, -1), (3, 3))
    project_steps.take_up(project.pk)
    assert Run.objects.count() == 1
    launched = project_steps.add(team.researcher, project, like)
    project_steps.take_up(project.pk)
    with pytest.raises(Conflict, match="launched"):
        project_steps.cancel(team.researcher, project, launched.pk)


def test_a_logged_run_cannot_be_repeated(team, project, like):
    Run.objects.filter(pk=like.pk).update(recipe="logged")
    with pytest.raises(LoggedElsewhere):
        project_steps.add(team.researcher, project, Run.objects.get(pk=like.pk))


@pytest.mark.django_db(transaction=True)
def test_deliveries_at_once_launch_it_once(team, project, like):
    step = project_steps.add(team.researcher, project, like)
    judge(team, project, (2, 2), (1, 1), (-1, -1), (3, 3))
    concurrently([lambda: project_steps.take_up(project.pk)] * 4)
    assert fresh(step).state == "launched" and Run.objects.count() == 2 and project.publications.count() == 1


def test_the_api_and_the_page_say_what_it_waits_for(team, project, like, as_researcher):
    api = ApiClient(team.researcher)
    path = f"/projects/{project.pk}/then"
    made = api.post(path, {"run": like.pk, "name": "second"})
    assert made.status_code == 201 and made.json()["state"] == "waiting"
    told = api.get(path).json()
    assert not told["settled"] and told["why_not"] == "4 tasks still lack answers"
    assert [(row["name"], row["like"], row["experiment"]) for row in told["items"]] == [("second", like.pk, "taste")]
    assert api.post(path, {"run": like.pk + 1000}).status_code == 404
    page = as_researcher.get(f"/projects/{project.pk}/then").content.decode()
    assert "4 tasks still lack answers" in page and "second" in page
    assert as_researcher.post(f"/projects/{project.pk}/then", {"run": ""}).status_code == 422
    assert as_researcher.post(f"/projects/{project.pk}/then", {"run": like.pk, "key": "a"}).status_code == 302
    assert as_researcher.post(f"/projects/{project.pk}/then", {"run": like.pk, "key": "a"}).status_code == 302
    assert ChainStep.objects.count() == 2
    assert api.delete(f"{path}/{made.json()['id']}").json()["state"] == "cancelled"
    assert api.delete(f"{path}/{made.json()['id'] + 1000}").status_code == 404


def test_the_page_asks_before_it_cancels(team, project, like, as_researcher, as_annotator, as_outsider):
    step = project_steps.add(team.researcher, project, like, name="second")
    there = f"/projects/{project.pk}/then"
    cancel = f"{there}/{step.pk}/cancel"
    assert (as_annotator.post(cancel).status_code, as_outsider.post(cancel).status_code) == (403, 404)
    asked = as_researcher.post(cancel).content.decode()
    assert "Cancel “second”?" in asked and "you must fill in its form again" in asked
    assert fresh(step).state == "waiting", "one press does not lose what was typed"
    for _ in range(2):
        assert as_researcher.post(cancel, {"sure": "1"})["Location"] == there
    assert fresh(step).state == "cancelled"
    assert as_researcher.post(cancel)["Location"] == there, "a second press asks nothing"
    assert as_researcher.post(f"{there}/{step.pk + 1000}/cancel").status_code == 404


def test_a_step_of_a_project_is_in_no_chain_of_a_run(team, project, like):
    step = project_steps.add(team.researcher, project, like)
    answered = ApiClient(team.researcher).post(f"/runs/{like.pk}/chain", {"kind": "run", "behind": step.pk})
    assert answered.status_code == 404


def test_it_begins_with_the_model_of_the_run_it_is_like_though_another_has_its_name(team, project, like, model):
    step = project_steps.add(team.researcher, project, like, "later", "second")
    swap_names(model)
    judge(team, project, (2, 2), (1, 1), (-1, -1), (1, 1))
    project_steps.take_up(project.pk)
    assert fresh(step).run.model == model
