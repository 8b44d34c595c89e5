"""Arms that wait for an output of an earlier arm with their seed: a judge is trained first, and the policy behind it asks the judge."""

from typing import Any

import pytest

from tests.concurrency import concurrently
from tests.pages import page_html
from tests.team import browser
from trainer.config import ConfigInvalid
from trainer.contracts import Preference, Reason, Response
from trainer.metrics.claims import PLANS
from webapp.experiments.after import rounds, services
from webapp.experiments.claims import services as claims
from webapp.experiments.launch import checks
from webapp.experiments.lifecycle import states
from webapp.experiments.models import ChainStep, ClaimRun, ClaimStudy, Run
from webapp.judging.models import JudgeVersion

from ..conftest import Trainer, make_version
from ..outputs.test_outputs import output

PLAN = PLANS["judge_policy"]


@pytest.fixture
def data(team):
    responses = (Response(id="a", text="cruel late"), Response(id="b", text="late plain"))
    judged = Preference(a="a", b="b", strength=-2, rater="r", reasons=(Reason(text="cruel"),))
    return make_version(team.owner, "faults", responses=responses, preferences=(judged,), reference="late plain")


@pytest.fixture
def study(team, data, model):
    def _launch(key=None) -> ClaimStudy:
        chosen = {"dataset": checks.DatasetChoice(id=data.dataset_id), "model": model.name, "seeds": 2}
        return claims.launch(team.researcher, PLAN.name, **chosen, config={"steps": 4, "scaffold": None}, key=key)

    return _launch


@pytest.fixture
def finish(settings):
    """Ends a run. If the run trains a judge, it leaves the judge."""

    def _finish(run: Run, leaves=True, **values: float) -> None:
        Run.objects.filter(id=run.id).update(state="starting", ray_job_id=f"run-{run.id}-1", next_try_at=None)
        process = Trainer(run)
        assert process.post(process.event("state", state="running")).status_code == 200
        if run.recipe == "judge" and leaves:
            (settings.VAR / "runs" / str(run.id) / "outputs/judge").mkdir(parents=True)
            left = output(process, "outputs/judge", digest=f"{run.id:064x}", name="judge", role="judge")
            assert process.post(left).status_code == 200
        process.post(process.event("metrics", 4, values=values or {"eval/accuracy": 0.5}))
        assert process.post(process.event("state", 4, state="finished", summary={})).status_code == 200

    return _finish


def part(study: ClaimStudy, arm: str, seed: int) -> ClaimRun:
    return ClaimRun.objects.select_related("run", "step__after").get(study=study, arm=arm, seed=seed)


def test_policies_wait_for_their_judges_and_are_rewarded_by_them(team, study, finish):
    row = study()
    assert Run.objects.count() == 4 and {run.recipe for run in Run.objects.all()} == {"judge"}
    waiting = part(row, "hybrid_policy", 1)
    assert waiting.run is None and waiting.step.after == part(row, "hybrid_judge", 1).run
    found = claims.standing_of(row)
    assert [len(each.cells) for each in found.rows] == [2, 2, 2, 2] and (found.finished, found.over) == (0, False)
    judge = part(row, "hybrid_judge", 1).run
    finish(judge)
    rounds.take_up(judge.id)
    launched = part(row, "hybrid_policy", 1)
    assert (launched.step, launched.run.recipe, launched.run.name) == (None, "policy", "hybrid_policy, seed 1")
    slot = launched.run.slots.get(role="judge")
    version = JudgeVersion.objects.get()
    assert slot.judge == version and launched.run.config["rewards"][0]["judge"] == str(version)
    assert version.endpoint.registered_model.artifact.run == judge and version.spec["kind"] == "pairwise"
    assert launched.run.config["seed"] == 1 and launched.run.steps_total == 4
    assert part(row, "outcome_policy", 1).run is None, "its judge is not there yet"
    finish(launched.run, **{"eval/rubric_score": 0.9, "eval/length": 4.0})
    assert part(row, "hybrid_policy", 1).measures["eval/rubric_score:last"] == 0.9
    page = page_html(browser(team.researcher).get(f"/experiments/claims/{row.pk}"))
    assert "2 of 8 runs have finished" in page and "Waits until “outcome_judge, seed 0” has finished" in page


def test_the_whole_claim_is_decided_as_its_arms_finish(study, finish):
    row = study()
    for each in ClaimRun.objects.filter(study=row, run__isnull=False).select_related("run"):
        finish(each.run)
    rounds.watch()  # like after a restart that lost every message
    assert not ClaimRun.objects.filter(study=row, run=None).exists() and Run.objects.count() == 8
    for each in ClaimRun.objects.filter(study=row, run__recipe="policy").select_related("run"):
        score = 0.9 + each.seed / 100 if each.arm == "hybrid_policy" else 0.4
        finish(each.run, **{"eval/rubric_score": score, "eval/length": 4.0})
    found = claims.standing_of(row)
    assert (found.finished, found.lost, found.over) == (8, 0, True)
    # differences 0.5 and 0.51: t = 0.505 / 0.005 = 101, p = 0.0063; of three claims 0.0189
    better = found.results[0]
    assert better.parts[0].difference.value == pytest.approx(0.505) and better.corrected == "holds"


