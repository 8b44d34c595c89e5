"""Recorded verdicts of two judges on a few pairs, and the dataset of these pairs."""

import json

import pytest

from tests.webapp.weights.conftest import model  # noqa: F401  a fixture
from trainer.contracts import Example, Message, Preference, Response
from webapp.datasets.versions import services as datasets
from webapp.evaluation.launch import services
from webapp.evaluation.models import Evaluation, Recording
from webapp.evaluation.recordings import services as recordings
from webapp.evaluation.work import running

# (label, verdicts of the good judge, verdicts of the hasty one): in the given order, and in swapped order as the judge said it
PAIRS = [
    ("A", ("A", "B"), ("A", "A")),
    ("B", ("B", "A"), ("A", "A")),
    ("A", ("A", "B"), ("A", "B")),
    ("B", ("B", "A"), (None, "A")),
]


def lines(pairs=PAIRS) -> list[dict]:
    found = []
    for i, (label, good, hasty) in enumerate(pairs):
        for judge, (given, swapped) in (("good", good), ("hasty", hasty)):
            group = "math" if i % 2 else "code"
            found.append(
                {"judge": judge, "pair": f"p{i}", "group": group, "label": label, "given": given, "swapped": swapped}
            )
    return found


def as_file(rows: list[dict]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def make_examples(count=4) -> list[Example]:
    return [
        Example(
            key=f"p{i}",
            prompt=(Message(role="user", content=f"Question {i} ü"),),
            responses=(Response(id="a", text=f"First answer {i}"), Response(id="b", text=f"Second answer {i}")),
            preferences=(Preference(a="a", b="b", strength=-2 if i % 2 == 0 else 2, rater="gold"),),
        )
        for i in range(count)
    ]


@pytest.fixture
def recording(team) -> Recording:
    return recordings.store_recording(team.researcher, "verdicts.jsonl", as_file(lines()))


@pytest.fixture
def version(team):
    made = datasets.create_dataset(team.researcher, "pairs")
    return datasets.new_version(team.researcher, made, make_examples(), None, {"from": "test"})


@pytest.fixture
def audit(team, recording, version):
    """A judge audit of the recording that has not run yet. Keywords replace the defaults."""

    def _audit(membership=None, **kwargs) -> Evaluation:
        chosen = {"recipe": "judge_audit", "config": {}, "recording": recording, "dataset": version} | kwargs
        return services.create(membership or team.researcher, **chosen)

    return _audit


@pytest.fixture
def finished(audit) -> Evaluation:
    row = audit()
    running.run(row.pk)
    row.refresh_from_db()
    return row
