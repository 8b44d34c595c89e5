"""`manage.py demo`: the demo workspace, its data, its projects, its model and its run. Doing it again changes nothing."""

import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from webapp.accounts.models import Membership
from webapp.accounts.sign_in.services import create_sign_in_link, get_or_create_user
from webapp.accounts.workspaces.services import create_workspace
from webapp.core.database import locks
from webapp.core.network.addresses import public_url
from webapp.localstack.demo import EMAIL, MODEL_DIR, MODEL_NAME

WORKSPACE = "Demo"
ENDPOINT = "SmolLM2 on this machine"
GOLD = 6  # tasks of a demo project whose known answer is served now and then
FOLDER = Path(settings.BASE_DIR) / "demo"
DATASETS = {"Demo prompts": "prompts.jsonl", "Demo preferences": "preferences.jsonl"}


class Command(BaseCommand):
    help = "Load the demo and start its run"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--data", action="store_true", help="load only the data and its projects, which need no model"
        )
        parser.add_argument("--link", action="store_true", help="create only the owner, and print a sign-in link")

    def handle(self, *args: Any, **options: Any) -> None:
        membership = owner()
        if options["link"]:
            secret = create_sign_in_link(membership.user)
            self.stdout.write(f"{public_url()}/sign-in/link/{secret}")
            return
        for name, file in DATASETS.items():
            import_dataset(membership, name, FOLDER / file)
        open_projects(membership)
        if options["data"]:
            return
        register_model(membership)
        run = launch(membership)
        self.stdout.write(f"{public_url()}/runs/{run}")


@transaction.atomic
def owner() -> Membership:
    """The demo's owner in the demo's workspace, made once: at the first start the link and the data are made at the same time."""
    locks.until_commit(locks.Work.DEMO)
    user = get_or_create_user(EMAIL, name="Demo")
    found = Membership.objects.filter(user=user, workspace__slug="demo").select_related("user", "workspace").first()
    return found or create_workspace(WORKSPACE, user)


def import_dataset(membership: Membership, name: str, path: Path) -> None:
    """Imports a file with the importer that people use, in this process instead of a worker; skipped if the name exists."""
    from webapp.datasets.ingest import services as imports
    from webapp.datasets.models import Dataset, ImportJob

    if Dataset.objects.filter(workspace=membership.workspace, name=name).exists():
        return
    job = imports.start_import(membership, path, name=name, queue=False)
    imports.run_import(job.pk)
    job.refresh_from_db()
    if job.state != ImportJob.State.FINISHED:
        first = next(iter(job.rejected), None)
        raise CommandError(f"{path}: {job.error or first or job.state}")


def open_projects(membership: Membership) -> None:
    """The projects of demo/projects.json, open, with the owner taking part: bodies as `POST /api/v1/projects` takes them, each with its
    guidelines beside it. This process makes their tasks, instead of a worker."""
    from webapp.annotation.models import Project
    from webapp.annotation.people import services as people
    from webapp.annotation.projects import gold_services, task_services
    from webapp.annotation.projects import services as projects
    from webapp.datasets.models import DatasetVersion

    for body in json.loads((FOLDER / "projects.json").read_text()):
        if Project.objects.filter(workspace=membership.workspace, name=body["name"]).exists():
            continue
        versions = DatasetVersion.objects.filter(dataset__workspace=membership.workspace)
        body["dataset"] = versions.filter(dataset__name=body["dataset"]).order_by("-number")[0]
        guidelines = (FOLDER / "guidelines" / f"{body['kind']}.md").read_text()
        project = projects.create(membership, **body, guidelines=guidelines)
        task_services.make(project.pk)
        if body["settings"].get("gold_every"):
            gold_services.mark(membership, project, "labels", GOLD)
        people.add_participant(membership, project, membership.user)
        projects.set_state(membership, project, Project.State.OPEN)


def register_model(membership: Membership) -> None:
    """Registers the model, and an endpoint that answers judges with it, so that a first judge has an endpoint to ask."""
    from webapp.inference.endpoints import services as endpoints
    from webapp.inference.models import Endpoint, RegisteredModel
    from webapp.inference.registry import services as registry

    if RegisteredModel.objects.filter(workspace=membership.workspace, name=MODEL_NAME).exists():
        return
    source = RegisteredModel.Source.LOCAL
    model = registry.register(membership, name=MODEL_NAME, source=source, path=str(MODEL_DIR))
    endpoints.create_endpoint(membership, Endpoint.Kind.LOCAL, name=ENDPOINT, registered_model=model.pk)


def launch(membership: Membership) -> int:
    """Launches the run of demo/run.json, a body as `POST /api/v1/runs` takes it. The key lets it start only once."""
    from webapp.experiments.launch import services
    from webapp.experiments.launch.checks import DatasetChoice

    body = json.loads((FOLDER / "run.json").read_text())
    body["dataset"] = DatasetChoice(name=body["dataset"])
    return int(services.launch(membership, **body, key="demo").pk)
