"""Reads are bounded and correct: spikes stay, pages neither skip nor repeat, filters find what they name."""

import json
import math
import tracemalloc
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.utils import timezone

from tests.team import ApiClient
from webapp.core.problems import Invalid
from webapp.experiments import recipe_metrics, serializers
from webapp.experiments.bulk import StepMetrics
from webapp.experiments.metrics import curves as metrics
from webapp.experiments.metrics import facts, series
from webapp.experiments.models import LogLine, MetricPoint, Rollout
from webapp.experiments.rollouts import queries as rollouts
from webapp.experiments.runs import configs
from webapp.experiments.runs import queries as runs


def points(run, key, values):
    MetricPoint.objects.bulk_create(
        MetricPoint(run=run, key=key, step=step, value=value, time=timezone.now()) for step, value in values
    )


def curves_of(run, **wanted):
    return json.loads(metrics.curves(run, **wanted))


def test_a_short_curve_is_given_whole(run):
    points(run, "a", [(1, 0.5), (3, 0.25), (2, 0.75)])
    curves = curves_of(run)["curves"]
    assert list(curves) == ["a"]
    assert (curves["a"]["steps"], curves["a"]["values"]) == ([1, 2, 3], [0.5, 0.75, 0.25])


def test_a_long_curve_is_thinned_but_keeps_spikes_and_ends(run):
    values = [(step, 0.0) for step in range(5000)]
    values[1234], values[4321] = (1234, 9.0), (4321, -9.0)
    points(run, "a", values)
    points(run, "b", [(0, 1.0)])
    found = curves_of(run, max_points=100)["curves"]
    steps, drawn = found["a"]["steps"], dict(zip(found["a"]["steps"], found["a"]["values"], strict=True))
    assert len(steps) <= 102
    assert (drawn[1234], drawn[4321]) == (9.0, -9.0)
    assert (steps[0], steps[-1]) == (0, 4999)
    assert all(a < b for a, b in pairwise(steps))
    assert (found["b"]["steps"], found["b"]["values"]) == ([0], [1.0])


def test_a_missing_value_is_not_drawn(run):
    histogram = {"edges": [0, 1], "counts": [1]}
    MetricPoint.objects.create(run=run, key="h", step=1, value=None, histogram=histogram, time=timezone.now())
    points(run, "a", [(1, 1.0)])
    found = curves_of(run)
    assert (found["keys"], found["histograms"], list(found["curves"])) == (["a", "h"], ["h"], ["a"])


def test_a_page_waits_for_the_curves_of_keys_with_values(run):
    histogram = {"edges": [0, 1], "counts": [1]}
    MetricPoint.objects.create(run=run, key="h", step=1, value=None, histogram=histogram, time=timezone.now())
    MetricPoint.objects.create(run=run, key="n", step=1, value=None, not_finite="NaN", time=timezone.now())
    MetricPoint.objects.create(run=run, key="v", step=1, value=1.0, histogram=histogram, time=timezone.now())
    points(run, "a", [(1, 1.0)])
    assert metrics.curve_keys(run.id) == ["a", "n", "v"]


def test_other_runs_stay_out(run, launch):
    points(launch(), "a", [(1, 1.0)])
    assert curves_of(run) == {"curves": {}, "more": [], "keys": [], "histograms": [], "last_seq": 0}
    assert metrics.points(run, "a")["points"] == []


def test_curves_cost_the_same_queries_for_any_number_of_keys(run, django_assert_num_queries):
    for i in range(30):
        points(run, f"k{i:02}", [(1, 1.0)])
    with django_assert_num_queries(4):
        assert len(curves_of(run)["curves"]) == 30


def test_keys_behind_the_first_200_are_named_and_come_when_asked_for(run, django_assert_num_queries):
    MetricPoint.objects.bulk_create(
        MetricPoint(run=run, key=f"k{i:03}", step=1, value=i, time=timezone.now()) for i in range(450)
    )
    names = [f"k{i:03}" for i in range(450)]
    with django_assert_num_queries(4):
        first = curves_of(run)
    assert (list(first["curves"]), first["more"], first["keys"]) == (names[:200], names[200:], names)
    second = curves_of(run, keys=first["more"])
    assert (list(second["curves"]), second["more"]) == (names[200:400], names[400:])
    last = curves_of(run, keys=second["more"])
    assert (list(last["curves"]), last["more"], last["curves"]["k449"]["values"]) == (names[400:], [], [449.0])


