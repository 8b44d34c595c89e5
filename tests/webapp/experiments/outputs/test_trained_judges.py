"""A model that a run has trained to judge or to write rubrics becomes a judge version by one click. It is asked in the same way as in
training.
"""

import json
import sys

import pytest

from tests.team import ApiClient, browser
from tests.trainer.judges.inputs import INPUT
from tests.webapp.annotation.seed import make_project
from tests.webapp.weights.conftest import Process
from trainer.config import resolve
from trainer.config.rewards.tasks import JudgementForm
from trainer.judges import calls
from trainer.judges.calls import expand
from trainer.rewards.pair_judgements import question
from webapp.annotation import kinds
from webapp.annotation.jobs import runner
from webapp.annotation.work import queue
from webapp.annotation.work.api import assignment_out
from webapp.evaluation.launch import services as evaluations
from webapp.experiments.models import Run
from webapp.experiments.rewards import grants
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.judging.asking.calls import judge_calls
from webapp.judging.judges import services as judges
from webapp.judging.models import Judge, JudgeVersion, Verdict
from webapp.judging.suggestions.services import ask_judge
from webapp.weights.models import WeightsJob

from .test_outputs import output, trained_models

PAIR = """
import json, sys
print('{"model": "m"}', flush=True)
for line in sys.stdin:
    call = json.loads(line)
    assert call["reply"] == "text" and call["max_tokens"] == 40 and not call["temperature"]
    first = call["messages"][-1]["content"].index("Paris.") < call["messages"][-1]["content"].index("Perhaps Lyon?")
    text = "- Names the capital.\\nVerdict: " + ("A much better" if first else "B better")
    told = {"state": "done", "text": text, "finish_reason": "stop", "prompt_tokens": 7, "completion_tokens": 9}
    print(json.dumps({"key": call["key"], **told}), flush=True)
"""


@pytest.fixture
def trained(run, trainer, settings):
    """A model that a run of `recipe` has left, with its folder."""

    def _trained(recipe: str = "judge", role: str = "judge", **config) -> RegisteredModel:
        whole = resolve(recipe, {"model": {"name": run.model.name}, **config}).model_dump(mode="json")
        Run.objects.filter(pk=run.pk).update(recipe=recipe, config=whole)
        path = f"outputs/{role}"
        (settings.VAR / "runs" / str(run.pk) / path).mkdir(parents=True)
        assert trainer.post(output(trainer, path=path, name=role, role=role)).status_code == 200
        return trained_models(run)[-1]

    return _trained


LINES = {"data": {"form": "lines"}, "rollout": {"max_new_tokens": 40}}


def test_one_click_on_the_model_makes_a_judge_with_an_endpoint_of_its_weights(trained, team):
    model = trained(**LINES)
    page = browser(team.researcher).get(f"/models/{model.pk}").content.decode()
    assert f'action="/models/{model.pk}/judge"' in page and "Use as a judge" in page
    answer = browser(team.researcher).post(f"/models/{model.pk}/judge")
    version = JudgeVersion.objects.get()
    assert answer["Location"] == f"/judges/{version.judge_id}"
    assert (version.endpoint.kind, version.endpoint.registered_model) == ("local", model)
    assert (version.judge.name, version.judge.kind) == (model.name, "pairwise")
    assert version.spec["form"] == "lines" and version.spec["sampling"]["max_tokens"] == 40


def test_the_run_page_has_the_button_beside_its_output(trained, run, team):
    model = trained()
    page = browser(team.researcher).get(f"/runs/{run.pk}/lineage").content.decode()
    assert f'action="/models/{model.pk}/judge"' in page
    assert "Use as a judge" not in browser(team.reviewer).get(f"/runs/{run.pk}/lineage").content.decode()


@pytest.mark.parametrize("form", ["json", "lines"])
def test_it_is_asked_the_very_question_of_its_training(trained, api, form: JudgementForm):
    model = trained(data={"form": form})
    api.post(f"/models/{model.pk}/judge")
    version = JudgeVersion.objects.get()
    given, swapped = expand(version.resolved, version.digest, INPUT)
    paris, lyon = INPUT.responses.values()
    for call, (first, second) in ((given, (paris, lyon)), (swapped, (lyon, paris))):
        trained_on = question(INPUT.conversation, first, second, form)
        assert [dict(each) for each in call.request.messages] == [each.model_dump() for each in trained_on]


def test_a_writer_becomes_a_generator_in_its_form(trained, team, api):
    model = trained("rubric_writer", "rubric_writer", data={"form": "rubric_arm", "min_items": 3, "max_items": 9})
    assert "Use as a rubric generator" in browser(team.researcher).get(f"/models/{model.pk}").content.decode()
    made = api.post(f"/models/{model.pk}/judge", {"name": "Writer"}).json()
    spec = made["spec"]
    assert (spec["kind"], spec["form"], spec["min_items"], spec["max_items"]) == (
        "rubric_generator",
        "rubric_arm",
        3,
        9,
    )
    assert Judge.objects.get().name == "Writer" and spec["sampling"]["max_tokens"] == 512


def test_its_weights_are_asked_and_its_lines_are_read(trained, api, settings):
    settings.JUDGE_COMMAND = [sys.executable, "-c", PAIR]
    api.post(f"/models/{trained(**LINES).pk}/judge")
    counts = judge_calls(JudgeVersion.objects.get(), [INPUT])
    assert (counts.done, counts.missing, counts.failed) == (2, 0, 0)
    assert sorted(row.parsed["strength"] for row in Verdict.objects.all()) == [-2, 1]
    assert Verdict.objects.first().parsed["reasons"] == ["Names the capital."]


