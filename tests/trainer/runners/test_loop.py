"""Asynchronous runs with workers inside the test: what they repeat exactly, and how they survive failures."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.loops.conftest import events_of, metrics_of, small_config
from trainer import checkpoints
from trainer.contracts import Example, SpansData, jsonlines
from trainer.loops.session import spans, timeline
from trainer.loops.session.errors import RunFailed, StopRequested
from trainer.loops.session.session import Session, StepTell
from trainer.loops.session.timeline import TimePiece
from trainer.rollouts import Reward
from trainer.runners.work import ScoredGroup
from trainer.scheduling import LearnerReady

from .conftest import STEPS, async_config, from_fleet
from .fake import FakeFleet

Make = Callable[..., Session]
AHEAD = {"ahead": 3, "max_staleness": 2}


def metrics_without_times(run_dir: Path) -> dict[tuple[int, str], float]:
    """All metrics except those that depend on the clock or on the cost of failures."""
    clock = ("async/utilisation", "async/dropped", "async/dropped_groups")
    return {place: value for place, value in metrics_of(run_dir).items() if place[1] not in clock}


def trained_on(run_dir: Path) -> list[tuple[int, int, int, str, str]]:
    events = [event for event in events_of(run_dir) if event.data.kind == "rollouts"]
    rows = [(event.step, row) for event in events for row in event.data.rollouts if row.phase == "train"]
    return [(step, row.group, row.index, row.example_key, row.response) for step, row in rows]


def logs(run_dir: Path) -> list[str]:
    return [event.data.message for event in events_of(run_dir) if event.data.kind == "log"]


def test_a_pool_of_one_step_is_the_synchronous_run(
    make_async: Make, make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    make_loop(small_config(**STEPS), tmp_path / "sync").run()
    make_async(async_config({"ahead": 1}), tmp_path / "async").run()
    assert trained_on(tmp_path / "async") == trained_on(tmp_path / "sync")
    found, expected = metrics_of(tmp_path / "async"), metrics_of(tmp_path / "sync")
    # A group is sampled and a step is scored in batches of other shapes, which round differently.
    assert {place: found[place] for place in expected} == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert {value for (_, key), value in found.items() if key == "async/staleness"} == {0.0}


def test_neither_the_order_of_the_work_nor_crashes_change_what_is_learned(make_async: Make, tmp_path: Path) -> None:
    calm, busy, stormy = (tmp_path / name for name in ("calm", "busy", "stormy"))
    make_async(async_config(AHEAD), calm).run()
    make_async(async_config(AHEAD | {"workers": 4}), busy, seed=9).run()
    make_async(async_config(AHEAD | {"retries": 100}), stormy, seed=7, crashes=0.4).run()
    assert any("killed by the test" in line for line in logs(stormy))
    assert metrics_without_times(calm) == metrics_without_times(busy) == metrics_without_times(stormy)
    assert trained_on(calm) == trained_on(busy) == trained_on(stormy)
    ages = [value for (_, key), value in sorted(metrics_without_times(calm).items()) if key == "async/staleness"]
    assert ages == [0.0, 1.0, 2.0, 2.0, 2.0]


def test_tokens_of_workers_count_when_they_are_reported(make_async: Make, tmp_path: Path) -> None:
    session = make_async(async_config(AHEAD))
    session.job.generated.by(session.stage.collector)  # type: ignore[attr-defined]
    session.run()
    found = metrics_of(tmp_path / "async")
    trained = sum(value for (_, key), value in found.items() if key == "rollout/tokens")
    reported = [event.data for event in events_of(tmp_path / "async") if event.data.kind == "metrics"]
    assert sum(data.values.get("perf/generated_tokens", 0) for data in reported) >= trained > 0


def test_the_spans_of_a_step_show_what_each_worker_did_meanwhile(
    make_async: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = set()

    def noting(own: Sequence[TimePiece], beside: Iterable[TimePiece]) -> SpansData:
        pieces = list(beside)
        reported.update(piece.name for piece in pieces)
        return timeline.spans_data(own, pieces)

    monkeypatch.setattr(spans, "spans_data", noting)
    make_async(async_config(AHEAD | {"workers": 2})).run()
    told = [event.data for event in events_of(tmp_path / "async") if event.data.kind == "spans"]
    assert len(told) == STEPS["steps"]
    names = set()
    for data in told:
        works = [span for span in data.spans if span.inside < 0]
        assert sum(span.took for span in works) == data.took > 0
        names |= {data.names[span.name] for span in data.beside}
    assert {"rewards of a group", "weights to the sampler"} < names
    # on a slow machine a worker may have loaded them before the step in which it reports, and a step shows only its own time
    assert "weights to a worker" in reported
    assert [name for name in names if name.startswith("rollout-")]


@pytest.mark.parametrize(
    "runner",
    [AHEAD, AHEAD | {"push_every": 2, "max_staleness": 3, "reset_optimizer": True}, AHEAD | {"clear_on_push": True}],
    ids=["push every step", "push every other step and forget moments", "clear on push"],
)
def test_a_killed_run_resumes_to_the_same_metrics(runner: dict[str, Any], make_async: Make, tmp_path: Path) -> None:
    whole, other = tmp_path / "whole", tmp_path / "other"
    make_async(async_config(runner), whole).run()
    make_async(async_config(runner), other, seed=3).run()
    for step in (1, 2, 4):
        broken = tmp_path / f"killed after {step}"
        shutil.copytree(other, broken)
        for later in range(step + 1, 6):
            (broken / "checkpoints" / f"step-{later:06d}" / "state.json").unlink()
        (broken / "events.jsonl").unlink()
        again = make_async(async_config(runner), broken, seed=4)
        assert again.resume() and again.step == step
        again.run()
        expected = {place: value for place, value in metrics_without_times(whole).items() if place[0] > step}
        assert {place: value for place, value in metrics_without_times(broken).items() if place[0] > step} == expected
        assert trained_on(broken) == [row for row in trained_on(whole) if row[0] > step]


BUDGET = {"rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 6, "budget": {"low": 2, "high": 6}}}


def solving(session: Any) -> Any:
    """Half of the responses solve every second prompt, and all responses solve the others. So the pass rates give the groups different
    sizes.
    """
    rates = session.stage.planner.pass_rates
    keys = sorted(prompt.example.key for prompt in session.stage.parts.prompts.train)
    learn = rates.learned
    rates.learned = lambda visits: learn(
        {
            key: [keys.index(key) % 2 == 0 or place % 2 == 0 for place, _ in enumerate(outcomes)]
            for key, outcomes in visits.items()
        }
    )
    return session


def sizes(run_dir: Path) -> dict[int, list[int]]:
    """The sizes of the groups of each step."""
    found: dict[int, Counter[int]] = {}
    for step, group, *_ in trained_on(run_dir):
        found.setdefault(step, Counter())[group] += 1
    return {step: [count for _, count in sorted(groups.items())] for step, groups in sorted(found.items())}


def test_a_budget_decides_the_size_of_a_group_when_it_is_admitted(make_async: Make, tmp_path: Path) -> None:
    """Each step has 8 responses. Neither crashes nor a kill and resume change the number of responses of each prompt."""
    config = async_config(AHEAD | {"retries": 100}, **BUDGET, steps=8, checkpoint={"every": 1, "keep": 8})
    whole, stormy, broken = tmp_path / "whole", tmp_path / "stormy", tmp_path / "broken"
    solving(make_async(config, whole)).run()
    solving(make_async(config, stormy, seed=7, crashes=0.4)).run()
    found = sizes(whole)
    assert {sum(each) for each in found.values()} == {8}
    assert all(found[step] == [4, 4] for step in (1, 2, 3)), "these were admitted when nothing was known"
    assert any(each != [4, 4] for each in found.values())
    assert metrics_without_times(stormy) == metrics_without_times(whole) and trained_on(stormy) == trained_on(whole)
    assert all(metrics_of(whole)[step, "rollout/largest_group"] == max(each) for step, each in found.items())
    shutil.copytree(stormy, broken)
    for later in range(5, 9):
        (broken / "checkpoints" / f"step-{later:06d}" / "state.json").unlink()
    (broken / "events.jsonl").unlink()
    again = solving(make_async(config, broken, seed=4))
    assert again.resume() and again.step == 4
    again.run()
    assert trained_on(broken) == [row for row in trained_on(whole) if row[0] > 4]
    rows = jsonlines.rows((whole / "timings.jsonl").read_text())
    assert {row["step"]: row["sizes"] for row in rows if "step" in row} == found


@pytest.mark.parametrize(
    ("runner", "spare"),
    [
        ({"ahead": 3, "max_staleness": 2}, 0),
        ({"policy": "dora"}, 0),
        ({"policy": "april", "oversample": 2.0, "max_staleness": 9}, 2),
    ],
    ids=["urb", "dora", "april, whose last step takes the first to finish"],
)
def test_no_group_is_sampled_or_scored_that_no_step_can_use(
    runner: dict[str, Any], spare: int, make_async: Make, tmp_path: Path
) -> None:
    loop: Any = make_async(async_config(runner | {"workers": 4}), tmp_path / "run", seed=3)
    conductor: Any = loop.stage.collector._conductor
    taken: list[int] = []
    take = conductor._responses.taken
    conductor._responses.taken = lambda number, *others: taken.append(number) or take(number, *others)
    loop.run()
    fleet = conductor._fleet
    sampled = {key.sample.group for _, job in fleet.jobs for key in job.keys}
    scored = {key.sample.group for job in fleet.scored for key in job.keys}
    assert len(taken) == len(set(taken)) == 10 and set(taken) <= scored <= sampled
    assert len(sampled - set(taken)) <= spare
    if not spare:
        assert sampled == scored == set(taken)


def test_an_extended_run_equals_one_that_was_longer_from_its_start(make_async: Make, tmp_path: Path) -> None:
    """The weights for prompts beyond the last step are kept, so that these are sampled with the weights that were planned for them."""
    make_async(async_config(AHEAD), tmp_path / "whole").run()
    make_async(async_config(AHEAD, steps=2), tmp_path / "run", seed=1).run()
    longer = make_async(async_config(AHEAD), tmp_path / "run", seed=2)
    assert longer.resume() and longer.step == 2
    longer.run()
    assert trained_on(tmp_path / "run") == trained_on(tmp_path / "whole")
    assert metrics_without_times(tmp_path / "run") == metrics_without_times(tmp_path / "whole")


@pytest.mark.parametrize(
    "runner",
    [{"policy": "april", "oversample": 2.0, "segment_tokens": 2, "max_staleness": 9}, {"policy": "dora"}],
    ids=["april", "dora"],
)
def test_a_killed_run_loses_no_prompt_and_repeats_none_whatever_its_schedule(
    runner: dict[str, Any], make_async: Make, tmp_path: Path
) -> None:
    """The first to finish decides which groups these train on. But every group of the data is trained on once, or will be."""
    taken: list[int] = []

    def watched(seed: int) -> Session:
        loop: Any = make_async(async_config(runner, steps=6), tmp_path / "run", seed=seed)
        take = loop.stage.collector._conductor._responses.taken

        def note(number: int, places: Any, group: int) -> Any:
            taken.append(number)
            return take(number, places, group)

        loop.stage.collector._conductor._responses.taken = note
        return loop

    first: Any = watched(seed=1)
    one_step = first.advance

    def killed() -> None:
        if first.step == 3:
            raise KeyboardInterrupt
        one_step()

    first.advance = killed
    with pytest.raises(KeyboardInterrupt):
        first.run()
    again: Any = watched(seed=2)
    assert again.resume() and again.step == 3
    again.run()
    schedule = again.stage.collector._conductor._scheduler
    assert len(taken) == 12 and schedule.dropped == 0
    assert sorted([*taken, *schedule.groups]) == list(range(schedule.admitted))


def test_a_stop_while_the_learner_waits_repeats_that_step_later(make_async: Make, tmp_path: Path) -> None:
    make_async(async_config(AHEAD), tmp_path / "straight").run()
    loop: Any = make_async(async_config(AHEAD), tmp_path / "run")
    weigh = loop.stage.advantages

    def stop_in_the_third_step(trajectories: Any, greedy_B: Any) -> Any:
        if loop.step == 2:
            loop.job.monitor.request_stop()
        return weigh(trajectories, greedy_B)

    loop.stage.advantages = stop_in_the_third_step
    with pytest.raises(StopRequested):
        loop.run()
    again = make_async(async_config(AHEAD), tmp_path / "run")
    assert again.resume() and again.step == 2
    again.run()
    assert metrics_without_times(tmp_path / "run") == metrics_without_times(tmp_path / "straight")


def test_a_hung_worker_is_replaced_and_the_log_says_why(make_async: Make, tmp_path: Path) -> None:
    make_async(async_config(AHEAD), tmp_path / "calm").run()
    loop: Any = make_async(async_config(AHEAD | {"heartbeat_s": 1.5}), tmp_path / "hung", hangs=(2,))
    loop.run()
    # On a busy machine, other workers may seem to hang as well.
    lines = [line for line in logs(tmp_path / "hung") if "hangs" in line]
    assert any("no sign of life" in line and "while sampling" in line for line in lines)
    assert metrics_without_times(tmp_path / "hung") == metrics_without_times(tmp_path / "calm")


def test_weights_that_did_not_arrive_stop_the_run(make_async: Make) -> None:
    loop: Any = make_async(async_config())
    loop.stage.collector._conductor._fleet.spoil = lambda ended: ended._replace(digest="0" * 32)
    with pytest.raises(RunFailed, match="does not hold the weights of version 0"):
        loop.run()


def test_workers_of_a_run_whose_start_fails_half_way_are_ended(make_loop: Callable[..., Any], tiny_dir: Path) -> None:
    class HalfStarted(FakeFleet):
        closed = 0

        def start(self, workers: int) -> None:
            raise RunFailed("only some of them have started")

        def close(self) -> None:
            self.closed += 1

    config = async_config()
    fleet = HalfStarted(config, tiny_dir)
    loop: Any = make_loop(config, collector=lambda job: from_fleet(fleet, job))
    with pytest.raises(RunFailed, match="only some"):
        loop.run()
    loop.stage.close()
    assert fleet.closed == 1


def test_a_response_that_kills_every_worker_is_excluded_and_its_group_filled_up(
    make_async: Make, tmp_path: Path
) -> None:
    loop: Any = make_async(async_config({"retries": 0, "ahead": 1}), tmp_path / "run", crashes=0.5, seed=2)
    loop.run()
    assert any("is not trained on: 0 of 4 responses valid" in line for line in logs(tmp_path / "run"))
    assert loop.step == 5


def hold_back_while_the_learner_trains(loop: Any) -> None:
    """Workers deliver only while the learner waits. So the speed of the workers does not decide which responses are put off."""
    conductor: Any = loop.stage.collector._conductor
    tell, batch, poll = conductor._tell, conductor._batch, conductor._fleet.poll
    waits = False

    def told(event: Any, **then: Any) -> None:
        nonlocal waits
        waits = waits or isinstance(event, LearnerReady)
        tell(event, **then)

    def taken(train: Any) -> Any:
        nonlocal waits
        waits = False
        return batch(train)

    conductor._tell, conductor._batch = told, taken
    conductor._fleet.poll = lambda timeout_s: poll(timeout_s) if waits else time.sleep(0.001) or []


def test_partial_rollouts_go_on_with_newer_weights(make_async: Make, tmp_path: Path) -> None:
    runner = {"policy": "april", "segment_tokens": 2, "oversample": 2.0, "max_staleness": 3}
    loop: Any = make_async(async_config(runner, steps=6), tmp_path / "run")
    hold_back_while_the_learner_trains(loop)
    seen: list[Any] = []
    collect = loop.stage.collector.collect
    loop.stage.collector.collect = lambda *given: seen.extend((found := collect(*given)).trajectories) or found
    loop.run()
    mixed = [trajectory for trajectory in seen if len(trajectory.versions) > 1]
    assert mixed, "a response was put off and went on after a push"
    for trajectory in seen:
        assert len(trajectory.tokens) == len(trajectory.logprobs) == trajectory.versions[-1][2]
        ends = [0, *(end for _, _, end in trajectory.versions)]
        assert [start for _, start, _ in trajectory.versions] == ends[:-1]
        assert trajectory.versions[0][0] == min(version for version, _, _ in trajectory.versions)


def test_streaming_stays_within_its_staleness_and_resumes(make_async: Make, tmp_path: Path) -> None:
    runner = {"policy": "dora", "max_staleness": 1}
    make_async(async_config(runner), tmp_path / "run", seed=1).run()
    for later in (4, 5):
        (tmp_path / "run" / "checkpoints" / f"step-{later:06d}" / "state.json").unlink()
    again = make_async(async_config(runner), tmp_path / "run", seed=2)
    assert again.resume() and again.step == 3
    again.run()
    assert {step for step, key in metrics_of(tmp_path / "run") if key == "async/staleness"} == {1, 2, 3, 4, 5}
    worst = [value for (_, key), value in metrics_of(tmp_path / "run").items() if key == "async/staleness_max"]
    assert max(worst) <= 1
    told = [event.data.values for event in events_of(tmp_path / "run") if event.data.kind == "metrics"]
    queued = [values["perf/queue"] for values in told if "perf/queue" in values]
    assert len(queued) >= 5 and all(0 <= value <= 8 for value in queued)


def test_the_optimiser_is_forgotten_at_a_push_only(make_async: Make, tmp_path: Path) -> None:
    runner = {"push_every": 2, "max_staleness": 3, "reset_optimizer": True}
    pulls = {"name": "grpo", "kl_beta": 0.01}  # so that a step with equal rewards also changes something
    loop: Any = make_async(async_config(runner, steps=3, objective=pulls), tmp_path / "run")
    loop.run()
    moments = [
        bool(checkpoints.load(tmp_path / "run" / "checkpoints" / f"step-{step:06d}").tensors["optimizer"])
        for step in (1, 2, 3)
    ]
    assert moments == [True, False, True]


def test_a_checkpoint_of_a_synchronous_run_is_refused(
    make_async: Make, make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    make_loop(small_config(**STEPS), tmp_path / "run").run()
    with pytest.raises(ValueError, match='runner.kind is "sync" there and "async" here'):
        make_async(async_config(), tmp_path / "run").resume()


def test_the_state_of_the_workers_is_json(make_async: Make) -> None:
    loop: Any = make_async(async_config(AHEAD, steps=2))
    loop.run()
    state = loop.stage.collector._conductor.state_dict()
    assert json.loads(json.dumps(state)) == state


def test_a_run_writes_down_what_its_workers_and_its_learner_spent(make_async: Make, tmp_path: Path) -> None:
    make_async(async_config(steps=2, evaluation={"every": 0})).run()
    asked, first, second = jsonlines.rows((tmp_path / "async" / "timings.jsonl").read_text())
    assert (asked["asked"]["prompts"], asked["asked"]["group_size"], asked["asked"]["sampler"]) == (2, 4, "local")
    tokens = sum(rows * count for row in (first, second) for _, rows, _, count, _ in row["turns"])
    assert len(first["lengths"]) == len(second["lengths"]) == 8
    assert tokens >= sum(first["lengths"] + second["lengths"]), "each turn gives every response in it a token"
    assert sum(row["loads"][0] for row in (first, second)) >= 1
    assert first["scoring_s"] + second["scoring_s"], "all groups may be scored before the first step"
    ways = first["transit_s"] + second["transit_s"]
    assert len(ways) >= 16 and min(ways) >= 0
    assert "update_s" not in first and min(second[part] for part in ("wait_s", "update_s", "rest_s")) >= 0


def test_a_repeated_response_is_told_once(make_loop: Callable[..., Any]) -> None:
    from trainer.loops.policy.reports import rollout_records

    loop: Any = make_loop(small_config())
    trajectories = loop.stage.collector.collect(1, StepTell(loop, 1)).trajectories
    records = rollout_records([*trajectories, trajectories[0]], loop.stage.parts.token_texts, "train")
    assert len(records) == len(trajectories) and replace(trajectories[0]) == trajectories[0]


def test_responses_whose_reward_worker_was_lost_are_excluded_and_the_run_goes_on(
    make_async: Make, tmp_path: Path
) -> None:
    loop: Any = make_async(async_config(steps=2, evaluation={"every": 0}))
    fleet: Any = loop.stage.collector._conductor._fleet
    score, jobs = fleet._rewards.score, []

    def lose_the_first(job: Any) -> Any:
        jobs.append(job)
        lost = Reward(None, excluded="its reward worker was lost 4 times")
        return ScoredGroup(tuple(lost for _ in job.keys)) if len(jobs) == 1 else score(job)

    fleet._rewards.score = lose_the_first
    loop.run()
    values = metrics_of(tmp_path / "async")
    assert sum(values[step, "rollout/excluded"] for step in (1, 2)) == 4
    assert all((step, "criterion/must_contain") in values for step in (1, 2))


@pytest.fixture
def of_two_domains(examples: list[Example]) -> dict[str, str]:
    """Domain by key: one training prompt of law, five of medicine. Call it before a loop is made."""
    for place, example in enumerate(examples):
        examples[place] = example.model_copy(update={"domain": "law" if place == 0 else "medicine"})
    return {example.key: example.domain for example in examples}


@pytest.mark.usefixtures("of_two_domains")
def test_quotas_decide_the_domains_of_every_step(
    make_async: Make, of_two_domains: dict[str, str], tmp_path: Path
) -> None:
    """One in six prompts is about law, but every step has as many of law as of medicine."""
    quotas = [{"domain": "law", "oversample": 2.0}, {"domain": "medicine"}]
    make_async(async_config({"policy": "dora", "quotas": quotas}), tmp_path / "run", seed=1).run()
    domains: dict[int, dict[int, str]] = {}
    for step, group, _, key, _ in trained_on(tmp_path / "run"):
        domains.setdefault(step, {})[group] = of_two_domains[key]
    assert {step: sorted(found.values()) for step, found in domains.items()} == {
        step: ["law", "medicine"] for step in range(1, 6)
    }


@pytest.mark.usefixtures("of_two_domains")
def test_a_quota_that_cannot_be_met_is_refused_before_anything_is_sampled(make_async: Make) -> None:
    said = "no training prompt is of domain 'art'; there are 'law', 'medicine'"
    with pytest.raises(RunFailed, match=said):
        make_async(async_config({"policy": "dora", "quotas": [{"domain": "art"}]}))


@pytest.mark.usefixtures("of_two_domains")
def test_prompts_without_a_quota_are_counted(make_async: Make, tmp_path: Path) -> None:
    make_async(async_config({"policy": "dora", "quotas": [{"domain": "law"}]}, steps=1), tmp_path / "run").run()
    assert "5 training prompts are of domains without a quota and are not used" in logs(tmp_path / "run")


def test_a_pool_cleared_at_each_push_trains_on_one_version_at_a_time(make_async: Make, tmp_path: Path) -> None:
    """OAPL's buffer: responses that older weights sampled ahead are sampled again, completely."""
    runner = {"ahead": 3, "push_every": 2, "max_staleness": 3, "clear_on_push": True}
    loop: Any = make_async(async_config(runner, objective={"name": "oapl"}, steps=6), tmp_path / "run")
    seen: list[set[int]] = []
    update = loop.stage.updater.run

    def note(trajectories: Any, *others: Any) -> Any:
        seen.append({version for t in trajectories for version, _, _ in t.versions})
        return update(trajectories, *others)

    loop.stage.updater.run = note
    loop.run()
    assert seen == [{0}, {0}, {2}, {2}, {4}, {4}]
