"""The measurement of live pages, with trackers that only count. The tests check the records, the comparisons and the missing values."""

import json
from dataclasses import replace
from threading import Lock

import pytest

from benchmarks.live import __main__ as bench
from benchmarks.live.pages import shown
from benchmarks.live.sizes import SMALL, Sizes, points_per_second
from benchmarks.peers import PeerAway


class Counting:
    steps_at_once = 7

    def __init__(self, seconds=1.0):
        self.sent, self.seconds, self.lock = [], seconds, Lock()

    def send(self, sender, first, steps, keys):
        with self.lock:
            self.sent.append((sender, first, steps, keys))

    def fill_charts(self, charts, points):
        self.filled = charts, points

    def charts(self, charts):
        return self.seconds

    def fill_runs(self, runs, points):
        self.filled = runs, points

    def compare(self, runs):
        return self.seconds


class Away(Counting):
    def charts(self, charts):
        raise PeerAway("its page has changed")


def test_every_sender_sends_each_of_its_steps_once_and_in_order():
    tracker = Counting()
    sizes = replace(SMALL, points=2 * 50 * 10, senders=2, keys=10)
    assert points_per_second(tracker, sizes) > 0
    for sender in range(2):
        mine = [(first, steps) for who, first, steps, _ in tracker.sent if who == sender]
        assert mine[0] == (0, 1), "one before the clock runs, at a step of its own"
        assert [step for first, steps in mine for step in range(first, first + steps)] == list(range(51))


@pytest.mark.parametrize("points", [1, 400_000])
def test_there_is_something_to_send(points):
    assert replace(Sizes(), points=points).sent_steps >= 1


def test_ours_is_compared_with_the_faster_peer(capsys):
    peers = {"MLflow": Counting(4.0), "Trackio": Counting(2.0)}
    rows = bench.charts(Counting(0.5), peers, SMALL)  # type: ignore[arg-type]
    assert bench._said(rows["live_charts"]) == {"ours": 0.5, "peer": 2.0, "unit": "s", "ratio": 0.25}
    rates = replace(rows["live_charts"], ours=100.0, peers={"MLflow": 10.0, "Trackio": 50.0}, better=max)
    assert bench._said(rates)["ratio"] == 2.0


def test_a_peer_that_is_away_is_named_and_leaves_its_place_empty(capsys):
    rows = bench.charts(Counting(0.5), {"MLflow": Away(), "Trackio": Counting(2.0)}, SMALL)  # type: ignore[arg-type]
    assert rows["live_charts"].peers == {"Trackio": 2.0}
    assert capsys.readouterr().out.splitlines() == [
        "the same by MLflow",
        "MLflow is not measured: its page has changed",
        "the same by Trackio",
    ]
    alone = bench.charts(Counting(0.5), {}, SMALL)["live_charts"]  # type: ignore[arg-type]
    assert json.loads(json.dumps(bench._said(alone)))["ratio"] is None


def test_a_percentile_is_a_value_that_came():
    assert bench.p95([1.0]) == 1.0
    assert bench.p95([float(n) for n in range(100)]) == 95.0


def test_a_step_is_painted_with_the_first_frame_that_has_it_or_a_later_one():
    frames = [(3.0, 10.0), (6.0, 11.0), (6.0, 12.0)]
    assert shown(range(3, 8), frames) == {3: 10.0, 4: 11.0, 5: 11.0, 6: 11.0}
