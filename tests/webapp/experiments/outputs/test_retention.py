"""Checkpoints are deleted by the rule of a workspace: only old ones that nothing needs, and none that somebody begins to need meanwhile."""

import threading
import time
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.concurrency import concurrently, somebody_waits
from tests.team import ApiClient, browser
from tests.timeouts import SECONDS
from trainer.contracts import ArtifactData
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict
from webapp.evaluation.models import Evaluation
from webapp.experiments import bulk
from webapp.experiments.launch import services as launch_services
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Artifact, ChainStep, ChainWait, CheckpointRule, MetricPoint, Run
from webapp.experiments.outputs import artifacts, exporting, starting_points
from webapp.experiments.outputs.retention import candidates, services
from webapp.experiments.outputs.retention.preview import preview
from webapp.inference.models import RegisteredModel
from webapp.reports import services as reports
from webapp.weights import jobs as weights_jobs
from webapp.weights.models import WeightsJob

STEPS = (1, 2, 3, 4)


@pytest.fixture
def old(launch) -> Run:
    return make_ended_run(launch())


def make_ended_run(run: Run, days: int = 40) -> Run:
    """A run of four checkpoints of 3 bytes that ended so long ago. The second is the best."""
    for step in STEPS:
        path = f"checkpoints/step-{step:06d}"
        Artifact.objects.create(run=run, step=step, role="checkpoint", path=path, bytes=3, digest="d" * 64)
        folder = artifacts.folder(run.id) / path
        folder.mkdir(parents=True)
        (folder / "state.json").write_text(f"{step}")
        score = 0.9 if step == 2 else 0.1 * step
        MetricPoint.objects.create(run=run, step=step, key="eval/rubric_score", value=score, time=timezone.now())
    Run.objects.filter(pk=run.pk).update(state="finished", step=4, ended_at=timezone.now() - timedelta(days=days))
    return Run.objects.with_names().get(pk=run.pk)


def rule(team, days=30) -> CheckpointRule:
    return services.change(team.owner, True, days)


def checkpoints_left(run: Run) -> list[int]:
    return [row.step for row in starting_points.checkpoints(run)][::-1]


def on_disk(run: Run) -> list[int]:
    return sorted(int(each.name[-6:]) for each in (artifacts.folder(run.pk) / "checkpoints").iterdir())


@pytest.mark.django_db
def test_the_last_and_the_best_stay_and_each_deletion_is_in_the_audit_log(team, old):
    found = preview(team.workspace.pk, 30)
    assert (found.runs, found.checkpoints, found.bytes, found.whole) == (1, 2, 6, True)
    assert dict(found.kept) == {"best": 1, "last": 1}
    services.work()
    assert checkpoints_left(old) == [1, 2, 3, 4]  # nobody has switched it on
    row = rule(team)
    services.work()
    assert checkpoints_left(old) == [2, 4] and on_disk(old) == [1, 2, 3, 4]
    services.work()
    assert on_disk(old) == [2, 4]
    told = AuditEntry.objects.filter(action="checkpoint.deleted", actor=None).order_by("id")
    assert [(entry.detail["run"], entry.detail["step"]) for entry in told] == [(old.pk, 1), (old.pk, 3)]
    row.refresh_from_db()
    assert (row.deleted, row.deleted_bytes) == (2, 6) and row.next_at > timezone.now()
    assert preview(team.workspace.pk, 30).checkpoints == 0


@pytest.mark.django_db
def test_young_runs_and_runs_under_way_lose_nothing(team, launch):
    young, running = make_ended_run(launch(), days=29), make_ended_run(launch())
    Run.objects.filter(pk=running.pk).update(state="running")
    rule(team)
    services.work()
    assert checkpoints_left(young) == checkpoints_left(running) == list(STEPS)


def marked(team, run):
    services.mark(team.researcher, run, True)


def reported(team, run):
    reports.create(team.researcher, "Saw", f"```chart\nmetric: reward/mean\nruns: {run.pk}\n```")


def evaluated(team, run):
    config = {"responses": [{"kind": "run", "run": run.pk}]}
    Evaluation.objects.create(workspace=team.workspace, name="e", recipe="policy", config=config, benchmark="b")


def awaited(team, run):
    ChainStep.objects.create(after=run, workspace=team.workspace, kind="run", asked={})


def joined(team, run):
    other = Run.objects.create(
        experiment=run.experiment,
        number=99,
        recipe="policy",
        config={},
        dataset_version=run.dataset_version,
        model=run.model,
    )
    step = ChainStep.objects.create(after=other, workspace=team.workspace, kind="run", asked={})
    ChainWait.objects.create(step=step, run=run)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("needed", "why"),
    [
        (marked, "marked"),
        (reported, "reported"),
        (evaluated, "evaluated"),
        (awaited, "awaited"),
        (joined, "awaited"),
    ],
)
def test_a_run_that_something_needs_keeps_all(team, old, needed, why):
    needed(team, old)
    rule(team)
    services.work()
    assert checkpoints_left(old) == list(STEPS) and preview(team.workspace.pk, 30).checkpoints == 0
    assert preview(team.workspace.pk, 30).kept[why] == 2


