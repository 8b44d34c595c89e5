"""A run stops early once a metric no longer improves. Missing values are no values, and nothing is asked of a run without a rule."""

import math

import pytest
from django.utils import timezone

from tests.concurrency import concurrently
from tests.pages import page_html
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.experiments.launch.forms import RunForm
from webapp.experiments.lifecycle import early_stop, jobs
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.lifecycle.early_stop import EarlyStop
from webapp.experiments.lifecycle.limits import RunLimits
from webapp.experiments.metrics import patience
from webapp.experiments.models import MetricPoint, Run
from webapp.experiments.runs import history

from .test_jobs import fresh, live, set_row  # noqa: F401 - fixtures among them

KEY = "eval/rubric_score"
RULE = EarlyStop(KEY, 3, min_delta=0.01)
TOLD = "Stopped early: Held-out rubric score (eval/rubric_score) has not improved by more than 0.01 in 3 evaluations"


def tell(trainer, values, key=KEY, first=0):
    for step, value in enumerate(values, first):
        if math.isfinite(value):
            assert trainer.post(trainer.metrics(step, **{key: value})).status_code == 200
        else:  # a process reports finite values only
            odd = {"value": None, "not_finite": "NaN", "time": timezone.now()}
            MetricPoint.objects.create(run_id=trainer.run_id, key=key, step=step, **odd)


def limit(team, run, rule):
    return early_stop.change(team.researcher, fresh(run), rule)


def test_it_stops_with_a_checkpoint_and_goes_on_only_with_another_rule(live, run, ray, team):  # noqa: F811
    limit(team, run, RULE)
    tell(live, [0.1, 0.3, 0.305, 0.2])
    jobs.watch()
    assert fresh(run).state == "running", "two values are not three"
    tell(live, [0.31], first=4)
    for _ in range(2):  # a round may be sent twice
        jobs.watch()
    assert (fresh(run).state, fresh(run).state_reason) == ("stopping", TOLD)
    told = AuditEntry.objects.filter(action="run.stopping").values_list("actor", "detail__reason")
    assert list(told) == [(None, TOLD)]
    assert live.post().json()["command"] == "stop"
    live.post(live.event("state", 4, state="stopped", reason="Stopped after step 4"))
    assert fresh(run).state_reason == f"{TOLD}. Stopped after step 4"
    with pytest.raises(Conflict, match="Change or lift the rule first"):
        lifecycle.resume(team.researcher, fresh(run))
    limit(team, run, EarlyStop(KEY, 4, min_delta=0.01))
    assert lifecycle.resume(team.researcher, fresh(run)).state == "queued"


@pytest.mark.parametrize(
    ("values", "rule", "stops"),
    [
        ([0.1, 0.1], RULE, False),
        ([0.3, 0.1, 0.2, 0.25], RULE, True),
        ([0.3, 0.1, 0.2, 0.311], RULE, False),
        ([0.3, 0.1, float("nan"), 0.2], RULE, False),
        ([0.3, 0.1, float("nan"), 0.2, float("inf"), 0.1], RULE, True),
        ([0.1, 0.3, 0.4, 0.5], EarlyStop(KEY, 3, "lower"), True),
        ([0.5, 0.6, 0.4, 0.5], EarlyStop(KEY, 3, "lower"), False),
        ([0.3, 0.3], EarlyStop(KEY, 1), True),
        # small improvements do not raise the best value: the fourth is compared with the first, and then counts as the best
        ([0.3, 0.305, 0.309, 0.311], RULE, False),
        ([0.1, 0.105, 0.09, 0.115, 0.112, 0.11], EarlyStop(KEY, 3, min_delta=0.01), False),
        ([0.1, 0.105, 0.09, 0.115, 0.112, 0.11, 0.12], EarlyStop(KEY, 3, min_delta=0.01), True),
        ([], RULE, False),
    ],
)
def test_only_values_count_and_by_their_side(live, run, values, rule, stops):  # noqa: F811
    set_row(run, stop_early=rule.json())
    tell(live, values)
    assert bool(early_stop.used_up(fresh(run))) == stops


