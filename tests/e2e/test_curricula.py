"""Curricula, as a researcher sees them: pass rates are written into a version, and the form shows stages and hints with missing data."""

import os

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults, unfold
from tests.webapp.experiments.conftest import VERIFIER, make_version
from trainer.contracts import Criterion, Example, Message, Rubric
from webapp.datasets import probe_services
from webapp.datasets.curation import runner
from webapp.datasets.curation import services as curating
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.probe_services import MeasuredProbe
from webapp.datasets.versions import services as datasets
from webapp.experiments.launch import checks, services
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.browser

STAGES = [
    {"begins": "step", "step": 2, "prompts": "some", "tags": ["logic", "code"]},
    {"begins": "plateau", "window": 8, "verification": "on"},
]


def look(page, name: str) -> None:
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{folder}/{name}-{scheme}.png", full_page=True)


@pytest.fixture
def run(server, team):
    version = make_version(team.owner, tags=("logic", "code"))
    RegisteredModel.objects.create(workspace=team.workspace, name="smollm2", source="local", path="/models/smollm2")
    choice = checks.DatasetChoice(id=version.dataset_id)
    config = {"steps": 20, "model": {"name": "smollm2"}, "scaffold": None, "phases": STAGES}
    return services.launch(team.researcher, recipe="policy", config=config, dataset=choice)


@pytest.fixture
def version(server, team):
    made = Dataset.objects.create(workspace=team.workspace, name="Sums")
    asked = [[{"role": "user", "content": f"What is {i} times {i + 3}?"}] for i in range(12)]
    answers = [[{"id": "a", "text": "la " * 40 if i == 3 else str(i * (i + 3))}] for i in range(12)]
    rows = [Example.model_validate({"key": f"k{i:02}", "prompt": asked[i], "responses": answers[i]}) for i in range(12)]
    return datasets.new_version(team.researcher, made, rows, None, {"from": "import", "file": "sums.jsonl"})


def test_stages_and_hints_say_on_the_form_what_the_data_lacks(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/fork")
    rows = page.get_by_role("list", name="Phases of the run").get_by_role("listitem")
    expect(rows).to_contain_text(["as configured", "tags logic, code step 2", "judges 4 of its own responses a step"])
    above = unfold(page, "f-phases-0-rate_above")
    above.fill("0.2")
    above.press("Tab")
    expect(page.get_by_text("no training prompt has a pass rate yet (`meta.pass_rate`)").first).to_be_visible()
    page.locator("#f-phases-0-tags").fill("logic\ncod")
    page.locator("#f-phases-0-tags").press("Tab")
    expect(
        page.get_by_text("no training prompt has the tag 'cod'; the tags of the data are code (3), logic (3)").first
    ).to_be_visible()
    assert layout_faults(page) == []
    look(page, "stages-form")


def test_a_hint_says_on_the_form_what_is_unknown_and_what_happens_instead(open_page, as_researcher, team, run):
    rubric = Rubric(criteria=(Criterion(id="c", text="Names a colour", points=1, verifier=VERIFIER),))
    asked = (Message(role="user", content="Which colour?"),)
    rows = [
        Example(
            key=f"k{n}",
            prompt=asked,
            reference="blue",
            rubric=rubric,
            split="train",
            meta={"pass_rate": 1.0} if n else {},
        )
        for n in range(3)
    ]
    made = Dataset.objects.create(workspace=team.workspace, name="Colours")
    version = datasets.new_version(team.researcher, made, rows, None, {"from": "import", "file": "colours.jsonl"})
    RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="o/m")
    page = open_page(as_researcher)
    page.goto(f"/runs/new?recipe=policy&dataset={version.dataset_id}&at.scaffold=&at.hint.unknown=0.5")
    notes = page.get_by_role("list", name="Remarks about the data").get_by_role("listitem")
    page.locator("#f-steps").fill("21")
    page.locator("#f-steps").press("Tab")
    expect(notes).to_have_text(
        [
            "1 of 3 training prompts (33%) have no pass rate yet (meta.pass_rate): their hint fades as if it were 0.5 "
            "(hint.unknown); the other 2 were always solved, so a hint can teach nothing there"
        ]
    )
    assert layout_faults(page) == []
    look(page, "hint-form")


def test_pass_rates_are_written_into_the_next_version(open_page, as_researcher, team, version):
    keys = [f"k{i:02}" for i in range(12)]
    probe_services.store(version, None, MeasuredProbe(1, 0, "smollm2", 8, 1.0, dict.fromkeys(keys, (3, 8))))
    probe_services.store(version, None, MeasuredProbe(2, 0, "larger", 64, 1.0, {keys[0]: (1, 64)}))
    page = open_page(as_researcher)
    page.goto(f"/datasets/{version.dataset_id}/versions/{version.number}/pass-rates")
    page.get_by_label("Together with the answers of").select_option(index=1)
    assert layout_faults(page) == []
    look(page, "rates")
    page.get_by_role("button", name="Create a version with these pass rates").click()
    page.wait_for_url("**/versions/2")
    assert DatasetVersion.objects.get(dataset=version.dataset_id, number=2).lineage["written"] == len(keys)
    job = curating.curate(team.researcher, version, "faulty", {"below": 0.2})
    runner.run(job.pk)
    page.goto(f"/datasets/{version.dataset_id}/versions/1/curate")
    expect(
        page.get_by_text("11 of 12 examples would be removed; of 12 responses: mixed scripts 0, repetition 1")
    ).to_be_visible()
    expect(page.get_by_role("heading", name="Keep what provokes rare faults")).to_be_visible()
    page.get_by_label("At most").fill("many")
    page.locator("form", has=page.get_by_label("At most")).get_by_role("button", name="Look").click()
    expect(page.get_by_text("At most: must be from 1 to 1,000,000.")).to_be_visible()
    expect(page.get_by_label("At most")).to_have_value("many")
    assert layout_faults(page) == []
    look(page, "curate")
