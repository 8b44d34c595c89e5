"""Real pairs with people's reasons, and a model that was first shown how people judge them.

A small language model does not answer a question about two texts in the required form, and an answer that cannot be read earns
nothing. So the model first learns demonstrations: some training pairs with the verdict of most raters and two of their reasons. The
runs then use other training pairs, and held-out ones. Only short texts are used, so that two cores are enough.
"""

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from trainer.contracts import Example, jsonlines
from trainer.contracts.pairs import LabelledPair, human_reasons, labelled_pairs
from trainer.rewards.pair_judgements import question

from . import warm_start

SOURCE = (
    "give --data a file of examples with pairs that people judged with reasons, such as UKPConvArg1 "
    "(github.com/UKPLab/acl2016-convincing-arguments), imported and exported as docs/claims.md says"
)
SHOWN, TRAINED, HELD_OUT = 160, 400, 48
"""Numbers of pairs: those of which the model sees people's judgements, those of the runs, and those held out."""
_LONGEST = 450
"""The largest number of characters of both answers together."""
_WORDS = range(4, 19)
"""The numbers of words that a shown reason may have."""
_REASONS = 2
_NAMED = re.compile(r"\b(?:a|arg(?:ument)?\s?)([12])\b", re.I)


def made_ready(given: Path, model: Path, out: Path, tell: Callable[[str], None]) -> tuple[Path, Path]:
    """Make in `out`, once, the examples of the runs and the model that was shown judgements. Raises ValueError if the data has too
    few pairs with reasons, or if the model could not be shown them.
    """
    return warm_start.warm_started(
        lambda: split_examples(_examples(given)), model, out, tell, f"{SHOWN} judgements of people"
    )


def split_examples(rows: Sequence[Example], seed: int = 5) -> tuple[list[Example], list[Example]]:
    """Demonstrations of judgements, and the pairs of the runs, none of which was shown. Raises ValueError if there are too few."""
    chooser = random.Random(seed)  # noqa: S311 - a draw, not a secret
    short = [row for row in rows if sum(len(response.text) for response in row.responses) <= _LONGEST]
    train = [row for row in short if row.split == "train" and _judged(row)]
    held_out = [row for row in short if row.split == "heldout" and _judged(row)]
    if len(train) < SHOWN + TRAINED or len(held_out) < HELD_OUT:
        raise ValueError(
            f"the file has {len(train):,} short training pairs with {_REASONS} reasons or more and {len(held_out):,} such held-out pairs; "
            f"the claim needs {SHOWN + TRAINED} and {HELD_OUT}; {SOURCE}"
        )
    picked = chooser.sample(train, SHOWN + TRAINED)
    return [demonstration(row, chooser) for row in picked[:SHOWN]], picked[SHOWN:] + chooser.sample(held_out, HELD_OUT)


def demonstration(row: Example, chooser: random.Random) -> Example:
    """A question about the example's pair, in either order, and the judgement of most raters with two of their reasons."""
    ((pair, reasons),) = _judged(row)
    texts = {response.id: response.text for response in row.responses}
    sides = [pair.first, pair.second]
    chooser.shuffle(sides)
    better = pair.first if len(pair.for_first) > len(pair.for_second) else pair.second
    letters = dict(zip(sides, "AB", strict=True))
    named = {"1": letters[pair.first], "2": letters[pair.second]}
    lines = [f"- {_NAMED.sub(lambda found: named[found[1]], reason)}" for reason in reasons]
    return Example(
        key=row.key,
        prompt=question(row.prompt, texts[sides[0]], texts[sides[1]], "lines"),
        split="train",
        group=row.group,
        reference="\n".join([*lines, f"Verdict: {letters[better]} better"]),
    )


def _judged(row: Example) -> list[tuple[LabelledPair, list[str]]]:
    """The example's pair and two reasons for the verdict of most raters; empty unless there is exactly one such pair."""
    pairs = labelled_pairs(row)
    if len(pairs) != 1 or len(row.responses) != 2 or not pairs[0].decided:
        return []
    short = [reason for reason in human_reasons(row, pairs[0])[0] if len(reason.split()) in _WORDS]
    return [(pairs[0], short[:_REASONS])] if len(short) >= _REASONS else []


def _examples(given: Path) -> list[Example]:
    """The examples of a file. Raises ValueError if it holds none."""
    try:
        return [Example.model_validate(row) for row in jsonlines.rows(given.read_text(encoding="utf-8"))]
    except ValueError as error:
        raise ValueError(f"{given} holds no examples: {str(error).splitlines()[0]}; {SOURCE}") from error
