"""Versions as files of other layouts, written piece by piece: memory does not grow with the version."""

import hashlib
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from django.db.models import Q
from pydantic_core import from_json, to_json

from trainer.contracts import Example
from webapp.core.problems import Invalid
from webapp.files.records import BadRow

from .. import queries
from ..columns import packed
from ..columns.filters import Filters
from ..formats import label_origin, patches, plain_pairs
from ..formats.base_exporter import ANSWER, EXTRAS, LABELLED_BY, PAIR, Kind, Row
from ..formats.base_importer import Alone
from ..formats.exporters import NATIVE, REGISTRY, Exporter, named
from ..formats.importers import REGISTRY as IMPORTERS
from ..models import DatasetVersion
from . import annotated, croissant, data_card

SEARCHED = 50_000  # in a version of at most this many examples, texts are searched for what no column has
BATCH = 500  # examples read, and at least as many rows written, at a time
TYPES = {"jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet", "zip": "application/zip"}
UNSPLIT = "unsplit"  # the file of examples that are on no side
SPLITS = ("train", "heldout", UNSPLIT)
FIELDS = {  # of an example, in words, with the count that tells whether a version has any
    "rubric": ("rubrics", "rubrics"),
    "responses": ("responses", "responses"),
    "preferences": ("preferences", "preferences with their raters and reasons"),
    "reference": ("examples", "reference answers"),
    "tags": ("examples", "tags"),
    "meta": ("examples", "other fields"),
}


@dataclass(frozen=True)
class ExportOrder:
    """The request for an export. `split`: train, heldout, UNSPLIT for examples without a side, or empty for all. `extras`: the column that
    lets an import give back the identical version. `imported`: also the labels that came with an import, not only those of projects."""

    exporter: Exporter
    kind: Kind = "jsonl"
    split: str = ""
    extras: bool = True
    archive: bool = False
    imported: bool = True

    @property
    def side(self) -> str | None:
        """The required split of an example; None for any."""
        return {"": None, UNSPLIT: ""}.get(self.split, self.split)

    @property
    def suffix(self) -> str:
        return "zip" if self.archive else self.kind


def order(
    format: str,
    kind: str = "jsonl",
    split: str = "",
    extras: bool = True,
    archive: bool = False,
    imported: bool = True,
) -> ExportOrder:
    """The checked request. Raises Invalid at `format`, `file` or `split`."""
    exporter = named(format)
    if exporter is None:
        raise Invalid("The format is not known.", {"format": f"must be one of {', '.join(REGISTRY)}"})
    if kind not in exporter.kinds:
        raise Invalid("The format has no such file.", {"file": f"must be one of {', '.join(exporter.kinds)}"})
    if split not in ("", *SPLITS):
        raise Invalid("The split is not known.", {"split": f"must be one of {', '.join(SPLITS)}"})
    return ExportOrder(exporter, "parquet" if kind == "parquet" else "jsonl", split, extras, archive, imported)


def leaves_out(exporter: Exporter, version: DatasetVersion, extras: bool = True) -> list[str]:
    """The parts of a version that are not in the file, in words: examples without a row, and fields for which the layout has no place,
    unless the column of extras has them."""
    counts = version.counts
    lost = []
    if "a rubric" in exporter.needs and (without := counts.get("examples", 0) - counts.get("rubrics", 0)):
        lost.append(f"{without:,} example{'s' if without > 1 else ''} without a rubric")
    if PAIR in exporter.needs and not counts.get("preferences"):
        lost.append(f"every example: none has {PAIR}")
    elif PAIR in exporter.needs and (without := _undecided(version)):
        lost.append(f"up to {without:,} example{'s' if without > 1 else ''} without {PAIR}")
    if exporter.needs == ANSWER and (without := _unanswered(version)):
        lost.append(f"up to {without:,} example{'s' if without > 1 else ''} without {ANSWER}")
    if exporter.importer and extras:
        return lost
    return lost + [
        words for field, (count, words) in FIELDS.items() if field not in exporter.holds and counts.get(count)
    ]


