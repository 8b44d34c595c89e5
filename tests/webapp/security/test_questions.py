"""No removal is one click: it asks first, or stands where it can be taken back.

All forms of all templates are gone through. A form that this list does not know fails, until somebody says what it does.
"""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.cast import browser
from tests.e2e.conftest import chromium  # noqa: F401 - a fixture
from tests.e2e.live import open_page, server  # noqa: F401 - fixtures
from webapp.accounts import services
from webapp.accounts.models import ApiToken

TEMPLATES = Path(__file__).parents[3] / "templates"
# what each form that takes something away does it with: (name, value) of its button; None: whichever button
REMOVES = {
    "evaluation_delete": {None},
    "evaluation_move": {("to", "cancelled")},
    "installation_rights": {None},
    "invite_cancel": {None},
    "invite_revoke": {None},
    "member_change": {("remove", "1")},
    "model_delete": {None},
    "run_delete": {None},
    "sessions_end": {None},
    "task_gold": {("source", "none")},
    "token_revoke": {None},
    "view_delete": {None},
    "webhook_act": {("action", "delete"), ("action", "secret")},
    "judging/suggestions.html": {("action", "remove")},
}
# asks in a way of its own: the name of the dataset has to be typed
TYPED = {("dataset_housekeeping", ("action", "delete"))}
# these take nothing away, or stand beside what takes them back (archive and restore, pause and resume, close and open, stop
# and resume, cancel an import and import again)
KEEPS = {
    "address_check", "curation_start", "dataset_freeze", "dataset_housekeeping", "dataset_tag", "endpoint_act",
    "endpoint_recorded", "evaluation_rename", "evaluation_rerun", "evaluation_study", "evaluation_study_read",
    "evaluation_tasks", "import_cancel", "judge_act", "judge_edit", "model_act", "objective_calculate", "participant_add",
    "project", "project_publish", "project_state", "project_task", "recording_new", "review_majority", "review_match",
    "run_budget", "run_extend", "run_rename", "run_resume", "run_rollouts_dataset", "run_stop", "sign_in", "sign_out",
    "switch_workspace", "theme", "train_on_answers", "verifier_try", "view_save", "webhook", "weights_job_act",
}  # fmt: skip


class Forms(HTMLParser):
    """(form, button, whether a dialog stands around it) of every button in a form that is posted."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.form, self.dialogs, self.found = name, "", 0, []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.dialogs += tag == "dialog"
        if tag == "form":
            posts = (given.get("method") or "").lower() == "post"
            self.form = re.sub(r"^url:|[?].*$", "", given.get("action") or self.name) if posts else ""
        if tag == "button" and self.form and given.get("type") != "button":
            self.found.append((self.form, given, self.dialogs > 0))

    def handle_endtag(self, tag):
        self.dialogs -= tag == "dialog"
        self.form = "" if tag == "form" else self.form


def buttons() -> list[tuple[str, dict[str, str | None], bool]]:
    found = []
    for path in sorted(TEMPLATES.rglob("*.html")):
        text = re.sub(r"{%\s*url '(\w+)'[^%]*%}", r"url:\1", path.read_text())
        parser = Forms(str(path.relative_to(TEMPLATES)))
        parser.feed(re.sub(r"{%.*?%}|{{.*?}}|{#.*?#}", "", text, flags=re.DOTALL))
        found += parser.found
    return found


def test_every_form_is_known():
    named = {form for form, _, _ in buttons() if not form.endswith(".html")}
    assert named - KEEPS - set(REMOVES) == set()
    assert not KEEPS & set(REMOVES)
    assert {name for name in REMOVES if name not in named and not name.endswith(".html")} == set()


def test_every_removal_asks():
    asked, silent = 0, []
    for form, button, in_dialog in buttons():
        one = (button.get("name"), button.get("value"))
        if not REMOVES.get(form, set()) & {None, one}:
            continue
        asked += 1
        if not in_dialog and "data-ask" not in button:
            silent.append((form, one))
    assert silent == [] and asked >= len(REMOVES)


def test_no_button_that_looks_dangerous_is_without_a_question():
    silent = [
        (form, button.get("name"), button.get("value"))
        for form, button, in_dialog in buttons()
        if re.search(r"\bdanger\b", button.get("class") or "") or button.get("data-tone") == "bad"
        if not in_dialog and "data-ask" not in button
    ]
    assert [each for each in silent if (each[0], each[1:]) not in TYPED] == []


@pytest.mark.browser
def test_a_token_is_revoked_by_a_second_press_and_kept_by_the_other(open_page, cast):  # noqa: F811
    services.create_token(cast.owner, "nightly")
    page = open_page(browser(cast.owner))
    page.goto("/settings/tokens")
    page.get_by_role("button", name="Revoke nightly").click()
    question = page.get_by_role("alertdialog", name="Revoke nightly?")
    expect(question).to_contain_text("Scripts that use it are refused at once.")
    expect(question.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(question).to_be_hidden()
    assert ApiToken.objects.get().revoked_at is None
    page.get_by_role("button", name="Revoke nightly").click()
    question.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("Token revoked.")).to_be_visible()
    assert ApiToken.objects.get().revoked_at is not None
