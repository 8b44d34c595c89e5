"""Attention over a prefix tree beside a mask of all nodes by all nodes, and beside each response alone: `python -m
benchmarks.tree_attention`.

One forward and backward pass over a prompt with its responses, by a model of SmolLM2-135M's shape with fewer layers and random weights.
`tree`: as runs compute it (trainer/inference/tree_attention.py). `mask`: the same tree with one boolean mask, repeated for the heads that
share keys, as it was before. `alone`: no tree, every response after its own copy of the prompt, padded, as in trainers without a tree. Each
runs in its own process; the table has seconds and CPU seconds of the second of two passes, and peak memory beyond what the process held
before. Loss and gradients are compared with those of `alone`: the largest difference, as a part of the largest gradient of the same tensor.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.machine import describe
from benchmarks.trainer_side import DEVICE, peak_mib, reset_peak
from trainer.inference.attention import use_grouped_attention
from trainer.inference.prefix import PrefixTree
from trainer.loops.learner.head import log_probs

SIDES = ("tree", "mask", "alone")
Taken = dict[str, float]


def main() -> None:
    options = _options()
    if options.side:
        print(json.dumps(measure(options)))
        return
    print(f"{describe()}, torch {torch.__version__} on {DEVICE}")
    results: dict[str, Any] = {}
    for nodes in options.nodes:
        with tempfile.TemporaryDirectory() as folder:
            files = {side: Path(folder) / f"{side}.safetensors" for side in SIDES}
            taken = {side: _in_own_process(options, side, nodes, file) for side, file in files.items()}
            apart = {side: difference(load_file(files[side]), load_file(files["alone"])) for side in SIDES}
        results |= _report(options, nodes, taken, apart)
    print(json.dumps(results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tree_attention", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[2048, 8192], help="a quarter of them is the prompt")
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64", "bfloat16"))
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_own_process(options: argparse.Namespace, side: str, nodes: int, file: Path) -> Taken:
    command = [sys.executable, "-m", "benchmarks.tree_attention", "--side", side, "--file", str(file)]
    command += ["--nodes", str(nodes), "--group", str(options.group), "--layers", str(options.layers)]
    done = subprocess.run([*command, "--dtype", options.dtype], check=True, stdout=subprocess.PIPE, text=True)
    taken: Taken = json.loads(done.stdout.splitlines()[-1])
    return taken


def measure(options: argparse.Namespace) -> Taken:
    """Seconds, processor seconds and MiB of one pass; its loss and gradients go to the file."""
    model = _model(options.layers, getattr(torch, options.dtype))
    prompt, responses = _tokens(options.nodes[0], options.group)
    passes: dict[str, Callable[..., Tensor]] = {"tree": _by_tree, "mask": _by_mask, "alone": _alone}
    for _ in range(2):  # the first one warms up
        model.zero_grad()
        reset_peak()
        held, began, used = peak_mib(), time.perf_counter(), time.process_time()
        loss = passes[options.side](model, prompt, responses)
        loss.backward()
        taken = {"s": time.perf_counter() - began, "cpu_s": time.process_time() - used, "mib": peak_mib() - held}
    save_file(
        {"loss": loss.detach()} | {n: p.grad for n, p in model.named_parameters() if p.grad is not None}, options.file
    )
    return taken


def difference(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """The largest difference over all tensors, each as a part of the largest number of the tensor."""
    pairs = ((one[name].double(), other[name].double()) for name in other)
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


def _model(layers: int, dtype: torch.dtype) -> Any:
    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
    }
    config = LlamaConfig(**shape, num_hidden_layers=layers, vocab_size=4096, max_position_embeddings=65536)
    model: Any = LlamaForCausalLM(config)
    return model.to(DEVICE, dtype).eval()


def _tokens(nodes: int, group: int) -> tuple[list[int], list[list[int]]]:
    prompt, each = nodes // 4, (nodes - nodes // 4) // group + 1  # the last token of a response is never read
    drawn = torch.randint(4096, (prompt + group * each,), generator=torch.Generator().manual_seed(1)).tolist()
    return drawn[:prompt], [drawn[prompt + i * each : prompt + (i + 1) * each] for i in range(group)]


def _by_tree(model: Any, prompt: list[int], responses: list[list[int]], dense: bool = False) -> Tensor:
    use_grouped_attention(model)
    tree = PrefixTree.of([[*prompt, *response[:-1]] for response in responses]).to(model.device)
    inputs = tree.model_inputs()
    if dense:
        inputs["attention_mask"] = inputs.pop("tree").dense()[None, None]
    hidden_ND = model.model(**inputs, use_cache=False).last_hidden_state[0]
    return _loss(model, hidden_ND[torch.cat([path[len(prompt) - 1 :] for path in tree.paths])], responses)


def _by_mask(model: Any, prompt: list[int], responses: list[list[int]]) -> Tensor:
    return _by_tree(model, prompt, responses, dense=True)


def _alone(model: Any, prompt: list[int], responses: list[list[int]]) -> Tensor:
    tokens = torch.tensor([[*prompt, *response[:-1]] for response in responses], device=model.device)
    hidden_BTD = model.model(input_ids=tokens, use_cache=False).last_hidden_state
    return _loss(model, hidden_BTD[:, len(prompt) - 1 :].flatten(0, 1), responses)


def _loss(model: Any, hidden_MD: Tensor, responses: list[list[int]]) -> Tensor:
    tokens_M = torch.tensor([token for response in responses for token in response], device=model.device)
    return -log_probs(hidden_MD, model.lm_head.weight, tokens_M, 1.0)[0].mean()


def _report(
    options: argparse.Namespace, nodes: int, taken: dict[str, Taken], apart: dict[str, float]
) -> dict[str, Any]:
    print(
        f"\n{nodes} tokens: a prompt of {nodes // 4} and {options.group} responses, {options.layers} layers, {options.dtype}"
    )
    print(f"{'':28}" + "".join(f"{side:>12}" for side in SIDES))
    rows = {"s": "seconds", "cpu_s": "processor seconds", "mib": "memory of the pass, MiB"}
    entries: dict[str, Any] = {}
    for key, what in rows.items():
        print(f"{what:28}" + "".join(f"{taken[side][key]:12.2f}" for side in SIDES))
        ours, peer = taken["tree"][key], taken["mask"][key]
        entries[f"tree attention, {nodes} tokens, {what}"] = {
            "ours": round(ours, 2),
            "peer": round(peer, 2),
            "unit": "peer: a mask",
            "ratio": round(ours / peer, 2),
        }
    print(f"{'apart from alone, at most':28}" + "".join(f"{apart[side]:12.1e}" for side in SIDES))
    return entries


if __name__ == "__main__":
    main()
