"""The invariants of every schedule, and the differences between schedules."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.scheduling import (
    DomainShare,
    Drop,
    Finished,
    GroupSource,
    Heartbeat,
    LearnerReady,
    Paused,
    Replace,
    Rules,
    SampleId,
    Scheduler,
    Start,
    Stop,
    Stretch,
    Tick,
    Train,
    Updated,
    WorkerJoined,
    WorkerLost,
)

from .world import World

SEEDS = st.integers(0, 2**31)
POLICIES = st.sampled_from(["sync", "april", "urb", "dora"])


def rules(policy: str, **changes: object) -> Rules:
    return Rules(policy, groups_per_batch=3, group_size=4, **{"max_staleness": 3, **changes})  # type: ignore[arg-type]


def order(world: World) -> list[int]:
    return [group.number for train in world.trained for group in train.groups]


@settings(max_examples=60, deadline=None)
@given(SEEDS, POLICIES, st.booleans(), st.booleans(), st.booleans())
def test_no_group_is_lost_or_trained_twice_across_crashes_and_resumes(
    seed: int, policy: str, pinned: bool, whole_groups: bool, clear: bool
) -> None:
    asked = rules(policy, pinned=pinned, whole_groups=whole_groups, clear_on_push=clear)
    world = World(asked, seed, crashes=0.1, failures=0.05, push_every=1 + seed % 2)
    world.run(steps=8, resumes=2)
    trained = order(world)
    gone = [drop.group for drop in world.dropped if drop.index is None]
    assert len(trained) == len(set(trained)) and len(gone) == len(set(gone)) and not set(trained) & set(gone)
    outstanding = set(world.scheduler.groups)
    assert sorted([*trained, *gone, *outstanding]) == list(range(world.scheduler.admitted))
    assert (len(trained), len(gone)) == (world.scheduler.trained, world.scheduler.dropped)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from(["sync", "urb"]), st.booleans())
def test_sync_and_the_unbiased_buffer_train_in_the_order_of_the_data_whatever_the_lengths(
    seed: int, policy: str, pinned: bool
) -> None:
    asked = rules(policy, ahead=3, pinned=pinned, retries=1000)
    world = World(asked, seed, crashes=0.1, long=lambda number: number % 5 == 0)
    world.run(steps=10, resumes=2)
    assert order(world) == list(range(30))


@settings(max_examples=20, deadline=None)
@given(SEEDS, POLICIES, st.integers(1, 6), st.booleans())
def test_nothing_is_sampled_that_no_step_up_to_the_last_can_use(
    seed: int, policy: str, steps: int, whole_groups: bool
) -> None:
    asked = rules(policy, ahead=4, oversample=2.0, steps=steps, whole_groups=whole_groups)
    world = World(asked, seed, crashes=0.1, failures=0.1, long=lambda number: number % 4 == 0)
    world.run(steps, resumes=min(2, steps - 1))
    begun = {start.sample.group for start in world.starts}
    gone = {drop.group for drop in world.dropped if drop.index is None}
    used = {*order(world), *gone}
    spare = 3 if policy == "april" else 0  # its last step also trains on the first three of six to finish
    assert used <= begun and len(begun - used) <= spare
    assert not world.running, "nor is anything begun after the last step"


def test_quotas_bound_each_domain_by_its_share_of_the_last_steps() -> None:
    """The last batch has two easy groups and one slow one. Only the slow one is sampled twice, because its quota asks for that."""
    quotas = {"easy": DomainShare(2.0), "slow": DomainShare(1.0, oversample=2.0)}
    for steps in (1, 4, 9):
        for seed in range(5):
            domains: dict[str, Any] = {"domain_of": lambda n: "slow" if n % 4 == 0 else "easy"}
            world = World(rules("dora", quotas=quotas, steps=steps), seed, crashes=0.05, **domains)
            world.run(steps)
            begun = Counter(world.domain_of(n) for n in {start.sample.group for start in world.starts})
            assert steps > 1 or begun == {"easy": 2, "slow": 2}
            assert not world.running


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(1, 4), st.integers(1, 5))
def test_an_extended_run_samples_with_the_weights_of_one_that_was_longer_from_its_start(
    seed: int, ahead: int, first: int
) -> None:
    whole = World(rules("urb", ahead=ahead, retries=1000, steps=7), seed, crashes=0.1)
    whole.run(7)
    world = World(rules("urb", ahead=ahead, retries=1000, steps=first), seed, crashes=0.1)
    world.run(first)
    world.extend(rules("urb", ahead=ahead, retries=1000, steps=7))
    world.run(7)
    assert order(world) == order(whole)
    assert {(s.sample, s.version) for s in world.starts} == {(s.sample, s.version) for s in whole.starts}


def test_partial_rollouts_put_long_groups_off() -> None:
    world = World(rules("april", oversample=2.0), seed=1, long=lambda number: number % 5 == 0)
    world.run(steps=10)
    assert order(world) != sorted(order(world))
    assert not any(number % 5 == 0 for number in order(world)[:6]), "the first batches hold short groups only"


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 4))
def test_with_pinned_weights_the_version_of_every_response_is_fixed_by_its_group(seed: int, ahead: int) -> None:
    world = World(rules("urb", ahead=ahead, retries=1000), seed, crashes=0.15)
    world.run(steps=8, resumes=2)
    versions = {(start.sample, start.version) for start in world.starts}
    assert versions == {(sample, max(0, sample.group // 3 + 1 - ahead)) for sample, _ in versions}


@settings(max_examples=30, deadline=None)
@given(SEEDS, POLICIES)
def test_nothing_older_than_tau_is_trained_on_and_what_is_older_is_excluded_with_its_age(
    seed: int, policy: str
) -> None:
    world = World(
        rules(policy, max_staleness=1, oversample=2.0, late="drop"), seed, long=lambda number: number % 4 == 0
    )
    world.run(steps=10)  # every batch is compared with tau on its way
    assert all("1 are allowed" in drop.reason for drop in world.dropped if drop.index is not None)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_a_streaming_learner_that_waits_for_the_late_excludes_nothing(seed: int) -> None:
    world = World(rules("dora", late="wait"), seed, crashes=0.05, long=lambda number: number % 4 == 0)
    world.run(steps=12)
    assert not any("steps old" in drop.reason for drop in world.dropped)


def test_a_resumed_schedule_goes_on_with_the_same_groups() -> None:
    whole, broken = (World(rules("urb"), seed=5) for _ in range(2))
    whole.run(steps=9)
    broken.run(steps=9, resumes=4)
    assert order(whole) == order(broken)


def test_partial_responses_carry_their_tokens_and_versions() -> None:
    scheduler, (start, *_) = _waiting_learner("april", pinned=False, groups_per_batch=1, group_size=1, oversample=2.0)
    train = scheduler.handle(Finished(SampleId(0, 0), 1, (Stretch(0, 0, 4),)), 1.0)
    stop = train[-1]
    assert isinstance(train[0], Train) and isinstance(stop, Stop) and stop.keep
    assert scheduler.handle(Paused(stop.sample, stop.attempt, (Stretch(0, 0, 7),)), 2.0) == [], (
        "the learner is training"
    )
    again = scheduler.handle(Updated(1, 1), 3.0)
    assert Start("w", stop.sample, 2, 1, (Stretch(0, 0, 7),)) in again


def test_a_result_of_an_earlier_attempt_is_ignored() -> None:
    scheduler, starts = _waiting_learner("sync")
    scheduler.handle(WorkerLost("w", "killed"), 1.0)
    assert scheduler.handle(Finished(starts[0].sample, starts[0].attempt, (Stretch(0, 0, 3),)), 2.0) == []
    (again, *_) = scheduler.handle(WorkerJoined("v", 99), 3.0)
    assert isinstance(again, Start) and again.attempt == 2 and again.version == starts[0].version


def test_a_response_that_kills_its_workers_is_excluded_in_the_end() -> None:
    scheduler, _ = _waiting_learner("sync", groups_per_batch=1, group_size=1, retries=2)
    for number in range(2):
        assert not scheduler.handle(WorkerLost("w", "killed"), number)
        scheduler.handle(WorkerJoined("w", 1), number)
    lost, dropped, train = scheduler.handle(WorkerLost("w", "signal 9"), 3.0)
    assert isinstance(lost, Drop) and "lost 3 times" in lost.reason and "signal 9" in lost.reason
    assert dropped == Drop(0, None, "0 of 1 response valid")
    assert train == Train(1, ())


def test_a_group_with_a_crashed_minority_is_filled_up_and_one_with_half_is_dropped() -> None:
    scheduler, starts = _waiting_learner("sync", groups_per_batch=2)
    crashed = {SampleId(0, 1), SampleId(1, 0), SampleId(1, 2)}
    decisions = []
    for start in starts:
        problem = "no sandbox" if start.sample in crashed else ""
        decisions += scheduler.handle(Finished(start.sample, start.attempt, (Stretch(0, 0, 5),), problem), 1.0)
    (train,) = [decision for decision in decisions if isinstance(decision, Train)]
    assert [(group.number, group.rows, group.valid) for group in train.groups] == [(0, (0, 2, 3, 0), 3)]
    assert Drop(0, 1, "no sandbox") in decisions and Drop(1, None, "2 of 4 responses valid") in decisions


def test_a_silent_worker_is_replaced_and_the_reason_says_what_it_was_doing() -> None:
    scheduler, starts = _waiting_learner("sync", heartbeat_s=10.0)
    assert scheduler.handle(Heartbeat("w"), 8.0) == [] and scheduler.handle(Tick(), 17.0) == []
    (replace,) = scheduler.handle(Tick(), 19.0)
    assert isinstance(replace, Replace) and replace.worker == "w"
    assert "11 s" in replace.reason and f"{len(starts)} responses" in replace.reason and "group 0" in replace.reason
    again = scheduler.handle(WorkerJoined("v", 99), 20.0)
    assert [start.sample for start in again if isinstance(start, Start)] == [start.sample for start in starts]


def test_workers_are_not_blamed_for_a_time_in_which_nobody_listened() -> None:
    scheduler, _ = _waiting_learner("sync", heartbeat_s=10.0)
    scheduler.handle(Tick(), 1.0)
    assert scheduler.handle(Tick(), 300.0) == [], "the machine was suspended"
    assert scheduler.handle(Tick(), 304.0) == [] and scheduler.handle(Tick(), 308.0) == []
    assert isinstance(scheduler.handle(Tick(), 310.0)[0], Replace)


def test_whole_groups_start_together_and_only_where_there_is_room() -> None:
    scheduler = Scheduler(rules("urb", whole_groups=True), GroupSource())
    starts = [*scheduler.handle(WorkerJoined("a", 6), 0.0), *scheduler.handle(WorkerJoined("b", 2), 0.0)]
    assert Counter((s.worker, s.sample.group) for s in starts if isinstance(s, Start)) == {("a", 0): 4, ("b", 1): 4}


def test_quotas_keep_domains_in_every_batch_and_oversampling_admits_more_of_the_slow_one() -> None:
    quotas = {"fast": DomainShare(2.0), "slow": DomainShare(1.0, oversample=2.0)}
    asked = rules("dora", quotas=quotas, balance=1.0, max_staleness=2)

    def domain(number: int) -> str:
        return "slow" if number % 2 else "fast"

    world = World(asked, seed=3, domain_of=domain, long=lambda number: number % 2 == 1)
    world.run(steps=10)
    assert all(Counter(g.domain for g in train.groups) == {"fast": 2, "slow": 1} for train in world.trained)
    assert world.scheduler.by_domain["slow"] == 6 and world.scheduler.by_domain["fast"] == 6


def test_clearing_at_a_push_leaves_one_version_in_the_pool() -> None:
    world = World(rules("urb", ahead=3, clear_on_push=True, max_staleness=9), seed=4, push_every=3)
    world.run(steps=9)
    ages = [[age for group in train.groups for age in group.staleness] for train in world.trained]
    assert ages == [[(train.step - 1) % 3] * 12 for train in world.trained]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policy": "urb", "ahead": 6}, "5 steps old"),
        ({"policy": "april", "oversample": 0.5}, "never fill a batch"),
        ({"policy": "urb", "quotas": {"a": DomainShare(1.0)}}, "quotas need 'dora'"),
        ({"policy": "dora", "quotas": {"a": DomainShare(0.0)}}, "leave it out"),
        ({"policy": "sync", "group_size": 0}, "at least one response"),
    ],
)
def test_rules_that_cannot_work_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Rules(**{"groups_per_batch": 2, "group_size": 2, **changes})  # type: ignore[arg-type]


def test_shares_sum_to_the_batch() -> None:
    assert rules("dora", quotas={"a": DomainShare(1.0), "b": DomainShare(1.0)}).shares == {"a": 2, "b": 1}
    assert rules("dora").shares == {}


def test_a_domain_that_never_comes_is_refused() -> None:
    with pytest.raises(ValueError, match="no prompt of domain 'law'"):
        GroupSource().take("law")


def _waiting_learner(policy: str, **changes: object) -> tuple[Scheduler, list[Start]]:
    scheduler = Scheduler(Rules(policy, **{"groups_per_batch": 2, "group_size": 4, **changes}), GroupSource())  # type: ignore[arg-type]
    scheduler.handle(LearnerReady(), 0.0)
    decisions = scheduler.handle(WorkerJoined("w", 99), 0.0)
    return scheduler, [decision for decision in decisions if isinstance(decision, Start)]
