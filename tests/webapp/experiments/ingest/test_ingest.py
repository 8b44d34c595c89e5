"""Events are stored exactly once, for any content, any number of repetitions and any sender."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from django.db import OperationalError, connection, connections
from django.test import AsyncClient

from trainer.contracts import jsonlines
from webapp.core import broadcast
from webapp.experiments import serializers
from webapp.experiments.ingest import events
from webapp.experiments.launch import services as launch_services
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import RETRIES, LogLine, Point, Rollout, Run

from ..conftest import NOON, Trainer, keep_checkpoint

WRITTEN_TWICE = """
SELECT shorter.indexrelid::regclass::text FROM pg_index AS shorter JOIN pg_index AS longer USING (indrelid)
WHERE indrelid = ANY(%s::regclass[]) AND shorter.indexrelid <> longer.indexrelid AND NOT shorter.indisunique
    AND shorter.indpred IS NULL AND longer.indpred IS NULL AND longer.indkey::text || ' ' LIKE shorter.indkey::text || ' %%'
"""


def reply(response):
    assert response.status_code == 200, response.content
    return response.json()


def test_the_assignment_says_all_that_a_process_needs(trainer, run, version, settings):
    found = trainer.client.get(trainer.url()).json()
    assert found["config"]["steps"] == 4
    assert (found["attempt"], found["resume"], found["last_seq"]) == (1, False, 1)
    assert found["models"]["base"]["path"] == "/models/smollm2"
    assert found["run_dir"] == str(settings.VAR / "runs" / str(run.id))
    assert found["examples_url"].endswith(f"/api/v1/ingest/runs/{run.id}/examples")
    assert found["examples_digest"] == version.digest


async def test_examples_stream_in_order(transactional_db):
    from channels.db import database_sync_to_async

    from tests.team import make_team
    from webapp.experiments.ingest import api as ingest
    from webapp.experiments.launch import checks
    from webapp.experiments.lifecycle import tokens
    from webapp.inference.models import RegisteredModel

    from ..conftest import make_version

    def prepare():
        owner = make_team().owner
        version = make_version(owner)
        RegisteredModel.objects.create(
            workspace=owner.workspace, name="smollm2-135m-instruct", source="local", path="/m"
        )
        choice = checks.DatasetChoice(id=version.dataset_id)
        return launch_services.launch(owner, recipe="policy", config={}, dataset=choice)

    run = await database_sync_to_async(prepare)()
    ingest_lines, ingest.LINES_PER_READ = ingest.LINES_PER_READ, 2
    try:
        headers = {"authorization": f"Bearer {tokens.run_token(run)}"}
        response = await AsyncClient().get(f"/api/v1/ingest/runs/{run.id}/examples", headers=headers)
        lines = jsonlines.lines(b"".join([chunk async for chunk in response.streaming_content]).decode())  # type: ignore[attr-defined]
    finally:
        ingest.LINES_PER_READ = ingest_lines
        await database_sync_to_async(
            connections.close_all
        )()  # closes the connection of the thread that read; a server does so with the response
    assert [json.loads(line)["key"] for line in lines] == ["e0", "e1", "e2", "e3", "e4"]
    assert "ü" in lines[0]


def test_a_repeated_batch_changes_nothing(trainer, run):
    batch = [trainer.metrics(1, **{"reward/mean": 0.5}), trainer.event("log", message="once")]
    for _ in range(3):
        assert reply(trainer.post(*batch)) == {"acked": 3, "command": "continue"}
    assert Point.objects.count() == 1
    assert LogLine.objects.count() == 1


def test_after_a_gap_nothing_is_taken_until_it_is_filled(trainer):
    first, second, third = (trainer.event("log", message=m) for m in "abc")
    assert reply(trainer.post(first, third))["acked"] == 2
    assert reply(trainer.post(third))["acked"] == 2
    assert reply(trainer.post(second, third))["acked"] == 4
    assert list(LogLine.objects.values_list("message", flat=True)) == ["a", "b", "c"]


def test_an_empty_batch_is_a_sign_of_life(trainer, run):
    before = Run.objects.get(id=run.id).heartbeat_at
    assert reply(trainer.post()) == {"acked": 1, "command": "continue"}
    assert Run.objects.get(id=run.id).heartbeat_at > before


def test_a_resumed_step_replaces_points_and_rollouts(trainer, run):
    histogram = {"edges": [0, 1], "counts": [2]}
    trainer.post(
        trainer.event("metrics", 1, values={"policy/ratio_raw": 1.0}, histograms={"policy/ratio_raw": histogram}),
        trainer.event("rollouts", 1, rollouts=[trainer.rollout(response="old")]),
    )
    trainer.post(
        trainer.metrics(1, **{"policy/ratio_raw": 2.0}),
        trainer.event("rollouts", 1, rollouts=[trainer.rollout(response="new"), trainer.rollout(index=1)]),
    )
    point = Point.objects.get()
    assert (point.value, point.histogram) == (2.0, histogram), "what is not sent again stays"
    assert [r.content["response"] for r in Rollout.objects.order_by("index")] == ["new", "red"]


def test_the_summary_keeps_headlines_and_the_first_evaluation(trainer, run):
    trainer.post(
        trainer.metrics(0, **{"eval/rubric_score": 0.25}),
        trainer.metrics(1, **{"reward/mean": 0.5, "policy/loss": 3.0}),
        trainer.metrics(4, **{"eval/rubric_score": 0.5}),
    )
    run.refresh_from_db()
    assert run.summary == {"eval/rubric_score:first": 0.25, "eval/rubric_score": 0.5, "reward/mean": 0.5}
    assert run.step == 4
    assert run.first_metric_at is not None


def test_progress_and_state_follow_the_process(trainer, run):
    trainer.post(trainer.event("progress", 2, phase="rollouts", done=3, total=8, eta_s=12.5))
    trainer.post(trainer.event("state", state="paused", reason="the disk is full"))
    run.refresh_from_db()
    assert (run.step, run.phase, run.phase_done, run.phase_total, run.eta_s) == (1, "rollouts", 3, 8, 12.5)
    assert (run.state, run.state_reason) == ("blocked", "the disk is full")
    trainer.post(
        trainer.event("state", state="running"), trainer.event("state", state="finished", summary={"eval/final": 1.0})
    )
    run.refresh_from_db()
    assert (run.state, run.state_reason, run.summary) == ("finished", "", {"eval/final": 1.0})
    assert run.ended_at is not None


def test_a_step_is_done_when_its_metrics_are_there(trainer, run):
    def step_after(*events: dict) -> int:
        trainer.post(*events)
        run.refresh_from_db()
        return run.step

    assert step_after(trainer.event("progress", 1, phase="sampling", done=0, total=8)) == 0
    assert step_after(trainer.event("progress", 3, phase="updating", done=1, total=8)) == 2
    assert step_after(trainer.metrics(3, **{"reward/mean": 0.5})) == 3
    assert step_after(trainer.event("progress", 3, phase="evaluating", done=1, total=8)) == 3
    assert step_after(trainer.event("progress", 4, phase="sampling", done=1, total=8)) == 3
    # resumed from the checkpoint of an earlier step
    assert step_after(trainer.event("progress", 2, phase="sampling", done=0, total=8)) == 1


@pytest.mark.parametrize(
    ("state", "step", "kept"), [("stopped", 2, 2), ("failed", 2, 2), ("stopped", 0, 0), ("failed", 0, 3)]
)
def test_the_end_says_which_step_was_the_last_though_the_next_told_metrics(trainer, run, state, step, kept):
    """A step tells its rewards before its update, and a stop may give it up in between. A run that fails while it loads says 0."""
    reply(trainer.post(trainer.metrics(3, **{"reward/mean": 0.5}), trainer.event("state", step, state=state)))
    run.refresh_from_db()
    assert (run.state, run.step) == (state, kept)


def test_a_run_that_shall_stop_hears_of_it_and_does_not_run_again(trainer, run, team):
    run.refresh_from_db()
    lifecycle.stop(team.researcher, run)
    assert reply(trainer.post())["command"] == "stop"
    assert reply(trainer.post(trainer.event("state", state="running")))["command"] == "stop"
    assert reply(trainer.post(trainer.event("state", state="stopped")))["command"] == "continue"
    run.refresh_from_db()
    assert run.state == "stopped"


def test_a_run_that_was_given_up_keeps_its_data_but_must_end(trainer, run):
    Run.objects.filter(id=run.id).update(state="failed")
    late = trainer.metrics(1, **{"reward/mean": 1.0})
    assert reply(trainer.post(late)) == {"acked": 2, "command": "abandon"}
    assert reply(trainer.post(late)) == {"acked": 2, "command": "continue"}, "a repeat is only a lost answer"
    assert Point.objects.count() == 1


def test_an_older_attempt_is_fenced_off(trainer, run, team):
    Run.objects.filter(id=run.id).update(state="failed")
    run.refresh_from_db()
    resumed = lifecycle.resume(team.researcher, run)
    assert trainer.post(trainer.event("log", message="ghost")).status_code == 401
    assert trainer.client.get(trainer.url()).status_code == 401
    assert trainer.client.get(trainer.url("/examples")).status_code == 401
    new = Trainer(resumed)
    assert new.client.get(new.url()).json()["resume"] is True
    assert new.post(new.event("log", message="mine"), attempt=1).status_code == 401, "its token, another's attempt"
    new.seq = 1
    assert reply(new.post(new.event("log", message="mine")))["acked"] == 2
    assert list(LogLine.objects.values_list("message", flat=True)) == ["mine"]


def test_the_end_of_an_earlier_attempt_does_not_end_this_one(trainer, run, team):
    unheard = trainer.event("state", state="failed", reason="it could not be delivered then")
    Run.objects.filter(id=run.id).update(state="failed")
    run.refresh_from_db()
    new = Trainer(lifecycle.resume(team.researcher, run))
    Run.objects.filter(id=run.id).update(state="starting", attempt_at=datetime(2026, 11, 21, 13, tzinfo=UTC))
    unheard["time"] = NOON
    new.seq = unheard["seq"]
    assert reply(new.post(unheard, new.event("state", state="running")))["command"] == "continue"
    run.refresh_from_db()
    assert (run.state, run.last_seq) == ("running", 3)


def test_an_attempt_ends_though_the_clock_went_back_since_it_was_asked_for(trainer, run, team):
    Run.objects.filter(id=run.id).update(state="failed")
    run.refresh_from_db()
    new = Trainer(lifecycle.resume(team.researcher, run))
    Run.objects.filter(id=run.id).update(state="starting", attempt_at=datetime(2026, 11, 21, 14, tzinfo=UTC))
    old = new.event("state", state="failed", reason="of the first attempt")
    begins = old["seq"] + 1
    assert reply(new.post(old, new.event("state", state="running"), begins=begins))["command"] == "continue"
    run.refresh_from_db()
    assert run.state == "running"
    new.post(new.event("state", state="finished"), begins=begins)  # at noon, two hours before the token was asked for
    run.refresh_from_db()
    assert run.state == "finished"


def test_a_token_opens_only_its_own_run(trainer, launch, api):
    other = launch()
    url = f"/api/v1/ingest/runs/{other.id}/events"
    assert trainer.client.post(url, {"attempt": 1}, content_type="application/json").status_code == 401
    assert trainer.client.get("/api/v1/runs").status_code == 401, "and no page of the API"
    assert api.get(f"/ingest/runs/{other.id}").status_code == 401, "nor does an API token open the ingest"
    assert trainer.client.get("/api/v1/ingest/runs/999999").status_code == 401


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ('{"kind":"metrics","values":{"reward/mean":NaN}}', "events.0.data.metrics.values.reward/mean"),
        ('{"kind":"metrics","values":{"reward/mean":1e999}}', "events.0.data.metrics.values.reward/mean"),
        ('{"kind":"metrics","valuez":{}}', "events.0.data.metrics.valuez"),
        ('{"kind":"metrics","histograms":{"h":{"edges":[0,1],"counts":[1,2]}}}', "events.0.data.metrics.histograms.h"),
        ('{"kind":"noise"}', "events.0.data"),
        ('{"kind":"progress","phase":"p","done":-1,"total":1}', "events.0.data.progress.done"),
        ('{"kind":"progress","phase":"p","done":99999999999,"total":1}', "events.0.data.progress.done"),
    ],
)
def test_a_malformed_event_is_named_and_nothing_is_written(trainer, bad, field):
    good = json.dumps({"seq": 3, "time": NOON, "data": {"kind": "log", "message": "good"}})
    body = f'{{"attempt":1,"events":[{{"seq":2,"time":"{NOON}","data":{bad}}},{good}]}}'
    response = trainer.post_raw(body)
    assert response.status_code == 422
    assert [f["path"] for f in response.json()["error"]["fields"]] == [field]
    assert LogLine.objects.count() == 0


@pytest.mark.parametrize("body", ["", "{", "[]", '{"attempt": 0}', '{"attempt": 1, "extra": 1}', "\xff"])
def test_nonsense_is_refused(trainer, body):
    assert trainer.post_raw(body).status_code == 422


def test_too_many_events_and_too_many_bytes_are_refused(trainer):
    assert trainer.post(*(trainer.event("log", message="x") for _ in range(201))).status_code == 422
    assert trainer.post_raw(b'{"attempt":1,"events":[' + b" " * 4_000_000 + b"]}").status_code == 413
    assert trainer.post_raw(b" " * 6_000_000).status_code == 413
    assert LogLine.objects.count() == 0


def test_a_nul_that_a_model_sampled_is_made_visible(trainer):
    text = "a\x00b \\u0000 \\"
    assert reply(trainer.post(trainer.event("rollouts", 1, rollouts=[trainer.rollout(response=text)])))
    assert Rollout.objects.get().content["response"] == "a␀b \\u0000 \\"


def test_pages_hear_of_a_batch_over_one_connection(trainer, monkeypatch, django_capture_on_commit_callbacks):
    delivered = []
    monkeypatch.setattr(
        broadcast, "_deliver", lambda messages: delivered.append([told["type"] for _, told in messages])
    )
    with django_capture_on_commit_callbacks(execute=True):
        trainer.post(trainer.metrics(1, loss=0.5), trainer.event("log", message="said"))
    assert delivered == [["batch", "log", "run", "run"]]


def test_a_lost_database_is_a_pause_and_not_an_error(trainer, monkeypatch):
    def away(*args):
        raise OperationalError("server closed the connection unexpectedly")

    batch = trainer.event("log", message="kept")
    monkeypatch.setattr(events, "apply", away)
    response = trainer.post(batch)
    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert response.json()["error"]["code"] == "unavailable"
    monkeypatch.undo()
    assert reply(trainer.post(batch))["acked"] == 2


@pytest.mark.django_db(transaction=True)
def test_the_same_events_from_many_posts_at_once_are_stored_once(trainer):
    batches = [
        [trainer.metrics(step, **{"reward/mean": step / 10}), trainer.event("log", step, message=f"line {step}")]
        for step in range(1, 9)
    ]

    def send(i: int) -> int:
        mine = Trainer.__new__(Trainer)
        mine.__dict__.update(trainer.__dict__)
        try:
            return max(reply(mine.post(*batch))["acked"] for batch in batches[i % 2 :] + batches)
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        acked = list(pool.map(send, range(6)))
    assert acked == [17] * 6
    assert list(LogLine.objects.order_by("id").values_list("message", flat=True)) == [f"line {i}" for i in range(1, 9)]
    assert Point.objects.count() == 8


def test_a_batch_costs_the_same_queries_whatever_its_size(trainer, django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        trainer.post(*(trainer.metrics(step, **{"reward/mean": 1.0, "b": 2.0}) for step in range(100)))


def test_a_batch_reads_the_names_of_its_run_once(trainer):
    told = []  # with a wrapper, because prepared statements have no text in the list of queries
    with connection.execute_wrapper(lambda execute, sql, *rest: (told.append(sql), execute(sql, *rest))[1]):
        trainer.post(trainer.metrics(1, loss=0.5))
    assert sum('"accounts_workspace"."name"' in sql for sql in told) == 1


NONE = "has no checkpoint and begins again by itself"
LOST = "process 1 of the 2 that train the model together was lost"


@pytest.fixture
def checkpoint(trainer):
    def _tell(step):
        where = {"path": f"checkpoints/step-{step:06d}", "bytes": 1, "digest": "d"}
        trainer.post(trainer.event("artifact", step, role="checkpoint", **where))

    return _tell


def lose(trainer, step=0):
    return trainer.post(trainer.event("state", step, state="failed", reason=LOST, lost=True), begins=1)


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_run_that_lost_a_process_of_its_own_goes_on_by_itself(trainer, run, has_checkpoint):
    if has_checkpoint:
        keep_checkpoint(run)
    reply(lose(trainer, step=2))
    run.refresh_from_db()
    assert (run.state, run.attempt, run.losses, run.ray_job_id) == ("queued", 2, 1, "")
    does = "continues by itself from its last checkpoint" if has_checkpoint else NONE
    assert run.state_reason == f"{LOST}. It {does} (1 of 2)"
    assert LogLine.objects.get(run=run).message == f"{run.state_reason}, as attempt 2."
    assert trainer.post(trainer.event("log", message="late")).status_code == 401


def test_it_ends_after_three_losses_in_a_row_without_a_checkpoint_between(trainer, run, checkpoint):
    Run.objects.filter(id=run.id).update(losses=RETRIES)
    checkpoint(1)
    for attempt in range(1, RETRIES + 2):
        Run.objects.filter(id=run.id).update(state="running")
        again = Trainer(Run.objects.get(id=run.id))
        assert again.attempt == attempt
        reply(lose(again, step=2))
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("failed", RETRIES + 1)
    assert run.state_reason == f"{LOST}. Resume begins again at the first step, because there is no checkpoint"


def test_a_run_that_ends_with_a_loss_says_that_it_can_continue_from_its_checkpoint(trainer, run):
    Run.objects.filter(id=run.id).update(losses=RETRIES)
    keep_checkpoint(run)
    reply(lose(trainer, step=2))
    run.refresh_from_db()
    assert run.state_reason == f"{LOST}. Resume continues from the last checkpoint"


def test_a_loss_before_the_first_step_is_the_end(trainer, run):
    trainer.post(trainer.metrics(1, **{"reward/mean": 0.5}))  # reported by the first half of a step
    reply(lose(trainer))
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("failed", 1)
    assert run.state_reason == f"{LOST}. It had not finished a step, so it does not continue by itself"


@pytest.mark.parametrize(("step", "left"), [(2, "It had made no checkpoint"), (0, "It had not made a step")])
def test_a_loss_while_a_run_is_stopped_stops_it(trainer, run, team, step, left):
    lifecycle.stop(team.researcher, Run.objects.get(id=run.id))
    reply(lose(trainer, step))
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("stopped", 1)
    assert run.state_reason == f"{LOST}. {left}"


@pytest.mark.django_db
def test_no_row_is_written_to_an_index_that_another_one_begins_with():
    tables = [f"experiments_{name}" for name in ("metricpoint", "metricstretch", "metriclevel", "logline")]
    with connection.cursor() as cursor:
        cursor.execute(WRITTEN_TWICE, [tables])
        assert cursor.fetchall() == []


def test_a_run_that_is_read_by_a_prepared_statement_is_the_one_that_django_reads(
    run, launch, django_assert_num_queries
):
    """The statement also reads the related rows, and works if they are missing."""
    Run.objects.filter(pk=launch().pk).update(model=None, dataset_version=None, summary={"a": 0.5}, recipe="logged")
    for pk in Run.objects.values_list("pk", flat=True):
        with django_assert_num_queries(1):
            read = events.LOCKED(pk)
            assert read.experiment.workspace.name
            told = serializers.run(read, config=False)
        expected = Run.objects.with_names().get(pk=pk)
        assert {**told, "under_way_s": 0} == {**serializers.run(expected, config=False), "under_way_s": 0}
        assert fields(read) == fields(expected) and fields(read.experiment) == fields(expected.experiment)
        assert read == expected and not read._state.adding and read.model == expected.model
    assert events.LOCKED(0) is None and events.LOCKED(2**80) is None


def fields(row):
    return {each.attname: getattr(row, each.attname) for each in row._meta.concrete_fields}
