"""Custom charts and pins over the API, and curves of expressions over stored points."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.team import ApiClient
from webapp.core.models import AuditEntry
from webapp.experiments.charts import axes, computing, formulas, services
from webapp.experiments.models import CustomChart, Run

pytestmark = pytest.mark.django_db
LESS = "reward/mean - 0.5 * policy/kl"


@pytest.fixture
def api(team):
    return ApiClient(team.researcher)


def titles(api, run):
    return [each["title"] for each in api.get(f"/runs/{run.pk}/charts").json()["items"]]


def make(api, run, title, *expressions):
    return api.post(f"/runs/{run.pk}/charts", {"title": title, "expressions": list(expressions or [LESS])})


def test_a_chart_is_made_changed_moved_removed_and_restored_at_its_place(api, run):
    ids = [make(api, run, name).json()["id"] for name in ("one", "two", "three")]
    path = f"/runs/{run.pk}/charts"
    assert titles(api, run) == ["one", "two", "three"]
    assert api.put(f"{path}/{ids[2]}/place", {"place": 0}).status_code == 204
    assert titles(api, run) == ["three", "one", "two"]
    changed = api.put(f"{path}/{ids[0]}", {"title": " ", "expressions": ["a / b", " c "]})
    automatic = {"lowest": None, "highest": None}
    assert changed.json() == {"id": ids[0], "title": "a / b, c", "expressions": ["a / b", "c"], **automatic}
    assert api.delete(f"{path}/{ids[0]}").status_code == 204
    assert titles(api, run) == ["three", "two"]
    assert api.delete(f"{path}/{ids[0]}").status_code == 404
    assert api.post(f"{path}/{ids[0]}/restore").json()["title"] == "a / b, c"
    assert titles(api, run) == ["three", "a / b, c", "two"]
    assert api.post(f"{path}/{ids[0]}/restore").status_code == 404
    told = AuditEntry.objects.filter(action__startswith="custom_chart.").order_by("pk").values_list("action", flat=True)
    assert [each.partition(".")[2] for each in told] == [*["create"] * 3, "move", "change", "remove", "bring_back"]


def test_the_vertical_range_of_a_chart_is_kept_for_everybody(api, run, team):
    path = f"/runs/{run.pk}/charts"
    body = {"title": "one", "expressions": [LESS], "lowest": 0, "highest": 0.5}
    made = api.post(path, body).json()
    assert (made["lowest"], made["highest"]) == (0, 0.5)
    half = api.put(f"{path}/{made['id']}", body | {"lowest": None, "highest": -2.5}).json()
    assert (half["lowest"], half["highest"]) == (None, -2.5)
    assert ApiClient(team.reviewer).get(path).json()["items"] == [half]
    wrong = api.put(f"{path}/{made['id']}", body | {"lowest": 0.5})
    assert wrong.json()["error"]["fields"] == [
        {"path": "highest", "message": "The highest value must be above the lowest."}
    ]
    assert api.put(f"{path}/{made['id']}", body | {"highest": "Infinity"}).status_code == 422
    assert api.get(path).json()["items"] == [half]
    assert api.put(f"{path}/{made['id']}", {"expressions": [LESS]}).json()["highest"] is None


def test_what_was_removed_a_day_ago_goes_for_good_with_the_next(api, run, team):
    old, new = (make(api, run, name).json()["id"] for name in ("old", "new"))
    services.remove(team.researcher, CustomChart.objects.get(pk=old))
    CustomChart.objects.filter(pk=old).update(removed_at=timezone.now() - timedelta(days=2))
    services.remove(team.researcher, CustomChart.objects.get(pk=new))
    assert list(CustomChart.objects.values_list("pk", flat=True)) == [new]


def test_the_place_of_an_error_is_told_at_its_expression(api, run):
    answer = make(api, run, "x", "a", "a b")
    assert answer.status_code == 422
    assert answer.json()["error"]["fields"] == [
        {"path": "expressions.1", "message": "Write an operator instead of “b”."}
    ]
    assert answer.json()["place"] == {"number": 1, "start": 2, "end": 3}
    assert not CustomChart.objects.exists()
    assert make(api, run, "x" * 100).json()["error"]["fields"][0]["path"] == "title"


def test_there_are_at_most_so_many_charts_of_a_recipe(api, run, monkeypatch):
    monkeypatch.setattr(services, "MOST_CHARTS", 1)
    first = make(api, run, "one").json()["id"]
    assert make(api, run, "two").status_code == 409
    api.delete(f"/runs/{run.pk}/charts/{first}")
    make(api, run, "two")
    assert api.post(f"/runs/{run.pk}/charts/{first}/restore").status_code == 409


@pytest.mark.parametrize("role", ["reviewer", "annotator", "outsider"])
def test_who_may_only_read_changes_no_chart_but_pins(api, run, team, role):
    made = make(api, run, "one").json()["id"]
    their, path = ApiClient(getattr(team, role)), f"/runs/{run.pk}/charts"
    refused = 404 if role == "outsider" else 403
    body = {"title": "x", "expressions": ["a"]}
    assert their.post(path, body).status_code == refused
    assert their.put(f"{path}/{made}", body).status_code == refused
    assert their.put(f"{path}/{made}/place", {"place": 0}).status_code == refused
    assert their.delete(f"{path}/{made}").status_code == refused
    reads = 200 if role == "reviewer" else refused
    assert their.get(path).status_code == reads
    assert their.get(f"/runs/{run.pk}/computed?expression=a").status_code == reads
    assert their.put(f"/runs/{run.pk}/pinned-charts", {"chart": "a", "pinned": True}).status_code == reads


def test_pins_are_ones_own_in_the_order_in_which_they_were_pinned(api, run, team, monkeypatch):
    path = f"/runs/{run.pk}/pinned-charts"
    for chart in ("reward-mean", "policy-kl", "reward-mean"):
        found = api.put(path, {"chart": chart, "pinned": True})
    assert found.json() == {"charts": ["reward-mean", "policy-kl"]}
    assert api.get(f"/runs/{run.pk}/charts").json()["pinned"] == ["reward-mean", "policy-kl"]
    assert ApiClient(team.owner).get(f"/runs/{run.pk}/charts").json()["pinned"] == []
    assert api.put(path, {"chart": "reward-mean", "pinned": False}).json() == {"charts": ["policy-kl"]}
    monkeypatch.setattr(services, "MOST_PINS", 1)
    assert api.put(path, {"chart": "other", "pinned": True}).status_code == 409


# ---- computed curves ----


def tell(trainer, steps):
    for step, values in steps.items():
        trainer.post(trainer.event("metrics", step, values=values))


def test_a_step_that_lacks_a_metric_has_no_point_and_a_division_by_0_is_a_gap(api, run, trainer):
    tell(trainer, {1: {"a": 1.0, "b": 4.0}, 2: {"a": 2.0}, 3: {"a": 3.0, "b": 0.0}, 4: {"a": 4.0, "b": 8.0}})
    found = api.get(f"/runs/{run.pk}/computed?expression=a / b&expression=c %2B a").json()
    first, second = found["lines"]
    assert (first["steps"], first["values"]) == ([1, 3, 4], [0.25, None, 0.5])
    assert first["program"] == [["key", "a"], ["key", "b"], ["/", None]]
    assert len(first["times"]) == 3 and first["missing"] == []
    assert (second["steps"], second["missing"]) == ([], ["c"])


def test_expressions_are_checked_without_being_computed(api, run, team):
    path = f"/runs/{run.pk}/computed/check"
    found = api.get(f"{path}?expression=a / b&expression=none")
    assert found.json()["items"] == [
        {"expression": "a / b", "keys": ["a", "b"]},
        {"expression": "none", "keys": ["none"]},
    ]
    refused = api.get(f"{path}?expression=a&expression=a -")
    assert refused.status_code == 422
    assert refused.json()["place"] == {"number": 1, "start": 3, "end": 4}
    assert ApiClient(team.annotator).get(f"{path}?expression=a").status_code == 403
    assert ApiClient(team.outsider).get(f"{path}?expression=a").status_code == 404


def test_a_long_curve_is_computed_exactly_before_it_is_thinned(run, trainer):
    """The lowest and highest points of two thinned curves are at different steps, so their difference would have no points."""
    events = [
        trainer.event("metrics", step, values={"up": float(step), "down": float(step % 7), "zero": float(step != 500)})
        for step in range(1, 1001)
    ]
    for start in range(0, 1000, 200):
        assert trainer.post(*events[start : start + 200]).status_code == 200
    lines = [formulas.parse("up - down"), formulas.parse("up / zero")]
    exact, broken = computing.curves(run, lines, 50)["lines"]
    assert 20 <= len(exact["steps"]) <= 52
    assert exact["values"] == [step - step % 7 for step in exact["steps"]]
    assert dict(zip(broken["steps"], broken["values"], strict=True))[500] is None
    assert broken["values"].count(None) == 1


def test_an_expression_over_too_many_points_is_refused(api, run, trainer, monkeypatch):
    tell(trainer, {step: {"a": 1.0} for step in range(1, 5)})
    monkeypatch.setattr(computing, "MOST", 3)
    answer = api.get(f"/runs/{run.pk}/computed?expression=a")
    assert answer.status_code == 422
    assert "more than 3 points" in answer.json()["error"]["fields"][0]["message"]


# ---- axes ----


def expressions(run):
    return {each["name"]: each["expression"] for each in axes.axes(run)}


def test_axes_are_those_that_the_metrics_of_the_run_tell(run, trainer):
    assert expressions(run) == {"samples": "total(rollout/responses)"}  # the recipe declares these metrics
    trainer.post(trainer.metrics(1, **{"rollout/tokens": 8.0}))
    assert expressions(run) == {"tokens": "total(rollout/tokens)", "samples": "total(rollout/responses)"}
    Run.objects.filter(pk=run.pk).update(recipe="logged", config={"batch_size": 16})
    run.refresh_from_db()
    trainer.post(trainer.metrics(2, **{"train/loss": 0.5}))
    assert expressions(run) == {"tokens": "total(rollout/tokens)"}, "it may not have logged every step"
    run.recipe = "dpo"
    assert expressions(run)["samples"] == "16 * total(1 + 0 * train/loss)"


def test_a_sum_continues_where_the_stored_points_end(api, run, trainer):
    tell(trainer, {1: {"a": 2.0}, 2: {"a": 3.0}, 3: {"b": 1.0}})
    line = api.get(f"/runs/{run.pk}/computed?expression=1 %2B total(a)").json()["lines"][0]
    assert line["values"] == [3.0, 6.0]
    assert (line["totals"], line["last_step"]) == ({"2": 5.0}, 2)
