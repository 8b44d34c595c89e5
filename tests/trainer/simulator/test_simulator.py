"""The simulated cluster: times that were worked out by hand, and the effect of each schedule on the data."""

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.scheduling import SampleId, Start, Stretch
from trainer.simulator.command import main
from trainer.simulator.config import Engine as EngineConfig
from trainer.simulator.config import Simulation
from trainer.simulator.draws import Draws
from trainer.simulator.engine import SimulatedEngine
from trainer.simulator.report import summary
from trainer.simulator.simulate import ScheduleRecord, SimulatedRun, simulate

SAME_LENGTHS = {"median": 100.0, "sigma": 0.0, "prompt_sigma": 0.0}
NO_LATENCY = {"median_s": 0.0}
SMALL: dict[str, Any] = {
    "steps": 12,
    "warmup_steps": 2,
    "batch": {"prompts": 8, "group_size": 4},
    "cluster": {"devices": 6, "learner_devices": 2},
    "engine": {"slots": 8},
    "lengths": {"median": 500.0, "prompt_sigma": 0.8},
}


def config(**changes: Any) -> Simulation:
    found = Simulation.model_validate(SMALL | changes)
    assert list(found.problems()) == []
    return found


def results(found: Simulation, policy: Any) -> tuple[ScheduleRecord, dict[str, Any]]:
    draws = Draws(found)
    record = simulate(found, policy, draws)
    return record, summary(found, policy, record, draws)


def test_a_synchronous_step_takes_its_decoding_its_latency_its_update_and_its_push() -> None:
    found = config(
        schedule={"policies": ["sync"]},
        batch={"prompts": 1, "group_size": 4},
        cluster={"devices": 1, "learner_devices": 1},
        engine={"slots": 4, "step_s": 0.02, "response_s": 0.005, "start_s": 0.4, "load_s": 0.7},
        lengths=SAME_LENGTHS,
        latency={"median_s": 2.0, "sigma": 0.0},
        learner={"step_s": 5.0, "token_s": 0.001, "push_s": 2.0, "rest_s": 1.0},
    )
    record, values = results(found, "sync")
    # The weights are loaded and four prompts are read, then all decode together at 40 ms per token.
    decode = record.taken_at[0] - 2.0
    assert decode == pytest.approx(0.7 + 4 * 0.4 + 100 * 0.04)
    update = 5.0 + 4 * 100 * 0.001 + 3.0
    for step in range(12):
        assert record.done_at[step] == pytest.approx((step + 1) * (decode + 2.0 + update))
    assert values["steps_per_hour"] == pytest.approx(3600 / (decode + 2.0 + update))
    assert values["learner_busy"] == pytest.approx((update - 3.0) / (decode + 2.0 + update))


@pytest.mark.parametrize("policy", ["sync", "april", "urb", "dora"])
def test_responses_take_their_time_on_the_way(policy: Any) -> None:
    """One engine that waits for nothing else. The way of the responses makes each step longer if nothing is sampled meanwhile."""
    slow = {"slots": 64, "transit_s": 3.0, "start_s": 0.0, "load_s": 0.0}
    steps = []
    for engine in (slow | {"transit_s": 0.0}, slow):
        rules = {"policies": [policy], "ahead": 1, "max_staleness": 0 if policy == "dora" else 4}
        found = config(schedule=rules, engine=engine, lengths=SAME_LENGTHS)
        record, _ = results(found, policy)
        steps.append(record.done_at[0])
        assert len(record.done_at) == 12 and not record.drops
    assert steps[1] == pytest.approx(steps[0] + 3.0)


def engine_of(pinned: bool = True, **settings: Any) -> SimulatedEngine:
    free = {"start_s": 0.0, "load_s": 0.0, "response_s": 0.0}
    return SimulatedEngine("e", EngineConfig(**(free | settings)), 0.0, 0, pinned)


def test_responses_side_by_side_slow_each_other_down_and_speed_up_when_one_leaves() -> None:
    engine = engine_of(slots=2, step_s=0.01, response_s=0.01)
    engine.start(Start("e", SampleId(0, 0), 1, 0), 100, 0.0)
    assert engine.next_end() == pytest.approx(100 * 0.02)
    engine.start(Start("e", SampleId(0, 1), 1, 0), 150, 0.0)
    assert engine.next_end() == pytest.approx(100 * 0.03)
    assert engine.ended(3.0).sample == SampleId(0, 0)
    assert engine.next_end() == pytest.approx(3.0 + 50 * 0.02)
    engine.advance(4.0)
    assert (engine.busy_s, engine.slot_s) == (pytest.approx(4.0), pytest.approx(7.0))


def test_what_waits_takes_the_first_place_that_becomes_free() -> None:
    engine = engine_of(slots=1, step_s=0.1, start_s=0.5)
    for place in range(3):
        engine.start(Start("e", SampleId(0, place), 1, 0), 10, 0.0)
    assert engine.next_end() == pytest.approx(1.5)
    assert engine.ended(1.5).sample.place == 0 and engine.next_end() == pytest.approx(3.0)
    waiting = Start("e", SampleId(0, 2), 1, 0)
    assert engine.stop(waiting.sample, 2.0) == (waiting, 0) and engine.stop(waiting.sample, 2.0) is None
    assert engine.ended(3.0).sample.place == 1 and engine.next_end() is None


