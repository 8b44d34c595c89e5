"""The cost of records of responses for a step, per token: `python -m benchmarks.records`.

P prompts x G responses of T random tokens go through `RunMonitor.rollouts` into a file, as a step of recipe `policy` records them:
behind the training thread, as in runs, and in it, for comparison. Printed are CPU seconds of the training thread, and of
the whole process, which writes in either case; other work on the machine does not count.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from benchmarks.machine import describe
from trainer.inference.models import load_tokenizer, prepare_smollm2
from trainer.inference.sampling import SampleResult
from trainer.loops.policy.reports import rollout_records, token_by_token
from trainer.loops.policy.token_texts import TokenTexts
from trainer.loops.policy.update import UpdateReport
from trainer.monitors import RunMonitor, Spool
from trainer.rollouts import PromptPlan, Reward, Trajectory


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records", description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=512, help="of each response")
    parser.add_argument("--rounds", type=int, default=3, help="steps that are measured; one before them is not")
    options = parser.parse_args()
    prepare_smollm2(options.model)
    texts = TokenTexts(load_tokenizer(options.model))
    trajectories, report = step(options.prompts, options.group, options.tokens, len(texts.tokenizer))
    made = partial(rollout_records, trajectories, texts, "train", torch.zeros(len(trajectories)), report)
    few = partial(made, partial(token_by_token, share=0.1, first=0))
    print(describe())
    count = len(trajectories) * options.tokens
    results = {}
    for name, tell in (
        ("in the training thread", lambda monitor: monitor.rollouts(1, made())),
        ("behind it", lambda monitor: monitor.rollouts(1, made)),
        ("behind it, rollout.token_records 0.1", lambda monitor: monitor.rollouts(1, few)),
    ):
        own, whole = measured(tell, options.rounds)
        results[name] = own / count * 1e6
        print(
            f"{name}: {own / count * 1e6:.3f} us a token of the training thread, {whole / count * 1e6:.2f} of the process"
        )
    behind, inside = results["behind it"], results["in the training thread"]
    print(json.dumps({"records": {"ours": behind, "peer": inside, "unit": "us a token", "ratio": inside / behind}}))


def step(prompts: int, group: int, tokens: int, vocabulary: int) -> tuple[list[Trajectory], UpdateReport]:
    """Responses of random tokens, and a report like that of an update."""
    draw = random.Random(0)  # noqa: S311 - tokens to write down
    report, found = UpdateReport(), []
    for place in range(prompts * group):
        response = tuple(draw.randrange(vocabulary) for _ in range(tokens))
        plan = PromptPlan("key", place // group, place % group, "A prompt.", response[:32], response[:32], 0)
        result = SampleResult(response, tuple(-draw.random() for _ in response), "A text.", "length", 0)
        found.append(Trajectory.of(plan, result, Reward(1.0)))
        report.ratio[place], report.weight[place] = torch.rand(tokens), torch.ones(tokens)
    return found, report


def measured(tell: Callable[[RunMonitor], None], rounds: int) -> tuple[float, float]:
    """CPU seconds a round: of this thread until it may continue, and of the process until all is written."""
    own = whole = 0.0
    with tempfile.TemporaryDirectory() as folder:
        monitor = RunMonitor(Spool(Path(folder) / "events.jsonl"))
        for turn in range(rounds + 1):
            thread, process = time.thread_time(), time.process_time()
            tell(monitor)
            told = time.thread_time() - thread
            monitor.flush()
            if turn:
                own, whole = own + told, whole + time.process_time() - process
        monitor.close()
    return own / rounds, whole / rounds


if __name__ == "__main__":
    main()
