"""RuscaRL on criteria that only a judge decides, through an endpoint: `python -m benchmarks.judged_rubrics`.

The demo's prompts without their verifiers: every criterion goes to the judge, one call each, over HTTP to a small model in a
separate process (`benchmarks/judge_endpoint.py`). The run is one of `python -m trainer run --judges FILE`, with the calls
of the judges' engine: its limits, retries, prices. Afterwards the verifiers, which the run never saw, decide the same
criteria of the same responses: the judge's verdicts are compared with this truth.

Prints the curve of each judge (reward, truth, excluded criteria, calls, cost), how often the judge agrees with the verifiers,
and as its last line one JSON object. Runs are kept in `--out` and are not repeated.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.judge_endpoint import AT_ONCE, READS, WRITES
from benchmarks.machine import describe
from benchmarks.seeded import metrics, number
from trainer.contracts import Example, Rubric, jsonlines
from trainer.logit_judge.calibration import halves
from trainer.metrics.criteria import agreement
from trainer.metrics.estimate import Estimate
from trainer.rubrics import score_rubric

ROOT = Path(__file__).resolve().parent.parent
JUDGE = "Grader v1"
KINDS = ("must_contain", "sentence_count", "word_count")
PRICES = {"price_prompt": "0.05", "price_completion": "0.1"}
CONFIG: dict[str, Any] = {
    "rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 40, "temperature": 0.8},
    "optim": {"lr": 5e-4, "micro_batch_tokens": 512},
    "scaffold": {"group": "linear", "step": "sigmoid"},
    "rewards": [{"kind": "rubric", "name": "rubric", "judge": JUDGE, "on_missing": "exclude"}],
    "evaluation": {"every": 2, "samples": 1, "max_examples": 8, "temperature": 0.8},
    "checkpoint": {"every": 1000, "keep": 1},
}
Rollout = dict[str, Any]


def judged(row: Example) -> Example:
    """The same prompt with criteria that a judge must decide."""
    kept = tuple(each.model_copy(update={"verifier": None}) for each in truth_of(row).criteria)
    return row.model_copy(update={"rubric": Rubric(criteria=kept)})


def truth_of(row: Example) -> Rubric:
    """The kept criteria with their verifiers: those that earn points for content, sentences or words."""
    criteria = row.rubric.criteria if row.rubric else ()
    return Rubric(criteria=tuple(c for c in criteria if c.points > 0 and c.verifier and c.verifier.name in KINDS))


def unseen(rows: Sequence[Example]) -> list[Example]:
    """The examples without the prompts that chose the shipped threshold (`benchmarks.demo_verdicts`)."""
    chosen = chosen_on(rows)
    return [row for row in rows if row.key not in chosen]


def chosen_on(rows: Sequence[Example]) -> frozenset[str]:
    """Keys of the half of the demo's training prompts by which a calibration chooses."""
    trained = [row.key for row in rows if row.split == "train" and truth_of(row).criteria]
    first = halves(trained, seed=0)
    return frozenset(key for key, taken in zip(trained, first, strict=True) if taken)


def demo() -> list[Example]:
    lines = jsonlines.lines((ROOT / "demo/prompts.jsonl").read_text(encoding="utf-8"))
    return [Example.model_validate_json(line) for line in lines]


def main() -> None:
    options = _options()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    rows = unseen(demo())
    data = out / "examples.jsonl"
    data.write_text("".join(f"{judged(row).canonical()}\n" for row in rows))
    (out / "config.json").write_text(json.dumps(CONFIG | {"steps": options.steps, "seed": options.seed}))
    print(f"{describe()}\n{options.steps} steps, seed {options.seed}", flush=True)
    summary: dict[str, Any] = {}
    for name in options.judges:
        events = _finished(name, data, options)
        summary |= report(name, events, {row.key: row for row in rows})
    print(json.dumps(summary))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.judged_rubrics",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"), help="of both sides")
    parser.add_argument("--judges", nargs="+", choices=(READS, WRITES), default=(READS, WRITES))
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("var/judged-rubrics"))
    return parser.parse_args()


def _finished(name: str, data: Path, options: argparse.Namespace) -> Path:
    """The events of the run with this judge. Raises CalledProcessError if the run fails."""
    folder = options.out / f"{name}-{options.steps}-steps-seed-{options.seed}"
    if not (folder / "done").exists():
        with endpoint(options.model) as url:
            target = {"url": url, "model": name, "concurrency": AT_ONCE, "timeout_s": 600, **PRICES}
            judge = {"spec": {"kind": "criterion", "retries": 1}, "endpoint": target}
            file = options.out / f"{name}.json"
            file.write_text(json.dumps({"judges": {JUDGE: judge}}))
            command = [sys.executable, "-m", "trainer", "run", "--recipe", "policy", "--resume"]
            command += [
                "--config",
                str(options.out / "config.json"),
                "--data",
                str(data),
                "--model",
                str(options.model),
            ]
            command += ["--judges", str(file), "--out", str(folder)]
            subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        (folder / "done").touch()
    return Path(folder / "events.jsonl")


