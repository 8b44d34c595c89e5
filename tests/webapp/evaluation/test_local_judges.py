"""Judges with local weights over a dataset. A job of the cluster asks them, once, also if a process dies."""

import json

import pytest
from django.utils import timezone

from tests.team import browser
from tests.webapp.usage.usage_rows import usage_rows
from tests.webapp.weights.conftest import Process
from trainer.judges.calls import read
from trainer.judges.inputs import of_example
from trainer.judges.spec import resolve
from webapp.evaluation import queries
from webapp.evaluation.launch import services
from webapp.evaluation.models import Evaluation
from webapp.evaluation.recipes.base import ClusterWaiting
from webapp.evaluation.sources import judges
from webapp.evaluation.work import running
from webapp.inference.endpoints import services as endpoints
from webapp.inference.models import EndpointTrouble, RegisteredModel
from webapp.judging.judges.services import create_judge
from webapp.judging.models import Verdict
from webapp.weights import services as weights
from webapp.weights.models import WeightsItem, WeightsJob, WeightsResult

pytestmark = pytest.mark.django_db
State = Evaluation.State


@pytest.fixture(autouse=True)
def no_child(settings):
    settings.JUDGE_COMMAND = ["/nowhere/python"]


@pytest.fixture
def local(team):
    model = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="a/b")
    return endpoints.create_endpoint(team.researcher, "local", name="l", registered_model=model.pk)


@pytest.fixture
def judge(team, local):
    spec = {"kind": "pairwise", "order": "both", "retries": 0}
    return create_judge(team.researcher, name="Here", spec=spec, endpoint=local)


def begun(team, version, judge, **config) -> Evaluation:
    config = {"judges": [{"version": judge.pk}], **config}
    return services.create(team.researcher, recipe="judge_audit", config=config, dataset=version)


def carried_on(row: Evaluation) -> float | None:
    delay = running.run(row.pk)
    row.refresh_from_db()
    return delay


def started(job: WeightsJob) -> Process:
    job.refresh_from_db()
    WeightsJob.objects.filter(pk=job.pk, state="queued").update(
        state="starting", ray_job_id=f"weights-{job.pk}-{job.attempt}", next_try_at=None
    )
    return Process(job)


def items(process: Process, after: int = 0) -> list[dict]:
    return [json.loads(line) for line in b"".join(process.get(f"/items?after={after}")).decode().split("\n") if line]


def verdict(item: dict, state: str = "done", problem: str = "") -> dict:
    """Prefers the response that is shown first."""
    raw = json.dumps({"reasons": ["It is first."], "verdict": "A"}) if state == "done" else ""
    parsed = read(resolve({"kind": "pairwise"}), item["subject"], raw).parsed
    told = {"state": state, "parsed": parsed, "raw": raw, "problem": problem}
    return {**item, **told, "prompt_tokens": 10, "cached_tokens": 4, "completion_tokens": 5, "latency_s": 0.5}


def answered(job: WeightsJob) -> None:
    process = started(job)
    told = process.get().json()
    found = [verdict(item) for item in items(process, told["done"])]
    assert process.post(told["acked"] + 1, *found).status_code == 200
    assert process.post(state="finished").status_code == 200


def test_a_job_asks_while_no_thread_waits_and_its_verdicts_are_in_the_store(team, version, judge):
    row = begun(team, version, judge, resources={"gpus": 1.0})
    assert carried_on(row) == running.LOOK_AGAIN_S and row.state == State.QUEUED
    job = row.jobs.get()
    assert (job.kind, job.total, job.model, job.version) == ("judge", 8, judge.endpoint.registered_model, version)
    assert job.params["resources"]["gpus"] == 1.0 and job.next_try_at is not None
    assert carried_on(row) == running.LOOK_AGAIN_S and row.progress["phase"] == "waiting for the cluster"
    process = started(job)
    told = process.get().json()
    assert told["params"]["spec"]["kind"] == "pairwise" and told["params"]["yes_no"] is False
    assert told["models"]["model"]["path"] == "a/b" and told["total"] == 8
    asked = items(process)
    assert process.post(1, *map(verdict, asked[:3]), phase="judging").json() == {"acked": 1, "command": "continue"}
    assert process.post(1, *map(verdict, asked[:3])).json()["acked"] == 1
    assert Verdict.objects.filter(version=judge).count() == WeightsResult.objects.count() == 3
    assert WeightsItem.objects.count() == 5, "what is stored is not kept twice"
    assert carried_on(row) == running.LOOK_AGAIN_S
    assert (row.progress["phase"], row.progress["done"], row.progress["total"]) == ("judging on the cluster", 3, 8)
    assert items(process, 3) == asked[3:]
    process.post(2, *map(verdict, asked[3:]))
    process.post(state="finished")
    assert carried_on(row) is None and row.state == State.FINISHED, row.problem
    assert row.results["entries"][0]["judge_version"] == judge.pk
    assert usage_rows() == [("evaluation", row.pk, 8, team.researcher.user_id)]
    stored = Verdict.objects.filter(version=judge).first()
    assert stored.request["messages"] and stored.latency_ms == 500 and stored.prompt_tokens == 10
    judge.endpoint.refresh_from_db()
    assert judge.endpoint.first_used_at and not WeightsItem.objects.exists()
    page = browser(team.researcher).get(f"/jobs/{job.pk}").content.decode()
    assert "Here v1" in page and f"/evaluations/{row.pk}" in page and "8 answered; 120 tokens" in page
    again = services.rerun(team.researcher, row)
    assert carried_on(again) is None and not again.jobs.exists(), "what is stored is not asked again"
    assert again.results == row.results


