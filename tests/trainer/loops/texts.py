"""Data for recipes that learn from stored texts, each with a planted rule, and helpers for their tests."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainer.config import resolve
from trainer.contracts import Example, Message, Preference, Response

LETTERS = "abcdefgh"


def word(draw: random.Random, length: int = 4) -> str:
    return "".join(draw.choice(LETTERS) for _ in range(length))


def user_messages(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=text),)


def side(number: int, train: int) -> Any:
    return "train" if number < train else "heldout"


def demonstrations(train: int, heldout: int, seed: int = 0) -> list[Example]:
    """The answer repeats the first letter of the prompt three times."""
    draw = random.Random(seed)  # noqa: S311 - data, not secrecy
    words = [word(draw) for _ in range(train + heldout)]
    return [
        Example(key=f"row-{i}", prompt=user_messages(text), reference=text[0] * 3, split=side(i, train))
        for i, text in enumerate(words)
    ]


def preferences(train: int, heldout: int, seed: int = 0, strength: int = 2) -> list[Example]:
    """One of two answers of equal length contains an `x` and is better, at either place."""
    draw = random.Random(seed)  # noqa: S311 - data, not secrecy
    rows = []
    for i in range(train + heldout):
        plain, place = word(draw, 5), draw.randrange(5)
        texts = [word(draw, 5), plain[:place] + "x" + plain[place + 1 :]]
        better_first = draw.random() < 0.5
        if better_first:
            texts.reverse()
        rows.append(
            Example(
                key=f"row-{i}",
                prompt=user_messages(word(draw, 3)),
                domain=("even", "odd")[i % 2],
                split=side(i, train),
                responses=tuple(Response(id=name, text=text) for name, text in zip("ab", texts, strict=True)),
                preferences=(Preference(a="a", b="b", strength=-strength if better_first else strength, rater="r1"),),
            )
        )
    return rows


def write_examples(examples: Sequence[Example], path: Path) -> Path:
    path.write_text("".join(example.canonical() + "\n" for example in examples))
    return path


def make_config(recipe: str, **changes: Any) -> Any:
    """A small config that saves after each step. All weights are trained unless `model` says otherwise."""
    small: dict[str, Any] = {
        "steps": 4,
        "batch_size": 4,
        "model": {"name": "tiny", "lora": None},
        "optim": {"lr": 1e-3},
        "evaluation": {"every": 2},
        "checkpoint": {"every": 1, "keep": 9},
    }
    if recipe == "sft":
        small["data"] = {"source": "references"}
    return resolve(recipe, small | changes)
