"""An import whose worker died continues after the last committed batch, and has the same result at its end."""

import json
import os
import zipfile
from pathlib import Path

import pytest
from django.db import DataError, OperationalError, connection

from tests.workers import kill
from webapp.core.database import locks
from webapp.datasets import queries
from webapp.datasets.columns.filters import Filters, parse
from webapp.datasets.exploration import narrowing
from webapp.datasets.formats.base_importer import Importer
from webapp.datasets.index import postings
from webapp.datasets.ingest import import_job, loader, reader, services
from webapp.datasets.models import Dataset, DatasetVersion, Example, ImportJob, VersionMember

from ..conftest import row
from ..running_import import BATCH, ROWS, lines, queue_import, worker_on


def listed(version):
    return list(VersionMember.objects.filter(version=version).order_by("position").values_list("example__digest"))


def import_outcome(job):
    version = job.version
    return job.counts, job.rejected, job.rejected_count, job.rows_done, version.digest, version.facets, listed(version)


@pytest.fixture
def killed(team, tmp_path):
    """An import whose worker was killed after some of its batches."""

    def run(content, **options):
        job = queue_import(team, tmp_path / "rows.jsonl", content, **options)
        with worker_on(job) as worker:
            kill(worker, job, locks.Work.IMPORT)
        assert job.state == ImportJob.State.RUNNING and 3 * BATCH <= job.rows_done < ROWS
        return job

    return run


@pytest.fixture
def converted(monkeypatch):
    """The lines that are read as rows from now on."""
    seen = []
    each = Importer.each

    def counted(self, *args, **kwargs):
        for line, given in each(self, *args, **kwargs):
            seen.append(line)
            yield line, given

    monkeypatch.setattr(Importer, "each", counted)
    return seen


@pytest.mark.django_db(transaction=True)
def test_a_killed_import_goes_on_behind_its_last_batch(killed, converted, import_rows):
    content = lines(bad=(7, 150, 390))
    job = killed(content, keep_good=True)
    taken = job.rows_done
    assert not Dataset.objects.exists() and not DatasetVersion.objects.exists()  # nothing of it is visible
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FINISHED, job.error
    assert converted == list(range(taken + 1, ROWS + 1))
    whole = import_rows(content, name="whole", keep_good=True)
    assert import_outcome(job) == import_outcome(whole)
    assert job.rejected_count == 3 + 8  # of the ten keys that occur twice, two are in a refused line
    first = queries.examples(job.version, Filters(), limit=3).items
    assert [each.example.key for each in first] == ["e0", "e1", "e2"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'import_rows_%%'")
        assert cursor.fetchone() == (0,)


@pytest.mark.django_db(transaction=True)
def test_a_killed_import_that_is_refused_in_the_end_leaves_nothing(killed):
    job = killed(lines(bad=(390,)))
    assert Example.objects.exists()
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FAILED and job.rejected_count == 1 + 9
    assert not Example.objects.exists() and not VersionMember.objects.exists()
    assert not Dataset.every.exists() and not DatasetVersion.every.exists()


def test_a_file_that_changed_meanwhile_is_read_from_its_start(stopped, converted):
    job = stopped([row(f"e{i}") for i in range(8)])
    with open(job.file_path, "w") as file:
        file.writelines(json.dumps(row(f"n{i}")) + "\n" for i in range(6))
    converted.clear()
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.counts["examples"] == 6 and len(converted) == 6
    assert job.bytes_done == job.bytes_total == os.path.getsize(job.file_path)
    assert Example.objects.count() == 6


@pytest.mark.parametrize("how", ["the file goes", "it is cancelled"])
def test_one_that_cannot_start_over_ends_and_leaves_nothing(how, team, stopped, monkeypatch):
    job = stopped([row(f"e{i}") for i in range(8)])
    Path(job.file_path).write_text("\n")  # so the stored rows of the import cannot be used
    begin = loader.begin

    def too_late(*args):
        if how == "the file goes":
            raise FileNotFoundError
        services.cancel_import(team.researcher, job)
        return begin(*args)

    monkeypatch.setattr(import_job, "begin", too_late)
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ("failed" if how == "the file goes" else "cancelled"), job.error
    assert not Example.objects.exists() and not DatasetVersion.every.exists() and not Dataset.every.exists()


def test_a_version_made_meanwhile_keeps_its_sides(stopped, import_rows, converted):
    job = stopped([row(f"e{i}", split="train") for i in range(8)], name="both", file_name="first.jsonl")
    other = import_rows([row("e0", split="heldout")], name="both", file_name="second.jsonl")
    assert other.version.number == 1
    services.run_import(job.pk)
    job.refresh_from_db()
    assert [problem["reason"] for problem in job.rejected] == [
        "'e0' is heldout in an earlier version; an example never changes side"
    ]
    assert Dataset.objects.get().versions.count() == 1 and Example.objects.count() == 1


def test_what_another_version_shares_stays_when_an_import_is_refused(stopped, import_rows):
    rows = [row(f"e{i}", split="train") for i in range(8)]
    job = stopped([*rows, {"key": "broken"}], name="both", file_name="first.jsonl")
    shared = import_rows(rows[:3], name="both", file_name="second.jsonl").version
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FAILED
    assert len(listed(shared)) == Example.objects.count() == 3


def test_files_of_a_folder_are_gone_on_with_where_they_were_left(stopped, converted, team, tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row(f"{name}{i}")) + "\n" for i in range(3)))
    monkeypatch.setattr(reader, "ROWS", 2)
    job = services.start_import(team.researcher, folder, name="folder", queue=False)
    take, calls = loader.Loader.take, []

    def breaks(self, *batch):
        calls.append(batch)
        if len(calls) > 3:  # a whole file and the beginning of the second
            raise RuntimeError("the power went")
        return take(self, *batch)

    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(loader.Loader, "take", breaks)
        services.run_import(job.pk)
    converted.clear()
    job = ImportJob.objects.get(pk=job.pk)
    services.run_import(job.pk)
    job.refresh_from_db()
    assert converted == [3, 1, 2, 3]
    assert job.counts["examples"] == 9 and job.rows_done == 9 and job.bytes_done == job.bytes_total


