"""Products of the shapes of SmolLM2-135M by MKL and by oneDNN: `python -m benchmarks.products`.

Float32, one thread, in its CPU seconds, so that other work on the machine matters little: an eighth of the calls was faster than
the shown time. `MKL` is torch's choice. `oneDNN` gets the same matrix, `laid out` the copy that the sampler makes of it
(trainer/inference/products.py). 32 rows are a step of decoding, 800 a pass of training.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.machine import describe
from trainer.inference.products import laid_out, product

SHAPES = {"queries": (576, 576), "gate": (1536, 576), "down": (576, 1536), "head": (49152, 576)}
ROWS = (32, 800)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.products", description=__doc__)
    parser.add_argument("--calls", type=int, default=60, help="of each, an eighth of it for the head")
    calls = parser.parse_args().calls
    torch.set_num_threads(1)
    print(f"{describe()}, torch {torch.__version__}, GFLOP/s of one thread")
    print(f"{'matrix, rows':24}{'MKL':>8}{'oneDNN':>8}{'laid out':>10}")
    results = {}
    for name, (wide, deep) in SHAPES.items():
        for rows in ROWS if name != "head" else (32, 256):
            counted = max(4, calls // 8) if name == "head" else calls
            mkl, plain, ready = rates(rows, wide, deep, counted)
            print(f"{f'{name}, {rows}':24}{mkl:8.0f}{plain:8.0f}{ready:10.0f}")
            results[f"product {name} {rows}"] = {
                "ours": round(ready if rows == 32 else plain, 1),
                "peer": round(mkl, 1),
                "unit": "GFLOP/s, peer: MKL",
                "ratio": round((ready if rows == 32 else plain) / mkl, 2),
            }
    print(json.dumps(results))


@torch.no_grad()
def rates(rows: int, wide: int, deep: int, calls: int) -> tuple[float, float, float]:
    """GFLOP/s by MKL, by oneDNN, and by oneDNN with the matrix laid out for it."""
    # Several matrices, as a model has them: a single one would stay in the CPU's cache.
    linears = [nn.Linear(deep, wide, bias=False) for _ in range(1 if wide > 10_000 else 8)]
    layers = nn.ModuleList(linears)
    x = torch.randn(rows, deep)
    flops = 2.0 * rows * wide * deep / 1e9
    weights = [layer.weight for layer in linears]
    mkl = _seconds([partial(nn.functional.linear, x, weight) for weight in weights], calls)
    plain = _seconds([partial(product, x, weight) for weight in weights], calls)
    with laid_out(layers, rows):
        ready = _seconds([partial(layer, x) for layer in layers], calls)
    return flops / mkl, flops / plain, flops / ready


def _seconds(products: list[Callable[[], Tensor]], calls: int) -> float:
    taken = []
    for call in range(calls):
        started = time.thread_time()
        products[call % len(products)]()
        taken.append(time.thread_time() - started)
    return sorted(taken)[calls // 8]


if __name__ == "__main__":
    main()
