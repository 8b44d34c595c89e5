"""The manager's work: set a project up, open it, send a link. A newcomer follows the link and answers the first task."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.workbench import wait_until_sent
from tests.webapp.annotation.conftest import make_version
from webapp.annotation.models import Answer, Project, ProjectInvite

pytestmark = pytest.mark.browser


@pytest.fixture
def version(server, team):
    return make_version(team.owner, name="Fruit", examples=3)


def set_up(page) -> None:
    """Fills in the form like a person, and opens the project."""
    page.goto("/projects")
    page.get_by_role("link", name="Set up the first project").click()
    page.locator(".kind", has_text="Pairwise preference").click()
    page.get_by_label("Name", exact=True).fill("Which is better?")
    expect(page.locator("[data-size]")).to_contain_text("3 examples")
    page.get_by_label("People per task").fill("3")
    expect(page.locator(".size dd").nth(1)).to_have_text("9")
    page.get_by_label("Guidelines in Markdown").fill("Prefer what is **right**.")
    expect(page.locator("[data-editor-preview] strong")).to_have_text("right")
    page.get_by_role(
        "button", name="Create and open"
    ).dblclick()  # the second press must not be told that the name is taken
    page.wait_for_url(re.compile(r"/projects/\d+$"))


def test_guidelines_that_are_written_stay_when_the_session_ends_and_are_not_sent_for_another_session(
    open_page, as_researcher, version
):
    page = open_page(as_researcher)
    page.goto("/projects/new?kind=pairwise")
    page.get_by_label("Name", exact=True).fill("Which is better?")
    page.get_by_label("Guidelines in Markdown").fill("Prefer what is **right**.")
    expect(page.locator("[data-editor-preview] strong")).to_have_text("right")
    cookies = page.context.cookies()
    page.context.clear_cookies(name=re.compile("sessionid"))
    page.get_by_label("Guidelines in Markdown").fill("Prefer what is **true**.")
    expect(page.locator(".toast", has_text="You are signed out.")).to_be_visible()
    expect(page.locator("[data-editor-preview] strong")).to_have_text("right")  # not the page for signing in
    fresh = [{**each, "value": "n" * 32} if each["name"].endswith("csrftoken") else each for each in cookies]
    page.context.add_cookies(fresh)  # signing in gives another token for forms
    page.get_by_role("button", name="Create and open").click()
    expect(page.get_by_text("Somebody has signed in since this page was loaded.")).to_be_visible()
    expect(page.get_by_label("Guidelines in Markdown")).to_have_value("Prefer what is **true**.")
    assert not Project.objects.exists()  # the new session may be that of another person


def test_a_project_is_set_up_opened_and_joined_by_a_newcomer(
    open_page, chromium, server, eager, as_researcher, version
):
    page = open_page(as_researcher)
    set_up(page)
    project = Project.objects.get()
    assert (project.state, project.overlap, project.guidelines.get().text) == (
        "open",
        3,
        "Prefer what is **right**.",
    )
    expect(page.get_by_role("heading", level=1)).to_have_text("Which is better?")
    expect(page.get_by_text("Nobody works here yet")).to_be_visible()

    page.get_by_role("link", name="People", exact=True).click()
    page.get_by_role("button", name="Create a link").dblclick()
    link = page.locator(".copyable .code").inner_text()
    assert ProjectInvite.objects.count() == 1
    secret = link.rsplit("/", 1)[1]

    other = chromium.new_context(base_url=server.url, viewport={"width": 1280, "height": 800})
    newcomer = other.new_page()
    newcomer.goto(f"/join/{secret}")
    newcomer.get_by_label("Your name").fill("Nora")
    newcomer.get_by_label("Email").fill("nora@example.com")
    newcomer.get_by_label("Password").fill("twelve letters")
    newcomer.get_by_role("button", name="Create an account and begin").click()
    newcomer.get_by_role("link", name="Which is better?").click()
    newcomer.wait_for_url("**/work")
    newcomer.get_by_text("Which colour is fruit 0?").wait_for()
    newcomer.keyboard.press("6")
    newcomer.keyboard.press("Control+Enter")
    newcomer.get_by_text("Which colour is fruit 1?").wait_for()
    wait_until_sent(newcomer)
    assert Answer.objects.get().assignment.user.name == "Nora"
    other.close()

    page.goto(f"/projects/{project.pk}/people")
    row = page.locator(".people-table tbody tr", has_text="Nora")
    expect(row.locator("td").nth(1)).to_contain_text("1")
    row.get_by_role("button", name="Pause Nora").click()
    expect(page.get_by_text("paused", exact=True)).to_be_visible()


def test_a_wrong_field_is_pointed_at_and_what_was_typed_stays(open_page, as_researcher, version):
    page = open_page(as_researcher)
    page.goto("/projects/new")
    page.locator(".kind", has_text="Rating on scales").click()
    page.get_by_label("Name", exact=True).fill("Helpful?")
    page.get_by_role("button", name="Add a scale").click()
    page.get_by_label("Name of the scale").nth(1).fill("Tone")
    page.get_by_label("Highest value").nth(1).fill("0")
    page.get_by_role("button", name="Save as a draft").click()
    expect(page.get_by_text("a scale needs low < high and at most 21 values")).to_be_visible()
    expect(page.get_by_label("Name of the scale").nth(1)).to_have_value("Tone")
    page.get_by_label("Highest value").nth(1).fill("5")
    page.get_by_role("button", name="Save as a draft").click()
    page.wait_for_url(lambda url: url.split("/")[-1].isdecimal())
    assert [scale["name"] for scale in Project.objects.get().settings["scales"]] == ["Helpfulness", "Tone"]


def test_a_key_is_changed_by_pressing_it_and_given_back(open_page, as_researcher, version, team):
    from webapp.annotation.projects import services as projects

    project = projects.create(team.researcher, name="Keys", kind="pairwise", dataset=version)
    page = open_page(as_researcher)
    page.goto(f"/projects/{project.pk}/settings")
    field = page.get_by_label("Skip, with a reason")
    field.press("x")
    expect(field).to_have_value("X")
    page.get_by_label("Flag for the reviewers").press("x")
    expect(page.get_by_text("Also: Skip, with a reason")).to_be_visible()
    page.get_by_label("Flag for the reviewers").press("Delete")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    project.refresh_from_db()
    assert project.settings["keys"] == {"skip": "x"}
    expect(page.get_by_label("Skip, with a reason")).to_have_value("X")


def hasty_and_slow(team, version):
    """A project of two people. The first person has a warning."""
    from webapp.annotation.agreement import refresh
    from webapp.annotation.agreement.person_figures import Figures
    from webapp.annotation.projects import services as projects

    project = projects.create(team.researcher, name="Haste", kind="pairwise", dataset=version)
    report = refresh.current_report(project)
    kept = {"last_at": "2026-01-01T00:00:00+00:00", "points": [], "drift": {}}
    report.people = {
        str(each.user.pk): kept | {"total": Figures(done=done).packed(), "warnings": warnings}
        for each, done, warnings in ((team.annotator, 9, ["Too fast."]), (team.reviewer, 5, []))
    }
    report.save()
    return project


def test_a_column_is_hidden_by_key_and_stays_hidden_after_a_reload(open_page, as_researcher, version, team):
    page = open_page(as_researcher)
    page.goto(f"/projects/{hasty_and_slow(team, version).pk}/people")
    gold = page.get_by_role("columnheader", name="Gold")
    expect(gold).to_be_visible()
    page.locator("summary", has_text="Columns").focus()
    page.keyboard.press("Enter")
    page.get_by_role("checkbox", name="Gold").focus()
    page.keyboard.press("Space")
    expect(gold).to_be_hidden()
    page.reload()
    expect(gold).to_be_hidden()
    expect(page.get_by_role("columnheader", name="Person")).to_be_visible()
    page.locator("summary", has_text="Columns").click()
    expect(page.get_by_role("checkbox", name="Person", exact=True)).to_have_count(0)
    page.get_by_role("checkbox", name="Gold").check()
    expect(gold).to_be_visible()


def test_a_warning_stays_under_its_person_when_the_table_is_sorted(open_page, as_researcher, version, team):
    page = open_page(as_researcher)
    page.goto(f"/projects/{hasty_and_slow(team, version).pk}/people")
    rows = page.locator(".people-table tbody tr")
    person = {each: str(each.user) for each in (team.annotator, team.reviewer)}
    expect(rows).to_contain_text([person[team.annotator], "Too fast.", person[team.reviewer]])
    head = page.get_by_role("columnheader", name="Answers").get_by_role("button")
    head.click()
    expect(page.get_by_role("columnheader", name="Answers")).to_have_attribute("aria-sort", "descending")
    expect(rows).to_contain_text([person[team.annotator], "Too fast.", person[team.reviewer]])
    head.click()
    expect(rows).to_contain_text([person[team.reviewer], person[team.annotator], "Too fast."])