def registered(team, run, step=1):
    model = RegisteredModel.objects.create(workspace=team.workspace, name="of 1", source="run", path="/o")
    path = f"outputs/policy-step-{step}"
    Artifact.objects.create(run=run, step=step, role="model", path=path, bytes=1, digest="m", registered=model)


def forked(team, run):
    launch_services.fork(team.researcher, run, overrides={}, start_step=1)


def exported(team, run):
    exporting.export(team.researcher, Artifact.objects.get(run=run, step=1))


@pytest.mark.django_db
@pytest.mark.parametrize("needed", [registered, forked, exported])
def test_a_checkpoint_that_something_needs_stays(team, old, needed):
    needed(team, old)
    rule(team)
    services.work()
    assert checkpoints_left(old) == [1, 2, 4] and preview(team.workspace.pk, 30).kept[needed.__name__] == 1


@pytest.mark.django_db
def test_what_the_rule_has_deleted_is_neither_sent_nor_exported_and_says_why(team, old):
    rule(team)
    services.work()
    gone = Artifact.objects.get(run=old, step=1)
    assert 1 in on_disk(old)  # the files go in the next round
    client, address = ApiClient(team.researcher), f"/runs/{old.pk}/artifacts/{gone.pk}"
    for answer, status in ((client.get(f"{address}/download"), 410), (client.post(f"{address}/export", {}), 409)):
        said = "The rule of this workspace has deleted the checkpoint of step 1."
        assert (answer.status_code, answer.json()["error"]["message"]) == (status, said)


@pytest.mark.django_db
def test_a_run_whose_checkpoint_is_exported_is_not_deleted(team, old):
    exported(team, old)
    job = WeightsJob.objects.get()
    with pytest.raises(Conflict, match=f"Job {job.pk} exports a checkpoint of it"):
        lifecycle.delete(team.researcher, old)
    WeightsJob.objects.update(state="stopped")
    artifact = Artifact.objects.get(run=old, step=1)
    lifecycle.delete(team.researcher, old)
    assert not Run.objects.filter(pk=old.pk).exists()
    with pytest.raises(Conflict, match="was just deleted"):  # the page was open meanwhile
        starting_points.keep_checkpoint(artifact)


@pytest.mark.django_db
def test_an_export_whose_run_was_deleted_ends_with_the_reason(team, old, monkeypatch):
    """Jobs of before could wait while their run was deleted."""
    exported(team, old)
    Run.objects.filter(pk=old.pk).delete()
    monkeypatch.setattr("webapp.core.distributed.ray_jobs.artifact_store.is_configured", lambda: True)
    job = WeightsJob.objects.get()
    assert weights_jobs.launch(job.pk) is None
    job.refresh_from_db()
    assert job.state == "failed" and "The run of this checkpoint was deleted" in job.problem


@pytest.mark.django_db
def test_what_is_no_longer_needed_goes_in_a_later_round(team, old):
    exported(team, old)
    rule(team)
    services.work()
    WeightsJob.objects.update(state="failed")
    services.work()
    assert checkpoints_left(old) == [1, 2, 4]  # the next round is not due yet
    CheckpointRule.objects.update(next_at=timezone.now())
    services.work()
    assert checkpoints_left(old) == [2, 4]


@pytest.mark.django_db
def test_a_rule_that_is_switched_off_deletes_nothing_more(team, old):
    row = rule(team)
    services.change(team.owner, False, 30)
    assert services.delete(row, old.pk) == 0
    services.work()
    assert checkpoints_left(old) == list(STEPS)


@pytest.mark.django_db
def test_a_run_that_cannot_be_looked_at_keeps_no_other_run_waiting(team, launch, monkeypatch):
    broken, other = make_ended_run(launch()), make_ended_run(launch())
    find = candidates.find

    def found(runs):
        if runs[0].pk == broken.pk:
            raise ValueError("its config cannot be read")
        return find(runs)

    monkeypatch.setattr(candidates, "find", found)
    rule(team)
    services.work()
    assert (checkpoints_left(broken), checkpoints_left(other)) == ([1, 2, 3, 4], [2, 4])
    assert CheckpointRule.objects.get().next_at > timezone.now(), "the round has come to its end"


def test_a_round_goes_on_piece_by_piece_and_other_workspaces_are_not_touched(team, launch, monkeypatch):
    monkeypatch.setattr(services, "PIECE", 2)
    runs = [make_ended_run(launch()) for _ in range(5)]
    services.change(team.outsider, True, 30)
    services.work()
    assert {tuple(checkpoints_left(run)) for run in runs} == {STEPS}
    rule(team)
    left = []
    for _ in range(3):
        services.work()
        left.append(sum(len(checkpoints_left(run)) for run in runs))
    assert left == [16, 12, 10]


