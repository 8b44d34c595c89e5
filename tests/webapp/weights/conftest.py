"""A model, a dataset version, and a process that only sends messages."""

import pytest
from django.test import Client

from tests.webapp.core.fake_ray import FakeRay
from tests.webapp.experiments.conftest import make_version
from tests.webapp.inference.serving.conftest import tiny_folder  # noqa: F401  a fixture
from webapp.inference.models import RegisteredModel
from webapp.machine.places import write_facts
from webapp.weights import services, tokens
from webapp.weights.models import WeightsJob


@pytest.fixture
def version(team):
    return make_version(team.owner)


@pytest.fixture
def model(team):
    return RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="o/m")


@pytest.fixture
def job(team, model, version) -> WeightsJob:
    return services.generate(team.workspace, team.researcher.user, model, version, {"split": ""})


@pytest.fixture
def ray(settings, tmp_path):
    fake = FakeRay(token="secret")
    (tmp_path / "token").write_text("secret")
    write_facts(settings.VAR, "ray", address=fake.address, token_file=str(tmp_path / "token"))
    yield fake
    fake.close()


class Process:
    """Plays the process of a job."""

    def __init__(self, job: WeightsJob) -> None:
        self.job, self.attempt = job, job.attempt
        self.client = Client(headers={"authorization": f"Bearer {tokens.token(job)}"})

    def url(self, rest: str = "") -> str:
        return f"/api/v1/ingest/weights/{self.job.pk}{rest}"

    def get(self, rest: str = ""):
        return self.client.get(self.url(rest))

    def post(self, number: int = 0, *results: dict, **fields):
        body = {"attempt": self.attempt, "number": number, "results": results, **fields}
        return self.client.post(self.url("/batches"), body, content_type="application/json")


@pytest.fixture
def process(job) -> Process:
    WeightsJob.objects.filter(pk=job.pk).update(state="starting", ray_job_id=f"weights-{job.pk}-1", next_try_at=None)
    return Process(job)
