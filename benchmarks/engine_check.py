"""Does the engine check leave healthy runs alone, and catch each fault? `python -m benchmarks.engine_check`.

A start is two steps as a run makes them: sample `--tokens` tokens, check (`trainer/loops/learner/engine_check.py`), update, push, sample
again, check again. Healthy starts must all pass. In the others one thing is wrong from the first token on, and the step at which it is
caught is counted. Faults are tried with the learning rate and with none, where updates change nothing. The tiny model is made here;
`--model DIR` takes another one, and `--like DIR` one of random weights in the shape of the one in DIR. With `--keep FILE` an interrupted
measurement continues later: each start is written there when it ends, and is not made again.

A fault that shows only in what an update changes (`a push that does not arrive`) cannot show at learning rate 0, and is not
tried there. In bfloat16 a small update of merged adapters is lost with and without the fault: the check then warns, and
warnings are counted separately.
"""

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks import configs
from benchmarks.machine import describe
from trainer.config import PolicyConfig
from trainer.contracts import Message, jsonlines
from trainer.inference.chat import encode_prompt
from trainer.inference.local import LocalSampler, stop_token_ids
from trainer.inference.low_rank import with_low_rank
from trainer.inference.models import load_model, load_tokenizer, make_tiny
from trainer.loops.learner.engine_check import LOOKS, EngineCheck
from trainer.loops.learner.learner import Learner
from trainer.loops.learner.weight_push import WeightPusher
from trainer.loops.policy.update import Updater
from trainer.loops.session.errors import RunFailed
from trainer.rollouts import PromptPlan, Reward, Trajectory, sample_plans
from trainer.seeding import derive_seed

QUESTIONS = (
    "Why is the sky blue? One sentence.",
    "Give three tips for a quiet night.",
    "What does a bee do all day?",
    "Write a note to a colleague who is ill.",
    "Name two rivers and say where they end.",
    "How do I keep bread fresh?",
    "Explain to a child what a shadow is.",
    "Which is heavier, a kilogram of iron or of feathers?",
)
LR = 2e-4
_UPDATED = 4
"""Responses of each step that are trained on: enough for an update, because only the check is measured."""


@dataclass
class EngineStart:
    """One start: a sampler and a learner of the same model, the config, and the effects of a fault."""

    config: PolicyConfig
    sampler: LocalSampler
    learner: Learner
    stop_ids: frozenset[int]
    temperature: float
    lr: float
    pushes: bool = True
    recorded: list[Callable[[Trajectory], Trajectory]] = field(default_factory=list)


Fault = Callable[[EngineStart], None]


def swapped_layers(start: EngineStart) -> None:
    one, other = start.sampler._model.model.layers[:2]
    with torch.no_grad():
        for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
            kept = mine.clone()
            mine.copy_(theirs)
            theirs.copy_(kept)
    start.pushes = False  # a push would repair it


def another_temperature(start: EngineStart) -> None:
    start.temperature = 0.8 * start.config.rollout.temperature


def stale_adapter(start: EngineStart) -> None:
    """The learner continues from adapters that were trained already; the sampler still has the model below them."""
    draw = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in start.learner.parameters.items():
            if "lora_B" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=draw) * 0.02)
    start.pushes = False


def push_that_does_not_arrive(start: EngineStart) -> None:
    start.pushes = False


def end_that_is_dropped(start: EngineStart) -> None:
    """The record of a response lacks the token that ends it."""

    def drop(trajectory: Trajectory) -> Trajectory:
        *before, last = trajectory.spans
        if trajectory.stop != "stop" or len(last.tokens) < 2:
            return trajectory
        return replace(trajectory, spans=(*before, last._replace(tokens=last.tokens[:-1], logprobs=last.logprobs[:-1])))

    start.recorded.append(drop)


def end_that_is_passed(start: EngineStart) -> None:
    """The sampler continues after the end."""
    start.sampler._stop_ids = frozenset()


def end_that_cannot_be_drawn(start: EngineStart) -> None:
    def without(module: Any, inputs: Any, logits: torch.Tensor) -> torch.Tensor:
        logits[..., sorted(start.stop_ids)] = -torch.inf
        return logits

    start.sampler._model.get_output_embeddings().register_forward_hook(without)


def one_wrong_mask(start: EngineStart) -> None:
    """While the first response of the batch is sampled, the model does not see the last tokens of its prompt."""
    make = start.sampler._model.model.forward

    def forward(*arguments: Any, **named: Any) -> Any:
        mask = named.get("attention_mask")
        if mask is not None and mask.shape[1:3] == (1, 1) and mask.shape[-1] > 6:  # a decoding step
            mask = mask.clone()
            mask[0, ..., 2:6] = False
            named["attention_mask"] = mask
        return make(*arguments, **named)

    start.sampler._model.model.forward = forward


