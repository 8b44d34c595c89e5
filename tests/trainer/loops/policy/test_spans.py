"""Trajectories in which an environment writes between the turns of the policy. Only the tokens of the policy are learnt.

The environment of these tests is a script. Everything else is real: sampler, rewards, engine check, update.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.contracts import PartResult
from trainer.loops.learner.learner import Marked
from trainer.loops.policy.collecting import SyncCollector
from trainer.loops.policy.reports import (
    asking_parts,
    domain_shares,
    part_metrics,
    reward_metrics,
    rollout_metrics,
    rollout_records,
    update_metrics,
)
from trainer.loops.policy.token_texts import TokenTexts
from trainer.loops.policy.update import Updater, UpdateReport
from trainer.rollouts import Episode, Groups, PromptPlan, Reward, Span, Trajectory, episode_rows, sample_plans

from ..conftest import events_of, metrics_of, small_config

TOOL = Span("env", (20, 21, 22, 23))
SMALL_STEP = {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 6}


def policy_span(tokens: tuple[int, ...], logprob: float = -2.0, version: int = 0) -> Span:
    return Span("policy", tokens, (logprob,) * len(tokens), version)


def trajectory_of(group: int, place: int, *spans: Span, **more: Any) -> Trajectory:
    prompt = (30 + group, 31, 32)
    plan = PromptPlan(f"row-{group}", group, place, "", prompt, prompt, 0)
    return Trajectory(plan, (Span("prompt", prompt), *spans), "", more.pop("stop", "stop"), Reward(0.0), **more)


def batch(*between: Span) -> list[Trajectory]:
    """Two groups of two. The policy writes, the environment writes, the policy writes."""
    return [
        trajectory_of(group, place, policy_span((5 + place, 6)), *between, policy_span((7, 8 + group, 9 + place)))
        for group in range(2)
        for place in range(2)
    ]


def updated(
    make_loop: Callable[..., Any], trajectories: Sequence[Trajectory], **changes: Any
) -> tuple[UpdateReport, dict[str, torch.Tensor]]:
    """One update and its gradient, with advantages 1, -1, 1, -1."""
    config = small_config(**({"scaffold": None, "optim": {"lr": 1e-3, "grad_clip": 1e6}} | changes))
    learner = make_loop(config).stage.parts.learner
    learner.optimizer.step = lambda: None
    report = Updater(learner, config).run(trajectories, torch.tensor([1.0, -1.0] * (len(trajectories) // 2)))
    return report, {name: p.grad.clone() for name, p in learner.parameters.items()}


def same(one: tuple[UpdateReport, Any], other: tuple[UpdateReport, Any]) -> bool:
    """The numbers are exactly the same."""
    (a, grad_a), (b, grad_b) = one, other
    tensors = ("ratio", "weight", "entropy", "kl_old", "kl")
    return (
        a.losses == b.losses
        and a.grad_norms == b.grad_norms
        and all(getattr(a, name)[row].equal(getattr(b, name)[row]) for name in tensors for row in getattr(a, name))
        and all(grad_a[name].equal(grad_b[name]) for name in grad_a)
    )


@pytest.mark.parametrize("objective", [{"name": "grpo", "kl_beta": 0.1}, {"name": "gspo"}, {"name": "dapo"}])
def test_one_span_of_the_policy_cut_in_two_changes_nothing_to_the_bit(
    make_loop: Callable[..., Any], objective: dict[str, Any]
) -> None:
    whole = batch(TOOL)
    cut = [
        replace(t, spans=(*t.spans[:-1], policy_span(t.spans[-1].tokens[:1]), policy_span(t.spans[-1].tokens[1:])))
        for t in whole
    ]
    assert [len(t.spans) for t in cut] == [5] * 4
    assert same(updated(make_loop, whole, objective=objective), updated(make_loop, cut, objective=objective))


def test_what_the_environment_writes_last_is_in_no_number(make_loop: Callable[..., Any]) -> None:
    """Nothing depends on the text behind the policy's last token, so the text must not change any number."""
    plain = updated(make_loop, batch(TOOL))
    for ending in (Span("env", (40, 41)), Span("env", (50,))):
        ended = [replace(t, spans=(*t.spans, ending), stop="env") for t in batch(TOOL)]
        found = updated(make_loop, ended)
        assert same(found, plain) and (found[0].tokens, found[0].nodes) == (plain[0].tokens, plain[0].nodes)


