"""Judges that learn beside TRL's GRPOTrainer: `python -m benchmarks.judge_training`, or `make bench-judge-training`.

Training: each step samples G judgements of P pairs of the demo's preferences, values them by verdict and reasons (hybrid, matched
by common words), and updates rank-16 adapters, in float32. Ours is recipe `judge`; TRL's GRPOTrainer has the same questions and, as
its Python reward, the same functions. Nothing ends a judgement early, so that both do the same work. Each side runs in a process of
its own, and both take turns, step by step; the ratio is the median over neighbours. A first step warms up and is not counted.

Matching: lists of reasons made of a seed's words, three to seven of a person's beside up to eight of a judge's, until each
judgement has its average precision and its consistency: by common words, by embeddings, and by embeddings in bfloat16 if the
processor computes in it, with how many lists that changes. In training a person's reasons come
again with every judgement of the group, and so here; the texts that differ are told. Beside the time, the processor time of all threads
together: on a machine that others use it says more.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.machine import describe
from benchmarks.recipe_steps import take_steps
from benchmarks.trainer_side import DEVICE, grpo_config
from benchmarks.turns import TurnWaiting, Update, alternate
from trainer.config import resolve
from trainer.contracts import Example
from trainer.inference.models import load_model, load_tokenizer, prepare_smollm2
from trainer.inference.products import computes_bfloat16
from trainer.loops.prompts.data import read_examples
from trainer.rewards.pair_judgements import read_pair_judgement
from trainer.rewards.rationale import hybrid, match, precision_of, rationale_consistency
from trainer.rewards.reason_matching import Lists, Matcher, WordsMatcher
from trainer.tasks import TASKS, Posed

DEMO = Path(__file__).parents[1] / "demo" / "preferences.jsonl"
RANK = 16
WORDS = [
    "answer",
    "first",
    "second",
    "names",
    "gives",
    "says",
    "explains",
    "minutes",
    "source",
    "figure",
    "example",
    "code",
    "library",
    "tone",
    "order",
    "detail",
    "wrong",
    "right",
    "clear",
    "vague",
    "short",
    "long",
    "polite",
    "false",
    "real",
    "missing",
    "concrete",
    "because",
    "without",
    "question",
    "reader",
]


def main() -> None:
    options = _options()
    if options.side:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))
        {"ours": train_ours, "trl": train_trl}[options.side](options, TurnWaiting())
        return
    print(f"{describe()}, torch {torch.__version__} on {DEVICE}", flush=True)
    results = match_many(options.pairs, options.group) if options.pairs else {}
    if options.steps:
        prepare_smollm2(options.model)
        results |= _trained(options, *alternate([_command(options, side) for side in ("ours", "trl")], options.steps))
    print(json.dumps(results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judge_training", description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--steps", type=int, default=4, help="measured steps of each side; 0: no training")
    parser.add_argument("--questions", type=int, default=4, help="pairs per step (P)")
    parser.add_argument("--group", type=int, default=8, help="judgements of each pair (G)")
    parser.add_argument("--tokens", type=int, default=48, help="tokens of a judgement")
    parser.add_argument("--pairs", type=int, default=10_000, help="pairs of lists to match; 0: none")
    parser.add_argument("--side", choices=("ours", "trl"), help=argparse.SUPPRESS)
    return parser.parse_args()


def _command(options: argparse.Namespace, side: str) -> list[str]:
    command = [sys.executable, "-m", "benchmarks.judge_training", "--side", side]
    for option in ("model", "steps", "questions", "group", "tokens"):
        command += [f"--{option}", str(getattr(options, option))]
    return command


def _config(options: argparse.Namespace) -> Any:
    return resolve(
        "judge",
        {
            "steps": options.steps + 1,
            "data": {"form": "lines"},
            "reward": {"arm": "hybrid", "matcher": "words"},
            "model": {"lora": {"rank": RANK, "alpha": 2.0 * RANK}},
            "rollout": {
                "prompts_per_step": options.questions,
                "group_size": options.group,
                "max_new_tokens": options.tokens,
            },
            "evaluation": {"every": 0, "max_examples": 0},
        },
    )


def _examples() -> list[Example]:
    return [example.model_copy(update={"split": "train"}) for example in read_examples(DEMO)]


def questions(config: Any) -> list[Posed]:
    """The training questions of both sides."""
    task = TASKS["judge"](config)
    return [posed for each in _examples() for posed in task.pose(each, held_out=False) if isinstance(posed, Posed)]


def reward(texts: Sequence[str], labels: Sequence[int], reasons: Sequence[Sequence[str]]) -> list[float]:
    """AP x outcome of each judgement, which a Python reward of TRL's computes."""
    read = [read_pair_judgement(text, "lines") for text in texts]
    scores = WordsMatcher().scores(
        [(human, found.reasons) for human, found in zip(reasons, read, strict=True)], "reasons"
    )
    return [
        hybrid(each, len(human), label, found.strength) or 0.0
        for each, human, label, found in zip(scores, reasons, labels, read, strict=True)
    ]


