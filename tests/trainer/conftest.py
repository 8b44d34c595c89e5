"""A tiny random model, made once, and a handful of examples that can be scored without a judge."""

from pathlib import Path
from typing import Any

import pytest

from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec


@pytest.fixture(scope="session")
def tiny_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from trainer.inference.models import make_tiny

    directory = tmp_path_factory.mktemp("models") / "tiny"
    make_tiny(directory)
    return directory


@pytest.fixture(scope="session")
def tiny_model(tiny_dir: Path) -> Any:
    """The tiny model, for tests that copy it, which takes a seventh of the time of reading it."""
    from trainer.inference.models import load_model

    return load_model(tiny_dir)


@pytest.fixture(scope="session")
def tiny_tokenizer(tiny_dir: Path) -> Any:
    """Its tokenizer, which no test changes. Runs that train together share one, too."""
    from trainer.inference.models import load_tokenizer

    return load_tokenizer(tiny_dir)


def contains(letter: str, points: float, name: str) -> Criterion:
    verifier = VerifierSpec(name="must_contain", args={"texts": [letter], "match": "any"})
    return Criterion(id=name, text=f"Uses the letter {letter}", points=points, verifier=verifier)


@pytest.fixture
def examples() -> list[Example]:
    """Six to train on and two held out; good answers use e and avoid x."""
    rubric = Rubric(criteria=(contains("e", 2.0, "uses-e"), contains("a", 1.0, "uses-a"), contains("x", -1.0, "no-x")))
    rows = []
    for number in range(8):
        prompt = (Message(role="user", content=f"Say something about {number}."),)
        split = "train" if number < 6 else "heldout"
        rows.append(Example(key=f"row-{number}", prompt=prompt, split=split, rubric=rubric))
    return rows


@pytest.fixture
def examples_file(examples: list[Example], tmp_path: Path) -> Path:
    path = tmp_path / "examples.jsonl"
    path.write_text("".join(example.canonical() + "\n" for example in examples))
    return path
