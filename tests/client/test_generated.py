"""The generated part of the client compared with the document that the server makes from its code."""

import inspect

import pytest
from touchstone.calling import Group
from touchstone.server import Server

from scripts import client


@pytest.fixture(scope="module")
def document() -> client.ClientDocument:
    return client.ClientDocument(client.document())


def test_the_files_are_those_that_the_document_gives_today(tmp_path):
    """If this fails, run `python -m scripts.client`."""
    client.write(tmp_path / "api")
    made, kept = (
        {path.name: path.read_text() for path in folder.glob("*.py")} for folder in (tmp_path / "api", client.OUT)
    )
    assert made.keys() == kept.keys()
    assert [name for name, text in made.items() if text != kept[name]] == []


def test_each_operation_has_one_method(document):
    known = Server("http://x.test", "ts_x")
    for group, operations in document.groups.items():
        names = [each.name for each in operations]
        assert len(set(names)) == len(names), f"{group}: {sorted(names)}"
        methods = {name for name, _ in inspect.getmembers(type(getattr(known, group)), inspect.isfunction)}
        assert set(names) == {name for name in methods if not name.startswith("_")}
        assert not set(names) & set(vars(Group))
    assert sum(map(len, document.groups.values())) > 300


def test_only_what_no_token_opens_is_left_out(document):
    everything = {f"{method} {path}" for path, said in client.document()["paths"].items() for method in said}
    made = {f"{each.method.lower()} {client.PREFIX}{each.path}" for group in document.groups.values() for each in group}
    left = {each.partition(client.PREFIX)[2] for each in everything - made}
    assert left and all(each.startswith(client.LEFT_OUT) for each in left)
    assert set(client.NAMES) <= {each.said["operationId"] for group in document.groups.values() for each in group}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "integer"}, "int"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "str | None"),
        ({"enum": ["low", "high"], "type": "string"}, "Literal['low', 'high']"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/RunOut"}}, "list[RunOut]"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float]"),
        ({"type": "object", "additionalProperties": True}, "dict[str, Any]"),
        ({}, "Any"),
    ],
)
def test_a_schema_is_a_python_type(schema, said):
    assert client.hint(schema) == said
