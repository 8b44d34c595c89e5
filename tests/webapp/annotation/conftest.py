"""A small version with rubrics, responses and preferences, and projects for it."""

import pytest

from trainer.contracts import Criterion, Message, Preference, Response, Rubric
from trainer.contracts import Example as ExampleRecord
from webapp.annotation.projects import services as projects
from webapp.datasets.models import Dataset, DatasetVersion, Example, VersionMember

RUBRIC = Rubric(criteria=(Criterion(id="c1", text="Names a colour", points=3),))


def make_version(membership, name="pairs", examples=4, responses=2, rubrics=True, preferences=True) -> DatasetVersion:
    """A draft version of `examples` prompts, each with this many responses. The responses to the first two prompts are compared."""
    dataset = Dataset.objects.create(workspace=membership.workspace, name=name)
    counts = {"examples": examples, "responses": examples * responses}
    counts |= {"rubrics": examples * rubrics, "preferences": examples * preferences}
    version = DatasetVersion.objects.create(dataset=dataset, number=1, digest="d" * 64, counts=counts)
    for place in range(examples):
        record = ExampleRecord(
            key=f"{name}-{place}",
            prompt=(Message(role="user", content=f"Which colour is fruit {place}?"),),
            responses=tuple(
                Response(id=f"r{i}", text=f"Answer {i} to {place}", origin="secret-model") for i in range(responses)
            ),
            rubric=RUBRIC if rubrics else None,
            preferences=(Preference(a="r0", b="r1", strength=2, rater="old"),) if preferences and responses > 1 else (),
        )
        row = Example.objects.create(
            dataset=dataset,
            key=record.key,
            digest=record.digest(),
            canonical=record.canonical(),
            excerpt=record.prompt[-1].content,
            criteria_count=1 if rubrics else 0,
            response_count=responses,
            preference_count=len(record.preferences),
        )
        VersionMember.objects.create(version=version, example=row, position=place)
    return version


@pytest.fixture
def version(team) -> DatasetVersion:
    return make_version(team.owner)


@pytest.fixture
def make_project(team, version):
    """`make_project(kind="pairwise", ...)`: the researcher sets it up. A test that needs its tasks makes them."""

    def _make(kind="pairwise", name="Colours", open=True, **options):
        options.setdefault("dataset", version)
        project = projects.create(team.researcher, name=name, kind=kind, **options)
        return projects.set_state(team.researcher, project, "open") if open else project

    return _make
