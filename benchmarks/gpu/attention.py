"""(b) Packed tree attention is dense attention: log-probabilities and gradients, with time and memory beside."""

import torch
from torch import Tensor

from benchmarks.gpu.meter import Measured, measuring
from benchmarks.gpu.rows import Row, Setting
from benchmarks.gpu.shapes import TOY, TREE, make
from trainer.config import resolve
from trainer.loops.learner import Learner, Marked

GROUP = 8
LOGP, GRADIENT = 1e-3, 1e-3
"""Of float32 sums in another order: nats, and parts of the largest gradient."""


def run(setting: Setting) -> list[Row]:
    shape = TOY if setting.small else TREE
    config = resolve("policy", {"model": {"lora": None}})
    learner = Learner(make(shape, torch.float32, setting.device), config, reference=False)
    rows: list[Row] = []
    for nodes in (96,) if setting.small else (2048, 16384):
        rows += _compared(learner, nodes, shape.vocabulary, setting.device)
    return rows


def _compared(learner: Learner, nodes: int, vocabulary: int, device: str) -> list[Row]:
    texts = _group(nodes, vocabulary)
    packed, packed_gradient, in_one = _pass(learner, [texts], device)
    dense, dense_gradient, alone = _pass(learner, [[text] for text in texts], device)
    apart = float((packed - dense).abs().max())
    largest = float(dense_gradient.abs().max())
    gradient = float((packed_gradient - dense_gradient).abs().max()) / largest
    name = f"{nodes:,} tokens"
    return [
        Row(f"log-probabilities, {name}", apart, "nats", LOGP),
        Row(f"gradient, {name}", gradient, "of the largest", GRADIENT),
        Row(f"time of the tree, {name}", in_one.seconds, "s"),
        Row(f"time of each alone, {name}", alone.seconds, "s"),
        Row(f"memory of the tree, {name}", in_one.peak_gib, "GiB"),
        Row(f"memory of each alone, {name}", alone.peak_gib, "GiB"),
    ]


def _group(nodes: int, vocabulary: int) -> list[Marked]:
    """A group's responses to one prompt, which together make a tree of `nodes` tokens; the last one of each is not read."""
    draw = torch.Generator().manual_seed(0)
    prompt_length = nodes // (GROUP + 1)
    length = (nodes - prompt_length) // GROUP + 1
    prompt = tuple(torch.randint(vocabulary, (prompt_length,), generator=draw).tolist())
    responses = torch.randint(vocabulary, (GROUP, length), generator=draw)
    responses[:, 0] = torch.arange(GROUP)  # no two begin alike
    return [Marked.response(prompt, tuple(response.tolist())) for response in responses]


def _pass(learner: Learner, packs: list[list[Marked]], device: str) -> tuple[Tensor, Tensor, Measured]:
    """Log-probabilities of all responses, the gradient of a weighed sum of them, and what it took; the second time, warm."""
    for _ in range(2):
        learner.begin_update()
        found = []
        with measuring(device) as measured:
            for texts in packs:
                scored = learner.measure(texts)
                sum((part.logp_T * _weights(len(part.logp_T))).sum() for part in scored).backward()  # type: ignore[union-attr]
                found += [part.logp_T.detach() for part in scored]
    gradients = [weight.grad for weight in learner.parameters.values() if weight.grad is not None]
    return torch.cat(found), torch.cat([gradient.flatten().cpu() for gradient in gradients]), measured


def _weights(count: int) -> Tensor:
    return torch.linspace(-1.0, 1.0, count) / count
