"""The list *Needs attention* of the first page: each entry is shown only as long as it applies, and the cost does not grow."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.team import ApiClient
from tests.webapp.annotation.conftest import make_version
from tests.webapp.experiments.conftest import launch, model, version  # noqa: F401 - fixtures
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401 - fixtures
from trainer.metrics.claims import PLANS
from webapp import needs
from webapp.accounts.models import Membership, User
from webapp.annotation.models import Comment, Project, Resolution, Task, TaskReview
from webapp.annotation.models import Job as ProjectJob
from webapp.annotation.projects import services as projects
from webapp.annotation.work import completion
from webapp.backups.models import Backup
from webapp.datasets.models import CurationJob, Example, ImportJob
from webapp.evaluation.launch import services as evaluations
from webapp.evaluation.models import Evaluation
from webapp.experiments import recipe_metrics
from webapp.experiments.models import ChainStep, ClaimStudy, Experiment, MetricPoint, Run, RunAlarm, RunJudge, Sweep
from webapp.judging.judges.services import create_judge
from webapp.weights.models import WeightsJob

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def titles(membership) -> list[str]:
    return [need.title for need in needs.rows_that_need_attention(membership).now]


def end(run: Run, state: str, ago: timedelta = timedelta(hours=1), **fields) -> Run:
    Run.objects.filter(pk=run.pk).update(state=state, ended_at=timezone.now() - ago, **fields)
    return run


@pytest.fixture
def project(team):
    fruit = make_version(team.owner, name="fruit", examples=6)
    made = projects.create(team.researcher, name="Colours", kind="pairwise", dataset=fruit)
    return projects.set_state(team.researcher, made, "open")


def reviewed(project: Project, agreement: float) -> Task:
    taken = Task.objects.filter(project=project).values("example")
    example = Example.objects.filter(dataset__name="fruit").exclude(pk__in=taken).order_by("pk")[0]
    task = Task.objects.create(
        project=project, example=example, rank=example.pk, overlap=2, completed_at=timezone.now()
    )
    TaskReview.objects.create(task=task, project=project, answers=[1, 2], agreement=agreement)
    return task


def test_kinds_without_rows_are_not_read(team):
    """One query says which kinds have rows. Two others count tasks to decide on and complete projects."""
    with CaptureQueriesContext(connection) as quiet:
        needs.rows_that_need_attention(team.researcher)
    Evaluation.objects.create(
        workspace=team.workspace, name="one", recipe="study", state="failed", ended_at=timezone.now()
    )
    with CaptureQueriesContext(connection) as failed:
        assert titles(team.researcher) == ["Evaluation “one” failed"]
    assert (len(quiet), len(failed)) == (3, 4)


def test_a_quiet_workspace_needs_nobody(team, as_researcher):
    assert needs.rows_that_need_attention(team.researcher) == needs.Needs([], [])
    page = as_researcher.get("/").content.decode()
    assert "Needs attention" not in page and "Since yesterday" not in page


def test_a_failed_run_is_named_with_its_reason_until_it_is_seen_to(team, as_researcher, launch):  # noqa: F811
    failed = end(launch(), "failed", state_reason="The disk is full.\nTraceback …")
    (need,) = needs.rows_that_need_attention(team.researcher).now
    assert need.title == f"Run {failed.number} of {failed.experiment.name} failed" and need.text == "The disk is full."
    assert need.href == f"/runs/{failed.pk}/log" and need.tone == "bad"
    assert need.title in as_researcher.get("/").content.decode()
    end(launch(), "finished")
    assert titles(team.researcher) == [], "a later run of the experiment finished"


def test_an_archived_or_old_failure_is_nobodys_need(team, launch):  # noqa: F811
    end(launch(), "failed", archived_at=timezone.now())
    end(launch(), "failed", ago=timedelta(days=4))
    assert titles(team.researcher) == []


def test_scripts_read_the_same_lines(team, launch):  # noqa: F811
    failed, done = end(launch(), "failed", state_reason="The disk is full."), end(launch(experiment="b"), "finished")
    answer = ApiClient(team.reviewer).get("/needs").json()
    named = f"Run {failed.number} of {failed.experiment.name} failed"
    assert answer["now"] == [
        {"tone": "bad", "title": named, "text": "The disk is full.", "href": f"/runs/{failed.pk}/log"}
    ]
    assert [line["href"] for line in answer["news"]] == [f"/runs/{done.pk}"] and answer["waiting"] == []
    assert ApiClient(team.annotator).get("/needs").status_code == 403
    assert ApiClient(team.outsider).get("/needs").json()["now"] == []


def test_many_failures_share_a_line_that_leads_to_them(team, as_researcher, launch):  # noqa: F811
    for _ in range(4):
        last = end(launch(), "failed", state_reason="No memory.")
    (need,) = needs.rows_that_need_attention(team.researcher).now
    assert need.title == "4 runs failed" and "No memory." in need.text
    assert f'href="/runs/{last.pk}"' in as_researcher.get(need.href).content.decode(), "the query can be read"


def test_a_run_stands_still_when_no_step_ends_for_ten_of_its_steps(team, launch):  # noqa: F811
    run = launch()
    key = recipe_metrics.recipe_of(run.recipe).pulse.key
    began, last = timezone.now() - timedelta(hours=2), timezone.now() - timedelta(minutes=30)
    Run.objects.filter(pk=run.pk).update(state="running", step=30, first_metric_at=began, heartbeat_at=timezone.now())
    MetricPoint.objects.create(run=run, key=key, step=30, value=1.0, time=last)
    (need,) = needs.rows_that_need_attention(team.researcher).now
    assert need.title.endswith("stands still") and need.text.startswith("No step has ended for 30 minutes.")
    Run.objects.filter(pk=run.pk).update(step=5)
    MetricPoint.objects.filter(run=run).update(step=5)
    assert titles(team.researcher) == [], "its steps take eighteen minutes each"


def test_a_blocked_run_needs_somebody_until_it_continues(team, as_researcher, launch, endpoint):  # noqa: F811
    run, why = launch(), "Step 4 waits. rubric: Strict v1 cannot be asked: the budget is used up."
    Run.objects.filter(pk=run.pk).update(state="blocked", state_reason=why)
    (need,) = needs.rows_that_need_attention(team.researcher).now
    assert (need.title, need.text) == (f"Run {run.number} of {run.experiment.name} is blocked", why)
    assert (need.href, need.tone) == (f"/runs/{run.pk}", "warn")
    judge = create_judge(team.researcher, name="Strict", spec={"kind": "criterion"}, endpoint=endpoint)
    RunJudge.objects.create(run=run, version=judge, problem=why)
    assert needs.rows_that_need_attention(team.researcher).now[0].href == f"/runs/{run.pk}#judges"
    assert why in as_researcher.get("/").content.decode()
    Run.objects.filter(pk=run.pk).update(state="running")
    assert titles(team.researcher) == []


def test_many_blocked_runs_share_a_line_that_leads_to_them(team, as_researcher, launch):  # noqa: F811
    rows = [launch() for _ in range(4)]
    Run.objects.filter(pk__in=[run.pk for run in rows]).update(state="blocked", state_reason="No GPU is free.")
    (need,) = needs.rows_that_need_attention(team.researcher).now
    assert need.title == "4 runs are blocked" and "No GPU is free." in need.text
    assert f'href="/runs/{rows[0].pk}"' in as_researcher.get(need.href).content.decode()


def sweep_of(team, **fields) -> Sweep:
    where, _ = Experiment.objects.get_or_create(workspace=team.workspace, name="rates")
    plain = {"recipe": "policy", "config": {}, "dataset": 1, "version": 1, "axes": [], "method": "grid"}
    plain |= {"metric": "m", "higher": True, "seeds": 1, "wanted": 3, "at_once": 1, "name": "Rates"}
    return Sweep.objects.create(workspace=team.workspace, experiment=where, **plain | fields)


def job_of(team, **fields) -> WeightsJob:
    key = f"{WeightsJob.objects.count()}"
    return WeightsJob.objects.create(workspace=team.workspace, kind="export", title="Export of m", key=key, **fields)


def test_failed_sweeps_jobs_and_curations_are_named_until_somebody_deals_with_them(team, version, as_researcher):  # noqa: F811
    ended = {"state": "failed", "ended_at": NOW - timedelta(hours=1)}
    sweep = sweep_of(team, state_reason="Nobody may launch its runs.", **ended)
    job = job_of(team, problem="The model does not fit.", **ended)
    evaluation = Evaluation.objects.create(workspace=team.workspace, name="e", recipe="study")
    evaluation.jobs.add(job_of(team, problem="told by the evaluation", **ended))
    plain = {"version": version, "kind": "leaks"}
    curation = CurationJob.objects.create(state="failed", error="No room.\nTraceback", finished_at=NOW, **plain)
    found = {need.title: (need.text, need.href) for need in needs.rows_that_need_attention(team.researcher).now}
    assert found == {
        "Sweep “Rates” failed": ("Nobody may launch its runs.", f"/experiments/sweeps/{sweep.pk}"),
        "Job “Export of m” failed": ("The model does not fit.", f"/jobs/{job.pk}"),
        f"Curation “Find leaks: {version}” failed": ("No room.", f"/curations/{curation.pk}"),
    }
    page = as_researcher.get("/").content.decode()
    assert all(title in page for title in found)
    CurationJob.objects.create(state="finished", finished_at=NOW, **plain)
    Sweep.objects.update(state="running", ended_at=None)
    WeightsJob.objects.update(state="queued", ended_at=None)
    assert titles(team.researcher) == []


def test_steps_and_claims_that_could_not_be_launched_need_somebody(team, launch):  # noqa: F811
    run, gone = launch(), launch()
    plain = {"workspace": team.workspace, "kind": "run", "asked": {}, "decided_at": NOW}
    ChainStep.objects.create(after=run, name="DPO", state="refused", reason="The dataset was deleted", **plain)
    ChainStep.objects.create(after=run, name="taken back", state="cancelled", **plain)
    ChainStep.objects.create(after=gone, name="old", state="refused", **plain)
    end(gone, "stopped", archived_at=NOW)
    study = ClaimStudy.objects.create(workspace=team.workspace, plan="toggle", state="refused", problem="No model.")
    first, second = needs.rows_that_need_attention(team.researcher).now
    assert first.title == f"“DPO” after run {run.number} of {run.experiment.name} could not be launched"
    assert (first.text, first.href) == ("The dataset was deleted", f"/runs/{run.pk}/chain")
    assert second.title == f"The runs of the claim “{PLANS['toggle'].title}” could not be launched"
    assert (second.text, second.href) == ("No model.", f"/experiments/claims/{study.pk}")
    ClaimStudy.objects.update(state="waiting")
    assert titles(team.researcher) == [first.title]


def test_a_step_that_waited_for_a_project_leads_to_the_project(team, project):
    plain = {"workspace": team.workspace, "kind": "run", "asked": {}, "decided_at": NOW}
    ChainStep.objects.create(project=project, name="RM", state="refused", reason="Nobody may launch it", **plain)
    (need,) = needs.rows_that_need_attention(team.researcher).now
    assert need.title == "“RM” after the project “Colours” could not be launched"
    assert (need.text, need.href) == ("Nobody may launch it", f"/projects/{project.pk}")


def test_an_evaluation_that_paused_by_itself_needs_somebody_and_one_that_a_person_paused_does_not(team):
    plain = {"workspace": team.workspace, "recipe": "study"}
    made = Evaluation.objects.create(name="Judges", state="paused", problem="The budget is spent. Resume it.", **plain)
    waits = Evaluation.objects.create(name="e", state="queued", problem="Waits for run 7", **plain)
    evaluations.move(team.researcher, waits, "paused")
    (need,) = needs.rows_that_need_attention(team.researcher).now
    assert (need.title, need.text) == ("Evaluation “Judges” paused", "The budget is spent. Resume it.")
    assert (need.href, need.tone) == (f"/evaluations/{made.pk}", "warn")
    evaluations.move(team.researcher, made, "queued")
    assert titles(team.researcher) == []


def test_the_last_backup_is_named_if_it_failed_to_owners_who_are_administrators(team):
    User.objects.filter(pk__in=[team.owner.user_id, team.researcher.user_id]).update(is_administrator=True)
    owner, researcher = (Membership.objects.get(pk=each.pk) for each in (team.owner, team.researcher))
    Backup.objects.create(folder="/b", origin="schedule", state="failed", open=None, problem="The disk is full.")
    (need,) = needs.rows_that_need_attention(owner).now
    assert (need.title, need.text) == ("The last backup failed", "The disk is full.")
    assert need.href == "/installation/backups" and titles(researcher) == []
    User.objects.update(is_administrator=False)
    assert titles(Membership.objects.get(pk=owner.pk)) == []
    User.objects.filter(pk=owner.user_id).update(is_administrator=True)
    Backup.objects.create(folder="/b", origin="page", state="finished", open=None)
    assert titles(Membership.objects.get(pk=owner.pk)) == []


def test_sweeps_imports_and_complete_projects_are_news(team, project):
    rates = sweep_of(team, state="finished", ended_at=NOW)
    rates.trials.create(number=1, values={}, digest="1", asked=0, state="finished")
    sweep_of(team, state="finished", ended_at=NOW - timedelta(days=2), name="old")
    plain = {"workspace": team.workspace, "state": "finished", "finished_at": NOW}
    ImportJob.objects.create(dataset_name="pairs", rows_done=1200, **plain)
    with transaction.atomic():
        completion.announce_complete(project)
    found = {news.title: news.text for news in needs.rows_that_need_attention(team.researcher).news}
    assert found == {
        "Sweep “Rates” finished": "3 trials.",
        "Import “pairs” finished": "1,200 rows.",
        "Project “Colours” has all its answers": "",
    }
    for _ in range(3):
        ImportJob.objects.create(dataset_name="pairs", **plain)
    assert "4 imports finished" in [news.title for news in needs.rows_that_need_attention(team.researcher).news]
    Task.objects.filter(pk=reviewed(project, 1.0).pk).update(overlap=2, taken=0)
    assert "Project “Colours” has all its answers" not in [
        news.title for news in needs.rows_that_need_attention(team.researcher).news
    ]


def test_alarms_of_a_run_share_a_line(team, launch):  # noqa: F811
    run = launch()
    RunAlarm.objects.create(run=run, signal="length", step=4, content={}, time=NOW - timedelta(hours=2))
    RunAlarm.objects.create(run=run, signal="flattery", step=9, content={}, time=NOW - timedelta(hours=1))
    (need,) = needs.rows_that_need_attention(team.researcher).now
    assert "step 9" in need.text and "1 more alarm" in need.text and need.href == f"/runs/{run.pk}#alarms"


def test_failed_work_of_other_kinds_is_named_and_drops_out_when_it_is_repeated(team, project):
    ended = {"ended_at": NOW - timedelta(hours=1)}
    evaluation = Evaluation.objects.create(
        workspace=team.workspace, name="Judges", recipe="study", state="failed", problem="No answer.", **ended
    )
    ImportJob.objects.create(
        workspace=team.workspace, dataset_name="pairs", state="failed", error="Not JSON.", finished_at=NOW
    )
    ProjectJob.objects.create(project=project, kind="publish", state="failed", problem="No labels.", finished_at=NOW)
    found = {need.title: need.text for need in needs.rows_that_need_attention(team.researcher).now}
    assert found == {
        "Evaluation “Judges” failed": "No answer.",
        "Import “pairs” failed": "Not JSON.",
        "“Publish” failed in “Colours”": "No labels.",
    }
    Evaluation.objects.create(workspace=team.workspace, name="Judges", recipe="study", rerun_of=evaluation)
    ImportJob.objects.create(workspace=team.workspace, dataset_name="pairs", state="finished", finished_at=NOW)
    ProjectJob.objects.update(state="finished")
    assert titles(team.researcher) == []


def test_tasks_without_a_decision_are_counted_by_whether_people_agree(team, project):
    apart, alike = reviewed(project, 0.0), reviewed(project, 1.0)
    (need,) = needs.rows_that_need_attention(team.researcher).now
    assert need.title == "1 task of “Colours” to decide" and "On 1 more task they agree" in need.text
    Resolution.objects.create(task=apart, project=project, source="consolidated", content={})
    (need,) = needs.rows_that_need_attention(team.researcher).now
    assert need.title == "1 task of “Colours” to accept"
    Resolution.objects.create(task=alike, project=project, source="consolidated", content={})
    assert titles(team.researcher) == []


def test_an_open_remark_needs_somebody(team, project):
    remark = Comment.objects.create(
        project=project, task=reviewed(project, 1.0), author=team.annotator.user, kind="remark", text="Both are wrong."
    )
    assert "1 remark on “Colours”" in titles(team.researcher)
    Comment.objects.filter(pk=remark.pk).update(resolved_at=timezone.now())
    assert "1 remark on “Colours”" not in titles(team.researcher)


def test_what_finished_since_yesterday_is_news(team, as_researcher, launch):  # noqa: F811
    run = end(launch(), "finished", summary={"eval/rubric_score:first": 0.2, "eval/rubric_score": 0.6})
    end(launch(), "finished", ago=timedelta(days=2))
    (news,) = needs.rows_that_need_attention(team.researcher).news
    assert news.href == f"/runs/{run.pk}" and "0.600, 0.200 at first" in news.text
    page = as_researcher.get("/").content.decode()
    assert "Since yesterday" in page and "Needs attention" not in page
    for _ in range(4):
        last = end(launch(name="Twice as fast"), "finished")
    (news,) = needs.rows_that_need_attention(team.researcher).news
    assert (news.title, news.text) == ("5 runs finished", f"The last is “Twice as fast” of {last.experiment.name}.")


def test_a_sweep_without_any_value_is_a_warning_and_its_failed_runs_are_counted(team, launch):  # noqa: F811
    def told() -> tuple[str, str]:
        (news,) = needs.rows_that_need_attention(team.researcher).news
        return news.tone, news.text

    rates = sweep_of(team, state="finished", ended_at=NOW, wanted=2)
    for number in (1, 2):
        trial = rates.trials.create(number=number, values={}, digest=f"{number}", asked=0, state="lost")
        for seed in (0, 1):
            trial.runs.create(run=end(launch(), "failed"), seed=seed)
    assert told() == ("warn", "2 trials, 2 with failed runs.")
    Run.objects.filter(swept__trial=trial).update(state="stopped")
    assert told() == ("warn", "2 trials, 1 with failed runs, none with a value.")
    rates.trials.filter(pk=trial.pk).update(state="finished")
    assert told() == ("good", "2 trials, 1 with failed runs.")


def test_nothing_of_another_workspace_is_told(team, launch, project):  # noqa: F811
    end(launch(), "failed")
    reviewed(project, 0.0)
    assert needs.rows_that_need_attention(team.outsider) == needs.Needs([], [])


def test_the_queries_do_not_grow(team, project, launch, django_assert_num_queries):  # noqa: F811
    def fill() -> None:
        sweep_of(team, state="failed", ended_at=timezone.now())
        sweep_of(team, state="finished", ended_at=timezone.now())
        job_of(team, state="failed", ended_at=timezone.now())
        CurationJob.objects.create(version=project.version, kind="leaks", state="failed", finished_at=timezone.now())
        plain = {"workspace": team.workspace, "kind": "run", "asked": {}, "decided_at": timezone.now()}
        ChainStep.objects.create(after=launch(), name="DPO", state="refused", **plain)
        ClaimStudy.objects.create(workspace=team.workspace, plan="toggle", state="refused")
        Evaluation.objects.create(workspace=team.workspace, name="p", recipe="study", state="paused", problem="Spent.")
        ImportJob.objects.create(
            workspace=team.workspace, dataset_name="pairs", state="finished", finished_at=timezone.now()
        )
        end(launch(), "failed")
        end(launch(), "stopped")
        RunAlarm.objects.create(run=launch(), signal="length", step=4, content={}, time=timezone.now())
        reviewed(project, 0.0)

    fill()
    with django_assert_num_queries(13) as few:
        needs.rows_that_need_attention(team.researcher)
    fill()
    with django_assert_num_queries(len(few)):
        needs.rows_that_need_attention(team.researcher)


def test_evaluations_that_stand_in_the_line_are_told_beside_the_runs(team, as_researcher):
    for number in range(3):
        name, why = f"e{number}", f"Waits for run {number}"
        given = {"workspace": team.workspace, "name": name, "recipe": "generate", "benchmark": "b", "state": "queued"}
        Evaluation.objects.create(problem=why, priority=number == 2, **given)
    Evaluation.objects.create(**{**given, "name": "has no worker yet"})
    first, *_ = found = needs.rows_that_need_attention(team.researcher).waiting
    assert [each.title for each in found] == [f"Evaluation “e{number}” waits" for number in (2, 0, 1)]
    assert first.text == "Waits for run 2" and needs.rows_that_need_attention(team.outsider).waiting == []
    assert "Waits for run 1" in as_researcher.get("/").content.decode()
    Evaluation.objects.create(**given, problem="Waits")
    (one,) = needs.rows_that_need_attention(team.researcher).waiting
    assert (one.title, one.href) == ("4 evaluations wait", "/experiments/line")
