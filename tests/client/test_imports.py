"""Runs that other tools have stored are sent once and completely. Values that a run cannot hold are counted.

The files of TensorBoard were written by tensorboardX 2.6.5 (run-a, with its hyperparameters) and tensorboard 2.21 (run-b: values as
tensors). trackio.db and trackio-kinds.db were written by trackio 0.43.0 and packed into small pages.
"""

import os
import shutil
import sqlite3
import struct
import tarfile
import zipfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from errno import EACCES
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from touchstone import cli, imports, tensorboard, terminal, trackio
from touchstone.server import Server
from typer.testing import CliRunner

from trainer.contracts import jsonlines
from webapp.experiments.models import Point, Run

FILES = Path(__file__).parent / "files"
BOARD = FILES / "tensorboard"
database = pytest.mark.django_db


def points(name: str, key: str) -> dict[int, float | None]:
    return dict(Point.objects.filter(run__name=name, key=key).values_list("step", "value"))


@database
def test_event_files_become_runs_by_their_folders(remote):
    sent = {each.name: each for each in imports.send(remote, BOARD)}
    hyper = "run-a/1795821005.745642"
    assert sent.keys() == {"run-a", "run-b", hyper}
    assert points("run-a", "loss") == {0: 5.0, 1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0} and sent["run-a"].points == 13
    assert points("run-b", "loss") == {0: 2.0, 1: 1.5, 2: 1.0, 3: 0.5}
    assert not sent["run-a"].unsaid and not sent["run-b"].unsaid
    run = Run.objects.get(name="run-a")
    assert (run.state, run.experiment.name, run.logged.tags["text.note/text_summary"]) == (
        "finished",
        "tensorboard",
        "hello",
    )
    assert run.logged.tags["imported.from"] == "TensorBoard"
    assert Run.objects.get(name=hyper).config == {"lr": "0.001", "opt": "adam"}
    ended = datetime(2023, 11, 14, 22, 13, 23, tzinfo=UTC)
    other = Run.objects.get(name="run-b")
    assert (other.started_at, other.ended_at) == (ended - timedelta(seconds=3), ended), "not when the file was written"


@database
def test_what_is_sent_again_is_the_same_run(remote, tmp_path):
    imports.send(remote, BOARD, "kept")
    before = (Run.objects.count(), Point.objects.count())
    moved = shutil.copytree(BOARD, tmp_path / "moved")
    imports.send(remote, moved, "kept")
    assert (Run.objects.count(), Point.objects.count()) == before == (3, 18)


@database
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_is_read_as_its_folder(remote, tmp_path, kind):
    path = tmp_path / f"board.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as out:
            for file in BOARD.rglob("*tfevents*"):
                out.write(file, file.relative_to(BOARD))
    else:
        with tarfile.open(path, "w:gz") as out:
            out.add(BOARD, arcname=".")
    assert {each.name for each in imports.send(remote, path)} >= {"run-a", "run-b"}
    assert Run.objects.filter(experiment__name="board").count() == 3


def test_an_archive_that_is_too_much_is_refused_before_it_is_unpacked(remote_never, tmp_path, monkeypatch):
    path = tmp_path / "board.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("a.tfevents", bytes(2_000))
    monkeypatch.setattr(imports, "MOST_OUT", 1_000)
    with pytest.raises(ValueError, match="unpack it and import the folder"):
        imports.send(remote_never, path)


@pytest.fixture
def remote_never():
    return Server("http://nowhere.test", "ts_x", tries=1)


def record(data: bytes) -> bytes:
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", tensorboard.checksum(head)) + data + bytes(4)


def scalar(key: str, step: int, value: float) -> bytes:
    inner = b"\x0a" + bytes([len(key)]) + key.encode() + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(inner)]) + inner
    return b"\x09" + struct.pack("<d", 1.7e9) + b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary


