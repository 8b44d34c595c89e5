"""`python -m trainer run`, `models` and `sampler-server`: arguments are parsed and checked before anything heavy is imported."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainer.config import RECIPES, ConfigInvalid, OnPolicyConfig, Recipe, RecipeConfig, resolve
from trainer.config.rewards.parts import RewardPart
from trainer.rewards.access import Access, AccessInvalid
from trainer.rewards.access import read as read_access


def run(arguments: list[str]) -> int:
    """A run without a server: metrics on the console, events in OUT/events.jsonl. 0: finished or stopped; 1: failed."""
    parser = argparse.ArgumentParser(prog="python -m trainer run", description=run.__doc__)
    parser.add_argument("--recipe", choices=RECIPES, default="policy", help="what the run does (default: policy)")
    parser.add_argument(
        "--config", type=Path, required=True, help="JSON file with the config; what it leaves out takes its default"
    )
    parser.add_argument("--data", type=Path, required=True, help="examples, JSON Lines")
    parser.add_argument("--model", type=Path, required=True, help="directory of a model")
    add_access(parser)
    parser.add_argument("--teacher", type=Path, help="the same as --slot teacher=DIR")
    parser.add_argument("--out", type=Path, required=True, help="directory for events and checkpoints")
    parser.add_argument("--resume", action="store_true", help="continue from the newest checkpoint in OUT")
    options = parser.parse_args(arguments)
    config = config_of(options.recipe, options.config)
    if not options.data.is_file():
        parser.error(f"--data {options.data}: the file does not exist")
    if not options.resume and (options.out / "events.jsonl").exists():
        parser.error(f"{options.out} already holds a run; give --resume or another directory")
    return _run(config, options, access_of(RECIPES[options.recipe], config, options.judges))


def add_access(parser: argparse.ArgumentParser) -> None:
    """Add the options that `run` and `shared` have in common: what a config may name, and how much is printed."""
    parser.add_argument(
        "--slot",
        type=slot_of,
        action="append",
        default=[],
        metavar="ROLE=DIR",
        help="directory of another model that a config names, with its role; may be repeated",
    )
    parser.add_argument(
        "--judges", type=Path, help="JSON: the judges and reward services that a config names (docs/rewards.md)"
    )
    parser.add_argument("--verbose", action="store_true", help="print progress too")


def models(arguments: list[str]) -> int:
    """Make a model directory."""
    parser = argparse.ArgumentParser(prog="python -m trainer models", description=models.__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind, text in (
        ("prepare", "the model SmolLM2-135M-Instruct, from the installed package"),
        ("tiny", "a random model of two layers"),
    ):
        kinds.add_parser(kind, help=text).add_argument("--dir", type=Path, required=True)
    options = parser.parse_args(arguments)
    from trainer.inference.models import ModelInvalid, make_tiny, prepare_smollm2

    make = {"prepare": prepare_smollm2, "tiny": make_tiny}[options.kind]
    try:
        made = make(options.dir)
    except (ModelInvalid, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{options.dir}: {'ready' if made else 'already there'}")
    return 0


def sampler_server(arguments: list[str]) -> int:
    """Start vLLM so that runs can sample from it and push their weights to it. Every program that reaches the server can do both."""
    from trainer.inference.sampling import SamplerInvalid
    from trainer.inference.vllm import installed_version, module_for
    from trainer.inference.vllm.memory import this_card

    parser = argparse.ArgumentParser(prog="python -m trainer sampler-server", description=sampler_server.__doc__)
    parser.add_argument("--model", type=Path, required=True, help="directory of a model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument(
        "--dtype", choices=["float32", "bfloat16"], default="float32", help="precision, as in model.dtype of the run"
    )
    parser.add_argument("--rank", type=int, help="largest rank of adapters, for sampler.push adapters")
    parser.add_argument("--max-batch", type=int, default=64, help="responses decoded at the same time")
    parser.add_argument("--kv-cache-gb", type=float, default=2.0, help="memory for keys and values")
    parser.add_argument("--compile", action="store_true", help="compile the model; worth it on GPUs")
    options = parser.parse_args(arguments)
    try:
        module = module_for(installed_version())
        eager = not options.compile
        wanted = module.arguments(
            options.model, options.dtype, options.max_batch, options.kv_cache_gb, options.rank, eager, this_card()
        )
    except SamplerInvalid as error:
        print(error, file=sys.stderr)
        return 1
    return int(module.serve(wanted, options.host, options.port))


def _run(config: RecipeConfig, options: argparse.Namespace, access: Access) -> int:
    from trainer.loops.run import run_recipe
    from trainer.loops.session.stage import StageJob
    from trainer.monitors import Console, RunMonitor, Spool

    monitor = RunMonitor(Spool(options.out / "events.jsonl"), console=Console(verbose=options.verbose))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: monitor.request_stop())
    models = {**dict(options.slot), "base": options.model}
    if options.teacher:
        models["teacher"] = options.teacher
    job = StageJob(RECIPES[options.recipe], config, options.data, models, options.out, monitor, access=access)
    ended_well = run_recipe(job, options.resume)
    if not monitor.close():
        print(
            f"{options.out / 'events.jsonl'} lacks the last events, because its disk is full",
            file=sys.stderr,
        )
        return 1
    return 0 if ended_well else 1


def access_of(recipe: Recipe, config: RecipeConfig, path: Path | None) -> Access:
    """The judges and services of the config. Exits with status 2 and names each one that is missing or does not fit, with its field."""
    try:
        access = read_access(path) if path else Access()
    except AccessInvalid as error:
        raise SystemExit(str(error)) from error
    slots = [slot.path for slot in recipe.filled(config) if slot.kind == "judge"]
    asking = {path: part for path in slots if (part := config.asking(path))}
    if found := list(access.problems(_parts(config), asking)):
        raise SystemExit("\n".join(f"{problem.path}: {problem.message} (--judges FILE)" for problem in found))
    return access


def _parts(config: RecipeConfig) -> Sequence[RewardPart]:
    return config.composition.parts if isinstance(config, OnPolicyConfig) else getattr(config, "rewards", [])


def slot_of(text: str) -> tuple[str, Path]:
    role, separator, folder = text.partition("=")
    if not separator or not role or not folder:
        raise argparse.ArgumentTypeError(f"{text!r} is not ROLE=DIR")
    return role, Path(folder)


def config_of(recipe: str, path: Path) -> RecipeConfig:
    """The config in the file. Exits with status 2 and names every problem with its field."""
    try:
        raw: dict[str, Any] = json.loads(path.read_text())
        return resolve(recipe, raw)
    except OSError as error:
        raise SystemExit(f"{path}: {os.strerror(error.errno or 0)}") from error
    except json.JSONDecodeError as error:
        raise SystemExit(f"{path}, line {error.lineno}: {error.msg}") from error
    except ConfigInvalid as error:
        lines = [f"{path}: {problem.path or 'config'}: {problem.message}" for problem in error.problems]
        raise SystemExit("\n".join(lines)) from error