@pytest.mark.django_db
def test_a_checkpoint_that_a_run_writes_again_is_there_again(team, old):
    rule(team)
    services.work()
    data = ArtifactData(role="checkpoint", path="checkpoints/step-000001", bytes=3, digest="d" * 64)
    bulk.upsert_artifacts(old.pk, [bulk.ArtifactRow(1, data)])
    services.work()
    assert 1 in checkpoints_left(old) and 1 in on_disk(old)


@pytest.mark.django_db(transaction=True)
def test_a_model_that_is_registered_meanwhile_wins(team, old):
    row, counts = rule(team), []

    def deletes() -> None:
        counts.append(services.delete(row, old.pk))
        connection.close()

    thread = threading.Thread(target=deletes)
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(pk=old.pk)  # as all do who register a model
        registered(team, old)
        thread.start()
        give_up = time.monotonic() + SECONDS
        while not somebody_waits() and time.monotonic() < give_up:
            time.sleep(0.01)
        assert not counts
    thread.join()
    assert counts == [1] and checkpoints_left(old) == [1, 2, 4]


@pytest.mark.django_db(transaction=True)
def test_a_fork_at_the_same_moment_has_the_checkpoint_or_is_refused(team, launch):
    row, outcomes = rule(team), set()
    for _ in range(6):
        run = make_ended_run(launch())

        def forks(run=run):
            try:
                return launch_services.fork(team.researcher, run, overrides={}, start_step=1)
            except Conflict:
                return None

        fork, deleted = concurrently([forks, lambda run=run: services.delete(row, run.pk)])
        services.work()
        outcomes.add(deleted)
        if fork is None:
            assert deleted == 2
        else:
            assert (artifacts.folder(fork.pk) / "checkpoints/step-000001/state.json").read_text() == "1"
            assert deleted == 1 and 1 in checkpoints_left(run)
    assert outcomes <= {1, 2}


@pytest.mark.django_db
def test_owners_see_the_preview_before_they_switch_it_on(team, old):
    page = browser(team.owner)
    shown = page.get("/settings/retention?days=30").content.decode()
    assert "2 checkpoints" in shown and "that are the best of their run" in shown and "Switch on" in shown
    asked = page.post("/settings/retention", {"days": "30", "on": "yes"})
    assert "2 checkpoints of 1 run, 6" in asked.content.decode() and not CheckpointRule.objects.exists()
    assert "Leave it off</a>" in asked.content.decode()
    assert page.post("/settings/retention", {"days": "30", "on": "yes", "sure": "yes"}).status_code == 302
    assert CheckpointRule.objects.get().on and AuditEntry.objects.filter(action="checkpoints.rule").count() == 1
    assert page.get("/settings/retention?days=0").status_code == 422
    assert browser(team.researcher).get("/settings/retention").status_code == 403


@pytest.mark.django_db
def test_the_api_has_the_rule_the_preview_and_the_mark(team, old):
    client = ApiClient(team.owner)
    assert client.get("/retention").json() == {"on": False, "days": 30, "deleted": 0, "deleted_bytes": 0}
    told = client.get("/retention/preview?days=30").json()
    assert (told["runs"], told["checkpoints"], told["bytes"], told["whole"]) == (1, 2, 6, True)
    assert {each["why"]: each["checkpoints"] for each in told["kept"]}["that are the last of their run"] == 1
    assert client.put("/retention", {"on": True, "days": 7}).json()["on"] is True
    assert client.put("/retention", {"on": True, "days": 0}).status_code == 422
    assert ApiClient(team.researcher).get("/retention").status_code == 403
    theirs = ApiClient(team.researcher)
    assert theirs.put(f"/runs/{old.pk}/keep-checkpoints", {"keep": True}).json() == {"keep": True}
    assert ApiClient(team.reviewer).get(f"/runs/{old.pk}/keep-checkpoints").json() == {"keep": True}
    assert ApiClient(team.reviewer).put(f"/runs/{old.pk}/keep-checkpoints", {"keep": False}).status_code == 403
    services.work()
    assert checkpoints_left(old) == list(STEPS)


@pytest.mark.django_db
def test_the_page_of_a_run_says_how_many_the_rule_has_deleted_and_has_the_mark(team, old):
    page = browser(team.researcher)
    rule(team)
    services.work()
    shown = page.get(f"/runs/{old.pk}/lineage").content.decode()
    assert "The rule of this workspace has deleted 2 checkpoints of this run." in shown
    assert "Keep all checkpoints" in shown
    page.post(f"/runs/{old.pk}/keep", {"keep": "yes"})
    old.refresh_from_db()
    assert old.keep_checkpoints