def test_other_versions_take_a_pass_of_their_own_or_wait() -> None:
    def two(versions: int | None) -> SimulatedEngine:
        engine = engine_of(slots=8, step_s=0.1, load_s=2.0, versions=versions)
        for version in (0, 1):
            engine.start(Start("e", SampleId(version, 0), 1, version), 10 * (1 + version), 0.0)
        return engine

    beside, one = two(None), two(1)
    assert beside.next_end() == pytest.approx(4.0 + 10 * 0.2)  # both are loaded, and each token takes two passes
    assert beside.ended(6.0).version == 0 and beside.next_end() == pytest.approx(6.0 + 10 * 0.1)
    assert one.next_end() == pytest.approx(2.0 + 10 * 0.1)
    assert one.ended(3.0).version == 0 and one.next_end() == pytest.approx(3.0 + 2.0 + 20 * 0.1)


def test_a_response_that_lives_through_a_push_holds_both_versions() -> None:
    engine = engine_of(pinned=False, slots=1, step_s=0.1, load_s=2.0)
    start = Start("e", SampleId(0, 0), 1, 0)
    engine.start(start, 100, 0.0)
    engine.push(4, 4.05)  # in the middle of the 41st token
    assert engine.next_end() == pytest.approx(12.0)
    assert engine.stop(start.sample, 9.005) == (start, 70)
    assert engine.stretches(start, 70, pinned=False) == (Stretch(0, 0, 40), Stretch(4, 40, 70))
    assert engine.stretches(start, 70, pinned=True) == (Stretch(0, 0, 70),)


@pytest.mark.parametrize("policy", ["sync", "urb"])
def test_sync_and_the_unbiased_buffer_train_on_the_data_as_it_is(policy: str) -> None:
    _, values = results(config(), policy)
    assert values["length_ratio"] == values["length_ratio_first_5"] == values["in_order"] == 1.0
    assert values["delay_longest_tenth"] == 0.0


def test_partial_rollouts_train_on_short_responses_first_and_on_long_ones_late() -> None:
    _, values = results(config(), "april")
    assert values["length_ratio_first_5"] < 0.97 and values["in_order"] < 0.9 and values["delay_longest_tenth"] > 0.3


def test_dropping_what_is_late_shortens_the_data_and_waiting_for_it_does_not() -> None:
    schedule = {"policies": ["dora"], "max_staleness": 1}
    _, dropping = results(config(schedule=schedule | {"late": "drop"}), "dora")
    _, waiting = results(config(schedule=schedule | {"late": "wait"}), "dora")
    assert dropping["dropped_stale"] > 0 and dropping["length_ratio"] < 0.9
    assert waiting["dropped_stale"] == 0 and waiting["length_ratio"] == pytest.approx(1.0, abs=0.05)
    assert dropping["staleness_max"] <= 1 and waiting["staleness_max"] <= 1


def test_every_schedule_is_faster_than_sync_on_long_tails() -> None:
    found = config(learner={"step_s": 1.0, "token_s": 0.0001, "push_s": 0.5})
    speed = {policy: results(found, policy)[1]["tokens_per_s"] for policy in ("sync", "april", "urb", "dora")}
    assert min(speed["april"], speed["urb"], speed["dora"]) > 1.2 * speed["sync"]


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    assert results(config(), "dora")[1] == results(config(), "dora")[1]
    assert results(config(), "dora")[1] != results(config(seed=1), "dora")[1]


def test_crashing_engines_cost_time_and_change_nothing_of_what_is_trained() -> None:
    calm, stormy = config(), config(engine={"slots": 8, "lives_s": 300.0, "restart_s": 30.0})
    (quiet, before), (rough, after) = results(calm, "urb"), results(stormy, "urb")
    assert after["crashes"] > 0 and after["dropped_crashed"] == 0 and after["hours"] > before["hours"]
    assert [[g.number for g in t.groups] for t in quiet.steps] == [[g.number for g in t.groups] for t in rough.steps]


def test_partial_rollouts_come_through_crashes() -> None:
    engine = {"slots": 8, "lives_s": 200.0, "restart_s": 30.0}
    record, _ = results(config(engine=engine), "april")
    assert len(record.done_at) == 12


def test_quotas_bring_every_domain_into_every_batch() -> None:
    domains = {"chat": {"share": 3.0}, "proofs": {"share": 1.0, "length_factor": 5.0, "oversample": 2.0}}
    record, values = results(config(domains=domains, schedule={"balance": 1.0}), "dora")
    assert all(sum(g.domain == "proofs" for g in train.groups) >= 2 for train in record.steps)
    assert values["domains"]["proofs"]["data"] == 0.25


