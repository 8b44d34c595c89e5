"""A claim whose policies wait for their judges, in a browser: one click starts it, its table fills by itself, the verdict stands above."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests import patience
from tests.e2e.look import faults
from tests.webapp.experiments.claims.test_waiting_arms import data, finish  # noqa: F401 - fixtures
from tests.webapp.experiments.conftest import model  # noqa: F401
from webapp.experiments.after import rounds
from webapp.experiments.models import ClaimRun, ClaimStudy, Run

pytestmark = pytest.mark.browser


def looked_at(page) -> None:
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            assert faults(page) == []
    page.set_viewport_size({"width": 1280, "height": 800})


def test_a_claim_is_started_once_fills_its_table_and_is_decided(open_page, as_researcher, data, model, finish):  # noqa: F811
    page = open_page(as_researcher)
    page.goto("/experiments/claims")
    page.locator("#method-judge_policy").or_(
        page.locator("a[href='/experiments/claims/judge_policy/new']")
    ).first.wait_for()
    page.locator("a[href='/experiments/claims/judge_policy/new']").first.click()
    page.get_by_label("Seeds").fill("2")
    page.locator("textarea[name=shared]").fill(json.dumps({"steps": 4, "scaffold": None}))
    looked_at(page)
    page.get_by_role("button", name="Launch all runs").dblclick()
    page.wait_for_url(re.compile(r"/experiments/claims/\d+$"))
    study = ClaimStudy.objects.get()
    standing = page.locator("#standing")
    expect(standing).to_contain_text("0 of 8 runs have finished")
    expect(standing).to_contain_text("Waits until hybrid_judge, seed 0 has finished")
    looked_at(page)
    for each in ClaimRun.objects.filter(run__isnull=False).select_related("run"):
        finish(each.run)
        rounds.take_up(each.run.pk)
    first = ClaimRun.objects.get(study=study, arm="hybrid_policy", seed=0).run
    link = standing.locator(f"a[href='/runs/{first.pk}']")
    expect(link).to_be_visible(timeout=(10 + patience.SECONDS) * 1000)  # without a reload
    expect(standing).not_to_contain_text("Waits until")
    for each in ClaimRun.objects.filter(run__recipe="policy").select_related("run"):
        score = 0.9 + each.seed / 100 if each.arm == "hybrid_policy" else 0.4
        finish(each.run, **{"eval/rubric_score": score, "eval/length": 4.0})
    expect(standing).to_contain_text("8 of 8 runs have finished", timeout=(10 + patience.SECONDS) * 1000)
    expect(standing.locator("section", has_text="A policy trained with the hybrid judge").first).to_contain_text(
        "Holds"
    )
    looked_at(page)
    assert Run.objects.count() == 8 and ClaimStudy.objects.count() == 1
    link.click()
    expect(page.get_by_role("link", name="claim: judge_policy", exact=True)).to_be_visible()
