"""The API for scripts: forms of answers, roles, other workspaces, and the cost of lists."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.team import ApiClient
from trainer.config import RECIPES
from webapp.experiments.models import Run

RUN_KEYS = {
    "outputs", "under_way_s", "time_limit_s", "token_limit", "stop_early", "judge_token_limit", "judge_money_limit", "not_before", "retries",
    "id", "name", "number", "experiment", "recipe", "state", "state_reason", "progress", "config", "summary", "dataset",
    "model", "attempt", "forked_from", "created_at", "started_at", "first_metric_at", "ended_at", "last_seq", "result", "start_step",
}  # fmt: skip


def body(response, status=200):
    assert response.status_code == status, response.content
    return response.json()


def test_launch_answers_with_the_run(api, version, model):
    run = body(api.post("/runs", {"recipe": "policy", "config": {"steps": 5}, "dataset": "demo"}), 201)
    assert run.keys() == RUN_KEYS | {"warnings"}
    assert run.pop("warnings") == []
    assert run["state"] == "queued"
    assert run["name"] == "run 1"
    assert run["config"]["optim"]["lr"] == 2e-4, "defaults are filled in"
    assert run["dataset"] == {"id": version.dataset_id, "name": "demo", "version_id": version.id, "version": 1}
    assert run["progress"]["steps_total"] == 5
    assert body(api.get(f"/runs/{run['id']}")) == run


@pytest.mark.parametrize("form", ["id", "name", "version"])
def test_a_dataset_can_be_named_in_three_ways(api, version, model, form):
    ref = {"id": version.dataset_id, "name": "demo", "version": {"id": version.dataset_id, "version": 1}}[form]
    assert body(api.post("/runs", {"recipe": "policy", "dataset": ref}), 201)["dataset"]["version_id"] == version.id


def test_a_bad_config_is_refused_with_every_field(api, version, model):
    config = {"stepz": 3, "rollout": {"group_size": 1, "temperature": "hot"}, "optim": {"lr": 0}}
    error = body(api.post("/runs", {"recipe": "policy", "config": config, "dataset": "demo"}), 422)["error"]
    assert error["code"] == "invalid_config"
    assert {f["path"] for f in error["fields"]} == {"stepz", "rollout.temperature", "optim.lr"}
    assert Run.objects.count() == 0


def test_problems_of_data_and_model_come_together(api, team):
    error = body(api.post("/runs", {"recipe": "policy", "dataset": "nowhere", "model": "none"}), 422)["error"]
    assert {f["path"] for f in error["fields"]} == {"dataset", "model.name"}


def test_one_idempotency_key_launches_once(api, version, model):
    send = {"recipe": "policy", "dataset": "demo"}
    first, second = (
        api.client.post("/api/v1/runs", send, content_type="application/json", headers={"Idempotency-Key": "k1"})
        for _ in range(2)
    )
    assert body(first, 201)["id"] == body(second, 201)["id"]
    assert Run.objects.count() == 1


def test_charts_log_rollouts_and_artifacts(api, run, trainer):
    histogram = {"edges": [0, 1, 2], "counts": [3, 4]}
    trainer.post(
        trainer.event("metrics", 1, values={"reward/mean": 0.5}, histograms={"policy/ratio_raw": histogram}),
        trainer.metrics(2, **{"reward/mean": 0.75}),
        trainer.event("rollouts", 1, rollouts=[trainer.rollout()]),
        trainer.event("log", 2, message="hello"),
        trainer.event("artifact", 2, role="checkpoint", path="checkpoints/step-000002", bytes=9, digest="ab"),
    )
    base = f"/runs/{run.id}"
    points = body(api.get(f"{base}/metrics", key="reward/mean"))["points"]
    assert [(p["step"], p["value"]) for p in points] == [(1, 0.5), (2, 0.75)]
    curves = body(api.get(f"{base}/curves", keys="reward/mean,unknown"))
    curve = curves["curves"]["reward/mean"]
    assert (curve["steps"], curve["values"], len(curve["times"])) == ([1, 2], [0.5, 0.75], 2)
    assert curves["keys"] == ["policy/ratio_raw", "reward/mean"]
    assert curves["histograms"] == ["policy/ratio_raw"]
    assert curves["last_seq"] == 6
    assert body(api.get(f"{base}/histograms", key="policy/ratio_raw"))["steps"] == [{"step": 1, **histogram}]
    assert body(api.get(f"{base}/rollouts"))["items"][0]["response"] == "red"
    assert body(api.get(f"{base}/rollouts/facets"))["criteria"] == [
        {"text": "Names a colour", "met": 1, "unmet": 0, "missing": 0}
    ]
    lines = body(api.get(f"{base}/log"))["lines"]
    assert [line["message"] for line in lines] == ["hello"]
    assert body(api.get(f"{base}/log", after_seq=lines[0]["seq"])) == {"lines": []}
    assert body(api.get(f"{base}/artifacts"))["items"][0]["path"] == "checkpoints/step-000002"


def test_stop_resume_fork_rename_delete(api, run):
    base = f"/runs/{run.id}"
    assert body(api.delete(base), 409)["error"]["code"] == "still_running"
    assert body(api.post(f"{base}/resume"), 409)["error"]["code"] == "not_resumable"
    assert body(api.post(f"{base}/stop"))["state"] == "stopped"
    assert body(api.post(f"{base}/resume"))["attempt"] == 2
    forked = body(api.post(f"{base}/fork", {"config": {"optim": {"lr": 0.001}}}), 201)
    assert (forked["forked_from"], forked["config"]["optim"]["lr"], forked["config"]["steps"]) == (run.id, 0.001, 4)
    assert body(api.patch(base, {"name": "baseline"}))["name"] == "baseline"
    body(api.post(f"{base}/stop"))
    assert api.delete(base).status_code == 204
    assert api.get(base).status_code == 404


def test_compare_shows_where_configs_differ(api, launch):
    a, b = launch(), launch(config={"steps": 4, "scaffold": None})
    found = body(api.get("/runs/compare", ids=f"{a.id},{b.id}"))
    assert [run["id"] for run in found["runs"]] == [a.id, b.id]
    differences = {d["path"]: d["values"] for d in found["config"]}
    assert "steps" not in differences
    assert differences["scaffold.alpha"] == [125.0, None]
    assert body(api.get("/runs/compare", ids="1,x"), 422)["error"]["fields"][0]["path"] == "ids"


def test_recipes_describe_their_forms(api):
    assert [r["name"] for r in body(api.get("/recipes"))["items"]] == list(RECIPES)
    schema = body(api.get("/recipes/policy/schema"))
    assert schema["properties"]["steps"]["unit"] == "steps"
    assert body(api.post("/recipes/policy/check", {"config": {"steps": 3}}))["config"]["steps"] == 3
    assert (
        body(api.post("/recipes/policy/check", {"config": {"steps": 0}}), 422)["error"]["fields"][0]["path"] == "steps"
    )
    assert api.get("/recipes/nope/schema").status_code == 404


def test_a_config_is_checked_with_its_data_as_a_launch_checks_it(api, version, model):
    part = {"kind": "reward_model", "name": "people", "model": "nope"}
    asked = {"config": {"steps": 3, "rewards": [part]}, "dataset": {"id": version.dataset_id}}
    told = body(api.post("/recipes/policy/check", asked), 422)["error"]["fields"]
    assert [field["path"] for field in told] == ["rewards.0.model"] and "'nope'" in told[0]["message"]
    launched = body(api.post("/runs", {**asked, "recipe": "policy"}), 422)["error"]["fields"]
    assert told == launched and not Run.objects.exists()
    fine = {"config": {"steps": 3}, "dataset": {"id": version.dataset_id}}
    assert body(api.post("/recipes/policy/check", fine))["config"]["steps"] == 3


def test_recipes_say_what_their_metrics_mean(api):
    found = body(api.get("/recipes/policy/metrics"))
    assert (found["headline"], found["pulse"]) == ("eval/rubric_score", "reward/mean")
    reward = next(metric for metric in found["metrics"] if metric["key"] == "reward/mean")
    assert (reward["title"], reward["band"], reward["better"]) == ("Reward", "reward/std", "higher")
    assert reward["group"] in [group["id"] for group in found["groups"]]
    assert api.get("/recipes/nope/metrics").status_code == 404


def test_experiments_have_unique_names(api):
    made = body(api.post("/experiments", {"name": " Scaffolds "}), 201)
    assert made["name"] == "Scaffolds"
    assert body(api.post("/experiments", {"name": "Scaffolds"}), 422)["error"]["fields"][0]["path"] == "name"
    assert body(api.get("/experiments"))["items"] == [made]


READS = ["", "/metrics?key=a", "/curves", "/histograms?key=a", "/rollouts", "/rollouts/facets", "/log", "/artifacts"]
WRITES = ["/stop", "/resume", "/fork"]


@pytest.mark.parametrize("path", READS)
def test_reading_needs_a_reviewer_of_this_workspace(team, run, path):
    url = f"/runs/{run.id}{path}"
    assert ApiClient(team.reviewer, "read").get(url).status_code == 200
    assert ApiClient(team.annotator).get(url).status_code == 403
    assert ApiClient(team.outsider).get(url).status_code == 404


@pytest.mark.parametrize("path", WRITES)
def test_changing_needs_a_researcher_of_this_workspace(team, run, path):
    url = f"/runs/{run.id}{path}"
    for member, status in ((team.reviewer, 403), (team.annotator, 403), (team.outsider, 404)):
        assert ApiClient(member).post(url).status_code == status
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("queued", 1)


def test_lists_hold_only_the_own_workspace(team, run):
    assert ApiClient(team.outsider).get("/runs").json()["items"] == []
    assert ApiClient(team.annotator).get("/runs").status_code == 403
    other = ApiClient(team.outsider).post("/runs", {"recipe": "policy", "dataset": run.dataset_version.dataset_id})
    assert {f["path"] for f in other.json()["error"]["fields"]} == {"dataset", "model.name"}


def test_a_longer_list_costs_no_more_queries(api, launch, django_assert_num_queries):
    launch()
    api.get("/runs")  # the first use of the token is written down once
    with CaptureQueriesContext(connection) as one:
        body(api.get("/runs"))
    for i in range(4):
        launch(experiment=f"other {i}")
    with django_assert_num_queries(len(one)):
        assert len(body(api.get("/runs"))["items"]) == 5


@pytest.mark.parametrize("number", ["0", "99999999999999999999", "-1", "x"])
def test_odd_ids_are_refused_not_crashed_on(api, number):
    assert api.get(f"/runs/{number}").status_code in (404, 422)


def test_a_key_that_comes_back_with_another_body_is_refused(api, version, model):
    launch = {"recipe": "policy", "config": {"steps": 5}, "dataset": "demo"}

    def post(path, payload):
        address = f"/api/v1{path}"
        return api.client.post(address, payload, "application/json", headers={"Idempotency-Key": "nightly"})

    first = body(post("/runs", launch), 201)
    assert body(post("/runs", launch), 201)["id"] == first["id"]
    for change in ({"config": {"steps": 6}}, {"name": "other"}, {"dataset": {"id": version.dataset_id}}):
        refused = body(post("/runs", launch | change), 422)["error"]
        assert (refused["code"], refused["fields"][0]["path"]) == ("key_reused", "Idempotency-Key")
    fork = body(post(f"/runs/{first['id']}/fork", {"config": {"steps": 5}}), 422)
    assert fork["error"]["code"] == "key_reused"
    assert Run.objects.count() == 1


@pytest.mark.parametrize("query", ["stat=running", "state=runing", "state=", "limit=5&Experiment=1"])
def test_what_a_list_does_not_know_is_an_error(api, query):
    assert api.get(f"/runs?{query}").status_code == 422


def test_parameters_are_known_by_the_names_that_addresses_have(api, run):
    assert api.get("/runs?state=active&recipe=policy&experiment=1&limit=3").status_code == 200
    assert api.get(f"/runs/{run.id}/curves?keys=reward/mean&max_points=50").status_code == 200
    refused = body(api.get(f"/runs/{run.id}/curves?named=reward/mean"), 422)["error"]
    assert refused["fields"] == [{"path": "named", "message": "is not a parameter of this address; see /api/v1/docs"}]
    assert api.get(f"/runs/{run.id}?run_id=1").status_code == 422
    assert api.get(f"/runs/{run.id}/rollouts?phase=test").status_code == 422