def test_words_that_a_dead_worker_had_not_written_yet_are_found(stopped):
    job = stopped([row(f"e{i}") for i in range(8)])
    assert job.taken["stored"] == 4 and job.taken["indexed"] == 0
    services.run_import(job.pk)
    job.refresh_from_db()
    assert narrowing.count(job.version, parse({"q": "prompt of e1"})) == 1
    assert narrowing.count(job.version, parse({"q": "prompt"})) == 8


def test_examples_shared_with_a_dead_import_are_found_when_that_one_starts_over(stopped, import_rows):
    rows = [row(f"e{i}") for i in range(8)]
    job = stopped(rows, name="both", file_name="first.jsonl")
    shared = import_rows(rows[:3], name="both", file_name="second.jsonl").version
    services.run_import(job.pk)
    job.refresh_from_db()
    assert narrowing.count(shared, parse({"q": "prompt"})) == 3
    assert narrowing.count(job.version, parse({"q": "prompt"})) == 8


def test_examples_shared_with_a_dead_import_are_found_when_that_ones_file_is_gone(stopped, import_rows):
    rows = [row(f"e{i}") for i in range(8)]
    job = stopped(rows, name="both", file_name="first.jsonl")
    with connection.cursor() as cursor:  # as if it had another block of ids
        cursor.execute("UPDATE datasets_importjob SET taken = taken || '{\"indexed\": 4}' WHERE id = %s", [job.pk])
    postings.index(Dataset.every.get().pk, loader.MEMBERS, [job.taken["version"], 0], job.taken["version"])
    shared = import_rows(rows[:3], name="both", file_name="second.jsonl").version
    assert narrowing.count(shared, parse({"q": "prompt"})) == 3
    Path(job.file_path).unlink()
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FAILED
    assert narrowing.count(shared, parse({"q": "prompt"})) == 3


def test_an_error_that_comes_again_at_the_same_place_ends_the_import(stopped, monkeypatch):
    job = stopped([row(f"e{i}") for i in range(8)])
    assert job.taken["deaths"] == 1 and job.rows_done == 4

    def breaks(self, ready):
        list(take(self, ready))
        raise DataError("a number is out of range")

    take = loader.Loader.take
    monkeypatch.setattr(loader.Loader, "take", breaks)
    with pytest.raises(DataError):
        services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.RUNNING and job.taken["rows"] == 4 and job.rows_done == 4
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FAILED and not Example.objects.exists()
    assert "3 times at the same place, soon behind row 4 of" in job.error and "a number is out of range" in job.error


def test_an_import_waits_for_a_database_that_is_away_however_long(stopped, monkeypatch):
    job = stopped([row(f"e{i}") for i in range(8)])

    def away(self, ready):
        raise OperationalError("the connection is lost")

    with monkeypatch.context() as patch:
        patch.setattr(loader.Loader, "take", away)
        for _ in range(4):
            with pytest.raises(OperationalError):
                services.run_import(job.pk)
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FINISHED and job.counts["examples"] == 8


def test_a_file_that_cannot_be_read_any_more_ends_the_import(team, tmp_path):
    path = tmp_path / "rows.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("rows.jsonl", json.dumps(row()))
    job = services.start_import(team.researcher, path, name="gone bad", queue=False)
    path.write_bytes(path.read_bytes().replace(b"PK\1\2", b"PK\0\0"))
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FAILED
    assert job.error.startswith("The import could not begin: the archive is damaged")