def places_off_by_one(start: EngineStart) -> None:
    """The log-probabilities of one response stand one place too far."""

    def shift(trajectory: Trajectory) -> Trajectory:
        if trajectory.plan.group or trajectory.plan.index:
            return trajectory
        *before, last = trajectory.spans
        return replace(trajectory, spans=(*before, last._replace(logprobs=last.logprobs[1:] + last.logprobs[:1])))

    start.recorded.append(shift)


FAULTS: dict[str, Fault] = {
    "swapped layers": swapped_layers,
    "another temperature": another_temperature,
    "stale adapter": stale_adapter,
    "end of text dropped": end_that_is_dropped,
    "end of text passed": end_that_is_passed,
    "end of text never drawn": end_that_cannot_be_drawn,
    "one wrong mask": one_wrong_mask,
    "one response's places": places_off_by_one,
    "a push that does not arrive": push_that_does_not_arrive,
}
NEEDS_UPDATES = {"a push that does not arrive"}


@dataclass(frozen=True)
class EngineSetting:
    """The settings that all starts of a measurement share. `tokens`: sampled before each look; `length`: of the longest response."""

    folder: Path
    dtype: str
    tokens: int = 4096
    length: int = 64
    top_p: float = 0.9
    device: str = "cpu"
    push: str = "merged"

    def config(self, seed: int) -> PolicyConfig:
        responses = max(len(QUESTIONS), self.tokens // self.length)
        return configs.policy(
            {
                "seed": seed,
                "model": {"dtype": self.dtype},
                "sampler": {"push": self.push},
                "scaffold": None,
                "rollout": {
                    "prompts_per_step": len(QUESTIONS),
                    "group_size": responses // len(QUESTIONS),
                    "max_new_tokens": self.length,
                    "top_p": self.top_p,
                },
            },
        )


def outcome(setting: EngineSetting, seed: int, fault: Fault | None = None, lr: float = LR) -> tuple[str, str]:
    """("passed", "warned at 2", "caught at 1" or "caught at 2", and the message) of one start."""
    config, tokenizer = setting.config(seed), load_tokenizer(setting.folder)
    model, trained = (load_model(setting.folder, setting.dtype).to(setting.device) for _ in range(2))
    stop_ids = stop_token_ids(model.generation_config, tokenizer)
    learner = Learner(trained, config)
    if setting.push == "adapters" and config.model.lora:
        model = with_low_rank(model, config.model.lora.rank)
    start = EngineStart(config, LocalSampler(model, tokenizer), learner, stop_ids, config.rollout.temperature, lr)
    if fault:
        fault(start)
    check, said, warned = EngineCheck(config, stop_ids), "", ""
    for step in range(1, LOOKS + 1):
        trajectories = _sampled(start, tokenizer, step)
        try:
            said, warning = check.look(step, learner, trajectories)
        except RunFailed as error:
            return f"caught at {step}", str(error)
        warned = said if warning else warned
        if step < LOOKS:
            _update(start, trajectories)
    return (f"warned at {LOOKS}", warned) if warned else ("passed", said)


def _sampled(start: EngineStart, tokenizer: Any, step: int) -> list[Trajectory]:
    rollout = start.config.rollout
    prompts = [encode_prompt(tokenizer, [Message(role="user", content=question)]) for question in QUESTIONS]
    plans = [
        PromptPlan(f"q{group}", group, place, "", prompt, prompt, derive_seed(start.config.seed, step, group, place))
        for group, prompt in enumerate(prompts)
        for place in range(rollout.group_size)
    ]
    drawn = rollout.model_copy(update={"temperature": start.temperature})
    results = sample_plans(start.sampler, plans, drawn)
    found = [Trajectory.of(plan, result, Reward(0.0)) for plan, result in zip(plans, results, strict=True)]
    for change in start.recorded:
        found = [change(trajectory) for trajectory in found]
    return found


def _update(start: EngineStart, trajectories: Sequence[Trajectory]) -> None:
    """One update at the learning rate, and a push that may be lost."""
    some = [t for t in trajectories if t.length > 1][:_UPDATED]
    start.learner.set_lr(start.lr)
    advantages_B = torch.tensor([1.0 if place % 2 else -1.0 for place in range(len(some))])
    Updater(start.learner, start.config).run(some, advantages_B)
    if start.pushes:
        WeightPusher(start.config, start.learner, start.sampler).push(1)


class Outcomes:
    """The outcome of each start, written to a JSON Lines file as it ends: one row a start, with the setting of the start."""

    def __init__(self, setting: EngineSetting, path: Path | None):
        self.setting, self.path = setting, path
        self._under = {**asdict(setting), "folder": setting.folder.name}
        rows = jsonlines.rows(path.read_text()) if path and path.exists() else []
        self._kept: dict[tuple[str, int], str] = {
            (row["kind"], row["seed"]): row["outcome"] for row in rows if row["setting"] == self._under
        }

    def of(self, kind: str, seed: int, fault: Fault | None = None, lr: float = LR) -> str:
        """The outcome of one start, which is made if the file does not have it."""
        if (kind, seed) not in self._kept:
            began = time.monotonic()
            how, said = outcome(self.setting, seed, fault, lr)
            self._kept[kind, seed] = how
            print(f"{kind}, start {seed}: {how} in {time.monotonic() - began:.0f} s; {said}", flush=True)
            self._write({"kind": kind, "seed": seed, "outcome": how, "said": said, "setting": self._under})
        return self._kept[kind, seed]

    def _write(self, row: dict[str, Any]) -> None:
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")


def healthy(outcomes: Outcomes, starts: int) -> Counter[str]:
    return Counter(outcomes.of("healthy", seed) for seed in range(starts))


def faulty(outcomes: Outcomes, starts: int) -> dict[str, Counter[str]]:
    """The number of each outcome by fault and learning rate; empty if no fault is tried."""
    found: dict[str, Counter[str]] = {}
    for name, fault in FAULTS.items() if starts else ():
        for lr in (LR, 0.0):
            if lr == 0.0 and name in NEEDS_UPDATES:
                continue
            kind = f"{name}, learning rate {lr:g}"
            found[kind] = Counter(outcomes.of(kind, 1000 + seed, fault, lr) for seed in range(starts))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine_check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, help="directory of a model; without it the tiny one")
    parser.add_argument("--like", type=Path, help="directory of a model whose shape random weights are given")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="bfloat16")
    parser.add_argument("--starts", type=int, default=100, help="healthy ones")
    parser.add_argument("--faults", type=int, default=1, help="starts with each fault and learning rate")
    parser.add_argument("--tokens", type=int, default=4096, help="sampled before each look")
    parser.add_argument("--length", type=int, default=64, help="of the longest response")
    parser.add_argument("--top-p", type=float, default=0.9)
    parser.add_argument("--keep", type=Path, help="JSON Lines file of the starts made so far; those are not made again")
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
    with tempfile.TemporaryDirectory() as scratch:
        folder = _model(options, Path(scratch))
        setting = EngineSetting(folder, options.dtype, options.tokens, options.length, options.top_p)
        outcomes = Outcomes(setting, options.keep)
        well, ill = healthy(outcomes, options.starts), faulty(outcomes, options.faults)
    _tell(options, well, ill)


