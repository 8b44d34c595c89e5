"""Eight configurations of one base model that train together, beside one of them, and beside eight runs one after the other.

Each way is a command from a shell, from its start to its end: `python -m trainer run` and `python -m trainer shared`. Four learning rates x
two ranks, float32, the prompts and answers of the demo. Printed are wall time, CPU seconds, the largest memory, and whether each metric of
a run equals that of the run alone.

Decisions: configurations can be compared when all have their first value after step 0. One after the other, that is when the last one has
it; in turns it is soon. The number of configurations divided by that time is decisions an hour, as the published claim of chunk-based
sweeps (16 to 24 times) counts them. In short runs the start of a process is most of that time: see `--steps` and `--values`. Finally, with `--halving`, the weaker half is stopped whenever all have a value, at the first, second
and fourth: one of eight is left at the end.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.machine import describe, memory_of_copies
from trainer.inference.models import make_tiny, prepare_smollm2

RATES, RANKS = (1e-4, 3e-4, 1e-3, 3e-3), (4, 16)
DATA = Path("demo/prompts.jsonl")
GOAL = 2.5
LOOK_S = 1.0
"""Seconds between two looks at the memory, each of which takes milliseconds."""
PUBLISHED = "16 to 24"
BASE: dict[str, dict[str, Any]] = {
    "sft": {"data": {"source": "references"}, "batch_size": 8, "evaluation": {"max_examples": 8}},
    "policy": {
        "rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 24},
        "evaluation": {"max_examples": 4},
    },
}
DECIDES = {"sft": ("eval/loss", False), "policy": ("eval/rubric_score", True)}
"""The metric, and whether higher is better."""


@dataclass
class Took:
    """`values`: the metrics of each configuration by (step, key); `first_s`: when each had its first value after step 0."""

    clock_s: float = 0.0
    processor_s: float = 0.0
    most_mib: float = 0.0
    values: dict[str, dict[tuple[int, str], float]] = field(default_factory=dict)
    first_s: list[float] = field(default_factory=list)

    def then(self, other: "Took") -> "Took":
        """Both, one after the other."""
        return Took(
            self.clock_s + other.clock_s,
            self.processor_s + other.processor_s,
            max(self.most_mib, other.most_mib),
            self.values | other.values,
            self.first_s + [self.clock_s + each for each in other.first_s],
        )

    @property
    def decisions_an_hour(self) -> float:
        return 3600 * len(self.first_s) / max(self.first_s)

    def __str__(self) -> str:
        return f"{self.clock_s:.1f} s, {self.processor_s:.1f} s of processors, {self.most_mib:,.0f} MiB at most"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shared_sweeps",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--recipes", nargs="+", choices=list(BASE), default=list(BASE))
    parser.add_argument("--model", type=Path, help="default: the tiny model")
    parser.add_argument("--smollm2", action="store_true", help="SmolLM2-135M-Instruct, from its package")
    parser.add_argument("--steps", type=int, default=16, help="of each run")
    parser.add_argument("--values", type=int, default=8, help="of each run; chunk-based sweeps call this the chunks")
    parser.add_argument(
        "--singles",
        type=int,
        default=8,
        help="processes one after the other; for fewer than 8 the rest is taken to be as long",
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="how often the eight train together, in turns with the runs one by one"
    )
    parser.add_argument("--processes", help="of the runs together; default: what the trainer chooses")
    parser.add_argument(
        "--halving", action="store_true", help="also stop the weaker half at the first, second and fourth value"
    )
    options = parser.parse_args()
    print(describe())
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or Path(folder) / "model"
        if not options.model:
            (prepare_smollm2 if options.smollm2 else make_tiny)(model)
        for recipe in options.recipes:
            results |= measured(recipe, model, options, Path(folder) / recipe)
    print(json.dumps(results))


def measured(recipe: str, model: Path, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    steps, every = options.steps, max(1, options.steps // options.values)
    files = configs(recipe, steps, every, folder)
    given = ["--recipe", recipe, "--data", str(DATA), "--model", str(model)]
    shared = ["shared", *given, "--config", *map(str, files)]
    shared += ["--processes", options.processes] if options.processes else []
    alone, rounds = [], []
    for turn in range(options.rounds):
        for file in files[turn : options.singles : options.rounds]:
            out = folder / "alone" / file.stem
            alone.append(timed(["run", *given, "--config", str(file), "--out", str(out)], recipe, [out]))
        out = folder / f"together-{turn}"
        rounds.append(timed([*shared, "--out", str(out)], recipe, [out / file.stem for file in files]))
    one, together, line = mean(alone), mean(rounds), in_line(alone, len(files))
    print(
        f"\n{recipe}, {steps} steps, a value after each {every}, {model.name}, load {os.getloadavg()[0]:.1f}\none run: {one}"
    )
    more = "" if len(alone) == len(files) else f" ({len(alone)} measured, the others taken to be as long)"
    print(f"{len(files)} one after the other: {line}, {line.clock_s / one.clock_s:.2f} times one{more}")
    times, busy = together.clock_s / one.clock_s, together.processor_s / one.processor_s
    print(
        f"{len(files)} together: {together}, {times:.2f} times one by the clock, {busy:.2f} by processors; the aim is {GOAL}"
    )
    for each in rounds:
        print(f"    {each}; {same(alone, each)}")
    faster = together.decisions_an_hour / line.decisions_an_hour
    print(
        f"decisions an hour: {together.decisions_an_hour:,.0f} together, {line.decisions_an_hour:,.0f} one after the other, "
        f"{faster:.1f} times as many; published: {PUBLISHED}"
    )
    name = f"shared sweep, {recipe}"
    found = {
        f"{name}, 8 runs": {
            "ours": times,
            "peer": line.clock_s / one.clock_s,
            "unit": "x one run",
            "ratio": line.clock_s / together.clock_s,
        },
        f"{name}, decisions": {
            "ours": together.decisions_an_hour,
            "peer": line.decisions_an_hour,
            "unit": "1/h",
            "ratio": faster,
        },
    }
    if options.halving:
        out = folder / "halved"
        folders = [out / file.stem for file in files]
        stopper = Halving(recipe, every, folders)
        halved = timed([*shared, "--out", str(out)], recipe, folders, stopper.look)
        print(f"halved: {halved}, {halved.clock_s / one.clock_s:.2f} times one; {stopper.told}")
        found[f"{name}, halved"] = {
            "ours": halved.clock_s / one.clock_s,
            "peer": None,
            "unit": "x one run",
            "ratio": None,
        }
    return found


def configs(recipe: str, steps: int, every: int, folder: Path) -> list[Path]:
    """The files of the eight configurations, with a value after `every` steps."""
    folder.mkdir(parents=True)
    files = []
    for rate in RATES:
        for rank in RANKS:
            evaluation = BASE[recipe]["evaluation"] | {"every": every}
            own = {
                "optim": {"lr": rate},
                "model": {"lora": {"rank": rank, "alpha": 2 * rank}},
                "evaluation": evaluation,
            }
            files.append(folder / f"lr{rate:g}-rank{rank}.json")
            files[-1].write_text(json.dumps(BASE[recipe] | own | {"steps": steps, "checkpoint": {"every": steps}}))
    return files


def timed(
    command: Sequence[str], recipe: str, folders: Sequence[Path], look: Callable[[], None] = lambda: None
) -> Took:
    """Run a command of the trainer from its start to its end. Raises SystemExit if it fails. `look` is called now and then."""
    started, wall, most, looked = time.monotonic(), time.time(), 0, time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([sys.executable, "-m", "trainer", *command], stdout=said, stderr=said)
        while True:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            look()
            if time.monotonic() > looked + LOOK_S:
                most, looked = max(most, memory_of_copies(process.pid)), time.monotonic()
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(command)}\n{said.read()[-2000:]}")
    took = Took(time.monotonic() - started, used.ru_utime + used.ru_stime, most / 2**20)
    key, _ = DECIDES[recipe]
    for folder in folders:
        told = metrics(folder)
        took.values[folder.name] = {place: value for place, (value, _) in told.items()}
        took.first_s.append(min(at for (step, name), (_, at) in told.items() if step and name == key) - wall)
    return took


def metrics(folder: Path) -> dict[tuple[int, str], tuple[float, float]]:
    """By step and key: the value, and the wall-clock time at which it was reported. Without metrics of the run's own times."""
    found = {}
    for line in (folder / "events.jsonl").read_text().split("\n"):
        if '"metrics"' in line:
            event = json.loads(line)
            if event["data"]["kind"] == "metrics":
                at = datetime.fromisoformat(event["time"]).timestamp()
                for key, value in event["data"]["values"].items():
                    if not key.startswith("perf/"):
                        found[event["step"], key] = (value, at)
    return found