def test_a_key_with_a_comma_is_asked_for_over_the_api(run, team):
    """Also metrics after the first 200, beside joined keys, and in comparisons of runs."""
    names = [f"p@{i:03}, k={i}" for i in range(230)]
    for i, name in enumerate(names):
        facts.keep_metrics(team.workspace.pk, run, series.of_steps([StepMetrics(1, timezone.now(), {name: float(i)})]))
        points(run, name, [(1, float(i))])
    points(run, "zz", [(1, 1.0)])
    api = ApiClient(team.researcher)
    more = api.get(f"/runs/{run.pk}/curves").json()["more"]
    assert more == [*names[200:], "zz"]
    asked = urlencode({"key": more[:-1], "keys": "zz"}, doseq=True)
    told = api.get(f"/runs/{run.pk}/curves?{asked}").json()["curves"]
    assert list(told) == ["zz", *names[200:]] and told[names[229]]["values"] == [229.0]
    asked = urlencode({"ids": run.pk, "key": names[228:]}, doseq=True)
    assert list(api.get(f"/runs/compare?{asked}").json()["curves"][str(run.pk)]) == names[228:]
    table = api.get(f"/runs/table/compare?{asked}").json()["metrics"]
    assert [(each["key"], each["last"]) for each in table] == [(names[228], [228.0]), (names[229], [229.0])]


MANY = """
INSERT INTO experiments_metricpoint (run_id, key, step, time, value)
SELECT %s, 'group/metric' || key, step, now() + step * interval '1.37 s', sin(key * step)
FROM generate_series(1, 60) AS key, generate_series(1, 600) AS step
"""


def test_curves_of_a_long_run_take_little_more_memory_than_their_text(run):
    """36,000 points. As objects they take 15 MB, in each thread that answers, of each web process."""
    with connection.cursor() as cursor:
        cursor.execute(MANY, [run.id])
    metrics.curves(run, ["group/metric1"])
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        text = metrics.curves(run)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert 1_000_000 < len(text) < peak < 4 * len(text)
    one = json.loads(text)["curves"]["group/metric7"]
    assert one["values"][:2] == pytest.approx([math.sin(7), math.sin(14)])
    assert [round(b - a, 2) for a, b in pairwise(one["times"][:4])] == [1.37] * 3


def test_points_come_in_pages(run):
    points(run, "a", [(step, float(step)) for step in range(5)])
    first = metrics.points(run, "a", limit=3)
    second = metrics.points(run, "a", after_step=first["next"], limit=3)
    assert [p["step"] for p in first["points"] + second["points"]] == [0, 1, 2, 3, 4]
    assert second["next"] is None


def test_histograms_are_bounded_and_end_with_the_newest(run):
    MetricPoint.objects.bulk_create(
        MetricPoint(run=run, key="h", step=s, histogram={"edges": [0, 1], "counts": [s]}, time=timezone.now())
        for s in range(1000)
    )
    found = metrics.histograms(run, "h")["steps"]
    assert 30 <= len(found) <= 60
    assert found[-1] == {"step": 999, "edges": [0, 1], "counts": [999]}


def test_the_log_shows_its_tail_and_goes_on_from_there(run):
    LogLine.objects.bulk_create(
        LogLine(run=run, event=i, time=timezone.now(), level="info", message=f"line {i}") for i in range(1, 6)
    )
    tail = runs.log(run, limit=2)["lines"]
    assert [line["message"] for line in tail] == ["line 4", "line 5"]
    assert runs.log(run, after_seq=tail[0]["seq"])["lines"] == tail[1:]


def test_config_differences_are_dotted_and_complete():
    a = {"lr": 1, "scaffold": {"t0": 0.2}, "stop": ["x"], "same": {"k": None}}
    b = {"lr": 2, "scaffold": None, "stop": ["x", "y"], "same": {"k": None}}
    assert configs.config_diff([a, b]) == [
        {"path": "lr", "values": [1, 2]},
        {"path": "scaffold.t0", "values": [0.2, None]},
        {"path": "stop.1", "values": [None, "y"]},
    ]


@pytest.mark.parametrize(("summary", "gain"), [({}, None), ({"eval/rubric_score:first": 0.25}, None)])
def test_a_missing_score_has_no_gain(run, summary, gain):
    run.summary = summary
    assert recipe_metrics.result(run).gain is gain


def test_the_gain_is_last_minus_first(run):
    run.summary = {"eval/rubric_score:first": 0.25, "eval/rubric_score": 0.75}
    found = recipe_metrics.result(run)
    assert (found.gain, found.better, found.metric.key) == (0.5, True, "eval/rubric_score")
    run.recipe = "of a later version"
    assert recipe_metrics.result(run).metric is None and recipe_metrics.result_json(run) is None


