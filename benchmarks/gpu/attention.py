"""(b) Packed tree attention equals dense attention: log-probabilities and gradients, with time and memory beside them.

The dense numbers are transformers' own: each response alone, causal, all logits at once, without any code of ours.
"""

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.gpu.meter import Metered, measuring
from benchmarks.gpu.rows import MeasureRow, MeasureSetting
from benchmarks.gpu.shapes import TOY, TREE, make
from trainer.config import resolve
from trainer.loops.learner.learner import Learner, Marked

GROUP = 8
LOGP, GRADIENT = 1e-3, 1e-3
"""The allowed differences of float32 sums in another order: nats, and parts of the largest gradient."""


def run(setting: MeasureSetting) -> list[MeasureRow]:
    shape = TOY if setting.small else TREE
    config = resolve("policy", {"model": {"lora": None}})
    stock = make(shape, torch.float32, setting.device)
    stock.set_attn_implementation("sdpa")
    learner = Learner(deepcopy(stock), config, reference=False)
    rows: list[MeasureRow] = []
    for nodes in (96,) if setting.small else (2048, 16384):
        rows += _compared(learner, stock, nodes, shape.vocabulary, setting.device)
    return rows


def _compared(learner: Learner, stock: Any, nodes: int, vocabulary: int, device: str) -> list[MeasureRow]:
    texts = _group(nodes, vocabulary)
    packed, packed_gradient, in_one = _packed(learner, texts, device)
    dense, dense_gradient, alone = _dense(stock, texts, device)
    apart = float((packed - dense).abs().max())
    largest = float(dense_gradient.abs().max())
    gradient = float((packed_gradient - dense_gradient).abs().max()) / largest
    name = f"{nodes:,} tokens"
    return [
        MeasureRow(f"log-probabilities, {name}", apart, "nats", LOGP),
        MeasureRow(f"gradient, {name}", gradient, "of the largest", GRADIENT),
        MeasureRow(f"time of the tree, {name}", in_one.seconds, "s"),
        MeasureRow(f"time of each alone, {name}", alone.seconds, "s"),
        MeasureRow(f"memory of the tree, {name}", in_one.peak_gib, "GiB"),
        MeasureRow(f"memory of each alone, {name}", alone.peak_gib, "GiB"),
    ]


def _group(nodes: int, vocabulary: int) -> list[Marked]:
    """A group's responses to one prompt, which together make a tree of `nodes` tokens; the last token of each is not read."""
    draw = torch.Generator().manual_seed(0)
    prompt_length = nodes // (GROUP + 1)
    length = (nodes - prompt_length) // GROUP + 1
    prompt = tuple(torch.randint(vocabulary, (prompt_length,), generator=draw).tolist())
    responses = torch.randint(vocabulary, (GROUP, length), generator=draw)
    responses[:, 0] = torch.arange(GROUP)  # no two responses begin alike
    return [Marked.response(prompt, tuple(response.tolist())) for response in responses]


Passed = tuple[Tensor, Tensor, Metered]
"""Log-probabilities of all responses, the gradient of a weighted sum of them, and time and memory after a warm-up."""


def _packed(learner: Learner, texts: list[Marked], device: str) -> Passed:
    for _ in range(2):
        learner.begin_update()
        with measuring(device) as measured:
            found = [part.logp_T for part in learner.measure(texts)]
            sum((logp_T * _weights(len(logp_T))).sum() for logp_T in found).backward()  # type: ignore[union-attr]
    return torch.cat(found).detach(), _gradient(learner.parameters.values()), measured


def _dense(stock: Any, texts: list[Marked], device: str) -> Passed:
    for _ in range(2):
        stock.zero_grad()
        found = []
        with measuring(device) as measured:
            for text in texts:
                logits_TV = stock(torch.tensor([text.read], device=device), use_cache=False).logits[0]
                places = torch.tensor(list(text.places), device=device)
                tokens = torch.tensor([text.tokens[place] for place in text.places], device=device)
                logp_T = nn.functional.log_softmax(logits_TV[places - 1], -1).gather(-1, tokens[:, None])[:, 0]
                (logp_T * _weights(len(logp_T)).to(device)).sum().backward()
                found.append(logp_T.detach().cpu())
    return torch.cat(found), _gradient(stock.parameters()), measured


def _gradient(weights: Iterable[nn.Parameter]) -> Tensor:
    return torch.cat([weight.grad.flatten().cpu() for weight in weights if weight.grad is not None])


def _weights(count: int) -> Tensor:
    return torch.linspace(-1.0, 1.0, count) / count