def test_the_gradient_is_that_of_the_policys_tokens_after_all_that_stands_before_them(
    make_loop: Callable[..., Any],
) -> None:
    """-mean_i A_i mean over policy tokens of log pi, by a plain pass over the whole text. This is GRPO's gradient on policy."""
    trajectories = batch(TOOL)
    _, ours = updated(make_loop, trajectories, optim={"lr": 1e-3, "grad_clip": 1e6, "minibatch_size": 4})
    learner = make_loop(small_config(scaffold=None)).stage.parts.learner
    for trajectory, advantage in zip(trajectories, [1.0, -1.0] * 2, strict=True):
        tokens = torch.tensor([trajectory.prompt + trajectory.tokens])
        mask = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()[None, None]
        logp_T = torch.log_softmax(learner._model(tokens, attention_mask=mask).logits[0], -1)
        places = torch.tensor([3, 4, 9, 10, 11])  # prompt 0-2, policy 3-4, environment 5-8, policy 9-11
        logp = logp_T[places - 1].gather(-1, tokens[0, places][:, None])
        (-advantage * logp.mean() / 4).backward()
    assert max(float(p.grad.abs().max()) for p in learner.parameters.values()) > 1e-4
    for name, parameter in learner.parameters.items():
        torch.testing.assert_close(ours[name], parameter.grad, atol=2e-6, rtol=1e-3)


def uniform(make_loop: Callable[..., Any], config: Any) -> tuple[Any, float]:
    """A learner that gives all tokens the same log-probability."""
    learner = make_loop(config).stage.parts.learner
    head = learner._model.get_output_embeddings().weight
    with torch.no_grad():
        head.zero_()
    return learner, -math.log(len(head))


@pytest.mark.parametrize(
    ("objective", "loss"),
    [
        # ratios 8, 1, 1; A = 1: min(8, 1.2) + 1 + 1 over 3; A = -1: -(8 + 1 + 1) over 3; mean of two, negated
        ({"name": "grpo"}, -(3.2 / 3 - 10 / 3) / 2),
        # (8 * 1 * 1) ** (1 / 3) = 2: min(2, 1.2) and -2
        ({"name": "gspo", "eps_low": 0.2, "eps_high": 0.2}, -(1.2 - 2.0) / 2),
        # the mean over 6 tokens of the step
        ({"name": "dapo", "eps_high": 0.28}, -(3.28 - 10) / 6),
    ],
)
def test_ratios_and_means_are_of_the_policys_tokens_worked_by_hand(
    make_loop: Callable[..., Any], objective: dict[str, Any], loss: float
) -> None:
    config = small_config(scaffold={"ratio_mode": "corrected"}, objective=objective, optim={})  # the record is pi_old
    learner, logp = uniform(make_loop, config)
    first, rest = Span("policy", (5,), (logp - math.log(8.0),), 0), Span("policy", (6, 7), (logp, logp), 0)
    trajectories = [trajectory_of(0, place, first, TOOL, rest, TOOL) for place in range(2)]
    report = Updater(learner, config).run(trajectories, torch.tensor([1.0, -1.0]))
    assert report.losses == pytest.approx([loss], rel=1e-5)
    if objective["name"] != "gspo":
        assert report.ratio[0].tolist() == pytest.approx([8.0, 1.0, 1.0], rel=1e-5)
    assert report.entropy[0].tolist() == pytest.approx([-logp] * 3, rel=1e-5)
    assert report.kl[0].tolist() == pytest.approx([0.0] * 3, abs=1e-6) and len(report.kl_old[0]) == 3
    assert update_metrics(report)[0]["policy/entropy"] == pytest.approx(-logp, rel=1e-5)
    values = rollout_metrics([trajectories[0], replace(trajectories[1], stop="length")])
    assert values["rollout/length"] == 3.0 and values["rollout/truncated_share"] == 0.5


@pytest.mark.parametrize(("mode", "seen"), [("unscaffolded", (50, 51)), ("scaffolded", (30, 31, 32))])
def test_the_view_stands_where_the_prompt_was(make_loop: Callable[..., Any], mode: str, seen: Any) -> None:
    config = small_config(scaffold={"ratio_mode": mode}, optim={})
    loop = make_loop(config)
    rows: list[Marked] = []
    measure = loop.stage.parts.learner.measure
    loop.stage.parts.learner.measure = lambda asked, *a, **k: (rows.extend(asked), measure(asked, *a, **k))[1]
    trajectory = trajectory_of(0, 0, policy_span((5, 6)), TOOL, policy_span((7,)), view=(50, 51))
    loop.stage.updater.run([trajectory], torch.tensor([1.0]))
    assert {(row.tokens, tuple(row.places)) for row in rows} == {
        ((*seen, 5, 6, 20, 21, 22, 23, 7), (len(seen), len(seen) + 1, len(seen) + 6))
    }


