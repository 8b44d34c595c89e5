"""Files from outside are read in a child with limits, and the contents of an archive are limited."""

import gzip
import io
import time
import zipfile
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.team import ApiClient
from webapp.core.background import sandbox
from webapp.core.problems import Invalid
from webapp.datasets.ingest import inspection, processes, services
from webapp.datasets.models import ImportJob
from webapp.files import budgets
from webapp.files.bundle import Bundle
from webapp.files.rows import rows

MB = 10**6
HERE = "tests.webapp.security.confined_work:"


def bomb(path: Path, *, typed: bool = False, text: int = 30 * MB, count: int = 100) -> Path:
    """One or two kilobytes of Parquet: one long text that this many rows contain."""
    column = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["x" * text]))
    parquet.write_table(
        pa.table({"prompt": column}), path, compression="zstd", write_statistics=False, store_schema=typed
    )
    assert path.stat().st_size < 10_000
    return path


def grown(before: int) -> int:
    return psutil.Process().memory_info().rss - before


def test_a_confined_child_answers_refuses_and_ends():
    small = sandbox.ProcessLimits(memory=100 * MB, seconds=5)
    assert sandbox.call(HERE + "allocate", small, size=1000) == 1000
    with pytest.raises(sandbox.Exceeded, match="more than 100 MB"):
        sandbox.call(HERE + "allocate", small, size=200 * MB)
    with pytest.raises(sandbox.Exceeded, match="longer than 0.2 s"):
        sandbox.call(HERE + "sleep", sandbox.ProcessLimits(100 * MB, 0.2), seconds=60)
    with pytest.raises(sandbox.Exceeded, match="ends the process"):
        sandbox.call(HERE + "leave", small)
    with pytest.raises(Invalid) as problem:
        sandbox.call(HERE + "refuse", small)
    assert problem.value.fields == {"file": "is wrong"}


@pytest.mark.django_db
@pytest.mark.parametrize("where", ["preview", "import"])
def test_a_parquet_bomb_takes_no_memory_of_the_web_process_and_is_refused_at_its_field(team, tmp_path, where):
    script = ApiClient(team.researcher)
    content = bomb(tmp_path / "bomb.parquet").read_bytes()
    small = SimpleUploadedFile("small.jsonl", b'{"prompt": "Hi"}\n')
    # so that all modules and the fork server are there
    assert script.client.post("/api/v1/datasets/preview", {"file": small}).status_code == 200
    before = psutil.Process().memory_info().rss
    file = SimpleUploadedFile("bomb.parquet", content)
    answer = script.client.post(f"/api/v1/datasets/{where}", {"file": file, "name": "bombs"})
    assert grown(before) < 30 * MB
    assert answer.status_code == 422, answer.content
    [said] = answer.json()["error"]["fields"]
    assert said["path"] == "file"
    assert said["message"].startswith("needs more than 600 MB of memory to be inspected. Send it unpacked")


@pytest.mark.django_db
def test_an_import_of_a_bomb_fails_with_a_reason_and_leaves_the_worker_its_memory(team, tmp_path, monkeypatch):
    path = bomb(tmp_path / "bomb.parquet", text=10 * MB)
    job = ImportJob.objects.create(
        workspace=team.workspace,
        dataset_name="bombs",
        file_name=path.name,
        file_path=str(path),
        format="table",
        created_by=team.researcher.user,
    )
    monkeypatch.setattr(
        inspection, "LIMITS", sandbox.ProcessLimits(3_000 * MB, 60)
    )  # the file is let through to the reader
    monkeypatch.setattr(processes, "MEMORY", 400 * MB)
    before = psutil.Process().memory_info().rss
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FAILED and grown(before) < 60 * MB
    assert job.error.startswith("Its rows need more than 400 MB of memory to be read. Nothing was imported.")