POLICIES = ["sync", "april", "urb", "dora"]


def sizes_of(record: ScheduleRecord) -> list[list[int]]:
    return [[len(group.rows) for group in train.groups] for train in record.steps]


@pytest.mark.parametrize("policy", POLICIES)
def test_groups_that_all_have_one_size_of_their_own_change_nothing(policy: str) -> None:
    each = config(batch={"prompts": 8, "group_size": 4, "sizes": [4]})
    assert results(each, policy)[1] == results(config(), policy)[1]


@pytest.mark.parametrize("policy", POLICIES)
def test_each_group_has_the_size_that_the_order_of_the_data_gives_it(policy: str) -> None:
    sizes = [2, 9, 1, 4, 3]
    record, values = results(config(batch={"prompts": 8, "group_size": 4, "sizes": sizes}), policy)
    groups = [group for train in record.steps for group in train.groups]
    assert all(len(group.rows) == sizes[group.number % 5] for group in groups)
    if policy in ("sync", "urb"):
        assert values["length_ratio"] == pytest.approx(1.0) and values["in_order"] == 1.0


def test_a_budget_gives_out_the_responses_of_each_step_by_the_pass_rates() -> None:
    budget = {"low": 2, "high": 9}
    batch = {"prompts": 8, "group_size": 4, "budget": budget}
    found = sizes_of(results(config(batch=batch), "urb")[0])
    assert {sum(step) for step in found} == {32} and min(map(min, found)) >= 2 and max(map(max, found)) <= 9
    assert len({size for step in found for size in step}) > 1
    batch |= {"pass_rates": [0.0, 0.5], "budget": budget | {"value": "variance"}}
    extreme = sizes_of(results(config(batch=batch), "urb")[0])
    assert all(sum(2 < size < 9 for size in step) <= 1 for step in extreme), "one prompt takes what is left"
    assert results(config(batch=batch), "dora")[1]["dropped_groups"] == 0


def test_a_larger_group_keeps_one_engine_busy_for_longer() -> None:
    """Two engines that sample one response after the other. Two groups of 4 use both engines, and one group of 7 and one of 1 do not."""
    shape = {
        "schedule": {"policies": ["sync"]},
        "cluster": {"devices": 2, "learner_devices": 1},
        "engine": {"slots": 1, "step_s": 0.02, "response_s": 0.005, "start_s": 0.0, "load_s": 0.0},
        "lengths": SAME_LENGTHS,
        "latency": NO_LATENCY,
        "learner": {"step_s": 5.0, "token_s": 0.0, "push_s": 0.0},
    }
    response_s = 100 * (0.02 + 0.005)
    even, uneven = (
        results(config(**shape, batch={"prompts": 2, "group_size": 4, "sizes": sizes}), "sync")[0]
        for sizes in ([4, 4], [7, 1])
    )
    assert even.taken_at[0] == pytest.approx(4 * response_s)
    assert uneven.taken_at[0] == pytest.approx(8 * response_s), "an engine that takes 7 responses has room for one more"
    assert even.tokens == uneven.tokens


def test_measured_lengths_are_drawn_from() -> None:
    found = config(lengths={"measured": [7, 11]})
    draws = Draws(found)
    assert {draws.tokens(SampleId(group, 0)) for group in range(40)} == {7, 11}


def test_more_engines_than_responses_is_no_problem() -> None:
    found = config(cluster={"devices": 3000, "learner_devices": 8}, steps=3, warmup_steps=1)
    assert len(SimulatedRun(found, "urb", Draws(found)).run().done_at) == 3


def test_the_command_prints_a_table_and_one_json_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL))
    assert main([str(path), "--set", 'schedule.policies=["sync","urb"]', "--set", "steps=4"]) == 0
    head, *rows, last = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["policy", "steps/h"] and [row.split()[0] for row in rows] == ["sync", "urb"]
    found = json.loads(last)
    assert found["results"][0]["speed_up"] == 1.0 and found["config"]["steps"] == 4


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ('{"steps": 5}', "warmup_steps: not below steps"),
        ('{"cluster": {"learner_devices": 64}}', "cluster.learner_devices: leaves no engine"),
        ('{"schedule": {"ahead": 9}}', "schedule.policies.2: with 9 batches"),
        ('{"engine": {"slots": "many"}}', "engine.slots:"),
        ('{"batch": {"sizes": [4, 0]}}', "batch.sizes.1:"),
        ('{"batch": {"budget": {}, "sizes": [4]}}', "batch.budget: the sizes of all groups are given"),
        ('{"batch": {"budget": {"low": 20, "high": 30}}}', "batch.budget.low: 128 prompts x 16 responses"),
        ('{"bach": {}}', "bach: Extra inputs"),
        ("{", "line 1:"),
    ],
)
def test_a_config_that_cannot_work_is_refused_at_its_field(
    raw: str, field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(raw)
    with pytest.raises(SystemExit) as ended:
        main([str(path)])
    assert ended.value.code == 2 and field in capsys.readouterr().err
