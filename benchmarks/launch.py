"""Seconds from the launch of a run to its first point: `python -m benchmarks.launch [--smollm2] [--runs N]`.

Starts the whole product in a folder of its own, imports the demo's prompts, launches the demo's run N times, one after
the other, and stops each once its first point is stored. The way is button -> row -> Celery -> Ray job -> process that
imports torch, loads the model and evaluates it on the 40 held-out prompts -> HTTP -> Postgres, all on this machine.
With the tiny random model this measures the way; with --smollm2 also the model's first evaluation.
"""

import argparse
import json
import statistics
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from benchmarks.machine import describe
from tests.e2e.tiny import eventually, import_examples, make_model
from tests.stack import ROOT, Stack
from trainer.contracts import jsonlines

SMOLLM2 = ROOT / "var" / "models" / "smollm2-135m-instruct"
OVER = ("finished", "stopped", "failed")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.launch", description=__doc__)
    parser.add_argument("--smollm2", action="store_true", help="the demo's model instead of a tiny random one")
    parser.add_argument("--runs", type=int, default=3, help="how many launches")
    options = parser.parse_args()
    stack = Stack("--no-demo")
    try:
        stack.wait_until_up()
        with stack.api() as api:
            name = prepare(api, stack, options.smollm2)
            took = [launch(api, stack, name) for _ in range(options.runs)]
    finally:
        stack.stop()
    median = statistics.median(took)
    print(describe())
    print(f"{'model':28}{'median s':>10}   every launch")
    print(f"{name:28}{median:10.1f}   {', '.join(f'{seconds:.1f}' for seconds in took)}")
    print(json.dumps({"launch_to_first_point": {"ours": round(median, 1), "peer": None, "unit": "s", "ratio": None}}))


def prepare(api: httpx.Client, stack: Stack, smollm2: bool) -> str:
    """Import the demo's prompts and a model; returns the model's name."""
    if smollm2:
        command = [sys.executable, "-m", "trainer", "models", "prepare", "--dir", str(SMOLLM2)]
        subprocess.run(command, cwd=ROOT, check=True)
    directory: Path = SMOLLM2 if smollm2 else make_model(stack)
    answer = api.post("models", json={"name": directory.name, "source": "local", "path": str(directory)})
    answer.raise_for_status()
    rows = jsonlines.rows((ROOT / "demo" / "prompts.jsonl").read_text())
    import_examples(api, stack, "Demo prompts", rows)
    return directory.name


def launch(api: httpx.Client, stack: Stack, model: str) -> float:
    """Seconds by the server's clock; the run is over when this returns, so that the next one has the machine to itself."""
    body = json.loads((ROOT / "demo" / "run.json").read_text())
    answer = api.post("runs", json={**body, "model": model})
    answer.raise_for_status()
    address = f"runs/{answer.json()['id']}"

    def read() -> dict[str, Any]:
        found: dict[str, Any] = api.get(address).json()
        return found

    run = eventually(read, lambda run: run["first_metric_at"] or run["state"] in OVER, stack, timeout_s=300)
    api.post(f"{address}/stop").raise_for_status()
    eventually(read, lambda run: run["state"] in OVER, stack, timeout_s=300)
    if not run["first_metric_at"]:
        raise RuntimeError(f"the run ended as {run['state']} without a point: {run['state_reason']}")
    return (datetime.fromisoformat(run["first_metric_at"]) - datetime.fromisoformat(run["created_at"])).total_seconds()


if __name__ == "__main__":
    main()