def test_a_file_that_is_still_written_is_read_on(tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    whole = record(scalar("loss", 1, 0.5)) + record(scalar("loss", 2, 0.25))
    path.write_bytes(whole[:-7])
    reader = tensorboard.EventFile(path)
    assert [(each.step, each.value) for each in reader.scalars()] == [(1, 0.5)]
    assert list(reader.scalars()) == [] and not reader.unsaid
    path.write_bytes(whole)
    assert [(each.step, each.value) for each in reader.scalars()] == [(2, 0.25)]


@pytest.mark.parametrize(
    "damaged",
    [
        record(scalar("a", 1, 1.0)) + b"\x01" * 40,  # not a length
        record(scalar("a", 1, 1.0)) + record(b"\x0a\xff\xff\xff\xff\x7f"),  # the length is greater than the file
        record(scalar("a", 1, 1.0)) + record(b"\xff" * 12),  # a number without an end
        record(scalar("a", 1, 1.0)) + record(b"\x2a\x07\x0a\x05\x0a\x03\xff\xfe\xfd"),  # a name that is not text
        record(scalar("a", 1, 1.0)) + record(b"\x09\x00\x00"),  # half a time
    ],
)
def test_damage_ends_a_file_and_is_told(tmp_path, damaged):
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(damaged)
    reader = tensorboard.EventFile(path)
    assert [each.key for each in reader.scalars()] == ["a"]
    assert len(reader.unsaid) == 1 and "from byte" in next(iter(reader.unsaid))


def text(name: str, said: str) -> bytes:
    """An event with a text, as its plugin writes it."""

    def part(number: int, content: bytes) -> bytes:
        size = bytes([len(content) & 0x7F | 0x80, len(content) >> 7]) if len(content) > 127 else bytes([len(content)])
        return bytes([number << 3 | 2]) + size + content

    value = part(1, name.encode()) + part(9, part(1, part(1, b"text"))) + part(8, b"\x08\x07" + part(8, said.encode()))
    return b"\x09" + struct.pack("<d", 1.7e9) + part(5, part(1, value))


@database
def test_texts_that_a_run_does_not_keep_are_counted_while_it_is_followed_too(remote, tmp_path, monkeypatch):
    path = tmp_path / "live" / "events.out.tfevents.1"
    path.parent.mkdir()
    path.write_bytes(
        record(text("answer", "first")) + record(text("answer", "second")) + record(text("long", "x" * 9_000))
    )
    told: list[dict[str, int]] = []

    def wait(seconds: float) -> None:
        if len(told) == 2:
            raise KeyboardInterrupt
        with path.open("ab") as file:
            file.write(record(text("answer", "third")))

    monkeypatch.setattr(remote, "sleep", wait)
    imports.send(remote, path.parent, follow_s=1.0, told=lambda sent: told.append(dict(sent.unsaid)))
    cut = {"ends of texts of more than 8,000 characters": 1}
    assert told == [{"earlier texts of answer": 1, **cut}, *[{"earlier texts of answer": 2, **cut}] * 2]
    assert Run.objects.get().logged.tags["text.answer"] == "third"


def test_the_checksum_is_that_of_real_files():
    (path,) = (BOARD / "run-b").iterdir()
    head = path.read_bytes()[:12]
    assert tensorboard.checksum(head[:8]) == struct.unpack("<I", head[8:])[0]


@database
def test_a_folder_is_followed_while_it_is_written(remote, tmp_path, monkeypatch):
    path = tmp_path / "live" / "events.out.tfevents.1"
    path.parent.mkdir()
    path.write_bytes(record(scalar("loss", 1, 0.5)))
    looks = []

    def wait(seconds: float) -> None:
        looks.append(dict(Point.objects.values_list("step", "value")))
        if len(looks) == 2:
            raise KeyboardInterrupt
        with path.open("ab") as file:
            file.write(record(scalar("loss", 2, 0.25)))

    monkeypatch.setattr(remote, "sleep", wait)
    imports.send(remote, path.parent, follow_s=1.0)
    assert looks == [{1: 0.5}, {1: 0.5, 2: 0.25}]
    assert Run.objects.get().state == "finished"


@database
def test_a_database_of_trackio_is_read(remote):
    (sent,) = imports.send(remote, FILES / "trackio.db", "caps")
    assert (sent.name, sent.points, sent.params, dict(sent.unsaid)) == ("first", 8, 2, {"str of note": 4})
    assert points("first", "deep.a") == {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0}
    run = Run.objects.get()
    assert run.config == {"lr": "0.001", "layers": "[1, 2]"} and run.logged.tags["trackio.created"].startswith(
        "2026-11-27"
    )
    moment = datetime(2026, 11, 27, 23, 10, 11, 546_000, tzinfo=UTC)
    assert (run.started_at, run.ended_at) == (moment, moment), "its only values, not when the file was written"


@database
def test_every_run_of_trackio_is_sent_and_each_thing_that_a_run_cannot_hold_counts_once(remote):
    """The run `quiet` logged only measures of the machine; numbers that are not finite are texts in the database."""
    sent = {each.name: each for each in imports.send(remote, FILES / "trackio-kinds.db")}
    assert sent.keys() == {"quiet", "all"} and points("quiet", "system/cpu") == {0: 0.25}
    words = Point.objects.filter(run__name="all").exclude(not_finite="").order_by("key", "step")
    assert list(words.values_list("key", "step", "not_finite")) == [
        ("loss", 1, "NaN"), ("loss", 2, "-Infinity"), ("peak", 1, "Infinity"),
    ]  # fmt: skip
    kinds = ("image of img", "table of rows", "markdown of md", "traces", "artifacts")
    assert dict(sent["all"].unsaid) == dict.fromkeys(kinds, 1)


@database
def test_a_folder_of_several_tools_is_imported_whole_and_other_files_are_named(remote, monkeypatch, tmp_path):
    monkeypatch.setattr(terminal, "server", lambda: remote)
    mixed = shutil.copytree(BOARD, tmp_path / "mixed")
    shutil.copy(FILES / "trackio.db", mixed)
    shutil.copy(FILES / "trackio.db", mixed / "cut.db")
    os.truncate(mixed / "cut.db", 3_000)
    with closing(sqlite3.connect(mixed / "other.db")) as other:
        other.execute("CREATE TABLE notes (text)")
    pq.write_table(pa.table({"a": [1]}), mixed / "rows.parquet")
    (mixed / "broken.parquet").write_text("PAR1")
    told = CliRunner().invoke(cli.app, ["import-runs", str(mixed)])
    assert told.exit_code == 0, told.output
    names = {line["name"] for line in jsonlines.rows(told.stdout)}
    assert names == {"first", "run-a", "run-b", "run-a/1795821005.745642"}
    left_out = sorted(line.split("mixed/")[1] for line in told.stderr.splitlines())
    assert [line.split()[0] for line in left_out] == ["broken.parquet", "cut.db", "other.db", "rows.parquet"]
    for name in ("other.db", "rows.parquet", "cut.db", "broken.parquet"):
        alone = CliRunner().invoke(cli.app, ["import-runs", str(mixed / name)])
        assert alone.exit_code == 2 and name in alone.output and "Traceback" not in alone.output


@database
def test_a_run_of_trackio_that_had_only_a_config_is_the_same_run_once_it_has_metrics(remote, tmp_path):
    path = Path(shutil.copy(FILES / "trackio.db", tmp_path))
    with closing(sqlite3.connect(path)) as early, early:
        early.execute("DELETE FROM metrics")
    (sent,) = imports.send(remote, path)
    assert sent.points == 0 and Run.objects.get().config["lr"] == "0.001"
    shutil.copy(FILES / "trackio.db", path)
    imports.send(remote, path)
    assert Run.objects.count() == 1 and len(points("first", "loss")) == 4


def test_runs_of_trackio_that_have_only_a_name_are_told_apart_by_their_first_metrics(tmp_path):
    """A project of the same name on another machine may have a run of the same name."""
    path = tmp_path / "caps.db"
    with closing(sqlite3.connect(path)) as old, old:
        old.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp, run_name, step, metrics)")
        old.execute("INSERT INTO metrics VALUES (1, '2025-11-01T00:00:00', 'first', 0, '{}')")
    assert trackio.Database(path).runs() == [("first", "first", "first\n2025-11-01T00:00:00")]


