"""A small frozen dataset with rubrics, a registered model, and a training process that only sends messages."""

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from django.test import Client

from tests.team import bulk_insert
from tests.webapp.core.fake_ray import FakeRay
from trainer.contracts import Criterion, Message, Rubric, VerifierSpec
from trainer.contracts import Example as ExampleRecord
from webapp.datasets.columns.prompt_hashes import hashes
from webapp.datasets.models import Dataset, DatasetVersion, Example, VersionMember
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launch_services
from webapp.experiments.lifecycle import commands, jobs, tokens
from webapp.experiments.models import Artifact, Run
from webapp.experiments.outputs import artifacts
from webapp.inference.models import RegisteredModel
from webapp.machine.places import write_facts


@pytest.fixture(autouse=True)
def places_enough(settings):
    """The line has enough places on a machine with any number of processors."""
    settings.MAX_RUNNING_RUNS = None


@pytest.fixture
def ray(settings, tmp_path, monkeypatch) -> Iterator[FakeRay]:
    """A server that speaks Ray's API. The server of the pages counts as running."""
    fake = FakeRay(token="secret")
    (tmp_path / "token").write_text("secret")
    write_facts(settings.VAR, "ray", address=fake.address, token_file=str(tmp_path / "token"))
    monkeypatch.setattr(jobs, "_web_answers", lambda: True)
    yield fake
    fake.close()


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).isoformat()


VERIFIER = VerifierSpec(name="must_contain", args={"texts": ["red"]})


def make_version(
    membership,
    name="demo",
    train=3,
    heldout=2,
    rubrics=True,
    state="frozen",
    verifier=VERIFIER,
    digest="d" * 64,
    **fields,
) -> DatasetVersion:
    dataset = Dataset.objects.create(workspace=membership.workspace, name=name)
    version = DatasetVersion.objects.create(dataset=dataset, number=1, state=state, digest=digest)
    rubric = (
        Rubric(criteria=(Criterion(id="c1", text="Names a colour", points=3, verifier=verifier),)) if rubrics else None
    )
    rows = []
    for i in range(train + heldout):
        split = "train" if i < train else "heldout"
        record = ExampleRecord(
            key=f"e{i}", prompt=(Message(role="user", content=f"Prompt {i} ü"),), split=split, rubric=rubric, **fields
        )
        rows.append(
            Example(
                dataset=dataset,
                key=record.key,
                digest=sha256(f"{name}{i}".encode()).hexdigest(),
                canonical=record.canonical(),
                excerpt=f"Prompt {i}",
                split=split,
                criteria_count=1 if rubrics else 0,
                prompt_hash=hashes(record).prompt,
            )
        )
    members = [VersionMember(version=version, example=row, position=i) for i, row in enumerate(bulk_insert(rows))]
    VersionMember.objects.bulk_create(members)
    return version


@pytest.fixture
def version(team):
    return make_version(team.owner)


@pytest.fixture
def model(team):
    return make_model(team)


def make_model(team) -> RegisteredModel:
    return RegisteredModel.objects.create(
        workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/models/smollm2"
    )


def swap_names(model: RegisteredModel) -> RegisteredModel:
    """Renames the model to *older*. Another model gets the name that it had, and is returned."""
    name, model.name = model.name, "older"
    model.save()
    return RegisteredModel.objects.create(workspace=model.workspace, name=name, source="local", path="/models/other")


@pytest.fixture
def launch(team, version, model):
    """Launches a run as the researcher; keywords replace the defaults."""
    return run_launcher(team, version)


def run_launcher(team, version):
    def _launch(membership=None, **kwargs) -> Run:
        choice = checks.DatasetChoice(id=version.dataset_id)
        defaults: dict[str, Any] = {"recipe": "policy", "config": {"steps": 4}, "dataset": choice}
        return launch_services.launch(membership or team.researcher, **(defaults | kwargs))

    return _launch


@pytest.fixture
def run(launch) -> Run:
    return launch()


def keep_checkpoint(run: Run, step: int = 1) -> None:
    """The run's process has written a checkpoint into the run's folder, and reported it."""
    path = f"checkpoints/step-{step:06d}"
    (artifacts.folder(run.pk) / path).mkdir(parents=True)
    Artifact.objects.create(run=run, path=path, role="checkpoint", step=step, bytes=1, digest="d")


@pytest.fixture
def vllm_environment(settings, tmp_path, monkeypatch):
    """The folder into which `make vllm` would install. It is empty, and this process has no vLLM either."""
    settings.VLLM_ENVIRONMENT = tmp_path / "vllm"
    settings.VLLM_ENVIRONMENT.mkdir()
    monkeypatch.setattr(commands, "find_spec", lambda name: None)
    return settings.VLLM_ENVIRONMENT


class Trainer:
    """Plays a training process: numbers its events and posts them with its token."""

    def __init__(self, run: Run) -> None:
        self.run_id, self.attempt, self.token, self.seq = run.id, run.attempt, tokens.run_token(run), run.last_seq
        self.client = Client(headers={"authorization": f"Bearer {self.token}"})

    def event(self, kind: str, step: int = 0, **data) -> dict:
        self.seq += 1
        return {"seq": self.seq, "time": NOON, "step": step, "data": {"kind": kind, **data}}

    def post(self, *events: dict, attempt: int | None = None, begins: int = 0):
        body = {"attempt": attempt or self.attempt, "begins": begins, "events": events}
        return self.client.post(self.url("/events"), body, content_type="application/json")

    def post_raw(self, body: bytes | str):
        return self.client.post(self.url("/events"), body, content_type="application/json")

    def url(self, rest: str = "") -> str:
        return f"/api/v1/ingest/runs/{self.run_id}{rest}"

    def metrics(self, step: int, **values: float) -> dict:
        return self.event("metrics", step, values=values)

    def rollout(self, index: int = 0, met: bool | None = True, **fields) -> dict:
        """One rollout in the form in which events carry it inside `rollouts`."""
        criterion = {
            "text": "Names a colour",
            "points": 3,
            "kind": "hard",
            "verdict": {"criterion_id": "c1", "met": met},
        }
        plain = {"example_key": "e0", "group": 0, "index": index, "prompt": "p", "response": "red"}
        return plain | {"finish_reason": "stop", "reward": 1.0, "criteria": [criterion]} | fields


@pytest.fixture
def trainer(run) -> Trainer:
    """The process of `run`, after it has said that it is running."""
    Run.objects.filter(id=run.id).update(state="starting", ray_job_id=f"run-{run.id}-1", next_try_at=None)
    process = Trainer(run)
    assert process.post(process.event("state", state="running")).status_code == 200
    return process
