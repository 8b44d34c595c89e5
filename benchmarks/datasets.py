"""Import speed and search latency: `python -m benchmarks.datasets [ROWS]`.

Starts its own Postgres in a temporary folder, imports ROWS (1,000,000) synthetic preference pairs of about 100 words
each, then times reads as a page makes them: first page, a page deep inside, searches for rare, common and half-typed
words, filters, and both together. The import runs in a separate process, as a worker; its memory is what it and the
processes that it starts hold together, with shared libraries counted once. Importer and database share the machine's
cores; on a machine with other work, the CPU time per row says more than the rows per second.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import cpu_seconds, describe, memory
from webapp.localstack.postgres import Postgres

if TYPE_CHECKING:
    from webapp.datasets.models import DatasetVersion

ROWS = 1_000_000
VOCABULARY = 20_000
READS = 30  # of each kind
EXPORTED = 10_000
LABEL_STUDIO = 4_250  # rows/s of its import, measured elsewhere on 2 cores
LOOK_S = 0.1  # between two looks at the importer's memory


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.datasets", description=__doc__)
    parser.add_argument("rows", nargs="?", type=int, default=ROWS, help=f"{ROWS:,} if left out")
    options = parser.parse_args()
    with database() as (var, postmaster):
        report(*measure(var, options.rows, postmaster))


@contextmanager
def database() -> Iterator[tuple[Path, int]]:
    """Our own Postgres with the tables, for this process: its folder and the server's process."""
    with tempfile.TemporaryDirectory(prefix="ts-bench-") as folder:
        var = Path(folder)
        var.chmod(0o755)  # as root, Postgres runs as someone else and must reach its folder
        postgres = Postgres(var)
        postgres.start()
        os.environ.update(
            DJANGO_SETTINGS_MODULE="webapp.settings",
            TOUCHSTONE_VAR=str(var),
            DATABASE_URL=postgres.url(),
            REDIS_URL="redis://127.0.0.1:1/0",  # nobody listens: nothing here is broadcast
            LOG_LEVEL="ERROR",
        )
        try:
            subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], check=True)
            yield var, int((postgres.data / "postmaster.pid").read_text().split()[0])
        finally:
            postgres.stop()


@dataclass(frozen=True)
class ImportSpeed:
    """Measures of one import: CPU seconds of our processes and of the database's, and the most MB that ours held together, up to a
    tenth of the rows and up to the end.
    """

    rows: int
    seconds: float
    ours: float
    database: float
    early: float
    peak: float


def report(speed: ImportSpeed, reads: dict[str, list[float]], exports: dict[str, float]) -> None:
    ours, database = (1e6 * each / speed.rows for each in (speed.ours, speed.database))
    per_s = speed.rows / speed.seconds
    print(describe())
    print(f"import of {speed.rows:,} pairs: {per_s:,.0f} rows/s in {speed.seconds:.0f} s")
    print(f"importer's memory: {speed.peak:,.0f} MB at most, {speed.early:,.0f} MB up to a tenth of the rows")
    print(f"processor time per row: {ours:.0f} us Python + {database:.0f} us database")
    print(f"{'read':28}{'p50 ms':>10}{'p95 ms':>10}")
    for name, took in reads.items():
        print(f"{name:28}{quantile(took, 0.5):10.1f}{quantile(took, 0.95):10.1f}")
    for name, seconds in exports.items():
        print(f"export of {min(speed.rows, EXPORTED):,} rows, {name:20}{seconds:8.2f} s")
    everything = [ms for took in reads.values() for ms in took]
    results = (
        ("dataset_import", per_s, "rows/s, peer Label Studio on Postgres, measured elsewhere"),
        ("dataset_import_cpu", ours + database, "us/row"),
        ("dataset_import_memory", speed.peak, "MB"),
        ("dataset_reads_p95", quantile(everything, 0.95), "ms"),
        ("dataset_slowest_read_p95", max(quantile(took, 0.95) for took in reads.values()), "ms"),
        ("dataset_export_10k", max(exports.values()), "s"),
    )
    rows = {n: {"ours": round(v, 2), "peer": None, "unit": u, "ratio": None} for n, v, u in results}
    rows["dataset_import"] |= {"peer": LABEL_STUDIO, "ratio": round(per_s / LABEL_STUDIO, 1)}
    print(json.dumps(rows))


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(var: Path, rows: int, postmaster: int) -> tuple[ImportSpeed, dict[str, list[float]], dict[str, float]]:
    """The speed of the import, milliseconds of each read by kind, and seconds of each export of EXPORTED rows."""
    import django

    django.setup()
    from webapp.accounts.models import User
    from webapp.accounts.workspaces.services import create_workspace
    from webapp.datasets.ingest import services

    words = write(var / "pairs.jsonl", rows)
    membership = create_workspace("Bench", User.objects.create_user("bench@localhost"))
    job = services.start_import(membership, var / "pairs.jsonl", name="bench", queue=False)
    speed = run(job.pk, rows, postmaster)
    job.refresh_from_db()
    if not job.version:
        raise RuntimeError(job.error)
    return speed, time_reads(job.version, rows, words), time_exports(job.version)


