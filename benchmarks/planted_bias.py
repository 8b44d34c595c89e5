"""The cost of a judge's order bias for iterative DPO, and what asking in both orders saves: `python -m benchmarks.planted_bias`.

The judge is planted: it compares two answers by the rubric's verifiers, but in `--bias` of all pairs, the same ones in
both orders, it always names the answer that is shown first. Two arms train the same model on the same prompts: labels of one
order, and labels on which both orders agree. The model is random, of two layers over bytes; a good answer to any prompt uses
six letters, each of which is worth one point.

Prints a table with one line per arm and their difference paired by seed, with 95% t-intervals, and as its last line one
JSON object. Runs are kept in `--out` and are not repeated.
"""

import argparse
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from benchmarks.seeded import finished, interval, metrics, number
from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec
from trainer.judges.budget import Budget
from trainer.judges.calls import expand
from trainer.judges.chat import Target
from trainer.judges.inputs import JudgeInput
from trainer.judges.spec import digest
from trainer.judges.spec import resolve as resolve_judge
from trainer.metrics.claims import mean_over_seeds
from trainer.rewards.access import Access, JudgeAccess
from trainer.rewards.parts import RewardAnswer, RewardJudge
from trainer.rubrics import score_rubric

JUDGE = "Planted v1"
LETTERS = "aeinot"
_TRAINED, _HELD_OUT = 32, 32
ARMS = {"one order": "one_order", "both orders": "both_orders"}
CONFIG: dict[str, Any] = {
    "round_steps": 4,
    "model": {"name": "tiny", "lora": None},
    "rollout": {"prompts_per_round": 16, "samples": 4, "max_new_tokens": 12},
    "batch_size": 16,
    "optim": {"lr": 1e-3},
    "rewards": [
        {"kind": "judge", "name": "judge", "judge": JUDGE, "protocol": "pairwise", "against": "sample"},
        {"kind": "verifier", "name": "truth", "shadow": True},
    ],
    "evaluation": {"every": 0, "max_examples": 32},
    "checkpoint": {"every": 1000, "keep": 1},
}
MEASURES = ("label precision", "share kept", "order bias", "held-out score", "sampled score")


@dataclass
class PlantedJudge:
    """Knows the verifiers' scores. `biased` is the share of pairs for which it names the first answer, good or bad."""

    spec: Any
    key: str
    biased: float

    async def ask(self, inputs: Sequence[JudgeInput]) -> list[list[RewardAnswer]]:
        return [[self._answer(given, call.subject) for call in expand(self.spec, self.key, given)] for given in inputs]

    async def close(self) -> None:
        """Nothing to close."""

    def _answer(self, given: JudgeInput, subject: Mapping[str, Any]) -> RewardAnswer:
        shown = [given.responses[subject["a"]], given.responses[subject["b"]]]
        if subject["order"] == "swapped":
            shown.reverse()
        first, second = (score_rubric(Rubric(criteria=given.criteria), text).score or 0.0 for text in shown)
        verdict = "tie" if first == second else "A" if first > second else "B"
        if draw(given.example, *sorted(shown)) < self.biased:
            verdict = "A"
        strength = {"A": -1, "tie": 0, "B": 1}[verdict]
        return RewardAnswer(subject, {"verdict": verdict, "strength": strength, "reasons": []}, called=True)


def draw(*texts: str) -> float:
    """A number in [0, 1) that is the same for the same texts."""
    return int(hashlib.sha256("\0".join(texts).encode()).hexdigest()[:8], 16) / 2**32


@dataclass(frozen=True)
class PlantedAccess(JudgeAccess):
    biased: float = 0.0

    def open(self, budget: Budget | None) -> RewardJudge:
        return PlantedJudge(self.spec, self.key, self.biased)


def access(biased: float) -> Access:
    spec = resolve_judge({"kind": "pairwise"})
    target = Target("http://127.0.0.1", "planted")  # never called, because the judge answers by itself
    return Access({JUDGE: PlantedAccess(spec, digest(spec, f"planted {biased}"), target, biased=biased)})