@database
def test_a_file_that_may_not_be_read_is_left_out(remote, tmp_path, monkeypatch):
    shutil.copy(FILES / "trackio.db", tmp_path)
    (tmp_path / "secret").write_text("x")
    opened = Path.open

    def refused(path: Path, *given: Any, **options: Any) -> Any:
        if path.name == "secret":
            raise PermissionError(EACCES, "Permission denied", str(path))
        return opened(path, *given, **options)

    monkeypatch.setattr(Path, "open", refused)  # root may read everything
    passed: list[str] = []
    (sent,) = imports.send(remote, tmp_path, passed=passed.append)
    assert sent.name == "first" and passed == [f"{tmp_path / 'secret'} cannot be read: Permission denied"]


EXPORT = pa.schema(
    [
        *((name, pa.string()) for name in ("project_id", "run_id", "attribute_path", "attribute_type")),
        ("step", pa.decimal128(18, 6)),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("int_value", pa.int64()),
        ("float_value", pa.float64()),
        ("string_value", pa.string()),
        ("bool_value", pa.bool_()),
        ("datetime_value", pa.timestamp("ms", tz="UTC")),
        ("string_set_value", pa.list_(pa.string())),
        ("file_value", pa.struct([("path", pa.string())])),
        (
            "histogram_value",
            pa.struct([("type", pa.string()), ("edges", pa.list_(pa.float64())), ("values", pa.list_(pa.float64()))]),
        ),
    ]
)
"""The columns and types of every file of neptune-exporter."""
MOMENT = datetime(2025, 11, 1, tzinfo=UTC)


def exported(run: str, path: str, kind: str, value: Any, step: Decimal | None = None) -> dict[str, Any]:
    """A row of an export. Rows of a series have a step, and a time if they have a value."""
    timed = {"step": step, "timestamp": MOMENT if step is not None and value is not None else None}
    column = {kind.removesuffix("_series") + "_value": value}
    return {"project_id": "lab/caps", "run_id": run, "attribute_path": path, "attribute_type": kind} | timed | column


