"""Separate processes read a large file. They give the same batches in the same order, and nobody waits for a dead process."""

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from itertools import count

import pytest

from tests import reader_processes
from webapp.datasets.formats.importers import REGISTRY
from webapp.datasets.ingest import import_job, loader, processes, services
from webapp.datasets.ingest.checkpoint import ImportCheckpoint
from webapp.datasets.ingest.reader import ROWS, Reader
from webapp.datasets.models import Example, ImportJob, VersionMember
from webapp.datasets.versions import earlier_splits
from webapp.datasets.versions.split_rule import Rule

from ..conftest import ROOT, row


@pytest.fixture(autouse=True)
def started(monkeypatch):
    """Starts processes like the product does. Other tests have them forked."""
    monkeypatch.setattr(processes, "_process", reader_processes.start_as_the_product)


@pytest.fixture
def reader(tmp_path):
    def make(lines):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(line + "\n" for line in lines))
        return Reader(path, path.name, (path.name,), "touchstone", {}, Rule(0.5), ImportCheckpoint(1, "", None))

    return make


@pytest.fixture
def children(started, monkeypatch):
    """The processes that are started to read from now on, without those that inspect a file."""
    started = []
    start = processes._process

    def remembered():
        started.append(start())
        return started[-1]

    monkeypatch.setattr(processes, "_process", remembered)
    return started


def comparable(ready):
    columns = {name: (column.numbers.tobytes(), column.values) for name, column in ready.columns.items()}
    texts = ready.texts.to_pylist()
    return ready.place, ready.lines, ready.keys, ready.digests, ready.wide, ready.narrow, columns, texts, ready.problems


def test_one_that_is_forked_reads_what_one_that_is_started_would_and_ends_as_it_does(reader):
    asked = reader([json.dumps(row(f"e{i}")) for i in range(3)])
    whole = []
    for start in (reader_processes.start_as_the_product, reader_processes.start):
        with start() as process:
            processes._send(process.stdin, (asked, False, processes.MEMORY))
            whole.append(
                (comparable(processes._received(process.stdout)), processes._received(process.stdout), process.wait(60))
            )
        with start() as process:
            process.kill()
            assert process.wait(60) == -signal.SIGKILL
            assert process.poll() == -signal.SIGKILL
    assert whole[0] == whole[1] and whole[0][1:] == (None, 0)


def test_readers_are_forked_from_a_new_process_when_the_first_one_has_ended(reader):
    asked = reader([json.dumps(row("e1"))])
    with reader_processes.start():
        pass
    reader_processes._fork_server[0].shutdown(socket.SHUT_RDWR)  # it ends as if its other end were closed
    with reader_processes.start() as process:
        processes._send(process.stdin, (asked, False, processes.MEMORY))
        assert comparable(processes._received(process.stdout))[1] == [1]


def test_another_process_reads_what_this_one_would(reader):
    lines = [json.dumps(row(f"e{i}", domain=f"d{i % 3}")) for i in range(2 * ROWS + 5)]
    lines[7] = lines[ROWS + 1] = "{oops"
    asked = reader(lines)
    here, there = list(asked.ready(None)), list(processes.ready(asked, None))
    assert [ready.place.count for ready in here] == [ROWS, ROWS, 5]
    assert list(map(comparable, there)) == list(map(comparable, here))
    assert [problem.line for ready in there for problem in ready.problems] == [8, ROWS + 2]


def test_a_batch_of_a_packed_file_is_no_larger_than_of_a_plain_one(reader):
    """Without the limit, packed texts could become gigabytes when they are unpacked a thousandfold."""
    asked = reader([json.dumps(row(f"e{i}", reference="x" * 100_000)) for i in range(200)])
    plain = [ready.place.read for ready in asked.ready(None)]
    asked.path.write_bytes(gzip.compress(asked.path.read_bytes()))
    packed = [ready.place.read for ready in asked.ready(None)]
    assert packed == plain and len(packed) > 3 and packed[-1] == 200


def test_earlier_sides_are_asked_of_the_parent(reader):
    asked = []

    def before(keys):
        asked.append(keys)
        return {"e1": "heldout"}

    lines = [json.dumps(row(f"e{i}", split="train")) for i in range(3)]
    (first,) = processes.ready(reader(lines), before)
    assert asked == [["e0", "e1", "e2"]]
    assert first.keys == ["e0", "e2"] and first.problems[0].line == 2


def test_what_it_cannot_read_is_raised_here(reader):
    asked = reader([json.dumps(row())])
    asked.path.unlink()
    with pytest.raises(FileNotFoundError) as caught:
        list(processes.ready(asked, None))
    assert "in _batches" in caught.value.__notes__[0]  # the place where it was raised


def test_it_ends_when_its_parent_is_gone(reader):
    with processes._process() as process:
        processes._send(process.stdin, (reader([json.dumps(row())]), True, processes.MEMORY))
        processes._received(process.stdout)  # it has sent its question, and waits for the answer
        process.stdin.close()
        assert process.wait(120) == 0


