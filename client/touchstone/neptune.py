"""Reads what Neptune's exporter writes: a folder of Parquet files with one row for each value, in parts for each run. Needs pyarrow."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .tensorboard import Scalar

COLUMNS = ("project_id", "run_id", "attribute_path", "attribute_type", "step", "timestamp")
VALUES = ("int_value", "float_value", "string_value", "bool_value", "datetime_value", "string_set_value")
PLAIN = {
    "int": "int_value",
    "float": "float_value",
    "string": "string_value",
    "bool": "bool_value",
    "datetime": "datetime_value",
    "string_set": "string_set_value",
}
NAME = "sys/name"


@dataclass
class Part:
    """The rows of one run in one file."""

    project: str
    run: str
    config: dict[str, Any] = field(default_factory=dict)
    scalars: list[Scalar] = field(default_factory=list)
    unsaid: "Counter[str]" = field(default_factory=Counter)


def files(root: Path) -> list[Path]:
    return sorted(root.rglob("*.parquet")) if root.is_dir() else [root]


def parts(path: Path) -> Iterator[Part]:
    """The runs of a file, a few thousand rows at a time. Raises ValueError if it is not such a file, or if pyarrow is not installed."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise ValueError("Exports of Neptune are Parquet files: pip install pyarrow.") from None
    with pq.ParquetFile(path) as opened:
        names = set(opened.schema_arrow.names)
        if not set(COLUMNS) <= names:
            raise ValueError(f"{path} is not an export of Neptune: it lacks {', '.join(sorted(set(COLUMNS) - names))}.")
        for batch in opened.iter_batches(
            batch_size=5_000, columns=[name for name in (*COLUMNS, *VALUES) if name in names]
        ):
            yield from _sorted(batch.to_pylist())


def _sorted(rows: list[dict[str, Any]]) -> Iterator[Part]:
    found: dict[tuple[str, str], Part] = {}
    for row in rows:
        place = (str(row["project_id"]), str(row["run_id"]))
        part = found.setdefault(place, Part(*place))
        kind, path = row["attribute_type"], str(row["attribute_path"])
        if kind in PLAIN:
            value = row.get(PLAIN[kind])
            part.config[path] = ", ".join(value) if isinstance(value, list) else value
        elif kind == "float_series" and row.get("float_value") is not None:
            step = row["step"]
            if step is None or step != int(step):
                part.unsaid[f"values of {path} at steps that are not whole numbers"] += 1
                continue
            time = row["timestamp"]
            part.scalars.append(
                Scalar(path, int(step), round(time.timestamp() * 1000) if time else 0, row["float_value"])
            )
        else:
            part.unsaid[f"{kind} of {path}"] += 1
    yield from found.values()
