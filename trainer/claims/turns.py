"""Topics, rubrics of one word and pairs of answers: a task on which a model of two layers can be judge and rubric writer.

A prompt is a topic and a number, such as `fox 42`. Each of six words is in one of the two answers, which are filled up to two
lengths. An answer with fewer of the six repeats some, so that both have four places of such words and counting them says nothing.
A topic wants two of the words: they are nearly always in the answer that people prefer, and the others are in either. A
rubric names one word. So the best rubric for a topic names a word that it wants, and the best judge decides for the answer that has
the word of the rubric. Length says nothing: one answer of each pair is long, by chance. Held-out pairs have the topics of training
and other answers.

Both roles begin with one model that was taught the two forms, as in the paper's warm-up: rubrics with a random word, and two ways to
judge. Four times in ten the model says of both answers whether they have the word, and decides by that; otherwise it explains nothing
and decides for the longer answer. So the judge has to learn the form and the use of a rubric, and the writer what a topic wants. The
judge's most likely answer at first has nothing to do with the rubric.
"""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainer.contracts import Criterion, Example, Message, Preference, Response
from trainer.contracts.example import Split
from trainer.judges.calls import expand
from trainer.judges.inputs import JudgeInput
from trainer.judges.kinds.generator import RubricGeneratorSpec
from trainer.rewards.rubric_judgements import question
from trainer.rewards.written_rubrics import ComparedPair

from .teaching import Course, Lesson, Progress, silent, teach
from .toy import TOPICS

WORDS = ("ba", "de", "fi", "go", "ku", "la")
FILLER = "um"
WANTED = 2
ASKED = TOPICS[:4]
"""The topics of the examples; the model was taught all eight."""
IN_BETTER, BESIDE = 0.95, 0.5
"""The probability that a word is in the answer that people prefer, if the topic wants it and if not."""
FEWEST, SHORT, LONG = 2, 4, 7
"""Numbers of words of an answer: the fewest of the six words, and the two lengths with filling words."""
BY_RUBRIC = 0.4
"""The share of the taught judgements that follow the rubric."""
READING = 12_800
"""The number of first lessons that nearly all judge by a rubric, before the lasting share."""
TRAINED, HELD_OUT = 1_600, 64
SAID = "The response says "
_HEAD, _TAIL = f"1. {SAID}", ". [Hard Rule]"
_FIRST, _SECOND = "Response A\nCriterion 1: ", "\nResponse B\nCriterion 1: "
_SAYS = (" lacks", " says")
_END, _PLAIN = "\nFinal Judgment\nJustification: rule\n", "Final Judgment\nJustification: longer\n"
_WINNERS = {side: f"Winner: Response {side}" for side in "AB"}


def examples(seed: int = 5) -> list[Example]:
    """1,600 pairs to train on, which the rounds share, and 64 held out, 16 of each topic."""
    chooser = random.Random(seed)  # noqa: S311 - a task, not a secret
    wants = wanted(chooser)
    splits: list[tuple[Split, int]] = [("train", TRAINED), ("heldout", HELD_OUT)]
    return [
        _example(chooser, f"{split}-{place}", split, ASKED[place % len(ASKED)], wants[ASKED[place % len(ASKED)]])
        for split, count in splits
        for place in range(count)
    ]


def wanted(chooser: random.Random) -> dict[str, tuple[str, ...]]:
    """The words that each topic wants."""
    return {topic: tuple(chooser.sample(WORDS, WANTED)) for topic in ASKED}


def make_model(directory: Path, progress: Progress = silent, seed: int = 0, steps: int = 800) -> bool:
    """Make the tiny model that knows both forms; False if it is there already."""
    return teach(directory, Course(lessons(random.Random(seed)), pieces(), steps), progress, seed)  # noqa: S311 - as above


def pieces() -> list[str]:
    """The pieces of the task's texts: each is one token, so that a question is fifty tokens and not five hundred."""
    asked = [*_writing("@@"), *question(_pair("@@", "@@", "@@"), [_criterion("@@")], "rubric_arm")]
    frames = [part for message in asked for part in re.split("@@", message.content) if len(part) > 1]
    said = (_HEAD, _TAIL, _FIRST, _SECOND, *_SAYS, _END, _PLAIN, *_WINNERS.values())
    return list(dict.fromkeys([*frames, *said, *WORDS, FILLER]))


