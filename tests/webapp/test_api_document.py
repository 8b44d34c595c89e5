"""The OpenAPI document, as people generate clients from it: it is complete, and matches the answers of the server."""

import json
import re

import pytest
from jsonschema import Draft202012Validator
from ninja import NinjaAPI, Schema

from tests.team import ApiClient
from tests.webapp.test_what_annotators_see import filled, ids_of, working
from webapp.api import api
from webapp.core.requests.openapi import Document

DOCUMENT = api.get_openapi_schema()
ERROR = {"$ref": "#/components/responses/Error"}


def test_every_operation_says_what_it_answers():
    silent = [
        (method, path, status)
        for path, methods in DOCUMENT["paths"].items()
        for method, spec in methods.items()
        for status, answer in spec["responses"].items()
        if answer != ERROR and status != 204 and not answer.get("content")
    ]
    assert not silent
    assert all(spec["responses"]["default"] == ERROR for each in DOCUMENT["paths"].values() for spec in each.values())


@pytest.mark.parametrize(
    ("path", "method", "status", "fields"),
    [  # each of these was described as another record with the same name
        ("/assignments/{assignment_id}/submit", "post", 200, {"answer", "feedback", "after", "stress", "queue"}),
        ("/judges", "post", 201, {"judge_id", "number", "spec"}),
        ("/datasets/{dataset_id}/versions/{number}", "get", 200, {"counts", "facets", "lineage"}),
        ("/rubrics/check", "post", 200, {"hints"}),
        ("/members/invite", "post", 201, {"url"}),
        ("/datasets/{dataset_id}/versions/{number}/histograms", "get", 200, {"items"}),
    ],
)
def test_a_schema_is_the_one_of_its_operation(path, method, status, fields):
    spec = DOCUMENT["paths"][f"/api/v1{path}"][method]
    name = spec["responses"][status]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert fields <= set(DOCUMENT["components"]["schemas"][name]["properties"])


LOOSE = {"ResponseIn", "ExampleIn"}  # records in a body that may say more, as the pages do


def test_no_body_loses_a_key_in_silence():
    schemas = DOCUMENT["components"]["schemas"]
    contents = [
        spec["requestBody"]["content"]
        for each in DOCUMENT["paths"].values()
        for spec in each.values()
        if "requestBody" in spec
    ]
    told = json.dumps([content.get("application/json", {}) for content in contents])
    names, waiting = set(), set(re.findall(r"/schemas/(\w+)", told))
    while waiting:
        names.add(name := waiting.pop())
        waiting |= set(re.findall(r"/schemas/(\w+)", json.dumps(schemas[name]))) - names
    loose = {
        name
        for name in names
        if "properties" in schemas[name] and schemas[name].get("additionalProperties") is not False
    }
    assert len(names) > 100 and loose <= LOOSE, "derive it from webapp.core.requests.openapi.StrictIn"


def test_it_is_made_once_for_each_place_of_the_api():
    assert api.get_openapi_schema() is DOCUMENT
    elsewhere = api.get_openapi_schema(path_prefix="/elsewhere/")
    assert elsewhere["paths"].keys() == {path.replace("/api/v1", "/elsewhere") for path in DOCUMENT["paths"]}
    assert api.get_openapi_schema(path_prefix="/elsewhere/") is elsewhere and api.get_openapi_schema() is DOCUMENT


def test_two_records_of_one_name_are_refused():
    def named(field: str) -> type[Schema]:
        return type("Out", (Schema,), {"__annotations__": {field: int}})

    muddled = NinjaAPI(urls_namespace="muddled")
    muddled.get("/one", response=named("a"))(lambda request: None)
    muddled.get("/two", response=named("b"), operation_id="two")(lambda request: None)
    with pytest.raises(ValueError, match="two schemas of the API are called Out"):
        Document(muddled, "")


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["pairwise", "rubric"])
def test_what_is_there_is_shown_as_described(team, kind):
    project = working(team, kind)
    client, answered, ids = ApiClient(team.researcher), set(), ids_of(team, project)
    for path, methods in DOCUMENT["paths"].items():
        if "get" not in methods or "/ingest/" in path:
            continue
        address = filled(ids, re.sub(r"{(\w+)}", r"<\1>", path).removeprefix("/"))
        response = client.client.get(address, {"base": 1} if path.endswith("/diff") else {})
        problems = list(_problems(response, methods["get"]["responses"]))
        assert not problems, (address, response.status_code, problems)
        if response.status_code == 200:
            answered.add(path.removeprefix("/api/v1"))
    assert {"/assignments/{assignment_id}", "/projects/{project_id}/answers", "/tasks/{task_id}/review"} <= answered
    assert {"/judges/{judge_id}/versions/{number}", "/datasets/{dataset_id}/versions/{number}/diff"} <= answered


def _problems(response, described) -> list[str]:
    """The differences between an answer and the description of its operation."""
    answer = described.get(response.status_code, DOCUMENT["components"]["responses"]["Error"])
    told = answer["content"].get(response["Content-Type"].partition(";")[0])
    if told is None or getattr(response, "streaming", False):
        return [] if told else [f"{response['Content-Type']} is not described"]
    if told["schema"].get("format") == "binary":
        return []
    whole = {**told["schema"], "components": DOCUMENT["components"]}
    return [f"{each.json_path}: {each.message}" for each in Draft202012Validator(whole).iter_errors(response.json())]


def test_every_page_says_how_many_rows_it_may_have():
    limits = [
        parameter["schema"]
        for path, methods in DOCUMENT["paths"].items()
        for spec in methods.values()
        for parameter in spec["parameters"]
        if parameter["name"] == "limit"
    ]
    assert len(limits) > 30
    assert all(limit["minimum"] == 1 and limit["maximum"] >= 100 for limit in limits)
