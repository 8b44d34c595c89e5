"""AHRL on the tiny model: hints are in the prompt only while sampling, and a resumed run repeats them."""

from pathlib import Path
from typing import Any

import pytest

from trainer.config import ConfigInvalid
from trainer.contracts import Example
from trainer.loops.prompts.data import prepare_prompts
from trainer.loops.prompts.planner import Planner
from trainer.loops.session.errors import RunFailed

from ..conftest import events_of, metrics_of, small_config, whole_and_resumed

REASONING = "First name the number, then say whether it is even."
HINT = {"p0": 0.5, "gamma": 0.5, "unknown": 0.0, "without": "plain"}


def hinted(**changes: Any) -> Any:
    return small_config(scaffold=None, hint=HINT, **changes)


@pytest.fixture
def reasoned(examples: list[Example], examples_file: Path) -> list[Example]:
    """Rows 0 to 3 have reasoning. The pass rate of rows 0 and 1 is known. Row 0 is always solved."""
    rows = []
    for number, row in enumerate(examples):
        meta: dict[str, Any] = {"reasoning": REASONING} if number < 4 else {}
        if number < 2:
            meta["pass_rate"] = 1.0 - 0.5 * number
        rows.append(row.model_copy(update={"meta": meta}))
    examples_file.write_text("".join(row.canonical() + "\n" for row in rows))
    return rows


def test_the_hint_is_sampled_with_and_not_trained_on(reasoned: list[Example], tiny_dir: Path) -> None:
    from trainer.inference.models import load_tokenizer

    tokenizer, config = load_tokenizer(tiny_dir), hinted()
    planner = Planner(config, prepare_prompts(reasoned, tokenizer, config).train, tokenizer)
    shares = {}
    for step in (1, 4):
        for plan in planner.plan(step, range(6)):
            shares[plan.example_key, step] = round(plan.hint, 2)
            shown = tokenizer.decode(list(plan.sampled_prompt_tokens))
            assert ("A good answer begins like this" in shown) == bool(plan.hint)
            assert "A good answer begins like this" not in tokenizer.decode(list(plan.prompt_tokens))
    assert shares["row-0", 1] == shares["row-2", 4] == pytest.approx(0.5, abs=0.05)
    assert shares["row-0", 4] < shares["row-1", 4] < shares["row-2", 4]
    assert shares["row-4", 1] == shares["row-5", 4] == 0


def test_a_resumed_run_repeats_its_hints(
    reasoned: list[Example], examples_file: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    whole, broken = whole_and_resumed(hinted(), examples_file, tiny_dir, tmp_path, after=2)
    expected = metrics_of(whole)
    assert metrics_of(broken) == {place: value for place, value in expected.items() if place[0] >= 3}
    assert 0 < expected[1, "hint/share"] <= 0.55
    shown = [row for event in events_of(whole) if event.data.kind == "rollouts" for row in event.data.rollouts]
    assert {bool(row.hint) for row in shown if row.phase == "train"} == {True, False}
    assert not any(row.hint or row.scaffold for row in shown if row.phase == "eval")


def test_prompts_without_reasoning_are_refused_or_dropped_as_was_said(reasoned: list[Example], tiny_dir: Path) -> None:
    from trainer.inference.models import load_tokenizer

    tokenizer = load_tokenizer(tiny_dir)
    refusing = small_config(scaffold=None, hint=HINT | {"without": "refuse"})
    with pytest.raises(RunFailed, match=r"hint\.without: 2 of 6 training prompts"):
        prepare_prompts(reasoned, tokenizer, refusing)
    dropping = small_config(scaffold=None, hint=HINT | {"without": "drop"})
    found = prepare_prompts(reasoned, tokenizer, dropping)
    assert (len(found.train), len(found.heldout)) == (4, 2)
    assert found.left_out[0].startswith("2 examples left out: they have no reference reasoning")
    assert found.left_out[1].startswith(
        "4 of 6 training prompts (67%) have no pass rate yet (`meta.pass_rate`): their hint never"
    )
    assert found.left_out[2].endswith("have no reference reasoning and are left out (`hint.without`)")


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"scaffold": {}}, "hint"),
        ({"objective": {"name": "icepop"}}, "hint.ratio_mode"),
        ({"hint": HINT | {"ratio_mode": "corrected"}, "rollout": {"top_p": 0.9}}, "hint.ratio_mode"),
        (
            {"runner": {"kind": "async", "policy": "dora", "quotas": [{"domain": "a", "share": 1.0}]}},
            "runner.quotas",
        ),
    ],
)
def test_what_does_not_go_with_a_hint_is_said_at_the_form(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        small_config(**{"scaffold": None, "hint": HINT} | changes)
    assert path in {problem.path for problem in caught.value.problems}
