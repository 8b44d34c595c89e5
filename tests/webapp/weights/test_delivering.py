"""What a model has generated becomes a version of a dataset, once, with who wrote it and how; and the pages of jobs."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.cast import browser
from trainer.contracts import Example
from webapp.accounts.models import Membership
from webapp.core.problems import Invalid
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.weights import delivering, jobs, services
from webapp.weights.models import WeightsJob, WeightsLogLine

from .conftest import Process


@pytest.fixture
def wanted(cast, model, version) -> WeightsJob:
    params = {"split": "", "samples": 2, "temperature": 0.5, "seed": 3, "dataset": "answers"}
    job = services.generate(cast.workspace, cast.researcher.user, model, version, params)
    WeightsJob.objects.filter(pk=job.pk).update(state="starting", ray_job_id="x", next_try_at=None)
    return job


def said(number: int) -> dict:
    texts = [f"answer {number}", f"other answer {number}"]
    return {"key": f"e{number}", "responses": [{"text": t, "finish_reason": "stop", "tokens": 2} for t in texts]}


def ended(job: WeightsJob, *results: dict) -> WeightsJob:
    process = Process(job)
    assert process.post(1, *results).status_code == 200
    assert process.post(1, state="finished").status_code == 200
    job.refresh_from_db()
    return job


def test_the_responses_become_a_version_and_say_who_wrote_them(wanted, version):
    problem = {"key": "e4", "problem": "needs 9 tokens and the model sees 8"}
    job = ended(wanted, *map(said, range(4)), problem)
    assert job.state == "finished"
    delivering.deliver(job.pk)
    delivering.deliver(job.pk)  # a message that comes twice
    made = DatasetVersion.objects.get(dataset__name="answers")
    job.refresh_from_db()
    assert job.outcome == {"dataset": made.dataset_id, "version": 1, "left_out": 1}
    assert made.lineage["from"] == "generated" and made.lineage["sampling"]["seed"] == 3
    first = Example.model_validate(made.members.order_by("position")[0].example.content)
    assert (first.key, first.split, [r.text for r in first.responses]) == (
        "e0",
        "train",
        ["answer 0", "other answer 0"],
    )
    assert first.rubric is not None and {response.origin for response in first.responses} == {"m"}
    facts = first.meta["generated"][first.responses[1].id]
    assert facts == {
        "model": "m", "sample": 1, "seed": 3, "temperature": 0.5, "top_p": 1.0, "max_new_tokens": 256, "stop": [],
        "finish_reason": "stop", "tokens": 2,
    }  # fmt: skip
    assert made.counts["examples"] == 4


def test_what_another_model_said_can_stay_beside_it(wanted, cast, model):
    delivering.deliver(ended(wanted, *map(said, range(5))).pk)
    source = DatasetVersion.objects.get(dataset__name="answers")
    params = {"split": "", "samples": 2, "seed": 9, "dataset": "answers", "keep": True}
    job = services.generate(cast.workspace, cast.researcher.user, model, source, params)
    WeightsJob.objects.filter(pk=job.pk).update(state="starting", ray_job_id="y", next_try_at=None)
    delivering.deliver(ended(job, *map(said, range(5))).pk)
    both = source.dataset.versions.get(number=2).members.order_by("position")[0].example.content
    assert len({response["id"] for response in both["responses"]}) == 4
    assert set(both["meta"]["generated"]) == {response["id"] for response in both["responses"]}


def test_no_response_at_all_and_a_person_who_left_say_so(wanted, cast):
    job = ended(wanted, *({"key": f"e{i}", "problem": "is too long"} for i in range(5)))
    Membership.objects.filter(user=cast.researcher.user).delete()
    delivering.deliver(job.pk)
    job.refresh_from_db()
    assert "no longer a member" in job.outcome["problem"]
    WeightsJob.objects.filter(pk=job.pk).update(outcome={}, created_by=cast.owner.user)
    delivering.deliver(job.pk)
    job.refresh_from_db()
    assert "No prompt got a response: e0 is too long" in job.outcome["problem"]


def test_a_dataset_that_cannot_be_written_is_refused_before_the_queue(cast, model, version):
    Dataset.objects.create(workspace=cast.workspace, name="old", archived_at=timezone.now())
    with pytest.raises(Invalid) as caught:
        services.generate(cast.workspace, cast.researcher.user, model, version, {"dataset": "old"})
    assert "archived" in caught.value.fields["dataset"] and not WeightsJob.objects.exists()


def test_a_lost_message_is_sent_again(wanted, monkeypatch):
    sent = []
    job = ended(wanted, *map(said, range(5)))
    monkeypatch.setattr(jobs, "enqueue", lambda name, pk: sent.append((name, pk)))
    jobs.watch()
    assert sent == [], "its worker may still be at it"
    WeightsJob.objects.filter(pk=job.pk).update(ended_at=timezone.now() - timedelta(minutes=5))
    jobs.watch()
    assert sent == [("workers.weights.deliver", job.pk)]
    delivering.deliver(job.pk)
    jobs.watch()
    assert len(sent) == 1


def test_the_pages_list_show_stop_and_retry(cast, job):
    client = browser(cast.researcher)
    assert "No jobs yet" in browser(cast.outsider).get("/jobs").content.decode()
    assert job.title in client.get("/jobs?kind=generate").content.decode()
    assert browser(cast.outsider).get(f"/jobs/{job.pk}").status_code == 404
    assert client.post(f"/jobs/{job.pk}/act", {"action": "stop"}).status_code == 302
    job.refresh_from_db()
    assert job.state == "stopped"
    WeightsLogLine.objects.create(job=job, level="error", message="out of paper")
    page = client.get(f"/jobs/{job.pk}").content.decode()
    assert "Stopped before it started" in page and "out of paper" in page and "Retry" in page
    client.post(f"/jobs/{job.pk}/act", {"action": "retry"})
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("queued", 2)
    assert browser(cast.reviewer).post(f"/jobs/{job.pk}/act", {"action": "stop"}).status_code == 403


def test_the_form_starts_a_job_and_tells_what_is_wrong_at_its_field(cast, model, version):
    client = browser(cast.researcher)
    assert client.get(f"/jobs/generate?model={model.pk}").status_code == 200
    given = {
        "model": model.pk, "dataset_version": version.pk, "split": "heldout", "dataset": "new", "samples": 2,
        "max_new_tokens": 8, "temperature": 0.5, "top_p": 1, "seed": 0,
    }  # fmt: skip
    wrong = client.post("/jobs/generate", {**given, "samples": 99})
    assert wrong.status_code == 422 and not WeightsJob.objects.exists()
    made = client.post("/jobs/generate", given)
    job = WeightsJob.objects.get()
    assert made.status_code == 302 and made["Location"] == f"/jobs/{job.pk}"
    assert (job.params["dataset"], job.params["samples"], job.params["split"]) == ("new", 2, "heldout")