def test_a_metric_that_is_better_when_it_is_lower_needs_no_side(live, run):  # noqa: F811
    set_row(run, recipe="dpo", stop_early=EarlyStop("train/loss", 2).json())
    tell(live, [3.0, 2.0, 2.5, 2.0], key="train/loss")
    assert early_stop.used_up(fresh(run)).endswith("in 2 values")


def test_a_step_that_is_told_again_counts_once_and_as_it_was_told_last(live, run):  # noqa: F811
    set_row(run, stop_early=RULE.json())
    tell(live, [0.3, 0.4, 0.1, 0.1])
    assert early_stop.used_up(fresh(run)) == ""
    tell(live, [0.1], first=1)
    assert early_stop.used_up(fresh(run)) == TOLD


def test_without_a_rule_nothing_is_asked(live, run, django_assert_num_queries):  # noqa: F811
    tell(live, [0.3] * 9)
    with django_assert_num_queries(0):
        assert early_stop.used_up(run) == ""
    set_row(run, stop_early=RULE.json())
    row = fresh(run)
    assert early_stop.used_up(row)
    with django_assert_num_queries(5):  # two of them are the savepoint
        assert early_stop.used_up(row)


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (EarlyStop("no/such", 3), "metric"),
        (EarlyStop(KEY, 0), "patience"),
        (EarlyStop(KEY, 10_001), "patience"),
        (EarlyStop(KEY, 3, min_delta=float("nan")), "min_delta"),
        (EarlyStop(KEY, 3, min_delta=-1), "min_delta"),
        (EarlyStop(KEY, 3, better="sideways"), "better"),
    ],
)
def test_a_rule_that_no_run_can_have_is_refused_with_its_place(run, team, rule, field):
    with pytest.raises(Invalid) as refused:
        limit(team, run, rule)
    assert set(refused.value.fields) == {field}
    with pytest.raises(Invalid) as refused:
        RunLimits(stop_early=rule).check("policy")
    assert set(refused.value.fields) == {f"limits.stop_early.{field}"}


def test_a_rule_that_would_stop_at_once_is_refused(live, run, team):  # noqa: F811
    tell(live, [0.3, 0.1, 0.1, 0.1])
    with pytest.raises(Invalid) as refused:
        limit(team, run, RULE)
    assert "at once" in refused.value.fields["patience"]
    assert fresh(run).stop_early is None


def test_a_metric_that_nobody_has_declared_is_named_by_its_key():
    """The rule of a run that an older version launched."""
    assert EarlyStop("old/score", 1).reason("policy") == "Stopped early: old/score has not improved in 1 value"
    assert EarlyStop("old/score", 1).reason("gone").startswith("Stopped early: old/score has")


def test_the_same_twice_is_one_entry_which_the_history_has_in_words(run, team):
    for rule in (RULE, RULE, None):
        limit(team, run, rule)
    whys = [event.why for event in history.events(fresh(run))[0] if event.what == "Early stop changed"]
    assert whys == [
        "lifted",
        "if Held-out rubric score (eval/rubric_score) does not improve by more than 0.01 in 3 evaluations",
    ]


