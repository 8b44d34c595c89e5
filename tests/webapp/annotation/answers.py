"""Projects with answers, for tests of reviews. They are made directly, without the queue."""

from itertools import count
from typing import Any

from django.utils import timezone

from tests.team import Team
from trainer.contracts import Example as Record
from webapp.accounts.models import Membership, Role, User
from webapp.annotation.models import Answer, Assignment, Guidelines, Participant, Project, Task
from webapp.datasets.models import DatasetVersion, Example
from webapp.datasets.versions import services as datasets

PROMPTS = (
    "Why is the sky blue? Answer in two sentences.",
    "Name three rivers of France and where each begins.",
    "Explain recursion to a ten-year-old, with one example.",
    "Write a haiku about rain without the word rain.",
)


def make_version(team: Team, n: int = 4, name: str = "pairs", **fields: Any) -> DatasetVersion:
    """`n` examples with responses r1 and r2, in the domains science and language in turn. `fields` are further fields of each."""
    from webapp.datasets.models import Dataset

    dataset, _ = Dataset.objects.get_or_create(workspace=team.workspace, name=name)
    records = [
        Record.model_validate(
            {
                "key": f"e{i}",
                "prompt": [{"role": "user", "content": f"{PROMPTS[i % 4]} ({i})"}],
                "domain": ("science", "language")[i % 2],
                "responses": [
                    {"id": "r1", "text": f"The first response to question {i}, short and plain.", "origin": "model-x"},
                    {"id": "r2", "text": f"The second response to question {i}, which goes on.", "origin": "model-y"},
                ],
                **fields,
            }
        )
        for i in range(n)
    ]
    return datasets.new_version(team.researcher, dataset, records, None, {"from": "test"})


def make_project(team: Team, kind: str = "pairwise", n: int = 4, overlap: int = 2, **settings: Any) -> Project:
    fields = {name: settings.pop(name) for name in ("rubric", "responses", "preferences") if name in settings}
    version = make_version(team, n, name=f"{kind} data", **fields)
    project = Project.objects.create(
        workspace=team.workspace,
        name=f"{kind} project",
        kind=kind,
        version=version,
        overlap=overlap,
        settings=settings,
        state=Project.State.OPEN,
        tasks_total=n,
        tasks_made=True,
        created_by=team.researcher.user,
    )
    Guidelines.objects.create(project=project, number=1, text="Prefer the clearer response.")
    subjects: dict[str, dict[str, Any]] = {
        "pairwise": {"a": "r1", "b": "r2"},
        "grading": {"response": "r1"},
        "rating": {"response": "r1"},
        "ranking": {"responses": ["r1", "r2"]},
    }
    examples = Example.objects.filter(memberships__version=version).order_by("memberships__position")
    Task.objects.bulk_create(
        Task(project=project, example=example, subject=subjects.get(kind, {}), rank=rank, overlap=overlap)
        for rank, example in enumerate(examples)
    )
    return project


_people = count(1)


def annotators(team: Team, project: Project, n: int = 2) -> list[Membership]:
    """Anna and `more` other people. All of them take part."""
    people = [team.annotator]
    for _ in range(n - 1):
        user = User.objects.create_user(f"person{next(_people)}@example.org", name=f"Person {len(people) + 1}")
        people.append(Membership.objects.create(user=user, workspace=team.workspace, role=Role.ANNOTATOR))
    for member in people:
        Participant.objects.get_or_create(project=project, user=member.user)
    return people


def answer(
    task: Task, member: Membership, content: dict[str, Any], seconds: float = 12.0, order: tuple[int, ...] = (0, 1)
):
    """A submitted answer of this person, with the counters of the task as the queue keeps them."""
    now = timezone.now()
    seat, made = Assignment.objects.get_or_create(
        task=task,
        user=member.user,
        defaults={
            "project": task.project,
            "state": Assignment.State.SUBMITTED,
            "order": list(order),
            "claimed_at": now,
            "lease_until": now,
            "submitted_at": now,
        },
    )
    before = Answer.objects.filter(assignment=seat, current=True).first()
    Answer.objects.filter(assignment=seat).update(current=False)
    if made:
        task.done += 1
        task.taken += 1
    if task.overlap and task.done >= task.overlap:
        task.completed_at = now
    task.save()
    Assignment.objects.filter(pk=seat.pk).update(state=Assignment.State.SUBMITTED)
    return Answer.objects.create(
        assignment=seat,
        project=task.project,
        revision=before.revision + 1 if before else 1,
        content=content,
        guidelines=task.project.guidelines.first(),
        seconds=seconds,
        submitted_at=now,
    )


def preference(strength: int | None, *reasons: str, verdict: str = "compared", **dimensions: int) -> dict[str, Any]:
    given = [{"text": text, "response": None, "start": None, "end": None} for text in reasons]
    return {"verdict": verdict, "strength": strength, "dimensions": dimensions, "reasons": given, "note": ""}


def rubric(*criteria: tuple[str, float] | str) -> dict[str, Any]:
    listed = [(each, 5.0) if isinstance(each, str) else each for each in criteria]
    return {
        "rubric": {
            "criteria": [
                {
                    "id": f"c{place}",
                    "text": text,
                    "points": points,
                    "kind": "principle",
                    "importance": "important" if points > 0 else "pitfall",
                    "tags": [],
                    "verifier": None,
                }
                for place, (text, points) in enumerate(listed, start=1)
            ]
        },
        "note": "",
    }


def grades(**verdicts: str) -> dict[str, Any]:
    given = [
        {"criterion": name, "verdict": verdict, "start": None, "end": None, "note": ""}
        for name, verdict in verdicts.items()
    ]
    return {"grades": given, "note": ""}


def ranking(*tiers: str) -> dict[str, Any]:
    """A ranking. Each tier is written as "r1 r2"."""
    return {"tiers": [tier.split() for tier in tiers], "verdict": "ranked", "note": ""}


def ratings(**values: int | None) -> dict[str, Any]:
    return {"ratings": values, "note": ""}


def trace_steps(*verdicts: str | None) -> dict[str, Any]:
    """Verdicts about the steps from 1 on; None for a step that is not judged."""
    steps = [{"step": n, "verdict": each, "reason": ""} for n, each in enumerate(verdicts, 1) if each is not None]
    first = next((each["step"] for each in steps if each["verdict"] == "incorrect"), None)
    return {"steps": steps, "first_error": first, "note": ""}
