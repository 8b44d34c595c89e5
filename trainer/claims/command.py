"""`python -m trainer claims NAME`: the comparison behind a paper's central claim, and a verdict with intervals."""

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.config import RECIPES, ConfigInvalid, resolve
from trainer.contracts import Example, jsonlines
from trainer.judges.base import BaseSpec
from trainer.judges.spec import resolve as judge_spec
from trainer.machine import describe
from trainer.metrics.claims import PLANS, SIZES, Arm, Plan, Setting, Size, judge_all
from trainer.outputs import FOLDER

from . import reasoned, report
from .runs import ArmJob, Used, perform, prepare, write_examples
from .tasks import TASKS


def main(arguments: list[str]) -> int:
    """Runs every arm with every seed, then compares. If the command was killed, the same command continues from there.

    Exit status 0: there is a verdict; 1: some runs have no result; 2: nothing could be run.
    """
    options = _options(arguments)
    plan, size = PLANS[options.name], options.size
    out: Path = options.out or Path("var/claims") / f"{plan.name}-{size}"
    seeds = sorted(set(options.seeds or plan.sizes[size].seeds))
    began = time.monotonic()
    try:
        _own(out, f"{plan.name}-{size}")
        data, model = _material(plan, size, out, options)
        jobs = _jobs(plan, size, seeds, out, data, model, options.model, options.steps)
        prepare(jobs)
    except (OSError, ValueError) as error:
        print(_sentence(error), file=sys.stderr)
        return 2
    _tell(f"{len(plan.arms)} arms x {len(seeds)} seeds in {out}, {options.jobs} at a time")
    problems = perform(jobs, options.jobs, _tell)
    about = {
        "command": f"python -m trainer claims {shlex.join(arguments)}",
        "machine": describe(),
        "seconds": time.monotonic() - began,
        "seeds": seeds,
        "steps": jobs[0].steps,
        "prompts": _held_out(data),
        "problems": problems,
    }
    _write(
        plan,
        size,
        jobs,
        about,
        [out / "report"] + ([options.publish / f"{plan.name}-{size}"] if options.publish else []),
    )
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trainer claims", description=main.__doc__)
    parser.add_argument("name", choices=PLANS, help="; ".join(f"{r.name}: {r.title}" for r in PLANS.values()))
    parser.add_argument(
        "--size", choices=SIZES, default="tiny", help="tiny: takes minutes on two cores; demo: takes hours there"
    )
    parser.add_argument("--seeds", type=int, nargs="+", metavar="N", help="seeds; default: those of the size")
    parser.add_argument("--out", type=Path, help="directory for the runs; default: var/claims/NAME-SIZE")
    parser.add_argument(
        "--jobs", type=int, help="runs at the same time; default: one per core with tiny, one with demo"
    )
    parser.add_argument(
        "--steps", type=int, help="steps of each run, to try the command out; default: those of the size"
    )
    parser.add_argument(
        "--publish", type=Path, metavar="DIR", help="also write the report there, as NAME-SIZE.md and NAME-SIZE.json"
    )
    parser.add_argument(
        "--data",
        type=Path,
        help="with demo: file of examples, JSON Lines; default: those in demo/, if the claim can use them",
    )
    parser.add_argument(
        "--model",
        type=Path,
        default=Path("var/models/smollm2-135m-instruct"),
        help="with demo: directory of the model; made if it does not exist",
    )
    options = parser.parse_args(arguments)
    if options.size not in PLANS[options.name].sizes:
        parser.error(f"{options.name} has no size {options.size}; it has {', '.join(PLANS[options.name].sizes)}")
    if options.jobs is None:
        options.jobs = len(os.sched_getaffinity(0)) if options.size == "tiny" else 1
    for name in ("jobs", "steps"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")
    return options


def _own(out: Path, claim: str) -> None:
    """Mark the folder as that of the claim. Raises ValueError if it is another claim's: its model was taught another task."""
    out.mkdir(parents=True, exist_ok=True)
    marker = out / "claim"
    if marker.exists() and marker.read_text() != claim:
        raise ValueError(f"{out} holds the runs of {marker.read_text()}; give another --out")
    marker.write_text(claim)


def _material(plan: Plan, size: Size, out: Path, options: argparse.Namespace) -> tuple[Path, Path]:
    """Files of examples and model; those of the toy task are made in OUT. Raises OSError or ValueError."""
    if size == "tiny":
        data = out / "examples.jsonl"
        task = TASKS[plan.task]
        write_examples(data, task.examples(plan.sizes[size]))
        task.make_model(out / "model", _every(100, "teaching the model"))
        return data, out / "model"
    made_ready, usual = TASKS[plan.task].made_ready, TASKS[plan.task].given
    given: Path | None = options.data or usual
    if given is None:
        raise ValueError(f"{plan.name} has no data of its own in this size; {reasoned.SOURCE}")
    if not given.is_file():
        raise ValueError(f"{given}: the file does not exist; give another with --data")
    from trainer.inference.models import prepare_smollm2

    prepare_smollm2(options.model)
    return made_ready(given, options.model, out, _tell) if made_ready else (given, options.model)


def _jobs(
    plan: Plan, size: Size, seeds: Sequence[int], out: Path, data: Path, model: Path, asked: Path, steps: int | None
) -> list[ArmJob]:
    """The runs, seed by seed, so that an interrupted command has complete comparisons. `asked` is the model as it was given, which
    answers for judges that no run trains.
    """
    jobs, given = [], plan.sizes[size].config
    shared = {**given, "steps": steps} if steps else given
    by_seed = TASKS[plan.task].by_seed if size == "tiny" else None
    for seed in seeds:
        own = _of_seed(out, seed, by_seed) if by_seed else data
        for arm in plan.arms:
            recipe = plan.recipe_of(arm)
            config = plan.config(arm, shared, seed)
            resolve(recipe, config)
            measures = tuple(plan.measures(size)) if plan.measured == "curves" else ()
            folder = _folder(out, arm, seed)
            uses = _uses(plan, arm, shared, out, seed) | _frozen(plan.sizes[size], asked)
            jobs.append(ArmJob(arm.name, seed, config, folder, own, model, recipe, measures, uses))
    return jobs


def _folder(out: Path, arm: Arm, seed: int) -> Path:
    return out / "runs" / arm.name / f"seed-{seed}"


def _of_seed(out: Path, seed: int, examples: Callable[[int], Sequence[Example]]) -> Path:
    """The file with the examples of a seed that has its own, made once."""
    file = out / "data" / f"seed-{seed}.jsonl"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        write_examples(file, examples(seed))
    return file


def _uses(plan: Plan, arm: Arm, shared: Mapping[str, Any], out: Path, seed: int) -> dict[str, Used]:
    """The outputs that a run uses. Raises ValueError if an arm that trains no judge is used as one."""
    found, slots = {}, RECIPES[plan.recipe_of(arm)].slots
    for role, (used, output) in plan.used(arm).items():
        name = output or RECIPES[plan.recipe_of(used)].outputs[0].role
        folder, asked_as = _folder(out, used, seed), None
        if any(slot.kind == "judge" and slot.at(role) for slot in slots):
            asked_as = _asked_as(plan, used, shared, name)
        found[role] = Used(used.name, folder / "result.json", folder / FOLDER / name, asked_as)
    return found


def _frozen(setting: Setting, model: Path) -> dict[str, Used]:
    """The judges that no run trains: the model as it was given answers."""
    there = model / "config.json"
    return {role: Used("given", there, model, judge_spec(dict(spec))) for role, spec in setting.judges.items()}


def _asked_as(plan: Plan, used: Arm, shared: Mapping[str, Any], output: str) -> BaseSpec:
    recipe = plan.recipe_of(used)
    spec = resolve(recipe, plan.config(used, shared, 0)).asked_as(output)
    if spec is None:
        raise ValueError(
            f"{plan.name}: arm {used.name} is used as a judge, but its recipe {recipe} trains no model that can judge"
        )
    return judge_spec(spec)


def _write(plan: Plan, size: Size, jobs: Sequence[ArmJob], about: dict[str, Any], places: Sequence[Path]) -> None:
    found: dict[str, dict[int, Any]] = {arm.name: {} for arm in plan.arms}
    for job in jobs:
        if job.result.exists():
            found[job.arm][job.seed] = json.loads(job.result.read_text())
    results = judge_all(plan.claims, found)
    text = report.markdown(plan, size, results, found, about)
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.with_suffix(".md").write_text(text)
        place.with_suffix(".json").write_text(json.dumps(report.as_json(results, found, about), indent=1) + "\n")
    print(text)
    print(json.dumps({result.claim.text: result.corrected for result in results}))


def _held_out(data: Path) -> int:
    rows = jsonlines.rows(data.read_text(encoding="utf-8"))
    return sum(row.get("split") == "heldout" for row in rows)


def _every(steps: int, what: str) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        if done % steps == 0:
            _tell(f"{what}: {done} of {total} steps")

    return progress


def _sentence(error: Exception) -> str:
    if isinstance(error, ConfigInvalid):
        return "; ".join(f"{problem.path}: {problem.message}" for problem in error.problems)
    return str(error)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
