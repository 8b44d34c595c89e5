"""RubricBench's layout (Zhang et al., 2026): one judged pair with the items of its rubric."""

from collections.abc import Iterator

from trainer.contracts import Example

from ...columns.derive import judged
from .. import label_origin
from ..base_exporter import LABELLED_BY, Exporter, Row, asked


def _rows(example: Example) -> Iterator[Row]:
    """The first judged pair. The label is the place of the better response, counted from 0."""
    verdict = judged(example)
    if example.rubric is None or verdict is None or verdict.chosen is None:
        return
    first_wins = verdict.strength < 0
    pair = (verdict.chosen, verdict.rejected) if first_wins else (verdict.rejected, verdict.chosen)
    yield {
        **example.model_dump(mode="json")["meta"],
        "case_id": example.key,
        "instruction": asked(example),
        "response_a": pair[0],
        "response_b": pair[1],
        "label": 0 if first_wins else 1,
        "rubrics": [criterion.text for criterion in example.rubric.criteria],
        "source": example.tags[0] if example.tags else "",
        "domain": example.domain,
        LABELLED_BY: [*_by(example), *label_origin.of_rubric(example)],
    }


def _by(example: Example) -> list[str]:
    """The origins of the labels of the first judged pair."""
    compared = [each for each in example.preferences if each.verdict == "compared" and each.strength is not None]
    first = {compared[0].a, compared[0].b}
    return label_origin.label_origins(each for each in compared if {each.a, each.b} == first)


EXPORTERS = (
    Exporter(
        name="rubricbench",
        label="RubricBench",
        help="instruction, response_a, response_b, label (0 or 1) and rubrics; a conversation is joined into one text.",
        rows=_rows,
        holds=frozenset({"key", "prompt", "domain", "rubric", "responses", "preferences", "meta"}),
        importer="rubricbench",
        needs="a rubric and a pair with a better side",
        kinds=("jsonl",),
    ),
)