def test_a_key_launches_one_study_with_its_steps(study):
    assert study(key="k") == study(key="k")
    assert (Run.objects.count(), ChainStep.objects.count(), ClaimRun.objects.count()) == (4, 4, 8)


@pytest.mark.django_db(transaction=True)
def test_two_clicks_at_once_launch_one_study(study):
    first, second = concurrently([lambda: study(key="k")] * 2)
    assert first == second and (Run.objects.count(), ChainStep.objects.count()) == (4, 4)


def test_a_judge_that_failed_leaves_its_policy_out_until_it_is_resumed(study, finish, api):
    row = study()
    judges = {(each.arm, each.seed): each.run for each in ClaimRun.objects.filter(run__isnull=False)}
    for (arm, seed), run in judges.items():
        if (arm, seed) == ("outcome_judge", 0):
            states.move(run, "failed", reason="gone")
        else:
            finish(run)
    rounds.watch()
    for each in ClaimRun.objects.filter(study=row, run__recipe="policy").select_related("run"):
        finish(each.run, **{"eval/rubric_score": 0.4})
    found = claims.standing_of(row)
    assert (found.finished, found.lost, found.over) == (6, 2, True), "the judge, and the policy that waits for it"
    told = {(each["arm"], each["seed"]): each for each in api.get(f"/claims/{row.pk}").json()["table"]}
    lost = told["outcome_policy", 0]
    assert lost["run"] is None and lost["state"] == "waiting" and "“outcome_judge, seed 0” failed" in lost["why"]
    Run.objects.filter(pk=judges["outcome_judge", 0].pk).update(state="queued")
    assert not claims.standing_of(row).over


def test_a_judge_that_left_no_model_refuses_its_policy_in_words(study, finish, team):
    row = study()
    judge = part(row, "hybrid_judge", 0).run
    finish(judge, leaves=False)
    rounds.take_up(judge.id)
    assert part(row, "hybrid_policy", 0).step.state == "refused"
    page = page_html(browser(team.researcher).get(f"/experiments/claims/{row.pk}"))
    assert "hybrid_judge, seed 0 has left no judge that can be asked" in page and "Refused" in page


def test_every_plan_can_be_launched_from_its_page():
    for plan in PLANS.values():
        for arm in plan.arms:
            if arm.uses:
                assert plan.waits_for(arm) in plan.arms, "a step waits for one run"


def test_what_asks_no_judge_or_one_that_is_never_trained_is_refused_at_its_field(team, study, data, run):
    judge = part(study(), "hybrid_judge", 0).run
    plain: dict[str, Any] = {"kind": "run", "dataset": checks.DatasetChoice(id=data.dataset_id)}

    def problems(first: Run, judges: dict[str, str], **config: object) -> dict[str, str]:
        model: dict[str, Any] = {"model": {"name": first.base.name}}
        asked = services.StepAsked(**plain, config={"steps": 2, **model, **config}, with_output=False, judges=judges)
        with pytest.raises(ConfigInvalid) as caught:
            services.add(team.researcher, first, asked)
        return {problem.path: problem.message for problem in caught.value.problems}

    asks: dict[str, Any] = {
        "rewards": [{"kind": "judge", "judge": "later", "protocol": "pairwise", "against": "reference"}]
    }
    assert "asks no judge here" in problems(judge, {"rewards.1.judge": "judge"})["rewards.1.judge"]
    assert "trains no judge" in problems(run, {"rewards.0.judge": "policy"}, **asks)["rewards.0.judge"]
    likert = {"rewards": [{"kind": "judge", "judge": "later", "protocol": "likert"}]}
    wrong = problems(judge, {"rewards.0.judge": "judge"}, **likert)["rewards.0.judge"]
    assert "is of kind 'pairwise'; this needs 'likert'" in wrong


def test_a_run_that_is_rewarded_by_the_judge_before_it_is_put_there_over_the_api(study, api, finish):
    judge = part(study(), "outcome_judge", 0).run
    reward = {"kind": "judge", "judge": "the one before", "protocol": "pairwise", "against": "reference"}
    config: dict[str, Any] = {"steps": 2, "scaffold": None, "rewards": [reward], "model": {"name": judge.base.name}}
    asked = {"kind": "run", "with_output": False, "config": config, "judges": {"rewards.0.judge": "judge"}}
    made = api.post(f"/runs/{judge.id}/chain", asked)
    assert made.status_code == 201, made.content
    assert made.json()["judges"] == {"rewards.0.judge": "judge"}
    finish(judge)
    rounds.take_up(judge.id)
    launched = ChainStep.objects.get(pk=made.json()["id"])
    assert launched.state == "launched", launched.reason
    assert JudgeVersion.objects.count() == 1, "both steps behind the run ask one judge"
