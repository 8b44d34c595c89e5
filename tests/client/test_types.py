"""The client's types compared with the document that the server generates from its code."""

from typing import get_type_hints

import pytest
from touchstone import types

from webapp.api import api

SCHEMAS = {
    "RunOut": types.Run,
    "RunProgressOut": types.Progress,
    "RunDatasetOut": types.RunDataset,
    "EarlyStopOut": types.EarlyStop,
    "MetricPointOut": types.Point,
    "ArtifactOut": types.Artifact,
    "CostAmountOut": types.CostAmount,
    "CostOut": types.Cost,
}
JSON = {"string": str, "integer": int, "number": float, "boolean": bool}


@pytest.fixture(scope="module")
def described() -> dict:
    return api.get_openapi_schema()["components"]["schemas"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_type_says_what_the_document_says(described, name):
    properties, hints = described[name]["properties"], get_type_hints(SCHEMAS[name])
    assert hints.keys() == properties.keys()
    for key, told in properties.items():
        ways = told.get("anyOf", [told])
        nullable = any(each.get("type") == "null" for each in ways)
        args = getattr(hints[key], "__args__", ())
        assert (type(None) in args) == nullable, key
        if plain := next((JSON[each["type"]] for each in ways if each.get("type") in JSON), None):
            assert hints[key] is plain or plain in args, key
