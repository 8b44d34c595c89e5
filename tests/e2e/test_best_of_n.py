"""From the samples of a policy to a model that is tuned on the best ones, and to a policy that begins with that model. The test uses the
pages between real training processes on the tiny model.
"""

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.test_demo import change, enter
from tests.e2e.test_second_round import run_training
from tests.trainer.conftest import tiny_dir  # noqa: F401 - a fixture
from trainer.contracts import Example, Message
from webapp.datasets.ingest import services as imports
from webapp.datasets.models import Dataset, ImportJob
from webapp.datasets.versions import services as datasets
from webapp.experiments.launch import services as launch
from webapp.experiments.launch.checks import DatasetChoice
from webapp.experiments.models import Run
from webapp.inference.models import RegisteredModel

pytestmark = [pytest.mark.browser, pytest.mark.slow]

POLICY = {
    "steps": 1,
    "scaffold": None,
    "model": {"name": "tiny"},
    "rollout": {"prompts_per_step": 4, "group_size": 2, "max_new_tokens": 8},
    "rewards": [{"kind": "format", "form": "pattern", "pattern": ".*[a-m].*"}],
    "evaluation": {"every": 0, "max_examples": 0},
}


@pytest.fixture
def sampled(server, team, tiny_dir, settings, tmp_path) -> Run:  # noqa: F811
    """A policy run that has finished its only step."""
    settings.VAR = tmp_path
    RegisteredModel.objects.create(workspace=team.workspace, name="tiny", source="local", path=str(tiny_dir))
    examples = [
        Example(key=f"e{i}", prompt=(Message(role="user", content=f"Prompt {i}"),), split="train") for i in range(4)
    ]
    dataset = Dataset.objects.create(workspace=team.workspace, name="Prompts")
    datasets.freeze(team.owner, datasets.new_version(team.owner, dataset, examples, None, {}, as_given=True))
    run = launch.launch(team.researcher, recipe="policy", config=POLICY, dataset=DatasetChoice(id=dataset.pk))
    return run_training(run, server.url)


def launched(page: Page) -> Run:
    assert page.locator("#run-form .error").all_inner_texts() == []
    page.locator(".launch").click()
    page.wait_for_url(lambda url: url.split("/")[-1].isdecimal())
    return Run.objects.get(pk=int(page.url.split("/")[-1]))


def test_the_best_of_what_was_sampled_teaches_a_model_that_the_next_policy_begins_with(
    open_page, as_researcher, team, sampled, server
):
    page = open_page(as_researcher)
    page.goto(f"/runs/{sampled.pk}/rollouts")
    page.get_by_role("link", name="Create a dataset").click()
    page.get_by_role("checkbox", name="Truncated").uncheck()  # the tiny model does not end a response by itself
    page.get_by_role("button", name="Count again").click()
    expect(page.get_by_text("off", exact=True).first).to_be_visible()
    page.get_by_label("Name", exact=True).fill("Two of each")
    page.get_by_role("button", name="Create the dataset").click()
    page.wait_for_url("**/imports/*")
    imports.run_import(ImportJob.objects.get().pk)  # the work of a worker
    page.reload()
    page.get_by_role("link", name="Open the dataset").click()
    page.locator("summary", has_text="Train on it").click()
    page.locator(".train-item", has_text="Supervised fine-tuning").click()
    expect(page.locator("#f-data-source")).to_have_value("best")
    change(page, "f-model-name", lambda field: field.select_option("tiny"))
    change(page, "f-steps", lambda field: enter(field, "2"))
    change(page, "f-evaluation-max_examples", lambda field: enter(field, "0"))
    tuned = run_training(launched(page), server.url)
    assert tuned.dataset_version.lineage["run"] == sampled.pk

    model = RegisteredModel.objects.get(artifact__run=tuned)
    assert model.base.name == "tiny"
    page.goto(f"/models/{model.pk}")
    page.get_by_text("Train it further").click()
    page.get_by_role("link", name="Base: Policy from rubrics", exact=True).click()
    expect(page.locator("#f-model-name")).to_have_value(model.name)
    further = launch.launch(
        team.researcher,
        recipe="policy",
        config={**POLICY, "model": {"name": model.name}},
        dataset=DatasetChoice(id=sampled.dataset_version.dataset_id),
    )
    assert run_training(further, server.url).slots.get(role="base").model == model
