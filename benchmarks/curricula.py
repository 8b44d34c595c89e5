"""What a curriculum costs, and whether it resumes: `make bench-curricula`, or `python -m benchmarks.curricula`.

The schedule of a step at 4,096 prompts (which prompts come next, how many responses each gets, what their outcomes teach), in
processor seconds, beside sampling that step's responses with a random model of two layers. Any real model takes longer, and
updates come on top, so the share is an upper bound; at most 1% is aimed at. K-center picks a tenth of 100,000 embeddings, and near
duplicates are looked for among them: processor time, and the most memory beside the embeddings. Each state is taken through JSON in
the middle of a run, and the steps after it compared with those of a run that goes on.
"""

import argparse
import json
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.machine import describe
from trainer.config.sections.budget import Budget
from trainer.config.sections.order import Order
from trainer.curriculum import GroupSizes, Known, PassRates, PromptOrder
from trainer.selection import k_center, near_duplicates

GROUP, AIM = 8, 0.01


class Schedule:
    """All that a step asks of the curriculum. Outcomes are drawn by the true difficulty of each prompt."""

    def __init__(self, prompts: int, per_step: int) -> None:
        self._rates = PassRates(0.5)
        known = [Known(str(index), index % 11 / 10, frozenset()) for index in range(prompts)]
        mix = Order(data=2.0, easy_first=1.0, uncertain=1.0)
        self._order = PromptOrder(known, 0, True, mix, self._rates)
        self._sizes = GroupSizes(GROUP, Budget(low=2, high=32), self._rates)
        self._per_step = per_step

    def step(self, number: int) -> dict[str, int]:
        """The prompts of a step with the sizes of their groups."""
        keys = [str(index) for index in self._order.take(self._per_step)]
        sizes = dict(zip(keys, self._sizes.of(keys), strict=True))
        self._rates.learned(outcomes(number, sizes))
        return sizes

    def state_dict(self) -> dict[str, Any]:
        return {"order": self._order.state_dict(), "rates": self._rates.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._order.load_state_dict(state["order"])
        self._rates.load_state_dict(state["rates"])


def outcomes(number: int, sizes: dict[str, int]) -> dict[str, list[bool]]:
    """Of a policy that solves prompt i with chance (i mod 11) / 10."""
    draw = random.Random(number)  # noqa: S311 - a play, not a secret
    return {key: [draw.random() < int(key) % 11 / 10 for _ in range(size)] for key, size in sizes.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.curricula", description=__doc__)
    parser.add_argument("--prompts", type=int, default=4096, help="of a step")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--responses", type=int, default=64, help="that are sampled to know what one costs")
    parser.add_argument("--tokens", type=int, default=64, help="of each response")
    parser.add_argument("--examples", type=int, default=100_000, help="embeddings that K-center chooses from")
    parser.add_argument("--width", type=int, default=384, help="of an embedding")
    parser.add_argument("--picks", type=int, default=10_000)
    options = parser.parse_args()
    print(describe())
    scheduled = schedule_s(options.prompts, options.steps)
    sampled = sampling_s(options.responses, options.tokens) * options.prompts * GROUP
    share = scheduled / sampled
    covering, doubles = selection(options.examples, options.width, options.picks)
    print(f"schedule of a step at {options.prompts:,} prompts: {scheduled * 1e3:.1f} ms of processor time")
    print(
        f"sampling its {options.prompts * GROUP:,} responses with two random layers: {sampled:.1f} s, so {share:.3%} (aim: {AIM:.0%})"
    )
    for title, found in (
        (f"K-center, {options.picks:,} picks", covering),
        ("near duplicates by meaning", doubles),
    ):
        print(
            f"{title} among {options.examples:,} embeddings of {options.width} numbers: {found.seconds:.1f} s of processor time, "
            f"{found.megabytes:,.0f} MB beside the embeddings"
        )
    held = resumes(options.prompts)
    print(f"a schedule resumes bit for bit at each of {held} steps")
    results = {
        "curricula, schedule": {"ours": share, "peer": AIM, "unit": "of a step", "ratio": AIM / share},
        "curricula, K-center": {"ours": covering.seconds, "peer": None, "unit": "s", "ratio": None},
        "curricula, near duplicates": {"ours": doubles.seconds, "peer": None, "unit": "s", "ratio": None},
    }
    print(json.dumps(results))


def schedule_s(prompts: int, steps: int) -> float:
    """Processor seconds of a step's schedule, without drawing the outcomes; of the first pass and of those after it."""
    schedule = Schedule(2 * prompts, prompts)
    whole = measured(lambda: [schedule.step(number) for number in range(steps)])
    drawn = measured(lambda: [outcomes(number, {str(i): GROUP for i in range(prompts)}) for number in range(steps)])
    return (whole - drawn) / steps


def sampling_s(responses: int, tokens: int) -> float:
    """Processor seconds of one response of a random model of two layers."""
    from trainer.inference.local import LocalSampler
    from trainer.inference.models import load_model, load_tokenizer, make_tiny
    from trainer.inference.sampling import SampleRequest

    with tempfile.TemporaryDirectory() as folder:
        make_tiny(Path(folder) / "model")
        sampler = LocalSampler(load_model(Path(folder) / "model"), load_tokenizer(Path(folder) / "model"))
        asked = [
            SampleRequest(
                prompt_tokens=(1, 2, 3), max_new_tokens=tokens, temperature=1.0, top_p=1.0, stop=(), seed=seed
            )
            for seed in range(responses)
        ]
        sampler.sample(asked[:2])
        taken = measured(lambda: sampler.sample(asked))
        sampler.close()
    return taken / responses


class Cost(NamedTuple):
    seconds: float
    megabytes: float


def selection(examples: int, width: int, picks: int) -> tuple[Cost, Cost]:
    """Of K-center and of near duplicates, among random embeddings of which every tenth is nearly another one's copy."""
    draw = np.random.default_rng(0)
    embeddings = draw.standard_normal((examples, width), dtype=np.float32)
    copies = examples // 10
    embeddings[-copies:] = embeddings[:copies] + 0.01 * embeddings[-copies:]
    ppl = draw.uniform(1.0, 20.0, examples)
    return cost(lambda: k_center(embeddings, ppl, picks)), cost(lambda: near_duplicates(embeddings, 0.99))


def cost(work: Callable[[], object]) -> Cost:
    """Processor time, and the most memory that was allocated at once."""
    tracemalloc.start()
    seconds = measured(work)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Cost(seconds, most / 2**20)


def resumes(prompts: int, steps: int = 6) -> int:
    """How many steps were resumed at. Raises SystemExit where a resumed run differs from the whole one."""
    for stop in range(1, steps):
        *_, state = _states(prompts, stop)
        resumed, whole = Schedule(2 * prompts, prompts), Schedule(2 * prompts, prompts)
        resumed.load_state_dict(json.loads(json.dumps(state)))
        expected = [whole.step(number) for number in range(steps)][stop:]
        if [
            resumed.step(number) for number in range(stop, steps)
        ] != expected or resumed.state_dict() != whole.state_dict():
            raise SystemExit(f"a run that is resumed after step {stop} differs from the whole one")
    return steps - 1


def _states(prompts: int, steps: int) -> Iterator[dict[str, Any]]:
    schedule = Schedule(2 * prompts, prompts)
    for number in range(steps):
        schedule.step(number)
        yield schedule.state_dict()


def measured(work: Callable[[], object]) -> float:
    """Processor seconds of this process: other work on the machine does not count."""
    before = time.process_time()
    work()
    return time.process_time() - before


if __name__ == "__main__":
    main()
