"""Every address of MLflow's protocol. It is closed to lower roles and to other workspaces, and no request makes it fail."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webapp.mlflow.urls import urlpatterns
from webapp.tracking.models import LoggedRun

from .speaking import ARTIFACTS, Speaker

pytestmark = pytest.mark.django_db

READING: dict[str, Any] = {  # method, and the object of the request
    "experiments/get": ("get", {"experiment_id": "EXPERIMENT"}),
    "experiments/get-by-name": ("get", {"experiment_name": "Default"}),
    "experiments/search": ("post", {}),
    "runs/get": ("get", {"run_id": "RUN"}),
    "runs/search": ("post", {"experiment_ids": ["EXPERIMENT"]}),
    "metrics/get-history": ("get", {"run_id": "RUN", "metric_key": "loss"}),
    "artifacts/list": ("get", {"run_id": "RUN"}),
    "logged-models/search": ("post", {}),
}
WRITING: dict[str, Any] = {
    "experiments/create": {"name": "another"},
    "experiments/set-experiment-tag": {"experiment_id": "EXPERIMENT", "key": "a", "value": "b"},
    "runs/create": {"experiment_id": "EXPERIMENT"},
    "runs/update": {"run_id": "RUN", "status": "RUNNING"},
    "runs/delete": {"run_id": "RUN"},
    "runs/restore": {"run_id": "RUN"},
    "runs/log-metric": {"run_id": "RUN", "key": "m", "value": 1.0, "timestamp": 1, "step": 1},
    "runs/log-batch": {"run_id": "RUN"},
    "runs/log-parameter": {"run_id": "RUN", "key": "p", "value": "1"},
    "runs/set-tag": {"run_id": "RUN", "key": "a", "value": "b"},
    "runs/delete-tag": {"run_id": "RUN", "key": "mine"},
}
OWN = {
    "experiments/create",
    "experiments/search",
    "runs/search",
    "logged-models/search",
}  # not about a row of another workspace
TRACKING = "api/2.0/mlflow/"


@pytest.fixture
def about(speaker) -> dict[str, str]:
    key = speaker.run(tags=[{"key": "mine", "value": "1"}])
    speaker.log(key, ("loss", 1.0, 1))
    return {"RUN": key, "EXPERIMENT": speaker.told(key)["info"]["experiment_id"]}


def filled(body: dict, about: dict[str, str]) -> dict:
    """The request, with ids in the places of words."""
    named = json.dumps(body)
    for word, known in about.items():
        named = named.replace(f'"{word}"', f'"{known}"')
    return json.loads(named)


def test_every_address_is_named_here():
    there = {str(each.pattern).removeprefix(TRACKING) for each in urlpatterns if str(each.pattern).startswith(TRACKING)}
    assert there == READING.keys() | WRITING.keys()


def test_reading_is_of_reviewers_and_writing_of_researchers(cast, about):
    people = {who.role: Speaker(who) for who in (cast.owner, cast.researcher, cast.reviewer, cast.annotator)}
    for what, (method, body) in READING.items():
        found = {role: getattr(who, method)(what, **filled(body, about)).status_code for role, who in people.items()}
        assert found == {"owner": 200, "researcher": 200, "reviewer": 200, "annotator": 403}, what
    for what, body in WRITING.items():
        for role in ("annotator", "reviewer"):
            assert people[role].post(what, **filled(body, about)).status_code == 403, (what, role)
        assert people["researcher"].post(what, **filled(body, about)).status_code == 200, what


def test_rows_of_another_workspace_are_not_there(cast, about):
    other = Speaker(cast.outsider)
    for what, (method, body) in READING.items():
        answer = getattr(other, method)(what, **filled(body, about))
        if what in OWN:
            assert not any(answer.json().values()), what
        else:
            assert answer.status_code == 404, what
    for what, body in WRITING.items():
        if what not in OWN:
            assert other.post(what, **filled(body, about)).status_code == 404, what
    assert LoggedRun.objects.get().tags["mine"] == "1"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "run_id", "run_uuid", "experiment_id", "experiment_ids", "key", "value", "timestamp", "step", "metrics", "params", "tags", "status",
    "end_time", "run_name", "filter", "order_by", "max_results", "page_token", "name", "run_view_type", "metric_key", "path",
)  # fmt: skip


@pytest.mark.parametrize("what", [*READING, *WRITING])
def test_no_input_breaks_an_address(speaker, about, what):
    known = {"run_id": about["RUN"], "experiment_id": about["EXPERIMENT"]}

    @given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=8), st.booleans())
    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    def ask(drawn, about_known):
        body = json.dumps({**(known if about_known else {}), **drawn}).encode()
        for answer in (
            speaker.client.post(f"/mlflow/{TRACKING}{what}", body, content_type="application/json"),
            speaker.client.get(f"/mlflow/{TRACKING}{what}", {k: str(v).replace("\0", "") for k, v in drawn.items()}),
        ):
            assert answer.status_code < 500, (body, answer.content)
            assert answer.status_code == 200 or answer.json()["error_code"]

    ask()


@given(st.text(max_size=60))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_path_breaks_the_files(cast_once, path):
    answer = cast_once.client.get(f"{ARTIFACTS}", {"path": path.replace("\0", "")})
    assert answer.status_code in (400, 404)


@pytest.fixture
def cast_once(speaker):
    return speaker
