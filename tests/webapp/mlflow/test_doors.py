"""Every address of MLflow's protocol. It is closed to lower roles and to other workspaces, and no request makes it fail."""

import json
import re
from copy import deepcopy
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from django.test import override_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.team import Team, make_team
from webapp.mlflow.urls import urlpatterns
from webapp.tracking.models import FamilyVersion, LoggedRun

from .rest_client import ARTIFACTS, RestClient

pytestmark = pytest.mark.django_db

Asked = tuple[str, str, dict[str, Any]]  # method, address, and the object of the request
READING: list[Asked] = [
    ("get", "experiments/get", {"experiment_id": "EXPERIMENT"}),
    ("get", "experiments/get-by-name", {"experiment_name": "Default"}),
    ("post", "experiments/search", {}),
    ("get", "runs/get", {"run_id": "RUN"}),
    ("post", "runs/search", {"experiment_ids": ["EXPERIMENT"]}),
    ("get", "metrics/get-history", {"run_id": "RUN", "metric_key": "loss"}),
    ("get", "artifacts/list", {"run_id": "RUN"}),
    ("post", "logged-models/search", {"experiment_ids": ["EXPERIMENT"]}),
    ("get", "logged-models/<str:key>", {}),
    ("get", "registered-models/get", {"name": "ours"}),
    ("get", "registered-models/search", {}),
    ("get", "registered-models/get-latest-versions", {"name": "ours"}),
    ("post", "registered-models/get-latest-versions", {"name": "ours"}),
    ("get", "registered-models/alias", {"name": "ours", "alias": "best"}),
    ("get", "model-versions/get", {"name": "ours", "version": "1"}),
    ("get", "model-versions/search", {}),
    ("get", "model-versions/get-download-uri", {"name": "ours", "version": "1"}),
]
WRITING: list[Asked] = [
    ("post", "experiments/create", {"name": "another"}),
    ("post", "experiments/set-experiment-tag", {"experiment_id": "EXPERIMENT", "key": "a", "value": "b"}),
    ("post", "runs/create", {"experiment_id": "EXPERIMENT"}),
    ("post", "runs/update", {"run_id": "RUN", "status": "RUNNING"}),
    ("post", "runs/delete", {"run_id": "RUN"}),
    ("post", "runs/restore", {"run_id": "RUN"}),
    ("post", "runs/log-metric", {"run_id": "RUN", "key": "m", "value": 1.0, "timestamp": 1, "step": 1}),
    ("post", "runs/log-batch", {"run_id": "RUN"}),
    ("post", "runs/log-parameter", {"run_id": "RUN", "key": "p", "value": "1"}),
    ("post", "runs/set-tag", {"run_id": "RUN", "key": "a", "value": "b"}),
    ("post", "runs/delete-tag", {"run_id": "RUN", "key": "mine"}),
    ("post", "runs/log-model", {"run_id": "RUN", "model_json": "{}"}),
    ("post", "runs/log-inputs", {"run_id": "RUN", "datasets": [{"dataset": {"name": "d", "digest": "1"}}]}),
    ("post", "runs/outputs", {"run_id": "RUN", "models": [{"model_id": "MODEL", "step": 3}]}),
    ("post", "logged-models", {"experiment_id": "EXPERIMENT"}),
    ("patch", "logged-models/<str:key>", {"status": "LOGGED_MODEL_READY"}),
    ("post", "logged-models/<str:key>/params", {"params": [{"key": "p", "value": "1"}]}),
    ("patch", "logged-models/<str:key>/tags", {"tags": [{"key": "t", "value": "1"}]}),
    ("delete", "logged-models/<str:key>/tags/<path:tag>", {}),
    ("post", "registered-models/create", {"name": "theirs"}),
    ("patch", "registered-models/update", {"name": "ours", "description": "good"}),
    ("post", "registered-models/set-tag", {"name": "ours", "key": "t", "value": "1"}),
    ("delete", "registered-models/delete-tag", {"name": "ours", "key": "t"}),
    ("post", "registered-models/alias", {"name": "ours", "alias": "best", "version": "1"}),
    ("delete", "registered-models/alias", {"name": "ours", "alias": "best"}),
    ("post", "model-versions/create", {"name": "ours", "source": "models:/MODEL"}),
    ("patch", "model-versions/update", {"name": "ours", "version": "1", "description": "good"}),
    ("post", "model-versions/transition-stage", {"name": "ours", "version": "1", "stage": "staging"}),
    ("post", "model-versions/set-tag", {"name": "ours", "version": "1", "key": "t", "value": "1"}),
    ("delete", "model-versions/delete-tag", {"name": "ours", "version": "1", "key": "t"}),
    ("delete", "model-versions/delete", {"name": "ours", "version": "1"}),
    ("post", "registered-models/rename", {"name": "ours", "new_name": "renamed"}),
    ("delete", "registered-models/delete", {"name": "renamed"}),
    ("delete", "logged-models/<str:key>", {}),
]
OWN = {  # not about a row of another workspace
    "experiments/create",
    "experiments/search",
    "runs/search",
    "logged-models/search",
    "registered-models/create",
    "registered-models/search",
    "model-versions/search",
}
TRACKING = "api/2.0/mlflow/"


