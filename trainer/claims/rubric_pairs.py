"""Pairs of answers with a rubric, in RubricBench's layout, and a model that was first shown how such rubrics are written.

A small language model does not write a rubric in the required form, and a rubric that cannot be read earns nothing. So the model
first learns demonstrations: the prompts of the training pairs with their rubrics. The runs then use the labels of the same pairs, and
held-out pairs, of which the model was shown nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.contracts import Criterion, Example, Message, Preference, Response, Rubric, jsonlines
from trainer.judges.calls import expand
from trainer.judges.inputs import JudgeInput
from trainer.judges.kinds.generator import RubricGeneratorSpec

from . import warm_start

GIVEN = Path("demo/rubric_pairs.jsonl")
FEWEST, MOST = 3, 6
"""The fewest and the most items that are asked for."""
FORM = "openrubrics"
_HEAD, _ITEM = "### Core task", "\n- [ ] "
_SPEC = RubricGeneratorSpec.model_validate({"form": FORM, "min_items": FEWEST, "max_items": MOST})


def made_ready(given: Path, model: Path, out: Path, tell: Callable[[str], None]) -> tuple[Path, Path]:
    """Make in `out`, once, the examples of the runs and the model that was shown rubrics. Raises ValueError if the file has no such
    pairs for one of the sides, or if the model could not be shown them.
    """
    return warm_start.warm_started(lambda: split_examples(examples(given)), model, out, tell, "how rubrics are written")


def split_examples(rows: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """Demonstrations of the training pairs' rubrics, and all pairs. Raises ValueError if a side has none."""
    kept = [row for row in rows if row.rubric and row.preferences]
    for split in ("train", "heldout"):
        if not any(row.split == split for row in kept):
            raise ValueError(f"no pair with a rubric and a label is in the split {split}; the claim needs some in both")
    return [demonstration(row) for row in kept if row.split == "train"], kept


def demonstration(row: Example) -> Example:
    """The question of recipe `rubric_writer` about the example's prompt, and its rubric in the form."""
    (call,) = expand(_SPEC, "", JudgeInput(example=row.key, conversation=row.prompt))
    criteria = row.rubric.criteria if row.rubric else ()
    return Example(
        key=row.key,
        prompt=tuple(Message.model_validate(message) for message in call.request.messages),
        split="train",
        group=row.group,
        reference=_HEAD + "".join(f"{_ITEM}{criterion.text}" for criterion in criteria),
    )


def examples(given: Path) -> list[Example]:
    """The examples of a file in RubricBench's layout whose rows have a `split`, or of examples as this program exports them. Raises
    ValueError if a row is neither.
    """
    try:
        return [_example(row) for row in jsonlines.rows(given.read_text(encoding="utf-8"))]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{given} holds no pairs with rubrics: {str(error).splitlines()[0]}; give --data a file in RubricBench's layout with a "
            "column `split`, or such pairs imported and exported in the layout Touchstone"
        ) from error


def _example(row: Mapping[str, Any]) -> Example:
    if "instruction" not in row:
        return Example.model_validate(row)
    strength = {0: -2, 1: 2}[row["label"]]
    return Example(
        key=row["case_id"],
        prompt=(Message(role="user", content=row["instruction"]),),
        split=row["split"],
        group=row["case_id"],
        domain=row["domain"],
        responses=(Response(id="a", text=row["response_a"]), Response(id="b", text=row["response_b"])),
        preferences=(Preference(a="a", b="b", strength=strength, rater="gold"),),
        rubric=Rubric(
            criteria=tuple(
                Criterion(id=f"c{place}", text=text, points=1.0) for place, text in enumerate(row["rubrics"], 1)
            )
        ),
    )
