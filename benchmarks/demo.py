"""Does the demo learn? `python -m benchmarks.demo --seeds 0 1 2` trains it to its end once per seed and prints the scores.

The run is the one that `make run` launches (demo/run.json), without the web side: same config, data and model. Prints a
table with the machine and, as its last line, one JSON object.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.machine import describe

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "demo"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--model", type=Path, default=ROOT / "var/models/smollm2-135m-instruct")
    parser.add_argument("--steps", type=int, help="other than the demo's, to see that it works")
    options = parser.parse_args()
    subprocess.run([sys.executable, "-m", "trainer", "models", "prepare", "--dir", options.model], check=True)
    print(describe())
    print("seed | untrained | trained | gain | best on the way | seconds in all | first metrics after")
    results = {}
    for seed in options.seeds:
        found = results[f"demo/seed_{seed}"] = _run(seed, options.model, options.steps)
        print(
            f"{seed:4} | {found['untrained']:9.3f} | {found['trained']:7.3f} | {found['gain']:+.3f} | "
            f"{found['best']:15.3f} | {found['seconds']:14.0f} | {found['first_metrics_s']:.0f} s",
            flush=True,
        )
    gains = [found["gain"] for found in results.values()]
    print(f"gain: mean {sum(gains) / len(gains):+.3f}, least {min(gains):+.3f}, over {len(gains)} seeds")
    print(
        json.dumps(
            {name: {"ours": v["gain"], "peer": None, "unit": "score", "ratio": None} for name, v in results.items()}
        )
    )


def _run(seed: int, model: Path, steps: int | None = None) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        config = json.loads((DEMO / "run.json").read_text())["config"] | {"seed": seed}
        config |= {"steps": steps} if steps else {}
        (Path(folder) / "config.json").write_text(json.dumps(config))
        command = [sys.executable, "-m", "trainer", "run", "--config", f"{folder}/config.json"]
        command += ["--data", str(DEMO / "prompts.jsonl"), "--model", str(model), "--out", f"{folder}/run"]
        started = time.time()
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        seconds = time.time() - started
        events = list(_metrics(Path(folder) / "run" / "events.jsonl"))
    scores = [value for _, key, value in events if key == "eval/rubric_score"]
    return {
        "untrained": scores[0],
        "trained": scores[-1],
        "gain": scores[-1] - scores[0],
        "best": max(scores),
        "seconds": seconds,
        "first_metrics_s": min(at for at, _, _ in events) - started,
    }


def _metrics(path: Path) -> Iterator[tuple[float, str, float]]:
    """(seconds since the epoch, key, value) of every scalar, in order."""
    from datetime import datetime

    for line in path.read_text().split("\n"):
        event: dict[str, Any] = json.loads(line) if line else {"data": {"kind": ""}}
        if event["data"]["kind"] == "metrics":
            at = datetime.fromisoformat(event["time"]).timestamp()
            for key, value in event["data"]["values"].items():
                yield at, key, value


if __name__ == "__main__":
    main()
