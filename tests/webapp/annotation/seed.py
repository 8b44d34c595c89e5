"""Projects to work in. A frozen version is written directly into the tables, and opened for the annotator of the team."""

from trainer.contracts import Example as Record
from webapp.accounts.models import Membership, Role, User
from webapp.annotation.models import Guidelines, Participant, Project
from webapp.annotation.projects import task_services
from webapp.datasets.models import Dataset, DatasetVersion, Example, VersionMember

ANSWER = {"verdict": "compared", "strength": -2}


def pair(key: str = "q1", **changes) -> dict:
    """An example with two responses and a preference of one rater. Names that annotators may not see are in capitals."""
    return {
        "key": key,
        "prompt": [{"role": "user", "content": f"Question {key}?"}],
        "responses": [
            {
                "id": "ID-ONE",
                "text": f"first answer to {key}",
                "origin": "MODEL-ONE",
                "steps": [{"text": f"first answer to {key}"}],
            },
            {"id": "ID-TWO", "text": f"second answer to {key}", "origin": "MODEL-TWO"},
        ],
        "preferences": [{"a": "ID-ONE", "b": "ID-TWO", "strength": 1, "rater": "RATER"}],
        "domain": "CLASSIFIED DOMAIN",
        **changes,
    }


def make_version(membership: Membership, examples: list[dict], name: str = "Set") -> DatasetVersion:
    dataset = Dataset.objects.create(workspace=membership.workspace, name=name)
    version = DatasetVersion.objects.create(dataset=dataset, number=1, state="frozen", digest="0" * 64)
    for position, content in enumerate(examples):
        record = Record.model_validate(content)
        canonical = record.canonical()
        row = Example.objects.create(
            dataset=dataset, key=record.key, digest=record.digest(), canonical=canonical, excerpt=f"about {record.key}"
        )
        VersionMember.objects.create(version=version, example=row, position=position)
    return version


def make_project(
    membership: Membership, examples: list[dict] | int = 3, *, kind: str = "pairwise", people=(), **fields
) -> Project:
    """An open project with its tasks. `people` take part in it."""
    settings = fields.pop("settings", {})
    listed = [pair(f"q{n}") for n in range(examples)] if isinstance(examples, int) else examples
    count = Project.objects.count()
    project = Project.objects.create(
        workspace=membership.workspace,
        name=f"project {count}",
        kind=kind,
        version=fields.pop("version", None) or make_version(membership, listed, f"set {count}"),
        settings=settings,
        **{"state": "open", "overlap": 2, **fields},
    )
    Guidelines.objects.create(project=project, number=1, text="Be fair.")
    task_services.make(project.pk)
    for person in people:
        Participant.objects.create(project=project, user=person.user)
    project.refresh_from_db()
    return project


def make_annotators(membership: Membership, count: int) -> list[Membership]:
    people = [User(email=f"p{n}@example.org", name=f"P{n}") for n in range(count)]
    User.objects.bulk_create(people)
    return Membership.objects.bulk_create(
        Membership(user=user, workspace=membership.workspace, role=Role.ANNOTATOR) for user in people
    )
