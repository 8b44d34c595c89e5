"""A researcher's work with recorded verdicts: upload them, start an evaluation, read the numbers, open a case, ask people about it."""

import json

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.shared import SHARED, needs_shared
from trainer.contracts import Example, Message, Preference, Response
from webapp.annotation.models import Project
from webapp.datasets.versions import services as datasets
from webapp.evaluation.models import Evaluation

pytestmark = [pytest.mark.browser, needs_shared]
FOLDER = SHARED / "judgebench"
SIDES = {"A>B": "A", "B>A": "B", "A=B": "tie"}
JUDGE, JUDGED_BY = "arena_hard", "claude-3-haiku-20240307"


@pytest.fixture
def recorded(tmp_path):
    """Verdicts of one of JudgeBench's judges about the pairs of Claude in both orders, as lines for an audit."""
    lines = []
    for line in (FOLDER / "judgments.jsonl").open():
        row = json.loads(line)
        if (row["judge_name"], row["judge_model"]) == (JUDGE, JUDGED_BY):
            verdicts = {"given": SIDES.get(row["decision_AB"]), "swapped": SIDES.get(row["decision_BA"])}
            lines.append({"judge": JUDGE, "pair": row["pair_id"], "label": SIDES[row["label"]], **verdicts})
    path = tmp_path / "judgebench.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture
def pairs(server, team):
    rows = map(json.loads, (FOLDER / "pairs_claude.jsonl").open())
    examples = [
        Example(
            key=row["pair_id"],
            prompt=(Message(role="user", content=row["question"]),),
            responses=(Response(id="A", text=row["response_A"]), Response(id="B", text=row["response_B"])),
            preferences=(Preference(a="A", b="B", strength=-2 if row["label"] == "A>B" else 2),),
        )
        for row in rows
    ]
    made = datasets.create_dataset(team.researcher, "JudgeBench")
    return datasets.new_version(team.researcher, made, examples, None, {"from": "test"})


def test_from_recorded_verdicts_to_tasks_for_people(open_page, eager, as_researcher, recorded, pairs):
    page = open_page(as_researcher)
    page.goto("/evaluations")
    page.get_by_role("link", name="Start the first one").click()
    page.get_by_role("link", name="Judge audit").click()
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("choose recorded verdicts, or judges to ask")).to_be_visible()

    page.get_by_label("Recorded verdicts", exact=True).set_input_files(recorded)
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("#f-recording option:checked")).to_contain_text("270 verdict pairs of 1 judge")
    page.locator("#f-dataset").select_option(label="JudgeBench · v1 · 270 examples · draft")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/evaluations/*")
    expect(page.get_by_text(f"Accuracy of {JUDGE}")).to_be_visible()
    fits = "(wraps) => wraps.every((each) => each.scrollWidth <= each.clientWidth)"
    assert page.locator(".table-wrap").evaluate_all(fits), "no table is wider than the page"
    row = Evaluation.objects.get()
    assert row.state == "finished", row.problem

    page.locator(".estimates td.estimate a").nth(5).click()  # order consistency leads to the cases that lower it
    expect(page.locator(".chip[aria-current]", has_text="inconsistent")).to_be_visible()
    assert not layout_faults(page)
    page.locator(".cases-table tbody a").first.click()
    expect(page.get_by_role("heading", name="Response A")).to_be_visible()
    expect(page.get_by_role("heading", name="Response B")).to_be_visible()

    page.go_back()
    page.get_by_role("button", name="Create annotation tasks").click()
    page.locator("#tasks-name").fill("Where the judge wavers")
    page.get_by_role("button", name="Create tasks").click()
    page.wait_for_url("**/projects/*")
    project = Project.objects.get()
    wavering = row.results["tags"]["inconsistent"]
    assert (project.name, project.state, project.tasks_total) == ("Where the judge wavers", "open", wavering)
