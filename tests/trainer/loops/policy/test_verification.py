"""Self-verification on the tiny model: judgements are further groups of a step, and do not count anywhere else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.config import ConfigInvalid
from trainer.loops.session.session import StepTell

from ..conftest import events_of, metrics_of, small_config, whole_and_resumed

ON = {"begins": "step", "step": 2, "verification": "on", "judged": 3, "judgements": 2, "tied": 0.5}
OFF = {"begins": "step", "step": 4, "verification": "off"}


def test_judgements_are_trained_on_and_change_no_pass_rate(
    make_loop: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make_loop(small_config(phases=[ON]))
    trained: list[Any] = []
    update = session.stage.updater.run
    session.stage.updater.run = lambda found, *rest: (trained.append(list(found)), update(found, *rest))[1]
    for _ in range(2):
        session.advance()
    first, second = trained
    assert (len(first), len(second)) == (8, 14)
    judgements = [each for each in second if each.plan.role == "verifier"]
    assert second[8:] == judgements
    assert sorted(each.plan.group for each in judgements) == [2, 2, 3, 3, 4, 4]
    for each in judgements:
        (about,) = {t.plan.prompt_text for t in second[:8] if t.plan.example_key == each.plan.example_key}
        assert f"Task:\n{about}\n\nAnswer:\n" in each.plan.prompt_text
    assert session.stage.planner.pass_rates.responses("row-0") <= 8
    found = metrics_of(tmp_path / "run")
    assert found[2, "rollout/responses"] == 8
    assert (2, "verify/unread") in found and (1, "verify/unread") not in found


def test_a_judgement_earns_what_is_known_of_the_response(make_loop: Callable[..., Any]) -> None:
    session = make_loop(small_config(phases=[ON | {"step": 1}]))
    stage, tell = session.stage, StepTell(session, 1)
    stage.phases.enter(1, tell)
    collected = stage.collector.collect(1, tell)
    sample = stage.parts.sampler.sample

    def scored(requests: Any, *rest: Any) -> Any:
        from dataclasses import replace

        return [
            replace(each, text="Score: 5" if place % 2 else "no idea")
            for place, each in enumerate(sample(requests, *rest))
        ]

    stage.parts.sampler.sample = scored
    judged = stage._verification.added(1, collected, tell).trajectories[8:]
    for place, each in enumerate(judged):
        known = each.reward.components["known_score"]
        expected = (1 - abs(0.5 - known)) * (0.5 + 0.5 * known) if place % 2 else 0.0
        assert each.reward.total == pytest.approx(expected)


def test_a_resumed_run_repeats_its_judgements(examples_file: Path, tiny_dir: Path, tmp_path: Path) -> None:
    config = small_config(
        phases=[ON, OFF], rollout={"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 8, "replace_flat": 1}
    )
    whole, broken = whole_and_resumed(config, examples_file, tiny_dir, tmp_path, after=2)
    expected = metrics_of(whole)
    assert metrics_of(broken) == {place: value for place, value in expected.items() if place[0] >= 3}
    assert {step for step, key in expected if key == "verify/reward"} == {2, 3}
    said = [event.data.message for event in events_of(whole) if event.data.kind == "log"]
    assert "phase 1 begins: judges 3 of its own responses a step" in said


@pytest.mark.parametrize("objective", [{"name": "grpo", "advantage": "remax"}, {"name": "distill", "teacher": "t"}])
def test_objectives_that_learn_from_something_else_refuse_it(objective: dict[str, Any]) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        small_config(phases=[ON], objective=objective, scaffold=None)
    assert "phases.0.verification" in {problem.path for problem in caught.value.problems}
