"""Groups of different sizes in every schedule. Groups of one size are planned as before."""

import hashlib
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.scheduling import (
    Finished,
    GroupSource,
    LearnerReady,
    Rules,
    SampleId,
    Scheduler,
    Start,
    Train,
    WorkerJoined,
)

from .world import World


def size_of(number: int) -> int:
    return (2, 7, 4, 1, 6)[number % 5]


def rules(policy: str, **changes: object) -> Rules:
    bounds = {"groups_per_batch": 3, "group_size": 4, "max_staleness": 3, "largest_group": 7}
    return Rules(policy, **bounds | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "whole_groups", "digest"),
    [
        ("sync", False, "8ad5448e489ab7a1"),
        ("sync", True, "07c96735bc3943aa"),
        ("april", False, "c504b0dbba31d2c7"),
        ("april", True, "6de9f5578d7b469f"),
        ("urb", False, "a0619aa20697fc45"),
        ("urb", True, "1f28cef4cbf152e3"),
        ("dora", False, "bfd918030aa0847d"),
        ("dora", True, "b154815c421aa8e6"),
    ],
)
def test_groups_of_one_size_are_planned_as_before_groups_had_sizes(
    policy: str, whole_groups: bool, digest: str
) -> None:
    """The digests are those of the scheduler that knew only one size. Its decisions include crashes, failures and resumes."""
    asked = rules(policy, whole_groups=whole_groups, largest_group=None)
    world = World(asked, seed=11, crashes=0.1, failures=0.05, long=lambda number: number % 5 == 0)
    world.run(steps=8, resumes=2)
    starts = [[s.worker, *s.sample, s.attempt, s.version, s.stretches] for s in world.starts]
    trained = [[t.step, [[g.number, g.domain, g.rows, g.valid, g.staleness] for g in t.groups]] for t in world.trained]
    dropped = [[drop.group, drop.index, drop.reason] for drop in world.dropped]
    text = json.dumps([starts, trained, dropped, world.scheduler.state_dict()])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(["sync", "april", "urb", "dora"]), st.booleans(), st.booleans())
def test_each_group_is_sampled_and_trained_in_its_own_size_across_crashes_and_resumes(
    seed: int, policy: str, whole_groups: bool, clear: bool
) -> None:
    asked = rules(policy, whole_groups=whole_groups, clear_on_push=clear, retries=1000)
    world = World(asked, seed, crashes=0.1, size_of=size_of)
    world.run(steps=8, resumes=2)
    for train in world.trained:
        assert all(len(group.rows) == size_of(group.number) for group in train.groups)
    begun = Counter(group for group, _ in {start.sample for start in world.starts})
    assert all(count <= size_of(group) for group, count in begun.items())
    assert all(len(group.samples) == size_of(number) for number, group in world.scheduler.groups.items())


def test_a_size_is_asked_for_once_and_kept_by_the_group() -> None:
    """The known pass rates of prompts may change. A group that was admitted does not change, also after a resume."""
    asked: list[int] = []

    def growing(number: int) -> int:
        asked.append(number)
        return len(asked)

    scheduler = Scheduler(rules("urb", groups_per_batch=2, ahead=2), GroupSource(size_of=growing))
    scheduler.handle(LearnerReady(), 0.0)
    again = Scheduler(rules("urb", groups_per_batch=2, ahead=2), GroupSource(size_of=growing))
    again.load_state_dict(json.loads(json.dumps(scheduler.state_dict())))
    assert asked == [0, 1, 2, 3]
    assert [group.size for group in again.groups.values()] == [1, 2, 3, 4]


def test_a_group_is_filled_up_to_its_own_size() -> None:
    scheduler = Scheduler(rules("sync", groups_per_batch=2), GroupSource(size_of=lambda number: (3, 5)[number]))
    scheduler.handle(LearnerReady(), 0.0)
    found = scheduler.handle(WorkerJoined("w", 99), 0.0)
    decisions = []
    for start in [decision for decision in found if isinstance(decision, Start)]:
        problem = "no sandbox" if start.sample in (SampleId(0, 1), SampleId(1, 2), SampleId(1, 4)) else ""
        decisions += scheduler.handle(Finished(start.sample, start.attempt, (), problem), 1.0)
    (train,) = [decision for decision in decisions if isinstance(decision, Train)]
    assert [group.rows for group in train.groups] == [(0, 2, 0), (0, 1, 3, 0, 1)]


def test_the_largest_group_starts_as_a_whole_on_a_worker_with_less_room() -> None:
    asked = rules("urb", whole_groups=True)
    scheduler = Scheduler(asked, GroupSource(size_of=size_of))
    (first, second) = (scheduler.handle(WorkerJoined(name, 2), 0.0) for name in "ab")
    started = Counter((s.worker, s.sample.group) for s in [*first, *second] if isinstance(s, Start))
    assert started == {("a", 0): 2, ("b", 1): 7, ("a", 2): 4, ("a", 3): 1}, (
        "group 1 waits for a worker with room for all of it"
    )
    assert asked.places(side_by_side=100, workers=2) == 4 * 3 + 7


def test_a_size_that_the_rules_do_not_allow_is_refused() -> None:
    scheduler = Scheduler(rules("urb"), GroupSource(size_of=lambda number: 8))
    with pytest.raises(ValueError, match="group 0 has 8 responses; a group has 1 to 7"):
        scheduler.handle(LearnerReady(), 0.0)
    with pytest.raises(ValueError, match="groups of 4 on average cannot all have at most 3 responses"):
        rules("urb", largest_group=3)