def lessons(chooser: random.Random) -> Iterator[Lesson]:
    """Questions of both roles about random topics and random answers, with an answer. Reading an answer
    by a rubric is the hardest part: at first nearly all lessons do it.
    """
    given = 0
    while True:
        given += 1
        prompt = f"{chooser.choice(TOPICS)} {chooser.randrange(100)}"
        first_lessons = given <= READING
        if chooser.random() < (0.1 if first_lessons else 0.4):
            yield _writing(prompt), written(chooser.choice(WORDS))
            continue
        first, second = _answers(chooser, ())
        word = chooser.choice(WORDS)
        asked = question(_pair(prompt, first, second), [_criterion(word)], "rubric_arm")
        yield asked, _judged(chooser, word, first, second, 0.9 if first_lessons else BY_RUBRIC)


def written(word: str) -> str:
    """The word as a rubric in its form."""
    return f"{_HEAD}{word}{_TAIL}"


def _judged(chooser: random.Random, word: str, first: str, second: str, by_rubric: float) -> str:
    """A judgement in one of the two ways."""
    if chooser.random() >= by_rubric:
        return _PLAIN + _WINNERS["A" if len(first.split()) > len(second.split()) else "B"]
    there = word in first.split()
    said = f"{_FIRST}{word}{_SAYS[there]}{_SECOND}{word}{_SAYS[not there]}"
    return f"{said}{_END}{_WINNERS['A' if there else 'B']}"


def _writing(prompt: str) -> tuple[Message, ...]:
    """The question of the recipe to the writer about a conversation of this one message."""
    given = JudgeInput(example="", conversation=(Message(role="user", content=prompt),))
    spec = RubricGeneratorSpec.model_validate({"form": "rubric_arm", "min_items": 1, "max_items": 1})
    (call,) = expand(spec, "", given)
    return tuple(Message.model_validate(message) for message in call.request.messages)


def _criterion(word: str) -> Criterion:
    """The criterion as it is read from the writer's rubric."""
    return Criterion(id="g1", text=f"{SAID}{word}.", points=5.0, kind="hard", importance="essential")


def _pair(prompt: str, first: str, second: str) -> ComparedPair:
    sides = (Response(id="better", text=first), Response(id="worse", text=second))
    conversation = (Message(role="user", content=prompt),)
    return ComparedPair(example="", conversation=conversation, chosen=sides[0], rejected=sides[1])


def _example(chooser: random.Random, key: str, split: Split, topic: str, wants: Sequence[str]) -> Example:
    texts = _answers(chooser, wants)
    responses = tuple(Response(id=name, text=text) for name, text in zip(("better", "worse"), texts, strict=True))
    prompt = (Message(role="user", content=f"{topic} {chooser.randrange(100)}"),)
    verdict = Preference(a="better", b="worse", strength=-2, rater="people")
    return Example(key=key, prompt=prompt, split=split, group=key, responses=responses, preferences=(verdict,))


def _answers(chooser: random.Random, wants: Sequence[str]) -> tuple[str, str]:
    """The answer that people prefer, and the other; one of the two, by chance, is short and the other long."""
    better: list[str] = []
    while not FEWEST <= len(better) <= len(WORDS) - FEWEST:
        better = [word for word in WORDS if chooser.random() < (IN_BETTER if word in wants else BESIDE)]
    sizes = [SHORT, LONG]
    chooser.shuffle(sizes)
    return _text(chooser, better, sizes[0]), _text(chooser, [w for w in WORDS if w not in better], sizes[1])


def _text(chooser: random.Random, words: Sequence[str], size: int) -> str:
    again = [words[place % len(words)] for place in range(SHORT - len(words))]
    said = [*words, *again, *[FILLER] * (size - SHORT)]
    chooser.shuffle(said)
    return " ".join(said)
