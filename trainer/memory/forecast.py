"""Forecasts the memory of a run at its worst moment, and its parts.

A run does three things in turns: it samples, it computes gradients, it changes the weights. Weights, gradients and moments
stay in memory all the time; what a turn needs beside them is free again in the next turn. So the peak is what stays, plus the largest turn.

Not counted are fragments that an allocator cannot use, and prompts that a scaffold makes longer than
`data.max_prompt_tokens`. `CONTEXT`, `PROGRAM` and vLLM's `WORKSPACE` are given values, of which only `PROGRAM` was measured.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from trainer.config.memory_inventory import Holdings, Sampling
from trainer.config.recipe import RecipeConfig

from .activations import WIDE, backward_bytes, head_bytes, pass_bytes
from .shape import BYTES, GIB, ModelShape

PROGRAM = int(0.6 * GIB)
"""Bytes of a process on a CPU: Python with its libraries, of which torch, transformers and peft took 411 MiB, and its data."""
CONTEXT = 1 * GIB
"""Bytes of CUDA itself in a process on a GPU. A guess that was never measured on a card."""
WORKSPACE = 2 * GIB
"""Bytes of the activations, kernels and graphs of an engine of vLLM. A guess that was never measured on a card."""
_LOGITS = 4
"""The number of tensors as large as the logits of all responses that exist while a token is drawn: logits, probabilities, sorted,
summed."""
FEWEST_ROWS, FEWEST_PASSES = 8, 16
"""The numbers of responses and of tokens from which the local sampler lays its weights out for a CPU (`trainer.inference.local`)."""

Turn = Literal["", "sampling", "gradients", "update"]


@dataclass(frozen=True)
class Device:
    """The device of a run's model: one GPU, or a machine without one. `memory` in bytes."""

    kind: Literal["gpu", "cpu"]
    memory: int
    name: str = ""


@dataclass(frozen=True)
class MemoryPart:
    """A part of what a process holds. `turn` is empty if the part is there all the time. `exact`: its size follows from the shape of the
    model and the config, without an estimate."""

    label: str
    bytes: int
    how: str
    turn: Turn = ""
    exact: bool = False


@dataclass(frozen=True)
class Process:
    """One process of the run, or `count` of the same kind."""

    label: str
    parts: tuple[MemoryPart, ...]
    count: int = 1

    @property
    def peak(self) -> int:
        """Bytes at the worst moment."""
        return sum(part.bytes for part in self.parts if not part.turn) + self._turn(self.worst)

    @property
    def worst(self) -> Turn:
        """The turn that needs most; empty if there are no turns."""
        return max((part.turn for part in self.parts if part.turn), key=self._turn, default="")

    @property
    def least(self) -> int:
        """Bytes that it certainly holds: what is there all the time and is no estimate."""
        return sum(part.bytes for part in self.parts if part.exact and not part.turn)

    def _turn(self, turn: Turn) -> int:
        return sum(part.bytes for part in self.parts if part.turn and part.turn == turn)


@dataclass(frozen=True)
class Forecast:
    """The needs of every process of a run. With GPUs each process has its own GPU; without, the processes share the machine's memory."""

    device: Device | None
    processes: tuple[Process, ...]

    @property
    def needed(self) -> int:
        """Bytes: with GPUs those of the largest process, otherwise those of all processes together."""
        if self.device is not None and self.device.kind == "gpu":
            return max(process.peak for process in self.processes)
        return sum(process.count * process.peak for process in self.processes)

    @property
    def fits(self) -> bool:
        """Whether the run fits; True if the device is not known."""
        return self.device is None or self.needed <= self.device.memory

    @property
    def possible(self) -> bool:
        """Whether the weights, gradients and moments of each process fit by themselves. If not, the run cannot work; if they do and the run
        does not fit, the forecast may be wrong. True if the device is not known."""
        return self.device is None or self.least <= self.device.memory

    @property
    def least(self) -> int:
        """Bytes that the process certainly holds which holds most. Others may be on another machine."""
        return max(process.least for process in self.processes)

    @property
    def largest(self) -> Process:
        return max(self.processes, key=lambda process: process.peak)


def forecast(config: RecipeConfig, shape: ModelShape, device: Device | None) -> Forecast:
    """The forecast of a run with this config that trains a model of this shape. Without a device it is that of a CPU."""
    on_gpu = device is not None and device.kind == "gpu"
    base = (
        MemoryPart("CUDA", CONTEXT, "its own") if on_gpu else MemoryPart("Program", PROGRAM, "Python and its libraries")
    )
    held, element = config.holdings(), BYTES[config.model.dtype]
    sampling = tuple(sampling_parts(held.sampling, element, shape, on_gpu)) if held.sampling else ()
    laid_out = tuple(parts_laid_out(held.sampling, element, shape, on_gpu)) if held.sampling else ()
    learner = tuple(_learner(config, held, shape, on_gpu))
    if held.processes > 1:
        processes = [
            Process("Each process that trains", (base, *learner), held.processes),
            Process("The run itself", (base, *sampling, *laid_out)),
        ]
    else:
        processes = [Process("The run itself", (base, *learner, *sampling, *laid_out))]
    if held.sampling and held.sampling.copies:
        processes.append(Process("Each worker", (base, *sampling), held.sampling.copies))
    return Forecast(device, tuple(processes))


def trained_parameters(config: RecipeConfig, shape: ModelShape) -> int:
    """The count of numbers that training changes."""
    lora = config.model.lora
    return shape.parameters if lora is None else shape.adapter_parameters(lora.rank)


