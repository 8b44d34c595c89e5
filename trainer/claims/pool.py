"""A pool of demonstrations that is unbalanced and partly wrong; a run chooses a part of it to learn (`data.select` of recipe `sft`).

A demonstration answers a prompt of the syllables (`trainer.claims.toy`): it says the two that its topic asks for, and two more by
Zipf's law. Half of the pool is about the first topic, a quarter about the second, and so on: about eight of a thousand are about the
rarest. One demonstration in twenty is wrong: it says four syllables at random. Held-out prompts ask about every topic equally often.
"""

import random
from collections.abc import Sequence
from typing import Any

from trainer.contracts import Example, Message

from .toy import SYLLABLES, TOPICS, all_of, ranked

POOL, HELD_OUT = 1_000, 8
"""The number of demonstrations, and of held-out prompts of each topic."""
WRONG = 0.05
_WANTED, _SAID = 2, 4


def demonstrations(seed: int = 0) -> list[Example]:
    """The pool of a seed; pools of other seeds ask for other syllables."""
    chooser = random.Random(seed)  # noqa: S311 - a task, not a secret
    said = ranked()
    asked = chooser.sample(said[5:], _WANTED * len(TOPICS))
    wanted = {topic: asked[_WANTED * place :][:_WANTED] for place, topic in enumerate(TOPICS)}
    shares = [0.5 ** (place + 1) for place in range(len(TOPICS))]
    rows = []
    for place, topic in enumerate(chooser.choices(TOPICS, shares, k=POOL)):
        answer = _answer(chooser, said, wanted[topic])
        rows.append(_example(f"train-{place}", topic, chooser.randrange(100), wanted[topic], answer))
    for topic in TOPICS:
        for place in range(HELD_OUT):
            answer = " ".join(wanted[topic])
            rows.append(_example(f"{topic}-{place}", topic, chooser.randrange(100), wanted[topic], answer, "heldout"))
    return rows


def _answer(chooser: random.Random, said: Sequence[str], wanted: Sequence[str]) -> str:
    if chooser.random() < WRONG:
        return " ".join(chooser.sample(SYLLABLES, _SAID))
    words = list(wanted)
    while len(words) < _SAID:
        (syllable,) = chooser.choices(said, [1.0 / rank for rank in range(1, len(said) + 1)])
        if syllable not in words:
            words.append(syllable)
    chooser.shuffle(words)
    return " ".join(words)


def _example(key: str, topic: str, number: int, wanted: Sequence[str], answer: str, split: Any = "train") -> Example:
    prompt = (Message(role="user", content=f"{topic} {number}"),)
    return Example(key=key, prompt=prompt, split=split, domain=topic, rubric=all_of(wanted), reference=answer)
