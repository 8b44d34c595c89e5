"""Drafts of judges that are tried on examples, and versions that are compared."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.webapp.usage.usage_rows import usage_rows
from webapp.core.background import jobs
from webapp.core.problems import Invalid
from webapp.datasets.models import Example
from webapp.judging.judges.services import create_judge, fix_examples, new_version
from webapp.judging.models import Trial, Verdict
from webapp.judging.trials import running
from webapp.judging.trials.services import Extra, start_comparison, start_trial

from ..conftest import MET

pytestmark = pytest.mark.django_db
LENIENT = {"kind": "criterion", "prompt": "Be lenient. {{response}} {{criterion}}"}


@pytest.fixture
def run(eager, django_capture_on_commit_callbacks):
    """Starts a trial and lets the worker finish it."""

    def start(function, *args, **fields) -> Trial:
        with django_capture_on_commit_callbacks(execute=True):
            trial = function(*args, **fields)
        trial.refresh_from_db()
        return trial

    return start


def ids(examples):
    return [example.pk for example in examples]


def test_a_draft_shows_prompt_raw_and_parsed_of_every_call_and_stores_no_verdict(
    team, endpoint, examples, run, chat_server
):
    chat_server.answer = lambda body: MET
    trial = run(start_trial, team.researcher, spec={"kind": "criterion"}, endpoint=endpoint, examples=ids(examples[:2]))
    assert (trial.state, trial.done, trial.total, trial.problem) == ("finished", 8, 8, "")
    first = trial.results["calls"][0]
    assert (first["subject"]["example"], first["subject"]["response"], first["subject"]["criterion"]) == (
        "e0",
        "x",
        "a",
    )
    assert first["raw"] == MET and first["parsed"]["met"] is True and "Says yes." in first["messages"][1]["content"]
    assert not Verdict.objects.exists()
    assert usage_rows() == [("trial", trial.pk, 8, team.researcher.user_id)]


def test_a_draft_that_the_judge_answers_badly_shows_what_it_said(team, endpoint, examples, run, chat_server):
    chat_server.answer = lambda body: "Certainly!"
    spec = {"kind": "pairwise", "retries": 0}
    trial = run(start_trial, team.researcher, spec=spec, endpoint=endpoint, examples=ids(examples[:1]))
    assert [(c["state"], c["raw"], c["parsed"]) for c in trial.results["calls"]] == [
        ("missing", "Certainly!", None)
    ] * 2


def test_two_responses_that_are_the_same_are_one_call_of_one(team, endpoint, import_rows, run, chat_server):
    chat_server.answer = lambda body: '{"explanation": "", "rating": 5}'
    prompt, same = [{"role": "user", "content": "Q?"}], [{"id": name, "text": "Paris."} for name in ("x", "y")]
    import_rows([{"key": "same", "prompt": prompt, "responses": same}])
    listed = ids(Example.objects.filter(key="same"))
    trial = run(start_trial, team.researcher, spec={"kind": "pointwise"}, endpoint=endpoint, examples=listed)
    assert (trial.done, trial.total, len(trial.results["calls"])) == (1, 1, 1)


def test_an_endpoint_that_is_away_fails_each_call_with_its_reason(team, endpoint, examples, run, chat_server):
    chat_server.fault = "error"
    trial = run(start_trial, team.researcher, spec={"kind": "pointwise"}, endpoint=endpoint, examples=ids(examples))
    assert {call["state"] for call in trial.results["calls"]} == {"failed"}
    assert "Something broke" in trial.results["calls"][0]["problem"]


def test_what_examples_lack_can_be_given_and_is_counted_otherwise(team, endpoint, examples, run, chat_server):
    chat_server.answer = lambda body: '{"matches": [{"generated": 1, "reference": 1}]}'
    fields = {"spec": {"kind": "rubric_matcher"}, "endpoint": endpoint, "examples": ids(examples[:1])}
    without = run(start_trial, team.researcher, **fields)
    assert without.results["unusable"] == {"there are no generated items": 1} and without.total == 0
    given = run(start_trial, team.researcher, **fields, extra=Extra(generated=["Says yes"]))
    assert given.results["calls"][0]["parsed"] == {"matches": [[0, 0]]}


def test_two_versions_are_compared_on_the_fixed_examples(team, version, examples, run, chat_server):
    judge = version.judge
    chat_server.answer = lambda body: json.dumps(
        {
            "explanation": "",
            "met": "lenient" in body["messages"][-1]["content"] or "Says yes." in body["messages"][-1]["content"],
        }
    )
    newer = new_version(
        team.researcher, judge, spec={**LENIENT, "system": "{{answer_format}}"}, endpoint=version.endpoint
    )
    fix_examples(team.researcher, judge, ids(examples))
    trial = run(start_comparison, team.researcher, judge, before=version, after=newer)
    assert (trial.state, trial.results["compared"], trial.results["changed"]) == ("finished", 12, 6)
    share = trial.results["share"]
    assert (share["value"], share["n"]) == (0.5, 12) and share[
        "low"
    ] < 0.2  # half of the verdicts on each of 3 examples
    changed = [row for row in trial.results["rows"] if row["changed"]]
    assert {row["subject"]["criterion"] for row in changed} == {"b"}
    assert {(row["before"]["decision"], row["after"]["decision"]) for row in changed} == {(False, True)}
    assert Verdict.objects.filter(pk=changed[0]["after"]["verdict"]).exists()
    before = chat_server.requests
    run(start_comparison, team.researcher, judge, before=version, after=newer)
    assert chat_server.requests == before
    assert usage_rows() == [("trial", trial.pk, before, team.researcher.user_id)]


def test_a_side_without_a_verdict_is_neither_changed_nor_unchanged(team, version, examples, run, chat_server):
    chat_server.answer = lambda body: "no" if "lenient" in body["messages"][-1]["content"] else MET
    newer = new_version(
        team.researcher,
        version.judge,
        spec={**LENIENT, "system": "{{answer_format}}", "retries": 0},
        endpoint=version.endpoint,
    )
    fix_examples(team.researcher, version.judge, ids(examples[:1]))
    trial = run(start_comparison, team.researcher, version.judge, before=version, after=newer)
    assert (trial.results["changed"], trial.results["compared"], trial.results["missing"]) == (0, 0, 4)


def test_swapped_answers_are_compared_by_the_response_they_mean(team, endpoint, examples, run, chat_server):
    chat_server.answer = lambda body: '{"reasons": [], "verdict": "A"}'
    first = create_judge(team.researcher, name="P", spec={"kind": "pairwise"}, endpoint=endpoint)
    second = new_version(team.researcher, first.judge, spec={"kind": "pairwise", "retries": 0}, endpoint=endpoint)
    fix_examples(team.researcher, first.judge, ids(examples[:1]))
    trial = run(start_comparison, team.researcher, first.judge, before=first, after=second)
    assert [row["before"]["decision"] for row in trial.results["rows"]] == ["A", "B"]


def test_what_cannot_be_tried_is_refused_before_it_is_queued(team, version, endpoint, examples):
    with pytest.raises(Invalid):
        start_trial(team.researcher, spec={"kind": "criterion"}, endpoint=endpoint, examples=[])
    with pytest.raises(Invalid):
        start_comparison(team.researcher, version.judge, before=version, after=version)
    assert not Trial.objects.exists()


def test_a_trial_whose_worker_died_is_taken_up_again(
    team, endpoint, examples, eager, django_capture_on_commit_callbacks
):
    trial = start_trial(team.researcher, spec={"kind": "pointwise"}, endpoint=endpoint, examples=ids(examples))
    Trial.objects.update(state="running", done=3, results={"calls": []}, seen_at=timezone.now() - timedelta(minutes=9))
    with django_capture_on_commit_callbacks(execute=True):
        assert jobs.take_up_lost() == 1
    trial.refresh_from_db()
    assert (trial.state, trial.done, len(trial.results["calls"])) == ("finished", 6, 6)
    assert jobs.take_up_lost() == 0


def test_calls_of_a_draft_whose_worker_dies_cost_what_was_paid(team, endpoint, examples, chat_server, monkeypatch):
    trial = start_trial(team.researcher, spec={"kind": "pointwise"}, endpoint=endpoint, examples=ids(examples))

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as dies, pytest.raises(KeyboardInterrupt):
        dies.setattr(running, "_save", killed)
        running.run_trial(trial.pk)
    paid = sum(calls for _, _, calls, _ in usage_rows())
    assert 0 < paid <= chat_server.requests
    Trial.objects.update(seen_at=timezone.now() - timedelta(minutes=9))
    running.run_trial(trial.pk)
    assert usage_rows() == [("trial", trial.pk, paid + 6, team.researcher.user_id)]


def test_only_the_newest_trials_are_kept(team, version, endpoint, examples, monkeypatch):
    monkeypatch.setattr("webapp.judging.trials.services.KEPT", 2)
    fields = {"spec": {"kind": "pointwise"}, "endpoint": endpoint, "examples": ids(examples)}
    open_one = start_trial(team.researcher, **fields)
    of_judge = start_trial(team.researcher, **fields, judge=version.judge)
    for _ in range(4):
        Trial.objects.filter(pk=start_trial(team.researcher, **fields).pk).update(state="finished")
    start_trial(team.researcher, **fields)
    assert Trial.objects.filter(judge=None, state="finished").count() == 2
    assert Trial.objects.filter(pk__in=[open_one.pk, of_judge.pk]).count() == 2
