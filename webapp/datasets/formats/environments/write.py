"""Rows that environments of reinforcement learning read: the library verifiers, and the judged rubrics of NeMo Gym."""

from collections.abc import Iterator

import pyarrow as pa

from trainer.contracts import Criterion, Example

from .. import label_origin
from ..base_exporter import MESSAGES, Exporter, Row, compact, facts, messages, schema
from .criteria import ours
from .read import conversation

TURNED = (
    "a criterion that costs points: it is asked for the other answer, so rewards keep their order and begin above 0"
)
JUDGED = "a criterion that a verifier of ours decides: a judge decides it there"


def _truth_by(example: Example) -> list[str]:
    """The authors of the rubric and of the reference."""
    return list(dict.fromkeys([*label_origin.of_rubric(example), *label_origin.of_reference(example)]))


def _named(criterion: Criterion) -> Row:
    """A criterion of verifiers' rubric judge; its choices go from worst to best."""
    said: Row = {"name": criterion.id, "text": criterion.text, "weight": abs(criterion.points)}
    return said | ({"choices": ["yes", "no"]} if criterion.points < 0 else {}) | ours(criterion)


def _verifiers(example: Example) -> Iterator[Row]:
    info = {"criteria": [_named(each) for each in example.rubric.criteria]} if example.rubric else {}
    asked: Row = {"id": example.key, "prompt": messages(example), "answer": example.reference, "info": compact(info)}
    yield asked | facts(example, _truth_by(example))


def _question(criterion: Criterion) -> Row:
    """A question of NeMo Gym's rubric judge, with the answer that earns its weight."""
    earns = "NO" if criterion.points < 0 else "YES"
    said = {"question": criterion.text, "pass_criteria": earns, "weight": abs(criterion.points)}
    return said | {"id": criterion.id} | ours(criterion)


def _nemo_gym(example: Example) -> Iterator[Row]:
    if example.rubric is None:
        return
    asked = messages(example)
    yield {
        "uuid": example.key,
        "responses_create_params": {"input": asked},
        "rubric": [_question(each) for each in example.rubric.criteria],
        "context": conversation(asked),
        "reference": example.reference,
        **facts(example, _truth_by(example)),
    }


HELD = frozenset({"key", "prompt", "split", "group", "domain", "source", "rubric", "reference"})
OTHERWISE = (("pitfall", TURNED), ("verifiable", JUDGED))
EXPORTERS = (
    Exporter(
        name="verifiers",
        label="verifiers",
        help="prompt, answer and info: JSON text with the criteria as the library's rubric judge takes them.",
        rows=_verifiers,
        holds=HELD,
        schema=schema(
            ("id", pa.string()), ("prompt", MESSAGES), ("answer", pa.string()), ("info", pa.string()), extras=True
        ),
        importer="environments",
        otherwise=OTHERWISE,
    ),
    Exporter(
        name="nemo_gym",
        label="NeMo Gym",
        help="responses_create_params and rubric: questions with the answer that earns their weight, for aggregation_mode: weighted.",
        rows=_nemo_gym,
        holds=HELD,
        importer="environments",
        needs="a rubric",
        kinds=("jsonl",),
        otherwise=OTHERWISE,
    ),
)
