"""HealthBench's layout (Arora et al., 2025): conversations with criteria worth points."""

from collections.abc import Iterator

from trainer.contracts import Example

from .. import label_origin
from ..base_exporter import LABELLED_BY, Exporter, Row, messages


def _rows(example: Example) -> Iterator[Row]:
    if example.rubric is None:
        return
    row: Row = {
        **example.model_dump(mode="json")["meta"],
        "prompt": messages(example),
        "prompt_id": example.key,
        "rubrics": [
            {"criterion": each.text, "points": each.points, "tags": list(each.tags)} for each in example.rubric.criteria
        ],
        "example_tags": list(example.tags),
        LABELLED_BY: list(dict.fromkeys([*label_origin.of_rubric(example), *label_origin.of_reference(example)])),
    }
    if example.reference is not None or example.responses:
        known = row.get("ideal_completions_data")  # of any type, if the example came in another layout
        row["ideal_completions_data"] = {
            **(known if isinstance(known, dict) else {}),
            "ideal_completion": example.reference,
            "ideal_completions_ref_completions": [response.text for response in example.responses],
        }
    yield row


EXPORTERS = (
    Exporter(
        name="healthbench",
        label="HealthBench",
        help="prompt, rubrics with points and tags, example_tags, ideal_completions_data.",
        rows=_rows,
        holds=frozenset({"key", "prompt", "tags", "rubric", "responses", "reference", "meta"}),
        importer="healthbench",
        needs="a rubric",
        kinds=("jsonl",),
    ),
)
