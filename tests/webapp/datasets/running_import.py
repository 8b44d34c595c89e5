"""An import that is running. Its worker is a separate process, which is slow."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.workers import worker
from webapp.datasets.ingest import services
from webapp.datasets.models import ImportJob

from .conftest import row

ROWS, BATCH = 400, 20
SLOW_WORKER = f"""
import sys, time, django
django.setup()
from webapp.datasets.ingest import services
from webapp.datasets.ingest import loader, reader
reader.ROWS = {BATCH}
take = loader.Loader.take
loader.Loader.take = lambda *args: (time.sleep(0.1), take(*args))[1]
services.run_import(int(sys.argv[1]))
"""


def lines(bad=(), rows=ROWS):
    """Keys that occur twice, and lines that are not rows, on both sides of the place where the worker is."""
    made = [json.dumps(row(f"e{i % (rows - 10)}", domain=f"d{i % 7}")) for i in range(rows)]
    return "".join(("{oops" if i in bad else line) + "\n" for i, line in enumerate(made))


def queue_import(team, path, content, name="killed", **options) -> ImportJob:
    path.write_text(content)
    return services.start_import(team.researcher, path, name=name, queue=False, **options)


@contextmanager
def worker_on(job: ImportJob, begun: bool = True) -> Iterator[subprocess.Popen]:
    """Begins when some of the job's batches are stored, or with `begun=False` when the worker has the job. At the end, the process is
    killed if it still runs.
    """
    process = worker(SLOW_WORKER, job)
    try:
        until = time.monotonic() + 120
        while time.monotonic() < until and process.poll() is None:
            job.refresh_from_db()
            if job.rows_done >= 3 * BATCH or (not begun and job.state == ImportJob.State.RUNNING):
                break
            time.sleep(0.02)
        assert job.state == ImportJob.State.RUNNING and 3 * BATCH * begun <= job.rows_done < ROWS
        yield process
    finally:
        process.kill()
        process.wait()
