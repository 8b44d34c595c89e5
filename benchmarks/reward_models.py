"""The accuracy of a reward model on people's preferences, and that of baselines without one: `python -m benchmarks.reward_models`.

For each set and seed, recipe `reward_model` and TRL's `RewardTrainer` train rank-16 adapters and a head of the same model on
the same pairs in the same order, with the same losses, learning rate and number of updates, from the same head. Both leave
an adapter; the product's own code merges it and scores the held-out pairs. The baselines: always naming one place, choosing by
length, a linear model of sentence embeddings of the same training pairs, and one person against the majority of the others.

Intervals are 95%, from a bootstrap over the groups by which pairs are held out: pairs on one question are not independent
evidence. Each part that is done is a line of `--into`, so a stopped measurement continues from there.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import configs
from benchmarks.machine import away, describe
from benchmarks.preference_sets import SETS, lacking, shorter_than, take
from benchmarks.recipes import RANK, in_order, trl_row
from trainer.config import RECIPES, resolve
from trainer.config.recipes.reward_model import RewardModelConfig
from trainer.contracts import Example, ModelSource
from trainer.inference.adapters import whole_directory
from trainer.inference.models import best_device, load_scalar, load_tokenizer, prepare_smollm2
from trainer.inference.reward_models import RewardModel
from trainer.inference.turns import encode_conversation
from trainer.loops.pairs.embedding_baseline import embedding_margins
from trainer.loops.pairs.preferences import Pair, prepare_pairs
from trainer.loops.run import run_recipe
from trainer.loops.session.stage import StageJob
from trainer.metrics import preferences
from trainer.metrics.estimate import Estimate, bootstrap_ratio
from trainer.monitors import RunMonitor, Spool
from trainer.seeding import derive_seed

PARTS = ("baselines", "ours", "trl")
METHODS = {
    "majority": "always one place",
    "length": "by length",
    "embeddings": "by embeddings",
    "trl": "TRL's RewardTrainer",
    "ours": "recipe `reward_model`",
}
CENTRE, CLIP = 0.01, 1.0
_AT_ONCE = 4
SIZES = ("pairs", "heldout", "batch", "lr", "max_tokens")
Row = dict[str, Any]


def main() -> None:
    options = _options()
    if not options.shared.is_dir():
        away(f"the public data sets (--shared FOLDER; {options.shared} is no folder)")
    if gone := lacking(options.sets, options.shared):
        print(
            f"--shared {options.shared} is not the folder of the public data sets: it has no {gone[0]}", file=sys.stderr
        )
        sys.exit(2)
    prepare_smollm2(options.model)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))
    sizes = {name: getattr(options, name) for name in SIZES} | {"model": options.model.name}
    print(f"{describe()}, torch {torch.__version__} on {best_device()}\n{sizes}", flush=True)
    results: dict[str, Any] = {}
    for name in options.sets:
        rows = [_row(options, sizes, name, seed, part) for seed in options.seeds for part in PARTS]
        results |= report(name, rows)
    print(json.dumps(results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reward_models", description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument(
        "--shared", type=Path, default=Path("../shared/data"), help="the folder of the public data sets"
    )
    parser.add_argument("--into", type=Path, default=Path("var/benchmarks/reward_models.jsonl"))
    parser.add_argument("--sets", nargs="+", default=tuple(SETS), choices=tuple(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    parser.add_argument("--pairs", type=int, default=32, help="pairs that are trained on, once each")
    parser.add_argument("--heldout", type=int, default=60, help="held-out pairs of each seed, at most")
    parser.add_argument("--batch", type=int, default=4, help="pairs per update")
    parser.add_argument("--lr", type=float, default=1e-3, help="falls linearly to 0")
    parser.add_argument("--max-tokens", type=int, default=112, help="pairs with a longer conversation are not used")
    return parser.parse_args()


def _row(options: argparse.Namespace, sizes: Row, name: str, seed: int, part: str) -> Row:
    """The row of this part in the file; if there is none, it is made now and written there."""
    wanted = {"set": name, "seed": seed, "part": part, "sizes": sizes}
    lines = options.into.read_text().splitlines() if options.into.exists() else []
    for row in map(json.loads, lines):
        if {key: row[key] for key in wanted} == wanted:
            return dict(row)
    began = time.process_time()
    found = {"baselines": baselines, "ours": ours, "trl": trl}[part](options, *examples_of(options, name, seed), seed)
    row = wanted | {"machine": describe(), "cpu_s": time.process_time() - began} | found
    options.into.parent.mkdir(parents=True, exist_ok=True)
    with options.into.open("a") as file:
        file.write(json.dumps(row) + "\n")
    return row


def examples_of(options: argparse.Namespace, name: str, seed: int) -> tuple[list[Example], list[Example]]:
    """Training and held-out examples, the same for all parts."""
    fits = shorter_than(options.max_tokens, partial(encode_conversation, load_tokenizer(options.model)))
    taken = take(name, options.shared, seed, options.pairs, options.heldout, fits)
    return taken.of("train"), taken.of("heldout")


def baselines(options: argparse.Namespace, train: Sequence[Example], heldout: Sequence[Example], seed: int) -> Row:
    """For each held-out pair how right each baseline is, its group, and the votes."""
    known, asked = _pairs(train), _pairs(heldout)
    places = [(float(pair.first_chosen), float(not pair.first_chosen)) for pair in (*known, *asked)]
    lengths = [tuple(float(len(side.response.text)) for side in pair.sides) for pair in (*known, *asked)]
    cut = len(known)
    return {
        "right": {
            "majority": _by_feature(places[:cut], places[cut:]),
            "length": _by_feature(lengths[:cut], lengths[cut:]),
            "embeddings": [float(m > 0) for m in embedding_margins(known, asked, lambda done, total: None)],
        },
        "groups": [example.group for example in heldout],
        "votes": [(pair.pro, pair.con) for pair in asked],
        "trained_on": len(known),
    }


def _no_tokens(*_: Any) -> tuple[int, ...]:
    return (0,)


def _pairs(examples: Sequence[Example]) -> list[Pair[tuple[int, ...]]]:
    """The pairs as the recipe reads them, without tokens."""
    data = configs.resolved(RewardModelConfig, "reward_model", {"data": {"labels": "majority"}}).data
    sets = prepare_pairs([e.model_copy(update={"split": "train"}) for e in examples], data, _no_tokens, len, 0)
    return sets.train


def _by_feature(train: Sequence[Any], heldout: Sequence[Any]) -> list[float]:
    """1 if the feature, in the direction that is more often right in training, names the preferred answer; a half
    if it names neither.
    """
    return [float(preferences.baseline(train, [pair]).value or 0.0) for pair in heldout]


def ours(options: argparse.Namespace, train: Sequence[Example], heldout: Sequence[Example], seed: int) -> Row:
    config = resolve(
        "reward_model",
        {
            "seed": seed,
            "steps": len(train) // options.batch,
            "batch_size": options.batch,
            "model": {"lora": {"rank": RANK, "alpha": 2.0 * RANK}},
            "optim": {"lr": options.lr, "schedule": "linear", "grad_clip": CLIP, "micro_batch_tokens": 512},
            "centre": CENTRE,
            "data": {"shuffle": False, "labels": "majority"},
            "evaluation": {"every": 0, "max_examples": 0},
            "checkpoint": {"every": len(train)},
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        data, run = Path(folder) / "examples.jsonl", Path(folder) / "run"
        data.write_text("".join(example.canonical() + "\n" for example in train))
        monitor = RunMonitor(Spool(run / "events.jsonl"))
        if not run_recipe(
            StageJob(RECIPES["reward_model"], config, data, {"base": options.model}, run, monitor), False
        ):
            raise SystemExit((run / "events.jsonl").read_text()[-2000:])
        monitor.close()
        return _scored(options, run / "outputs" / "reward_model", heldout)


def trl(options: argparse.Namespace, train: Sequence[Example], heldout: Sequence[Example], seed: int) -> Row:
    from datasets import Dataset
    from peft import LoraConfig
    from trl import RewardConfig, RewardTrainer

    with tempfile.TemporaryDirectory() as folder:
        trainer = in_order(RewardTrainer)(
            model=load_scalar(options.model, seed=derive_seed(seed, "head")),
            processing_class=load_tokenizer(options.model),
            args=RewardConfig(
                output_dir=folder,
                seed=seed,
                use_cpu=best_device() == "cpu",
                bf16=False,
                gradient_checkpointing=False,
                per_device_train_batch_size=options.batch,
                max_steps=len(train) // options.batch,
                max_length=None,
                learning_rate=options.lr,
                lr_scheduler_type="linear",
                warmup_steps=0,
                adam_beta2=0.99,
                weight_decay=0.0,
                max_grad_norm=CLIP,
                center_rewards_coefficient=CENTRE,
                report_to=[],
                save_strategy="no",
                disable_tqdm=True,
            ),
            train_dataset=Dataset.from_list([trl_row("reward_model", example) for example in train]),
            peft_config=LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="SEQ_CLS"),
        )
        trainer.train()
        trainer.save_model(f"{folder}/adapter")
        return _scored(options, Path(folder) / "adapter", heldout)


def _scored(options: argparse.Namespace, adapter: Path, heldout: Sequence[Example]) -> Row:
    """For each held-out pair, in order, the lead of the preferred answer's score."""
    with tempfile.TemporaryDirectory() as folder:
        source = ModelSource(path=str(options.model.absolute()), adapters=(str(adapter),), head="scalar")
        model = RewardModel(whole_directory(source, Path(folder) / "merged"))
    pairs, margins = _pairs(heldout), []
    for start in range(0, len(pairs), _AT_ONCE):
        texts = [_conversation(pair, side) for pair in pairs[start : start + _AT_ONCE] for side in (0, 1)]
        scores = asyncio.run(model.score(texts, options.max_tokens))
        if wrong := [score for score in scores if isinstance(score, str)]:
            raise SystemExit(wrong[0])
        margins += [float(a) - float(b) for a, b in zip(scores[::2], scores[1::2], strict=True)]
    return {"margins": margins}


