"""The constructed task of a claim. One click asks for it, one job makes it, it is stored completely, and it is found again. Then its runs
are launched.
"""

import json
import struct
from html import unescape
from typing import Any

import pytest

from tests.concurrency import concurrently
from tests.pages import page_html
from tests.team import browser
from tests.webapp.webhooks.hooks import announced_events, listen
from tests.webapp.weights.conftest import Process
from trainer.claims import faults, rubrics
from trainer.claims.tasks import TASKS
from trainer.config import ConfigInvalid, resolve
from trainer.metrics.claims import PLANS
from trainer.metrics.claims.plan import merge_config
from webapp.accounts.administration.closing import close
from webapp.accounts.models import Membership
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.versions.lineage import describe
from webapp.experiments.claims import arms, tasks
from webapp.experiments.claims import services as claims
from webapp.experiments.launch.checks import DatasetChoice
from webapp.experiments.models import ClaimStudy, ClaimTask, Run
from webapp.inference.models import RegisteredModel
from webapp.lineage import queries as lineage
from webapp.weights.models import WeightsJob, WeightsResult

PLAN = PLANS["rationale"]
STEPS = {**PLAN.shared, "steps": 4}
FORM = "/experiments/claims/rationale/new"


@pytest.fixture
def ask(team):
    """Launches the claim with its constructed task."""

    def _ask(membership=None, plan=PLAN.name, **given) -> ClaimStudy:
        plain: dict[str, Any] = {"dataset": None, "model": None, "seeds": 2, "config": STEPS}
        return claims.launch(membership or team.researcher, plan, **(plain | given))

    return _ask


@pytest.fixture
def run_job(settings):
    """The work of a job's process: it sends the examples and leaves a model."""

    def _made(job: WeightsJob, examples=None, leaves=True, count=None) -> None:
        WeightsJob.objects.filter(pk=job.pk).update(state="starting", ray_job_id=f"weights-{job.pk}-{job.attempt}")
        process = Process(job)
        rows = [*faults.examples()[:60], *faults.examples()[-20:]] if examples is None else examples
        sent = [{"canonical": row.canonical()} for row in rows]
        assert process.post(1, *sent).status_code == 200
        if leaves:
            write_model(settings.VAR / "weights" / str(job.pk) / tasks.MODEL)
        outcome = {"examples": len(sent) if count is None else count, "files": []}
        assert process.post(min(1, len(sent)), state="finished", outcome=outcome).status_code == 200
        job.refresh_from_db()

    return _made


