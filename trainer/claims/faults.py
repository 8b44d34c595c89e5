"""Pairs of answers with named faults: a task on which a model of two layers can judge, rightly or by a shortcut.

An answer is some words. Each of the two answers names two faults; the worse answer has a grave one. People
prefer the other answer, and their reason is the grave fault. So a criterion is a word, and a judge that knows the four grave words
judges every pair rightly. The planted shortcut is length: in 85% of the training pairs the better answer is the longer one, by words that
say nothing; in no held-out pair is it.

The model is first taught two ways to judge, and to take either, without knowing which faults are grave: it says `longer` and
decides for the longer answer, or it names some fault of some answer and decides for the other answer.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path

from trainer.contracts import Example, Message, Preference, Reason, Response
from trainer.contracts.example import Split
from trainer.rewards.pair_judgements import question

from .teaching import Course, Lesson, Progress, silent, teach

GRAVE = ("cruel", "false", "rude", "vague")
LIGHT = ("dull", "late", "messy", "plain", "terse", "quaint")
FILLER = "um"
PROMPT = (Message(role="user", content="case"),)
LONGER = "longer"
AGREES = 0.85
"""The share of training pairs whose better answer is the longer one."""
TRAINED, HELD_OUT = 2_000, 60
_SHORT, _LONG = 0, 3
_BY_LENGTH = 0.5


def examples(seed: int = 5) -> list[Example]:
    """2,000 pairs to train on, more than a run asks for, and 60 held out."""
    chooser = random.Random(seed)  # noqa: S311 - a task, not a secret
    agreeing = [place < AGREES * TRAINED for place in range(TRAINED)]
    chooser.shuffle(agreeing)
    rows = [_example(chooser, f"train-{place}", "train", agrees) for place, agrees in enumerate(agreeing)]
    return rows + [_example(chooser, f"test-{place}", "heldout", False) for place in range(HELD_OUT)]


def make_model(directory: Path, progress: Progress = silent, seed: int = 0, steps: int = 800) -> bool:
    """Make the tiny model with its two ways to judge; False if it is there already."""
    lessons_ = lessons(random.Random(seed))  # noqa: S311 - as above
    return teach(directory, Course(lessons_, pieces(), steps), progress, seed)


def pieces() -> list[str]:
    """The pieces of the task's texts: each is one token, so that a question is thirty tokens and not three hundred."""
    (message,) = question(PROMPT, " ", " ", "lines")
    frame = re.split(r"(?<=\n) (?=\n)", message.content)
    verdicts = [f"\nVerdict: {side} better" for side in "AB"]
    return [*frame, "- ", *verdicts, *GRAVE, *LIGHT, FILLER, LONGER]


def lessons(chooser: random.Random) -> Iterator[Lesson]:
    """Questions about random pairs, with an answer in one of the two ways."""
    while True:
        faults = chooser.sample(GRAVE + LIGHT, 4)
        first, second = faults[:2], faults[2:]
        sizes = [_SHORT, _LONG]
        chooser.shuffle(sizes)
        shown_a, shown_b = (text(chooser, words, size) for words, size in zip((first, second), sizes, strict=True))
        if chooser.random() < _BY_LENGTH:
            reason, better = LONGER, "A" if sizes[0] > sizes[1] else "B"
        else:
            reason = chooser.choice(faults)
            better = "B" if reason in first else "A"
        yield question(PROMPT, shown_a, shown_b, "lines"), f"- {reason}\nVerdict: {better} better"


def _example(chooser: random.Random, key: str, split: Split, agrees: bool) -> Example:
    """One pair; with `agrees` the better answer is the longer one."""
    grave, light = chooser.choice(GRAVE), chooser.sample(LIGHT, 3)
    better = Response(id="better", text=text(chooser, light[:2], _LONG if agrees else _SHORT))
    worse = Response(id="worse", text=text(chooser, [grave, light[2]], _SHORT if agrees else _LONG))
    verdict = Preference(a="better", b="worse", strength=-2, rater="people", reasons=(Reason(text=grave),))
    return Example(key=key, prompt=PROMPT, split=split, group=key, responses=(better, worse), preferences=(verdict,))


def text(chooser: random.Random, faults: list[str], filler: int) -> str:
    """An answer: the faults and so many words that say nothing, in random order."""
    words = [*faults, *[FILLER] * filler]
    chooser.shuffle(words)
    return " ".join(words)
