"""A run starts with its limits: over the API, from the form, in a sweep, as a fork. A limit that no run can have is refused with its place."""

from datetime import timedelta
from decimal import Decimal

import pytest

from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.core.requests.idempotency import KeyReused
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launching
from webapp.experiments.launch.forms import RunForm
from webapp.experiments.lifecycle.limits import RunLimits
from webapp.experiments.models import Run, Sweep
from webapp.experiments.runs import history
from webapp.experiments.sweeps import rounds

from ..sweeps.conftest import runs, sweep, wish  # noqa: F401 - fixtures among them

GIVEN = {"seconds": 7200, "tokens": 5000, "budget_tokens": 2_000_000, "budget_money": 2.5}
SHOWN = {"time_limit_s": 7200.0, "token_limit": 5000, "judge_token_limit": 2_000_000, "judge_money_limit": 2.5}
WORDS = "2 h, 5,000 generated tokens, 2,000,000 tokens of judges, 2.5 for judges"


def limits_of(run: Run) -> tuple:
    return run.time_limit, run.token_limit, run.judge_token_limit, run.judge_money_limit


ALL = (timedelta(hours=2), 5000, 2_000_000, Decimal("2.5"))


def test_the_api_launches_and_forks_with_limits(as_researcher, version, model):
    body = {"recipe": "policy", "dataset": version.dataset_id, "model": model.name, "limits": GIVEN}
    made = as_researcher.post("/api/v1/runs", body, content_type="application/json")
    assert made.status_code == 201, made.content
    assert {name: made.json()[name] for name in SHOWN} == SHOWN
    run = Run.objects.with_names().get(pk=made.json()["id"])
    assert AuditEntry.objects.get(action="run.launch").detail["limits"] == GIVEN | {"budget_money": "2.5"}
    assert [event.why for event in history.events(run)[0]] == [f"limited to {WORDS}"]
    forked = as_researcher.post(
        f"/api/v1/runs/{run.pk}/fork", {"limits": {"seconds": 60}}, content_type="application/json"
    )
    assert forked.json()["time_limit_s"] == 60 and forked.json()["judge_token_limit"] is None
    plain = as_researcher.post(f"/api/v1/runs/{run.pk}/fork", {}, content_type="application/json")
    assert plain.json()["time_limit_s"] is None, "the limits of a run are not those of its forks"


@pytest.mark.parametrize(
    ("limits", "path"),
    [
        ({"seconds": 59}, "limits.seconds"),
        ({"tokens": 0}, "limits.tokens"),
        ({"budget_tokens": 0}, "limits.budget_tokens"),
        ({"budget_money": 0}, "limits.budget_money"),
        ({"hours": 2}, "limits.hours"),
    ],
)
def test_a_limit_that_no_run_can_have_launches_nothing(as_researcher, version, model, limits, path):
    body = {"recipe": "policy", "dataset": version.dataset_id, "model": model.name, "limits": limits}
    answer = as_researcher.post("/api/v1/runs", body, content_type="application/json")
    assert answer.status_code == 422
    assert any(field["path"].endswith(path) for field in answer.json()["error"]["fields"])
    assert not Run.objects.exists()


def test_the_service_refuses_what_no_schema_has_checked_and_tells_requests_apart(team, version, model, run):
    def launch(limits: RunLimits):
        choice = checks.DatasetChoice(id=version.dataset_id)
        return launching.launch(
            team.researcher, recipe="policy", config={}, dataset=choice, model=model.name, key="one", limits=limits
        )

    with pytest.raises(Invalid) as refused:
        launch(RunLimits(seconds=1, budget_money=Decimal("-1")))
    assert set(refused.value.fields) == {"limits.seconds", "limits.budget_money"}
    assert dict(RunLimits(tokens=9).problems("dpo")) == {"tokens": "a run of this recipe samples no responses"}
    made = launch(RunLimits(seconds=60))
    assert launch(RunLimits(seconds=60)) == made
    with pytest.raises(KeyReused):
        launch(RunLimits(seconds=61))


def test_the_form_keeps_refuses_and_launches_limits(team, version, model, run):
    typed = {"hours": "2", "tokens": "5,000", "budget_tokens": "2,000,000", "budget_money": "2.5"}
    form = RunForm.of_run(team.researcher, run)
    assert form.limits.brief == "none"
    form.limits = form.limits.posted("policy", typed)
    assert form.limits.brief == WORDS
    made = form.launch()
    assert made is not None and limits_of(made) == ALL
    again = RunForm.of_run(team.researcher, made)
    assert (again.limits.hours, again.limits.budget_tokens, again.limits.budget_money) == ("2", "2000000", "2.5")
    for name, wrong in (
        ("hours", "soon"),
        ("hours", "inf"),
        ("hours", "-1"),
        ("hours", "1e9"),
        ("tokens", "-1"),
        ("budget_tokens", "0"),
    ):
        again.limits = again.limits.posted("policy", {name: wrong})
        assert again.launch() is None, (name, wrong)
        assert list(again.problems) == [name]
        assert again.to_fix[0][0] == f"f-{name}"
    assert Run.objects.count() == 2


def test_the_page_shows_the_limits_of_judges_only_if_the_run_asks_one(team, as_researcher, version, model):
    page = as_researcher.get("/runs/new?recipe=policy").content.decode()
    field = page[: page.index('id="f-budget_tokens"')].rpartition('<div class="field"')[2]
    assert field.startswith(" hidden"), "no judge in the default config"
    asked = RunForm.blank(team.researcher)
    asked.raw["rewards"] = [{"kind": "judge", "judge": "grader/1"}]
    assert asked.asks_judges


def test_every_run_of_a_sweep_starts_with_them(sweep):  # noqa: F811
    row = sweep(limits=RunLimits.of(GIVEN))
    assert {limits_of(each) for each in runs(row, 1)} == {ALL}


def test_a_sweep_takes_them_over_the_api_and_from_its_form(as_researcher, run):
    axis = {"path": "optim.lr", "values": [1e-4, 1e-3]}
    wanted = {"run": run.pk, "axes": [axis], "method": "grid", "limits": {"seconds": 7200}}
    answer = as_researcher.post("/api/v1/sweeps", wanted, content_type="application/json")
    assert answer.status_code == 201, answer.content
    assert {name: value for name, value in answer.json()["limits"].items() if value is not None} == {"seconds": 7200}
    typed = {"rows": "1", "path.0": "optim.lr", "values.0": "1e-4, 1e-3", "method": "grid", "seeds": "1", "hours": "x"}
    refused = as_researcher.post(f"/runs/{run.pk}/sweep", typed | {"at_once": "1", "action": "launch"})
    assert "must be a number of hours" in refused.content.decode()
    as_researcher.post(f"/runs/{run.pk}/sweep", typed | {"at_once": "1", "action": "launch", "hours": "0.5"})
    row = Sweep.objects.latest("id")
    assert row.limits == {"seconds": 1800}
    again = as_researcher.post("/api/v1/sweeps", {"sweep": row.pk}, content_type="application/json")
    assert again.json()["limits"]["seconds"] == 1800, "the same search again has the same limits"
    rounds.advance(row.pk)
    assert {each.time_limit for each in Run.objects.filter(group=row.group)} == {timedelta(minutes=30)}
