"""Rewards through a judge, in the way a run gets them: `python -m benchmarks.judged_runs`.

Starts a Postgres, a Redis, a web process, a worker and a chat server that answers each request after 200 ms. All of them share
the machine's cores with the run.

- Verdicts stored per second: groups of responses are scored as a run scores them. Their questions go to the web process, a
  worker asks the chat server, verdicts go to the verdict store and back to the run.
- The share of a step in which only rewards are awaited: every response of the step is there, its rewards are not, and
  nothing is trained. A synchronous and an asynchronous run of SmolLM2-135M-Instruct on the demo's prompts, each response judged by
  ten criteria. The first step of each warms up and does not count.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import configs
from benchmarks.ingest import services
from benchmarks.judges import CRITERIA, IN_FLIGHT, STATEMENTS, chat_server, judge, response_text, result
from benchmarks.machine import describe
from trainer.contracts import jsonlines

ROOT = Path(__file__).resolve().parent.parent
GROUPS, GROUP = 160, 8
STEPS = 4
PROMPTS, RESPONSES, TOKENS = 8, 4, 40
KINDS = ("sync", "async")


def main() -> None:
    options = _options()
    machine = describe()
    with tempfile.TemporaryDirectory(prefix="ts-bench-") as folder:
        var = Path(folder)
        os.environ["ENDPOINT_NETWORKS"] = "127.0.0.0/8"
        with services(var) as web, worker(), chat_server(var) as url:
            import django

            django.setup()
            found = {"judged_stored": stored_per_second(web, url, options.groups)}
            for kind in options.runs:
                found |= {f"judged_wait_{kind}": waiting(web, url, kind, options, var / kind)}
    print(machine)
    print(json.dumps(found))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judged_runs", description=__doc__)
    parser.add_argument("--groups", type=int, default=GROUPS, help=f"of {GROUP} responses, by {CRITERIA} criteria each")
    parser.add_argument("--steps", type=int, default=STEPS, help="of each run; the first one warms up")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of a response, at most")
    parser.add_argument("--runs", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--model", type=Path, default=ROOT / "var/models/smollm2-135m-instruct")
    return parser.parse_args()


@contextlib.contextmanager
def worker() -> Iterator[None]:
    """A worker as `manage.py up` starts it."""
    from webapp.localstack.stack import CELERY_THREADS

    command = [sys.executable, "-m", "celery", "-A", "webapp", "worker", "--pool", "threads"]
    command += ["--concurrency", str(CELERY_THREADS), "--loglevel", "WARNING", "--without-gossip", "--without-mingle"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def judged_run(config: dict[str, Any], url: str) -> tuple[Any, dict[str, Any]]:
    """A run that is under way, written directly, and its config with a new judge that was never asked."""
    from benchmarks.judges import membership
    from webapp.datasets.models import Dataset, DatasetVersion
    from webapp.experiments.lifecycle import tokens
    from webapp.experiments.models import Experiment, Run
    from webapp.inference.models import RegisteredModel

    version = judge("criterion", url)
    config = {**config, "rewards": [{"kind": "rubric", "judge": str(version)}]}
    space = membership().workspace
    dataset = Dataset.objects.create(workspace=space, name=str(version))
    run = Run.objects.create(
        experiment=Experiment.objects.create(workspace=space, name=str(version)),
        number=1,
        recipe="policy",
        config=config,
        dataset_version=DatasetVersion.objects.create(dataset=dataset, number=1, state="frozen", digest="0" * 64),
        model=RegisteredModel.objects.create(workspace=space, name=str(version), source="local", path="/bench"),
        state="running",
    )
    run.slots.create(role="judge", path="rewards.0.judge", judge=version)
    Run.objects.filter(pk=run.pk).update(token_digest=tokens.digest(run))
    return run, config


def access_of(run: Any, web: str) -> Any:
    """The access of the run's process to its judge, as its assignment says."""
    from trainer.rewards.access import granted
    from webapp.experiments.lifecycle import tokens
    from webapp.experiments.rewards import grants

    address = f"{web}/api/v1/ingest/runs/{run.pk}"
    return granted(grants.judges(run), f"{address}/questions", tokens.run_token(run), f"{address}/verdicts")


