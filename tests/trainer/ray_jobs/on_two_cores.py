"""`python -m tests.trainer.ray_jobs.on_two_cores`: `python -m trainer job` on a machine that has two cores."""

import os
import sys

from trainer.__main__ import main

if __name__ == "__main__":
    os.sched_getaffinity = lambda pid: {0, 1}
    sys.exit(main(["job"]))