def test_an_episode_counts_once_in_its_group_however_often_its_context_was_written_anew(
    make_loop: Callable[..., Any],
) -> None:
    first = trajectory_of(0, 0, policy_span((5,)))
    second = replace(first, plan=replace(first.plan, turn=1))
    other = trajectory_of(0, 1, policy_span((6,)))
    task: Any = None
    episodes = [Episode(task, (first, second)).worth(Reward(1.0)), Episode(task, (other,)).worth(Reward(0.0))]
    trajectories = [trajectory for episode in episodes for trajectory in episode.trajectories]
    stage = make_loop(small_config(objective={"name": "dr_grpo"})).stage
    assert stage.advantages(trajectories).tolist() == [0.5, 0.5, -0.5]
    assert episode_rows([other, other]) == ([0, 1], [0, 1]), "drawn twice by a step, it counts twice"


def test_a_run_without_a_judge_says_nothing_of_calls_to_judges() -> None:
    """A rubric whose criteria are all checked by verifiers is a part like one whose criteria a judge decides."""
    config = small_config(
        rewards=[{"kind": "rubric", "name": "rubric"}, {"kind": "judge", "name": "j", "judge": "J v1"}]
    )
    assert asking_parts(config.composition.parts) == {"j"}
    asked = small_config(rewards=[{"kind": "rubric", "name": "rubric", "judge": "J v1"}])
    assert asking_parts(asked.composition.parts) == {"rubric"}
    parts = [PartResult(name="rubric", kind="rubric", value=0.5)]
    assert part_metrics(parts, {"rubric"})["judge/calls"] == 0.0, "all its verdicts were stored"
    assert part_metrics(parts, ()) == {"reward/rubric": 0.5, "reward/rubric_excluded": 0.0}


def test_an_episodes_reward_is_told_once_however_many_trajectories_share_it() -> None:
    """Means over two episodes, one of which has three trajectories: 0.5, and not 0.75."""
    turns = [trajectory_of(0, 0, policy_span((5,) * (turn + 1))) for turn in range(3)]
    turns = [replace(t, plan=replace(t.plan, turn=turn)) for turn, t in enumerate(turns)]
    parts = {value: (PartResult(name="judge", kind="judge", value=value, calls=2, tokens=9),) for value in (0.0, 1.0)}
    task: Any = None
    solved = Episode(task, tuple(turns)).worth(Reward(1.0, parts=parts[1.0]))
    failed = Episode(task, (trajectory_of(0, 1, policy_span((6, 7))),)).worth(Reward(0.0, parts=parts[0.0]))
    left_out = Episode(task, tuple(replace(t, plan=replace(t.plan, index=2)) for t in turns))
    trajectories = [t for episode in (solved, failed, left_out.worth(Reward(None))) for t in episode.trajectories]
    values = rollout_metrics(trajectories) | reward_metrics(trajectories, {"judge"})
    assert (values["reward/mean"], values["reward/std"], values["reward/judge"]) == (0.5, 0.5, 0.5)
    assert (values["rollout/excluded"], values["judge/calls"]) == (1.0, 4.0), "nor is a call counted again"
    assert values["rollout/length"] == pytest.approx((1 + 2 + 3 + 2 + 1 + 2 + 3) / 7)
    assert values["rollout/tokens"] == 1 + 2 + 3 + 2 + 1 + 2 + 3


def test_each_domain_has_its_share_of_a_steps_responses_and_one_that_is_missing_has_none() -> None:
    turns = Span("policy", (1,), (-1.0,), 0)
    trajectories = [trajectory_of(group, place, turns) for group in range(2) for place in range(2)]
    of = {t.plan.example_key: "short" for t in trajectories}
    shares = domain_shares(trajectories, of.__getitem__, {"short", "long"})
    assert shares == {"rollout/domain/long": 0.0, "rollout/domain/short": 1.0}
    assert domain_shares(trajectories, of.__getitem__, {"short"}) == {} == domain_shares([], of.__getitem__, {"a", "b"})


class Scripted(SyncCollector):
    """The policy writes, a script answers with the text that it received, the policy writes again, and then the episode ends."""

    def _sampled(self, step: int, plans: Any, tell: Any) -> list[Trajectory]:
        parts, rollout = self._parts, self._parts.config.rollout
        encode = lambda text: tuple(parts.tokenizer(text, add_special_tokens=False)["input_ids"])  # noqa: E731
        opened = [
            Trajectory.of(plan, r) for plan, r in zip(plans, sample_plans(parts.sampler, plans, rollout), strict=True)
        ]
        heard = [Span("env", encode(f"\nheard {t.length}, now the rest: ")) for t in opened]
        asked = [
            replace(t.plan, sampled_prompt_tokens=t.prompt + t.tokens + env.tokens, seed=t.plan.seed + 1)
            for t, env in zip(opened, heard, strict=True)
        ]
        groups = Groups(plans, parts.tasks, self._scorer, f"train/{step}")
        rest = sample_plans(parts.sampler, asked, rollout)
        for place, (t, env, result) in enumerate(zip(opened, heard, rest, strict=True)):
            again = Span("policy", result.tokens, result.logprobs, result.version)
            whole = replace(t, spans=(*t.spans, env, again, Span("env", encode("over"))), text=result.text, stop="env")
            groups.played(place, Episode(parts.tasks[t.plan.example_key], (whole,), {"heard": t.length}))
        return [trajectory for episode in groups.scored() for trajectory in episode.trajectories]