def _conversation(pair: Pair[Any], side: int) -> list[tuple[str, str]]:
    return [*((m.role, m.content) for m in pair.prompt), ("assistant", pair.sides[side].response.text)]


def report(name: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Prints a set's table: every method over the held-out pairs of all seeds, and seed by seed."""
    by = {part: [row for row in rows if row["part"] == part] for part in PARTS}
    groups = [f"{group}" for row in by["baselines"] for group in row["groups"]]
    right = {kind: [row["right"][kind] for row in by["baselines"]] for kind in ("majority", "length", "embeddings")}
    right |= {side: [[float(m > 0) for m in row["margins"]] for row in by[side]] for side in ("trl", "ours")}
    trained = " / ".join(str(row["trained_on"]) for row in by["baselines"])
    print(f"\n{SETS[name].title}: {trained} pairs trained on; held out by {len(set(groups))} {SETS[name].heldout}")
    print("| | accuracy | 95% | by seed |\n|---|---|---|---|")
    found = {}
    for method, title in METHODS.items():
        found[method] = over(right[method], groups)
        seeds = ", ".join(f"{np.mean(each):.3f}" for each in right[method])
        print(f"| {title} | {_cells(found[method])} | {seeds} |")
    ceiling = preferences.ceiling([(pro, con) for row in by["baselines"] for pro, con in row["votes"]])
    print(f"| one person against the others | {_cells(ceiling)} | |")
    for other in ("trl", "length", "embeddings"):
        lead = over(right["ours"], groups, right[other])
        print(f"| ours less {METHODS[other]} | {_cells(lead, '+')} | |")
    spent = ", ".join(f"{part} {sum(row['cpu_s'] for row in by[part]):.0f}" for part in PARTS)
    seeds = ", ".join(str(row["seed"]) for row in by["ours"])
    print(
        f"{found['ours'].n} held-out pairs of seeds {seeds}; seconds of a processor, scoring included: {spent}",
        flush=True,
    )
    a, b = found["ours"].value, found["trl"].value
    ratio = a / b if a is not None and b else None
    return {f"reward model, {name}": {"ours": a, "peer": b, "unit": "accuracy", "ratio": ratio}}


def over(
    right: Sequence[Sequence[float]], groups: Sequence[str], less: Sequence[Sequence[float]] | None = None
) -> Estimate:
    """The mean over the held-out pairs of all seeds, or of the difference, resampled by group."""
    values = [value for each in right for value in each]
    if less is not None:
        values = [value - other for value, other in zip(values, (v for each in less for v in each), strict=True)]
    return bootstrap_ratio(values, np.ones(len(values)), clusters=groups, share=less is None)


def _cells(found: Estimate, sign: str = "") -> str:
    show: Callable[[float | None], str] = lambda value: "–" if value is None else f"{value:{sign}.3f}"  # noqa: E731
    return f"{show(found.value)} | {show(found.low)} to {show(found.high)}"


if __name__ == "__main__":
    main()
