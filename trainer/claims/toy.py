"""A language of syllables: a task on which a model of two layers can follow a scaffold, made within a minute.

A prompt is a topic and a number, such as `fox 42`. A good answer says the syllables that belong to the topic; nothing in
the prompt tells which. The model is first taught two habits, on syllables drawn at random and never on the task: it says
what a scaffold asks for, and without one it says syllables by Zipf's law. So some of a topic's syllables are said often,
and others hardly ever: those have to be found. Held-out prompts have the topics of training and other numbers.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec

from .teaching import Course, Lesson, Progress, silent, teach

SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")
TOPICS = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen")
_TRAINED, _HELD_OUT = 6, 4
_SAID = 4


def examples(wanted: int, seed: int = 5) -> list[Example]:
    """For each topic six prompts to train on and four held out; `wanted` syllables make a perfect answer."""
    chooser = random.Random(seed)  # noqa: S311 - a task, not a secret
    rows = []
    for topic in TOPICS:
        rubric = Rubric(criteria=tuple(_criterion(text) for text in chooser.sample(SYLLABLES, wanted)))
        numbers = chooser.sample(range(10, 100), _TRAINED + _HELD_OUT)
        for place, number in enumerate(numbers):
            prompt = (Message(role="user", content=f"{topic} {number}"),)
            split: Any = "train" if place < _TRAINED else "heldout"
            rows.append(Example(key=f"{topic}-{number}", prompt=prompt, split=split, rubric=rubric))
    return rows


def make_model(directory: Path, progress: Progress = silent, seed: int = 0) -> bool:
    """The tiny model with its two habits; False when it is there already."""
    return teach(directory, Course(_lessons(random.Random(seed))), progress, seed)  # noqa: S311 - as above


def _criterion(syllable: str) -> Criterion:
    verifier = VerifierSpec(name="must_contain", args={"texts": [syllable], "match": "any", "whole_word": True})
    return Criterion(id=syllable, text=syllable, points=1.0, verifier=verifier)


def _lessons(chooser: random.Random) -> Iterator[Lesson]:
    """Conversations with an answer: the scaffold's syllables in its order, filled up by Zipf's law."""
    from trainer.inference.chat import with_addition
    from trainer.sampling import scaffold_text

    ranked = chooser.sample(SYLLABLES, len(SYLLABLES))
    weights = [1.0 / rank for rank in range(1, len(ranked) + 1)]
    while True:
        shown = chooser.sample(SYLLABLES, chooser.choice((0, 0, 1, 2, 3, 4, 4)))
        messages = (Message(role="user", content=f"{chooser.choice(TOPICS)} {chooser.randrange(100)}"),)
        if shown:
            messages = with_addition(messages, scaffold_text([_criterion(text) for text in shown]))
        said = list(shown)
        while len(said) < _SAID:
            (syllable,) = chooser.choices(ranked, weights)
            if syllable not in said:
                said.append(syllable)
        yield messages, " ".join(said)
