"""Every measurement in turn, each in its own process: `make bench`, or `python -m benchmarks [--small] [NAME ...]`.

`make bench-results`, or `python -m benchmarks --results`, takes those that train models to see the result: the tables of
docs/results.md that are not timings. They take hours, so `make bench` leaves them out; by NAME each can be taken as well.

Each starts the services it needs in a temporary folder and prints its own table. At the end comes one table of all, and as the last line
one JSON object `{name: {ours, peer, unit, ratio}}`. If this machine lacks something that a measurement needs, the measurement says so and
is skipped. Exit status 1 if one failed; the others are still taken and printed.

`--small` goes through all of them with little of everything, to see that each works: its numbers say nothing.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import AWAY, describe

VLLM = Path(__file__).parents[1] / ".venv-vllm" / "bin" / "python"


@dataclass(frozen=True)
class Module:
    """A measurement. `minutes` is a rough time on two cores of a server; `small` are the arguments that make it quick."""

    about: str
    minutes: float
    small: str
    full: str = ""
    vllm: bool = False  # runs in the environment that has vLLM, if there is one
    trains: bool = False  # shows results of training, not timings

    def command(self, name: str, small: bool) -> list[str]:
        python = VLLM if self.vllm and VLLM.exists() else sys.executable
        return [str(python), "-m", f"benchmarks.{name}", *(self.small if small else self.full).split()]


MODULES = {
    "start": Module("from `make run` to its page", 3, "--starts 1"),
    "launch": Module("from the launch of a run to its first point", 2, "--runs 1"),
    "ingest": Module("events stored per second", 1, "--posts 5"),
    "long_run": Module("a run of a million events, some of them sent twice", 10, "--events 4000"),
    "live": Module(
        "points stored per second, charts of a million points, pages while a run goes on", 12, "--small --alone"
    ),
    "compare_runs": Module("1,000 runs x 50 metrics beside each other", 2, "--runs 100 --rounds 1 --long-points 5000"),
    "costs": Module("the table of costs among 100,000 attempts", 1, "--spans 500 --rounds 1"),
    "early_stop": Module(
        "the look of upkeep at the metric of an early stop, of a million points", 1, "--points 5000 --rounds 1"
    ),
    "lineage": Module("what a row reached and what it rests on, among a million rows", 15, "--nodes 620 --rounds 1"),
    "rollouts": Module(
        "searches, pages and filters among a million rollouts of a run, and what the index of words costs the ingest",
        25,
        "--rows 2000 --rounds 1 --stored 64",
    ),
    "episodes": Module("an episode of 127 MB: stored, its first paint, a turn, a word", 3, "--megabytes 6 --rounds 1"),
    "runs_table": Module("a page of the table of runs, among 100,000", 6, "--runs 2000 --rounds 1"),
    "datasets": Module("import and reads of a large dataset", 5, "20000"),
    "backup": Module(
        "work lost at a fall, a backup, the next one, and a restoration with all comparisons",
        3,
        "--rows-mb 10 --files-mb 10 --kills 1",
    ),
    "workbench": Module("an annotator's wait for the next task, in a browser", 2, "--tasks 6"),
    "answers": Module("export of answers, and the people of a large project", 4, "--answers 2000 --exported 500"),
    "annotation": Module(
        "people annotating: submissions per second and latency, beside Potato and Label Studio",
        12,
        "--seconds 5 --think-seconds 25 --tasks 2000 --peers --peer-seconds 5",
        full="--peers",
    ),
    "trainer": Module("a training step: speed and memory, against TRL", 8, "--steps 1 --group 2 --tokens 8"),
    "tree_attention": Module(
        "attention over a prefix tree, against a mask of all tokens by all tokens", 3, "--nodes 256 --layers 1"
    ),
    "products": Module("matrix products by oneDNN, against MKL", 1, "--calls 4"),
    "pushes": Module("a push of SmolLM2-135M and of its adapters to the local sampler", 1, "--pushes 2"),
    "sampling": Module("the demo's sampling, in float32 and in bfloat16", 3, "--rounds 1 --ways float32"),
    "int8": Module("whether a sampler in int8 would pay, and how far off it would be", 1, "--rows 32"),
    "records": Module("what records of responses cost the training thread", 1, "--rounds 1 --tokens 64"),
    "recipes": Module("updates of sft, reward_model and dpo: speed and memory, against TRL", 6, "--steps 1 --batch 2"),
    "judge_training": Module(
        "judgements trained per second, against TRL's GRPOTrainer with a Python reward, and reasons matched",
        8,
        "--steps 1 --questions 2 --group 2 --tokens 8 --pairs 40",
    ),
    "curricula": Module(
        "the schedule of a step as a share of it, K-center, and whether a schedule resumes",
        1,
        "--prompts 64 --steps 3 --responses 4 --tokens 4 --examples 1000 --picks 5",
    ),
    "runners": Module(
        "asynchronous runs beside synchronous ones and beside the simulator",
        12,
        "--steps 12 --workers 2 --schedules urb",
    ),
    "shared_sweeps": Module(
        "eight configurations in one process, beside one of them and beside eight processes",
        6,
        "--recipes sft --steps 8 --singles 1",
        full="--halving",
    ),
    "samplers": Module(
        "tokens per second of vLLM and of the local sampler", 4, "--rounds 1 --group 2 --tokens 8", vllm=True
    ),
    "engine_check": Module(
        "healthy starts that the engine check stops, and faults that it misses", 10, "--starts 1 --tokens 512"
    ),
    "judges": Module(
        "verdicts per second through an endpoint, against a bare loop and autorubric",
        6,
        "--responses 20 --pairs 50 --graded 5",
    ),
    "judged_runs": Module(
        "rewards through a judge: verdicts stored per second, and the part of a step that waits for them",
        8,
        "--groups 10 --steps 2 --tokens 8",
    ),
    "local_judges": Module("the judge in the box, against one generation per criterion", 5, "--rounds 1"),
    "demo": Module("the demo: does a policy learn from rubrics?", 30, "--seeds 0 --steps 1", trains=True),
    "reward_models": Module(
        "reward models on people's preferences, beside TRL, length and embeddings",
        60,
        "--sets ukpconvarg1 --seeds 0 --pairs 4 --heldout 4",
        trains=True,
    ),
    "planted_bias": Module("what a judge's order bias costs iterative DPO", 15, "--seeds 0 --steps 8", trains=True),
    "hackable_proxy": Module("what a reward does that likes length", 15, "--seeds 0 --steps 2", trains=True),
    "hacking": Module(
        "reward hacking: planted biases found, how soon, and false alarms", 8, "--seeds 10 --clean 1", trains=True
    ),
    "hacking_trained": Module(
        "the same in policies that learn to please a planted judge",
        10,
        "--seeds 10 --clean 1 --steps 8",
        trains=True,
    ),
    "second_act": Module(
        "from one's own comparisons to a model of them, through the pages", 8, "--answers 8", trains=True
    ),
    "judged_rubrics": Module(
        "RuscaRL on criteria that a judge decides, through an endpoint", 30, "--judges yes-no --steps 1", trains=True
    ),
}

Results = dict[str, dict[str, Any]]


class NotTaken(Exception):
    """A measurement without numbers; the message says why in a few words, what it printed in many."""

    def __init__(self, why: str, failed: bool = True) -> None:
        super().__init__(why)
        self.failed = failed


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    timings = [name for name, module in MODULES.items() if not module.trains]
    results_of = [name for name, module in MODULES.items() if module.trains]
    told = f"one of {', '.join(timings)}, which are all taken if none is named; or of {', '.join(results_of)}"
    parser.add_argument("names", nargs="*", metavar="NAME", help=told)
    parser.add_argument("--results", action="store_true", help=f"those that train: {', '.join(results_of)}")
    parser.add_argument("--small", action="store_true", help="little of everything, to see that each part works")
    options = parser.parse_args(arguments)
    names = options.names or (results_of if options.results else timings)
    if unknown := [name for name in names if name not in MODULES]:
        parser.error(f"there is no measurement {unknown[0]!r}; there are {', '.join(MODULES)}")
    machine = describe()  # before anything is measured, so that its load is that of other programs on this machine
    print(f"{machine}\n{len(names)} to measure, {_how_long(names, options.small)}", flush=True)
    results: Results = {}
    missing: list[tuple[str, NotTaken]] = []
    for name in names:
        print(f"\n== {name}: {MODULES[name].about}", flush=True)
        started = time.monotonic()
        try:
            results |= measure(name, options.small)
        except NotTaken as why:
            missing.append((name, why))
        print(f"{name} took {time.monotonic() - started:.0f} s", flush=True)
    print(f"\n{machine}{', SMALL: these numbers say nothing' if options.small else ''}\n{table(results)}")
    for name, reason in missing:
        print(f"{name} {reason}; what it said is above")
    print(json.dumps(results))
    return 1 if any(reason.failed for _, reason in missing) else 0


def _how_long(names: list[str], small: bool) -> str:
    if small:
        return "little of each: about a minute apiece, more where a peer is installed first"
    return f"about {sum(MODULES[name].minutes for name in names):.0f} minutes on two idle cores"


def measure(name: str, small: bool = False) -> Results:
    """Run `benchmarks.NAME`, show its output as it comes, and read its last line. Raises NotTaken."""
    last = ""
    with subprocess.Popen(MODULES[name].command(name, small), stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if last.startswith("{"):  # only the last one is the result
                print(last, flush=True)
            last = line.rstrip("\n")
            if not last.startswith("{"):
                print(last, flush=True)
    if process.returncode == 0:
        try:
            found: Results = json.loads(last)
            return found
        except json.JSONDecodeError:
            raise NotTaken("failed: its last line is no JSON object") from None
    if last.startswith("{"):
        print(last, flush=True)
    if process.returncode == AWAY:
        raise NotTaken("was not measured here", failed=False)
    raise NotTaken(f"failed with status {process.returncode}")


def table(results: Results) -> str:
    """A line per measurement; a dash if there is no peer to compare with."""
    rows = [("", "ours", "peer", "ratio", "unit")]
    for name, found in results.items():
        rows.append((name, _number(found["ours"]), _number(found["peer"]), _number(found["ratio"]), found["unit"]))
    return "\n".join(f"{name:26}{ours:>12}{peer:>12}{ratio:>8}   {unit}" for name, ours, peer, ratio, unit in rows)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.2f}" if abs(value) < 10 else f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
