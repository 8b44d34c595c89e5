"""From the map of pass rates to the learnable prompts, and to a version with these prompts."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from trainer.contracts import Example
from webapp.datasets import probe_services
from webapp.datasets.curation import runner
from webapp.datasets.models import CurationJob, Dataset
from webapp.datasets.probe_services import MeasuredProbe
from webapp.datasets.versions import services

pytestmark = pytest.mark.browser


@pytest.fixture
def dataset(team):
    made = Dataset.objects.create(workspace=team.workspace, name="Sums")
    prompts = [[{"role": "user", "content": f"What is {i} times {i + 3}, modulo 7?"}] for i in range(40)]
    records = [
        Example.model_validate({"key": f"k{i:02}", "prompt": prompt, "domain": ("algebra", "logic", "words")[i % 3]})
        for i, prompt in enumerate(prompts)
    ]
    version = services.new_version(team.researcher, made, records, None, {"from": "import", "file": "sums.jsonl"})
    counts = {f"k{i:02}": (min(8, max(0, i // 4 - 1)), 8) for i in range(38)}
    probe_services.store(version, None, MeasuredProbe(1, 0, "smollm2-135m-instruct", 8, 1.0, counts))
    return made


def test_the_map_leads_to_the_learnable_prompts_and_to_a_version_of_them(open_page, as_researcher, dataset):
    page = open_page(as_researcher)
    page.goto(f"/datasets/{dataset.pk}")
    page.locator(".tabs .tab", has_text="Pass rates").click()
    expect(page.locator('[data-reach="learnable"]')).to_contain_text("28")
    expect(page.locator('[data-reach="unknown"]')).to_contain_text("2")
    assert not layout_faults(page)
    page.locator('[data-reach="learnable"]').click()
    expect(page.locator(".chosen")).to_contain_text("28 examples")
    expect(page.locator(".chosen")).to_contain_text("pass rates of smollm2-135m-instruct, 8 answers")
    expect(page.locator("tbody tr[data-href]")).to_have_count(28)
    page.locator('[data-spread="pass_rate"] .bar').first.wait_for()
    page.get_by_role("link", name="Derive a version").click()
    page.get_by_role("button", name="Create the version").click()
    page.wait_for_url("**/curations/*")
    runner.run(CurationJob.objects.latest("id").pk)  # the work of a worker
    page.reload()
    page.get_by_role("link", name="Open version 2").click()
    expect(page.locator("tbody tr[data-href]")).to_have_count(28)
    page.locator(".tabs .tab", has_text="Pass rates").click()
    expect(page.locator('[data-reach="learnable"]')).to_contain_text("28")
    expect(page.locator('[data-reach="solved"]')).to_contain_text("0")
