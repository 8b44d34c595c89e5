"""The responses to a prompt are sampled over several steps. Every step has whole groups of several versions, and a resumed run has the same
ones.
"""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.config import ConfigInvalid
from trainer.loops.policy.spread_groups import SpreadGroups
from trainer.loops.session.errors import StopRequested
from trainer.loops.session.session import StepTell

from ..conftest import events_of, metrics_of, small_config

DECOUPLED = {"scaffold": None, "objective": {"name": "grpo", "decoupled": True}}


def spread(over: int, **changes: Any) -> Any:
    return small_config(**({"runner": {"spread": over}, "evaluation": {"every": 0}, "steps": 5} | DECOUPLED | changes))


def trained(run_dir: Path) -> dict[int, list[Any]]:
    found = defaultdict(list)
    for event in events_of(run_dir):
        if event.data.kind == "rollouts":
            found[event.step] += [row for row in event.data.rollouts if row.phase == "train"]
    return found


def test_every_step_trains_whole_groups_whose_responses_are_of_several_versions(
    make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    make_loop(spread(2), tmp_path / "run").run()
    make_loop(small_config(steps=5, evaluation={"every": 0}), tmp_path / "plain").run()
    rows, plain = trained(tmp_path / "run"), trained(tmp_path / "plain")
    for step in range(1, 6):
        assert [(row.group, row.index) for row in rows[step]] == [(group, i) for group in (0, 1) for i in range(4)]
        assert [row.example_key for row in rows[step]] == [row.example_key for row in plain[step]], "the data's order"
        versions = [row.stretches[0].version for row in rows[step][:4]]
        assert versions == ([0] * 4 if step == 1 else [step - 2] * 2 + [step - 1] * 2)
    values = metrics_of(tmp_path / "run")
    # the first step samples its own eight responses and half of those of the next step; the last step samples only its own rest
    assert [values[step, "rollout/responses"] for step in range(1, 6)] == [12, 8, 8, 8, 4]
    assert [values[step, "rollout/unfinished"] for step in range(1, 6)] == [4, 4, 4, 4, 0]
    assert [values[step, "rollout/age"] for step in (1, 2, 5)] == [0, 0.5, 0.5]
    assert [values[step, "rollout/age_max"] for step in (1, 2, 5)] == [0, 1, 1]


@pytest.mark.parametrize("over", [2, 3])
def test_a_resumed_run_goes_on_with_the_groups_that_were_not_whole(
    make_loop: Callable[..., Any], tmp_path: Path, over: int
) -> None:
    make_loop(spread(over), tmp_path / "whole").run()
    first = make_loop(spread(over), tmp_path / "broken")
    first.stage.open(0)
    for _ in range(2):
        first.advance()
    again = make_loop(spread(over), tmp_path / "broken")
    assert again.resume() and again.step == 2
    again.run()
    whole = metrics_of(tmp_path / "whole")
    assert {place: value for place, value in metrics_of(tmp_path / "broken").items() if place[0] > 2} == {
        place: value for place, value in whole.items() if place[0] > 2
    }


def test_a_step_that_is_given_up_has_sampled_nothing(make_loop: Callable[..., Any]) -> None:
    session = make_loop(spread(3))
    session.stage.open(0)
    session.advance()
    before = session.stage.state().values
    update = session.stage._update

    def stopped(*_: Any) -> None:
        raise StopRequested

    session.stage._update = stopped
    with pytest.raises(StopRequested):
        session.stage.step(2, StepTell(session, 2))
    after = session.stage.state().values
    assert (after["spread"], after["order"]) == (before["spread"], before["order"]) and before["spread"]
    session.stage._update = update
    session.advance()
    assert session.step == 2


def test_a_group_is_spread_evenly_and_a_run_begins_and_ends_with_whole_steps() -> None:
    class Plans:
        def plan(self, step: int) -> list[Any]:
            from trainer.rollouts import PromptPlan

            return [PromptPlan(f"p{step}", 0, index, "", (1,), (1,), index) for index in range(6)]

    groups = SpreadGroups(spread(3, rollout={"prompts_per_step": 1, "group_size": 6}, optim={}), Plans())  # type: ignore[arg-type]
    counts = []
    for step in range(1, 6):
        asked = groups.due(step)
        counts.append([sum(at == wanted for at, _, _ in asked) for wanted in range(1, 7)])
        results: Any = [_Result()] * len(asked)
        assert len(groups.sampled(step, asked, results)) == 6
        groups.updated()
    assert counts == [
        [6, 3, 2, 0, 0, 0],
        [0, 3, 2, 2, 0, 0],
        [0, 0, 2, 2, 2, 0],
        [0, 0, 0, 2, 2, 0],
        [0, 0, 0, 0, 2, 0],
    ]
    assert groups.waiting == 0


class _Result:
    tokens, logprobs, text, finish_reason, version = (5,), (-1.0,), "x", "stop", 0


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"objective": {"name": "grpo"}}, "runner.spread"),
        ({"runner": {"spread": 5}}, "runner.spread"),
        ({"runner": {"spread": 2, "kind": "async"}}, "runner.spread"),
        ({"runner": {"spread": 2, "push_every": 2, "replay": 1}}, "runner.spread"),
        ({"rollout": {"group_size": 4, "prompts_per_step": 2, "replace_flat": 1}}, "runner.spread"),
        ({"phases": [{"step": 2, "temperature": "set"}]}, "phases"),
    ],
)
def test_what_does_not_go_with_it_is_said_at_the_form(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        spread(2, **changes)
    assert path in {problem.path for problem in caught.value.problems}