def test_the_evaluation_before_the_first_step_is_no_gain_of_0(run):
    run.summary = {"eval/rubric_score:first": 0.25, "eval/rubric_score": 0.25}
    run.config["evaluation"]["every"], run.step = 10, 9
    found = recipe_metrics.result(run)
    assert (found.first, found.last, found.gain) == (None, 0.25, None)
    run.step = 10
    assert recipe_metrics.result(run).gain == 0.0, "it was evaluated again, with the same result"


def test_without_rubrics_the_reward_tells_what_training_changed(run):
    run.summary = {"eval/reward:first": -1.0, "eval/reward": 2.0}
    found = recipe_metrics.result(run)
    assert (found.gain, found.metric.key) == (3.0, "eval/reward")
    run.summary |= {"eval/rubric_score": 0.5}
    assert recipe_metrics.result(run).metric.key == "eval/rubric_score"


@pytest.fixture
def sampled(run):
    """Steps 1 and 2 with four responses each: rewards 0, 1, missing, 1; criterion c1 unmet, met, missing, met."""
    rows = []
    for step in (1, 2):
        for i, (reward, met) in enumerate([(0.0, False), (1.0, True), (None, None), (1.0, True)]):
            verdict = {"criterion_id": "c1", "met": met, "source": "verifier"}
            content: dict[str, Any] = {
                "phase": "train",
                "index": i,
                "criteria": [{"text": "Names a colour", "verdict": verdict}],
            }
            content["criteria"].append({"text": "Other", "verdict": {"criterion_id": "c2", "met": False}})
            rows.append(Rollout(run=run, step=step, phase="train", group=0, index=i, reward=reward, content=content))
    Rollout.objects.bulk_create(rows)
    return run


def places(page):
    return [(row.step, row.index) for row in page.items]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("newest", [(2, 3), (2, 2), (2, 1), (2, 0), (1, 3), (1, 2), (1, 1), (1, 0)]),
        ("place", [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (2, 1), (2, 2), (2, 3)]),
        ("reward", [(1, 0), (2, 0), (1, 1), (1, 3), (2, 1), (2, 3), (1, 2), (2, 2)]),
        ("-reward", [(2, 3), (2, 1), (1, 3), (1, 1), (2, 0), (1, 0), (2, 2), (1, 2)]),
    ],
)
def test_every_order_pages_without_gap_or_repeat(sampled, sort, order):
    found, cursor = [], None
    while True:
        page = rollouts.rollouts(sampled, sort=sort, cursor=cursor, limit=3)
        found += places(page)
        cursor = page.next
        if cursor is None:
            break
    assert found == order


def test_filters_by_step_phase_criterion_and_verdict(sampled):
    def find(**filters):
        return places(rollouts.rollouts(sampled, rollouts.RolloutQuery(**filters), sort="place"))

    assert find(step=2) == [(2, 0), (2, 1), (2, 2), (2, 3)]
    assert find(phase="eval") == []
    for name in ("c1", "Names a colour"):
        assert find(step=1, criterion=name, verdict="met") == [(1, 1), (1, 3)]
        assert find(step=1, criterion=name, verdict="unmet") == [(1, 0)]
        assert find(step=1, criterion=name, verdict="missing") == [(1, 2)]
    assert find(step=1, verdict="unmet") == [(1, 0), (1, 1), (1, 2), (1, 3)], "of any criterion"
    assert find(criterion="c9") == []
    assert len(find(criterion="c2")) == 8


@pytest.mark.parametrize("cursor", ["nonsense", "WzFd", "WyJwbGFjZSIsIngiXQ=="])
def test_a_cursor_of_another_list_is_refused(sampled, cursor):
    with pytest.raises(Invalid):
        rollouts.rollouts(sampled, sort="newest", cursor=cursor)


def test_facets_count_what_can_be_filtered(sampled):
    found = rollouts.facets(sampled)
    assert found["steps"] == [
        {"step": 1, "phase": "train", "count": 4},
        {"step": 2, "phase": "train", "count": 4},
    ]
    assert found["criteria"] == [
        {"text": "Names a colour", "met": 2, "unmet": 1, "missing": 1},
        {"text": "Other", "met": 0, "unmet": 4, "missing": 0},
    ]


def test_progress_of_a_finished_run_is_whole(run):
    run.step, run.steps_total = 3, 4
    assert serializers.progress(run)["fraction"] == 0.75
    run.state = "finished"
    assert serializers.progress(run)["fraction"] == 1.0
