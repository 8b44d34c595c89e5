"""An account is erased while a worker does something that its person requested. The work is done once, and names nobody."""

from typing import Any

import pytest
from django.db import connection

from tests.webapp.datasets.running_import import lines, queue_import
from tests.webapp.evaluation.conftest import as_file, make_examples
from tests.webapp.evaluation.conftest import lines as recorded
from tests.webapp.evaluation.test_local_judges import answered, started
from trainer.contracts import Example
from webapp.accounts.models import User
from webapp.core.models import AuditEntry
from webapp.datasets import housekeeping
from webapp.datasets.columns.filters import parse
from webapp.datasets.curation import runner
from webapp.datasets.curation import services as curating
from webapp.datasets.ingest import import_job
from webapp.datasets.ingest import services as imports
from webapp.datasets.models import CurationJob, Dataset, ImportJob
from webapp.datasets.versions import services as datasets
from webapp.evaluation.launch import services as evaluations
from webapp.evaluation.recordings import services as recordings
from webapp.evaluation.work import running
from webapp.inference.endpoints import services as endpoints
from webapp.inference.models import RegisteredModel
from webapp.judging.judges.services import create_judge
from webapp.personal_data.erasing import erase
from webapp.weights import services as weights
from webapp.weights.models import WeightsJob

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nobody_who_is_gone_is_named(db):
    """The row as a commit finds it."""
    yield
    connection.check_constraints()


def gone_before(monkeypatch, module, end: str, person) -> list[int]:
    """Erases the account of `person` just before `module.end` ends the work. Returns a list with the calls of `end`."""
    original, calls = getattr(module, end), []

    def after(*arguments, **named):
        if not calls:
            erase(person, person)
        calls.append(len(calls) + 1)
        return original(*arguments, **named)

    monkeypatch.setattr(module, end, after)
    return calls


def entry(action: str) -> AuditEntry:
    return AuditEntry.objects.get(action=action)


def test_an_import(team, monkeypatch, tmp_path):
    job = queue_import(team, tmp_path / "rows.jsonl", lines(rows=30), keep_good=True)
    calls = gone_before(monkeypatch, import_job, "_conclude", team.researcher.user)
    imports.run_import(job.pk)
    job.refresh_from_db()
    assert (calls, job.state, job.created_by, job.version.members.count()) == ([1], ImportJob.State.FINISHED, None, 20)
    assert entry("import.finished").actor is None


def test_an_import_that_is_refused(team, monkeypatch, tmp_path):
    job = queue_import(team, tmp_path / "rows.jsonl", lines(rows=30, bad=(3,)))
    calls = gone_before(monkeypatch, import_job, "_fail", team.researcher.user)
    imports.run_import(job.pk)
    job.refresh_from_db()
    assert (calls, job.state, entry("import.failed").actor) == ([1], ImportJob.State.FAILED, None)


def test_a_derived_version(team, monkeypatch):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Questions")
    asked = [{"role": "user", "content": "Why?"}]
    records = [Example(key=f"e{i}", prompt=asked, domain="odd" if i % 2 else "even") for i in range(4)]
    version = datasets.new_version(team.researcher, dataset, records, None, {"from": "test"})
    job = curating.derive(team.researcher, version, parse({"domain": "odd"}))
    calls = gone_before(monkeypatch, runner, "_over", team.researcher.user)
    runner.run(job.pk)
    job.refresh_from_db()
    assert (calls, job.state, job.created_by) == ([1], CurationJob.State.FINISHED, None)
    assert entry("curation.finished").actor is None and dataset.versions.count() == 2


@pytest.mark.parametrize(("end", "ends"), [("_finish", "finished"), ("_fail", "failed")])
def test_an_evaluation(end, ends, team, monkeypatch):
    tape = recordings.store_recording(team.researcher, "verdicts.jsonl", as_file(recorded()))
    dataset = datasets.create_dataset(team.owner, "pairs")
    version = datasets.new_version(team.owner, dataset, make_examples(), None, {"from": "test"})
    chosen: dict[str, Any] = {"recipe": "judge_audit", "config": {}, "recording": tape, "dataset": version}
    evaluation = evaluations.create(team.researcher, **chosen)
    if ends == "failed":
        monkeypatch.setattr(running, "_finish", lambda *_: 1 / 0)
    calls = gone_before(monkeypatch, running, end, team.researcher.user)
    running.run(evaluation.pk)
    evaluation.refresh_from_db()
    assert (calls, evaluation.state, evaluation.created_by) == ([1], ends, None)
    assert entry(f"evaluation.{ends}").actor is None


def test_the_deletion_of_a_dataset(team, monkeypatch):
    dataset = Dataset.objects.create(
        workspace=team.workspace, name="Old", deleting_at="2026-01-01T00:00Z", deleting_by=team.researcher.user
    )
    calls = gone_before(monkeypatch, housekeeping, "_delete", team.researcher.user)
    housekeeping.carry_out(dataset.pk)
    assert calls == [1] and not Dataset.every.filter(pk=dataset.pk).exists() and entry("dataset.deleted").actor is None


@pytest.fixture
def by_a_job(team):
    """An evaluation by a judge with local weights, which a job of the cluster asks."""
    model = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="a/b")
    local = endpoints.create_endpoint(team.researcher, "local", name="l", registered_model=model.pk)
    spec = {"kind": "pairwise", "order": "both", "retries": 0}
    judge = create_judge(team.researcher, name="Here", spec=spec, endpoint=local)
    dataset = datasets.create_dataset(team.owner, "pairs")
    version = datasets.new_version(team.owner, dataset, make_examples(), None, {"from": "test"})
    config = {"judges": [{"version": judge.pk}]}
    return evaluations.create(team.researcher, recipe="judge_audit", config=config, dataset=version)


def test_a_judge_with_local_weights(team, monkeypatch, by_a_job):
    calls = gone_before(monkeypatch, weights, "stored", team.researcher.user)
    assert running.run(by_a_job.pk)  # it waits for its job
    [job] = WeightsJob.objects.all()
    assert (calls, job.state, job.created_by) == ([1], "queued", None)
    assert entry("weights_job.started").actor is None
    answered(job)
    assert running.run(by_a_job.pk) is None
    by_a_job.refresh_from_db()
    assert (by_a_job.state, by_a_job.created_by) == ("finished", None) and WeightsJob.objects.count() == 1


def test_a_judge_with_local_weights_that_is_stopped_or_goes_on(team, by_a_job):
    assert running.run(by_a_job.pk)
    [job] = WeightsJob.objects.all()
    person = team.researcher.user
    gone = User.objects.get(pk=person.pk)  # as a worker has read it
    erase(person, person)
    weights.stop(job, gone)
    assert (job.state, entry("weights_job.stopped").actor) == ("stopped", None)
    weights.retry(job, gone)
    assert (job.state, entry("weights_job.queued").actor) == ("queued", None)
    started(job)
    job.refresh_from_db()
    weights.stop(job, gone)
    assert job.problem == "The system asked it to stop" and entry("weights_job.stopping").actor is None
