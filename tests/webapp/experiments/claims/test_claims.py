"""Claims: the page of methods, a study launched as ordinary runs, its table while the runs finish, its verdict."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape

from tests.pages import page_html
from tests.team import browser
from trainer.config import ConfigInvalid, resolve
from trainer.contracts import Preference, Reason, Response
from trainer.metrics.claims import PLANS
from trainer.metrics.claims.methods import METHODS
from webapp.core.forms.initial import set_at_path
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests.idempotency import KeyReused
from webapp.experiments.claims import services as claims
from webapp.experiments.launch import checks
from webapp.experiments.launch.forms import RunForm
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import ClaimRun, ClaimStudy, Run

from ..conftest import Trainer, make_version

TO_NAME = {"objective.teacher", "reward.judge", "rewards.0.judge", "rewards.0.model"}
SHARED = {"steps": 4, "reward": {"matcher": "words"}, "data": {"form": "lines"}}


@pytest.fixture
def pairs(team):
    responses = (Response(id="a", text="cruel"), Response(id="b", text="late"))
    judged = Preference(a="a", b="b", strength=2, rater="r", reasons=(Reason(text="cruel"),))
    return make_version(team.owner, "pairs", rubrics=False, responses=responses, preferences=(judged,))


@pytest.fixture
def study(team, pairs, model):
    def _launch(membership=None, **given) -> ClaimStudy:
        plain = {
            "dataset": checks.DatasetChoice(id=pairs.dataset_id),
            "model": model.name,
            "seeds": 2,
            "config": SHARED,
        }
        return claims.launch(membership or team.researcher, "rationale", **(plain | given))

    return _launch


def finish(run: Run, *points: tuple[int, dict[str, float]]) -> None:
    Run.objects.filter(id=run.id).update(state="starting", ray_job_id=f"run-{run.id}-1", next_try_at=None)
    process = Trainer(run)
    events = [process.event("state", state="running")]
    events += [process.event("metrics", step, values=values) for step, values in points]
    events.append(process.event("state", 4, state="finished", summary={}))
    assert process.post(*events).status_code == 200


def curve(start: float, end: float, rc: tuple[float, float]) -> list[tuple[int, dict[str, float]]]:
    return [
        (0, {"eval/accuracy": start, "eval/rc": rc[0]}),
        (1, {"judging/accuracy": start}),
        (4, {"judging/accuracy": end, "eval/accuracy": end, "eval/rc": rc[1]}),
    ]


def test_a_study_is_ordinary_runs_of_every_arm_and_seed(team, study):
    row = study()
    runs = list(Run.objects.filter(claim__study=row).select_related("claim", "experiment").order_by("id"))
    assert [(run.claim.arm, run.claim.seed) for run in runs] == [
        ("outcome", 0),
        ("hybrid", 0),
        ("outcome", 1),
        ("hybrid", 1),
    ]
    assert {run.config["reward"]["arm"] for run in runs} == {"outcome", "hybrid"}
    assert [run.config["seed"] for run in runs] == [0, 0, 1, 1] and {run.config["steps"] for run in runs} == {4}
    assert {run.state for run in runs} == {"queued"} and {run.recipe for run in runs} == {"judge"}
    assert {run.experiment.name for run in runs} == {f"Claim: rationale {row.pk}"}
    entry = AuditEntry.objects.get(action="claim.launch")
    assert entry.detail["plan"] == "rationale" and entry.detail["seeds"] == 2


def test_one_wrong_field_launches_nothing(team, study):
    with pytest.raises(ConfigInvalid) as caught:
        study(config={"steps": 0})
    assert [problem.path for problem in caught.value.problems] == ["steps"]
    with pytest.raises(ConfigInvalid) as caught:
        study(seeds=1)
    assert [problem.path for problem in caught.value.problems] == ["seeds"]
    with pytest.raises(Invalid) as refused:
        claims.launch(team.researcher, "nothing", dataset=checks.DatasetChoice(id=1), model="m", seeds=2)
    assert "one of" in refused.value.fields["plan"]
    assert not ClaimStudy.objects.exists() and not Run.objects.exists()


def test_a_key_launches_once(study):
    first = study(key="k")
    assert study(key="k") == first and Run.objects.count() == 4
    with pytest.raises(KeyReused):
        study(key="k", seeds=3)


def test_a_key_belongs_to_the_person_who_sends_it(team, study):
    first, other = study(key="k"), study(membership=team.owner, key="k")
    assert other != first and ClaimStudy.objects.count() == 2
    assert [row.created_by for row in (first, other)] == [team.researcher.user, team.owner.user]
    assert study(membership=team.owner, key="k") == other


def test_a_key_that_was_used_in_another_workspace_is_told(team, study):
    first = study(key="k")
    elsewhere = team.outsider.workspace
    ClaimStudy.objects.filter(pk=first.pk).update(workspace=elsewhere)
    with pytest.raises(Conflict, match="in another workspace"):
        study(key="k")


def test_runs_count_when_they_have_finished_and_the_verdict_follows_its_rule(study, as_researcher):
    row = study()
    by = {(each.arm, each.seed): each.run for each in ClaimRun.objects.select_related("run")}
    finish(by["hybrid", 0], *curve(0.3, 0.8, (0.1, 0.7)))
    found = claims.standing_of(row)
    assert (found.finished, found.over, found.changed) == (1, False, False)
    assert {each.corrected for each in found.results} == {"not decided"}
    page = page_html(as_researcher.get(f"/experiments/claims/{row.pk}"))
    assert page.count("So far: not decided") == 4 and "Test it again" not in page
    finish(by["hybrid", 1], *curve(0.3, 0.81, (0.1, 0.71)))
    finish(by["outcome", 0], *curve(0.3, 0.1, (0.1, 0.0)))
    lifecycle.stop(row.workspace.memberships.get(role="researcher"), by["outcome", 1])
    found = claims.standing_of(row)
    assert (found.finished, found.lost, found.over) == (3, 1, True)
    lower, both, _, better = found.results
    # differences 0.5 and 0.51: t = 0.505 / 0.005 = 101, p = 0.0063; 0.6 and 0.61 alike. Of four claims: 0.0252
    assert [part.difference.value for part in both.parts] == pytest.approx([0.505, 0.605])
    assert both.corrected == "holds" and both.adjusted == pytest.approx(4 * 0.0063, rel=0.01)
    assert lower.corrected == "not decided" and lower.parts[0].difference.n == 1
    assert better.parts[0].difference.missing == 1
    page = page_html(as_researcher.get(f"/experiments/claims/{row.pk}"))
    assert "The whole interval of each part is above 0." in page and "So far" not in page
    assert "Two seeds with a result are needed for an interval." in page and "Test it again with more seeds" in page
    hybrid, outcome = (escape(PLANS["rationale"].arm(name).title) for name in ("hybrid", "outcome"))
    assert f"{hybrid} against {outcome}" in page
    assert "not decided" not in page_html(as_researcher.get("/experiments/claims")), "a run is missing"


def test_a_claim_about_responses_is_launched_and_decided_by_what_its_runs_answered_at_the_end(team, version, model):
    chosen = {"dataset": checks.DatasetChoice(id=version.dataset_id), "model": model.name, "seeds": 2}
    row = claims.launch(team.researcher, "ruscarl", config={"steps": 4, "scaffold": None}, **chosen)
    by = {(each.arm, each.seed): each.run for each in ClaimRun.objects.select_related("run")}
    assert {run.config["evaluation"]["closing"]["samples"] for run in by.values()} == {16}
    for (arm, seed), run in by.items():
        score = 0.6 + seed / 100 if arm == "ruscarl" else 0.4
        told = {
            "closing/score": score,
            "closing/pass_at_4": 0.9,
            "closing/novel_above_10": 3.0,
            "eval/rubric_score": 0.1,
        }
        finish(run, (1, {"eval/rubric_score": 0.3}), (4, told))
    found = claims.standing_of(row)
    measures = found.rows[-1].cells[0].measures
    assert (measures["score"], measures["pass@4"], measures["novel>10"]) == (0.6, 0.9, 3.0)
    assert measures["drawdown"] == pytest.approx(0.2) and measures["entropy_rise"] is None
    better, entropy = found.results
    # differences 0.2 and 0.21: t = 0.205 / 0.005 = 41, p = 0.0155
    assert [part.difference.value for part in better.parts] == pytest.approx([0.205] * 3)
    assert better.corrected == "holds" and entropy.corrected == "not decided"
    page = page_html(browser(team.researcher).get(f"/experiments/claims/{row.pk}"))
    assert "10 of 10 runs have finished" in page and "Pass@16" in page


def test_what_decides_may_not_change_unseen(study):
    row = study()
    ClaimStudy.objects.update(plan_digest="0" * 64)
    row.refresh_from_db()
    assert claims.standing_of(row).changed


def test_the_page_has_a_card_for_each_method_with_a_form_that_fits(team, as_researcher, version, model):
    seen = page_html(as_researcher.get("/experiments/claims"))
    assert seen.count('id="method-') == len(METHODS)
    for name in PLANS:
        assert f"/experiments/claims/{name}/new" in seen
    for method in METHODS:
        assert escape(method.title) in seen
    for name in ("ruscarl", "remax", "oapl"):
        method = next(each for each in METHODS if each.name == name)
        form = as_researcher.get("/runs/new", {"recipe": method.recipe, **{f"at.{k}": v for k, v in method.at.items()}})
        for path in method.at:
            assert f'name="{path}"' in page_html(form), path


@pytest.mark.parametrize("method", [each for each in METHODS if each.recipe], ids=lambda each: each.name)
def test_a_card_opens_no_form_with_settings_that_exclude_each_other(team, model, method):
    form, raw = RunForm.blank(team.researcher, method.recipe), {}
    form.fill(method.at)
    for path, text in method.at.items():
        set_at_path(raw, path.split("."), text or None)
        assert text or form.raw[path] is None, "switched off"
    try:
        resolve(method.recipe, raw)
    except ConfigInvalid as error:
        # the names that a person must choose, and numbers, because a link has them as text
        problems = {each.path: each.message for each in error.problems}
        untyped = {
            path
            for path, why in problems.items()
            if path in method.at and why.startswith(("must be a ", "must be true"))
        }
        assert problems.keys() - untyped <= TO_NAME, problems


def test_who_may_not_launch_reads(team, as_researcher, study):
    row = study()
    as_reviewer = browser(team.reviewer)
    page = page_html(as_reviewer.get("/experiments/claims"))
    assert "Put it to the test" not in page and f"/experiments/claims/{row.pk}" in page
    assert as_reviewer.get("/experiments/claims/rationale/new").status_code == 403
    assert as_reviewer.get(f"/experiments/claims/{row.pk}").status_code == 200
    assert as_researcher.get("/experiments/claims/nothing/new").status_code == 404


def test_another_workspace_sees_nothing_of_it(team, study, as_outsider):
    row = study()
    assert as_outsider.get(f"/experiments/claims/{row.pk}").status_code == 404
    assert as_outsider.get(f"/api/v1/claims/{row.pk}").status_code == 404
    assert "0 of 4" not in page_html(as_outsider.get("/experiments/claims"))


def test_the_form_launches_and_names_what_is_wrong(as_researcher, pairs, model):
    page = page_html(as_researcher.get("/experiments/claims/rationale/new"))
    assert "raises accuracy and lowers rationale consistency" in page and "pairs" in page
    wrong = {"dataset": f"{pairs.dataset_id}:1", "model": model.name, "seeds": "one", "shared": "{}", "key": "a"}
    answer = as_researcher.post("/experiments/claims/rationale/new", wrong)
    assert answer.status_code == 422 and "one seed does not show how much seeds differ" in page_html(answer)
    answer = as_researcher.post("/experiments/claims/rationale/new", {**wrong, "seeds": "2", "shared": "{"})
    assert answer.status_code == 422 and "not valid JSON" in page_html(answer)
    right = {**wrong, "seeds": "2", "shared": '{"steps": 4, "data": {"form": "lines"}}'}
    answer = as_researcher.post("/experiments/claims/rationale/new", right)
    row = ClaimStudy.objects.get()
    assert answer.status_code == 302 and answer.url == f"/experiments/claims/{row.pk}" and row.runs.count() == 4


def test_the_page_of_a_study_asks_again_until_its_runs_are_over(as_researcher, study):
    row = study()
    page = page_html(as_researcher.get(f"/experiments/claims/{row.pk}"))
    assert "0 of 4 runs have finished" in page and "every 10s" in page and "Holm" in page
    for each in ClaimRun.objects.select_related("run"):
        finish(each.run, *curve(0.3, 0.8, (0.1, 0.7)))
    part = page_html(as_researcher.get(f"/experiments/claims/{row.pk}/standing"))
    assert "4 of 4 runs have finished" in part and "every 10s" not in part and "<html" not in part
    assert "2 hold, 2 do not hold here" in page_html(as_researcher.get("/experiments/claims"))
    run = ClaimRun.objects.first().run
    assert f"/experiments/claims/{row.pk}" in page_html(as_researcher.get(f"/runs/{run.pk}"))


def test_the_api_launches_and_tells_how_it_stands(api, pairs, model):
    asked = {"plan": "rationale", "dataset": "pairs", "model": model.name, "seeds": 2, "config": SHARED}
    made = api.post("/claims", asked)
    assert made.status_code == 201 and made.json()["runs"] == 4
    number = made.json()["id"]
    for each in ClaimRun.objects.select_related("run"):
        finish(each.run, *curve(0.3, 0.8, (0.1, 0.7)))
    found = api.get(f"/claims/{number}").json()
    assert found["finished"] == 4 and len(found["table"]) == 4 and found["table"][0]["measures"]["eval/rc:last"] == 0.7
    assert len(found["claims"]) == len(PLANS["rationale"].claims) and found["claims"][1]["verdict"] == "holds"
    assert [each["id"] for each in api.get("/claims").json()["items"]] == [number]
    assert len(api.get("/claims/methods").json()["items"]) == len(METHODS)
    refused = api.post("/claims", {**asked, "plan": "nothing"})
    assert refused.status_code == 422 and refused.json()["error"]["fields"][0]["path"] == "plan"


def test_a_selection_is_launched_with_the_data_that_was_chosen(team, model):
    data = make_version(team.owner, "shown", train=30, reference="so ru")
    chosen = {"dataset": checks.DatasetChoice(id=data.dataset_id), "model": model.name, "seeds": 2}
    made = claims.launch(team.researcher, "kcenter", **chosen)
    runs = {(each.arm, each.run.config["data"]["select"]) for each in made.runs.select_related("run")}
    assert runs == {("all", "all"), ("random", "random"), ("cover", "cover"), ("distance", "distance")}
    assert {run.data for run in Run.objects.all()} == {data} and Run.objects.count() == 8


def test_more_seeds_take_no_more_queries(as_researcher, study):
    few, many = study(), study(seeds=6)

    def queries(row) -> int:
        with CaptureQueriesContext(connection) as taken:
            assert as_researcher.get(f"/experiments/claims/{row.pk}").status_code == 200
        return len(taken)

    queries(few)
    assert queries(few) == queries(many)


def test_turns_of_judge_and_writer_are_launched_arm_by_arm(team, pairs, model, as_researcher):
    """A study that was launched from the page. Every arm has the settings of the plan except the number of steps."""
    plan = PLANS["rubric_arm"]
    chosen = checks.DatasetChoice(id=pairs.dataset_id)
    made = claims.launch(
        team.researcher, plan.name, dataset=chosen, model=model.name, seeds=2, config={"steps": 4, "turn_steps": 2}
    )
    runs = {(each.arm, each.run.config["first"], each.run.config["judge"]["format_reward"]) for each in made.runs.all()}
    assert runs == {("judge_first", "judge", True), ("writer_first", "writer", True), ("no_format", "judge", False)}
    assert ClaimRun.objects.filter(study=made).count() == 6
    seen = page_html(as_researcher.get(f"/experiments/claims/{made.pk}"))
    assert all(escape(claim.text[1:]) in seen for claim in plan.claims)


def test_the_form_says_what_data_and_model_it_takes_and_offers_the_other_size(as_researcher, pairs, model):
    page = page_html(as_researcher.get("/experiments/claims/rationale/new"))
    assert "was taught two ways to judge" in page
    assert "pairs" in page and "?size=demo" in page
    other = page_html(as_researcher.get("/experiments/claims/rationale/new?size=demo"))
    assert "SmolLM2-135M-Instruct with adapters" in other and "?size=tiny" in other
    assert escape('"max_prompt_tokens": 256') in other and escape('"max_prompt_tokens": 256') not in page
    both = page_html(as_researcher.get("/experiments/claims/judge_policy/new"))
    assert "Judge" in both and "Policy from rubrics: " in both
    unknown = page_html(as_researcher.get("/experiments/claims/judge_policy/new?size=huge"))
    assert "?size=" not in unknown
