"""Distributions are metrics: a run has the quantiles of a histogram, from every tool that writes histograms."""

import json
import sqlite3
import struct
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import touchstone.wandb as wandb
from touchstone import distributions, imports, tensorboard

from webapp.experiments.models import Point

from .test_imports import BOARD, points, record
from .test_wandb import begun, ended, send_spool  # noqa: F401 - fixtures


def test_quantiles_of_values_are_those_of_numpy():
    values = np.random.default_rng(1).normal(size=(7, 11))
    wanted = dict(zip(distributions.SHARES, np.quantile(values, [0.05, 0.5, 0.95]), strict=True))
    assert distributions.of_values(values) == pytest.approx(wanted)
    assert distributions.of_values([[1, 2], [float("nan"), 3]])["p50"] == 2, "what is not finite does not count"
    assert distributions.of_values(5) == {"p5": 5, "p50": 5, "p95": 5}
    assert distributions.of_values([]) == {} == distributions.of_values([float("inf")])


def test_quantiles_of_a_histogram_lie_evenly_in_its_bins():
    assert distributions.of_counts([0, 10, 20], [10, 10]) == pytest.approx({"p5": 1, "p50": 10, "p95": 19})
    assert distributions.of_counts([0, 1, 2, 3], [0, 4, 0]) == pytest.approx({"p5": 1.05, "p50": 1.5, "p95": 1.95})
    values = np.random.default_rng(2).normal(size=10_000)
    counts, edges = np.histogram(values, bins=200)
    near = distributions.of_counts(list(edges), list(counts))
    assert near == pytest.approx(distributions.of_values(values), abs=0.05)


@pytest.mark.parametrize(
    ("edges", "counts"),
    [([], []), ([0, 1], []), ([0, 1], [0]), ([0, 1, 2], [3, -1]), ([0, float("nan")], [1]), ([0, 1, 2], [1])],
)
def test_a_histogram_without_values_has_no_quantiles(edges, counts):
    assert distributions.of_counts(edges, counts) == {}


@pytest.mark.django_db
def test_a_histogram_of_wandb_is_three_metrics(begun, remote, caplog):  # noqa: F811
    run = begun()
    wandb.log({"weights": wandb.Histogram(np.arange(101)), "loss": 1.0})
    wandb.log({"layer": {"grads": wandb.Histogram(np_histogram=np.histogram(range(100), bins=[0, 50, 100]))}})
    wandb.log({"nothing": wandb.Histogram([])})
    run.finish()
    assert send_spool(run, remote).refused == []
    found = {(row.key, row.step): row.value for row in Point.objects.all()}
    wanted = {
        ("weights/p5", 0): 5, ("weights/p50", 0): 50, ("weights/p95", 0): 95, ("loss", 0): 1,
        ("layer.grads/p5", 1): 5, ("layer.grads/p50", 1): 50, ("layer.grads/p95", 1): 95,
    }  # fmt: skip
    assert found == pytest.approx(wanted)
    assert "the histogram nothing is not logged" in caplog.text


@pytest.mark.django_db
def test_a_histogram_of_tensorboard_is_three_metrics(remote):
    (run_a,) = (each for each in imports.send(remote, BOARD) if each.name == "run-a")
    assert not run_a.unsaid and run_a.points == 13
    found = {name: points("run-a", f"h/{name}")[1] for name in distributions.SHARES}
    assert 0 <= found["p5"] < 1 and found["p50"] == pytest.approx(4.5, abs=0.5) and 8 < found["p95"] <= 9


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def as_tensor(rows: list[tuple[float, float, float]]) -> bytes:
    """An event with a histogram as TensorFlow 2 writes it: a tensor with a row for each bin."""
    shape = b"".join(field(2, bytes([1 << 3, size])) for size in (len(rows), 3))
    packed = b"".join(struct.pack("<3d", *row) for row in rows)
    tensor = bytes([1 << 3, 2]) + field(2, shape) + field(4, packed)
    value = field(1, b"h") + field(9, field(1, field(1, b"histograms"))) + field(8, tensor)
    return b"\x09" + struct.pack("<d", 1.7e9) + b"\x10\x04" + field(5, field(1, value))