def test_two_turns_with_an_environment_between_them_are_sampled_scored_and_trained_on(
    make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    config = small_config(steps=2, rollout=SMALL_STEP, scaffold=None, evaluation={"every": 0}, optim={"lr": 1e-3})
    session = make_loop(config, collector=lambda job: Scripted)
    before = session.stage.parts.learner.policy()
    seen: list[Trajectory] = []
    run = session.stage.updater.run
    session.stage.updater.run = lambda found, *a: (seen.extend(found), run(found, *a))[1]
    session.run()
    events = events_of(tmp_path / "run")
    assert any("sampler and trainer agree" in e.data.message for e in events if e.data.kind == "log")
    after = session.stage.parts.learner.policy()
    assert any(not before[name].equal(after[name]) for name in before)
    values = metrics_of(tmp_path / "run")
    lengths = [sum(len(s.tokens) for s in t.spans if s.author == "policy") for t in seen[:8]]
    assert values[1, "rollout/length"] == pytest.approx(sum(lengths) / 8)
    assert values[1, "policy/ratio_raw"] == pytest.approx(1.0, abs=1e-4) and values[1, "rollout/truncated_share"] == 0
    rows = [row for e in events if e.data.kind == "rollouts" for row in e.data.rollouts if e.step == 1]
    for row, t in zip(rows, seen, strict=False):
        policys = [span.author == "policy" for span in t.spans[1:] for _ in span.tokens]
        assert policys.count(False) > 4 and policys[-1] is False and row.finish_reason == "env"
        assert len(row.tokens) == len(policys)
        for column in (row.logprobs, row.ratios, row.entropies):
            assert [value is not None for value in column] == policys
        assert all(mine or weight == 0.0 for mine, weight in zip(policys, row.mask, strict=True))
        assert row.stretches[1].start == t.places[len(t.spans[1].tokens)]
        assert [turn.author for turn in row.turns] == ["policy", "env", "policy", "env"]
        assert sum(turn.tokens for turn in row.turns) == len(row.tokens)
        assert row.turns[1].text.startswith("\nheard ") and row.turns[2].text == row.response != row.turns[0].text


def test_records_of_plain_responses_are_whole() -> None:
    class Letters:
        def decode(self, tokens: list[int]) -> str:
            return chr(tokens[0] + 60)

    (row,) = rollout_records([trajectory_of(0, 0, policy_span((5, 6), -0.123456))], TokenTexts(Letters()), "train")
    assert (row.tokens, row.logprobs, row.ratios, row.mask) == (("A", "B"), (-0.1235, -0.1235), (), ())


def test_records_have_entropies_and_the_advantages_that_an_objective_gives_to_tokens() -> None:
    class Letters:
        def decode(self, tokens: Any, **_: Any) -> str:
            return "".join(chr(97 + token) for token in tokens)

    trajectories = [
        trajectory_of(0, place, policy_span((5, 6)), Span("env", (20,)), policy_span((7,))) for place in range(3)
    ]
    ones, entropy = torch.ones(3), torch.tensor([0.25, 0.0, 1.23456])
    report = UpdateReport(ratio={0: ones, 1: ones}, weight={0: ones, 1: ones}, entropy={0: entropy, 1: entropy})
    report.token_advantages[1] = torch.tensor([-1.0, 0.0, 2.0])
    plain, taught, left_out = rollout_records(trajectories, TokenTexts(Letters()), "train", report=report)
    assert plain.entropies == taught.entropies == (0.25, 0.0, None, 1.2346)
    assert plain.advantages == () and taught.advantages == (-1.0, 0.0, None, 2.0)
    assert left_out.entropies == left_out.advantages == (), "it was not trained on: nothing is made up"


def test_columns_are_kept_of_the_groups_that_are_shown() -> None:
    class Letters:
        def decode(self, tokens: Any, **_: Any) -> str:
            return "".join(chr(97 + token) for token in tokens)

    given = [trajectory_of(group, 0, policy_span((5, 6), -0.123456)) for group in (0, 1)]
    first, second = rollout_records(given, TokenTexts(Letters()), "train", shown=lambda group: group == 1)
    assert (first.tokens, first.logprobs, first.ratios, first.mask) == ((), (), (), ())
    assert (second.tokens, second.logprobs) == (("f", "g"), (-0.1235, -0.1235))
    assert first.response == second.response
