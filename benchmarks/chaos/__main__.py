"""Kills everything while everything works: `make chaos`, or `python -m benchmarks.chaos [--minutes 5] [--seed N] [SCENE ...]`.

Starts an installation of its own. Three people compare pairs, a large file is imported, a judge grades, a synchronous run is
judged and an asynchronous one trains under U-RB, while SIGKILL hits a process that is drawn: web server, one of its processes,
worker, beat, Redis, Postgres, one of its backends, Ray's head, raylet, learner, rollout actor, reward worker, judge. A ledger outside
the installation keeps what was acknowledged. In the end it is compared with what is there: answers, events, digests of versions,
verdicts, and the runs to the last bit with runs that nobody disturbed.

Exit status 1 if anything was lost or doubled, or has not come back.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import describe
from tests.stack import Stack

from .patience import GivenUp
from .storm import Plan, Storm, table


def main() -> int:
    options = _options()
    seed = options.seed if options.seed is not None else random.randrange(10**6)  # noqa: S311
    print(f"{describe()}\nseed {seed}", flush=True)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="ts-chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"the ledger is {folder / 'ledger.jsonl'}", flush=True)
    plan = Plan(seed, 60 * options.minutes, options.kills, options.every, rows=options.rows, steps=options.steps)
    stack = Stack("--no-demo")
    held = False
    try:
        stack.wait_until_up()
        began = time.monotonic()
        outcome = Storm(
            stack, plan, folder, lambda said: print(f"{time.monotonic() - began:7.1f} s  {said}", flush=True)
        ).run()
        print(table(outcome), flush=True)
        held = outcome.holds
    except GivenUp as trouble:
        print(f"has not come back: {trouble}", flush=True)
    finally:
        if not held:
            shutil.copytree(stack.var / "log", folder / "log", dirs_exist_ok=True)
            shutil.copy(stack.output, folder / "up.out")
            print(f"the logs are in {folder}", flush=True)
        stack.stop()
    print("nothing was lost" if held else "NOT as it should be", flush=True)
    return 0 if held else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chaos",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="of kills; what is under way then comes to its end")
    parser.add_argument("--kills", type=int, default=10_000, help="end earlier after so many")
    parser.add_argument("--every", type=float, default=4.0, help="seconds between two kills, on average")
    parser.add_argument("--seed", type=int, help="which kills are drawn; a new one is drawn, and printed, without it")
    parser.add_argument("--rows", type=int, default=60_000, help="of the file that is imported")
    parser.add_argument("--steps", type=int, default=12, help="of each run")
    parser.add_argument("--folder", type=Path, help="for the ledger, and for logs where something was lost")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
