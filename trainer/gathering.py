"""`python -m trainer rollouts`: what a run has sampled, as examples that can be trained on."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from trainer.contracts import Example, RunEvent
from trainer.contracts.rollout_examples import Sampled, Wanted, gather


def rollouts(arguments: list[str]) -> int:
    """The responses of a run with their rewards, one example per prompt, as JSON Lines on standard output.

    0: written; 1: no response is left; 2: a file that cannot be read.
    """
    options = _options(arguments)
    wanted = Wanted(options.phase, options.first, options.last, options.best, options.least, options.whole)
    try:
        examples = {example.key: example for example in _examples(options.data)}
        found = gather(
            _sampled(options.run / "events.jsonl", wanted), examples, wanted, options.name or options.run.name
        )
    except (OSError, ValidationError) as error:
        print(error, file=sys.stderr)
        return 2
    for example in found.examples:
        print(example.canonical())
    left_out = f"; left out: {found.left_out_words}" if found.left_out else ""
    print(f"{found.words}{left_out}", file=sys.stderr)
    return 0 if found.examples else 1


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trainer rollouts", description=rollouts.__doc__)
    parser.add_argument("run", type=Path, help="the run's directory (--out of `run`)")
    parser.add_argument("--data", type=Path, required=True, help="the examples that the run had, JSON Lines")
    parser.add_argument("--phase", choices=["train", "eval"], default="train", help="eval: held-out responses")
    parser.add_argument("--first", type=int, default=0, metavar="STEP", help="the first step")
    parser.add_argument("--last", type=int, metavar="STEP", help="the last step; left out: the newest")
    parser.add_argument("--best", type=int, default=0, metavar="N", help="so many of each prompt; 0: all")
    parser.add_argument("--least", type=float, metavar="REWARD", help="leave out what is worth less")
    parser.add_argument("--whole", action="store_true", help="leave out responses that were cut")
    parser.add_argument("--name", help="who answered; left out: the directory's name")
    options = parser.parse_args(arguments)
    if options.best < 0:
        parser.error("--best is at least 0")
    return options


def _examples(path: Path) -> Iterator[Example]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield Example.model_validate_json(line)


def _sampled(events: Path, wanted: Wanted) -> list[Sampled]:
    """In the order of the steps. A step that a resumed run has made again counts as it was made last."""
    found: dict[str, Sampled] = {}
    with events.open(encoding="utf-8") as lines:
        for line in lines:
            event = RunEvent.model_validate_json(line) if '"rollouts"' in line else None
            if event is None or event.data.kind != "rollouts":
                continue
            if not wanted.first <= event.step <= (event.step if wanted.last is None else wanted.last):
                continue
            for row in event.data.rollouts:
                if row.phase == wanted.phase:
                    cut = row.finish_reason == "length"
                    place = (row.example_key, event.step, row.group, row.index)
                    each = Sampled(*place, row.response, row.reward, cut, row.scaffold_shown)
                    found[each.id] = each
    return sorted(found.values(), key=lambda each: (each.step, each.group, each.index))