@pytest.mark.parametrize("fails", [False, True])
def test_once_its_job_is_over_its_progress_has_all_that_the_job_has_done(team, version, judge, fails):
    row = begun(team, version, judge, budget={"tokens": 1000})
    carried_on(row)
    process = started(row.jobs.get())
    asked = items(process)
    process.post(1, *map(verdict, asked[:3]), phase="judging")
    carried_on(row)
    assert (row.progress["phase"], row.progress["done"], row.progress["total"]) == ("judging on the cluster", 3, 8)
    process.post(2, *map(verdict, asked[3:5] if fails else asked[3:]))
    process.post(state="failed" if fails else "finished", reason="It was killed" if fails else "")
    assert carried_on(row) is None and row.state == (State.PAUSED if fails else State.FINISHED), row.problem
    done = 5 if fails else 8
    assert (row.progress["phase"], row.progress["done"], row.progress["total"]) == ("judging on the cluster", done, 8)
    assert row.progress["spent"]["tokens"] == done * 15


def test_a_killed_job_goes_on_behind_what_is_stored(team, version, judge):
    row = begun(team, version, judge)
    carried_on(row)
    job = row.jobs.get()
    process = started(job)
    asked = items(process)
    process.post(1, *map(verdict, asked[:3]))
    WeightsJob.objects.filter(pk=job.pk).update(state="failed", problem="It was killed")
    assert carried_on(row) is None and row.state == State.PAUSED
    assert "The job of Here v1 has failed: It was killed" in row.problem
    services.move(team.researcher, row, State.QUEUED)
    assert carried_on(row) == running.LOOK_AGAIN_S
    job.refresh_from_db()
    assert (job.attempt, job.state, job.done, job.total) == (2, "queued", 3, 8)
    assert process.post(2, verdict(asked[3])).status_code == 401, "the first attempt is fenced"
    again = started(job)
    assert {each["key"] for each in items(again, 3)} == {each["key"] for each in asked[3:]}
    answered(job)
    assert carried_on(row) is None and row.state == State.FINISHED, row.problem
    assert Verdict.objects.filter(version=judge, state="done").count() == 8


def test_the_jobs_own_retry_goes_on_and_the_evaluation_takes_what_it_found(team, version, judge):
    row = begun(team, version, judge)
    carried_on(row)
    job = row.jobs.get()
    process = started(job)
    process.post(1, *map(verdict, items(process)[:3]))
    process.post(state="stopped", reason="")
    assert carried_on(row) is None and row.state == State.PAUSED
    job.refresh_from_db()
    weights.retry(job, team.researcher.user)
    answered(job)
    services.move(team.researcher, row, State.QUEUED)
    assert carried_on(row) is None and row.state == State.FINISHED and row.jobs.get().attempt == 2


def test_pausing_stops_the_job_and_another_evaluation_has_its_own(team, version, judge):
    one, two = begun(team, version, judge), begun(team, version, judge)
    carried_on(one), carried_on(two)
    assert one.jobs.get() != two.jobs.get()
    services.move(team.researcher, one, State.PAUSED)
    assert (one.jobs.get().state, two.jobs.get().state) == ("stopped", "queued")
    answered(two.jobs.get())
    assert carried_on(two) is None and two.state == State.FINISHED
    services.move(team.researcher, one, State.QUEUED)
    assert carried_on(one) is None and one.state == State.FINISHED, "the other one has asked everything"


