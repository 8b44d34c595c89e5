"""Pairs with rubrics: the pairs that the model is taught, the judge that does not change, and the command with these pairs."""

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.claims import command, rubric_pairs, runs, warm_start
from trainer.config import RECIPES, resolve
from trainer.contracts import Example
from trainer.inference.models import make_tiny
from trainer.judges.rubric_forms import read_rubric
from trainer.metrics.claims import PLANS
from trainer.tasks import TASKS

PLAN = PLANS["rubric_pairs"]


def row(number: int, split: str = "train") -> dict[str, Any]:
    answers = {"response_a": f"yes {number}", "response_b": f"no {number}", "label": number % 2}
    rubrics = [f"Says the number {number}.", "Says yes.", "Is short."]
    return {
        "case_id": f"pair-{number}",
        "instruction": f"Say {number}.",
        "domain": "IF",
        "rubrics": rubrics,
        "split": split,
        **answers,
    }


def file_of(folder: Path, *rows: dict[str, Any]) -> Path:
    file = folder / "pairs.jsonl"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    return file


def test_a_demonstration_is_the_question_of_the_recipe_and_a_rubric_in_its_form(tmp_path: Path) -> None:
    (pair,) = rubric_pairs.examples(file_of(tmp_path, row(7)))
    shown = rubric_pairs.demonstration(pair)
    config: Any = resolve("rubric_writer", PLAN.config(PLAN.arms[0], PLAN.shared, 0))
    (posed,) = TASKS["rubric_writer"](config).pose(pair, held_out=False)
    assert not isinstance(posed, str) and shown.prompt == posed.example.prompt, (
        "or it is asked in other words than it was shown"
    )
    read = read_rubric(shown.reference or "", "openrubrics")
    assert read.ok and [item.text for item in read.items] == ["Says the number 7.", "Says yes.", "Is short."]


def test_only_training_pairs_are_shown_and_none_by_its_answers(tmp_path: Path) -> None:
    shown, kept = rubric_pairs.split_examples(
        rubric_pairs.examples(file_of(tmp_path, row(1), row(2, "heldout"), row(3)))
    )
    assert [each.key for each in shown] == ["pair-1", "pair-3"] and len(kept) == 3
    assert not any("no 1" in message.content for message in shown[0].prompt)


def test_examples_of_this_program_will_do_and_other_files_are_refused(tmp_path: Path) -> None:
    found = rubric_pairs.examples(file_of(tmp_path, row(1), row(2)))
    exported = tmp_path / "exported.jsonl"
    runs.write_examples(exported, found)
    assert rubric_pairs.examples(exported) == found
    with pytest.raises(
        ValueError, match="pairs.jsonl holds no pairs with rubrics: .*RubricBench's layout with a column `split`"
    ):
        rubric_pairs.examples(file_of(tmp_path, {key: value for key, value in row(1).items() if key != "split"}))
    with pytest.raises(ValueError, match="no pair with a rubric and a label is in the split heldout"):
        rubric_pairs.split_examples(found)


def test_the_command_shows_rubrics_and_asks_the_model_as_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[runs.ArmJob] = []

    def perform(jobs: Any, processes: int, tell: Any) -> list[str]:
        done.extend(jobs)
        for job in jobs:
            job.result.write_text("{}")
        return []

    for module in (command, warm_start):
        monkeypatch.setattr(module, "perform", perform)
    model, out = tmp_path / "model", tmp_path / "out"
    make_tiny(model)
    data = file_of(tmp_path, row(1), row(2, "heldout"))
    arguments = ["rubric_pairs", "--size", "demo", "--out", str(out), "--model", str(model), "--data", str(data)]
    assert command.main(arguments) == 0
    shown, *writers = done
    assert shown.recipe == "sft" and [job.seed for job in writers] == list(PLAN.sizes["demo"].seeds)
    for job in writers:
        assert job.models == {"base": out / "shown" / "outputs" / "policy"} and not job.waits
        ((name, access),) = runs._judges(job, resolve(job.recipe, job.config)).items()
        assert name == PLAN.shared["reward"]["judge"] and access.spec.kind == "criterion"
        assert getattr(access.target, "model", "") == str(model), "and not the one that was shown rubrics"
    assert RECIPES["rubric_writer"].slots and isinstance(rubric_pairs.examples(data)[0], Example)
