"""Continuous batching over the responses of many groups, with samplers that only count."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from trainer.inference.sampling import EngineLost, SampleRequest, SampleResult
from trainer.inference.vllm.sampler import Generated, VllmSampler
from trainer.inference.vllm.v0_32 import drawing
from trainer.runners.feed import AttemptKey, Ended, Feed, SampleJob
from trainer.scheduling import SampleId


@dataclass
class Counting:
    """Gives each response a token in each step. `log`: how many responses of each version were side by side in each turn."""

    versions_at_once: float
    log: list[tuple[int, int]] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)
    fails: type[Exception] | None = None

    def open(self, weights: Iterable[Any], version: int) -> tuple["CountingRun", str]:
        assert dict(weights) == {"w": version}
        self.opened.append(version)
        return CountingRun(self, version), f"digest {version}"


@dataclass
class CountingRun:
    sampler: Counting
    version: int
    left: dict[Hashable, int] = field(default_factory=dict)

    def join(self, name: Hashable, request: SampleRequest) -> None:
        if request.max_new_tokens > 100:
            raise ValueError("too long for this engine")
        self.left[name] = request.max_new_tokens

    def step(self) -> list[tuple[Hashable, SampleResult]]:
        if self.sampler.fails:
            raise self.sampler.fails("broken")
        self.sampler.log.append((self.version, len(self.left)))
        self.left = {name: count - 1 for name, count in self.left.items()}
        over = [name for name, count in self.left.items() if not count]
        for name in over:
            del self.left[name]
        return [(name, SampleResult((1,), (0.0,), "", "length", self.version)) for name in over]

    def leave(self, names: Collection[Hashable]) -> None:
        for name in names:
            del self.left[name]

    def close(self) -> None:
        assert not self.left or self.sampler.fails


def job(group: int, lengths: Sequence[int], version: int = 0) -> SampleJob:
    keys = tuple(AttemptKey(SampleId(group, place), 1) for place in range(len(lengths)))
    return SampleJob(keys, tuple(SampleRequest((1, 2), length) for length in lengths), version)


def submit(feed: Feed, *jobs: SampleJob) -> None:
    for each in jobs:
        feed.submit(each, lambda version=each.version: {"w": version})  # type: ignore[misc]


def all_of(feed: Feed) -> list[list[Ended]]:
    """The responses that ended in each turn."""
    turns = []
    while not feed.idle:
        turns.append(feed.turn())
    return turns


def places(turn: Sequence[Ended]) -> list[tuple[int, int]]:
    return [tuple(ended.key.sample) for ended in turn]  # type: ignore[misc]


def test_the_next_group_takes_each_place_as_it_becomes_free() -> None:
    sampler = Counting(versions_at_once=2)
    feed = Feed(sampler, slots=3)  # type: ignore[arg-type]
    submit(feed, job(0, [1, 5, 2]), job(1, [3, 1, 1]))
    turns = all_of(feed)
    assert [places(turn) for turn in turns] == [[(0, 0)], [(0, 2)], [(1, 1)], [(1, 0), (1, 2)], [(0, 1)]]
    assert sampler.log == [(0, 3), (0, 3), (0, 3), (0, 3), (0, 1)], "full while anybody waits"
    assert {ended.digest for turn in turns for ended in turn} == {"digest 0"} and sampler.opened == [0]


def test_versions_run_side_by_side_where_the_sampler_can() -> None:
    sampler = Counting(versions_at_once=2)
    feed = Feed(sampler, slots=4)  # type: ignore[arg-type]
    submit(feed, job(0, [2, 3], 0), job(1, [1, 2], 1), job(2, [1, 1], 2))
    ended = [each for turn in all_of(feed) for each in turn]
    assert {(each.key.sample.group, each.version) for each in ended} == {(0, 0), (1, 1), (2, 2)}
    assert sampler.log[:2] == [(0, 2), (1, 2)] and sampler.opened == [0, 1, 2]


def test_an_engine_with_one_set_of_weights_ends_one_version_before_the_next() -> None:
    sampler = Counting(versions_at_once=1)
    feed = Feed(sampler, slots=4)  # type: ignore[arg-type]
    submit(feed, job(0, [1, 4], 0), job(1, [1, 1], 1))
    submit(feed, job(2, [2], 0))
    turns = all_of(feed)
    assert [places(turn) for turn in turns] == [[(0, 0)], [(2, 0)], [], [(0, 1)], [(1, 0), (1, 1)]]
    assert sampler.opened == [0, 1]


def test_what_nobody_wants_makes_room_and_what_fails_says_why() -> None:
    sampler = Counting(versions_at_once=1)
    feed = Feed(sampler, slots=2)  # type: ignore[arg-type]
    submit(feed, job(0, [9, 9]), job(1, [101, 2]))
    assert feed.turn() == []
    feed.withdraw([AttemptKey(SampleId(0, 0), 1), AttemptKey(SampleId(7, 0), 1)])
    (failed,) = feed.turn()
    assert failed.result is None and failed.problem == "ValueError: too long for this engine"
    assert places(feed.turn()) == [(1, 1)]
    sampler.fails = MemoryError
    (lost,) = feed.turn()
    assert (lost.key.sample, lost.problem) == (SampleId(0, 1), "MemoryError: broken") and feed.idle


def test_a_lost_engine_is_the_end_of_the_worker() -> None:
    sampler = Counting(versions_at_once=1, fails=EngineLost)
    feed = Feed(sampler, slots=2)  # type: ignore[arg-type]
    submit(feed, job(0, [1]))
    with pytest.raises(EngineLost):
        feed.turn()


class Recording:
    """vLLM's engine as our sampler calls it. It keeps the settings of each request, and each request ends after two steps."""

    def __init__(self) -> None:
        self.asked: dict[int, dict[str, Any]] = {}
        self.inside: dict[int, int] = {}
        self.most = 0

    def add(self, number: int, request: SampleRequest, stop_ids: Sequence[int]) -> None:
        self.asked[number] = drawing(request, stop_ids) | {"prompt": request.prompt_tokens}
        self.inside[number] = 0

    def step(self) -> list[tuple[int, Generated]]:
        self.most = max(self.most, len(self.inside))
        self.inside = {number: steps + 1 for number, steps in self.inside.items()}
        over = [number for number, steps in self.inside.items() if steps == 2]
        for number in over:
            del self.inside[number]
        return [(number, Generated((self.asked[number]["seed"],), (-1.0,), "length", ("4",))) for number in over]

    def abort(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            del self.inside[number]

    def update(self, *_: Any) -> None:
        pass

    def checksum(self, names: Sequence[str]) -> str:
        return "held"


class Words:
    all_special_ids: tuple[int, ...] = ()

    def decode(self, tokens: Sequence[int], **_: Any) -> str:
        return " ".join(map(str, tokens))


@pytest.mark.parametrize("slots", [1, 3, 64])
def test_vllm_is_asked_for_the_same_whatever_joins_when(slots: int) -> None:
    """The seed and everything else that decides a draw follow from the request. There is no GPU here to draw on."""
    engine = Recording()
    feed = Feed(VllmSampler(engine, Words(), [7]), slots)  # type: ignore[arg-type]
    requests = [SampleRequest((1, n), 5, 0.8, 0.9, seed=1000 + n) for n in range(6)]
    jobs = [SampleJob((AttemptKey(SampleId(n, 0), 1),), (request,), 4) for n, request in enumerate(requests)]
    for each in jobs if slots != 3 else reversed(jobs):
        feed.submit(each, dict)
    ended = [one for turn in all_of(feed) for one in turn]
    assert engine.most == min(slots, 6)
    assert {one.key.sample.group: one.result.tokens for one in ended if one.result} == {
        n: (1000 + n,) for n in range(6)
    }
    by_seed = {asked["seed"]: asked for asked in engine.asked.values()}
    assert by_seed == {r.seed: drawing(r, [7]) | {"prompt": r.prompt_tokens} for r in requests}
    assert {one.digest for one in ended} == {"held"}


def test_a_response_is_held_from_its_coming_to_the_end_of_its_last_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("trainer.runners.feed.time.monotonic", lambda: clock[0])
    sampler = Counting(versions_at_once=1)
    monkeypatch.setattr(
        CountingRun, "join", lambda *a, join=CountingRun.join: clock.__setitem__(0, clock[0] + 1) or join(*a)
    )
    feed = Feed(sampler, slots=1)  # type: ignore[arg-type]
    submit(feed, job(0, [1, 1, 1]))
    feed.withdraw([AttemptKey(SampleId(0, 1), 1)])
    clock[0] += 10
    (first,), (second,) = feed.turn(), feed.turn()
    assert (first.key.sample.place, first.held_s) == (0, 11.0)
    assert (second.key.sample.place, second.held_s) == (2, 12.0), "and what waited for a place has waited here"
    assert not feed._came_at


def test_a_turn_lasts_from_the_last_one_on_unless_nothing_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("trainer.runners.feed.time.monotonic", lambda: now[0])
    feed = Feed(Counting(float("inf")), slots=4)  # type: ignore[arg-type]
    for begins, lengths in ((100.0, [2]), (200.0, [1])):
        now[0] = begins
        feed.submit(job(0, lengths), lambda: {"w": 0})  # type: ignore[dict-item]
        while not feed.idle:
            feed.turn()
            now[0] += 3.0  # the worker gives away the responses that have ended
    assert {kind.joined: took for kind, took in feed.take_spent().turns.items()} == {1: (2, 0.0), 0: (1, 3.0)}


def test_what_a_worker_did_is_told_in_stretches_that_go_back_from_the_report() -> None:
    feed = Feed(Counting(versions_at_once=1), slots=2)  # type: ignore[arg-type]
    submit(feed, job(0, [3, 2]))
    all_of(feed)
    loading, sampling = feed.take_stretches()
    assert (loading.loading, sampling.loading) == (True, False), "three turns are one stretch"
    assert loading.ago_s >= loading.seconds + sampling.seconds and sampling.ago_s >= sampling.seconds > 0
    assert feed.take_stretches() == ()
    submit(feed, job(1, [1]), job(2, [1], version=1))
    all_of(feed)
    assert [each.loading for each in feed.take_stretches()] == [False, True, False]
    for group in range(3, 90):  # idle in between
        submit(feed, job(group, [1], version=1))
        all_of(feed)
    assert len(feed.take_stretches()) == 50
