"""The pages of jobs."""

from tests.team import browser
from webapp.weights.models import WeightsJob, WeightsLogLine


def test_the_pages_list_show_stop_and_retry(team, job):
    client = browser(team.researcher)
    assert "No jobs yet" in browser(team.outsider).get("/jobs").content.decode()
    assert job.title in client.get("/jobs?kind=generate").content.decode()
    assert browser(team.outsider).get(f"/jobs/{job.pk}").status_code == 404
    assert client.post(f"/jobs/{job.pk}/act", {"action": "stop"}).status_code == 302
    job.refresh_from_db()
    assert job.state == "stopped"
    WeightsLogLine.objects.create(job=job, level="error", message="out of paper")
    page = client.get(f"/jobs/{job.pk}").content.decode()
    assert "Stopped before it started" in page and "out of paper" in page and "Try again" in page
    client.post(f"/jobs/{job.pk}/act", {"action": "retry"})
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("queued", 2)
    assert browser(team.reviewer).post(f"/jobs/{job.pk}/act", {"action": "stop"}).status_code == 403


def test_the_form_starts_a_job_and_tells_what_is_wrong_at_its_field(team, model, version):
    client = browser(team.researcher)
    assert client.get(f"/jobs/new?kind=logprobs&model={model.pk}").status_code == 200
    given = {"kind": "logprobs", "dataset_version": version.pk, "split": "", "texts": "responses", "per_token": "on"}
    given |= {"cpus": 1, "gpus": 0, "memory_gb": 0}
    assert "choose a model" in client.post("/jobs/new", given).content.decode()
    made = client.post("/jobs/new", {**given, "model": model.pk})
    job = WeightsJob.objects.get()
    assert made.status_code == 302 and (job.params["per_token"], job.params["resources"]["cpus"]) == (True, 1.0)
    used = {"device": "CPU", "cpu_seconds": 1.5, "memory_bytes": 3 * 2**20, "gpu_bytes": None, "processors": 2}
    WeightsJob.objects.update(used=used)
    page = client.get(f"/jobs/{job.pk}").content.decode()
    assert "1 CPUs" in page and "1.5 s, 2 processors" in page and "3.0" in page