def test_by_the_page_and_the_api(run, as_researcher, as_annotator, as_outsider):
    def post(url, body, client=as_researcher, status=200):
        answer = client.post(url, body, content_type="application/json")
        assert answer.status_code == status, answer.content
        return answer.json() if status == 200 else None

    url, page = f"/api/v1/runs/{run.id}/early", f"/runs/{run.id}/early"
    given = {"metric": KEY, "patience": 5, "min_delta": 0.001}
    assert post(url, {"stop_early": given})["stop_early"] == given | {"better": None}
    for wrong in ({"patience": 0}, {"better": "up"}, {"metric": "no/such"}, {"min_delta": -1}, {"delta": 1}):
        post(url, {"stop_early": given | wrong}, status=422)
    post(url, {"stop_early": None}, client=as_annotator, status=403)
    post(url, {"stop_early": None}, client=as_outsider, status=404)
    html = page_html(as_researcher.get(f"/runs/{run.id}"))
    assert (
        "Stops early if Held-out rubric score (eval/rubric_score) does not improve by more than 0.001 in 5 evaluations"
        in html
    )
    as_researcher.post(
        page, {"early_metric": KEY, "early_patience": "7", "early_delta": "0,5", "early_better": "lower"}
    )
    kept = EarlyStop(KEY, 7, "lower", 0.5)
    assert EarlyStop.of(fresh(run).stop_early) == kept
    for wrong in ({"early_patience": "soon"}, {"early_patience": "7", "early_delta": "x"}, {"early_patience": ""}):
        as_researcher.post(page, {"early_metric": KEY} | wrong)
    assert EarlyStop.of(fresh(run).stop_early) == kept
    as_researcher.post(page, {"early_metric": ""})
    assert fresh(run).stop_early is None


def test_a_launch_a_fork_and_the_form_have_it_as_a_limit(as_researcher, version, model, team):
    rule = {"metric": KEY, "patience": 5, "better": None, "min_delta": 0.0}
    body = {"recipe": "policy", "dataset": version.dataset_id, "limits": {"stop_early": {"metric": KEY, "patience": 5}}}
    made = as_researcher.post("/api/v1/runs", body, content_type="application/json")
    assert made.json()["stop_early"] == rule
    run = Run.objects.with_names().get(pk=made.json()["id"])
    assert history.events(run)[0][0].why == "limited to early stop by Held-out rubric score (eval/rubric_score)"
    form = RunForm.of_run(team.researcher, run)
    assert form.limits.early["early_patience"] == "5" and form.limits.brief
    again = form.launch()
    assert again is not None and again.stop_early == rule
    form.limits = form.limits.posted("policy", {"early_metric": KEY, "early_patience": "many"})
    assert not form.check() and "early_patience" in form.problems
    assert ("f-early_patience", "Stop early: patience") in form.to_fix
    assert KEY in dict(form.limits.metrics) and "train/kl" not in dict(form.limits.metrics)


@pytest.mark.django_db(transaction=True)
def test_the_first_look_lets_a_run_of_many_points_store_more_meanwhile(trainer, run, monkeypatch):
    """The lock of the run is free between two pieces: whoever stores points waits for one piece, not for all."""
    monkeypatch.setattr(patience, "PIECE", 2)
    set_row(run, stop_early=RULE.json())
    tell(trainer, [0.9, 0.1, 0.1, 0.1, 0.1])
    looked, waited, came = early_stop._waited, [], []

    def a_piece(*asked):
        waited.append(looked(*asked))
        if len(waited) == 1:
            concurrently(
                [lambda: tell(trainer, [0.05], first=0)]
            )  # on a connection of its own; the best value so far becomes the worst
            came.append(1)
        return waited[-1]

    monkeypatch.setattr(early_stop, "_waited", a_piece)
    assert early_stop.used_up(fresh(run)) == TOLD and came
    assert waited == [None, None, None, 3], "the one that came in between counts, and the others were read again"


def test_under_the_lock_of_its_run_one_piece_is_read(live, run, monkeypatch):  # noqa: F811
    monkeypatch.setattr(patience, "PIECE", 2)
    set_row(run, stop_early=RULE.json())
    tell(live, [0.9, 0.1, 0.1, 0.1, 0.1])
    assert early_stop.still_used_up(fresh(run)) == "", "there are more points: a later look decides"
    assert early_stop.used_up(fresh(run)) == early_stop.still_used_up(fresh(run)) == TOLD