def write_export(folder: Path, run: str, *parts: list[dict[str, Any]]) -> None:
    """Parts of a run where the exporter puts them: a folder for each project, names with a digest behind them."""
    place = folder / "lab_caps-0f6c1d2e3a4b5c6d"
    place.mkdir(exist_ok=True)
    for number, rows in enumerate(parts):
        pq.write_table(pa.Table.from_pylist(rows, EXPORT), place / f"{run}-89abcdef01234567_part_{number}.parquet")


@database
def test_an_export_of_neptune_is_read(remote, tmp_path):
    single = [
        exported("CAP-1", "sys/name", "string", "small"),
        exported("CAP-1", "sys/creation_time", "datetime", MOMENT - timedelta(hours=2)),
        exported("CAP-1", "sys/tags", "string_set", ["a", "b"]),
        exported("CAP-1", "config/lr", "float", 0.5),
        exported("CAP-1", "config/layers", "int", 3),
        exported("CAP-1", "config/tied", "bool", True),
    ]
    series = [
        exported("CAP-1", "loss", "float_series", 2.0 - float(step), step)
        for step in (Decimal(0), Decimal(1), Decimal("1.5"))
    ]
    others = [
        exported("CAP-1", "log", "string_series", "hi", Decimal(1)),
        exported("CAP-1", "model", "file", {"path": "CAP-1/model.bin"}),
    ]
    write_export(tmp_path, "CAP-1", [*single, *series[:1]], series[1:] + others)
    (sent,) = imports.send(remote, tmp_path)
    assert (sent.experiment, sent.name, sent.points, sent.params) == ("lab/caps", "small", 2, 6)
    assert dict(sent.unsaid) == {
        "string_series of log": 1,
        "values of loss at steps that are not whole numbers": 1,
        "file of model": 1,
    }
    assert points("small", "loss") == {0: 2.0, 1: 1.0}
    run = Run.objects.get()
    assert {key: run.config[key] for key in ("config/lr", "config/layers", "config/tied", "sys/tags")} == {
        "config/lr": "0.5",
        "config/layers": "3",
        "config/tied": "True",
        "sys/tags": "a, b",
    }
    assert (run.started_at, run.ended_at) == (MOMENT - timedelta(hours=2), MOMENT), "not when the file was written"


@database
def test_attributes_that_only_other_runs_of_an_export_have_are_no_values(remote, tmp_path):
    """The exporter fetches several runs at once as one table, so each run has a row for every attribute of all of them. An attribute that
    has two types has two."""
    rows = [
        exported("CAP-2", "config/lr", "float", 0.5),
        exported("CAP-2", "config/lr", "int", None),
        exported("CAP-2", "config/depth", "int", None),
        exported("CAP-2", "loss", "float_series", 1.0, Decimal(0)),
        exported("CAP-2", "val/loss", "float_series", None, Decimal(0)),
        exported("CAP-2", "text", "string_series", None, Decimal(0)),
    ]
    write_export(tmp_path, "CAP-2", rows)
    (sent,) = imports.send(remote, tmp_path)
    assert (Run.objects.get().config, dict(sent.unsaid)) == ({"config/lr": "0.5"}, {})
    assert (sent.params, sent.points) == (1, 1)


@database
def test_a_run_of_neptune_has_its_name_however_late_the_name_comes(remote, tmp_path):
    many = [exported("CAP-3", f"config/{number}", "int", None) for number in range(5_000)]
    write_export(tmp_path, "CAP-3", [*many, exported("CAP-3", "sys/name", "string", "late")])
    (sent,) = imports.send(remote, tmp_path)
    assert sent.name == "late"


@database
def test_the_command_prints_a_line_for_each_run(remote, monkeypatch, tmp_path):
    monkeypatch.setattr(terminal, "server", lambda: remote)
    told = CliRunner().invoke(cli.app, ["import-runs", str(BOARD / "run-a"), "--experiment", "board"])
    assert told.exit_code == 0, told.output
    lines = jsonlines.rows(told.output)
    assert [(line["name"], line["points"], line["unsaid"]) for line in lines] == [
        ("board", 13, {}),
        ("1795821005.745642", 1, {}),
    ]
    empty = tmp_path / ("a name of some length " * 6)
    empty.mkdir()
    (empty / "notes.txt").write_text("nothing")
    nothing = CliRunner().invoke(cli.app, ["import-runs", str(empty)])
    assert nothing.exit_code == 2 and f"{empty} holds no runs" in nothing.output, "no line is broken within a name"
