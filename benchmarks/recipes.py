"""Recipes that learn from stored texts beside TRL's trainers: `python -m benchmarks.recipes`, or `make bench-recipes`.

`sft`, `reward_model` and `dpo` each update rank-16 adapters of the same model with the same pairs of the demo in the same
order (`sft` with the preferred answers): forward, backward, clipping, a step of AdamW, in float32. Nothing is cut, and neither
side recomputes activations. What DPO's reference says is measured before the first update on both sides and not counted.

Each side is measured in a process of its own, in turns. A process's first update warms up and is not counted. Peak memory is
that of the whole process during an update; on a GPU, what torch allocated there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import describe
from benchmarks.trainer_side import DEVICE, Side, Taken
from trainer.config import RECIPES, resolve
from trainer.contracts import Example
from trainer.contracts.pairs import labelled_pairs
from trainer.inference.models import load_model, load_scalar, load_tokenizer, prepare_smollm2
from trainer.loops.data import read_examples
from trainer.loops.registry import make_stage
from trainer.loops.session import Session, StepTell
from trainer.loops.stage import Job
from trainer.monitors import RunMonitor, Spool

DEMO = Path(__file__).parents[1] / "demo" / "preferences.jsonl"
NAMES = ("sft", "reward_model", "dpo")
RANK = 16


def main() -> None:
    options = _options()
    if options.side:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))
        (name,) = options.recipes
        print(json.dumps({"ours": measure_ours, "trl": measure_trl}[options.side](name, options)))
        return
    prepare_smollm2(options.model)
    machine = describe()
    taken: dict[tuple[str, str], list[Taken]] = {}
    for _ in range(options.rounds):
        for name in options.recipes:
            for side in ("ours", "trl"):
                taken.setdefault((name, side), []).append(_in_own_process(options, name, side))
    print(f"{machine}, torch {torch.__version__} on {DEVICE}")
    print(f"updates of {options.batch} items of the demo, {options.model.name}, rank {RANK}, float32")
    results: dict[str, Any] = {}
    for name in options.recipes:
        results |= _report(name, taken[name, "ours"], taken[name, "trl"])
    print(json.dumps(results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipes", description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--recipes", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--steps", type=int, default=4, help="measured updates of each process")
    parser.add_argument("--rounds", type=int, default=1, help="processes of each side and recipe, in turns")
    parser.add_argument("--batch", type=int, default=8, help="pairs, or answers, per update")
    parser.add_argument("--side", choices=("ours", "trl"), help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_own_process(options: argparse.Namespace, name: str, side: str) -> Taken:
    command = [sys.executable, "-m", "benchmarks.recipes", "--side", side, "--recipes", name]
    for option in ("model", "steps", "batch"):
        command += [f"--{option}", str(getattr(options, option))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    taken: Taken = json.loads(done.stdout.splitlines()[-1])
    return taken


def _examples(options: argparse.Namespace) -> list[Example]:
    """As many decided pairs of the demo as all updates need, all of them to train on; the first ones again where they end."""
    found = []
    for example in read_examples(DEMO):
        if any(pair.decided for pair in labelled_pairs(example)):
            found.append(example.model_copy(update={"split": "train"}))
    wanted = (options.steps + 1) * options.batch
    return (found * (1 + wanted // len(found)))[:wanted]


def measure_ours(name: str, options: argparse.Namespace) -> Taken:
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
    side = Side(options.batch)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "examples.jsonl"
        data.write_text("".join(example.canonical() + "\n" for example in _examples(options)))
        monitor = RunMonitor(Spool(Path(folder) / "run" / "events.jsonl"))
        job = Job(RECIPES[name], config, data, {"base": options.model}, Path(folder) / "run", monitor)
        stage = make_stage(job)
        session = Session(job, stage)
        stage.open(0)
        for number in range(1, options.steps + 2):
            with side.training():
                stage.step(number, StepTell(session, number))
            side.step_done(options.batch)
    return side.taken()


def measure_trl(name: str, options: argparse.Namespace) -> Taken:
    from datasets import Dataset
    from peft import LoraConfig
    from torch.utils.data import SequentialSampler
    from transformers import TrainerCallback
    from trl import DPOConfig, DPOTrainer, RewardConfig, RewardTrainer, SFTConfig, SFTTrainer

    side = Side(options.batch)

    class Clock(TrainerCallback):  # type: ignore[misc]
        """Around the whole update: the trainer clips and calls the optimiser outside its `training_step`."""

        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            side.begin_training()

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            side.end_training()
            side.step_done(options.batch)

    trainer_class, config_class, more = {
        "sft": (SFTTrainer, SFTConfig, {}),
        "reward_model": (RewardTrainer, RewardConfig, {"center_rewards_coefficient": 0.01}),
        "dpo": (
            DPOTrainer,
            DPOConfig,
            {"precompute_ref_log_probs": True, "loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, 0.2]},
        ),
    }[name]

    class InOrder(trainer_class):  # type: ignore[misc,valid-type]
        def _get_train_sampler(self, dataset: Any = None) -> Any:
            return SequentialSampler(self.train_dataset)

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
        InOrder(
            model=load_scalar(options.model) if name == "reward_model" else load_model(options.model),
            processing_class=load_tokenizer(options.model),
            args=arguments,
            train_dataset=Dataset.from_list([_row(name, example) for example in _examples(options)]),
            peft_config=LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type=task),
            callbacks=[Clock()],
        ).train()
    return side.taken()


def _row(name: str, example: Example) -> dict[str, Any]:
    texts = {response.id: response.text for response in example.responses}
    pair = next(pair for pair in labelled_pairs(example) if pair.decided)
    first = len(pair.for_first) > len(pair.for_second)
    chosen, rejected = (pair.first, pair.second) if first else (pair.second, pair.first)
    prompt = [message.model_dump() for message in example.prompt]
    answers = [[{"role": "assistant", "content": texts[each]}] for each in (chosen, rejected)]
    if name == "sft":
        return {"prompt": prompt, "completion": answers[0]}
    return {"prompt": prompt, "chosen": answers[0], "rejected": answers[1]}


def _report(name: str, ours: list[Taken], peer: list[Taken]) -> dict[str, Any]:
    """Prints one recipe's table; rates from all counted updates, peaks the largest of all processes."""
    print(f"\n{name:28}{'ours':>12}{'TRL':>12}{'ratio':>8}")
    steps = sum(each["steps"] for each in ours)
    rates = [steps / sum(each["training_s"] for each in side) for side in (ours, peer)]
    cpu = [sum(each["training_cpu_s"] for each in side) / steps for side in (ours, peer)]
    peaks = [max(each["training_mib"] for each in side) for side in (ours, peer)]
    print(f"{'updates/s':28}{rates[0]:12.3f}{rates[1]:12.3f}{rates[0] / rates[1]:8.2f}")
    print(f"{'processor s/update':28}{cpu[0]:12.2f}{cpu[1]:12.2f}{cpu[1] / cpu[0]:8.2f}")
    print(f"{'peak MiB':28}{peaks[0]:12.0f}{peaks[1]:12.0f}{peaks[0] / peaks[1]:8.2f}")
    return {
        f"{name} updates": _entry(*rates, "updates/s"),
        f"{name} memory": _entry(*peaks, "MiB"),
    }


def _entry(ours: float, peer: float, unit: str) -> dict[str, Any]:
    return {"ours": ours, "peer": peer, "unit": unit, "ratio": ours / peer}


if __name__ == "__main__":
    main()
