"""Answers with named faults, and who judges them: the task of `rationale` for judges and for the policies that learn from them.

Every example serves both recipes. Its pair of answers, with people's verdict and reason, trains a judge (`faults`). Its prompt, always the
same, asks a policy for an answer; beside it stands a reference to compare with, drawn as the model answers at first.

An answer names two faults, among words that say nothing. What it is truly worth follows from what people prefer, a program decides it,
and no judge sees it: 1 where both faults are light, else 0. Length is worth nothing. One in three of the answers that the model was taught
is worth 1.

The model is first taught to judge in the two ways of `faults`, then beside it to answer with any two faults and 0 to 3 words that say nothing.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainer.contracts import Criterion, Example, Rubric, VerifierSpec

from . import faults
from .teaching import Course, Lesson, Progress, silent, teach

MOST_FILLER = 3
JUDGING = 25_600
"""Lessons that all judge, before some answer: to look up in which answer the fault was comes hardest."""
ANSWERING = 0.3
"""Share of the later lessons that answer."""


def examples(seed: int = 5) -> list[Example]:
    """The pairs of `faults`, with what an answer is worth and a reference of their own."""
    chooser, worth = random.Random(seed), rubric()  # noqa: S311 - a task, not a secret
    return [pair.model_copy(update={"rubric": worth, "reference": answer(chooser)}) for pair in faults.examples(seed)]


def rubric() -> Rubric:
    """What an answer is truly worth."""
    light = VerifierSpec(name="regex", args={"pattern": two_of(faults.LIGHT), "where": "whole"})
    return Rubric(criteria=(Criterion(id="light", text="Names two faults, both light.", points=1.0, verifier=light),))


def two_of(words: Sequence[str]) -> str:
    """A pattern: two of the words, among words that say nothing."""
    fault, before, after = f"(?:{'|'.join(words)})", f"(?:{faults.FILLER} )*", f"(?: {faults.FILLER})*"
    return f"{before}{fault}{after} {fault}{after}"


def answer(chooser: random.Random) -> str:
    """As the model is taught to answer."""
    return faults.text(chooser, chooser.sample(faults.GRAVE + faults.LIGHT, 2), chooser.randint(0, MOST_FILLER))


def make_model(directory: Path, progress: Progress = silent, seed: int = 0, steps: int = 1_200) -> bool:
    """The tiny model that judges and answers; False when it is there already."""
    course = Course(lessons(random.Random(seed)), faults.pieces(), steps)  # noqa: S311 - as above
    return teach(directory, course, progress, seed)


def lessons(chooser: random.Random) -> Iterator[Lesson]:
    """Judgements of random pairs that nobody has judged; later, answers among them."""
    judging = faults.lessons(chooser)
    for _ in range(JUDGING):
        yield next(judging)
    while True:
        yield (faults.PROMPT, answer(chooser)) if chooser.random() < ANSWERING else next(judging)