def _learner(config: RecipeConfig, held: Holdings, shape: ModelShape, on_gpu: bool) -> list[MemoryPart]:
    """The parts of one process that trains. If `held.processes` share the model, each holds its share of what is there all the time."""
    optim, element, ranks = config.optim, BYTES[config.model.dtype], held.processes
    rank = config.model.lora.rank if config.model.lora else None
    trained, every = trained_parameters(config, shape), shape.parameters
    tokens = max(optim.micro_batch_tokens, held.longest)
    moments = 2 * trained
    if optim.optimizer == "muon":
        moments -= shape.matrix_parameters if rank is None else trained
    parts = [
        MemoryPart("Weights", every * element // ranks, f"{every:,} × {element} bytes", exact=True),
        MemoryPart("Gradients", trained * WIDE // ranks, f"{trained:,} trained × {WIDE} bytes", exact=True),
        MemoryPart("Optimiser", moments * WIDE // ranks, f"its moments, {moments:,} × {WIDE} bytes", exact=True),
    ]
    if rank is not None:
        parts.append(MemoryPart("Adapters", trained * WIDE // ranks, f"of rank {rank}", exact=True))
    elif element < WIDE:
        parts.append(
            MemoryPart("Master weights", every * WIDE // ranks, "in float32, which the optimiser changes", exact=True)
        )
    if held.frozen:
        parts.append(
            MemoryPart("Frozen copy", every * element // ranks, "to measure the distance from the start", exact=True)
        )
    if not on_gpu:
        parts += _aside(held, trained, moments)
    if held.teachers:
        parts.append(_teachers(held.teachers, every * element))
    passes = pass_bytes(shape, tokens, element, rank, optim.recompute_activations)
    works = backward_bytes(shape, tokens, element)
    if not held.scores:
        works += head_bytes(shape, element, rank is None, on_gpu)
    parts += [
        MemoryPart("Activations", passes, f"of a pass over {tokens:,} tokens", "gradients"),
        MemoryPart("Backward pass and head", works, "gradients on their way", "gradients"),
        # torch's optimisers make one temporary copy: on a GPU of all that they change, on a CPU of one tensor at a time
        MemoryPart(
            "Update", trained * WIDE // ranks if on_gpu else _largest(shape, rank) * WIDE, "copies made in it", "update"
        ),
    ]
    return parts


def _teachers(count: int, size: int) -> MemoryPart:
    """Teachers of `size` bytes each, because their own shapes are not known here."""
    how = "taken to be as large as the model"
    return MemoryPart(*(("Teacher", size, how) if count == 1 else ("Teachers", count * size, f"{count}, each {how}")))


def _aside(held: Holdings, trained: int, moments: int) -> Iterator[MemoryPart]:
    """Parts that lie in the machine's memory and not on the card."""
    if held.waiting:
        size = held.waiting * (trained + moments) * WIDE
        yield MemoryPart("Who waits", size, "trained weights and moments of the role that is not trained")
    if held.begun:
        size = held.begun * trained * WIDE
        yield MemoryPart(
            "Ends of the warm-up", size, f"trained weights of {held.begun} roles, to measure the distance from"
        )


def _largest(shape: ModelShape, rank: int | None) -> int:
    """Numbers of the largest tensor that is trained."""
    if rank is not None:
        return rank * max(shape.hidden, shape.inner, shape.queries)
    return shape.hidden * max(shape.vocabulary, shape.inner)


def sampling_parts(sampling: Sampling, element: int, shape: ModelShape, on_gpu: bool) -> list[MemoryPart]:
    """The parts of a process that samples with weights of its own, of `element` bytes for each number."""
    size = shape.parameters * element
    weights = MemoryPart("Sampler's weights", size, "a second copy of the model", exact=sampling.whole_copy)
    if sampling.by == "elsewhere":
        return []
    if sampling.by == "vllm":
        turn: Turn = "sampling" if on_gpu and sampling.sleeps else ""
        return [
            MemoryPart(weights.label, weights.bytes, weights.how, turn),
            MemoryPart("Sampler's cache", int(sampling.cache_gb * GIB), "sampler.kv_cache_gb", turn),
            MemoryPart("Sampler's workspace", WORKSPACE, "of vLLM, taken to be that much, asleep or not"),
        ]
    cache = shape.cache_bytes(sampling.sequences * sampling.longest, element)
    words = f"keys and values of {sampling.sequences} × {sampling.longest:,} tokens"
    logits = _LOGITS * WIDE * sampling.sequences * shape.vocabulary
    own = [weights] if sampling.by == "local" else []
    return [
        *own,
        MemoryPart("Sampler's cache", cache, words, "sampling"),
        MemoryPart("Drawing tokens", logits, f"logits of {sampling.sequences} responses", "sampling"),
    ]


def parts_laid_out(sampling: Sampling, element: int, shape: ModelShape, on_gpu: bool) -> Iterator[MemoryPart]:
    """The weights as a process that samples whole batches lays them out. Workers never do this: their responses join and leave at any time.

    The size in bfloat16 is that of a CPU that computes in bfloat16; other CPUs need less.
    """
    if sampling.by not in ("learner", "local") or on_gpu:
        return
    if sampling.sequences >= FEWEST_ROWS and sampling.new_tokens >= FEWEST_PASSES:
        matrices = shape.matrix_parameters + shape.vocabulary * shape.hidden
        yield MemoryPart("Weights laid out", matrices * element, "as the processor multiplies by them", "sampling")
