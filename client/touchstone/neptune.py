"""Reads what Neptune's exporter writes: a folder of Parquet files with one row for each value, in parts for each run. Needs pyarrow."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import distributions
from .tensorboard import Scalar

COLUMNS = ("project_id", "run_id", "attribute_path", "attribute_type", "step", "timestamp")
VALUES = (
    "int_value",
    "float_value",
    "string_value",
    "bool_value",
    "datetime_value",
    "string_set_value",
    "histogram_value",
    "file_value",
)
PLAIN = {
    "int": "int_value",
    "float": "float_value",
    "string": "string_value",
    "bool": "bool_value",
    "datetime": "datetime_value",
    "string_set": "string_set_value",
}
NAME, BEGAN = "sys/name", "sys/creation_time"
Place = tuple[str, str]  # project and run
DENSITIES = (
    "DENSITY",
    "DENSITIES",
)  # types of histograms whose values are shares for each unit of width; others are counts


@dataclass
class Part:
    """The rows of one run in one file."""

    project: str
    run: str
    config: dict[str, Any] = field(default_factory=dict)
    scalars: list[Scalar] = field(default_factory=list)
    unsaid: "Counter[str]" = field(default_factory=Counter)


def check(path: Path) -> None:
    """Raises ValueError if it is not such a file, or if pyarrow is not installed."""
    with _opened(path) as file:
        names = set(file.schema_arrow.names)
    if not set(COLUMNS) <= names:
        raise ValueError(f"{path} is not an export of Neptune: it lacks {', '.join(sorted(set(COLUMNS) - names))}.")


def about(files: Sequence[Path]) -> dict[Place, dict[str, Any]]:
    """Name and beginning of each run, by their paths. A file of several runs has the names of all of them far behind its first rows."""
    found: dict[Place, dict[str, Any]] = {}
    for path in files:
        with _opened(path) as file:
            wanted = ("project_id", "run_id", "attribute_path", "string_value", "datetime_value")
            names = [name for name in wanted if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=names):
                for row in batch.filter(_is_about(batch["attribute_path"])).to_pylist():
                    value = row.get("datetime_value" if row["attribute_path"] == BEGAN else "string_value")
                    if value is not None:
                        place = (str(row["project_id"]), str(row["run_id"]))
                        found.setdefault(place, {})[row["attribute_path"]] = value
    return found


def _is_about(paths: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.is_in(paths, pa.array([NAME, BEGAN], paths.type))


def parts(path: Path) -> Iterator[Part]:
    """The runs of a file, a few thousand rows at a time."""
    with _opened(path) as file:
        names = [name for name in (*COLUMNS, *VALUES) if name in file.schema_arrow.names]
        for batch in file.iter_batches(batch_size=5_000, columns=names):
            yield from _sorted(batch.to_pylist())


def _opened(path: Path) -> Any:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise ValueError(f"{path} is a Parquet file, as exports of Neptune are: pip install pyarrow.") from None
    try:
        return pq.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from None


def _sorted(rows: list[dict[str, Any]]) -> Iterator[Part]:
    found: dict[Place, Part] = {}
    for row in rows:
        place = (str(row["project_id"]), str(row["run_id"]))
        part = found.setdefault(place, Part(*place))
        kind, path = row["attribute_type"], str(row["attribute_path"])
        if kind in PLAIN:
            value = row.get(PLAIN[kind])
            # the exporter writes a row without a value for each attribute that only other runs have
            if value is not None:
                part.config[path] = ", ".join(value) if isinstance(value, list) else value
        elif row["timestamp"] is None and all(row.get(name) is None for name in VALUES):
            continue  # such a row of a series
        elif (values := _values(row)) is None:
            part.unsaid[f"{kind} of {path}"] += 1
        elif not values:
            part.unsaid[f"histograms of {path} without values"] += 1
        elif row["step"] is None or row["step"] != int(row["step"]):
            part.unsaid[f"values of {path} at steps that are not whole numbers"] += 1
        else:
            time = round(row["timestamp"].timestamp() * 1000) if row["timestamp"] else 0
            part.scalars += [Scalar(name, int(row["step"]), time, value) for name, value in values.items()]
    yield from found.values()


def _values(row: dict[str, Any]) -> dict[str, float] | None:
    """The metrics of a row of a series, by name: one number, or the quantiles of a histogram, none if it has no values. None if a run
    cannot hold it."""
    kind, path, told = row["attribute_type"], str(row["attribute_path"]), row.get("histogram_value")
    if kind == "float_series" and row.get("float_value") is not None:
        return {path: row["float_value"]}
    if kind != "histogram_series" or not isinstance(told, dict):
        return None
    edges, counts = told.get("edges") or [], told.get("values") or []
    if str(told.get("type")).upper() in DENSITIES:
        counts = [value * (end - start) for value, start, end in zip(counts, edges, edges[1:], strict=False)]
    quantiles = distributions.of_counts(edges, counts)
    return {f"{path}/{name}": value for name, value in quantiles.items()}