def run(job_id: int, rows: int, postmaster: int) -> ImportSpeed:
    """Run the import in a separate worker, watched from here."""
    from webapp.datasets.models import ImportJob

    database, held = cpu_seconds(postmaster), []
    command = [sys.executable, "-m", "benchmarks.importer", str(job_id)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        while worker.poll() is None:
            done = ImportJob.objects.values_list("rows_done", flat=True).get(pk=job_id)
            held.append((done, memory(worker.pid) / 2**20))
            time.sleep(LOOK_S)
        told = json.loads(worker.communicate()[0])
    early, peak = (max(mb for done, mb in held if done <= most) for most in (rows // 10, rows))
    return ImportSpeed(rows, told["seconds"], told["cpu"], cpu_seconds(postmaster) - database, early, peak)


def write(path: Path, rows: int) -> list[str]:
    """Write the file; returns its vocabulary, the most frequent word first (word frequencies fall as in natural text)."""
    draw = random.Random(0)  # noqa: S311  data, not secrets
    words = [f"{draw.choice('abcdefghijklmnoprst')}{draw.choice('aeiou')}{i:x}" for i in range(VOCABULARY)]
    weights = [1 / (rank + 3) for rank in range(VOCABULARY)]
    pool = draw.choices(words, weights, k=200_000)

    def text(count: int) -> str:
        start = draw.randrange(len(pool) - count)
        return " ".join(pool[start : start + count])

    with path.open("w") as file:
        for i in range(rows):
            # of different length: two equal answers are not a pair, and such a line would be refused
            pair = {"prompt": text(20), "chosen": text(40), "rejected": text(41), "row": i}
            file.write(json.dumps(pair) + "\n")
    return words


def time_reads(version: object, rows: int, words: list[str]) -> dict[str, list[float]]:
    from webapp.datasets import queries
    from webapp.datasets.columns.filters import Filters
    from webapp.datasets.exploration import narrowing
    from webapp.datasets.models import DatasetVersion

    assert isinstance(version, DatasetVersion)  # noqa: S101  imported late
    draw = random.Random(1)  # noqa: S311
    rare, common = words[2_000:], words[:20]

    def searched(vocabulary: list[str], cut: int = 99) -> Callable[[], object]:
        return lambda: queries.examples(version, Filters(text=draw.choice(vocabulary)[:cut]))

    kinds: dict[str, Callable[[], object]] = {
        "first page": lambda: queries.examples(version, Filters()),
        "page deep inside": lambda: queries.examples(version, Filters(), str(draw.randrange(rows))),
        "rare word": searched(rare),
        "common word": searched(common),
        "half-typed word": searched(rare, 3),
        "two words": lambda: queries.examples(version, Filters(text=" ".join(draw.sample(words[:500], 2)))),
        "held out": lambda: queries.examples(version, Filters(split="heldout"), str(draw.randrange(rows))),
        "filter without match": lambda: queries.examples(version, Filters(verifier="word_count")),
        "held-out rare word": lambda: queries.examples(version, Filters(text=draw.choice(rare), split="heldout")),
        "held-out common word deep": lambda: queries.examples(
            version, Filters(text=draw.choice(common), split="heldout"), str(draw.randrange(rows))
        ),
        "histograms": lambda: narrowing.histograms(version, Filters()),
        "histograms of a common word": lambda: narrowing.histograms(version, Filters(text=draw.choice(common))),
        "better side, by length": lambda: queries.examples(
            version, Filters(label="first", length=(200.0, 260.0)), str(draw.randrange(rows))
        ),
        "surface and ratio": lambda: queries.examples(
            version, Filters(slice="rejected:longer", ratio=(1.5, None)), str(draw.randrange(rows))
        ),
        "count of a rare word": lambda: narrowing.count(version, Filters(text=draw.choice(rare))),
    }
    return {name: [timed(read) for _ in range(READS)] for name, read in kinds.items()}


def time_exports(version: object) -> dict[str, float]:
    from webapp.datasets.models import DatasetVersion

    assert isinstance(version, DatasetVersion)  # noqa: S101  imported late
    orders = {
        "own": ("touchstone", "jsonl"),
        "TRL": ("trl_preference", "jsonl"),
        "TRL, Parquet": ("trl_preference", "parquet"),
    }
    return {name: timed(partial(_first_rows_of, version, asked)) / 1000 for name, asked in orders.items()}


def _first_rows_of(version: "DatasetVersion", asked: tuple[str, str]) -> None:
    from webapp.datasets.exports import stream

    first_rows(stream.chunks(version, stream.order(*asked)))


def first_rows(pieces: Iterator[bytes]) -> None:
    """Read the pieces of an export of whole rows: each is at most `export.BATCH`, in order."""
    for _ in islice(pieces, EXPORTED // 500):
        """Read the pieces and drop them."""


def timed(read: Callable[[], object]) -> float:
    started = time.perf_counter()
    read()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