def examples() -> list[Example]:
    """Prompts that differ in a number, all with the same rubric."""
    rubric = Rubric(criteria=tuple(_criterion(letter) for letter in LETTERS))
    return [
        Example(
            key=f"row-{number}",
            prompt=(Message(role="user", content=f"Say something about {number}."),),
            split="train" if number < _TRAINED else "heldout",
            rubric=rubric,
        )
        for number in range(_TRAINED + _HELD_OUT)
    ]


def _criterion(letter: str) -> Criterion:
    verifier = VerifierSpec(name="must_contain", args={"texts": [letter], "match": "any"})
    return Criterion(id=letter, text=f"Uses the letter {letter}.", points=1, verifier=verifier)


def main() -> None:
    from trainer.inference.models import make_tiny

    options = _options()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    make_tiny(out / "model")
    data = out / "examples.jsonl"
    data.write_text("".join(f"{row.canonical()}\n" for row in examples()))
    print(describe(), flush=True)
    print(f"{options.steps} steps, bias {options.bias:.0%}, seeds {', '.join(map(str, options.seeds))}")
    found: dict[str, dict[int, dict[str, float | None]]] = {arm: {} for arm in ARMS}
    for seed in options.seeds:
        for arm in ARMS:
            found[arm][seed] = _measured(arm, seed, data, out, options)
            told = ", ".join(f"{name} {number(value)}" for name, value in found[arm][seed].items())
            print(f"seed {seed}, {arm}: {told}", flush=True)
    _tell(found, options.seeds)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.planted_bias",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bias", type=float, default=0.3, help="share of pairs in which the first answer is named")
    parser.add_argument("--out", type=Path, default=Path("var/planted-bias"))
    return parser.parse_args()


def _measured(arm: str, seed: int, data: Path, out: Path, options: argparse.Namespace) -> dict[str, float | None]:
    """The measures of a run. Raises SystemExit if the run fails."""
    config = {**CONFIG, "steps": options.steps, "seed": seed, "pairs": {"labels": ARMS[arm]}}
    folder = out / f"{arm.replace(' ', '-')}-seed-{seed}"
    judges = access(options.bias)
    return measures(finished("iterative_dpo", config, data, out / "model", folder, judges, bias=options.bias))


def measures(events: Path) -> dict[str, float | None]:
    """The measures of a run. Shares are over all its pairs; an undefined measure is None."""
    rows = metrics(events)
    rounds = [row for row in rows.values() if "label/pairs" in row]
    kept = [row["label/kept"] * row["label/pairs"] for row in rounds]
    agreed = [row.get("label/agreement/truth", 0.0) * row.get("label/agreement_pairs/truth", 0.0) for row in rounds]
    biases = [row["label/first_share"] for row in rounds if "label/first_share" in row]
    last = rows[max(rows)]
    return {
        "label precision": sum(agreed) / sum(kept) if sum(kept) else None,
        "share kept": sum(kept) / sum(row["label/pairs"] for row in rounds),
        "order bias": sum(biases) / len(biases) if biases else None,
        "held-out score": last.get("eval/rubric_score"),
        "sampled score": rounds[-1].get("reward/truth"),
    }


def _tell(found: Mapping[str, Mapping[int, Mapping[str, float | None]]], seeds: Sequence[int]) -> None:
    print("\n| arm | " + " | ".join(MEASURES) + " |\n|---|" + "---|" * len(MEASURES))
    for arm, by_seed in found.items():
        print(f"| {arm} | " + " | ".join(interval([by_seed[seed][name] for seed in seeds]) for name in MEASURES) + " |")
    cells = []
    for name in MEASURES:
        both = [(found["both orders"][seed][name], found["one order"][seed][name]) for seed in seeds]
        cells.append(interval([None if a is None or b is None else a - b for a, b in both]))
    print(f"| difference | {' | '.join(cells)} |")
    summary: dict[str, Any] = {}
    for arm, by_seed in found.items():
        score = mean_over_seeds([by_seed[seed]["held-out score"] for seed in seeds]).value
        summary[f"planted_bias/{arm}"] = {"ours": score, "peer": None, "unit": "score", "ratio": None}
    print(json.dumps(summary))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the model is that small
    main()