def _model(options: argparse.Namespace, scratch: Path) -> Path:
    if options.like:
        return _random_like(options.like, scratch / "like")
    if options.model:
        return Path(options.model)
    make_tiny(scratch / "tiny")
    return scratch / "tiny"


def _random_like(source: Path, folder: Path) -> Path:
    """Random weights of the same shape, with the same tokenizer."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source)).save_pretrained(folder)
    load_tokenizer(source).save_pretrained(folder)
    return folder


def _tell(options: argparse.Namespace, well: Counter[str], ill: dict[str, Counter[str]]) -> None:
    kinds = ["passed", "caught at 1", "caught at 2", "warned at 2"]
    name = (options.like or options.model or Path("tiny")).name
    print(f"{describe()}, torch {torch.__version__} with {torch.get_num_threads()} threads")
    print(
        f"{name}{', random weights' if options.like else ''}, {options.dtype}, {options.tokens} tokens, top_p {options.top_p:g}"
    )
    print(f"{'':48}" + "".join(f"{kind:>13}" for kind in kinds))
    for row, told in {"healthy": well, **ill}.items():
        print(f"{row:48}" + "".join(f"{told[kind]:13}" for kind in kinds))
    stopped = sum(well.values()) - well["passed"] - well["warned at 2"]
    missed = sum(told["passed"] for told in ill.values())
    tried = sum(sum(told.values()) for told in ill.values())
    entries = {
        f"engine_check_{options.dtype}_stopped": {"ours": stopped, "unit": f"of {sum(well.values())} healthy starts"},
        f"engine_check_{options.dtype}_missed": {"ours": missed, "unit": f"of {tried} faults"},
    }
    print(json.dumps({key: {**entry, "peer": None, "ratio": None} for key, entry in entries.items()}))


if __name__ == "__main__":
    main()