def write_model(folder) -> None:
    """The files that the registry reads. They are not a model that could be loaded."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}))
    header = json.dumps({"model.norm.weight": {"dtype": "F32", "shape": [6], "data_offsets": [0, 0]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "chat_template.jinja").write_text("{{ messages }}")


def test_one_click_makes_the_task_and_then_launches_the_runs(team, ask, run_job):
    study = ask()
    assert (study.state, Run.objects.count()) == ("waiting", 0)
    job = WeightsJob.objects.get()
    assert (job.kind, job.params, job.state) == ("task", {"task": "faults", "wanted": 4}, "queued")
    claims.begin(study.pk)  # a message that came too early
    assert not Run.objects.exists()
    run_job(job)
    assert job.state == "finished", job.problem
    claims.begin(study.pk)
    claims.begin(study.pk)  # and one that came twice
    study.refresh_from_db()
    assert study.state == "launched" and study.runs.count() == 4 == Run.objects.count()
    version, model = DatasetVersion.objects.get(), RegisteredModel.objects.get()
    assert (version.dataset.name, version.state, model.name) == ("claim-faults", "frozen", "claim-faults")
    assert version.counts["examples"] == 80 and {run.data for run in Run.objects.all()} == {version}
    assert {run.base for run in Run.objects.all()} == {model}
    assert {run.config["steps"] for run in Run.objects.all()} == {4}


def test_what_was_made_says_where_it_comes_from(team, ask, run_job):
    ask()
    job = WeightsJob.objects.get()
    run_job(job)
    version, model = DatasetVersion.objects.get(), RegisteredModel.objects.get()
    assert version.lineage == {"from": "claim", "task": "faults", "job": job.pk}
    assert "faults" in describe(version.lineage)[0] and "rationale" in version.dataset.description
    assert f"job {job.pk}" in model.description and "rationale" in model.description
    assert job.outcome == {"examples": 80, "versions": [version.pk], "models": [model.pk]}
    found = lineage.walked(team.owner, "model", model.pk, "up")
    assert [row.pk for row in found.rows("job")] == [job.pk]
    found = lineage.walked(team.owner, "job", job.pk, "down")
    assert [row.pk for row in found.rows("version")] == [version.pk]


def test_rubric_writers_start_from_nothing_too(ask, run_job):
    study = ask(plan="mams", config=None)
    job = WeightsJob.objects.get()
    assert job.params == {"task": "rubrics", "wanted": 4}
    run_job(job, [*rubrics.examples()[:200], *rubrics.examples()[-96:]])
    assert job.state == "finished", job.problem
    claims.begin(study.pk)
    study.refresh_from_db()
    assert (study.state, study.problem) == ("launched", "") and Run.objects.count() == 6
    assert {run.recipe for run in Run.objects.all()} == {"rubric_writer"}


def test_a_task_that_is_there_is_found_again(team, ask, run_job):
    first = ask()
    run_job(WeightsJob.objects.get())
    claims.begin(first.pk)
    second = ask(team.owner, seeds=3)
    assert second.state == "launched" and second.runs.count() == 6
    assert (WeightsJob.objects.count(), Dataset.objects.count(), RegisteredModel.objects.count()) == (1, 1, 1)
    other = ask(plan="stages", config=None)
    assert other.state == "waiting" and WeightsJob.objects.count() == 2, "another task is another job"


def test_two_claims_of_one_task_share_it(ask):
    ask(plan="stages", config=None)
    ask(plan="budgets", config=None)
    assert WeightsJob.objects.count() == 1 and ClaimTask.objects.count() == 1
    ask(plan="ruscarl", config=None)
    ask(plan="oapl", config=None)  # that plan needs two words, this one four
    assert ClaimTask.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_clicks_at_one_moment_make_one_task_and_with_one_key_one_study(team, ask, run_job):
    found = concurrently([lambda: ask(key="k")] * 6 + [ask] * 6)
    assert len({study.pk for study in found[:6]}) == 1 and ClaimStudy.objects.count() == 7
    assert (ClaimTask.objects.count(), WeightsJob.objects.count()) == (1, 1)
    run_job(WeightsJob.objects.get())
    waiting = list(ClaimStudy.objects.values_list("pk", flat=True))
    concurrently([lambda pk=pk: claims.begin(pk) for pk in waiting * 2])
    assert set(ClaimStudy.objects.values_list("state", flat=True)) == {"launched"}
    assert Run.objects.count() == 7 * 4
    assert (Dataset.objects.count(), RegisteredModel.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_a_click_while_the_job_ends_waits_for_nobody(team, ask, run_job):
    ask()
    job = WeightsJob.objects.get()
    results = concurrently([lambda: run_job(job), *[ask] * 5])
    assert len(results) == 6
    job.refresh_from_db()
    assert job.state == "finished" and job.attempt == 1
    claims.watch()
    assert set(ClaimStudy.objects.values_list("state", flat=True)) == {"launched"} and Run.objects.count() == 6 * 4


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"leaves": False}, "is not on this server"),
        ({"count": 81}, "80 examples have come, not the 81"),
        ({"examples": []}, "0 examples have come"),
    ],
)
def test_nothing_is_entered_by_half(ask, run_job, given, said):
    study = ask()
    job = WeightsJob.objects.get()
    run_job(job, **given)
    assert job.state == "failed" and said in job.problem
    assert not Dataset.objects.exists() and not RegisteredModel.objects.exists()
    study.refresh_from_db()
    assert study.state == "waiting" and claims.standing_of(study).over and claims.standing_of(study).making == job


def test_what_failed_is_tried_again_from_the_page(team, as_researcher, ask, run_job):
    study = ask()
    job = WeightsJob.objects.get()
    run_job(job, leaves=False)
    page = page_html(as_researcher.get(f"/experiments/claims/{study.pk}"))
    assert "is not on this server" in page and "Try again</button>" in page and "every 3s" not in page
    assert "Try again</button>" not in page_html(browser(team.reviewer).get(f"/experiments/claims/{study.pk}"))
    assert browser(team.reviewer).post(f"/experiments/claims/{study.pk}/again").status_code == 403
    assert as_researcher.post(f"/experiments/claims/{study.pk}/again").status_code == 302
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("queued", 2)
    page = page_html(as_researcher.get(f"/experiments/claims/{study.pk}"))
    assert "4 runs start when its task is made" in page and "every 3s" in page and "Try again</button>" not in page


def test_a_task_whose_data_were_deleted_is_made_again(team, ask, run_job):
    study = ask()
    run_job(WeightsJob.objects.get())
    version = DatasetVersion.objects.get()
    version.dataset.delete()
    claims.begin(study.pk)
    study.refresh_from_db()
    assert study.state == "waiting" and claims.standing_of(study).over
    claims.again(team.researcher, study)
    job = WeightsJob.objects.get()
    assert (job.state, job.attempt) == ("queued", 2) and not WeightsResult.objects.exists()
    run_job(job)
    claims.begin(study.pk)
    assert Run.objects.count() == 4 and RegisteredModel.objects.count() == 1


def test_names_that_are_taken_get_a_number(team, ask, run_job):
    Dataset.objects.create(workspace=team.workspace, name="claim-faults")
    RegisteredModel.objects.create(workspace=team.workspace, name="claim-faults", source="hub", path="o/m")
    ask()
    run_job(WeightsJob.objects.get())
    assert ClaimTask.objects.get().version.dataset.name == "claim-faults-2"
    assert ClaimTask.objects.get().model.name == "claim-faults-2"


def test_settings_that_do_not_fit_the_task_lead_to_others(team, as_researcher, ask, run_job):
    study = ask()
    run_job(WeightsJob.objects.get())
    problem = "data.source: the data has nothing to learn with 'conversations'"
    ClaimStudy.objects.filter(pk=study.pk).update(state="refused", problem=problem)
    address = f"/experiments/claims/{study.pk}"
    page = page_html(as_researcher.get(address))
    assert "nothing to learn" in page and "launches the same settings" in page
    assert f'href="/experiments/claims/{study.plan}/new"' in page
    assert "with other settings" not in page_html(browser(team.reviewer).get(address))


def test_a_closed_account_launches_nothing(team, ask, run_job):
    study = ask()
    run_job(WeightsJob.objects.get())
    close(team.researcher.user, by="the directory")
    claims.begin(study.pk)
    study.refresh_from_db()
    assert study.state == "refused" and "no longer allowed to launch" in study.problem and not Run.objects.exists()


def test_who_left_launches_nothing(team, ask, run_job):
    study = ask()
    run_job(WeightsJob.objects.get())
    listen(team.owner)
    Membership.objects.filter(pk=team.researcher.pk).update(role="annotator")
    claims.begin(study.pk)
    claims.begin(study.pk)
    study.refresh_from_db()
    assert study.state == "refused" and "no longer allowed to launch" in study.problem and not Run.objects.exists()
    assert AuditEntry.objects.filter(action="claim.refused").count() == 1
    [facts] = [given for event, given in announced_events() if event == "claim.refused"]
    assert (facts["claim"], facts["reason"]) == (study.pk, study.problem)
    page = page_html(browser(team.owner).get(f"/experiments/claims/{study.pk}"))
    assert "is no longer allowed to launch anything here" in page and "could not be launched" in page


def test_a_task_is_entered_in_the_name_of_somebody_who_may(team, ask, run_job):
    ask()
    Membership.objects.filter(pk=team.researcher.pk).update(role="annotator")
    job = WeightsJob.objects.get()
    run_job(job)
    assert job.state == "failed" and "The people who asked" in job.problem
    other = ask(team.owner)
    job.refresh_from_db()
    assert job.state == "queued", "whoever asks next has it tried again"
    WeightsResult.objects.all().delete()
    WeightsJob.objects.update(acked=0, done=0)
    job.refresh_from_db()
    run_job(job)
    claims.begin(other.pk)
    assert Run.objects.count() == 4


def test_wrong_settings_are_told_before_anything_is_made(team, ask):
    with pytest.raises(ConfigInvalid) as caught:
        ask(config={**STEPS, "optim": {"lr": -1.0}}, seeds=2)
    assert [problem.path for problem in caught.value.problems] == ["optim.lr"]
    with pytest.raises(ConfigInvalid) as caught:
        mams = PLANS["mams"].shared
        ask(plan="mams", config={**mams, "reward": {**mams["reward"], "by": "likert", "judge": "Nobody v1"}})
    assert [problem.path for problem in caught.value.problems] == ["reward.judge"]
    with pytest.raises(ConfigInvalid) as caught:
        ask(seeds=1, config={})
    assert [problem.path for problem in caught.value.problems] == ["seeds", "steps"]
    with pytest.raises(Invalid) as refused:
        ask(plan="toggle_smollm", config=None)
    assert set(refused.value.fields) == {"dataset", "model.name"}
    assert not ClaimStudy.objects.exists() and not WeightsJob.objects.exists() and not ClaimTask.objects.exists()


@pytest.mark.parametrize(
    ("change", "path", "why"),
    [
        ({"data": {"source": "conversations"}}, "data.source", "nothing to learn with 'conversations'; it has 1,000"),
        (
            {"phases": [{"step": 2, "prompts": "some", "tags": ["no"]}]},
            "phases.0.tags",
            "no training prompt has the tag",
        ),
    ],
)
def test_settings_that_do_not_fit_the_task_are_told_before_it_is_made(team, as_researcher, api, ask, change, path, why):
    """The job that makes a task takes minutes, and only then the runs were refused."""
    shared = {**PLANS["kcenter"].shared, **change}
    sent = {"own": "1", "seeds": "2", "key": "a", "shared": json.dumps(shared)}
    answer = as_researcher.post("/experiments/claims/kcenter/new", sent)
    assert answer.status_code == 422 and why in unescape(page_html(answer)) and path in page_html(answer)
    refused = api.post("/claims", {"plan": "kcenter", "seeds": 2, "config": shared})
    (told,) = [each["message"] for each in refused.json()["error"]["fields"] if each["path"].endswith(path)]
    assert refused.status_code == 422 and why in told
    assert not ClaimStudy.objects.exists() and not WeightsJob.objects.exists() and not ClaimTask.objects.exists()


@pytest.mark.parametrize("plan", [name for name, plan in PLANS.items() if plan.constructed])
def test_the_settings_of_every_plan_fit_its_own_task(plan):
    found = PLANS[plan]
    for arm in found.arms:
        recipe = found.recipe_of(arm)
        given = merge_config(found.config(arm, found.shared, 0), {"model": {"name": "m"}})
        assert list(arms.data_problems(found, recipe, resolve(recipe, given))) == []


def test_data_without_a_model_are_told(team, ask):
    with pytest.raises(ConfigInvalid) as caught:
        ask(dataset=DatasetChoice(id=1))
    assert [problem.path for problem in caught.value.problems] == ["model.name"]
    with pytest.raises(ConfigInvalid) as caught:
        ask(model="m")
    assert [problem.path for problem in caught.value.problems] == ["dataset"]


def test_the_form_starts_with_nothing_here(team, as_researcher, run_job):
    page = page_html(as_researcher.get(FORM))
    assert "Create its task and start" in page and "No dataset yet" in page
    shared = '{"steps": 4, "data": {"form": "lines"}, "reward": {"matcher": "words"}}'
    sent = {"own": "1", "seeds": "2", "shared": shared, "key": "a"}
    answer = as_researcher.post(FORM, sent)
    study = ClaimStudy.objects.get()
    assert answer.status_code == 302 and answer.url == f"/experiments/claims/{study.pk}"
    assert as_researcher.post(FORM, sent).url == answer.url and ClaimStudy.objects.count() == 1
    page = page_html(as_researcher.get(answer.url))
    assert "Its 4 runs start when its task is made" in page and 'data-follow="weights_job-' in page
    assert "Its task is being made" in page_html(as_researcher.get("/experiments/claims"))
    run_job(WeightsJob.objects.get())
    claims.begin(study.pk)
    page = page_html(as_researcher.get(FORM))
    assert "Start with its task" in page and "claim-faults v1" in page
    assert "0 of 4 runs have finished" in page_html(as_researcher.get(answer.url))
    wrong = as_researcher.post(FORM, {**sent, "seeds": "1", "key": "b"})
    assert wrong.status_code == 422 and "one seed does not show how much seeds differ" in page_html(wrong)


@pytest.mark.parametrize("own", ["1", ""])
@pytest.mark.parametrize("shared", ['{"steps": 4, "optim": {"lr": NaN}}', '{"steps": 4, "a\\u0000b": 1}'])
def test_settings_that_no_database_holds_are_told_at_the_form(as_researcher, own, shared):
    answer = as_researcher.post(FORM, {"own": own, "seeds": "2", "shared": shared, "dataset": "1:1", "key": "a"})
    assert answer.status_code == 422 and not ClaimStudy.objects.exists()


def test_a_claim_about_given_data_offers_no_task(as_researcher):
    page = page_html(as_researcher.get("/experiments/claims/toggle_smollm/new"))
    assert "Create its task" not in page and "Launch all runs" in page
    assert "Requirements</h2>" in page and "python -m trainer models prepare" in page and "demo/prompts.jsonl" in page
    page = page_html(as_researcher.get("/experiments/claims/rubric_pairs/new"))
    assert "demo/rubric_pairs.jsonl" in page and "claims rubric_pairs --size demo" in page
    page = page_html(as_researcher.get(f"{FORM}?size=demo"))
    assert "Create its task" not in page


def test_the_api_makes_the_task_too(team, api, run_job):
    answer = api.post("/claims", {"plan": "rationale", "seeds": 2, "config": STEPS})
    assert answer.status_code == 201
    told, job = answer.json(), WeightsJob.objects.get()
    assert told["state"] == "waiting" and told["making"]["job"] == job.pk and told["table"] == []
    planned = claims.standing_of(ClaimStudy.objects.get()).planned
    assert planned > 0 and [told["runs"], api.get("/claims").json()["items"][0]["runs"]] == [planned] * 2
    run_job(job, leaves=False)
    told = api.get(f"/claims/{told['id']}").json()
    assert told["making"]["state"] == "failed" and "is not on this server" in told["making"]["problem"]
    again = api.post(f"/claims/{told['id']}/again", {})
    assert again.status_code == 200 and again.json()["making"]["state"] == "queued"
    assert api.post("/claims", {"plan": "rationale", "model": "m"}).json()["error"]["fields"][0]["path"] == "dataset"


def test_how_far_teaching_is_stands_on_the_page_and_in_the_api(as_researcher, api, ask, run_job):
    study, job = ask(), WeightsJob.objects.get()
    WeightsJob.objects.filter(pk=job.pk).update(state="starting", ray_job_id=f"weights-{job.pk}-1")
    process = Process(job)
    assert process.post(phase="making the examples").status_code == 200
    assert api.get(f"/claims/{study.pk}").json()["making"]["steps"] is None
    steps = {"done": 340, "total": 1200, "seconds_left": 74.6}
    assert process.post(phase="teaching the model", steps=steps).status_code == 200
    assert api.get(f"/claims/{study.pk}").json()["making"]["steps"] == steps
    for page in (f"/experiments/claims/{study.pk}", f"/jobs/{job.pk}"):
        text = page_html(as_researcher.get(page))
        assert "340 of 1,200 steps" in text and "about 1:15 min left" in text and 'max="1200"' in text
    assert process.post(phase="teaching the model", steps={**steps, "seconds_left": None}).status_code == 200
    assert "min left" not in page_html(as_researcher.get(f"/experiments/claims/{study.pk}"))
    assert process.post(steps={"done": -1, "total": 5}).status_code == 422
    assert process.post(state="failed", reason="no more memory").status_code == 200
    assert api.get(f"/claims/{study.pk}").json()["making"]["steps"] is None


def test_upkeep_launches_what_a_lost_message_left(team, ask, run_job, monkeypatch):
    study = ask()
    run_job(WeightsJob.objects.get())
    claims.watch()
    study.refresh_from_db()
    assert study.state == "launched"


def test_every_plan_starts_from_nothing_or_says_what_it_needs():
    assert [plan.name for plan in PLANS.values() if plan.by_hand] == ["rubric_pairs", "toggle_smollm"]
    assert all((plan.constructed is None) == bool(plan.by_hand) for plan in PLANS.values())


def test_every_plan_with_a_constructed_task_names_one_that_the_trainer_makes():
    for plan in PLANS.values():
        if plan.constructed is not None:
            assert plan.task in TASKS


def test_a_job_of_another_workspace_is_another_one(team, ask):
    ask()
    ask(team.outsider)
    assert WeightsJob.objects.count() == 2 and ClaimTask.objects.count() == 2
