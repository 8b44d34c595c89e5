"""The judge that comes with the product: how fast it is, and how often right. `python -m benchmarks.local_judges`.

Speed (the default): criteria per second of the logit judge, ten criteria to an answer, against one generation per
criterion with the same model in the same process, in turns. The peer is asked for a reason and a verdict, as a judge that
generates is, one call after the other with `generate` of transformers. Two others are harder to beat: a
generation of the verdict's single word, and our own sampler, which shares prompts too and decodes 20 generations at once.

`--accuracy`: verifiers, logit judge and matcher on the shared data, beside chance and majority. `--save FILE` keeps the
threshold that is measured on the way.
"""

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import describe
from trainer.contracts import Message, jsonlines
from trainer.inference.chat import encode_prompt
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer, prepare_smollm2
from trainer.inference.sampling import SampleRequest
from trainer.judges.local import ONE_WORD
from trainer.logit_judge.answering import Answering
from trainer.logit_judge.calls import criterion_messages
from trainer.logit_judge.judge import LogitJudge

SHARED = Path(os.environ.get("TOUCHSTONE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
DEMO = Path(__file__).parents[1] / "demo"
CRITERIA = 10  # of an answer
ANSWERS = 2  # judged in a round
WITH_REASON, WORD = 48, 3  # new tokens at most


@dataclass(frozen=True)
class AnswerCase:
    """An answer with its criteria."""

    conversation: tuple[Message, ...]
    response: str
    criteria: tuple[str, ...]

    def asked(self, extra: str) -> list[tuple[Message, ...]]:
        every = (criterion_messages(self.conversation, self.response, text) for text in self.criteria)
        return [(*before, Message(role=last.role, content=last.content + extra)) for *before, last in every]


def cases() -> list[AnswerCase]:
    """Criteria of the demo on answers of some 150 words, made from its references: only the speed counts here."""
    rows = jsonlines.rows((DEMO / "prompts.jsonl").read_text())
    texts = list(dict.fromkeys(criterion["text"] for row in rows for criterion in row["rubric"]["criteria"]))
    references = [row["reference"] for row in rows if row.get("reference")]
    made = []
    for number, row in enumerate(rows[:12]):
        response = " ".join(itertools.islice(itertools.cycle(references), number * 3, number * 3 + 9))
        conversation = tuple(Message(**message) for message in row["prompt"])
        made.append(AnswerCase(conversation, response, tuple(texts[number * 5 : number * 5 + CRITERIA])))
    return made


class JudgingSide:
    """One way to judge, and the time it took."""

    def __init__(self, name: str, judge: Callable[[Sequence[tuple[int, ...]]], Any], extra: str, calls: int) -> None:
        self.name, self.extra, self.calls = name, extra, calls
        self._judge = judge
        self.criteria, self.seconds = 0, 0.0

    def take(self, prompts: Sequence[tuple[int, ...]], *, counted: bool) -> None:
        started = time.perf_counter()
        self._judge(prompts[: self.calls])
        if counted:
            self.seconds += time.perf_counter() - started
            self.criteria += len(prompts[: self.calls])

    @property
    def rate(self) -> float:
        return self.criteria / self.seconds


def speed(model: Path, rounds: int) -> list[JudgingSide]:
    """In each round each side judges the same answers (the slow ones only their first criteria); the first round warms up."""
    tokenizer = load_tokenizer(model)
    ours, plain = load_model(model), load_model(model).eval()
    logit, sampler = LogitJudge(ours, tokenizer), LocalSampler(ours, tokenizer)

    def generate(longest: int) -> Callable[[Sequence[tuple[int, ...]]], None]:
        def judge(prompts: Sequence[tuple[int, ...]]) -> None:
            for prompt in prompts:
                ids = torch.tensor([prompt])
                mask = torch.ones_like(ids)
                plain.generate(ids, attention_mask=mask, max_new_tokens=longest, do_sample=False, pad_token_id=0)

        return judge

    def sampled(prompts: Sequence[tuple[int, ...]]) -> None:
        sampler.sample([SampleRequest(prompt, WITH_REASON, temperature=0.0) for prompt in prompts])

    whole = ANSWERS * CRITERIA
    sides = [
        JudgingSide("logit judge", logit.read, ONE_WORD, whole),
        JudgingSide("generate, reason and verdict", generate(WITH_REASON), "", 2),
        JudgingSide("generate, one word", generate(WORD), ONE_WORD, 4),
        JudgingSide("our sampler, reason and verdict", sampled, "", whole),
    ]
    made = cases()
    for number in range(rounds + 1):
        these = [made[(number * ANSWERS + k) % len(made)] for k in range(ANSWERS)]
        for side in sides:
            prompts = [encode_prompt(tokenizer, messages) for case in these for messages in case.asked(side.extra)]
            side.take(prompts, counted=number > 0)
    return sides


def accuracy(options: argparse.Namespace) -> None:
    from benchmarks.judge_accuracy import HEAD, AccuracyRow, logit, matcher, verifiers

    answering = Answering(options.model)
    print(
        f"{answering.name}, {answering.digest[:12]}; at most {options.sample} pairs of a data set, seed {options.seed}"
    )
    print(HEAD)
    rows: list[AccuracyRow] = [verifiers(options.shared, options.seed)]
    print(rows[0], flush=True)
    for row in matcher(options.shared, options.seed):
        rows.append(row)
        print(row, flush=True)
    calibration = logit(answering, options.shared, options.sample, options.seed, rows)
    print(f"threshold on the margin: {calibration.threshold:.3f}, balanced accuracy {calibration.balanced_accuracy}")
    if options.save:
        calibration.save(options.save)
    print(json.dumps({row.what: asdict(row.right) | {"majority": row.majority} for row in rows}))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local_judges", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--rounds", type=int, default=3, help="of the speed measurement")
    parser.add_argument("--accuracy", action="store_true", help="on the shared data, instead of speed")
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of the shared data")
    parser.add_argument("--sample", type=int, default=100, help="pairs of a data set at most")
    parser.add_argument("--seed", type=int, default=0, help="of samples, halves and intervals")
    parser.add_argument("--save", type=Path, help="where the calibration goes")
    options = parser.parse_args()
    prepare_smollm2(options.model)
    if options.accuracy:
        if not options.shared.is_dir():
            parser.error(f"no shared data at {options.shared}; name their folder with --shared or TOUCHSTONE_SHARED")
        accuracy(options)
        return
    sides = speed(options.model, options.rounds)
    print(f"{describe()}, torch {torch.__version__} with {torch.get_num_threads()} threads")
    print(
        f"{options.model.name}, float32, {CRITERIA} criteria to an answer, at most {WITH_REASON} or {WORD} new tokens"
    )
    ours, peer = sides[0].rate, sides[1].rate
    for side in sides:
        print(f"{side.name:34}{side.rate:8.2f} criteria/s   ours is {ours / side.rate:6.1f} times as fast")
    found = {"ours": round(ours, 2), "peer": round(peer, 3), "unit": "criteria/s", "ratio": round(ours / peer, 1)}
    print(json.dumps({"judges.logit": found}))


if __name__ == "__main__":
    main()