def says_otherwise(exporter: Exporter, version: DatasetVersion) -> list[str]:
    """The parts that the layout says in another way than we do, in words: the file has them, and its readers understand them in that
    way."""
    if not exporter.otherwise or not version.counts.get("rubrics"):
        return []
    held, told = packed.columns(version), []
    for kind, words in exporter.otherwise:
        found = packed.mask(held, Filters(kind=kind))
        if found is not None and (count := int(found.sum())):
            told.append(f"{count:,} example{'s' if count > 1 else ''} with {words}")
    return told


def _undecided(version: DatasetVersion) -> int:
    """The number of examples whose first judged pair has no better side; a later pair of theirs may have one."""
    strength = packed.columns(version)["strength"]
    return int((np.isnan(strength) | (strength == 0)).sum())


def _unanswered(version: DatasetVersion) -> int:
    """The number of examples without a better side in their first judged pair, a single response or a reference. Only the text tells
    whether there is a reference, and the texts of a large version are not searched."""
    rows = version.members.filter(Q(example__strength=None) | Q(example__strength=0)).exclude(example__response_count=1)
    if version.counts.get("examples", 0) <= SEARCHED:
        rows = rows.exclude(example__canonical__contains='"reference":')
    return rows.count() if _undecided(version) else 0


def is_empty(exporter: Exporter, version: DatasetVersion) -> bool:
    """Whether it is certain that no example has a row; the split is not considered."""
    needs, counts = exporter.needs, version.counts
    return (PAIR in needs and not counts.get("preferences")) or ("a rubric" in needs and not counts.get("rubrics"))


def refuse_empty(version: DatasetVersion, asked: ExportOrder) -> None:
    """Raises Invalid at `format` if the file would have no row and give no reason."""
    if is_empty(asked.exporter, version):
        why = f"needs examples with {asked.exporter.needs}, and this version has none"
        raise Invalid("The file would be empty.", {"format": why})


def chunks(version: DatasetVersion, asked: ExportOrder) -> Iterator[bytes]:
    """The file in pieces."""
    if asked.archive:
        return _archive(version, asked)
    return _data(version, asked)


def _data(version: DatasetVersion, asked: ExportOrder) -> Iterator[bytes]:
    if asked.kind == "parquet":
        return _parquet(version, asked)
    if asked.exporter is NATIVE and asked.imported:
        return _native(version, asked)
    if asked.exporter is NATIVE:
        return _signed(version, asked)
    return _jsonl(version, asked)


def _native(version: DatasetVersion, asked: ExportOrder) -> Iterator[bytes]:
    """The stored text itself, without parsing it."""
    lines = queries.stream_canonical(version, split=asked.side)
    while rows := list(islice(lines, BATCH)):
        yield "".join(line + "\n" for _, line in rows).encode()


def _signed(version: DatasetVersion, asked: ExportOrder) -> Iterator[bytes]:
    """Our own format without the labels that came with an import."""
    examples = _examples(version, asked)
    while part := list(islice(examples, BATCH)):
        yield "".join([line + "\n" for _, line in part]).encode()


def _examples(version: DatasetVersion, asked: ExportOrder) -> Iterator[tuple[Example, str]]:
    """Each requested example, with its canonical text."""
    for _, line in queries.stream_canonical(version, split=asked.side):
        example = Example.model_validate_json(line)
        if not asked.imported and (signed := label_origin.without_imported(example)) is not example:
            example, line = signed, signed.canonical()
        yield example, line


def _rows(version: DatasetVersion, asked: ExportOrder) -> Iterator[Row]:
    for example, line in _examples(version, asked):
        for row in rows_of(example, line, asked.exporter, asked.extras):
            if asked.imported or not label_origin.says_imported(row[LABELLED_BY]):  # a single response needs no label
                yield row


def rows_of(example: Example, line: str, exporter: Exporter, extras: bool = True) -> Iterator[Row]:
    """The rows of one example, whose canonical text is `line`; the first row has what the layout cannot say."""
    if exporter is NATIVE or not exporter.importer or not extras:
        yield from exporter.rows(example)
        return
    for number, row in enumerate(exporter.rows(example)):
        row.pop(EXTRAS, None)  # `meta` may hold this name: then it comes back with the changes
        yield {**row, EXTRAS: json.dumps({patches.AGAIN: example.key}) if number else _extras(row, line, exporter)}


