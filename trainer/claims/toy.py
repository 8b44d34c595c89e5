"""A language of syllables: a task on which a model of two layers can follow a scaffold, made within a minute.

A prompt is a topic and a number, such as `fox 42`. A good answer says the syllables that belong to the topic; nothing in
the prompt says which. The model is first taught two habits, on random syllables and never on the task: it says
what a scaffold asks for, and without one it says syllables by Zipf's law. So it says some of a topic's syllables often
and others hardly ever: training must find these. Held-out prompts have the topics of training and other numbers.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec

from .teaching import Course, Lesson, Progress, silent, teach

SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")
TOPICS = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen")
GRADES: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("easy", (2,)),
    ("easy", (3,)),
    ("middle", (10,)),
    ("middle", (12,)),
    ("middle", (15,)),
    ("hard", (6, 20)),
    ("hard", (8, 16)),
    ("hard", (5, 25)),
)
"""For each topic its difficulty, and the ranks of all the syllables that a good answer says."""
NEAR = (*GRADES[:5], ("hard", (30,)), ("hard", (45,)), ("hard", (60,)))
"""As GRADES, with hard topics that ask for one rare syllable: seldom said, but within reach."""
HALVES = ("first", "second")
TAILS: tuple[tuple[str, tuple[int, ...]], ...] = (
    *(("short", (rank,)) for rank in (2, 3, 4, 5, 6, 7)),
    ("long", (20,)),
    ("long", (24,)),
)
"""As GRADES, for topics with short or long answers: six of the eight are short."""
TAIL_SAID = {"short": 2, "long": 16}
"""The number of syllables of an answer, by domain."""
_TAIL_BOUNDS = {"short": {"min": 5}, "long": {"max": 8}}
"""Numbers of words that cost a point, so that training does not change the lengths."""
_TRAINED, _HELD_OUT = 6, 4
_SAID = 4
_WORDY = (2, 8)
"""The fewest and the most syllables of an answer of the wordy model."""


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


def graded(seed: int = 5) -> list[Example]:
    """The same language with known difficulty, which is each example's domain. An answer passes if it says all that its topic
    asks for: reward 1, else 0. The untrained model says syllables by Zipf's law, so it passes an `easy` topic often, a `middle` one now
    and then, and a `hard` one hardly ever (`chance`, which is in the data as the pass rate).
    """
    return _passing(zip(TOPICS, GRADES, strict=True), seed)


def near(seed: int = 5) -> list[Example]:
    """Like `graded`, with hard topics that the untrained model passes a few times in a hundred (NEAR)."""
    return _passing(zip(TOPICS, NEAR, strict=True), seed)


def halves(seed: int = 5) -> list[Example]:
    """Like `graded`, with topics that each ask for one syllable: four in the domain `first`, with the ranks 2, 4, 6 and 8, and four in
    `second`, with the ranks 3, 5, 7 and 9. An answer has room for four syllables: for all of one domain, not of both.
    """
    grades = [(HALVES[place % 2], (place + 2,)) for place in range(len(TOPICS))]
    return _passing(zip(TOPICS, grades, strict=True), seed)


def tailed(seed: int = 5) -> list[Example]:
    """Like `graded`, with answers of two lengths (TAILS), which are the domains: a quarter of the prompts is `long`. An answer of the
    other length gets a point less.
    """
    rows = _passing(zip(TOPICS, TAILS, strict=True), seed, TAIL_SAID)
    return [row.model_copy(update={"rubric": _of_length(row.rubric, row.domain)}) for row in rows]


def _of_length(rubric: Rubric | None, domain: str) -> Rubric:
    verifier = VerifierSpec(name="word_count", args=_TAIL_BOUNDS[domain])
    other = Criterion(id="other", text=f"not {domain}", points=-1.0, verifier=verifier)
    return Rubric(criteria=(*(rubric.criteria if rubric else ()), other))


def _passing(
    topics: Iterable[tuple[str, tuple[str, tuple[int, ...]]]], seed: int, said_by: Mapping[str, int] | None = None
) -> list[Example]:
    """For each topic six prompts to train on and four held out. `said_by` has the syllables of an answer by domain, if not four."""
    chooser, said = random.Random(seed), ranked()  # noqa: S311 - a task, not a secret
    rows = []
    for topic, (level, places) in topics:
        wanted, rate = [said[place - 1] for place in places], chance(places, said=(said_by or {}).get(level, _SAID))
        rubric = all_of(wanted)
        for place, number in enumerate(chooser.sample(range(10, 100), _TRAINED + _HELD_OUT)):
            prompt = (Message(role="user", content=f"{topic} {number}"),)
            split: Any = "train" if place < _TRAINED else "heldout"
            key = f"{topic}-{number}"
            meta = {"pass_rate": rate, "reasoning": " ".join(wanted)}
            rows.append(Example(key=key, prompt=prompt, split=split, rubric=rubric, domain=level, meta=meta))
    return rows


def all_of(wanted: Sequence[str]) -> Rubric:
    """1 for an answer that says every one of these syllables, else 0."""
    verifier = VerifierSpec(name="must_contain", args={"texts": list(wanted), "match": "all", "whole_word": True})
    return Rubric(criteria=(Criterion(id="all", text=" ".join(wanted), points=1.0, verifier=verifier),))


def ranked(seed: int = 0) -> list[str]:
    """The syllables in the order of how often the untrained model of `seed` says them."""
    return random.Random(seed).sample(SYLLABLES, len(SYLLABLES))  # noqa: S311 - as above


def chance(places: Sequence[int], answers: int = 20_000, said: int = _SAID) -> float:
    """The share of draws of so many different syllables, by Zipf's law, that contain those of these ranks (from 1): the pass rate of a model that
    has learned its habit perfectly. By simulation.
    """
    wanted = sum(1 << place for place in set(places))
    return sum(each & wanted == wanted for each in _answers(answers, said)) / answers


@lru_cache(maxsize=4)
def _answers(number: int, length: int) -> list[int]:
    """Simulated answers, shared by all calls of `chance`. Each is the set of its ranks, as the bits of one number."""
    chooser, ranks = random.Random(0), range(1, len(SYLLABLES) + 1)  # noqa: S311 - as above
    sums = list(accumulate(1.0 / rank for rank in ranks))
    drawn = []
    for _ in range(number):
        said = 0
        while said.bit_count() < length:
            said |= 1 << chooser.choices(ranks, cum_weights=sums)[0]
        drawn.append(said)
    return drawn


def make_model(directory: Path, progress: Progress = silent, seed: int = 0) -> bool:
    """Make the tiny model with its two habits; False if it is there already."""
    return teach(directory, Course(_lessons(random.Random(seed))), progress, seed)  # noqa: S311 - as above


def make_wordy(directory: Path, progress: Progress = silent, seed: int = 0) -> bool:
    """Like `make_model`, with answers of 2 to 8 syllables, equally often of each length: one or two syllables are wanted, so most are
    useless.
    """
    chooser = random.Random(seed)  # noqa: S311 - as above
    return teach(directory, Course(_lessons(chooser, _WORDY)), progress, seed)


def make_tailed(directory: Path, progress: Progress = silent, seed: int = 0) -> bool:
    """Like `make_model`, with answers of the length that TAILS has for their topic."""
    lengths = {topic: TAIL_SAID[level] for topic, (level, _) in zip(TOPICS, TAILS, strict=True)}
    return teach(directory, Course(_lessons(random.Random(seed), lengths=lengths)), progress, seed)  # noqa: S311 - as above


def _criterion(syllable: str) -> Criterion:
    verifier = VerifierSpec(name="must_contain", args={"texts": [syllable], "match": "any", "whole_word": True})
    return Criterion(id=syllable, text=syllable, points=1.0, verifier=verifier)


def _lessons(
    chooser: random.Random, between: tuple[int, int] | None = None, lengths: Mapping[str, int] | None = None
) -> Iterator[Lesson]:
    """Conversations with an answer: the scaffold's syllables in its order, then syllables by Zipf's law up to four, or to a number drawn
    from `between`, or to the number that `lengths` has for the topic.
    """
    from trainer.curriculum import scaffold_text
    from trainer.inference.chat import with_addition

    ranked = chooser.sample(SYLLABLES, len(SYLLABLES))
    sums = list(accumulate(1.0 / rank for rank in range(1, len(ranked) + 1)))
    while True:
        shown = chooser.sample(SYLLABLES, chooser.choice((0, 0, 1, 2, 3, 4, 4)))
        topic, number = chooser.choice(TOPICS), chooser.randrange(100)
        messages: tuple[Message, ...] = (Message(role="user", content=f"{topic} {number}"),)
        if shown:
            messages = with_addition(messages, scaffold_text([_criterion(text) for text in shown]))
        said, length = list(shown), chooser.randint(*between) if between else (lengths or {}).get(topic, _SAID)
        while len(said) < length:
            (syllable,) = chooser.choices(ranked, cum_weights=sums)
            if syllable not in said:
                said.append(syllable)
        yield messages, " ".join(said)