@pytest.fixture(scope="module")
def logged_team(module_rows, tmp_path_factory) -> tuple[Team, Path, dict[str, str]]:
    """The team, the folder and the ids of what was logged, which each test finds as it was."""
    var = tmp_path_factory.mktemp("var")
    with module_rows(), override_settings(VAR=var):
        team = make_team()
        return team, var, logged(RestClient(team.researcher))


def logged(rest_client: RestClient) -> dict[str, str]:
    key = rest_client.run(tags=[{"key": "mine", "value": "1"}])
    rest_client.log(key, ("loss", 1.0, 1))
    model = rest_client.post("logged-models", source_run_id=key, name="net").json()["model"]["info"]["model_id"]
    experiment = rest_client.get_run(key)["info"]["experiment_id"]
    rest_client.client.put(f"{ARTIFACTS}/{experiment}/models/{model}/artifacts/MLmodel", b"flavors: {}")
    rest_client.post("registered-models/create", name="ours")
    rest_client.post("model-versions/create", name="ours", source=f"models:/{model}")
    rest_client.post("registered-models/alias", name="ours", alias="best", version="1")
    return {"RUN": key, "EXPERIMENT": experiment, "MODEL": model}


@pytest.fixture
def team(db, logged_team) -> Team:
    return deepcopy(logged_team[0])


@pytest.fixture
def about(logged_team, settings, tmp_path) -> dict[str, str]:
    settings.VAR = tmp_path / "var"
    copytree(logged_team[1], settings.VAR)
    return dict(logged_team[2])


def answer_to(who: RestClient, asks: Asked, about: dict[str, str]) -> Any:
    """The answer to the request, with ids in the places of words."""
    method, what, body = asks
    named = json.dumps(body)
    for word, known in about.items():
        named = re.sub(rf'(["/]){word}"', rf'\g<1>{known}"', named)
    return who.ask(method, address(what, about), json.loads(named))


def address(what: str, about: dict[str, str]) -> str:
    return what.replace("<str:key>", about["MODEL"]).replace("<path:tag>", "t")


def test_every_address_is_named_here():
    there = {str(each.pattern).removeprefix(TRACKING) for each in urlpatterns if str(each.pattern).startswith(TRACKING)}
    assert there == {what for _, what, _ in (*READING, *WRITING)}


def test_reading_is_of_reviewers_and_writing_of_researchers(team, about):
    people = {who.role: RestClient(who) for who in (team.owner, team.researcher, team.reviewer, team.annotator)}
    for each in READING:
        found = {role: answer_to(who, each, about).status_code for role, who in people.items()}
        assert found == {"owner": 200, "researcher": 200, "reviewer": 200, "annotator": 403}, each
    for each in WRITING:
        for role in ("annotator", "reviewer"):
            assert answer_to(people[role], each, about).status_code == 403, (each, role)
        assert answer_to(people["researcher"], each, about).status_code == 200, each


def test_rows_of_another_workspace_are_not_there(team, about):
    other = RestClient(team.outsider)
    for each in READING:
        answer = answer_to(other, each, about)
        if each[1] in OWN:
            assert not any(answer.json().values()), each
        else:
            assert answer.status_code == 404, each
    for each in WRITING:
        if each[1] not in OWN:
            assert answer_to(other, each, about).status_code == 404, each
    assert LoggedRun.objects.get().tags["mine"] == "1" and FamilyVersion.objects.count() == 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "run_id", "run_uuid", "experiment_id", "experiment_ids", "key", "value", "timestamp", "step", "metrics", "params", "tags", "status",
    "end_time", "run_name", "filter", "order_by", "max_results", "page_token", "name", "run_view_type", "metric_key", "path",
    "alias", "version", "source", "new_name", "stage", "stages", "models", "datasets", "model_json", "source_run_id",
)  # fmt: skip


@pytest.mark.parametrize(("method", "what"), dict.fromkeys((method, what) for method, what, _ in (*READING, *WRITING)))
def test_no_input_breaks_an_address(rest_client, about, method, what):
    known = {"run_id": about["RUN"], "experiment_id": about["EXPERIMENT"], "name": "ours", "version": "1"}

    @given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=8), st.booleans())
    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    def ask(drawn, about_known):
        body = json.dumps({**(known if about_known else {}), **drawn}).encode()
        at = f"/mlflow/{TRACKING}{address(what, about)}"
        for answer in (
            rest_client.client.generic(
                "POST" if method == "get" else method.upper(), at, body, content_type="application/json"
            ),
            rest_client.client.get(at, {k: str(v).replace("\0", "") for k, v in drawn.items()}),
        ):
            assert answer.status_code < 500, (body, answer.content)
            assert answer.status_code == 200 or answer.json()["error_code"]

    ask()


@given(st.text(max_size=60))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_path_breaks_the_files(team_once, path):
    answer = team_once.client.get(f"{ARTIFACTS}", {"path": path.replace("\0", "")})
    assert answer.status_code in (400, 404)


@pytest.fixture
def team_once(rest_client):
    return rest_client