def test_resumed_while_its_job_still_stops_it_goes_on_once_it_has(team, version, judge):
    row = begun(team, version, judge)
    carried_on(row)
    process = started(row.jobs.get())
    asked = items(process)
    process.post(1, *map(verdict, asked[:3]))
    services.move(team.researcher, row, State.PAUSED)
    services.move(team.researcher, row, State.QUEUED)
    assert row.jobs.get().state == "stopping"
    assert carried_on(row) == running.LOOK_AGAIN_S and row.state == State.QUEUED
    process.post(state="stopped")
    assert carried_on(row) == running.LOOK_AGAIN_S and row.state == State.QUEUED and row.problem
    assert (row.jobs.get().state, row.jobs.get().attempt) == ("queued", 2)
    answered(row.jobs.get())
    assert carried_on(row) is None and row.state == State.FINISHED, row.problem


def test_a_worker_that_dies_between_questions_fills_the_job_anew(team, version, judge, monkeypatch):
    row = begun(team, version, judge)
    first = weights._first_attempt
    monkeypatch.setattr(weights, "_first_attempt", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        work = running.RecipeWork(Evaluation.objects.get(pk=row.pk))
        work.begin()
        work._by_job(judge, examples_of(version), "asking", 0)
    assert WeightsItem.objects.count() == 8 and WeightsJob.objects.get().next_try_at is None
    monkeypatch.setattr(weights, "_first_attempt", first)
    with pytest.raises(ClusterWaiting):
        work._by_job(judge, examples_of(version), "asking", 0)
    job = WeightsJob.objects.get()
    assert WeightsItem.objects.count() == job.total == 8 and job.next_try_at <= timezone.now()


def examples_of(version):
    return [of_example(example, pair=True) for example in queries.examples(version)]


def test_what_failed_is_counted_and_asked_again_only_by_another_run(team, version, judge):
    row = begun(team, version, judge)
    carried_on(row)
    process = started(row.jobs.get())
    first, *rest = items(process)
    long = "context_overflow: the call needs 9 tokens and tiny sees 8"
    process.post(1, verdict(first, "failed", long), *map(verdict, rest))
    process.post(state="finished")
    assert carried_on(row) is None and row.state == State.FINISHED, row.problem
    assert row.jobs.get().outcome["failed"] == 1 and EndpointTrouble.objects.get().code == "context_overflow"
    again = services.rerun(team.researcher, row)
    assert carried_on(again) == running.LOOK_AGAIN_S
    assert again.jobs.get().total == 1
    answered(again.jobs.get())
    carried_on(again)
    assert again.state == State.FINISHED and not Verdict.objects.filter(state="failed").exists()


def test_a_verdict_under_the_key_of_another_question_is_refused(team, version, judge):
    row = begun(team, version, judge)
    carried_on(row)
    process = started(row.jobs.get())
    one, two, *_ = items(process)
    answer = process.post(1, {**verdict(one), "record": two["record"]})
    assert answer.status_code == 422 and not Verdict.objects.exists() and row.jobs.get().done == 0


def test_a_budget_counts_what_jobs_have_used(team, version, judge):
    row = begun(team, version, judge, budget={"tokens": 1000})
    carried_on(row)
    job = row.jobs.get()
    process = started(job)
    assert process.get().json()["params"]["budget"] == {"tokens": 1000, "money": None}
    process.post(1, *map(verdict, items(process)[:2]))
    assert process.get().json()["params"]["budget"] == {"tokens": 970, "money": None}
    process.post(state="stopped", reason="The budget is used up: 30 of 1,000 tokens are spent.")
    assert carried_on(row) is None and row.state == State.PAUSED and "The budget is used up" in row.problem
    assert row.progress["spent"]["tokens"] == 30
    services.move(team.researcher, row, State.QUEUED)
    carried_on(row)
    assert started(job).get().json()["params"]["budget"] == {"tokens": 970, "money": None}
    assert row.progress["spent"]["tokens"] == 30, "not counted twice"
    assert judges.spent_by_jobs(row)[0] == 30


def test_an_archived_endpoint_pauses_or_fails_before_any_job(team, version, judge, local):
    endpoints.archive(team.researcher, local)
    row = begun(team, version, judge)
    assert carried_on(row) is None and row.state == State.FAILED and "archived" in row.problem
    assert not WeightsJob.objects.exists()
