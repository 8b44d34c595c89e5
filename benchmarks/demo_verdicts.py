"""Verdicts of verifiers on the model's own answers to the demo's prompts, for `python -m trainer judge-calibrate`:
`python -m benchmarks.demo_verdicts --out var/demo-verdicts.jsonl`.

The criteria are those of `benchmarks.judged_rubrics`: points for content, for sentences, for words. Only prompts of the demo's
training side are answered; `benchmarks.judged_rubrics`, which measures the threshold, leaves out the half of them that chooses it.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.judged_rubrics import demo, truth_of
from trainer.contracts import Example
from trainer.inference.chat import encode_prompt
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer, prepare_smollm2
from trainer.inference.sampling import SampleRequest
from trainer.rubrics import score_rubric
from trainer.seeding import derive_seed

LONGEST, TEMPERATURE = 40, 0.8  # as the demo's run samples


def answers(model: Path, rows: list[Example], each: int) -> Iterator[tuple[Example, str]]:
    tokenizer = load_tokenizer(model)
    asked = [
        (
            row,
            SampleRequest(encode_prompt(tokenizer, row.prompt), LONGEST, TEMPERATURE, seed=derive_seed(0, row.key, n)),
        )
        for row in rows
        for n in range(each)
    ]
    results = LocalSampler(load_model(model), tokenizer).sample([request for _, request in asked])
    for (row, _), result in zip(asked, results, strict=True):
        yield row, result.text


def verdicts(row: Example, response: str) -> Iterator[dict[str, Any]]:
    """A line per criterion that a verifier decides."""
    rubric = truth_of(row)
    conversation = [{"role": message.role, "content": message.content} for message in row.prompt]
    for criterion, verdict in zip(rubric.criteria, score_rubric(rubric, response).verdicts, strict=True):
        if verdict.met is not None:
            yield {
                "conversation": conversation,
                "response": response,
                "criterion": criterion.text,
                "met": verdict.met,
                "item": row.key,
            }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.demo_verdicts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--answers", type=int, default=2, help="to each prompt")
    parser.add_argument("--out", type=Path, default=Path("var/demo-verdicts.jsonl"))
    options = parser.parse_args()
    prepare_smollm2(options.model)
    rows = [row for row in demo() if row.split == "train" and truth_of(row).criteria]
    found = [
        line for row, response in answers(options.model, rows, options.answers) for line in verdicts(row, response)
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("".join(json.dumps(line) + "\n" for line in found))
    met = sum(line["met"] for line in found)
    print(f"{options.out}: {len(found):,} verdicts on answers to {len(rows)} prompts, {met:,} met")


if __name__ == "__main__":
    main()