def test_it_needs_no_django():
    code = "import sys, webapp.datasets.ingest.processes; sys.exit(bool({'django.db', 'celery'} & set(sys.modules)))"
    env = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env).returncode == 0


@pytest.fixture
def dying(children, monkeypatch):
    """Takes a rule. The one process that reads is killed when it asks for the sides of keys for which the rule is true."""
    monkeypatch.setattr(processes, "READERS", 1)
    of_keys = earlier_splits.of_keys

    def when(deadly):
        def asked(dataset, keys):
            if deadly(keys):
                children[-1].send_signal(signal.SIGKILL)
                children[-1].wait()
            return of_keys(dataset, keys)

        monkeypatch.setattr(earlier_splits, "of_keys", asked)

    return when


def test_where_it_dies_again_and_again_the_import_fails_and_says_where(import_rows, children, dying, monkeypatch):
    import_rows([row("old")])
    monkeypatch.setattr(import_job, "SMALL", 0)
    dying(lambda keys: f"e{2 * ROWS}" in keys)
    with pytest.raises(processes.Died):
        import_rows([row(f"e{i}") for i in range(3 * ROWS)])
    job = ImportJob.objects.latest("id")
    deaths = [job.taken["deaths"]]
    with pytest.raises(processes.Died):
        services.run_import(job.pk)
    job.refresh_from_db()
    deaths.append(job.taken["deaths"])
    assert job.state == ImportJob.State.RUNNING and deaths == [1, 2]
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FAILED and len(children) == 3
    assert "killed by signal 9, 3 times at the same place, soon behind row 2,000 of rows.jsonl" in job.error
    assert Example.objects.count() == 1  # the example of the earlier import


def test_whoever_gets_further_may_die_again(import_rows, dying, monkeypatch):
    monkeypatch.setattr(import_job, "SMALL", 0)
    import_rows([row("old")])
    asked = count(1)
    dying(lambda keys: next(asked) % 3 == 0)  # one batch is stored in each attempt
    with pytest.raises(processes.Died):
        import_rows([row(f"e{i}") for i in range(5 * ROWS)])
    job = ImportJob.objects.latest("id")
    for _ in range(2):
        with pytest.raises(processes.Died):
            services.run_import(job.pk)
        job.refresh_from_db()
        assert job.taken["deaths"] == 1
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FINISHED and job.rows_done == 5 * ROWS


def test_its_death_ends_the_import_which_goes_on_from_there(import_rows, dying, monkeypatch):
    monkeypatch.setattr(import_job, "SMALL", 0)
    import_rows([row("old")])
    content = [row(f"e{i}") for i in range(3 * ROWS)]
    asked = count(1)
    dying(lambda keys: next(asked) == 3)  # it has sent one batch, and waits for the data of the second
    with pytest.raises(processes.Died, match="killed by signal 9"):
        import_rows(content)
    job = ImportJob.objects.latest("id")
    assert job.state == ImportJob.State.RUNNING and "killed by signal 9" in job.error
    assert job.rows_done == ROWS and job.taken["stored"] == ROWS
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FINISHED and not job.error and job.rows_done == 3 * ROWS
    listed = VersionMember.objects.filter(version=job.version).order_by("position")
    assert list(listed.values_list("example__key", flat=True)) == [f"e{i}" for i in range(3 * ROWS)]
    assert Example.objects.count() == 3 * ROWS + 1


@pytest.mark.parametrize("which", [0, 1])
def test_the_death_of_either_of_two_loses_nothing(import_rows, children, monkeypatch, which):
    monkeypatch.setattr(import_job, "SMALL", 0)
    take, taken = loader.Loader.take, count(1)

    def takes(self, ready):
        if next(taken) == 2:
            children[which].kill()
            children[which].wait()
        return take(self, ready)

    monkeypatch.setattr(loader.Loader, "take", takes)
    # each of the two has at most three batches in store when it dies
    content = [row(f"e{i}") for i in range(8 * ROWS + 3)]
    with pytest.raises(processes.Died, match="killed by signal 9"):
        import_rows(content)
    job = ImportJob.objects.latest("id")
    assert 2 * ROWS <= job.rows_done < len(content) and job.taken["stored"] == job.rows_done
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == ImportJob.State.FINISHED and len(children) == 4
    listed = VersionMember.objects.filter(version=job.version).order_by("position")
    assert list(listed.values_list("example__key", flat=True)) == [f"e{i}" for i in range(len(content))]


def test_a_format_whose_rows_belong_together_is_read_by_one(reader, children):
    asked = replace(reader([]), format="ukpconvarg1")
    assert REGISTRY["ukpconvarg1"].bind and list(processes.ready(asked, None)) == []
    assert len(children) == 1
