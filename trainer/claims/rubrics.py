"""Topics with pairs of answers: a task on which a model of two layers can learn to write rubrics.

A prompt is a topic and a number, such as `fox 42`. There are two kinds of words: some can be checked in an answer, the others say
nothing about it. A topic wants four words that can be checked. Each is more likely in the answer that people prefer than in the other;
every other word is equally likely in both. So a rubric is a list of words, and the best one for a topic lists the four that it wants.
No text says which words these are: they show in the pairs. Held-out pairs have the topics of training and other answers.

The model is first taught to write the form, with words at random. A judge of rubrics gives a point for each word that can be checked,
up to four, and none for a repeated word. It knows what makes a rubric good in general, and nothing about topics.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trainer.contracts import Example, Message, Preference, Response
from trainer.contracts.example import Split
from trainer.judges.calls import expand
from trainer.judges.inputs import JudgeInput
from trainer.judges.kinds.generator import RubricGeneratorSpec
from trainer.metrics.claims.writers import CHECKABLE

from .teaching import Course, Lesson, Progress, silent, teach
from .toy import TOPICS

EMPTY = tuple(consonant + vowel for consonant in "mnp" for vowel in "aei")
WANTED, ITEMS = 4, 4
IN_BETTER, IN_WORSE, BESIDE = 0.85, 0.15, 0.4
"""The probability that an answer has a wanted word, if people prefer it and if not, and that it has any other word."""
TRAINED, HELD_OUT = 1_600, 96
_SHAPE = {"form": "openrubrics", "min_items": ITEMS, "max_items": ITEMS}
_HEAD, _ITEM = "### Core task", "\n- [ ] "


def examples(seed: int = 5) -> list[Example]:
    """1,600 pairs to train on, more than a run asks for, and 96 held out, 12 of each topic."""
    chooser = random.Random(seed)  # noqa: S311 - a task, not a secret
    wants = {topic: tuple(chooser.sample(CHECKABLE, WANTED)) for topic in TOPICS}
    splits: list[tuple[Split, int]] = [("train", TRAINED), ("heldout", HELD_OUT)]
    return [
        _example(chooser, f"{split}-{place}", split, TOPICS[place % len(TOPICS)], wants)
        for split, count in splits
        for place in range(count)
    ]


def make_model(directory: Path, progress: Progress = silent, seed: int = 0, steps: int = 300) -> bool:
    """Make the tiny model that knows the form; False if it is there already."""
    return teach(directory, Course(lessons(random.Random(seed)), pieces(), steps), progress, seed)  # noqa: S311 - as above


def pieces() -> list[str]:
    """The pieces of the task's texts: each is one token, so that a question is ten tokens and not a thousand."""
    frame = [part for message in _question(" ") for part in message.content.split(" \n", 1) if len(part) > 1]
    return [*frame, _HEAD, _ITEM, *CHECKABLE, *EMPTY]


def lessons(chooser: random.Random) -> Iterator[Lesson]:
    """Questions with a rubric of four words, drawn equally often from both kinds and independently: a word may come twice."""
    while True:
        prompt = f"{chooser.choice(TOPICS)} {chooser.randrange(100)}"
        yield _question(prompt), written(chooser.choices(CHECKABLE + EMPTY, k=ITEMS))


def written(words: Sequence[str]) -> str:
    """The words as a rubric in its form."""
    return _HEAD + "".join(f"{_ITEM}{word}" for word in words)


def _question(prompt: str) -> tuple[Message, ...]:
    """The question of the recipe about a conversation of this one message."""
    given = JudgeInput(example="", conversation=(Message(role="user", content=prompt),))
    (call,) = expand(RubricGeneratorSpec.model_validate(_SHAPE), "", given)
    return tuple(Message.model_validate(message) for message in call.request.messages)


def _example(chooser: random.Random, key: str, split: Split, topic: str, wants: Mapping[str, Sequence[str]]) -> Example:
    prompt = (Message(role="user", content=f"{topic} {chooser.randrange(100)}"),)
    better, worse = (
        Response(id=name, text=_text(chooser, wants[topic], likely))
        for name, likely in (("better", IN_BETTER), ("worse", IN_WORSE))
    )
    verdict = Preference(a="better", b="worse", strength=-2, rater="people")
    return Example(key=key, prompt=prompt, split=split, group=key, responses=(better, worse), preferences=(verdict,))


def _text(chooser: random.Random, wanted: Sequence[str], likely: float) -> str:
    """An answer's text. It is never empty: an answer without words says `um`."""
    said = [word for word in CHECKABLE + EMPTY if chooser.random() < (likely if word in wanted else BESIDE)]
    chooser.shuffle(said)
    return " ".join(said) or "um"
