"""Is a sampler in int8 faster on this CPU, and how far is it from the trained model? `python -m benchmarks.int8`.

Every linear layer but the head computes in another arithmetic: bfloat16; int8 weights and inputs with a scale for each row (W8A8, Dettmers
et al. 2022, section 2, without outliers); int8 weights and inputs in two parts of eight bits, where the second is the remainder of the
first (W8A16). The table has CPU microseconds of one product of the model's widest layer, for rows of a decoding step and of a prompt, and
the mean distance (nats) of log-probabilities of a fixed answer from those in float32. `sampler.precision: int8` samples with the first of
the two in int8: see docs/efficiency.md.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.machine import describe
from trainer.contracts import Message
from trainer.inference.chat import encode_prompt
from trainer.inference.models import load_model, load_tokenizer, prepare_smollm2
from trainer.inference.quantised import WholeLinear, in_whole_numbers
from trainer.loops.learner.learner import Marked, Teacher

ROWS = (32, 512)
QUESTION = "Why does the daytime sky look blue?"
ANSWER = "Air scatters the short blue waves of sunlight far more than the long red ones, so blue reaches our eyes from every side."


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.int8", description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, help="of the products that are timed")
    options = parser.parse_args()
    prepare_smollm2(options.model)
    print(f"{describe()}, torch {torch.__version__} with {torch.get_num_threads()} threads")
    results: dict[str, Any] = {}
    with torch.inference_mode():
        for rows in options.rows:
            took = products(load_model(options.model, "float32").config, rows)
            print(f"{rows} rows: " + ", ".join(f"{name} {found:.0f} us" for name, found in took.items()), flush=True)
            results |= {
                f"product, {rows} rows, {name}": _entry(found, took["float32"], "us") for name, found in took.items()
            }
        exact_T = logprobs(load_model(options.model, "float32"), options.model)
        for name, model in others(options.model):
            moved = float((logprobs(model, options.model) - exact_T).abs().mean())
            print(f"{name}: log-probabilities of {len(exact_T)} tokens move by {moved:.4f} in the mean", flush=True)
            results[f"mismatch, {name}"] = {"ours": moved, "peer": None, "unit": "nats", "ratio": None}
    print(json.dumps(results))


def products(config: Any, rows: int) -> dict[str, float]:
    """CPU microseconds, the least of some tries."""
    plain = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
    x_NI = torch.randn(rows, config.hidden_size)
    wide, narrow = plain.weight, plain.weight.bfloat16()
    one, two = WholeLinear(plain), WholeLinear(plain, parts=2)
    ways: dict[str, Callable[[], Any]] = {
        "float32": lambda: nn.functional.linear(x_NI, wide),
        "bfloat16": lambda: nn.functional.linear(x_NI.bfloat16(), narrow),
        "W8A8": lambda: one(x_NI),
        "W8A16": lambda: two(x_NI),
    }
    return {name: _least(way) for name, way in ways.items()}


def _least(way: Callable[[], Any], calls: int = 10) -> float:
    found = []
    for _ in range(6):
        began = time.process_time()
        for _ in range(calls):
            way()
        found.append((time.process_time() - began) / calls * 1e6)
    return min(found)


def others(folder: Path) -> Any:
    """(name, model), one after the other."""
    yield "bfloat16", load_model(folder, "bfloat16")
    for name, parts in (("W8A8", 1), ("W8A16", 2)):
        yield name, in_whole_numbers(load_model(folder, "float32"), "int8", parts)


def logprobs(model: Any, folder: Path) -> Tensor:
    """[T] of the answer's tokens."""
    tokenizer = load_tokenizer(folder)
    prompt = tuple(encode_prompt(tokenizer, [Message(role="user", content=QUESTION)]))
    answer = tuple(tokenizer(ANSWER, add_special_tokens=False)["input_ids"])
    return Teacher(model).measure([Marked.response(prompt, answer)], 1.0)[0].float()


def _entry(ours: float, peer: float, unit: str) -> dict[str, Any]:
    return {"ours": round(ours), "peer": round(peer), "unit": unit, "ratio": round(peer / ours, 2)}


if __name__ == "__main__":
    main()
