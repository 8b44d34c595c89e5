"""(f) Speed: updates on long sequences, pushes of weights, decoding; beside what others have published for the same GPU.

The marks of updates are prime-rl's, taken on one H100 with sequences of 16k tokens and random weights. A learner's step here is pass,
gradient, clipping and optimiser over two such sequences, without sampling.
"""

import json
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from benchmarks import configs
from benchmarks.gpu.meter import empty, measuring, peak_flops, settle
from benchmarks.gpu.rows import MeasureRow, MeasureSetting, left_out
from benchmarks.gpu.shapes import HALF, QWEN3_06, QWEN3_4, SEVEN, TOY, Shape, make
from benchmarks.gpu.steps import StepCase
from benchmarks.trainer_side import pass_flops
from trainer.inference.checksum import Checksum
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_tokenizer, make_tiny
from trainer.inference.sampling import Sampler, SampleRequest, SampleResult
from trainer.loops.learner.learner import Learner
from trainer.loops.policy.update import Updater
from trainer.rollouts import PromptPlan, Reward, Trajectory

LONG, PROMPT = 16384, 1024
UPDATES = 3
BACKWARD = 3.0
"""A pass with its gradient costs three times the multiplications of the pass."""


@dataclass(frozen=True)
class Mark:
    """Published numbers: tokens a second, share of the GPU's peak, GiB."""

    case: StepCase
    rate: float
    share: float | None = None
    memory: float | None = None


MARKS = (
    Mark(StepCase(QWEN3_06, None), 11_896, 0.111, 12.5),
    Mark(StepCase(QWEN3_06, 16), 13_342, None, 5.1),
    Mark(StepCase(QWEN3_4, 16), 6_229, 0.217, 23.3),
)
PUSHES = ((StepCase(HALF, None), 0.1), (StepCase(SEVEN, 16), 0.2))
"""Seconds of a push: of all weights, and of adapters alone."""
OF_BARE_VLLM = 0.9


def run(setting: MeasureSetting) -> list[MeasureRow]:
    rows: list[MeasureRow] = []
    for mark in (Mark(StepCase(TOY, None), 1.0), Mark(StepCase(TOY, 4), 1.0)) if setting.small else MARKS:
        rows += _updates(mark, setting)
        empty(setting.device)
    for case, seconds in ((StepCase(TOY, None), 60.0), (StepCase(TOY, 4), 60.0)) if setting.small else PUSHES:
        rows.append(_push(case, seconds, setting))
        empty(setting.device)
    return [*rows, *_decoding(setting)]