@pytest.mark.parametrize(
    ("rows", "wanted", "unsaid"),
    [
        ([(0, 10, 10), (10, 20, 10)], {"h/p5": 1, "h/p50": 10, "h/p95": 19}, {}),
        ([(0, 10, 0)], {}, {"histograms of h without values": 1}),
    ],
)
def test_a_histogram_that_is_a_tensor_is_read_too(tmp_path, rows, wanted, unsaid):
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(record(as_tensor(rows)))
    reader = tensorboard.EventFile(path)
    assert {each.key: each.value for each in reader.scalars()} == pytest.approx(wanted)
    assert dict(reader.unsaid) == unsaid


@pytest.mark.django_db
def test_a_histogram_of_trackio_is_three_metrics(remote, tmp_path):
    told = {"_type": "trackio.histogram", "bins": [0, 10, 20], "values": [10, 10]}
    empty = {"_type": "trackio.histogram", "bins": [], "values": []}
    with closing(sqlite3.connect(tmp_path / "caps.db")) as made:
        made.execute("CREATE TABLE metrics (id INTEGER, run_name TEXT, step INTEGER, timestamp TEXT, metrics TEXT)")
        row = (1, "first", 0, "2026-11-27T00:00:00", json.dumps({"h": told, "e": empty, "loss": 1.0}))
        made.execute("INSERT INTO metrics VALUES (?, ?, ?, ?, ?)", row)
        made.commit()
    (run,) = imports.send(remote, tmp_path / "caps.db")
    assert (run.points, dict(run.unsaid)) == (4, {"histograms of e without values": 1})
    assert points("first", "h/p50") == {0: 10.0}


@pytest.mark.django_db
def test_a_histogram_of_neptune_is_three_metrics(remote, tmp_path):
    """In the layout of its exporter: a struct of type, edges and values. A density is a share for each unit of width."""
    moment = datetime(2025, 11, 1, tzinfo=UTC)
    told = [
        ("counted", Decimal(3), {"type": "COUNTING", "edges": [0.0, 10.0, 20.0], "values": [10.0, 10.0]}),
        ("dense", Decimal(3), {"type": "DENSITY", "edges": [0.0, 10.0, 110.0], "values": [0.05, 0.005]}),
        ("half", Decimal("1.5"), {"type": "COUNTING", "edges": [0.0, 1.0], "values": [1.0]}),
        ("empty", Decimal(3), {"type": "COUNTING", "edges": [], "values": []}),
        ("lost", Decimal(3), None),
    ]
    rows = [
        {"project_id": "lab/caps", "run_id": "CAP-1", "attribute_path": path, "attribute_type": "histogram_series", "step": step, "timestamp": moment, "histogram_value": value}
        for path, step, value in told
    ]  # fmt: skip
    texts = [(name, pa.string()) for name in ("project_id", "run_id", "attribute_path", "attribute_type")]
    numbers = pa.list_(pa.float64())
    kind = pa.struct([("type", pa.string()), ("edges", numbers), ("values", numbers)])
    times = [("step", pa.decimal128(18, 6)), ("timestamp", pa.timestamp("ms", tz="UTC"))]
    pq.write_table(
        pa.Table.from_pylist(rows, pa.schema([*texts, *times, ("histogram_value", kind)])), tmp_path / "CAP-1.parquet"
    )
    (run,) = imports.send(remote, tmp_path)
    assert dict(run.unsaid) == {
        "values of half at steps that are not whole numbers": 1,
        "histograms of empty without values": 1,
        "histogram_series of lost": 1,
    }
    found = {(row.key, row.step): row.value for row in Point.objects.all()}
    wanted = {("counted/p5", 3): 1, ("counted/p50", 3): 10, ("counted/p95", 3): 19}
    assert found == pytest.approx(wanted | {("dense/p5", 3): 1, ("dense/p50", 3): 10, ("dense/p95", 3): 100})
