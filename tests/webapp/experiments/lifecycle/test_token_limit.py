"""A limit on the tokens that a run generates. At the limit it stops and saves, and continues with a new one."""

import pytest
from django.utils import timezone

from tests.concurrency import concurrently
from tests.pages import page_html
from trainer.config import RECIPES
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.experiments.lifecycle import jobs, token_limit
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Run
from webapp.experiments.runs import history

from .test_jobs import fresh, live, set_row  # noqa: F401 - fixtures among them

KEY = "perf/generated_tokens"
TOLD = "The 1,000 tokens that it may generate are used up"


def limit(team, run, tokens):
    return token_limit.change(team.researcher, fresh(run), tokens)


def tell(trainer, step, tokens):
    answer = trainer.post(trainer.metrics(step, **{KEY: float(tokens)}))
    assert answer.status_code == 200
    return answer.json()["command"]


def test_it_stops_and_saves_and_goes_on_only_with_a_new_limit(live, run, ray, team):  # noqa: F811
    limit(team, run, 1000)
    tell(live, 1, 400)
    assert tell(live, 2, 599) == "continue"
    jobs.watch()
    assert fresh(run).state == "running"
    assert tell(live, 3, 1) == "stop"  # the answer to the report itself, before upkeep has looked
    for _ in range(2):  # a round may be sent twice
        jobs.watch()
    assert (fresh(run).state, fresh(run).state_reason) == ("stopping", TOLD)
    entry = AuditEntry.objects.get(action="run.stopping")
    assert (entry.actor, entry.detail["reason"]) == (None, TOLD)
    assert live.post().json()["command"] == "stop"
    live.post(live.event("state", 3, state="stopped", reason="Stopped after step 3"))
    assert fresh(run).state == "stopped" and ray.stopped == []
    for act in (
        lambda: lifecycle.resume(team.researcher, fresh(run)),
        lambda: lifecycle.extend(team.researcher, fresh(run), 99),
    ):
        with pytest.raises(Conflict, match="Raise or lift the limit first"):
            act()
    limit(team, run, 2000)
    assert lifecycle.resume(team.researcher, fresh(run)).state == "queued"


def test_a_run_that_pauses_with_the_step_that_reaches_its_limit_stays_paused(live, run, team):  # noqa: F811
    limit(team, run, 1000)
    lifecycle.pause(team.researcher, fresh(run))
    last = [live.metrics(1, **{KEY: 1000.0}), live.event("state", 1, state="stopped", reason="Stopped after step 1")]
    assert live.post(*last).status_code == 200
    assert (fresh(run).state, fresh(run).state_reason) == ("paused", "Paused after step 1")
    with pytest.raises(Conflict, match="Raise or lift the limit first"):
        lifecycle.resume(team.researcher, fresh(run))


def test_a_step_that_is_repeated_counts_once(live, run):  # noqa: F811
    for step in range(1, 8):
        tell(live, step, 100)
    assert token_limit.generated(run) == 700
    for step, tokens in ((5, 80), (6, 80)):  # it continues from the checkpoint of step 4
        tell(live, step, tokens)
    assert token_limit.generated(run) == 660


def test_a_limit_that_is_raised_while_upkeep_looks_at_an_old_row_counts(live, run, team):  # noqa: F811
    tell(live, 1, 1000)
    set_row(run, token_limit=1000)
    old = fresh(run)
    limit(team, run, 5000)
    lifecycle.stop_used_up(old, timezone.now())
    assert (fresh(run).state, old.token_limit) == ("running", 5000)


def test_without_a_limit_nothing_stops_and_nothing_is_asked(live, run, django_assert_num_queries):  # noqa: F811
    tell(live, 1, 10**12)
    with django_assert_num_queries(0):
        assert token_limit.used_up(run) == ""
    jobs.watch()
    assert fresh(run).state == "running"


def test_a_limit_that_is_used_already_is_refused(live, run, team):  # noqa: F811
    tell(live, 1, 900)
    for tokens, told in ((900, "more than the 900 that it has generated"), (2**53, "less than 9,007,199,254,740,992")):
        with pytest.raises(Invalid) as refused:
            limit(team, run, tokens)
        assert refused.value.fields["tokens"] == f"must be {told}"
    assert fresh(run).token_limit is None


def test_the_same_twice_is_one_entry_which_the_history_has_in_words(run, team):
    for _ in range(2):
        limit(team, run, 5_000_000)
    limit(team, run, None)
    whys = [event.why for event in history.events(fresh(run))[0] if event.what == "Token limit changed"]
    assert whys == ["lifted", "to 5,000,000"]


@pytest.mark.django_db(transaction=True)
def test_limits_at_once_leave_the_last_of_the_log(run, team):
    concurrently([lambda tokens=tokens: limit(team, run, tokens) for tokens in (1000, 2000, 3000, 4000)])
    last = AuditEntry.objects.filter(action="run.token_limit").latest("id")
    assert fresh(run).token_limit == last.detail["tokens"]


def test_recipes_that_sample_nothing_have_no_limit(run, team):
    samples = {name for name in RECIPES if token_limit.applies(Run(recipe=name))}
    assert samples == {"policy", "distill", "iterative_dpo", "judge", "rubric_writer", "chain", "alternating"}
    for recipe in ("sft", "dpo", "reward_model", "gone"):
        set_row(run, recipe=recipe)
        with pytest.raises(Conflict, match="does not apply"):
            limit(team, run, 5)
        assert token_limit.generated(fresh(run)) is None
    set_row(run, recipe="logged", state="running", dataset_version=None, model=None)
    with pytest.raises(Conflict, match="Another program"):
        limit(team, run, 5)


def test_by_the_page_and_the_api(live, run, as_researcher, as_annotator, as_outsider):  # noqa: F811
    tell(live, 1, 900)
    url, page = f"/api/v1/runs/{run.id}/tokens", f"/runs/{run.id}/tokens"
    assert as_researcher.post(url, {"tokens": 5000}, content_type="application/json").json()["token_limit"] == 5000
    for wrong in ({"tokens": 900}, {"tokens": 0}, {"tokens": 2**53}, {"tokens": "many"}, {}, {"token": 5}):
        assert as_researcher.post(url, wrong, content_type="application/json").status_code == 422, wrong
    assert as_researcher.get(url).json() == {"token_limit": 5000, "generated_tokens": 900}
    assert as_annotator.get(url).status_code == 403
    assert as_outsider.get(url).status_code == 404
    html = page_html(as_researcher.get(f"/runs/{run.id}"))
    assert "Token limit: 900 of 5,000 tokens generated" in html and "Token limit…" in html
    as_researcher.post(page, {"tokens": "6,000"})
    for odd in ("nan", "-1", "soon", "0", "900", "9" * 16):
        as_researcher.post(page, {"tokens": odd})
    assert as_annotator.post(page, {"tokens": ""}).status_code == 403
    assert as_outsider.post(page, {"tokens": ""}).status_code == 404
    assert fresh(run).token_limit == 6000
    as_researcher.post(page, {"tokens": ""})
    assert fresh(run).token_limit is None


def test_the_page_of_a_recipe_that_samples_nothing_does_not_offer_it(run, as_researcher):
    set_row(run, recipe="sft")
    html = page_html(as_researcher.get(f"/runs/{run.id}"))
    assert "Time limit…" in html and "Token limit" not in html
    url = f"/api/v1/runs/{run.id}/tokens"
    assert as_researcher.get(url).json() == {"token_limit": None, "generated_tokens": None}
    refused = as_researcher.post(url, {"tokens": 5}, content_type="application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "no_tokens")
