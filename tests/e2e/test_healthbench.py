"""HealthBench rows from their file to a run on its page. The judge of the run fails and works again. Here the training process only sends
messages; tests/e2e/test_judged_run.py tests the same with all services, and a judge that really fails.
"""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.e2e.importing import import_file
from tests.e2e.test_demo import change, enter
from tests.e2e.test_judged_run import healthbench
from trainer.judges.spec import resolve
from webapp.experiments.models import Run
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.judging.models import Judge, JudgeVersion

pytestmark = pytest.mark.browser
WAITS = "Step 1 waits. rubric: Doctor v1 cannot be asked: the endpoint answered 500. It is asked again by itself"


def test_rows_from_a_file_train_on_a_judge_that_goes_away_and_comes_back(
    open_page, as_researcher, process, team, tmp_path
):
    RegisteredModel.objects.create(workspace=team.workspace, name="tiny", source="local", path=str(tmp_path))
    endpoint = Endpoint.objects.create(workspace=team.workspace, name="here", kind="chat", url="https://x", model="m")
    judge = Judge.objects.create(workspace=team.workspace, name="Doctor", kind="criterion")
    spec = resolve({"kind": "criterion"}).model_dump(mode="json")
    version = JudgeVersion.objects.create(judge=judge, number=1, spec=spec, endpoint=endpoint, digest="e" * 64)
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, healthbench())))
    page = open_page(as_researcher)
    import_file(page, file, "HealthBench rubrics", "Headaches")
    page.locator("summary", has_text="Train on it").click()
    page.locator(".train-item", has_text="Policy from rubrics").click()
    change(page, "f-model-name", lambda field: field.select_option("tiny"))
    expect(page.locator("#g-data .error")).to_contain_text("36 criteria of 12 prompts have no verifier")
    change(page, "f-rewards-0-judge", lambda field: field.select_option("Doctor v1"))
    change(page, "f-steps", lambda field: enter(field, "2"))
    assert page.locator("#run-form .error").all_inner_texts() == []
    page.locator(".launch").click()
    page.wait_for_url(re.compile(r"/runs/\d+$"))

    run = Run.objects.get()
    assert run.slots.get(role="judge").judge == version
    talking = process(run)
    state, reason = (page.locator(f"[data-bind={name}]").first for name in ("state", "reason"))
    expect(state).to_have_text("Running")
    talking.post(talking.event("state", state="paused", reason=WAITS))
    expect(state).to_have_text("Blocked")
    expect(reason).to_have_text(WAITS)
    talking.post(talking.event("state", state="running"), talking.event("state", state="finished"))
    expect(state).to_have_text("Finished")
    expect(reason).to_be_hidden()
