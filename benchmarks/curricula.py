"""The cost of a curriculum, and whether it resumes: `make bench-curricula`, or `python -m benchmarks.curricula`.

The schedule of a step at 4,096 prompts (which prompts come next, how many responses each gets, what their outcomes teach), in
CPU seconds, beside sampling that step's responses with a random model of two layers. Any real model takes longer, and
updates come on top, so the share is an upper bound; the aim is at most 1%. K-center picks a tenth of 100,000 embeddings, and near
duplicates are looked for among them: CPU time, and the most memory beside the embeddings. The states of orders, pass rates and
phases go through JSON after each of some steps, and the steps after that are compared with those of a run that continues.

Each line is printed when it is known, with its wall time, so that an interrupted command has printed what it had.
"""

import argparse
import json
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.machine import describe
from trainer.config.sections.budget import Budget
from trainer.config.sections.order import Order
from trainer.config.sections.phase_kinds import RewardedPhase
from trainer.curriculum import GroupSizes, KnownPrompt, PassCounts, PromptOrder
from trainer.curriculum.schedule import Schedule as Phases
from trainer.selection import k_center, near_duplicates

GROUP, AIM = 8, 0.01
PHASES = (
    {"begins": "step", "step": 2, "lengths": "toggle"},
    {"begins": "pass_rate", "window": 4, "pass_rate": 0.1, "temperature": "set", "set_to": 1.2},
    {"begins": "step", "step": 5, "order": "easy_first"},
)


class WholeCurriculum:
    """Everything that a step asks of the curriculum. Outcomes are drawn by the true difficulty of each prompt."""

    def __init__(self, prompts: int, per_step: int) -> None:
        self._rates = PassCounts(0.5)
        known = [KnownPrompt(str(index), index % 11 / 10, frozenset()) for index in range(prompts)]
        mix = Order(data=2.0, easy_first=1.0, uncertain=1.0)
        self._order = PromptOrder(known, 0, True, mix, self._rates)
        self._sizes = GroupSizes(GROUP, Budget(low=2, high=32), self._rates)
        self._phases = Phases([RewardedPhase.model_validate(each) for each in PHASES])
        self._per_step = per_step

    def step(self, number: int) -> dict[str, int]:
        """The prompts of a step with the sizes of their groups."""
        keys = [str(index) for index in self._order.take(self._per_step)]
        sizes = dict(zip(keys, self._sizes.of(keys), strict=True))
        found = outcomes(number, sizes)
        self._rates.learned(found)
        self._pass_phases(number + 1, found)
        return sizes

    def _pass_phases(self, step: int, found: dict[str, list[bool]]) -> None:
        """Note the phases' inputs of a step; steps of a run count from 1. The length budget of a prompt is made up; a run takes it from its
        responses.
        """
        while phase := self._phases.due(step):
            self._phases.begin(step, phase.sampled_at)
            if phase.mix:
                self._order.blend(*self._phases.mix)
        if self._phases.in_budget(step):
            for key, passed in found.items():
                self._phases.budgets.setdefault(key, float(len(passed)))
        self._phases.note([float(each) for passed in found.values() for each in passed])

    def state_dict(self) -> dict[str, Any]:
        return {each: getattr(self, f"_{each}").state_dict() for each in ("order", "rates", "phases")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for each, held in state.items():
            getattr(self, f"_{each}").load_state_dict(held)


def outcomes(number: int, sizes: dict[str, int]) -> dict[str, list[bool]]:
    """Outcomes of a policy that solves prompt i with probability (i mod 11) / 10."""
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
    print(describe(), flush=True)
    tell = LineClock()
    scheduled = schedule_s(options.prompts, options.steps)
    tell(f"schedule of a step at {options.prompts:,} prompts: {scheduled * 1e3:.1f} ms of processor time")
    sampled = sampling_s(options.responses, options.tokens) * options.prompts * GROUP
    share = scheduled / sampled
    tell(
        f"sampling its {options.prompts * GROUP:,} responses with two random layers, from {options.responses} of them: {sampled:.1f} s, "
        f"so {share:.3%} (aim: {AIM:.0%})"
    )
    held = resumes(options.prompts)
    tell(f"a schedule resumes bit for bit at each of {held} steps")
    embeddings, ppl = examples(options.examples, options.width)
    among = f"among {options.examples:,} embeddings of {options.width} numbers"
    covering = cost(lambda: k_center(embeddings, ppl, options.picks))
    tell(f"K-center, {options.picks:,} picks {among}: {covering}")
    doubles = cost(lambda: near_duplicates(embeddings, 0.99))
    tell(f"near duplicates by meaning {among}: {doubles}")
    results = {
        "curricula, schedule": {"ours": 100 * share, "peer": 100 * AIM, "unit": "% of a step", "ratio": AIM / share},
        "curricula, K-center": {"ours": covering.seconds, "peer": None, "unit": "s", "ratio": None},
        "curricula, near duplicates": {"ours": doubles.seconds, "peer": None, "unit": "s", "ratio": None},
    }
    print(json.dumps(results))


class LineClock:
    """Prints a line with the seconds since the one before it."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, line: str) -> None:
        now = time.monotonic()
        print(f"{line} [{now - self._last:.0f} s by the clock]", flush=True)
        self._last = now


def schedule_s(prompts: int, steps: int) -> float:
    """CPU seconds of a step's schedule, without drawing the outcomes, in the first pass and in later ones."""
    schedule = WholeCurriculum(2 * prompts, prompts)
    whole = measured(lambda: [schedule.step(number) for number in range(steps)])
    drawn = measured(lambda: [outcomes(number, {str(i): GROUP for i in range(prompts)}) for number in range(steps)])
    return (whole - drawn) / steps


def sampling_s(responses: int, tokens: int) -> float:
    """CPU seconds of one response of a random model of two layers."""
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

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s of processor time, {self.megabytes:,.0f} MB beside the embeddings"


def examples(count: int, width: int) -> tuple[Any, Any]:
    """Random embeddings, of which every tenth is nearly a copy of another, and perplexities."""
    draw = np.random.default_rng(0)
    embeddings = draw.standard_normal((count, width), dtype=np.float32)
    copies = count // 10
    embeddings[-copies:] = embeddings[:copies] + 0.01 * embeddings[-copies:]
    return embeddings, draw.uniform(1.0, 20.0, count)


def cost(work: Callable[[], object]) -> Cost:
    """CPU time, and the most memory that was allocated at once."""
    tracemalloc.start()
    seconds = measured(work)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Cost(seconds, most / 2**20)


def resumes(prompts: int, steps: int = 6) -> int:
    """The number of steps after which a run was resumed. Raises SystemExit if a resumed run differs from the whole one."""
    whole = WholeCurriculum(2 * prompts, prompts)
    expected, states = [], []
    for number in range(steps):
        expected.append(whole.step(number))
        states.append(json.dumps(whole.state_dict()))
    for stop in range(1, steps):
        resumed = WholeCurriculum(2 * prompts, prompts)
        resumed.load_state_dict(json.loads(states[stop - 1]))
        again = [resumed.step(number) for number in range(stop, steps)]
        if again != expected[stop:] or json.dumps(resumed.state_dict()) != states[-1]:
            raise SystemExit(f"a run that is resumed after step {stop} differs from the whole one")
    return steps - 1


def measured(work: Callable[[], object]) -> float:
    """CPU seconds of this process: other work on the machine does not count."""
    before = time.process_time()
    work()
    return time.process_time() - before


if __name__ == "__main__":
    main()
