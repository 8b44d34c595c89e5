"""A judge over a chat server on this machine, and examples to judge."""

import json
from dataclasses import replace

import pytest

from tests.trainer.judges.inputs import INPUT
from tests.webapp.datasets.conftest import import_rows  # noqa: F401  a fixture
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401  fixtures
from trainer.contracts import Criterion
from webapp.datasets.models import Example
from webapp.judging.judges.services import create_judge

MET = json.dumps({"explanation": "It says so.", "met": True})


@pytest.fixture
def version(team, endpoint):  # noqa: F811
    return create_judge(team.researcher, name="Strict", spec={"kind": "criterion"}, endpoint=endpoint)


def inputs(number=1, criteria=2, **changes):
    listed = tuple(Criterion(id=f"c{i}", text=f"Says {i}.", points=1) for i in range(criteria))
    return [
        replace(INPUT, example=f"e{n}", responses={"r1": f"Paris {n}."}, criteria=listed, **changes)
        for n in range(number)
    ]


@pytest.fixture
def examples(import_rows):  # noqa: F811
    """Three examples, each with two compared responses and a rubric of two criteria."""
    rows = [
        {
            "key": f"e{n}",
            "prompt": [{"role": "user", "content": f"Question {n}?"}],
            "responses": [{"id": "x", "text": f"Yes {n}."}, {"id": "y", "text": f"No {n}, never."}],
            "preferences": [{"a": "x", "b": "y", "strength": -1, "reasons": [{"text": "It is right"}]}],
            "rubric": {
                "criteria": [
                    {"id": "a", "text": "Says yes.", "points": 2},
                    {"id": "b", "text": "Is rude.", "points": -1},
                ]
            },
        }
        for n in range(3)
    ]
    import_rows(rows)
    return list(Example.objects.order_by("key"))
