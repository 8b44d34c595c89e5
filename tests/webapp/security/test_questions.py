"""A removal needs more than one click: it asks first, or can be undone on the same page.

The test reads all forms of all templates. It fails for a form that this list does not know, until a person adds it.
"""

import inspect
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tests.team import browser
from webapp.accounts.members import services as members
from webapp.accounts.models import Invite, SignedIn

TEMPLATES = Path(__file__).parents[3] / "templates"
# forms that remove something for good, with (name, value) of the button that does; None stands for any button
REMOVES: dict[str, set] = {
    "chain_cancel": {None},
    "directory_key_revoke": {None},
    "erase_account": {None},
    "erase_person": {None},
    "evaluation_delete": {None},
    "checkpoint_rule": {("on", "yes")},
    "evaluation_move": {("to", "cancelled")},
    "installation_sign_out": {None},
    "invite_cancel": {None},
    "invite_revoke": {None},
    "member_change": {("remove", "1")},
    "model_delete": {None},
    "model_alias_remove": {None},
    "project_then_cancel": {None},
    "run_delete": {None},
    "sessions_end": {None},
    "share_revoke": {None},
    "token_revoke": {None},
    "probe_delete": {None},
    "repeat_remove": {None},
    "webhook_act": {("action", "delete"), ("action", "secret")},
}
KEEPS_BESIDE = {"installation_rights", "unmap_group"}  # the same button or form gives it back
# these remove nothing, or are beside a button that undoes them: archive and restore, pause and resume, close and open, stop and
# resume, gold and ordinary, a right taken and given (an administrator's asks), a draft discarded and restored, a view forgotten whose filters stay set
KEEPS = {
    "directory_key_new", "installation_directories",
    "address_check", "ask_second_factor", "map_group", "unmap_group", "mfa_authenticate", "openid_connect_login",
    "backup_cancel", "backup_start", "chain_evaluate", "claim_again", "drill_cancel", "drill_start", "curation_start", "dataset_freeze", "dataset_pass_rates_write", "dataset_housekeeping", "dataset_tag", "endpoint_act",
    "endpoint_recorded", "evaluation_correct", "evaluation_grade_next", "evaluation_priority", "evaluation_rename", "evaluation_rerun", "evaluation_study", "evaluation_study_read",
    "evaluation_tasks", "import_cancel", "judge_act", "judge_edit", "limit_sessions", "model_act", "model_as_judge", "model_promote", "model_stage", "objective_calculate", "participant_add", "personal_data",
    "project", "project_publish", "project_state", "project_task", "project_then", "recording_new", "repeat_act", "repeats", "review_majority", "review_match",
    "installation_retention", "installation_rights", "run_alarm_people", "run_budget", "run_extend", "run_early", "run_labels", "run_keep", "run_launch", "run_discard", "run_restore", "run_tokens", "run_view_delete", "task_gold", "view_delete", "run_limit", "run_pause", "run_priority", "run_rename", "run_resume", "run_rollouts_dataset", "run_schedule", "run_spending", "run_stop", "sign_in", "sign_out",
    "notices_read", "notice_settings", "watch", "sweep_add", "sweep_resume", "sweep_resume_failed", "sweep_stop",
    "report_act", "report_share_newest",
    "report_version_restore",
    "share_links_allow", "switch_workspace", "theme", "train_on_answers", "verifier_try", "view_save", "webhook", "weights_job_act",
}  # fmt: skip


class Forms(HTMLParser):
    """(form, button, whether it is in a dialog) of every button in a form that is posted."""

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


def views(patterns=None) -> dict[str, Any]:
    """The view of each name in the URL map."""
    found = {}
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(pattern, URLResolver):
            found |= views(pattern.url_patterns)
        elif isinstance(pattern, URLPattern) and pattern.name:
            found[pattern.name] = pattern.callback
    return found


def asks(form: str) -> bool:
    """Whether the view behind the form asks the question of `confirmation`."""
    return "confirmation.question(" in inspect.getsource(inspect.unwrap(views()[form]))


def test_every_form_is_known():
    named = {form for form, _, _ in buttons() if not form.endswith(".html")}
    assert named - KEEPS - set(REMOVES) == set()
    assert not KEEPS & set(REMOVES)
    assert set(REMOVES) - named == set()


def test_every_removal_asks():
    asked, silent = 0, []
    for form, button, in_dialog in buttons():
        one = (button.get("name"), button.get("value"))
        if not REMOVES.get(form, set()) & {None, one}:
            continue
        asked += 1
        if not in_dialog and not asks(form):
            silent.append((form, one))
    assert silent == [] and asked >= len(REMOVES)


def test_no_button_that_looks_dangerous_is_without_a_question():
    looks = [
        (form, button)
        for form, button, in_dialog in buttons()
        if re.search(r"\bdanger\b", button.get("class") or "") or button.get("data-tone") == "bad"
        if not in_dialog
    ]
    questions = {
        "sure.html",
        "mfa/webauthn/authenticator_confirm_delete.html",
        "mfa/totp/deactivate_form.html",
    }  # are the question
    silent = {form for form, button in looks if form not in REMOVES and form not in questions}
    assert silent <= {"dataset_housekeeping"} | KEEPS_BESIDE


@pytest.mark.django_db
def test_an_invitation_and_a_session_are_ended_by_a_second_press(team):
    page, other = browser(team.owner), browser(team.owner)
    members.invite(team.owner, "nia@example.org", "annotator")
    invite, session = Invite.objects.get(), SignedIn.objects.get(session_key=other.cookies["sessionid"].value)
    for path, body, rows in (
        (f"/settings/invites/{invite.pk}/revoke", {}, Invite.objects.filter(pk=invite.pk)),
        ("/settings/sessions/end", {"session": str(session.pk)}, SignedIn.objects.filter(pk=session.pk)),
    ):
        asked = page.post(path, body)
        assert asked.status_code == 200 and b"Keep it" in asked.content and rows.exists(), path
        assert page.post(path, body | {"sure": "1"}).status_code == 302 and not rows.exists(), path