def mean(alone: Sequence[Took]) -> Took:
    count = len(alone)
    return Took(
        sum(t.clock_s for t in alone) / count,
        sum(t.processor_s for t in alone) / count,
        max(t.most_mib for t in alone),
        first_s=[sum(times) / count for times in zip(*(t.first_s for t in alone), strict=True)],
    )


def in_line(alone: Sequence[Took], runs: int) -> Took:
    """One after the other; configurations that were not measured count like the first ones."""
    line = Took()
    for place in range(runs):
        line = line.then(alone[place % len(alone)])
    return line


def same(alone: Sequence[Took], together: Took) -> str:
    by_itself: Mapping[str, Any] = {name: values for each in alone for name, values in each.values.items()}
    count = sum(len(values) for values in by_itself.values())
    differ = sum(
        together.values[name].get(place) != value
        for name, values in by_itself.items()
        for place, value in values.items()
    )
    more = sum(len(together.values[name]) != len(values) for name, values in by_itself.items())
    return f"of {count:,} numbers of {len(by_itself)} runs {differ} differ from those of the run by itself; {more} runs have told another number of them"


class Halving:
    """Stops the weaker half of the runs when all that continue have the first, second and fourth value."""

    def __init__(self, recipe: str, every: int, folders: Sequence[Path]) -> None:
        self._key, self._higher = DECIDES[recipe]
        self._rungs = [every, 2 * every, 4 * every]
        self._alive = list(folders)
        self.told = ""

    def look(self) -> None:
        if not self._rungs or not all((folder / "events.jsonl").exists() for folder in self._alive):
            return
        found = {folder: metrics(folder).get((self._rungs[0], self._key)) for folder in self._alive}
        if any(value is None for value in found.values()):
            return
        best = sorted(self._alive, key=lambda folder: (found[folder] or (0.0, 0.0))[0], reverse=self._higher)
        self._rungs.pop(0)
        kept = best[: max(1, len(best) // 2)]
        for folder in best[len(kept) :]:
            (folder / "stop").touch()
        self._alive = kept
        self.told = f"{kept[0].name} went on to the end"


if __name__ == "__main__":
    main()