def _extras(row: Row, line: str, exporter: Exporter) -> str:
    """The changes to the importer's result for the row; the whole example if the importer would refuse the row, for instance because its
    two texts are the same."""
    importer = IMPORTERS[exporter.importer or ""]
    try:
        made = plain_pairs.read_back(importer.converter(Alone(""))(from_json(to_json(row)), {}))
    except BadRow:
        return line
    return patches.written(made, line, importer.name)


def _jsonl(version: DatasetVersion, asked: ExportOrder) -> Iterator[bytes]:
    rows = _rows(version, asked)
    while part := list(islice(rows, BATCH)):
        yield b"".join([to_json(row) + b"\n" for row in part])


class _Sink:
    """A file that only grows, and is emptied as it is read."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._at = 0

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._parts.append(piece)
        self._at += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """Does nothing: no data is buffered."""

    def seekable(self) -> bool:
        return False

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True

    def taken(self) -> bytes:
        found, self._parts = b"".join(self._parts), []
        return found


def _parquet(version: DatasetVersion, asked: ExportOrder) -> Iterator[bytes]:
    schema = _schema(asked)
    if schema is None:
        raise ValueError(f"{asked.exporter.name} has no Parquet schema")
    sink = _Sink()
    rows = _rows(version, asked)
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd") as writer:
        while part := list(islice(rows, BATCH)):
            writer.write_table(pa.Table.from_pylist(part, schema=schema))
            yield sink.taken()
    yield sink.taken()


def _schema(asked: ExportOrder) -> pa.Schema | None:
    """The schema of the Parquet file; None if the layout has none."""
    schema = asked.exporter.schema
    if schema is not None and not asked.extras and asked.exporter is not NATIVE and EXTRAS in schema.names:
        schema = schema.remove(schema.get_field_index(EXTRAS))
    return schema


def _archive(version: DatasetVersion, asked: ExportOrder) -> Iterator[bytes]:
    """The data with its card, as a folder that the datasets library loads: one file for each split, which the card names. In one file, the
    held-out examples would be trained on too. The archive also has Croissant metadata, with the digests of the files."""
    sink, files = _Sink(), list[croissant.ExportedFile]()
    told = data_card.build(version)
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for split in [asked.split] if asked.split else splits_of(version):
            pieces = filter(None, _data(version, replace(asked, split=split)))
            if (first := next(pieces, None)) is None:
                continue  # no example of this side has a row in the layout, and an empty file cannot be loaded
            path, digest, size = f"data/{split}.{asked.kind}", hashlib.sha256(), 0
            with archive.open(path, "w", force_zip64=True) as file:
                for piece in chain((first,), pieces):
                    file.write(piece)
                    digest.update(piece)
                    size += len(piece)
                    yield sink.taken()
            files.append(croissant.ExportedFile(split, path, digest.hexdigest(), size))
        archive.writestr("README.md", data_card.markdown(told, {file.split: file.path for file in files}))
        archive.writestr("card.json", json.dumps(told, ensure_ascii=False, indent=2))
        described = croissant.build(
            told, files, asked.kind, _columns(asked), annotated.annotated_projects(version, told["lineage"])
        )
        archive.writestr("croissant.json", json.dumps(described, ensure_ascii=False, indent=2))
    yield sink.taken()


def _columns(asked: ExportOrder) -> pa.Schema | None:
    """The columns of the layout's file; None if its rows have no common shape."""
    if asked.kind == "jsonl" and asked.exporter is NATIVE:
        return None  # JSON Lines has the examples themselves; only the Parquet file is a table of texts
    return _schema(asked)


def splits_of(version: DatasetVersion) -> list[str]:
    """The splits that hold an example."""
    counts = {split: version.counts.get(split, 0) for split in ("train", "heldout")}
    counts[UNSPLIT] = version.counts.get("examples", 0) - sum(counts.values())
    return [split for split, count in counts.items() if count]
