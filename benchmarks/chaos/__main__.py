"""Kills everything while everything works: `make chaos`, or `python -m benchmarks.chaos [--minutes 5] [--seed N] [SCENE ...]`.

Starts its own installation. Three people compare pairs, a large file is imported, a judge grades, a synchronous run is judged and an
asynchronous one trains under U-RB. Meanwhile SIGKILL hits randomly drawn processes: web server, one of its processes, worker, beat, Redis,
Postgres, one of its backends, Ray's head, raylet, learner, rollout actor, reward worker, judge. A ledger outside the installation keeps
what was acknowledged. At the end the ledger is compared with the installation: answers, events, digests of versions, verdicts, and the
runs, to the last bit, with undisturbed runs.

Ctrl-C ends the kills early. Exit status 1 if anything was lost or doubled, or has not come back.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.machine import describe

from .patience import GivenUp
from .scenes import SCENES, Scene
from .storm import Storm, StormPlan, table

PAIRS_A_MINUTE = 250  # more than people can compare, so that they work until the storm is over


def main() -> int:
    options = _options()
    seed = options.seed if options.seed is not None else random.randrange(10**6)  # noqa: S311
    folder = options.folder or Path(tempfile.mkdtemp(prefix="ts-chaos-"))
    print(f"{describe()}\nseed {seed}; ledgers and logs are kept in {folder}", flush=True)
    compared = max(400, int(options.minutes * PAIRS_A_MINUTE))
    plan = StormPlan(
        seed,
        60 * options.minutes,
        options.kills,
        options.every,
        compared=compared,
        rows=options.rows,
        steps=options.steps,
    )
    missed = 0
    for name in options.scenes or ["kills"]:
        print(f"\n== {name}: {SCENES[name].about}", flush=True)
        if needs := SCENES[name].needs():
            print(f"not done here: {needs}", flush=True)
        elif not play(SCENES[name], plan, folder / name):
            missed += 1
    return 1 if missed else 0


def play(scene: Scene, plan: StormPlan, folder: Path) -> bool:
    """Play a scene; returns whether all was as it should be."""
    folder.mkdir(parents=True)
    started, held, began = scene.start(), False, time.monotonic()
    stack = started.stack

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)

    try:
        stack.wait_until_up()
        outcome = Storm(stack, plan, folder, say, started.disturb).run()
        print(table(outcome), flush=True)
        held = outcome.holds
    except GivenUp as trouble:
        print(f"has not come back: {trouble}", flush=True)
    finally:
        with suppress(OSError):
            shutil.copytree(stack.var / "log", folder / "log", dirs_exist_ok=True)
            shutil.copy(stack.output, folder / "up.out")
        stack.stop()
        started.close()
    print("nothing was lost" if held else "NOT as it should be", flush=True)
    return held


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chaos",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    told = "; ".join(f"{name}: {scene.about}" for name, scene in SCENES.items())
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=f"kills, if none is named. {told}")
    parser.add_argument("--minutes", type=float, default=5.0, help="of kills; what is under way then comes to its end")
    parser.add_argument("--kills", type=int, default=10_000, help="end earlier after this many")
    parser.add_argument("--every", type=float, default=4.0, help="seconds between two kills, on average")
    parser.add_argument("--seed", type=int, help="which kills are drawn; a new one is drawn, and printed, without it")
    parser.add_argument("--rows", type=int, default=60_000, help="of the file that is imported")
    parser.add_argument("--steps", type=int, default=60, help="of each run")
    parser.add_argument("--folder", type=Path, help="for ledgers and logs; a new temporary one without it")
    options = parser.parse_args()
    if unknown := [name for name in options.scenes if name not in SCENES]:
        parser.error(f"there is no scene {unknown[0]!r}; there are {', '.join(SCENES)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
