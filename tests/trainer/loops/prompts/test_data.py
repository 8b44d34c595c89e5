"""Reading the examples of a run: which ones are used, and which ones are left out and reported."""

from pathlib import Path
from typing import Any

import pytest

from trainer.config import resolve
from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec
from trainer.loops.prompts.data import PromptSets, prepare_prompts, read_examples
from trainer.loops.session.errors import RunFailed

SHORT = VerifierSpec(name="word_count", args={"max": 9})


def example(key: str, verifier: VerifierSpec | None, text: str = "Say hello.") -> Example:
    rubric = Rubric(criteria=(Criterion(id="c1", text="Is short.", points=1, verifier=verifier),))
    return Example(key=key, prompt=(Message(role="user", content=text),), rubric=rubric)


JUDGED = {"rewards": [{"kind": "rubric", "judge": "Grader v1"}]}


def prepared(tiny_dir: Path, examples: list[Example], **config: Any) -> PromptSets:
    from trainer.inference.models import load_tokenizer

    settings: Any = resolve("policy", {"scaffold": None} | config)
    return prepare_prompts(examples, load_tokenizer(tiny_dir), settings)


def mixed(key: str) -> Example:
    """A criterion with a verifier and one without."""
    criteria = (
        Criterion(id="c1", text="Is short.", points=1, verifier=SHORT),
        Criterion(id="c2", text="Is kind.", points=2),
    )
    return example(key, SHORT).model_copy(update={"rubric": Rubric(criteria=criteria)})


def test_criteria_that_nobody_decides_are_refused_with_their_number(tiny_dir: Path) -> None:
    with pytest.raises(RunFailed) as caught:
        prepared(tiny_dir, [example("a", SHORT), mixed("b"), example("c", None)])
    assert str(caught.value).startswith("data.unjudged: 2 criteria of 2 prompts have no verifier")
    assert "name a judge" in str(caught.value)


def test_prompts_with_such_criteria_are_left_out_where_that_was_chosen(tiny_dir: Path) -> None:
    sets = prepared(tiny_dir, [example("a", SHORT), mixed("b")], data={"unjudged": "drop_prompts"})
    assert [prompt.example.key for prompt in sets.train] == ["a"]
    assert sets.left_out == [
        "1 example left out: one of their criteria has no verifier, and the reward has no judge for it"
    ]


def test_such_criteria_are_left_out_where_that_was_chosen(tiny_dir: Path) -> None:
    sets = prepared(tiny_dir, [example("a", SHORT), mixed("b"), example("c", None)], data={"unjudged": "drop_criteria"})
    rubrics = {prompt.example.key: prompt.rubric for prompt in sets.train}
    assert {key: [c.id for c in rubric.criteria] for key, rubric in rubrics.items() if rubric} == {
        "a": ["c1"],
        "b": ["c1"],
    }
    assert sets.left_out == [
        "1 example left out: the rubric has no criterion with a verifier that earns points",
        "1 criterion left out: they need a judge, and the reward has none",
    ]


def test_a_judge_takes_every_criterion(tiny_dir: Path) -> None:
    sets = prepared(tiny_dir, [example("a", SHORT), mixed("b"), example("c", None)], **JUDGED)
    assert [prompt.example.key for prompt in sets.train] == ["a", "b", "c"] and not sets.left_out


@pytest.mark.parametrize(
    ("part", "kept", "reason"),
    [
        ({"kind": "verifier"}, "ab", "the rubric has no criterion with a verifier that earns points"),
        ({"kind": "judge", "judge": "j"}, "bc", "the rubric has no criterion that needs a judge that earns points"),
        (
            {"kind": "judge", "judge": "j", "protocol": "likert"},
            "bc",
            "the points of their criteria that need a judge add up to 0 or less",
        ),
        (
            {"kind": "judge", "judge": "j", "protocol": "pairwise", "against": "reference"},
            "z",
            "they have no reference to compare with",
        ),
        ({"kind": "reward_model", "model": "m"}, "abcz", ""),
    ],
)
def test_what_a_part_cannot_value_is_left_out_and_counted(
    part: dict[str, Any], kept: str, reason: str, tiny_dir: Path
) -> None:
    rows = [example("a", SHORT), mixed("b"), example("c", None)]
    bare = Example(key="z", prompt=rows[0].prompt, reference="here")
    shadow = {"kind": "rubric", "name": "seen", "shadow": True}  # asks for nothing
    found = prepared(tiny_dir, [*rows, bare], rewards=[part, shadow])
    assert "".join(prompt.example.key for prompt in found.train) == kept
    assert any(reason in line for line in found.left_out) or not reason


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


def test_a_run_without_examples_says_why_each_was_left_out(tiny_dir: Path) -> None:
    with pytest.raises(
        RunFailed, match="^no example to train on, of 2: 2 examples left out: their prompt is longer than"
    ):
        prepared(tiny_dir, [example("a", SHORT), example("b", SHORT)], data={"max_prompt_tokens": 8})
