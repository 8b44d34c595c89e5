"""`python -m trainer rollouts`: the responses of a run, as examples that can be trained on."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from trainer.contracts import Example, RolloutRecord, RunEvent
from trainer.contracts.rollout_examples import (
    LEFT_OUT,
    FilterStep,
    SampledResponse,
    WantedResponses,
    filter_responses,
    gather,
)
from trainer.rewards.rejection import form_fault, problems, share_right


def rollouts(arguments: list[str]) -> int:
    """The responses of a run with their rewards, one example per prompt, as JSON Lines on standard output.

    Filters work in one order, and each prints its count; --preview shows the cases instead of writing anything.
    Exit status 0: written; 1: no response is left; 2: a file or an option that cannot be read.
    """
    options = _options(arguments)
    wanted = _wanted(options)
    try:
        examples = {example.key: example for example in _examples(options.data)}
        sampled, fault = _sampled(options.run / "events.jsonl", wanted), form_fault(wanted)
        kept, steps = filter_responses(sampled, examples, wanted, fault)
        if options.preview:
            _show(len(sampled), steps, options.preview)
            return 0 if kept else 1
        found = gather(sampled, examples, wanted, options.name or options.run.name, fault)
    except (OSError, ValidationError) as error:
        print(error, file=sys.stderr)
        return 2
    for example in found.examples:
        print(example.canonical())
    for line in _counts(len(sampled), steps):
        print(line, file=sys.stderr)
    left_out = f"; left out: {found.left_out_words}" if found.left_out else ""
    print(f"{found.words}{left_out}", file=sys.stderr)
    return 0 if found.examples else 1


def _counts(sampled: int, steps: Sequence[FilterStep]) -> Iterator[str]:
    yield f"{sampled:>10,}  sampled"
    for step in steps:
        yield f"{step.stayed:>10,}  after leaving out {len(step.left_out):,} {LEFT_OUT[step.key]}  [{step.key}]"


def _show(sampled: int, steps: Sequence[FilterStep], most: int) -> None:
    """Print the counts and, below each, the first cases."""
    counts = _counts(sampled, steps)
    print(next(counts))
    for line, step in zip(counts, steps, strict=True):
        print(line)
        for each, why in step.left_out[:most]:
            print(f"{'':12}{each.example_key} {each.id}: {why} | {' '.join(each.text.split())[:80]}")


def _wanted(options: argparse.Namespace) -> WantedResponses:
    wanted = WantedResponses(
        phase=options.phase,
        first=options.first,
        last=options.last,
        best=options.best,
        least=options.least,
        whole=options.whole,
        shortest=options.shortest,
        form=options.form or "",
        form_of=options.form_of,
        correct=options.correct,
        part=options.part,
        protocol=options.protocol,
        protocol_part=options.protocol_part,
        without=tuple(options.without),
    )
    if found := list(problems(wanted)):
        raise SystemExit("\n".join(f"--{path.replace('_', '-')}: {why}" for path, why in found))
    return wanted


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trainer rollouts", description=rollouts.__doc__)
    parser.add_argument("run", type=Path, help="the run's directory (--out of `run`)")
    parser.add_argument("--data", type=Path, required=True, help="the examples that the run had, JSON Lines")
    parser.add_argument("--phase", choices=["train", "eval"], default="train", help="eval: held-out responses")
    parser.add_argument("--first", type=int, default=0, metavar="STEP", help="the first step")
    parser.add_argument("--last", type=int, metavar="STEP", help="the last step (default: the newest)")
    parser.add_argument("--shortest", type=int, default=0, metavar="N", help="leave out texts of fewer characters")
    parser.add_argument("--whole", action="store_true", help="leave out responses that were cut")
    parser.add_argument("--form", choices=["tags", "json", "pattern"], help="leave out responses without this form")
    parser.add_argument("--form-of", default="", metavar="TEXT", help="tags or keys between blanks, or the expression")
    parser.add_argument(
        "--correct",
        type=float,
        metavar="SHARE",
        help="the share of the criteria decided by verifiers that must be right: 0 to 1",
    )
    parser.add_argument("--least", type=float, metavar="REWARD", help="leave out responses with a lower reward")
    parser.add_argument("--part", default="", metavar="NAME", help="--least applies to this part of the reward")
    parser.add_argument("--protocol", action="store_true", help="leave out attempts that ended with an error")
    parser.add_argument("--protocol-part", default="", metavar="NAME", help="a part of the reward that must be 1")
    parser.add_argument(
        "--best", type=int, default=0, metavar="N", help="keep at most this many responses of each prompt; 0: all"
    )
    parser.add_argument(
        "--without", action="append", default=[], metavar="FILTER", help="leave out a filter, by its name"
    )
    parser.add_argument(
        "--preview", type=int, default=0, metavar="N", help="show N cases of each filter and write nothing"
    )
    parser.add_argument("--name", help="who answered (default: the directory's name)")
    options = parser.parse_args(arguments)
    if options.best < 0:
        parser.error("--best is at least 0")
    return options


def _examples(path: Path) -> Iterator[Example]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield Example.model_validate_json(line)


def _sampled(events: Path, wanted: WantedResponses) -> list[SampledResponse]:
    """The responses in the order of the steps. If a resumed run has made a step again, the last responses count."""
    found: dict[str, SampledResponse] = {}
    with events.open(encoding="utf-8") as lines:
        for line in lines:
            event = RunEvent.model_validate_json(line) if '"rollouts"' in line else None
            if event is None or event.data.kind != "rollouts":
                continue
            if not wanted.first <= event.step <= (event.step if wanted.last is None else wanted.last):
                continue
            for row in event.data.rollouts:
                if row.phase == wanted.phase:
                    each = _one(event.step, row)
                    found[each.id] = each
    return sorted(found.values(), key=lambda each: (each.step, each.group, each.index))


def _one(step: int, row: RolloutRecord) -> SampledResponse:
    return SampledResponse(
        row.example_key,
        step,
        row.group,
        row.index,
        row.response,
        row.reward,
        cut=row.finish_reason == "length",
        scaffold_shown=row.scaffold_shown,
        hint=row.hint,
        right=share_right((each.points, each.verdict.met, each.verdict.source) for each in row.criteria),
        parts={part.name: part.value for part in row.parts},
        failed=row.finish_reason == "error",
    )