def stored_per_second(web: str, url: str, groups: int) -> dict[str, Any]:
    from trainer.rollouts import RewardSetup
    from webapp.judging.models import Verdict

    run, config = judged_run({"scaffold": None}, url)
    scorer = RewardSetup(configs.policy(config), access_of(run, web)).open()
    try:
        scorer.score(_items(1, "warm"))
        before = Verdict.objects.count()
        started = time.perf_counter()
        rewards = scorer.score(_items(groups, "train/1"))
        seconds = time.perf_counter() - started
    finally:
        scorer.close()
    stored = Verdict.objects.count() - before
    if stored != groups * GROUP * CRITERIA or any(reward.total is None for reward in rewards):
        raise RuntimeError(f"{stored} verdicts are stored, {groups * GROUP * CRITERIA} were expected")
    print(f"{stored:,} verdicts of {groups} groups in {seconds:.1f} s, {IN_FLIGHT} calls in flight at most", flush=True)
    return result(stored / seconds, None, "verdicts/s")


def _items(groups: int, where: str) -> list[Any]:
    from trainer.rewards import Item

    found = []
    for number in range(groups):
        example = _example(f"{where}-{number}", f"Question {number} of {where}: how do I keep bread fresh?")
        for place in range(GROUP):
            text = response_text(number * GROUP + place) + where
            found.append(Item(f"{where}/{number}/{place}", example, example.rubric, text, 80, 400, None))
    return found


def _example(key: str, prompt: str) -> Any:
    from trainer.contracts import Criterion, Example, Message, Rubric

    criteria = tuple(Criterion(id=f"c{n}", text=text, points=1.0) for n, text in enumerate(STATEMENTS))
    return Example(key=key, prompt=(Message(role="user", content=prompt),), rubric=Rubric(criteria=criteria))


def waiting(web: str, url: str, kind: str, options: argparse.Namespace, out: Path) -> dict[str, Any]:
    """The share of the steps, in percent, in which only rewards are awaited."""
    from trainer.inference.models import prepare_smollm2

    prepare_smollm2(options.model)
    config: dict[str, Any] = {
        "steps": options.steps,
        "scaffold": None,
        "rollout": {"prompts_per_step": PROMPTS, "group_size": RESPONSES, "max_new_tokens": options.tokens},
        "optim": {"minibatch_size": 16, "micro_batch_tokens": 512},
        "evaluation": {"every": 0, "max_examples": 0},
        "checkpoint": {"every": options.steps},
    }
    if kind == "async":
        config["runner"] = {"kind": "async", "workers": 1, "ahead": 2, "max_staleness": 1}
    run, config = judged_run(config, url)
    values = trained(config, options.model, access_of(run, web), out)
    waited, took = (values[key][1:] for key in ("perf/reward_wait_s", "perf/step_s"))
    run.judges.get()  # it was asked through the server
    print(
        f"{kind}: steps of {median(took):.1f} s, of which {median(waited):.2f} s only wait for rewards "
        f"({', '.join(f'{each:.2f}' for each in waited)}); {PROMPTS * RESPONSES * CRITERIA} verdicts a step",
        flush=True,
    )
    return result(100 * sum(waited) / sum(took), None, "% of a step's time")


def trained(config: dict[str, Any], model: Path, access: Any, out: Path) -> dict[str, list[float]]:
    """The metrics of a whole run, by step."""
    from trainer.config import RECIPES, resolve
    from trainer.loops.run import run_recipe
    from trainer.loops.session.stage import StageJob
    from trainer.monitors import RunMonitor, Spool

    out.mkdir()
    prompts = jsonlines.rows((ROOT / "demo/prompts.jsonl").read_text())
    examples = out / "examples.jsonl"
    asked = [_example(row["key"], row["prompt"][0]["content"]) for row in prompts]
    examples.write_text("".join(f"{example.canonical()}\n" for example in asked))
    monitor = RunMonitor(Spool(out / "events.jsonl"))
    job = StageJob(RECIPES["policy"], resolve("policy", config), examples, {"base": model}, out, monitor, access=access)
    if not run_recipe(job, False):
        raise RuntimeError("the run failed: " + (out / "events.jsonl").read_text()[-2000:])
    values: dict[str, list[float]] = {}
    for line in jsonlines.lines((out / "events.jsonl").read_text()):
        data = json.loads(line)["data"]
        for key, value in data["values"].items() if data["kind"] == "metrics" else ():
            values.setdefault(key, []).append(value)
    return values


if __name__ == "__main__":
    main()
