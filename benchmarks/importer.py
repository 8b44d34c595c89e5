"""One import as a worker does it: `python -m benchmarks.importer JOB` prints {"seconds": ..., "cpu": ...}; `cpu` are the
CPU seconds of the worker and of the processes that it starts.
"""

import json
import sys
import time
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage


def used() -> float:
    return sum(each.ru_utime + each.ru_stime for each in (getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)))


def main() -> None:
    import django

    django.setup()
    from webapp.datasets.ingest import services

    started, before = time.perf_counter(), used()
    services.run_import(int(sys.argv[1]))
    print(json.dumps({"seconds": time.perf_counter() - started, "cpu": used() - before}))


if __name__ == "__main__":
    main()
