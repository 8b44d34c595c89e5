"""The pages of jobs."""

from tests.cast import browser
from webapp.weights.models import WeightsLogLine


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
