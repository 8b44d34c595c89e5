"""`python -m trainer shared`: several runs of one base model in one process, in turns."""

import argparse
import signal
import sys
from functools import partial
from pathlib import Path

from trainer.arithmetic import processes_for
from trainer.cli import access_of, add_access, config_of
from trainer.config import RECIPES, RecipeConfig
from trainer.config.together import RECIPES as TOGETHER
from trainer.config.together import why_apart
from trainer.devices import cards, on_purpose
from trainer.forking import in_processes
from trainer.rewards.access import Access

STOP = "stop"
"""A file of this name in a run's folder stops only that run."""


def shared(arguments: list[str]) -> int:
    """Runs of one base model and one dataset: each config is a run, in the folder OUT/<name of its file>. The base model is read once. The runs
    take turns, and each gives the numbers that `python -m trainer run` gives it. SIGTERM or Ctrl-C stops all, the file
    OUT/<name>/stop one. 0: all finished or stopped; 1: one failed.
    """
    parser = argparse.ArgumentParser(prog="python -m trainer shared", description=shared.__doc__)
    parser.add_argument("--recipe", choices=TOGETHER, default="policy", help="what the runs do (default: policy)")
    parser.add_argument("--config", type=Path, required=True, nargs="+", help="JSON, one file for each run")
    parser.add_argument("--data", type=Path, required=True, help="examples, JSON Lines")
    parser.add_argument("--model", type=Path, required=True, help="directory of the base model")
    add_access(parser)
    parser.add_argument("--out", type=Path, required=True, help="directory for the folders of the runs")
    parser.add_argument("--steps", type=int, default=1, help="steps of a turn (default: 1)")
    parser.add_argument(
        "--processes",
        type=int,
        help="processes that compute at the same time and divide the runs among themselves; each holds the memory of one run's step "
        "(default: as many as there are cores if all models are very small, else 1)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue each run from its newest checkpoint, if it has one"
    )
    options = parser.parse_args(arguments)
    configs = {file.stem: config_of(options.recipe, file) for file in options.config}
    if len(configs) < len(options.config):
        parser.error("--config: two files have the same name, but each name becomes the folder of a run; rename one")
    if why := why_apart(options.recipe, list(configs.values())):
        parser.error(f"these runs cannot train together: {why}")
    if not options.data.is_file():
        parser.error(f"--data {options.data}: the file does not exist")
    if options.steps < 1:
        parser.error("--steps: must be 1 or more")
    if options.processes is None:
        options.processes = processes_for([options.model, *dict(options.slot).values()])
    if options.processes < 1:
        parser.error("--processes: must be 1 or more")
    if options.processes > 1 and cards() and not on_purpose():
        parser.error("--processes: on a GPU all runs are in one process")
    for name in configs:
        if not options.resume and (options.out / name / "events.jsonl").exists():
            parser.error(f"{options.out / name} already holds a run; give --resume or another directory")
    recipe = RECIPES[options.recipe]
    return _run(configs, options, {name: access_of(recipe, configs[name], options.judges) for name in configs})


def _run(configs: dict[str, RecipeConfig], options: argparse.Namespace, access: dict[str, Access]) -> int:
    count = min(options.processes, len(configs))
    names = list(configs)
    if count > 1:
        from trainer.loops.together import read_ahead

        read_ahead(options.recipe, options.model, configs[names[0]].model.dtype, options.data)
    parts = [names[first::count] for first in range(count)]
    return in_processes([partial(_train, {name: configs[name] for name in part}, options, access) for part in parts])


def _train(configs: dict[str, RecipeConfig], options: argparse.Namespace, access: dict[str, Access]) -> int:
    from trainer.loops.session.stage import StageJob
    from trainer.loops.together import run_together
    from trainer.monitors import Console, RunMonitor, Spool

    jobs = []
    for name, config in configs.items():
        folder = options.out / name
        (folder / STOP).unlink(missing_ok=True)
        monitor = RunMonitor(Spool(folder / "events.jsonl"), console=Console(verbose=options.verbose, name=name))
        monitor.also_stops = (folder / STOP).exists
        models = {**dict(options.slot), "base": options.model}
        jobs.append(
            StageJob(RECIPES[options.recipe], config, options.data, models, folder, monitor, access=access[name])
        )

    def stop(*_: object) -> None:
        for job in jobs:
            job.monitor.request_stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    ended = run_together([(job, options.resume) for job in jobs], options.steps)
    written = [job.monitor.close() for job in jobs]
    for job, whole in zip(jobs, written, strict=True):
        if not whole:
            print(
                f"{job.run_dir / 'events.jsonl'} lacks the last events, because its disk is full",
                file=sys.stderr,
            )
    return 0 if all(ended) and all(written) else 1
