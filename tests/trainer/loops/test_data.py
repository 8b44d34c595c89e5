"""Reading the examples of a run: what is used, what is left out and said."""

from pathlib import Path

import pytest

from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec
from trainer.loops.data import prepare_prompts, read_examples
from trainer.loops.errors import RunFailed

SHORT = VerifierSpec(name="word_count", args={"max": 9})


def example(key: str, verifier: VerifierSpec | None, text: str = "Say hello.") -> Example:
    rubric = Rubric(criteria=(Criterion(id="c1", text="Is short.", points=1, verifier=verifier),))
    return Example(key=key, prompt=(Message(role="user", content=text),), rubric=rubric)


def test_a_rubric_that_nothing_can_decide_is_left_out_and_counted(tiny_dir: Path) -> None:
    from trainer.inference.models import load_tokenizer

    sets = prepare_prompts([example("a", SHORT), example("b", None)], load_tokenizer(tiny_dir), 512, 10)
    assert [prompt.example.key for prompt in sets.train] == ["a"]
    assert sets.left_out == [
        "1 examples left out: a criterion of theirs has no verifier, so no response to them could be scored"
    ]


def test_separators_inside_a_text_do_not_end_its_line(tmp_path: Path) -> None:
    file = tmp_path / "examples.jsonl"
    wanted = example("a", SHORT, "one\u2028two\u0085three")
    file.write_text(wanted.canonical() + "\n", encoding="utf-8")
    assert read_examples(file) == [wanted]


def test_a_line_that_is_no_example_is_named(tmp_path: Path) -> None:
    file = tmp_path / "examples.jsonl"
    file.write_text(example("a", SHORT).canonical() + '\n{"key": "b"}\n')
    with pytest.raises(RunFailed, match="line 2, prompt"):
        read_examples(file)
