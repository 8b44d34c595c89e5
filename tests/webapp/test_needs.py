"""The list *Needs you* of the first page: each entry is shown only as long as it applies, and the cost does not grow."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.webapp.annotation.conftest import make_version
from tests.webapp.experiments.conftest import launch, model, version  # noqa: F401 - fixtures
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401 - fixtures
from webapp import needs
from webapp.annotation.models import Comment, Project, Resolution, Task, TaskReview
from webapp.annotation.models import Job as ProjectJob
from webapp.annotation.projects import services as projects
from webapp.datasets.models import Example, ImportJob
from webapp.evaluation.models import Evaluation
from webapp.experiments import recipe_metrics
from webapp.experiments.models import MetricPoint, Run, RunAlarm, RunJudge
from webapp.judging.judges.services import create_judge

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def titles(membership) -> list[str]:
    return [need.title for need in needs.of(membership).now]


def end(run: Run, state: str, ago: timedelta = timedelta(hours=1), **fields) -> Run:
    Run.objects.filter(pk=run.pk).update(state=state, ended_at=timezone.now() - ago, **fields)
    return run


@pytest.fixture
def project(cast):
    fruit = make_version(cast.owner, name="fruit", examples=6)
    made = projects.create(cast.researcher, name="Colours", kind="pairwise", dataset=fruit)
    return projects.set_state(cast.researcher, made, "open")


def reviewed(project: Project, agreement: float) -> Task:
    taken = Task.objects.filter(project=project).values("example")
    example = Example.objects.filter(dataset__name="fruit").exclude(pk__in=taken).order_by("pk")[0]
    task = Task.objects.create(
        project=project, example=example, rank=example.pk, overlap=2, completed_at=timezone.now()
    )
    TaskReview.objects.create(task=task, project=project, answers=[1, 2], agreement=agreement)
    return task


def test_a_quiet_workspace_needs_nobody(cast, as_researcher):
    assert needs.of(cast.researcher) == needs.Needs([], [])
    page = as_researcher.get("/").content.decode()
    assert "Needs you" not in page and "Since yesterday" not in page


def test_a_failed_run_is_named_with_its_reason_until_it_is_seen_to(cast, as_researcher, launch):  # noqa: F811
    failed = end(launch(), "failed", state_reason="The disk is full.\nTraceback …")
    (need,) = needs.of(cast.researcher).now
    assert need.title == f"Run {failed.number} of {failed.experiment.name} failed" and need.text == "The disk is full."
    assert need.href == f"/runs/{failed.pk}/log" and need.tone == "bad"
    assert need.title in as_researcher.get("/").content.decode()
    end(launch(), "finished")
    assert titles(cast.researcher) == [], "a later run of the experiment finished"


def test_an_archived_or_old_failure_is_nobodys_need(cast, launch):  # noqa: F811
    end(launch(), "failed", archived_at=timezone.now())
    end(launch(), "failed", ago=timedelta(days=4))
    assert titles(cast.researcher) == []


def test_many_failures_share_a_line_that_leads_to_them(cast, as_researcher, launch):  # noqa: F811
    for _ in range(4):
        last = end(launch(), "failed", state_reason="No memory.")
    (need,) = needs.of(cast.researcher).now
    assert need.title == "4 runs failed" and "No memory." in need.text
    assert f'href="/runs/{last.pk}"' in as_researcher.get(need.href).content.decode(), "the query can be read"


def test_a_run_stands_still_when_no_step_ends_for_ten_of_its_steps(cast, launch):  # noqa: F811
    run = launch()
    key = recipe_metrics.recipe_of(run.recipe).pulse.key
    began, last = timezone.now() - timedelta(hours=2), timezone.now() - timedelta(minutes=30)
    Run.objects.filter(pk=run.pk).update(state="running", step=30, first_metric_at=began, heartbeat_at=timezone.now())
    MetricPoint.objects.create(run=run, key=key, step=30, value=1.0, time=last)
    (need,) = needs.of(cast.researcher).now
    assert need.title.endswith("stands still") and need.text.startswith("No step has ended for 30 minutes.")
    Run.objects.filter(pk=run.pk).update(step=5)
    MetricPoint.objects.filter(run=run).update(step=5)
    assert titles(cast.researcher) == [], "its steps take eighteen minutes each"


def test_a_blocked_run_needs_somebody_until_it_continues(cast, as_researcher, launch, endpoint):  # noqa: F811
    run, why = launch(), "Step 4 waits. rubric: Strict v1 cannot be asked: the budget is used up."
    Run.objects.filter(pk=run.pk).update(state="blocked", state_reason=why)
    (need,) = needs.of(cast.researcher).now
    assert (need.title, need.text) == (f"Run {run.number} of {run.experiment.name} is blocked", why)
    assert (need.href, need.tone) == (f"/runs/{run.pk}", "warn")
    judge = create_judge(cast.researcher, name="Strict", spec={"kind": "criterion"}, endpoint=endpoint)
    RunJudge.objects.create(run=run, version=judge, problem=why)
    assert needs.of(cast.researcher).now[0].href == f"/runs/{run.pk}#judges"
    assert why in as_researcher.get("/").content.decode()
    Run.objects.filter(pk=run.pk).update(state="running")
    assert titles(cast.researcher) == []


def test_many_blocked_runs_share_a_line_that_leads_to_them(cast, as_researcher, launch):  # noqa: F811
    rows = [launch() for _ in range(4)]
    Run.objects.filter(pk__in=[run.pk for run in rows]).update(state="blocked", state_reason="No GPU is free.")
    (need,) = needs.of(cast.researcher).now
    assert need.title == "4 runs are blocked" and "No GPU is free." in need.text
    assert f'href="/runs/{rows[0].pk}"' in as_researcher.get(need.href).content.decode()


def test_alarms_of_a_run_share_a_line(cast, launch):  # noqa: F811
    run = launch()
    RunAlarm.objects.create(run=run, signal="length", step=4, content={}, time=NOW - timedelta(hours=2))
    RunAlarm.objects.create(run=run, signal="flattery", step=9, content={}, time=NOW - timedelta(hours=1))
    (need,) = needs.of(cast.researcher).now
    assert "step 9" in need.text and "1 more alarm" in need.text and need.href == f"/runs/{run.pk}#alarms"


def test_failed_work_of_other_kinds_is_named_and_drops_out_when_it_is_repeated(cast, project):
    ended = {"ended_at": NOW - timedelta(hours=1)}
    evaluation = Evaluation.objects.create(
        workspace=cast.workspace, name="Judges", recipe="study", state="failed", problem="No answer.", **ended
    )
    ImportJob.objects.create(
        workspace=cast.workspace, dataset_name="pairs", state="failed", error="Not JSON.", finished_at=NOW
    )
    ProjectJob.objects.create(project=project, kind="publish", state="failed", problem="No labels.", finished_at=NOW)
    found = {need.title: need.text for need in needs.of(cast.researcher).now}
    assert found == {
        "Evaluation “Judges” failed": "No answer.",
        "Import “pairs” failed": "Not JSON.",
        "“Publish” failed in “Colours”": "No labels.",
    }
    Evaluation.objects.create(workspace=cast.workspace, name="Judges", recipe="study", rerun_of=evaluation)
    ImportJob.objects.create(workspace=cast.workspace, dataset_name="pairs", state="finished", finished_at=NOW)
    ProjectJob.objects.update(state="finished")
    assert titles(cast.researcher) == []


def test_tasks_without_a_decision_are_counted_by_whether_people_agree(cast, project):
    apart, alike = reviewed(project, 0.0), reviewed(project, 1.0)
    (need,) = needs.of(cast.researcher).now
    assert need.title == "1 task of “Colours” to decide" and "On 1 more task they agree" in need.text
    Resolution.objects.create(task=apart, project=project, source="consolidated", content={})
    (need,) = needs.of(cast.researcher).now
    assert need.title == "1 task of “Colours” to accept"
    Resolution.objects.create(task=alike, project=project, source="consolidated", content={})
    assert titles(cast.researcher) == []


def test_an_open_remark_needs_somebody(cast, project):
    remark = Comment.objects.create(
        project=project, task=reviewed(project, 1.0), author=cast.annotator.user, kind="remark", text="Both are wrong."
    )
    assert "1 remark on “Colours”" in titles(cast.researcher)
    Comment.objects.filter(pk=remark.pk).update(resolved_at=timezone.now())
    assert "1 remark on “Colours”" not in titles(cast.researcher)


def test_what_finished_since_yesterday_is_news(cast, as_researcher, launch):  # noqa: F811
    run = end(launch(), "finished", summary={"eval/rubric_score:first": 0.2, "eval/rubric_score": 0.6})
    end(launch(), "finished", ago=timedelta(days=2))
    (news,) = needs.of(cast.researcher).news
    assert news.href == f"/runs/{run.pk}" and "0.600, 0.200 at first" in news.text
    page = as_researcher.get("/").content.decode()
    assert "Since yesterday" in page and "Needs you" not in page


def test_nothing_of_another_workspace_is_told(cast, launch, project):  # noqa: F811
    end(launch(), "failed")
    reviewed(project, 0.0)
    assert needs.of(cast.outsider) == needs.Needs([], [])


def test_the_queries_do_not_grow(cast, project, launch, django_assert_num_queries):  # noqa: F811
    def fill() -> None:
        end(launch(), "failed")
        end(launch(), "stopped")
        RunAlarm.objects.create(run=launch(), signal="length", step=4, content={}, time=timezone.now())
        reviewed(project, 0.0)

    fill()
    with django_assert_num_queries(12) as few:
        needs.of(cast.researcher)
    fill()
    with django_assert_num_queries(len(few)):
        needs.of(cast.researcher)


def test_evaluations_that_stand_in_the_line_are_told_beside_the_runs(cast, as_researcher):
    for number in range(3):
        name, why = f"e{number}", f"Waits for run {number}"
        given = {"workspace": cast.workspace, "name": name, "recipe": "generate", "benchmark": "b", "state": "queued"}
        Evaluation.objects.create(problem=why, priority=number == 2, **given)
    Evaluation.objects.create(**{**given, "name": "has no worker yet"})
    first, *_ = found = needs.of(cast.researcher).waiting
    assert [each.title for each in found] == [f"Evaluation “e{number}” waits" for number in (2, 0, 1)]
    assert first.text == "Waits for run 2" and needs.of(cast.outsider).waiting == []
    assert "Waits for run 1" in as_researcher.get("/").content.decode()
    Evaluation.objects.create(**given, problem="Waits")
    (one,) = needs.of(cast.researcher).waiting
    assert (one.title, one.href) == ("4 evaluations wait", "/experiments/line")
