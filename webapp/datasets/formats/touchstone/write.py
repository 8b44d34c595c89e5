"""Our own format: the canonical text of each example, which is what its digest is made of."""

from collections.abc import Iterator

from trainer.contracts import Example

from .. import label_origin
from ..base_exporter import EXTRAS, Exporter, Row, facts, schema


def _rows(example: Example) -> Iterator[Row]:
    by = [
        *label_origin.label_origins(example.preferences),
        *label_origin.of_rubric(example),
        *label_origin.of_reference(example),
    ]
    yield {**facts(example, list(dict.fromkeys(by))), EXTRAS: example.canonical()}


NATIVE = Exporter(
    name="touchstone",
    label="Touchstone",
    help="Everything there is, one example a line. Parquet holds the same text in one column, beside the filters.",
    rows=_rows,
    holds=frozenset(Example.model_fields),
    schema=schema(extras=True),
    importer="touchstone",
)
EXPORTERS = (NATIVE,)
