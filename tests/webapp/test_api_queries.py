"""Every parameter in the address of a request is known or refused, for every operation of the OpenAPI document."""

import re

import pytest
from django.test import Client

from tests.team import ApiClient
from tests.webapp.experiments.conftest import make_version
from tests.webapp.test_what_annotators_see import filled, ids_of, working
from webapp.api import api
from webapp.datasets.models import DatasetVersion
from webapp.experiments.launch import services as launch
from webapp.experiments.launch.checks import DatasetChoice
from webapp.experiments.lifecycle import tokens
from webapp.inference.models import RegisteredModel
from webapp.weights import services as weights
from webapp.weights import tokens as weights_tokens

pytestmark = pytest.mark.django_db

PATHS = api.get_openapi_schema()["paths"]
OPERATIONS = [(method, path) for path, methods in PATHS.items() for method in methods]
WORDS = {
    "q",
    "domain",
    "source",
    "verifier",
    "cursor",
    "key",
    "keys",
    "ids",
    "dataset",
    "tag",
    "criterion",
    "part",
    "alias",
    "by",
}
WORDS |= {"field", "pair", "first", "second", "between", "limit"}  # parameters that are not members of a fixed set
NONSENSE = "no-such-value"


def test_a_parameter_that_an_operation_does_not_have_is_named(team):
    mute, owner = [], ApiClient(team.owner).client
    ours = {"/ingest/runs/": a_run(team), "/ingest/weights/": a_job(team)}
    for method, path in OPERATIONS:
        number, client = next((each for part, each in ours.items() if part in path), (1, owner))
        address = re.sub(r"{\w+}", str(number), path)
        response = client.generic(method.upper(), f"{address}?no_such_parameter=1", content_type="application/json")
        fields = response.json()["error"]["fields"] if response.status_code == 422 else []
        if [each["path"] for each in fields] != ["no_such_parameter"]:
            mute.append((method, path, response.status_code))
    assert not mute
    assert len(OPERATIONS) > 200


def a_run(team) -> tuple[int, Client]:
    """(the id of a run, a client with the key of its process)."""
    version = make_version(team.owner)
    RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="o/m")
    choice = DatasetChoice(id=version.dataset_id)
    run = launch.launch(team.owner, recipe="policy", config={"steps": 2}, dataset=choice, model="m")
    return run.pk, Client(headers={"authorization": f"Bearer {tokens.run_token(run)}"})


def a_job(team) -> tuple[int, Client]:
    model, version = RegisteredModel.objects.get(), DatasetVersion.objects.get()
    job = weights.generate(team.workspace, team.owner.user, model, version, {"split": ""})
    return job.pk, Client(headers={"authorization": f"Bearer {weights_tokens.token(job)}"})


def test_who_may_not_come_in_hears_of_no_parameter(client):
    assert client.get("/api/v1/runs?no_such_parameter=1").status_code == 401


def test_a_value_that_a_parameter_does_not_have_is_refused_at_its_name(team):
    client, asked, ids = ApiClient(team.owner), set(), ids_of(team, working(team, "pairwise"))
    kinds: set[str] = set()
    for path, methods in PATHS.items():
        for parameter in methods.get("get", {"parameters": []})["parameters"]:
            name, kind = parameter["name"], str(parameter)
            if parameter["in"] == "path" or name in WORDS or "/runs/" in path or "/ingest/" in path or kind in kinds:
                continue
            address = filled(ids, re.sub(r"{(\w+)}", r"<\1>", path).removeprefix("/"))
            answer = client.client.get(
                address, {"base": 1, name: NONSENSE} if path.endswith("/diff") else {name: NONSENSE}
            )
            if answer.status_code == 404:  # there is no object of this kind
                continue
            assert answer.status_code == 422, (address, name, answer.content)
            assert name in {each["path"] for each in answer.json()["error"]["fields"]}, (address, name)
            asked.add((path.removeprefix("/api/v1"), name))
            kinds.add(kind)  # three lists share the filters of examples
    assert {
        ("/runs", "state"),
        ("/evaluations", "state"),
        ("/evaluations", "recipe"),
        ("/weights-jobs", "kind"),
    } <= asked
    assert {("/projects", "state"), ("/projects/{project_id}/tasks", "state")} <= asked


def test_these_operations_do_a_thing_once_for_a_key():
    """A new operation of this kind needs a test that the same key with another body is refused."""
    takes = {
        (method, path.removeprefix("/api/v1"), parameter["name"])
        for path, methods in PATHS.items()
        for method, spec in methods.items()
        for parameter in spec["parameters"]
        if parameter["in"] == "header"
    }
    made = (
        "/claims",
        "/sweeps",
        "/runs",
        "/runs/{run_id}/fork",
        "/runs/{run_id}/chain",
        "/runs/{run_id}/repeats",
        "/projects/{project_id}/then",
        "/runs/{run_id}/rollouts/notes",
        "/evaluations",
        "/evaluations/{evaluation_id}/rerun",
    )
    assert takes == {("post", path, "Idempotency-Key") for path in made}
