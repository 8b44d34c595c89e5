"""Answers with named faults: the task of `judge_policy`, for judges and for the policies that learn from them.

Every example serves both recipes. Its pair of answers, with people's verdict and reason, trains a judge (`faults`). Its prompt, always the
same, asks a policy for an answer; beside it is a reference to compare with, drawn from the answers that the model was taught.

An answer names two faults, among words that say nothing. Its true score follows from what people prefer, a program decides it,
and no judge sees it: 1 if both faults are light, else 0. Length does not count. One in three of the answers that the model was taught
has the true score 1.

The model is first taught to judge in the two ways of `faults`, then also to answer with any two faults and 0 to 3 words that say nothing.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainer.contracts import Criterion, Example, Rubric, VerifierSpec

from . import faults
from .teaching import Course, Lesson, Progress, silent, teach

MOST_FILLER = 3
JUDGING = 25_600
"""The number of first lessons that all judge, before some answer: finding the answer with the fault is the hardest part."""
ANSWERING = 0.3
"""The share of the later lessons that answer."""


def examples(seed: int = 5) -> list[Example]:
    """The pairs of `faults`, each with its rubric of the true score and its own reference."""
    chooser, worth = random.Random(seed), rubric()  # noqa: S311 - a task, not a secret
    return [pair.model_copy(update={"rubric": worth, "reference": answer(chooser)}) for pair in faults.examples(seed)]


def rubric() -> Rubric:
    """The rubric of an answer's true score."""
    light = VerifierSpec(name="regex", args={"pattern": two_of(faults.LIGHT), "where": "whole"})
    return Rubric(criteria=(Criterion(id="light", text="Names two faults, both light.", points=1.0, verifier=light),))


def two_of(words: Sequence[str]) -> str:
    """A pattern of two of the words, among words that say nothing."""
    fault, before, after = f"(?:{'|'.join(words)})", f"(?:{faults.FILLER} )*", f"(?: {faults.FILLER})*"
    return f"{before}{fault}{after} {fault}{after}"


def answer(chooser: random.Random) -> str:
    """A random answer as the model is taught to answer."""
    return faults.text(chooser, chooser.sample(faults.GRAVE + faults.LIGHT, 2), chooser.randint(0, MOST_FILLER))


def make_model(directory: Path, progress: Progress = silent, seed: int = 0, steps: int = 1_200) -> bool:
    """Make the tiny model that judges and answers; False if it is there already."""
    course = Course(lessons(random.Random(seed)), faults.pieces(), steps)  # noqa: S311 - as above
    return teach(directory, course, progress, seed)


def lessons(chooser: random.Random) -> Iterator[Lesson]:
    """Judgements of random pairs; after the first lessons, answers among them."""
    judging = faults.lessons(chooser)
    for _ in range(JUDGING):
        yield next(judging)
    while True:
        yield (faults.PROMPT, answer(chooser)) if chooser.random() < ANSWERING else next(judging)