def test_a_row_of_a_dictionary_is_measured_without_the_other_rows(tmp_path, monkeypatch):
    path = bomb(tmp_path / "bomb.parquet", typed=True)
    assert [problem.reason for _, problem in rows(path.open("rb"), path.name)] == [
        "the file has a row of more than 8 MB"
    ]
    monkeypatch.setattr(budgets, "BATCH", 1000)
    monkeypatch.setattr(budgets, "LINE", 1000)
    texts = [f"{i:05}" * 50 for i in range(20)]
    parquet.write_table(pa.table({"prompt": pa.array(texts).dictionary_encode()}), path)
    assert [row["prompt"] for _, row in rows(path.open("rb"), path.name)] == texts  # type: ignore[index]


def test_a_csv_line_without_end_is_refused():
    packed = io.BytesIO(gzip.compress(b"prompt\n" + b"a" * (budgets.LINE + 10)))
    got = list(rows(budgets.BoundedGzip(packed), "a.csv.gz"))  # type: ignore[arg-type]
    assert [problem.reason for _, problem in got] == ["not CSV from here on: a row is longer than 8 MB"]
    many = io.BytesIO(b"prompt,a\n" + b'"x\n' + b"\n" * budgets.LINE + b'",b\n')
    assert "longer than 8 MB" in list(rows(many, "a.csv"))[-1][1].reason


def test_a_header_of_many_columns_is_refused_at_once():
    header = ",".join(f"c{i}" for i in range(15_000)).encode()  # 73 KB took ten seconds
    began = time.process_time()
    [(line, problem)] = rows(io.BytesIO(header + b"\n"), "wide.csv")
    assert time.process_time() - began < 0.5
    assert (line, problem.reason) == (1, "the header names 15,000 columns; at most 4,096 are read")


def test_gzip_is_counted_while_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(budgets, "FREE", 2 * MB)
    path = tmp_path / "zeros.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n" * 20 * MB))
    with Bundle(path).opened(path.name) as (stream, _):
        [(_, problem)] = rows(stream, path.name)
    assert "unpacks to more than 200 times its size" in problem.reason


def test_an_archive_is_refused_by_what_its_directory_says(tmp_path, monkeypatch):
    path = tmp_path / "zeros.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"{number}.jsonl", b"\n" * MB)
    monkeypatch.setattr(budgets, "FREE", 2 * MB)
    with pytest.raises(OSError, match="the archive unpacks to more than 200 times its size"):
        Bundle(path)
    monkeypatch.setattr(budgets, "MEMBERS", 2)
    monkeypatch.setattr(budgets, "FREE", 4 * MB)
    with pytest.raises(OSError, match="holds 3 files; at most 2"):
        Bundle(path)


def test_the_head_of_a_member_is_bounded(tmp_path, monkeypatch):
    path = tmp_path / "long.zip"
    line = b'{"prompt": "' + b"a" * MB + b'"}\n'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("long.jsonl", line * 20)
    monkeypatch.setattr(budgets, "HEAD", 3 * MB)
    assert len(Bundle(path).head("long.jsonl").rows) < 6


def test_a_parquet_row_group_beyond_measure_is_refused_by_its_own_word(tmp_path, monkeypatch):
    path = tmp_path / "wide.parquet"
    parquet.write_table(pa.table({"prompt": ["x" * 1000] * 100}), path)
    monkeypatch.setattr(budgets, "ROW_GROUP", 1000)
    [(_, problem)] = rows(path.open("rb"), path.name)
    assert "has a row group of more than" in problem.reason


def test_rows_of_a_batch_are_made_pythons_in_pieces(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"prompt": [f"{i:05}" * 50 for i in range(100)]}), path)
    monkeypatch.setattr(budgets, "BATCH", 1000)
    got = [row["prompt"] for _, row in rows(path.open("rb"), path.name)]  # type: ignore[index]
    assert got == [f"{i:05}" * 50 for i in range(100)]


def test_the_directory_of_an_archive_is_read_in_the_child_alone(tmp_path, monkeypatch):
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(30):
            archive.writestr(f"{number}.jsonl", '{"prompt": "a"}\n')

    def never(*args, **kwargs):
        raise AssertionError("the archive was opened in this process")

    monkeypatch.setattr(zipfile, "ZipFile", never)
    assert len(inspection.given(path, path.name).names) == 30