def train_ours(options: argparse.Namespace, turns: TurnWaiting) -> None:
    with patch("trainer.inference.local.stop_token_ids", return_value=frozenset()):
        take_steps("judge", _config(options), options.model, _examples(), options.steps + 1, turns)


def train_trl(options: argparse.Namespace, turns: TurnWaiting) -> None:
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import TrainerCallback
    from trl import GRPOTrainer

    class JudgeStepClock(TrainerCallback):
        """Measures the whole step: the trainer clips and calls the optimiser outside its `training_step`."""

        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            turns.begin()

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            turns.end()

    def valued(completions: list[Any], label: list[int], reasons: list[list[str]], **_: Any) -> list[float]:
        return reward([messages[0]["content"] for messages in completions], label, reasons)

    rows = [
        {
            "prompt": [message.model_dump(include={"role", "content"}) for message in posed.example.prompt],
            "label": posed.facts["label"],
            "reasons": posed.facts["reasons"],
        }
        for posed in questions(_config(options))
    ]
    with tempfile.TemporaryDirectory() as folder:
        arguments = grpo_config(folder, options.questions * options.group, options)
        GRPOTrainer(
            model=load_model(options.model),
            processing_class=load_tokenizer(options.model),
            reward_funcs=valued,
            args=arguments,
            train_dataset=Dataset.from_list(rows),
            peft_config=LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="CAUSAL_LM"),
            callbacks=[JudgeStepClock()],
        ).train()


def _trained(options: argparse.Namespace, ours: list[Update], peer: list[Update]) -> dict[str, Any]:
    judgements = options.questions * options.group
    rates = [judgements / median(each["s"] for each in side) for side in (ours, peer)]
    ratios = sorted(theirs["s"] / mine["s"] for mine, theirs in zip(ours, peer, strict=True))
    peaks = [max(each["mib"] for each in side) for side in (ours, peer)]
    print(f"\n{options.questions} pairs x {options.group} judgements x {options.tokens} tokens, {options.model.name}")
    print(f"{'':28}{'ours':>12}{'TRL':>12}{'ratio':>8}   least to most")
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    print(f"{'judgements trained/s':28}{rates[0]:12.2f}{rates[1]:12.2f}{median(ratios):8.2f}   {spread}")
    print(f"{'peak MiB':28}{peaks[0]:12.0f}{peaks[1]:12.0f}{peaks[0] / peaks[1]:8.2f}", flush=True)
    return {
        "judgements trained": {"ours": rates[0], "peer": rates[1], "unit": "judgements/s", "ratio": median(ratios)},
        "judge training memory": {"ours": peaks[0], "peer": peaks[1], "unit": "MiB", "ratio": peaks[0] / peaks[1]},
    }


def reason_lists(pairs: int, group: int, seed: int = 0) -> list[Lists]:
    """`pairs` judgements, `group` of each question: its human reasons, and reasons of a judge that repeats itself as models do."""
    draw = random.Random(seed)  # noqa: S311 - a measurement, not a secret

    def reason() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(5, 14)))

    found: list[Lists] = []
    for _ in range(-(-pairs // group)):
        human = [reason() for _ in range(draw.randint(3, 7))]
        said = [reason() for _ in range(2 * group)]
        found += [(human, draw.sample(said, draw.randint(1, 8))) for _ in range(group)]
    return found[:pairs]


def match_many(pairs: int, group: int) -> dict[str, Any]:
    from trainer.rollouts.matchers import EmbeddingMatcher

    lists = reason_lists(pairs, group)
    texts = len({text for both in lists for side in both for text in side})
    print(f"\n{pairs:,} pairs of lists of reasons, {group} of each question, {texts:,} texts that differ")
    results: dict[str, Any] = {}
    matchers: list[Matcher] = [WordsMatcher(), EmbeddingMatcher()]
    if computes_bfloat16():
        matchers.append(EmbeddingMatcher("bfloat16"))
    found: list[list[float]] = []
    for matcher in matchers:
        processor, began = time.process_time(), time.perf_counter()
        found.append(_matched(matcher, lists))
        seconds, processor = time.perf_counter() - began, time.process_time() - processor
        name = f"matched by {matcher.key}"
        print(f"{name:36}{seconds:8.1f} s{processor:12.1f} s of processor time", flush=True)
        results[f"reasons matched, {matcher.key}"] = {"ours": seconds, "peer": None, "unit": "s", "ratio": None}
    if len(found) > 2:
        changed = sum(abs(one - other) > 1e-9 for one, other in zip(found[1], found[2], strict=True))
        print(f"another average precision in bfloat16 than in float32: {changed:,} of {len(lists):,} lists", flush=True)
    return results


def _matched(matcher: Matcher, lists: Sequence[Lists]) -> list[float]:
    """The average precision of each list; its consistency is computed too."""
    found = []
    for (human, _), scores_HM in zip(lists, matcher.scores(lists, "reasons"), strict=True):
        found.append(precision_of(match(scores_HM), len(human)))
        rationale_consistency(scores_HM, len(human))
    return found


if __name__ == "__main__":
    main()
