"""Recipes that learn from stored texts beside TRL's trainers: `python -m benchmarks.recipes`, or `make bench-recipes`.

`sft`, `reward_model` and `dpo` each update rank-16 adapters of the same model with the same pairs in the same order (`sft`
with the preferred answers): forward, backward, clipping, a step of AdamW, in float32. Nothing is cut, and neither side
recomputes activations. What DPO's reference says is measured before the first update on both sides and not counted.

Each side runs in a process of its own, and both take turns, update by update; the ratio is the median over neighbours, so it
stands on a machine with other work, where the rates do not. A process's first update warms up and is not counted. Peak memory
is that of the whole process during an update; on a GPU, what torch allocated there. The pairs are the demo's, whose answers
are short, or of a public set (`--set`).
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.machine import away, describe
from benchmarks.preference_sets import SETS, take
from benchmarks.recipe_steps import take_steps
from benchmarks.trainer_side import DEVICE
from benchmarks.turns import TurnWaiting, Update, alternate
from trainer.config import resolve
from trainer.contracts import Example
from trainer.contracts.pairs import labelled_pairs
from trainer.inference.models import load_model, load_scalar, load_tokenizer, prepare_smollm2
from trainer.loops.prompts.data import read_examples

DEMO = Path(__file__).parents[1] / "demo" / "preferences.jsonl"
NAMES = ("sft", "reward_model", "dpo")
RANK = 16


def main() -> None:
    options = _options()
    if options.side:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))
        (name,) = options.recipes
        {"ours": update_ours, "trl": update_trl}[options.side](name, options, TurnWaiting())
        return
    if options.set != "demo" and not options.shared.is_dir():
        away(f"the public data sets (--shared FOLDER; {options.shared} is no folder)")
    prepare_smollm2(options.model)
    print(f"{describe()}, torch {torch.__version__} on {DEVICE}")
    print(f"updates of {options.batch} items of {options.set}, {options.model.name}, rank {RANK}, float32", flush=True)
    results: dict[str, Any] = {}
    for name in options.recipes:
        results |= _report(name, *alternate([_command(options, name, side) for side in ("ours", "trl")], options.steps))
    print(json.dumps(results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipes", description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--recipes", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--set", default="demo", choices=("demo", *SETS))
    parser.add_argument(
        "--shared", type=Path, default=Path("../shared/data"), help="the folder of the public data sets"
    )
    parser.add_argument("--steps", type=int, default=6, help="measured updates of each side")
    parser.add_argument("--batch", type=int, default=4, help="pairs, or answers, per update")
    parser.add_argument("--side", choices=("ours", "trl"), help=argparse.SUPPRESS)
    return parser.parse_args()


def _command(options: argparse.Namespace, name: str, side: str) -> list[str]:
    command = [sys.executable, "-m", "benchmarks.recipes", "--side", side, "--recipes", name]
    for option in ("model", "set", "shared", "steps", "batch"):
        command += [f"--{option}", str(getattr(options, option))]
    return command


def _examples(options: argparse.Namespace) -> list[Example]:
    """As many decided pairs as all updates need, all of them to train on; at the end the first ones come again."""
    wanted: int = (options.steps + 1) * options.batch
    if options.set != "demo":
        found = take(options.set, options.shared, 0, wanted, 0, lambda example: True).examples
    else:
        decided = (e for e in read_examples(DEMO) if any(pair.decided for pair in labelled_pairs(e)))
        found = [example.model_copy(update={"split": "train"}) for example in decided]
    return (found * (1 + wanted // len(found)))[:wanted]


def update_ours(name: str, options: argparse.Namespace, turns: TurnWaiting) -> None:
    more: dict[str, Any] = {"data": {"shuffle": False} | ({"source": "chosen"} if name == "sft" else {})}
    config = resolve(
        name,
        {
            "steps": options.steps + 1,
            "batch_size": options.batch,
            "model": {"lora": {"rank": RANK, "alpha": 2.0 * RANK}},
            "evaluation": {"every": 0, "max_examples": 0},
            **more,
        },
    )
    take_steps(name, config, options.model, _examples(options), options.steps + 1, turns)


def update_trl(name: str, options: argparse.Namespace, turns: TurnWaiting) -> None:
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import TrainerCallback
    from trl import DPOConfig, DPOTrainer, RewardConfig, RewardTrainer, SFTConfig, SFTTrainer

    class UpdateClock(TrainerCallback):
        """Measures the whole update: the trainer clips and calls the optimiser outside its `training_step`."""

        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            turns.begin()

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            turns.end()

    sides: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "sft": (SFTTrainer, SFTConfig, {}),
        "reward_model": (RewardTrainer, RewardConfig, {"center_rewards_coefficient": 0.01}),
        "dpo": (
            DPOTrainer,
            DPOConfig,
            {"precompute_ref_log_probs": True, "loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, 0.2]},
        ),
    }
    trainer_class, config_class, more = sides[name]

    with tempfile.TemporaryDirectory() as folder:
        arguments = config_class(
            output_dir=folder,
            use_cpu=DEVICE == "cpu",
            bf16=False,
            gradient_checkpointing=False,
            per_device_train_batch_size=options.batch,
            max_steps=options.steps + 1,
            max_length=None,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            **more,
        )
        task = "SEQ_CLS" if name == "reward_model" else "CAUSAL_LM"
        in_order(trainer_class)(
            model=load_scalar(options.model) if name == "reward_model" else load_model(options.model),
            processing_class=load_tokenizer(options.model),
            args=arguments,
            train_dataset=Dataset.from_list([trl_row(name, example) for example in _examples(options)]),
            peft_config=LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type=task),
            callbacks=[UpdateClock()],
        ).train()


def in_order(trainer_class: Any) -> Any:
    """The trainer class with its data in the given order."""
    from torch.utils.data import SequentialSampler

    class InOrder(trainer_class):  # type: ignore[misc]
        def _get_train_sampler(self, dataset: Any = None) -> Any:
            return SequentialSampler(self.train_dataset)

    return InOrder


def trl_row(name: str, example: Example) -> dict[str, Any]:
    texts = {response.id: response.text for response in example.responses}
    pair = next(pair for pair in labelled_pairs(example) if pair.decided)
    first = len(pair.for_first) > len(pair.for_second)
    chosen, rejected = (pair.first, pair.second) if first else (pair.second, pair.first)
    prompt = [message.model_dump() for message in example.prompt]
    answers = [[{"role": "assistant", "content": texts[each]}] for each in (chosen, rejected)]
    if name == "sft":
        return {"prompt": prompt, "completion": answers[0]}
    return {"prompt": prompt, "chosen": answers[0], "rejected": answers[1]}


def _report(name: str, ours: list[Update], peer: list[Update]) -> dict[str, Any]:
    """Print one recipe's table: medians of the updates, of the ratios of neighbours with the least and the largest of them,
    and the highest peaks.
    """
    print(f"\n{name:28}{'ours':>12}{'TRL':>12}{'ratio':>8}   least to most")
    rates = [1 / median(each["s"] for each in side) for side in (ours, peer)]
    cpu = [median(each["cpu_s"] for each in side) for side in (ours, peer)]
    peaks = [max(each["mib"] for each in side) for side in (ours, peer)]
    faster, spread = _ratios([(mine["s"], theirs["s"]) for mine, theirs in zip(ours, peer, strict=True)])
    leaner, lean_spread = _ratios([(mine["cpu_s"], theirs["cpu_s"]) for mine, theirs in zip(ours, peer, strict=True)])
    print(f"{'updates/s':28}{rates[0]:12.3f}{rates[1]:12.3f}{faster:8.2f}   {spread}")
    print(f"{'processor s/update':28}{cpu[0]:12.2f}{cpu[1]:12.2f}{leaner:8.2f}   {lean_spread}")
    print(f"{'peak MiB':28}{peaks[0]:12.0f}{peaks[1]:12.0f}{peaks[0] / peaks[1]:8.2f}", flush=True)
    return {
        f"{name} updates": {"ours": rates[0], "peer": rates[1], "unit": "updates/s", "ratio": faster},
        f"{name} memory": {"ours": peaks[0], "peer": peaks[1], "unit": "MiB", "ratio": peaks[0] / peaks[1]},
    }


def _ratios(neighbours: list[tuple[float, float]]) -> tuple[float, str]:
    """The ratio of TRL's time to ours: the median, and the range."""
    found = sorted(theirs / mine for mine, theirs in neighbours)
    return median(found), f"{found[0]:.2f} to {found[-1]:.2f}"


if __name__ == "__main__":
    main()
