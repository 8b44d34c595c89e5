"""The effect of a reward that likes length: alone, in a sum with the truth, and behind a gate: `python -m benchmarks.hackable_proxy`.

The proxy is the product's part `overlong` with its sign turned round, so that it pays for every token up to where responses are cut. The
truth is the rubric that verifiers decide: four words that belong to the topic, a point each, and lost points for an answer of more than six
words. The arms are run configs of recipe `policy` that differ only in `rewards` and `reward_expression`; if the truth has no part in the
reward, it is a shadow part, measured and not trained on. The model and the language of syllables are those of the claims
(`trainer/claims/toy.py`).

Prints a table with one line per arm and the differences to the truth alone paired by seed, with 95% t-intervals, and as its
last line one JSON object. The curves go to `--curves`. Runs are kept in `--out` and are not repeated.
"""

import argparse
import json
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from benchmarks.seeded import Rows, finished, interval, metrics
from trainer.claims import toy
from trainer.contracts import Criterion, Example, Rubric, VerifierSpec

WORDS, FINE = 6, -2.0
ARMS = {
    "truth alone": "truth",
    "length alone": "-brevity",
    "sum": "truth - brevity",
    "gate": "gate(truth >= 0.25, -brevity)",
}
CONFIG: dict[str, Any] = {
    "model": {"lora": None},
    "rollout": {"prompts_per_step": 8, "group_size": 8, "max_new_tokens": 32},
    "optim": {"lr": 1e-3},
    "scaffold": None,
    "evaluation": {"every": 10, "samples": 4, "temperature": 1.0},
    "checkpoint": {"every": 1000, "keep": 1},
}
AT_ENDS = 5
Curves = dict[str, list[float]]
MEASURES: dict[str, Callable[[Curves], float]] = {
    "length paid, first": lambda curves: statistics.fmean(curves["length"][:AT_ENDS]),
    "length paid, last": lambda curves: statistics.fmean(curves["length"][-AT_ENDS:]),
    "truth, untrained": lambda curves: curves["held-out truth"][0],
    "truth, best": lambda curves: max(curves["held-out truth"]),
    "truth, last": lambda curves: curves["held-out truth"][-1],
    "tokens, last": lambda curves: curves["held-out tokens"][-1],
}


def config(arm: str, steps: int, seed: int) -> dict[str, Any]:
    """The config of one run, as the launch page or `python -m trainer run` takes it."""
    expression = ARMS[arm]
    parts = [
        {"kind": "verifier", "name": "truth", "shadow": "truth" not in expression},
        {"kind": "overlong", "name": "brevity", "soft_tokens": 1, "shadow": "brevity" not in expression},
    ]
    return {**CONFIG, "steps": steps, "seed": seed, "rewards": parts, "reward_expression": expression}


def examples() -> list[Example]:
    """The toy's examples, with a rubric that takes points off an answer that is too long."""
    verifier = VerifierSpec(name="word_count", args={"min": WORDS + 1})
    fine = Criterion(id="long", text=f"Has more than {WORDS} words.", points=FINE, verifier=verifier)
    return [
        row.model_copy(update={"rubric": Rubric(criteria=(*(row.rubric.criteria if row.rubric else ()), fine))})
        for row in toy.examples(4)
    ]


def main() -> None:
    options = _options()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    toy.make_model(out / "model")
    data = out / "examples.jsonl"
    data.write_text("".join(f"{row.canonical()}\n" for row in examples()))
    print(f"{describe()}\n{options.steps} steps, seeds {', '.join(map(str, options.seeds))}", flush=True)
    found: dict[str, dict[int, Curves]] = {arm: {} for arm in ARMS}
    for seed in options.seeds:
        for arm in ARMS:
            folder = out / f"{arm.replace(' ', '-')}-seed-{seed}"
            events = finished("policy", config(arm, options.steps, seed), data, out / "model", folder)
            found[arm][seed] = curves(metrics(events))
            told = ", ".join(f"{name} {read(found[arm][seed]):.3f}" for name, read in MEASURES.items())
            print(f"seed {seed}, {arm}: {told}", flush=True)
    options.curves.write_text(json.dumps(found, separators=(",", ":")) + "\n")
    _tell(found, options.seeds)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hackable_proxy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("var/hackable-proxy"))
    parser.add_argument("--curves", type=Path, help="where the curves go, as JSON; left out: curves.json in --out")
    options = parser.parse_args()
    options.curves = options.curves or options.out / "curves.json"
    return options


def curves(rows: Rows) -> Curves:
    """The curves of a run: `length` 0..1 and `truth` of each step's responses, and of the held-out ones at the steps where they were
    measured.

    The proxy is `length`; part `brevity` has it with the opposite sign.
    """
    trained = [row for row in rows.values() if "reward/truth" in row]
    measured = {step: row for step, row in rows.items() if "eval/rubric_score" in row}
    return {
        "length": [round(-row["reward/brevity"], 4) for row in trained],
        "truth": [round(row["reward/truth"], 4) for row in trained],
        "held-out steps": [float(step) for step in measured],
        "held-out truth": [round(row["eval/rubric_score"], 4) for row in measured.values()],
        "held-out tokens": [round(row["eval/length"], 2) for row in measured.values()],
    }


def _tell(found: Mapping[str, Mapping[int, Curves]], seeds: Sequence[int]) -> None:
    print("\n| arm | " + " | ".join(MEASURES) + " |\n|---|" + "---|" * len(MEASURES))
    for arm, by_seed in found.items():
        cells = (interval([read(by_seed[seed]) for seed in seeds]) for read in MEASURES.values())
        print(f"| {arm}, `{ARMS[arm]}` | {' | '.join(cells)} |")
    last = MEASURES["truth, last"]
    alone = found["truth alone"]
    summary: dict[str, Any] = {}
    print("\n| truth, last | less that of the truth alone | less that of the untrained model |\n|---|---|---|")
    for arm, by_seed in found.items():
        behind = [last(by_seed[seed]) - last(alone[seed]) for seed in seeds]
        gained = [last(by_seed[seed]) - MEASURES["truth, untrained"](by_seed[seed]) for seed in seeds]
        print(f"| {arm} | {interval(behind)} | {interval(gained)} |")
        ours = statistics.fmean(last(each) for each in by_seed.values())
        summary[f"hackable_proxy/{arm}"] = {"ours": ours, "peer": None, "unit": "score", "ratio": None}
    print(json.dumps(summary))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the model is that small
    main()
