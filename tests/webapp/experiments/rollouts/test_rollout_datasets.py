"""A dataset of the samples of a run: made by API and by the page's form, as an import, within the workspace of the run."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.pages import page_html
from trainer.contracts import Example as Record
from webapp.datasets.ingest import generated_files
from webapp.datasets.ingest import services as imports
from webapp.datasets.models import Example, ImportJob
from webapp.datasets.versions import services as datasets
from webapp.datasets.versions import training_counts
from webapp.experiments.launch import checks
from webapp.experiments.models import Run
from webapp.inference.models import RegisteredModel

from ..conftest import Trainer
from ..outputs.test_outputs import output

pytestmark = pytest.mark.django_db


@pytest.fixture
def sampled(run, trainer):
    """Two prompts with three responses each at steps 1 and 2, and a held-out prompt. One of the responses has no reward."""
    for step in (1, 2):
        rows = [
            trainer.rollout(
                index, example_key=f"e{group}", group=group, response=f"{step} {group} {index}", reward=reward
            )
            for group in (0, 1)
            for index, reward in enumerate((0.2, 0.9, None))
        ]
        trainer.post(trainer.event("rollouts", step, rollouts=rows))
    held = trainer.rollout(0, example_key="e3", phase="eval", response="held")
    trainer.post(trainer.event("rollouts", 2, rollouts=[held]))
    return run


def imported_records(job_id):
    imports.run_import(job_id)
    job = ImportJob.objects.get(pk=job_id)
    assert job.state == "finished", job.error
    rows = Example.objects.filter(memberships__version=job.version).order_by("key")
    return job, [Record.model_validate_json(row.canonical) for row in rows]


@pytest.mark.parametrize("recipe", ["judge", "rubric_writer", "alternating"])
def test_questions_about_pairs_make_no_dataset_and_the_page_offers_none(recipe, team, sampled, client, as_researcher):
    address = f"/runs/{sampled.pk}/rollouts/dataset"
    assert f'href="{address}"' in page_html(as_researcher.get(f"/runs/{sampled.pk}/rollouts"))
    Run.objects.filter(pk=sampled.pk).update(recipe=recipe)
    assert f'href="{address}"' not in page_html(as_researcher.get(f"/runs/{sampled.pk}/rollouts"))
    assert as_researcher.get(address).status_code == 404
    client.force_login(team.researcher.user)
    reply = client.post(
        f"/api/v1/runs/{sampled.pk}/rollouts/dataset", {"name": "best"}, content_type="application/json"
    )
    assert reply.status_code == 422 and "not prompts of the data" in page_html(reply)
    assert not ImportJob.objects.exists()


def test_the_api_makes_a_version_with_rewards_model_and_steps(team, sampled, client):
    client.force_login(team.researcher.user)
    body = {"name": "best", "best": 1, "least": 0.5}
    reply = client.post(f"/api/v1/runs/{sampled.pk}/rollouts/dataset", body, content_type="application/json")
    assert reply.status_code == 202, reply.content
    told = reply.json()
    assert told["dataset"] == "best"
    job, examples = imported_records(told["import_id"])
    found = client.get(f"/api/v1/imports/{job.pk}").json()["origin"]
    assert (found["run"], found["prompts"], found["responses"]) == (sampled.pk, 2, 2)
    assert found["left_out"] == {"no_reward": 4, "low": 4, "not_best": 2}
    assert [example.key for example in examples] == ["e0", "e1"]
    assert {example.split for example in examples} == {"train"}
    (response,) = examples[0].responses
    assert response.text == "1 0 1" and response.origin == f"smollm2-135m-instruct, run {sampled.pk}"
    assert examples[0].meta["rewards"] == {"s1-0-1": 0.9} and examples[0].meta["steps"] == {"s1-0-1": 1}
    assert job.version.counts["examples"] == 2
    assert not Path(job.file_path).exists()


def test_lineage_leads_from_the_run_to_its_dataset_and_back(team, sampled, client):
    client.force_login(team.researcher.user)
    client.post(f"/api/v1/runs/{sampled.pk}/rollouts/dataset", {"name": "best"}, content_type="application/json")
    version = imported_records(ImportJob.objects.get().pk)[0].version
    assert version.lineage["from"] == "run" and version.lineage["run"] == sampled.pk
    there = page_html(client.get(f"/runs/{sampled.pk}/lineage"))
    assert f"/datasets/{version.dataset_id}/versions/1" in there and "Datasets of its responses" in there
    back = page_html(client.get(f"/datasets/{version.dataset_id}/versions"))
    assert f'href="/runs/{sampled.pk}/lineage"' in back and "8 responses" in back


def test_a_worker_that_dies_while_it_gathers_leaves_no_half_file(team, sampled, client, monkeypatch):
    client.force_login(team.researcher.user)
    client.post(f"/api/v1/runs/{sampled.pk}/rollouts/dataset", {"name": "best"}, content_type="application/json")
    job = ImportJob.objects.get()
    gathered = generated_files.SOURCES["run"]

    def dies(job, heard):
        lines, found = gathered(job, heard)
        yield_one = next(lines)
        return (line if n == 0 else 1 / 0 for n, line in enumerate((yield_one, yield_one))), found

    monkeypatch.setitem(generated_files.SOURCES, "run", dies)
    with pytest.raises(ZeroDivisionError):
        generated_files.fill(job, lambda rows: None)
    assert not Path(job.file_path).exists()
    monkeypatch.undo()
    _, examples = imported_records(job.pk)
    assert sum(len(example.responses) for example in examples) == 8


def test_where_nothing_is_left_the_import_says_why(team, sampled, client):
    client.force_login(team.researcher.user)
    body = {"name": "none", "least": 5}
    reply = client.post(f"/api/v1/runs/{sampled.pk}/rollouts/dataset", body, content_type="application/json")
    imports.run_import(reply.json()["import_id"])
    job = ImportJob.objects.get()
    assert job.state == "failed" and "8 worth less than the least reward" in job.error
    assert job.error in page_html(client.get(f"/imports/{job.pk}"))


def test_the_form_makes_one_too_and_shows_its_import(team, sampled, client):
    client.force_login(team.researcher.user)
    form = {"name": "all of them", "phase": "train", "first": "2", "last": "", "best": "", "least": ""}
    reply = client.post(f"/runs/{sampled.pk}/rollouts/dataset", form)
    job = ImportJob.objects.get()
    assert reply.status_code == 302 and reply.url == f"/imports/{job.pk}"
    _, examples = imported_records(job.pk)
    assert {step for example in examples for step in example.meta["steps"].values()} == {2}
    assert [len(example.responses) for example in examples] == [2, 2]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"least": "much"}, "Must be a number"),
        ({"first": "-1"}, "must be a whole number"),
        ({"first": "3", "last": "2"}, "must be 3 or more"),
        ({"first": "9"}, "have no response that was sampled"),
        ({"name": ""}, "name"),
        ({"phase": "other"}, "must be train or eval"),
    ],
)
def test_what_cannot_be_made_is_said_and_nothing_is_left_behind(team, sampled, client, form, words, settings):
    client.force_login(team.researcher.user)
    reply = client.post(f"/runs/{sampled.pk}/rollouts/dataset", {"name": "x", "phase": "train"} | form)
    assert reply.status_code == 422 and words in page_html(reply)
    assert not ImportJob.objects.exists()
    assert not list((settings.VAR / "uploads").glob("*/*"))


def test_too_many_at_once_are_refused_with_their_number(team, sampled, client, monkeypatch):
    monkeypatch.setattr("webapp.experiments.rollouts.datasets.MOST", 3)
    client.force_login(team.researcher.user)
    reply = client.post(f"/api/v1/runs/{sampled.pk}/rollouts/dataset", {"name": "x"}, content_type="application/json")
    assert reply.status_code == 422 and "hold 12 responses" in page_html(reply)


@pytest.fixture
def filtered(run, trainer):
    """Ten responses to one prompt, each for a different filter, and three that stay."""
    rows: list[dict[str, Any]] = [
        {"reward": None},
        {"response": "one that stays whole"},
        {"response": "one that stays whole"},
        {"response": "short"},
        {"response": "cut before its end, and long", "finish_reason": "length"},
        {"response": "without the word, but long"},
        {"response": "one that is wrong, and long", "criteria": [judged(False), judged(True, points=-1.0)]},
        {"response": "one of no great worth, long", "reward": 0.2},
        {"response": "one that an environment ended", "finish_reason": "error"},
        {"response": "one that is best of all", "reward": 0.9, "criteria": [judged(True), judged(False, points=-1.0)]},
        {
            "response": "one that is second best",
            "reward": 0.8,
            "criteria": [judged(None), judged(False, source="judge")],
        },
    ]
    defaults: dict[str, Any] = {"reward": 0.5, "example_key": "e0", "group": 0, "criteria": []}
    made = [
        trainer.rollout(index, **{"response": f"one of many, {index}", **defaults, **row})
        for index, row in enumerate(rows)
    ]
    trainer.post(trainer.event("rollouts", 1, rollouts=made))
    return run


def judged(met, points=1.0, source="verifier"):
    verdict = {"criterion_id": "c1", "met": met, "source": source}
    return {"text": "c", "points": points, "kind": "hard", "verdict": verdict}


FILTERS = {
    "shortest": "10", "form": "pattern", "form_of": "(one|cut).*", "correct": "1", "least": "0.3", "protocol": "on", "best": "2",
}  # fmt: skip
ON = ["no_reward", "repeated", "short", "cut", "format", "incorrect", "low", "protocol", "not_best"]


def counts(body):
    return {step["key"]: step["left_out"] for step in body["steps"]}


def test_every_filter_is_counted_in_its_order_with_its_cases_and_why(filtered, client, team):
    client.force_login(team.researcher.user)
    body = {"shortest": 10, "whole": True, "form": "pattern", "form_of": "(one|cut).*", "correct": 1, "least": 0.3}
    body |= {"protocol": True, "best": 2}
    address = f"/api/v1/runs/{filtered.pk}/rollouts/dataset/preview"
    told = client.post(address, body, content_type="application/json").json()
    assert [step["key"] for step in told["steps"]] == ["no_example", *ON], "in the order of METHODS"
    assert counts(told) == {"no_example": 0} | dict.fromkeys(ON, 1)
    assert (told["responses"], told["stayed"], told["prompts"]) == (11, 2, 1)
    came = [step["came"] for step in told["steps"]]
    assert came == [11, *range(11, 2, -1)], "each works on what the one before left"
    why = {step["key"]: step["cases"][0]["why"] for step in told["steps"] if step["cases"]}
    assert why["incorrect"] == "0% of what verifiers decide is as it should be" and why["low"] == "reward 0.2"
    assert (
        why["repeated"] == "the text of s1-0-1" and why["short"] == "5 characters" and why["not_best"] == "place 3 of 3"
    )
    undone = client.post(address, body | {"without": ["short", "repeated"]}, content_type="application/json").json()
    assert "short" not in counts(undone) and "repeated" not in counts(undone) and counts(undone)["format"] == 2
    one = client.post(address, body | {"of": "low", "cases": 1, "after": 1}, content_type="application/json").json()
    assert all(not step["cases"] for step in one["steps"]), "there is one case, and it was skipped"
    refused = client.post(address, {"form": "pattern", "form_of": "("}, content_type="application/json")
    assert refused.status_code == 422 and "form_of" in page_html(refused)
    assert not ImportJob.objects.exists(), "nothing was made"


def test_the_page_counts_shows_cases_and_makes_what_it_counted(filtered, client, team):
    client.force_login(team.researcher.user)
    address = f"/runs/{filtered.pk}/rollouts/dataset"
    blank = page_html(client.get(address))
    assert "Duplicates" in blank and ">off<" in blank and "11 responses" in blank
    assert "asks for nothing" in page_html(client.get(address, {"filtered": "1", "on": ON}))
    page = page_html(client.get(address, {"filtered": "1", "on": ON, "show": "incorrect", **FILTERS}))
    assert "0% of what verifiers decide" in page and "one that is wrong, and long" in page and "2 responses" in page
    without = page_html(client.get(address, {"filtered": "1", "on": ON[:-1], **FILTERS}))
    assert "3 responses" in without and "Create the dataset of 3 responses" in without
    reply = client.post(address, {"filtered": "1", "on": ON, "name": "sifted", **FILTERS})
    job, (example,) = imported_records(ImportJob.objects.get().pk)
    assert reply.url == f"/imports/{job.pk}" and job.origin["left_out"] == dict.fromkeys(ON, 1)
    assert {each.text for each in example.responses} == {"one that is best of all", "one that is second best"}
    assert job.version.lineage["from"] == "run" and job.version.lineage["wanted"]["best"] == 2
    seen = page_html(client.get(f"/imports/{job.pk}"))
    assert "Train on it" in seen and "Annotate it" in seen
    bad = client.get(address, {"filtered": "1", "on": ON, "least": "much"})
    assert bad.status_code == 422 and "Must be a number" in page_html(bad)


@pytest.mark.parametrize(
    ("given", "place", "why"),
    [
        ({"least": "much"}, 'name="least".*?aria-describedby="e-low"', "Must be a number, or empty."),
        ({"correct": "2"}, 'name="correct".*?aria-describedby="e-incorrect"', "Must be a share from 0 to 1, or empty."),
        ({"form": "tags"}, 'name="form_of".*?aria-describedby="e-format"', "Name the tags."),
        ({"first": "9"}, 'name="first".*?aria-describedby="e-steps"', "These steps have no response that was sampled."),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_counts_as_asked_for(filtered, client, team, given, place, why):
    client.force_login(team.researcher.user)
    reply = client.get(f"/runs/{filtered.pk}/rollouts/dataset", {"filtered": "1", "on": ON, **given})
    page = page_html(reply)
    error = place.split('"')[-2]
    assert reply.status_code == 422 and re.search(place, page)
    assert why in page[page.index(f'id="{error}"') :].split("</p>")[0], "and once"
    assert page.count(why[1:].rstrip(".")) == 1
    assert "not counted" in page and "asks for nothing" not in page


def test_count_again_and_make_both_go_by_what_the_form_says(filtered, client, team):
    client.force_login(team.researcher.user)
    address = f"/runs/{filtered.pk}/rollouts/dataset"
    page = page_html(client.get(address, {"filtered": "1", "on": ON, **FILTERS}))
    form = page[page.index('<form id="filters"') : page.index("</form>", page.index('<form id="filters"'))]
    assert 'name="best"' in form and 'name="name"' in form and "Create the dataset of 2 responses" in form
    changed = {"filtered": "1", "on": ON, "name": "mine", "csrfmiddlewaretoken": "secret", **FILTERS, "best": "1"}
    counted = client.post(address, {**changed, "count": "1"})
    assert counted.status_code == 302 and "secret" not in counted.url and not ImportJob.objects.exists()
    page = page_html(client.get(counted.url.split("#")[0]))
    assert "Create the dataset of 1 response" in page and 'value="mine"' in page
    client.post(address, {**changed, "best": "3"})
    _, (example,) = imported_records(ImportJob.objects.get().pk)
    assert len(example.responses) == 3


def test_a_dataset_keeps_that_a_hint_was_shown(run, trainer, client, team):
    rows = [
        trainer.rollout(index, example_key="e0", group=0, response=f"{index}", hint=hint)
        for index, hint in enumerate((0.5, 0.0))
    ]
    trainer.post(trainer.event("rollouts", 1, rollouts=rows))
    client.force_login(team.researcher.user)
    body = {"name": "hinted"}
    reply = client.post(f"/api/v1/runs/{run.pk}/rollouts/dataset", body, content_type="application/json")
    _, (example,) = imported_records(reply.json()["import_id"])
    assert example.meta["hint"] == {"s1-0-0": 0.5, "s1-0-1": 0.0}


def test_without_the_filter_of_rewards_answers_that_have_none_stay(filtered, client, team):
    client.force_login(team.researcher.user)
    body = {"name": "all", "without": ["no_reward"]}
    reply = client.post(f"/api/v1/runs/{filtered.pk}/rollouts/dataset", body, content_type="application/json")
    _, (example,) = imported_records(reply.json()["import_id"])
    assert len(example.responses) == 10 and "s1-0-0" not in example.meta["rewards"], "missing, never 0"


def test_only_researchers_of_the_workspace_may(team, sampled, client):
    address, body = f"/api/v1/runs/{sampled.pk}/rollouts/dataset", {"name": "x"}
    client.force_login(team.outsider.user)
    assert client.post(address, body, content_type="application/json").status_code in (403, 404)
    client.force_login(team.reviewer.user)
    assert client.post(address, body, content_type="application/json").status_code == 403
    assert client.post(f"/runs/{sampled.pk}/rollouts/dataset", body).status_code == 403
    assert "Create a dataset" not in page_html(client.get(f"/runs/{sampled.pk}/rollouts"))
    assert not ImportJob.objects.exists()


def test_the_best_of_a_policys_rollouts_train_a_model_that_the_next_policy_begins_with(team, sampled, client, launch):
    """All steps: policy -> dataset of its rollouts -> sft on the best of n -> policy from that model."""
    client.force_login(team.researcher.user)
    body = {"name": "rollouts"}
    reply = client.post(f"/api/v1/runs/{sampled.pk}/rollouts/dataset", body, content_type="application/json")
    job, _ = imported_records(reply.json()["import_id"])
    datasets.freeze(team.researcher, job.version)
    counted = training_counts.count(job.version_id) or training_counts.count_now(job.version)
    assert counted["train"]["valued"] == 2
    source = checks.DatasetChoice(id=job.version.dataset_id, version=job.version.number)
    config = {"steps": 2, "data": {"source": "best"}, "evaluation": {"max_examples": 0}}
    tuned = launch(recipe="sft", config=config, dataset=source)
    Run.objects.filter(pk=tuned.pk).update(state="starting", ray_job_id="x", next_try_at=None)
    process = Trainer(tuned)
    process.post(process.event("state", state="running"))
    process.post(output(process, step=2))
    model = RegisteredModel.objects.get(artifact__run=tuned)
    Path(model.path).mkdir(parents=True)
    again = launch(config={"steps": 4, "model": {"name": model.name}})
    assert again.model == model and again.dataset_version == sampled.dataset_version
