"""Time and memory of one side of a comparison with TRL, its settings there, and the speed of the machine's matrix products."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from trainer.inference.models import best_device

DEVICE = best_device()
Taken = dict[str, Any]
"""The number of steps and, for each phase, its seconds, CPU seconds and peak MiB, summed over the counted steps."""


class TrainerSide:
    """Phases of steps, of which the first step is not counted. `tokens` is the number of tokens that every step must have."""

    def __init__(self, tokens: int) -> None:
        self._tokens, self._steps = tokens, -1
        self._sums = {f"{phase}_{key}": 0.0 for phase in ("sampling", "training") for key in ("s", "cpu_s", "mib")}
        self._step: dict[str, float] = {}
        self._began = (0.0, 0.0)
        self.last_s = 0.0

    @contextmanager
    def sampling(self) -> Iterator[None]:
        self._begin()
        yield
        self._end("sampling")

    @contextmanager
    def training(self) -> Iterator[None]:
        self._begin()
        yield
        self._end("training")

    def begin_training(self) -> None:
        """Begin a phase of a peer that cannot be put in a `with`; a phase may have several parts."""
        self._begin()

    def end_training(self) -> None:
        self._end("training")

    def step_done(self, tokens: int) -> None:
        """Raises RuntimeError if a step was not the work on which both sides agreed."""
        if tokens != self._tokens:
            raise RuntimeError(f"a step of {tokens} response tokens instead of {self._tokens}: this compares nothing")
        self._steps += 1
        if self._steps > 0:
            for key, value in self._step.items():
                before = self._sums[key]
                self._sums[key] = max(before, value) if key.endswith("mib") else before + value
        self._step = {}

    def taken(self) -> Taken:
        return {"steps": self._steps, **self._sums}

    def _begin(self) -> None:
        reset_peak()
        self._began = (time.perf_counter(), time.process_time())

    def _end(self, phase: str) -> None:
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        self.last_s = time.perf_counter() - self._began[0]
        part = {"s": self.last_s, "cpu_s": time.process_time() - self._began[1]}
        for key, value in part.items():
            self._step[f"{phase}_{key}"] = self._step.get(f"{phase}_{key}", 0.0) + value
        self._step[f"{phase}_mib"] = max(self._step.get(f"{phase}_mib", 0.0), peak_mib())


def grpo_config(folder: str, batch: int, options: Any, dtype: str = "float32") -> Any:
    """TRL's settings for the same work as our side's: `batch` responses a step, `options.group` to a prompt, each of exactly
    `options.tokens` tokens, one update of plain GRPO without a reference model, `options.steps` after one that warms up.
    """
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=folder,
        use_cpu=DEVICE == "cpu",
        bf16=dtype == "bfloat16",
        per_device_train_batch_size=batch,
        num_generations=options.group,
        max_completion_length=options.tokens,
        generation_kwargs={"min_new_tokens": options.tokens},
        max_steps=options.steps + 1,
        loss_type="grpo",
        beta=0.0,
        temperature=1.0,
        gradient_checkpointing=False,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )


def reset_peak(device: str = DEVICE) -> None:
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    else:
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak starts again at what is resident now


def peak_mib(device: str = DEVICE) -> float:
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        raise RuntimeError("this system does not say how much memory a process had at most")
    return int(found[1]) / 1024


def pass_flops(model: Any, nodes: int, pairs: int, predicted: int) -> float:
    """Multiplications and additions of a forward pass over `nodes` tokens: layers, attention over the `pairs` of tokens that see
    each other, and the head for `predicted` tokens.
    """
    width, vocabulary = model.config.hidden_size, model.config.vocab_size
    layers = sum(p.numel() for name, p in model.named_parameters() if ".layers." in name and p.ndim == 2)
    attention = 4.0 * model.config.num_hidden_layers * pairs * width
    return float(2.0 * nodes * layers + attention + 2.0 * predicted * width * vocabulary)


def matmul_flops(dtype: torch.dtype) -> float:
    """The best rate of products of square matrices like those of layers, doubled in size until one takes 50 ms: some sizes have no
    fast kernel.
    """
    best, size, took = 0.0, 256, 0.0
    while took < 0.05 and size <= 16384:
        a, b = (torch.randn(size, size, device=DEVICE, dtype=dtype) for _ in range(2))
        for _ in range(3):
            started = time.perf_counter()
            torch.nn.functional.linear(a, b)
            if DEVICE == "cuda":
                torch.cuda.synchronize()
            took = time.perf_counter() - started
            best = max(best, 2.0 * size**3 / took)
        size *= 2
    return best
