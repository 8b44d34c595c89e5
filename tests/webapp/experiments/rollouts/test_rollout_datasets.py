"""Making a dataset of what a run has sampled: by API and by the page's form, as an import, within its workspace."""

from pathlib import Path

import pytest

from trainer.contracts import Example as Record
from webapp.datasets import services as datasets
from webapp.datasets.ingest import generated_files
from webapp.datasets.models import Example, ImportJob
from webapp.datasets.versions import training_counts
from webapp.experiments.launch import checks
from webapp.experiments.models import Run
from webapp.inference.models import RegisteredModel

from ..conftest import Trainer
from ..outputs.test_outputs import output

pytestmark = pytest.mark.django_db


@pytest.fixture
def sampled(run, trainer):
    """Two prompts with three responses each at steps 1 and 2, one of them without a reward, and a held-out one."""
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


def made(job_id):
    datasets.run_import(job_id)
    job = ImportJob.objects.get(pk=job_id)
    assert job.state == "finished", job.error
    rows = Example.objects.filter(memberships__version=job.version).order_by("key")
    return job, [Record.model_validate_json(row.canonical) for row in rows]


def test_questions_about_pairs_make_no_dataset_and_the_page_offers_none(cast, sampled, client, as_researcher):
    assert "dataset-dialog" in as_researcher.get(f"/runs/{sampled.pk}/rollouts").content.decode()
    Run.objects.filter(pk=sampled.pk).update(recipe="judge")
    assert "dataset-dialog" not in as_researcher.get(f"/runs/{sampled.pk}/rollouts").content.decode()
    client.force_login(cast.researcher.user)
    reply = client.post(
        f"/api/v1/runs/{sampled.pk}/rollouts/dataset", {"name": "best"}, content_type="application/json"
    )
    assert reply.status_code == 422 and "no prompts of the data" in reply.content.decode()
    assert not ImportJob.objects.exists()


def test_the_api_makes_a_version_with_rewards_model_and_steps(cast, sampled, client):
    client.force_login(cast.researcher.user)
    body = {"name": "best", "best": 1, "least": 0.5}
    reply = client.post(f"/api/v1/runs/{sampled.pk}/rollouts/dataset", body, content_type="application/json")
    assert reply.status_code == 202, reply.content
    told = reply.json()
    assert told["dataset"] == "best"
    job, examples = made(told["import_id"])
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


def test_lineage_leads_from_the_run_to_its_dataset_and_back(cast, sampled, client):
    client.force_login(cast.researcher.user)
    client.post(f"/api/v1/runs/{sampled.pk}/rollouts/dataset", {"name": "best"}, content_type="application/json")
    version = made(ImportJob.objects.get().pk)[0].version
    assert version.lineage["from"] == "run" and version.lineage["run"] == sampled.pk
    there = client.get(f"/runs/{sampled.pk}/lineage").content.decode()
    assert f"/datasets/{version.dataset_id}/versions/1" in there and "Datasets of its responses" in there
    back = client.get(f"/datasets/{version.dataset_id}/versions").content.decode()
    assert f'href="/runs/{sampled.pk}/lineage"' in back and "8 responses" in back


def test_a_worker_that_dies_while_it_gathers_leaves_no_half_file(cast, sampled, client, monkeypatch):
    client.force_login(cast.researcher.user)
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
    _, examples = made(job.pk)
    assert sum(len(example.responses) for example in examples) == 8


def test_where_nothing_is_left_the_import_says_why(cast, sampled, client):
    client.force_login(cast.researcher.user)
    body = {"name": "none", "least": 5}
    reply = client.post(f"/api/v1/runs/{sampled.pk}/rollouts/dataset", body, content_type="application/json")
    datasets.run_import(reply.json()["import_id"])
    job = ImportJob.objects.get()
    assert job.state == "failed" and "8 worth less than the least reward" in job.error
    assert job.error in client.get(f"/imports/{job.pk}").content.decode()


def test_the_form_makes_one_too_and_shows_its_import(cast, sampled, client):
    client.force_login(cast.researcher.user)
    page = client.get(f"/runs/{sampled.pk}/rollouts").content.decode()
    assert "Make a dataset" in page
    form = {"name": "all of them", "phase": "train", "first": "2", "last": "", "best": "", "least": ""}
    reply = client.post(f"/runs/{sampled.pk}/rollouts/dataset", form)
    job = ImportJob.objects.get()
    assert reply.status_code == 302 and reply.url == f"/imports/{job.pk}"
    _, examples = made(job.pk)
    assert {step for example in examples for step in example.meta["steps"].values()} == {2}
    assert [len(example.responses) for example in examples] == [2, 2]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"least": "much"}, "must be a number"),
        ({"first": "-1"}, "must be a whole number"),
        ({"first": "3", "last": "2"}, "must be 3 or more"),
        ({"first": "9"}, "hold none that was sampled"),
        ({"name": ""}, "name"),
        ({"phase": "other"}, "must be train or eval"),
    ],
)
def test_what_cannot_be_made_is_said_and_nothing_is_left_behind(cast, sampled, client, form, words, settings):
    client.force_login(cast.researcher.user)
    reply = client.post(f"/runs/{sampled.pk}/rollouts/dataset", {"name": "x", "phase": "train"} | form, follow=True)
    assert words in reply.content.decode()
    assert not ImportJob.objects.exists()
    assert not list((settings.VAR / "uploads").glob("*/*"))


def test_too_many_at_once_are_refused_with_their_number(cast, sampled, client, monkeypatch):
    monkeypatch.setattr("webapp.experiments.rollouts.datasets.MOST", 3)
    client.force_login(cast.researcher.user)
    reply = client.post(f"/api/v1/runs/{sampled.pk}/rollouts/dataset", {"name": "x"}, content_type="application/json")
    assert reply.status_code == 422 and "hold 12 responses" in reply.content.decode()


def test_only_researchers_of_the_workspace_may(cast, sampled, client):
    address, body = f"/api/v1/runs/{sampled.pk}/rollouts/dataset", {"name": "x"}
    client.force_login(cast.outsider.user)
    assert client.post(address, body, content_type="application/json").status_code in (403, 404)
    client.force_login(cast.reviewer.user)
    assert client.post(address, body, content_type="application/json").status_code == 403
    assert client.post(f"/runs/{sampled.pk}/rollouts/dataset", body).status_code == 403
    assert "Make a dataset" not in client.get(f"/runs/{sampled.pk}/rollouts").content.decode()
    assert not ImportJob.objects.exists()


def test_the_best_of_a_policys_rollouts_train_a_model_that_the_next_policy_begins_with(cast, sampled, client, launch):
    """Journey: policy -> dataset of its rollouts -> sft on the best of n -> policy from that model."""
    client.force_login(cast.researcher.user)
    body = {"name": "rollouts"}
    reply = client.post(f"/api/v1/runs/{sampled.pk}/rollouts/dataset", body, content_type="application/json")
    job, _ = made(reply.json()["import_id"])
    datasets.freeze(cast.researcher, job.version)
    counted = training_counts.count(job.version_id) or training_counts.counted(job.version)
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