def _updates(mark: Mark, setting: MeasureSetting) -> list[MeasureRow]:
    case, name = mark.case, f"updates, {mark.case.name}"
    tokens = 64 if setting.small else LONG
    config = case.config(1, 2, tokens, micro_batch_tokens=tokens, recompute_activations=True)
    with measuring(setting.device) as whole:
        model = make(case.shape, torch.bfloat16, setting.device)
        flops = BACKWARD * pass_flops(model, tokens, tokens * (tokens + 1) // 2, tokens)
        learner = Learner(model, config, reference=False)
        updater, texts = Updater(learner, config), _texts(case.shape, tokens)
        advantages_B = torch.tensor([1.0, -1.0])
        with patch("trainer.loops.policy.update._Step._wants_reference", return_value=False):
            updater.run(texts, advantages_B)  # warms up
            settle(setting.device)
            started = time.perf_counter()
            for _ in range(UPDATES):
                updater.run(texts, advantages_B)
            settle(setting.device)
            seconds = time.perf_counter() - started
    rate = UPDATES * len(texts) * tokens / seconds
    most = peak_flops(setting.device)
    rows = [
        MeasureRow(f"{name}, {tokens:,} tokens", rate, "tokens/s", mark.rate, "at least", goal=True),
        MeasureRow(f"{name}: peak memory", whole.peak_gib, "GiB", mark.memory, goal=True),
    ]
    if most is None:
        return [*rows, left_out(f"{name}: of the card's peak", "the peak of this device is not known here")]
    share = flops * rate / tokens / most
    return [*rows, MeasureRow(f"{name}: of the card's peak", share, "", mark.share, "at least", goal=True)]


def _texts(shape: Shape, tokens: int) -> list[Trajectory]:
    """Two responses that share no token; otherwise the second would cost less."""
    drawn = torch.randint(shape.vocabulary, (2, tokens), generator=torch.Generator().manual_seed(0))
    drawn[:, 0] = torch.arange(2)
    prompt = min(PROMPT, tokens // 2)
    found = []
    for place, row in enumerate(drawn.tolist()):
        start, response = tuple(row[:prompt]), tuple(row[prompt:])
        plan = PromptPlan(f"q{place}", 0, place, "", start, start, place)
        result = SampleResult(response, (-1.0,) * len(response), "", "length", 0)
        found.append(Trajectory.of(plan, result, Reward(0.0)))
    return found


def _push(case: StepCase, mark: float, setting: MeasureSetting) -> MeasureRow:
    """A push from a learner to a local sampler beside it, with checksums on both sides; adapters for vLLM are only made."""
    config = case.config(1, 2, 8)
    model = make(case.shape, torch.bfloat16, setting.device)
    learner = Learner(model, config, reference=False)
    took = []
    if case.rank:
        for _ in range(3):
            with measuring(setting.device) as measured:
                pushed = Checksum()
                for _ in pushed.watching(learner.adapter_weights(config.model.dtype)):
                    pass
                pushed.hexdigest()
            took.append(measured.seconds)
        return MeasureRow(f"adapters, {case.name}, with checksum", min(took), "s", mark, goal=True)
    tiny = setting.folder / "tiny"
    make_tiny(tiny)
    sampler = LocalSampler(make(case.shape, torch.bfloat16, setting.device, seed=1), load_tokenizer(tiny))
    for number in range(3):
        with measuring(setting.device) as measured:
            pushed = Checksum()
            held = sampler.load_weights(pushed.watching(learner.merged_weights()), number)
            if held != pushed.hexdigest():
                raise RuntimeError("what the sampler holds is not what was pushed")
        took.append(measured.seconds)
    return MeasureRow(f"push, {case.name}, to a sampler beside it", min(took), "s", mark, goal=True)


def _decoding(setting: MeasureSetting) -> list[MeasureRow]:
    """Decoding, where all responses have their full length: vLLM through our sampler beside vLLM alone, on the same requests."""
    count, tokens = (4, 8) if setting.small else (64, 256)
    shape = TOY if setting.small else HALF
    folder = setting.folder / "shape"
    make_tiny(folder)
    model = make(shape, torch.bfloat16, setting.device)
    model.save_pretrained(folder)  # beside the tokenizer
    prompt = tuple(range(16))
    requests = [SampleRequest(prompt, tokens, seed=place) for place in range(count)]
    local = LocalSampler(model, load_tokenizer(folder))
    local._stop_ids = frozenset()
    rows = [
        MeasureRow(f"decoding, local sampler, {count} x {tokens} tokens", _rate(local, requests, setting), "tokens/s")
    ]
    del local, model
    empty(setting.device)
    name = "decoding, vLLM through our sampler"
    if find_spec("vllm") is None:
        return [*rows, left_out(name, "vLLM is not installed; `make gpu` installs it")]
    return [*rows, *_vllm(name, folder, requests, setting)]


def _rate(sampler: Sampler, requests: list[SampleRequest], setting: MeasureSetting) -> float:
    """Tokens per second of the second call: the first warms up."""
    rate = 0.0
    for _ in range(2):
        with measuring(setting.device) as measured:
            found = sum(len(result.tokens) for result in sampler.sample(requests))
        rate = found / measured.seconds
    return rate


def _vllm(name: str, folder: Path, requests: list[SampleRequest], setting: MeasureSetting) -> list[MeasureRow]:
    from vllm import SamplingParams

    from trainer.inference.build import build_sampler

    wanted = {"kind": "vllm", "max_batch": len(requests), "kv_cache_gb": 8.0, "compile": True}
    config = configs.policy({"model": {"dtype": "bfloat16", "lora": None}, "sampler": wanted})
    sampler: Any = build_sampler(config, folder, load_tokenizer(folder))
    sampler._stop_ids = []
    ours = _rate(sampler, requests, setting)
    llm = sampler._engine._llm
    drawn = [SamplingParams(max_tokens=one.max_new_tokens, ignore_eos=True, seed=one.seed) for one in requests]
    prompts = [{"prompt_token_ids": list(one.prompt_tokens)} for one in requests]
    bare = 0.0
    for _ in range(2):
        started = time.perf_counter()
        outputs = llm.generate(prompts, drawn, use_tqdm=False)
        bare = sum(len(each.outputs[0].token_ids) for each in outputs) / (time.perf_counter() - started)
    sampler.close()
    told = json.dumps({"vllm alone, tokens/s": round(bare)})
    return [
        MeasureRow(name, ours, "tokens/s", why=told),
        MeasureRow(f"{name}, of vLLM alone", ours / bare, "", OF_BARE_VLLM, "at least", goal=True),
    ]
