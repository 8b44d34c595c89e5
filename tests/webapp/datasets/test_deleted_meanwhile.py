"""A dataset is deleted while a person makes something of it. One of the two succeeds, and the message says which."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

import pytest
from django.db import transaction

from tests.concurrency import outcome, somebody_waits
from tests.team import make_team
from trainer.contracts import Example as Record
from webapp.annotation.models import Project
from webapp.annotation.projects import services as projects
from webapp.core.problems import Conflict, Invalid
from webapp.datasets import housekeeping
from webapp.datasets.models import Dataset
from webapp.datasets.versions import services
from webapp.evaluation.launch import services as evaluations
from webapp.experiments.launch import checks

pytestmark = pytest.mark.django_db(transaction=True)
STATES = ["draft", "frozen"]


@pytest.fixture
def lab():
    return make_team()


@pytest.fixture
def version(lab, request):
    dataset = services.create_dataset(lab.researcher, "Soon gone")
    asked = [{"role": "user", "content": "?"}]
    records = [Record(key="e", prompt=asked, responses=[{"id": i, "text": i} for i in "ab"])]
    made = services.new_version(lab.researcher, dataset, records, None, {"from": "test"})
    return services.freeze(lab.researcher, made) if request.param == "frozen" else made


def meanwhile(ours: Callable, theirs: Callable):
    """The result of `theirs`, which waits for one of our locks before our transaction ends."""
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            ours()
            future = pool.submit(outcome, theirs)
            end = monotonic() + 60
            while monotonic() < end and not future.done() and not somebody_waits():
                sleep(0.01)
        return future.exception(60) or future.result(60)


def uses(lab, version) -> dict[str, Callable]:
    return {
        "project": lambda: projects.create(lab.researcher, name="Pilot", kind="pairwise", dataset=version),
        "evaluation": lambda: evaluations.create(lab.researcher, recipe="rubric_audit", config={}, dataset=version),
        "run": lambda: transaction.atomic(checks.frozen)(lab.researcher, version),
    }


@pytest.mark.parametrize("version", STATES, indirect=True)
@pytest.mark.parametrize("what", ["project", "evaluation", "run"])
def test_what_is_made_of_a_dataset_that_is_deleted_meanwhile_is_refused_at_its_field(lab, version, what):
    refused = meanwhile(lambda: housekeeping.delete(lab.researcher, version.dataset), uses(lab, version)[what])
    assert isinstance(refused, Invalid) and refused.fields == {"dataset": "was deleted meanwhile"}
    assert not Dataset.every.exists() and not Project.objects.exists()


@pytest.mark.parametrize("version", STATES, indirect=True)
def test_a_dataset_that_something_is_made_of_meanwhile_stays(lab, version):
    made = uses(lab, version)["project"]
    told = meanwhile(made, lambda: housekeeping.delete(lab.researcher, version.dataset))
    assert isinstance(told, Conflict) and "projects: Pilot" in told.message
    assert Dataset.objects.exists() and Project.objects.get().version == version
