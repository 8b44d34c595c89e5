"""Requests that are allowed, refused, and repeated."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.team import ApiClient, browser
from webapp import needs
from webapp.accounts.administration import quotas
from webapp.experiments.lifecycle import jobs, waiting_line
from webapp.experiments.models import Experiment, Point, Run
from webapp.notices import words
from webapp.notices.models import Notice
from webapp.tracking import services
from webapp.tracking.models import LoggedRun

from .rest_client import ARTIFACTS, TRACKING, RestClient, error

pytestmark = pytest.mark.django_db


def test_a_run_is_a_run_like_any_other(team, rest_client):
    key = rest_client.run(run_name="first try", tags=[{"key": "team", "value": "red"}])
    assert (
        rest_client.log(key, ("loss", 2.5, 1), ("loss", 1.5, 2), params=[{"key": "lr", "value": "1e-4"}]).json() == {}
    )
    rest_client.post("runs/update", run_id=key, status="FINISHED", end_time=1_700_000_100_000)

    page = browser(team.reviewer)
    run = Run.objects.get()
    assert "first try" in page.get("/experiments").content.decode()
    told = page.get(f"/api/v1/runs/{run.pk}").json()
    assert (told["recipe"], told["state"], told["dataset"], told["model"]) == ("logged", "finished", None, None)
    assert told["config"] == {"lr": "1e-4"} and told["summary"] == {"loss": 1.5} and told["progress"]["step"] == 2
    curves = page.get(f"/api/v1/runs/{run.pk}/curves").json()
    assert curves["curves"]["loss"]["values"] == [2.5, 1.5]
    for tab in ("", "/config", "/lineage"):
        assert page.get(f"/runs/{run.pk}{tab}").status_code == 200
    lineage = page.get(f"/runs/{run.pk}/lineage").content.decode()
    assert "red" in lineage and "through MLflow’s protocol" in lineage  # which touchstone.wandb and imports speak too
    assert page.get(f"/runs/{run.pk}/rollouts").headers["Location"] == f"/runs/{run.pk}"  # it has no rollouts
    assert page.get(f"/api/v1/runs/compare?ids={run.pk}").status_code == 200


def test_what_only_launched_runs_have_is_refused_for_it(team, rest_client):
    key = rest_client.run()
    page, run = browser(team.researcher), Run.objects.get()
    api = f"/api/v1/runs/{run.pk}"
    assert page.post(f"/runs/{run.pk}/stop").status_code == 302
    run.refresh_from_db()
    assert run.state == "stopped"
    for what, body in (("resume", {}), ("extend", {"steps": 10}), ("fork", {"config": {}})):
        answer = ApiClient(team.researcher).post(f"/runs/{run.pk}/{what}", body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "logged"), what
    assert page.get(f"/runs/{run.pk}/fork").status_code == 302
    assert page.get(f"{api}/judges").status_code == 200
    rest_client.post("runs/update", run_id=key, status="RUNNING")
    run.refresh_from_db()
    assert (run.state, run.ended_at) == ("running", None)


def test_upkeep_and_the_line_leave_it_alone(rest_client, settings, monkeypatch):
    settings.MAX_RUNNING_RUNS = 1
    rest_client.run()
    Run.objects.update(state_at=timezone.now() - timedelta(days=2), heartbeat_at=timezone.now() - timedelta(days=2))
    monkeypatch.setattr(jobs, "_web_answers", lambda: True)
    jobs.watch()
    assert Run.objects.get().state == "running"
    assert not waiting_line.launched(waiting_line.RUNNING).exists()


def test_what_is_no_number_comes_back_as_it_was_and_breaks_no_chart(team, rest_client):
    key = rest_client.run()
    answer = rest_client.log(key, ("a", "NaN", 1), ("a", 1.0, 2), ("b", "Infinity", 1), ("c", "-Infinity", 7))
    assert answer.status_code == 200
    assert rest_client.metrics(key) == {"a": 1.0, "b": "Infinity", "c": "-Infinity"}
    history = rest_client.get("metrics/get-history", run_id=key, metric_key="a").json()["metrics"]
    assert [each["value"] for each in history] == ["NaN", 1.0]
    run = Run.objects.get()
    api = browser(team.reviewer)
    curves = api.get(f"/api/v1/runs/{run.pk}/curves").json()
    assert curves["curves"]["a"]["values"] == [1.0] and curves["keys"] == ["a", "b", "c"]
    points = api.get(f"/api/v1/runs/{run.pk}/metrics?key=b").json()["points"]
    assert [(each["value"], each["not_finite"]) for each in points] == [(None, "Infinity")]


def test_a_batch_of_a_thousand_is_taken_and_one_more_is_not(rest_client):
    key = rest_client.run()
    rows = [(f"k{n}", n / 7, 1) for n in range(1_000)]
    assert rest_client.log(key, *rows).status_code == 200
    assert Point.objects.count() == 1_000
    assert error(rest_client.log(key, *rows, ("more", 1, 1))) == (400, "INVALID_PARAMETER_VALUE")
    assert error(rest_client.log(key, *rows, tags=[{"key": "t", "value": ""}])) == (400, "INVALID_PARAMETER_VALUE")
    assert Point.objects.count() == 1_000


def test_what_comes_twice_is_stored_once_and_what_comes_late_replaces_nothing(rest_client):
    key = rest_client.run()
    for _ in range(2):
        assert rest_client.log(key, ("loss", 2.0, 1, 1_000), params=[{"key": "p", "value": "1"}]).status_code == 200
    rest_client.log(key, ("loss", 3.0, 1, 5_000))
    rest_client.log(key, ("loss", 9.0, 1, 2_000))  # the run had been active for a long time
    assert list(Point.objects.values_list("value", flat=True)) == [3.0]
    rest_client.log(
        key, ("loss", 1.0, 4, 6_000), ("loss", 0.5, 4, 7_000), ("loss", 0.7, 4, 6_500)
    )  # one step three times
    assert rest_client.metrics(key) == {"loss": 0.5}


def test_a_batch_is_stored_whole_or_not_at_all(rest_client):
    key = rest_client.run()
    rest_client.log(key, params=[{"key": "p", "value": "1"}])
    for wrong in (
        {"params": [{"key": "p", "value": "2"}]},
        {"params": [{"key": "q", "value": "1"}, {"key": "q", "value": "2"}]},
        {"tags": [{"key": "x" * 251, "value": ""}]},
        {"tags": [{"key": "x", "value": "y" * 8_001}]},
        {"params": [{"key": "x", "value": "y" * 6_001}]},
    ):
        assert error(rest_client.log(key, ("m", 1.0, 1), **wrong)) == (400, "INVALID_PARAMETER_VALUE"), wrong
    assert error(rest_client.log(key, ("m", 1.0, 1), ("m", 1.0, -1)))[0] == 400
    assert error(rest_client.log(key, ("m", 1.0, 2**31)))[0] == 400
    assert error(rest_client.log(key, ("m", "many", 1)))[0] == 400
    assert error(rest_client.log(key, ("m", True, 1)))[0] == 400
    assert not Point.objects.exists()
    assert rest_client.get_run(key)["data"]["params"] == [{"key": "p", "value": "1"}]


def test_a_run_is_resumed_by_its_program(rest_client):
    key = rest_client.run()
    rest_client.log(key, ("loss", 2.0, 1))
    rest_client.post("runs/update", run_id=key, status="FAILED")
    assert rest_client.get_run(key)["info"]["status"] == "FAILED"
    rest_client.post("runs/update", run_id=key, status="RUNNING")
    rest_client.log(key, ("loss", 1.0, 2))
    for _ in range(2):
        told = rest_client.post("runs/update", run_id=key, status="FINISHED").json()["run_info"]
    assert told["status"] == "FINISHED" and told["end_time"] and LoggedRun.objects.count() == 1
    assert rest_client.metrics(key) == {"loss": 1.0}


def test_a_failed_run_says_why_and_its_notice_and_home_lead_to_a_page(team, rest_client, as_researcher):
    told, silent = rest_client.run(), rest_client.run()
    rest_client.post("runs/set-tag", run_id=told, key="touchstone.error", value="ValueError: loss is NaN")
    for key in (told, silent):
        rest_client.post("runs/update", run_id=key, status="FAILED")
    run, other = (Run.objects.get(logged__key=key) for key in (told, silent))
    assert run.state_reason == "ValueError: loss is NaN"
    assert "without a reason" in other.state_reason
    home = {
        need.href: need.text
        for need in needs.rows_that_need_attention(team.researcher).now
        if need.title.endswith("failed")
    }
    assert home == {f"/runs/{run.pk}": run.state_reason, f"/runs/{other.pk}": other.state_reason}
    notices = {words.href(row): words.text(row) for row in Notice.objects.filter(event="run.failed")}
    assert notices == home
    assert "ValueError: loss is NaN" in as_researcher.get(f"/runs/{run.pk}").content.decode()
    assert as_researcher.get(f"/runs/{run.pk}/log").headers["Location"] == f"/runs/{run.pk}"
    rest_client.post("runs/update", run_id=told, status="RUNNING")
    rest_client.post("runs/update", run_id=told, status="FAILED")
    run.refresh_from_db()
    assert "without a reason" in run.state_reason  # what it said before it continued explains no later failure


def test_experiments_are_those_of_the_product(team, rest_client):
    made = rest_client.post("experiments/create", name="ours", tags=[{"key": "a", "value": "b"}]).json()[
        "experiment_id"
    ]
    assert error(rest_client.post("experiments/create", name="ours")) == (400, "RESOURCE_ALREADY_EXISTS")
    assert error(rest_client.post("experiments/create", name="x" * 121)) == (400, "INVALID_PARAMETER_VALUE")
    told = rest_client.get("experiments/get-by-name", experiment_name="ours").json()["experiment"]
    assert told["experiment_id"] == made and told["tags"] == [{"key": "a", "value": "b"}]
    assert error(rest_client.get("experiments/get-by-name", experiment_name="theirs"))[1] == "RESOURCE_DOES_NOT_EXIST"
    rest_client.post("experiments/set-experiment-tag", experiment_id=made, key="c", value="d")
    assert len(rest_client.get("experiments/get", experiment_id=made).json()["experiment"]["tags"]) == 2
    rest_client.run()  # in the experiment 0, which is made for it
    names = [each["name"] for each in rest_client.post("experiments/search").json()["experiments"]]
    assert names == ["Default", "ours"]
    found = rest_client.post("experiments/search", filter="name LIKE 'our%'", max_results=1).json()
    assert [each["name"] for each in found["experiments"]] == ["ours"] and "next_page_token" not in found
    first = rest_client.post("experiments/search", max_results=1).json()
    second = rest_client.post("experiments/search", max_results=1, page_token=first["next_page_token"]).json()
    assert second["experiments"][0]["name"] == "ours"


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("", ["c", "b", "a"]),
        ("metrics.loss < 2.5", ["b", "a"]),
        ("metrics.loss < 2.5 and params.lr = '0.2'", ["b"]),
        ("metrics.`val/loss` >= 1", ["a"]),
        ("params.lr != '0.1'", ["c", "b"]),
        ("tags.team = 'red'", ["a"]),
        ("tags.team IS NULL", ["c", "b"]),
        ("attributes.status = 'FINISHED'", ["c"]),
        ("status != 'FINISHED'", ["b", "a"]),
        ("run_name LIKE '%a%'", ["a"]),
        ("attributes.run_name IN ('a', 'c')", ["c", "a"]),
        ('tags.`mlflow.runName` = "b"', ["b"]),
        ("attributes.start_time > 1500", ["c", "b"]),
    ],
)
def test_runs_are_found_by_filters(rest_client, wanted, names):
    made = [rest_client.run(run_name=name, start_time=(place + 1) * 1_000) for place, name in enumerate("abc")]
    for place, key in enumerate(made):
        rest_client.log(key, ("loss", float(place + 1), 1), params=[{"key": "lr", "value": f"0.{place + 1}"}])
    rest_client.log(made[0], ("val/loss", 1.0, 1), tags=[{"key": "team", "value": "red"}])
    rest_client.post("runs/update", run_id=made[2], status="FINISHED")
    answer = rest_client.post("runs/search", experiment_ids=["0"], filter=wanted)
    assert [each["info"]["run_name"] for each in answer.json()["runs"]] == names


def test_runs_come_in_the_order_that_is_asked_for_page_by_page(rest_client):
    for name, loss in zip("abcd", (2.0, 1.0, 3.0, None), strict=True):
        key = rest_client.run(run_name=name)
        if loss:
            rest_client.log(key, ("loss", loss, 1))
    found, token = [], ""
    while True:
        page = rest_client.post(
            "runs/search", experiment_ids=["0"], order_by=["metrics.loss DESC"], max_results=3, page_token=token
        ).json()
        found += [each["info"]["run_name"] for each in page["runs"]]
        if not (token := page.get("next_page_token", "")):
            break
    assert found == ["c", "a", "b", "d"]


@pytest.mark.parametrize(
    "wrong",
    [
        "loss", "metrics.loss <", "metrics.loss < 'a'", "params.lr = 1", "a = 'b' or c = 'd'", "metrics.loss ; drop",
        "nothing.x = 'y'", "attributes.colour = 'red'", "status = 'DONE'", "start_time > 1e300", "tags.a IN 'b'",
        "tags.a = 'b' " + "and tags.a = 'b' " * 20, "params.a LIKE 5", "attributes.start_time = 'x'",
    ],
)  # fmt: skip
def test_a_filter_that_cannot_be_read_is_told(rest_client, wrong):
    assert error(rest_client.post("runs/search", experiment_ids=["0"], filter=wrong)) == (
        400,
        "INVALID_PARAMETER_VALUE",
    )
    assert error(rest_client.post("runs/search", order_by=[f"{wrong} x"])) == (400, "INVALID_PARAMETER_VALUE")


def test_json_that_is_nested_too_deep_is_refused_like_other_nonsense(rest_client):
    refused, deep = (400, "INVALID_PARAMETER_VALUE"), "[" * 3_000
    assert error(rest_client.post("runs/search", experiment_ids=["0"], page_token="W1tb" * 1_000)) == refused
    key = rest_client.run()
    assert error(rest_client.post("runs/log-model", run_id=key, model_json=deep)) == refused
    assert rest_client.post("runs/set-tag", run_id=key, key="touchstone.alert.1", value=deep).status_code == 200


def test_a_deleted_run_is_gone_from_the_pages_until_it_is_restored(team, rest_client):
    key = rest_client.run()
    run, page = Run.objects.get(), browser(team.reviewer)
    for _ in range(2):
        assert rest_client.post("runs/delete", run_id=key).json() == {}
    assert page.get(f"/runs/{run.pk}").status_code == 404
    assert page.get("/api/v1/runs").json()["items"] == []
    assert rest_client.get_run(key)["info"]["lifecycle_stage"] == "deleted"
    assert error(rest_client.log(key, ("m", 1.0, 1))) == (409, "INVALID_STATE")
    search = {"experiment_ids": ["0"]}
    assert rest_client.post("runs/search", **search).json()["runs"] == []
    assert len(rest_client.post("runs/search", run_view_type="ALL", **search).json()["runs"]) == 1
    rest_client.post("runs/restore", run_id=key)
    assert page.get(f"/runs/{run.pk}").status_code == 200
    assert rest_client.log(key, ("m", 1.0, 1)).status_code == 200


def test_a_run_that_was_deleted_a_month_ago_is_erased(rest_client):
    old, fresh = rest_client.run(), rest_client.run()
    for key in (old, fresh):
        rest_client.post("runs/delete", run_id=key)
    LoggedRun.objects.filter(key=old).update(deleted_at=timezone.now() - timedelta(days=31))
    assert services.erase_deleted() == 1
    assert list(LoggedRun.objects.values_list("key", flat=True)) == [fresh]


def test_a_run_never_ends_before_its_start(rest_client):
    """The clock of the program was set back while it ran."""
    key = rest_client.run(start_time=1_700_000_100_000)
    rest_client.post("runs/update", run_id=key, status="FINISHED", end_time=1_700_000_000_000)
    info = rest_client.get_run(key)["info"]
    assert (info["start_time"], info["end_time"]) == (1_700_000_000_000, 1_700_000_000_000)


def test_names_that_are_numbers_are_found(rest_client):
    run = rest_client.run(tags=[{"key": "7", "value": "t"}])
    rest_client.post("runs/log-parameter", run_id=run, key="0", value="x")
    for text in ("params.0 = 'x'", "params.`0` = 'x'", "tags.7 = 't'", "params.99999999999999999999 IS NULL"):
        answer = rest_client.post("runs/search", experiment_ids=["0"], filter=text)
        assert [each["info"]["run_id"] for each in answer.json().get("runs", [])] == [run], (text, answer.content)
    answer = rest_client.post("runs/search", experiment_ids=["0"], order_by=["params.99999999999999999999 DESC"])
    assert answer.status_code == 200, answer.content


@pytest.mark.parametrize("text", ["attributes.run_id IN " + "(" * 4_000, "params.a = ('x')", "params.a IN 'x'"])
def test_a_filter_with_a_list_in_the_wrong_place_is_refused(rest_client, text):
    assert error(rest_client.post("runs/search", experiment_ids=["0"], filter=text))[0] == 400


def test_the_history_of_a_metric_is_read_past_any_step(rest_client):
    run, steps = rest_client.run(), [1, 10**9, 10**9 + 5, 2**31 - 1]
    points = [{"key": "m", "value": step / 2, "timestamp": 1_700_000_000_000, "step": step} for step in steps]
    assert rest_client.post("runs/log-batch", run_id=run, metrics=points).status_code == 200
    read, token = [], ""
    while token is not None:
        page = rest_client.get(
            "metrics/get-history", run_id=run, metric_key="m", max_results=1, page_token=token
        ).json()
        read += [point["step"] for point in page["metrics"]]
        token = page.get("next_page_token")
    assert read == steps


def test_files_are_sent_listed_and_fetched(rest_client, settings, tmp_path):
    settings.VAR = tmp_path
    key = rest_client.run()
    assert rest_client.send(key, "model/weights.bin", b"\0\1" * 500).status_code == 200
    assert rest_client.send(key, "notes.txt", b"first").status_code == 200
    assert rest_client.send(key, "notes.txt", b"second").status_code == 200
    listed = rest_client.get("artifacts/list", run_id=key).json()
    assert listed["files"] == [
        {"path": "model", "is_dir": True},
        {"path": "notes.txt", "is_dir": False, "file_size": 6},
    ]
    below = rest_client.get("artifacts/list", run_id=key, path="model").json()["files"]
    assert below == [{"path": "model/weights.bin", "is_dir": False, "file_size": 1000}]
    root = f"{ARTIFACTS}/{rest_client.get_run(key)['info']['experiment_id']}/{key}/artifacts"
    assert b"".join(rest_client.client.get(f"{root}/notes.txt").streaming_content) == b"second"
    ranged = rest_client.client.get(f"{root}/model/weights.bin", headers={"range": "bytes=0-1"})
    assert b"".join(ranged.streaming_content) == b"\0\1"
    assert error(rest_client.client.get(f"{root}/model")) == (404, "RESOURCE_DOES_NOT_EXIST")


@pytest.mark.parametrize(
    "path",
    ["../../other/x", "a/../../x", "/etc/passwd", "a\\b", "a%0Ab", "x" * 401, "y" * 201, "..", "notes.txt/below"],
)
def test_no_file_leaves_the_folder_of_its_run(rest_client, settings, tmp_path, path):
    settings.VAR = tmp_path
    key = rest_client.run()
    rest_client.send(key, "notes.txt", b"here")
    assert rest_client.send(key, path, b"out").status_code in (400, 404)
    written = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert [each.name for each in written] == ["notes.txt"]


def test_a_workspace_may_store_so_many_bytes_of_files(team, rest_client, settings, tmp_path):
    settings.VAR = tmp_path
    quotas.change(team.owner.user, team.workspace, quotas.Limits(logged_bytes=1_000))
    key = rest_client.run()
    assert rest_client.send(key, "a", b"x" * 900).status_code == 200
    assert error(rest_client.send(key, "b", b"x" * 101)) == (403, "RESOURCE_LIMIT_EXCEEDED")
    assert rest_client.send(key, "a", b"x" * 1_000).status_code == 200  # replaces the value before
    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == ["a"]


def test_only_a_token_of_the_area_and_the_role_opens(team, rest_client):
    key = rest_client.run()
    assert error(RestClient(secret="ts_wrong").post("runs/search")) == (401, "UNAUTHENTICATED")
    assert error(RestClient(team.researcher, {"datasets": "write"}).post("runs/search")) == (403, "PERMISSION_DENIED")
    reads = RestClient(team.researcher, {"experiments": "read"})
    assert reads.post("runs/search", experiment_ids=["0"]).status_code == 200
    assert error(reads.post("runs/create")) == (403, "PERMISSION_DENIED")
    reviewer = RestClient(team.reviewer)
    assert reviewer.get("runs/get", run_id=key).status_code == 200
    assert error(reviewer.log(key, ("m", 1.0, 1))) == (403, "PERMISSION_DENIED")
    assert error(RestClient(team.annotator).get("runs/get", run_id=key)) == (403, "PERMISSION_DENIED")
    # a session does not count as a token
    assert browser(team.owner).get(f"{TRACKING}runs/get?run_id={key}").status_code == 401


def test_another_workspace_finds_nothing(team, rest_client, settings, tmp_path):
    settings.VAR = tmp_path
    key = rest_client.run()
    rest_client.send(key, "secret.txt", b"s")
    experiment = rest_client.get_run(key)["info"]["experiment_id"]
    other = RestClient(team.outsider)
    missing = (404, "RESOURCE_DOES_NOT_EXIST")
    assert error(other.get("runs/get", run_id=key)) == missing
    assert error(other.log(key, ("m", 1.0, 1))) == missing
    assert error(other.post("runs/delete", run_id=key)) == missing
    assert error(other.get("experiments/get", experiment_id=experiment)) == missing
    assert error(other.post("runs/create", experiment_id=experiment)) == missing
    assert error(other.get("artifacts/list", run_id=key)) == missing
    assert error(other.client.get(f"{ARTIFACTS}/{experiment}/{key}/artifacts/secret.txt")) == missing
    assert error(other.send(key, "x", b"", experiment)) == missing
    assert other.post("runs/search", experiment_ids=[experiment]).json()["runs"] == []
    assert other.post("experiments/search").json()["experiments"] == []


def test_the_same_key_begins_one_run(rest_client):
    ask = {"experiment_id": "0", "run_name": "once"}
    headers = {"Idempotency-Key": "k1"}
    answers = [
        rest_client.client.post(f"{TRACKING}runs/create", ask, content_type="application/json", headers=headers).json()
        for _ in range(2)
    ]
    assert answers[0]["run"]["info"]["run_id"] == answers[1]["run"]["info"]["run_id"]
    assert LoggedRun.objects.count() == 1


def test_the_links_that_the_client_prints_lead_to_the_run(rest_client, team):
    key = rest_client.run()
    page = browser(team.reviewer)
    assert "js/mlflow-links.js" in page.get("/mlflow/").content.decode()
    run = LoggedRun.objects.get(key=key).run_id
    assert page.get(f"/mlflow/runs/{key}").headers["Location"] == f"/runs/{run}"
    assert page.get(f"/mlflow/runs/{'0' * 32}").status_code == 404


def test_an_address_without_its_path_is_told(rest_client):
    answer = rest_client.client.post("/api/2.0/mlflow/runs/create", {}, content_type="application/json")
    assert error(answer) == (404, "ENDPOINT_NOT_FOUND")
    assert "set MLFLOW_TRACKING_URI to" in answer.json()["message"] and "/mlflow." in answer.json()["message"]


def test_unknown_addresses_and_methods_answer_in_the_form_of_the_protocol(rest_client):
    assert error(rest_client.post("traces")) == (404, "ENDPOINT_NOT_FOUND")
    assert error(rest_client.get("webhooks/list")) == (404, "ENDPOINT_NOT_FOUND")
    assert error(rest_client.get("runs/create")) == (405, "BAD_REQUEST")
    assert error(rest_client.get("experiments/get", experiment_id="999999")) == (404, "RESOURCE_DOES_NOT_EXIST")
    assert error(rest_client.get("experiments/get", experiment_id="x")) == (404, "RESOURCE_DOES_NOT_EXIST")
    assert error(rest_client.get("runs/get", run_id="0" * 32)) == (404, "RESOURCE_DOES_NOT_EXIST")
    for wrong in ("{", "[]", '"\\ud800"', "null"):
        answer = rest_client.client.post(f"{TRACKING}runs/create", wrong, content_type="application/json")
        assert answer.status_code == 400 and answer.json()["error_code"], wrong


def test_the_answer_to_a_search_takes_as_many_queries_for_many_runs(rest_client, django_assert_max_num_queries):
    for place in range(6):
        rest_client.log(rest_client.run(), *[(f"m{n}", float(n), place) for n in range(5)])
    with django_assert_max_num_queries(12):
        assert len(rest_client.post("runs/search", experiment_ids=["0"]).json()["runs"]) == 6
    assert Experiment.objects.count() == 1