def test_it_is_audited_and_rewards_a_policy_by_remax(trained, api, team, version, launch):
    api.post(f"/models/{trained(**LINES).pk}/judge")
    judge = JudgeVersion.objects.get()
    planned = evaluations.plan(team.researcher, "judge_audit", {"judges": [{"version": judge.pk}]}, version, None)
    assert planned.model_dump()["judges"][0]["version"] == judge.pk
    reward = {"kind": "judge", "judge": str(judge), "protocol": "pairwise", "against": "greedy"}
    rewarded = launch(config={"steps": 2, "rewards": [reward]})
    assert rewarded.slots.get(role="judge").judge == judge


def test_it_labels_the_pairs_of_iterative_dpo(trained, api, launch, settings):
    api.post(f"/models/{trained(**LINES).pk}/judge")
    judge = JudgeVersion.objects.get()
    reward = {"kind": "judge", "judge": str(judge), "protocol": "pairwise", "against": "sample"}
    run = launch(recipe="iterative_dpo", config={"steps": 2, "rewards": [reward]})
    assert run.slots.get(role="judge").judge == judge
    grant = grants.judges(run)[str(judge)]
    assert (grant.spec["kind"], grant.spec["form"], grant.spec["order"]) == ("pairwise", "lines", "both")
    assert grant.local, "its weights answer in the run's own process"


def test_it_suggests_to_annotators_what_it_says_of_their_pairs(trained, api, team, monkeypatch):
    """The weights of the judge answer in a job of the cluster, in the same lines as in training. The annotator sees the answer with the
    task.
    """
    api.post(f"/models/{trained(**LINES).pk}/judge")
    judge = JudgeVersion.objects.get()
    project = make_project(team.researcher, 1, people=[team.annotator], settings={"suggestions": "before"})
    job = ask_judge(team.researcher, project, judge)
    while runner.run(job.pk) is not None:
        for queued in WeightsJob.objects.filter(state="queued"):
            answer(queued, judge, lambda first: f"- Names more.\nVerdict: {'A' if first else 'B'} much better")
    job.refresh_from_db()
    assert (job.state, job.done, job.total) == ("finished", 1, 1), job.problem
    [seat] = queue.claim(team.annotator, project)
    seen = assignment_out(seat, kinds.Settings.model_validate(project.settings))["view"]["suggestion"]
    assert seen["verdict"] == "compared" and abs(seen["strength"]) == 3


def answer(job: WeightsJob, judge: JudgeVersion, say) -> None:
    """The cluster's process: the first answer of each pair wins, in either order."""
    WeightsJob.objects.filter(pk=job.pk).update(state="starting", ray_job_id="x", next_try_at=None)
    job.refresh_from_db()
    process = Process(job)
    items = [json.loads(line) for line in b"".join(process.get("/items")).decode().split("\n") if line]
    found = []
    for item in items:
        raw = say(item["subject"]["order"] == "given")
        said = {"state": "done", "raw": raw, "problem": "", "prompt_tokens": 1, "completion_tokens": 1}
        found.append({**item, **said, "parsed": calls.read(judge.resolved, item["subject"], raw).parsed})
    assert process.post(1, *found).status_code == process.post(state="finished").status_code == 200


def test_asked_twice_it_is_the_same_version_and_an_archived_one_is_made_anew(trained, api, team):
    model = trained()
    first = api.post(f"/models/{model.pk}/judge").json()
    assert api.post(f"/models/{model.pk}/judge").json()["id"] == first["id"]
    judges.archive(team.researcher, Judge.objects.get())
    again = api.post(f"/models/{model.pk}/judge").json()
    assert again["id"] != first["id"] and again["digest"] == first["digest"]
    assert Endpoint.objects.count() == 1 and Judge.objects.get(pk=again["judge_id"]).name == f"{model.name} 2"


def test_a_policy_and_a_model_from_elsewhere_are_no_judges(trained, run, model, api, team):
    refused = api.post(f"/models/{model.pk}/judge")
    assert refused.status_code == 409 and "is not known" in refused.json()["error"]["message"]
    policy = trained("sft", "policy")
    assert api.post(f"/models/{policy.pk}/judge").status_code == 409
    assert "Use as a" not in browser(team.researcher).get(f"/models/{policy.pk}").content.decode()


def test_without_its_files_it_is_refused(trained, api, settings, run):
    model = trained()
    (settings.VAR / "runs" / str(run.pk) / "outputs/judge").rmdir()
    refused = api.post(f"/models/{model.pk}/judge")
    assert refused.status_code == 409 and "files" in refused.json()["error"]["message"]


def test_a_name_that_is_taken_is_refused_at_its_field(trained, api, team):
    model = trained()
    api.post(f"/models/{model.pk}/judge", {"name": "Mine"})
    judges.archive(team.researcher, Judge.objects.get())
    refused = api.post(f"/models/{model.pk}/judge", {"name": "Mine"})
    assert refused.status_code == 422 and refused.json()["error"]["fields"][0]["path"] == "name"


def test_reviewers_annotators_and_outsiders_may_not(trained, team):
    path = f"/models/{trained().pk}/judge"
    assert [ApiClient(who).post(path).status_code for who in (team.reviewer, team.annotator, team.outsider)] == [
        403,
        403,
        404,
    ]
    assert not Judge.objects.exists()
