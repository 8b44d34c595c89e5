"""The OpenAPI document as somebody generates a client from it: complete, and true of what the server sends."""

import pytest
from ninja import NinjaAPI, Schema

from webapp.api import api
from webapp.core.openapi import Document

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
    [  # each of these was shown as another record of the same name
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


def test_two_records_of_one_name_are_refused():
    def named(field: str) -> type[Schema]:
        return type("Out", (Schema,), {"__annotations__": {field: int}})

    muddled = NinjaAPI(urls_namespace="muddled")
    muddled.get("/one", response=named("a"))(lambda request: None)
    muddled.get("/two", response=named("b"), operation_id="two")(lambda request: None)
    with pytest.raises(ValueError, match="two schemas of the API are called Out"):
        Document(muddled, "")
