"""An installation that people have used, made by the product's own services, and folders for its backups."""

import shutil
import tempfile
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings as django_settings
from django.db import transaction
from django.utils import timezone
from psycopg import sql

from tests.upgrade import make
from webapp.annotation.models import Project
from webapp.annotation.people import services as people
from webapp.annotation.work import queue
from webapp.backups import bucket, services
from webapp.backups.models import Backup, Origin
from webapp.core.storage import buckets

from .bucket_server import BucketServer

WHERE = "s3://backups/touch/stone"
SECRET = "a secret that nobody is shown"


@pytest.fixture
def installation(transactional_db, settings, tmp_path, monkeypatch):
    """People, imports, answers, a judge, a run with files, a registered model."""
    monkeypatch.setattr("webapp.core.tasks._send", lambda *told: None)
    monkeypatch.setattr(make, "PROMPTS", 12)
    owner, annotator = make.people()
    make.data(owner, tmp_path)
    for project in Project.objects.order_by("id"):
        people.add_participant(owner, project, annotator.user)
        for seat in queue.claim(annotator, project)[:1]:
            queue.submit(annotator, seat, make.content(project.kind, 0, True))
    make.judge(owner)
    make.run(owner, tmp_path)
    pack_points()
    write_files(settings.VAR)
    return owner


def pack_points() -> None:
    """Points as runs send them. The points of `make.run` are rows, as in earlier versions."""
    from webapp.experiments.bulk import StepMetrics
    from webapp.experiments.metrics import writing
    from webapp.experiments.models import Run

    run = Run.objects.order_by("id").first()
    told = (StepMetrics(step, timezone.now(), {"reward/mean": 1 / step, "packed": 0.1}) for step in range(1000, 1300))
    with transaction.atomic():
        writing.steps(run.pk, told)


def write_files(var: Path) -> None:
    """The files of a run and of a registered model of the installation."""
    from webapp.experiments.models import Run
    from webapp.inference.models import RegisteredModel

    run = Run.objects.order_by("id").first()
    folder = var / "runs" / str(run.pk)
    for step in (10, 20):
        (folder / f"checkpoints/step-{step:06d}").mkdir(parents=True)
        (folder / f"checkpoints/step-{step:06d}/policy.safetensors").write_bytes(bytes([step]) * 200_000)
    (folder / "events.jsonl").write_text('{"seq": 1}\n' * 10_000)
    (folder / "acked").write_text("10000")
    (folder / "checkpoints/.step-000030.partial").mkdir()
    (folder / "checkpoints/.step-000030.partial/policy.safetensors").write_bytes(b"half")
    model = var / "models" / "tiny"
    model.mkdir(parents=True)
    (model / "model.safetensors").write_bytes(b"weights" * 50_000)
    RegisteredModel.objects.update_or_create(
        workspace=run.experiment.workspace, name="tiny", defaults={"source": "local", "path": str(model)}
    )


@pytest.fixture(scope="session")
def one_server():
    with BucketServer().running() as server:
        yield server


@pytest.fixture
def server(one_server, settings, monkeypatch):
    one_server.empty()
    env = settings.ENV.model_copy()
    env.backup_endpoint, env.backup_networks = one_server.url, (IPv4Network("127.0.0.0/8"),)
    env.backup_access_key, env.backup_secret = "AKID", SECRET
    settings.ENV = env
    monkeypatch.setattr(bucket, "PAUSE_S", 0)
    monkeypatch.setattr(buckets, "RETRY_S", 0.001)
    return one_server


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "backups"


@pytest.fixture
def backed_up(folder):
    """`backed_up()`: makes one more backup, which must succeed unless `state` says otherwise."""

    def run(state=Backup.State.FINISHED, key_file=None) -> Backup:
        backup = services.start(folder, Origin.COMMAND)
        services.carry_out(backup.pk, key_file)
        backup.refresh_from_db()
        assert backup.state == state, backup.problem
        return backup

    return run


@pytest.fixture
def key_file(tmp_path) -> Path:
    path = tmp_path / "key"
    path.write_text("a long enough passphrase\n")
    return path


@pytest.fixture
def home():
    """A folder for a restored installation that the database's user can reach."""
    path = Path(tempfile.mkdtemp(prefix="ts-restored-"))
    path.chmod(0o755)
    yield path / "var"
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def database():
    """`database(name)`: the address of an empty database beside that of the tests."""
    told: dict[str, Any] = {
        key: django_settings.DATABASES["default"][key.upper()] or None for key in ("host", "port", "user", "password")
    }
    made = []
    with psycopg.connect(dbname="postgres", autocommit=True, **told) as server:

        def create(name: str) -> str:
            server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            made.append(name)
            user, host = told["user"], (told["host"] or "").replace("/", "%2F")
            signed = f"{user}:{told['password']}" if told["password"] else user
            return f"postgresql://{signed}@/{name}?host={host}" + (f"&port={told['port']}" if told["port"] else "")

        yield create
        for name in made:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
