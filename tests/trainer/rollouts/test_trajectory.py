"""The authors of tokens, by hand, and their storage. Files of earlier programs are also read."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainer.contracts import PartResult
from trainer.inference.sampling import SampleResult
from trainer.rollouts import PromptPlan, Reward, Span, Trajectory
from trainer.rollouts.stored import read, read_with_plan, stored_trajectory, with_plan

PLAN = PromptPlan("row-1", 0, 1, "Say yes.", (5, 6), (5, 6), 41)
PROMPT = Span("prompt", (5, 6))
FIRST = Span("policy", (10, 11), (-0.5, -0.25), 3)
TOOL = Span("env", (20, 21, 22))
SECOND = Span("policy", (12,), (-1.0,), 4)
BEFORE: list[dict[str, Any]] = json.loads((Path(__file__).parent / "stored_before_spans.json").read_text())


def trajectory(*spans: Span) -> Trajectory:
    return Trajectory(PLAN, (PROMPT, *spans), "said", "env")


def test_the_mask_is_what_the_policy_wrote() -> None:
    found = trajectory(FIRST, TOOL, SECOND, TOOL)
    assert found.prompt == (5, 6) and found.tokens == (10, 11, 20, 21, 22, 12, 20, 21, 22)
    assert list(found.places) == [0, 1, 5] and found.length == 3
    assert found.logprobs == (-0.5, -0.25, -1.0)
    assert found.versions == ((3, 0, 2), (4, 5, 6))
    assert found.key == ("policy", 0, 1, 0)


def test_one_prompt_and_one_response_are_two_spans() -> None:
    found = Trajectory.of(PLAN, SampleResult((10, 11), (-0.5, -0.25), "said", "stop", 3))
    assert found.spans == (PROMPT, FIRST) and found.places == range(2) and found.versions == ((3, 0, 2),)
    assert found.tokens is found.spans[1].tokens, "nothing is copied"
    assert found.reward.total is None and found.view == ()


def test_a_span_cut_in_two_says_the_same() -> None:
    whole = trajectory(FIRST, TOOL, SECOND)
    cut = trajectory(FIRST._replace(tokens=(10,), logprobs=(-0.5,)), Span("policy", (11,), (-0.25,), 3), TOOL, SECOND)
    for name in ("tokens", "places", "logprobs", "length", "versions"):
        assert getattr(cut, name) == getattr(whole, name), name


def test_another_prompt_for_pi_is_the_view() -> None:
    scaffolded = replace(PLAN, sampled_prompt_tokens=(5, 9, 6))
    found = Trajectory.of(scaffolded, SampleResult((10,), (-0.5,), "said", "stop", 3))
    assert found.prompt == (5, 9, 6) and found.view == (5, 6)


@pytest.mark.parametrize(
    ("spans", "why"),
    [
        ((), "begins with a prompt"),
        ((FIRST,), "begins with a prompt"),
        ((Span("prompt", ()), FIRST), "begins with a prompt of one token or more"),
        ((PROMPT, PROMPT), "not 'prompt'"),
        ((PROMPT, FIRST._replace(author="tool")), "not 'tool'"),  # type: ignore[arg-type]
        ((PROMPT, FIRST._replace(logprobs=(-0.5,))), "not 1 for 2 of author 'policy'"),
        ((PROMPT, TOOL._replace(logprobs=(-0.5, -0.5, -0.5))), "not 3 for 3 of author 'env'"),
    ],
)
def test_spans_that_cannot_be_are_refused(spans: tuple[Span, ...], why: str) -> None:
    with pytest.raises(ValueError, match=f"a trajectory .*{why}"):
        Trajectory(PLAN, spans, "said", "stop")


@pytest.mark.parametrize("view", [(), (7, 8)])
def test_what_is_written_comes_back(view: tuple[int, ...]) -> None:
    reward = Reward(0.1 + 0.2, {"rubric": 0.3}, (), 0.3, 0.3, "", (PartResult(name="rubric", kind="rubric"),))
    kept = replace(trajectory(FIRST, TOOL, SECOND), reward=reward, view=view)
    assert read_with_plan(json.loads(json.dumps(with_plan(kept)))) == kept
    assert read(json.loads(json.dumps(stored_trajectory(kept))), PLAN) == kept


def test_what_programs_before_spans_wrote_is_read() -> None:
    once, twice = (read_with_plan(row) for row in BEFORE)
    assert once.spans == (Span("prompt", (5, 6, 7)), Span("policy", (10, 11, 2), (-0.5, -0.25, -1.0), 3))
    assert (once.text, once.stop, once.view, once.reward.total) == ("yes", "stop", (), 0.5)
    assert once.reward.parts[0].why == "half" and once.plan.turn == 0
    assert twice.versions == ((1, 0, 3), (2, 3, 4)) and twice.logprobs == (-0.1, -0.2, -0.3, -0.4)
    assert (twice.prompt, twice.view, twice.stop) == ((5, 9, 6), (5, 6), "length")
    assert twice.reward.excluded == "rubric: gone"


@pytest.mark.parametrize("lost", ["tokens", "reward", "finish_reason"])
def test_what_nobody_wrote_is_refused(lost: str) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        read_with_plan({key: value for key, value in BEFORE[0].items() if key != lost})