@contextmanager
def endpoint(model: Path) -> Iterator[str]:
    """The address of a served model, as long as it is needed."""
    command = [sys.executable, "-m", "benchmarks.judge_endpoint", "--model", str(model)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().strip() if process.stdout else ""
            if not url:
                raise SystemExit("the endpoint did not start")
            yield url
        finally:
            process.kill()


def rollouts(events: Path) -> Iterator[tuple[int, Rollout]]:
    """(step, rollout) in order."""
    for line in filter(None, events.read_text(encoding="utf-8").split("\n")):
        event = json.loads(line)
        if event["data"]["kind"] == "rollouts":
            yield from ((event["step"], each) for each in event["data"]["rollouts"])


def compared(rollout: Rollout, row: Example) -> tuple[list[bool | None], list[bool | None], float | None]:
    """The verdicts on a response: the verifiers' verdict on each criterion, the judge's verdicts, and the true score."""
    truth = score_rubric(truth_of(row), rollout["response"])
    said = [each["verdict"]["met"] for each in rollout["criteria"]]
    return [verdict.met for verdict in truth.verdicts], said or [None] * len(truth.verdicts), truth.score


def report(name: str, events: Path, rows: Mapping[str, Example]) -> dict[str, Any]:
    """Prints the curves of a run and the agreement with the verifiers."""
    found = [(step, each, *compared(each, rows[each["example_key"]])) for step, each in rollouts(events)]
    by_step = metrics(events)
    print(
        f"\n{name}\n| step | reward | truth | criteria without verdict | left-out responses | calls | cost | s per call |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for step in sorted({step for step, each, *_ in found if each["phase"] == "train"}):
        mine = [row for row in found if row[0] == step and row[1]["phase"] == "train"]
        row = by_step[step]
        cells = [
            *(number(row.get("reward/mean")), number(_mean([score for *_, score in mine])), _missing(mine)),
            f"{row['rollout/excluded']:.0f} of {len(mine)}",
            *(f"{row.get('judge/calls', 0):.0f}", f"{row.get('judge/cost', 0):.6f}", number(row.get("judge/latency"))),
        ]
        print(f"| {step} | {' | '.join(cells)} |")
    for step in sorted({step for step, each, *_ in found if each["phase"] == "eval"}):
        mine = [row for row in found if row[0] == step and row[1]["phase"] == "eval"]
        truth, judge = _mean([score for *_, score in mine]), by_step[step].get("eval/rubric_score")
        print(
            f"held-out after step {step}: judge {number(judge)}, truth {number(truth)}, without verdict {_missing(mine)}"
        )
    truth_C = [met for _, _, truth, _, _ in found for met in truth]
    said_C = [met for _, _, _, said, _ in found for met in said]
    of_C = [each["example_key"] for _, each, truth, _, _ in found for _ in truth]
    told = agreement(truth_C, said_C, of_C)
    judged = [(a, b) for a, b in zip(truth_C, said_C, strict=True) if b is not None]
    print(
        f"{len(truth_C)} verdicts on {len(found)} responses to {len(set(of_C))} prompts, {len(truth_C) - len(judged)} missing; "
        f"the judge says met in {number(_mean([b for _, b in judged]))}, the verifiers in {number(_mean([a for a, _ in judged]))}"
    )
    usable = agreement(
        [a for a, _ in judged], [b for _, b in judged], [k for k, b in zip(of_C, said_C, strict=True) if b is not None]
    )
    print(
        f"same verdict, missing ones counted as wrong: {_cells(told.accuracy)}; of those there are: {_cells(usable.accuracy)}"
    )
    print(f"Cohen's kappa: {_cells(told.kappa)}", flush=True)
    return {f"judged_rubrics/{name}": {"ours": usable.accuracy.value, "peer": None, "unit": "agreement", "ratio": None}}


def _missing(found: Sequence[tuple[int, Rollout, list[Any], list[Any], Any]]) -> str:
    said = [met for _, _, _, each, _ in found for met in each]
    return f"{sum(met is None for met in said)} of {len(said)}"


def _mean(values: Sequence[float | bool | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _cells(found: Estimate) -> str:
    return f"{number(found.value)} [{number(found.low)}, {number(found.high)}]"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
