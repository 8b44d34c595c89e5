"""Claims in a browser. One click starts every arm; if there is no task, it is made first. The table fills by itself, and the verdict is
above it.
"""

import json
import re

import pytest
from django.conf import settings
from playwright.sync_api import expect

from tests import timeouts
from tests.e2e.look import check_look
from tests.webapp.experiments.claims.test_tasks import run_job, write_model  # noqa: F401 - a fixture
from tests.webapp.experiments.claims.test_waiting_arms import data, finish  # noqa: F401 - fixtures
from tests.webapp.experiments.conftest import model  # noqa: F401
from tests.webapp.weights.conftest import Process
from webapp.experiments.after import rounds
from webapp.experiments.claims import services as claims
from webapp.experiments.claims import tasks
from webapp.experiments.models import ClaimRun, ClaimStudy, Run
from webapp.weights.models import WeightsJob

pytestmark = pytest.mark.browser


def test_a_claim_is_started_once_fills_its_table_and_is_decided(open_page, as_researcher, data, model, finish):  # noqa: F811
    page = open_page(as_researcher)
    page.goto("/experiments/claims")
    page.locator("#method-judge_policy").or_(
        page.locator("a[href='/experiments/claims/judge_policy/new']")
    ).first.wait_for()
    page.locator("a[href='/experiments/claims/judge_policy/new']").first.click()
    page.get_by_label("Seeds").fill("2")
    page.locator("textarea[name=shared]").fill(json.dumps({"steps": 4, "scaffold": None}))
    check_look(page)
    page.get_by_role("button", name="Launch all runs").dblclick()
    page.wait_for_url(re.compile(r"/experiments/claims/\d+$"))
    study = ClaimStudy.objects.get()
    standing = page.locator("#standing")
    expect(standing).to_contain_text("0 of 8 runs have finished")
    expect(standing).to_contain_text("Waits until “hybrid_judge, seed 0” has finished")
    check_look(page)
    for each in ClaimRun.objects.filter(run__isnull=False).select_related("run"):
        finish(each.run)
        rounds.take_up(each.run.pk)
    first = ClaimRun.objects.get(study=study, arm="hybrid_policy", seed=0).run
    link = standing.locator(f"a[href='/runs/{first.pk}']")
    expect(link).to_be_visible(timeout=(10 + timeouts.SECONDS) * 1000)  # without a reload
    expect(standing).not_to_contain_text("Waits until")
    for each in ClaimRun.objects.filter(run__recipe="policy").select_related("run"):
        score = 0.9 + each.seed / 100 if each.arm == "hybrid_policy" else 0.4
        finish(each.run, **{"eval/rubric_score": score, "eval/length": 4.0})
    expect(standing).to_contain_text("8 of 8 runs have finished", timeout=(10 + timeouts.SECONDS) * 1000)
    expect(standing.locator("section", has_text="A policy trained with the hybrid judge").first).to_contain_text(
        "Holds"
    )
    check_look(page)
    assert Run.objects.count() == 8 and ClaimStudy.objects.count() == 1
    link.click()
    expect(page.get_by_role("link", name="claim: judge_policy", exact=True)).to_be_visible()


def test_from_nothing_one_click_makes_the_task_and_starts(open_page, as_researcher, run_job):  # noqa: F811
    page = open_page(as_researcher)
    page.goto("/experiments/claims")
    page.locator("a[href='/experiments/claims/rationale/new']").first.click()
    expect(page.get_by_text("No dataset yet")).to_be_visible()
    page.get_by_label("Seeds").fill("2")
    check_look(page)
    page.get_by_role("button", name="Create its task and start").dblclick()
    page.wait_for_url(re.compile(r"/experiments/claims/\d+$"))
    study, job = ClaimStudy.objects.get(), WeightsJob.objects.get()
    standing = page.locator("#standing")
    expect(standing).to_contain_text("Its 4 runs start when its task is made")
    check_look(page)
    run_job(job, leaves=False)
    expect(standing).to_contain_text("is not on this server")
    check_look(page)
    page.get_by_role("button", name="Try again").click()
    expect(standing.get_by_text("Queued")).to_be_visible()
    job.refresh_from_db()
    write_model(settings.VAR / "weights" / str(job.pk) / tasks.MODEL)
    WeightsJob.objects.filter(pk=job.pk).update(state="starting", ray_job_id=f"weights-{job.pk}-{job.attempt}")
    process = Process(job)
    steps = {"done": 340, "total": 1200, "seconds_left": 74.6}
    assert process.post(phase="teaching the model", steps=steps).status_code == 200
    expect(standing).to_contain_text("340 of 1,200 steps")  # without a reload
    expect(standing).to_contain_text("about 1:15 min left")
    bar = standing.get_by_role("progressbar", name="The small model")
    assert (bar.get_attribute("value"), bar.get_attribute("max")) == ("340", "1200")
    check_look(page)
    expect(standing).to_contain_text("80 are made")
    assert process.post(1, state="finished", outcome={"examples": 80, "files": []}).status_code == 200
    claims.begin(study.pk)
    expect(standing).to_contain_text("0 of 4 runs have finished")
    assert ClaimRun.objects.filter(study=study).count() == 4 == Run.objects.count()
    page.goto("/experiments/claims/rationale/new")
    expect(page.get_by_role("button", name="Start with its task")).to_be_visible()
    expect(page.get_by_role("link", name="claim-faults v1")).to_be_visible()
    check_look(page)


def test_enter_in_a_field_starts_what_is_chosen(open_page, as_researcher, data, model):  # noqa: F811
    page = open_page(as_researcher)
    page.goto("/experiments/claims/rationale/new")
    page.get_by_label("Seeds").fill("2")
    page.get_by_label("Seeds").press("Enter")
    page.wait_for_url(re.compile(r"/experiments/claims/\d+$"))
    assert ClaimStudy.objects.get().task is not None, "nothing was chosen: its own task"
    page.goto("/experiments/claims/rationale/new")
    page.get_by_label("Seeds").fill("1")
    page.get_by_label("Model", exact=True).dispatch_event("change")
    page.get_by_label("Seeds").press("Enter")
    expect(page.get_by_text("one seed does not show how much seeds differ")).to_be_visible()
    page.get_by_label("Seeds").fill("2")
    page.locator("textarea[name=shared]").fill(json.dumps({"steps": 4, "reward": {"matcher": "words"}}))
    page.get_by_label("Seeds").press("Enter")
    page.wait_for_url(lambda url: re.search(r"/experiments/claims/\d+$", url) is not None)
    study = ClaimStudy.objects.latest("pk")
    assert (study.task, study.runs.count()) == (None, 4), "with the chosen data and model"
